//! Requests of the device on its contexts.

use super::{Incoming, Served};
use crate::random::coverage::{Event, State};
use crate::random::play::{Due, Player, job};
use crate::random::step::Reply;
use crate::serve::said;
use crate::{AckBuilder, Outcome, RxPacket, Show};
use std::collections::BTreeMap;
use uet_wire::catalogue::*;
use uet_wire::pds::{Nack, NackCcx, Request};
use uet_wire::registry::NackCode;
use uet_wire::{PdcId, Psn, UetBuf, Units24};

/// Codes of a target without room for a context, and of one without room for a packet.
const NO_CONTEXT: &[NackCode] = &[NackCode::NO_PDC_AVAIL, NackCode::NO_CCC_AVAIL, NackCode::NO_BITMAP];
const NO_ROOM: &[NackCode] =
    &[NackCode::NO_PKT_BUFFER, NackCode::NO_GTD_DEL_AVAIL, NackCode::NO_SES_MSG_AVAIL, NackCode::NO_RESOURCE];

impl Player<'_, '_> {
    pub(super) fn served_of(&self, seen: &RxPacket, dpdcid: PdcId) -> Option<usize> {
        self.served.iter().rposition(|it| it.pdc.local == dpdcid && it.pdc.from == seen.wire.dst)
    }

    /// Takes a request in: read data on a context of the suite, or a request of the device.
    pub(in crate::random) fn take_request(
        &mut self,
        seen: &RxPacket,
        request: Request,
        first: bool,
    ) -> Outcome {
        if let Some(dpdcid) = request.dpdcid() {
            if let Some(own) = self.own_of(seen, dpdcid) {
                return self.returned_data(own, seen, request, first);
            }
            if let Some(served) = self.served_of(seen, dpdcid) {
                return self.served_request(served, seen, request, first);
            }
            if self.strangers.contains(&dpdcid.0) {
                return Ok(());
            }
            let told = format!("dpdcid {dpdcid} to {}", seen.wire.dst);
            return self.broken(PDS_PDC_003, "a request to a context that there is", told);
        }
        let Some(start) = request.start_psn() else { return Ok(()) };
        let same = |it: &&Served| {
            it.pdc.from == seen.wire.dst
                && it.pdc.remote == Some(request.spdcid())
                && (it.pdc.start == start || it.refused_starts.contains(&start))
        };
        if let Some(served) = self.served.iter().rposition(|it| same(&it)) {
            let it = &self.served[served];
            return match it.refused_starts.contains(&start) {
                true if it.is_pending() => self.demand_start(served, request.psn()),
                true => Ok(()),
                false => self.served_request(served, seen, request, first),
            };
        }
        self.judge_start(seen, &request)?;
        let peer = self
            .peers
            .keys()
            .map(|(peer, _)| *peer)
            .find(|peer| self.t.address(self.place(*peer)).is_ok_and(|address| address == seen.wire.dst));
        let Some(peer) = peer.or_else(|| self.rendezvous_peer(seen)) else {
            let told = format!("a context to {}", seen.wire.dst);
            return self.broken(PDS_PDC_002, "requests to peers of operations", told);
        };
        let random = self.t.reported("start_psn").is_none();
        if random && self.served.iter().any(|it| it.pdc.start == start) {
            return self.broken(PDS_SYN_007, "a Start_PSN at random", format!("{start} a second time"));
        }
        let mut pdc = self.t.accept(seen)?;
        while self.own.iter().any(|own| own.pdc.local == pdc.local) {
            pdc = self.t.accept(seen)?;
        }
        let job_id = said(&seen.uet()).map_or(0, |fields| fields.address.job_id());
        self.served.push(Served {
            pdc,
            state: State::Open,
            peer,
            job: job_id.saturating_sub(job(0)) as u8 % crate::random::step::JOBS,
            incoming: Incoming::default(),
            stored: BTreeMap::new(),
            known: BTreeMap::new(),
            cleared: 0,
            returned: BTreeMap::new(),
            sent: 0,
            covered: 0,
            timer: false,
            gap_told: false,
            spoke: false,
            closed_at: None,
            refused_starts: Vec::new(),
            unfinished: None,
        });
        self.served_request(self.served.len() - 1, seen, request, first)
    }

    /// The device also reads the rest of rendezvous sends, and wants sends that it has put off.
    fn rendezvous_peer(&self, seen: &RxPacket) -> Option<u8> {
        let own = self.own.iter().find(|own| own.pdc.from == seen.wire.dst)?;
        Some(own.plan.peer)
    }

