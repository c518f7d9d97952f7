//! The packets that an endpoint has queued or in flight. One pool serves all contexts, so an idle context holds none.

use super::list::{Linked, Links, List, SlabKey};
use super::timers::Alarm;
use crate::cc::Sent;
use crate::{Head, MessageKey, Time, TxRequest};
use bytes::Bytes;
use slab::Slab;
use uet_wire::Psn;
use uet_wire::registry::{CtlType, NackCode, NextHdr};

/// A packet with a PSN, from its request until it is acknowledged.
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct TxPacket {
    links: Links,
    /// The context that the packet belongs to.
    pub(super) owner: u16,
    pub(super) what: TxContent,
    pub(super) eom: bool,
    pub(super) next_hdr: NextHdr,
    pub(super) head: Head,
    pub(super) payload: Bytes,
    /// The PSN, once it is numbered.
    pub(super) psn: Psn,
    /// The nominal size; 0 if congestion control does not count the packet.
    pub(super) size: u32,
    pub(super) state: TxState,
    pub(super) sent_at: Time,
    pub(super) entropy: u16,
    /// The number of transmissions.
    pub(super) sent: u8,
    /// The number of timeouts that caused a retransmission or an ACK_REQUEST.
    pub(super) timeouts: u8,
    /// The number of retransmissions that NACKs caused.
    pub(super) nacks: u8,
    /// The reason for its next retransmission.
    pub(super) retx_cause: Option<super::event::RetransmitCause>,
    /// The last NACK.
    pub(super) refused: Option<NackCode>,
    pub(super) alarm: Alarm,
}

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum TxContent {
    /// A request of this message.
    Request(MessageKey),
    /// A control packet with this payload.
    Control(CtlType, u32),
}

/// The state of a packet at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum TxState {
    /// Not sent yet.
    Queued,
    /// Sent, without any reply yet.
    InFlight,
    /// Refused, waiting for the end of NACK_Retx_Time.
    NackBackoff,
    /// Waiting for retransmission.
    RetxQueued,
    /// Waiting for retransmission although a SACK reported its arrival, so that congestion control has counted it.
    RetxQueuedAfterSack,
    /// Arrived, as a SACK reported; its response is outstanding.
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

    /// Returns the record from which a round-trip time is measured.
    pub(super) fn record(&self) -> Sent {
        Sent { at: self.sent_at, retransmissions: u32::from(self.sent).saturating_sub(1) }
    }

    /// Returns whether congestion control counts the packet: it takes a PSN and carries a SES header (section 3.6.12).
    pub(super) fn counted(&self) -> bool {
        self.size > 0
    }
}

impl Linked for TxPacket {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// All packets, by their index.
#[derive(Default)]
#[cfg_attr(feature = "explore", derive(Clone))]
pub(super) struct TxPool(Slab<TxPacket>);

#[cfg(feature = "explore")]
impl core::hash::Hash for TxPool {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        crate::explore::slab(&self.0, state);
    }
}

impl TxPool {
    pub(super) fn insert(&mut self, packet: TxPacket) -> SlabKey {
        if self.0.len() == self.0.capacity() {
            // Doubling would leave half of the largest table of an endpoint unused.
            self.0.reserve_exact(self.0.len() / 4 + 4);
        }
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
