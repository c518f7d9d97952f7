//! The messages of the suite: their packets, the answers that they may get, and their effect on memory.

use super::arithmetic;
use super::coverage::Event;
use super::play::{Due, PROCESS, Player, REGIONS, SENDS, bits, job};
use super::shadow::{Cell, Operands, atomic};
use super::shown;
use super::step::{self, By, Fate, Form, Wrong};
use crate::elements::kind;
use crate::{Message, Outcome, Part, Region, RxPacket, Stop, rudi};
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use uet_control::{Fill, PostKind};
use uet_wire::catalogue::*;
use uet_wire::pds::{Ack, Rudi};
use uet_wire::registry::{
    AckRequest, AtomicDatatype, AtomicOpcode, List, Opcode, PdsType, ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{Response, Ses};

/// Maximum number of transmissions of an idempotent request.
const TRIES: u32 = 9;

/// The answer that a message must get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// OK.
    Well,
    /// One of these codes.
    Codes(Vec<ReturnCode>),
    /// An error.
    Error,
    /// Any.
    Open,
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expect::Well => f.write_str("OK"),
            Expect::Codes(codes) => {
                let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
                write!(f, "one of {}", codes.join(", "))
            }
            Expect::Error => f.write_str("an error"),
            Expect::Open => f.write_str("any code"),
        }
    }
}

/// A message of the suite.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) plan: step::Message,
    pub(super) id: u16,
    pub(super) parts: Vec<Part>,
    /// Context and number of each packet.
    placed: Vec<Option<(u64, u32)>>,
    answered: Vec<Option<ReturnCode>>,
    pub(super) expect: Expect,
    place: Range<usize>,
    /// Bytes that it leaves in its place.
    effect: Option<Vec<Cell>>,
    /// The data that it must get.
    expected: Vec<Cell>,
    got: Vec<Option<u8>>,
    pub(super) data: Vec<u8>,
    unsure: bool,
    pub(super) over: bool,
    /// Its context has ended before it could.
    pub(super) lost: bool,
    pub(super) code: ReturnCode,
    /// Its last response said list OVERFLOW.
    pub(super) overflow: bool,
    pub(super) put_off: bool,
    pub(super) accepted: Option<u32>,
    /// The send of which it is the second attempt.
    pub(super) again_of: Option<usize>,
    answers: usize,
    lone: Vec<(u32, u32)>,
}

/// An answer to a packet.
#[derive(Debug)]
pub(super) struct Reported {
    named: bool,
    covered: bool,
    request: AckRequest,
    response: Option<Response>,
    data: Option<(ReturnCode, Vec<u8>)>,
}

impl Reported {
    pub(super) fn of(seen: Option<&RxPacket>, ack: &Ack, covered: bool) -> Self {
        let carries = |seen: &RxPacket| {
            matches!(seen.uet().ses, Some(Ses::ResponseData(_) | Ses::ResponseDataSmall(_)))
        };
        let data = seen.filter(|seen| carries(seen));
        Reported {
            named: seen.is_some(),
            covered,
            request: ack.req(),
            response: seen.and_then(RxPacket::response),
            data: data.map(|seen| (seen.return_code().unwrap_or_default(), seen.payload().to_vec())),
        }
    }

    fn code(&self) -> ReturnCode {
        match (&self.response, &self.data) {
            (Some(response), _) => response.head().return_code(),
            (None, Some((code, _))) => *code,
            (None, None) => ReturnCode::OK,
        }
    }

    /// Returns whether it proves arrival and nothing else.
    fn is_empty(&self) -> bool {
        let silent = |response: &Response| response.head().opcode() == ResponseOpcode::UET_NO_RESPONSE;
        self.code() == ReturnCode::NULL || self.response.as_ref().is_some_and(silent)
    }
}

fn is_well(code: ReturnCode) -> bool {
    matches!(code, ReturnCode::OK | ReturnCode::NULL)
}

impl Sending {
    pub(super) fn fate(&self, part: usize) -> Fate {
        self.plan.fates.get(part).copied().unwrap_or_default()
    }

    pub(super) fn second_fate(&self, part: usize) -> Fate {
        match self.plan.fates.get(self.parts.len() + part) {
            Some(Fate::Lost) => Fate::Lost,
            _ => Fate::Arrives,
        }
    }

    pub(super) fn answer_fate(&mut self) -> Fate {
        self.answers += 1;
        self.plan.answers.get(self.answers - 1).copied().unwrap_or_default()
    }

    pub(super) fn placed(&mut self, part: usize, context: u64, n: u32) {
        if let Some(place) = self.placed.get_mut(part) {
            *place = Some((context, n));
        }
    }

    pub(super) fn is_on(&self, context: u64) -> bool {
        self.placed.iter().flatten().any(|(on, _)| *on == context)
    }

    /// Its answer is open from now on.
    pub(super) fn give_up_expectations(&mut self) {
        (self.expect, self.unsure) = (Expect::Open, true);
    }

