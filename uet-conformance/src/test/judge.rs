//! The judge: the timeline of the script with its phases, and the observations that decide the verdict.

use super::phases::Phases;
use crate::{Entry, Ladder, Observation, Phase, Relation, RxPacket, Wire};
use core::time::Duration;
use std::collections::HashSet;
use uet_wire::catalogue::{Requirement, SES_READ_005, SES_READ_006};
use uet_wire::ses::Ses;
use uet_wire::{PdcId, Psn, Uet};

/// The record of a script.
#[derive(Debug, Default)]
pub(super) struct Judge {
    ladder: Ladder,
    phases: Phases,
    observations: Vec<Observation>,
    /// Number of packets sent and received.
    packets: usize,
    /// Maximum delay of the suite's answers.
    late: Duration,
    /// Read data that the device must take, by the PDCID of the suite and the PSN.
    due_data: HashSet<(PdcId, Psn)>,
    /// The ACK that refused such data.
    refused_data: Option<RxPacket>,
}

impl Judge {
    /// Returns the observations and the timeline.
    pub(super) fn finish(self) -> (Vec<Observation>, Ladder) {
        (self.observations, self.ladder)
    }

    pub(super) fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    /// Counts a packet, and returns its number.
    pub(super) fn count_packet(&mut self) -> usize {
        self.packets += 1;
        self.packets
    }

    pub(super) fn step(&mut self, at: Duration, entry: Entry) {
        match &entry {
            Entry::Called(op) if self.ladder.count_again(at, op) => {}
            _ => self.phases.add(&mut self.ladder, at, entry),
        }
    }

    pub(super) fn mark_lost(&mut self, lost: &Wire, is_last: bool) {
        self.ladder.mark_lost(lost, is_last);
    }

    /// Marks the steps so far as arrangement if a step of the script follows.
    pub(super) fn needed(&mut self) {
        self.phases.needed();
    }

    /// Sets the phase of the following steps, and returns the one before; `None` if the steps decide.
    pub(super) fn state_phase(&mut self, phase: Option<Phase>) -> Option<Phase> {
        self.phases.state(phase)
    }

    /// Sets whether the suite answers on its own, and returns whether it did before.
    pub(super) fn set_automatic(&mut self, automatic: bool) -> bool {
        self.phases.set_automatic(automatic)
    }

    /// Returns whether all observations from this number on held.
    pub(super) fn held_since(&self, number: usize) -> bool {
        self.observations.iter().skip(number).all(|seen| seen.held)
    }

    pub(super) fn observations(&self) -> usize {
        self.observations.len()
    }

    /// Drops the observations of a failed measurement, and the state of the reads before the reset.
    pub(super) fn measure_again(&mut self, observations: usize) {
        self.observations.truncate(observations);
        self.due_data.clear();
    }

    /// Returns the longest delay of an answer since the last call of [`Self::forget_delay`].
    pub(super) fn late(&self) -> Duration {
        self.late
    }

    pub(super) fn forget_delay(&mut self) {
        self.late = Duration::ZERO;
    }

    pub(super) fn was_late(&mut self, by: Duration) {
        self.late = self.late.max(by);
    }

    /// Creates an observation about the last packet, without an expected value.
    pub(super) fn observation(
        &self,
        requirement: &Requirement,
        held: bool,
        relation: Relation,
        what: &str,
        seen: String,
    ) -> Observation {
        Observation { packet: self.packets, ..Observation::new(requirement, held, relation, what, seen) }
    }

    pub(super) fn record(&mut self, at: Duration, observation: Observation) {
        // A device that refuses the data of a read fails in many ways; they have one cause.
        let observation = match &self.refused_data {
            Some(refusal) if !observation.held => self.refusal_of_data(refusal),
            _ => observation,
        };
        self.step(at, Entry::Observed(Box::new(observation.clone())));
        self.observations.push(observation);
    }

    /// The device must take the read data that the suite sends with this PSN.
    pub(super) fn must_take_data(&mut self, local: PdcId, psn: Psn) {
        self.due_data.insert((local, psn));
    }

    pub(super) fn awaits_data(&self) -> bool {
        !self.due_data.is_empty()
    }

    /// Keeps the first ACK that refuses read data that the device must take.
    pub(super) fn look_for_refused_data(&mut self, seen: &RxPacket) {
        if self.refused_data.is_some() || self.due_data.is_empty() || !seen.is_error() {
            return;
        }
        let named = seen.ack().and_then(|ack| Some((ack.dpdcid(), ack.ack_psn()?)));
        if named.is_some_and(|named| self.due_data.contains(&named)) {
            self.refused_data = Some(seen.clone());
        }
    }

    /// Returns the observation of refused read data, which stands for its consequences.
    fn refusal_of_data(&self, refusal: &RxPacket) -> Observation {
        let short = self.ladder.entries.iter().any(|step| match &step.entry {
            Entry::Sent(wire) => matches!(Uet::parse_lax(&wire.bytes).0.ses, Some(Ses::ResponseDataSmall(_))),
            _ => false,
        });
        let requirement = if short { SES_READ_006 } else { SES_READ_005 };
        let what = "the device takes the data of its read";
        let seen = refusal.uet().to_string();
        Observation {
            packet: refusal.number,
            ..Observation::new(requirement, false, Relation::True, what, seen)
        }
    }
}
