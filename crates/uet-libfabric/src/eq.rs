//! `fid_eq`.

use crate::call::{guard, guard_int, no_bind, no_ops, object, publish, reclaim};
use crate::cq::{give_fd, strerror};
use crate::sys::*;
use core::ffi::{c_int, c_void};
use core::mem::size_of;
use core::ptr;
use core::time::Duration;
use libc::ssize_t;
use std::sync::Arc;
use std::time::Instant;
use uet_fabric::{Code, Event, EventQueue, Result};

/// `FI_PEEK`.
const PEEK: u64 = 1 << 19;

#[repr(C)]
pub(crate) struct QueueObject {
    fid: Fid,
    ops: &'static EqOps,
    pub(crate) events: Arc<EventQueue>,
}

static FID: Ops = Ops { size: size_of::<Ops>(), close, bind: no_bind, control, ops_open: no_ops };
static OPS: EqOps = EqOps { size: size_of::<EqOps>(), read, readerr, write, sread, strerror };

pub(crate) unsafe extern "C" fn open(
    _: *mut Fid,
    attr: *mut EqAttr,
    to: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    guard_int(|| {
        // SAFETY: the caller passes null or a valid structure.
        let wait = unsafe { attr.as_ref() }.map_or(WAIT_NONE, |attr| attr.wait_obj);
        if ![WAIT_NONE, WAIT_UNSPEC, WAIT_FD, WAIT_YIELD].contains(&wait) {
            return Err(Code::ENOSYS.into());
        }
        let fid = Fid { class: CLASS_EQ, context, ops: &FID };
        let events = Arc::new(EventQueue::new(wait == WAIT_FD)?);
        // SAFETY: the object starts with a `Fid`, and the caller passes a valid place.
        unsafe { publish(QueueObject { fid, ops: &OPS, events }, to) };
        Ok(())
    })
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: `open` made it, and the caller passes the place for the answer.
    guard_int(|| unsafe { give_fd(object::<QueueObject>(fid).events.fd(), command, argument) })
}

/// Adds an event with the usual body.
pub(crate) fn push(events: &EventQueue, kind: u32, fid: *mut Fid, context: *mut c_void, data: u64) {
    let body = [fid as usize, context as usize, data as usize];
    events.push(Event { kind, body: body.into_iter().flat_map(usize::to_ne_bytes).collect() });
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        drop(unsafe { reclaim::<QueueObject>(fid) });
        Ok(())
    })
}

/// # Safety
///
/// `kind` must be a valid place, and `to` have room for `room` bytes.
unsafe fn take(
    queue: &QueueObject,
    kind: *mut u32,
    to: *mut c_void,
    room: usize,
    flags: u64,
) -> Result<isize> {
    let event = queue.events.read(room, flags & PEEK != 0)?;
    // SAFETY: the caller promises the room.
    unsafe {
        kind.write(event.kind);
        ptr::copy_nonoverlapping(event.body.as_ptr(), to.cast(), event.body.len());
    }
    Ok(event.body.len() as isize)
}

unsafe extern "C" fn read(
    fid: *mut Fid,
    kind: *mut u32,
    to: *mut c_void,
    room: usize,
    flags: u64,
) -> ssize_t {
    // SAFETY: `open` made it, and the caller passes the room.
    guard(|| unsafe { take(object(fid), kind, to, room, flags) })
}

/// No event of this provider is an error.
unsafe extern "C" fn readerr(_: *mut Fid, _: *mut c_void, _: u64) -> ssize_t {
    -(Code::EAGAIN.0 as ssize_t)
}

unsafe extern "C" fn write(fid: *mut Fid, kind: u32, from: *const c_void, length: usize, _: u64) -> ssize_t {
    guard(|| {
        let body = match length {
            // `from` may be null.
            0 => Vec::new(),
            // SAFETY: the caller passes `length` bytes.
            _ => unsafe { core::slice::from_raw_parts(from.cast::<u8>(), length) }.to_vec(),
        };
        // SAFETY: `open` made it.
        unsafe { object::<QueueObject>(fid) }.events.push(Event { kind, body });
        Ok(length as isize)
    })
}

unsafe extern "C" fn sread(
    fid: *mut Fid,
    kind: *mut u32,
    to: *mut c_void,
    room: usize,
    timeout: c_int,
    flags: u64,
) -> ssize_t {
    guard(|| {
        let end = u64::try_from(timeout).ok().map(|timeout| Instant::now() + Duration::from_millis(timeout));
        loop {
            // SAFETY: `open` made it, and the caller passes the room.
            match unsafe { take(object(fid), kind, to, room, flags) } {
                Err(error) if error.code == Code::EAGAIN && end.is_none_or(|end| Instant::now() < end) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                result => return result,
            }
        }
    })
}

const _: () = assert!(size_of::<EqEntry>() == 3 * size_of::<usize>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_may_have_no_body() {
        let (mut eq, mut kind) = (ptr::null_mut(), 0);
        // SAFETY: the places are valid, and null stands for no attributes and no bytes.
        unsafe {
            assert_eq!(open(ptr::null_mut(), ptr::null_mut(), &raw mut eq, ptr::null_mut()), 0);
            assert_eq!(write(eq, 7, ptr::null(), 0, 0), 0);
            assert_eq!((read(eq, &raw mut kind, ptr::dangling_mut(), 0, 0), kind), (0, 7));
            close(eq);
        }
    }
}
