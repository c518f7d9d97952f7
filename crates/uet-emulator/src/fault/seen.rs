//! The packet history that faults use.

use super::fields::{Fields, Kinds};
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};
use uet_model::ses::{RegionId, ResourceIndex};
use uet_model::{Indication, Packet, TxRequest};
use uet_wire::Psn;
use uet_wire::registry::CtlType;

/// Maximum number of remembered entries of each kind.
const LIMIT: usize = 4096;

/// Exposed memory.
#[derive(Debug)]
pub(super) struct Exposed {
    pub(super) id: RegionId,
    pub(super) index: ResourceIndex,
    pub(super) key: u64,
    pub(super) length: usize,
}

/// A recorded packet with its most frequently used fields.
#[derive(Debug)]
pub(super) struct Passed {
    packet: Packet,
    request: bool,
    ack: bool,
    psn: Psn,
    start: Option<Psn>,
    spdcid: Option<u64>,
    dpdcid: Option<u64>,
}

impl Passed {
    fn new(packet: Packet) -> Self {
        let (request, ack) = (packet.is_request(), packet.is_ack());
        let (spdcid, dpdcid) = (packet.get("pds.spdcid"), packet.get("pds.dpdcid"));
        Passed { psn: psn(&packet), start: start(&packet), packet, request, ack, spdcid, dpdcid }
    }

    /// Returns the packet if it is an ACK.
    pub(super) fn ack(&self) -> Option<&Packet> {
        self.ack.then_some(&self.packet)
    }
}

/// Packets between the NIC and its link, as they were before any fault changed them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    received: VecDeque<Passed>,
    sent: VecDeque<Passed>,
    /// Exposed regions.
    pub(super) regions: Vec<Exposed>,
    /// Generations that applications have set.
    pub(super) generations: Vec<(ResourceIndex, u8)>,
}

pub(super) fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= LIMIT {
        queue.pop_front();
    }
    queue.push_back(item);
}

fn highest(psns: impl Iterator<Item = Psn>) -> Option<Psn> {
    psns.reduce(|highest, psn| if psn.is_after(highest) { psn } else { highest })
}

impl Seen {
    pub(super) fn note_received(&mut self, packet: &Packet) {
        push(&mut self.received, Passed::new(packet.clone()));
    }

    pub(super) fn note_sent(&mut self, packet: &Packet) {
        push(&mut self.sent, Passed::new(packet.clone()));
    }

    fn arrived(&self, peer: IpAddr, spdcid: u64) -> impl DoubleEndedIterator<Item = &Passed> {
        self.received.iter().filter(move |seen| {
            seen.request
                && seen.packet.src == peer
                && seen.spdcid == Some(spdcid)
                && seen.packet.trimmed.is_none()
        })
    }

    /// Returns the requests of this peer's context.
    pub(super) fn requests(&self, peer: IpAddr, spdcid: u64) -> impl Iterator<Item = &Packet> {
        self.arrived(peer, spdcid).map(|seen| &seen.packet)
    }

    /// Returns how often a request of this PSN has arrived.
    pub(super) fn times(&self, packet: &Packet) -> usize {
        let (spdcid, psn) = (packet.get("pds.spdcid").unwrap_or_default(), psn(packet));
        self.arrived(packet.src, spdcid).filter(|seen| seen.psn == psn).count()
    }

    /// Returns the request that an outgoing ACK or NACK names.
    pub(super) fn answered(&self, answer: &Packet) -> Option<&Packet> {
        let (named, spdcid) = (named(answer)?, answer.get("pds.dpdcid")?);
        let mut latest = self.arrived(answer.dst, spdcid).rev();
        latest.find(|seen| seen.psn == named).map(|seen| &seen.packet)
    }

    /// Returns the highest PSN that has arrived on this context.
    pub(super) fn highest(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        highest(self.arrived(peer, spdcid).map(|seen| seen.psn))
    }

    /// Returns the first PSN of a packet's destination context, from arrived packets with `syn`.
    pub(super) fn start(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        self.arrived(peer, spdcid).find_map(|seen| seen.start)
    }

    /// Returns the latest control packet of this type from a peer.
    pub(super) fn control(&self, peer: IpAddr, kind: CtlType) -> Option<&Packet> {
        let packets = self.received.iter().rev().filter(|seen| !seen.request && !seen.ack);
        packets.map(|seen| &seen.packet).find(|packet| packet.src == peer && packet.is_control(kind))
    }

    /// Returns the source of the first packet that names the same context of its sender, if `same` treats the two
    /// sources as equal.
    pub(super) fn first_source(
        &self,
        packet: &Packet,
        same: impl Fn(IpAddr, IpAddr) -> bool,
    ) -> Option<IpAddr> {
        let spdcid = packet.get("pds.spdcid")?;
        let mut alike = self.received.iter().filter(|seen| seen.spdcid == Some(spdcid));
        alike.find(|seen| same(seen.packet.src, packet.src)).map(|seen| seen.packet.src)
    }

