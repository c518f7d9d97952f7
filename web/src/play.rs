//! Plays an operation between two endpoints of the reference model, and tells each packet and decision. Packets are
//! given from the IP header on, as a raw IP capture has them.

use bytes::Bytes;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{Read, Write};
use std::net::IpAddr;
use uet_kernel::{Fabric, Impairment};
use uet_model::ses::{
    Access, Completion, Endpoint, Key, Operation, Peer, Process, Region, ResourceIndex, SesParams, Work,
};
use uet_model::{Fep, Mode, Packet, PdsParams, Time};
use uet_packet_io::hex::Hex;
use uet_wire::{FrameBuilder, Uet, WriteError};

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 12]];

/// The largest message, in bytes.
const LARGEST: u64 = 1 << 20;

/// The maximum number of lines. An endless repetition of losses ends there.
const LINES: usize = 10_000;

pub(crate) fn play(input: impl Read, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let wanted = crate::json(input)?;
    let text = |name: &str, default: &'static str| {
        wanted.get(name).and_then(Value::as_str).unwrap_or(default).to_owned()
    };
    let length = wanted.get("bytes").and_then(Value::as_u64).unwrap_or(16_384);
    if length > LARGEST {
        return Err(format!("a message here has at most {LARGEST} bytes").into());
    }
    let mode = if text("mode", "rud") == "rod" { Mode::Rod } else { Mode::Rud };
    let mut stage = Stage::new(wanted.get("seed").and_then(Value::as_u64).unwrap_or(1))?;
    for impairment in text("impairments", "").split(';').map(str::trim).filter(|one| !one.is_empty()) {
        stage.fabric.impair(impairment.parse::<Impairment>()?);
    }
    stage.post(&text("operation", "write"), length as usize, mode)?;
    stage.run(wanted.get("close").and_then(Value::as_bool).unwrap_or(true))?;
    for line in stage.lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

struct Stage {
    feps: [Fep; 2],
    fabric: Fabric,
    now: Time,
    lines: Vec<Value>,
}

impl Stage {
    fn new(seed: u64) -> Result<Self, Box<dyn Error>> {
        let at = |side: usize, first_pdcid| {
            let params = PdsParams {
                first_pdcid,
                start_psn: Some(0x12000),
                event_capacity: 1000,
                ..PdsParams::default()
            };
            Fep::new(params, SesParams::default(), ADDRESSES[side].into(), seed + side as u64)
        };
        let mut feps = [at(0, 0x4001)?, at(1, 0x8001)?];
        let process = Process::Relative { job: 101, pid: 2 };
        let index = ResourceIndex { process, index: 10 };
        let target = feps[1].ses_mut();
        target.open(Endpoint { process, start: 0, count: 64 })?;
        let access = Access::ALL;
        let data: Vec<u8> = (0..LARGEST).map(|n| (n % 251) as u8).collect();
        target.expose(index, Region { key: Key(0xacce5), base: 0, access, data })?;
        Ok(Stage { feps, fabric: Fabric::new(seed), now: Time::ZERO, lines: Vec::new() })
    }

    fn post(&mut self, operation: &str, length: usize, mode: Mode) -> Result<(), Box<dyn Error>> {
        let mut peer = Peer { index: 10, ..Peer::relative(ADDRESSES[1], 101, 2) };
        peer.route.mode = mode;
        let data: Bytes = (0..length).map(|n| (n % 251) as u8).collect();
        let key = Key(0xacce5);
        let work = match operation {
            "write" => Work::Write { key, offset: 0, data },
            "read" => Work::Read { key, offset: 0, length: length as u32 },
            "send" => Work::Send { tag: None, data },
            _ => return Err(format!("no operation {operation}").into()),
        };
        self.feps[0].ses_mut().post(Operation::new(peer, work))?;
        Ok(())
    }

    /// Plays until nothing is left to happen.
    fn run(&mut self, close: bool) -> Result<(), WriteError> {
        while self.lines.len() < LINES {
            for side in 0..2 {
                self.transmit(side)?;
            }
            while let Some(completion) = self.feps[0].poll_completion() {
                self.completed(completion, close);
            }
            let timers = self.feps.iter().filter_map(Fep::poll_timeout);
            let Some(next) = timers.chain(self.fabric.next_at()).min() else { break };
            self.now = next.max(self.now);
            while let Some(arrival) = self.fabric.receive(self.now) {
                if !arrival.corrupt {
                    let side = usize::from(arrival.packet.dst == IpAddr::from(ADDRESSES[1]));
                    self.feps[side].handle_input(self.now, arrival.packet);
                }
            }
            for fep in &mut self.feps {
                fep.handle_timeout(self.now);
            }
        }
        Ok(())
    }

    fn transmit(&mut self, side: usize) -> Result<(), WriteError> {
        while let Some(packet) = self.feps[side].poll_transmit(self.now) {
            self.notes(side);
            let treatment = self.fabric.treat(self.now, &packet);
            self.lines.push(self.crossing(side, &packet, treatment.to_string(), treatment.lost)?);
            self.fabric.carry(self.now, packet, treatment);
        }
        self.notes(side);
        Ok(())
    }

    fn crossing(
        &self,
        side: usize,
        packet: &Packet,
        impairments: String,
        lost: bool,
    ) -> Result<Value, WriteError> {
        let uet = packet.to_wire();
        let frame = FrameBuilder::opaque(&uet).udp(0xc000).ipv4(ADDRESSES[side], ADDRESSES[1 - side]);
        let mut bytes = vec![0; frame.len()];
        frame.emit(&mut bytes)?;
        Ok(json!({
            "at": self.now.0, "side": side, "packet": Uet::parse_lax(&uet).0.to_string(),
            "hex": Hex(&bytes).to_string(), "impairments": impairments, "lost": lost,
        }))
    }

    fn notes(&mut self, side: usize) {
        while let Some(event) = self.feps[side].poll_event() {
            self.lines.push(json!({ "at": event.at().0, "side": side, "note": event.to_string() }));
        }
    }

    fn completed(&mut self, completion: Completion, close: bool) {
        let Completion::Operation { result, .. } = completion else { return };
        let note = match &result {
            Ok(done) => format!("the operation has completed: {} bytes", done.length),
            Err(error) => format!("the operation has failed: {error}"),
        };
        self.lines.push(json!({ "at": self.now.0, "side": 0, "note": note, "done": result.is_ok() }));
        if close {
            let route = Peer::relative(ADDRESSES[1], 101, 2).route;
            for mode in [Mode::Rud, Mode::Rod] {
                let pds = self.feps[0].pds_mut();
                if let Some(handle) = pds.context_of(&uet_model::Route { mode, ..route }) {
                    pds.close(self.now, handle);
                }
            }
        }
    }
}
