//! Fuzzing scripts as data: generated, saved, minimized and replayed.

use core::time::Duration;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
pub use uet_conformance::Edit;
use uet_control::Hex;

/// Maximum length of a message, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// Maximum number of a packet of a message.
const MAX_PART: u64 = 1 << 16;

/// Maximum pause, in microseconds.
const MAX_WAIT: u64 = 10_000_000;

/// Maximum number of contexts.
const MAX_CONTEXTS: usize = 4096;

/// Maximum number of steps.
const MAX_STEPS: usize = 1 << 16;

/// Contexts, and steps on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Contexts that the fuzzer opens; steps refer to them by index.
    #[serde(deserialize_with = "contexts")]
    pub contexts: Vec<Context>,
    /// Steps, in order.
    #[serde(deserialize_with = "steps")]
    pub steps: Vec<Step>,
}

/// A context that the fuzzer opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// The fuzzer's PDCID.
    pub pdcid: u16,
    /// The first PSN.
    pub start: u32,
    /// True for a ROD context.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rod: bool,
}

/// An act and the changes of its packet before it leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Step {
    /// The unchanged, valid act.
    #[serde(flatten)]
    pub act: Act,
    /// Changes of the packet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

impl TryFrom<Map<String, Value>> for Step {
    type Error = serde_json::Error;

    /// Reads a step. All fields but `edits` belong to the act, which knows no others.
    fn try_from(mut fields: Map<String, Value>) -> Result<Self, Self::Error> {
        let edits = match fields.remove("edits") {
            Some(edits) => Vec::<Map<String, Value>>::deserialize(edits)?,
            None => Vec::new(),
        };
        Ok(Step {
            act: tagged("act", fields)?,
            edits: edits.into_iter().map(|edit| tagged("edit", edit)).collect::<Result<_, _>>()?,
        })
    }
}

impl From<Act> for Step {
    fn from(act: Act) -> Self {
        Step { act, edits: Vec::new() }
    }
}

/// Reads an act or an edit. Serde would also take the position of a name in the list, and unknown fields of an act or edit
/// that has no fields.
fn tagged<T: DeserializeOwned>(tag: &str, fields: Map<String, Value>) -> Result<T, serde_json::Error> {
    if fields.get(tag).is_some_and(|name| !name.is_string()) {
        return Err(serde_json::Error::custom(format!("`{tag}` is not a string")));
    }
    let bare = fields.get(tag).is_some_and(|name| BARE.iter().any(|bare| name == bare));
    if let Some(unknown) = fields.keys().find(|field| bare && *field != tag) {
        return Err(serde_json::Error::custom(format!("unknown field `{unknown}`")));
    }
    serde_json::from_value(Value::Object(fields))
}

/// The acts and edits that have no fields.
const BARE: [&str; 3] = ["answer", "twice", "mark"];

/// An act of an endpoint. Numbers that the device chooses are inserted during play.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// A packet of a message, as the `n`-th request of a context.
    Request {
        /// The context.
        context: usize,
        /// Offset of its PSN from the first.
        n: u32,
        /// The message.
        message: Message,
        /// Index of its packet.
        #[serde(default, skip_serializing_if = "is_default", deserialize_with = "part")]
        part: usize,
        /// True for a retransmission.
        #[serde(default, skip_serializing_if = "is_default")]
        retx: bool,
    },
    /// A control packet, by its code point.
    Control {
        /// The context.
        context: usize,
        /// Offset of its PSN from the first.
        n: u32,
        /// `pds.ctl_type`.
        kind: u8,
    },
    /// A message of one packet without a context.
    Lone {
        /// The message.
        message: Message,
        /// RUDI if true, otherwise UUD.
        rudi: bool,
    },
    /// The device posts an operation as an initiator, named as in the control channel.
    Post {
        /// Kind of operation.
        kind: String,
        /// Length in bytes.
        #[serde(deserialize_with = "length")]
        length: u64,
        /// True to use a ROD context.
        #[serde(default, skip_serializing_if = "is_default")]
        rod: bool,
    },
    /// ACKs for all unanswered requests of the device.
    Answer,
    /// A NACK with this code for the oldest unanswered request.
    Refuse {
        /// `pds.nack_code`.
        code: u8,
    },
    /// A recorded packet. PDCIDs that the device chose then are replaced by its current ones.
    Recorded {
        /// The bytes, from the first of UET.
        bytes: Hex,
    },
    /// Arbitrary bytes.
    Raw {
        /// The bytes.
        bytes: Hex,
    },
    /// A pause.
    Wait {
        /// Microseconds.
        #[serde(deserialize_with = "wait")]
        us: u32,
    },
}

/// A message to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Kind of message.
    pub kind: Kind,
    /// Its length.
    #[serde(deserialize_with = "length")]
    pub length: u32,
    /// Offset in memory.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: u64,
}

/// Kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Write into memory.
    Write,
    /// Write into read-only memory.
    WriteWitness,
    /// Read memory.
    Read,
    /// Read from read-only memory.
    ReadWitness,
    /// Add to memory.
    Add,
    /// Swap in memory.
    Swap,
    /// Send.
    Send,
    /// Send with match bits.
    Tagged,
    /// Rendezvous send, mostly to be read.
    Rendezvous,
    /// A request without semantics.
    Nothing,
}

