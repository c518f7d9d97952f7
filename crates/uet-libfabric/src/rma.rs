//! Reads and writes of remote memory.

use crate::ep::{EndpointObject, operate};
use crate::memory::Buffer;
use crate::msg::Sending;
use crate::sys::*;
use core::ffi::c_void;
use core::mem::size_of;
use libc::{iovec, ssize_t};
use uet_fabric::{Code, Error, Read, Result, Send, Write, flags};
use uet_model::Memory;

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
    /// Returns the only part of a list of remote memory, and its length.
    ///
    /// # Safety
    ///
    /// `iov` must point to `count` parts.
    pub(crate) unsafe fn single(peer: u64, iov: *const RmaIov, count: usize) -> Result<(Self, usize)> {
        if count != 1 {
            return Err(Error::new(Code::EINVAL, "an operation takes one remote buffer"));
        }
        // SAFETY: the caller promises one part.
        let RmaIov { addr: offset, len, key } = unsafe { iov.read() };
        Ok((Remote { peer, offset, key }, len))
    }

    /// Returns the remote memory of a message, which must have room for the local buffer.
    ///
    /// # Safety
    ///
    /// The message must be valid.
    unsafe fn of_message(msg: &RmaMsg, buffer: &Buffer) -> Result<Self> {
        // SAFETY: the caller promises it.
        let (remote, length) = unsafe { Remote::single(msg.addr, msg.rma_iov, msg.rma_iov_count) }?;
        fits(buffer.len(), length).map(|()| remote)
    }
}

/// Fails with EINVAL if remote memory is shorter than the local buffer.
pub(crate) fn fits(local: usize, remote: usize) -> Result<()> {
    if local > remote {
        let message = format!("the local buffer has {local} bytes, but the remote one {remote}");
        return Err(Error::new(Code::EINVAL, message));
    }
    Ok(())
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

fn post_write(ep: &EndpointObject, buffer: &Buffer, remote: Remote, sending: Sending) -> Result<()> {
    let Remote { offset, key, .. } = remote;
    let message = sending.message(ep, buffer)?;
    let Send { to, data, cq_data, delivery_complete, context, report, .. } = message;
    ep.endpoint.write(Write { to, key, offset, data, cq_data, delivery_complete, context, report })
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
            let remote = Remote::of_message(msg, &buffer)?;
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
        operate(fid, |ep| post_write(ep, &buffer, remote, Sending::new(peer, context)))
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
    let (remote, sending) = (Remote { peer, offset, key }, Sending::new(peer, context));
    // SAFETY: as in `write`; the caller passes `count` parts.
    unsafe { operate(fid, |ep| post_write(ep, &Buffer::from_iov(iov, count)?, remote, sending)) }
}

unsafe extern "C" fn writemsg(fid: *mut Fid, msg: *const RmaMsg, bits: u64) -> ssize_t {
    // SAFETY: as in `writev`; the caller passes a valid message.
    unsafe {
        operate(fid, |ep| {
            let msg = &*msg;
            let buffer = Buffer::from_iov(msg.iov, msg.iov_count)?;
            let remote = Remote::of_message(msg, &buffer)?;
            let data = (bits & flags::REMOTE_CQ_DATA != 0).then_some(msg.data);
            let sending = Sending { data, flags: Some(bits), ..Sending::new(msg.addr, msg.context) };
            post_write(ep, &buffer, remote, sending)
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
        operate(fid, |ep| post_write(ep, &buffer, remote, Sending::inject(peer)))
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
        let sending = Sending { data: Some(data), ..Sending::new(peer, context) };
        operate(fid, |ep| post_write(ep, &buffer, remote, sending))
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
        let sending = Sending { data: Some(data), ..Sending::inject(peer) };
        operate(fid, |ep| post_write(ep, &buffer, remote, sending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_memory_has_room_for_the_local_buffer() {
        let mut bytes = [0; 32];
        for (len, fits) in [(8, false), (31, false), (32, true), (64, true)] {
            let rma_iov = RmaIov { addr: 16, len, key: 7 };
            // SAFETY: all zeros are a valid message: numbers and null pointers.
            let empty: RmaMsg = unsafe { core::mem::zeroed() };
            let msg = RmaMsg { rma_iov: &rma_iov, rma_iov_count: 1, ..empty };
            // SAFETY: the array outlives the buffer, and the message is valid.
            let remote = unsafe { Remote::of_message(&msg, &Buffer::new(bytes.as_mut_ptr().cast(), 32)) };
            assert_eq!(remote.map_err(|error| error.code).err(), (!fits).then_some(Code::EINVAL), "{len}");
        }
    }
}
