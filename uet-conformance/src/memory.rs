//! Memory of the device that a script has filled, so that a byte beside its place is seen.

use crate::region::ALL;
use crate::{Outcome, Region, Stop, Test};
use uet_control::{ExposeRegion, Fill};
use uet_wire::catalogue::Requirement;

/// Maximum number of reads of memory until it has the expected contents.
const LOOKS: u32 = 20;

impl Test<'_> {
    /// Memory of the device that everyone may use, and what it holds: a pattern without zeros in a row, so
    /// that a byte written beside its place is seen.
    pub fn patterned(&mut self, length: u64) -> Result<(Region, Vec<u8>), Stop> {
        let fill = Fill::Seed(77);
        let held = fill.bytes(length as usize);
        Ok((self.region_for(length, &ALL, Some(fill))?, held))
    }

    /// Exposes memory as [`patterned`](Self::patterned) does, after `change` has adapted the request.
    pub fn exposed(
        &mut self,
        length: u64,
        change: impl FnOnce(ExposeRegion) -> ExposeRegion,
    ) -> Result<(Region, Vec<u8>), Stop> {
        let fill = Fill::Seed(77);
        let held = fill.bytes(length as usize);
        let usual = Region::plain(length, self.rng().u32(1..).into(), 1);
        let expose = change(usual.exposure(&ALL, Some(fill)));
        // The rules choose keys for what their bits mean. An idempotent-safe key means something by its
        // highest bit alone.
        let exact = expose.key.0 != usual.key && expose.key.0 >> 62 != 0b10;
        let (number, key) = self.expose(expose.clone(), exact)?;
        let region = Region {
            number,
            job: expose.job.unwrap_or_default(),
            process: expose.process,
            index: expose.index,
            generation: expose.generation,
            key,
            ..usual
        };
        Ok((region, held))
    }

    /// Expects these memory contents, at once or soon: an ACK may precede the visibility of its data.
    pub fn expect_memory(
        &mut self,
        requirement: &Requirement,
        region: &Region,
        offset: u64,
        expected: &[u8],
    ) -> Outcome {
        let until = self.now() + self.patience(self.soon());
        while self.memory(region, offset, expected.len() as u64)? != expected && self.now() < until {
            self.pause(self.soon() / LOOKS)?;
        }
        self.check_memory(requirement, region, offset, expected)
    }

    /// Checks the current memory contents. Call it for data that must not arrive, after a wait or after later
    /// data.
    pub fn check_memory(
        &mut self,
        requirement: &Requirement,
        region: &Region,
        offset: u64,
        expected: &[u8],
    ) -> Outcome {
        let mut held = self.memory(region, offset, expected.len() as u64)?;
        // Without delivery complete, an ACK may precede the visibility of its data.
        let until = self.now() + self.patience(self.soon());
        while held != expected && self.refuses_dc() && self.now() < until {
            self.pause(self.soon() / LOOKS)?;
            held = self.memory(region, offset, expected.len() as u64)?;
        }
        let wrong = held.iter().zip(expected).position(|(held, expected)| held != expected);
        let what = format!("{} bytes at {offset} of memory", expected.len());
        let wrong = wrong.map(|at| {
            let seen = format!("{:#04x} instead of {:#04x} at byte {at}", held[at], expected[at]);
            (offset + at as u64, seen)
        });
        self.check_written(requirement, &what, wrong);
        Ok(())
    }

    /// Checks that bytes are these, and names the first that is not.
    pub fn same_bytes(&mut self, requirement: &Requirement, what: &str, expected: &[u8], seen: &[u8]) {
        let told = format!("{} bytes as expected", expected.len());
        let wrong = expected.iter().zip(seen).position(|(expected, seen)| expected != seen);
        let found = match wrong {
            Some(at) => format!("{:#04x} instead of {:#04x} at byte {at}", seen[at], expected[at]),
            None if seen.len() != expected.len() => format!("{} bytes", seen.len()),
            None => told.clone(),
        };
        self.check(requirement, what, told, found);
    }

    /// Checks, after a while, that a region still holds this.
    pub fn still_holds(&mut self, requirement: &Requirement, region: &Region, expected: &[u8]) -> Outcome {
        self.pause(self.soon())?;
        self.check_memory(requirement, region, 0, expected)
    }
}
