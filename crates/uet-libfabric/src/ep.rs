//! `fid_ep`: its own calls. `msg`, `tagged`, `rma` and `atomic` have the operations.

use crate::av::Vector;
use crate::call::{guard, guard_int, no_ops, object, publish, reclaim};
use crate::cntr::CounterObject;
use crate::cq::Queue;
use crate::sys::*;
use crate::{atomic, domain, msg, rma, tagged};
use core::ffi::{c_int, c_void};
use core::mem::size_of;
use core::ptr;
use libc::ssize_t;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use uet_fabric::{Code, Endpoint, EndpointOptions, Error, NAME_LENGTH, Result, flags};

#[repr(C)]
pub(crate) struct EndpointObject {
    fid: Fid,
    ops: &'static EpOps,
    cm: &'static CmOps,
    msg: &'static MsgOps,
    rma: &'static RmaOps,
    tagged: &'static TaggedOps,
    atomic: &'static AtomicOps,
    /// Null.
    collective: usize,
    pub(crate) endpoint: Endpoint,
    /// The flags of operations that do not pass their own.
    send_flags: AtomicU64,
    receive_flags: AtomicU64,
    /// True if only operations with COMPLETION report their success.
    selective_sends: AtomicBool,
    selective_receives: AtomicBool,
}

static FID: Ops = Ops { size: size_of::<Ops>(), close, bind, control, ops_open: no_ops };
static OPS: EpOps = EpOps {
    size: size_of::<EpOps>(),
    cancel,
    getopt,
    setopt,
    tx_ctx: no_context,
    rx_ctx: no_context,
    rx_size_left: size_left,
    tx_size_left: size_left,
};
static CM: CmOps = CmOps {
    size: size_of::<CmOps>(),
    setname,
    getname,
    getpeer,
    connect,
    listen,
    accept,
    reject,
    shutdown,
    join,
};

/// Orders among operations on memory, or between them and messages. ROD delivers packets in the order of their PSNs, and an
/// atomic operation has one packet, so the operations are executed in that order too.
pub(crate) const MEMORY_ORDER: u64 = flags::ORDER_WAW
    | flags::ORDER_WAS
    | flags::ORDER_SAW
    | flags::ORDER_RMA_WAW
    | flags::ORDER_ATOMIC_RAR
    | flags::ORDER_ATOMIC_RAW
    | flags::ORDER_ATOMIC_WAR
    | flags::ORDER_ATOMIC_WAW;

pub(crate) unsafe extern "C" fn open(
    fid: *mut Fid,
    info: *mut Info,
    to: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    guard_int(|| {
        // SAFETY: the caller passes a domain and an `fi_info` of this provider.
        let (domain, info) = unsafe { (domain::of(fid), &*info) };
        // SAFETY: the parts of an `fi_info` are null or valid.
        let (tx, rx) = unsafe { (info.tx_attr.as_ref(), info.rx_attr.as_ref()) };
        let order = tx.map_or(0, |tx| tx.msg_order) | rx.map_or(0, |rx| rx.msg_order);
        let caps = info.caps | rx.map_or(0, |rx| rx.caps);
        let ordered_memory = order & MEMORY_ORDER != 0;
        let ordered_messages = ordered_memory || order & flags::ORDER_SAS != 0;
        let directed = caps & flags::DIRECTED_RECV != 0;
        let options = EndpointOptions { ordered_messages, ordered_memory, directed };
        let object = EndpointObject {
            fid: Fid { class: CLASS_EP, context, ops: &FID },
            ops: &OPS,
            cm: &CM,
            msg: &msg::OPS,
            rma: &rma::OPS,
            tagged: &tagged::OPS,
            atomic: &atomic::OPS,
            collective: 0,
            endpoint: Endpoint::open(domain, options)?,
            send_flags: AtomicU64::new(tx.map_or(0, |tx| tx.op_flags)),
            receive_flags: AtomicU64::new(rx.map_or(0, |rx| rx.op_flags)),
            selective_sends: AtomicBool::new(false),
            selective_receives: AtomicBool::new(false),
        };
        // SAFETY: the object starts with a `Fid`, and the caller passes a valid place.
        unsafe { publish(object, to) };
        Ok(())
    })
}

impl EndpointObject {
    /// Returns the flags of sends that do not pass their own.
    pub(crate) fn send_flags(&self) -> u64 {
        self.send_flags.load(Ordering::Relaxed)
    }

    /// Returns the flags of receives that do not pass their own.
    pub(crate) fn receive_flags(&self) -> u64 {
        self.receive_flags.load(Ordering::Relaxed)
    }

