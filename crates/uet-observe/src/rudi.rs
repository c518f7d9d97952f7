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

/// An unanswered request: its digest, the number of its last transmission, and its header.
type Unanswered = (Option<u64>, u64, Option<RudiQuestion>);

/// The RUDI requests from one address to another.
#[derive(Debug, Default)]
struct Requests {
    unanswered: HashMap<u32, Unanswered, RandomState>,
    used: RangeInclusiveSet<u32>,
}

/// All RUDI requests by sender and receiver address.
#[derive(Debug, Default)]
pub(crate) struct Rudi {
    requests: HashMap<(IpAddr, IpAddr), Requests, RandomState>,
    kept: usize,
}

impl Rudi {
    pub(crate) fn observe(&mut self, packet: &Observed<'_>, header: pds::Rudi) -> Option<RudiFacts> {
        let (id, digest) = (header.pkt_id(), packet.digest());
        match header.prologue().kind() {
            PdsType::RUDI_REQ => {
                if self.kept >= KEPT {
                    *self = Rudi::default();
                }
                let requests = self.requests.entry((packet.src, packet.dst)).or_default();
                requests.used.insert(id..=id);
                while requests.used.len() > KEPT {
                    let Some(lowest) = requests.used.first().cloned() else { break };
                    requests.used.remove(lowest);
                }
                let before = requests.unanswered.get(&id).copied();
                let digest_known = digest.or(before.and_then(|(digest, ..)| digest));
                // If requests of this identifier differ, the response may be about any of them.
                let changed = before.is_some_and(|(before, _, question)| {
                    question.is_none() || before.zip(digest).is_some_and(|(before, now)| before != now)
                });
                let question = RudiQuestion::of(packet).filter(|_| !changed);
                requests.unanswered.insert(id, (digest_known, packet.number, question));
                self.kept += usize::from(before.is_none());
                let earlier = before.map(|(digest, number, _)| (digest, number));
                Some(RudiFacts::Request { digest, earlier })
            }
            PdsType::RUDI_RESP => {
                let requests = self.requests.get_mut(&(packet.dst, packet.src));
                let known = requests.as_ref().map(|requests| requests.used.contains(&id));
                let answered = requests.and_then(|requests| requests.unanswered.remove(&id));
                self.kept -= usize::from(answered.is_some());
                Some(RudiFacts::Response {
                    question: answered.and_then(|(.., question)| question),
                    answers: answered.map(|(_, number, _)| number),
                    known,
                })
            }
            _ => None,
        }
    }
}
