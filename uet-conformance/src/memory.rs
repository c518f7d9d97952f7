//! Memory of the device that a script has filled, so that a byte beside its place is seen.

use crate::{Outcome, Region, Stop, Test};
use uet_control::{ExposeRegion, Fill, Hex64, Permission};
use uet_wire::catalogue::Requirement;

impl Test<'_> {
    /// Memory of the device that everyone may use, and what it holds: a pattern without zeros in a row, so
    /// that a byte written beside its place is seen.
    pub fn patterned(&mut self, length: u64) -> Result<(Region, Vec<u8>), Stop> {
        let fill = Fill::Seed(77);
        let held = fill.bytes(length as usize);
        let all = [Permission::Read, Permission::Write, Permission::Atomic];
        Ok((self.region_for(length, &all, Some(fill))?, held))
    }

    /// Exposes memory as [`patterned`](Self::patterned) does, after `change` has adapted the request.
    pub fn exposed(
        &mut self,
        length: u64,
        change: impl FnOnce(ExposeRegion) -> ExposeRegion,
    ) -> Result<(Region, Vec<u8>), Stop> {
        let fill = Fill::Seed(77);
        let held = fill.bytes(length as usize);
        let plain = ExposeRegion {
            length,
            key: Hex64(self.rng.u32(1..).into()),
            job: Some(101),
            process: 2,
            index: 10,
            generation: 0,
            permissions: vec![Permission::Read, Permission::Write, Permission::Atomic],
            fill: Some(fill),
        };
        let usual = plain.key;
        let expose = change(plain);
        // The rules choose keys for what their bits mean. An idempotent-safe key means something by its
        // highest bit alone.
        let exact = expose.key != usual && expose.key.0 >> 62 != 0b10;
        let (number, key) = self.expose(expose.clone(), exact)?;
        let region = Region {
            number,
            job: expose.job.unwrap_or_default(),
            process: expose.process,
            index: expose.index,
            generation: expose.generation,
            key,
            message_id: 1,
            length,
        };
        Ok((region, held))
    }

    /// Exposes memory, and returns its number and its key. A device may choose the key, except for its two
    /// highest bits. With `exact`, the rule needs the requested key.
    pub(crate) fn expose(&mut self, region: ExposeRegion, exact: bool) -> Result<(u64, u64), Stop> {
        let asked = region.key.0;
        let exposed = self.call(region)?;
        let key = exposed.key.map_or(asked, |key| key.0);
        match key ^ asked {
            0 => Ok((exposed.region, key)),
            bits if bits >> 62 == 0 && !exact => Ok((exposed.region, key)),
            _ => Err(Stop::Skipped("the device chooses memory keys itself".into())),
        }
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
