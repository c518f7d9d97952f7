//! Draws conversations from what a device can do.

use super::coverage::{Coverage, Event, State};
use super::message::capability;
use super::setting::MTUS;
use super::step::{
    By, ContextPlan, ControlKind, Fate, Form, Hostile, JOBS, MessagePlan, PEERS, Posting, RegionPlan, Rekey,
    Reply, Secured, Sequence, Step, StrangerKind, Wrong,
};
use crate::Dut;
use crate::arithmetic::is_known;
use crate::draw::{Menu, Operation, Source, first_psn};
use std::sync::LazyLock;
use uet_control::{Mode, PostKind};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// Abilities of a device and its link.
#[derive(Clone, Debug)]
pub struct Abilities {
    kinds: Vec<PostKind>,
    modes: Vec<Mode>,
    /// True if it takes operations to post.
    posts: bool,
    receive: bool,
    close: bool,
    /// True if packets of others must change nothing.
    strangers: bool,
    mtu: u32,
    pub(super) congestion: Vec<&'static str>,
    ack_data: u32,
    /// True if parameters can be set.
    pub(super) parameters: bool,
    /// The payload MTUs that can be set.
    pub(super) mtus: Vec<u32>,
    pub(super) both_ips: bool,
    /// True if it takes keys of a secure domain, and the link is one on which the suite can protect packets.
    pub(super) secures: bool,
    /// True if it can ask for a close as a target.
    request_close: bool,
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
            congestion.push("none");
        }
        let (facts, mtu) = (dut.facts(), number("payload_mtu", 4096) as u32);
        // A real link may not carry larger packets than those of the device.
        let longest = if facts.virtual_time { 8192 } else { mtu };
        Abilities {
            kinds: KINDS.into_iter().filter(|kind| claims(capability(*kind))).collect(),
            modes: modes.into_iter().filter(|(name, _)| claims(name)).map(|(_, mode)| mode).collect(),
            posts: true,
            receive: claims("receive"),
            close: claims("close"),
            strangers: true,
            mtu,
            congestion,
            ack_data: number("max_ack_data_size", 16) as u32,
            parameters: claims("parameters"),
            mtus: MTUS.into_iter().filter(|mtu| *mtu <= longest.max(1024)).collect(),
            both_ips: facts.second_device.is_some(),
            secures: claims("tss") && facts.virtual_time,
            request_close: claims("request_close"),
        }
    }

    /// Returns all abilities that packets can use, of a device that may say nothing about itself. It gets
    /// packets from one address only.
    pub fn any(mtu: u32, posts: bool) -> Self {
        Abilities {
            kinds: KINDS.to_vec(),
            modes: vec![Mode::Rud, Mode::Rod, Mode::Rudi, Mode::Uud],
            posts,
            receive: true,
            close: posts,
            strangers: false,
            mtu,
            congestion: Vec::new(),
            ack_data: 16,
            parameters: false,
            mtus: Vec::new(),
            both_ips: false,
            secures: false,
            request_close: false,
        }
    }
}

impl Sequence {
    /// Draws a conversation. Prefers steps that the coverage lacks.
    pub fn draw(source: &mut impl Source, can: &Abilities, coverage: &Coverage) -> Self {
        let mut sequence = Sequence::default();
        sequence.set(source, can);
        let can = &Abilities { mtu: sequence.mtu(can.mtu), ..can.clone() };
        let is_pair = sequence.secured.is_some_and(Secured::is_pair);
        let peers = if is_pair { 1 } else { source.within(1..=PEERS.into()) as u8 };
        let jobs = source.within(1..=JOBS.into()) as u8;
        for number in 0..source.within(1..=3) {
            sequence.regions.push(region(source, can, number == 0, jobs));
        }
        contexts(source, can, &mut sequence.contexts, (peers, jobs));
        let most = if source.flip() { 5..=20 } else { 20..=60 };
        let count = source.within(most);
        Draw { source, can, coverage, sequence, peers, jobs, seed: 0, touched: vec![false; 4] }.steps(count)
    }

    /// Draws a conversation of a few steps with one peer about these regions.
    pub fn draw_short(source: &mut impl Source, can: &Abilities, regions: Vec<RegionPlan>) -> Self {
        let mut sequence = Sequence { regions, ..Sequence::default() };
        contexts(source, can, &mut sequence.contexts, (1, 1));
        // A device that nothing resets may still have earlier contexts.
        let base = source.below(0xe000) as u16;
        sequence.contexts.iter_mut().for_each(|context| context.pdcid += base);
        let (count, coverage) = (source.within(1..=6), &Coverage::default());
        let touched = vec![false; 4];
        Draw { source, can, coverage, sequence, peers: 1, jobs: 1, seed: 0, touched }.steps(count)
    }
}

