//! The tables of functions, one for each kind of object.

use super::{
    AtomicAttr, AtomicMsg, AvAttr, CqAttr, CqErrEntry, EqAttr, Fid, Info, Ioc, MrAttr, Msg, RmaMsg, TaggedMsg,
};
use core::ffi::{c_char, c_int, c_void};
use libc::{iovec, ssize_t};

#[repr(C)]
pub(crate) struct FabricOps {
    pub(crate) size: usize,
    pub(crate) domain: Open<Info>,
    pub(crate) passive_ep: Open<Info>,
    pub(crate) eq_open: Open<EqAttr>,
    pub(crate) wait_open: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut *mut Fid) -> c_int,
    pub(crate) trywait: unsafe extern "C" fn(*mut Fid, *mut *mut Fid, c_int) -> c_int,
}

type Open<Attr> = unsafe extern "C" fn(*mut Fid, *mut Attr, *mut *mut Fid, *mut c_void) -> c_int;

#[repr(C)]
pub(crate) struct DomainOps {
    pub(crate) size: usize,
    pub(crate) av_open: Open<AvAttr>,
    pub(crate) cq_open: Open<CqAttr>,
    pub(crate) endpoint: Open<Info>,
    pub(crate) scalable_ep: Open<Info>,
    pub(crate) cntr_open: Open<c_void>,
    pub(crate) poll_open: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut *mut Fid) -> c_int,
    pub(crate) stx_ctx: Open<c_void>,
    pub(crate) srx_ctx: Open<c_void>,
    pub(crate) query_atomic: unsafe extern "C" fn(*mut Fid, u32, u32, *mut AtomicAttr, u64) -> c_int,
}

#[repr(C)]
pub(crate) struct MrOps {
    pub(crate) size: usize,
    pub(crate) reg: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut Fid,
        *mut c_void,
    ) -> c_int,
    pub(crate) regv: unsafe extern "C" fn(
        *mut Fid,
        *const iovec,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut Fid,
        *mut c_void,
    ) -> c_int,
    pub(crate) regattr: unsafe extern "C" fn(*mut Fid, *const MrAttr, u64, *mut *mut Fid) -> c_int,
}

