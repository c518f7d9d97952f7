//! Coverage of conversations: states of contexts, and the events in them.

use super::step::{ControlKind, Hostile, Rekey, StrangerKind};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use uet_control::PostKind;
use uet_wire::registry::CtlType;

/// The state of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum State {
    /// Nothing has been sent.
    New,
    /// No answer has come.
    Opening,
    /// It is open.
    Open,
    /// Its CLOSE_COMMAND has no answer.
    Closing,
    /// It is closed.
    Closed,
    /// It has ended otherwise.
    Dead,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Message(PostKind),
    Post(PostKind),
    Control(ControlKind),
    Other(CtlType),
    Ask(ControlKind),
    Stranger(StrangerKind),
    Hostile(Hostile),
    Rekey(Rekey),
    Receive,
    Completion,
    CloseByDevice,
    RequestClose,
    Abort,
    Repeat,
    Timeout,
    Request,
    Data,
    Ack,
    Nack,
    Datagram,
    Rudi,
    RudiRequest,
    RudiResponse,
}

impl Event {
    pub(super) fn message(kind: PostKind) -> Self {
        Event::Message(kind)
    }

    pub(super) fn control(kind: CtlType) -> Self {
        Event::Other(kind)
    }

    fn name(self) -> String {
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let of = |kind: &dyn Fn() -> serde_json::Result<serde_json::Value>| word(kind().unwrap_or_default());
        match self {
            Event::Message(kind) => of(&|| serde_json::to_value(kind)),
            Event::Post(kind) => format!("device posts {}", of(&|| serde_json::to_value(kind))),
            Event::Control(kind) => of(&|| serde_json::to_value(kind)),
            Event::Other(kind) => kind.to_string().to_lowercase(),
            Event::Ask(kind) => format!("asks {}", of(&|| serde_json::to_value(kind))),
            Event::Stranger(kind) => format!("stranger {}", of(&|| serde_json::to_value(kind))),
            Event::Hostile(kind) => format!("hostile {}", of(&|| serde_json::to_value(kind))),
            Event::Rekey(change) => format!("rekey {}", of(&|| serde_json::to_value(change))),
            Event::RudiRequest => "rudi request".into(),
            Event::RudiResponse => "rudi response".into(),
            Event::CloseByDevice => "device closes".into(),
            Event::RequestClose => "device asks for a close".into(),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

/// How often each event has happened in each state of a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<(u32, u8), (State2, u64)>,
    /// Number of operations: messages, posts and control packets.
    pub operations: u64,
}

/// A state and an event, to be named later.
type State2 = (Option<State>, EventKey);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EventKey(Event);

impl Coverage {
    fn key(event: Event) -> u32 {
        let (kind, detail) = match event {
            Event::Message(kind) => (0, kind as u32),
            Event::Post(kind) => (1, kind as u32),
            Event::Control(kind) => (2, kind as u32),
            Event::Other(kind) => (3, u32::from(kind.code())),
            Event::Ask(kind) => (4, kind as u32),
            Event::Stranger(kind) => (5, kind as u32),
            Event::Receive => (6, 0),
            Event::Completion => (7, 0),
            Event::CloseByDevice => (8, 0),
            Event::Abort => (9, 0),
            Event::Repeat => (10, 0),
            Event::Timeout => (11, 0),
            Event::Request => (12, 0),
            Event::Data => (13, 0),
            Event::Ack => (14, 0),
            Event::Nack => (15, 0),
            Event::Datagram => (16, 0),
            Event::Rudi => (17, 0),
            Event::RudiRequest => (18, 0),
            Event::RudiResponse => (19, 0),
            Event::Hostile(kind) => (20, kind as u32),
            Event::Rekey(change) => (21, change as u32),
            Event::RequestClose => (22, 0),
        };
        kind << 8 | detail
    }

    fn add(&mut self, state: Option<State>, event: Event) {
        let place = (Self::key(event), state.map_or(0, |state| state as u8 + 1));
        self.counts.entry(place).or_insert(((state, EventKey(event)), 0)).1 += 1;
        let operation = matches!(
            event,
            Event::Message(_) | Event::Post(_) | Event::Control(_) | Event::Ask(_) | Event::Other(_)
        );
        self.operations += u64::from(operation || matches!(event, Event::Datagram | Event::Rudi));
    }

    pub(super) fn seen(&mut self, state: State, event: Event) {
        self.add(Some(state), event);
    }

    pub(super) fn operation(&mut self, event: Event) {
        self.add(None, event);
    }

    /// Adds the counts of another conversation.
    pub(super) fn merge(&mut self, other: Coverage) {
        for (place, (named, count)) in other.counts {
            self.counts.entry(place).or_insert((named, 0)).1 += count;
        }
        self.operations += other.operations;
    }

    pub(super) fn count(&self, state: Option<State>, event: Event) -> u64 {
        let place = (Self::key(event), state.map_or(0, |state| state as u8 + 1));
        self.counts.get(&place).map_or(0, |(_, count)| *count)
    }

    /// Returns the events with their counts by state, in the order of the table.
    pub fn rows(&self) -> Vec<(String, [u64; 7])> {
        let mut rows: BTreeMap<u32, (String, [u64; 7])> = BTreeMap::new();
        for ((key, state), ((_, EventKey(event)), count)) in &self.counts {
            let row = rows.entry(*key).or_insert_with(|| (event.name(), [0; 7]));
            row.1[usize::from(*state)] += count;
        }
        rows.into_values().collect()
    }

    /// The names of the columns of [`rows`](Self::rows).
    pub const STATES: [&'static str; 7] =
        ["no context", "new", "opening", "open", "closing", "closed", "ended"];
}

impl Serialize for Coverage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = |(name, counts): (String, [u64; 7])| {
            let counts: BTreeMap<&str, u64> =
                Self::STATES.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect();
            (name, counts)
        };
        let rows: BTreeMap<String, BTreeMap<&str, u64>> = self.rows().into_iter().map(row).collect();
        serializer.collect_map(rows)
    }
}

/// Figures of a run of random conversations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Number of conversations.
    pub conversations: u64,
    /// Number of operations: messages, posts and control packets.
    pub operations: u64,
    /// Duration of the run, in seconds.
    pub seconds: f64,
    /// Number of conversations that led nowhere, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub open: BTreeMap<String, u64>,
    /// Events that they have met, by state of the context.
    pub coverage: Coverage,
}
