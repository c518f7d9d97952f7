//! The application's buffers.

use crate::info::{INJECT, LONGEST};
use bytes::Bytes;
use core::ffi::c_void;
use core::ptr;
use libc::iovec;
use uet_fabric::{Code, Error, Result, UserMemory};
use uet_model::Memory;
use uet_wire::registry::ReturnCode;

/// The most parts of a buffer.
pub(crate) const PARTS: usize = 8;

/// A buffer of the application, in one or more parts.
///
/// By libfabric's rules it belongs to the provider from the call that posts it to the completion, or until the endpoint
/// or registration is closed.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    parts: Vec<Part>,
    length: usize,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    address: usize,
    length: usize,
}

impl Buffer {
    /// Returns the buffer at this address.
    ///
    /// # Safety
    ///
    /// The memory must be valid for reading and writing as long as the buffer or a window of it is in use.
    pub(crate) unsafe fn new(address: *mut c_void, length: usize) -> Self {
        Buffer { parts: vec![Part { address: address as usize, length }], length }
    }

    /// Returns the buffer with these parts.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new), and `iov` must point to `count` parts unless `count` is 0.
    pub(crate) unsafe fn from_iov(iov: *const iovec, count: usize) -> Result<Self> {
        if count > PARTS {
            return Err(Error::new(Code::EINVAL, "a buffer has more than 8 parts"));
        }
        let mut parts = Vec::with_capacity(count);
        for place in 0..count {
            // SAFETY: the caller promises `count` parts.
            let part = unsafe { &*iov.add(place) };
            parts.push(Part { address: part.iov_base as usize, length: part.iov_len });
        }
        let length = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.length));
        let length =
            length.ok_or(Error::new(Code::EINVAL, "the parts of a buffer exceed the address space"))?;
        Ok(Buffer { parts, length })
    }

    /// Copies the bytes of a message or of an injected one. Fails with EMSGSIZE if it is too long, and with ENOMEM if there
    /// is no memory for it.
    pub(crate) fn copy(&self, is_injected: bool) -> Result<Bytes> {
        let most = if is_injected { INJECT } else { LONGEST };
        if self.length > most {
            let message = format!("the buffer has {} bytes, but the limit is {most}", self.length);
            return Err(Error::new(Code::EMSGSIZE, message));
        }
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(self.length)
            .map_err(|_| Error::new(Code::ENOMEM, "no memory to copy the buffer"))?;
        for Part { address, length } in self.parts.iter().filter(|part| part.length > 0) {
            // SAFETY: `new` and `from_iov` require that the memory is valid for reading.
            bytes.extend_from_slice(unsafe { core::slice::from_raw_parts(*address as *const u8, *length) });
        }
        Ok(bytes.into())
    }

    /// Calls `visit` with the parts of a range: an address, an offset in the range, and a length.
    fn walk(
        &self,
        offset: usize,
        length: usize,
        mut visit: impl FnMut(usize, usize, usize),
    ) -> Result<(), ReturnCode> {
        let end = offset.checked_add(length).filter(|end| *end <= self.length);
        let end = end.ok_or(ReturnCode::BAD_ADDR)?;
        let mut start = 0;
        for part in &self.parts {
            let (from, to) = (start.max(offset), (start + part.length).min(end));
            if from < to {
                visit(part.address + (from - start), from - offset, to - from);
            }
            start += part.length;
        }
        Ok(())
    }
}

impl Memory for Buffer {
    fn len(&self) -> usize {
        self.length
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), ReturnCode> {
        let to = into.as_mut_ptr();
        self.walk(offset, into.len(), |address, at, length| {
            // SAFETY: the application's memory is valid for reading, and `walk` stays inside `into`. The application may
            // pass memory that overlaps nothing of ours, since `into` is ours.
            unsafe { ptr::copy_nonoverlapping(address as *const u8, to.add(at), length) };
        })
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> Result<(), ReturnCode> {
        self.walk(offset, data.len(), |address, at, length| {
            // SAFETY: the application's memory is valid for writing, and `walk` stays inside `data`. Data that is a view
            // of the same memory may overlap it.
            unsafe { ptr::copy(data.as_ptr().add(at), address as *mut u8, length) };
        })
    }
}

impl UserMemory for Buffer {
    fn window(&self, offset: usize, length: usize) -> Box<dyn UserMemory> {
        let mut parts = Vec::new();
        // A window outside the buffer is empty.
        let _ = self.walk(offset, length, |address, _, length| parts.push(Part { address, length }));
        let length = parts.iter().map(|part| part.length).sum();
        Box::new(Buffer { parts, length })
    }

    fn address(&self) -> usize {
        self.parts.first().map_or(0, |part| part.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_form_one_memory() {
        let (mut first, mut second) = (*b"abc", *b"defg");
        let part = |bytes: &mut [u8]| iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let iov = [part(&mut first), part(&mut []), part(&mut second)];
        // SAFETY: the arrays outlive the buffer.
        let mut buffer = unsafe { Buffer::from_iov(iov.as_ptr(), iov.len()) }.unwrap();
        assert_eq!((buffer.len(), &buffer.copy(true).unwrap()[..]), (7, &b"abcdefg"[..]));
        buffer.write(2, b"XYZ").unwrap();
        let mut read = [0; 5];
        buffer.read(1, &mut read).unwrap();
        assert_eq!(&read, b"bXYZf");
        assert_eq!(buffer.write(6, b"xy"), Err(ReturnCode::BAD_ADDR));
        assert_eq!(buffer.read(usize::MAX, &mut read), Err(ReturnCode::BAD_ADDR));

        let mut window = buffer.window(2, 3);
        assert_eq!((window.len(), window.address()), (3, buffer.address() + 2));
        window.write(0, b"123").unwrap();
        assert_eq!(&buffer.copy(false).unwrap()[..], b"ab123fg");
        assert_eq!(buffer.window(6, 2).len(), 0);
        assert_eq!((&first, &second), (b"ab1", b"23fg"));
    }

    #[test]
    fn long_buffers_are_refused_before_they_are_read() {
        let buffer = |length| {
            // SAFETY: nothing reads or writes the memory.
            unsafe { Buffer::new(core::ptr::dangling_mut::<u8>().cast(), length) }
        };
        for (length, is_injected) in [(4097, true), (1 << 32, false), (1 << 62, false)] {
            assert_eq!(buffer(length).copy(is_injected).unwrap_err().code, Code::EMSGSIZE, "{length}");
        }
        let part = |iov_len| iovec { iov_base: core::ptr::null_mut(), iov_len };
        let iov = [part(usize::MAX), part(1)];
        // SAFETY: as above.
        let overflow = unsafe { Buffer::from_iov(iov.as_ptr(), iov.len()) };
        assert_eq!(overflow.unwrap_err().code, Code::EINVAL);
    }
}