    /// Returns whether the device wants congestion state in ACKs.
    pub(in crate::random) fn states(&self) -> bool {
        self.t.claims("nscc") && !matches!(self.t.parameter_word("congestion"), Some("none" | "rccc"))
    }

    /// Returns whether even the largest window is so small that each packet asks for an ACK.
    fn asks_always(&self) -> bool {
        let (rate, rtt) = (self.t.reported("sender_rate"), self.t.reported("base_rtt"));
        let (Some(rate), Some(rtt), true) = (rate, rtt, self.states()) else { return false };
        let most = u128::from(rate) * u128::from(rtt) * 3 / (2 * 8 * 1_000_000_000);
        most < u128::from(self.t.parameter("ack_gen_trigger"))
    }

    /// `rcvd_bytes` for these bytes.
    pub(super) fn counted(&self, bytes: u64) -> Units24 {
        Units24::from_bytes(self.t.start_of_count() + bytes)
    }

    fn served_request(&mut self, served: usize, seen: &RxPacket, request: Request, first: bool) -> Outcome {
        let Some(n) = Self::distance(request.psn(), self.served[served].pdc.start) else {
            let told = format!("PSN {}", request.psn());
            return self.broken(PDS_PSN_001, "PSNs one after the other", told);
        };
        let state = self.served[served].state;
        self.coverage.seen(state, Event::Request);
        if matches!(state, State::Closed | State::Dead) {
            let it = &self.served[served];
            let code = NackCode::CLOSING;
            let nack = it.pdc.nack(code, request.psn())?;
            let pdc = it.pdc.clone();
            return if first && state == State::Closed { self.t.send(&pdc, &nack) } else { Ok(()) };
        }
        if let Some(cleared) = Self::distance(request.clear_psn() + 1, self.served[served].pdc.start) {
            self.judge_clear(served, cleared)?;
            self.clear_to(served, cleared);
        }
        if self.served[served].incoming.has(n) {
            if let Some(stored) = self.served[served].stored.get_mut(&n) {
                stored.ready = true;
            }
            return self.answer(served, n, request.retx());
        }
        let it = &mut self.served[served];
        if it.pdc.rod && n > it.incoming.below {
            let told = core::mem::replace(&mut it.gap_told, true);
            let (pdc, nack) = (it.pdc.clone(), it.pdc.nack(NackCode::ROD_OOO, request.psn())?);
            return if told { Ok(()) } else { self.t.send(&pdc, &nack) };
        }
        let now = seen.at;
        let known = it.known.entry(n).or_insert((0, now, Reply::Ack));
        let (before, last) = (known.2, known.1);
        (known.0, known.1) = (known.0 + 1, now);
        let times = known.0;
        let waited = now.saturating_sub(last);
        let timed = self.t.facts().virtual_time && self.t.parameter("fast_loss_packets") == 0;
        // Without room in the window or without credit, even a retransmission waits. The only packet has
        // room.
        let alone = self.served.len() == 1 && self.served[served].known.len() == 1;
        let waits = match self.t.parameter_word("congestion") {
            Some("none") => false,
            Some("rccc" | "both") => true,
            _ => !alone,
        };
        let due = self.t.rto() * (1 << (times.max(2) - 2).min(4));
        let late = !waits && waited > due + due / 4 + self.t.grace();
        let early = match before {
            Reply::Lost => (waited < self.t.early() * (1 << (times - 2).min(2)) || late, PDS_RTO_002),
            Reply::Busy if waited < self.t.nack_wait() => (true, PDS_NACK_006),
            Reply::Busy => {
                (waited > self.t.early() && self.t.nack_wait() * 4 < self.t.rto() && !waits, PDS_NACK_004)
            }
            _ => (false, PDS_RTO_002),
        };
        let rod = self.served[served].pdc.rod;
        if times > 1 && timed && early.0 && !rod {
            let told = format!("after {}, as transmission {times}", waited.show());
            return self.broken(early.1, "a retransmission in its time", told);
        }
        let Some(fields) = said(&seen.uet()) else {
            let told = seen.uet().to_string();
            return self.broken(SES_CUT_001, "a request of SES", told);
        };
        let post = self.post_of(&fields);
        if times == 1 {
            self.judge_order(served, n, post, &fields)?;
            if !request.ar() && self.asks_always() {
                let told = seen.uet().to_string();
                return self.broken(CC_ACKREQ_002, "ar in each packet with a window this small", told);
            }
        }
        let reply = match post {
            Some(post) if times == 1 && !self.settling => {
                let posted = &mut self.posts[post];
                posted.replies += 1;
                posted.plan.replies.get(posted.replies - 1).copied().unwrap_or_default()
            }
            // A second loss, now and then.
            Some(post) if times == 2 && before == Reply::Lost && self.posts[post].plan.seed % 3 == 0 => {
                Reply::Lost
            }
            _ => Reply::Ack,
        };
        if let Some(known) = self.served[served].known.get_mut(&n) {
            known.2 = reply;
        }
        let (pdc, psn) = (self.served[served].pdc.clone(), request.psn());
        let nack = |code| pdc.nack(code, psn);
        match reply {
            Reply::Lost => {
                self.t.note("this packet is lost");
                return Ok(());
            }
            Reply::Busy => {
                // A target without room for a context keeps nothing of it, so it has no PDCID.
                let opens = request.syn() && self.served[served].is_fresh() && psn.0 % 2 == 0;
                let codes = if opens { NO_CONTEXT } else { NO_ROOM };
                let code = codes[(psn.0 / 2) as usize % codes.len()];
                let own = if opens { PdcId::NONE } else { pdc.local };
                let there = request.spdcid();
                let packet = match n % 3 {
                    2 => UetBuf::new(
                        NackCcx::build(code)
                            .nack(|nack| nack.nack_psn(psn).spdcid(own).dpdcid(there))
                            .done()?,
                    ),
                    _ => UetBuf::new(Nack::build(code).nack_psn(psn).spdcid(own).dpdcid(there).done()?),
                };
                return self.t.send(&pdc, &packet);
            }
            Reply::Trimmed if n % 2 == 1 => return self.t.send(&pdc, &nack(NackCode::TRIMMED_LASTHOP)?),
            Reply::Trimmed => return self.t.send(&pdc, &nack(NackCode::TRIMMED)?),
            Reply::NewStart if self.t.is_secure() && request.syn() => {
                let it = &mut self.served[served];
                // A target that has forgotten its demand may demand something else.
                if it.is_fresh() && it.refused_starts.len() < 2 {
                    it.refused_starts.push(it.pdc.start);
                    it.pdc.start = Psn(it.pdc.start.0.wrapping_add(0x1234_5678));
                    it.known.clear();
                    it.unfinished = None;
                    return self.demand_start(served, psn);
                }
            }
            _ => {}
        }
        self.served[served].gap_told = false;
        self.served[served].incoming.note(n, seen.wire.bytes.len() + self.sealing);
        let stored = self.accept(served, n, seen, &fields, post, reply)?;
        self.served[served].stored.insert(n, stored);
        match reply {
            Reply::AckLost => {
                self.t.note("the ACK of this packet is lost");
                Ok(())
            }
            Reply::Late => {
                let at = self.t.now() + self.gap * 3;
                self.later(at, Due::Answer(served, n));
                Ok(())
            }
            Reply::Stale => self.answer_late(served, n, request.retx()),
            Reply::NotReady => self.t.send(&pdc, &nack(NackCode::RCVD_SES_PROCG)?),
            Reply::Null => {
                let at = self.t.now() + self.gap * 3;
                self.later(at, Due::Answer(served, n));
                self.tell_arrival(served, n, request.retx())
            }
            Reply::Bitmap => {
                let at = self.t.now() + self.gap * 3;
                self.later(at, Due::Answer(served, n));
                let cack = self.served[served].cack().min(n);
                let ack = AckBuilder { response: None, ..self.acking(served, cack.wrapping_sub(1)) };
                let below = pdc.start - 1 + cack;
                let ack = AckBuilder { psn: below, ..ack.cack(below) }.sack(pdc.psn(n), 1);
                self.t.send(&pdc, &ack.build()?)
            }
            Reply::Twice => {
                self.answer(served, n, request.retx())?;
                self.answer(served, n, request.retx())
            }
            _ => self.answer(served, n, request.retx()),
        }
    }

    pub(super) fn clear_to(&mut self, served: usize, cleared: u32) {
        let it = &mut self.served[served];
        if cleared > it.cleared && cleared <= it.incoming.below + (1 << 16) {
            it.cleared = cleared;
            // A cleared packet needs no answer any more; the default one would do.
            for (_, stored) in it.stored.range_mut(..cleared) {
                stored.guaranteed = false;
            }
        }
    }
}
