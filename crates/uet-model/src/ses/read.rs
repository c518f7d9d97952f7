//! Reads at both ends: data in the ACK, or on the return direction (sections 3.4.4.2, 3.5.12.1). Values of fetching
//! atomics use these paths too.

use super::completion::OperationError;
use super::event::{SesEvent, Why};
use super::initiator::{Owner, Purpose};
use super::memory::{Access, RegionId};
use super::operation::OperationId;
use super::outbox::OutboxItem;
use super::request::SesRequest;
use super::response::{DataHead, Reply};
use super::target::{Answer, Denial};
use super::{Refusal, Ses};
use crate::{Delivery, Failure, PdcHandle, RxRequest, Ticket, TxRequest, TxResponse, Via};
use bytes::Bytes;
use uet_wire::Psn;
use uet_wire::registry::{NackCode, ReturnCode};
use uet_wire::ses::{ResponseData, ResponseDataSmall};

/// A part of the data of a read.
pub(super) struct Part {
    pub(super) data: Bytes,
    /// The length of the whole read, as its data states it.
    pub(super) total: u32,
    /// The message id of the data.
    pub(super) own: u16,
    /// Our rendezvous send that it belongs to.
    pub(super) rendezvous: Option<OperationId>,
    /// The guarantee for its delivery in an ACK.
    pub(super) delivery: Delivery,
}

impl Ses {
    /// Checks the room for another packet of read data in flight. Data in an ACK needs none.
    pub(super) fn room_for_data(&self, in_ack: bool) -> Result<(), Denial> {
        match in_ack || self.reads < self.params.max_reads {
            true => Ok(()),
            false => Err(Denial::SentBack(NackCode::NO_RESOURCE, Why::ReadsFull)),
        }
    }

    /// Serves a packet of a read: `length` bytes of the region.
    pub(super) fn serve_read(
        &mut self,
        rx: &RxRequest,
        request: &SesRequest,
        region: RegionId,
        own: u16,
        length: u32,
    ) -> Result<Answer, Refusal> {
        let offset = request.buffer_offset.saturating_add(request.offset.into());
        let span = self.regions.access(region, Access::READ, offset, length.into(), &self.params)?;
        let (data, address) = (span.read()?, span.address);
        let in_ack = self.read_rides_in_ack(rx, request, region);
        self.event(SesEvent::Read { region, address, length, in_ack });
        let rendezvous = if in_ack { None } else { self.rendezvous_of(rx, request, region, length) };
        // `SES-GTD-004`: read data in an ACK need not be kept, since memory still has it.
        let total = request.total;
        let part = Part { data, total, own, rendezvous, delivery: Delivery::GuaranteedByRepetition };
        Ok(Answer::Respond(self.give_data(rx, request, part, in_ack)))
    }

    /// Returns whether the ACK carries the data. `SES-READ-003`, `SES-READ-004`: all data of a message takes one path.
    /// This is the ACK for a message of at most Max_ACK_Data_Size bytes, and the return direction otherwise.
    /// `SES-READ-008`: in RUDI the response carries it.
    pub(super) fn rides_in_ack(&self, rx: &RxRequest, request: &SesRequest) -> bool {
        is_rudi(rx) || request.total <= self.max_ack_data
    }

    /// Returns whether the ACK carries the data of a read, which the parameters may forbid. It never carries data of a
    /// rendezvous send, because repeated data could count for another send.
    pub(super) fn read_rides_in_ack(&self, rx: &RxRequest, request: &SesRequest, region: RegionId) -> bool {
        let may = self.params.read_in_ack && !self.is_rendezvous_source(region);
        is_rudi(rx) || may && self.rides_in_ack(rx, request)
    }

    /// Sends data, and returns the response to the request.
    pub(super) fn give_data(
        &mut self,
        rx: &RxRequest,
        request: &SesRequest,
        part: Part,
        in_ack: bool,
    ) -> TxResponse {
        let reply = Reply::to(request);
        let Part { data, total, own, rendezvous, delivery } = part;
        // A part never exceeds the MTU, which fits 14 bits.
        let length = data.len() as u16;
        let head = DataHead {
            reply,
            form: request.form,
            own,
            psn: number_of(rx.ticket),
            length,
            total,
            offset: request.offset,
        };
        let (next_hdr, head) = head.head();
        match rx.ticket {
            // An empty read has no data to send.
            _ if data.is_empty() => reply.plain(0),
            Ticket::Pdc(pdc, _) if !in_ack => {
                let length = u32::from(length);
                let rendezvous = rendezvous.map(|id| (id, length));
                let message = self.name_sent(Purpose::Data { rendezvous });
                self.reads = self.reads.saturating_add(1);
                // Each packet is a message to PDS, because requests in this direction may come in any order.
                // `PDS-ROD-006`: those of an ordered context come in the order of its PSNs, and leave in it.
                let packet = TxRequest { message, som: true, eom: true, next_hdr, head, payload: data };
                self.outbox.push(Via::Return(pdc), OutboxItem::Packet(packet));
                // The response acknowledges the request. For the last one of a read, both forms are right.
                match request.head.eom() && self.params.explicit_read {
                    true => reply.explicit(total),
                    false => reply.plain(0),
                }
            }
            _ => {
                let delivery = if is_rudi(rx) { Delivery::Once } else { delivery };
                TxResponse { delivery, next_hdr, head, payload: data }
            }
        }
    }

