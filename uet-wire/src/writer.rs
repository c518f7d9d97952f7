//! The storage of a header that is edited in place.

use core::borrow::{Borrow, BorrowMut};

/// A header in the caller's buffer, as a writer holds it. Setters change a copy, which `done` writes back.
#[derive(Debug)]
pub struct InPlace<'b, const N: usize> {
    copy: [u8; N],
    place: &'b mut [u8; N],
}

impl<'b, const N: usize> InPlace<'b, N> {
    #[inline(always)]
    pub(crate) fn new(place: &'b mut [u8; N]) -> Self {
        InPlace { copy: *place, place }
    }

    /// Writes the copy back.
    #[inline(always)]
    pub(crate) fn commit(self) -> &'b mut [u8; N] {
        *self.place = self.copy;
        self.place
    }
}

impl<const N: usize> Borrow<[u8; N]> for InPlace<'_, N> {
    #[inline(always)]
    fn borrow(&self) -> &[u8; N] {
        &self.copy
    }
}

impl<const N: usize> BorrowMut<[u8; N]> for InPlace<'_, N> {
    #[inline(always)]
    fn borrow_mut(&mut self) -> &mut [u8; N] {
        &mut self.copy
    }
}