    /// Returns whether a send with these flags reports its success.
    pub(crate) fn reports_send(&self, flag_bits: u64) -> bool {
        !self.selective_sends.load(Ordering::Relaxed) || flag_bits & flags::COMPLETION != 0
    }

    /// Returns whether a receive with these flags reports its success.
    pub(crate) fn reports_receive(&self, flag_bits: u64) -> bool {
        !self.selective_receives.load(Ordering::Relaxed) || flag_bits & flags::COMPLETION != 0
    }
}

/// Runs an operation of an endpoint.
///
/// # Safety
///
/// `fid` must be an endpoint of this provider.
pub(crate) unsafe fn operate(
    fid: *mut Fid,
    operation: impl FnOnce(&EndpointObject) -> Result<()>,
) -> ssize_t {
    // SAFETY: the caller promises it.
    guard(|| operation(unsafe { object(fid) }).map(|()| 0))
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        let object = unsafe { reclaim::<EndpointObject>(fid) };
        object.endpoint.close();
        Ok(())
    })
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, flag_bits: u64) -> c_int {
    guard_int(|| {
        // SAFETY: both are objects of this provider, and the class tells the kind of the other.
        unsafe {
            let ep = object::<EndpointObject>(fid);
            match (*other).class {
                CLASS_CQ => {
                    let queue = object::<Queue>(other);
                    let (sends, receives) = (flag_bits & flags::SEND != 0, flag_bits & flags::RECV != 0);
                    let selective = flag_bits & flags::SELECTIVE_COMPLETION != 0;
                    if sends {
                        ep.selective_sends.store(selective, Ordering::Relaxed);
                    }
                    if receives {
                        ep.selective_receives.store(selective, Ordering::Relaxed);
                    }
                    ep.endpoint.bind_queue(&queue.queue, sends, receives);
                }
                CLASS_CNTR => ep.endpoint.bind_counter(&object::<CounterObject>(other).counter, flag_bits),
                CLASS_AV => ep.endpoint.bind_addresses(object::<Vector>(other).addresses.clone()),
                // Endpoints without connections have no events.
                CLASS_EQ => {}
                _ => return Err(Error::new(Code::EINVAL, "an endpoint cannot be bound to this object")),
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        let ep = unsafe { object::<EndpointObject>(fid) };
        match command {
            ENABLE => ep.endpoint.enable(),
            GETOPSFLAG | SETOPSFLAG => {
                // SAFETY: for these commands, the caller passes the place of 64 flags.
                let place = unsafe { &mut *argument.cast::<u64>() };
                let flags_of = if *place & flags::RECV != 0 { &ep.receive_flags } else { &ep.send_flags };
                if command == SETOPSFLAG {
                    flags_of.store(*place & !(flags::SEND | flags::RECV), Ordering::Relaxed);
                } else {
                    *place = flags_of.load(Ordering::Relaxed);
                }
                Ok(())
            }
            _ => Err(Code::ENOSYS.into()),
        }
    })
}

unsafe extern "C" fn cancel(fid: *mut Fid, context: *mut c_void) -> ssize_t {
    guard(|| {
        // SAFETY: `open` made it.
        let cancelled = unsafe { object::<EndpointObject>(fid) }.endpoint.cancel(context as usize);
        // A receive that is being filled completes normally.
        if cancelled { Ok(0) } else { Err(Code(2).into()) }
    })
}

unsafe extern "C" fn getopt(
    fid: *mut Fid,
    _: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut usize,
) -> c_int {
    guard_int(|| {
        if option != OPT_MIN_MULTI_RECV {
            return Err(Error::from(Code(92)));
        }
        // SAFETY: `open` made the object, and the caller passes `*length` bytes of room.
        unsafe {
            if length.replace(size_of::<usize>()) < size_of::<usize>() {
                return Err(Code::ETOOSMALL.into());
            }
            let option = object::<EndpointObject>(fid).endpoint.min_multi_receive();
            value.cast::<usize>().write_unaligned(option);
        }
        Ok(())
    })
}

unsafe extern "C" fn setopt(
    fid: *mut Fid,
    _: c_int,
    option: c_int,
    value: *const c_void,
    length: usize,
) -> c_int {
    guard_int(|| {
        if option != OPT_MIN_MULTI_RECV {
            // FI_ENOPROTOOPT
            return Err(Error::from(Code(92)));
        }
        if length != size_of::<usize>() {
            return Err(Code::EINVAL.into());
        }
        // SAFETY: `open` made the object, and the caller passes `length` bytes.
        unsafe {
            let option = value.cast::<usize>().read_unaligned();
            object::<EndpointObject>(fid).endpoint.set_min_multi_receive(option);
        }
        Ok(())
    })
}

unsafe extern "C" fn no_context(
    _: *mut Fid,
    _: c_int,
    _: *mut c_void,
    _: *mut *mut Fid,
    _: *mut c_void,
) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn size_left(_: *mut Fid) -> ssize_t {
    -(Code::ENOSYS.0 as ssize_t)
}

unsafe extern "C" fn setname(_: *mut Fid, _: *mut c_void, _: usize) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn getname(fid: *mut Fid, to: *mut c_void, length: *mut usize) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        let bytes = unsafe { object::<EndpointObject>(fid) }.endpoint.name().to_bytes();
        // SAFETY: the caller passes `*length` bytes of room.
        unsafe {
            let room = length.replace(NAME_LENGTH);
            if !to.is_null() {
                ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), NAME_LENGTH.min(room));
            }
            if room < NAME_LENGTH { Err(Code::ETOOSMALL.into()) } else { Ok(()) }
        }
    })
}

