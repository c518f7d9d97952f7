//! A recording of one run: its ladder, and the judgment of its packets.

use core::fmt::{self, Display};
use core::net::IpAddr;
use uet_conformance::passive::Checker;
use uet_model::ladder::{Fate, Ladder};
use uet_model::{Packet, Time};
use uet_wire::{FrameBuilder, Options, Start};

/// A recording of one run.
#[derive(Clone)]
pub struct Trace {
    ladder: Ladder,
    sent: Vec<Packet>,
}

impl Trace {
    pub(crate) fn new(names: [&'static str; 2], addresses: [IpAddr; 2]) -> Self {
        Trace { ladder: Ladder::new((names[0], addresses[0]), (names[1], addresses[1])), sent: Vec::new() }
    }

    pub(crate) fn sent(&mut self, packet: &Packet) {
        self.sent.push(packet.clone());
    }

    pub(crate) fn meets(&mut self, at: Time, packet: &Packet, lost: bool) {
        self.ladder.packet(at, packet, if lost { Fate::Lost } else { Fate::Arrives });
    }

    pub(crate) fn note(&mut self, at: Time, address: IpAddr, text: impl Display) {
        self.ladder.note(at, address, text);
    }

    /// Lets the passive judge of the conformance suite judge all packets, in the order of sending.
    pub fn judge(&self) -> Result<(), String> {
        let mut checker = Checker::default();
        for (number, packet) in self.sent.iter().enumerate() {
            let bytes = packet.to_wire();
            let mut frame = vec![0; bytes.len() + 64];
            let builder = FrameBuilder::opaque(&bytes).udp(packet.entropy).ip(packet.src, packet.dst);
            let Ok(length) = builder.emit(&mut frame) else { continue };
            let Ok(packet) = uet_wire::Packet::parse(Start::Ip, &frame[..length], &Options::default()) else {
                continue;
            };
            if let Some(finding) = checker.packet(number as u64 + 1, &packet).first() {
                return Err(format!(
                    "the passive judge objects: {} {}",
                    finding.requirement.id, finding.message
                ));
            }
        }
        Ok(())
    }
}

impl Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ladder.fmt(f)
    }
}
