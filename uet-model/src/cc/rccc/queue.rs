use crate::{PdcHandle, Time};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use uet_wire::Units24;

/// A source of packets: one of its contexts, in one traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreditSource {
    /// Where the packets come from.
    pub address: IpAddr,
    /// `ccc_id`.
    pub ccc_id: u8,
    /// The traffic class.
    pub class: u8,
}

/// What a destination knows of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// A PDC that its demand came by.
    pub(super) via: PdcHandle,
    /// The highest demand seen.
    pub(super) target: Units24,
    /// What was granted.
    pub(super) latest: Units24,
    /// How many were met before it, until it has been granted something.
    pub(super) newcomer: Option<u64>,
    /// When it was first heard of, and last.
    pub(super) met: Time,
    pub(super) heard: Time,
    /// Its place in line.
    place: QueuePosition,
    /// Its turn among those that have asked for an answer.
    owed: Option<u64>,
}

/// Where a source stands. The number is its turn: the lowest is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuePosition {
    line: Line,
    turn: u64,
}

/// The lines of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    /// Those that have demand.
    Active,
    /// Those that have none, and could get some ahead.
    Idle,
    /// Those that have got all that there is to get ahead.
    Full,
}

impl Known {
    /// How many units are wanted and not granted.
    pub(super) fn demand(&self) -> u32 {
        self.target.since(self.latest).unwrap_or(0)
    }

    /// How many units were granted and not asked for.
    pub(super) fn surplus(&self) -> u32 {
        self.latest.since(self.target).unwrap_or(0)
    }
}

/// The sources that a destination knows, in lines and by silence. Everything costs the logarithm of their number.
#[derive(Debug, Default)]
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

    /// A source that was not known, or is to be known anew, in the idle line.
    pub(super) fn meet(&mut self, now: Time, source: CreditSource, via: PdcHandle, latest: Units24) {
        self.forget(&source);
        let place = self.last_of(Line::Idle);
        let newcomer = Some(self.met);
        self.met += 1;
        let known = Known { via, target: latest, latest, newcomer, met: now, heard: now, place, owed: None };
        self.lines.insert(place, source);
        self.by_silence.insert((now, source));
        self.known.insert(source, known);
    }

    /// A source was heard of.
    pub(super) fn hear(&mut self, now: Time, source: &CreditSource, via: PdcHandle) {
        if let Some(known) = self.known.get_mut(source) {
            self.by_silence.remove(&(known.heard, *source));
            self.by_silence.insert((now, *source));
            known.heard = now;
            known.via = via;
        }
    }

    /// Puts a source at the end of a line, where it does not stand there already.
    pub(super) fn queue_up(&mut self, source: &CreditSource, line: Line) {
        if self.known.get(source).is_some_and(|known| known.place.line != line) {
            self.queue(source, line);
        }
    }

    /// Puts a source at the end of a line.
    pub(super) fn queue(&mut self, source: &CreditSource, line: Line) {
        let place = self.last_of(line);
        if let Some(known) = self.known.get_mut(source) {
            self.lines.remove(&known.place);
            known.place = place;
            self.lines.insert(place, *source);
        }
    }

    /// A source is owed an answer.
    pub(super) fn owe(&mut self, source: &CreditSource) {
        let turn = self.turn();
        if let Some(known) = self.known.get_mut(source).filter(|known| known.owed.is_none()) {
            known.owed = Some(turn);
            self.owed.insert(turn, *source);
        }
    }

    /// The source that has been owed an answer for longest.
    pub(super) fn first_owed(&self) -> Option<CreditSource> {
        self.owed.first_key_value().map(|(_, source)| *source)
    }

    /// A source is owed no answer any more.
    pub(super) fn answered(&mut self, source: &CreditSource) {
        if let Some(turn) = self.known.get_mut(source).and_then(|known| known.owed.take()) {
            self.owed.remove(&turn);
        }
    }

    /// The first of a line.
    pub(super) fn first(&self, line: Line) -> Option<CreditSource> {
        self.line(line).next()
    }

    /// A line, from its start on.
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

    /// The source that has been silent for longest, and since when.
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
