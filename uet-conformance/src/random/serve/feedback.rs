//! ACKs, NACKs and control packets of the device, and those that the suite sends about its contexts.

use super::Incoming;
use crate::random::coverage::{Event, State};
use crate::random::play::Player;
use crate::random::step::ControlKind;
use crate::{AckBuilder, Outcome, Pdc, RxPacket, Test};
use uet_control::Mode;
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::pds::{Ack, Control, Nack, PdsBuf};
use uet_wire::registry::{CtlType, NackCode};

impl Player<'_, '_> {
    /// Takes an ACK in: of a context of the suite, or of read data on a context of the device.
    pub(in crate::random) fn take_ack(&mut self, seen: &RxPacket, ack: Ack, first: bool) -> Outcome {
        if let Some(own) = self.own_of(seen, ack.dpdcid()) {
            return self.own_ack(own, seen, ack, first);
        }
        if let Some(served) = self.served_of(seen, ack.dpdcid()) {
            let state = self.served[served].state;
            self.coverage.seen(state, Event::Ack);
            if ack.p() {
                return Ok(());
            }
            let it = &mut self.served[served];
            let covered = Self::distance(ack.cack_psn() + 1, it.pdc.start);
            if let Some(covered) = covered.filter(|covered| *covered > it.sent) {
                // NOOP and other control packets of the suite take no PSN here.
                let told = format!("{covered} covered, {} sent", it.sent);
                return self.broken(PDS_PSN_002, "a cumulative PSN that has been sent", told);
            }
            let named = ack.ack_psn().and_then(|psn| Self::distance(psn, it.pdc.start));
            it.covered = it.covered.max(covered.unwrap_or_default());
            let below = it.covered;
            for (n, returned) in &mut it.returned {
                returned.done |= *n < below || Some(*n) == named;
            }
            return Ok(());
        }
        if self.strangers.contains(&ack.dpdcid().0) {
            return Ok(());
        }
        let told = format!("dpdcid {} to {}", ack.dpdcid(), seen.wire.dst);
        self.broken(PDS_PDC_003, "an ACK to a context that there is", told)
    }

    /// Takes a NACK in.
    pub(in crate::random) fn take_nack(&mut self, seen: &RxPacket, nack: Nack) -> Outcome {
        if let Some(own) = self.own_of(seen, nack.dpdcid()) {
            return self.own_nack(own, seen, nack);
        }
        if let Some(served) = self.served_of(seen, nack.dpdcid()) {
            let it = &mut self.served[served];
            let n = nack.nack_psn().and_then(|psn| Self::distance(psn, it.pdc.start));
            let now = self.t.now();
            if let Some(returned) = n.and_then(|n| it.returned.get_mut(&n)) {
                returned.due = now;
            }
            // The suite grants credit by control packets.
            let grants = matches!(self.t.parameter_word("congestion"), Some("rccc" | "both"));
            return if it.spoke || grants { Ok(()) } else { self.needless(seen, PDS_NACK_010) };
        }
        // A NACK to another address answers packets that no peer sends.
        let here = self.own.iter().any(|own| own.pdc.from == seen.wire.dst);
        match nack.nack_pkt_id() {
            Some(id) if here => {
                let known = self.messages.iter().any(|it| it.has_lone(id));
                let ignored = known || self.t.watch().ignores_packet(id);
                if ignored { Ok(()) } else { self.needless(seen, PDS_UUD_001) }
            }
            None if here && !self.strangers.contains(&nack.dpdcid().0) => self.needless(seen, PDS_NACK_010),
            _ => Ok(()),
        }
    }

    /// Records a NACK that answers no request.
    fn needless(&mut self, seen: &RxPacket, requirement: &Requirement) -> Outcome {
        let told = seen.uet().to_string();
        self.broken(requirement, requirement.sentence, told)
    }

    /// Takes a control packet in.
    pub(in crate::random) fn take_control(&mut self, seen: &RxPacket, control: &Control) -> Outcome {
        let kind = control.ctl_type();
        let to = control.dpdcid();
        if let Some(own) = to.and_then(|to| self.own_of(seen, to)) {
            if kind.takes_psn() {
                let it = &mut self.own[own];
                let pdc = it.pdc.clone();
                confirm(self.t, seen, control, &pdc, &mut it.incoming)?;
            }
            return self.own_control(own, kind);
        }
        let Some(served) = to.and_then(|to| self.served_of(seen, to)) else { return self.t.confirm(seen) };
        let it = &mut self.served[served];
        let state = it.state;
        self.coverage.seen(state, Event::control(kind));
        let (pdc, psn) = (it.pdc.clone(), control.psn());
        let n = Self::distance(psn, pdc.start);
        match kind {
            CtlType::NOOP | CtlType::NEGOTIATION => confirm(self.t, seen, control, &pdc, &mut it.incoming),
            CtlType::CLOSE_COMMAND => {
                let Some(n) = n else { return Ok(()) };
                if state == State::Open && n != it.incoming.below && !it.incoming.has(n) {
                    let told = format!("CLOSE_COMMAND takes PSN {n}, {} have come", it.incoming.below);
                    return self.broken(PDS_CLOSE_001, "a close when every request is acknowledged", told);
                }
                let reads = it.returned.values().any(|it| !it.done) && self.t.facts().virtual_time;
                // An operation that fails may leave data to nobody.
                if reads && state == State::Open && self.posts.iter().all(|it| !it.refused && !it.aborted) {
                    let told = format!("CLOSE_COMMAND with PSN {psn}, and read data is not acknowledged");
                    return self.broken(PDS_CLOSE_001, "a close when no read data is outstanding", told);
                }
                it.incoming.note_control(n);
                (it.state, it.closed_at) = (State::Closed, Some(n));
                it.returned.values_mut().for_each(|it| it.done = true);
                let ack = AckBuilder { response: None, retx: control.retx(), ..pdc.ack(psn) };
                self.t.send(&pdc, &ack.build()?)
            }
            CtlType::CLEAR_COMMAND => {
                let cleared = Psn(control.payload()) + 1;
                if let Some(cleared) = Self::distance(cleared, pdc.start) {
                    self.judge_clear(served, cleared)?;
                    self.clear_to(served, cleared);
                }
                Ok(())
            }
            CtlType::ACK_REQUEST => {
                let Some(n) = n else { return Ok(()) };
                if self.served[served].incoming.has(n) {
                    self.answer(served, n, false)
                } else {
                    self.t.send(&pdc, &pdc.nack(NackCode::PKT_NOT_RCVD, psn)?)
                }
            }
            CtlType::PROBE => {
                let cack = pdc.start - 1 + self.served[served].cack();
                let mut packet = AckBuilder { response: None, ..pdc.ack(cack) }.build()?;
                if let Some(PdsBuf::Ack(ack)) = packet.pds {
                    let opaque = control.probe_opaque().unwrap_or_default();
                    packet.pds = Some(ack.edit().p(true).probe_opaque(opaque).done()?.into());
                }
                self.t.send(&pdc, &packet)
            }
            _ => Ok(()),
        }
    }