fn region(source: &mut impl Source, can: &Abilities, is_first: bool, jobs: u8) -> RegionPlan {
    let length = match source.below(4) {
        0 => source.within(64..=600) as u32,
        1 => can.mtu * 2 + 64,
        _ => can.mtu * 3 + source.within(64..=4000) as u32,
    };
    let mut forbids = || !is_first && source.one_in(6);
    RegionPlan {
        length: length & !15,
        no_read: forbids(),
        no_write: forbids(),
        no_atomic: forbids(),
        job: if is_first { 0 } else { source.below(jobs.into()) as u8 },
        safe: can.modes.contains(&Mode::Rudi) && source.flip(),
    }
}

/// Draws up to three contexts to a device.
fn contexts(source: &mut impl Source, can: &Abilities, all: &mut Vec<ContextPlan>, (peers, jobs): (u8, u8)) {
    let (rud, rod) = (can.modes.contains(&Mode::Rud), can.modes.contains(&Mode::Rod));
    let first = source.within(1..=0xfff) as u16;
    for number in 0..source.within(1..=3) as u16 {
        // Two peers may use the same number.
        let pdcid = if source.one_in(4) { first } else { first + number };
        let peer = source.below(peers.into()) as u8;
        let twin = |it: &ContextPlan| it.peer % 2 == peer % 2 && it.pdcid == pdcid;
        let pdcid = if all.iter().any(twin) { first + 0x40 + number } else { pdcid };
        all.push(ContextPlan {
            peer,
            job: if number == 0 { 0 } else { source.below(jobs.into()) as u8 },
            rod: rod && (!rud || source.one_in(3)),
            pdcid,
            start: first_psn(source),
        });
    }
}

struct Draw<'a, S> {
    source: &'a mut S,
    can: &'a Abilities,
    coverage: &'a Coverage,
    sequence: Sequence,
    peers: u8,
    jobs: u8,
    seed: u32,
    /// Contexts that have been opened.
    touched: Vec<bool>,
}