    fn is_deferrable(&self) -> bool {
        matches!(self.plan.kind, PostKind::DeferrableSend | PostKind::DeferrableTsend)
    }

    pub(super) fn is_send(&self) -> bool {
        !matches!(
            self.plan.kind,
            PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic | PostKind::NoOp
        )
    }

    pub(super) fn tag(&self) -> Option<u8> {
        let tagged =
            matches!(self.plan.kind, PostKind::Tsend | PostKind::RendezvousTsend | PostKind::DeferrableTsend);
        tagged.then_some(self.plan.tag)
    }

    pub(super) fn header_data(&self, index: usize) -> Option<u64> {
        self.plan.header_data.then_some(0xfeed_0000_0000_0000 | index as u64)
    }
}

fn opcode(kind: PostKind) -> Opcode {
    match kind {
        PostKind::Write => Opcode::UET_WRITE,
        PostKind::Read => Opcode::UET_READ,
        PostKind::Send => Opcode::UET_SEND,
        PostKind::Tsend => Opcode::UET_TAGGED_SEND,
        PostKind::Datagram => Opcode::UET_DATAGRAM_SEND,
        PostKind::Atomic => Opcode::UET_ATOMIC,
        PostKind::FetchAtomic => Opcode::UET_FETCHING_ATOMIC,
        PostKind::RendezvousSend => Opcode::UET_RENDEZVOUS_SEND,
        PostKind::RendezvousTsend => Opcode::UET_RENDEZVOUS_TSEND,
        PostKind::DeferrableSend => Opcode::UET_DEFERRABLE_SEND,
        PostKind::DeferrableTsend => Opcode::UET_DEFERRABLE_TSEND,
        PostKind::NoOp => Opcode::UET_NO_OP,
    }
}

/// The capability that an operation needs.
pub(super) fn capability(kind: PostKind) -> &'static str {
    match kind {
        PostKind::Write => "write",
        PostKind::Read => "read",
        PostKind::Send => "send",
        PostKind::Tsend => "tsend",
        PostKind::Datagram => "datagram",
        PostKind::Atomic => "atomic",
        PostKind::FetchAtomic => "fetch_atomic",
        PostKind::RendezvousSend => "rendezvous_send",
        PostKind::RendezvousTsend => "rendezvous_tsend",
        PostKind::DeferrableSend => "deferrable_send",
        PostKind::DeferrableTsend => "deferrable_tsend",
        PostKind::NoOp => "no_op",
    }
}

/// Operands of an atomic: plain numbers for floats, ends of the range and small numbers for integers.
pub(super) fn operands(
    seed: u32,
    opcode: AtomicOpcode,
    datatype: AtomicDatatype,
    count: usize,
    big: bool,
) -> Operands {
    let size = kind(opcode, datatype).size;
    let all = u128::MAX >> (128 - 8 * size);
    let mut rng = fastrand::Rng::with_seed(seed.into());
    let mut small = || f64::from(rng.i8(-9..=9));
    let mut value = || -> u128 {
        match datatype {
            AtomicDatatype::FLOAT => u128::from((small() as f32).to_bits()),
            AtomicDatatype::DOUBLE => small().to_bits().into(),
            AtomicDatatype::FLOAT_COMPLEX => {
                u128::from((small() as f32).to_bits()) | u128::from((small() as f32).to_bits()) << 32
            }
            AtomicDatatype::DOUBLE_COMPLEX => {
                u128::from(small().to_bits()) | u128::from(small().to_bits()) << 64
            }
            _ => {
                let n = small() as i8;
                match n {
                    -9 => all,
                    -8 => all >> 1,
                    -7 => (all >> 1) + 1,
                    -6 => 0x8182_8384_8586_8788_898a_8b8c_8d8e_8f90 & all,
                    _ => (n.unsigned_abs()).into(),
                }
            }
        }
    };
    let values = (0..count).map(|_| value()).collect();
    Operands { opcode, datatype, size, big, values, swap: value() }
}

impl Player<'_, '_> {
    pub(super) fn is_big(&self) -> bool {
        self.t.word("byte_order") == Some("big")
    }

