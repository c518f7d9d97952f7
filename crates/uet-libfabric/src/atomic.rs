//! Atomic operations on remote memory.

use crate::call::{guard_int, object};
use crate::domain;
use crate::ep::{EndpointObject, operate};
use crate::memory::{Buffer, PARTS};
use crate::rma::{Remote, fits};
use crate::sys::*;
use core::ffi::{c_int, c_void};
use core::mem::size_of;
use core::ptr;
use libc::{iovec, ssize_t};
use uet_fabric::{Atomic, Code, Error, Result, atomic_opcode, atomic_width, datatype, supports};
use uet_model::Memory;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

pub(crate) static OPS: AtomicOps = AtomicOps {
    size: size_of::<AtomicOps>(),
    write,
    writev,
    writemsg,
    inject,
    readwrite,
    readwritev,
    readwritemsg,
    compwrite,
    compwritev,
    compwritemsg,
    writevalid,
    readwritevalid: writevalid,
    compwritevalid,
};

/// An operation and its data type, checked, with the width of an element.
#[derive(Clone, Copy)]
struct Kind {
    opcode: AtomicOpcode,
    datatype: AtomicDatatype,
    width: usize,
}

fn kind(datatype_number: u32, op: u32) -> Result<Kind> {
    let unsupported = || Error::from(Code::EOPNOTSUPP);
    let datatype = datatype(datatype_number).ok_or_else(unsupported)?;
    let opcode = atomic_opcode(op).filter(|opcode| supports(*opcode, datatype)).ok_or_else(unsupported)?;
    Ok(Kind { opcode, datatype, width: atomic_width(datatype).ok_or_else(unsupported)? })
}

/// Elements of the application: one part or a list.
#[derive(Clone, Copy)]
enum Elements {
    None,
    One(*const c_void, usize),
    Many(*const Ioc, usize),
}

impl Elements {
    /// # Safety
    ///
    /// The memory must be valid, as [`Buffer::new`] requires.
    unsafe fn buffer(self, width: usize) -> Result<Option<Buffer>> {
        match self {
            Elements::None => Ok(None),
            Elements::One(memory, count) => {
                // SAFETY: the caller promises it.
                let buffer = unsafe { Buffer::new(memory.cast_mut(), bytes(count, width)?) };
                Ok(Some(buffer))
            }
            Elements::Many(_, count) if count > PARTS => Err(Code::EINVAL.into()),
            Elements::Many(list, count) => {
                // SAFETY: the caller passes `count` parts.
                let parts = (0..count).map(|place| unsafe { &*list.add(place) });
                let part = |ioc: &Ioc| Ok(iovec { iov_base: ioc.addr, iov_len: bytes(ioc.count, width)? });
                let parts = parts.map(part).collect::<Result<Vec<iovec>>>()?;
                // SAFETY: as above.
                unsafe { Buffer::from_iov(parts.as_ptr(), parts.len()) }.map(Some)
            }
        }
    }
}

fn bytes(count: usize, width: usize) -> Result<usize> {
    count.checked_mul(width).ok_or(Error::new(Code::EINVAL, "the elements exceed the address space"))
}

/// The parameters of an atomic.
struct AtomicPosting {
    operand: Elements,
    compare: Elements,
    result: Elements,
    remote: Remote,
    /// The number of elements at the remote side, if the caller tells it.
    remote_count: Option<usize>,
    datatype: u32,
    op: u32,
    context: *mut c_void,
    flags: Option<u64>,
    report: bool,
}

impl AtomicPosting {
    fn new(operand: Elements, remote: Remote, datatype: u32, op: u32, context: *mut c_void) -> Self {
        let (compare, result) = (Elements::None, Elements::None);
        let (remote_count, flags) = (None, None);
        AtomicPosting {
            operand,
            compare,
            result,
            remote,
            remote_count,
            datatype,
            op,
            context,
            flags,
            report: true,
        }
    }
}

