//! Operations of the control channel: memory, peers, and what the device posts and completes.

use super::Test;
use super::sends::Sends;
use crate::region::ALL;
use crate::{Entry, Pdc, Region, StandingRegion, Stop};
use core::time::Duration;
use uet_control::{
    AddPeer, Completion, ExposeRegion, Fill, Op, Operated, Operation, Permission, Post, ReadMemory,
    WaitCompletion,
};
use uet_wire::Psn;

impl Test<'_> {
    /// Requests an operation of the device. Skips the test of a device that lacks it.
    pub fn call<O: Operation>(&mut self, op: O) -> Result<O::Answer, Stop> {
        let op: Op = op.into();
        self.step(Entry::Called(op.without_secrets()));
        let answer = self.session.call::<O>(op);
        self.note_refusal(&answer);
        answer
    }

    /// Shows in the trace that the device has not done the operation before, and why.
    fn note_refusal<T>(&mut self, answer: &Result<T, Stop>) {
        match answer {
            Err(Stop::Skipped(why) | Stop::Inconclusive(why)) => self.note(format!("refused: {why}")),
            Err(Stop::Gone(why)) => self.note(format!("no answer: {why}")),
            _ => {}
        }
    }

    /// Exposes zeroed memory of the device for job 101, process 2, with all permissions.
    pub fn region(&mut self, length: u64) -> Result<Region, Stop> {
        self.region_for(length, &ALL, None)
    }

    /// Exposes memory with these permissions and contents.
    pub fn region_for(
        &mut self,
        length: u64,
        permissions: &[Permission],
        fill: Option<Fill>,
    ) -> Result<Region, Stop> {
        let region = self.no_region(length);
        if !self.facts().control {
            return self.standing(&region, permissions.len() == 3 && fill.is_none());
        }
        if let Some(number) = self.unexposed(region.key) {
            return Ok(Region { number, ..region });
        }
        let (number, key) = self.expose(region.exposure(permissions, fill), false)?;
        Ok(Region { number, key, ..region })
    }

    /// Returns a region of this length that the device exposes from its start, if it fits the needs of the
    /// rule.
    fn standing(&mut self, region: &Region, fits: bool) -> Result<Region, Stop> {
        if self.session.refuses_region(region.length) {
            let length = region.length;
            let why = format!("the device takes no write to the region of {length} bytes in the statement");
            return Err(Stop::Skipped(why));
        }
        // A rule relies on the end of the region that it asks for.
        let known = self.session.standing_regions();
        let found = known.into_iter().find(|it| fits && it.length == region.length);
        let found = found.ok_or_else(|| {
            let length = region.length;
            Stop::Skipped(match fits {
                true => {
                    format!("needs a region of {length} bytes, which [[regions]] of the statement can name")
                }
                false => "needs a region with contents or permissions of its own".into(),
            })
        })?;
        let StandingRegion { key, job, process, index, generation, .. } = found;
        Ok(Region { key: key.0, job, process, index, generation, ..*region })
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

    /// Returns a region that the device does not have.
    pub(crate) fn no_region(&mut self, length: u64) -> Region {
        let key = u64::from(self.rng().u32(1..)) & 0xffff_ffff;
        let message_id = self.rng().u16(1..);
        Region::plain(length, key, message_id)
    }

    /// Reads the device's memory.
    pub fn memory(&mut self, region: &Region, offset: u64, length: u64) -> Result<Vec<u8>, Stop> {
        if Sends::is_region(region.number) {
            self.carried_memory(region, offset, length)
        } else {
            self.raw_memory(region.number, offset, length)
        }
    }

    pub(crate) fn raw_memory(&mut self, region: u64, offset: u64, length: u64) -> Result<Vec<u8>, Stop> {
        let data = self.call(ReadMemory { region, offset, length })?.data.0;
        match data.len() as u64 == length {
            true => Ok(data),
            false => {
                Err(Stop::Inconclusive(format!("read_memory: {} bytes instead of {length}", data.len())))
            }
        }
    }

    /// Returns the suite as a peer of the device, by its number in the control channel.
    pub fn peer(&mut self, address: usize) -> Result<u64, Stop> {
        let peer =
            AddPeer { address: self.address(address)?, port: None, job: 101, process: 1, initiator: 0 };
        Ok(self.call(peer)?.peer)
    }

    /// Posts an operation on the device as an initiator.
    pub fn post(&mut self, post: Post) -> Result<Operated, Stop> {
        let post = self.carried(post);
        self.call(post)
    }

    /// Returns the completion of an operation of the device within this time; `None` if it does not complete.
    ///
    /// The suite asks a device for a completion until it is told. The device need not keep it after that.
    pub fn completion(&mut self, operation: Operated, within: Duration) -> Result<Option<Completion>, Stop> {
        if let Some(told) = self.session.known_completion(operation.operation) {
            return Ok(Some(told.clone()));
        }
        let timeout_ns = self.patience(within).as_nanos() as u64;
        let wait = WaitCompletion { operation: operation.operation, timeout_ns };
        self.step(Entry::Called(wait.into()));
        let answer = self.session.wait_completion(wait);
        self.note_refusal(&answer);
        let completion = answer?;
        if completion.is_none() && self.judge.awaits_data() {
            // The refusal of the data may have arrived.
            self.pause(Duration::ZERO)?;
        }
        Ok(completion)
    }

    /// Returns the number of completion events of an operation; waits for those that arrive with the next
    /// answer. Skips the test of a device without events.
    pub fn times_ended(&mut self, operation: Operated) -> Result<usize, Stop> {
        self.peer(0)?;
        let times = self.session.times_ended(operation.operation);
        times.ok_or_else(|| Stop::Skipped("the device tells no events".into()))
    }

    /// Returns the completions that the device has told on its own.
    pub(crate) fn events(&mut self) -> Vec<Completion> {
        self.session.events()
    }

    /// The device must take the read data that the suite sends with this PSN. If it refuses the data, it
    /// fails `SES-READ-005` or `SES-READ-006`, whatever the rule checks.
    pub(crate) fn must_take_data(&mut self, pdc: &Pdc, psn: Psn) {
        self.judge.must_take_data(pdc.local, psn);
    }
}
