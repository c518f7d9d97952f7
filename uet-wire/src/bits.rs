//! Reads and writes bit fields in byte arrays, most significant bit first, as on the wire.
//!
//! Positions are bit offsets from the start of the header. Headers pass constants, so each call compiles to a load or
//! store, a byte swap and a shift.

/// Returns the bits `lo..hi` of `bytes`, right-aligned.
///
/// Loads the field in one word whose length is a power of two. Byte-by-byte reads of a field of three bytes would stay
/// three loads.
#[inline(always)]
pub(crate) fn get<const N: usize>(bytes: &[u8; N], lo: usize, hi: usize) -> u128 {
    let length = (hi.div_ceil(8) - lo / 8).next_power_of_two();
    // The word starts with the field, or earlier if it would end after the header.
    let start = (lo / 8).min(N.saturating_sub(length)) * 8;
    let word = match length {
        _ if N < length => return get_slice(bytes, lo, hi).unwrap_or(0),
        1 => u8::from_be_bytes(*part(bytes, start)).into(),
        2 => u16::from_be_bytes(*part(bytes, start)).into(),
        4 => u32::from_be_bytes(*part(bytes, start)).into(),
        8 => u64::from_be_bytes(*part(bytes, start)),
        _ => return u128::from_be_bytes(*part(bytes, start)) >> (start + 128 - hi) & mask(hi - lo),
    };
    (word >> (start + length * 8 - hi) & mask(hi - lo) as u64).into()
}

/// Writes the low bits of `value` into the bits `lo..hi` of `bytes` and keeps the other bits.
///
/// Writes the two bytes of a short field one by one: the compiler knows what a neighbor wrote into such a byte, but
/// would load a word of both again.
#[inline(always)]
pub(crate) fn put<const N: usize>(bytes: &mut [u8; N], lo: usize, hi: usize, value: u128) {
    let middle = (lo / 8 + 1) * 8;
    if hi - lo < 16 && middle < hi && hi <= middle + 8 {
        put_word(bytes, lo, middle, value >> (hi - middle));
        put_word(bytes, middle, hi, value);
    } else {
        put_word(bytes, lo, hi, value);
    }
}

/// Writes bits into the word that [`get`] loads. A field that fills its word is stored without a load.
#[inline(always)]
fn put_word<const N: usize>(bytes: &mut [u8; N], lo: usize, hi: usize, value: u128) {
    let length = (hi.div_ceil(8) - lo / 8).next_power_of_two();
    let start = (lo / 8).min(N.saturating_sub(length)) * 8;
    let up = (start + length * 8).wrapping_sub(hi);
    let value = if N < length || hi - lo == length * 8 {
        value
    } else {
        let field = mask(hi - lo) << up;
        (get(bytes, start, start + length * 8) & !field) | (value << up & field)
    };
    match length {
        _ if N < length => _ = put_slice(bytes, lo, hi, value),
        1 => put_part(bytes, start, (value as u8).to_be_bytes()),
        2 => put_part(bytes, start, (value as u16).to_be_bytes()),
        4 => put_part(bytes, start, (value as u32).to_be_bytes()),
        8 => put_part(bytes, start, (value as u64).to_be_bytes()),
        _ => put_part(bytes, start, value.to_be_bytes()),
    }
}

/// Returns the `M` bytes from bit `lo` on, such as a header inside another. `lo` must be a multiple of 8.
#[inline(always)]
pub(crate) fn part<const N: usize, const M: usize>(bytes: &[u8; N], lo: usize) -> &[u8; M] {
    match bytes.get(lo / 8..).and_then(|rest| rest.first_chunk()) {
        Some(part) => part,
        None => const { &[0; M] },
    }
}

/// Returns the bytes of [`part`], mutable. Never returns `None` for the parts of a header, which lie inside it.
#[inline(always)]
pub(crate) fn part_mut<const N: usize, const M: usize>(
    bytes: &mut [u8; N],
    lo: usize,
) -> Option<&mut [u8; M]> {
    bytes.get_mut(lo / 8..).and_then(|rest| rest.first_chunk_mut())
}

/// Writes the bytes that [`part`] reads.
#[inline(always)]
pub(crate) fn put_part<const N: usize, const M: usize>(bytes: &mut [u8; N], lo: usize, part: [u8; M]) {
    if let Some(place) = part_mut(bytes, lo) {
        *place = part;
    }
}