    pub(super) fn send_message(&mut self, plan: &step::Message) -> Outcome {
        let Some(own) = self.own.get(plan.context) else { return Ok(()) };
        let index = self.messages.len();
        let mut plan = plan.clone();
        if matches!(plan.by, By::Rudi) && !self.t.claims("rudi")
            || matches!(plan.by, By::Uud) && !self.t.claims("uud")
            || plan.kind != PostKind::NoOp && !self.t.claims(capability(plan.kind))
        {
            return Ok(());
        }
        let number = own.plan.job;
        let id = self.next_id as u16;
        self.next_id += 1;
        let Some((message, expect, effect, expected)) = self.meant(&mut plan, number, id, index)? else {
            return Ok(());
        };
        let mtu = self.t.mtu();
        let mut parts = match plan.form {
            Form::Std => message.parts(mtu)?,
            Form::Medium => vec![message.medium()?],
            Form::Small => vec![message.small()?],
        };
        if parts.len() > 64 {
            return Ok(());
        }
        if let Some(last) = parts.last_mut().filter(|_| plan.wrong == Wrong::GivenUp) {
            *last = last.clone().edit(|std| std.head(|head| head.ie(true)))?;
        }
        let place = match expected.len().max(effect.as_ref().map_or(0, Vec::len)) {
            0 => 0..0,
            length => plan.offset as usize..plan.offset as usize + length,
        };
        let mut unsure = false;
        if !place.is_empty() {
            let writes = effect.is_some();
            let met = self.regions[plan.region].shadow.begin(index, place.clone(), writes);
            for met in met {
                unsure = true;
                self.messages[met].unsure = true;
            }
        }
        let count = parts.len();
        self.messages.push(Sending {
            id,
            placed: vec![None; count],
            answered: vec![None; count],
            expect,
            place,
            effect,
            got: vec![None; expected.len()],
            expected,
            data: message.data.clone(),
            unsure,
            over: false,
            lost: false,
            code: ReturnCode::OK,
            overflow: false,
            put_off: false,
            accepted: None,
            again_of: None,
            answers: 0,
            lone: Vec::new(),
            parts,
            plan: plan.clone(),
        });
        match plan.by {
            By::Context => self.queue(plan.context, index, count),
            By::Uud => self.send_datagram(index),
            By::Rudi => self.send_lone(index),
        }
    }

