//! What is measured, once for both benchmarks: time and instructions.
//!
//! A case is one operation on one packet, done by three:
//!
//! - the codec: this crate, through its public interface;
//! - the overlay: packed structs and byte swaps in C, compiled with `-O2`;
//! - the floor: loading (or copying) the same bytes, once, behind one length check.
//!
//! Codec and overlay get the same bytes, make the same checks (every length, the types that choose the
//! headers, the opcodes that choose an extension) and leave the same fields in the same struct;
//! `Input::check` holds that against them. Neither is inlined into the loop around it, neither knows the packet when it is compiled.
//!
//! To add an operation: a function for the codec, one for the overlay, and a paragraph in `operations!`.

use std::hint::black_box;
use std::rc::Rc;
use uet_overlay::{AckCc, AckResponse, Measured, Nack, Outer, RequestStd};
use uet_wire::outer::Ip;
use uet_wire::pds::{self, Pds};
use uet_wire::registry::{
    AckRequest, CcType, List, NackCode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{self, Ses};
use uet_wire::{Frame, Options, Packet, PdcId, Psn, PsnOffset, Start, Uet, Units24, Version};

/// The codec's side of a kind of packet.
pub(crate) trait Codec: Measured {
    /// Its headers as owned values.
    type Owned;

    fn read(uet: &Uet<'_>, out: &mut Self) -> bool;
    fn build(&self, buffer: &mut [u8]) -> Option<usize>;
    fn owned(bytes: &[u8]) -> Option<Self::Owned>;
    fn emit(owned: &Self::Owned, buffer: &mut [u8]) -> Option<usize>;
}

/// Keeps a field that exists in some forms of a header only.
macro_rules! keep {
    ($out:ident.$field:ident = $value:expr) => {
        if let Some(value) = $value {
            $out.$field = value;
        }
    };
}

impl Codec for RequestStd {
    type Owned = (pds::Request, ses::Std);

    #[inline(always)]
    fn read(uet: &Uet<'_>, out: &mut Self) -> bool {
        let (Some(Pds::Request(pds)), Some(Ses::Std(ses))) = (uet.pds, uet.ses) else { return false };
        let (prologue, head, address) = (pds.prologue(), ses.head(), ses.address());
        out.kind = prologue.kind().code();
        out.next_hdr = prologue.next_hdr().code();
        out.retx = pds.retx();
        out.ar = pds.ar();
        out.syn = pds.syn();
        out.clear_psn_offset = pds.clear_psn_offset();
        out.psn = pds.psn().0;
        out.spdcid = pds.spdcid().0;
        keep!(out.dpdcid = pds.dpdcid().map(|id| id.0));
        keep!(out.pdc_info = pds.pdc_info());
        keep!(out.psn_offset = pds.psn_offset().map(PsnOffset::get));
        out.opcode = head.opcode().code();
        out.version = head.version();
        out.dc = head.dc();
        out.ie = head.ie();
        out.rel = head.rel();
        out.hd = head.hd();
        out.eom = head.eom();
        out.som = head.som();
        out.message_id = ses.message_id();
        out.ri_generation = address.ri_generation();
        out.job_id = address.job_id();
        out.pid_on_fep = address.pid_on_fep();
        out.resource_index = address.resource_index();
        keep!(out.buffer_offset = ses.buffer_offset());
        keep!(out.initiator_restart_token = ses.initiator_restart_token());
        keep!(out.target_restart_token = ses.target_restart_token());
        out.initiator = ses.initiator();
        keep!(out.memory_key = ses.memory_key());
        keep!(out.match_bits = ses.match_bits());
        keep!(out.header_data = ses.header_data());
        keep!(out.payload_length = ses.payload_length());
        keep!(out.message_offset = ses.message_offset());
        out.request_length = ses.request_length();
        out.payload = uet.payload.as_ptr();
        out.payload_bytes = uet.payload.len();
        true
    }

    #[inline(always)]
    fn build(&self, buffer: &mut [u8]) -> Option<usize> {
        let (pds, buffer) = pds::Request::parse_mut(buffer).ok()?;
        let pds = pds
            .copy_from(&pds::Request::zeroed())
            .prologue(|prologue| prologue.kind(PdsType::RUD_REQ).next_hdr(NextHdr::UET_HDR_REQUEST_STD))
            .retx(self.retx)
            .ar(self.ar)
            .syn(self.syn)
            .clear_psn_offset(self.clear_psn_offset)
            .psn(Psn(self.psn))
            .spdcid(PdcId(self.spdcid));
        let pds = if self.syn {
            pds.pdc_info(self.pdc_info).psn_offset(PsnOffset::new(self.psn_offset)?)
        } else {
            pds.dpdcid(PdcId(self.dpdcid))
        };
        let opcode = Opcode::new(self.opcode)?;
        let (ses, _) = ses::Std::parse_mut(buffer).ok()?;
        let ses = ses
            .copy_from(&ses::Std::zeroed())
            .head(|head| {
                head.opcode(opcode)
                    .version(self.version)
                    .dc(self.dc)
                    .ie(self.ie)
                    .rel(self.rel)
                    .hd(self.hd)
                    .eom(self.eom)
                    .som(self.som)
            })
            .message_id(self.message_id)
            .address(|address| {
                address
                    .ri_generation(self.ri_generation)
                    .job_id(self.job_id)
                    .pid_on_fep(self.pid_on_fep)
                    .resource_index(self.resource_index)
            });
        let ses = match opcode {
            Opcode::UET_DEFERRABLE_SEND | Opcode::UET_DEFERRABLE_TSEND => ses
                .send_initiator_token(self.initiator_restart_token)
                .send_target_token(self.target_restart_token),
            _ => ses.buffer_offset(self.buffer_offset),
        };
        let ses = ses.initiator(self.initiator);
        let ses = match opcode {
            Opcode::UET_WRITE | Opcode::UET_READ | Opcode::UET_ATOMIC | Opcode::UET_FETCHING_ATOMIC => {
                ses.memory_key(self.memory_key)
            }
            Opcode::UET_DEFERRABLE_RTR => ses
                .ready_initiator_token(self.initiator_restart_token)
                .ready_target_token(self.target_restart_token),
            _ => ses.match_bits(self.match_bits),
        };
        let ses = if self.som {
            ses.header_data(self.header_data)
        } else {
            ses.payload_length(self.payload_length).message_offset(self.message_offset)
        };
        let ses = ses.request_length(self.request_length);
        pds.done().ok()?;
        ses.done().ok()?;
        Some(56)
    }

    fn owned(bytes: &[u8]) -> Option<Self::Owned> {
        let (pds, rest) = pds::Request::parse(bytes).ok()?;
        Some((pds.copied(), ses::Std::parse(rest).ok()?.0.copied()))
    }

    #[inline(always)]
    fn emit((pds, ses): &Self::Owned, buffer: &mut [u8]) -> Option<usize> {
        ses.emit(pds.emit(buffer).ok()?).ok()?;
        Some(56)
    }
}

impl Codec for AckResponse {
    type Owned = (pds::Ack, ses::Response);

    #[inline(always)]
    fn read(uet: &Uet<'_>, out: &mut Self) -> bool {
        let (Some(Pds::Ack(pds)), Some(Ses::Response(ses))) = (uet.pds, uet.ses) else { return false };
        let (prologue, head) = (pds.prologue(), ses.head());
        out.kind = prologue.kind().code();
        out.next_hdr = prologue.next_hdr().code();
        out.m = pds.m();
        out.retx = pds.retx();
        out.p = pds.p();
        out.req = pds.req().code();
        keep!(out.ack_psn_offset = pds.ack_psn_offset());
        keep!(out.probe_opaque = pds.probe_opaque());
        out.cack_psn = pds.cack_psn().0;
        (out.spdcid, out.dpdcid) = (pds.spdcid().0, pds.dpdcid().0);
        out.list = head.list().code();
        out.opcode = head.opcode().code();
        out.version = head.version();
        out.return_code = head.return_code().code();
        out.message_id = ses.message_id();
        out.ri_generation = ses.ri_generation();
        out.job_id = ses.job_id();
        out.modified_length = ses.modified_length();
        true
    }

    #[inline(always)]
    fn build(&self, buffer: &mut [u8]) -> Option<usize> {
        let (pds, buffer) = pds::Ack::parse_mut(buffer).ok()?;
        let pds = pds
            .copy_from(&pds::Ack::zeroed())
            .prologue(|prologue| prologue.kind(PdsType::ACK).next_hdr(NextHdr::UET_HDR_RESPONSE))
            .m(self.m)
            .retx(self.retx)
            .p(self.p)
            .req(AckRequest::new(self.req)?);
        let pds = if self.p {
            pds.probe_opaque(self.probe_opaque)
        } else {
            pds.ack_psn_offset(self.ack_psn_offset)
        };
        pds.cack_psn(Psn(self.cack_psn)).spdcid(PdcId(self.spdcid)).dpdcid(PdcId(self.dpdcid)).done().ok()?;
        let (opcode, list) = (ResponseOpcode::new(self.opcode)?, List::new(self.list)?);
        let code = ReturnCode::new(self.return_code)?;
        let (ses, _) = ses::Response::parse_mut(buffer).ok()?;
        ses.copy_from(&ses::Response::zeroed())
            .head(|head| head.list(list).opcode(opcode).version(self.version).return_code(code))
            .message_id(self.message_id)
            .ri_generation(self.ri_generation)
            .job_id(self.job_id)
            .modified_length(self.modified_length)
            .done()
            .ok()?;
        Some(24)
    }

    fn owned(bytes: &[u8]) -> Option<Self::Owned> {
        let (pds, rest) = pds::Ack::parse(bytes).ok()?;
        Some((pds.copied(), ses::Response::parse(rest).ok()?.0.copied()))
    }

    #[inline(always)]
    fn emit((pds, ses): &Self::Owned, buffer: &mut [u8]) -> Option<usize> {
        ses.emit(pds.emit(buffer).ok()?).ok()?;
        Some(24)
    }
}

impl Codec for AckCc {
    type Owned = pds::AckCc;

    #[inline(always)]
    fn read(uet: &Uet<'_>, out: &mut Self) -> bool {
        let Some(Pds::AckCc(pds)) = uet.pds else { return false };
        let (ack, sack) = (pds.ack(), pds.sack());
        out.kind = ack.prologue().kind().code();
        out.next_hdr = ack.prologue().next_hdr().code();
        out.m = ack.m();
        out.retx = ack.retx();
        out.p = ack.p();
        out.req = ack.req().code();
        keep!(out.ack_psn_offset = ack.ack_psn_offset());
        keep!(out.probe_opaque = ack.probe_opaque());
        out.cack_psn = ack.cack_psn().0;
        (out.spdcid, out.dpdcid) = (ack.spdcid().0, ack.dpdcid().0);
        out.cc_type = pds.cc_type().code();
        out.cc_flags = pds.cc_flags();
        out.mpr = sack.mpr();
        out.sack_psn_offset = sack.sack_psn_offset();
        out.sack_bitmap = sack.sack_bitmap();
        keep!(out.service_time = pds.service_time());
        keep!(out.rc = pds.rc());
        keep!(out.rcv_cwnd_pend = pds.rcv_cwnd_pend());
        keep!(out.rcvd_bytes = pds.rcvd_bytes().map(Units24::get));
        keep!(out.credit = pds.credit().map(Units24::get));
        keep!(out.ooo_count = pds.ooo_count());
        keep!(out.ack_cc_state = pds.ack_cc_state());
        true
    }

    #[inline(always)]
    fn build(&self, buffer: &mut [u8]) -> Option<usize> {
        let req = AckRequest::new(self.req)?;
        let cc_type = CcType::new(self.cc_type)?;
        let (pds, _) = pds::AckCc::parse_mut(buffer).ok()?;
        let pds = pds
            .copy_from(&pds::AckCc::zeroed())
            .ack(|ack| {
                let ack = ack.prologue(|prologue| prologue.kind(PdsType::ACK_CC));
                let ack = ack.m(self.m).retx(self.retx).p(self.p).req(req);
                let ack = if self.p {
                    ack.probe_opaque(self.probe_opaque)
                } else {
                    ack.ack_psn_offset(self.ack_psn_offset)
                };
                ack.cack_psn(Psn(self.cack_psn)).spdcid(PdcId(self.spdcid)).dpdcid(PdcId(self.dpdcid))
            })
            .cc_type(cc_type)
            .cc_flags(self.cc_flags)
            .sack(|sack| {
                sack.mpr(self.mpr).sack_psn_offset(self.sack_psn_offset).sack_bitmap(self.sack_bitmap)
            });
        let pds = match cc_type {
            CcType::NSCC => pds
                .service_time(self.service_time)
                .rc(self.rc)
                .rcv_cwnd_pend(self.rcv_cwnd_pend)
                .rcvd_bytes(Units24::new(self.rcvd_bytes)?)
                .ooo_count(self.ooo_count),
            CcType::CREDIT => pds.credit(Units24::new(self.credit)?).ooo_count(self.ooo_count),
            _ => pds.ack_cc_state(self.ack_cc_state),
        };
        pds.done().ok()?;
        Some(32)
    }

    fn owned(bytes: &[u8]) -> Option<Self::Owned> {
        Some(pds::AckCc::parse(bytes).ok()?.0.copied())
    }

    #[inline(always)]
    fn emit(pds: &Self::Owned, buffer: &mut [u8]) -> Option<usize> {
        pds.emit(buffer).ok()?;
        Some(32)
    }
}

impl Codec for Nack {
    type Owned = pds::Nack;

    #[inline(always)]
    fn read(uet: &Uet<'_>, out: &mut Self) -> bool {
        let Some(Pds::Nack(pds)) = uet.pds else { return false };
        out.kind = pds.prologue().kind().code();
        out.next_hdr = pds.prologue().next_hdr().code();
        out.m = pds.m();
        out.retx = pds.retx();
        out.nt = pds.nt();
        (out.nack_code, out.vendor_code) = (pds.nack_code().code(), pds.vendor_code());
        keep!(out.nack_psn = pds.nack_psn().map(|psn| psn.0));
        keep!(out.nack_pkt_id = pds.nack_pkt_id());
        (out.spdcid, out.dpdcid) = (pds.spdcid().0, pds.dpdcid().0);
        out.payload = pds.payload();
        true
    }

    #[inline(always)]
    fn build(&self, buffer: &mut [u8]) -> Option<usize> {
        let (pds, _) = pds::Nack::parse_mut(buffer).ok()?;
        let pds = pds
            .copy_from(&pds::Nack::zeroed())
            .prologue(|prologue| prologue.kind(PdsType::NACK))
            .m(self.m)
            .retx(self.retx)
            .nt(self.nt)
            .nack_code(NackCode::new(self.nack_code)?)
            .vendor_code(self.vendor_code);
        let pds = if self.nt { pds.nack_pkt_id(self.nack_pkt_id) } else { pds.nack_psn(Psn(self.nack_psn)) };
        pds.spdcid(PdcId(self.spdcid)).dpdcid(PdcId(self.dpdcid)).payload(self.payload).done().ok()?;
        Some(16)
    }

    fn owned(bytes: &[u8]) -> Option<Self::Owned> {
        Some(pds::Nack::parse(bytes).ok()?.0.copied())
    }

    #[inline(always)]
    fn emit(pds: &Self::Owned, buffer: &mut [u8]) -> Option<usize> {
        pds.emit(buffer).ok()?;
        Some(16)
    }
}

// The operations. Each is a function of its own, so that its instructions can be counted.

#[inline(never)]
fn codec_get<T: Codec>(bytes: &[u8], out: &mut T) -> bool {
    match Uet::parse(bytes) {
        Ok(uet) => T::read(&uet, out),
        Err(_) => false,
    }
}

#[inline(never)]
fn codec_get_framed<T: Codec>(bytes: &[u8], outer: &mut Outer, out: &mut T) -> bool {
    let Ok(packet) = Packet::parse(Start::Eth, bytes, &Options::DEFAULT) else { return false };
    let (Some(Ip::V4 { header: ip, .. }), Some(udp)) = (packet.ip, packet.udp) else { return false };
    if packet.trimmed.is_some() {
        return false;
    }
    outer.dscp = ip.dscp();
    outer.ecn = ip.ecn();
    outer.ttl = ip.ttl();
    outer.src = ip.src().to_bits();
    outer.dst = ip.dst().to_bits();
    outer.entropy = udp.src_port();
    T::read(&packet.uet, out)
}

/// How many requirements the packet breaks.
#[inline(always)]
fn codec_validate(bytes: &[u8]) -> Option<usize> {
    Some(Uet::parse(bytes).ok()?.validate(Version::default()).count())
}

#[inline(never)]
fn codec_build<T: Codec>(fields: &T, buffer: &mut [u8]) -> Option<usize> {
    fields.build(buffer)
}

#[inline(never)]
fn codec_emit<T: Codec>(owned: &T::Owned, buffer: &mut [u8]) -> Option<usize> {
    T::emit(owned, buffer)
}

/// The floor of reading: the words of the bytes, loaded.
#[inline(never)]
fn load<const N: usize>(bytes: &[u8]) -> Option<u64> {
    let words = bytes.first_chunk::<N>()?.chunks_exact(8);
    let tail = words.remainder().iter().fold(0, |sum, byte| sum ^ u64::from(*byte));
    Some(words.fold(tail, |sum, word| sum ^ word.try_into().map_or(0, u64::from_ne_bytes)))
}

/// The floor of writing: the bytes, copied.
#[inline(never)]
fn copy<const N: usize>(from: &[u8; N], buffer: &mut [u8]) -> Option<usize> {
    *buffer.first_chunk_mut::<N>()? = *from;
    Some(N)
}

/// A packet of kind `T`, whose headers are `N` bytes long, in the forms that the operations need.
struct Input<T: Codec, const N: usize> {
    buffer: [u8; 256],
    length: usize,
    headers: [u8; N],
    owned: T::Owned,
    fields: T,
}

/// What the operations leave.
struct Output<T> {
    fields: T,
    outer: Outer,
    buffer: [u8; 256],
}

/// Ethernet, IPv4 and UDP.
const OUTER: usize = 14 + 20 + 8;

impl<T: Codec, const N: usize> Input<T, N> {
    fn new(headers: [u8; N], payload: &[u8]) -> Self {
        let mut fields = T::empty();
        assert!(T::get(&headers, &mut fields), "the overlay knows the packet");
        let owned = T::owned(&headers).expect("the codec knows the packet");
        let mut buffer = [0; 256];
        let length = frame(&headers, payload, &mut buffer).expect("the frame fits");
        let input = Input { buffer, length, headers, owned, fields };
        input.check();
        input
    }

    fn frame(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    fn packet(&self) -> &[u8] {
        &self.buffer[OUTER..self.length]
    }

    /// Codec and overlay do the same: for the packet, with any one of its bits flipped, and cut anywhere.
    fn check(&self) {
        let flipped = (0..self.length * 8).map(|bit| {
            let mut frame = self.frame().to_vec();
            frame[bit / 8] ^= 0x80 >> (bit % 8);
            frame
        });
        let cut = (0..=self.length).map(|length| self.frame()[..length].to_vec());
        for frame in flipped.chain(cut) {
            let [mut codec, mut overlay] = [(T::empty(), Outer::default()); 2];
            let fine = codec_get_framed(&frame, &mut codec.1, &mut codec.0);
            assert_eq!(fine, T::get_framed(&frame, &mut overlay.1, &mut overlay.0), "{frame:02x?}");
            assert!(!fine || codec == overlay, "{codec:?} {overlay:?}");
            let packet = frame.get(OUTER..).unwrap_or(&[]);
            let [mut codec, mut overlay] = [T::empty(); 2];
            let fine = codec_get(packet, &mut codec);
            assert_eq!(fine, T::get(packet, &mut overlay), "{packet:02x?}");
            assert!(!fine || codec == overlay, "{codec:?} {overlay:?}");
        }
        let written =
            |length: Option<usize>, buffer: [u8; N]| assert_eq!((length, buffer), (Some(N), self.headers));
        let mut buffer = [0xff; N];
        written(codec_build(&self.fields, &mut buffer), buffer);
        written(Some(self.fields.put(&mut buffer)), buffer);
        buffer = [0xff; N];
        written(codec_emit::<T>(&self.owned, &mut buffer), buffer);
        assert_eq!(codec_build(&self.fields, &mut buffer[1..]), None);
        assert_eq!(self.fields.put(&mut buffer[1..]), 0);
    }
}

/// A frame around these bytes.
fn frame(headers: &[u8], payload: &[u8], buffer: &mut [u8]) -> Option<usize> {
    // The builder makes the layers around; the bytes of the PDS header that it knows are put in afterwards.
    let packet = [headers, payload].concat();
    let uud = pds::Uud::new();
    let length = Frame::new(uud)
        .as_given()
        .payload(packet.get(uud.bytes().len()..)?)
        .udp(0xbeef)
        .ipv4([10, 0, 0, 1], [10, 0, 1, 12])
        .dscp(46)
        .ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .emit(buffer)
        .ok()?;
    buffer.get_mut(OUTER..length)?.copy_from_slice(&packet);
    Some(length)
}

/// Who does it.
pub(crate) const WHO: [&str; 3] = ["codec", "overlay", "floor"];

/// One operation on one packet.
#[allow(dead_code)] // each benchmark looks at some of it
pub(crate) struct Case {
    pub(crate) operation: &'static str,
    pub(crate) packet: &'static str,
    /// How many times the overlay's instructions the codec may need.
    pub(crate) at_most: f64,
    /// The functions that do nothing but call what is measured, one for each of `WHO`.
    pub(crate) callers: [&'static str; 3],
    /// Does it once, as the one of `WHO` with this index.
    pub(crate) run: Box<dyn FnMut(usize)>,
}

/// The operations, each by a function with a name of its own: the instructions that are counted are those of
/// what it calls.
macro_rules! operations {
    ($(
        $operation:literal, at most $at_most:literal |$input:ident, $output:ident| {
            $codec:ident: $by_codec:expr, $overlay:ident: $by_overlay:expr, $floor:ident: $by_floor:expr,
        }
    )*) => {
        $(
            operations! { @caller $codec $input $output $by_codec }
            operations! { @caller $overlay $input $output $by_overlay }
            operations! { @caller $floor $input $output $by_floor }
        )*

        fn cases<T: Codec + 'static, const N: usize>(packet: &'static str, headers: [u8; N], payload: &[u8]) -> Vec<Case> {
            let input = Rc::new(Input::<T, N>::new(headers, payload));
            vec![$({
                let input = Rc::clone(&input);
                let mut output = Output { fields: T::empty(), outer: Outer::default(), buffer: [0; 256] };
                let callers = [$codec::<T, N>, $overlay::<T, N>, $floor::<T, N>];
                Case {
                    operation: $operation,
                    packet,
                    at_most: $at_most,
                    callers: [stringify!($codec), stringify!($overlay), stringify!($floor)],
                    run: Box::new(move |who| callers[who](&input, &mut output)),
                }
            }),*]
        }
    };

    (@caller $name:ident $input:ident $output:ident $call:expr) => {
        #[inline(never)]
        fn $name<T: Codec, const N: usize>($input: &Input<T, N>, $output: &mut Output<T>) {
            black_box(stringify!($name)); // or the compiler merges callers that do the same
            black_box($call);
            black_box($output);
        }
    };
}

operations! {
    "parse and read every field", at most 1.0 |input, output| {
        get_by_codec: codec_get(black_box(input.packet()), &mut output.fields),
        get_by_overlay: T::get(black_box(input.packet()), &mut output.fields),
        get_by_floor: load::<N>(black_box(input.packet())),
    }
    "the same from Ethernet on", at most 1.0 |input, output| {
        framed_by_codec: codec_get_framed(black_box(input.frame()), &mut output.outer, &mut output.fields),
        framed_by_overlay: T::get_framed(black_box(input.frame()), &mut output.outer, &mut output.fields),
        framed_by_floor: (load::<OUTER>(black_box(input.frame())), load::<N>(black_box(input.packet()))),
    }
    // The overlay judges nothing: its parse stands beside.
    "parse and validate", at most 16.0 |input, output| {
        validate_by_codec: codec_validate(black_box(input.packet())),
        validate_by_overlay: T::get(black_box(input.packet()), &mut output.fields),
        validate_by_floor: load::<N>(black_box(input.packet())),
    }
    "build in place from fields", at most 1.2 |input, output| {
        build_by_codec: codec_build(black_box(&input.fields), &mut output.buffer),
        build_by_overlay: black_box(&input.fields).put(&mut output.buffer),
        build_by_floor: copy(black_box(&input.headers), &mut output.buffer),
    }
    "emit an owned value", at most 1.2 |input, output| {
        emit_by_codec: codec_emit::<T>(black_box(&input.owned), &mut output.buffer),
        emit_by_overlay: black_box(&input.fields).put(&mut output.buffer),
        emit_by_floor: copy(black_box(&input.headers), &mut output.buffer),
    }
}

/// The names of the packets.
pub(crate) const PACKETS: [&str; 6] = [
    "RUD_REQ, STD, first",
    "RUD_REQ, STD, middle",
    "ACK, RESPONSE",
    "ACK_CC, NSCC",
    "ACK_CC, CREDIT",
    "NACK",
];

/// The operations on the packet with this name.
pub(crate) fn of(packet: &'static str) -> Vec<Case> {
    match packet {
        // A write of 16 KiB at 4 KiB a packet, each with the start of its payload.
        "RUD_REQ, STD, first" => cases::<RequestStd, 56>(
            packet,
            [
                0x11, 0x8c, 0x00, 0x00, 0x00, 0x01, 0x20, 0x00, 0x40, 0x01, 0x00, 0x00, // syn
                0x01, 0x0d, 0x00, 0x01, 0x01, 0x00, 0x00, 0x65, 0x00, 0x02, 0x00, 0x0a, // som
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0xcc,
                0xe5, // offset, initiator, key
                0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0x40, 0, // header data, length
            ],
            &[0xda; 64],
        ),
        "RUD_REQ, STD, middle" => cases::<RequestStd, 56>(
            packet,
            [
                0x11, 0x88, 0xff, 0xff, 0x00, 0x01, 0x20, 0x01, 0x40, 0x01, 0x80, 0x01, 0x01, 0x08, 0x00,
                0x01, 0x01, 0x00, 0x00, 0x65, 0x00, 0x02, 0x00, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0, 0x0a, 0xcc, 0xe5, 0, 0, 0x10, 0, 0, 0, 0x10, 0, 0, 0, 0x40,
                0, // payload length, message offset, length
            ],
            &[0xda; 64],
        ),
        "ACK, RESPONSE" => cases::<AckResponse, 24>(
            packet,
            [
                0x3a, 0x00, 0xff, 0xfe, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, 0x00, 0x01, 0x00,
                0x01, 0x00, 0x00, 0x00, 0x65, 0x00, 0x00, 0x40, 0x00,
            ],
            &[],
        ),
        "ACK_CC, NSCC" => cases::<AckCc, 32>(
            packet,
            [
                0x40, 0x20, 0x00, 0x00, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, 0x00, 0x08, 0x00,
                0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2d, 0x00, 0x08, 0x85, 0x00, 0x00, 0x40,
                0x00, 0x03,
            ],
            &[],
        ),
        "ACK_CC, CREDIT" => cases::<AckCc, 32>(
            packet,
            [
                0x40, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, 0x10, 0x08, 0x00,
                0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2d, 0x00, 0x00, 0x62, 0x00, 0x00, 0x00,
                0x00, 0x03,
            ],
            &[],
        ),
        "NACK" => cases::<Nack, 16>(
            packet,
            [0x50, 0x00, 0x0d, 0x00, 0x00, 0x01, 0x20, 0x04, 0x80, 0x01, 0x40, 0x01, 0x00, 0x00, 0x00, 0x00],
            &[],
        ),
        _ => Vec::new(),
    }
}
