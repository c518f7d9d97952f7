//! The frame of every entry point: errors become codes, panics never leave the library.

use crate::log;
use crate::sys::Fid;
use core::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use uet_fabric::{Code, Error, Result};

/// Runs the body of an entry point. Returns the negative code of an error, and EOTHER after a panic.
pub(crate) fn guard(body: impl FnOnce() -> Result<isize>) -> isize {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(Error { code, message })) => {
            if !message.is_empty() {
                log::warn(&message);
            }
            -(code.0 as isize)
        }
        Err(_) => {
            log::warn("internal error: please report the panic message above");
            -(Code::EOTHER.0 as isize)
        }
    }
}

/// Runs the body of an entry point that returns 0 or an error.
pub(crate) fn guard_int(body: impl FnOnce() -> Result<()>) -> c_int {
    guard(|| body().map(|()| 0)) as c_int
}

/// Returns the object whose first field is `fid`.
///
/// # Safety
///
/// `fid` must come from [`publish`] with the same type, and not have been given to [`reclaim`].
pub(crate) unsafe fn object<'a, T>(fid: *mut Fid) -> &'a T {
    // SAFETY: the caller promises that an object of this type starts at `fid` and is alive.
    unsafe { &*fid.cast::<T>() }
}

/// Gives an object to the application, which knows it by its first field. All threads of the application may use it.
///
/// # Safety
///
/// `T` must be `repr(C)` and start with a [`Fid`], and `to` must be valid for writing.
pub(crate) unsafe fn publish<T: Send + Sync>(object: T, to: *mut *mut Fid) {
    // SAFETY: the caller promises that `to` is valid.
    unsafe { to.write(Box::into_raw(Box::new(object)).cast()) };
}

/// Takes an object back.
///
/// # Safety
///
/// As for [`object`], and nothing may use the object any more.
pub(crate) unsafe fn reclaim<T>(fid: *mut Fid) -> Box<T> {
    // SAFETY: `publish` made it with `Box::into_raw`.
    unsafe { Box::from_raw(fid.cast()) }
}

pub(crate) unsafe extern "C" fn no_bind(_: *mut Fid, _: *mut Fid, _: u64) -> c_int {
    -Code::ENOSYS.0
}

pub(crate) unsafe extern "C" fn no_control(_: *mut Fid, _: c_int, _: *mut c_void) -> c_int {
    -Code::ENOSYS.0
}

pub(crate) unsafe extern "C" fn no_ops(
    _: *mut Fid,
    _: *const c_char,
    _: u64,
    _: *mut *mut c_void,
    _: *mut c_void,
) -> c_int {
    -Code::ENOSYS.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_a_code() {
        assert_eq!(guard(|| panic!("deliberate")), -256);
        assert_eq!(guard(|| Err(Code::EAGAIN.into())), -11);
        assert_eq!(guard(|| Ok(3)), 3);
    }
}
