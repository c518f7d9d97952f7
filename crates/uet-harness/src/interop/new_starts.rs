//! Finds an initiator that ignores NACK NEW_START_PSN (`TSS-START-003`: it renumbers its packets).

use super::sent::{Passed, SentPsns};
use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use uet_wire::PdcId;
use uet_wire::registry::NackCode;

/// Number of NACKs of one PSN, and the time since the first of them. A network with few losses or a short outage
/// cannot lose them all.
const ENOUGH: u32 = 4;
const LONG: Duration = Duration::from_millis(100);

/// The refusals of a context.
#[derive(Debug, Default)]
struct Refused {
    /// Each Start_PSN that its target has told.
    told: BTreeSet<u32>,
    /// The number of NACKs of each PSN, and the time of the first.
    nacks: BTreeMap<u32, (u32, Duration)>,
    /// A retransmission at the old Start_PSN after enough of them.
    ignored: Option<u64>,
}

/// Follows the contexts that a target has refused. `None` stands for a context that has obeyed or has an ACK: then the
/// initiator may ignore further ones (`TSS-START-005`).
#[derive(Debug, Default)]
pub(super) struct NewStarts(BTreeMap<(IpAddr, PdcId), Option<Refused>>);

impl NewStarts {
    /// Takes the next packet.
    pub(super) fn packet(&mut self, packet: &Passed<'_>, sent: &SentPsns) {
        let Some(pds) = packet.uet.pds else { return };
        if let Some(ack) = pds.ack() {
            self.0.insert((packet.dst, ack.dpdcid()), None);
        } else if let Some(nack) = pds.nack() {
            // One in the clear proves nothing, and one of another PSN may be ignored.
            let psn = nack.nack_psn().filter(|psn| sent.has(packet.dst, nack.dpdcid(), *psn));
            let is_new_start = nack.nack_code() == NackCode::NEW_START_PSN && !nack.spdcid().is_valid();
            let Some(psn) = psn.filter(|_| is_new_start && packet.is_authentic) else { return };
            let context = (packet.dst, nack.dpdcid());
            if let Some(refused) = self.0.entry(context).or_insert_with(|| Some(Refused::default())) {
                refused.told.insert(nack.payload());
                refused.nacks.entry(psn.0).or_insert((0, packet.time)).0 += 1;
            }
        } else if let Some(request) = pds.request() {
            let Some(refused) = self.0.get_mut(&(packet.src, request.spdcid())) else { return };
            let obeys = |refused: &mut Refused| {
                request.start_psn().is_none_or(|start| refused.told.contains(&start.0))
            };
            if refused.take_if(obeys).is_some() {
                return;
            }
            if let Some(refused) = refused {
                let (count, first) = refused.nacks.get(&request.psn().0).copied().unwrap_or_default();
                if count >= ENOUGH && packet.time.saturating_sub(first) >= LONG {
                    refused.ignored.get_or_insert(packet.number);
                }
            }
        }
    }

    /// Returns an initiator that has obeyed none of many NACKs for a context, and a packet that shows it.
    pub(super) fn ignored(&self) -> Option<(IpAddr, u64)> {
        let mut contexts = self.0.iter();
        contexts.find_map(|((end, _), refused)| Some((*end, refused.as_ref()?.ignored?)))
    }
}
