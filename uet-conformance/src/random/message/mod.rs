//! The messages of the suite: their packets, the answers that they may get, and their effect on memory.

mod lone;
mod report;
mod send;

use crate::elements::kind;
use crate::random::shadow::{Cell, Operands};
use crate::random::step::{self, Fate};
use crate::{Part, RxPacket};
use core::fmt;
use core::ops::Range;
use uet_control::PostKind;
use uet_wire::pds::Ack;
use uet_wire::registry::{AckRequest, AtomicDatatype, AtomicOpcode, ResponseOpcode, ReturnCode};
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
    pub(super) plan: step::MessagePlan,
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
    /// The device has asked for it again.
    pub(super) wanted: bool,
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
    /// Creates a message that nothing has answered and that has no effect on memory.
    pub(super) fn new(
        plan: step::MessagePlan,
        id: u16,
        parts: Vec<Part>,
        expect: Expect,
        expected: Vec<Cell>,
    ) -> Self {
        let count = parts.len();
        Sending {
            plan,
            id,
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
            wanted: false,
            accepted: None,
            again_of: None,
            answers: 0,
            lone: Vec::new(),
        }
    }

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

    /// Returns whether it has an idempotent request with this number.
    pub(super) fn has_lone(&self, id: u32) -> bool {
        self.lone.iter().any(|(known, _)| *known == id)
    }

    pub(super) fn is_on(&self, context: u64) -> bool {
        self.placed.iter().flatten().any(|(on, _)| *on == context)
    }

    /// Returns whether all its data has arrived.
    pub(super) fn has_data(&self) -> bool {
        self.got.iter().all(Option::is_some)
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
        self.plan.match_bits().map(|_| self.plan.tag)
    }

    pub(super) fn header_data(&self, index: usize) -> Option<u64> {
        self.plan.header_data.then_some(0xfeed_0000_0000_0000 | index as u64)
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
