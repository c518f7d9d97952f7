//! Writes a capture of UET traffic: `cargo run -p uet-wireshark --example capture -- FILE [PACKETS] [PAYLOAD] [CONTEXTS]`.
//!
//! Contexts write messages of four packets, in turn. An ACK with congestion state answers every second packet.
//! Occasionally, a packet is refused and retransmitted, or acknowledged late behind others. With more than 64 contexts,
//! and as many as packets, the capture has only the first packet of each context.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use uet_wire::pds::{Ack, AckCc, Nack, PdsBuf, Request};
use uet_wire::registry::{CcType, NackCode, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, SesBuf, Std};
use uet_wire::{FrameBuilder, PdcId, Psn, PsnOffset, Units24};

const CONTEXTS: u32 = 64;

/// The number of contexts between the same two addresses.
const OF_A_PAIR: u32 = 0x3fff;

struct Capture {
    out: BufWriter<File>,
    left: usize,
    nanoseconds: u64,
    payload: Vec<u8>,
}

/// One context: the next PSN, the next message, and whether the target has answered.
struct Context {
    index: u32,
    psn: u32,
    message: u16,
    open: bool,
}

impl Context {
    fn new(index: u32) -> Self {
        Context { index, psn: 0x12000 + (index % 0xfff) * 0x10_0000, message: 1, open: false }
    }

    /// Returns the PDCIDs of initiator and target.
    fn ids(&self) -> (PdcId, PdcId) {
        let index = (self.index % OF_A_PAIR) as u16;
        (PdcId(0x4001 + index), PdcId(0x8001 + index))
    }
}

impl Capture {
    fn create(file: &str, packets: usize, payload: usize) -> Result<Self> {
        let mut out = BufWriter::new(File::create(file)?);
        // Nanoseconds, Ethernet.
        for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 1] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Capture { out, left: packets, nanoseconds: 0, payload: vec![0x5a; payload] })
    }

    fn write(&mut self, frame: FrameBuilder<'_>, context: u32, from_target: bool, after: u64) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.nanoseconds += after;
        let pair = (context / OF_A_PAIR) as u8;
        let (a, b) = ([10, pair, 0, 1 + (context % 8) as u8], [10, pair, 1, 1 + (context / 8 % 8) as u8]);
        let (src, dst) = if from_target { (b, a) } else { (a, b) };
        let entropy = 49_152 + (self.nanoseconds % 16_384) as u16;
        let frame = frame
            .udp(entropy)
            .ipv4(src, dst)
            .dscp(10)
            .ecn(1)
            .ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let mut buffer = vec![0; frame.len()];
        let length = frame.emit(&mut buffer).map_err(std::io::Error::other)? as u32;
        let time = 1_782_000_000_000_000_000 + self.nanoseconds;
        for word in [(time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, length, length] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.out.write_all(&buffer)
    }

    fn request(&mut self, context: &Context, packet: u32, retx: bool) -> Result<()> {
        let psn = context.psn + packet;
        let length = self.payload.len() as u32;
        let pds =
            Request::rud().ar(packet == 3).retx(retx).syn(!context.open).clear_psn_offset(-1 - packet as i16);
        let (own, target) = context.ids();
        let pds = pds.psn(Psn(psn)).spdcid(own);
        let pds = if context.open {
            pds.dpdcid(target)
        } else {
            pds.pdc_info(0).psn_offset(PsnOffset::new(packet as u16).unwrap_or_default())
        };
        let ses = Std::build(Opcode::UET_WRITE).head(|head| head.rel(true).som(packet == 0).eom(packet == 3));
        let ses = ses
            .message_id(context.message)
            .address(|address| address.job_id(101).pid_on_fep(2).resource_index(10));
        let ses = ses.memory_key(0xacce5).request_length(length * 4);
        let ses = if packet == 0 {
            ses.header_data(11)
        } else {
            ses.payload_length(length as u16).message_offset(packet * length)
        };
        let payload = self.payload.clone();
        let frame = FrameBuilder::new(PdsBuf::from(pds.done().unwrap()))
            .ses(SesBuf::from(ses.done().unwrap()))
            .payload(&payload);
        self.write(frame, context.index, false, 900)
    }

    fn ack(&mut self, context: &Context, cack: u32, offset: i16, sacked: u64) -> Result<()> {
        let psn = Psn(context.psn.wrapping_add(cack).wrapping_sub(1));
        let (initiator, target) = context.ids();
        let ses = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK)
            .message_id(context.message)
            .job_id(101);
        let ses = SesBuf::from(ses.done().unwrap());
        let pds = if sacked == 0 && cack == 4 {
            PdsBuf::from(Ack::build().cack_psn(psn).spdcid(target).dpdcid(initiator).done().unwrap())
        } else {
            let ack = AckCc::build()
                .ack(|ack| ack.cack_psn(psn).ack_psn_offset(offset).spdcid(target).dpdcid(initiator));
            let ack =
                ack.cc_type(CcType::NSCC).sack(|sack| sack.mpr(8).sack_psn_offset(1).sack_bitmap(sacked));
            PdsBuf::from(
                ack.service_time(40).rcvd_bytes(Units24::from_bytes(u64::from(cack) * 256)).done().unwrap(),
            )
        };
        self.write(FrameBuilder::new(pds).ses(ses), context.index, true, 2_100)
    }

    fn nack(&mut self, context: &Context, packet: u32, code: NackCode) -> Result<()> {
        let nack = Nack::build(code).nack_psn(Psn(context.psn + packet));
        let (initiator, target) = context.ids();
        let nack = nack.spdcid(target).dpdcid(initiator);
        self.write(FrameBuilder::new(PdsBuf::from(nack.done().unwrap())), context.index, true, 1_300)
    }

    /// Writes one message, with a fault if `mishap`.
    fn message(&mut self, context: &mut Context, mishap: bool) -> Result<()> {
        let code = if context.message % 2 == 1 { NackCode::NO_PKT_BUFFER } else { NackCode::TRIMMED };
        for packet in 0..4 {
            self.request(context, packet, false)?;
            if packet == 1 && !mishap {
                self.ack(context, 2, 0, 0)?;
                context.open = true;
            }
            if packet == 1 && mishap {
                self.nack(context, 1, code)?;
            }
        }
        if mishap {
            self.ack(context, 1, 3, 0b110)?;
            context.open = true;
            self.request(context, 1, true)?;
        }
        self.ack(context, 4, 0, 0)?;
        (context.psn, context.message) = (context.psn + 4, context.message.wrapping_add(1).max(1));
        Ok(())
    }
}

/// Writes a capture of this many packets.
pub(crate) fn write(file: &str, packets: usize, payload: usize, contexts: u32) -> Result<()> {
    let mut capture = Capture::create(file, packets, payload)?;
    if contexts > CONTEXTS && contexts as usize >= packets {
        (0..contexts).try_for_each(|index| capture.request(&Context::new(index), 0, false))?;
        return capture.out.flush();
    }
    let mut contexts: Vec<Context> = (0..contexts).map(Context::new).collect();
    let mut turn = 0usize;
    while capture.left > 0 {
        let context = turn % contexts.len();
        capture.message(&mut contexts[context], turn % 20 == 2)?;
        turn += 1;
    }
    capture.out.flush()
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "capture.pcap".into());
    let mut number = |default| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (packets, payload, contexts) = (number(200_000), number(256), number(CONTEXTS as usize));
    write(&file, packets, payload, contexts as u32)
}
