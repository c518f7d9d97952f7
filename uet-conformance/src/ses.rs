//! Messages of the suite and the packets that carry them.

use crate::{Region, Stop};
use uet_control::Form;
use uet_wire::WriteError;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, Opcode};
use uet_wire::ses::{self, Atomic, CompareSwap, ExtBuf, Medium, Rendezvous, SesBuf, Small, Std, StdMut};

/// A message of the suite. A script can change every field before it creates [packets](Part).
///
/// ```
/// use uet_conformance::Message;
/// use uet_wire::registry::Opcode;
///
/// let send = Message { index: 7, initiator: 3, ..Message::new(Opcode::UET_TAGGED_SEND) };
/// let send = send.selector(0x70).data(&[1; 5000]);
/// let parts = send.parts(4096)?;
/// assert_eq!(parts.iter().map(|part| part.payload.len()).collect::<Vec<_>>(), [4096, 904]);
/// # Ok::<(), uet_wire::WriteError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
#[allow(missing_docs)] // named as the header's fields are
pub struct Message {
    pub opcode: Opcode,
    pub id: u16,
    pub relative: bool,
    pub job: u32,
    pub process: u16,
    pub index: u16,
    pub generation: u8,
    /// Memory key or match bits, depending on the opcode.
    pub selector: u64,
    pub offset: u64,
    pub initiator: u32,
    pub header_data: Option<u64>,
    /// The initiator's restart token and the target's.
    pub tokens: Option<(u32, u32)>,
    /// `dc`: the last packet is answered when all data is visible.
    pub complete: bool,
    /// The length of the message.
    pub length: u32,
    pub data: Vec<u8>,
    pub ext: Option<ExtBuf>,
}

/// A packet of a message without its PDS header.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named as the parts of a packet are
pub struct Part {
    pub ses: SesBuf,
    pub ext: Option<ExtBuf>,
    pub payload: Vec<u8>,
}

impl Message {
    /// Creates an empty message for index 10 of process 2 of job 101.
    pub fn new(opcode: Opcode) -> Self {
        Message {
            opcode,
            id: 1,
            relative: true,
            job: 101,
            process: 2,
            index: 10,
            generation: 0,
            selector: 0,
            offset: 0,
            initiator: 0,
            header_data: None,
            tokens: None,
            complete: false,
            length: 0,
            data: Vec::new(),
            ext: None,
        }
    }

    /// Creates an empty message for a region.
    pub fn on(opcode: Opcode, region: &Region) -> Self {
        Message {
            job: region.job,
            process: region.process,
            index: region.index,
            generation: region.generation,
            selector: region.key,
            ..Message::new(opcode)
        }
    }

    /// Creates a write that is answered when its data is visible.
    pub fn write(region: &Region, offset: u64, data: &[u8]) -> Self {
        Message { offset, complete: true, ..Message::on(Opcode::UET_WRITE, region) }.data(data)
    }

    /// Creates a read.
    pub fn read(region: &Region, offset: u64, length: u32) -> Self {
        Message { offset, length, ..Message::on(Opcode::UET_READ, region) }
    }

    /// Creates a plain send.
    pub fn send(data: &[u8]) -> Self {
        Message::new(Opcode::UET_SEND).data(data)
    }

    /// Creates a tagged send.
    pub fn tagged(bits: u64, data: &[u8]) -> Self {
        Message::new(Opcode::UET_TAGGED_SEND).selector(bits).data(data)
    }

    /// Creates an atomic with these operands.
    pub fn atomic(
        region: &Region,
        offset: u64,
        (opcode, datatype): (AtomicOpcode, AtomicDatatype),
        operands: &[u8],
    ) -> Result<Self, WriteError> {
        let ext = Some(Atomic::build(opcode, datatype).done()?.into());
        Ok(Message { offset, ext, ..Message::on(Opcode::UET_ATOMIC, region) }.data(operands))
    }

    /// Creates a compare and swap of an element of this many bytes.
    pub fn swap(
        region: &Region,
        offset: u64,
        (opcode, datatype, size): (AtomicOpcode, AtomicDatatype, u32),
        (compare, swap): (u128, u128),
    ) -> Result<Self, WriteError> {
        let ext = CompareSwap::zeroed().edit().atomic(|a| a.atomic_opcode(opcode).atomic_datatype(datatype));
        let ext = Some(ext.compare_value(compare).swap_value(swap).done()?.into());
        Ok(Message { offset, length: size, ext, ..Message::on(Opcode::UET_ATOMIC, region) })
    }

    /// Sets the message id.
    pub fn named(self, id: u16) -> Self {
        Message { id, ..self }
    }

    /// Sets the opcode.
    pub fn opcode(self, opcode: Opcode) -> Self {
        Message { opcode, ..self }
    }

    /// Sets the memory key or the match bits.
    pub fn selector(self, selector: u64) -> Self {
        Message { selector, ..self }
    }

    /// Sets the bytes and the length of the message.
    pub fn data(self, data: &[u8]) -> Self {
        Message { data: data.to_vec(), length: data.len() as u32, ..self }
    }

