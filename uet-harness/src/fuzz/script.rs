//! What the fuzzer does to a device, as data: to be drawn by chance, written down, cut down and played again.

use core::time::Duration;
use serde::{Deserialize, Serialize};
use uet_control::Hex;

/// Contexts, and steps on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The contexts that the fuzzer opens, by the numbers that steps have for them.
    pub contexts: Vec<Context>,
    /// What happens, in this order.
    pub steps: Vec<Step>,
}

/// A context that the fuzzer opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The fuzzer's PDCID.
    pub pdcid: u16,
    /// The first PSN.
    pub start: u32,
    /// Whether it is ordered.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rod: bool,
}

/// Something that happens, and how the packet is changed before it leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What would be done by an endpoint that does as it should.
    #[serde(flatten)]
    pub act: Act,
    /// What is done to the packet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

impl From<Act> for Step {
    fn from(act: Act) -> Self {
        Step { act, edits: Vec::new() }
    }
}

/// What an endpoint does. Numbers that the device chooses are put in when it is played.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// A packet of a message, as the `n`-th request of a context.
    Request {
        /// The context.
        context: usize,
        /// Its PSN, from the first.
        n: u32,
        /// The message.
        message: Message,
        /// Which of its packets.
        #[serde(default, skip_serializing_if = "is_default")]
        part: usize,
        /// As a retransmission.
        #[serde(default, skip_serializing_if = "is_default")]
        retx: bool,
    },
    /// A control packet, by its code point.
    Control {
        /// The context.
        context: usize,
        /// Its PSN, from the first.
        n: u32,
        /// `pds.ctl_type`.
        kind: u8,
    },
    /// A message of one packet without a context.
    Lone {
        /// The message.
        message: Message,
        /// Idempotent, or unreliable.
        rudi: bool,
    },
    /// The device is told to do something as an initiator, by the name that the control channel has for it.
    Post {
        /// What.
        kind: String,
        /// How many bytes.
        length: u64,
        /// Ordered.
        #[serde(default, skip_serializing_if = "is_default")]
        rod: bool,
    },
    /// ACKs for all that the device has asked and that has no answer.
    Answer,
    /// A NACK with this code for the oldest of that.
    Refuse {
        /// `pds.nack_code`.
        code: u8,
    },
    /// A recorded packet. Numbers that the device has chosen then are replaced by those that it has chosen now.
    Recorded {
        /// The bytes, from the first of UET.
        bytes: Hex,
    },
    /// Any bytes.
    Raw {
        /// The bytes.
        bytes: Hex,
    },
    /// Time passes.
    Wait {
        /// Microseconds.
        us: u32,
    },
}

/// A message to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// Its length.
    pub length: u32,
    /// Where in memory.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: u64,
}

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Write into memory.
    Write,
    /// The same, of memory that may only be read.
    WriteWitness,
    /// Read memory.
    Read,
    /// The same, of memory that may only be read.
    ReadWitness,
    /// Add to memory.
    Add,
    /// Swap in memory.
    Swap,
    /// Send.
    Send,
    /// Send with match bits.
    Tagged,
    /// Send, of which most is to be read.
    Rendezvous,
    /// Nothing: a request without semantics.
    Nothing,
}

/// What is done to a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum Edit {
    /// A field takes this value.
    Set {
        /// The header, by the name of its layout.
        header: String,
        /// The field, by its key.
        field: String,
        /// The value: up to 128 bits, as hexadecimal digits.
        value: String,
    },
    /// A field takes the value that is so far from its own.
    Add {
        /// The header.
        header: String,
        /// The field.
        field: String,
        /// How far.
        by: i64,
    },
    /// A bit changes.
    Flip {
        /// Counted from the first of UET.
        bit: usize,
    },
    /// The end is taken off.
    Cut {
        /// How many bytes are left.
        left: usize,
    },
    /// Bytes come behind.
    Grow {
        /// The bytes.
        bytes: Hex,
    },
    /// It is sent twice.
    Twice,
    /// It arrives marked by congestion.
    Mark,
}

impl Script {
    /// One after the other.
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

    /// Whether the fuzzer is the target of something.
    pub fn posts(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.act, Act::Post { .. }))
    }

    /// Who says the same: which acts, and which fields are changed. Two findings with the same are taken for one.
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
    /// How long it takes.
    pub fn pause(&self) -> Duration {
        match self {
            Act::Wait { us } => Duration::from_micros((*us).into()),
            _ => Duration::ZERO,
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
