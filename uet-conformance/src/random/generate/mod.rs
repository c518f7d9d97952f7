//! Draws conversations from what a device can do.

mod message;
mod post;

use super::abilities::Abilities;
use super::coverage::{Coverage, Event, State};
use super::step::{
    ClosePlan, ContextPlan, ControlKind, Fate, Hostile, JOBS, PEERS, RegionPlan, Rekey, Secured, Sequence,
    Step, StrangerKind,
};
use crate::arithmetic::is_known;
use crate::draw::{Menu, Operation, Source, first_psn};
use std::sync::LazyLock;
use uet_control::{Mode, PostKind};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

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
            Step::CloseByDevice(_) => self.coverage.count(None, Event::CloseByDevice),
            Step::RequestClose(_) => self.coverage.count(None, Event::RequestClose),
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
            52 if self.can.request_close => Step::RequestClose(self.closing()),
            52..54 if self.can.close => Step::CloseByDevice(self.closing()),
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

    fn closing(&mut self) -> ClosePlan {
        ClosePlan {
            peer: self.source.below(self.peers.into()) as u8,
            job: self.source.below(self.jobs.into()) as u8,
            rod: self.source.flip(),
        }
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
