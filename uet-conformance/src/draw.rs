//! Choices of generators, from random numbers or from the bytes of a fuzzer.
//!
//! Random conversations, `uet fuzz`, the fuzz targets and the swarm draw their operations, first PSNs, fates
//! and changed packets here. Each of them only plays the result.

use core::ops::RangeInclusive;
pub use uet_control::{Mode, PostKind};

/// Makes the choices of a generator.
///
/// ```
/// use uet_conformance::draw::{Choices, Source};
///
/// let mut choices = Choices(&[7, 1, 2]);
/// assert_eq!(choices.below(5), 2);
/// assert_eq!(choices.below(1000), 258);
/// assert!(choices.is_over());
/// assert_eq!(choices.pick(&["first", "second"]), "first");
/// ```
pub trait Source {
    /// Returns a number below `count`, which is not 0.
    fn below(&mut self, count: u64) -> u64;

    /// Returns true if all further numbers are 0.
    fn is_over(&self) -> bool {
        false
    }

    /// Returns any number of 64 bits.
    fn any(&mut self) -> u64 {
        self.below(1 << 32) << 32 | self.below(1 << 32)
    }

    /// Returns a number of this range.
    fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = range.into_inner();
        first + self.below(last.saturating_sub(first).saturating_add(1))
    }

    /// Returns the index of an element of a list; 0 if the list is empty.
    fn index(&mut self, length: usize) -> usize {
        self.below(length.max(1) as u64) as usize
    }

    /// Returns an element of a list.
    ///
    /// # Panics
    ///
    /// Panics if the list is empty.
    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// Returns true once in so many times.
    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) + 1 == count
    }

    /// Returns true every other time.
    fn flip(&mut self) -> bool {
        self.one_in(2)
    }
}

impl Source for fastrand::Rng {
    fn below(&mut self, count: u64) -> u64 {
        self.u64(..count)
    }
}

/// Choices by the bytes of a fuzzer. A number takes the fewest bytes that hold it. After the last byte, each
/// number is 0.
#[derive(Clone, Debug)]
pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    /// Takes up to this many bytes.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(count.min(self.0.len()));
        self.0 = left;
        taken
    }
}

impl Source for Choices<'_> {
    fn below(&mut self, count: u64) -> u64 {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let number = self.take(bits.div_ceil(8) as usize).iter();
        number.fold(0, |number, byte| number << 8 | u64::from(*byte)) % count.max(1)
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// Draws the first PSN of a context, often near a wrap of its lower half or of all of it.
pub fn first_psn(source: &mut impl Source) -> u32 {
    let near = source.below(40) as u32;
    match source.below(5) {
        0 => near,
        1 => 0,
        2 => (1 << 31) - near,
        3 => u32::MAX - near,
        _ => source.any() as u32,
    }
}

/// An operation of an initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its kind.
    pub kind: PostKind,
    /// The delivery mode.
    pub mode: Mode,
    /// Its length in bytes.
    pub length: u32,
    /// Number of bytes in the first packet of a rendezvous send.
    pub eager: u32,
    /// True if it has header data.
    pub header_data: bool,
    /// True if it is answered when all its data is visible.
    pub complete: bool,
}

/// The operations to choose from.
#[derive(Clone, Copy, Debug)]
pub struct Menu<'a> {
    /// The kinds. A kind that is listed more often is drawn more often.
    pub kinds: &'a [PostKind],
    /// The delivery modes. A mode that is listed more often is drawn more often.
    pub modes: &'a [Mode],
    /// Number of bytes of a message in a packet.
    pub mtu: u32,
    /// Number of bytes that an ACK may carry.
    pub ack_data: u32,
    /// Maximum length.
    pub longest: u32,
}