    /// Handles read data from the return direction.
    pub(super) fn read_data(
        &mut self,
        rx: &RxRequest,
        data: &ResponseData,
    ) -> (Reply, Result<Answer, Denial>) {
        let reply = Reply { message: data.response_message_id(), job: data.job_id() };
        let id = self.by_message.get(&data.read_request_message_id()).copied();
        let told = usize::from(data.payload_length()) == rx.payload.len();
        let served = match id.filter(|id| told && self.is_awaited(*id, rx)) {
            Some(id) => {
                let whole =
                    self.data_arrived(id, data.head().return_code(), data.message_offset(), &rx.payload);
                self.complete_if_done(id);
                Ok(Answer::Respond(reply.plain(whole)))
            }
            None => Err(not_awaited()),
        };
        (reply, served)
    }

    /// Handles read data for a request with a short header.
    pub(super) fn read_data_small(
        &mut self,
        rx: &RxRequest,
        data: &ResponseDataSmall,
    ) -> (Reply, Result<Answer, Denial>) {
        let reply = Reply { message: 0, job: data.job_id() };
        let id = match rx.ticket {
            Ticket::Pdc(pdc, _) => self.by_psn.get(&(pdc, data.original_request_psn().0)).copied(),
            _ => None,
        };
        let told = usize::from(data.payload_length()) == rx.payload.len();
        let served = match id.filter(|id| told && self.is_awaited(*id, rx)) {
            Some(id) => {
                let whole = self.data_arrived(id, data.head().return_code(), 0, &rx.payload);
                self.complete_if_done(id);
                Ok(Answer::Respond(reply.plain(whole)))
            }
            None => Err(not_awaited()),
        };
        (reply, served)
    }

    /// Returns whether an operation waits for this data. Only the target of the read may send it, on the context that
    /// carries the read.
    fn is_awaited(&self, id: OperationId, rx: &RxRequest) -> bool {
        let Some(flight) = self.flights.get(&id) else { return false };
        let pdc = match rx.ticket {
            Ticket::Pdc(pdc, _) => Some(pdc),
            _ => None,
        };
        let awaits = (flight.got as usize) < flight.data.len();
        awaits && rx.from == flight.outline.peer.route.destination && pdc == flight.pdc
    }

    /// Stores data of an operation, and returns the length of the whole read, which the response to the data states. Data
    /// outside the read fails the operation.
    pub(super) fn data_arrived(
        &mut self,
        id: OperationId,
        code: ReturnCode,
        offset: u32,
        data: &[u8],
    ) -> u32 {
        let Some(flight) = self.flights.get_mut(&id) else { return 0 };
        let whole = flight.data.len() as u32;
        let (start, length) = (offset as usize, data.len());
        let place = start.checked_add(length).and_then(|end| flight.data.get_mut(start..end));
        // A read has no other use for the set. Bytes that came twice could hide a hole.
        let range = u64::from(offset)..u64::from(offset) + length as u64;
        let fault = match (code, place) {
            (ReturnCode::OK, Some(place)) if flight.claimed.take(range) => {
                place.copy_from_slice(data);
                let before = flight.awaits();
                flight.got = flight.got.saturating_add(length as u32);
                let (less, owner) = (before - flight.awaits(), flight.owner);
                self.await_less(less);
                if let Owner::Landing(landing) = owner {
                    self.landings.get_mut(landing).into_iter().for_each(|landing| landing.stalled = false);
                }
                return whole;
            }
            (ReturnCode::OK, _) => ReturnCode::OP_VIOLATION,
            (code, _) => code,
        };
        flight.fault.get_or_insert(OperationError::new(fault));
        self.unexpected(Why::NoRead);
        whole
    }

    /// Handles the end of a context: its return data is lost.
    pub(super) fn close_return(&mut self, pdc: PdcHandle) {
        for outgoing in self.outbox.remove(Via::Return(pdc)) {
            if let OutboxItem::Packet(packet) = outgoing {
                self.data_lost(packet.message, Failure::Closed);
            }
        }
    }
}

fn is_rudi(rx: &RxRequest) -> bool {
    matches!(rx.ticket, Ticket::Rudi(..))
}

/// Returns the number that identifies a request without a message id.
fn number_of(ticket: Ticket) -> Psn {
    match ticket {
        Ticket::Pdc(_, psn) => psn,
        Ticket::Rudi(_, _, id) => Psn(id),
        Ticket::Uud => Psn::default(),
    }
}

fn not_awaited() -> Denial {
    Refusal::new(ReturnCode::UNDELIVERABLE, Why::NoRead).into()
}