    /// Returns a message, its answer, its effect, and the data that it gets; `None` if it cannot be.
    #[allow(clippy::type_complexity)]
    fn meant(
        &mut self,
        plan: &mut step::Message,
        number: u8,
        id: u16,
        index: usize,
    ) -> Result<Option<(Message, Expect, Option<Vec<Cell>>, Vec<Cell>)>, Stop> {
        let mtu = self.t.mtu() as u32;
        let on_region =
            matches!(plan.kind, PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic);
        let mut message = Message {
            id,
            job: job(number),
            process: PROCESS,
            index: SENDS,
            ..Message::new(opcode(plan.kind))
        };
        message.complete = plan.complete;
        message.initiator = 0x2000 + u32::from(number);
        if plan.form != Form::Std && (plan.length > mtu || plan.wrong == Wrong::GivenUp) {
            plan.form = Form::Std;
        }
        let mut codes: Vec<Vec<ReturnCode>> = Vec::new();
        match plan.wrong {
            Wrong::Job => message.job = 999,
            Wrong::Process => message.process = 0x7e,
            Wrong::Index => message.index = 0x301,
            Wrong::Generation if !on_region => message.generation = 7,
            Wrong::Opcode if plan.by == By::Context => {
                let unknown = Opcode::unassigned(self.t.spec()).next();
                let simple =
                    matches!(plan.kind, PostKind::Write | PostKind::Read | PostKind::Send | PostKind::Tsend);
                let Some(unknown) = unknown.filter(|_| simple && plan.form == Form::Std) else {
                    return Ok(None);
                };
                message.opcode = unknown;
            }
            _ => {}
        }
        let of_wrong = match plan.wrong {
            Wrong::Job => Some(ReturnCode::BAD_JOB_ID),
            Wrong::Process => Some(ReturnCode::BAD_PID),
            Wrong::Index => Some(ReturnCode::BAD_INDEX),
            Wrong::Generation if !on_region => Some(ReturnCode::BAD_GENERATION),
            Wrong::Opcode => Some(ReturnCode::UNSUPPORTED_OP),
            Wrong::GivenUp => Some(ReturnCode::INITIATOR_ERR),
            _ => None,
        };
        codes.extend(of_wrong.map(|code| vec![code]));
        if !on_region {
            let data = Fill::Seed(plan.seed).bytes(plan.length as usize);
            message = message.data(&data);
            message.header_data = plan.header_data.then_some(0xfeed_0000_0000_0000 | index as u64);
            match plan.kind {
                PostKind::Tsend => message.selector = bits(plan.tag),
                PostKind::DeferrableSend | PostKind::DeferrableTsend if plan.length == 0 => return Ok(None),
                PostKind::DeferrableSend | PostKind::DeferrableTsend => {
                    message.selector =
                        if plan.kind == PostKind::DeferrableTsend { bits(plan.tag) } else { 0 };
                    message.tokens = Some(self.second.take().unwrap_or((0x7000_0000 | index as u32, 0)));
                    plan.form = Form::Std;
                }
                PostKind::RendezvousSend | PostKind::RendezvousTsend => {
                    if plan.wrong == Wrong::GivenUp {
                        return Ok(None);
                    }
                    plan.form = Form::Std;
                    message.selector =
                        if plan.kind == PostKind::RendezvousTsend { bits(plan.tag) } else { 0 };
                    let rest = Region {
                        number: 0,
                        job: message.job,
                        process: 0x345,
                        index: 0xc00 + index as u16 % 0x200,
                        generation: 0,
                        key: 0x1234_0000 | index as u64,
                        message_id: 1,
                        length: plan.length.into(),
                    };
                    let eager = (plan.eager.min(plan.length).min(mtu)) as usize;
                    message = message.data(&data[..eager]).rendezvous(plan.length, &rest, 0x4000)?;
                }
                PostKind::Datagram => (message.id, plan.length) = (0, plan.length.min(mtu)),
                _ => {}
            }
            if plan.kind == PostKind::Datagram {
                message = message.data(&data[..plan.length as usize]);
            }
            if plan.form != Form::Std && matches!(plan.kind, PostKind::Tsend) && plan.form == Form::Small
                || plan.form == Form::Small && plan.header_data
            {
                plan.form = Form::Medium;
            }
            if plan.form == Form::Medium {
                message.offset = 0;
            }
            let expect = match codes.len() {
                0 if plan.kind == PostKind::NoOp => Expect::Open,
                0 => Expect::Well,
                // One word would do for what has several faults.
                1 if plan.wrong != Wrong::GivenUp => Expect::Codes(codes.remove(0)),
                _ => Expect::Error,
            };
            return Ok(Some((message, expect, None, Vec::new())));
        }
        let Some(held) = self.regions.get(plan.region) else { return Ok(None) };
        let region = held.plan;
        let size = u64::from(region.length);
        let (mut length, index) = (plan.length, REGIONS + plan.region as u16);
        let fetches = plan.kind == PostKind::FetchAtomic;
        let operands = match (plan.kind, plan.atomic) {
            (PostKind::Atomic | PostKind::FetchAtomic, Some((opcode, datatype))) => {
                let (opcode, datatype) = (AtomicOpcode::new(opcode), AtomicDatatype::new(datatype));
                let (Some(opcode), Some(datatype)) = (opcode, datatype) else { return Ok(None) };
                if !arithmetic::is_known(opcode, datatype) {
                    return Ok(None);
                }
                let element = kind(opcode, datatype).size as u32;
                let count = match opcode.is_compare_and_swap() {
                    true => 1,
                    false => (length / element).clamp(1, mtu / element),
                };
                length = count * element;
                plan.offset -= plan.offset % u64::from(element);
                if plan.wrong == Wrong::Alignment && element > 1 {
                    plan.offset += 1;
                    codes.push(vec![ReturnCode::AMO_UNALIGNED]);
                }
                Some(operands(plan.seed, opcode, datatype, count as usize, self.is_big()))
            }
            (PostKind::Atomic | PostKind::FetchAtomic, None) => return Ok(None),
            _ => None,
        };
        if operands.is_some() && plan.by != By::Context {
            return Ok(None);
        }
        plan.length = length;
        let end = plan.offset.saturating_add(length.into());
        let mut open = false;
        if plan.wrong == Wrong::Range {
            plan.offset = match (plan.seed % 4, size) {
                (0, _) => size - size.min(u64::from(length / 2)),
                (1, _) => (1 << 32) + plan.offset,
                (2, _) => u64::MAX - 15,
                _ => size,
            };
            plan.offset -= plan.offset % 16;
            open |= length == 0 || plan.offset < size && plan.offset.saturating_add(length.into()) <= size;
        } else if end > size {
            return Ok(None);
        }
        let outside = plan.offset.checked_add(length.into()).is_none_or(|end| end > size);
        if outside {
            codes.push(Vec::new());
        }
        let denied = match plan.kind {
            PostKind::Write => region.no_write,
            PostKind::Read => region.no_read,
            _ => region.no_atomic || fetches && region.no_read,
        };
        if denied {
            codes.push(vec![ReturnCode::PERM_VIOLATION, ReturnCode::AT_PERM]);
            open |= length == 0;
        }
        // Open: whether an atomic needs the permission to write.
        open |= operands.is_some() && region.no_write;
        if plan.by == By::Rudi && !region.safe {
            codes.push(vec![ReturnCode::OP_VIOLATION]);
            open |= length == 0;
        }
        if plan.wrong == Wrong::Key {
            codes.push(vec![ReturnCode::BAD_MKEY]);
            open |= length == 0;
        }
        if region.job != number && of_wrong.is_none() {
            codes.push(Vec::new());
            open |= length == 0;
        }
        if plan.form == Form::Small {
            plan.form = Form::Medium;
        }
        (message.selector, message.offset) = (held.region.key, plan.offset);
        if !matches!(plan.wrong, Wrong::Index) {
            message.index = index;
        }
        if plan.wrong == Wrong::Key {
            message.selector ^= 0x5a_0000;
        }
        message.length = length;
        let inside = match outside {
            true => 0..0,
            false => plan.offset as usize..plan.offset as usize + length as usize,
        };
        let old = held.shadow.get(inside).to_vec();
        let mut effect = None;
        if let Some(operands) = &operands {
            let bytes = |values: &[u128], size| self.t.elements(size, values);
            let ext = match operands.opcode.is_compare_and_swap() {
                true => {
                    let of = (operands.opcode, operands.datatype, length);
                    let swap = (operands.values.first().copied().unwrap_or_default(), operands.swap);
                    Message::swap(&held.region, plan.offset, of, swap)?.ext
                }
                false => {
                    let data = bytes(&operands.values, operands.size);
                    let of = (operands.opcode, operands.datatype);
                    let atomic = Message::atomic(&held.region, plan.offset, of, &data)?;
                    message.data = data;
                    atomic.ext
                }
            };
            message.ext = ext;
            let new = atomic(&old, operands);
            let float = operands.datatype.code() >= AtomicDatatype::FLOAT.code();
            let faults = self.t.device().parameters.get("float_faults").is_some_and(|it| it == true);
            open |= float && (faults || new.contains(&Cell::Open));
            effect = Some(new);
        } else if plan.kind == PostKind::Write {
            let data = Fill::Seed(plan.seed).bytes(length as usize);
            effect = Some(data.iter().map(|byte| Cell::Is(*byte)).collect());
            message = message.data(&data);
            if plan.header_data && plan.form == Form::Std {
                message.header_data = Some(0xfeed);
            }
        }
        let reads = plan.kind == PostKind::Read || fetches;
        if plan.form == Form::Medium && (plan.header_data || message.header_data.is_some()) {
            message.header_data = None;
        }
        if reads && plan.wrong == Wrong::GivenUp {
            open = true;
        }
        let expect = match codes.len() {
            _ if open => Expect::Open,
            0 => Expect::Well,
            1 if codes[0].is_empty() || plan.wrong == Wrong::GivenUp => Expect::Error,
            1 => Expect::Codes(codes.remove(0)),
            _ => Expect::Error,
        };
        let expected = match expect {
            Expect::Well | Expect::Open if reads => old,
            _ => Vec::new(),
        };
        let partly = plan.wrong == Wrong::GivenUp;
        let effect = effect.filter(|_| partly || matches!(expect, Expect::Well | Expect::Open));
        Ok(Some((message, expect, effect.filter(|effect| !effect.is_empty() && !outside), expected)))
    }