impl Menu<'_> {
    /// Draws an operation.
    pub fn operation(&self, source: &mut impl Source) -> Operation {
        let kind = source.pick(self.kinds);
        let mode = self.mode(kind, source);
        let length = self.length(kind, source);
        Operation {
            kind,
            mode,
            length,
            eager: if source.flip() { source.within(0..=length.into()) as u32 } else { 0 },
            header_data: source.one_in(3),
            complete: source.flip(),
        }
    }

    /// Draws a delivery mode that permits this kind. RUD is the mode of a kind that no listed mode permits.
    fn mode(&self, kind: PostKind, source: &mut impl Source) -> Mode {
        let permits = |mode: &Mode| match mode {
            Mode::Rud | Mode::Rod => kind != PostKind::Datagram,
            Mode::Rudi => matches!(kind, PostKind::Write | PostKind::Read),
            Mode::Uud => kind == PostKind::Datagram,
        };
        let count = self.modes.iter().filter(|mode| permits(mode)).count();
        let chosen = source.index(count);
        self.modes.iter().copied().filter(|mode| permits(mode)).nth(chosen).unwrap_or_default()
    }

    /// Draws a length, often one at the end of a packet or of the data of an ACK.
    fn length(&self, kind: PostKind, source: &mut impl Source) -> u32 {
        let Menu { mtu, ack_data, longest, .. } = *self;
        let length = match source.below(13) {
            0..=2 => source.within(1..=300) as u32,
            3 => 0,
            4 => 1,
            5 => ack_data,
            6 => ack_data + 1,
            7 => mtu.saturating_sub(1),
            8 => mtu,
            9 => mtu + 1,
            10 => 2 * mtu,
            11 => source.within(0..=longest.into()) as u32,
            _ => 2 * mtu + source.within(1..=100) as u32,
        };
        match kind {
            PostKind::Datagram => length.min(mtu),
            // The answer to a deferred send without bytes looks like that to an accepted one.
            PostKind::DeferrableSend | PostKind::DeferrableTsend => length.max(1),
            _ => length,
        }
        .min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use std::collections::BTreeSet;

    const KINDS: [PostKind; 4] =
        [PostKind::Write, PostKind::Send, PostKind::DeferrableSend, PostKind::Datagram];
    const MODES: [Mode; 4] = [Mode::Rud, Mode::Rod, Mode::Rudi, Mode::Uud];

    #[test]
    fn operations_fit_their_kind_and_meet_all_borders() {
        let menu = Menu { kinds: &KINDS, modes: &MODES, mtu: 4096, ack_data: 16, longest: 9000 };
        let mut rng = Rng::with_seed(1);
        let mut met = BTreeSet::new();
        for _ in 0..2000 {
            let Operation { kind, mode, length, eager, .. } = menu.operation(&mut rng);
            let permitted: &[Mode] = match kind {
                PostKind::Datagram => &[Mode::Uud],
                PostKind::Write => &[Mode::Rud, Mode::Rod, Mode::Rudi],
                _ => &[Mode::Rud, Mode::Rod],
            };
            assert!(permitted.contains(&mode), "{kind:?} by {mode:?}");
            let least = u32::from(kind == PostKind::DeferrableSend);
            let most = if kind == PostKind::Datagram { 4096 } else { 9000 };
            assert!((least..=most).contains(&length) && eager <= length, "{kind:?} of {length}, {eager}");
            met.insert((kind as u32, mode as u32, length));
        }
        for border in [0, 1, 16, 17, 4095, 4096, 4097, 8192] {
            for mode in [Mode::Rud, Mode::Rod, Mode::Rudi] {
                assert!(met.contains(&(PostKind::Write as u32, mode as u32, border)), "{mode:?} {border}");
            }
        }
    }

    #[test]
    fn no_bytes_choose_the_first_of_everything() {
        let menu = Menu { kinds: &KINDS, modes: &MODES, mtu: 4096, ack_data: 16, longest: 9000 };
        let none = menu.operation(&mut Choices(&[]));
        assert_eq!((none.kind, none.mode, none.length, none.eager), (PostKind::Write, Mode::Rud, 1, 0));
        assert!(!none.header_data && !none.complete);
    }
}