/// # Safety
///
/// The memory must be valid, as [`Buffer::new`] requires.
unsafe fn post(ep: &EndpointObject, posting: AtomicPosting) -> Result<()> {
    let AtomicPosting {
        operand,
        compare,
        result,
        remote,
        remote_count,
        datatype,
        op,
        context,
        flags,
        report,
    } = posting;
    let Kind { opcode, datatype, width } = kind(datatype, op)?;
    // SAFETY: the caller promises it.
    let (operand, compare, result) =
        unsafe { (operand.buffer(width)?, compare.buffer(width)?, result.buffer(width)?) };
    let Remote { peer: to, offset, key } = remote;
    // A read has no operand of its own: the result tells its length.
    let operand = if opcode == AtomicOpcode::READ { result.clone() } else { operand };
    let operand = operand.map(|operand| operand.copy(!report)).transpose()?.unwrap_or_default();
    if operand.is_empty() {
        return Err(Error::new(Code::EINVAL, "an atomic operation takes at least one element"));
    }
    if compare.is_some() != opcode.is_compare_and_swap() {
        return Err(Error::new(Code::EINVAL, "the operands do not fit the atomic operation"));
    }
    if let Some(count) = remote_count {
        fits(operand.len(), bytes(count, width)?)?;
    }
    for other in [&compare, &result].into_iter().flatten() {
        if other.len() < operand.len() {
            return Err(Error::new(Code::EINVAL, "a compare or result buffer is shorter than the operand"));
        }
    }
    if compare.is_some() && operand.len() != width {
        return Err(Error::new(Code::EINVAL, "a compare and swap takes one element"));
    }
    ep.endpoint.atomic(Atomic {
        to,
        key,
        offset,
        opcode,
        datatype,
        operand,
        compare: compare.map(|compare| compare.copy(false)).transpose()?,
        result: result.map(|result| Box::new(result) as _),
        context: context as usize,
        report: report && ep.reports_send(flags.unwrap_or_else(|| ep.send_flags())),
    })
}

