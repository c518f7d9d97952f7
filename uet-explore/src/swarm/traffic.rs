//! Draws what the applications do: operations, receives, aborts, closes, crashes and new keys.

use super::plan::{Plan, micros, one_in, pick};
use core::time::Duration;
use fastrand::Rng;
use uet_model::{Mode, Time};

/// The kind of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    NoOp,
    Write,
    Read,
    /// Adds 1 to the counter of the target, and fetches the old value if true.
    Add(bool),
    Send,
    /// Sends this many bytes in the request; the target reads the rest.
    Rendezvous(u32),
    Deferrable,
    Datagram,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
    pub(crate) class: u8,
    pub(crate) context: u32,
    pub(crate) length: u32,
    /// The place of a write, read or rendezvous send in its region.
    pub(crate) offset: u64,
    pub(crate) tagged: bool,
    /// True if the request carries header data.
    pub(crate) named: bool,
    pub(crate) delivery_complete: bool,
}

impl Task {
    pub(crate) fn is_message(&self) -> bool {
        matches!(self.kind, Kind::Send | Kind::Rendezvous(_) | Kind::Deferrable)
    }
}

/// A step of an application or of its surroundings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Posts the task of this number.
    Post(usize),
    /// Posts a receive for the task of this number.
    Receive(usize),
    /// Aborts the task of this number.
    Abort(usize),
    /// Closes the context of the task of this number, at its initiator.
    Close(usize),
    /// The endpoint crashes and comes back without memory.
    Restart(usize),
    /// All members of the group learn the key of this round, but still send with the one before.
    Offer(usize, u32),
    /// The endpoint sends with the key of this round.
    Switch(usize, u32),
}

/// All steps of a run, in the order of time.
pub(crate) struct Traffic {
    pub(crate) tasks: Vec<Task>,
    pub(crate) steps: Vec<(Time, Step)>,
    /// The lengths of both writable regions of each endpoint, and of the region of its rendezvous sends.
    pub(crate) lengths: Vec<[u64; 3]>,
    pub(crate) outages: Vec<Outage>,
}

/// The time from a crash to the restart.
pub(crate) struct Outage {
    pub(crate) member: usize,
    pub(crate) from: Time,
    pub(crate) to: Time,
}

/// The counter that [`Kind::Add`] changes is at the start of the first region.
pub(crate) const COUNTER: usize = 8;
/// The length of the region that peers read.
pub(crate) const SOURCE: u64 = 1 << 17;
/// The longest message.
pub(crate) const LONGEST: u32 = 40_000;

impl Traffic {
    /// Draws this many operations for each endpoint.
    pub(crate) fn draw(rng: &mut Rng, plan: &Plan, start: Time, operations: usize) -> Self {
        let mut traffic = Traffic {
            tasks: Vec::new(),
            steps: Vec::new(),
            lengths: vec![[COUNTER as u64, 0, 0]; plan.members.len()],
            outages: Vec::new(),
        };
        let incast = one_in(rng, 4);
        for (from, member) in plan.members.iter().enumerate() {
            let peers = &plan.groups[member.group].members;
            let mtu = u32::from(member.config.pds.payload_mtu);
            let others: Vec<usize> = peers.iter().copied().filter(|peer| *peer != from).collect();
            for _ in 0..operations {
                let to =
                    if incast && peers[0] != from && !one_in(rng, 8) { peers[0] } else { pick(rng, &others) };
                // A few operations come after all faults.
                let at = start + plan.span.mul_f64(rng.f64() * 1.05);
                traffic.operation(rng, (from, to), mtu, at);
            }
        }
        if plan.crashes {
            traffic.crashes(rng, plan, start);
        }
        for (number, group) in plan.groups.iter().enumerate().filter(|(_, group)| group.domain.is_some()) {
            let rounds = rng.u32(0..=4);
            for round in 1..=rounds {
                let slot = plan.span / (rounds + 1);
                let offered = start + slot * round;
                traffic.steps.push((offered, Step::Offer(number, round)));
                for member in &group.members {
                    let at = offered + slot.mul_f64(0.9 * rng.f64());
                    traffic.steps.push((at, Step::Switch(*member, round)));
                }
            }
        }
        traffic.steps.sort_by_key(|(at, _)| *at);
        traffic
    }