impl<S: Source> Draw<'_, S> {
    /// Draws this many steps, or as many as the source has choices for.
    fn steps(mut self, count: u64) -> Sequence {
        for _ in 0..count {
            if self.source.is_over() {
                break;
            }
            let step = self.rarest();
            self.note(&step);
            self.sequence.steps.push(step);
        }
        self.sequence
    }

    /// The one of some steps that has been met least in the present state.
    fn rarest(&mut self) -> Step {
        let one = self.step();
        if !self.source.one_in(3) {
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
            Step::Rekey { change } => self.coverage.count(None, Event::Rekey(*change)),
            Step::Abort { .. } => self.coverage.count(Some(State::Open), Event::Abort),
            Step::Repeat { context, .. } => self.coverage.count(Some(state(*context)), Event::Repeat),
            Step::CloseByDevice { .. } => self.coverage.count(None, Event::CloseByDevice),
            Step::RequestClose { .. } => self.coverage.count(None, Event::RequestClose),
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
        let context = self.source.index(self.sequence.contexts.len());
        match self.source.below(100) {
            0..24 if self.can.posts => Step::Post(self.posting()),
            24..31 if self.can.receive && self.can.strangers => self.receive(),
            31..37 => {
                let most = if self.source.one_in(4) { 2000 } else { 60 };
                Step::Pause { us: self.source.within(1..=most) as u32 }
            }
            37..43 => Step::Control {
                context,
                kind: self.source.pick(&[
                    ControlKind::Noop,
                    ControlKind::Negotiation,
                    ControlKind::AckRequest,
                    ControlKind::ClearCommand,
                    ControlKind::Probe,
                ]),
                back: self.source.below(4) as u8,
                fate: Fate::draw(self.source),
            },
            43..45 if self.can.strangers => {
                Step::Ask { target: self.source.index(4), kind: ControlKind::ClearRequest }
            }
            45..49 => {
                Step::Repeat { context, back: self.source.below(6) as u8, retx: !self.source.one_in(3) }
            }
            49..52 => Step::Close { context, same: self.source.flip() },
            52 if self.can.request_close => Step::RequestClose {
                peer: self.source.below(self.peers.into()) as u8,
                job: self.source.below(self.jobs.into()) as u8,
                rod: self.source.flip(),
            },
            52..54 if self.can.close => Step::CloseByDevice {
                peer: self.source.below(self.peers.into()) as u8,
                job: self.source.below(self.jobs.into()) as u8,
                rod: self.source.flip(),
            },
            54..56 => Step::Abort {
                target: self.source.index(4),
                code: self.source.pick(&[0x10, 0x15, 0x0e, 0x0f]),
            },
            56..62 if self.sequence.secured.is_some() => match self.source.below(4) {
                0 => Step::Stranger { context, kind: StrangerKind::Plain },
                1 => Step::Stranger { context, kind: StrangerKind::Copy },
                _ => Step::Rekey {
                    change: self.source.pick(&[Rekey::Switch, Rekey::Switch, Rekey::Replace, Rekey::Epoch]),
                },
            },
            56..60 if self.can.strangers => Step::Stranger {
                context,
                kind: self.source.pick(&[
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
                    StrangerKind::Next,
                    StrangerKind::Late,
                    StrangerKind::Copy,
                ]),
            },
            60..62 => {
                let packet = if self.can.strangers && !self.source.one_in(10) {
                    self.source.pick(&Hostile::ALL)
                } else {
                    Hostile::Bytes
                };
                Step::Hostile { context, packet, edits: packet.changes(self.source) }
            }
            _ => Step::Message(self.message(context)),
        }
    }

    /// Draws fates of packets, or none.
    fn fates(&mut self, count: usize) -> Vec<Fate> {
        if self.source.flip() { (0..count).map(|_| Fate::draw(self.source)).collect() } else { Vec::new() }
    }

    /// Draws an operation of these kinds, often of one of the preferred ones, of at most so many full
    /// packets.
    fn operation(
        &mut self,
        kinds: &[PostKind],
        preferred: &[PostKind],
        modes: &[Mode],
        packets: u32,
    ) -> Operation {
        let preferred: Vec<PostKind> =
            preferred.iter().copied().filter(|kind| kinds.contains(kind)).collect();
        let often = !preferred.is_empty() && self.source.one_in(3);
        let menu = Menu {
            kinds: if often { &preferred } else { kinds },
            modes,
            mtu: self.can.mtu,
            ack_data: self.can.ack_data,
            longest: packets * self.can.mtu,
        };
        menu.operation(self.source)
    }

    fn message(&mut self, context: usize) -> MessagePlan {
        let can = self.can;
        let kinds: Vec<PostKind> =
            can.kinds.iter().copied().filter(|kind| can.receive || on_memory(*kind)).collect();
        let preferred = [PostKind::Write, PostKind::Read, PostKind::Atomic, PostKind::FetchAtomic];
        let Operation { kind, mode, mut length, eager, header_data, complete } =
            self.operation(&kinds, &preferred, &can.modes, 3);
        let job = self.sequence.contexts.get(context).map_or(0, |plan| plan.job);
        let of_job: Vec<usize> =
            (0..self.sequence.regions.len()).filter(|it| self.sequence.regions[*it].job == job).collect();
        let region = if of_job.is_empty() || self.source.one_in(12) {
            self.source.index(self.sequence.regions.len())
        } else {
            self.source.pick(&of_job)
        };
        let plan = self.sequence.regions[region];
        let by = match mode {
            // A region that is not safe refuses them.
            Mode::Rudi if plan.safe || self.source.one_in(5) => By::Rudi,
            Mode::Uud => By::Uud,
            _ => By::Context,
        };
        let atomic =
            matches!(kind, PostKind::Atomic | PostKind::FetchAtomic).then(|| self.source.pick(&ATOMICS));
        let mut offset = 0;
        if on_memory(kind) {
            length = length.min(plan.length);
            let room = u64::from(plan.length - length);
            offset = match atomic {
                // Atomics on the same few elements build on each other.
                Some((_, datatype)) => {
                    length = if self.source.one_in(6) {
                        length.min(plan.length / 2)
                    } else {
                        (self.source.within(1..=48) as u32).min(plan.length / 4)
                    };
                    let half = u64::from((plan.length / 2) & !15);
                    let room = u64::from(plan.length - length.max(16)).saturating_sub(half);
                    half + (16 * u64::from(datatype % 4)).min(room & !15)
                }
                None => match self.source.below(3) {
                    0 => 0,
                    1 => room,
                    _ => self.source.within(0..=room),
                },
            };
        }
        let wrong = match self.source.below(40) {
            1 => Wrong::Key,
            2 => Wrong::Range,
            3 => Wrong::Job,
            4 => Wrong::Process,
            5 => Wrong::Index,
            6 => Wrong::Generation,
            7 => Wrong::Opcode,
            8 => Wrong::GivenUp,
            9 => Wrong::Alignment,
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
        let form = match self.source.below(8) {
            7 => Form::Small,
            5 | 6 => Form::Medium,
            _ => Form::Std,
        };
        let packets = length.div_ceil(can.mtu).max(1) as usize;
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
            tag: self.source.below(4) as u8,
            eager: eager.min(length),
            header_data,
            complete,
            quiet: self.source.one_in(4),
            reserved: self.source.one_in(12),
            wrong,
            fates: self.fates(2 * packets),
            answers: match self.source.one_in(3) {
                true => {
                    let fates = [Fate::Arrives, Fate::Lost, Fate::Late];
                    (0..packets + 1).map(|_| self.source.pick(&fates)).collect()
                }
                false => Vec::new(),
            },
        }
    }

    fn receive(&mut self) -> Step {
        let length =
            if self.source.one_in(3) { self.source.within(1..=199) as u32 } else { self.can.mtu * 3 };
        let tag = self.source.flip().then(|| self.source.below(4) as u8);
        let of_one = tag.is_some() && self.source.one_in(4);
        Step::Receive {
            job: self.source.below(self.jobs.into()) as u8,
            length,
            tag,
            ignore: self.source.one_in(4).into(),
            initiator: of_one.then(|| self.source.one_in(4).into()),
        }
    }

    fn posting(&mut self) -> Posting {
        let can = self.can;
        let modes = [Mode::Rud, Mode::Rud, Mode::Rod, Mode::Rudi, Mode::Uud];
        let preferred = [PostKind::Write, PostKind::Read, PostKind::Send];
        let Operation { kind, mode, length, eager, header_data, .. } =
            self.operation(&can.kinds, &preferred, &modes, 16);
        let atomic =
            matches!(kind, PostKind::Atomic | PostKind::FetchAtomic).then(|| self.source.pick(&ATOMICS));
        self.seed += 1;
        let packets = length.div_ceil(can.mtu).max(1) as usize;
        let replies = if self.source.one_in(3) {
            Vec::new()
        } else {
            (0..packets.min(12)).map(|_| self.reply(kind)).collect()
        };
        // A medium header has room for header data or an offset, and none for extensions.
        let plain = matches!(kind, PostKind::Write | PostKind::Read | PostKind::Send | PostKind::Tsend);
        let fits = plain && matches!(mode, Mode::Rud | Mode::Rod) && length <= can.mtu && !header_data;
        let medium = fits && self.source.one_in(4);
        Posting {
            peer: self.source.below(self.peers.into()) as u8,
            job: self.source.below(self.jobs.into()) as u8,
            kind,
            mode,
            length,
            offset: if self.source.flip() { self.source.below(1 << 40) & !15 } else { 0 },
            seed: self.seed * 6007 + 3,
            form: medium.then_some(uet_control::Form::Medium),
            atomic,
            tag: self.source.below(4) as u8,
            eager: eager.min(can.mtu),
            header_data,
            replies,
        }
    }

    fn reply(&mut self, kind: PostKind) -> Reply {
        if self.sequence.secured.is_some() && self.source.one_in(6) {
            return Reply::NewStart;
        }
        let deferrable = matches!(kind, PostKind::DeferrableSend | PostKind::DeferrableTsend);
        if deferrable && self.source.flip() {
            return Reply::PutOff;
        }
        match self.source.below(33) {
            10 | 11 => Reply::Lost,
            12 | 13 => Reply::AckLost,
            14 | 15 => Reply::Late,
            16 => Reply::Twice,
            17 => Reply::Marked,
            18 | 19 => Reply::Bitmap,
            20 | 21 => Reply::Busy,
            22 => Reply::NotReady,
            23 => Reply::Trimmed,
            24 => Reply::Refused,
            25 => Reply::Short,
            26 | 27 => Reply::Null,
            28 | 29 => Reply::Stale,
            30 => Reply::Slowed,
            31 => Reply::Restored,
            32 => Reply::Extended,
            _ => Reply::Ack,
        }
    }
}

impl Fate {
    /// Draws the effect of the network on a packet: most packets arrive.
    pub fn draw(source: &mut impl Source) -> Self {
        match source.below(16) {
            10 | 11 => Fate::Lost,
            12 => Fate::Twice,
            13 => Fate::Late,
            14 => Fate::Marked,
            15 => Fate::Trimmed,
            _ => Fate::Arrives,
        }
    }
}

/// Operations and datatypes whose arithmetic the sources state. READ fetches alone.
static ATOMICS: LazyLock<Vec<(u8, u8)>> = LazyLock::new(|| {
    let all = (0..=0x12).flat_map(|opcode| (0..=0x0d).map(move |datatype| (opcode, datatype)));
    let known =
        |(opcode, datatype): &(u8, u8)| match (AtomicOpcode::new(*opcode), AtomicDatatype::new(*datatype)) {
            (Some(opcode), Some(datatype)) => opcode != AtomicOpcode::READ && is_known(opcode, datatype),
            _ => false,
        };
    all.filter(known).collect()
});

fn on_memory(kind: PostKind) -> bool {
    matches!(kind, PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic)
}
