//! Rule of the PDCID by which a packet names its receiver.

use super::judgments::Rules;
use crate::Event;
use crate::observer::NAMES;
use uet_wire::catalogue::*;
use uet_wire::pds::Pds;

impl Rules<'_> {
    /// Rule of `dpdcid`: the receiver has used this PDCID for itself in the context.
    ///
    /// Endpoints reuse PDCIDs, so a late packet may name a PDCID of an earlier context. Only a PSN shows the context of
    /// a packet: when an identifier is reused, the PSNs are far from the earlier ones. Packets without a PSN of the
    /// context are not judged: CLEAR_COMMAND, CREDIT, PROBE and its answer, and a NACK of a packet that was not
    /// observed. After a restart, or by NEW_START_PSN, a later context may have the same PSNs, and the capture may lack
    /// the packet that opens it. So an ACK is judged only if it acknowledges a packet that this context waits for.
    pub(super) fn names_its_receiver(&mut self, pds: Pds<'_>, event: &Event) {
        let (own, peer) = (self.sent(), self.received());
        let Some(dpdcid) = pds.dpdcid().filter(|id| id.is_valid() && self.context.is_shown) else { return };
        let is_known = peer.is_named && peer.names.len() < NAMES;
        let is_late = matches!(event, Event::Ack { acknowledged, .. } if acknowledged.is_empty());
        if !is_known || is_late || own.renumbered || peer.renumbered {
            return;
        }
        let is_reply = pds.ack().is_some() || pds.nack().is_some();
        let is_initiator = self.context.initiator == Some(self.sender);
        let requirement = if is_initiator && !is_reply { PDS_SYN_004 } else { PDS_PDC_001 };
        self.hold(requirement, None, peer.names.contains(&dpdcid), || {
            let names: Vec<String> = peer.names.iter().map(ToString::to_string).collect();
            format!("dpdcid is {dpdcid}, but its receiver uses {}", names.join(" and "))
        });
    }
}
