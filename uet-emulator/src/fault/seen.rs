//! What has passed: what a fault has to know to be wrong about it.

use super::fields::{Fields, Kinds};
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};
use uet_model::ses::{RegionId, ResourceIndex};
use uet_model::{Indication, Packet};
use uet_wire::Psn;
use uet_wire::registry::CtlType;

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

/// A packet that has passed, with what is asked of it again and again.
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

    /// The ACK that it is.
    pub(super) fn ack(&self) -> Option<&Packet> {
        self.ack.then_some(&self.packet)
    }
}

/// What has passed between the NIC and its link, before any fault has changed it on its way in, and before on its way out.
#[derive(Debug, Default)]
pub(super) struct Seen {
    received: VecDeque<Passed>,
    sent: VecDeque<Passed>,
    /// Where memory is exposed.
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

    /// The requests of this peer's context.
    pub(super) fn requests(&self, peer: IpAddr, spdcid: u64) -> impl Iterator<Item = &Packet> {
        self.arrived(peer, spdcid).map(|seen| &seen.packet)
    }

    /// How often a request of this PSN has come.
    pub(super) fn times(&self, packet: &Packet) -> usize {
        let (spdcid, psn) = (packet.get("pds.spdcid").unwrap_or_default(), psn(packet));
        self.arrived(packet.src, spdcid).filter(|seen| seen.psn == psn).count()
    }

    /// The request that an ACK or NACK of ours names.
    pub(super) fn answered(&self, answer: &Packet) -> Option<&Packet> {
        let (named, spdcid) = (named(answer)?, answer.get("pds.dpdcid")?);
        let mut latest = self.arrived(answer.dst, spdcid).rev();
        latest.find(|seen| seen.psn == named).map(|seen| &seen.packet)
    }

    /// The highest PSN that has come by this context.
    pub(super) fn highest(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        highest(self.arrived(peer, spdcid).map(|seen| seen.psn))
    }

    /// The first PSN of the context that a packet is for, by the packets with `syn` that have come for it.
    pub(super) fn start(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        self.arrived(peer, spdcid).find_map(|seen| seen.start)
    }

    /// The latest control packet of this kind that a peer has sent.
    pub(super) fn control(&self, peer: IpAddr, kind: CtlType) -> Option<&Packet> {
        let packets = self.received.iter().rev().filter(|seen| !seen.request && !seen.ack);
        packets.map(|seen| &seen.packet).find(|packet| packet.src == peer && packet.is_control(kind))
    }

    /// The source of the first packet that names the same context of its sender, if `same` takes the two sources for one.
    pub(super) fn first_source(
        &self,
        packet: &Packet,
        same: impl Fn(IpAddr, IpAddr) -> bool,
    ) -> Option<IpAddr> {
        let spdcid = packet.get("pds.spdcid")?;
        let mut alike = self.received.iter().filter(|seen| seen.spdcid == Some(spdcid));
        alike.find(|seen| same(seen.packet.src, packet.src)).map(|seen| seen.packet.src)
    }

    /// The first source of packets that `same` takes for this address.
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

    /// The first PSN of a context of ours.
    pub(super) fn own_start(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        self.left(peer, spdcid).find_map(|seen| seen.start)
    }

    /// A request of ours as it first left.
    pub(super) fn first_sent(&self, packet: &Packet) -> Option<&Packet> {
        let (spdcid, psn) = (packet.get("pds.spdcid")?, psn(packet));
        self.left(packet.dst, spdcid).filter(|seen| seen.psn == psn).last().map(|seen| &seen.packet)
    }

    /// The highest PSN that we have sent by a context of ours.
    pub(super) fn highest_sent(&self, peer: IpAddr, spdcid: u64) -> Option<Psn> {
        highest(self.left(peer, spdcid).map(|seen| seen.psn))
    }

    /// The latest of what we have sent to a context of a peer.
    pub(super) fn answers(&self, peer: IpAddr, dpdcid: u64) -> impl Iterator<Item = &Packet> {
        let to =
            self.sent.iter().rev().filter(move |seen| seen.packet.dst == peer && seen.dpdcid == Some(dpdcid));
        to.map(|seen| &seen.packet)
    }

    /// Whether we have a context of this PDCID with this peer.
    pub(super) fn is_ours(&self, peer: IpAddr, spdcid: u64) -> bool {
        self.sent.iter().any(|seen| seen.packet.dst == peer && seen.spdcid == Some(spdcid))
    }

    /// The latest of what we have sent from a context of ours.
    pub(super) fn sent_from(&self, spdcid: u64) -> Option<&Packet> {
        self.sent.iter().rev().find(|seen| seen.spdcid == Some(spdcid)).map(|seen| &seen.packet)
    }

    /// The ACKs for a context of ours.
    pub(super) fn acks(&self, peer: IpAddr, dpdcid: u64) -> impl Iterator<Item = &Packet> {
        let acks =
            self.received.iter().filter(move |seen| seen.packet.src == peer && seen.dpdcid == Some(dpdcid));
        acks.filter_map(Passed::ack)
    }

    /// The highest cumulative PSN that an ACK for a context of ours has told.
    pub(super) fn acked(&self, peer: IpAddr, dpdcid: u64) -> Option<Psn> {
        let acks = self.acks(peer, dpdcid).filter(|ack| ack.is("pds.flags.p", 0));
        highest(acks.filter_map(|ack| Some(Psn(ack.get("pds.cack_psn")? as u32))))
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
