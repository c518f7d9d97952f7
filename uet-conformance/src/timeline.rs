//! A trace as a timeline: times from its first step, phases, packets, operations, and obligations.

use crate::history::History;
use crate::ladder::{again, arguments, sentence};
use crate::{Entry, Ladder, LadderStep, Mark, Observation, Phase, Relation};
use core::fmt;
use serde::Serialize;

/// A step of a [timeline](Ladder::timeline).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// The time since the first step, in nanoseconds.
    pub time_ns: u64,
    /// The part of the rule.
    pub phase: Phase,
    /// The packet, operation, comparison or remark.
    #[serde(flatten)]
    pub event: TimelineEvent,
}

/// The content of a [`Moment`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TimelineEvent {
    /// A packet.
    Packet {
        /// Its number in the trace, from 1. `None` if the network lost it on its way to the suite.
        number: Option<usize>,
        /// Its direction.
        direction: PacketDirection,
        /// The packet in one line.
        text: String,
        /// Properties that a reader looks for.
        marks: Vec<Mark>,
    },
    /// An operation that the suite requests over the control channel.
    Control {
        /// Its name in the control channel.
        operation: &'static str,
        /// Its arguments in words.
        arguments: String,
    },
    /// A comparison of the observed value with the required one.
    Check(Observation),
    /// A remark.
    Note {
        /// Its text.
        text: String,
    },
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketDirection {
    /// From the suite.
    ToDevice,
    /// From the device.
    FromDevice,
}

impl Ladder {
    /// Returns the steps as a timeline, each with its phase.
    pub fn timeline(&self) -> Vec<Moment> {
        let begun = self.entries.first().map_or(core::time::Duration::ZERO, |step| step.at);
        let mut history = History::new(self.packets().next());
        let mut last = 0;
        let mut packet = |wire, direction, is_numbered: bool| {
            last += usize::from(is_numbered);
            let number = is_numbered.then_some(last);
            let remarks = history.remarks(number, wire);
            let text = format!("{}{}", sentence(wire), remarks.text());
            TimelineEvent::Packet { number, direction, text, marks: remarks.marks }
        };
        let mut moments = Vec::new();
        for LadderStep { at, phase, entry } in &self.entries {
            let event = match entry {
                Entry::Sent(wire) => packet(wire, PacketDirection::ToDevice, true),
                Entry::Received(wire) => packet(wire, PacketDirection::FromDevice, true),
                Entry::Lost(wire) => packet(wire, PacketDirection::FromDevice, false),
                Entry::Called(op) => {
                    TimelineEvent::Control { operation: op.name(), arguments: arguments(op) }
                }
                Entry::Again(times, until) => {
                    TimelineEvent::Note { text: again(*times, until.saturating_sub(*at)) }
                }
                Entry::Observed(observation) => TimelineEvent::Check((**observation).clone()),
                Entry::Note(text) => TimelineEvent::Note { text: text.clone() },
            };
            let time_ns = u64::try_from(at.saturating_sub(begun).as_nanos()).unwrap_or(u64::MAX);
            moments.push(Moment { time_ns, phase: *phase, event });
        }
        moments
    }
}

impl Observation {
    /// Returns the obligation with its operator and value: `cack_psn == 7`, `time to the ACK <= 2 ms`.
    pub fn obligation(&self) -> String {
        let what = self.what.trim_end_matches(':');
        let mut text = match self.relation {
            Relation::Present => format!("receives {what}"),
            Relation::Absent if what.starts_with("no") => format!("receives {what}"),
            Relation::Absent => format!("never receives {what}"),
            _ if self.expected.is_empty() => what.to_owned(),
            relation => format!("{what} {} {}", relation.operator(), self.expected),
        };
        let notes: Vec<&str> = self.from.iter().chain(&self.tolerance).map(String::as_str).collect();
        if !notes.is_empty() {
            text += &format!(" ({})", notes.join(", "));
        }
        text
    }
}

/// Writes packet, operation or obligation, without time and phase.
impl fmt::Display for TimelineEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimelineEvent::Packet { direction: PacketDirection::ToDevice, text, .. } => {
                write!(f, "-->  {text}")
            }
            TimelineEvent::Packet { direction: PacketDirection::FromDevice, text, .. } => {
                write!(f, "<--  {text}")
            }
            TimelineEvent::Control { operation, arguments } if arguments.is_empty() => {
                write!(f, "ctl  {operation}")
            }
            TimelineEvent::Control { operation, arguments } => write!(f, "ctl  {operation}: {arguments}"),
            TimelineEvent::Check(observation) => {
                let mark = if observation.held { "==>" } else { "!!>" };
                write!(f, "{mark}  {}: {}", observation.requirement, observation.obligation())?;
                let tells = !observation.held
                    || matches!(
                        observation.relation,
                        Relation::AtLeast | Relation::AtMost | Relation::Between | Relation::OneOf
                    );
                if tells { write!(f, "; seen {}", observation.seen) } else { Ok(()) }
            }
            TimelineEvent::Note { text } => write!(f, "     {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(relation: Relation, expected: &str) -> Observation {
        Observation {
            requirement: "PDS-RTO-001".into(),
            what: "time to the retransmission:".into(),
            relation,
            expected: expected.into(),
            seen: "3 ms".into(),
            tolerance: None,
            from: Some("rto_init_time, device".into()),
            packet: 1,
            request: None,
            held: true,
        }
    }

    #[test]
    fn obligation_has_operator_and_value() {
        for (relation, operator) in [
            (Relation::Equal, "=="),
            (Relation::AtLeast, ">="),
            (Relation::AtMost, "<="),
            (Relation::Between, "in"),
            (Relation::OneOf, "one of"),
        ] {
            let text = format!("time to the retransmission {operator} 2 ms (rto_init_time, device)");
            assert_eq!(observation(relation, "2 ms").obligation(), text);
        }
    }
}
