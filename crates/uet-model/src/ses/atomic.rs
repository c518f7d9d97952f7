//! Atomics on memory and on tagged buffers (section 3.4.2).

use super::arithmetic::{AtomicOperation, apply, changes, width_of};
use super::completion::Received;
use super::event::{SesEvent, Why};
use super::memory::{self, Access};
use super::params::SesParams;
use super::read::Part;
use super::receive::sender;
use super::request::SesRequest;
use super::response::Reply;
use super::target::{Answer, Denial};
use super::{Refusal, Ses};
use crate::{Delivery, Memory, RxRequest, TxResponse};
use bytes::Bytes;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, List, Opcode, ReturnCode};
use uet_wire::ses::ExtBuf;

impl Ses {
    /// Executes an atomic on a region.
    pub(super) fn atomic_on_memory(
        &mut self,
        rx: &RxRequest,
        request: &SesRequest,
    ) -> Result<Answer, Denial> {
        let fetch = request.opcode() == Opcode::UET_FETCHING_ATOMIC;
        let (operation, request) = whole(rx, request, self.mtu, &self.params)?;
        let request = &request;
        if fetch {
            self.room_for_data(self.rides_in_ack(rx, request))?;
        }
        let access = access(operation.opcode, fetch);
        let region = self.region(rx, request, access)?;
        let (offset, length) = (request.buffer_offset, request.total.into());
        let span = self.regions.access(region, access, offset, length, &self.params)?;
        let address = span.address;
        aligned(operation.datatype, address)?;
        let old = span.update(|memory| act(&operation, memory, fetch, &self.params))?;
        Ok(Answer::Respond(self.acted(rx, request, &operation, address, old)))
    }

    /// Executes an atomic on the buffer of the receive that its tag selects, and completes the receive (`SES-AMO-011`).
    pub(super) fn atomic_by_tag(&mut self, rx: &RxRequest, request: &SesRequest) -> Result<Answer, Denial> {
        let fetch = request.opcode() == Opcode::UET_TSEND_FETCH_ATOMIC;
        let (operation, request) = whole(rx, request, self.mtu, &self.params)?;
        let request = &request;
        if fetch {
            self.room_for_data(self.rides_in_ack(rx, request))?;
        }
        let sender = sender(rx, request);
        let (index, slot) = self.tables.index(request)?;
        slot.check_generation(request.address.ri_generation())?;
        slot.check_enabled()?;
        let Some(posted) = slot.queue.peek_expected(&sender) else {
            return Err(Refusal::new(ReturnCode::NO_MATCH, Why::NoMatch).into());
        };
        let size = u64::from(posted.receive.capacity);
        let (offset, length) = (request.buffer_offset, u64::from(request.total));
        let Some(end) = offset.checked_add(length).filter(|end| *end <= size) else {
            let why = Why::OutOfRange { offset, length, size };
            return Err(Refusal::new(self.params.out_of_range, why).into());
        };
        aligned(operation.datatype, offset)?;
        let mut buffer = match &posted.memory {
            Some(_) => Vec::new(),
            None => posted.receive.initial.to_vec(),
        };
        let memory: &mut dyn Memory = match &mut posted.memory {
            Some(memory) => memory,
            None => {
                buffer.resize(posted.receive.capacity as usize, 0);
                &mut buffer
            }
        };
        let range = offset as usize..end as usize;
        let old = memory::update(memory, range, |memory| act(&operation, memory, fetch, &self.params))?;
        if let Some((id, _)) = slot.queue.take_expected(&sender) {
            self.event(SesEvent::Matched { index, list: List::UET_EXPECTED, receive: Some(id) });
            self.received(Received {
                id,
                index,
                sender,
                code: ReturnCode::OK,
                length: size as u32,
                data: buffer.into(),
                total: request.total,
                list: List::UET_EXPECTED,
                header_data: request.header_data,
            });
        }
        Ok(Answer::Respond(self.acted(rx, request, &operation, offset, old)))
    }

    /// Returns the response to an atomic. `SES-AMO-007`: fetching atomics return the old value. `SES-GTD-003`: the response
    /// is kept, because a repetition would not find the old value.
    fn acted(
        &mut self,
        rx: &RxRequest,
        request: &SesRequest,
        operation: &Parsed,
        address: u64,
        old: Option<Bytes>,
    ) -> TxResponse {
        let Parsed { opcode, datatype, stated, .. } = *operation;
        let elements = width_of(datatype).map_or(0, |size| request.total / size);
        self.event(SesEvent::Acted { address, opcode, datatype, elements });
        match old {
            None => Reply::to(request).plain(stated),
            Some(data) => {
                let in_ack = self.rides_in_ack(rx, request);
                let own = self.name_response(request);
                // For a compare and swap, sources leave open whether `modified_length` is the request_length or the
                // element's. Both are one value unless `swap_length` makes them differ: then it is the former.
                let part =
                    Part { data, total: stated, own, rendezvous: None, delivery: Delivery::Guaranteed };
                self.give_data(rx, request, part, in_ack)
            }
        }
    }
}

