//! The contexts that the device opens, with the suite as a right target of its operations.

use super::coverage::{Event, State};
use super::message::{capability, operands};
use super::play::{Due, Player, bits, job};
use super::shown;
use super::step::{ControlKind, Posting, Reply};
use crate::serve::{SesFields, said};
use crate::{AckBuilder, Outcome, Pdc, RxPacket, Stop, Wire};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use uet_control::{Completion, Fill, Hex, Hex64, Mode, Operated, Post, PostKind, Remote, Status};
use uet_wire::catalogue::*;
use uet_wire::pds::{Ack, Control, Nack, PdsBuf, Request, Rudi};
use uet_wire::registry::{
    AckRequest, AtomicDatatype, AtomicOpcode, CtlType, NackCode, NextHdr, Opcode, ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{ExtBuf, Response, ResponseData, ResponseDataSmall, Ses, SesBuf};
use uet_wire::{PdcId, Psn, UetBuf, Units24};

/// Indices that name operations of the device.
const FIRST: u16 = 0x200;

/// The error with which the suite refuses.
const REFUSAL: ReturnCode = ReturnCode::UNCOR;

/// Packets that have come in one direction.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    got: BTreeSet<u32>,
    below: u32,
    bytes: u64,
    /// PSNs whose last ACK was lost.
    pub(super) unsure: BTreeSet<u32>,
}

impl Incoming {
    /// Notes a packet; returns whether it is new.
    pub(super) fn note(&mut self, n: u32, size: usize) -> bool {
        let new = n >= self.below && self.got.insert(n);
        if new {
            self.bytes += crate::flow::nominal(size);
        }
        while self.got.remove(&self.below) {
            self.below += 1;
        }
        new
    }

    fn has(&self, n: u32) -> bool {
        n < self.below || self.got.contains(&n)
    }
}

/// An operation of the device.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) plan: Posting,
    pub(super) operation: Operated,
    data: Vec<u8>,
    /// Bytes that have come, or that have been asked for.
    pub(super) covered: Vec<bool>,
    /// Number of different packets that the suite has accepted.
    pub(super) accepted: usize,
    replies: usize,
    id: Option<u16>,
    refused: bool,
    short: Option<u32>,
    pub(super) aborted: bool,
    tokens: Option<u32>,
    pub(super) put_off: bool,
    rest: Option<usize>,
    /// RUDI requests that have been answered.
    lone: BTreeSet<u32>,
    pub(super) waiting: Vec<u32>,
}

/// An answer that is kept.
#[derive(Clone, Debug)]
struct Stored {
    ses: Option<SesBuf>,
    payload: Vec<u8>,
    guaranteed: bool,
    ready: bool,
    marked: bool,
}

/// A packet of the return direction.
#[derive(Debug)]
struct Returned {
    ses: SesBuf,
    payload: Vec<u8>,
    tries: u32,
    due: Duration,
    done: bool,
}

/// A context that the device has opened.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) pdc: Pdc,
    pub(super) state: State,
    pub(super) peer: u8,
    pub(super) job: u8,
    incoming: Incoming,
    stored: BTreeMap<u32, Stored>,
    /// Packets that have come at least once.
    known: BTreeMap<u32, (usize, Duration, Reply)>,
    cleared: u32,
    returned: BTreeMap<u32, Returned>,
    sent: u32,
    covered: u32,
    timer: bool,
    gap_told: bool,
    pub(super) closed_at: Option<u32>,
}

impl Served {
    fn cack(&self) -> u32 {
        let held = self.stored.iter().find(|(n, it)| it.guaranteed && **n >= self.cleared || !it.ready);
        held.map_or(self.incoming.below, |(n, _)| self.incoming.below.min(*n))
    }
}

