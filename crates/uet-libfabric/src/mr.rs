//! `fid_mr`.

use crate::call::{guard_int, no_control, no_ops, publish, reclaim};
use crate::domain;
use crate::memory::Buffer;
use crate::sys::*;
use core::ffi::{c_int, c_void};
use core::mem::size_of;
use libc::iovec;
use uet_fabric::{Code, Domain, Region, Result};

#[repr(C)]
struct Registration {
    fid: Fid,
    /// Null.
    descriptor: usize,
    key: u64,
    region: Region,
    domain: Domain,
}

static FID: Ops = Ops { size: size_of::<Ops>(), close, bind, control, ops_open: no_ops };
pub(crate) static OPS: MrOps = MrOps { size: size_of::<MrOps>(), reg, regv, regattr };

/// # Safety
///
/// `fid` must be a domain, `to` a valid place.
unsafe fn register(
    fid: *mut Fid,
    buffer: Buffer,
    access: u64,
    key: u64,
    context: *mut c_void,
    to: *mut *mut Fid,
) -> Result<()> {
    // SAFETY: the caller promises it.
    let domain = unsafe { domain::of(fid) }.clone();
    let region = domain.register(Box::new(buffer), access, Some(key))?;
    let fid = Fid { class: CLASS_MR, context, ops: &FID };
    // SAFETY: the object starts with a `Fid`, and the caller promises a valid place.
    unsafe { publish(Registration { fid, descriptor: 0, key: region.key, region, domain }, to) };
    Ok(())
}

unsafe extern "C" fn reg(
    fid: *mut Fid,
    memory: *const c_void,
    length: usize,
    access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    to: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    guard_int(|| {
        // SAFETY: the application keeps the memory valid until it closes the registration.
        unsafe { register(fid, Buffer::new(memory.cast_mut(), length), access, key, context, to) }
    })
}

unsafe extern "C" fn regv(
    fid: *mut Fid,
    iov: *const iovec,
    count: usize,
    access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    to: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    guard_int(|| {
        // SAFETY: as in `reg`; the caller passes `count` parts.
        unsafe { register(fid, Buffer::from_iov(iov, count)?, access, key, context, to) }
    })
}

unsafe extern "C" fn regattr(fid: *mut Fid, attr: *const MrAttr, _flags: u64, to: *mut *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: as in `regv`.
        unsafe {
            let attr = &*attr;
            let buffer = Buffer::from_iov(attr.mr_iov, attr.iov_count)?;
            register(fid, buffer, attr.access, attr.requested_key, attr.context, to)
        }
    })
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: `register` made it.
        let registration = unsafe { reclaim::<Registration>(fid) };
        registration.domain.withdraw(registration.region);
        Ok(())
    })
}

/// Regions belong to the domain, so binding one to an endpoint changes nothing. Counters of remote accesses are not
/// offered.
unsafe extern "C" fn bind(_: *mut Fid, other: *mut Fid, _: u64) -> c_int {
    // SAFETY: it is an object of this provider.
    if unsafe { (*other).class } == CLASS_EP { 0 } else { -Code::ENOSYS.0 }
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    if command == ENABLE {
        return 0;
    }
    // SAFETY: the arguments are not used.
    unsafe { no_control(fid, command, argument) }
}
