//! The phases of a rule. The suite derives them from the calls of the script, so no script states them.

use crate::{Entry, Ladder, LadderStep, Test};
use core::time::Duration;
use serde::Serialize;
use uet_control::Op;

/// The part of a rule that a step of its trace belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Brings the device into the state in which the requirement applies.
    Arrange,
    /// Packets and operations that the device must react to.
    #[default]
    Stimulus,
    /// The required reaction: packets of the device, reads of its state, and comparisons.
    Obligation,
}

impl Phase {
    /// Returns `arrange`, `stimulus` or `obligation`.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Arrange => "arrange",
            Phase::Stimulus => "stimulus",
            Phase::Obligation => "obligation",
        }
    }
}

/// Derives the phase of each step.
///
/// Everything between two comparisons is a round. The stimulus of a round is what the script sends after the
/// last precondition that it waits for. The steps before that precondition were arrangement.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    /// The phase that a helper such as `establish` states for its steps.
    stated: Option<Phase>,
    /// The index of the round's first step.
    round: usize,
    /// The index of the first step after the last one that the script chose.
    reaction: usize,
    /// True if the script has waited for a precondition in this round, after its last stimulus.
    needed: bool,
    /// True if the script has sent a stimulus in this round.
    stimulated: bool,
    /// True while the suite answers on its own.
    automatic: bool,
}

impl Phases {
    /// Marks the round's steps so far as arrangement if a step of the script follows.
    pub(crate) fn needed(&mut self) {
        self.needed = true;
    }

    fn add(&mut self, ladder: &mut Ladder, at: Duration, entry: Entry) {
        let phase = self.stated.unwrap_or(match &entry {
            Entry::Observed(_) => Phase::Obligation,
            Entry::Called(op) if is_arrangement(op) => Phase::Arrange,
            _ => Phase::Stimulus,
        });
        let of_script = match &entry {
            Entry::Sent(_) => !self.automatic,
            Entry::Called(op) => !is_look(op),
            Entry::Received(_) | Entry::Lost(_) | Entry::Note(_) => false,
            Entry::Observed(_) => true,
        };
        if matches!(entry, Entry::Observed(_)) {
            ladder.state(self.reaction, Phase::Obligation);
        } else if of_script && phase == Phase::Stimulus {
            let is_first = !core::mem::replace(&mut self.stimulated, true);
            if core::mem::take(&mut self.needed) || is_first {
                ladder.state(self.round, Phase::Arrange);
            }
        }
        ladder.entries.push(LadderStep { at, phase, entry });
        let next = ladder.entries.len();
        if of_script || self.stated.is_some() {
            self.reaction = next;
        }
        if phase == Phase::Obligation {
            (self.round, self.needed, self.stimulated) = (next, false, false);
        }
    }
}

/// Returns whether an operation only prepares the device.
fn is_arrangement(op: &Op) -> bool {
    matches!(
        op,
        Op::Reset(_)
            | Op::Configure(_)
            | Op::AddPeer(_)
            | Op::SetIndices(_)
            | Op::ExposeRegion(_)
            | Op::PostReceive(_)
    )
}

/// Returns whether an operation only reads the state of the device.
fn is_look(op: &Op) -> bool {
    matches!(op, Op::ReadMemory(_) | Op::WaitCompletion(_) | Op::Counters(_))
}

impl Test<'_> {
    /// Adds a step to the trace, with its phase.
    pub(crate) fn step(&mut self, at: Duration, entry: Entry) {
        self.phases.add(&mut self.ladder, at, entry);
    }

    /// Runs a helper whose steps all belong to this phase.
    pub(crate) fn during<T>(&mut self, phase: Phase, helper: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.phases.stated;
        self.phases.stated = outer.or(Some(phase));
        let result = helper(self);
        self.phases.stated = outer;
        result
    }

    /// Runs answers of the suite that the script does not choose.
    pub(crate) fn automatically<T>(&mut self, answer: impl FnOnce(&mut Self) -> T) -> T {
        let outer = core::mem::replace(&mut self.phases.automatic, true);
        let result = answer(self);
        self.phases.automatic = outer;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Observation, Relation, Wire};
    use uet_control::{ClosePdc, Mode, ReadMemory, Reset};

    fn wire() -> Wire {
        let address = core::net::IpAddr::from([10, 0, 0, 1]);
        Wire::new(address, address, 0, Vec::new())
    }

    fn sent() -> Entry {
        Entry::Sent(wire())
    }

    fn received() -> Entry {
        Entry::Received(wire())
    }

    fn look() -> Entry {
        Entry::Called(ReadMemory { region: 1, offset: 0, length: 1 }.into())
    }

    fn post() -> Entry {
        Entry::Called(ClosePdc { peer: 1, mode: Mode::Rud, class: 0 }.into())
    }

    fn observed() -> Entry {
        Entry::Observed(Box::new(Observation {
            requirement: "PDS-ACK-004".into(),
            what: "x".into(),
            relation: Relation::True,
            expected: String::new(),
            seen: String::new(),
            tolerance: None,
            from: None,
            packet: 0,
            held: true,
        }))
    }

    /// The initials of the phases of these steps; `None` is a wait for a precondition.
    fn phases(steps: impl IntoIterator<Item = Option<Entry>>) -> String {
        let (mut phases, mut ladder) = (Phases::default(), Ladder::default());
        for step in steps {
            match step {
                None => phases.needed(),
                Some(entry) => phases.add(&mut ladder, Duration::ZERO, entry),
            }
        }
        ladder.entries.iter().map(|step| &step.phase.name()[..1]).collect()
    }

    #[test]
    fn reaction_belongs_to_the_obligation() {
        let steps =
            [Entry::Called(Reset {}.into()), sent(), received(), look(), observed(), look(), observed()];
        assert_eq!(phases(steps.map(Some)), "asooooo");
        assert_eq!(phases([look(), sent(), observed()].map(Some)), "aso", "a look before the stimulus");
    }

    #[test]
    fn steps_before_a_precondition_are_arrangement() {
        let steps = [Some(post()), Some(received()), None, Some(sent()), Some(received()), Some(observed())];
        assert_eq!(phases(steps), "aasoo");
    }

    #[test]
    fn precondition_that_the_script_judges_is_the_obligation() {
        let steps = [Some(post()), Some(received()), None, Some(observed()), Some(sent()), Some(observed())];
        assert_eq!(phases(steps), "sooso");
    }
}
