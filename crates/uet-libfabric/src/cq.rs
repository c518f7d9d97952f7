//! `fid_cq`.

use crate::av::write_text;
use crate::call::{guard, guard_int, no_bind, no_ops, object, publish, reclaim};
use crate::domain::DomainObject;
use crate::log::warn;
use crate::sys::*;
use core::ffi::{c_char, c_int, c_void};
use core::mem::size_of;
use core::ptr;
use core::time::Duration;
use libc::ssize_t;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use uet_fabric::{Code, Completion, CompletionQueue, Domain, Result, flags};
use uet_wire::registry::ReturnCode;

#[repr(C)]
pub(crate) struct Queue {
    fid: Fid,
    ops: &'static CqOps,
    pub(crate) queue: Arc<CompletionQueue>,
    pub(crate) domain: Domain,
    /// The number of bytes of an entry, by the format that the application chose.
    entry: usize,
    /// True if an error entry of the application ends before `err_data_size`.
    short_errors: bool,
    signaled: AtomicBool,
}

static FID: Ops = Ops { size: size_of::<Ops>(), close, bind: no_bind, control, ops_open: no_ops };
static OPS: CqOps =
    CqOps { size: size_of::<CqOps>(), read, readfrom, readerr, sread, sreadfrom, signal, strerror };

pub(crate) unsafe extern "C" fn open(
    fid: *mut Fid,
    attr: *mut CqAttr,
    to: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    guard_int(|| {
        // SAFETY: the caller passes null or a valid structure, and a domain of this provider.
        let (attr, opened) = unsafe { (attr.as_mut(), object::<DomainObject>(fid)) };
        let (format, wait, size) = attr.map_or((0, WAIT_NONE, 0), |attr| {
            if attr.format == 0 {
                attr.format = 1;
            }
            (attr.format, attr.wait_obj, attr.size)
        });
        let entry = match format {
            0 | 1 => 8,
            2 => 24,
            3 => 40,
            4 => 48,
            _ => return Err(Code::ENOSYS.into()),
        };
        if ![WAIT_NONE, WAIT_UNSPEC, WAIT_FD, WAIT_YIELD].contains(&wait) {
            return Err(Code::ENOSYS.into());
        }
        let queue = Arc::new(CompletionQueue::new(size, wait == WAIT_FD)?);
        let fid = Fid { class: CLASS_CQ, context, ops: &FID };
        // SAFETY: the object starts with a `Fid`, and the caller passes a valid place.
        unsafe {
            publish(
                Queue {
                    fid,
                    ops: &OPS,
                    queue,
                    domain: opened.domain.clone(),
                    entry,
                    short_errors: opened.api_version < (1 << 16 | 5),
                    signaled: AtomicBool::new(false),
                },
                to,
            )
        };
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        drop(unsafe { reclaim::<Queue>(fid) });
        Ok(())
    })
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it, and the caller passes the place for the answer.
        unsafe { give_fd(object::<Queue>(fid).queue.fd(), command, argument) }
    })
}

/// Answers GETWAIT with the file descriptor of a queue.
///
/// # Safety
///
/// For GETWAIT, `argument` must be the place of an int.
pub(crate) unsafe fn give_fd(
    fd: Option<BorrowedFd<'_>>,
    command: c_int,
    argument: *mut c_void,
) -> Result<()> {
    match (command, fd) {
        (GETWAIT, Some(fd)) => {
            // SAFETY: the caller promises the place.
            unsafe { argument.cast::<c_int>().write(fd.as_raw_fd()) };
            Ok(())
        }
        _ => Err(Code::ENOSYS.into()),
    }
}

impl Queue {
    /// Takes completions while there are any and there is room.
    ///
    /// # Safety
    ///
    /// `to` must have room for `count` entries, `sources` be null or have room for `count` numbers.
    unsafe fn take(&self, to: *mut c_void, count: usize, sources: *mut u64) -> isize {
        let mut taken = 0;
        while taken < count {
            match self.queue.read() {
                Ok(completion) => {
                    let entry = entry(&completion);
                    // SAFETY: the caller promises the room; a format is a prefix of the largest one.
                    unsafe {
                        let place = to.byte_add(taken * self.entry);
                        ptr::copy_nonoverlapping((&raw const entry).cast::<u8>(), place.cast(), self.entry);
                        if !sources.is_null() {
                            sources.add(taken).write(completion.source);
                        }
                    }
                    taken += 1;
                }
                Err(_) if taken > 0 => break,
                Err(code) => return -(code.0 as isize),
            }
        }
        taken as isize
    }
}