    /// Sends a control packet on a context that the device has opened.
    pub(in crate::random) fn ask(&mut self, target: usize, kind: ControlKind) -> Outcome {
        let open: Vec<usize> =
            (0..self.served.len()).filter(|served| self.served[*served].state == State::Open).collect();
        let Some(served) = open.get(target % open.len().max(1)).copied() else { return Ok(()) };
        self.coverage.seen(State::Open, Event::Ask(kind));
        let it = &mut self.served[served];
        it.spoke = true;
        let pdc = it.pdc.clone();
        let packet = match kind {
            ControlKind::ClearRequest => pdc.control(CtlType::CLEAR_REQUEST, Psn(0), 0)?,
            ControlKind::Probe => pdc.probe(0x7a11, pdc.start)?,
            _ => return Ok(()),
        };
        self.t.send(&pdc, &packet)
    }

    /// Ends a context that the device has opened with a NACK for a packet that waits, or for the last one.
    pub(in crate::random) fn abort(&mut self, target: usize, code: u8) -> Outcome {
        let open: Vec<usize> =
            (0..self.served.len()).filter(|served| self.served[*served].state == State::Open).collect();
        let Some(served) = open.get(target % open.len().max(1)).copied() else { return Ok(()) };
        let Some(code) = NackCode::new(code) else { return Ok(()) };
        // Only a packet that has no answer can be refused.
        let it = &self.served[served];
        let waits = it.known.keys().copied().find(|n| !it.incoming.has(*n));
        let Some(n) = waits else { return Ok(()) };
        self.coverage.seen(State::Open, Event::Abort);
        let (pdc, nack) = (it.pdc.clone(), it.pdc.nack(code, it.pdc.psn(n))?);
        self.served[served].state = State::Dead;
        let (peer, rod) = (self.served[served].peer, pdc.rod);
        let until = self.t.now() + self.t.rto() * 2;
        self.aborts.push((peer, rod, until));
        for posted in &mut self.posts {
            if posted.plan.peer == peer && (posted.plan.mode == Mode::Rod) == rod {
                posted.aborted = true;
                // Nobody may read the rest of what has ended.
                if let Some(rest) = posted.rest.and_then(|rest| self.messages.get_mut(rest)) {
                    rest.give_up_expectations();
                }
            }
        }
        self.t.send(&pdc, &nack)
    }

    /// Returns whether the device gives packets up that the peer of a conversation loses or refuses.
    pub(in crate::random) fn soon_gives_up(&self) -> bool {
        ["max_rto_retx_cnt", "max_nack_retx_cnt"].iter().any(|name| self.t.parameter(name) < 4)
    }

    /// Returns a PSN whose response the device has not cleared.
    pub(in crate::random) fn unclear(&self) -> Option<Psn> {
        let open = self.served.iter().filter(|it| it.state == State::Open);
        open.into_iter().find_map(|it| {
            let held = it.stored.iter().find(|(n, stored)| stored.guaranteed && **n >= it.cleared);
            held.map(|(n, _)| it.pdc.psn(*n))
        })
    }

    /// Judges that the device has cleared what the suite has asked it to clear.
    pub(in crate::random) fn judge_clears(&mut self) -> Outcome {
        match self.unclear() {
            Some(psn) if !self.soon_gives_up() => {
                self.broken(PDS_CLR_006, "CLEAR of a response with REQ_CLEAR", format!("none of PSN {psn}"))
            }
            _ => Ok(()),
        }
    }
}

/// Acknowledges a control packet of the device that takes a PSN. The cumulative PSN also speaks of other
/// packets, some of which may have been lost.
fn confirm(
    t: &mut Test<'_>,
    seen: &RxPacket,
    control: &Control,
    pdc: &Pdc,
    incoming: &mut Incoming,
) -> Outcome {
    // It may be of an earlier context with the same identifier.
    let Some(n) = Player::distance(control.psn(), pdc.start) else { return t.confirm(seen) };
    incoming.note_control(n);
    incoming.confirm(n);
    let below = incoming.below;
    let pdc = Pdc { remote: Some(control.spdcid()), ..pdc.clone() };
    let ack = pdc.ack(control.psn()).cack(pdc.start - 1 + below);
    t.send(&pdc, &AckBuilder { response: None, retx: control.retx(), ..ack }.build()?)
}
