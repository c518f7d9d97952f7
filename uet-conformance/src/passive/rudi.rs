//! Rules of RUDI requests and responses, which have no context.

use super::Judge;
use super::suspicion::Suspicion;
use core::net::IpAddr;
use std::collections::HashMap;
use uet_observe::{Observed, RudiFacts};
use uet_wire::catalogue::*;
use uet_wire::pds::Pds;

/// Pairs of addresses that are remembered; all are forgotten when there are more.
const KEPT: usize = 1 << 16;

/// Strange requests and strange responses, by the addresses of requester and responder.
#[derive(Debug, Default)]
pub(super) struct Doubts(HashMap<(IpAddr, IpAddr), [Suspicion; 2]>);

impl Doubts {
    pub(super) fn judge(&mut self, judge: &mut Judge, packet: &Observed<'_>, facts: RudiFacts) {
        let Some(Pds::Rudi(header)) = packet.uet.pds else { return };
        if self.0.len() > KEPT {
            self.0.clear();
        }
        let (id, number, src, dst) = (header.pkt_id(), packet.number, packet.src, packet.dst);
        match facts {
            RudiFacts::Request { digest, earlier } => {
                let [reused, _] = self.0.entry((src, dst)).or_default();
                let before = earlier.and_then(|(before, _)| before);
                let other = before.zip(digest).is_some_and(|(before, now)| before != now);
                let often = reused.add(other, 3);
                let with = earlier.map(|(_, number)| number);
                judge.hold(src, PDS_RUDI_001, number, with, !often, || {
                    format!("pkt_id {id:#x} names another request that is not answered")
                });
            }
            RudiFacts::Response { known: Some(known), .. } => {
                let [_, unasked] = self.0.entry((dst, src)).or_default();
                let often = unasked.add(!known, 3);
                judge.hold(src, PDS_RUDI_002, number, None, !often, || {
                    format!("no request has pkt_id {id:#x}")
                });
            }
            RudiFacts::Response { known: None, .. } => {}
        }
    }
}
