//! Plain messages, and what tagged messages and writes share with them.

use crate::ep::{EndpointObject, operate};
use crate::memory::Buffer;
use crate::sys::*;
use core::ffi::c_void;
use core::mem::size_of;
use libc::{iovec, ssize_t};
use uet_fabric::{Peek, Receive, Result, Send, Tag, flags};

pub(crate) static OPS: MsgOps = MsgOps {
    size: size_of::<MsgOps>(),
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

/// The parameters of a send or a write besides its buffer.
pub(crate) struct Sending {
    pub(crate) to: u64,
    pub(crate) tag: Option<u64>,
    pub(crate) data: Option<u64>,
    pub(crate) context: *mut c_void,
    /// The flags; `None` for those of the endpoint.
    pub(crate) flags: Option<u64>,
    pub(crate) report: bool,
}

impl Sending {
    pub(crate) fn new(to: u64, context: *mut c_void) -> Self {
        Sending { to, tag: None, data: None, context, flags: None, report: true }
    }

    pub(crate) fn inject(to: u64) -> Self {
        Sending { report: false, ..Sending::new(to, core::ptr::null_mut()) }
    }

    /// Returns the message, with a copy of the buffer.
    pub(crate) fn message(self, ep: &EndpointObject, buffer: &Buffer) -> Result<Send> {
        let Sending { to, tag, data, context, flags: own, report } = self;
        let bits = own.unwrap_or_else(|| ep.send_flags());
        Ok(Send {
            to,
            tag,
            data: buffer.copy(!report || own.is_some_and(|own| own & flags::INJECT != 0))?,
            cq_data: data,
            delivery_complete: bits & flags::DELIVERY_COMPLETE != 0,
            context: context as usize,
            report: report && ep.reports_send(bits),
        })
    }
}

pub(crate) fn post_send(ep: &EndpointObject, buffer: &Buffer, sending: Sending) -> Result<()> {
    ep.endpoint.send(sending.message(ep, buffer)?)
}

/// The parameters of a receive besides its buffer.
pub(crate) struct Receiving {
    pub(crate) from: u64,
    pub(crate) tag: Option<Tag>,
    pub(crate) context: *mut c_void,
    /// The flags; `None` for those of the endpoint.
    pub(crate) flags: Option<u64>,
}

pub(crate) fn post_receive(ep: &EndpointObject, buffer: Buffer, receiving: Receiving) -> Result<()> {
    let Receiving { from, tag, context, flags: own } = receiving;
    let bits = own.unwrap_or_else(|| ep.receive_flags());
    let (memory, context, report) = (Box::new(buffer), context as usize, ep.reports_receive(bits));
    // Plain receives have no claims; FI_CLAIM has the value of FI_SELECTIVE_COMPLETION.
    let claims = own.is_some() && bits & (flags::CLAIM | flags::DISCARD) != 0;
    if bits & flags::PEEK != 0 && own.is_some() {
        let what = match (bits & flags::CLAIM != 0, bits & flags::DISCARD != 0) {
            (true, _) => Peek::Claim,
            (_, true) => Peek::Discard,
            _ => Peek::Look,
        };
        return ep.endpoint.peek(from, tag, what, context);
    }
    if claims {
        return ep.endpoint.take_claimed(memory, context, bits & flags::DISCARD != 0);
    }
    let multi = tag.is_none() && bits & flags::MULTI_RECV != 0;
    ep.endpoint.receive(Receive { from, tag, memory, multi, context, report })
}

unsafe extern "C" fn recv(
    fid: *mut Fid,
    memory: *mut c_void,
    length: usize,
    _: *mut c_void,
    from: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: `fid` is an endpoint; the buffer is the provider's until the receive completes.
    unsafe {
        let buffer = Buffer::new(memory, length);
        operate(fid, |ep| post_receive(ep, buffer, Receiving { from, tag: None, context, flags: None }))
    }
}

unsafe extern "C" fn recvv(
    fid: *mut Fid,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    from: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: as in `recv`; the caller passes `count` parts.
    unsafe {
        operate(fid, |ep| {
            let buffer = Buffer::from_iov(iov, count)?;
            post_receive(ep, buffer, Receiving { from, tag: None, context, flags: None })
        })
    }
}

unsafe extern "C" fn recvmsg(fid: *mut Fid, msg: *const Msg, bits: u64) -> ssize_t {
    // SAFETY: as in `recvv`; the caller passes a valid message.
    unsafe {
        operate(fid, |ep| {
            let msg = &*msg;
            let buffer = Buffer::from_iov(msg.iov, msg.iov_count)?;
            let Msg { addr: from, context, .. } = *msg;
            post_receive(ep, buffer, Receiving { from, tag: None, context, flags: Some(bits) })
        })
    }
}

unsafe extern "C" fn send(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    _: *mut c_void,
    to: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: `fid` is an endpoint; the buffer is valid during the call, which copies it.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        operate(fid, |ep| post_send(ep, &buffer, Sending::new(to, context)))
    }
}

unsafe extern "C" fn sendv(
    fid: *mut Fid,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    to: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: as in `send`; the caller passes `count` parts.
    unsafe { operate(fid, |ep| post_send(ep, &Buffer::from_iov(iov, count)?, Sending::new(to, context))) }
}

unsafe extern "C" fn sendmsg(fid: *mut Fid, msg: *const Msg, bits: u64) -> ssize_t {
    // SAFETY: as in `sendv`; the caller passes a valid message.
    unsafe {
        operate(fid, |ep| {
            let msg = &*msg;
            let buffer = Buffer::from_iov(msg.iov, msg.iov_count)?;
            let data = (bits & flags::REMOTE_CQ_DATA != 0).then_some(msg.data);
            post_send(ep, &buffer, Sending { data, flags: Some(bits), ..Sending::new(msg.addr, msg.context) })
        })
    }
}

unsafe extern "C" fn inject(fid: *mut Fid, memory: *const c_void, length: usize, to: u64) -> ssize_t {
    // SAFETY: as in `send`.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        operate(fid, |ep| post_send(ep, &buffer, Sending::inject(to)))
    }
}

unsafe extern "C" fn senddata(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    _: *mut c_void,
    data: u64,
    to: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: as in `send`.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        operate(fid, |ep| post_send(ep, &buffer, Sending { data: Some(data), ..Sending::new(to, context) }))
    }
}

unsafe extern "C" fn injectdata(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    data: u64,
    to: u64,
) -> ssize_t {
    // SAFETY: as in `send`.
    unsafe {
        let buffer = Buffer::new(memory.cast_mut(), length);
        operate(fid, |ep| post_send(ep, &buffer, Sending { data: Some(data), ..Sending::inject(to) }))
    }
}
