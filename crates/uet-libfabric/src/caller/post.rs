//! Posting operations and receives.

use super::Device;
use super::buffer::CallerBuffer;
use super::device::Outstanding;
use crate::sys::*;
use core::ffi::c_void;
use core::ptr;
use core::time::Duration;
use libc::iovec;
use std::time::Instant;
use uet_fabric::{Code, Result, flags};

/// The longest time that a full provider may refuse an operation.
const FULL: Duration = Duration::from_millis(200);

/// The kind of an operation, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A message, with a tag or without.
    Send {
        /// The tag; `None` for a plain message.
        tag: Option<u64>,
        /// The message.
        data: Vec<u8>,
    },
    /// A write to remote memory.
    Write {
        /// The key of the region.
        key: u64,
        /// The offset in the region.
        offset: u64,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A read of remote memory.
    Read {
        /// The key of the region.
        key: u64,
        /// The offset in the region.
        offset: u64,
        /// The number of bytes.
        length: usize,
    },
    /// An atomic operation on remote memory.
    Atomic {
        /// The key of the region.
        key: u64,
        /// The offset in the region.
        offset: u64,
        /// libfabric's number of the operation.
        opcode: u32,
        /// libfabric's number of the data type.
        datatype: u32,
        /// The number of elements.
        count: usize,
        /// The operands.
        operand: Vec<u8>,
        /// The values to compare with.
        compare: Option<Vec<u8>>,
        /// True if the old values are wanted. A compare and swap always returns them.
        fetch: bool,
    },
}

/// An operation to post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The number of the peer.
    pub to: u64,
    /// True for the endpoint that sends in order.
    pub ordered: bool,
    /// The operation.
    pub work: Work,
    /// Data for the completion queue of the peer.
    pub cq_data: Option<u64>,
    /// True if the operation completes when the data is visible at the peer.
    pub delivery_complete: bool,
}

impl Device {
    /// Posts an operation. Returns its number.
    pub fn post(&mut self, posting: Posting) -> Result<u64> {
        let Posting { to: addr, ordered, work, cq_data, delivery_complete } = posting;
        let mut bits = flags::COMPLETION;
        bits |= if cq_data.is_some() { flags::REMOTE_CQ_DATA } else { 0 };
        bits |= if delivery_complete { flags::DELIVERY_COMPLETE } else { 0 };
        let data = cq_data.unwrap_or_default();
        match work {
            Work::Send { tag, data: message } => {
                let buffers = vec![CallerBuffer::new(message)];
                self.start(buffers, false, |device, buffers, context| {
                    let iov = part(&buffers[0]);
                    device.send(ordered, &iov, tag, addr, data, bits, context)
                })
            }
            Work::Write { key, offset, data: bytes } => {
                let remote = RmaIov { addr: offset, len: bytes.len(), key };
                self.start(vec![CallerBuffer::new(bytes)], false, |device, buffers, context| {
                    let iov = part(&buffers[0]);
                    device.access(ordered, true, &iov, addr, &remote, data, bits, context)
                })
            }
            Work::Read { key, offset, length } => {
                let remote = RmaIov { addr: offset, len: length, key };
                self.start(vec![CallerBuffer::new(vec![0; length])], true, |device, buffers, context| {
                    let iov = part(&buffers[0]);
                    device.access(ordered, false, &iov, addr, &remote, 0, bits, context)
                })
            }
            Work::Atomic { key, offset, opcode, datatype, count, operand, compare, fetch } => {
                let fetch = fetch || compare.is_some();
                let result = CallerBuffer::new(vec![0; operand.len()]);
                let remote = RmaIov { addr: offset, len: count, key };
                let mut buffers = vec![result, CallerBuffer::new(operand)];
                let compares = compare.is_some();
                buffers.extend(compare.map(CallerBuffer::new));
                self.start(buffers, fetch, |device, buffers, context| {
                    let mut elements = buffers.iter().map(|buffer| Ioc { addr: buffer.address(), count });
                    let (mut result, operand) = (elements.next(), elements.next());
                    let operand = operand.ok_or(Code::EINVAL)?;
                    let message = AtomicMsg {
                        iov: &operand,
                        desc: ptr::null_mut(),
                        iov_count: 1,
                        addr,
                        rma_iov: &remote,
                        rma_iov_count: 1,
                        datatype,
                        op: opcode,
                        context,
                        data,
                    };
                    let compare = if compares { elements.next() } else { None };
                    let result = result.as_mut().filter(|_| fetch);
                    device.change(ordered, &message, compare.as_ref(), result, bits)
                })
            }
        }
    }

