//! What has passed: what a fault has to know to be wrong about it.

use super::fields::{Fields, Kinds};
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};
use uet_model::ses::{RegionId, ResourceIndex};
use uet_model::{Indication, Packet};
use uet_wire::Psn;

/// How much is remembered of each kind.
const LIMIT: usize = 4096;

/// Memory that is exposed.
#[derive(Debug)]
pub(super) struct Exposed {
    pub(super) id: RegionId,
    pub(super) index: ResourceIndex,
    pub(super) key: u64,
    pub(super) length: usize,
}

/// What has passed between the NIC and its link, before any fault has changed it on its way in, and before on its way out.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) received: VecDeque<Packet>,
    pub(super) sent: VecDeque<Packet>,
    pub(super) regions: Vec<Exposed>,
    /// Generations that have been set.
    pub(super) generations: Vec<(ResourceIndex, u8)>,
}

pub(super) fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= LIMIT {
        queue.pop_front();
    }
    queue.push_back(item);
}

impl Seen {
    /// The requests of this peer's context.
    pub(super) fn requests(&self, peer: IpAddr, spdcid: u64) -> impl Iterator<Item = &Packet> {
        let of = move |packet: &&Packet| {
            packet.src == peer
                && packet.is_request()
                && packet.is("pds.spdcid", spdcid)
                && packet.trimmed.is_none()
        };
        self.received.iter().filter(of)
    }

    /// How often a request of this PSN has come.
    pub(super) fn times(&self, packet: &Packet) -> usize {
        let (spdcid, psn) = (packet.get("pds.spdcid").unwrap_or_default(), psn(packet));
        self.requests(packet.src, spdcid).filter(|seen| self::psn(seen) == psn).count()
    }

    /// The request that an ACK or NACK of ours names.
    pub(super) fn answered(&self, answer: &Packet) -> Option<&Packet> {
        let named = named(answer)?;
        let spdcid = answer.get("pds.dpdcid")?;
        let mut requests: Vec<_> = self.requests(answer.dst, spdcid).collect();
        requests.reverse();
        requests.into_iter().find(|request| psn(request) == named)
    }

    /// The highest PSN that has come by this context.
    pub(super) fn highest(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        let psns = self.requests(peer, spdcid).map(psn);
        psns.reduce(|highest, psn| if psn.is_after(highest) { psn } else { highest })
    }

    /// The first PSN of the context that a packet is for, by the packets with `syn` that have come for it.
    pub(super) fn start(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        self.requests(peer, spdcid).find_map(start)
    }

    /// The packets with a PSN that we have sent by a context of ours, the latest first.
    pub(super) fn sent_by(&self, peer: IpAddr, spdcid: u64) -> impl Iterator<Item = &Packet> {
        let of = move |packet: &&Packet| {
            packet.dst == peer && packet.is_request() && packet.is("pds.spdcid", spdcid)
        };
        self.sent.iter().rev().filter(of)
    }

    /// The highest PSN that we have sent by a context of ours.
    pub(super) fn highest_sent(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        let psns = self.sent_by(peer, spdcid).map(psn);
        psns.reduce(|highest, psn| if psn.is_after(highest) { psn } else { highest })
    }

    /// The highest cumulative PSN that an ACK for a context of ours has told.
    pub(super) fn acked(&self, peer: IpAddr, dpdcid: u64) -> Option<Psn> {
        let acks = self.received.iter().filter(|packet| packet.src == peer && packet.is_ack());
        let psns = acks.filter(|ack| ack.is("pds.dpdcid", dpdcid) && ack.is("pds.flags.p", 0));
        let psns = psns.filter_map(|ack| Some(Psn(ack.get("pds.cack_psn")? as u32)));
        psns.reduce(|highest, psn| if psn.is_after(highest) { psn } else { highest })
    }
}

/// The PSN of a request or a control packet.
pub(super) fn psn(packet: &Packet) -> Psn {
    Psn(packet.get("pds.psn").unwrap_or_default() as u32)
}

/// The first PSN of its context, which a packet with `syn` says.
pub(super) fn start(packet: &Packet) -> Option<Psn> {
    Some(psn(packet) - packet.get("pds.psn_offset")? as u32)
}

/// The PSN that an ACK or a NACK names.
pub(super) fn named(packet: &Packet) -> Option<Psn> {
    match packet.get("pds.nack_psn") {
        Some(psn) => Some(Psn(psn as u32)),
        None => {
            let offset = packet.get("pds.ack_psn_offset")? as u16 as i16;
            Some(Psn(packet.get("pds.cack_psn")? as u32).offset(offset))
        }
    }
}

/// What a fault remembers by itself.
#[derive(Debug, Default)]
pub(super) struct Memo {
    numbers: BTreeMap<(Option<IpAddr>, u64), u64>,
    pub(super) packets: VecDeque<Packet>,
    pub(super) indications: VecDeque<Indication>,
}

impl Memo {
    pub(super) fn get(&self, peer: impl Into<Option<IpAddr>>, key: u64) -> Option<u64> {
        self.numbers.get(&(peer.into(), key)).copied()
    }

    pub(super) fn set(&mut self, peer: impl Into<Option<IpAddr>>, key: u64, value: u64) -> Option<u64> {
        if self.numbers.len() >= LIMIT {
            self.numbers.pop_first();
        }
        self.numbers.insert((peer.into(), key), value)
    }

    /// How often this has been asked before.
    pub(super) fn count(&mut self, peer: impl Into<Option<IpAddr>>, key: u64) -> u64 {
        let peer = peer.into();
        let before = self.get(peer, key).unwrap_or_default();
        self.set(peer, key, before + 1);
        before
    }
}
