//! Start_PSNs of secured contexts (section 3.7): a replayed opening packet must not open a context again.

use super::{Secure, StartPsnFloor, StartPsnMethod};
use core::ops::Range;
use uet_wire::Psn;

/// The range of random Start_PSNs of an initiator.
const RANDOM: Range<u32> = 1 << 16..1 << 31;

impl Secure {
    /// Returns the Start_PSN for a context that this endpoint opens.
    pub(super) fn own_start(&mut self, sdi: u32) -> Option<Psn> {
        let member = self.domains.get(&sdi)?;
        Some(member.ini_start_psn.unwrap_or_else(|| Psn(self.rng.u32(RANDOM))))
    }

    /// `TSS-START-001`: accepts a Start_PSN, or returns the one to use.
    pub(super) fn accept(&mut self, sdi: u32, start: Psn) -> Result<(), Psn> {
        let Some(member) = self.domains.get(&sdi) else { return Ok(()) };
        match self.params.start_psn_method {
            StartPsnMethod::Random => Err(Psn(self.rng.u32(..))),
            StartPsnMethod::Expected if member.tgt_start_psn.is_after(start) => Err(member.tgt_start_psn),
            StartPsnMethod::Expected => Ok(()),
        }
    }

    fn floor_after(&self, sdi: u32, start: Psn, highest: Psn) -> Option<Psn> {
        let floor = self.domains.get(&sdi)?.tgt_start_psn;
        let next = match self.params.start_psn_floor {
            StartPsnFloor::Highest => highest + 1,
            StartPsnFloor::Start => start + 1,
        };
        Some(if next.is_after(floor) { next } else { floor })
    }

    /// Handles the end of a context that a peer had opened.
    pub(super) fn raise_floor(&mut self, sdi: u32, start: Psn, highest: Psn) {
        let floor = self.floor_after(sdi, start, highest);
        if let (Some(floor), Some(member)) = (floor, self.domains.get_mut(&sdi)) {
            member.tgt_start_psn = floor;
        }
    }

    /// Returns the floor that the ACK of CLOSE_COMMAND tells.
    pub(super) fn tell_floor(&self, sdi: u32, start: Psn, highest: Psn) -> Option<Psn> {
        let tells =
            self.params.expected_psn_in_close_ack && self.params.start_psn_method == StartPsnMethod::Expected;
        tells.then(|| self.floor_after(sdi, start, highest)).flatten()
    }

    /// Takes the floor that the ACK of CLOSE_COMMAND told, unless a newer one is known (`TSS-START-009`).
    pub(super) fn learn_floor(&mut self, sdi: u32, expected: Psn) {
        let Some(member) = self.domains.get_mut(&sdi) else { return };
        if member.ini_start_psn.is_none_or(|known| expected.is_after(known)) {
            member.ini_start_psn = Some(expected);
        }
    }
}
