//! The properties of a state: completions, memory, and bytes in flight.

use super::act::{CLAIM, COUNT, NUMBER, ONES, PATTERN, PLACES, SPAN, ZEROS, claim};
use super::{ADDRESSES, NAMES, Posted, World};
use crate::endpoint::Endpoint;
use crate::scenario::{Action, Control};
use uet_model::ses::{Completion, OperationError};
use uet_model::{Failure, Mode};
use uet_wire::registry::ReturnCode;

/// `rcvd_bytes` counts in units of 256 bytes, rounded up, for each context.
const ROUNDING: i64 = 4 * 255;
/// The actions that add 1, and the places of their numbers.
const NUMBERS: [(Action, usize); 2] = [(Action::Add, NUMBER), (Action::Count, COUNT)];

impl<E: Endpoint> World<E> {
    pub(super) fn completed(&mut self, side: usize, completion: Completion) -> Result<(), String> {
        let name = NAMES[side];
        match completion {
            Completion::Operation { id, result } => {
                let number = self.posted.iter().position(|posted| (posted.side, posted.id) == (side, id));
                let Some(number) = number else {
                    return Err(format!("{name} completed an operation that is not its own"));
                };
                if let Some(trace) = &mut self.trace {
                    let end = match &result {
                        Ok(_) => "completed".to_owned(),
                        Err(error) => error.to_string(),
                    };
                    trace.note(self.now, ADDRESSES[side], format_args!("operation {number}: {end}"));
                }
                let known = self.posted[number].result;
                if known.is_some() {
                    return Err(format!("operation {number} of {name} completed twice"));
                }
                self.posted[number].result = Some(result.as_ref().err().map(|error| error.code));
                match result {
                    Ok(done) => self.check_done(number, &done.data),
                    // No scenario lowers the limit of NACKs, so refusals end before operations fail.
                    Err(OperationError { why: Some(Failure::Refused(_)), .. }) => {
                        Err(format!("operation {number} of {name} was refused too often"))
                    }
                    Err(_) if self.scenario.may_fail || self.posted[number].may_fail => Ok(()),
                    Err(_) if matches!(self.posted[number].action, Action::Trespass(_)) => Ok(()),
                    Err(OperationError { why: Some(Failure::NoContext), .. })
                        if self.scenario.reuses_pdcid =>
                    {
                        Ok(())
                    }
                    Err(error) => Err(format!("operation {number} of {name} failed: {error}")),
                }
            }
            Completion::Received(received) => {
                if let Some(trace) = &mut self.trace {
                    trace.note(self.now, ADDRESSES[side], "a receive completed");
                }
                if received.code != ReturnCode::OK {
                    return match self.scenario.may_fail || self.posted.iter().any(|posted| posted.may_fail) {
                        true => Ok(()),
                        false => Err(format!("a receive of {name} completed with {}", received.code)),
                    };
                }
                let is_it = |(number, posted): (usize, &Posted)| {
                    let length = message(posted.action)?;
                    let sent = &PATTERN[number.min(PLACES - 1) * SPAN..][..usize::from(length)];
                    (posted.side != side && received.data == sent).then_some(number)
                };
                let Some(number) = self.posted.iter().enumerate().find_map(is_it) else {
                    return Err(format!("{name} received data that nobody sent"));
                };
                if received.header_data != self.scenario.header_data(number, self.posted[number].action) {
                    return Err(format!("{name} received operation {number} with other header data"));
                }
                if self.received.contains(&number) {
                    return Err(format!("{name} received the message of operation {number} twice"));
                }
                let ordered = |other: usize| self.scenario.mode_of(other) == Mode::Rod;
                let overtaken = self.received.iter().any(|other| *other > number && ordered(*other));
                if overtaken && ordered(number) {
                    return Err(format!("{name} received the message of operation {number} out of order"));
                }
                self.received.push(number);
                Ok(())
            }
            Completion::Written(written) => self.written(side, written.header_data),
        }
    }

