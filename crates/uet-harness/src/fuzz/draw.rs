//! Draws conversations with changed packets.

use super::packets::{self, Memory};
use core::net::{IpAddr, Ipv4Addr};
use uet_conformance::draw::{Source, first_psn};
use uet_conformance::random::step::{ContextPlan, ControlKind, Hostile, MessagePlan, Step, Wrong};
use uet_conformance::random::{Abilities, Fate, Sequence};
use uet_conformance::{Edit, Pdc};
use uet_control::Hex;
use uet_wire::registry::{CtlType, NackCode, Opcode};
use uet_wire::{PdcId, Psn};

/// Inputs of the generator.
#[derive(Debug)]
pub(super) struct Inputs<'a> {
    /// Memory of the device.
    pub(super) memory: &'a Memory,
    /// Abilities of the device.
    pub(super) can: &'a Abilities,
    /// Recorded conversations.
    pub(super) recorded: &'a [Sequence],
}

/// Packets that chance draws seldom within an open context. They take turns at the end of every second case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rare {
    Control(ControlKind),
    /// A packet of a message with an offset beyond the length of the message.
    BeyondLength,
    /// A message that reaches beyond its region.
    BeyondRegion,
    /// A write with the opcode of another operation.
    OtherOpcode,
}

const RARE: [Rare; 12] = [
    Rare::Control(ControlKind::Probe),
    Rare::BeyondLength,
    Rare::Control(ControlKind::ClearCommand),
    Rare::Control(ControlKind::ClearRequest),
    Rare::BeyondRegion,
    Rare::Control(ControlKind::AckRequest),
    Rare::Control(ControlKind::CloseRequest),
    Rare::Control(ControlKind::Negotiation),
    Rare::Control(ControlKind::Credit),
    Rare::Control(ControlKind::CreditRequest),
    Rare::Control(ControlKind::Noop),
    Rare::OtherOpcode,
];