impl Script {
    /// Concatenates scripts.
    pub fn joined<'a>(scripts: impl IntoIterator<Item = &'a Script>) -> Script {
        let mut all = Script::default();
        for script in scripts {
            let first = all.contexts.len();
            all.contexts.extend(&script.contexts);
            all.steps.extend(script.steps.iter().cloned().map(|mut step| {
                if let Act::Request { context, .. } | Act::Control { context, .. } = &mut step.act {
                    *context += first;
                }
                step
            }));
        }
        all
    }

    /// Returns whether the device posts operations to the fuzzer.
    pub fn posts(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.act, Act::Post { .. }))
    }

    /// Returns a summary of acts and changed fields. Findings with equal summaries count as one.
    pub fn outline(&self) -> String {
        let of_step = |step: &Step| {
            let act = serde_json::to_value(&step.act).unwrap_or_default();
            let word =
                |key: &str| act.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
            let message =
                act.get("message").and_then(|message| message.get("kind")).cloned().unwrap_or_default();
            let edits = step.edits.iter().map(|edit| match edit {
                Edit::Set { header, field, .. } | Edit::Add { header, field, .. } => {
                    format!(" {header}:{field}")
                }
                Edit::Flip { .. } => " flip".into(),
                Edit::Cut { .. } => " cut".into(),
                Edit::Grow { .. } => " grow".into(),
                Edit::Twice => " twice".into(),
                Edit::Mark => " mark".into(),
            });
            let act = [word("act"), word("kind"), message.as_str().unwrap_or_default().into()];
            act.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
                + &edits.collect::<String>()
        };
        self.steps.iter().map(of_step).collect::<Vec<_>>().join(", ")
    }
}

impl Act {
    /// Returns the total of its pauses.
    pub fn pause(&self) -> Duration {
        match self {
            Act::Wait { us } => Duration::from_micros((*us).into()),
            _ => Duration::ZERO,
        }
    }
}

/// Reads a number of at most `limit`.
fn at_most<'de, D: Deserializer<'de>, T: TryFrom<u64>>(
    from: D,
    (name, limit): (&str, u64),
) -> Result<T, D::Error> {
    let number = u64::deserialize(from)?;
    let fits = Some(number).filter(|number| *number <= limit).and_then(|number| T::try_from(number).ok());
    fits.ok_or_else(|| D::Error::custom(format!("`{name}` is {number}, above the limit of {limit}")))
}

fn length<'de, D: Deserializer<'de>, T: TryFrom<u64>>(from: D) -> Result<T, D::Error> {
    at_most(from, ("length", MAX_LENGTH))
}

fn part<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    at_most(from, ("part", MAX_PART))
}

fn wait<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    at_most(from, ("us", MAX_WAIT))
}

/// Reads a list of at most `limit` entries.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    (name, limit): (&str, usize),
) -> Result<Vec<T>, D::Error> {
    let all = Vec::deserialize(from)?;
    match all.len() <= limit {
        true => Ok(all),
        false => Err(D::Error::custom(format!("{} {name}, above the limit of {limit}", all.len()))),
    }
}

fn contexts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Context>, D::Error> {
    list(from, ("contexts", MAX_CONTEXTS))
}

/// Reads the steps. An error names the step, because the line in it is that of the next step.
fn steps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Step>, D::Error> {
    let steps: Vec<Map<String, Value>> = list(from, ("steps", MAX_STEPS))?;
    let read = |(index, fields)| {
        Step::try_from(fields).map_err(|error| D::Error::custom(format!("step {}: {error}", index + 1)))
    };
    steps.into_iter().enumerate().map(read).collect()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(step: &str) -> Result<Script, String> {
        let text = format!("{{\"contexts\": [],\n\"steps\": [\n{step}\n]}}");
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_above_a_limit_are_refused_with_line_and_limit() {
        let message = |length: u64| {
            format!(r#"{{"act":"lone","rudi":true,"message":{{"kind":"write","length":{length}}}}}"#)
        };
        assert!(read(&message(MAX_LENGTH)).is_ok());
        for (step, wanted) in [
            (message(1 << 31), "`length` is 2147483648, above the limit of 1048576"),
            (
                format!(r#"{{"act":"post","kind":"write","length":{}}}"#, u64::MAX),
                "`length` is 18446744073709551615, above the limit of 1048576",
            ),
            (
                r#"{"act":"request","context":0,"n":0,"part":65537,"message":{"kind":"read","length":1}}"#
                    .into(),
                "`part` is 65537, above the limit of 65536",
            ),
            (r#"{"act":"wait","us":10000001}"#.into(), "`us` is 10000001, above the limit of 10000000"),
            (r#"{"act":"answer","often":1}"#.into(), "unknown field `often`"),
            (r#"{"act":"answer","edits":[{"edit":"twice","often":1}]}"#.into(), "unknown field `often`"),
            (r#"{"act":5}"#.into(), "`act` is not a string"),
            (r#"{"act":"answer","edits":[{"edit":1}]}"#.into(), "`edit` is not a string"),
        ] {
            let error = read(&step).expect_err(&step);
            assert!(
                error.contains(wanted) && error.contains("step 1: ") && error.contains("line"),
                "{step}: {error}"
            );
        }
        let many = vec![r#"{"act":"answer"}"#; MAX_STEPS + 1].join(",");
        assert!(read(&many).unwrap_err().contains("65537 steps, above the limit of 65536"));
    }
}
