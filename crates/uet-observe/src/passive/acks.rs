//! Rules of ACKs and NACKs.

use super::judgments::{Judgments, Rules};
use crate::{Context, Direction, RcvdBytes, ReadRequest, SentRequest, Side};
use uet_wire::catalogue::*;
use uet_wire::pds::{Ack, Pds};
use uet_wire::registry::{AckRequest, List, NackCode, ReturnCode};
use uet_wire::ses::Ses;

/// Judges the ACKs of PSNs above the highest one sent, at the end of a capture.
///
/// If such a PSN is sent later, `first_transmission` judges the ACK, and after a CLOSE_COMMAND `closed` does. Here, the
/// capture shows no packet above the highest PSN. It has all packets of the direction from Start_PSN to that PSN.
/// Records that are lost at random leave gaps, so a few such packets make it likely that the capture lacks none. But a
/// burst of lost records may be the last packets, and of two captures that were merged, that of the requests may end
/// earlier. So the caller reports no more than a warning.
pub(super) fn beyond_last(judge: &mut Judgments, context: &Context) {
    const SENT: i64 = 8;
    const BEYOND: i64 = 2;
    let Some((start, _)) = context.start else { return };
    for side in [Side::A, Side::B] {
        let unsent = context.direction(side).acknowledged_unsent(start);
        let several = |(sent, beyond, _): &(i64, i64, u64)| *sent >= SENT && *beyond >= BEYOND;
        let Some((sent, beyond, number)) = unsent.filter(several) else { continue };
        let culprit = context.addresses[side.other() as usize];
        judge.hold(culprit, PDS_PSN_002, number, None, false, || {
            format!(
                "acknowledges {beyond} PSNs above the last one sent; the capture has the {sent} before them"
            )
        });
    }
}

