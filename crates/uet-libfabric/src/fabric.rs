//! `fid_fabric`.

use crate::call::{guard_int, no_bind, no_control, no_ops, object, publish, reclaim};
use crate::cq::Queue;
use crate::domain;
use crate::eq::{self, QueueObject};
use crate::sys::*;
use core::ffi::{c_int, c_void};
use core::mem::size_of;
use uet_fabric::{Code, Result};

#[repr(C)]
pub(crate) struct Fabric {
    fid: Fid,
    ops: &'static FabricOps,
    /// The version that the application was written for. libfabric writes it.
    pub(crate) api_version: u32,
}

static FID: Ops = Ops { size: size_of::<Ops>(), close, bind: no_bind, control: no_control, ops_open: no_ops };
static OPS: FabricOps = FabricOps {
    size: size_of::<FabricOps>(),
    domain: domain::open,
    passive_ep,
    eq_open: eq::open,
    wait_open,
    trywait,
};

pub(crate) unsafe extern "C" fn open(
    attr: *mut FabricAttr,
    to: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    guard_int(|| {
        let fid = Fid { class: CLASS_FABRIC, context, ops: &FID };
        // SAFETY: libfabric passes null or a valid structure.
        let api_version = unsafe { attr.as_ref() }.map_or(API, |attr| attr.api_version);
        // SAFETY: the object starts with a `Fid`, and libfabric passes a valid place.
        unsafe { publish(Fabric { fid, ops: &OPS, api_version }, to) };
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        drop(unsafe { reclaim::<Fabric>(fid) });
        Ok(())
    })
}

unsafe extern "C" fn passive_ep(_: *mut Fid, _: *mut Info, _: *mut *mut Fid, _: *mut c_void) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn wait_open(_: *mut Fid, _: *mut c_void, _: *mut *mut Fid) -> c_int {
    -Code::ENOSYS.0
}

/// Tells whether the application may sleep on the file descriptors of these objects.
unsafe extern "C" fn trywait(_: *mut Fid, fids: *mut *mut Fid, count: c_int) -> c_int {
    guard_int(|| {
        for place in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: the caller passes `count` objects of this provider, each of which starts with a `Fid`.
            unsafe {
                let fid = *fids.add(place);
                match (*fid).class {
                    CLASS_CQ => may_sleep(object::<Queue>(fid))?,
                    CLASS_EQ if !object::<QueueObject>(fid).events.is_empty() => {
                        return Err(Code::EAGAIN.into());
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    })
}

fn may_sleep(queue: &Queue) -> Result<()> {
    queue.domain.progress();
    if !queue.queue.is_empty() {
        return Err(Code::EAGAIN.into());
    }
    queue.domain.leave();
    Ok(())
}
