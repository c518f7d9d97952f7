//! Conversion of a posted operation to an outline. An operation that cannot be posted changes nothing.

use super::Ses;
use super::arithmetic::width_of;
use super::cut::{Outline, Progress, Selector, atomic_ext};
use super::memory::{Key, RegionId};
use super::operation::{AtomicOn, Operand, Operation, PostError, Work};
use super::params::{FormChoice, SmallIndex, UudOpcode};
use super::request::Form;
use crate::{MessageKey, Mode};
use bytes::Bytes;
use core::ops::Range;
use uet_wire::registry::Opcode;
use uet_wire::ses::{Atomic, ExtBuf};

/// The longest message of a short header, whose length field has 14 bits.
const SHORT: u32 = (1 << 14) - 1;

impl Ses {
    /// Returns the outline of an operation, the number of bytes to return, and the part of a rendezvous send that the target
    /// reads.
    pub(super) fn outline(&self, operation: &Operation) -> Result<Outlined, PostError> {
        let (mut data, mut buffer_offset, mut ext) = (Bytes::new(), 0, None);
        let (mut wanted, mut source, mut element) = (0, None, None);
        let (selector, total) = match &operation.work {
            Work::NoOp => (Selector::Match(0), 0),
            Work::Write { key, offset, data: bytes } => {
                (data, buffer_offset) = (bytes.clone(), *offset);
                (Selector::Key(key.0), length(bytes)?)
            }
            Work::Read { key, offset, length } => {
                (wanted, buffer_offset) = (*length, *offset);
                (Selector::Key(key.0), *length)
            }
            Work::Send { tag, data: bytes } => {
                data = bytes.clone();
                (Selector::Match(tag.unwrap_or_default()), length(bytes)?)
            }
            Work::Datagram { data: bytes } => {
                data = bytes.clone();
                (Selector::Match(0), self.one_packet(bytes.len() as u64)?)
            }
            Work::Deferrable { tag, data: bytes } => {
                data = bytes.clone();
                let tag = tag.unwrap_or_default();
                (Selector::Restart { initiator: 0, target: 0, tag }, length(bytes)?)
            }
            Work::Rendezvous { tag, source: region, offset, length, eager } => {
                let (eager, header, rest) = self.rendezvous_source(*region, *offset, *length, *eager)?;
                (data, ext, source) = (eager, Some(header), Some((*region, rest)));
                (Selector::Match(tag.unwrap_or_default()), *length)
            }
            Work::Atomic { on, opcode, datatype, operand, fetch } => {
                let header = Atomic::build(*opcode, *datatype).done().map_err(PostError::Header)?;
                let (length, operands) = match operand {
                    Operand::Elements(bytes) => {
                        data = self.params.convert(*datatype, bytes.clone());
                        (self.one_packet(bytes.len() as u64)?, None)
                    }
                    Operand::None(length) => (self.one_packet((*length).into())?, None),
                    Operand::Swap { compare, swap } => {
                        let size = width_of(*datatype).map_err(|_| PostError::Form)?;
                        element = Some(size);
                        (self.params.swap_length.unwrap_or(size), Some((*compare, *swap)))
                    }
                };
                if operands.is_some() != opcode.is_compare_and_swap() {
                    return Err(PostError::Form);
                }
                ext = Some(atomic_ext(header, operands).map_err(PostError::Header)?);
                wanted = if *fetch { element.unwrap_or(length) } else { 0 };
                match on {
                    AtomicOn::Memory { key, offset } => {
                        buffer_offset = *offset;
                        (Selector::Key(key.0), length)
                    }
                    AtomicOn::Tagged { tag, offset } => {
                        buffer_offset = *offset;
                        (Selector::Match(*tag), length)
                    }
                }
            }
        };
        let span = if source.is_some() { data.len() as u32 } else { element.unwrap_or(total) };
        let mut outline = Outline {
            key: MessageKey(0),
            opcode: match (operation.peer.route.mode, self.params.uud_opcode) {
                (Mode::Uud, UudOpcode::Send) => Opcode::UET_SEND,
                _ => operation.work.opcode(),
            },
            form: Form::Std,
            peer: operation.peer,
            message: 0,
            delivery_complete: operation.delivery_complete,
            header_data: operation.header_data,
            selector,
            buffer_offset,
            ext,
            data,
            total,
            span,
            cut: 0,
            mtu: self.mtu,
            progress: Progress::New,
        };
        outline.form = self.choose_form(&outline, operation.form)?;
        if let (Form::Small, Selector::Key(key), SmallIndex::OptimizedKey) =
            (outline.form, selector, self.params.small_index)
        {
            outline.peer.index = Key(key).short();
        }
        Ok((outline, wanted, source))
    }