#[repr(C)]
pub(crate) struct AvOps {
    pub(crate) size: usize,
    pub(crate) insert:
        unsafe extern "C" fn(*mut Fid, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int,
    pub(crate) insertsvc:
        unsafe extern "C" fn(*mut Fid, *const c_char, *const c_char, *mut u64, u64, *mut c_void) -> c_int,
    pub(crate) insertsym: unsafe extern "C" fn(
        *mut Fid,
        *const c_char,
        usize,
        *const c_char,
        usize,
        *mut u64,
        u64,
        *mut c_void,
    ) -> c_int,
    pub(crate) remove: unsafe extern "C" fn(*mut Fid, *mut u64, usize, u64) -> c_int,
    pub(crate) lookup: unsafe extern "C" fn(*mut Fid, u64, *mut c_void, *mut usize) -> c_int,
    pub(crate) straddr:
        unsafe extern "C" fn(*mut Fid, *const c_void, *mut c_char, *mut usize) -> *const c_char,
}

pub(crate) type Strerror =
    unsafe extern "C" fn(*mut Fid, c_int, *const c_void, *mut c_char, usize) -> *const c_char;

#[repr(C)]
pub(crate) struct CqOps {
    pub(crate) size: usize,
    pub(crate) read: unsafe extern "C" fn(*mut Fid, *mut c_void, usize) -> ssize_t,
    pub(crate) readfrom: unsafe extern "C" fn(*mut Fid, *mut c_void, usize, *mut u64) -> ssize_t,
    pub(crate) readerr: unsafe extern "C" fn(*mut Fid, *mut CqErrEntry, u64) -> ssize_t,
    pub(crate) sread: unsafe extern "C" fn(*mut Fid, *mut c_void, usize, *const c_void, c_int) -> ssize_t,
    pub(crate) sreadfrom:
        unsafe extern "C" fn(*mut Fid, *mut c_void, usize, *mut u64, *const c_void, c_int) -> ssize_t,
    pub(crate) signal: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub(crate) strerror: Strerror,
}

#[repr(C)]
pub(crate) struct CntrOps {
    pub(crate) size: usize,
    pub(crate) read: unsafe extern "C" fn(*mut Fid) -> u64,
    pub(crate) readerr: unsafe extern "C" fn(*mut Fid) -> u64,
    pub(crate) add: unsafe extern "C" fn(*mut Fid, u64) -> c_int,
    pub(crate) set: unsafe extern "C" fn(*mut Fid, u64) -> c_int,
    pub(crate) wait: unsafe extern "C" fn(*mut Fid, u64, c_int) -> c_int,
    pub(crate) adderr: unsafe extern "C" fn(*mut Fid, u64) -> c_int,
    pub(crate) seterr: unsafe extern "C" fn(*mut Fid, u64) -> c_int,
}

#[repr(C)]
pub(crate) struct EqOps {
    pub(crate) size: usize,
    pub(crate) read: unsafe extern "C" fn(*mut Fid, *mut u32, *mut c_void, usize, u64) -> ssize_t,
    pub(crate) readerr: unsafe extern "C" fn(*mut Fid, *mut c_void, u64) -> ssize_t,
    pub(crate) write: unsafe extern "C" fn(*mut Fid, u32, *const c_void, usize, u64) -> ssize_t,
    pub(crate) sread: unsafe extern "C" fn(*mut Fid, *mut u32, *mut c_void, usize, c_int, u64) -> ssize_t,
    pub(crate) strerror: Strerror,
}

type OpenContext = unsafe extern "C" fn(*mut Fid, c_int, *mut c_void, *mut *mut Fid, *mut c_void) -> c_int;

#[repr(C)]
pub(crate) struct EpOps {
    pub(crate) size: usize,
    pub(crate) cancel: unsafe extern "C" fn(*mut Fid, *mut c_void) -> ssize_t,
    pub(crate) getopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *mut c_void, *mut usize) -> c_int,
    pub(crate) setopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *const c_void, usize) -> c_int,
    pub(crate) tx_ctx: OpenContext,
    pub(crate) rx_ctx: OpenContext,
    pub(crate) rx_size_left: unsafe extern "C" fn(*mut Fid) -> ssize_t,
    pub(crate) tx_size_left: unsafe extern "C" fn(*mut Fid) -> ssize_t,
}

#[repr(C)]
pub(crate) struct CmOps {
    pub(crate) size: usize,
    pub(crate) setname: unsafe extern "C" fn(*mut Fid, *mut c_void, usize) -> c_int,
    pub(crate) getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
    pub(crate) getpeer: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
    pub(crate) connect: unsafe extern "C" fn(*mut Fid, *const c_void, *const c_void, usize) -> c_int,
    pub(crate) listen: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub(crate) accept: unsafe extern "C" fn(*mut Fid, *const c_void, usize) -> c_int,
    pub(crate) reject: unsafe extern "C" fn(*mut Fid, *mut Fid, *const c_void, usize) -> c_int,
    pub(crate) shutdown: unsafe extern "C" fn(*mut Fid, u64) -> c_int,
    pub(crate) join: unsafe extern "C" fn(*mut Fid, *const c_void, u64, *mut *mut Fid, *mut c_void) -> c_int,
}

