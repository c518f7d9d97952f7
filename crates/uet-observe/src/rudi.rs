use crate::Observed;
use core::net::IpAddr;
use foldhash::fast::RandomState;
use rangemap::RangeInclusiveSet;
use std::collections::HashMap;
use uet_wire::pds;
use uet_wire::registry::{Opcode, PdsType};
use uet_wire::ses::Ses;

/// The maximum number of unanswered requests, and of identifier ranges. Beyond it, the observer forgets all of them.
const KEPT: usize = 1 << 16;

/// The facts of a RUDI packet.
#[derive(Clone, Copy, Debug)]
pub enum RudiFacts {
    /// A request.
    Request {
        /// A digest of its content, if it is complete.
        digest: Option<u64>,
        /// The unanswered earlier request with this `pkt_id`: its digest, and the number of its last transmission.
        earlier: Option<(Option<u64>, u64)>,
    },
    /// A response.
    Response {
        /// The request that it answers, if this is its first response.
        question: Option<RudiQuestion>,
        /// The number of the request's last transmission, if this is its first response.
        answers: Option<u64>,
        /// True if a request with its `pkt_id` was observed; `None` if no request of that sender was.
        known: Option<bool>,
        /// True if a request of that sender has no response yet, and was sent again.
        awaited: bool,
    },
}

/// The request header of a RUDI request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RudiQuestion {
    /// The operation.
    pub opcode: Opcode,
    /// The message ID, if the header has one.
    pub message_id: Option<u16>,
    /// The job.
    pub job_id: u32,
    /// The number of bytes that a read asks for; 0 for other operations.
    pub bytes: u32,
}

impl RudiQuestion {
    fn of(packet: &Observed<'_>) -> Option<Self> {
        let ses = packet.uet.ses?;
        let (opcode, job_id) = (ses.opcode()?, ses.address()?.job_id());
        let (message_id, bytes) = match ses {
            Ses::Std(header) => {
                let bytes = header.payload_length().map_or(header.request_length(), u32::from);
                (Some(header.message_id()), bytes)
            }
            Ses::Medium(header) => (None, header.request_length().into()),
            Ses::Small(header) => (None, header.request_length().into()),
            _ => return None,
        };
        let bytes = if opcode == Opcode::UET_READ { bytes } else { 0 };
        Some(RudiQuestion { opcode, message_id, job_id, bytes })
    }
}

/// An unanswered request.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    digest: Option<u64>,
    /// The number of its last transmission.
    number: u64,
    question: Option<RudiQuestion>,
    /// True if it was sent again.
    again: bool,
}

/// The RUDI requests from one address to another.
#[derive(Debug, Default)]
struct Requests {
    unanswered: HashMap<u32, Unanswered, RandomState>,
    /// The number of unanswered requests that were sent again.
    again: usize,
    used: RangeInclusiveSet<u32>,
}

/// All RUDI requests by sender and receiver address.
#[derive(Debug, Default)]
pub(crate) struct Rudi {
    requests: HashMap<(IpAddr, IpAddr), Requests, RandomState>,
    kept: usize,
    /// The number of responses without an observed request.
    pub(crate) unmatched: u64,
}

impl Rudi {
    pub(crate) fn observe(&mut self, packet: &Observed<'_>, header: pds::Rudi) -> Option<RudiFacts> {
        let (id, digest) = (header.pkt_id(), packet.digest());
        match header.prologue().kind() {
            PdsType::RUDI_REQ => {
                if self.kept >= KEPT {
                    *self = Rudi { unmatched: self.unmatched, ..Rudi::default() };
                }
                let requests = self.requests.entry((packet.src, packet.dst)).or_default();
                requests.used.insert(id..=id);
                while requests.used.len() > KEPT {
                    let Some(lowest) = requests.used.first().cloned() else { break };
                    requests.used.remove(lowest);
                }
                let before = requests.unanswered.get(&id).copied();
                // If requests of this identifier differ, the response may be about any of them.
                let changed = before.is_some_and(|Unanswered { digest: before, question, .. }| {
                    question.is_none() || before.zip(digest).is_some_and(|(before, now)| before != now)
                });
                let now = Unanswered {
                    digest: digest.or(before.and_then(|before| before.digest)),
                    number: packet.number,
                    question: RudiQuestion::of(packet).filter(|_| !changed),
                    again: before.is_some(),
                };
                requests.unanswered.insert(id, now);
                requests.again += usize::from(before.is_some_and(|before| !before.again));
                self.kept += usize::from(before.is_none());
                let earlier = before.map(|before| (before.digest, before.number));
                Some(RudiFacts::Request { digest, earlier })
            }
            PdsType::RUDI_RESP => {
                let Some(requests) = self.requests.get_mut(&(packet.dst, packet.src)) else {
                    self.unmatched += 1;
                    let (question, answers, known, awaited) = (None, None, None, false);
                    return Some(RudiFacts::Response { question, answers, known, awaited });
                };
                let known = requests.used.contains(&id);
                let answered = requests.unanswered.remove(&id);
                requests.again -= usize::from(answered.is_some_and(|answered| answered.again));
                self.kept -= usize::from(answered.is_some());
                self.unmatched += u64::from(!known);
                Some(RudiFacts::Response {
                    question: answered.and_then(|answered| answered.question),
                    answers: answered.map(|answered| answered.number),
                    known: Some(known),
                    awaited: requests.again > 0,
                })
            }
            _ => None,
        }
    }
}
