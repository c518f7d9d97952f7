//! Cutting messages into packets (sections 3.4.2, 3.4.4.2).
//!
//! Cutting is lazy: an [`Outline`] has the same size for any message, and returns one packet at a time.

use super::operation::Peer;
use super::params::Abort;
use super::request::Form;
use crate::{Head, MessageKey, TxRequest};
use bytes::Bytes;
use uet_wire::WriteError;
use uet_wire::registry::{AtomicDatatype, NextHdr, Opcode};
use uet_wire::ses::{Atomic, CompareSwap, ExtBuf, Medium, Small, Std};

/// The common fields of the packets of a message, and the progress of cutting.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct Outline {
    pub(super) key: MessageKey,
    pub(super) opcode: Opcode,
    pub(super) form: Form,
    pub(super) peer: Peer,
    pub(super) message: u16,
    pub(super) delivery_complete: bool,
    pub(super) header_data: Option<u64>,
    pub(super) selector: Selector,
    pub(super) buffer_offset: u64,
    pub(super) ext: Option<ExtBuf>,
    /// The payload of all packets; empty if they carry none.
    pub(super) data: Bytes,
    /// The length of the message.
    pub(super) total: u32,
    /// The number of bytes that the packets carry or request: all, except for rendezvous sends. For a compare and swap,
    /// the size of its element.
    pub(super) span: u32,
    /// The number of those bytes cut so far.
    pub(super) cut: u32,
    /// The maximum number of bytes in a packet.
    pub(super) mtu: u32,
    pub(super) progress: Progress,
}

/// The progress of cutting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum Progress {
    /// No packet has left.
    New,
    /// The last packet has not left.
    Underway,
    /// The next packet ends the message early.
    GivingUp(Abort),
    /// The last packet has left.
    Done,
}

/// The selector of the memory or the receive at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum Selector {
    Key(u64),
    Match(u64),
    /// A deferrable send: the tokens of initiator and target, and the match bits if it is tagged.
    Restart {
        initiator: u32,
        target: u32,
        tag: u64,
    },
    /// A DEFERRABLE_RTR: the tokens, in the order of [`SesParams::ready_tokens`](super::SesParams).
    Ready((u32, u32)),
}

/// A packet of a message.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) offset: u32,
    pub(super) length: u32,
    pub(super) request: TxRequest,
}

impl Outline {
    /// Returns the next packet; `None` after the last.
    ///
    /// `SES-CUT-001`: packet k starts at k times the MTU. `SES-CUT-002`: the first has `som`, the last `eom`. `SES-CUT-003`:
    /// all have the same message id and length. `SES-READ-002`: a read is cut like its data, and its packets carry no
    /// payload.
    pub(super) fn next(&mut self) -> Result<Option<Piece>, WriteError> {
        let left = self.span.saturating_sub(self.cut);
        let (length, last) = match self.progress {
            Progress::Done => return Ok(None),
            Progress::GivingUp(_) => (0, true),
            // `SES-CUT-004`: an empty message has one packet without payload.
            Progress::New | Progress::Underway => (left.min(self.mtu), left <= self.mtu),
        };
        let first = self.progress == Progress::New;
        let (offset, end) = (self.cut, self.cut + length);
        let (next_hdr, head) = self.head(first, last, offset, length)?;
        let (from, to) = ((offset as usize).min(self.data.len()), (end as usize).min(self.data.len()));
        let payload = if last && offset == 0 { self.data.clone() } else { self.data.slice(from..to) };
        let payload = if self.gives_up().is_some() { Bytes::new() } else { payload };
        self.cut = end;
        self.progress = if last { Progress::Done } else { Progress::Underway };
        let request = TxRequest { message: self.key, som: first, eom: last, next_hdr, head, payload };
        Ok(Some(Piece { offset, length, request }))
    }

    /// Returns the datatype of an atomic.
    pub(super) fn datatype(&self) -> Option<AtomicDatatype> {
        match self.ext {
            Some(ExtBuf::Atomic(header)) => Some(header.atomic_datatype()),
            Some(ExtBuf::CompareSwap(header)) => Some(header.atomic().atomic_datatype()),
            _ => None,
        }
    }

    /// Ends the message with the next packet. If no packet has left, there is no next one.
    pub(super) fn give_up(&mut self, how: Abort) {
        self.progress = match self.progress {
            Progress::New | Progress::Done => Progress::Done,
            Progress::Underway | Progress::GivingUp(_) => Progress::GivingUp(how),
        };
    }

    fn gives_up(&self) -> Option<Abort> {
        match self.progress {
            Progress::GivingUp(how) => Some(how),
            _ => None,
        }
    }