unsafe extern "C" fn write(
    fid: *mut Fid,
    memory: *const c_void,
    count: usize,
    _: *mut c_void,
    peer: u64,
    offset: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> ssize_t {
    let operand = Elements::One(memory, count);
    let posting = AtomicPosting::new(operand, Remote { peer, offset, key }, datatype, op, context);
    // SAFETY: `fid` is an endpoint, and the memory is the provider's until the operation completes.
    unsafe { operate(fid, |ep| post(ep, posting)) }
}

unsafe extern "C" fn writev(
    fid: *mut Fid,
    list: *const Ioc,
    _: *mut *mut c_void,
    count: usize,
    peer: u64,
    offset: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> ssize_t {
    let operand = Elements::Many(list, count);
    let posting = AtomicPosting::new(operand, Remote { peer, offset, key }, datatype, op, context);
    // SAFETY: as in `write`.
    unsafe { operate(fid, |ep| post(ep, posting)) }
}

/// # Safety
///
/// `msg` must be valid.
unsafe fn of_message(msg: *const AtomicMsg, flags: u64) -> Result<AtomicPosting> {
    // SAFETY: the caller promises it.
    unsafe {
        let msg = &*msg;
        let (remote, count) = Remote::single(msg.addr, msg.rma_iov, msg.rma_iov_count)?;
        let operand = Elements::Many(msg.iov, msg.iov_count);
        let posting = AtomicPosting::new(operand, remote, msg.datatype, msg.op, msg.context);
        Ok(AtomicPosting { remote_count: Some(count), flags: Some(flags), ..posting })
    }
}

unsafe extern "C" fn writemsg(fid: *mut Fid, msg: *const AtomicMsg, flags: u64) -> ssize_t {
    // SAFETY: as in `write`; the caller passes a valid message.
    unsafe { operate(fid, |ep| post(ep, of_message(msg, flags)?)) }
}

unsafe extern "C" fn inject(
    fid: *mut Fid,
    memory: *const c_void,
    count: usize,
    peer: u64,
    offset: u64,
    key: u64,
    datatype: u32,
    op: u32,
) -> ssize_t {
    let operand = Elements::One(memory, count);
    let posting = AtomicPosting::new(operand, Remote { peer, offset, key }, datatype, op, ptr::null_mut());
    // SAFETY: as in `write`.
    unsafe { operate(fid, |ep| post(ep, AtomicPosting { report: false, ..posting })) }
}

unsafe extern "C" fn readwrite(
    fid: *mut Fid,
    memory: *const c_void,
    count: usize,
    _: *mut c_void,
    result: *mut c_void,
    _: *mut c_void,
    peer: u64,
    offset: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> ssize_t {
    let operand = Elements::One(memory, count);
    let posting = AtomicPosting::new(operand, Remote { peer, offset, key }, datatype, op, context);
    // SAFETY: as in `write`.
    unsafe { operate(fid, |ep| post(ep, AtomicPosting { result: Elements::One(result, count), ..posting })) }
}

unsafe extern "C" fn readwritev(
    fid: *mut Fid,
    list: *const Ioc,
    _: *mut *mut c_void,
    count: usize,
    results: *mut Ioc,
    _: *mut *mut c_void,
    result_count: usize,
    peer: u64,
    offset: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> ssize_t {
    let operand = Elements::Many(list, count);
    let posting = AtomicPosting::new(operand, Remote { peer, offset, key }, datatype, op, context);
    // SAFETY: as in `write`.
    unsafe {
        operate(fid, |ep| {
            post(ep, AtomicPosting { result: Elements::Many(results, result_count), ..posting })
        })
    }
}

unsafe extern "C" fn readwritemsg(
    fid: *mut Fid,
    msg: *const AtomicMsg,
    results: *mut Ioc,
    _: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> ssize_t {
    let result = Elements::Many(results, result_count);
    // SAFETY: as in `writemsg`.
    unsafe { operate(fid, |ep| post(ep, AtomicPosting { result, ..of_message(msg, flags)? })) }
}

unsafe extern "C" fn compwrite(
    fid: *mut Fid,
    memory: *const c_void,
    count: usize,
    _: *mut c_void,
    compare: *const c_void,
    _: *mut c_void,
    result: *mut c_void,
    _: *mut c_void,
    peer: u64,
    offset: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> ssize_t {
    let posting =
        AtomicPosting::new(Elements::One(memory, count), Remote { peer, offset, key }, datatype, op, context);
    let (compare, result) = (Elements::One(compare, count), Elements::One(result, count));
    // SAFETY: as in `write`.
    unsafe { operate(fid, |ep| post(ep, AtomicPosting { compare, result, ..posting })) }
}

unsafe extern "C" fn compwritev(
    fid: *mut Fid,
    list: *const Ioc,
    _: *mut *mut c_void,
    count: usize,
    compares: *const Ioc,
    _: *mut *mut c_void,
    compare_count: usize,
    results: *mut Ioc,
    _: *mut *mut c_void,
    result_count: usize,
    peer: u64,
    offset: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> ssize_t {
    let posting =
        AtomicPosting::new(Elements::Many(list, count), Remote { peer, offset, key }, datatype, op, context);
    let (compare, result) = (Elements::Many(compares, compare_count), Elements::Many(results, result_count));
    // SAFETY: as in `write`.
    unsafe { operate(fid, |ep| post(ep, AtomicPosting { compare, result, ..posting })) }
}

unsafe extern "C" fn compwritemsg(
    fid: *mut Fid,
    msg: *const AtomicMsg,
    compares: *const Ioc,
    _: *mut *mut c_void,
    compare_count: usize,
    results: *mut Ioc,
    _: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> ssize_t {
    let (compare, result) = (Elements::Many(compares, compare_count), Elements::Many(results, result_count));
    // SAFETY: as in `writemsg`.
    unsafe { operate(fid, |ep| post(ep, AtomicPosting { compare, result, ..of_message(msg, flags)? })) }
}

/// Returns the most elements of one operation, which travels in one packet.
fn most(kind: Kind, mtu: usize) -> usize {
    if kind.opcode.is_compare_and_swap() { 1 } else { mtu / kind.width }
}

unsafe extern "C" fn writevalid(fid: *mut Fid, datatype: u32, op: u32, count: *mut usize) -> c_int {
    guard_int(|| {
        let kind = kind(datatype, op)?;
        if kind.opcode.is_compare_and_swap() {
            return Err(Code::EOPNOTSUPP.into());
        }
        // SAFETY: `fid` is an endpoint, and the caller passes a valid place.
        unsafe { count.write(most(kind, object::<EndpointObject>(fid).endpoint.domain().mtu())) };
        Ok(())
    })
}

unsafe extern "C" fn compwritevalid(_: *mut Fid, datatype: u32, op: u32, count: *mut usize) -> c_int {
    guard_int(|| {
        if !kind(datatype, op)?.opcode.is_compare_and_swap() {
            return Err(Code::EOPNOTSUPP.into());
        }
        // SAFETY: the caller passes a valid place.
        unsafe { count.write(1) };
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn query(
    fid: *mut Fid,
    datatype: u32,
    op: u32,
    attr: *mut AtomicAttr,
    flags: u64,
) -> c_int {
    /// `FI_COMPARE_ATOMIC`.
    const COMPARE: u64 = 1 << 59;
    guard_int(|| {
        let kind = kind(datatype, op)?;
        if kind.opcode.is_compare_and_swap() != (flags & COMPARE != 0) {
            return Err(Code::EOPNOTSUPP.into());
        }
        // SAFETY: `fid` is a domain, and the caller passes a valid place.
        unsafe { attr.write(AtomicAttr { count: most(kind, domain::of(fid).mtu()), size: kind.width }) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_elements_neither_overflow_nor_need_memory() {
        let many = |list: &[Ioc]| Elements::Many(list.as_ptr(), list.len());
        let code = |elements: Elements| {
            // SAFETY: nothing reads or writes the elements.
            unsafe { elements.buffer(8) }.map(drop).map_err(|error| error.code)
        };
        let ioc = |count| Ioc { addr: ptr::null_mut(), count };
        let too_many = (1 << 61) + 1;
        assert_eq!(code(Elements::One(ptr::null(), too_many)), Err(Code::EINVAL));
        assert_eq!(code(many(&[ioc(too_many)])), Err(Code::EINVAL));
        assert_eq!(code(many(&[ioc(1 << 60), ioc(1 << 60)])), Err(Code::EINVAL));
        assert_eq!(code(Elements::Many(ptr::null(), PARTS + 1)), Err(Code::EINVAL));
        assert_eq!(code(Elements::Many(ptr::null(), 0)), Ok(()));
    }
}
