use crate::{Observation, Phase, Trimmed, Wire};
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use uet_control::Op;
use uet_wire::Uet;

/// Number of steps that an excerpt of a trace keeps at either end.
const ENDS: usize = 150;

/// The trace of an instance: all packets, operations and checks in order. In JSON it is the text of
/// [`excerpt`](Self::excerpt).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ladder {
    /// The steps.
    pub entries: Vec<LadderStep>,
}

/// A step of a [`Ladder`].
#[derive(Clone, Debug, PartialEq)]
pub struct LadderStep {
    /// The time by the link's clock.
    pub at: Duration,
    /// The part of the rule that it belongs to.
    pub phase: Phase,
    /// The packet, operation, comparison or remark.
    pub entry: Entry,
}

/// The content of a [`LadderStep`].
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The suite sent this packet.
    Sent(Wire),
    /// The device sent this packet.
    Received(Wire),
    /// The suite requested this operation over the control channel.
    Called(Op),
    /// A comparison of the script.
    Observed(Box<Observation>),
    /// Another remark for readers.
    Note(String),
}

impl Ladder {
    /// Assigns a phase to the steps from this index on, except those of the arrangement.
    pub(crate) fn state(&mut self, from: usize, phase: Phase) {
        let steps = self.entries.iter_mut().skip(from);
        steps.filter(|step| step.phase != Phase::Arrange).for_each(|step| step.phase = phase);
    }

    /// Keeps the first steps only, and notes the number of removed ones.
    pub(crate) fn cut(&mut self, kept: usize) {
        let Some(gone) = self.entries.len().checked_sub(kept).filter(|gone| *gone > 0) else { return };
        self.entries.truncate(kept);
        let (at, phase) = self.entries.last().map(|last| (last.at, last.phase)).unwrap_or_default();
        let entry = Entry::Note(format!("{gone} more steps are not shown"));
        self.entries.push(LadderStep { at, phase, entry });
    }

    /// Returns the packets with their times. The first has number 1.
    pub fn packets(&self) -> impl Iterator<Item = (Duration, &Wire)> {
        self.entries.iter().filter_map(|step| match &step.entry {
            Entry::Sent(wire) | Entry::Received(wire) => Some((step.at, wire)),
            _ => None,
        })
    }

    /// Returns the packets that the device sent, with their numbers among all.
    pub fn of_the_device(&self) -> impl Iterator<Item = (usize, &Wire)> {
        let entries = self.entries.iter().map(|step| &step.entry);
        let packets = entries.filter(|entry| matches!(entry, Entry::Sent(_) | Entry::Received(_)));
        packets.zip(1..).filter_map(|(entry, number)| match entry {
            Entry::Received(wire) => Some((number, wire)),
            _ => None,
        })
    }
}

impl Ladder {
    /// Returns the text of the trace. A long one loses its middle, so that a report stays small.
    pub fn excerpt(&self) -> String {
        let text = self.to_string();
        let lines: Vec<&str> = text.lines().collect();
        match lines.len().checked_sub(2 * ENDS).filter(|gone| *gone > 0) {
            None => text,
            Some(gone) => {
                let (first, last) = (lines[..ENDS].join("\n"), lines[lines.len() - ENDS..].join("\n"));
                format!("{first}\n    {gone} steps are not shown; --traces writes all\n{last}\n")
            }
        }
    }
}

/// Writes one line per step: number of the packet, microseconds, direction, sentence. The suite is on the left.
impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = 0;
        let usual = self.packets().next().map(|(_, wire)| [wire.src, wire.dst]);
        for LadderStep { at, entry, .. } in &self.entries {
            let micros = at.as_nanos() / 1000;
            let (arrow, wire) = match entry {
                Entry::Sent(wire) => ("-->", wire),
                Entry::Received(wire) => ("<--", wire),
                Entry::Called(op) => {
                    writeln!(f, "    {micros:>10}      control: {}", called(op))?;
                    continue;
                }
                Entry::Observed(it) if it.held => {
                    writeln!(f, "    {micros:>10}      {}: {}", it.requirement, it.expectation())?;
                    continue;
                }
                Entry::Observed(it) => {
                    let (requirement, expected) = (&it.requirement, it.expectation());
                    writeln!(
                        f,
                        "    {micros:>10}  !!  {requirement}: expected {expected}, seen {}",
                        it.seen
                    )?;
                    continue;
                }
                Entry::Note(text) => {
                    writeln!(f, "    {micros:>10}      {text}")?;
                    continue;
                }
            };
            number += 1;
            let (sentence, around) = (sentence(wire), around(wire, usual));
            writeln!(f, "{number:>3} {micros:>10} {arrow}  {sentence}{around}")?;
        }
        Ok(())
    }
}

/// Describes a packet in one line, with the reason if it cannot be read.
pub(crate) fn sentence(wire: &Wire) -> String {
    match Uet::parse_lax(&wire.bytes) {
        (uet, None) => uet.to_string(),
        (uet, Some(error)) => format!("{uet} ({error})"),
    }
}

/// Maximum number of bytes of an operation's arguments in a trace.
const ARGUMENTS: usize = 160;

/// Formats the operation with its arguments: `configure {"parameters":{"max_ack_data_size":16}}`.
fn called(op: &Op) -> String {
    let Ok(Value::Object(mut arguments)) = serde_json::to_value(op) else { return String::new() };
    let name = arguments.remove("op").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    let mut text = serde_json::to_string(&arguments).unwrap_or_default();
    if let Some((cut, _)) = text.char_indices().nth(ARGUMENTS) {
        text.truncate(cut);
        text.push('…');
    }
    format!("{name} {text}")
}

/// Lists the arguments of an operation: `length 64, job 101`.
pub(crate) fn arguments(op: &Op) -> String {
    let Ok(Value::Object(mut arguments)) = serde_json::to_value(op) else { return String::new() };
    arguments.retain(|name, _| name != "op");
    let mut text = pairs(&arguments, " ");
    if let Some((cut, _)) = text.char_indices().nth(ARGUMENTS) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

fn pairs(arguments: &Map<String, Value>, between: &str) -> String {
    let said = |value: &Value| !value.is_null() && *value != Value::Bool(false);
    let pairs = arguments.iter().filter(|(_, value)| said(value)).map(|(name, value)| match value {
        Value::Object(inner) if name == "parameters" => pairs(inner, " = "),
        Value::Object(inner) => format!("{name} {{{}}}", pairs(inner, " ")),
        _ => format!("{name}{between}{}", word(value)),
    });
    pairs.collect::<Vec<_>>().join(", ")
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(word).collect::<Vec<_>>().join("+"),
        Value::Object(inner) => format!("{{{}}}", pairs(inner, " ")),
        other => other.to_string(),
    }
}

/// Describes unusual IP fields of a packet: a mark, a trim, or other addresses than those of the first packet.
pub(crate) fn around(wire: &Wire, usual: Option<[IpAddr; 2]>) -> String {
    let mut text = String::new();
    if wire.marked {
        text += " {CE}";
    }
    match wire.trimmed {
        Some(Trimmed::Fabric) => text += " {trimmed}",
        Some(Trimmed::LastHop) => text += " {trimmed at the last hop}",
        None => {}
    }
    if usual.is_some_and(|usual| !usual.contains(&wire.src) || !usual.contains(&wire.dst)) {
        text += &format!(" {{{} > {}}}", wire.src, wire.dst);
    }
    text
}

impl Serialize for Ladder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.excerpt())
    }
}