    fn head(&self, first: bool, last: bool, offset: u32, length: u32) -> Result<(NextHdr, Head), WriteError> {
        let mut head = Head::new();
        let next_hdr = match self.form {
            Form::Std => {
                push(&mut head, self.std(first, last, offset, length)?.bytes());
                NextHdr::UET_HDR_REQUEST_STD
            }
            Form::Medium => {
                push(&mut head, self.medium()?.bytes());
                NextHdr::UET_HDR_REQUEST_MEDIUM
            }
            Form::Small => {
                push(&mut head, self.small()?.bytes());
                NextHdr::UET_HDR_REQUEST_SMALL
            }
        };
        // UET_MSG_ERROR ends a message early, and has no extension.
        if let (Some(ext), None | Some(Abort::InitiatorError)) = (&self.ext, self.gives_up()) {
            push(&mut head, ext.view().bytes());
        }
        Ok((next_hdr, head))
    }

    /// `SES-CUT-005`: the first packet has the header data, all others length and offset. `SES-CUT-006`: all have the same
    /// buffer offset.
    fn std(&self, first: bool, last: bool, offset: u32, length: u32) -> Result<Std, WriteError> {
        let (opcode, ie) = match self.gives_up() {
            Some(Abort::MessageError) => (Opcode::UET_MSG_ERROR, false),
            Some(Abort::InitiatorError) => (self.opcode, true),
            None => (self.opcode, false),
        };
        let header = Std::build(opcode)
            .head(|head| {
                let head = head.dc(self.delivery_complete).ie(ie).rel(self.peer.relative);
                head.hd(first && self.header_data.is_some()).eom(last).som(first)
            })
            .message_id(self.message)
            .address(|address| {
                let address = address.ri_generation(self.peer.generation).job_id(self.peer.route.job);
                address.pid_on_fep(self.peer.pid).resource_index(self.peer.index)
            });
        // `SES-ERR-007`, `SES-CUT-006`: UET_MSG_ERROR repeats the initiator, the target and the buffer offset of its message.
        let header = if opcode == Opcode::UET_MSG_ERROR {
            header.buffer_offset(self.buffer_offset).initiator(self.peer.initiator)
        } else {
            match self.selector {
                Selector::Key(key) => {
                    header.buffer_offset(self.buffer_offset).initiator(self.peer.initiator).memory_key(key)
                }
                Selector::Match(bits) => {
                    header.buffer_offset(self.buffer_offset).initiator(self.peer.initiator).match_bits(bits)
                }
                Selector::Restart { initiator, target, tag } => {
                    let header = header.send_initiator_token(initiator).send_target_token(target);
                    header.initiator(self.peer.initiator).match_bits(tag)
                }
                Selector::Ready((first, second)) => header
                    .buffer_offset(self.buffer_offset)
                    .initiator(self.peer.initiator)
                    .ready_initiator_token(first)
                    .ready_target_token(second),
            }
        };
        let header = match first {
            true => header.header_data(self.header_data.unwrap_or_default()),
            false => header.payload_length(length as u16).message_offset(offset),
        };
        header.request_length(self.total).done()
    }

    fn medium(&self) -> Result<Medium, WriteError> {
        let header = Medium::build(self.opcode)
            .head(|head| {
                let head = head.dc(self.delivery_complete).rel(self.peer.relative);
                head.hd(self.header_data.is_some())
            })
            .request_length(self.total as u16)
            .address(|address| {
                let address = address.ri_generation(self.peer.generation).job_id(self.peer.route.job);
                address.pid_on_fep(self.peer.pid).resource_index(self.peer.index)
            });
        let header = match self.header_data {
            Some(data) => header.header_data(data),
            None => header.buffer_offset(self.buffer_offset),
        };
        let header = header.initiator(self.peer.initiator);
        match self.selector {
            Selector::Key(key) => header.memory_key(key).done(),
            Selector::Match(bits) => header.match_bits(bits).done(),
            Selector::Restart { .. } | Selector::Ready(_) => header.done(),
        }
    }

    fn small(&self) -> Result<Small, WriteError> {
        Small::build(self.opcode)
            .head(|head| head.dc(self.delivery_complete).rel(self.peer.relative))
            .request_length(self.total as u16)
            .address(|address| {
                let address = address.ri_generation(self.peer.generation).job_id(self.peer.route.job);
                address.pid_on_fep(self.peer.pid).resource_index(self.peer.index)
            })
            .buffer_offset(self.buffer_offset)
            .done()
    }
}

/// Returns the extension of an atomic.
pub(super) fn atomic_ext(header: Atomic, operands: Option<(u128, u128)>) -> Result<ExtBuf, WriteError> {
    Ok(match operands {
        None => header.into(),
        Some((compare, swap)) => {
            let ext = CompareSwap::zeroed().edit().atomic(|atomic| atomic.copy_from(&header));
            ext.compare_value(compare).swap_value(swap).done()?.into()
        }
    })
}

/// Appends the bytes of a header. The longest request with the longest extension fits.
fn push(head: &mut Head, bytes: &[u8]) {
    head.extend(bytes.iter().copied().take(head.remaining_capacity()));
}
