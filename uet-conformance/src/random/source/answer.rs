//! ACKs and NACKs of the device for the suite's contexts.

use super::*;
use crate::random::coverage::{Event, State};
use crate::random::message::Reported;
use crate::random::play::{Due, Player};
use crate::random::step::Fate;
use crate::{Outcome, RxPacket};
use core::time::Duration;
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::pds::{Ack, Nack};
use uet_wire::registry::{AckRequest, CtlType, NackClass, NackCode};

impl Player<'_, '_> {
    /// Takes an ACK of the forward direction in.
    pub(in crate::random) fn own_ack(
        &mut self,
        context: usize,
        seen: &RxPacket,
        ack: Ack,
        first: bool,
    ) -> Outcome {
        let named = ack.ack_psn().and_then(|psn| Self::distance(psn, self.own[context].pdc.start));
        if first && !self.settling {
            if let Some(What::Part(message, _)) = named.and_then(|n| self.what(context, n)) {
                match self.messages[message].answer_fate() {
                    Fate::Lost => return Ok(()),
                    Fate::Late => {
                        let at = self.t.now() + self.gap * 2;
                        self.later(at, Due::Take(seen.clone()));
                        return Ok(());
                    }
                    _ => {}
                }
            }
        }
        let state = self.own[context].state;
        self.coverage.seen(state, Event::Ack);
        let own = &mut self.own[context];
        let (life, of_start) = (own.life, Self::distance(ack.cack_psn() + 1, own.pdc.start));
        if own.life > 0 && of_start.is_none() {
            // It is of an earlier context with the same identifier.
            return Ok(());
        }
        if own.state == State::Opening {
            own.state = State::Open;
        }
        own.pdc.remote.get_or_insert(ack.spdcid());
        if let Some(opaque) = ack.probe_opaque() {
            self.wanted_probes.retain(|(of, _, wanted)| (*of, *wanted) != (context, opaque));
            return Ok(());
        }
        // Only copies of its packets are left to answer.
        if own.state == State::Closed {
            return Ok(());
        }
        let Some(covered) = of_start else {
            let seen = format!("cack_psn {} on a context from {}", ack.cack_psn(), own.pdc.start);
            return self.broken(PDS_PSN_002, "a cumulative PSN of the context", seen);
        };
        if covered > own.next || named.is_some_and(|n| n >= own.next) {
            let told = format!("cack_psn {}, {} packets sent", ack.cack_psn(), own.next);
            return self.broken(PDS_PSN_002, "a cumulative PSN that has been sent", told);
        }
        let of_zero = self.t.range_of_zero();
        if covered >= own.covered {
            if let Some(sack) = seen.ack_cc() {
                let mpr = u32::from(sack.sack().mpr());
                own.window = if mpr == 0 { of_zero } else { mpr * 128 };
            }
        }
        own.covered = own.covered.max(covered);
        self.judge_bytes(context, seen, covered)?;
        let own = &mut self.own[context];
        if let Some(sack) = seen.ack_cc() {
            for psn in sack.sacked() {
                let n = Self::distance(psn, own.pdc.start);
                let sent = n.and_then(|n| own.sent.get_mut(&n));
                match sent {
                    Some(packet) if packet.with[0] + packet.with[1] == 0 => {
                        let told = format!("the bit of {psn}, which has not arrived");
                        return self.broken(PDS_SACK_001, "bits of packets that have arrived", told);
                    }
                    Some(packet) => packet.arrived = true,
                    None => {}
                }
            }
        }
        if let Some(n) = named {
            self.echoes(context, n, &ack)?;
            self.own[context].named.insert(n);
            self.answered(context, n, Some(seen), &ack)?;
        }
        let own = &self.own[context];
        let covered: Vec<u32> =
            own.sent.range(..own.covered).filter(|(_, packet)| !packet.done).map(|(n, _)| *n).collect();
        for n in covered {
            self.answered(context, n, None, &ack)?;
        }
        self.advance_clear(context);
        match ack.req() {
            AckRequest::REQ_CLEAR => {
                self.own[context].told = 0;
                let at = self.t.now() + self.gap * 4;
                self.later(at, Due::Clear(context));
            }
            AckRequest::REQ_CLOSE if self.own[context].life == life => self.own[context].wants_close = true,
            _ => {}
        }
        self.flush(context)
    }

