//! The judgment at the end of a conversation: memory, receives, completions, resources.

use super::coverage::State;
use super::data::shown;
use super::play::Player;
use super::step::bits;
use super::step::{By, Wrong};
use crate::{Outcome, Stop};
use core::time::Duration;
use uet_control::{Completion, Counters, Fill, Hex64, PostKind, Status};
use uet_wire::catalogue::*;
use uet_wire::registry::ReturnCode;

impl Player<'_, '_> {
    /// Returns whether nothing is under way.
    pub(super) fn is_quiet(&self) -> bool {
        let own = self.own.iter().all(|own| own.is_quiet() && own.state != State::Closing);
        own && self.messages.iter().all(|it| it.over)
            && self.posts.iter().all(|it| self.told.contains_key(&it.operation.operation))
    }

    /// Judges what has not ended, though there was time enough.
    pub(super) fn unfinished(&mut self) -> Outcome {
        for message in 0..self.messages.len() {
            let sending = &self.messages[message];
            if !sending.over {
                let told = format!("unanswered or without data: {}", shown(&sending.plan));
                return self.broken(SES_RESP_001, "a message that ends", told);
            }
        }
        Ok(())
    }

    /// Returns whether all contexts are closed.
    pub(super) fn all_closed(&self) -> bool {
        let own = |state| matches!(state, State::New | State::Closed | State::Dead);
        let served = |state| matches!(state, State::Closed | State::Dead);
        self.own.iter().all(|it| own(it.state)) && self.served.iter().all(|it| served(it.state))
    }

    /// Judges the device at the end.
    pub(super) fn judge(&mut self) -> Outcome {
        for post in 0..self.posts.len() {
            self.judge_post(post)?;
        }
        for held in 0..self.regions.len() {
            let (region, length) = (self.regions[held].region.number, self.regions[held].plan.length);
            let bytes = self.t.raw_memory(region, 0, length.into())?;
            let shadow = &self.regions[held].shadow;
            if let Some(at) = shadow.wrong(&bytes) {
                let told = format!("{:#04x} at byte {at} of region {held}", bytes[at]);
                let expected = format!("memory that holds {} there", shadow.at(at));
                return self.broken(SES_PLACE_001, &expected, told);
            }
        }
        self.judge_receives()?;
        self.judge_contexts()?;
        self.t.expect_life(ROB_LIFE_001)
    }

    fn judge_contexts(&mut self) -> Outcome {
        let dead = self.soon_gives_up()
            || self.own.iter().any(|own| own.state == State::Dead)
            || self.served.iter().any(|it| it.state == State::Dead);
        if let Some(own) = self.own.iter().position(|own| matches!(own.state, State::Open | State::Closing)) {
            let told = format!("context {own} stays");
            return self.broken(PDS_CLOSE_004, "contexts that close", told);
        }
        let closes = self.t.claims("close");
        if closes && self.served.iter().any(|it| it.state == State::Open) && !dead {
            let told = "the device does not close a context of its own".into();
            return self.broken(PDS_CLOSE_001, "contexts that close", told);
        }
        let mut left = 0;
        if closes {
            // A device may keep a closed context for late packets.
            for _ in 0..4 {
                left = match self.t.call(Counters {}) {
                    Ok(counted) => counted.pdcs,
                    Err(Stop::Gone(why)) => return Err(Stop::Gone(why)),
                    Err(_) => 0,
                };
                if left == 0 {
                    break;
                }
                let told = Duration::from_nanos(self.t.parameter("syn_retx_safety_time"));
                let until = self.t.now() + told.max(self.t.rto() * 8);
                self.pump(until)?;
            }
        }
        match left {
            0 => Ok(()),
            left => self.broken(PDS_CLOSE_004, "no context after all are closed", left.to_string()),
        }
    }

    /// Returns whether a send, once accepted, has a receive at once.
    pub(super) fn has_receive(&self, message: usize) -> bool {
        let sent = &self.messages[message];
        !sent.overflow && !matches!(sent.plan.kind, PostKind::RendezvousSend | PostKind::RendezvousTsend)
    }

