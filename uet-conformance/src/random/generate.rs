//! Draws conversations from what a device can do.

use super::coverage::{Coverage, Event, State};
use super::message::capability;
use super::step::{
    By, ContextPlan, ControlKind, Fate, Form, Hostile, JOBS, MessagePlan, PEERS, Posting, RegionPlan, Reply,
    Sequence, Step, StrangerKind, Wrong,
};
use crate::Dut;
use fastrand::Rng;
use std::collections::BTreeMap;
use uet_control::{Mode, PostKind};
use uet_wire::registry::AtomicOpcode;

/// Abilities of a device and its link.
#[derive(Clone, Debug)]
pub struct Abilities {
    kinds: Vec<PostKind>,
    modes: Vec<Mode>,
    receive: bool,
    close: bool,
    mtu: u32,
    congestion: Vec<&'static str>,
    ack_data: u32,
}

/// All kinds of operations.
const KINDS: [PostKind; 12] = [
    PostKind::Write,
    PostKind::Read,
    PostKind::Send,
    PostKind::Tsend,
    PostKind::Datagram,
    PostKind::Atomic,
    PostKind::FetchAtomic,
    PostKind::RendezvousSend,
    PostKind::RendezvousTsend,
    PostKind::DeferrableSend,
    PostKind::DeferrableTsend,
    PostKind::NoOp,
];

impl Abilities {
    /// Returns what this device can do.
    pub fn of(dut: &dyn Dut) -> Self {
        let welcome = dut.welcome();
        let claims = |name: &str| welcome.capabilities.iter().any(|claim| claim == name);
        let number = |name: &str, default: u64| {
            welcome.parameters.get(name).and_then(|value| value.as_u64()).unwrap_or(default)
        };
        let modes = [("rud", Mode::Rud), ("rod", Mode::Rod), ("rudi", Mode::Rudi), ("uud", Mode::Uud)];
        let mut congestion = Vec::new();
        if claims("parameters") {
            congestion.extend(claims("nscc").then_some("nscc"));
            congestion.extend(claims("rccc").then_some("rccc"));
            congestion.extend((claims("nscc") && claims("rccc")).then_some("both"));
        }
        Abilities {
            kinds: KINDS.into_iter().filter(|kind| claims(capability(*kind))).collect(),
            modes: modes.into_iter().filter(|(name, _)| claims(name)).map(|(_, mode)| mode).collect(),
            receive: claims("receive"),
            close: claims("close"),
            mtu: number("payload_mtu", 4096) as u32,
            congestion,
            ack_data: number("max_ack_data_size", 16) as u32,
        }
    }
}

/// Draws a conversation.
pub(super) fn draw(rng: &mut Rng, can: &Abilities, coverage: &Coverage) -> Sequence {
    let mut sequence = Sequence::default();
    let mut parameters = BTreeMap::new();
    if rng.u8(..4) == 0 {
        if let Some(congestion) = rng.choice(&can.congestion) {
            parameters.insert("congestion".to_owned(), (*congestion).into());
        }
    }
    sequence.parameters = parameters;
    let peers = rng.u8(1..=PEERS);
    let jobs = rng.u8(1..=JOBS);
    for number in 0..rng.usize(1..=3) {
        let length = match rng.u8(..4) {
            0 => rng.u32(64..=600),
            1 => can.mtu * 2 + 64,
            _ => can.mtu * 3 + rng.u32(64..=4000),
        };
        let all = number == 0;
        sequence.regions.push(RegionPlan {
            length: length & !15,
            job: if number == 0 { 0 } else { rng.u8(..jobs) },
            no_read: !all && rng.u8(..6) == 0,
            no_write: !all && rng.u8(..6) == 0,
            no_atomic: !all && rng.u8(..6) == 0,
            safe: can.modes.contains(&Mode::Rudi) && rng.bool(),
        });
    }
    let first = rng.u16(1..0x1000);
    for number in 0..rng.u16(1..=3) {
        let start = match rng.u8(..5) {
            0 => 0,
            1 => (1 << 31) - rng.u32(..20),
            2 => u32::MAX - rng.u32(..20),
            3 => rng.u32(..40),
            _ => rng.u32(..),
        };
        let (rud, rod) = (can.modes.contains(&Mode::Rud), can.modes.contains(&Mode::Rod));
        // Two peers may use the same number.
        let pdcid = if rng.u8(..4) == 0 { first } else { first + number };
        let peer = rng.u8(..peers);
        let twin = |it: &ContextPlan| it.peer % 2 == peer % 2 && it.pdcid == pdcid;
        let pdcid = if sequence.contexts.iter().any(twin) { first + 0x40 + number } else { pdcid };
        sequence.contexts.push(ContextPlan {
            peer,
            job: if number == 0 { 0 } else { rng.u8(..jobs) },
            rod: rod && (!rud || rng.u8(..3) == 0),
            pdcid,
            start,
        });
    }
    let count = if rng.bool() { rng.usize(5..=20) } else { rng.usize(20..=60) };
    let mut draw = Draw { rng, can, coverage, sequence, peers, jobs, seed: 0, touched: vec![false; 4] };
    for _ in 0..count {
        let step = draw.rarest();
        draw.note(&step);
        draw.sequence.steps.push(step);
    }
    draw.sequence
}

