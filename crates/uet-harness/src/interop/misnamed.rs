//! Finds an end whose ACKs or NACKs name contexts and packets that their receiver does not have.

use super::sent::{Passed, SentPsns};
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use uet_wire::registry::NackCode;

/// Number of ACKs with exchanged PDCIDs. Each of them would be a coincidence of two random PSNs.
const ACKS: u64 = 3;

/// Number of NACKs that name no packet, and the time between the first and the last of them. Packets of the scenario
/// before come late, but not as long as this.
const NACKS: u64 = 16;
const LATE: Duration = Duration::from_secs(1);

/// The NACKs of an end that name no packet.
#[derive(Debug)]
struct Strange {
    count: u64,
    first: Duration,
}

/// Follows the replies of both ends.
#[derive(Debug, Default)]
pub(super) struct Misnamed {
    /// The number of ACKs with exchanged PDCIDs, by sender.
    exchanged: BTreeMap<IpAddr, u64>,
    strange: BTreeMap<IpAddr, Strange>,
    acks: Option<(IpAddr, u64)>,
    nacks: Option<(IpAddr, u64, NackCode)>,
}

impl Misnamed {
    /// Takes the next packet.
    pub(super) fn packet(&mut self, packet: &Passed<'_>, sent: &SentPsns) {
        let Some(pds) = packet.uet.pds else { return };
        let receiver = packet.dst;
        if let Some(ack) = pds.ack() {
            let Some(psn) = ack.ack_psn() else { return };
            if !sent.is_near(receiver, ack.dpdcid(), psn) && sent.has(receiver, ack.spdcid(), psn) {
                let count = self.exchanged.entry(packet.src).or_default();
                *count += 1;
                if *count >= ACKS {
                    self.acks.get_or_insert((packet.src, packet.number));
                }
            }
        } else if let Some(nack) = pds.nack() {
            // Other codes also answer control packets, which may have no PSN.
            let code = nack.nack_code();
            let answers = [NackCode::INVALID_SYN, NackCode::ROD_OOO].contains(&code);
            let Some(psn) = nack.nack_psn().filter(|_| answers) else { return };
            if !sent.is_near(receiver, nack.dpdcid(), psn) {
                let first = Strange { count: 0, first: packet.time };
                let strange = self.strange.entry(packet.src).or_insert(first);
                strange.count += 1;
                if strange.count >= NACKS && packet.time.saturating_sub(strange.first) >= LATE {
                    self.nacks.get_or_insert((packet.src, packet.number, code));
                }
            }
        }
    }

    /// Returns an end that exchanges its PDCID with that of its peer, and an ACK that shows it.
    pub(super) fn acks(&self) -> Option<(IpAddr, u64)> {
        self.acks
    }

    /// Returns an end whose NACKs name PSNs that nobody sent, and one of them with its code.
    pub(super) fn nacks(&self) -> Option<(IpAddr, u64, NackCode)> {
        self.nacks
    }
}