impl Player<'_, '_> {
    /// Has the device post an operation.
    pub(super) fn post(&mut self, plan: &Posting) -> Outcome {
        let needed = match plan.mode {
            Mode::Rud => "rud",
            Mode::Rod => "rod",
            Mode::Rudi => "rudi",
            Mode::Uud => "uud",
        };
        if !self.t.claims(capability(plan.kind)) || !self.t.claims(needed) {
            return Ok(());
        }
        self.coverage.operation(Event::Post(plan.kind));
        let number = self.posts.len() as u16;
        let peer = self.peer(plan.peer, plan.job)?;
        let mut plan = plan.clone();
        let key = if plan.mode == Mode::Rudi { 1 << 63 } else { 0 };
        let mut post = Post {
            mode: plan.mode,
            header_data: plan.header_data.then_some(Hex64(0xbead_0000 | u64::from(number))),
            form: plan.form,
            remote: Remote {
                key: Hex64(key | 0x5eed_0000 | u64::from(number)),
                offset: Hex64(plan.offset),
                index: FIRST + number,
                ..Remote::default()
            },
            ..Post::new(plan.kind, peer, plan.length.into())
        };
        let mut data = Fill::Seed(plan.seed).bytes(plan.length as usize);
        match (plan.kind, plan.atomic) {
            (PostKind::Atomic | PostKind::FetchAtomic, Some((opcode, datatype))) => {
                let of = (AtomicOpcode::new(opcode), AtomicDatatype::new(datatype));
                let (Some(opcode), Some(datatype)) = of else { return Ok(()) };
                if !super::arithmetic::is_known(opcode, datatype) {
                    return Ok(());
                }
                let size = crate::elements::kind(opcode, datatype).size;
                let swaps = opcode.is_compare_and_swap();
                let count = if swaps { 1 } else { (plan.length as usize / size).clamp(1, 64) };
                plan.length = (count * size) as u32;
                post.length = plan.length.into();
                let with = operands(plan.seed, opcode, datatype, count, self.is_big());
                data = self.t.elements(size, &with.values);
                post.atomic_opcode = Some(opcode.to_string());
                post.atomic_datatype = Some(datatype.to_string());
                if swaps {
                    let bytes = |value: u128| Some(Hex(value.to_be_bytes()[16 - size..].to_vec()));
                    let first = with.values.first().copied().unwrap_or_default();
                    (post.compare, post.swap) = (bytes(first), bytes(with.swap));
                    data.clear();
                }
                plan.offset &= !15;
                post.remote.offset = Hex64(plan.offset);
            }
            (PostKind::Atomic | PostKind::FetchAtomic, None) => return Ok(()),
            (PostKind::NoOp, _) => {
                (plan.length, post.length) = (0, 0);
                data.clear();
            }
            (PostKind::DeferrableSend | PostKind::DeferrableTsend, _) if plan.length == 0 => return Ok(()),
            (PostKind::Tsend | PostKind::RendezvousTsend | PostKind::DeferrableTsend, _) => {
                post.tag = Some(Hex64(bits(plan.tag)));
            }
            _ => {}
        }
        if matches!(plan.kind, PostKind::RendezvousSend | PostKind::RendezvousTsend) {
            post.eager = Some(u64::from(plan.eager.min(plan.length)));
        }
        post.want_data = matches!(plan.kind, PostKind::Read | PostKind::FetchAtomic);
        if !data.is_empty() && plan.kind != PostKind::Read {
            post.fill = Some(Fill::Hex(Hex(data.clone())));
        }
        let covered = vec![false; plan.length as usize];
        let operation = match self.t.call(post) {
            Ok(operation) => operation,
            // The device may refuse a combination, or have no room.
            Err(Stop::Skipped(_) | Stop::Inconclusive(_)) => return Ok(()),
            Err(gone) => return Err(gone),
        };
        let (now, rod) = (self.t.now(), plan.mode == Mode::Rod);
        let meets =
            |(peer, of, until): &(u8, bool, Duration)| *peer == plan.peer && *of == rod && now < *until;
        let aborted = self.aborts.iter().any(meets);
        self.posts.push(Posted {
            plan,
            operation,
            data,
            covered,
            accepted: 0,
            replies: 0,
            id: None,
            refused: false,
            short: None,
            aborted,
            tokens: None,
            put_off: false,
            rest: None,
            lone: BTreeSet::new(),
            waiting: Vec::new(),
        });
        Ok(())
    }

    fn served_of(&self, seen: &RxPacket, dpdcid: PdcId) -> Option<usize> {
        self.served.iter().rposition(|it| it.pdc.local == dpdcid && it.pdc.from == seen.wire.dst)
    }