    /// Checks that a write of which the target hears is complete, and that it hears of it once.
    fn written(&mut self, side: usize, header_data: u64) -> Result<(), String> {
        let name = NAMES[side];
        let number = header_data.wrapping_sub(1) as usize;
        let write = self.posted.get(number).filter(|posted| posted.side != side).map(|posted| posted.action);
        let Some(Action::Write(length)) = write else {
            return Err(format!("{name} heard of a write that nobody posted"));
        };
        if !self.holds(side, number, length) {
            return Err(format!("{name} heard of operation {number} before all its data arrived"));
        }
        if self.received.contains(&number) {
            return Err(format!("{name} heard of operation {number} twice"));
        }
        self.received.push(number);
        Ok(())
    }

    /// Returns whether memory holds all bytes of a write.
    fn holds(&self, side: usize, number: usize, length: u16) -> bool {
        let place = number.min(PLACES - 1) * SPAN;
        let bytes = place..place + usize::from(length);
        self.memory(side)[bytes.clone()] == PATTERN[bytes]
    }

    /// Checks that the effect of a successful operation is visible.
    fn check_done(&self, number: usize, data: &[u8]) -> Result<(), String> {
        let Posted { action, side, .. } = self.posted[number];
        let place = number.min(PLACES - 1) * SPAN;
        let holds = match action {
            Action::Write(length) => self.holds(1 - side, number, length),
            Action::Read(length) => *data == PATTERN[place..place + usize::from(length)],
            // The receive of a rendezvous completes with the last ACK of the read.
            Action::Send(_) | Action::Deferrable(_) | Action::Tagged(_) => self.is_received(number),
            Action::Add => {
                let is_old = |before: &[u8]| word(before) < self.number(1 - side, NUMBER);
                data.len() == 16 && data[..8] == data[8..] && is_old(&data[..8])
            }
            Action::AddFull => {
                data == &ZEROS[..ONES.len()] && self.memory(1 - side)[place..][..ONES.len()] == ONES
            }
            Action::Count => data.len() == 8 && word(data) < self.number(1 - side, COUNT),
            Action::Claim => match word(data) {
                0 => self.number(1 - side, CLAIM) == claim(number),
                before => before != claim(number) && self.number(1 - side, CLAIM) == before,
            },
            Action::Trespass(_) => false,
            Action::Rendezvous(..)
            | Action::Lend(_)
            | Action::Withdraw
            | Action::Receive
            | Action::ReceiveTagged(..)
            | Action::Close
            | Action::Abort => true,
        };
        match holds {
            true => Ok(()),
            false => Err(format!("operation {number} of {} completed early: {action}", NAMES[side])),
        }
    }

    /// Returns whether a message has been received, or has no receive.
    fn is_received(&self, number: usize) -> bool {
        let Posted { side, .. } = self.posted[number];
        let from_here = |posted: &&Posted| posted.side == side && message(posted.action).is_some();
        let messages = self.posted.iter().filter(from_here).count();
        usize::from(self.receives[1 - side]) < messages || self.received.contains(&number)
    }

    fn memory(&self, side: usize) -> &[u8] {
        self.ends[side].memory(self.regions[side][0]).unwrap_or(&ZEROS)
    }

    fn number(&self, side: usize, at: usize) -> u64 {
        word(&self.memory(side)[at..at + 8])
    }

    /// Checks that memory holds only bytes of operations, and that each addition happened at most once.
    pub(super) fn check_memory(&self) -> Result<(), String> {
        for (side, name) in NAMES.iter().enumerate() {
            let memory = self.memory(side);
            for (action, place) in NUMBERS {
                let all = self.posted.iter().filter(|posted| posted.side != side && posted.action == action);
                let (added, adds) = (self.number(side, place), all.count());
                if added > adds as u64 {
                    return Err(format!("{name} added {added} times for {adds} operations"));
                }
            }
            if self.number(side, NUMBER) != self.number(side, NUMBER + 8) {
                return Err(format!("{name} added to only one of two numbers"));
            }
            let claimed = self.number(side, CLAIM);
            let claims = |(number, posted): (usize, &Posted)| {
                (posted.side, posted.action) == (1 - side, Action::Claim) && claim(number) == claimed
            };
            if claimed != 0 && !self.posted.iter().enumerate().any(claims) {
                return Err(format!("the number of {name} is {claimed:#x}, which nobody set"));
            }
            let source = self.ends[side].memory(self.regions[side][1]).unwrap_or(&ZEROS);
            if memory[COUNT + 8..] != ZEROS[COUNT + 8..] || *source != PATTERN {
                return Err(format!("{name} has memory that nobody may write, and that has changed"));
            }
            for place in 0..PLACES {
                let (from, to) = (place * SPAN, (place + 1) * SPAN);
                let writes = |posted: &Posted| match posted.action {
                    Action::Write(length) if posted.side != side => {
                        &PATTERN[from..from + usize::from(length)]
                    }
                    Action::AddFull if posted.side != side => &ONES[..],
                    _ => &[],
                };
                let right = self.posted.get(place).map_or(&[][..], writes);
                let (written, rest) = memory[from..to].split_at(right.len());
                let is_right =
                    written == right || written.iter().zip(right).all(|(is, may)| *is == 0 || is == may);
                if !is_right || *rest != ZEROS[right.len()..SPAN] {
                    return Err(format!("the memory of {name} is wrong for operation {place}"));
                }
            }
        }
        Ok(())
    }

