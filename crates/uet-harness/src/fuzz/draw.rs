//! Draws conversations with changed packets.

use super::packets::{self, Memory};
use core::net::{IpAddr, Ipv4Addr};
use uet_conformance::draw::Source;
use uet_conformance::random::step::{Hostile, Step};
use uet_conformance::random::{Abilities, Sequence};
use uet_conformance::{Edit, Pdc};
use uet_control::Hex;
use uet_wire::registry::{CtlType, NackCode};
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

impl Inputs<'_> {
    /// Draws a conversation with at least one change.
    pub(super) fn script(&self, source: &mut impl Source) -> Sequence {
        let recorded = source.index(self.recorded.len() * 2 + 1);
        let mut script = match self.recorded.get(recorded) {
            Some(script) => script.clone(),
            None => Sequence::draw_short(source, self.can, self.memory.plans()),
        };
        for _ in 0..source.within(1..=5) {
            self.change(&mut script, source);
        }
        script
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
