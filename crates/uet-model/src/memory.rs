//! The interface to the caller's memory: registered regions and posted receive buffers.

use bytes::Bytes;
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uet_wire::registry::ReturnCode;

/// Memory that the model reads and writes on behalf of peers.
///
/// An implementation is a handle to a registered buffer. Examples are a `Vec<u8>`, a lock around memory that the
/// application shares, or the memory of a NIC. Every access lies within [`len`](Self::len) bytes, which must not change
/// while the memory is registered.
///
/// An error is the return code that the initiator receives, such as `HOST_POISONED` or `AT_NO_TRANS`.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use uet_model::ses::{Access, Endpoint, Key, Process, Region, ResourceIndex, Ses};
///
/// // The application keeps a handle to the buffer that it registers.
/// let buffer = Arc::new(Mutex::new(vec![0; 4096]));
/// let process = Process::Relative { job: 101, pid: 2 };
/// let mut ses = Ses::default();
/// ses.open(Endpoint { process, start: 0, count: 1 })?;
/// let region = Region { key: Key(7), base: 0, access: Access::ALL, data: buffer.clone() };
/// ses.expose(ResourceIndex { process, index: 0 }, region)?;
/// assert_eq!(buffer.lock().unwrap().len(), 4096);
/// # Ok::<(), uet_model::ses::AddressError>(())
/// ```
#[allow(clippy::len_without_is_empty)]
pub trait Memory: Send {
    /// Returns the length in bytes.
    fn len(&self) -> usize;

    /// Copies bytes from `offset` into `into`.
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), ReturnCode>;

    /// Writes `data` at `offset`.
    fn write(&mut self, offset: usize, data: &[u8]) -> Result<(), ReturnCode>;

    /// Changes `length` bytes at `offset` in place, for atomic operations.
    ///
    /// The default reads, modifies and writes the bytes. Memory with concurrent access must override it, so that no
    /// other access falls in between.
    fn update(
        &mut self,
        offset: usize,
        length: usize,
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), ReturnCode> {
        let mut bytes = vec![0; length];
        self.read(offset, &mut bytes)?;
        change(&mut bytes);
        self.write(offset, &bytes)
    }

    /// Returns the whole memory as a slice, if the implementation supports that.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the whole memory as a mutable slice, if the implementation supports that.
    fn as_mut_slice(&mut self) -> Option<&mut [u8]> {
        None
    }
}

impl fmt::Debug for dyn Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.len())
    }
}

/// The code for an access outside the memory, which the model never makes.
const OUTSIDE: ReturnCode = ReturnCode::BAD_ADDR;

impl Memory for [u8] {
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), ReturnCode> {
        let from = self.get(offset..).and_then(|from| from.get(..into.len())).ok_or(OUTSIDE)?;
        into.copy_from_slice(from);
        Ok(())
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> Result<(), ReturnCode> {
        let to = self.get_mut(offset..).and_then(|to| to.get_mut(..data.len())).ok_or(OUTSIDE)?;
        to.copy_from_slice(data);
        Ok(())
    }

    fn update(
        &mut self,
        offset: usize,
        length: usize,
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), ReturnCode> {
        change(self.get_mut(offset..).and_then(|bytes| bytes.get_mut(..length)).ok_or(OUTSIDE)?);
        Ok(())
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn as_mut_slice(&mut self) -> Option<&mut [u8]> {
        Some(self)
    }
}

/// Implements [`Memory`] for a pointer by delegation to its target.
macro_rules! forward {
    ($self:ident, $this:expr, $this_mut:expr) => {
        fn len(&$self) -> usize {
            $this.len()
        }

        fn read(&$self, offset: usize, into: &mut [u8]) -> Result<(), ReturnCode> {
            $this.read(offset, into)
        }

        fn write(&mut $self, offset: usize, data: &[u8]) -> Result<(), ReturnCode> {
            $this_mut.write(offset, data)
        }

        fn update(
            &mut $self,
            offset: usize,
            length: usize,
            change: &mut dyn FnMut(&mut [u8]),
        ) -> Result<(), ReturnCode> {
            $this_mut.update(offset, length, change)
        }
    };
}

impl Memory for Vec<u8> {
    forward! { self, self[..], self[..] }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn as_mut_slice(&mut self) -> Option<&mut [u8]> {
        Some(self)
    }
}

impl<M: Memory + ?Sized> Memory for Box<M> {
    forward! { self, (**self), (**self) }

    fn as_slice(&self) -> Option<&[u8]> {
        (**self).as_slice()
    }

    fn as_mut_slice(&mut self) -> Option<&mut [u8]> {
        (**self).as_mut_slice()
    }
}

/// Shared memory: each access holds the lock, atomic operations included.
impl<M: Memory + ?Sized> Memory for Arc<Mutex<M>> {
    forward! { self, *lock(self), *lock(self) }
}

/// A thread that panicked while it held the lock left plain bytes behind, which stay readable.
fn lock<M: ?Sized>(memory: &Mutex<M>) -> MutexGuard<'_, M> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Read-only memory: writes fail with `OP_VIOLATION`.
impl Memory for Bytes {
    fn len(&self) -> usize {
        Bytes::len(self)
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), ReturnCode> {
        Memory::read(&self[..], offset, into)
    }

    fn write(&mut self, _: usize, _: &[u8]) -> Result<(), ReturnCode> {
        Err(ReturnCode::OP_VIOLATION)
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(self)
    }
}
