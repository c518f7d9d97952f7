//! Reads and writes of remote memory.

use crate::ep::{EndpointObject, operate};
use crate::memory::Buffer;
use crate::sys::*;
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use libc::{iovec, ssize_t};
use uet_fabric::{Code, Error, Read, Result, Write, flags};

pub(crate) static OPS: RmaOps = RmaOps {
    size: size_of::<RmaOps>(),
    read,
    readv,
    readmsg,
    write,
    writev,
    writemsg,
    inject,
    writedata,
    injectdata,
};

/// The remote side of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Remote {
    pub(crate) peer: u64,
    pub(crate) offset: u64,
    pub(crate) key: u64,
}

impl Remote {
    /// Returns the only part of a list of remote memory.
    ///
    /// # Safety
    ///
    /// `iov` must point to `count` parts.
    pub(crate) unsafe fn single(peer: u64, iov: *const RmaIov, count: usize) -> Result<Self> {
        if count != 1 {
            return Err(Error::new(Code::EINVAL, "an operation takes one remote buffer"));
        }
        // SAFETY: the caller promises one part.
        let RmaIov { addr: offset, key, .. } = unsafe { iov.read() };
        Ok(Remote { peer, offset, key })
    }
}

fn post_read(
    ep: &EndpointObject,
    buffer: Buffer,
    remote: Remote,
    context: *mut c_void,
    own: Option<u64>,
) -> Result<()> {
    let Remote { peer: from, offset, key } = remote;
    let report = ep.reports_send(own.unwrap_or_else(|| ep.send_flags()));
    ep.endpoint.read(Read { from, key, offset, memory: Box::new(buffer), context: context as usize, report })
}

/// The parameters of a write besides its buffer.
struct Writing {
    remote: Remote,
    data: Option<u64>,
    context: *mut c_void,
    flags: Option<u64>,
    report: bool,
}

fn post_write(ep: &EndpointObject, buffer: &Buffer, writing: Writing) -> Result<()> {
    let Writing { remote: Remote { peer: to, offset, key }, data: cq_data, context, flags: own, report } =
        writing;
    let bits = own.unwrap_or_else(|| ep.send_flags());
    ep.endpoint.write(Write {
        to,
        key,
        offset,
        data: buffer.copy(),
        cq_data,
        delivery_complete: bits & flags::DELIVERY_COMPLETE != 0,
        context: context as usize,
        report: report && ep.reports_send(bits),
    })
}

unsafe extern "C" fn read(
    fid: *mut Fid,
    memory: *mut c_void,
    length: usize,
    _: *mut c_void,
    peer: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: `fid` is an endpoint; the buffer is the provider's until the read completes.
    unsafe {
        let buffer = Buffer::new(memory, length);
        operate(fid, |ep| post_read(ep, buffer, Remote { peer, offset, key }, context, None))
    }
}

unsafe extern "C" fn readv(
    fid: *mut Fid,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    peer: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: as in `read`; the caller passes `count` parts.
    unsafe {
        operate(fid, |ep| {
            post_read(ep, Buffer::from_iov(iov, count)?, Remote { peer, offset, key }, context, None)
        })
    }
}

unsafe extern "C" fn readmsg(fid: *mut Fid, msg: *const RmaMsg, bits: u64) -> ssize_t {
    // SAFETY: as in `readv`; the caller passes a valid message.
    unsafe {
        operate(fid, |ep| {
            let msg = &*msg;
            let buffer = Buffer::from_iov(msg.iov, msg.iov_count)?;
            let remote = Remote::single(msg.addr, msg.rma_iov, msg.rma_iov_count)?;
            post_read(ep, buffer, remote, msg.context, Some(bits))
        })
    }
}

unsafe extern "C" fn write(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    _: *mut c_void,
    peer: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    let remote = Remote { peer, offset, key };
    // SAFETY: `fid` is an endpoint; the buffer is valid during the call, which copies it.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        let writing = Writing { remote, data: None, context, flags: None, report: true };
        operate(fid, |ep| post_write(ep, &buffer, writing))
    }
}

unsafe extern "C" fn writev(
    fid: *mut Fid,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    peer: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    let writing =
        Writing { remote: Remote { peer, offset, key }, data: None, context, flags: None, report: true };
    // SAFETY: as in `write`; the caller passes `count` parts.
    unsafe { operate(fid, |ep| post_write(ep, &Buffer::from_iov(iov, count)?, writing)) }
}

unsafe extern "C" fn writemsg(fid: *mut Fid, msg: *const RmaMsg, bits: u64) -> ssize_t {
    // SAFETY: as in `writev`; the caller passes a valid message.
    unsafe {
        operate(fid, |ep| {
            let msg = &*msg;
            let buffer = Buffer::from_iov(msg.iov, msg.iov_count)?;
            let remote = Remote::single(msg.addr, msg.rma_iov, msg.rma_iov_count)?;
            let data = (bits & flags::REMOTE_CQ_DATA != 0).then_some(msg.data);
            post_write(
                ep,
                &buffer,
                Writing { remote, data, context: msg.context, flags: Some(bits), report: true },
            )
        })
    }
}

unsafe extern "C" fn inject(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    peer: u64,
    offset: u64,
    key: u64,
) -> ssize_t {
    let remote = Remote { peer, offset, key };
    // SAFETY: as in `write`.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        let writing = Writing { remote, data: None, context: ptr::null_mut(), flags: None, report: false };
        operate(fid, |ep| post_write(ep, &buffer, writing))
    }
}

unsafe extern "C" fn writedata(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    _: *mut c_void,
    data: u64,
    peer: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    let remote = Remote { peer, offset, key };
    // SAFETY: as in `write`.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        let writing = Writing { remote, data: Some(data), context, flags: None, report: true };
        operate(fid, |ep| post_write(ep, &buffer, writing))
    }
}

unsafe extern "C" fn injectdata(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    data: u64,
    peer: u64,
    offset: u64,
    key: u64,
) -> ssize_t {
    let remote = Remote { peer, offset, key };
    // SAFETY: as in `write`.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        let writing =
            Writing { remote, data: Some(data), context: ptr::null_mut(), flags: None, report: false };
        operate(fid, |ep| post_write(ep, &buffer, writing))
    }
}