    fn operation(&mut self, rng: &mut Rng, (from, to): (usize, usize), mtu: u32, at: Time) {
        let number = self.tasks.len();
        let mode = pick(
            rng,
            &[
                Mode::Rud,
                Mode::Rud,
                Mode::Rud,
                Mode::Rud,
                Mode::Rod,
                Mode::Rod,
                Mode::Rod,
                Mode::Rudi,
                Mode::Uud,
            ],
        );
        let mut length = match rng.u32(..20) {
            0..10 => rng.u32(1..=64),
            10..16 => rng.u32(1..=mtu),
            16..19 => rng.u32(1..=4 * mtu),
            _ => rng.u32(1..=LONGEST),
        }
        .min(LONGEST);
        let kind = match mode {
            Mode::Rudi => pick(rng, &[Kind::Write, Kind::Read, Kind::NoOp]),
            Mode::Uud => Kind::Datagram,
            _ => match rng.u32(..20) {
                0..5 => Kind::Write,
                5..8 => Kind::Read,
                8..10 => Kind::Add(true),
                10 => Kind::Add(false),
                11..15 => Kind::Send,
                15..17 => Kind::Rendezvous(0),
                17..19 => Kind::Deferrable,
                _ => Kind::NoOp,
            },
        };
        let mut task = Task {
            from,
            to,
            kind,
            mode,
            class: u8::from(one_in(rng, 5)),
            context: u32::from(one_in(rng, 5)),
            length,
            offset: 0,
            tagged: rng.bool(),
            named: rng.bool(),
            delivery_complete: one_in(rng, 8),
        };
        match kind {
            Kind::Write => task.offset = self.place(to, usize::from(mode == Mode::Rudi), length),
            Kind::Read => task.offset = rng.u64(..SOURCE - u64::from(length)),
            Kind::Rendezvous(_) => {
                length = length.max(8);
                task.offset = self.place(from, 2, length);
                task.kind = Kind::Rendezvous(if rng.bool() { length.min(mtu / 2) / 2 } else { 0 });
            }
            Kind::Send | Kind::Deferrable => length = length.max(8),
            Kind::Datagram => length = length.clamp(8, mtu),
            Kind::Add(_) => length = 8,
            Kind::NoOp => length = 0,
        }
        task.length = length;
        self.tasks.push(task);
        self.steps.push((at, Step::Post(number)));
        if task.is_message() || kind == Kind::Datagram && rng.bool() {
            // Some receives come before their message, some after it.
            let early = rng.bool();
            let receive =
                if early { Time(at.0.saturating_sub(rng.u64(..200_000))) } else { at + micros(rng, 0..=400) };
            self.steps.push((receive, Step::Receive(number)));
        }
        // An aborted read refuses its data, which the passive judge takes for a mistake.
        if one_in(rng, 100) && !matches!(kind, Kind::Read | Kind::Add(true) | Kind::Rendezvous(_)) {
            self.steps.push((at + micros(rng, 0..=100), Step::Abort(number)));
        }
        if one_in(rng, 30) {
            self.steps.push((at + micros(rng, 0..=100), Step::Close(number)));
        }
    }

    /// Reserves a place in a region of an endpoint.
    pub(crate) fn place(&mut self, member: usize, region: usize, length: u32) -> u64 {
        let end = &mut self.lengths[member][region];
        let offset = *end;
        *end += u64::from(length);
        offset
    }

    fn crashes(&mut self, rng: &mut Rng, plan: &Plan, start: Time) {
        for _ in 0..rng.usize(1..=3) {
            let member = rng.usize(..plan.members.len());
            let from = start + plan.span.mul_f64(rng.f64());
            let down = if rng.bool() { Duration::ZERO } else { micros(rng, 0..=5_000) };
            let to = (from + down).min(start + plan.span);
            self.steps.push((to, Step::Restart(member)));
            self.outages.push(Outage { member, from, to });
        }
    }
}