    /// Turns it into a rendezvous send of `length` bytes: it carries the data, and the target reads the rest
    /// from `rest`.
    pub fn rendezvous(self, length: u32, rest: &Region, offset: u64) -> Result<Self, WriteError> {
        let ext = Rendezvous::zeroed().edit().eager_length(self.data.len() as u32);
        let ext = ext.read_ri_generation(rest.generation).read_pid_on_fep(rest.process);
        let ext = ext.read_resource_index(rest.index).read_offset(offset).read_memory_key(rest.key).done()?;
        Ok(Message { length, ext: Some(ext.into()), ..self })
    }

    /// Returns the number of its packets.
    pub fn count(&self, mtu: usize) -> usize {
        self.span().div_ceil(mtu).max(1)
    }

    /// Returns the number of bytes that its packets carry or request.
    fn span(&self) -> usize {
        let reads = self.opcode == Opcode::UET_READ;
        if reads { self.length as usize } else { self.data.len() }
    }

    /// Returns the message as one packet with a standard header.
    pub fn whole(&self) -> Result<Part, WriteError> {
        self.part(self.span().max(1), 0)
    }

    /// Returns all its packets.
    pub fn parts(&self, mtu: usize) -> Result<Vec<Part>, WriteError> {
        (0..self.count(mtu)).map(|k| self.part(mtu, k)).collect()
    }

    /// Returns packet `k` with a standard header, of packets of `mtu` bytes.
    pub fn part(&self, mtu: usize, k: usize) -> Result<Part, WriteError> {
        let start = (k * mtu).min(self.span());
        let end = (start + mtu).min(self.span());
        let (som, eom) = (k == 0, end == self.span());
        let hd = som && self.header_data.is_some();
        let std = Std::build(self.opcode)
            .head(|head| head.dc(self.complete).rel(self.relative).hd(hd).som(som).eom(eom))
            .message_id(self.id)
            .address(|address| self.address(address));
        let std = match self.tokens {
            Some((initiator, target)) if self.opcode != Opcode::UET_DEFERRABLE_RTR => {
                std.send_initiator_token(initiator).send_target_token(target)
            }
            _ => std.buffer_offset(self.offset),
        };
        let std = std.initiator(self.initiator);
        let std = match (self.tokens, is_keyed(self.opcode)) {
            (Some((initiator, target)), _) if self.opcode == Opcode::UET_DEFERRABLE_RTR => {
                std.ready_initiator_token(initiator).ready_target_token(target)
            }
            (_, true) => std.memory_key(self.selector),
            (_, false) => std.match_bits(self.selector),
        };
        let std = if som {
            std.header_data(self.header_data.unwrap_or_default())
        } else {
            std.payload_length((end - start) as u16).message_offset(start as u32)
        };
        let ses = std.request_length(self.length).done()?.into();
        let payload = self.data.get(start..end).unwrap_or_default().to_vec();
        Ok(Part { ses, ext: self.ext, payload })
    }

    /// Returns the message as one packet with a medium header.
    pub fn medium(&self) -> Result<Part, WriteError> {
        let hd = self.header_data.is_some();
        let medium = Medium::build(self.opcode).head(|head| head.dc(self.complete).rel(self.relative).hd(hd));
        let medium = medium.request_length(self.length as u16).address(|address| self.address(address));
        let medium = match self.header_data {
            Some(data) => medium.header_data(data),
            None => medium.buffer_offset(self.offset),
        };
        let medium = medium.initiator(self.initiator);
        let medium = if is_keyed(self.opcode) {
            medium.memory_key(self.selector)
        } else {
            medium.match_bits(self.selector)
        };
        Ok(Part { ses: medium.done()?.into(), ext: self.ext, payload: self.data.clone() })
    }

    /// Returns the message as one packet with a small header.
    pub fn small(&self) -> Result<Part, WriteError> {
        let small = Small::build(self.opcode).head(|head| head.dc(self.complete).rel(self.relative));
        let small = small.request_length(self.length as u16).address(|address| self.address(address));
        let ses = small.buffer_offset(self.offset).done()?.into();
        Ok(Part { ses, ext: self.ext, payload: self.data.clone() })
    }

    /// Returns the message as one packet with a header of this form.
    pub(crate) fn in_form(&self, form: Form) -> Result<Part, WriteError> {
        match form {
            Form::Std => self.whole(),
            Form::Medium => self.medium(),
            Form::Small => self.small(),
        }
    }

    fn address<'p>(&self, address: ses::AddressMut<&'p mut [u8; 8]>) -> ses::AddressMut<&'p mut [u8; 8]> {
        let address = address.ri_generation(self.generation).job_id(self.job);
        address.pid_on_fep(self.process).resource_index(self.index)
    }
}

impl Part {
    /// Changes fields of its standard header.
    pub fn edit(self, change: impl FnOnce(StdMut) -> StdMut) -> Result<Self, Stop> {
        match self.ses {
            SesBuf::Std(std) => Ok(Part { ses: change(std.edit()).done()?.into(), ..self }),
            _ => Err(Stop::Inconclusive("the rule changes a standard header that is none".into())),
        }
    }
}

fn is_keyed(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::UET_WRITE | Opcode::UET_READ | Opcode::UET_ATOMIC | Opcode::UET_FETCHING_ATOMIC)
}
