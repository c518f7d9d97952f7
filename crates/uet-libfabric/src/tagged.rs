//! Tagged messages.

use crate::ep::operate;
use crate::memory::Buffer;
use crate::msg::{Receiving, Sending, post_receive, post_send};
use crate::sys::*;
use core::ffi::c_void;
use core::mem::size_of;
use libc::{iovec, ssize_t};
use uet_fabric::{Tag, flags};

pub(crate) static OPS: TaggedOps = TaggedOps {
    size: size_of::<TaggedOps>(),
    recv,
    recvv,
    recvmsg,
    send,
    sendv,
    sendmsg,
    inject,
    senddata,
    injectdata,
};

unsafe extern "C" fn recv(
    fid: *mut Fid,
    memory: *mut c_void,
    length: usize,
    _: *mut c_void,
    from: u64,
    bits: u64,
    ignore: u64,
    context: *mut c_void,
) -> ssize_t {
    let tag = Some(Tag { bits, ignore });
    // SAFETY: `fid` is an endpoint; the buffer is the provider's until the receive completes.
    unsafe {
        let buffer = Buffer::new(memory, length);
        operate(fid, |ep| post_receive(ep, buffer, Receiving { from, tag, context, flags: None }))
    }
}

unsafe extern "C" fn recvv(
    fid: *mut Fid,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    from: u64,
    bits: u64,
    ignore: u64,
    context: *mut c_void,
) -> ssize_t {
    let tag = Some(Tag { bits, ignore });
    // SAFETY: as in `recv`; the caller passes `count` parts.
    unsafe {
        operate(fid, |ep| {
            let buffer = Buffer::from_iov(iov, count)?;
            post_receive(ep, buffer, Receiving { from, tag, context, flags: None })
        })
    }
}

unsafe extern "C" fn recvmsg(fid: *mut Fid, msg: *const TaggedMsg, flag_bits: u64) -> ssize_t {
    // SAFETY: as in `recvv`; the caller passes a valid message.
    unsafe {
        operate(fid, |ep| {
            let TaggedMsg { iov, iov_count, addr: from, tag: bits, ignore, context, .. } = *msg;
            let tag = Some(Tag { bits, ignore });
            let buffer = Buffer::from_iov(iov, iov_count)?;
            post_receive(ep, buffer, Receiving { from, tag, context, flags: Some(flag_bits) })
        })
    }
}

unsafe extern "C" fn send(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    _: *mut c_void,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: `fid` is an endpoint; the buffer is valid during the call, which copies it.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        operate(fid, |ep| post_send(ep, &buffer, Sending { tag: Some(tag), ..Sending::new(to, context) }))
    }
}

unsafe extern "C" fn sendv(
    fid: *mut Fid,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: as in `send`; the caller passes `count` parts.
    unsafe {
        operate(fid, |ep| {
            let buffer = Buffer::from_iov(iov, count)?;
            post_send(ep, &buffer, Sending { tag: Some(tag), ..Sending::new(to, context) })
        })
    }
}

unsafe extern "C" fn sendmsg(fid: *mut Fid, msg: *const TaggedMsg, flag_bits: u64) -> ssize_t {
    // SAFETY: as in `sendv`; the caller passes a valid message.
    unsafe {
        operate(fid, |ep| {
            let TaggedMsg { iov, iov_count, addr, tag, context, data, .. } = *msg;
            let buffer = Buffer::from_iov(iov, iov_count)?;
            let data = (flag_bits & flags::REMOTE_CQ_DATA != 0).then_some(data);
            let sending =
                Sending { tag: Some(tag), data, flags: Some(flag_bits), ..Sending::new(addr, context) };
            post_send(ep, &buffer, sending)
        })
    }
}

unsafe extern "C" fn inject(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    to: u64,
    tag: u64,
) -> ssize_t {
    // SAFETY: as in `send`.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        operate(fid, |ep| post_send(ep, &buffer, Sending { tag: Some(tag), ..Sending::inject(to) }))
    }
}

unsafe extern "C" fn senddata(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    _: *mut c_void,
    data: u64,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> ssize_t {
    let sending = Sending { tag: Some(tag), data: Some(data), ..Sending::new(to, context) };
    // SAFETY: as in `send`.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        operate(fid, |ep| post_send(ep, &buffer, sending))
    }
}

unsafe extern "C" fn injectdata(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    data: u64,
    to: u64,
    tag: u64,
) -> ssize_t {
    let sending = Sending { tag: Some(tag), data: Some(data), ..Sending::inject(to) };
    // SAFETY: as in `send`.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        operate(fid, |ep| post_send(ep, &buffer, sending))
    }
}