#[repr(C)]
pub(crate) struct MsgOps {
    pub(crate) size: usize,
    pub(crate) recv:
        unsafe extern "C" fn(*mut Fid, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> ssize_t,
    pub(crate) recvv:
        unsafe extern "C" fn(*mut Fid, *const iovec, *mut *mut c_void, usize, u64, *mut c_void) -> ssize_t,
    pub(crate) recvmsg: unsafe extern "C" fn(*mut Fid, *const Msg, u64) -> ssize_t,
    pub(crate) send:
        unsafe extern "C" fn(*mut Fid, *const c_void, usize, *mut c_void, u64, *mut c_void) -> ssize_t,
    pub(crate) sendv:
        unsafe extern "C" fn(*mut Fid, *const iovec, *mut *mut c_void, usize, u64, *mut c_void) -> ssize_t,
    pub(crate) sendmsg: unsafe extern "C" fn(*mut Fid, *const Msg, u64) -> ssize_t,
    pub(crate) inject: unsafe extern "C" fn(*mut Fid, *const c_void, usize, u64) -> ssize_t,
    pub(crate) senddata:
        unsafe extern "C" fn(*mut Fid, *const c_void, usize, *mut c_void, u64, u64, *mut c_void) -> ssize_t,
    pub(crate) injectdata: unsafe extern "C" fn(*mut Fid, *const c_void, usize, u64, u64) -> ssize_t,
}

#[repr(C)]
pub(crate) struct TaggedOps {
    pub(crate) size: usize,
    pub(crate) recv: unsafe extern "C" fn(
        *mut Fid,
        *mut c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) recvv: unsafe extern "C" fn(
        *mut Fid,
        *const iovec,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) recvmsg: unsafe extern "C" fn(*mut Fid, *const TaggedMsg, u64) -> ssize_t,
    pub(crate) send:
        unsafe extern "C" fn(*mut Fid, *const c_void, usize, *mut c_void, u64, u64, *mut c_void) -> ssize_t,
    pub(crate) sendv: unsafe extern "C" fn(
        *mut Fid,
        *const iovec,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) sendmsg: unsafe extern "C" fn(*mut Fid, *const TaggedMsg, u64) -> ssize_t,
    pub(crate) inject: unsafe extern "C" fn(*mut Fid, *const c_void, usize, u64, u64) -> ssize_t,
    pub(crate) senddata: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) injectdata: unsafe extern "C" fn(*mut Fid, *const c_void, usize, u64, u64, u64) -> ssize_t,
}

type Vectored = unsafe extern "C" fn(
    *mut Fid,
    *const iovec,
    *mut *mut c_void,
    usize,
    u64,
    u64,
    u64,
    *mut c_void,
) -> ssize_t;

#[repr(C)]
pub(crate) struct RmaOps {
    pub(crate) size: usize,
    pub(crate) read: unsafe extern "C" fn(
        *mut Fid,
        *mut c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) readv: Vectored,
    pub(crate) readmsg: unsafe extern "C" fn(*mut Fid, *const RmaMsg, u64) -> ssize_t,
    pub(crate) write: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) writev: Vectored,
    pub(crate) writemsg: unsafe extern "C" fn(*mut Fid, *const RmaMsg, u64) -> ssize_t,
    pub(crate) inject: unsafe extern "C" fn(*mut Fid, *const c_void, usize, u64, u64, u64) -> ssize_t,
    pub(crate) writedata: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) injectdata:
        unsafe extern "C" fn(*mut Fid, *const c_void, usize, u64, u64, u64, u64) -> ssize_t,
}

type Valid = unsafe extern "C" fn(*mut Fid, u32, u32, *mut usize) -> c_int;

#[repr(C)]
pub(crate) struct AtomicOps {
    pub(crate) size: usize,
    pub(crate) write: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) writev: unsafe extern "C" fn(
        *mut Fid,
        *const Ioc,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) writemsg: unsafe extern "C" fn(*mut Fid, *const AtomicMsg, u64) -> ssize_t,
    pub(crate) inject:
        unsafe extern "C" fn(*mut Fid, *const c_void, usize, u64, u64, u64, u32, u32) -> ssize_t,
    pub(crate) readwrite: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) readwritev: unsafe extern "C" fn(
        *mut Fid,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *mut Ioc,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) readwritemsg:
        unsafe extern "C" fn(*mut Fid, *const AtomicMsg, *mut Ioc, *mut *mut c_void, usize, u64) -> ssize_t,
    pub(crate) compwrite: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        *mut c_void,
        *const c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) compwritev: unsafe extern "C" fn(
        *mut Fid,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *mut Ioc,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> ssize_t,
    pub(crate) compwritemsg: unsafe extern "C" fn(
        *mut Fid,
        *const AtomicMsg,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *mut Ioc,
        *mut *mut c_void,
        usize,
        u64,
    ) -> ssize_t,
    pub(crate) writevalid: Valid,
    pub(crate) readwritevalid: Valid,
    pub(crate) compwritevalid: Valid,
}