/// An atomic request, with its operands as the packet carries them.
struct Parsed {
    opcode: AtomicOpcode,
    datatype: AtomicDatatype,
    operand: Bytes,
    /// The values of a compare and swap.
    swap: Option<(u128, u128)>,
    /// `request_length`.
    stated: u32,
}

/// Applies the operation, and returns the old value for a fetching atomic, as packets carry it.
fn act(
    operation: &Parsed,
    memory: &mut [u8],
    fetch: bool,
    params: &SesParams,
) -> Result<Option<Bytes>, Refusal> {
    let Parsed { opcode, datatype, swap, .. } = *operation;
    let old = fetch.then(|| params.convert(datatype, Bytes::copy_from_slice(memory)));
    let operand = params.operand(datatype, &operation.operand);
    let operation = AtomicOperation { opcode, datatype, operand: &operand, swap };
    params.in_little(datatype, memory, |memory| apply(operation, memory, params))?;
    Ok(old)
}

/// Parses and checks an atomic request. Returns it with the length of its elements, which may differ from the
/// `request_length` of a compare and swap.
///
/// `SES-AMO-006`: an atomic is one packet. `SES-AMO-004`: it has whole elements that fit one packet. `SES-AMO-010`
/// relies on packet delivery, which delivers each packet once.
fn whole(
    rx: &RxRequest,
    request: &SesRequest,
    mtu: u32,
    params: &SesParams,
) -> Result<(Parsed, SesRequest), Refusal> {
    if request.head.ie() {
        return Err(Refusal::new(ReturnCode::INITIATOR_ERR, Why::GivenUp));
    }
    if !request.is_whole() {
        return Err(Refusal::new(ReturnCode::OP_VIOLATION, Why::NotWhole));
    }
    let (header, swap) = match request.ext {
        Some(ExtBuf::Atomic(header)) => (header, None),
        Some(ExtBuf::CompareSwap(header)) => {
            (header.atomic().copied(), Some((header.compare_value(), header.swap_value())))
        }
        _ => return Err(Refusal::new(ReturnCode::OP_VIOLATION, Why::Malformed)),
    };
    let (opcode, datatype) = (header.atomic_opcode(), header.atomic_datatype());
    let size = width_of(datatype)?;
    let (stated, length) = match swap {
        Some(_) if request.total == params.swap_length.unwrap_or(size) => (request.total, size),
        Some(_) => return Err(Refusal::new(ReturnCode::AMO_UNSUPPORTED_SIZE, Why::AtomicSize)),
        None => (request.total, request.total),
    };
    if length % size != 0 || length == 0 || length > mtu {
        return Err(Refusal::new(ReturnCode::AMO_UNSUPPORTED_SIZE, Why::AtomicSize));
    }
    let bare = swap.is_some() || !changes(opcode);
    let carried = rx.payload.len();
    if carried != stated as usize && !(bare && carried == 0) {
        return Err(Refusal::new(ReturnCode::OP_VIOLATION, Why::Lengths));
    }
    let parsed = Parsed { opcode, datatype, operand: rx.payload.clone(), swap, stated };
    Ok((parsed, SesRequest { total: length, ..request.clone() }))
}

/// Returns the access that an atomic needs.
fn access(opcode: AtomicOpcode, fetch: bool) -> Access {
    Access { read: fetch || !changes(opcode), write: false, atomic: changes(opcode) }
}

/// `SES-AMO-005`: an element is aligned to its size, and a complex number to the size of its parts.
fn aligned(datatype: AtomicDatatype, address: u64) -> Result<(), Refusal> {
    let size = u64::from(width_of(datatype)?);
    let align = match datatype {
        AtomicDatatype::FLOAT_COMPLEX | AtomicDatatype::DOUBLE_COMPLEX => size / 2,
        _ => size,
    };
    match address % align {
        0 => Ok(()),
        _ => Err(Refusal::new(ReturnCode::AMO_UNALIGNED, Why::Alignment(address))),
    }
}
