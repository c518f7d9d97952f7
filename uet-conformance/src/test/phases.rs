//! The suite derives the phases of a rule from the calls of the script, so no script states them.

use crate::ladder::is_look;
use crate::{Entry, Ladder, LadderStep, Phase};
use core::time::Duration;
use uet_control::Op;

/// Derives the phase of each step.
///
/// Everything between two comparisons is a round. The stimulus of a round is what the script sends after the
/// last precondition that it waits for. The steps before that precondition were arrangement.
#[derive(Debug, Default)]
pub(super) struct Phases {
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
    pub(super) fn needed(&mut self) {
        self.needed = true;
    }

    /// Sets the phase of the following steps, and returns the one before.
    pub(super) fn state(&mut self, phase: Option<Phase>) -> Option<Phase> {
        core::mem::replace(&mut self.stated, phase)
    }

    /// Sets whether the suite answers on its own, and returns whether it did before.
    pub(super) fn set_automatic(&mut self, automatic: bool) -> bool {
        core::mem::replace(&mut self.automatic, automatic)
    }

    pub(super) fn add(&mut self, ladder: &mut Ladder, at: Duration, entry: Entry) {
        let phase = self.stated.unwrap_or(match &entry {
            Entry::Observed(_) => Phase::Obligation,
            Entry::Called(op) if is_arrangement(op) => Phase::Arrange,
            _ => Phase::Stimulus,
        });
        let of_script = match &entry {
            Entry::Sent(_) => !self.automatic,
            Entry::Called(op) => !is_look(op),
            Entry::Received(_) | Entry::Lost(_) | Entry::Again(..) | Entry::Note(_) => false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Observation, Relation, Wire};
    use uet_control::{ClosePdc, Mode, ReadMemory, Reset};
    use uet_wire::catalogue::PDS_ACK_004;

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
        let observation = Observation::new(PDS_ACK_004, true, Relation::True, "x", String::new());
        Entry::Observed(Box::new(observation))
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
