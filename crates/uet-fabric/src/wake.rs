use crate::error::{Code, Error, Result};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsFd, BorrowedFd};

/// An optional file descriptor that is readable while a queue has entries.
#[derive(Debug, Default)]
pub(crate) struct Wake(Option<EventFd>);

impl Wake {
    /// Opens the file descriptor if asked.
    pub(crate) fn new(with_fd: bool) -> Result<Self> {
        let open = || EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let wake = with_fd.then(open).transpose();
        wake.map(Wake).map_err(|error| Error::new(Code(error as i32), "no file descriptor for the queue"))
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }

    /// Makes the file descriptor readable.
    pub(crate) fn set(&self) {
        if let Some(wake) = &self.0 {
            // A counter at its limit is readable anyway.
            let _ = wake.write(1);
        }
    }

    /// Makes the file descriptor unreadable.
    pub(crate) fn clear(&self) {
        if let Some(wake) = &self.0 {
            let _ = wake.read();
        }
    }
}
