//! A port: three queues, and the link that they feed (section 3.6.17).

use crate::outcome::Depth;
use crate::packet::Flying;
use crate::scenario::{Ecn, Scenario};
use crate::time::Picos;
use fastrand::Rng;
use std::collections::VecDeque;
use uet_model::Priority;

/// The queue parameters of all ports, in bytes.
#[derive(Debug)]
pub(crate) struct Discipline {
    /// The depths at which marking begins, and at which it is certain.
    mark: Option<(f64, f64)>,
    /// The depths at which requests and retransmissions are trimmed or dropped.
    room: [u64; 2],
    pub(crate) trimming: bool,
    control_room: u64,
    weighted: bool,
    /// True if the last hop marks. With receiver credit it does not: marks would slow sources that the receiver already
    /// paces.
    marks_last_hop: bool,
}

impl Discipline {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let switching = &scenario.switching;
        let bytes = |depth: f64| (depth * scenario.plane_bdp()) as u64;
        let mark = match switching.ecn {
            Ecn::Off => None,
            Ecn::Ramp(from, to) => Some((from, to)),
            Ecn::Threshold(at) => Some((at, at)),
        };
        let room = match switching.trimming {
            true => [switching.trim_at, switching.trim_again_at.unwrap_or(switching.trim_at)],
            false => [switching.drop_at; 2],
        };
        Discipline {
            mark: mark.map(|(from, to)| (from * scenario.plane_bdp(), to * scenario.plane_bdp())),
            room: room.map(bytes),
            trimming: switching.trimming,
            control_room: bytes(switching.drop_control_at),
            weighted: switching.weighted,
            marks_last_hop: !scenario.congestion.control.grants_credit(),
        }
    }

    /// Returns true if a packet that leaves `behind` bytes in the queue is marked.
    fn marks(&self, behind: u64, rng: &mut Rng) -> bool {
        let Some((from, to)) = self.mark else { return false };
        let behind = behind as f64;
        behind >= to || behind > from && rng.f64() < (behind - from) / (to - from)
    }
}

/// The waiting packets of one priority.
#[derive(Debug, Default)]
struct Line {
    packets: VecDeque<Flying>,
    /// The sum of their sizes.
    bytes: u64,
}

/// A port with a random stream of its own: the same seed marks the same packets here, whatever other ports do.
#[derive(Debug)]
pub(crate) struct Port {
    rng: Rng,
    lines: Box<[Line; 3]>,
    /// The number of waiting packets.
    waiting: u32,
    /// The time until which the link is busy.
    pub(crate) busy_until: Picos,
    /// The percentage of its rate that the link has; 0 if it is down.
    pub(crate) percent: u8,
    /// With weights: the number of trimmed packets that may leave before a whole one.
    turns: u8,
    /// The depth that requests met here.
    pub(crate) depth: Depth,
}

/// Most packets pass without waiting. They need one cache line of their port.
const _: () = assert!(size_of::<Port>() <= 64);

impl Port {
    pub(crate) fn new(rng: Rng) -> Self {
        Port {
            rng,
            lines: Default::default(),
            waiting: 0,
            busy_until: 0,
            percent: 100,
            turns: 0,
            depth: Depth::default(),
        }
    }

    /// Returns the waiting bytes of requests.
    pub(crate) fn depth(&self) -> u64 {
        self.line(Priority::Low).bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    fn line(&self, priority: Priority) -> &Line {
        &self.lines[priority as usize]
    }

    /// Counts a packet that finds the port idle, and so leaves at once.
    pub(crate) fn pass(&mut self, flying: &Flying) {
        if flying.priority == Priority::Low {
            self.depth.most = self.depth.most.max(flying.size.into());
            self.depth.met(0);
        }
    }

    /// Enqueues a packet. Returns false if its queue has no room for it.
    pub(crate) fn admit(&mut self, discipline: &Discipline, flying: &Flying) -> bool {
        let Flying { priority, size, again, .. } = *flying;
        let line = &mut self.lines[priority as usize];
        let room = match priority {
            Priority::Low => discipline.room[usize::from(again)],
            Priority::Medium | Priority::High => discipline.control_room,
        };
        // A queue accepts one packet, however small its limit.
        if line.bytes > 0 && line.bytes + u64::from(size) > room {
            return false;
        }
        line.bytes += u64::from(size);
        line.packets.push_back(*flying);
        self.waiting += 1;
        if priority == Priority::Low {
            self.depth.most = self.depth.most.max(line.bytes);
        }
        true
    }

    /// Removes and returns the next packet to send, with true if it is to be marked.
    pub(crate) fn leave(&mut self, discipline: &Discipline, last_hop: bool) -> Option<(Flying, bool)> {
        let priority = self.turn(discipline.weighted)?;
        let line = &mut self.lines[priority as usize];
        let flying = line.packets.pop_front()?;
        line.bytes -= u64::from(flying.size);
        self.waiting -= 1;
        let behind = line.bytes;
        if priority != Priority::Low {
            return Some((flying, false));
        }
        self.depth.met(behind);
        let marked = (discipline.marks_last_hop || !last_hop) && discipline.marks(behind, &mut self.rng);
        Some((flying, marked))
    }

    /// Returns the priority that is served next.
    fn turn(&mut self, weighted: bool) -> Option<Priority> {
        const TRIMMED_BEFORE_A_WHOLE_ONE: u8 = 3;
        let waits = |priority: Priority| !self.lines[priority as usize].packets.is_empty();
        let (low, medium) = (waits(Priority::Low), waits(Priority::Medium));
        if waits(Priority::High) {
            return Some(Priority::High);
        }
        if weighted && low && medium {
            self.turns += 1;
            if self.turns > TRIMMED_BEFORE_A_WHOLE_ONE {
                self.turns = 0;
                return Some(Priority::Low);
            }
            return Some(Priority::Medium);
        }
        match (medium, low) {
            (true, _) => Some(Priority::Medium),
            (false, true) => Some(Priority::Low),
            (false, false) => None,
        }
    }
}
