//! The next event of each host and each port.

use crate::time::Picos;

/// Units per block.
const BLOCK: usize = 64;

/// For each unit, the time at which it has to run; `Picos::MAX` if nothing waits there. The minimum of each block is
/// known, so a pass over all units skips the ones at rest.
#[derive(Debug)]
pub(crate) struct Wakes {
    at: Vec<Picos>,
    blocks: Vec<Picos>,
}

impl Wakes {
    pub(crate) fn new(units: usize) -> Self {
        Wakes { at: vec![Picos::MAX; units], blocks: vec![Picos::MAX; units.div_ceil(BLOCK)] }
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Picos {
        self.blocks.iter().copied().min().unwrap_or(Picos::MAX)
    }

    /// Returns the number of blocks with units that have to run before `end`.
    pub(crate) fn busy(&self, end: Picos) -> usize {
        self.blocks.iter().filter(|at| **at < end).count()
    }

    /// Lets a unit run at this time, or earlier if it has to.
    pub(crate) fn wake(&mut self, unit: u32, at: Picos) {
        let unit = unit as usize;
        self.at[unit] = self.at[unit].min(at);
        self.blocks[unit / BLOCK] = self.blocks[unit / BLOCK].min(at);
    }

    /// Takes the first unit at or after `from` that has to run before `end`, and lets it rest.
    pub(crate) fn take(&mut self, from: u32, end: Picos) -> Option<u32> {
        let mut unit = from as usize;
        // Units before `from` in its own block, or the whole block before it, may have run.
        let mut block = unit.saturating_sub(1) / BLOCK;
        while block < self.blocks.len() {
            let after = ((block + 1) * BLOCK).min(self.at.len());
            if self.blocks[block] < end {
                if let Some(due) = self.at[unit.min(after)..after].iter().position(|at| *at < end) {
                    self.at[unit + due] = Picos::MAX;
                    return Some((unit + due) as u32);
                }
                let all = &self.at[block * BLOCK..after];
                self.blocks[block] = all.iter().copied().min().unwrap_or(Picos::MAX);
            }
            block += 1;
            unit = unit.max(after);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_run_in_order_and_rest_afterwards() {
        let mut wakes = Wakes::new(200);
        for (unit, at) in [(199, 5), (3, 7), (70, 20), (3, 9), (64, 6)] {
            wakes.wake(unit, at);
        }
        assert_eq!(wakes.next(), 5);
        let mut ran = Vec::new();
        let mut from = 0;
        while let Some(unit) = wakes.take(from, 10) {
            if unit == 64 {
                // A unit wakes others for later.
                wakes.wake(3, 15);
            }
            ran.push(unit);
            from = unit + 1;
        }
        assert_eq!(ran, [3, 64, 199]);
        assert_eq!((wakes.next(), wakes.take(0, 15)), (15, None));
        assert_eq!((wakes.take(0, 21), wakes.take(4, 21), wakes.take(71, 21)), (Some(3), Some(70), None));
        assert_eq!((wakes.take(0, 21), wakes.next()), (None, Picos::MAX));
    }
}