    /// Takes a request in: read data on a context of the suite, or a request of the device.
    pub(super) fn take_request(&mut self, seen: &RxPacket, request: Request, first: bool) -> Outcome {
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
            it.pdc.from == seen.wire.dst && it.pdc.remote == Some(request.spdcid()) && it.pdc.start == start
        };
        if let Some(served) = self.served.iter().rposition(|it| same(&it)) {
            return self.served_request(served, seen, request, first);
        }
        let peer = self
            .peers
            .keys()
            .map(|(peer, _)| *peer)
            .find(|peer| self.t.address(self.place(*peer)).is_ok_and(|address| address == seen.wire.dst));
        let Some(peer) = peer.or_else(|| self.rendezvous_peer(seen)) else {
            let told = format!("a context to {}", seen.wire.dst);
            return self.broken(PDS_PDC_002, "requests to peers of operations", told);
        };
        let random = self.t.device().parameters.get("start_psn").is_none_or(|it| it.is_null());
        if random && self.served.iter().any(|it| it.pdc.start == start) {
            return self.broken(PDS_SYN_007, "a Start_PSN at random", format!("{start} a second time"));
        }
        let pdc = self.t.accept(seen)?;
        let job_id = said(&seen.uet()).map_or(0, |fields| fields.address.job_id());
        self.served.push(Served {
            pdc,
            state: State::Open,
            peer,
            job: job_id.saturating_sub(job(0)) as u8 % super::step::JOBS,
            incoming: Incoming::default(),
            stored: BTreeMap::new(),
            known: BTreeMap::new(),
            cleared: 0,
            returned: BTreeMap::new(),
            sent: 0,
            covered: 0,
            timer: false,
            gap_told: false,
            closed_at: None,
        });
        self.served_request(self.served.len() - 1, seen, request, first)
    }

    /// The device also reads the rest of rendezvous sends, and wants sends that it has put off.
    fn rendezvous_peer(&self, seen: &RxPacket) -> Option<u8> {
        let own = self.own.iter().find(|own| own.pdc.from == seen.wire.dst)?;
        Some(own.plan.peer)
    }

    /// Takes read data on the return direction of a context of the suite in.
    fn returned_data(&mut self, own: usize, seen: &RxPacket, request: Request, first: bool) -> Outcome {
        let Some(n) = Self::distance(request.psn(), self.own[own].pdc.start) else {
            let told = format!("PSN {} on a context from {}", request.psn(), self.own[own].pdc.start);
            return self.broken(PDS_SYN_008, "a return direction from Start_PSN on", told);
        };
        let state = self.own[own].state;
        self.coverage.seen(state, Event::Data);
        let (message, offset, total, code) = match seen.uet().ses {
            Some(Ses::ResponseData(data)) => {
                let id = data.read_request_message_id();
                let found = self.messages.iter().rposition(|it| it.id == id && it.plan.context == own);
                (
                    found,
                    data.message_offset() as usize,
                    Some(data.modified_length()),
                    data.head().return_code(),
                )
            }
            Some(Ses::ResponseDataSmall(data)) => {
                let n = Self::distance(data.original_request_psn(), self.own[own].pdc.start);
                let found = match n.and_then(|n| self.what(own, n)) {
                    Some(super::source::What::Part(message, _)) => Some(message),
                    _ => None,
                };
                (found, 0, None, data.head().return_code())
            }
            _ => return Ok(()),
        };
        let fate = match message.filter(|_| first && !self.settling) {
            Some(message) => self.messages[message].answer_fate(),
            None => super::step::Fate::Arrives,
        };
        use super::step::Fate;
        if fate == Fate::Lost {
            return Ok(());
        }
        let new = self.own[own].incoming.note(n, seen.wire.bytes.len());
        let below = self.own[own].incoming.below;
        if fate == Fate::Late {
            self.own[own].incoming.unsure.insert(n);
        } else {
            // The cumulative PSN speaks of others, too.
            self.own[own].incoming.unsure.retain(|unsure| *unsure >= below && *unsure != n);
            let (mut pdc, bytes) = (self.own[own].pdc.clone(), self.own[own].incoming.bytes);
            // The ACK that names the device's side may have been lost.
            pdc.remote.get_or_insert(request.spdcid());
            let ack = pdc.ack(pdc.psn(n)).cack(pdc.start - 1 + below);
            let ack = AckBuilder {
                retx: request.retx(),
                marked: seen.wire.marked,
                nscc: self.states().then(|| (Units24::from_bytes(bytes), 0)),
                ..ack
            };
            self.t.send(&pdc, &ack.build()?)?;
        }
        if new {
            let Some(message) = message else {
                let told = seen.uet().to_string();
                return self.broken(SES_READ_005, "data of a read", told);
            };
            if code == ReturnCode::OK || code == ReturnCode::NULL {
                let length = self.messages[message].plan.length;
                if let Some(total) = total.filter(|total| *total != length) {
                    let told = format!("{total} of {length}");
                    return self.broken(SES_READ_007, "modified_length of the whole read", told);
                }
                self.data_in(message, offset, seen.payload())?;
            }
        }
        self.close_if_quiet(own)
    }

    /// Returns whether the device wants congestion state in ACKs.
    fn states(&self) -> bool {
        self.t.claims("nscc")
            && !matches!(self.t.parameter_word("congestion").as_deref(), Some("none" | "rccc"))
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
        // Without room in the window or without credit, even a retransmission waits. The only packet has room.
        let alone = self.served.len() == 1 && self.served[served].known.len() == 1;
        let waits = match self.t.parameter_word("congestion").as_deref() {
            Some("none") => false,
            Some("rccc" | "both") => true,
            _ => !alone,
        };
        let early = match before {
            Reply::Lost => (waited < self.t.early() * (1 << (times - 2).min(2)), PDS_RTO_002),
            Reply::Busy if waited < self.t.nack_wait() => (true, PDS_NACK_006),
            Reply::Busy => {
                (waited > self.t.early() && self.t.nack_wait() * 4 < self.t.rto() && !waits, PDS_NACK_004)
            }
            _ => (false, PDS_RTO_002),
        };
        let rod = self.served[served].pdc.rod;
        if times > 1 && timed && early.0 && !rod {
            let told = format!("after {waited:?}, as transmission {times}");
            return self.broken(early.1, "a retransmission in its time", told);
        }
        let Some(fields) = said(&seen.uet()) else {
            let told = seen.uet().to_string();
            return self.broken(SES_CUT_001, "a request of SES", told);
        };
        let post = self.post_of(&fields);
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
            Reply::Busy => return self.t.send(&pdc, &nack(NackCode::NO_PKT_BUFFER)?),
            Reply::Trimmed => return self.t.send(&pdc, &nack(NackCode::TRIMMED)?),
            _ => {}
        }
        self.served[served].gap_told = false;
        self.served[served].incoming.note(n, seen.wire.bytes.len());
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
            Reply::NotReady => self.t.send(&pdc, &nack(NackCode::RCVD_SES_PROCG)?),
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

    fn clear_to(&mut self, served: usize, cleared: u32) {
        let it = &mut self.served[served];
        if cleared > it.cleared && cleared <= it.incoming.below + (1 << 16) {
            it.cleared = cleared;
            // A cleared packet needs no answer any more; the default one would do.
            for (_, stored) in it.stored.range_mut(..cleared) {
                stored.guaranteed = false;
            }
        }
    }

    fn post_of(&self, fields: &SesFields) -> Option<usize> {
        let number = fields.address.resource_index().checked_sub(FIRST)?;
        (usize::from(number) < self.posts.len()).then_some(number.into())
    }

    fn acking(&self, served: usize, n: u32) -> AckBuilder {
        let it = &self.served[served];
        let nscc = self.states().then(|| (Units24::from_bytes(it.incoming.bytes), 0));
        AckBuilder { nscc, ..it.pdc.ack(it.pdc.psn(n)).cack(it.pdc.start - 1 + it.cack()) }
    }

    /// Acknowledges a packet with its answer.
    pub(super) fn answer(&mut self, served: usize, n: u32, retx: bool) -> Outcome {
        let it = &mut self.served[served];
        if matches!(it.state, State::Dead) || !it.incoming.has(n) {
            return Ok(());
        }
        let stored = it.stored.get_mut(&n).map(|stored| {
            stored.ready = true;
            stored.clone()
        });
        let pdc = it.pdc.clone();
        let ack = AckBuilder { retx, ..self.acking(served, n) };
        let mut packet = match &stored {
            Some(stored) => {
                let request = match stored.guaranteed {
                    true => AckRequest::REQ_CLEAR,
                    false => AckRequest::NO_REQUEST,
                };
                AckBuilder { request, marked: stored.marked, ..ack }.build()?
            }
            None => ack.build()?,
        };
        if let Some(stored) = stored.filter(|stored| stored.ses.is_some()) {
            (packet.ses, packet.payload) = (stored.ses, stored.payload);
            packet = packet.consistent();
        }
        self.t.send(&pdc, &packet)
    }

    /// Accepts a request of the device; returns what it is answered.
    fn accept(
        &mut self,
        served: usize,
        n: u32,
        seen: &RxPacket,
        fields: &SesFields,
        post: Option<usize>,
        reply: Reply,
    ) -> Result<Stored, Stop> {
        let plain = Stored {
            ses: None,
            payload: Vec::new(),
            guaranteed: false,
            ready: !matches!(reply, Reply::NotReady),
            marked: reply == Reply::Marked || seen.wire.marked,
        };
        let Some(post) = post else {
            return self.unposted(served, n, fields).map(|stored| stored.unwrap_or(plain));
        };
        let rod = self.served[served].pdc.rod;
        self.judge_part(post, seen, fields, Some(rod))?;
        let respond = |code, length| -> Result<Option<SesBuf>, Stop> {
            let response = Response::build(ResponseOpcode::UET_RESPONSE, code);
            let response =
                response.message_id(fields.message_id.unwrap_or(0)).job_id(fields.address.job_id());
            Ok(Some(response.modified_length(length).done()?.into()))
        };
        let posted = &mut self.posts[post];
        posted.accepted += 1;
        if reply == Reply::Refused || posted.refused {
            posted.refused = true;
            return Ok(Stored { ses: respond(REFUSAL, 0)?, guaranteed: true, ..plain });
        }
        let deferrable = matches!(posted.plan.kind, PostKind::DeferrableSend | PostKind::DeferrableTsend);
        if deferrable {
            let again = fields.tokens.is_some_and(|(_, target)| target != 0);
            if reply == Reply::PutOff && fields.head.eom() && fields.head.som() && !again {
                posted.put_off = true;
                posted.tokens = fields.tokens.map(|(own, _)| own);
                posted.covered.fill(false);
                posted.id = None;
                let at = self.t.now() + self.gap * 8;
                self.later(at, Due::Want(post));
                return Ok(Stored { ses: respond(ReturnCode::OK, 0)?, ..plain });
            }
        }
        let whole = posted.plan.length;
        let sends = matches!(posted.plan.kind, PostKind::Send | PostKind::Tsend | PostKind::Write);
        if reply == Reply::Short && fields.head.eom() && whole > 1 && sends {
            posted.short = Some(whole / 2);
            return Ok(Stored { ses: respond(ReturnCode::OK, whole / 2)?, ..plain });
        }
        let (offset, length) = (fields.start(), self.wanted_length(fields));
        let posted = &self.posts[post];
        match posted.plan.kind {
            PostKind::Read | PostKind::FetchAtomic if whole > 0 => {
                let all = Fill::Seed(posted.plan.seed ^ 0xda7a).bytes(whole as usize);
                let data = all.get(offset..offset + length).unwrap_or_default().to_vec();
                let small = whole as u64 <= self.t.parameter("max_ack_data_size");
                let psn = self.served[served].pdc.psn(n);
                let ses = data_header(fields, psn, data.len(), whole as usize, offset)?;
                if small {
                    return Ok(Stored { ses: Some(ses), payload: data, guaranteed: true, ..plain });
                }
                self.give(served, ses, data)?;
                Ok(plain)
            }
            PostKind::RendezvousSend | PostKind::RendezvousTsend => {
                self.read_rest(post, fields)?;
                Ok(plain)
            }
            _ => Ok(plain),
        }
    }

    fn wanted_length(&self, fields: &SesFields) -> usize {
        match fields.payload_length {
            Some(length) if !fields.head.som() => length.into(),
            _ => (fields.request_length as usize).min(self.t.mtu()),
        }
    }

    /// Answers a request that is none of a posted operation.
    fn unposted(&mut self, served: usize, n: u32, fields: &SesFields) -> Result<Option<Stored>, Stop> {
        let index = usize::from(fields.address.resource_index());
        match fields.opcode() {
            Opcode::UET_DEFERRABLE_RTR => {
                let Some(tokens) = fields.tokens else { return Ok(None) };
                let turned = self.t.word("ready_tokens") == Some("sender_first");
                let (own, target) = if turned { (tokens.1, tokens.0) } else { tokens };
                self.wanted(own, target)?;
                Ok(None)
            }
            Opcode::UET_READ if index >= 0xc00 => {
                let message = index - 0xc00;
                let length = self.wanted_length(fields);
                let Some(sending) = self.messages.get(message) else { return Ok(None) };
                let eager = sending.data.len();
                let all = Fill::Seed(sending.plan.seed).bytes(sending.plan.length as usize);
                let (whole, start) = (fields.request_length as usize, fields.start());
                // The place of the rest is 0x4000, whatever has come with the request.
                let from = fields.buffer_offset.map_or(0, |offset| offset.wrapping_sub(0x4000) as usize);
                let _ = eager;
                let first = eager + from + start;
                let Some(data) = all.get(first..first + length) else {
                    let told = format!("{length} bytes at {first} of {}", all.len());
                    self.broken(SES_RNDV_002, "a read of the rest of a rendezvous send", told)?;
                    return Ok(None);
                };
                let psn = self.served[served].pdc.psn(n);
                let ses = data_header(fields, psn, length, whole, start)?;
                let data = data.to_vec();
                self.give(served, ses, data)?;
                Ok(None)
            }
            opcode => {
                let told = format!("{opcode} for index {index:#x}");
                self.broken(SES_ADDR_002, "requests of posted operations", told)?;
                Ok(None)
            }
        }
    }

    /// Judges a packet of an operation of the device.
    fn judge_part(&mut self, post: usize, seen: &RxPacket, fields: &SesFields, rod: Option<bool>) -> Outcome {
        let mtu = self.t.mtu();
        let length = self.wanted_length(fields);
        let job_id = job(self.posts[post].plan.job);
        let to = self.t.address(self.place(self.posts[post].plan.peer))?;
        let posted = &mut self.posts[post];
        let plan = &posted.plan;
        let told = seen.uet().to_string();
        let wanted = match plan.kind {
            PostKind::Write => Opcode::UET_WRITE,
            PostKind::Read => Opcode::UET_READ,
            PostKind::Send => Opcode::UET_SEND,
            PostKind::Tsend => Opcode::UET_TAGGED_SEND,
            PostKind::Datagram => self.t.datagram_opcode(),
            PostKind::Atomic => Opcode::UET_ATOMIC,
            PostKind::FetchAtomic => Opcode::UET_FETCHING_ATOMIC,
            PostKind::RendezvousSend => Opcode::UET_RENDEZVOUS_SEND,
            PostKind::RendezvousTsend => Opcode::UET_RENDEZVOUS_TSEND,
            PostKind::DeferrableSend => Opcode::UET_DEFERRABLE_SEND,
            PostKind::DeferrableTsend => Opcode::UET_DEFERRABLE_TSEND,
            PostKind::NoOp => Opcode::UET_NO_OP,
        };
        let opcode = fields.opcode();
        if opcode == Opcode::UET_MSG_ERROR || fields.head.ie() {
            posted.aborted = true;
            return Ok(());
        }
        let by_key =
            matches!(plan.kind, PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic);
        let number = u64::from(fields.address.resource_index() - FIRST);
        let key = if plan.mode == Mode::Rudi { 1 << 63 } else { 0 } | 0x5eed_0000 | number;
        let (start, whole) = (fields.start(), plan.length);
        let tag = match plan.kind {
            PostKind::Tsend | PostKind::RendezvousTsend | PostKind::DeferrableTsend => Some(bits(plan.tag)),
            _ => None,
        };
        let header_data = plan.header_data.then_some(0xbead_0000 | number);
        let wrong = if seen.wire.dst != to {
            Some((PDS_PDC_002, "packets to the peer of the operation"))
        } else if rod.is_some_and(|rod| rod != (plan.mode == Mode::Rod)) {
            Some((PDS_PDC_002, "packets of the mode of the operation"))
        } else if opcode != wanted {
            Some((SES_CUT_003, "the opcode of the operation"))
        } else if fields.address.job_id() != job_id {
            Some((SES_ADDR_001, "the job of the operation"))
        } else if fields.request_length != whole && plan.kind != PostKind::NoOp {
            Some((SES_CUT_003, "the length of the operation"))
        } else if by_key && fields.memory_key.is_some_and(|it| it != key) {
            Some((SES_MEM_001, "the memory key of the operation"))
        } else if by_key && fields.buffer_offset.is_some_and(|it| it != plan.offset) {
            Some((SES_CUT_006, "the offset of the operation"))
        } else if tag.is_some() && fields.match_bits.is_some_and(|it| Some(it) != tag) {
            Some((SES_MATCH_001, "the match bits of the operation"))
        } else if start % mtu != 0 {
            Some((SES_CUT_001, "a packet at a multiple of the MTU"))
        } else if fields.head.som() != (start == 0) {
            Some((SES_CUT_002, "som in the first packet alone"))
        } else if fields.form == uet_control::Form::Std
            && fields.head.eom()
                != (start + length.max(seen.payload().len()) >= whole as usize
                    || posted.data.len() > whole as usize)
            && plan.kind != PostKind::RendezvousSend
            && plan.kind != PostKind::RendezvousTsend
        {
            Some((SES_CUT_002, "eom in the last packet alone"))
        } else if fields.head.som()
            && header_data.is_some()
            && matches!(plan.kind, PostKind::Send | PostKind::Tsend)
            && fields.form != uet_control::Form::Small
            && fields.header_data != header_data
        {
            Some((SES_CUT_005, "the header data of the operation"))
        } else {
            None
        };
        if let Some((requirement, expected)) = wrong {
            return self.broken(requirement, expected, told);
        }
        let posted = &mut self.posts[post];
        if let Some(id) = fields.message_id.filter(|_| posted.plan.kind != PostKind::Datagram) {
            let known = *posted.id.get_or_insert(id);
            // A new attempt on another context may have another id.
            if known != id && start != 0 && !posted.aborted {
                return self.broken(SES_CUT_003, "one message_id", told);
            }
            posted.id = Some(id);
        }
        let rendezvous = matches!(posted.plan.kind, PostKind::RendezvousSend | PostKind::RendezvousTsend);
        let carries = !matches!(posted.plan.kind, PostKind::Read | PostKind::NoOp) && !posted.data.is_empty();
        if carries {
            let eager = match fields.ext {
                Some(ExtBuf::Rendezvous(ext)) if rendezvous => Some(ext.eager_length() as usize),
                _ => None,
            };
            let piece = (posted.data.len().min(eager.unwrap_or(usize::MAX))).saturating_sub(start).min(mtu);
            let expected = posted.data.get(start..start + piece).unwrap_or_default();
            if expected != seen.payload() {
                let at = expected.iter().zip(seen.payload()).position(|(one, other)| one != other);
                let told =
                    format!("{} bytes, not {}; differs at {at:?}: {told}", seen.payload().len(), piece);
                return self.broken(SES_PLACE_001, "the bytes of the operation at their place", told);
            }
        }
        if let Some(ExtBuf::CompareSwap(_)) = fields.ext {
            self.judge_swap(post, fields)?;
        }
        let posted = &mut self.posts[post];
        // The rest of a rendezvous send is read.
        let end = if rendezvous { usize::MAX } else { start + length }.min(posted.covered.len());
        posted.covered.get_mut(start..end).unwrap_or_default().fill(true);
        Ok(())
    }

    fn judge_swap(&mut self, post: usize, fields: &SesFields) -> Outcome {
        let plan = &self.posts[post].plan;
        let (Some((opcode, datatype)), Some(ExtBuf::CompareSwap(ext))) = (plan.atomic, fields.ext) else {
            return Ok(());
        };
        let of = (AtomicOpcode::new(opcode), AtomicDatatype::new(datatype));
        let (Some(opcode), Some(datatype)) = of else { return Ok(()) };
        let with = operands(plan.seed, opcode, datatype, 1, false);
        let expected = (with.values.first().copied().unwrap_or_default(), with.swap);
        let seen = (ext.compare_value(), ext.swap_value());
        match seen == expected {
            true => Ok(()),
            false => self.broken(SES_AMO_009, &format!("operands {expected:x?}"), format!("{seen:x?}")),
        }
    }

    /// Sends a packet on the return direction.
    fn give(&mut self, served: usize, ses: SesBuf, payload: Vec<u8>) -> Outcome {
        let due = self.t.now() + self.t.rto() * 2 + self.t.soon() / 16;
        let it = &mut self.served[served];
        let n = it.sent;
        it.sent += 1;
        it.returned.insert(n, Returned { ses, payload, tries: 0, due, done: false });
        self.give_packet(served, n)?;
        self.arm_served(served);
        Ok(())
    }

    fn give_packet(&mut self, served: usize, n: u32) -> Outcome {
        let it = &self.served[served];
        let Some(returned) = it.returned.get(&n) else { return Ok(()) };
        let clear = it.pdc.start - 1 + it.covered;
        let request = it.pdc.request(n).ses(returned.ses, &returned.payload).clear(clear);
        let request = crate::Request { retx: returned.tries > 0, ..request };
        let pdc = it.pdc.clone();
        self.t.send(&pdc, &request.build()?)
    }

    fn arm_served(&mut self, served: usize) {
        let it = &self.served[served];
        let next = it.returned.values().filter(|it| !it.done).map(|it| it.due).min();
        if let (Some(next), false) = (next, it.timer) {
            self.served[served].timer = true;
            self.later(next, Due::Served(served));
        }
    }

    pub(super) fn served_timer(&mut self, served: usize) -> Outcome {
        self.served[served].timer = false;
        if matches!(self.served[served].state, State::Closed | State::Dead) {
            return Ok(());
        }
        let (now, rto) = (self.t.now(), self.t.rto());
        let due: Vec<u32> = self.served[served]
            .returned
            .iter_mut()
            .filter(|(_, it)| !it.done && it.due <= now)
            .map(|(n, it)| {
                it.tries += 1;
                it.due = now + rto * (2 << it.tries.min(6));
                *n
            })
            .collect();
        for n in due {
            if self.served[served].returned.get(&n).is_some_and(|it| it.tries > 9) {
                let told = format!("none to 10 transmissions of return packet {n}");
                return self.broken(PDS_ACK_011, "an ACK of read data", told);
            }
            self.give_packet(served, n)?;
        }
        self.arm_served(served);
        Ok(())
    }

    /// Takes an ACK in: of a context of the suite, or of read data on a context of the device.
    pub(super) fn take_ack(&mut self, seen: &RxPacket, ack: Ack, first: bool) -> Outcome {
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
    pub(super) fn take_nack(&mut self, seen: &RxPacket, nack: Nack) -> Outcome {
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
        }
        Ok(())
    }

    /// Takes a control packet in.
    pub(super) fn take_control(&mut self, seen: &RxPacket, control: &Control) -> Outcome {
        let kind = control.ctl_type();
        let to = control.dpdcid();
        if let Some(own) = to.and_then(|to| self.own_of(seen, to)) {
            return self.own_control(own, kind);
        }
        let Some(served) = to.and_then(|to| self.served_of(seen, to)) else { return Ok(()) };
        let it = &mut self.served[served];
        let state = it.state;
        self.coverage.seen(state, Event::control(kind));
        let (pdc, psn) = (it.pdc.clone(), control.psn());
        let n = Self::distance(psn, pdc.start);
        match kind {
            CtlType::NOOP | CtlType::NEGOTIATION => {
                // It takes a PSN. The suite has acknowledged it.
                if let Some(n) = n {
                    it.incoming.note(n, seen.wire.bytes.len());
                }
                Ok(())
            }
            CtlType::CLOSE_COMMAND => {
                let Some(n) = n else { return Ok(()) };
                if state == State::Open && n != it.incoming.below && !it.incoming.has(n) {
                    let told = format!("CLOSE_COMMAND takes PSN {n}, {} have come", it.incoming.below);
                    return self.broken(PDS_CLOSE_001, "a close when every request is acknowledged", told);
                }
                it.incoming.note(n, seen.wire.bytes.len());
                (it.state, it.closed_at) = (State::Closed, Some(n));
                it.returned.values_mut().for_each(|it| it.done = true);
                let ack = AckBuilder { response: None, retx: control.retx(), ..pdc.ack(psn) };
                self.t.send(&pdc, &ack.build()?)
            }
            CtlType::CLEAR_COMMAND => {
                let cleared = Psn(control.payload()) + 1;
                if let Some(cleared) = Self::distance(cleared, pdc.start) {
                    self.clear_to(served, cleared);
                }
                Ok(())
            }
            CtlType::ACK_REQUEST => {
                let Some(n) = n else { return Ok(()) };
                match self.served[served].incoming.has(n) {
                    true => self.answer(served, n, false),
                    false => self.t.send(&pdc, &pdc.nack(NackCode::PKT_NOT_RCVD, psn)?),
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

    /// Takes a datagram of the device in.
    pub(super) fn take_datagram(&mut self, seen: &RxPacket) -> Outcome {
        let Some(fields) = said(&seen.uet()) else { return Ok(()) };
        let Some(post) = self.post_of(&fields) else { return Ok(()) };
        self.posts[post].accepted += 1;
        self.judge_part(post, seen, &fields, None)
    }

    /// Takes a RUDI request of the device in.
    pub(super) fn take_lone_request(&mut self, seen: &RxPacket, rudi: &Rudi, first: bool) -> Outcome {
        let Some(fields) = said(&seen.uet()) else { return Ok(()) };
        self.coverage.operation(Event::RudiRequest);
        let Some(post) = self.post_of(&fields) else {
            let told = format!("{} for {:#x}", fields.opcode(), fields.address.resource_index());
            return self.broken(PDS_RUDI_001, "a request of a posted operation", told);
        };
        let id = rudi.pkt_id();
        self.posts[post].lone.insert(id);
        self.judge_part(post, seen, &fields, None)?;
        let posted = &mut self.posts[post];
        let reply = match first && !self.settling && !rudi.retx() {
            true => {
                posted.replies += 1;
                posted.plan.replies.get(posted.replies - 1).copied().unwrap_or_default()
            }
            false => Reply::Ack,
        };
        let (from, to) = (seen.wire.dst, seen.wire.src);
        let wire = |packet: UetBuf| Wire::new(from, to, seen.wire.entropy, packet.to_bytes());
        let code = match reply {
            Reply::Lost | Reply::AckLost => {
                self.posts[post].waiting.push(id);
                return Ok(());
            }
            Reply::Busy | Reply::Trimmed => {
                let code = if reply == Reply::Busy { NackCode::NO_PKT_BUFFER } else { NackCode::TRIMMED };
                let nack = Nack::build(code).nt(true).nack_pkt_id(id).done()?;
                return self.t.send_wire(&wire(UetBuf::new(nack)));
            }
            Reply::Refused => {
                self.posts[post].refused = true;
                REFUSAL
            }
            _ => ReturnCode::OK,
        };
        self.posts[post].accepted += 1;
        self.posts[post].waiting.retain(|waiting| *waiting != id);
        let whole = self.posts[post].plan.length as usize;
        let header = |next| Rudi::response(id).retx(rudi.retx()).prologue(|prologue| prologue.next_hdr(next));
        let mut packet = UetBuf::default();
        if code == ReturnCode::OK && self.posts[post].plan.kind == PostKind::Read && whole > 0 {
            let all = Fill::Seed(self.posts[post].plan.seed ^ 0xda7a).bytes(whole);
            let (start, length) = (fields.start(), self.wanted_length(&fields));
            let data = all.get(start..start + length).unwrap_or_default().to_vec();
            packet.pds = Some(header(NextHdr::UET_HDR_RESPONSE_DATA).done()?.into());
            let ses = ResponseData::build()
                .response_message_id(0x4444)
                .job_id(fields.address.job_id())
                .read_request_message_id(fields.message_id.unwrap_or(0))
                .payload_length(data.len() as u16)
                .modified_length(whole as u32)
                .message_offset(start as u32)
                .done()?;
            (packet.ses, packet.payload) = (Some(ses.into()), data);
            packet = packet.consistent();
        } else {
            let opcode = match code {
                ReturnCode::OK => ResponseOpcode::UET_DEFAULT_RESPONSE,
                _ => ResponseOpcode::UET_RESPONSE,
            };
            let response = Response::build(opcode, code).job_id(fields.address.job_id());
            let response = response.message_id(fields.message_id.unwrap_or(0));
            packet.pds = Some(header(NextHdr::UET_HDR_RESPONSE).done()?.into());
            packet.ses = Some(response.done()?.into());
        }
        let wire = wire(packet);
        if reply == Reply::Late {
            let at = self.t.now() + self.gap * 3;
            self.later(at, Due::Deliver(wire));
            return Ok(());
        }
        self.t.send_wire(&wire)?;
        if reply == Reply::Twice { self.t.send_wire(&wire) } else { Ok(()) }
    }

    /// Sends a control packet on a context that the device has opened.
    pub(super) fn ask(&mut self, target: usize, kind: ControlKind) -> Outcome {
        let open: Vec<usize> =
            (0..self.served.len()).filter(|served| self.served[*served].state == State::Open).collect();
        let Some(served) = open.get(target % open.len().max(1)).copied() else { return Ok(()) };
        self.coverage.seen(State::Open, Event::Ask(kind));
        let it = &self.served[served];
        let pdc = it.pdc.clone();
        let packet = match kind {
            ControlKind::ClearRequest => pdc.control(CtlType::CLEAR_REQUEST, Psn(0), 0)?,
            ControlKind::Probe => pdc.probe(0x7a11, pdc.start)?,
            _ => return Ok(()),
        };
        self.t.send(&pdc, &packet)
    }

    /// Ends a context that the device has opened with a NACK for a packet that waits, or for the last one.
    pub(super) fn abort(&mut self, target: usize, code: u8) -> Outcome {
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

    /// Reads the rest of a rendezvous send of the device.
    fn read_rest(&mut self, post: usize, fields: &SesFields) -> Outcome {
        let Some(ExtBuf::Rendezvous(ext)) = fields.ext else { return Ok(()) };
        let whole = self.posts[post].plan.length;
        if ext.eager_length() >= whole || self.posts[post].rest.is_some() {
            return Ok(());
        }
        let peer = self.posts[post].plan.peer;
        let number = self.posts[post].plan.job;
        let context = self
            .own
            .iter()
            .position(|own| own.plan.peer == peer && own.plan.job == number && own.state != State::Closing);
        let context = match context {
            Some(context) => context,
            None => {
                let plan = super::step::ContextPlan {
                    peer,
                    job: number,
                    rod: false,
                    pdcid: 0x5000 + post as u16,
                    start: 0x1000_0000,
                };
                let own = super::source::Own::new(self, plan)?;
                self.own.push(own);
                self.own.len() - 1
            }
        };
        let rest = self.rest_of(post, fields, &ext, context)?;
        self.posts[post].rest = Some(rest);
        Ok(())
    }

    /// Tells the device that a send that was put off is wanted.
    pub(super) fn want(&mut self, post: usize) -> Outcome {
        let Some(token) = self.posts[post].tokens else { return Ok(()) };
        let (peer, number) = (self.posts[post].plan.peer, self.posts[post].plan.job);
        let context = self
            .own
            .iter()
            .position(|own| own.plan.peer == peer && own.plan.job == number && own.state != State::Closing);
        let context = match context {
            Some(context) => context,
            None => {
                let plan = super::step::ContextPlan {
                    peer,
                    job: number,
                    rod: false,
                    pdcid: 0x6000 + post as u16,
                    start: 0x2000_0000,
                };
                let own = super::source::Own::new(self, plan)?;
                self.own.push(own);
                self.own.len() - 1
            }
        };
        self.ready(context, token, 0x99 + post as u32)
    }

    /// Judges a completion that comes while the conversation goes on.
    pub(super) fn completed_early(&mut self, completion: &Completion) -> Outcome {
        let Some(post) = self.posts.iter().position(|it| it.operation.operation == completion.operation)
        else {
            return Ok(());
        };
        let posted = &self.posts[post];
        let plan = &posted.plan;
        let told = format!("{} of {}", shown(completion), shown(plan));
        if completion.status != Status::Ok || plan.mode == Mode::Uud {
            return Ok(());
        }
        if plan.kind != PostKind::NoOp && posted.covered.iter().any(|covered| !covered)
            || posted.accepted == 0 && plan.mode != Mode::Rudi
        {
            return self.broken(SES_DONE_001, "no completion before all packets are answered", told);
        }
        if posted.refused && !posted.aborted {
            return self.broken(SES_ERR_003, "an operation that ends with the error", told);
        }
        Ok(())
    }

    /// Returns whether the device gives packets up that the peer of a conversation loses or refuses.
    pub(super) fn soon_gives_up(&self) -> bool {
        ["max_rto_retx_cnt", "max_nack_retx_cnt"].iter().any(|name| self.t.parameter(name) < 4)
    }

    /// Returns a PSN whose response the device has not cleared.
    pub(super) fn unclear(&self) -> Option<Psn> {
        let open = self.served.iter().filter(|it| it.state == State::Open);
        open.into_iter().find_map(|it| {
            let held = it.stored.iter().find(|(n, stored)| stored.guaranteed && **n >= it.cleared);
            held.map(|(n, _)| it.pdc.psn(*n))
        })
    }

    /// Judges that the device has cleared what the suite has asked it to clear.
    pub(super) fn judge_clears(&mut self) -> Outcome {
        match self.unclear() {
            Some(psn) if !self.soon_gives_up() => {
                self.broken(PDS_CLR_006, "CLEAR of a response with REQ_CLEAR", format!("none of PSN {psn}"))
            }
            _ => Ok(()),
        }
    }

    /// Judges how an operation of the device has ended.
    pub(super) fn judge_post(&mut self, post: usize) -> Outcome {
        let operation = self.posts[post].operation;
        let ended = self.t.completion(operation, Duration::ZERO)?;
        let posted = &self.posts[post];
        let plan = &posted.plan;
        let Some(ended) = ended else {
            let told = format!("none of {}", shown(plan));
            return self.broken(SES_DONE_001, "a completion of every operation", told);
        };
        let told = format!("{} of {}", shown(&ended), shown(plan));
        if posted.aborted {
            return Ok(());
        }
        if posted.refused {
            let right = ended.status == Status::Refused
                && ended.return_code.as_deref().is_none_or(|code| code == REFUSAL.to_string());
            return if right {
                Ok(())
            } else {
                self.broken(SES_ERR_003, "an operation that is refused", told)
            };
        }
        let length = posted.short.unwrap_or(plan.length);
        if self.soon_gives_up() && ended.status == Status::Failed && !plan.replies.is_empty() {
            return Ok(());
        }
        if ended.status != Status::Ok {
            return self.broken(SES_DONE_001, "an operation that ends well", told);
        }
        if ended.length != u64::from(length) && plan.kind != PostKind::NoOp && plan.mode != Mode::Uud {
            return self.broken(SES_RESP_004, &format!("a completion with length {length}"), told);
        }
        if matches!(plan.kind, PostKind::Read | PostKind::FetchAtomic) {
            let expected = Fill::Seed(plan.seed ^ 0xda7a).bytes(plan.length as usize);
            if let Some(Hex(data)) = &ended.data {
                if *data != expected {
                    let at = data.iter().zip(&expected).position(|(one, other)| one != other);
                    let told = format!("{} bytes, differs at {at:?}", data.len());
                    return self.broken(SES_READ_001, "the data that the peer returned", told);
                }
            }
        }
        Ok(())
    }
}

/// The header of read data for a request of the device.
fn data_header(
    fields: &SesFields,
    psn: Psn,
    length: usize,
    total: usize,
    offset: usize,
) -> Result<SesBuf, Stop> {
    let job = fields.address.job_id();
    Ok(match fields.message_id {
        Some(id) => ResponseData::build()
            .response_message_id(0x4444)
            .job_id(job)
            .read_request_message_id(id)
            .payload_length(length as u16)
            .modified_length(total as u32)
            .message_offset(offset as u32)
            .done()?
            .into(),
        None => ResponseDataSmall::build()
            .payload_length(length as u16)
            .job_id(job)
            .original_request_psn(psn)
            .done()?
            .into(),
    })
}

impl Posted {
    /// The rest of a rendezvous send.
    pub(super) fn rest_data(&self, eager: usize) -> Vec<super::shadow::Cell> {
        let rest = self.data.get(eager..).unwrap_or_default();
        rest.iter().map(|byte| super::shadow::Cell::Is(*byte)).collect()
    }
}
