//! Sequence numbers, identifiers and counters as distinct types, with wrapping arithmetic.

use crate::layout::Kind;
use crate::value::value;
use core::cmp::Ordering;

/// A packet sequence number (PSN). All arithmetic is modulo 2^32.
///
/// PSNs do not implement `Ord`: two numbers at distance 2^31 have no order, so sorting would be wrong. Use
/// [`is_after`](Psn::is_after) or [`serial_cmp`](Psn::serial_cmp).
///
/// ```
/// use uet_wire::Psn;
///
/// let last = Psn(0xffff_ffff);
/// assert_eq!(last + 2, Psn(1));
/// assert!((last + 2).is_after(last));
/// assert_eq!(Psn(1) - last, 2);
/// assert_eq!(Psn(1).offset(-2), last);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(pub u32);

impl Psn {
    /// Returns the number that is `by` ahead, or behind if `by` is negative.
    #[inline]
    pub const fn offset(self, by: i16) -> Self {
        Psn(self.0.wrapping_add_signed(by as i32))
    }

    /// Returns the signed distance from `base`, or `None` if it does not fit into the 16 bits of an offset field.
    #[inline]
    pub const fn offset_from(self, base: Psn) -> Option<i16> {
        let distance = self.0.wrapping_sub(base.0) as i32;
        if distance as i16 as i32 == distance { Some(distance as i16) } else { None }
    }

    /// Compares in serial order. Returns `None` if the distance is exactly 2^31.
    #[inline]
    pub const fn serial_cmp(self, other: Psn) -> Option<Ordering> {
        match self.0.wrapping_sub(other.0) {
            0 => Some(Ordering::Equal),
            1..0x8000_0000 => Some(Ordering::Greater),
            0x8000_0000 => None,
            _ => Some(Ordering::Less),
        }
    }

    /// Returns true if this number is after `other` by less than 2^31.
    #[inline]
    pub const fn is_after(self, other: Psn) -> bool {
        matches!(self.serial_cmp(other), Some(Ordering::Greater))
    }

    /// Returns true if this number is in `first..=last`, counted forward from `first`.
    ///
    /// ```
    /// use uet_wire::Psn;
    ///
    /// // Cumulative PSN 332 and a range of 1,024: 333 to 1,356 are inside.
    /// let window = (Psn(333), Psn(1356));
    /// assert!(Psn(1356).is_within(window.0, window.1));
    /// assert!(!Psn(1357).is_within(window.0, window.1));
    /// ```
    #[inline]
    pub const fn is_within(self, first: Psn, last: Psn) -> bool {
        self.0.wrapping_sub(first.0) <= last.0.wrapping_sub(first.0)
    }
}

impl core::ops::Add<u32> for Psn {
    type Output = Psn;

    #[inline]
    fn add(self, by: u32) -> Psn {
        Psn(self.0.wrapping_add(by))
    }
}

impl core::ops::Sub<u32> for Psn {
    type Output = Psn;

    #[inline]
    fn sub(self, by: u32) -> Psn {
        Psn(self.0.wrapping_sub(by))
    }
}

impl core::ops::Sub for Psn {
    type Output = u32;

    /// Returns the forward distance from `other` to this number.
    #[inline]
    fn sub(self, other: Psn) -> u32 {
        self.0.wrapping_sub(other.0)
    }
}

impl core::fmt::Display for Psn {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// The identifier that one end assigns to a packet delivery context (PDC). 0 is reserved: see [`PdcId::is_valid`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PdcId(pub u16);

impl PdcId {
    /// The reserved identifier, used in replies if no context exists.
    pub const NONE: PdcId = PdcId(0);

