//! Rules of requests and control packets.

use super::judgments::Rules;
use crate::{Direction, ReadRequest, SentRequest};
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::pds::{Pds, Request};
use uet_wire::registry::{CtlType, PdsType};
use uet_wire::ses::Ses;

impl Rules<'_> {
    pub(super) fn request(
        &mut self,
        request: Request,
        read: Option<ReadRequest>,
        index: i64,
        sent: &SentRequest,
        earlier: Option<SentRequest>,
    ) {
        self.opening(request, sent);
        self.data(read, false);
        let flow = self.sent();
        let rod = matches!(request.prologue().kind(), PdsType::ROD_REQ | PdsType::ROD_CC_REQ);
        self.hold(PDS_PDC_002, None, flow.rod == Some(rod), || {
            "a request of the other mode on the same context".into()
        });
        let data = matches!(self.packet.uet.ses, Some(Ses::ResponseData(_) | Ses::ResponseDataSmall(_)));
        let other = self.received().rod.filter(|_| data);
        self.hold(PDS_PDC_002, None, other.is_none_or(|other| other == rod), || {
            let name = |rod| if rod { "an ordered" } else { "an unordered" };
            format!("return data as {} request on {} context", name(rod), name(!rod))
        });
        if let Some(start) = self.context.start {
            self.near_start(flow, request, start);
        }
        if flow.credit.is_some() && flow.demands_credit {
            let without = self.suspect(self.sender, "request without demand", !sent.demand, 3);
            self.hold(RCCC_TYPE_001, None, !without, || {
                "no demand in it, although it is sent on receiver credit".into()
            });
        }
        if let Some((kind, number)) = flow.controls.get(&index).copied() {
            self.hold(PDS_CTL_001, Some(number), flow.renumbered, || {
                format!("a request with the PSN of a {kind}")
            });
        }
        match earlier {
            Some(earlier) => self.repeated(flow, &earlier, sent),
            None if flow.is_forgotten(index) => {}
            None => {
                self.is_of_a_read(read);
                if !sent.retx {
                    self.first_transmission(flow, index, sent);
                }
                self.neighbors(flow, index);
            }
        }
    }

    /// Rules of a packet with `syn`.
    fn opening(&mut self, request: Request, sent: &SentRequest) {
        let flow = self.sent();
        // The initiator knows the target's PDCID once it has sent a packet with it. Such a packet has arrived.
        let knows = || flow.acknowledged().any(|(_, other)| !other.syn);
        if sent.retx {
            let late = request.syn() && knows();
            let late = self.suspect(self.sender, "syn after the first ACK", late, 2);
            self.hold(PDS_SYN_004, None, !late, || "a retransmission with syn, after packets without".into());
            // The initiator still opens the context, so the return data that it refused was its peer's.
            let refused = self.doubts[self.sender as usize].mismatch.take().filter(|_| request.syn());
            if refused.is_some() {
                self.hold(PDS_OPEN_003, refused, false, || {
                    "opens this context, and has refused a packet of it with PDC_HDR_MISMATCH".into()
                });
            }
        }
        let (Some(own), Some((start, number))) = (request.start_psn(), self.context.start) else { return };
        if let Some(initiator) = self.context.initiator {
            self.hold(PDS_SYN_004, None, initiator == self.sender, || {
                "the target sends syn in its own context".into()
            });
        }
        self.hold(PDS_SYN_001, Some(number), self.sent().renumbered || own == start, || {
            format!("psn - psn_offset is {own}, and was {start}")
        });
    }

    /// Rules of a request beside Start_PSN.
    fn near_start(&mut self, flow: &Direction, request: Request, (start, number): (Psn, u64)) {
        // Another Start_PSN has been judged already.
        if flow.renumbered || request.start_psn().is_some_and(|own| own != start) {
            return;
        }
        let with = Some(number);
        if let Some(psn) = self.context.distance_from_start(request.psn()) {
            self.hold(PDS_SYN_008, with, psn >= 0, || {
                format!("PSN {} of a context that starts at {start}", request.psn())
            });
        }
        if let Some(clear) = self.context.distance_from_start(request.clear_psn()) {
            self.hold(PDS_SYN_008, with, clear >= -1, || {
                format!("clears up to {} in a context that starts at {start}", request.clear_psn())
            });
            // CLEAR_PSN advances after an ACK.
            self.hold(PDS_SYN_004, with, !request.syn() || clear < 0, || {
                let (clear, none) = (request.clear_psn(), start - 1);
                format!(
                    "syn is 1, but clear_psn {clear} says that an ACK has come; without one, it is {none}"
                )
            });
        }
    }

    /// Rules of the first transmission of a PSN.
    fn first_transmission(&mut self, flow: &Direction, index: i64, sent: &SentRequest) {
        let side = self.sender;
        if let Some((cack, number)) = flow.cack {
            // A PSN below the start is the sender's mistake.
            let below =
                self.context.distance_from_start(flow.psn(index)).is_some_and(|distance| distance < 0);
            let early = index <= cack && !flow.renumbered && !below;
            let early = self.suspect(side, "ack of what was not sent", early, 2);
            self.hold_receiver(PDS_PSN_002, Some(number), !early, || {
                "acknowledged before it was sent for the first time".into()
            });
            // A CLEAR_PSN that no ACK permits shows that the capture lacks an ACK, which may have announced a window.
            let clear = flow.index(sent.clear);
            let known = flow.told.is_some_and(|told| clear <= told) && !flow.renumbered;
            if let (Some(permitted), Some(window), true) = (flow.permitted, flow.window, known) {
                self.hold(PDS_WIN_004, Some(number), index <= permitted + window, || {
                    format!("{} beyond the cumulative PSN, with a window of {window}", index - cack)
                });
            }
        }
        // Once a network has reordered packets, this one may be late, and the capture may lack the one that was named.
        let reordered = &mut self.doubts[side as usize].reordered;
        *reordered |= flow.highest > Some(index);
        let in_order = !*reordered && !flow.renumbered;
        // If a bitmap reports the named packet too, it is missing, or `PDS-SACK-001` is judged when it is sent.
        let only_named = |ahead| index < ahead && flow.sacked(ahead).is_none();
        if let Some((ahead, number)) = flow.ahead.filter(|(ahead, _)| in_order && only_named(*ahead)) {
            // Records may be in another order than the packets, but not by this much.
            const FAR: i64 = 64;
            let early = self.suspect(side, "ack that names what was not sent", true, 2);
            self.hold_receiver(PDS_PSN_002, Some(number), !early && ahead - index < FAR, || {
                format!("an ACK names the PSN {} above, which was not sent", ahead - index)
            });
        }
        let told = flow.sacked(index);
        let often = self.suspect(side, "bit of what was not sent", told.is_some(), 2);
        if told.is_some() {
            self.hold_receiver(PDS_SACK_001, told, !often, || {
                "reported as received before it was sent for the first time".into()
            });
        }
        if let Some((close, number)) = flow.close {
            self.hold(PDS_CLOSE_001, Some(number), index <= close, || {
                "a request after the CLOSE_COMMAND".into()
            });
        }
        self.path(flow, index, sent);
        // First transmissions leave in order, so CLEAR_PSN does not go back. After a renumbering, packets leave once
        // more, in any order.
        let first = |other: &SentRequest| !other.retx && !flow.renumbered && !flow.moved;
        let below = flow.requests.range(..index).next_back().filter(|(_, other)| first(other));
        let above = flow.requests.range(index + 1..).next().filter(|(_, other)| first(other));
        if let Some((_, below)) = below {
            self.hold(PDS_CLR_002, Some(below.number), !below.clear.is_after(sent.clear), || {
                format!("clears up to {}, and the one before it up to {}", sent.clear, below.clear)
            });
        }
        if let Some((_, above)) = above {
            self.hold(PDS_CLR_002, Some(above.number), !sent.clear.is_after(above.clear), || {
                format!("clears up to {}, and the one after it up to {}", sent.clear, above.clear)
            });
        }
    }

    /// Rules of a PSN that was seen before: a retransmission, or a copy that the network made.
    fn repeated(&mut self, flow: &Direction, earlier: &SentRequest, now: &SentRequest) {
        let (Some(first), Some(second), false) = (earlier.digest, now.digest, flow.renumbered) else {
            return;
        };
        let with = Some(earlier.number);
        self.hold(PDS_RTO_005, with, first == second, || "the same PSN with other content".into());
        if now.retx {
            // A packet with a later CLEAR_PSN has already arrived.
            let newer = flow.acknowledged().find(|(_, other)| other.clear.is_after(now.clear) && !other.retx);
            let old = self.suspect(self.sender, "old CLEAR_PSN", newer.is_some(), 2);
            self.hold(PDS_CLR_003, newer.map(|(_, other)| other.number), !old, || {
                format!("a retransmission clears up to {}, and an earlier packet further", now.clear)
            });
        }
        // A copy is identical. A packet that differs and does not say retx is a retransmission.
        let copy = earlier.clear == now.clear && earlier.entropy.contains(&self.packet.entropy);
        if first == second {
            let told = now.retx || earlier.retx || copy;
            self.hold(PDS_RTO_005, with, told, || "sent again without retx".into());
        }
    }

    /// Rule of the path of an ordered context: it changes while nothing is in flight.
    fn path(&mut self, flow: &Direction, index: i64, sent: &SentRequest) {
        let before = flow.requests.get(&(index - 1)).filter(|before| !before.retx);
        let before = before.and_then(|before| before.entropy[0]);
        let (Some(before), Some(now), Some(true)) = (before, sent.entropy[0], flow.rod) else { return };
        let acknowledged = flow.index(sent.clear).max(flow.cack.map_or(i64::MIN, |(cack, _)| cack));
        let changes = before != now && acknowledged < index - 1;
        let left = self.suspect(self.sender, "entropy changes", changes, 3);
        self.hold(PDS_ROD_005, None, !left, || {
            format!(
                "entropy {now:#06x}, and {before:#06x} of the packet before, which is not yet acknowledged"
            )
        });
    }

    pub(super) fn control(&mut self, kind: CtlType, index: i64) {
        let (flow, initiator) = (self.sent(), self.context.initiator);
        if kind.takes_psn() {
            if let Some(number) = flow.requests.get(&index).map(|sent| sent.number) {
                self.hold(PDS_CTL_001, Some(number), flow.renumbered, || {
                    format!("a {kind} with the PSN of a request")
                });
            }
        }
        match kind {
            CtlType::CLOSE_COMMAND => {
                self.hold(PDS_CLOSE_001, None, initiator.is_none_or(|it| it == self.sender), || {
                    "CLOSE_COMMAND from the target".into()
                });
                // The flag alone is no judgment over several packets.
                if matches!(self.packet.uet.pds, Some(Pds::Control(control)) if !control.ar()) {
                    self.hold(PDS_CLOSE_002, None, false, || "CLOSE_COMMAND asks for no ACK".into());
                }
                let later = flow.requests.range(index + 1..).next().map(|(_, sent)| sent.number);
                self.hold(PDS_CLOSE_001, later, later.is_none() || flow.renumbered, || {
                    "CLOSE_COMMAND with a PSN below that of a request".into()
                });
            }
            CtlType::CLOSE_REQUEST => {
                let asked = &mut self.doubts[self.sender as usize].close_asked;
                *asked = asked.or(self.now);
                self.hold(PDS_CLOSE_006, None, initiator.is_none_or(|it| it != self.sender), || {
                    "CLOSE_REQUEST from the initiator".into()
                });
            }
            _ => {}
        }
    }
}
