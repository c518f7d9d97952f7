//! Reads, at both ends: data in the ACK, or on the return direction (sections 3.4.4.2, 3.5.12.1). What fetching atomics
//! give back goes the same ways.

use super::completion::OperationError;
use super::event::{SesEvent, Why};
use super::initiator::Purpose;
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

/// A part of the data of a read, and what it is of.
pub(super) struct Part {
    pub(super) data: Bytes,
    /// The message that it goes out as.
    pub(super) own: u16,
    /// The rendezvous send of ours that it is of.
    pub(super) rendezvous: Option<OperationId>,
    /// How it is delivered when it rides in the ACK.
    pub(super) delivery: Delivery,
}

impl Ses {
    /// Whether there is room for another packet of read data on its way: what rides in the ACK needs none.
    pub(super) fn room_for_data(&self, in_ack: bool) -> Result<(), Denial> {
        match in_ack || self.reads < self.params.max_reads {
            true => Ok(()),
            false => Err(Denial::SentBack(NackCode::NO_RESOURCE, Why::ReadsFull)),
        }
    }

    /// A packet of a read: `length` bytes are wanted of the region.
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
        // `SES-GTD-004`: read data that rode in an ACK need not be kept, since memory still has it.
        let part = Part { data, own, rendezvous, delivery: Delivery::GuaranteedByRepetition };
        Ok(Answer::Respond(self.give_data(rx, request, part, in_ack)))
    }

    /// `SES-READ-003`, `SES-READ-004`: all data of a message goes by one way: in the ACK when it is one packet of at most
    /// Max_ACK_Data_Size bytes, else on the return direction. `SES-READ-008`: by RUDI it rides in the response.
    pub(super) fn rides_in_ack(&self, rx: &RxRequest, request: &SesRequest) -> bool {
        is_rudi(rx) || request.is_whole() && request.total <= self.max_ack_data
    }

    /// The same for a read, of which the parameters may say that it never does. What is being read of a rendezvous send
    /// never does either: in an ACK it might be read twice, and be taken for the read of another.
    pub(super) fn read_rides_in_ack(&self, rx: &RxRequest, request: &SesRequest, region: RegionId) -> bool {
        let may = self.params.read_in_ack && !self.is_rendezvous_source(region);
        is_rudi(rx) || may && self.rides_in_ack(rx, request)
    }

    /// Sends data off, and says what the request is answered.
    pub(super) fn give_data(
        &mut self,
        rx: &RxRequest,
        request: &SesRequest,
        part: Part,
        in_ack: bool,
    ) -> TxResponse {
        let reply = Reply::to(request);
        let Part { data, own, rendezvous, delivery } = part;
        // A part never exceeds the MTU, which fits 14 bits.
        let length = data.len() as u16;
        let head = DataHead {
            reply,
            form: request.form,
            own,
            psn: number_of(rx.ticket),
            length,
            total: request.total,
            offset: request.offset,
        };
        let (next_hdr, head) = head.head();
        match rx.ticket {
            // A read of no bytes has no data to send.
            _ if data.is_empty() => reply.plain(0),
            Ticket::Pdc(pdc, _) if !in_ack => {
                let length = u32::from(length);
                let rendezvous = rendezvous.map(|id| (id, length));
                let message = self.name_sent(Purpose::Data { rendezvous });
                self.reads = self.reads.saturating_add(1);
                // Each is a message to PDS: on this side, requests may come in any order.
                let packet = TxRequest { message, som: true, eom: true, next_hdr, head, payload: data };
                self.outbox.push(Via::Return(pdc), OutboxItem::Packet(packet));
                // The request itself is acknowledged, the last one of a read by a UET_RESPONSE.
                if request.head.eom() { reply.explicit(0) } else { reply.plain(0) }
            }
            _ => {
                let delivery = if is_rudi(rx) { Delivery::Once } else { delivery };
                TxResponse { delivery, next_hdr, head, payload: data }
            }
        }
    }

    /// Read data has come by the return direction.
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
                self.data_arrived(id, data.head().return_code(), data.message_offset(), &rx.payload);
                self.complete_if_done(id);
                Ok(Answer::Respond(reply.plain(0)))
            }
            None => Err(not_awaited()),
        };
        (reply, served)
    }

    /// The same, of a request with a short header.
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
                self.data_arrived(id, data.head().return_code(), 0, &rx.payload);
                self.complete_if_done(id);
                Ok(Answer::Respond(reply.plain(0)))
            }
            None => Err(not_awaited()),
        };
        (reply, served)
    }

    /// Whether an operation waits for this data: it is taken from the target of the read alone, by the context that carries
    /// the read.
    fn is_awaited(&self, id: OperationId, rx: &RxRequest) -> bool {
        let Some(flight) = self.flights.get(&id) else { return false };
        let pdc = match rx.ticket {
            Ticket::Pdc(pdc, _) => Some(pdc),
            _ => None,
        };
        let awaits = (flight.got as usize) < flight.data.len();
        awaits && rx.from == flight.outline.peer.route.destination && pdc == flight.pdc
    }

    /// Data of an operation of ours, by whichever way: it goes where it belongs. What does not fit the read fails it.
    pub(super) fn data_arrived(&mut self, id: OperationId, code: ReturnCode, offset: u32, data: &[u8]) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let (start, length) = (offset as usize, data.len());
        let place = start.checked_add(length).and_then(|end| flight.data.get_mut(start..end));
        let fault = match (code, place) {
            (ReturnCode::OK, Some(place)) => {
                place.copy_from_slice(data);
                let before = flight.awaits();
                flight.got = flight.got.saturating_add(length as u32);
                let less = before - flight.awaits();
                return self.await_less(less);
            }
            (ReturnCode::OK, None) => ReturnCode::OP_VIOLATION,
            (code, _) => code,
        };
        flight.fault.get_or_insert(OperationError::new(fault));
        self.unexpected(Why::NoRead);
    }

    /// A context is gone, and with it the data that was to go back on it.
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

/// The number by which a request without a message id is known.
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