    /// Checks that a length fits one packet.
    fn one_packet(&self, length: u64) -> Result<u32, PostError> {
        match u32::try_from(length) {
            Ok(length) if length <= self.mtu => Ok(length),
            _ => Err(PostError::TooLong { most: self.mtu }),
        }
    }

    fn choose_form(&self, outline: &Outline, asked: Option<Form>) -> Result<Form, PostError> {
        let possible = |form: &Form| self.can_say(*form, outline);
        match (asked, self.params.form) {
            (Some(form), _) => Some(form).filter(possible).ok_or(PostError::Form),
            (None, FormChoice::Standard) => Ok(Form::Std),
            (None, FormChoice::Shortest) => {
                Ok([Form::Small, Form::Medium].into_iter().find(possible).unwrap_or(Form::Std))
            }
        }
    }

    /// `WIRE-SES-003`: returns whether a short header can express a message: one packet, and only fields that the
    /// header has.
    fn can_say(&self, form: Form, outline: &Outline) -> bool {
        let by_tokens = matches!(outline.selector, Selector::Restart { .. } | Selector::Ready(_));
        let short = outline.total == outline.span
            && outline.span <= self.mtu.min(SHORT)
            && outline.peer.route.mode != Mode::Uud
            && !by_tokens
            && !outline.opcode.is_rendezvous();
        let keyless = match (outline.selector, self.params.small_index) {
            (Selector::Key(key), SmallIndex::OptimizedKey) => {
                Key(key) == Key(u64::from(Key(key).short())).optimized()
            }
            (Selector::Key(key), SmallIndex::Index) => Key(key) == Key(0).optimized(),
            (Selector::Match(_), _) => {
                // The header has neither tag nor rank, so only a plain send of rank 0 fits.
                matches!(outline.opcode, Opcode::UET_SEND | Opcode::UET_NO_OP) && outline.peer.initiator == 0
            }
            _ => false,
        };
        match form {
            Form::Std => true,
            Form::Medium => short && (outline.header_data.is_none() || outline.buffer_offset == 0),
            Form::Small => short && outline.header_data.is_none() && keyless,
        }
    }
}

/// An outline, the number of bytes to return, and the part of a rendezvous send that the target reads.
type Outlined = (Outline, u32, Option<(RegionId, Range<u64>)>);

/// Checks the delivery mode. UUD carries datagrams only. RUDI carries idempotent operations only: `WIRE-AMO-004` excludes
/// atomics, and a repeated send would take a second buffer.
pub(super) fn check_mode(operation: &Operation) -> Result<(), PostError> {
    let fits = match operation.peer.route.mode {
        Mode::Rud | Mode::Rod => true,
        Mode::Uud => matches!(operation.work, Work::Datagram { .. }),
        Mode::Rudi => matches!(operation.work, Work::Write { .. } | Work::Read { .. } | Work::NoOp),
    };
    if fits { Ok(()) } else { Err(PostError::Mode) }
}

fn length(data: &Bytes) -> Result<u32, PostError> {
    u32::try_from(data.len()).map_err(|_| PostError::TooLong { most: u32::MAX })
}

/// The result of [`Ses::rendezvous_source`]: the first bytes, the extension, and the location of the rest.
pub(super) type RendezvousSource = (Bytes, ExtBuf, Range<u64>);