    /// Checks that congestion control counts no more bytes than there can be, and sends no more than its window.
    pub(super) fn check_in_flight(&self) -> Result<(), String> {
        for side in 0..2 {
            if let Control::Nscc(window) = self.scenario.control {
                // A source takes a packet in the network for lost after an early timeout. It also does so after a trim of a
                // copy, or of a retransmission of what had arrived. `rcvd_bytes` is rounded up to units of 256 bytes.
                let (budget, left) = (self.budget, self.left);
                let again = budget.copy - left.copy + self.referee.trimmed_again(side);
                let trimmed = again.min(budget.trim - left.trim);
                let packets = u32::from(window + budget.early - left.early + trimmed);
                let (bytes, most) = (self.bytes_to(1 - side), packets * self.scenario.network().full_packet);
                if bytes > (most + 255) as usize {
                    return Err(format!(
                        "{} has {bytes} bytes in the network, and its window is {most}",
                        NAMES[side]
                    ));
                }
            }
            let Some(bytes) = self.ends[side].in_flight(ADDRESSES[1 - side]) else { continue };
            let most = self.referee.unanswered(side);
            if !(-ROUNDING..=most as i64 + ROUNDING).contains(&bytes) {
                return Err(format!(
                    "{} counts {bytes} bytes in flight, and {most} are unanswered",
                    NAMES[side]
                ));
            }
        }
        Ok(())
    }

    /// Checks a state in which nothing is left to do.
    pub fn check_rest(&self) -> Result<(), String> {
        for (number, posted) in self.posted.iter().enumerate() {
            if posted.result.is_none() {
                let name = NAMES[posted.side];
                return Err(format!("operation {number} of {name} never completed: {}", posted.action));
            }
            let sent = posted.result == Some(None) && message(posted.action).is_some();
            let write = matches!(posted.action, Action::Write(_));
            let reports = write && self.scenario.header_data(number, posted.action).is_some();
            if posted.result == Some(None) && reports && !self.received.contains(&number) {
                return Err(format!("the target never heard of operation {number}"));
            }
            if sent && !self.is_received(number) {
                return Err(format!("the message of operation {number} was never received"));
            }
        }
        for (side, end) in self.ends.iter().enumerate() {
            let good = |posted: &&Posted| posted.side != side && posted.result == Some(None);
            for (action, place) in NUMBERS {
                let adds = self.posted.iter().filter(good).filter(|posted| posted.action == action).count();
                let added = self.number(side, place);
                if added < adds as u64 {
                    return Err(format!("{} added {added} times for {adds} operations", NAMES[side]));
                }
            }
            let (contexts, held) = (end.contexts(), end.held());
            if (contexts, held) != (0, 0) && !self.scenario.may_vanish {
                return Err(format!("{} rests with {contexts} contexts and {held} resources", NAMES[side]));
            }
            if let Some(bytes) = end.in_flight(ADDRESSES[1 - side])
                && bytes.abs() > ROUNDING
            {
                return Err(format!("{} rests with {bytes} bytes in flight", NAMES[side]));
            }
        }
        Ok(())
    }
}

/// Returns the length of a message.
fn message(action: Action) -> Option<u16> {
    match action {
        Action::Send(length)
        | Action::Tagged(length)
        | Action::Rendezvous(length, _)
        | Action::Lend(length)
        | Action::Deferrable(length) => Some(length),
        _ => None,
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(u64::MAX, u64::from_le_bytes)
}
