//! Draws messages of the suite.

use super::{ATOMICS, Draw};
use crate::draw::{Operation, Source};
use crate::random::step::{By, Fate, Form, MessagePlan, Wrong};
use uet_control::{Mode, PostKind};

impl<S: Source> Draw<'_, S> {
    pub(super) fn message(&mut self, context: usize) -> MessagePlan {
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

    /// Draws fates of packets, or none.
    fn fates(&mut self, count: usize) -> Vec<Fate> {
        if self.source.flip() { (0..count).map(|_| Fate::draw(self.source)).collect() } else { Vec::new() }
    }
}

fn on_memory(kind: PostKind) -> bool {
    matches!(kind, PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic)
}