    /// Takes the answer to a packet of a message in; returns whether the packet needs nothing more.
    pub(super) fn reported(&mut self, message: usize, part: usize, told: &Reported) -> Result<bool, Stop> {
        let Some(sending) = self.messages.get_mut(message) else { return Ok(true) };
        if sending.answered.get(part).is_none_or(Option::is_some) {
            return Ok(true);
        }
        let code = told.code();
        if told.named && told.is_empty() && !told.covered {
            return Ok(false);
        }
        let fails = !matches!(sending.expect, Expect::Well | Expect::Open);
        if !told.named && fails && sending.parts.len() == 1 {
            let seen = format!("message {} is acknowledged without its error", sending.id);
            self.broken(SES_GTD_001, "an error that is told until it is cleared", seen)?;
            return Ok(true);
        }
        if let Some((code, bytes)) = told.data.as_ref().filter(|(code, _)| is_well(*code)) {
            debug_assert!(is_well(*code));
            let offset = part * self.t.mtu();
            self.data_in(message, offset, bytes)?;
        }
        let sending = &self.messages[message];
        let kept = matches!(sending.plan.kind, PostKind::Write | PostKind::Send | PostKind::Tsend);
        if kept && sending.plan.complete && told.named && is_well(code) && sending.expect == Expect::Well {
            let missing = sending.placed.iter().flatten().any(|(_, n)| {
                let packet = self.own[sending.plan.context].sent.get(n);
                packet.is_some_and(super::source::OwnPacket::never_arrived)
            });
            if missing && part + 1 == sending.parts.len() && sending.plan.by == By::Context {
                let told = format!("message {} is answered before all of it is there", sending.id);
                self.broken(SES_RESP_005, "with dc = 1, an answer when all is there", told)?;
            }
        }
        if let Some(response) = told.response.filter(|_| told.named) {
            self.response(message, part, &response, told)?;
        }
        let code = if code == ReturnCode::NULL { ReturnCode::OK } else { code };
        self.messages[message].answered[part] = Some(code);
        self.end_if_all(message)?;
        Ok(true)
    }