fn entry(completion: &Completion) -> CqEntry {
    let Completion { context, flags, length, buffer, data, tag, .. } = *completion;
    CqEntry { op_context: context, flags, len: length, buf: buffer, data, tag }
}

unsafe extern "C" fn read(fid: *mut Fid, to: *mut c_void, count: usize) -> ssize_t {
    // SAFETY: as in `readfrom`.
    unsafe { readfrom(fid, to, count, ptr::null_mut()) }
}

unsafe extern "C" fn readfrom(fid: *mut Fid, to: *mut c_void, count: usize, sources: *mut u64) -> ssize_t {
    guard(|| {
        // SAFETY: `open` made it.
        let queue = unsafe { object::<Queue>(fid) };
        // A read of nothing asks for progress.
        if count == 0 || queue.queue.is_empty() {
            queue.domain.progress();
        }
        // SAFETY: the caller passes the room.
        Ok(unsafe { queue.take(to, count, sources) })
    })
}

unsafe extern "C" fn sread(
    fid: *mut Fid,
    to: *mut c_void,
    count: usize,
    condition: *const c_void,
    timeout: c_int,
) -> ssize_t {
    // SAFETY: as in `sreadfrom`.
    unsafe { sreadfrom(fid, to, count, ptr::null_mut(), condition, timeout) }
}

unsafe extern "C" fn sreadfrom(
    fid: *mut Fid,
    to: *mut c_void,
    count: usize,
    sources: *mut u64,
    _condition: *const c_void,
    timeout: c_int,
) -> ssize_t {
    guard(|| {
        // SAFETY: `open` made it.
        let queue = unsafe { object::<Queue>(fid) };
        let limit = u64::try_from(timeout).ok().map(Duration::from_millis);
        let ready = || !queue.queue.is_empty() || queue.signaled.swap(false, Ordering::AcqRel);
        if queue.queue.is_empty() {
            queue.domain.wait(limit, ready);
        }
        // SAFETY: the caller passes the room.
        Ok(unsafe { queue.take(to, count, sources) })
    })
}

pub(crate) unsafe extern "C" fn readerr(fid: *mut Fid, to: *mut CqErrEntry, _: u64) -> ssize_t {
    guard(|| {
        // SAFETY: `open` made it.
        let queue = unsafe { object::<Queue>(fid) };
        let failed = queue.queue.read_failed().ok_or(Code::EAGAIN)?;
        if failed.completion.context == 0 && failed.completion.flags & flags::RECV == 0 {
            // Nothing else names an operation without a context. Open MPI 4.1 then dereferences null.
            let code = ReturnCode::new(failed.return_code).unwrap_or_default();
            warn(&format!("an injected operation failed: error {} of libfabric, {code}", failed.code.0));
        }
        // SAFETY: the caller passes a structure of its version. Fields that later versions append stay as they
        // are, so there is no reference to all of it.
        unsafe {
            (&raw mut (*to).entry).write(entry(&failed.completion));
            (&raw mut (*to).olen).write(failed.cut_off);
            (&raw mut (*to).err).write(failed.code.0);
            (&raw mut (*to).prov_errno).write(failed.return_code.into());
            if !queue.short_errors {
                (&raw mut (*to).err_data_size).write(0);
            }
        }
        Ok(1)
    })
}

unsafe extern "C" fn signal(fid: *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        let queue = unsafe { object::<Queue>(fid) };
        queue.signaled.store(true, Ordering::Release);
        queue.queue.signal();
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn strerror(
    _: *mut Fid,
    number: c_int,
    _: *const c_void,
    to: *mut c_char,
    room: usize,
) -> *const c_char {
    static FALLBACK: &core::ffi::CStr = c"UET return code";
    let code = u8::try_from(number).ok().and_then(ReturnCode::new);
    if to.is_null() || room == 0 {
        return FALLBACK.as_ptr();
    }
    // SAFETY: the caller passes the room.
    unsafe { write_text(&code.unwrap_or_default().to_string(), to, room) };
    to
}
