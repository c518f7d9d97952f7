//! Draws what the applications do: operations, receives, aborts, closes, crashes and new keys.

use super::plan::{Plan, micros};
use core::time::Duration;
use fastrand::Rng;
use uet_conformance::draw::{self, Menu, PostKind, Source};
use uet_model::{Mode, Time};

/// The operations of the applications. All atomics are additions of 1 to the counter of the target.
const KINDS: [PostKind; 23] = {
    use PostKind::*;
    [
        Write,
        Write,
        Write,
        Write,
        Write,
        Read,
        Read,
        Read,
        FetchAtomic,
        FetchAtomic,
        Atomic,
        Send,
        Send,
        Tsend,
        Tsend,
        RendezvousSend,
        RendezvousTsend,
        DeferrableSend,
        DeferrableTsend,
        NoOp,
        Datagram,
        Datagram,
        Datagram,
    ]
};

const MODES: [draw::Mode; 9] = {
    use draw::Mode::*;
    [Rud, Rud, Rud, Rud, Rod, Rod, Rod, Rudi, Uud]
};

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) kind: PostKind,
    pub(crate) mode: Mode,
    pub(crate) class: u8,
    pub(crate) context: u32,
    pub(crate) length: u32,
    /// The place of a write, read or rendezvous send in its region.
    pub(crate) offset: u64,
    /// The number of bytes in the request of a rendezvous send; the target reads the rest.
    pub(crate) eager: u32,
    /// True if the request carries header data.
    pub(crate) named: bool,
    pub(crate) delivery_complete: bool,
}

impl Task {
    /// Returns whether it is a send that waits for a receive.
    pub(crate) fn is_message(&self) -> bool {
        self.is_rendezvous() || self.is_deferrable() || matches!(self.kind, PostKind::Send | PostKind::Tsend)
    }

    pub(crate) fn is_rendezvous(&self) -> bool {
        matches!(self.kind, PostKind::RendezvousSend | PostKind::RendezvousTsend)
    }

    pub(crate) fn is_deferrable(&self) -> bool {
        matches!(self.kind, PostKind::DeferrableSend | PostKind::DeferrableTsend)
    }

    pub(crate) fn is_tagged(&self) -> bool {
        matches!(self.kind, PostKind::Tsend | PostKind::RendezvousTsend | PostKind::DeferrableTsend)
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

/// The counter that atomics change is at the start of the first region.
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
        let incast = rng.one_in(4);
        for (from, member) in plan.members.iter().enumerate() {
            let peers = &plan.groups[member.group].members;
            let pds = &member.config.pds;
            let menu = Menu {
                kinds: &KINDS,
                modes: &MODES,
                mtu: pds.payload_mtu.into(),
                ack_data: pds.max_ack_data_size.into(),
                longest: LONGEST,
            };
            let others: Vec<usize> = peers.iter().copied().filter(|peer| *peer != from).collect();
            for _ in 0..operations {
                let to =
                    if incast && peers[0] != from && !rng.one_in(8) { peers[0] } else { rng.pick(&others) };
                // A few operations come after all faults.
                let at = start + plan.span.mul_f64(rng.f64() * 1.05);
                traffic.operation(rng, (from, to), &menu, at);
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

    fn operation(&mut self, rng: &mut Rng, (from, to): (usize, usize), menu: &Menu<'_>, at: Time) {
        let number = self.tasks.len();
        let draw::Operation { kind, mode, length, eager, header_data, complete } = menu.operation(rng);
        let mode = match mode {
            // A no-op is idempotent.
            _ if kind == PostKind::NoOp && rng.one_in(8) => Mode::Rudi,
            draw::Mode::Rud => Mode::Rud,
            draw::Mode::Rod => Mode::Rod,
            draw::Mode::Rudi => Mode::Rudi,
            draw::Mode::Uud => Mode::Uud,
        };
        let length = match kind {
            PostKind::NoOp => 0,
            PostKind::Atomic | PostKind::FetchAtomic => COUNTER as u32,
            PostKind::Write | PostKind::Read => length,
            // The first 8 bytes name the message.
            _ => length.max(8),
        };
        let mut task = Task {
            from,
            to,
            kind,
            mode,
            class: u8::from(rng.one_in(5)),
            context: u32::from(rng.one_in(5)),
            length,
            offset: 0,
            eager,
            named: header_data,
            delivery_complete: complete,
        };
        match kind {
            PostKind::Write => task.offset = self.place(to, usize::from(mode == Mode::Rudi), length),
            PostKind::Read => task.offset = rng.u64(..SOURCE - u64::from(length)),
            _ if task.is_rendezvous() => task.offset = self.place(from, 2, length),
            _ => {}
        }
        self.tasks.push(task);
        self.steps.push((at, Step::Post(number)));
        if task.is_message() || kind == PostKind::Datagram && rng.bool() {
            // Some receives come before their message, some after it.
            let early = rng.bool();
            let receive =
                if early { Time(at.0.saturating_sub(rng.u64(..200_000))) } else { at + micros(rng, 0..=400) };
            self.steps.push((receive, Step::Receive(number)));
        }
        // An aborted read refuses its data, which the passive judge takes for a mistake.
        if rng.one_in(100) && !matches!(kind, PostKind::Read | PostKind::FetchAtomic) && !task.is_rendezvous()
        {
            self.steps.push((at + micros(rng, 0..=100), Step::Abort(number)));
        }
        if rng.one_in(30) {
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