    /// Posts a buffer for a message, with a tag and the bits of it to ignore, or without a tag. Returns its number.
    pub fn receive(&mut self, tag: Option<(u64, u64)>, length: usize) -> Result<u64> {
        self.start(vec![CallerBuffer::new(vec![0; length])], true, |device, buffers, context| {
            let (fid, view) = device.endpoint(false)?;
            let iov = part(&buffers[0]);
            let (iov, desc, iov_count, addr, data): (*const iovec, _, _, _, _) =
                (&iov, ptr::null_mut(), 1, u64::MAX, 0);
            // SAFETY: the endpoint and its tables are valid. The buffer lives until the receive completes.
            let result = unsafe {
                match tag {
                    Some((tag, ignore)) => {
                        let ops = view.tagged.as_ref().ok_or(Code::EOPNOTSUPP)?;
                        let message = TaggedMsg { iov, desc, iov_count, addr, tag, ignore, context, data };
                        (ops.recvmsg)(fid, &message, flags::COMPLETION)
                    }
                    None => {
                        let ops = view.msg.as_ref().ok_or(Code::EOPNOTSUPP)?;
                        let message = Msg { iov, desc, iov_count, addr, context, data };
                        (ops.recvmsg)(fid, &message, flags::COMPLETION)
                    }
                }
            };
            Ok(result)
        })
    }

    /// Returns a copy of the buffer of a receive that has not completed.
    pub fn buffer(&self, number: u64, range: core::ops::Range<usize>) -> Option<Vec<u8>> {
        let outstanding = self.outstanding.values().find(|outstanding| outstanding.number == number)?;
        outstanding.buffers.first()?.copy(range)
    }

    /// Keeps the buffers of an operation, and posts it with `post`. Repeats that while the provider is full.
    fn start(
        &mut self,
        buffers: Vec<CallerBuffer>,
        has_result: bool,
        post: impl Fn(&Device, &[CallerBuffer], *mut c_void) -> Result<isize>,
    ) -> Result<u64> {
        let mut context = Box::new([0; 8]);
        let place: *mut c_void = context.as_mut_ptr().cast();
        let number = self.number();
        let begun = Instant::now();
        loop {
            let result = post(self, &buffers, place)?;
            if result == -(Code::EAGAIN.0 as isize) && begun.elapsed() < FULL {
                // The provider makes progress only while its queue is read.
                let finished = self.read()?;
                self.early.extend(finished);
                std::thread::sleep(Duration::from_micros(100));
                continue;
            }
            self.library.checked("the post", result)?;
            self.outstanding
                .insert(place as usize, Outstanding { number, _context: context, buffers, has_result });
            return Ok(number);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "those of libfabric's message")]
    fn send(
        &self,
        ordered: bool,
        iov: &iovec,
        tag: Option<u64>,
        addr: u64,
        data: u64,
        bits: u64,
        context: *mut c_void,
    ) -> Result<isize> {
        let (fid, view) = self.endpoint(ordered)?;
        let (iov, desc, iov_count): (*const iovec, _, _) = (iov, ptr::null_mut(), 1);
        // SAFETY: the endpoint and its tables are valid. The buffer lives until the operation completes.
        unsafe {
            match tag {
                Some(tag) => {
                    let ops = view.tagged.as_ref().ok_or(Code::EOPNOTSUPP)?;
                    let message = TaggedMsg { iov, desc, iov_count, addr, tag, ignore: 0, context, data };
                    Ok((ops.sendmsg)(fid, &message, bits))
                }
                None => {
                    let ops = view.msg.as_ref().ok_or(Code::EOPNOTSUPP)?;
                    let message = Msg { iov, desc, iov_count, addr, context, data };
                    Ok((ops.sendmsg)(fid, &message, bits))
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "those of libfabric's message")]
    fn access(
        &self,
        ordered: bool,
        write: bool,
        iov: &iovec,
        addr: u64,
        remote: &RmaIov,
        data: u64,
        bits: u64,
        context: *mut c_void,
    ) -> Result<isize> {
        let (fid, view) = self.endpoint(ordered)?;
        let desc = ptr::null_mut();
        let message =
            RmaMsg { iov, desc, iov_count: 1, addr, rma_iov: remote, rma_iov_count: 1, context, data };
        // SAFETY: the endpoint and its table are valid. The buffer lives until the operation completes.
        unsafe {
            let ops = view.rma.as_ref().ok_or(Code::EOPNOTSUPP)?;
            let call = if write { ops.writemsg } else { ops.readmsg };
            Ok(call(fid, &message, bits))
        }
    }

    fn change(
        &self,
        ordered: bool,
        message: &AtomicMsg,
        compare: Option<&Ioc>,
        result: Option<&mut Ioc>,
        bits: u64,
    ) -> Result<isize> {
        let (fid, view) = self.endpoint(ordered)?;
        let none = ptr::null_mut();
        // SAFETY: the endpoint and its table are valid. The buffers live until the operation completes.
        unsafe {
            let ops = view.atomic.as_ref().ok_or(Code::EOPNOTSUPP)?;
            Ok(match (compare, result) {
                (Some(compare), Some(result)) => {
                    (ops.compwritemsg)(fid, message, compare, none, 1, result, none, 1, bits)
                }
                (None, Some(result)) => (ops.readwritemsg)(fid, message, result, none, 1, bits),
                _ => (ops.writemsg)(fid, message, bits),
            })
        }
    }
}

fn part(buffer: &CallerBuffer) -> iovec {
    iovec { iov_base: buffer.address(), iov_len: buffer.len() }
}
