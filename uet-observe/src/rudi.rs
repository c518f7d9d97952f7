use crate::{Observed, Ranges};
use core::net::IpAddr;
use std::collections::HashMap;
use uet_wire::pds;
use uet_wire::registry::PdsType;

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
        /// The number of the request's last transmission, if this is its first response.
        answers: Option<u64>,
        /// True if a request with its `pkt_id` was observed; `None` if no request of that sender was.
        known: Option<bool>,
    },
}

/// The RUDI requests from one address to another.
#[derive(Debug, Default)]
struct Requests {
    unanswered: HashMap<u32, (Option<u64>, u64)>,
    used: Ranges,
}

/// All RUDI requests by sender and receiver address.
#[derive(Debug, Default)]
pub(crate) struct Rudi {
    requests: HashMap<(IpAddr, IpAddr), Requests>,
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
                requests.used.insert(id.into(), ());
                requests.used.limit(KEPT);
                let before = requests.unanswered.get(&id).copied();
                let digest_known = digest.or(before.and_then(|(digest, _)| digest));
                requests.unanswered.insert(id, (digest_known, packet.number));
                self.kept += usize::from(before.is_none());
                Some(RudiFacts::Request { digest, earlier: before })
            }
            PdsType::RUDI_RESP => {
                let requests = self.requests.get_mut(&(packet.dst, packet.src));
                let known = requests.as_ref().map(|requests| requests.used.get(id.into()).is_some());
                let answered = requests.and_then(|requests| requests.unanswered.remove(&id));
                self.kept -= usize::from(answered.is_some());
                Some(RudiFacts::Response { answers: answered.map(|(_, number)| number), known })
            }
            _ => None,
        }
    }
}