unsafe extern "C" fn getpeer(_: *mut Fid, _: *mut c_void, _: *mut usize) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn connect(_: *mut Fid, _: *const c_void, _: *const c_void, _: usize) -> c_int {
    -Code::ENOSYS.0
}

// Applications call these without a look at the table, so they must be there.

unsafe extern "C" fn listen(_: *mut Fid) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn accept(_: *mut Fid, _: *const c_void, _: usize) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn reject(_: *mut Fid, _: *mut Fid, _: *const c_void, _: usize) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn shutdown(_: *mut Fid, _: u64) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn join(_: *mut Fid, _: *const c_void, _: u64, _: *mut *mut Fid, _: *mut c_void) -> c_int {
    -Code::ENOSYS.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{av, cq, fabric};
    use core::mem::{offset_of, zeroed};

    /// An application of version 1.4 passes lengths and structures that are too small.
    #[test]
    fn nothing_is_read_or_written_beyond_the_callers_memory() {
        const NONE: *mut c_void = ptr::null_mut();
        let mut fids = [ptr::null_mut(); 5];
        let [fabric, domain, av, cq, ep] = fids.each_mut().map(|fid| &raw mut *fid);
        // SAFETY: zero is a value of every field, the places are valid, and all objects come from `open`.
        unsafe {
            let (mut info, mut attr): (Info, FabricAttr) = (zeroed(), zeroed());
            attr.api_version = 1 << 16 | 4;
            assert_eq!(fabric::open(&raw mut attr, fabric, NONE), 0);
            assert_eq!(domain::open(*fabric, &raw mut info, domain, NONE), 0);
            assert_eq!(av::open(*domain, ptr::null_mut(), av, NONE), 0);
            assert_eq!(cq::open(*domain, ptr::null_mut(), cq, NONE), 0);
            assert_eq!(open(*domain, &raw mut info, ep, NONE), 0);
            assert_eq!((bind(*ep, *av, 0), bind(*ep, *cq, flags::SEND | flags::RECV)), (0, 0));
            assert_eq!(control(*ep, ENABLE, NONE), 0);

            let (mut value, mut length) = ([0_u32; 2], 4);
            let place = (&raw mut value).cast::<c_void>();
            assert_eq!(getopt(*ep, 0, OPT_MIN_MULTI_RECV, place, &raw mut length), -Code::ETOOSMALL.0);
            assert_eq!((value, length), ([0; 2], size_of::<usize>()));
            assert_eq!(setopt(*ep, 0, OPT_MIN_MULTI_RECV, place, 4), -Code::EINVAL.0);
            assert_eq!(setopt(*ep, 0, OPT_MIN_MULTI_RECV, place, length), 0);

            let mut memory = [0_u64; 4];
            let ioc = |count| Ioc { addr: (&raw const memory).cast_mut().cast(), count };
            let (four, mut one) = (ioc(4), ioc(1));
            let (uint64, sum, list) = (7, 2, ptr::null_mut());
            let own = object::<EndpointObject>(*ep).endpoint.name();
            let peer = object::<Vector>(*av).addresses.insert(own);
            let fetch = atomic::OPS.readwritev;
            let short = fetch(*ep, &four, list, 1, &raw mut one, list, 1, peer, 0, 0, uint64, sum, NONE);
            assert_eq!(short, -(Code::EINVAL.0 as isize));

            let context = (&raw mut memory).cast();
            assert_eq!((tagged::OPS.recv)(*ep, context, 8, NONE, u64::MAX, 5, 0, context), 0);
            assert_eq!(cancel(*ep, context), 0);
            let mut error = [0xaa_u8; size_of::<CqErrEntry>()];
            assert_eq!(cq::readerr(*cq, (&raw mut error).cast(), 0), 1);
            assert_eq!(error[offset_of!(CqErrEntry, err_data_size)..], [0xaa; size_of::<usize>()]);
            close(*ep);
        }
    }
}