    /// Judges the fields of a response.
    fn response(&mut self, message: usize, part: usize, response: &Response, told: &Reported) -> Outcome {
        let sending = &mut self.messages[message];
        let (head, code) = (response.head(), response.head().return_code());
        let seen = format!(
            "{} {code}, message_id {}, job_id {}, modified_length {}, ack request {}",
            head.opcode(),
            response.message_id(),
            response.job_id(),
            response.modified_length(),
            told.request
        );
        let own = head.opcode() == ResponseOpcode::UET_RESPONSE;
        let std = sending.plan.form == Form::Std;
        let (id, length) = (sending.id, sending.plan.length);
        let datagram = sending.plan.kind == PostKind::Datagram;
        let last = part + 1 == sending.parts.len();
        if own && std && !datagram && response.message_id() != id {
            return self.broken(SES_RESP_003, "the message_id of the request", seen);
        }
        if own && !matches!(sending.plan.wrong, Wrong::Job) {
            let number = self.own[sending.plan.context].plan.job;
            if response.job_id() != job(number) {
                return self.broken(SES_RESP_003, "the job_id of the request", seen);
            }
        }
        let sending = &mut self.messages[message];
        if !is_well(code) {
            let one = sending.parts.len() == 1;
            if told.request != AckRequest::REQ_CLEAR && sending.plan.by == By::Context {
                return self.broken(SES_GTD_001, "an error with REQ_CLEAR", seen);
            }
            if one && response.modified_length() != 0 {
                return self.broken(SES_ERR_001, "an error with modified_length 0", seen);
            }
            return Ok(());
        }
        sending.overflow |= head.list() == List::UET_OVERFLOW;
        let deferrable = sending.is_deferrable();
        let told_length = response.modified_length();
        if deferrable && own && told_length == 0 && head.list() == List::UET_EXPECTED && length > 0 {
            sending.put_off = true;
            return Ok(());
        }
        let writes =
            matches!(sending.plan.kind, PostKind::Write | PostKind::Atomic) && sending.effect.is_some();
        let told_more = told_length > length || last && own && writes && told_length != length;
        if (own || told_length > 0) && told_more {
            return self.broken(SES_RESP_004, &format!("modified_length {length}"), seen);
        }
        if last && (own || told_length > 0) {
            sending.accepted = Some(told_length);
        }
        Ok(())
    }

    /// Takes read data in.
    pub(super) fn data_in(&mut self, message: usize, offset: usize, bytes: &[u8]) -> Outcome {
        let sending = &mut self.messages[message];
        if sending.expected.is_empty() && sending.plan.length > 0 {
            let seen = format!("{} bytes", bytes.len());
            return self.broken(SES_MEM_003, "no data of what may not be read", seen);
        }
        let Some(place) = sending.got.get_mut(offset..offset + bytes.len()) else {
            let seen = format!("{} bytes at {offset} of {}", bytes.len(), sending.plan.length);
            return self.broken(SES_READ_001, "data that was asked for", seen);
        };
        let mut differs = false;
        for (to, byte) in place.iter_mut().zip(bytes) {
            differs |= to.replace(*byte).is_some_and(|before| before != *byte);
        }
        let sure = !sending.unsure;
        let expected = &sending.expected[offset..offset + bytes.len()];
        let wrong = expected.iter().zip(bytes).position(|(cell, byte)| !cell.permits(*byte));
        let fetches = sending.plan.kind == PostKind::FetchAtomic;
        let requirement = if fetches { SES_AMO_007 } else { SES_READ_001 };
        match wrong {
            Some(at) if sure => {
                let seen = format!("{:#04x} at byte {}, not {}", bytes[at], offset + at, expected[at]);
                self.broken(requirement, "what memory held", seen)?;
            }
            _ if differs && fetches => {
                self.broken(requirement, "the same value again", "another value".into())?;
            }
            _ => {}
        }
        self.end_if_all(message)
    }

    /// Ends a message that has all its answers and data.
    fn end_if_all(&mut self, message: usize) -> Outcome {
        let sending = &mut self.messages[message];
        if sending.over || sending.answered.iter().any(Option::is_none) {
            return Ok(());
        }
        let mut codes = sending.answered.iter().flatten().copied();
        let code = codes.find(|code| !is_well(*code)).unwrap_or(ReturnCode::OK);
        let has_data = sending.got.iter().all(Option::is_some);
        if is_well(code) && !has_data {
            return Ok(());
        }
        (sending.over, sending.code) = (true, code);
        let (region, number) = (sending.plan.region, message);
        let again = sending.plan.by == By::Rudi
            && (!sending.plan.answers.is_empty() || !sending.plan.fates.is_empty());
        if let Some(held) = self.regions.get_mut(region).filter(|_| !sending.place.is_empty()) {
            if !again {
                held.shadow.end(number);
            }
            let (place, effect) = (sending.place.clone(), sending.effect.clone());
            match effect {
                Some(_) if sending.unsure => held.shadow.open(place),
                Some(effect) if is_well(code) => held.shadow.set(place.start, &effect),
                Some(effect) if sending.expect != Expect::Well => held.shadow.may_be(place.start, &effect),
                _ => {}
            }
        }
        self.judge_code(message)?;
        let context = self.messages[message].plan.context;
        match self.messages[message].plan.by {
            By::Context => self.close_if_quiet(context),
            _ => Ok(()),
        }
    }