    /// Judges that receives and sends belong together.
    fn judge_receives(&mut self) -> Outcome {
        let mut taken = vec![false; self.messages.len()];
        for receive in 0..self.receives.len() {
            let operation = self.receives[receive].operation;
            let ended = self.t.completion(operation, Duration::ZERO)?;
            self.receives[receive].ended.clone_from(&ended);
            let Some(ended) = ended.filter(|ended| ended.status == Status::Ok) else { continue };
            let (region, length) = (self.receives[receive].region, self.receives[receive].length);
            let bytes = match length {
                0 => Vec::new(),
                _ => self.t.raw_memory(region, 0, length as u64)?,
            };
            let fits = |index: &usize| !taken[*index] && self.is_in(*index, receive, &ended, &bytes);
            // A send that must have taken a receive comes before one that may have, and this before a lost one.
            let all = 0..self.messages.len();
            let accepted = || all.clone().filter(|index| self.is_accepted(*index));
            let found = accepted()
                .filter(|index| self.has_receive(*index))
                .find(fits)
                .or_else(|| accepted().find(fits))
                .or_else(|| all.clone().find(fits));
            match found {
                Some(message) => taken[message] = true,
                None => {
                    let told = format!(
                        "{}, first bytes {}",
                        shown(&ended),
                        shown(&uet_control::Hex(bytes[..8.min(length)].to_vec()))
                    );
                    return self.broken(SES_MATCH_006, "a receive with the bytes of one send", told);
                }
            }
        }
        for (message, taken) in taken.into_iter().enumerate() {
            if taken {
                continue;
            }
            if !self.is_accepted(message) {
                continue;
            }
            // An unexpected send waits for a receive that matches; an expected one has taken one.
            let free =
                |receive: &usize| self.receives[*receive].ended.is_none() && self.matches(message, *receive);
            let free: Vec<usize> = (0..self.receives.len()).filter(free).collect();
            let told = format!("{}, and a receive that fits is free", shown(&self.messages[message].plan));
            if self.has_receive(message) {
                return self.broken(SES_MATCH_006, "a receive for a send that has been accepted", told);
            }
            if free.len() > self.reserved(&free) {
                return self.broken(SES_MATCH_003, "an unexpected send in the receive that matches", told);
            }
        }
        Ok(())
    }

    /// Returns how many of these receives may wait for a deferrable send that the device has asked for again.
    fn reserved(&self, receives: &[usize]) -> usize {
        let is_done = |index: usize| {
            let again = self.messages.iter().find(|message| message.again_of == Some(index));
            again.is_some_and(|again| {
                again.over && !again.lost && !again.put_off && again.code == ReturnCode::OK
            })
        };
        // The request may be lost with the context on which it comes.
        let is_lost = self.served.iter().any(|it| it.state == State::Dead);
        let waits = |index: &usize| {
            let fits = receives.iter().any(|receive| self.matches(*index, *receive));
            let sending = &self.messages[*index];
            (sending.wanted || sending.put_off && is_lost) && fits && !is_done(*index)
        };
        (0..self.messages.len()).filter(waits).count()
    }

    /// Returns whether a message is a send that the device has certainly accepted.
    pub(super) fn is_accepted(&self, message: usize) -> bool {
        let sending = &self.messages[message];
        let plain = sending.plan.wrong == Wrong::Nothing && sending.plan.by == By::Context;
        let done = sending.over && !sending.lost && sending.code == ReturnCode::OK && !sending.put_off;
        sending.is_send() && plain && done && sending.again_of.is_none()
    }

    fn matches(&self, message: usize, receive: usize) -> bool {
        let (sending, receive) = (&self.messages[message], &self.receives[receive]);
        let number = self.own.get(sending.plan.context).map(|own| own.plan.job);
        let tags = match (sending.tag(), receive.tag) {
            (None, None) => true,
            (Some(sent), Some(wanted)) => (bits(sent) ^ bits(wanted)) & !u64::from(receive.ignore) == 0,
            _ => false,
        };
        let wanted = receive.initiator.is_none_or(|it| it == 0);
        sending.is_send() && tags && wanted && number == Some(receive.job)
    }

    /// Returns whether a receive may hold a send.
    fn is_in(&self, message: usize, receive: usize, ended: &Completion, bytes: &[u8]) -> bool {
        let sending = &self.messages[message];
        let refused =
            sending.over && !sending.lost && sending.code != ReturnCode::OK && sending.plan.by == By::Context;
        if !self.matches(message, receive) || sending.plan.wrong != Wrong::Nothing || refused {
            return false;
        }
        let data = Fill::Seed(sending.plan.seed).bytes(sending.plan.length as usize);
        let length = data.len().min(bytes.len());
        let origin = sending.again_of.unwrap_or(message);
        let of = sending.header_data(message).or(sending.header_data(origin));
        let header = match ended.header_data {
            Some(Hex64(told)) => of == Some(told) || told == 0 && of.is_none(),
            None => of.is_none(),
        };
        header && ended.length == length as u64 && bytes.get(..length) == data.get(..length)
    }
}
