use crate::{PdcHandle, Time};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use uet_wire::Units24;

/// A source of packets: one of its contexts, in one traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreditSource {
    /// The source address.
    pub address: IpAddr,
    /// The number of the context (`ccc_id`).
    pub ccc_id: u8,
    /// The traffic class.
    pub class: u8,
}

/// The state of a source at the destination.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct Known {
    /// The PDC of its demand.
    pub(super) via: PdcHandle,
    /// The highest demand seen.
    pub(super) target: Units24,
    /// The cumulative grant.
    pub(super) latest: Units24,
    /// The number of grants until its next packet; `None` for no limit.
    pub(super) grants_left: Option<u8>,
    /// The number of sources known before it, until its first grant.
    pub(super) newcomer: Option<u64>,
    /// The times of its first and last packet.
    pub(super) met: Time,
    pub(super) heard: Time,
    /// Its position in line.
    place: QueuePosition,
    /// Its turn among the sources that wait for a reply.
    owed: Option<u64>,
}

/// The position of a source: its line and its turn. The lowest is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "explore", derive(Hash))]
struct QueuePosition {
    line: Line,
    turn: u64,
}

/// The lines of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum Line {
    /// Sources with demand.
    Active,
    /// Sources without demand that may get credit ahead.
    Idle,
    /// Sources that get no more: they hold their maximum credit, or have no grants left.
    Full,
}

impl Known {
    /// Returns the units requested and not granted.
    pub(super) fn demand(&self) -> u32 {
        self.target.since(self.latest).unwrap_or(0)
    }

    /// Returns the units granted and not requested.
    pub(super) fn surplus(&self) -> u32 {
        self.latest.since(self.target).unwrap_or(0)
    }
}

/// The known sources, by line and by silence. Each operation takes logarithmic time.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Sources {
    known: BTreeMap<CreditSource, Known>,
    lines: BTreeMap<QueuePosition, CreditSource>,
    by_silence: BTreeSet<(Time, CreditSource)>,
    owed: BTreeMap<u64, CreditSource>,
    turns: u64,
    met: u64,
}

impl Sources {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn get(&self, source: &CreditSource) -> Option<&Known> {
        self.known.get(source)
    }

    pub(super) fn get_mut(&mut self, source: &CreditSource) -> Option<&mut Known> {
        self.known.get_mut(source)
    }

    /// Adds or resets a source, in the idle line.
    pub(super) fn meet(&mut self, now: Time, source: CreditSource, via: PdcHandle, latest: Units24) {
        self.forget(&source);
        let place = self.last_of(Line::Idle);
        let newcomer = Some(self.met);
        self.met += 1;
        let known = Known {
            via,
            target: latest,
            latest,
            grants_left: None,
            newcomer,
            met: now,
            heard: now,
            place,
            owed: None,
        };
        self.lines.insert(place, source);
        self.by_silence.insert((now, source));
        self.known.insert(source, known);
    }

    /// Records a packet of a source.
    pub(super) fn hear(&mut self, now: Time, source: &CreditSource, via: PdcHandle) {
        if let Some(known) = self.known.get_mut(source) {
            self.by_silence.remove(&(known.heard, *source));
            self.by_silence.insert((now, *source));
            known.heard = now;
            known.via = via;
        }
    }

    /// Moves a source to the end of a line, unless it is in that line.
    pub(super) fn queue_up(&mut self, source: &CreditSource, line: Line) {
        if self.known.get(source).is_some_and(|known| known.place.line != line) {
            self.queue(source, line);
        }
    }

    /// Moves a source to the end of a line.
    pub(super) fn queue(&mut self, source: &CreditSource, line: Line) {
        let place = self.last_of(line);
        if let Some(known) = self.known.get_mut(source) {
            self.lines.remove(&known.place);
            known.place = place;
            self.lines.insert(place, *source);
        }
    }

    /// Records that a source waits for a reply.
    pub(super) fn owe(&mut self, source: &CreditSource) {
        let turn = self.turn();
        if let Some(known) = self.known.get_mut(source).filter(|known| known.owed.is_none()) {
            known.owed = Some(turn);
            self.owed.insert(turn, *source);
        }
    }

    /// Returns the source that has waited longest for a reply.
    pub(super) fn first_owed(&self) -> Option<CreditSource> {
        self.owed.first_key_value().map(|(_, source)| *source)
    }

    /// Records that a source got its reply.
    pub(super) fn answered(&mut self, source: &CreditSource) {
        if let Some(turn) = self.known.get_mut(source).and_then(|known| known.owed.take()) {
            self.owed.remove(&turn);
        }
    }

    /// Returns the first of a line.
    pub(super) fn first(&self, line: Line) -> Option<CreditSource> {
        self.line(line).next()
    }

    /// Returns a line from its start.
    pub(super) fn line(&self, line: Line) -> impl Iterator<Item = CreditSource> {
        let from = QueuePosition { line, turn: 0 };
        let to = QueuePosition { line, turn: u64::MAX };
        self.lines.range(from..=to).map(|(_, source)| *source)
    }

    pub(super) fn forget(&mut self, source: &CreditSource) {
        self.answered(source);
        if let Some(known) = self.known.remove(source) {
            self.lines.remove(&known.place);
            self.by_silence.remove(&(known.heard, *source));
        }
    }

    /// Returns the source that has been silent longest, and the time since then.
    pub(super) fn most_silent(&self) -> Option<(Time, CreditSource)> {
        self.by_silence.first().copied()
    }

    fn last_of(&mut self, line: Line) -> QueuePosition {
        QueuePosition { line, turn: self.turn() }
    }

    fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }
}