    /// Gives the messages of a context up that have not ended.
    pub(super) fn lose_messages(&mut self, context: usize, life: u64) {
        for (number, sending) in self.messages.iter_mut().enumerate() {
            let here = sending.plan.context == context && sending.plan.by == By::Context;
            let waits = sending.placed.iter().all(Option::is_none);
            if !here || sending.over || !(sending.is_on(life) || waits) {
                continue;
            }
            (sending.over, sending.lost) = (true, true);
            let Some(held) = self.regions.get_mut(sending.plan.region) else { continue };
            held.shadow.end(number);
            match &sending.effect {
                Some(_) if sending.unsure => held.shadow.open(sending.place.clone()),
                Some(effect) => held.shadow.may_be(sending.place.start, effect),
                None => {}
            }
        }
    }

    fn judge_code(&mut self, message: usize) -> Outcome {
        let sending = &self.messages[message];
        let code = sending.code;
        let wrong = sending.plan.wrong;
        let told = format!("{code} for {}", shown(&sending.plan));
        match &sending.expect {
            Expect::Open => Ok(()),
            Expect::Well if code == ReturnCode::OK => Ok(()),
            // There may be no room for what nobody waits for, and a buffer may be too short.
            Expect::Well if sending.is_send() => {
                let length = sending.plan.length as usize;
                let short = self.receives.iter().any(|receive| receive.length < length);
                let allowed = code == ReturnCode::NO_MATCH || short && code == ReturnCode::TOO_LONG;
                if allowed { Ok(()) } else { self.broken(SES_RESP_001, "a legal send that succeeds", told) }
            }
            Expect::Well => self.broken(SES_RESP_001, "a legal request that succeeds", told),
            Expect::Codes(codes) if codes.contains(&code) => Ok(()),
            Expect::Error if code != ReturnCode::OK => Ok(()),
            expect => {
                let expected = expect.to_string();
                let requirement = match wrong {
                    Wrong::Key => SES_MEM_005,
                    Wrong::Range => SES_MEM_004,
                    Wrong::Job => SES_ADDR_004,
                    Wrong::Process => SES_ADDR_005,
                    Wrong::Index => SES_ADDR_006,
                    Wrong::Generation => SES_GEN_002,
                    Wrong::Opcode => SES_ERR_002,
                    Wrong::GivenUp => SES_ERR_006,
                    Wrong::Alignment => SES_AMO_005,
                    Wrong::Nothing if sending.plan.by == By::Rudi => SES_MODE_002,
                    Wrong::Nothing => SES_MEM_003,
                };
                self.broken(requirement, &expected, told)
            }
        }
    }

    /// A send that the device has put off and wants now: the same message again, with both tokens.
    pub(super) fn wanted(&mut self, initiator: u32, target: u32) -> Outcome {
        let index = (initiator & 0x0fff_ffff) as usize;
        let token = initiator >> 28 == 7;
        let Some(sending) = self.messages.get_mut(index).filter(|it| token && it.is_deferrable()) else {
            let told = format!("tokens {initiator:#x} and {target:#x}");
            return self.broken(SES_DEFER_003, "DEFERRABLE_RTR with the token of a send", told);
        };
        // The response that puts it off may be under way, or lost.
        sending.put_off |= !sending.over;
        if !sending.put_off {
            let told = format!("tokens {initiator:#x} and {target:#x}");
            return self.broken(SES_DEFER_003, "DEFERRABLE_RTR for a send that was put off", told);
        }
        let plan = sending.plan.clone();
        let again = self.messages.len();
        if self.messages.iter().any(|message| message.again_of == Some(index)) {
            return Ok(());
        }
        let plan = step::Message { fates: Vec::new(), answers: Vec::new(), ..plan };
        self.second = Some((initiator, target));
        self.send_message(&plan)?;
        if let Some(sending) = self.messages.get_mut(again) {
            sending.again_of = Some(index);
        }
        Ok(())
    }

    fn send_datagram(&mut self, index: usize) -> Outcome {
        let sending = &mut self.messages[index];
        sending.over = true;
        self.coverage.operation(Event::Datagram);
        let sending = &self.messages[index];
        let (context, fate) = (sending.plan.context, sending.fate(0));
        let pdc = self.own[context].pdc.clone();
        let Some(Part { ses, ext, payload }) = sending.parts.first().cloned() else { return Ok(()) };
        let request = crate::Request { ext, ..pdc.request(0).ses(ses, &payload) };
        let packet = self.t.datagram(&request)?;
        match self.possible(fate) {
            Fate::Lost | Fate::Trimmed => Ok(()),
            Fate::Marked => self.t.send_wire(&pdc.marked(&packet)),
            _ => self.t.send(&pdc, &packet),
        }
    }

