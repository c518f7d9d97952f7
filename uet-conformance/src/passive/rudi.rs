//! What RUDI packets show: there is no context, only the number of a request.

use super::suspicion::Suspicion;
use super::{Judge, Seen, content};
use core::net::IpAddr;
use std::collections::{HashMap, HashSet};
use uet_wire::catalogue::*;
use uet_wire::pds;
use uet_wire::registry::PdsType;

/// Requests that are remembered; when there are more, all are forgotten.
const KEPT: usize = 1 << 16;

/// From whom, to whom.
type Way = (IpAddr, IpAddr);

/// The RUDI requests of a capture.
#[derive(Debug, Default)]
pub(super) struct Rudi {
    /// Those that were seen without a response: a digest of what they ask for, unless they were cut, and the packet.
    open: HashMap<(Way, u32), (Option<u64>, u64)>,
    /// The numbers that were ever used.
    used: HashSet<(Way, u32)>,
    ways: HashSet<Way>,
    reused: HashMap<Way, Suspicion>,
    unasked: HashMap<Way, Suspicion>,
}

impl Rudi {
    pub(super) fn packet(&mut self, judge: &mut Judge, seen: &Seen<'_>, header: pds::Rudi) {
        if self.used.len() >= KEPT {
            *self = Rudi::default();
        }
        match header.prologue().kind() {
            PdsType::RUDI_REQ => self.request(judge, seen, header.pkt_id()),
            PdsType::RUDI_RESP => self.response(judge, seen, header.pkt_id()),
            _ => {}
        }
    }

    fn request(&mut self, judge: &mut Judge, seen: &Seen<'_>, id: u32) {
        let way = (seen.src, seen.dst);
        let asked = content(seen);
        let open = self.open.entry((way, id)).or_insert((asked, seen.number));
        let (before, number) = *open;
        *open = (asked.or(before), seen.number);
        let other = before.zip(asked).is_some_and(|(before, asked)| before != asked);
        let often = self.reused.entry(way).or_default().add(other, 3);
        judge.hold(PDS_RUDI_001, seen, Some(number), !often, || {
            format!("pkt_id {id:#x} names another request that is not answered")
        });
        self.used.insert((way, id));
        self.ways.insert(way);
    }

    fn response(&mut self, judge: &mut Judge, seen: &Seen<'_>, id: u32) {
        let way = (seen.dst, seen.src);
        self.open.remove(&(way, id));
        if self.ways.contains(&way) {
            let often = self.unasked.entry(way).or_default().add(!self.used.contains(&(way, id)), 3);
            judge.hold(PDS_RUDI_002, seen, None, !often, || format!("no request has pkt_id {id:#x}"));
        }
    }
}