    /// Judges `rcvd_bytes` of an ACK: no less than what it acknowledges, no more than what has left.
    pub(super) fn judge_bytes(&mut self, context: usize, seen: &RxPacket, covered: u32) -> Outcome {
        // Without congestion control, nobody uses the count.
        let bytes = seen.ack_cc().filter(|_| self.states()).and_then(|ack| ack.rcvd_bytes());
        // The count may have begun elsewhere.
        let begun = self.t.start_of_count() as u32;
        let Some(bytes) = bytes.map(|units| u64::from((units.get() << 8).wrapping_sub(begun))) else {
            return Ok(());
        };
        let own = &self.own[context];
        let nominal = |packet: &OwnPacket| match packet.with[0] + packet.with[1] {
            0 => 0,
            _ => crate::packets::nominal(packet.size),
        };
        let parts = |packet: &&OwnPacket| matches!(packet.what, What::Part(..));
        let least: u64 = own.sent.range(..covered).map(|(_, packet)| packet).filter(parts).map(nominal).sum();
        // A retransmission may be longer or shorter than the first transmission by nothing that counts.
        let sealed = |packet: &OwnPacket| nominal(packet) + self.sealing as u64;
        let most: u64 = own.sent.values().map(sealed).sum::<u64>() + 256;
        let told = format!("{bytes} bytes, of {least} to {most}");
        if bytes < least {
            return self.broken(CC_RCVD_001, "rcvd_bytes that counts all that has arrived", told);
        }
        if bytes >= most.max(257) {
            return self.broken(CC_RCVD_002, "rcvd_bytes that counts each packet once", told);
        }
        Ok(())
    }

    /// Judges `retx` and `m` of an ACK that names a packet.
    pub(super) fn echoes(&mut self, context: usize, n: u32, ack: &Ack) -> Outcome {
        let Some(packet) = self.own[context].sent.get(&n) else { return Ok(()) };
        let [retx, plain, marked, unmarked] = packet.with;
        let wrong =
            |said: bool, with: u32, without: u32| said && with == 0 || !said && without == 0 && with > 0;
        let seen = format!("retx {}, m {}", ack.retx(), ack.m());
        if retx + plain == 0 {
            return self.broken(PDS_ACK_016, "an ACK that names a packet which has arrived", seen);
        }
        if packet.asked {
            return Ok(());
        }
        if wrong(ack.retx(), retx, plain) {
            return self.broken(PDS_ACK_002, "retx of the packet that an ACK answers", seen);
        }
        if self.t.claims("ecn") && wrong(ack.m(), marked, unmarked) {
            return self.broken(PDS_ACK_002, "m of the packet that an ACK answers", seen);
        }
        Ok(())
    }

    /// Takes the answer to a packet in; without an ACK that names it, a cumulative one has covered it.
    pub(super) fn answered(&mut self, context: usize, n: u32, seen: Option<&RxPacket>, ack: &Ack) -> Outcome {
        let cleared = self.own[context].cleared;
        let Some(packet) = self.own[context].sent.get_mut(&n) else { return Ok(()) };
        packet.arrived = true;
        let what = packet.what;
        match what {
            What::Part(message, part) => {
                let told = Reported::of(seen, ack, n < cleared);
                let over = self.reported(message, part, &told)?;
                if let Some(packet) = self.own[context].sent.get_mut(&n) {
                    packet.done |= over;
                }
                Ok(())
            }
            What::Control(kind) => {
                packet.done = true;
                let once = packet.with[0] + packet.with[1] == 1 && !packet.asked;
                if let Some(seen) = seen.filter(|seen| once && seen.uet().ses.is_some()) {
                    let told = seen.uet().to_string();
                    return self.broken(PDS_ACK_014, "an ACK of a control packet without a response", told);
                }
                if kind == CtlType::CLOSE_COMMAND && self.own[context].state == State::Closing {
                    self.own[context].state = State::Closed;
                    let closed = self.t.now();
                    let opening = self.own[context].opening.take();
                    self.openings.extend(opening.map(|wire| (context, wire, closed)));
                    let waiting = core::mem::take(&mut self.own[context].queue);
                    if !waiting.is_empty() {
                        self.reopen(context)?;
                        self.own[context].queue = waiting;
                    }
                }
                Ok(())
            }
        }
    }

