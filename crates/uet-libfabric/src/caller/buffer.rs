//! Memory that the provider reads and writes.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ops::Range;

/// A buffer that another thread, that of the provider, may read and write at any time.
#[derive(Debug)]
pub(super) struct CallerBuffer(Box<[UnsafeCell<u8>]>);

impl CallerBuffer {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        CallerBuffer(bytes.into_iter().map(UnsafeCell::new).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn address(&self) -> *mut c_void {
        self.0.as_ptr().cast_mut().cast()
    }

    /// Copies a range; `None` if it is not inside the buffer.
    pub(super) fn copy(&self, range: Range<usize>) -> Option<Vec<u8>> {
        let cells = self.0.get(range)?;
        // SAFETY: the cell is valid. The provider may write to it meanwhile, as a NIC does: each byte is read once, and
        // every value of a byte is valid.
        Some(cells.iter().map(|cell| unsafe { cell.get().read_volatile() }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_only_ranges_inside() {
        let buffer = CallerBuffer::new(vec![1, 2, 3]);
        assert_eq!((buffer.len(), buffer.copy(1..3)), (3, Some(vec![2, 3])));
        assert_eq!(buffer.copy(1..4), None);
        assert!(!buffer.address().is_null());
    }
}