    fn send_lone(&mut self, index: usize) -> Outcome {
        let count = self.messages[index].parts.len() as u32;
        let first = self.next_id << 8;
        self.next_id += 1 + count / 256;
        self.messages[index].lone = (0..count).map(|part| (first + part, 0)).collect();
        self.coverage.operation(Event::Rudi);
        for part in 0..count as usize {
            let fate = self.messages[index].fate(part);
            self.transmit_lone(index, part, fate)?;
        }
        let at = self.t.now() + self.t.rto() * 2 + self.t.soon() / 16;
        self.later(at, Due::Lone(index));
        Ok(())
    }

    fn transmit_lone(&mut self, index: usize, part: usize, fate: Fate) -> Outcome {
        let sending = &mut self.messages[index];
        let Some((pkt_id, tries)) = sending.lone.get_mut(part) else { return Ok(()) };
        let (pkt_id, retx) = (*pkt_id, *tries > 0);
        *tries += 1;
        let context = sending.plan.context;
        let Part { ses, ext, payload } = sending.parts[part].clone();
        let pdc = self.own[context].pdc.clone();
        let request = crate::Request { ext, retx, ..pdc.request(0).ses(ses, &payload) };
        let packet = rudi(pkt_id, &request)?;
        match self.possible(fate) {
            Fate::Lost => Ok(()),
            Fate::Arrives => self.t.send(&pdc, &packet),
            Fate::Twice => {
                self.t.send(&pdc, &packet)?;
                self.t.send(&pdc, &packet)
            }
            Fate::Late => {
                let at = self.t.now() + self.gap * 2;
                self.later(at, Due::Deliver(pdc.wire(&packet)));
                Ok(())
            }
            Fate::Marked => self.t.send_wire(&pdc.marked(&packet)),
            Fate::Trimmed => {
                let length = packet.to_bytes().len();
                self.t.send_wire(&pdc.trimmed(&packet, crate::Trimmed::Fabric, length.min(60)))
            }
        }
    }

    pub(super) fn lone_timer(&mut self, index: usize) -> Outcome {
        let sending = &self.messages[index];
        if sending.over {
            return Ok(());
        }
        let missing: Vec<usize> =
            (0..sending.parts.len()).filter(|part| sending.answered[*part].is_none()).collect();
        let tries = sending.lone.iter().map(|(_, tries)| *tries).max().unwrap_or_default();
        if tries > TRIES {
            let told = format!("none to {tries} transmissions");
            return self.broken(PDS_RUDI_002, "a RUDI_RESP to each RUDI request", told);
        }
        for part in missing {
            self.transmit_lone(index, part, Fate::Arrives)?;
        }
        let span: Duration = (self.t.rto() * 2 + self.t.soon() / 16) * (1 << tries.min(6));
        let at = self.t.now() + span;
        self.later(at, Due::Lone(index));
        Ok(())
    }

    /// Takes a RUDI packet in.
    pub(super) fn take_rudi(&mut self, seen: &RxPacket, rudi: &Rudi, first: bool) -> Outcome {
        if rudi.prologue().kind() == PdsType::RUDI_REQ {
            return self.take_lone_request(seen, rudi, first);
        }
        self.coverage.operation(Event::RudiResponse);
        let id = rudi.pkt_id();
        let of = |sending: &Sending| sending.lone.iter().position(|(known, _)| *known == id);
        let found = self.messages.iter().enumerate().find_map(|(index, it)| Some((index, of(it)?)));
        let Some((message, part)) = found else {
            return self.broken(PDS_RUDI_002, "the pkt_id of a request", format!("{id:#x}"));
        };
        let context = self.messages[message].plan.context;
        if seen.wire.dst != self.own[context].pdc.from {
            let told = format!("to {}", seen.wire.dst);
            return self.broken(PDS_RUDI_002, "a response to the source of the request", told);
        }
        if first && !self.settling && self.messages[message].answer_fate() == Fate::Lost {
            return Ok(());
        }
        let uet = seen.uet();
        let carries = matches!(uet.ses, Some(Ses::ResponseData(_) | Ses::ResponseDataSmall(_)));
        let told = Reported {
            named: true,
            covered: true,
            request: AckRequest::NO_REQUEST,
            response: seen.response(),
            data: carries.then(|| (seen.return_code().unwrap_or_default(), seen.payload().to_vec())),
        };
        self.reported(message, part, &told).map(drop)
    }
}

impl Sending {
    /// A message on its context that is no step of the conversation.
    pub(super) fn more(
        plan: step::Message,
        message: &Message,
        parts: Vec<Part>,
        expect: Expect,
        expected: Vec<Cell>,
    ) -> Self {
        let count = parts.len();
        Sending {
            plan,
            id: message.id,
            parts,
            placed: vec![None; count],
            answered: vec![None; count],
            expect,
            place: 0..0,
            effect: None,
            got: vec![None; expected.len()],
            expected,
            data: Vec::new(),
            unsure: false,
            over: false,
            lost: false,
            code: ReturnCode::OK,
            overflow: false,
            put_off: false,
            accepted: None,
            again_of: None,
            answers: 0,
            lone: Vec::new(),
        }
    }
}
