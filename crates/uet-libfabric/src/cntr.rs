//! `fid_cntr`.

use crate::call::{guard_int, no_bind, no_control, no_ops, object, publish, reclaim};
use crate::domain;
use crate::sys::*;
use core::ffi::{c_int, c_void};
use core::mem::size_of;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uet_fabric::{Code, Counter, Domain};

#[repr(C)]
pub(crate) struct CounterObject {
    fid: Fid,
    ops: &'static CntrOps,
    pub(crate) counter: Arc<Counter>,
    domain: Domain,
}

static FID: Ops = Ops { size: size_of::<Ops>(), close, bind: no_bind, control: no_control, ops_open: no_ops };
static OPS: CntrOps = CntrOps { size: size_of::<CntrOps>(), read, readerr, add, set, wait, adderr, seterr };

pub(crate) unsafe extern "C" fn open(
    fid: *mut Fid,
    _: *mut c_void,
    to: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    guard_int(|| {
        // SAFETY: the caller passes a domain of this provider.
        let domain = unsafe { domain::of(fid) }.clone();
        let fid = Fid { class: CLASS_CNTR, context, ops: &FID };
        // SAFETY: the object starts with a `Fid`, and the caller passes a valid place.
        unsafe { publish(CounterObject { fid, ops: &OPS, counter: Arc::default(), domain }, to) };
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        drop(unsafe { reclaim::<CounterObject>(fid) });
        Ok(())
    })
}

fn load(counter: &CounterObject, which: impl Fn(&Counter) -> &AtomicU64) -> u64 {
    let mut value = 0;
    guard_int(|| {
        counter.domain.progress();
        value = which(&counter.counter).load(Ordering::Acquire);
        Ok(())
    });
    value
}

unsafe extern "C" fn read(fid: *mut Fid) -> u64 {
    // SAFETY: `open` made it.
    load(unsafe { object(fid) }, |counter| &counter.done)
}

unsafe extern "C" fn readerr(fid: *mut Fid) -> u64 {
    // SAFETY: `open` made it.
    load(unsafe { object(fid) }, |counter| &counter.failed)
}

unsafe extern "C" fn add(fid: *mut Fid, value: u64) -> c_int {
    // SAFETY: `open` made it.
    unsafe { object::<CounterObject>(fid) }.counter.done.fetch_add(value, Ordering::AcqRel);
    0
}

unsafe extern "C" fn set(fid: *mut Fid, value: u64) -> c_int {
    // SAFETY: `open` made it.
    unsafe { object::<CounterObject>(fid) }.counter.done.store(value, Ordering::Release);
    0
}

unsafe extern "C" fn adderr(fid: *mut Fid, value: u64) -> c_int {
    // SAFETY: `open` made it.
    unsafe { object::<CounterObject>(fid) }.counter.failed.fetch_add(value, Ordering::AcqRel);
    0
}

unsafe extern "C" fn seterr(fid: *mut Fid, value: u64) -> c_int {
    // SAFETY: `open` made it.
    unsafe { object::<CounterObject>(fid) }.counter.failed.store(value, Ordering::Release);
    0
}

unsafe extern "C" fn wait(fid: *mut Fid, threshold: u64, timeout: c_int) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        let CounterObject { counter, domain, .. } = unsafe { object::<CounterObject>(fid) };
        let failed = counter.failed.load(Ordering::Acquire);
        let has_failed = || counter.failed.load(Ordering::Acquire) != failed;
        let is_there = || counter.done.load(Ordering::Acquire) >= threshold;
        let limit = u64::try_from(timeout).ok().map(Duration::from_millis);
        domain.wait(limit, || is_there() || has_failed());
        match (is_there(), has_failed()) {
            (true, _) => Ok(()),
            (false, true) => Err(Code::EAVAIL.into()),
            (false, false) => Err(Code::ETIMEDOUT.into()),
        }
    })
}