impl Rules<'_> {
    pub(super) fn ack(
        &mut self,
        ack: Ack,
        read: Option<ReadRequest>,
        cack: i64,
        named: Option<i64>,
        rcvd_before: Option<RcvdBytes>,
    ) {
        if let Some(initiator) = self.context.initiator {
            let request = ack.req();
            let right = self.sender != initiator || request == AckRequest::NO_REQUEST;
            self.hold(PDS_GTD_004, None, right, || format!("the initiator's ACK says {request}"));
        }
        let flow = self.received();
        if let Some((start, number)) = self.context.start.filter(|_| !flow.renumbered && !ack.p()) {
            if let Some(from_start) = self.context.distance_from_start(ack.cack_psn()) {
                self.hold(PDS_SYN_008, Some(number), from_start >= -1, || {
                    format!("cack_psn {} in a context that starts at {start}", ack.cack_psn())
                });
            }
        }
        let Some(named) = named else {
            self.probe(flow, ack);
            return;
        };
        // Other ACKs may request a CLEAR too: for a waiting response with a higher PSN.
        if ack.req() == AckRequest::REQ_CLEAR && self.is_guaranteed() {
            self.hold(PDS_PSN_002, None, cack < named, || {
                format!(
                    "asks to clear the response that it carries, although cack_psn {} is past it",
                    ack.cack_psn()
                )
            });
        }
        self.cleared(flow);
        let sent = flow.requests.get(&named);
        if let Some(sent) = sent.filter(|_| !flow.asked.contains(&named)) {
            self.echo(flow, ack, named, sent);
        }
        self.names_a_psn(flow, ack);
        self.closed(flow, ack, cack, named);
        if let Some(sent) = sent {
            self.answer(sent);
        }
        self.data(read, true);
        self.rcvd_bytes(flow, rcvd_before, cack);
        let sack = match self.packet.uet.pds {
            Some(Pds::AckCc(header)) => Some(header.sack().copied()),
            Some(Pds::AckCcx(header)) => Some(header.sack().copied()),
            _ => None,
        };
        let reported = sack.map(|sack| (flow.index(sack.sack_psn(ack.cack_psn())), sack.sack_bitmap()));
        self.doubts[self.sender.other() as usize].reported = reported;
    }

    /// Returns whether the response needs guaranteed delivery: an error, a match on the overflow list, or data in an ACK.
    fn is_guaranteed(&self) -> bool {
        match self.packet.uet.ses {
            Some(Ses::Response(response)) => {
                let head = response.head();
                let error = !matches!(head.return_code(), ReturnCode::OK | ReturnCode::NULL);
                error || head.list() == List::UET_OVERFLOW
            }
            Some(Ses::ResponseData(_) | Ses::ResponseDataSmall(_)) => true,
            _ => false,
        }
    }

    /// Rule of CLEAR_PSN beside ACKs. The capture may lack the ACK of a cleared PSN, but the next ACK acknowledges it too.
    fn cleared(&mut self, flow: &Direction) {
        const IN_A_ROW: u32 = 16;
        let (Some(told), Some(cleared), false) = (flow.told, flow.cleared, flow.renumbered) else { return };
        let untold = &mut self.doubts[self.sender.other() as usize].untold;
        *untold = if cleared > told { untold.saturating_add(1) } else { 0 };
        let holds = *untold < IN_A_ROW;
        self.hold_receiver(PDS_CLR_001, None, holds, || {
            format!("has cleared {} PSNs beyond what any ACK has told of", cleared - told)
        });
    }

    /// Rule of the answer to a probe: it repeats the opaque value.
    fn probe(&mut self, flow: &Direction, ack: Ack) {
        let Some(opaque) = ack.probe_opaque().filter(|_| !flow.probes.is_empty()) else { return };
        let unknown = !flow.probes.contains(&opaque);
        let strange = self.suspect(self.sender.other(), "answer to no probe", unknown, 3);
        self.hold(PDS_PRB_001, None, !strange, || format!("no probe carried {opaque:#06x}"));
    }

    /// Rules of the flags and the entropy that an ACK repeats of the request that it names.
    fn echo(&mut self, flow: &Direction, ack: Ack, named: i64, sent: &SentRequest) {
        let (side, with) = (self.sender.other(), Some(sent.number));
        let never = ack.retx() && !flow.retransmitted;
        let never = self.suspect(side, "retx without retransmission", never, 3);
        if ack.retx() {
            self.hold(PDS_ACK_002, with, !never, || "says retx, and nothing was retransmitted".into());
        }
        if sent.retx && sent.times == 1 && self.was_lost(named) {
            let lost = self.suspect(side, "retx not told", !ack.retx(), 3);
            self.hold(PDS_ACK_002, with, !lost, || "retx is 1 in the request, and 0 in the ACK".into());
        }
        // An ACK with retx answers a retransmission. If the first transmission has no retx, the capture may lack that
        // one, which may have another entropy and no mark.
        if ack.retx() && !sent.retx {
            return;
        }
        if sent.marked && sent.times == 1 {
            let lost = self.suspect(side, "mark not told", !ack.m(), 2);
            self.hold(PDS_ACK_002, with, !lost, || {
                "the request arrived marked, and m is 0 in the ACK".into()
            });
        }
        if let ([Some(entropy), None], Some(here)) = (sent.entropy, self.packet.entropy) {
            let other = self.suspect(side, "entropy", entropy != here, 3);
            self.hold(CC_PATH_001, with, !other, || {
                format!("entropy {here:#06x}, and that of the request is {entropy:#06x}")
            });
        }
    }

    /// Returns whether the ACK before this one reported a PSN as missing, and a higher one as received. Its first
    /// transmission was lost then, so this ACK answers the retransmission.
    fn was_lost(&self, index: i64) -> bool {
        self.doubts[self.sender.other() as usize].reported.is_some_and(|(first, bits)| {
            let from = u32::try_from(index - first).ok().and_then(|at| bits.checked_shr(at));
            from.is_some_and(|from| from != 0 && from & 1 == 0)
        })
    }

    /// Rules of `rcvd_bytes`: it grows with the cumulative PSN, and counts in units of 256 bytes.
    fn rcvd_bytes(&mut self, flow: &Direction, before: Option<RcvdBytes>, cack: i64) {
        let Some((first, now)) = flow.rcvd.filter(|(_, last)| last.number == self.packet.number) else {
            return;
        };
        if let Some(before) = before {
            // An ACK that was overtaken has an older count and an older cumulative PSN.
            let grown = now.bytes.since(before.bytes).is_some_and(|units| units > 0);
            // Missing records do not explain it, so its share of all ACKs does not matter.
            let back = grown && cack < before.cack;
            let back = back && self.suspect(self.sender.other(), "cumulative PSN back", true, 2);
            self.hold(PDS_PSN_003, Some(before.number), !back, || {
                "the cumulative PSN went back while more bytes have been received".into()
            });
        }
        // Bytes received since the first ACK have PSNs above its cumulative one. If the capture shows requests, they
        // are at most a little above the highest one observed.
        let highest = flow.highest.filter(|highest| *highest >= cack && !flow.renumbered);
        if let (Some(units), Some(highest)) = (now.bytes.since(first.bytes), highest) {
            const LARGEST: i64 = 8192 + 256;
            const UNSEEN: i64 = 512;
            let (said, packets) = (i64::from(units) * 256, highest - first.cack);
            self.hold(CC_RCVD_004, None, said <= (packets + UNSEEN) * LARGEST, || {
                format!("{said} bytes received since the first ACK, in no more than {packets} packets")
            });
        }
    }

    pub(super) fn nack(&mut self, code: NackCode, named: Option<i64>, retx: bool) {
        let flow = self.received();
        if code == NackCode::ROD_OOO {
            // A sender of both modes gets the answer of either.
            self.hold(PDS_RUD_001, None, flow.rod != Some(false) || flow.mixed_modes, || {
                "ROD_OOO on an unordered context".into()
            });
        }
        let Some(sent) = named.and_then(|named| flow.requests.get(&named)) else { return };
        if code == NackCode::PDC_HDR_MISMATCH && self.context.initiator == Some(self.sender) {
            self.doubts[self.sender as usize].mismatch = Some(self.packet.number);
        }
        let never = retx && !flow.retransmitted;
        let never = self.suspect(self.sender.other(), "retx without retransmission", never, 3);
        if retx {
            let with = Some(sent.number);
            self.hold(PDS_NACK_001, with, !never, || "says retx, and nothing was retransmitted".into());
        }
    }
}
