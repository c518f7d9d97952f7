//! Generates random scripts: a valid conversation with at least one invalid change.

use super::packets::{self, Memory};
use super::script::{Act, Context, Edit, Kind, Message, Script};
use core::net::{IpAddr, Ipv4Addr};
use fastrand::Rng;
use uet_conformance::Pdc;
use uet_control::Hex;
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::{PdcId, Psn};

/// Inputs of the generator.
#[derive(Debug)]
pub struct Source<'a> {
    /// Memory of the device.
    pub memory: &'a Memory,
    /// True if the device accepts `post`.
    pub posts: bool,
    /// Recorded conversations.
    pub recorded: &'a [Script],
}

/// Message lengths, including those around packet boundaries.
const LENGTHS: [u32; 8] = [0, 1, 8, 100, 1024, 4096, 4097, 9000];

const KINDS: [Kind; 12] = [
    Kind::Write,
    Kind::Write,
    Kind::Read,
    Kind::ReadWitness,
    Kind::Read,
    Kind::WriteWitness,
    Kind::Add,
    Kind::Swap,
    Kind::Send,
    Kind::Tagged,
    Kind::Rendezvous,
    Kind::Nothing,
];

/// Operations that the device may be told to post.
const POSTS: [&str; 8] =
    ["write", "read", "send", "tsend", "rendezvous_send", "deferrable_send", "datagram", "no_op"];

