//! The order in which packets leave.
//!
//! Each [`Via`] has a lane. Within a lane, a message leaves whole before the next starts (`SES-ORDER-001`). Lanes take
//! turns. A paused lane waits.

use super::initiator::{ActiveOperation, Owner};
use super::operation::OperationId;
use super::{Ses, SesEvent};
use crate::{Command, TxRequest, Via};
use foldhash::fast::RandomState;
use std::collections::{HashMap, VecDeque};
use uet_wire::registry::Opcode;

/// The lanes. `turns` lists each lane with something to send that is not paused once, so the order of the map does not
/// matter.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone))]
pub(super) struct Outbox {
    lanes: HashMap<Via, Lane, RandomState>,
    turns: VecDeque<Via>,
    /// Lanes whose next packet is a read that waits for outstanding data, or for the first answer of its peer.
    waiting: VecDeque<Via>,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Outbox {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let Outbox { lanes, turns, waiting } = self;
        (turns, waiting).hash(state);
        // Each lane has a name without a natural order.
        let mut lanes: Vec<_> = lanes.iter().collect();
        lanes.sort_by_key(|(via, _)| match via {
            crate::Via::Route(route) => (false, route.context, u64::from(route.job)),
            crate::Via::Return(pdc) => (true, pdc.generation, u64::from(pdc.pdcid)),
        });
        lanes.hash(state);
    }
}

#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
struct Lane {
    paused: bool,
    in_turn: bool,
    /// A packet that PDS refused. It leaves first.
    returned: Option<TxRequest>,
    queue: VecDeque<OutboxItem>,
}

impl Lane {
    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.returned.is_none()
    }
}

/// A message in a lane.
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) enum OutboxItem {
    /// An operation, which is cut packet by packet.
    Operation(OperationId),
    /// A message of one packet.
    Packet(TxRequest),
}

impl Outbox {
    pub(super) fn push(&mut self, via: Via, outgoing: OutboxItem) {
        self.lanes.entry(via).or_default().queue.push_back(outgoing);
        self.take_turn(via);
    }

    pub(super) fn pause(&mut self, via: Via) {
        self.lanes.entry(via).or_default().paused = true;
    }

    pub(super) fn resume(&mut self, via: Via) {
        if let Some(lane) = self.lanes.get_mut(&via) {
            lane.paused = false;
        }
        self.take_turn(via);
    }

    /// Keeps a packet that PDS refused, until PDS resumes the lane.
    pub(super) fn put_back(&mut self, via: Via, packet: TxRequest) {
        let lane = self.lanes.entry(via).or_default();
        (lane.paused, lane.returned) = (true, Some(packet));
    }

    /// Removes a lane and returns its messages.
    pub(super) fn remove(&mut self, via: Via) -> VecDeque<OutboxItem> {
        self.lanes.remove(&via).map(|lane| lane.queue).unwrap_or_default()
    }

    fn take_turn(&mut self, via: Via) {
        let Some(lane) = self.lanes.get_mut(&via) else { return };
        if lane.is_empty() && !lane.paused && !lane.in_turn {
            self.lanes.remove(&via);
        } else if !lane.in_turn && !lane.paused {
            lane.in_turn = true;
            self.turns.push_back(via);
        }
    }

    /// Lets reads resume after data arrived, or after a peer was confirmed.
    pub(super) fn wake(&mut self) {
        for via in core::mem::take(&mut self.waiting) {
            self.take_turn(via);
        }
    }

    /// Returns the lane that is served next.
    fn next(&mut self) -> Option<Via> {
        while let Some(via) = self.turns.pop_front() {
            let Some(lane) = self.lanes.get_mut(&via) else { continue };
            lane.in_turn = false;
            if lane.paused {
                continue;
            }
            if !lane.is_empty() {
                return Some(via);
            }
            self.lanes.remove(&via);
        }
        None
    }

    fn front(&self, via: Via) -> Option<&OutboxItem> {
        self.lanes.get(&via)?.queue.front()
    }

    fn take_returned(&mut self, via: Via) -> Option<TxRequest> {
        self.lanes.get_mut(&via)?.returned.take()
    }

    fn pop(&mut self, via: Via) -> Option<OutboxItem> {
        self.lanes.get_mut(&via)?.queue.pop_front()
    }
}

impl Ses {
    /// Queues a request that PDS refused. It leaves when PDS has room.
    pub fn put_back(&mut self, via: Via, request: TxRequest) {
        self.outbox.put_back(via, request);
    }

    /// Returns the next packet of the lanes that are not paused.
    pub(super) fn next_packet(&mut self) -> Option<Command> {
        while let Some(via) = self.outbox.next() {
            let returned = self.outbox.take_returned(via);
            if returned.is_none() && self.must_wait(via) {
                self.outbox.waiting.push_back(via);
                continue;
            }
            let packet = match self.outbox.front(via) {
                _ if returned.is_some() => returned,
                Some(OutboxItem::Operation(id)) => {
                    let id = *id;
                    let packet = self.cut(id);
                    if packet.as_ref().is_none_or(|packet| packet.eom) {
                        self.outbox.pop(via);
                    }
                    if packet.is_some() {
                        self.complete_if_done(id);
                    }
                    packet
                }
                Some(OutboxItem::Packet(_)) => match self.outbox.pop(via) {
                    Some(OutboxItem::Packet(packet)) => Some(packet),
                    _ => None,
                },
                None => None,
            };
            self.outbox.take_turn(via);
            if let Some(packet) = packet {
                return Some(Command::Send(via, packet));
            }
        }
        None
    }

    /// Returns whether a read must wait: too much data is outstanding, or its peer has not answered the first packet.
    fn must_wait(&self, via: Via) -> bool {
        let Some(OutboxItem::Operation(id)) = self.outbox.front(via) else { return false };
        let Some(flight) = self.flights.get(id) else { return false };
        let is_full = self.awaited >= self.params.max_awaited.into();
        flight.outline.opcode == Opcode::UET_READ && (is_full || self.is_first_unanswered(flight))
    }

    /// Returns whether a read of the rest of a message waits for the answer to its first packet. The source address of the
    /// message may be forged until its context is confirmed, and an endpoint that sends it all reads makes an amplifier.
    fn is_first_unanswered(&self, flight: &ActiveOperation) -> bool {
        let Owner::Landing(id) = flight.owner else { return false };
        let is_confirmed = self.landings.get(id).is_none_or(|landing| landing.confirmed);
        !is_confirmed && flight.sent > 0 && flight.answered == 0
    }

    /// Subtracts bytes of reads that have arrived or will not arrive.
    pub(super) fn await_less(&mut self, bytes: u32) {
        self.awaited = self.awaited.saturating_sub(bytes.into());
        if self.awaited < self.params.max_awaited.into() {
            self.outbox.wake();
        }
    }

    /// Cuts the next packet of an operation; `None` after the last.
    fn cut(&mut self, id: OperationId) -> Option<TxRequest> {
        let flight = self.flights.get_mut(&id)?;
        // Posting has checked that the header can be built.
        let piece = flight.outline.next().ok().flatten()?;
        flight.sent += 1;
        let (form, request) = (flight.outline.form, piece.request);
        let (offset, length, last) = (piece.offset, piece.length, request.eom);
        if flight.outline.opcode == Opcode::UET_READ {
            self.awaited = self.awaited.saturating_add(length.into());
        }
        self.event(SesEvent::Cut { operation: id, form, offset, length, last });
        Some(request)
    }
}
