//! One direction of a context, seen from outside.

use uet_wire::Psn;
use uet_wire::ses::RequestHead;

/// One direction of a context: the packets of one endpoint under one PDCID, from one Start_PSN on. Bit 0 of a set stands
/// for the first PSN.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Direction {
    pub(crate) source: usize,
    pub(crate) pdcid: u16,
    pub(crate) start: u32,
    pub(crate) sent: u64,
    /// The PSNs that the destination has received and not refused.
    pub(crate) arrived: u64,
    /// The PSNs that the destination received ever, refused ones too.
    pub(crate) ever: u64,
    /// The PSNs that reached the destination in any form: trimmed ones, and those above the gap of an ordered context too.
    pub(crate) met: u64,
    /// The PSNs that an ACK at the source has named or covered.
    pub(crate) answered: u64,
    /// The PSNs that an ACK of the destination has named.
    pub(crate) named: u64,
    /// Those of them whose response waits for a clear.
    pub(crate) kept: u64,
    /// The PSN of a CLOSE_COMMAND.
    pub(crate) close: Option<Psn>,
    /// The nominal size of each request, for `rcvd_bytes`.
    pub(crate) sizes: Vec<u32>,
    /// The first PSN of the latest message.
    pub(crate) first: Option<Psn>,
    /// Messages with delivery complete: the last PSN, and all PSNs.
    pub(crate) whole: Vec<(u64, u64)>,
    pub(crate) ordered: bool,
}

/// The most PSNs of a direction.
const LONGEST: u32 = 64;

impl Direction {
    pub(crate) fn bit(&self, psn: Psn) -> Option<u64> {
        let distance = psn.0.wrapping_sub(self.start);
        (distance < LONGEST).then(|| 1 << distance)
    }

    /// Returns the set of all PSNs up to this one; `None` if it is not near this direction.
    pub(crate) fn up_to(&self, psn: Psn) -> Option<u64> {
        let count = psn.0.wrapping_sub(self.start).wrapping_add(1);
        (count <= LONGEST).then(|| if count == LONGEST { u64::MAX } else { (1 << count) - 1 })
    }

    /// Records that the source sends a PSN. Returns true for the first time.
    pub(crate) fn sends(&mut self, psn: Psn, size: u32) -> bool {
        let Some(bit) = self.bit(psn) else { return false };
        let at = psn.0.wrapping_sub(self.start) as usize;
        self.sizes.resize(self.sizes.len().max(at + 1), 0);
        self.sizes[at] = size;
        let is_first = self.sent & bit == 0;
        self.sent |= bit;
        is_first
    }

    /// Returns the bytes of these packets.
    pub(crate) fn bytes(&self, set: u64) -> u64 {
        let sizes = self.sizes.iter().enumerate();
        sizes.filter(|(at, _)| set & 1 << at != 0).map(|(_, size)| u64::from(*size)).sum()
    }

    /// Returns whether a packet arrived above one that did not.
    pub(crate) fn has_gap(&self) -> bool {
        self.arrived & self.arrived.wrapping_add(1) != 0
    }

    /// Records the flags of a new request: the first and the last packet of a message, and delivery complete.
    pub(crate) fn message(&mut self, psn: Psn, head: RequestHead) {
        if head.som() {
            self.first = Some(psn);
        }
        let before = self.first.and_then(|first| self.up_to(first - 1));
        if let (Some(before), Some(end), Some(last)) = (before, self.up_to(psn), self.bit(psn))
            && head.eom()
            && head.dc()
        {
            self.whole.push((last, end & !before));
        }
    }

    /// Records a clear up to this PSN.
    pub(crate) fn clears(&mut self, clear: Psn) {
        self.kept &= !self.up_to(clear).unwrap_or(0);
    }
}