    /// Returns true if a context can have this identifier.
    #[inline]
    pub const fn is_valid(self) -> bool {
        self.0 != 0
    }
}

impl core::fmt::Display for PdcId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

/// A cumulative 24-bit counter in units of 256 bytes that wraps: `rcvd_bytes`, `credit`, `credit_target`. Like [`Psn`],
/// it has a serial order and no `Ord`.
///
/// ```
/// use uet_wire::Units24;
///
/// // A part of a unit counts as a whole one.
/// assert_eq!([1, 256, 257].map(|bytes| Units24::from_bytes(bytes).get()), [1, 1, 2]);
///
/// let before = Units24::new(0xff_ffff).unwrap();
/// let after = before + 3;
/// assert_eq!(after.get(), 2);
/// assert_eq!(after.since(before), Some(3));
/// assert_eq!(before.since(after), None, "stale");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Units24(u32);

impl Units24 {
    /// The number of bytes in a unit.
    pub const UNIT: u64 = 256;

    /// Creates a counter with this value in units. Returns `None` above 24 bits.
    #[inline]
    pub const fn new(units: u32) -> Option<Self> {
        if units >> 24 == 0 { Some(Units24(units)) } else { None }
    }

    /// Creates a counter from a number of bytes, rounded up to units, modulo 2^24 units: 2^32 bytes are 0 again.
    #[inline]
    pub const fn from_bytes(bytes: u64) -> Self {
        Units24((bytes.div_ceil(Self::UNIT) & 0xff_ffff) as u32)
    }

    /// Returns the value in units.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the value in bytes.
    #[inline]
    pub const fn bytes(self) -> u64 {
        self.0 as u64 * Self::UNIT
    }

    /// Returns the number of units since `earlier`. Returns `None` if this counter is stale: behind `earlier`, or
    /// exactly half the range ahead.
    #[inline]
    pub const fn since(self, earlier: Self) -> Option<u32> {
        let ahead = self.0.wrapping_sub(earlier.0) & 0xff_ffff;
        if ahead < 1 << 23 { Some(ahead) } else { None }
    }
}

impl core::ops::Add<u32> for Units24 {
    type Output = Units24;

    #[inline]
    fn add(self, units: u32) -> Units24 {
        Units24((self.0 + (units & 0xff_ffff)) % (1 << 24))
    }
}

impl core::fmt::Display for Units24 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// The distance of a packet from the first PSN of its context, 0 to 4,095. Packets that may open a context carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PsnOffset(u16);

impl PsnOffset {
    /// The offset of the first packet.
    pub const ZERO: PsnOffset = PsnOffset(0);
    /// The largest offset.
    pub const MAX: PsnOffset = PsnOffset(4095);

    /// Creates an offset. Returns `None` above 4,095.
    #[inline]
    pub const fn new(offset: u16) -> Option<Self> {
        if offset <= Self::MAX.0 { Some(PsnOffset(offset)) } else { None }
    }

    /// Returns the offset of `psn` in a context that starts at `start`, or `None` if it is above 4,095.
    #[inline]
    pub const fn between(start: Psn, psn: Psn) -> Option<Self> {
        let distance = psn.0.wrapping_sub(start.0);
        if distance <= Self::MAX.0 as u32 { Some(PsnOffset(distance as u16)) } else { None }
    }