struct Draw<'a> {
    rng: &'a mut Rng,
    can: &'a Abilities,
    coverage: &'a Coverage,
    sequence: Sequence,
    peers: u8,
    jobs: u8,
    seed: u32,
    /// Contexts that have been opened.
    touched: Vec<bool>,
}

impl Draw<'_> {
    /// The one of some steps that has been met least in the present state.
    fn rarest(&mut self) -> Step {
        let one = self.step();
        if self.rng.u8(..3) > 0 {
            return one;
        }
        let other = self.step();
        if self.met(&other) < self.met(&one) { other } else { one }
    }

    fn met(&self, step: &Step) -> u64 {
        let state = |context: usize| match self.touched.get(context) {
            Some(true) => State::Open,
            _ => State::New,
        };
        match step {
            Step::Message(it) => self.coverage.count(Some(state(it.context)), Event::Message(it.kind)),
            Step::Post(it) => self.coverage.count(None, Event::Post(it.kind)),
            Step::Control { context, kind, .. } => {
                self.coverage.count(Some(state(*context)), Event::Control(*kind))
            }
            Step::Ask { kind, .. } => self.coverage.count(Some(State::Open), Event::Ask(*kind)),
            Step::Stranger { kind, .. } => self.coverage.count(Some(State::Open), Event::Stranger(*kind)),
            Step::Hostile { packet, .. } => self.coverage.count(Some(State::Open), Event::Hostile(*packet)),
            Step::Abort { .. } => self.coverage.count(Some(State::Open), Event::Abort),
            Step::Repeat { context, .. } => self.coverage.count(Some(state(*context)), Event::Repeat),
            Step::CloseByDevice { .. } => self.coverage.count(None, Event::CloseByDevice),
            _ => u64::MAX / 2,
        }
    }

    fn note(&mut self, step: &Step) {
        let (context, open) = match step {
            Step::Message(message) => (message.context, true),
            Step::Close { context, .. } => (*context, false),
            _ => return,
        };
        if let Some(touched) = self.touched.get_mut(context) {
            *touched = open;
        }
    }

    fn step(&mut self) -> Step {
        let context = self.rng.usize(..self.sequence.contexts.len());
        match self.rng.u8(..100) {
            0..38 => Step::Message(self.message(context)),
            38..62 => Step::Post(self.posting()),
            62..69 if self.can.receive => self.receive(),
            69..75 => {
                let most = self.pauses();
                Step::Pause { us: self.rng.u32(1..=most) }
            }
            75..81 => Step::Control {
                context,
                kind: self.one(&[
                    ControlKind::Noop,
                    ControlKind::Negotiation,
                    ControlKind::AckRequest,
                    ControlKind::ClearCommand,
                    ControlKind::Probe,
                ]),
                back: self.rng.u8(..4),
                fate: self.fate(),
            },
            81..83 => Step::Ask {
                target: self.rng.usize(..4),
                kind: self.one(&[ControlKind::ClearRequest, ControlKind::ClearRequest]),
            },
            83..87 => Step::Repeat { context, back: self.rng.u8(..6), retx: self.rng.u8(..3) > 0 },
            87..90 => Step::Close { context, same: self.rng.bool() },
            90..92 if self.can.close => Step::CloseByDevice {
                peer: self.rng.u8(..self.peers),
                job: self.rng.u8(..self.jobs),
                rod: self.rng.bool(),
            },
            92..94 => Step::Abort { target: self.rng.usize(..4), code: self.one(&[0x10, 0x15, 0x0e, 0x0f]) },
            98..100 => {
                let packet = match self.rng.u8(..10) {
                    0 => Hostile::Bytes,
                    _ => self.one(&Hostile::ALL),
                };
                Step::Hostile { context, packet, edits: packet.changes(self.rng) }
            }
            94..98 => Step::Stranger {
                context,
                kind: self.one(&[
                    StrangerKind::Request,
                    StrangerKind::Unknown,
                    StrangerKind::OtherSource,
                    StrangerKind::Close,
                    StrangerKind::Clear,
                    StrangerKind::Ack,
                    StrangerKind::Nack,
                    StrangerKind::Rudi,
                    StrangerKind::Mode,
                    StrangerKind::Cut,
                    StrangerKind::Window,
                    StrangerKind::Future,
                ]),
            },
            _ => Step::Message(self.message(context)),
        }
    }

    fn pauses(&mut self) -> u32 {
        if self.rng.u8(..4) == 0 { 2000 } else { 60 }
    }

    fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.rng.usize(..all.len())]
    }

    fn fate(&mut self) -> Fate {
        match self.rng.u8(..16) {
            0 | 1 => Fate::Lost,
            2 => Fate::Twice,
            3 => Fate::Late,
            4 => Fate::Marked,
            5 => Fate::Trimmed,
            _ => Fate::Arrives,
        }
    }

    fn fates(&mut self, count: usize) -> Vec<Fate> {
        match self.rng.bool() {
            true => Vec::new(),
            false => (0..count).map(|_| self.fate()).collect(),
        }
    }

    fn length(&mut self) -> u32 {
        let mtu = self.can.mtu;
        match self.rng.u8(..12) {
            0 => 0,
            1 => 1,
            2 => self.can.ack_data,
            3 => self.can.ack_data + 1,
            4 => mtu - 1,
            5 => mtu,
            6 => mtu + 1,
            7 => 2 * mtu,
            8 => 2 * mtu + self.rng.u32(1..100),
            _ => self.rng.u32(1..300),
        }
    }

    fn atomic(&mut self) -> (u8, u8) {
        loop {
            let (opcode, datatype) = (self.rng.u8(..=0x12), self.rng.u8(..=0x0d));
            let of = (AtomicOpcode::new(opcode), uet_wire::registry::AtomicDatatype::new(datatype));
            let (Some(one), Some(other)) = of else { continue };
            let fetch_alone = one == AtomicOpcode::READ;
            if super::arithmetic::is_known(one, other) && !fetch_alone {
                return (opcode, datatype);
            }
        }
    }

    fn message(&mut self, context: usize) -> MessagePlan {
        let kinds: Vec<PostKind> =
            self.can.kinds.iter().copied().filter(|kind| self.can.receive || on_memory(*kind)).collect();
        let mut kind = self.one(&kinds);
        if self.rng.u8(..3) == 0 {
            kind = self.one(&[PostKind::Write, PostKind::Read, PostKind::Atomic, PostKind::FetchAtomic]);
        }
        let job = self.sequence.contexts.get(context).map_or(0, |plan| plan.job);
        let of_job: Vec<usize> =
            (0..self.sequence.regions.len()).filter(|it| self.sequence.regions[*it].job == job).collect();
        let region = match of_job.is_empty() || self.rng.u8(..12) == 0 {
            true => self.rng.usize(..self.sequence.regions.len()),
            false => of_job[self.rng.usize(..of_job.len())],
        };
        let plan = self.sequence.regions[region];
        let mut by = By::Context;
        if matches!(kind, PostKind::Write | PostKind::Read) && self.can.modes.contains(&Mode::Rudi) {
            let often = if plan.safe { 3 } else { 20 };
            if self.rng.u8(..often) == 0 {
                by = By::Rudi;
            }
        }
        if kind == PostKind::Datagram {
            by = if self.can.modes.contains(&Mode::Uud) { By::Uud } else { By::Context };
        }
        let mut length = self.length();
        if matches!(kind, PostKind::DeferrableSend | PostKind::DeferrableTsend) {
            // The answer to a put-off send without bytes looks like that to an accepted one.
            length = length.max(1);
        }
        let atomic = matches!(kind, PostKind::Atomic | PostKind::FetchAtomic).then(|| self.atomic());
        let mut offset = 0;
        if on_memory(kind) {
            length = length.min(plan.length);
            let room = u64::from(plan.length - length);
            offset = match atomic {
                // Atomics on the same few elements build on each other.
                Some((_, datatype)) => {
                    length = match self.rng.u8(..6) {
                        0 => length.min(plan.length / 2),
                        _ => self.rng.u32(1..=48).min(plan.length / 4),
                    };
                    let half = u64::from((plan.length / 2) & !15);
                    let room = u64::from(plan.length - length.max(16)).saturating_sub(half);
                    half + (16 * u64::from(datatype % 4)).min(room & !15)
                }
                None => match self.rng.u8(..3) {
                    0 => 0,
                    1 => room,
                    _ => self.rng.u64(..=room),
                },
            };
        }
        let wrong = match self.rng.u8(..40) {
            0 => Wrong::Key,
            1 => Wrong::Range,
            2 => Wrong::Job,
            3 => Wrong::Process,
            4 => Wrong::Index,
            5 => Wrong::Generation,
            6 => Wrong::Opcode,
            7 => Wrong::GivenUp,
            8 => Wrong::Alignment,
            _ => Wrong::Nothing,
        };
        let on_context = by == By::Context;
        let fits = match wrong {
            Wrong::Key | Wrong::Range => on_memory(kind),
            Wrong::Alignment => atomic.is_some(),
            Wrong::Generation => !on_memory(kind) && on_context,
            _ => on_context,
        };
        let wrong = if fits && kind != PostKind::NoOp { wrong } else { Wrong::Nothing };
        self.seed += 1;
        let form = match self.rng.u8(..8) {
            0 | 1 => Form::Medium,
            2 => Form::Small,
            _ => Form::Std,
        };
        let packets = length.div_ceil(self.can.mtu).max(1) as usize;
        MessagePlan {
            context,
            kind,
            by,
            region: if on_memory(kind) { region } else { 0 },
            offset,
            length,
            form,
            seed: self.seed * 7919 + 1,
            atomic,
            tag: self.rng.u8(..4),
            eager: if self.rng.bool() { self.rng.u32(..=length) } else { 0 },
            header_data: self.rng.u8(..3) == 0,
            complete: self.rng.bool(),
            quiet: self.rng.u8(..4) == 0,
            wrong,
            fates: self.fates(2 * packets),
            answers: match self.rng.u8(..3) {
                0 => (0..packets + 1).map(|_| self.one(&[Fate::Arrives, Fate::Lost, Fate::Late])).collect(),
                _ => Vec::new(),
            },
        }
    }

    fn receive(&mut self) -> Step {
        let length = match self.rng.u8(..3) {
            0 => self.rng.u32(1..200),
            _ => self.can.mtu * 3,
        };
        Step::Receive {
            job: self.rng.u8(..self.jobs),
            length,
            tag: self.rng.bool().then(|| self.rng.u8(..4)),
            ignore: if self.rng.u8(..4) == 0 { 1 } else { 0 },
        }
    }

    fn posting(&mut self) -> Posting {
        let kinds = self.can.kinds.clone();
        let mut kind = self.one(&kinds);
        if self.rng.u8(..3) == 0 {
            kind = self.one(&[PostKind::Write, PostKind::Read, PostKind::Send]);
        }
        let mode = match kind {
            PostKind::Datagram => Mode::Uud,
            PostKind::Write | PostKind::Read => self.one(&[Mode::Rud, Mode::Rud, Mode::Rod, Mode::Rudi]),
            _ => self.one(&[Mode::Rud, Mode::Rud, Mode::Rod]),
        };
        let mut length = self.length();
        if kind == PostKind::Datagram {
            length = length.min(self.can.mtu);
        }
        if matches!(kind, PostKind::DeferrableSend | PostKind::DeferrableTsend) {
            length = length.max(1);
        }
        if matches!(kind, PostKind::Read | PostKind::Write) && self.rng.u8(..10) == 0 {
            length = self.can.mtu * self.rng.u32(3..30);
        }
        let atomic = matches!(kind, PostKind::Atomic | PostKind::FetchAtomic).then(|| self.atomic());
        self.seed += 1;
        let packets = length.div_ceil(self.can.mtu).max(1) as usize;
        let replies = match self.rng.u8(..3) {
            0 => Vec::new(),
            _ => (0..packets.min(12)).map(|_| self.reply(kind)).collect(),
        };
        Posting {
            peer: self.rng.u8(..self.peers),
            job: self.rng.u8(..self.jobs),
            kind,
            mode,
            length,
            offset: if self.rng.bool() { 0 } else { self.rng.u64(..1 << 40) & !15 },
            seed: self.seed * 6007 + 3,
            form: None,
            atomic,
            tag: self.rng.u8(..4),
            eager: if self.rng.bool() { self.rng.u32(..=length.min(self.can.mtu)) } else { 0 },
            header_data: self.rng.u8(..3) == 0,
            replies,
        }
    }

    fn reply(&mut self, kind: PostKind) -> Reply {
        let deferrable = matches!(kind, PostKind::DeferrableSend | PostKind::DeferrableTsend);
        if deferrable && self.rng.bool() {
            return Reply::PutOff;
        }
        match self.rng.u8(..26) {
            0 | 1 => Reply::Lost,
            2 | 3 => Reply::AckLost,
            4 | 5 => Reply::Late,
            6 => Reply::Twice,
            7 => Reply::Marked,
            8 | 9 => Reply::Bitmap,
            10 | 11 => Reply::Busy,
            12 => Reply::NotReady,
            13 => Reply::Trimmed,
            14 => Reply::Refused,
            15 => Reply::Short,
            _ => Reply::Ack,
        }
    }
}

fn on_memory(kind: PostKind) -> bool {
    matches!(kind, PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic)
}
