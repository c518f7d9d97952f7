//! Checks that the device still works.

use super::Test;
use crate::{Outcome, Phase, RxPacket, Stop};
use core::time::Duration;
use uet_wire::catalogue::{ROB_LIFE_001, Requirement};

/// Maximum number of reads of memory until it has the expected contents.
const LOOKS: u32 = 20;

impl Test<'_> {
    /// Expects that no such packet arrives soon from a live device.
    pub fn expect_silence<T>(
        &mut self,
        requirement: &Requirement,
        expected: &str,
        wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Outcome {
        self.expect_none(requirement, expected, self.soon(), wanted)?;
        // A busy machine may have delayed the first answer.
        if self.lives()? || self.lives()? { Ok(()) } else { self.expect_life(ROB_LIFE_001) }
    }

    /// Expects that the device still works after all packets so far.
    pub fn expect_life(&mut self, requirement: &Requirement) -> Outcome {
        let lives = self.lives()?;
        let seen = if lives { "its ACK" } else { "no ACK, or other bytes in memory" };
        self.holds(requirement, "the device still serves a write", lives, seen);
        match lives {
            true => Ok(()),
            false if self.heard() => Err(Stop::Failed),
            false => Err(Stop::Silent),
        }
    }

    /// Returns whether the device answers a write to a region that it does not have.
    pub(crate) fn answers(&mut self) -> Result<bool, Stop> {
        let region = self.no_region(8);
        let pdc = self.initiate();
        self.request(&pdc, pdc.request(0).write(&region, 0, &[1; 8])?)?;
        let within = self.patience(self.soon());
        Ok(self.wait(within, |seen| seen.is_for(&pdc).then_some(()))?.is_some())
    }

    /// Returns whether a write on a context of its own is acknowledged and arrives, or is refused for lack of
    /// resources.
    fn lives(&mut self) -> Result<bool, Stop> {
        if !self.facts().control {
            return self.answers();
        }
        self.during(Phase::Obligation, Self::serves_a_write)
    }

    fn serves_a_write(&mut self) -> Result<bool, Stop> {
        let last = self.suite.take_liveness();
        let region = match &last {
            Some((_, region)) => region.clone(),
            None => self.region(8)?,
        };
        // Reuse the last context, and open a new one if that is gone.
        for known in [last.map(|(pdc, _)| pdc), None] {
            let mut pdc = known.unwrap_or_else(|| self.initiate());
            let beat = self.rng().u64(..).to_le_bytes();
            self.request(&pdc, pdc.request(0).write(&region, 0, &beat)?)?;
            let within = self.patience(self.soon());
            // A target in a secure domain may want another Start_PSN.
            if self.is_secure()
                && self.hear(within, |seen| seen.new_start(&pdc).is_some() || seen.is_for(&pdc))?
            {
                if let Some((_, start)) = self.wait(Duration::ZERO, |seen| seen.new_start(&pdc))? {
                    pdc.start = start;
                    self.request(&pdc, pdc.request(0).write(&region, 0, &beat)?)?;
                }
            }
            let psn = pdc.psn(0);
            let answer = self.wait(within, |seen| {
                if seen.lacks_room() {
                    seen.refuses(&pdc, psn).map(|_| None)
                } else {
                    seen.acknowledges(&pdc, psn).map(Some)
                }
            })?;
            let Some((_, answer)) = answer else { continue };
            // Contexts that the suite has left open may use all resources.
            let Some(ack) = answer else { return Ok(true) };
            for _ in 0..LOOKS {
                if self.memory(&region, 0, 8)? == beat {
                    (pdc.remote, pdc.start) = (Some(ack.spdcid()), pdc.start + 1);
                    self.suite.keep_liveness(pdc, region);
                    return Ok(true);
                }
                self.pause(self.soon() / LOOKS)?;
            }
        }
        Ok(false)
    }
}