    /// Returns the number.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl core::fmt::Display for PsnOffset {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

value! {
    Psn: Kind::Uint, |raw| Psn(raw as u32), |this| this.0 as u128;
    PdcId: Kind::Uint, |raw| PdcId(raw as u16), |this| this.0 as u128;
    Units24: Kind::Uint, |raw| Units24(raw as u32), |this| this.0 as u128;
    PsnOffset: Kind::Uint, |raw| PsnOffset(raw as u16), |this| this.0 as u128;
}

#[cfg(feature = "serde")]
crate::with_serde::number! {
    Psn: "Psn", 32, Kind::Uint, |this: Psn| this.0, |raw| Psn(raw as u32);
    PdcId: "PdcId", 16, Kind::Uint, |this: PdcId| this.0, |raw| PdcId(raw as u16);
    Units24: "Units24", 24, Kind::Uint, |this: Units24| this.0, |raw| Units24(raw as u32);
    PsnOffset: "PsnOffset", 12, Kind::Uint, |this: PsnOffset| this.0, |raw| PsnOffset(raw as u16);
}

#[cfg(feature = "arbitrary")]
crate::with_arbitrary::number! {
    Psn: 32, Psn;
    PdcId: 16, |raw| PdcId(raw as u16);
    Units24: 24, Units24;
    PsnOffset: 12, |raw| PsnOffset(raw as u16);
}

#[cfg(feature = "proptest")]
crate::with_proptest::number! {
    Psn: 32, Psn;
    PdcId: 16, |raw| PdcId(raw as u16);
    Units24: 24, Units24;
    PsnOffset: 12, |raw| PsnOffset(raw as u16);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_order_holds_at_the_wrap() {
        assert_eq!(Psn(0).serial_cmp(Psn(u32::MAX)), Some(Ordering::Greater));
        assert_eq!(Psn(u32::MAX).serial_cmp(Psn(0)), Some(Ordering::Less));
        assert_eq!(Psn(7).serial_cmp(Psn(7)), Some(Ordering::Equal));
        assert_eq!(Psn(0).serial_cmp(Psn(0x8000_0000)), None);
        assert!(Psn(0x7fff_ffff).is_after(Psn(0)));
        assert!(!Psn(0x8000_0000).is_after(Psn(0)));
        assert!(!Psn(0x8000_0001).is_after(Psn(0)));
        assert!(!Psn(7).is_after(Psn(7)));
        assert_eq!(Psn(1) - 3, Psn(0xffff_fffe));
    }

    #[test]
    fn an_offset_is_found_only_when_it_fits() {
        assert_eq!(Psn(1).offset_from(Psn(u32::MAX)), Some(2));
        assert_eq!(Psn(0).offset_from(Psn(32_768)), Some(-32_768));
        assert_eq!(Psn(0).offset_from(Psn(32_769)), None);
        assert_eq!(Psn(32_767).offset_from(Psn(0)), Some(32_767));
        assert_eq!(Psn(32_768).offset_from(Psn(0)), None);
        assert_eq!(Psn(5).offset(i16::MIN), Psn(5u32.wrapping_sub(32_768)));
    }

    #[test]
    fn a_window_may_wrap() {
        assert!(Psn(2).is_within(Psn(u32::MAX - 1), Psn(3)));
        assert!(Psn(u32::MAX - 1).is_within(Psn(u32::MAX - 1), Psn(3)));
        assert!(!Psn(4).is_within(Psn(u32::MAX - 1), Psn(3)));
        assert!(!Psn(u32::MAX - 2).is_within(Psn(u32::MAX - 1), Psn(3)));
    }

    #[test]
    fn psn_offset_ends_at_4095() {
        assert_eq!(PsnOffset::new(4095).map(PsnOffset::get), Some(4095));
        assert_eq!(PsnOffset::new(4096), None);
        assert_eq!(PsnOffset::between(Psn(u32::MAX), Psn(3)).map(PsnOffset::get), Some(4));
        assert_eq!(PsnOffset::between(Psn(1), Psn(4096)), Some(PsnOffset::MAX));
        assert_eq!(PsnOffset::between(Psn(1), Psn(4097)), None);
        assert_eq!(PsnOffset::between(Psn(1), Psn(0)), None);
    }

    #[test]
    fn units_stop_at_24_bits_and_go_stale_at_half_the_circle() {
        assert_eq!(Units24::new(0x0100_0000), None);
        assert_eq!(Units24::from_bytes(256 << 24), Units24::default());
        assert_eq!(Units24::from_bytes(0).get(), 0);
        let half = Units24::new(1 << 23).unwrap();
        assert_eq!(half.since(Units24::default()), None);
        assert_eq!(Units24::new((1 << 23) - 1).unwrap().since(Units24::default()), Some((1 << 23) - 1));
        assert_eq!(half.bytes(), 1 << 31);
    }

    #[test]
    fn units_wrap_when_added() {
        let last = Units24::new(0xff_ffff).unwrap();
        assert_eq!((last + 3).get(), 2);
        assert_eq!((Units24::default() + 0x0500_0007).get(), 7);
    }

    #[test]
    fn zero_is_no_context() {
        assert!(!PdcId::NONE.is_valid());
        assert!(PdcId(1).is_valid());
    }
}