impl Source<'_> {
    /// Generates a conversation with at least one change.
    pub fn script(&self, rng: &mut Rng) -> Script {
        let recorded = rng.usize(..self.recorded.len() * 2 + 1);
        let mut script = match self.recorded.get(recorded) {
            Some(script) => script.clone(),
            None => self.conversation(rng),
        };
        let changes = 1 + rng.usize(..5);
        (0..changes).for_each(|_| self.change(&mut script, rng));
        script
    }

    /// Generates a valid conversation.
    pub fn conversation(&self, rng: &mut Rng) -> Script {
        let mut script = Script::default();
        for _ in 0..1 + usize::from(rng.u8(..4) == 0) {
            let near_wrap = 0u32.wrapping_sub(rng.u32(..8));
            let start = [rng.u32(..), near_wrap, near_wrap ^ 1 << 31][rng.usize(..3)];
            script.contexts.push(Context { pdcid: rng.u16(1..), start, rod: rng.u8(..4) == 0 });
        }
        let mut next = vec![0; script.contexts.len()];
        for _ in 0..rng.usize(1..6) {
            let context = rng.usize(..next.len());
            self.turn(&mut script, context, &mut next[context], rng);
        }
        for (context, n) in next.into_iter().enumerate() {
            if rng.bool() {
                script.steps.push(Act::Control { context, n, kind: CtlType::CLOSE_COMMAND.code() }.into());
            }
        }
        script
    }

    /// Generates the steps of one side for a message.
    fn turn(&self, script: &mut Script, context: usize, next: &mut u32, rng: &mut Rng) {
        let mut take = |count: u32| core::mem::replace(next, *next + count);
        let mut add = |act: Act| script.steps.push(act.into());
        match rng.u8(..12) {
            10 | 11 => add(Act::Wait { us: rng.u32(1..3000) }),
            0 => {
                let rudi = rng.bool();
                add(Act::Lone { message: message(rng), rudi });
            }
            1 => add(Act::Control { context, n: take(1), kind: CtlType::NOOP.code() }),
            2 => {
                // Steps about earlier packets: none of these has a PSN of its own.
                let kinds =
                    [CtlType::PROBE, CtlType::ACK_REQUEST, CtlType::CLEAR_COMMAND, CtlType::CREDIT_REQUEST];
                let n = take(0).saturating_sub(1);
                add(Act::Control { context, n, kind: kinds[rng.usize(..kinds.len())].code() });
            }
            3 | 4 if self.posts => {
                let kind = POSTS[rng.usize(..POSTS.len())].into();
                add(Act::Post {
                    kind,
                    length: u64::from(LENGTHS[rng.usize(..LENGTHS.len())]),
                    rod: rng.u8(..4) == 0,
                });
                if rng.u8(..4) == 0 {
                    let code = NackCode::NO_RESOURCE.code();
                    add(Act::Refuse { code });
                }
                add(Act::Answer);
            }
            _ => {
                let message = message(rng);
                let parts = self.memory.parts(&message).min(8);
                let first = take(parts as u32);
                let request =
                    |part: usize, retx| Act::Request { context, n: first + part as u32, message, part, retx };
                (0..parts).for_each(|part| add(request(part, false)));
                if rng.u8(..6) == 0 {
                    add(request(rng.usize(..parts.max(1)), true));
                }
                if matches!(message.kind, Kind::Read | Kind::ReadWitness | Kind::Rendezvous) {
                    add(Act::Answer);
                }
            }
        }
    }

    /// Changes a packet, or adds, removes or reorders packets.
    fn change(&self, script: &mut Script, rng: &mut Rng) {
        let places = script.steps.len();
        let place = rng.usize(..places.max(1));
        match rng.u8(..16) {
            0 => {
                let repeated = script.steps.get(place).cloned();
                let later = rng.usize(place..=places);
                repeated.into_iter().for_each(|step| script.steps.insert(later.min(places), step));
            }
            1 if places > 1 => {
                script.steps.remove(place);
            }
            2 if places > 1 => script.steps.swap(place, rng.usize(..places)),
            3 => script.steps.insert(place.min(places), Act::Raw { bytes: Hex(Edit::noise(rng)) }.into()),
            4 => {
                let (context, n, kind) =
                    (rng.usize(..script.contexts.len().max(1)), rng.u32(..6), rng.u8(..16));
                if context < script.contexts.len() {
                    script.steps.insert(place.min(places), Act::Control { context, n, kind }.into());
                }
            }
            5 => {
                let code = NackCode::REGISTRY.entries.get(rng.usize(..NackCode::REGISTRY.entries.len()));
                let code = code.map_or(0, |entry| entry.code);
                script.steps.insert(place.min(places), Act::Refuse { code }.into());
            }
            _ => {
                if let Some(step) = script.steps.get_mut(place) {
                    step.edits.extend(self.edit(&step.act, rng));
                }
            }
        }
    }

    fn edit(&self, act: &Act, rng: &mut Rng) -> Option<Edit> {
        let bytes = self.sample(act)?;
        Edit::draw(&bytes, rng)
    }

    /// Builds the packet of an act as a sample.
    fn sample(&self, act: &Act) -> Option<Vec<u8>> {
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let remote = Some(PdcId(0x4001));
        let context =
            Pdc { from: any, to: any, local: PdcId(1), remote, start: Psn(7), rod: false, entropy: 0 };
        let packet = match act {
            Act::Request { n, message, part, .. } => {
                self.memory.request(&context, *n, message, *part).ok()?.build().ok()?
            }
            Act::Control { n, kind, .. } => packets::control(&context, *n, CtlType::new(*kind)?).ok()?,
            Act::Lone { message, rudi } => self.memory.lone(&context, message, *rudi).ok()?,
            Act::Answer => context.ack(context.start).build().ok()?,
            Act::Refuse { code } => packets::nack(&context, *code, context.start)?,
            Act::Recorded { bytes } | Act::Raw { bytes } => return Some(bytes.0.clone()),
            Act::Post { .. } | Act::Wait { .. } => return None,
        };
        Some(packet.to_bytes())
    }
}

fn message(rng: &mut Rng) -> Message {
    let length = LENGTHS[rng.usize(..LENGTHS.len())];
    // The last offset is as far from the end of the address space as from the end of the region.
    let offset = [0, 8, 1000, 65_528, u64::MAX - 7][rng.usize(..5)];
    Message { kind: KINDS[rng.usize(..KINDS.len())], length, offset }
}
