//! Receives that the device posts, for the suite to send to.

pub use crate::region::{room, tagged_room};

use crate::target::NOT_WELL;
use crate::{Outcome, Region, Stop, Test};
use core::time::Duration;
use uet_control::{Completion, Operated, PostReceive, Status};
use uet_wire::catalogue::Requirement;

/// A receive of the device.
#[derive(Clone, Debug)]
pub struct PostedReceive {
    /// Its number in completions.
    pub operation: Operated,
    /// Its buffer.
    pub buffer: Region,
    /// The initial bytes of the buffer.
    pub before: Vec<u8>,
}

impl Test<'_> {
    /// Has the device post a receive.
    pub fn posted(&mut self, receive: PostReceive) -> Result<PostedReceive, Stop> {
        let received = self.call(receive.clone())?;
        let buffer = Region {
            number: received.region,
            job: receive.job.unwrap_or_default(),
            process: receive.process,
            index: receive.index,
            generation: 0,
            key: 0,
            message_id: 1,
            length: receive.length,
        };
        let before = self.memory(&buffer, 0, buffer.length)?;
        Ok(PostedReceive { operation: Operated { operation: received.operation }, buffer, before })
    }

    /// Has index 10 of process 2 of job 101 be there, with a receive that no send of a rule is for.
    pub fn open_index(&mut self) -> Outcome {
        self.posted(tagged_room(8, 0x5ca1_ab1e_0000_0000)).map(drop)
    }

    /// Expects that a receive ends well, with these bytes and nothing behind them.
    pub fn expect_received(
        &mut self,
        requirement: &Requirement,
        posted: &PostedReceive,
        data: &[u8],
    ) -> Result<Completion, Stop> {
        let soon = self.soon();
        let Some(completion) = self.completion(posted.operation, soon)? else {
            self.pause(Duration::ZERO)?;
            self.had_room(0)?;
            self.holds(requirement, "a receive that completes", false, "none");
            return Err(if self.heard() { Stop::Failed } else { Stop::Silent });
        };
        let ended = (completion.status, completion.length);
        self.check(requirement, "a receive that ends with", (Status::Ok, data.len() as u64), ended);
        self.expect_filled(requirement, posted, data)?;
        Ok(completion)
    }

    /// Expects that the buffer of a receive holds these bytes, and behind them what it held before.
    pub fn expect_filled(
        &mut self,
        requirement: &Requirement,
        posted: &PostedReceive,
        data: &[u8],
    ) -> Outcome {
        let mut expected = posted.before.clone();
        for (to, byte) in expected.iter_mut().zip(data) {
            *to = *byte;
        }
        self.expect_memory(requirement, &posted.buffer, 0, &expected)
    }

    /// Expects that a receive has not ended after a while.
    pub fn expect_waiting(&mut self, requirement: &Requirement, posted: &PostedReceive) -> Outcome {
        self.pause(self.soon())?;
        let ended = self.completion(posted.operation, Duration::ZERO)?;
        self.check(requirement, "a receive that waits:", None, ended.map(|completion| completion.length));
        Ok(())
    }

    /// Expects that a receive has not ended well after a while: it may wait, or have failed.
    pub fn expect_not_well(&mut self, requirement: &Requirement, posted: &PostedReceive) -> Outcome {
        self.pause(self.soon())?;
        let ended = self.completion(posted.operation, Duration::ZERO)?.map(|completion| completion.status);
        self.one_of(requirement, "the completion of the receive", NOT_WELL, ended);
        Ok(())
    }
}