impl Inputs<'_> {
    /// Draws the conversation of a case, with at least one change.
    pub(super) fn script(&self, number: u64, source: &mut impl Source) -> Sequence {
        let recorded = source.index(self.recorded.len() * 2 + 1);
        let mut script = match self.recorded.get(recorded) {
            Some(script) => script.clone(),
            None => Sequence::draw_short(source, self.can, self.memory.plans()),
        };
        for _ in 0..source.within(1..=5) {
            self.change(&mut script, source);
        }
        if number % 2 == 0 {
            self.add_rare(&mut script, number as usize / 2, source);
        }
        script
    }

    /// Adds a rare packet on a context of its own. In every second round, the packet before it is lost.
    fn add_rare(&self, script: &mut Sequence, turn: usize, source: &mut impl Source) {
        let (context, pdcid) = (script.contexts.len(), source.within(1..=0xffff) as u16);
        script.contexts.push(ContextPlan {
            peer: 0,
            job: 0,
            rod: source.flip(),
            pdcid,
            start: first_psn(source),
        });
        let write = |length: u32| MessagePlan { context, length, ..MessagePlan::default() };
        script.steps.push(Step::Message(write(64)));
        if turn / RARE.len() % 2 == 1 {
            script.steps.push(Step::Message(MessagePlan { fates: vec![Fate::Lost], ..write(64) }));
        }
        script.steps.push(match RARE[turn % RARE.len()] {
            Rare::Control(kind) => Step::Control { context, kind, back: 0, fate: Fate::Arrives },
            Rare::BeyondLength => {
                let length = self.memory.mtu as u32 + 64;
                let offset = source.pick(&[length + 1, 1 << 31, u32::MAX]);
                let (header, field) = ("std".to_owned(), "ses.message_offset".to_owned());
                let edits = vec![Edit::Set { header, field, value: format!("{offset:#x}") }];
                Step::Changed { of: Box::new(Step::Message(write(length))), packet: 1, edits }
            }
            Rare::BeyondRegion => {
                // The seed decides how far: beyond the region or the address space.
                let seed = source.below(2) as u32;
                Step::Message(MessagePlan { wrong: Wrong::Range, seed, ..write(64) })
            }
            Rare::OtherOpcode => {
                let codes = Opcode::REGISTRY.entries;
                let code = codes.get(source.index(codes.len())).map_or(0, |entry| entry.code);
                let (header, field) = ("std".to_owned(), "ses.opcode".to_owned());
                let edits = vec![Edit::Set { header, field, value: format!("{code:#x}") }];
                Step::Changed { of: Box::new(Step::Message(write(64))), packet: 0, edits }
            }
        });
    }

    /// Changes a packet, or repeats, removes, reorders or adds steps.
    fn change(&self, script: &mut Sequence, source: &mut impl Source) {
        let steps = &mut script.steps;
        let count = steps.len();
        let place = source.index(count);
        match source.below(16) {
            11 if count > 0 => {
                let later = place + source.index(count - place + 1);
                steps.insert(later, steps[place].clone());
            }
            12 if count > 1 => _ = steps.remove(place),
            13 if count > 1 => steps.swap(place, source.index(count)),
            14 => {
                let edits = vec![Edit::Grow { bytes: Hex(Edit::noise(source)) }];
                steps.insert(place, Step::Hostile { context: 0, packet: Hostile::Bytes, edits });
            }
            15 => {
                let codes = NackCode::REGISTRY.entries;
                let code = codes.get(source.index(codes.len())).map_or(0, |entry| entry.code);
                steps.insert(place, Step::Abort { target: 0, code });
            }
            _ => {
                if let Some(step) = steps.get_mut(place) {
                    self.edit(step, source);
                }
            }
        }
    }

    /// Changes a packet of a step.
    fn edit(&self, step: &mut Step, source: &mut impl Source) {
        let count = match step.plain() {
            Step::Message(plan) => self.memory.parts(plan).map_or(1, |parts| parts.len()),
            Step::Post(posting) => posting.replies.len(),
            _ => 1,
        };
        let chosen = source.index(count) as u8;
        let number = match step {
            Step::Changed { packet, .. } => *packet,
            _ => chosen,
        };
        let Some(edit) = self.sample(step.plain(), number).and_then(|bytes| Edit::draw(&bytes, source))
        else {
            return;
        };
        match step {
            Step::Hostile { edits, .. } | Step::Changed { edits, .. } => edits.push(edit),
            _ => {
                let of = Box::new(step.clone());
                *step = Step::Changed { of, packet: number, edits: vec![edit] };
            }
        }
    }

    /// Builds a packet of a step as a sample.
    fn sample(&self, step: &Step, packet: u8) -> Option<Vec<u8>> {
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let remote = Some(PdcId(0x4001));
        let pdc = Pdc { from: any, to: any, local: PdcId(1), remote, start: Psn(7), rod: false, entropy: 0 };
        let packet = match step {
            Step::Message(plan) => {
                let part = self.memory.parts(plan).ok()?.into_iter().nth(packet.into())?;
                packets::request(&pdc, pdc.request(0), plan, part).ok()?
            }
            Step::Control { kind, .. } => packets::control(&pdc, 0, kind.ctl_type()).ok()?,
            Step::Close { .. } => packets::control(&pdc, 0, CtlType::CLOSE_COMMAND).ok()?,
            Step::Repeat { .. } => pdc.request(0).build().ok()?,
            Step::Post(_) => pdc.ack(pdc.start).build().ok()?,
            Step::Abort { code, .. } => packets::nack(&pdc, *code, pdc.start)?,
            Step::Recorded { bytes } => return Some(bytes.0.clone()),
            Step::Hostile { edits, .. } => {
                let mut bytes = Vec::new();
                edits.iter().for_each(|edit| edit.apply(&mut bytes));
                return Some(bytes);
            }
            _ => return None,
        };
        Some(packet.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn each_rare_packet_ends_an_early_case() {
        let (memory, can) = (Memory::new(1, 4096), Abilities::any(4096, true));
        let inputs = Inputs { memory: &memory, can: &can, recorded: &[] };
        let case = |number| inputs.script(number, &mut Rng::with_seed(number));
        let is_after_loss = |script: &Sequence| match script.steps.iter().nth_back(1) {
            Some(Step::Message(plan)) => plan.fates == [Fate::Lost],
            other => panic!("{other:?}"),
        };
        for (turn, rare) in RARE.into_iter().enumerate() {
            let script = case(2 * turn as u64);
            let next_round = case(2 * (turn + RARE.len()) as u64);
            assert_eq!([&script, &next_round].map(is_after_loss), [false, true]);
            let last = script.steps.last().unwrap();
            assert!(match rare {
                Rare::Control(wanted) => matches!(last, Step::Control { kind, .. } if *kind == wanted),
                Rare::BeyondLength => matches!(last, Step::Changed { packet: 1, .. }),
                Rare::BeyondRegion => matches!(last, Step::Message(plan) if plan.wrong == Wrong::Range),
                Rare::OtherOpcode => matches!(last, Step::Changed { packet: 0, .. }),
            });
            assert_eq!(script, case(2 * turn as u64), "equal seeds give equal conversations");
        }
    }
}