    /// Takes a NACK of the forward direction in.
    pub(in crate::random) fn own_nack(&mut self, context: usize, seen: &RxPacket, nack: Nack) -> Outcome {
        let code = nack.nack_code();
        let own = &self.own[context];
        let state = own.state;
        self.coverage.seen(state, Event::Nack);
        if code == NackCode::NEW_START_PSN && self.t.is_secure() {
            return self.renumber(context, Psn(nack.payload()));
        }
        // A packet with the old number may come after the context is open.
        if code == NackCode::INVALID_SYN && own.renumbered {
            return Ok(());
        }
        // A device may not support PROBE.
        if code == NackCode::UNEXP_EVENT {
            self.wanted_probes.clear();
        }
        let n = nack.nack_psn().and_then(|psn| Self::distance(psn, own.pdc.start));
        let Some(n) = n.filter(|n| own.sent.get(n).is_some_and(|packet| !packet.done)) else { return Ok(()) };
        if let Some(packet) = own.sent.get(&n).filter(|packet| !packet.asked && packet.entropies.len() == 1) {
            let facts = self.t.facts();
            let judged = self.t.claims("entropy") && facts.see_entropy && facts.set_entropy;
            if judged && !packet.entropies.contains(&seen.wire.entropy) {
                let told = format!("{:#06x} in NACK {code} of {:x?}", seen.wire.entropy, packet.entropies);
                return self.broken(CC_PATH_001, "the entropy value of the packet that a NACK answers", told);
            }
        }
        // A lost packet has no flags.
        let trimmed =
            matches!(code, NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP | NackCode::RCVR_INFER_LOSS);
        if let Some(packet) = own.sent.get(&n).filter(|packet| !packet.asked && !trimmed) {
            let [retx, plain, marked, unmarked] = packet.with;
            let wrong =
                |said: bool, with: u32, without: u32| said && with == 0 || !said && without == 0 && with > 0;
            let marks = self.t.claims("ecn") && wrong(nack.m(), marked, unmarked);
            if wrong(nack.retx(), retx, plain) || marks {
                let told = format!("retx {}, m {} in NACK {code}", nack.retx(), nack.m());
                return self.broken(PDS_NACK_001, "m and retx of the packet that a NACK answers", told);
            }
        }
        let fatal = code.class() == Some(NackClass::PdcFatal);
        let now = self.t.now();
        let wait = match code {
            NackCode::PKT_NOT_RCVD
            | NackCode::ACK_WITH_DATA
            | NackCode::TRIMMED
            | NackCode::TRIMMED_LASTHOP => Duration::ZERO,
            _ if fatal && own.wants_close => {
                self.give_up(context);
                return Ok(());
            }
            _ if fatal => {
                let told = format!("NACK {code} for PSN {}", own.pdc.psn(n));
                return self.broken(PDS_PDC_003, "a legal packet of a context that is accepted", told);
            }
            NackCode::RCVD_SES_PROCG => {
                // It waits for other packets, maybe.
                if let Some(packet) = self.own[context].sent.get_mut(&n) {
                    packet.tries = packet.tries.min(4);
                }
                self.t.rto()
            }
            _ => self.t.nack_wait(),
        };
        if seen.lacks_room() {
            self.own[context].starved += 1;
        }
        let rod = self.own[context].pdc.rod && code == NackCode::ROD_OOO;
        let from = if rod { 0 } else { n };
        for (other, packet) in self.own[context].sent.range_mut(from..) {
            packet.undisturbed = packet.undisturbed.filter(|_| *other != n && !rod);
            if !packet.done && (*other == n || rod) {
                packet.due = packet.due.min(now + wait);
            }
        }
        self.own[context].timer = false;
        self.arm(context)
    }
}
