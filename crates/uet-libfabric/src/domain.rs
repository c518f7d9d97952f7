//! `fid_domain`.

use crate::call::{guard_int, no_control, no_ops, object, publish, reclaim};
use crate::fabric::Fabric;
use crate::info::{domain_name, read_name};
use crate::log::settings;
use crate::sys::*;
use crate::{atomic, av, cntr, cq, ep, mr};
use core::ffi::{CStr, c_int, c_void};
use core::mem::size_of;
use uet_fabric::{Code, Domain, Error, Interface, Result};

#[repr(C)]
pub(crate) struct DomainObject {
    fid: Fid,
    ops: &'static DomainOps,
    mr: &'static MrOps,
    pub(crate) domain: Domain,
    /// The version of the interface that the application was written for.
    pub(crate) api_version: u32,
}

static FID: Ops = Ops { size: size_of::<Ops>(), close, bind, control: no_control, ops_open: no_ops };
static OPS: DomainOps = DomainOps {
    size: size_of::<DomainOps>(),
    av_open: av::open,
    cq_open: cq::open,
    endpoint: ep::open,
    scalable_ep: no_endpoint,
    cntr_open: cntr::open,
    poll_open,
    stx_ctx: no_context,
    srx_ctx: no_context,
    query_atomic: atomic::query,
};

pub(crate) unsafe extern "C" fn open(
    fabric: *mut Fid,
    info: *mut Info,
    to: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    guard_int(|| {
        // SAFETY: the application passes a fabric and an `fi_info` of this provider.
        let (interface, api_version) =
            unsafe { (interface_of(&*info)?, object::<Fabric>(fabric).api_version) };
        let domain = Domain::open(&interface, settings()?)?;
        let fid = Fid { class: CLASS_DOMAIN, context, ops: &FID };
        // SAFETY: the object starts with a `Fid`, and the caller passes a valid place.
        unsafe { publish(DomainObject { fid, ops: &OPS, mr: &mr::OPS, domain, api_version }, to) };
        Ok(())
    })
}

/// # Safety
///
/// The pointers in `info` must be null or valid.
unsafe fn interface_of(info: &Info) -> Result<Interface> {
    let mut found = Interface::list(settings()?)?;
    // SAFETY: the caller promises it.
    let (source, name) = unsafe {
        let name = info.domain_attr.as_ref().map(|domain| domain.name).filter(|name| !name.is_null());
        (read_name(info.src_addr, info.src_addrlen), name.map(|name| CStr::from_ptr(name).to_string_lossy()))
    };
    let missing = || Error::new(Code::ENODATA, "the interface of this domain is gone");
    let by_name = |interface: &Interface| name.as_ref().is_none_or(|name| *name == domain_name(interface));
    let place = found.iter().position(by_name).ok_or_else(missing)?;
    let interface = found.swap_remove(place);
    // The application may have chosen one address of the loopback network.
    let chosen =
        source.map(|name| name.address.ip()).filter(|ip| ip.is_loopback() && *ip != interface.address);
    Ok(match chosen.filter(|_| interface.is_loopback) {
        Some(address) if address.is_ipv4() == interface.address.is_ipv4() => {
            Interface { address, prefix: 32, ..interface }
        }
        _ => interface,
    })
}

/// Returns the domain of a `fid_domain`.
///
/// # Safety
///
/// `fid` must be a domain of this provider.
pub(crate) unsafe fn of<'a>(fid: *mut Fid) -> &'a Domain {
    // SAFETY: the caller promises it.
    &unsafe { object::<DomainObject>(fid) }.domain
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        drop(unsafe { reclaim::<DomainObject>(fid) });
        Ok(())
    })
}

/// Event queues of a domain get no events here, since every registration completes at once.
unsafe extern "C" fn bind(_: *mut Fid, _: *mut Fid, _: u64) -> c_int {
    0
}

unsafe extern "C" fn no_endpoint(_: *mut Fid, _: *mut Info, _: *mut *mut Fid, _: *mut c_void) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn no_context(_: *mut Fid, _: *mut c_void, _: *mut *mut Fid, _: *mut c_void) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn poll_open(_: *mut Fid, _: *mut c_void, _: *mut *mut Fid) -> c_int {
    -Code::ENOSYS.0
}
