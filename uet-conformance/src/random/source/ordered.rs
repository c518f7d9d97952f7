//! The packets that the target of an ordered context accepts, and the gaps that it reports.

/// The packets that an ordered target has accepted, if they arrive as they are sent.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    /// The next packet that it accepts.
    expected: u32,
    /// The end of those that it has dropped.
    dropped: u32,
    /// The network may have changed the order.
    unsure: bool,
}

impl Ordered {
    /// Notes the arrival of a packet; returns whether it is the first one above a gap.
    pub(super) fn arrives(&mut self, n: u32) -> bool {
        if n <= self.expected {
            self.expected += u32::from(n == self.expected);
            return false;
        }
        // A device may count the gaps of retransmissions as parts of the first one.
        let first = self.dropped <= self.expected && !self.unsure;
        self.dropped = self.dropped.max(n + 1);
        first
    }

    /// Notes that a packet may arrive again, or later than others.
    pub(super) fn arrives_late(&mut self, n: u32) {
        self.unsure |= n >= self.expected;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gap_is_told_once() {
        let mut ordered = Ordered::default();
        let told = |ordered: &mut Ordered, all: &[u32]| -> Vec<u32> {
            all.iter().copied().filter(|n| ordered.arrives(*n)).collect()
        };
        assert_eq!(told(&mut ordered, &[0, 2, 3, 1, 4, 2, 3, 4]), [2]);
        assert_eq!(told(&mut ordered, &[5, 7, 5, 6, 7, 9]), [7, 9]);
        ordered.arrives_late(8);
        assert!(told(&mut ordered, &[8, 9, 11]).is_empty());
    }
}