    /// Returns the first source of packets that `same` treats as equal to this address.
    pub(super) fn first_like(
        &self,
        address: IpAddr,
        same: impl Fn(IpAddr, IpAddr) -> bool,
    ) -> Option<IpAddr> {
        self.received.iter().map(|seen| seen.packet.src).find(|source| same(*source, address))
    }

    fn left(&self, peer: IpAddr, spdcid: u64) -> impl Iterator<Item = &Passed> {
        let ours = self.sent.iter().rev();
        ours.filter(move |seen| seen.request && seen.packet.dst == peer && seen.spdcid == Some(spdcid))
    }

    /// Returns the first PSN of a local context.
    pub(super) fn own_start(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        self.left(peer, spdcid).find_map(|seen| seen.start)
    }

    /// Returns an outgoing request as it was first sent.
    pub(super) fn first_sent(&self, packet: &Packet) -> Option<&Packet> {
        let (spdcid, psn) = (packet.get("pds.spdcid")?, psn(packet));
        self.left(packet.dst, spdcid).filter(|seen| seen.psn == psn).last().map(|seen| &seen.packet)
    }

    /// Returns the highest PSN sent on a local context.
    pub(super) fn highest_sent(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        highest(self.left(peer, spdcid).map(|seen| seen.psn))
    }

    /// Returns packets sent to a context of a peer, latest first.
    pub(super) fn answers(&self, peer: IpAddr, dpdcid: u64) -> impl Iterator<Item = &Packet> {
        let to =
            self.sent.iter().rev().filter(move |seen| seen.packet.dst == peer && seen.dpdcid == Some(dpdcid));
        to.map(|seen| &seen.packet)
    }

    /// Returns whether a local context with this PDCID and peer exists.
    pub(super) fn is_ours(&self, peer: IpAddr, spdcid: u64) -> bool {
        self.sent.iter().any(|seen| seen.packet.dst == peer && seen.spdcid == Some(spdcid))
    }

    /// Returns the latest packet sent from a local context.
    pub(super) fn sent_from(&self, spdcid: u64) -> Option<&Packet> {
        self.sent.iter().rev().find(|seen| seen.spdcid == Some(spdcid)).map(|seen| &seen.packet)
    }

    /// Returns the ACKs for a local context.
    pub(super) fn acks(&self, peer: IpAddr, dpdcid: u64) -> impl Iterator<Item = &Packet> {
        let acks =
            self.received.iter().filter(move |seen| seen.packet.src == peer && seen.dpdcid == Some(dpdcid));
        acks.filter_map(Passed::ack)
    }

    /// Returns the highest cumulative PSN of the ACKs for a local context.
    pub(super) fn acked(&self, peer: IpAddr, dpdcid: u64) -> Option<Psn> {
        let acks = self.acks(peer, dpdcid).filter(|ack| ack.is("pds.flags.p", 0));
        highest(acks.filter_map(|ack| Some(Psn(ack.get("pds.cack_psn")? as u32))))
    }
}

/// Returns the PSN of a request or a control packet.
pub(super) fn psn(packet: &Packet) -> Psn {
    Psn(packet.get("pds.psn").unwrap_or_default() as u32)
}

/// Returns the first PSN of its context, as a packet with `syn` states it.
pub(super) fn start(packet: &Packet) -> Option<Psn> {
    Some(psn(packet) - packet.get("pds.psn_offset")? as u32)
}

/// Returns the PSN that an ACK or a NACK names.
pub(super) fn named(packet: &Packet) -> Option<Psn> {
    match packet.get("pds.nack_psn") {
        Some(psn) => Some(Psn(psn as u32)),
        None => {
            let offset = packet.get("pds.ack_psn_offset")? as u16 as i16;
            Some(Psn(packet.get("pds.cack_psn")? as u32).offset(offset))
        }
    }
}

/// State of a single fault.
#[derive(Debug, Default)]
pub(super) struct Memo {
    numbers: BTreeMap<(Option<IpAddr>, u64), u64>,
    pub(super) packets: VecDeque<Packet>,
    pub(super) indications: VecDeque<Indication>,
    pub(super) requests: BTreeMap<u64, TxRequest>,
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

    /// Returns how often this was asked before.
    pub(super) fn count(&mut self, peer: impl Into<Option<IpAddr>>, key: u64) -> u64 {
        let peer = peer.into();
        let before = self.get(peer, key).unwrap_or_default();
        self.set(peer, key, before + 1);
        before
    }
}
