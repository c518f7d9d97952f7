//! The packets that an endpoint sends and still needs, in one place for all contexts, so that an idle context holds none.

use super::list::{Linked, Links, List, SlabKey};
use super::timers::Alarm;
use crate::cc::Sent;
use crate::{Head, MessageKey, Time, TxRequest};
use bytes::Bytes;
use slab::Slab;
use uet_wire::Psn;
use uet_wire::registry::{CtlType, NackCode, NextHdr};

/// A packet that takes a PSN, from when it is asked for until it is answered.
pub(super) struct TxPacket {
    links: Links,
    /// The context that it is of.
    pub(super) owner: u16,
    pub(super) what: TxContent,
    pub(super) eom: bool,
    pub(super) next_hdr: NextHdr,
    pub(super) head: Head,
    pub(super) payload: Bytes,
    /// From when it is numbered on.
    pub(super) psn: Psn,
    /// The nominal size; 0 for what congestion control does not count.
    pub(super) size: u32,
    pub(super) state: TxState,
    pub(super) sent_at: Time,
    pub(super) entropy: u16,
    /// How often it has been sent.
    pub(super) sent: u8,
    /// How often a timeout made it be sent again, or be asked for.
    pub(super) timeouts: u8,
    /// How often a NACK did.
    pub(super) nacks: u8,
    /// Why it is sent next.
    pub(super) retx_cause: Option<super::event::RetransmitCause>,
    /// The last NACK.
    pub(super) refused: Option<NackCode>,
    pub(super) alarm: Alarm,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TxContent {
    /// A request of this message.
    Request(MessageKey),
    /// A control packet with this payload.
    Control(CtlType, u32),
}

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TxState {
    /// Not yet sent.
    Queued,
    /// Sent, nothing heard of it.
    InFlight,
    /// Refused; it waits for the end of NACK_Retx_Time.
    NackBackoff,
    /// To be sent again.
    RetxQueued,
    /// To be sent again although congestion control takes it for arrived.
    RetxQueuedAfterSack,
    /// Arrived, as a SACK says; its response is owed.
    Sacked,
}

impl TxPacket {
    pub(super) fn request(owner: u16, request: TxRequest, size: u32) -> Self {
        let TxRequest { message, som: _, eom, next_hdr, head, payload } = request;
        TxPacket { eom, next_hdr, head, payload, size, ..Self::blank(owner, TxContent::Request(message)) }
    }

    pub(super) fn control(owner: u16, kind: CtlType, payload: u32) -> Self {
        Self::blank(owner, TxContent::Control(kind, payload))
    }

    fn blank(owner: u16, what: TxContent) -> Self {
        TxPacket {
            links: Links::default(),
            owner,
            what,
            eom: true,
            next_hdr: NextHdr::UET_HDR_NONE,
            head: Head::new(),
            payload: Bytes::new(),
            psn: Psn(0),
            size: 0,
            state: TxState::Queued,
            sent_at: Time::ZERO,
            entropy: 0,
            sent: 0,
            timeouts: 0,
            nacks: 0,
            retx_cause: None,
            refused: None,
            alarm: Alarm::default(),
        }
    }

    pub(super) fn message(&self) -> Option<MessageKey> {
        match self.what {
            TxContent::Request(message) => Some(message),
            TxContent::Control(..) => None,
        }
    }

    /// What a round trip is measured by.
    pub(super) fn record(&self) -> Sent {
        Sent { at: self.sent_at, retransmissions: u32::from(self.sent).saturating_sub(1) }
    }

    /// Whether congestion control counts it: it takes a PSN and carries a SES header (section 3.6.12).
    pub(super) fn counted(&self) -> bool {
        self.size > 0
    }
}

impl Linked for TxPacket {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// All packets, by their place.
#[derive(Default)]
pub(super) struct TxPool(Slab<TxPacket>);

impl TxPool {
    pub(super) fn insert(&mut self, packet: TxPacket) -> SlabKey {
        self.0.insert(packet) as SlabKey
    }

    pub(super) fn remove(&mut self, key: SlabKey) -> Option<TxPacket> {
        self.0.try_remove(key as usize)
    }

    pub(super) fn get(&self, key: SlabKey) -> Option<&TxPacket> {
        self.0.get(key as usize)
    }

    pub(super) fn get_mut(&mut self, key: SlabKey) -> Option<&mut TxPacket> {
        self.0.get_mut(key as usize)
    }

    pub(super) fn push(&mut self, list: &mut List, key: SlabKey) {
        list.push(&mut self.0, key);
    }

    pub(super) fn unlink(&mut self, list: &mut List, key: SlabKey) {
        list.remove(&mut self.0, key);
    }

    pub(super) fn pop(&mut self, list: &mut List) -> Option<SlabKey> {
        list.pop(&mut self.0)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
