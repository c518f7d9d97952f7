//! What RUDI packets show: there is no context, only the number of a request.

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
    /// Those that were seen without a response: a digest of what they ask for, and the packet.
    open: HashMap<(Way, u32), (u64, u64)>,
    /// The numbers that were ever used.
    used: HashSet<(Way, u32)>,
    ways: HashSet<Way>,
    /// How often something was seen that a missing record could explain once, but not often.
    reused: HashMap<Way, u32>,
    unasked: HashMap<Way, u32>,
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
        if let Some((before, number)) = self.open.insert((way, id), (asked, seen.number)) {
            let often = before != asked && suspect(&mut self.reused, way);
            judge.hold(PDS_RUDI_001, seen, Some(number), !often, || {
                format!("pkt_id {id:#x} names another request that is not answered")
            });
        }
        self.used.insert((way, id));
        self.ways.insert(way);
    }

    fn response(&mut self, judge: &mut Judge, seen: &Seen<'_>, id: u32) {
        let way = (seen.dst, seen.src);
        self.open.remove(&(way, id));
        if self.ways.contains(&way) {
            let often = !self.used.contains(&(way, id)) && suspect(&mut self.unasked, way);
            judge.hold(PDS_RUDI_002, seen, None, !often, || format!("no request has pkt_id {id:#x}"));
        }
    }
}

/// Whether this has now been seen so often that missing records do not explain it.
fn suspect(suspicions: &mut HashMap<Way, u32>, way: Way) -> bool {
    let times = suspicions.entry(way).or_default();
    *times += 1;
    *times >= 3
}
