//! Plays an operation between two endpoints of the reference model, and tells each packet and decision. Packets are
//! given from the IP header on, as a raw IP capture has them.

use bytes::Bytes;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{Read, Write};
use std::net::IpAddr;
use uet_model::network::{Impairment, Network, Observer, Treatment};
use uet_model::ses::{
    Access, Completion, Endpoint, Key, Operation, Peer, Process, Region, ResourceIndex, SesParams, Work,
};
use uet_model::{Fep, Mode, Packet, PdsParams, Time, TrimPoint};
use uet_packet_io::hex::Hex;
use uet_wire::{FrameBuilder, Options, PacketMut, Start};

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 12]];

/// DSCPs of trimmed packets. The deployment chooses them.
const OPTIONS: Options = Options::DEFAULT.trimmed_dscp(Some(4)).trimmed_lasthop_dscp(Some(6));

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
        stage.0.fabric().impair(impairment.parse::<Impairment>()?);
    }
    stage.post(&text("operation", "write"), length as usize, mode)?;
    for line in stage.run(wanted.get("close").and_then(Value::as_bool).unwrap_or(true))? {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

struct Stage(Network<Fep, Lines>);

/// A line for each packet and decision, and the error of a packet that has no frame.
#[derive(Default)]
struct Lines {
    lines: Vec<Value>,
    error: Option<Box<dyn Error>>,
}

impl Observer<Fep> for Lines {
    fn node(&mut self, fep: &mut Fep) {
        let side = side(fep.pds().address());
        while let Some(event) = fep.poll_event() {
            self.lines.push(json!({ "at": event.at().0, "side": side, "note": event.to_string() }));
        }
    }

    fn sent(&mut self, now: Time, packet: &Packet, treatment: &Treatment) {
        match crossing(now, packet, treatment) {
            Ok(line) => self.lines.push(line),
            Err(error) => self.error = Some(error),
        }
    }
}

fn side(address: IpAddr) -> usize {
    usize::from(address == IpAddr::from(ADDRESSES[1]))
}

/// Tells a packet as the network leaves it, marked and trimmed.
fn crossing(now: Time, packet: &Packet, treatment: &Treatment) -> Result<Value, Box<dyn Error>> {
    let (uet, side) = (packet.to_wire(), side(packet.src));
    let frame = FrameBuilder::opaque(&uet).udp(0xc000).ipv4(ADDRESSES[side], ADDRESSES[1 - side]);
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes)?;
    if treatment.marked {
        PacketMut::new(Start::Ip, &mut bytes, &OPTIONS)?.set_ecn(3)?;
    }
    if let Some((size, place)) = treatment.trim {
        let dscp = match place {
            TrimPoint::Fabric => OPTIONS.trimmed_dscp,
            TrimPoint::LastHop => OPTIONS.trimmed_lasthop_dscp,
        };
        let packet = PacketMut::new(Start::Ip, &mut bytes, &OPTIONS)?;
        let length = packet.trim(size.into(), dscp.unwrap_or_default())?;
        bytes.truncate(length);
    }
    Ok(json!({
        "at": now.0, "side": side, "packet": uet_wire::Packet::parse_lax(Start::Ip, &bytes, &OPTIONS).0.to_string(),
        "hex": Hex(&bytes).to_string(), "impairments": treatment.to_string(), "lost": treatment.lost,
    }))
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
        let mut network = Network::new(seed);
        network.add(ADDRESSES[0], at(0, 0x4001)?);
        network.add(ADDRESSES[1], at(1, 0x8001)?);
        let process = Process::Relative { job: 101, pid: 2 };
        let index = ResourceIndex { process, index: 10 };
        let target = network[1].ses_mut();
        target.open(Endpoint { process, start: 0, count: 64 })?;
        let access = Access::ALL;
        let data: Vec<u8> = (0..LARGEST).map(|n| (n % 251) as u8).collect();
        target.expose(index, Region { key: Key(0xacce5), base: 0, access, data })?;
        Ok(Stage(network))
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
        self.0[0].ses_mut().post(Operation::new(peer, work))?;
        Ok(())
    }

    /// Plays until nothing is left to happen. Returns the lines.
    fn run(mut self, close: bool) -> Result<Vec<Value>, Box<dyn Error>> {
        self.0.run_until(Time(u64::MAX), |network| {
            while let Some(completion) = network[0].poll_completion() {
                completed(network, completion, close);
            }
            (network.observer.lines.len() >= LINES).then_some(())
        });
        let Lines { lines, error } = self.0.observer;
        error.map_or(Ok(lines), Err)
    }
}

fn completed(network: &mut Network<Fep, Lines>, completion: Completion, close: bool) {
    let Completion::Operation { result, .. } = completion else { return };
    let note = match &result {
        Ok(done) => format!("the operation has completed: {} bytes", done.length),
        Err(error) => format!("the operation has failed: {error}"),
    };
    let now = network.now();
    network.observer.lines.push(json!({ "at": now.0, "side": 0, "note": note, "done": result.is_ok() }));
    if close {
        let route = Peer::relative(ADDRESSES[1], 101, 2).route;
        for mode in [Mode::Rud, Mode::Rod] {
            let pds = network[0].pds_mut();
            if let Some(handle) = pds.context_of(&uet_model::Route { mode, ..route }) {
                pds.close(now, handle);
            }
        }
    }
}