/// Reads bits like [`get`] from a slice that may be too short, such as a truncated header.
#[inline]
pub(crate) fn get_slice(bytes: &[u8], lo: usize, hi: usize) -> Option<u128> {
    let (first, width) = (lo / 8, hi - lo);
    // Most fields fit into eight bytes. Load those at once if they are present. The load starts with the field, or
    // earlier if it would end after the header.
    let start = first.min(bytes.len().saturating_sub(8));
    if let Some(word) = bytes.get(start..).and_then(|rest| rest.first_chunk()) {
        let before = lo - start * 8;
        if before + width <= 64 {
            return Some((u64::from_be_bytes(*word) << before >> (64 - width)).into());
        }
    }
    get_bytewise(bytes, lo, hi)
}

#[cold]
fn get_bytewise(bytes: &[u8], lo: usize, hi: usize) -> Option<u128> {
    let covering = bytes.get(lo / 8..hi.div_ceil(8))?;
    let word = covering.iter().fold(0u128, |word, byte| word << 8 | u128::from(*byte));
    Some((word >> (7 - (hi - 1) % 8)) & mask(hi - lo))
}

/// Writes bits like [`put`]. Returns false and writes nothing if the bits lie outside the slice.
pub(crate) fn put_slice(bytes: &mut [u8], lo: usize, hi: usize, value: u128) -> bool {
    let Some(old) = get_slice(bytes, lo / 8 * 8, hi.div_ceil(8) * 8) else { return false };
    let up = 7 - (hi - 1) % 8;
    let field = mask(hi - lo) << up;
    let mut word = (old & !field) | (value << up & field);
    if let Some(covering) = bytes.get_mut(lo / 8..hi.div_ceil(8)) {
        for byte in covering.iter_mut().rev() {
            *byte = word as u8;
            word >>= 8;
        }
    }
    true
}

/// Returns `width` ones, right-aligned. `width` is 1 to 128.
pub(crate) const fn mask(width: usize) -> u128 {
    u128::MAX >> (128 - width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_where_the_figure_draws_it() {
        let bytes = [0x10, 0x04, 0xff, 0xff, 0x00, 0x01, 0x20, 0x00, 0x12, 0x34, 0x56, 0x78, 0x9a];
        assert_eq!(get(&bytes, 0, 5), 2);
        assert_eq!(get(&bytes, 5, 9), 0);
        assert_eq!(get(&bytes, 9, 16), 4);
        assert_eq!(get(&bytes, 32, 64), 0x12000);
        assert_eq!(get(&bytes, 68, 100), 0x2345_6789);
        assert_eq!(get(&bytes, 4, 100), 0x004f_fff0_0012_0001_2345_6789);
    }

    #[test]
    fn writing_leaves_the_neighbors_alone_and_slices_agree_with_arrays() {
        for (lo, hi) in [(0, 5), (5, 9), (9, 16), (3, 67), (8, 72), (0, 128), (4, 128), (127, 128), (12, 24)]
        {
            for background in [0u8, 0xff, 0xa5] {
                for value in [0, 1, mask(hi - lo), mask(hi - lo) >> 1, 0x5a5a_5a5a & mask(hi - lo)] {
                    let mut array = [background; 17];
                    put(&mut array, lo, hi, value);
                    let mut slice = [background; 17];
                    assert!(put_slice(&mut slice, lo, hi, value));
                    assert_eq!(array, slice);
                    assert_eq!(get(&array, lo, hi), value, "{lo}..{hi}");
                    assert_eq!(get_slice(&array, lo, hi), Some(value));
                    for bit in (0..136).filter(|bit| !(lo..hi).contains(bit)) {
                        assert_eq!(get(&array, bit, bit + 1), get(&[background; 17], bit, bit + 1));
                    }
                }
            }
        }
    }

    /// No real header is this short. Such a header would be read and written byte by byte.
    #[test]
    fn a_field_whose_word_is_longer_than_its_header_is_written_too() {
        for (lo, hi) in [(0, 24), (2, 20), (7, 24), (0, 17)] {
            for background in [0u8, 0xff] {
                let value = 0x5a_5a5a & mask(hi - lo);
                let mut array = [background; 3];
                put(&mut array, lo, hi, value);
                assert_eq!(get(&array, lo, hi), value, "{lo}..{hi}");
                for bit in (0..24).filter(|bit| !(lo..hi).contains(bit)) {
                    assert_eq!(get(&array, bit, bit + 1), (background & 1).into());
                }
            }
        }
    }

    #[test]
    fn a_slice_that_ends_before_the_field_gives_nothing() {
        assert_eq!(get_slice(&[0xff; 4], 24, 33), None);
        assert_eq!(get_slice(&[0xff; 4], 24, 32), Some(0xff));
        let mut short = [0u8; 4];
        assert!(!put_slice(&mut short, 24, 33, 0));
        assert_eq!(short, [0; 4]);
    }
}
