//! Judges every packet that an endpoint sends.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashSet;
use uet_conformance::passive::{self, Checker};
use uet_emulator::Nic;
use uet_model::network::{Observer, Treatment};
use uet_model::{Packet, Time};
use uet_observe::IvHistory;
use uet_packet_io::keys::{KeyRing, Opened};
use uet_wire::catalogue::{PDS_SYN_008, WIRE_LEN_001, WIRE_RSVD_001};
use uet_wire::tss::Outer;
use uet_wire::validate::Finding;
use uet_wire::{FrameBuilder, Options, Start, Uet, Version};

/// The judge of all packets.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) packets: u64,
    /// The first violation.
    pub(crate) failure: Option<String>,
    /// True prints packets and decisions.
    pub(crate) prints: bool,
    /// The keys of all secure domains.
    pub(crate) keys: Option<KeyRing>,
    ivs: IvHistory,
    /// Endpoints that must protect their packets.
    pub(crate) protected: HashSet<IpAddr>,
    /// Endpoints that crashed or have few PDCIDs. They use PDCIDs again at once, so the passive judge does not judge their
    /// contexts.
    pub(crate) unjudged: HashSet<IpAddr>,
    checker: Checker,
    frame: Vec<u8>,
}

/// The bytes of an integrity check value.
const ICV: usize = 16;

impl Watch {
    fn judge(&mut self, now: Time, packet: &Packet) -> Result<(), String> {
        let mut bytes = packet.to_wire().to_vec();
        if self.protected.contains(&packet.src) {
            self.open(packet, &mut bytes)?;
        }
        let uet = Uet::parse(&bytes).map_err(|error| format!("a packet that cannot be parsed: {error}"))?;
        // The ACK of CLOSE_COMMAND may tell a Start_PSN, announced by a bit that is reserved elsewhere.
        let known = |finding: &Finding| {
            self.protected.contains(&packet.src)
                && [WIRE_RSVD_001.id, WIRE_LEN_001.id].contains(&finding.requirement.id)
        };
        if let Some(finding) = uet.validate(Version::default()).find(|finding| !known(finding)) {
            return Err(format!("a packet that `validate` rejects: {finding}"));
        }
        if self.unjudged.contains(&packet.src) || self.unjudged.contains(&packet.dst) {
            return Ok(());
        }
        self.frame.resize(bytes.len() + 64, 0);
        let builder = FrameBuilder::opaque(&bytes).udp(packet.entropy).ip(packet.src, packet.dst);
        let length = builder.emit(&mut self.frame).map_err(|error| error.to_string())?;
        let parsed = uet_wire::Packet::parse(Start::Ip, &self.frame[..length], &Options::default());
        let parsed = parsed.map_err(|error| format!("a frame that cannot be parsed: {error}"))?;
        let findings = self.checker.packet_at(self.packets, Some(Duration::from_nanos(now.0)), &parsed);
        // The judge takes a new Start_PSN that is near the refused one for a late packet.
        let renumbered = |finding: &&passive::Finding| {
            self.protected.contains(&packet.src) && finding.requirement.id == PDS_SYN_008.id
        };
        match findings.iter().find(|finding| !renumbered(finding)) {
            Some(finding) => Err(format!(
                "packets to which the passive judge objects: {} {}",
                finding.requirement.id, finding.message
            )),
            None => Ok(()),
        }
    }

    /// Opens a protected packet.
    fn open(&mut self, packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), String> {
        let header = Uet::parse_lax(bytes).0.tss.map(|tss| tss.bytes().len());
        let (Some(header), Some(keys)) = (header, &mut self.keys) else {
            return Err("a packet in the clear".into());
        };
        let outer = Outer::udp(packet.src, packet.dst, packet.entropy, bytes.len());
        let sealed = bytes.clone();
        match keys.open(&outer, bytes) {
            Opened::Authentic { key_iv, .. } => {
                if let Some(earlier) = self.ivs.repeats(key_iv, (sealed, packet.entropy), self.packets) {
                    return Err(format!("a packet with the key and IV of packet {earlier}"));
                }
                bytes.truncate(bytes.len() - ICV);
                bytes.drain(..header);
                Ok(())
            }
            other => {
                Err(format!("a packet that its keys do not open: {}", other.reason().unwrap_or_default()))
            }
        }
    }
}

impl Observer<Nic> for Watch {
    fn node(&mut self, nic: &mut Nic) {
        while self.prints
            && let Some(event) = nic.poll_event()
        {
            println!("{:>12} {} {event}", event.at().0, nic.address());
        }
    }

    fn sent(&mut self, now: Time, packet: &Packet, treatment: &Treatment) {
        self.packets += 1;
        if self.prints {
            let Packet { src, dst, .. } = packet;
            let fate = match treatment {
                Treatment { lost: true, .. } => " lost",
                Treatment { corrupt: Some(_), .. } => " damaged",
                Treatment { trim: Some(_), .. } => " trimmed",
                _ => "",
            };
            println!("{:>12} {src} > {dst} {}{fate}", now.0, Uet::parse_lax(&packet.to_wire()).0);
        }
        if self.failure.is_none() {
            let judged = self.judge(now, packet);
            self.failure = judged.err().map(|why| format!("{} sent {why}", packet.src));
        }
    }
}
