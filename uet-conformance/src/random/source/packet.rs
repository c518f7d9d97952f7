//! Packets of the suite's contexts on their way to the device.

use super::*;
use crate::random::coverage::{Event, State};
use crate::random::play::{Due, Player};
use crate::random::step::{ControlKind, Fate};
use crate::reserved::with_reserved_bits;
use crate::{Outcome, Part, Pdc, Request, Stop, Trimmed};
use uet_wire::pds::PdsBuf;
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::{Psn, UetBuf};

impl Player<'_, '_> {
    /// The packet of a PSN as it would leave now.
    pub(super) fn packet(&self, context: usize, n: u32, retx: bool) -> Result<Option<UetBuf>, Stop> {
        let own = &self.own[context];
        let Some(packet) = own.sent.get(&n) else { return Ok(None) };
        Ok(Some(match packet.what {
            What::Part(message, part) => {
                let sending = &self.messages[message];
                let Part { ses, ext, payload } = sending.parts[part].clone();
                let last = part + 1 == sending.parts.len();
                let request = Request { ext, ..own.pdc.request(n).ses(ses, &payload) };
                let ar = retx || !sending.plan.quiet || last && sending.plan.seed % 2 == 1;
                Request { retx, ar, ..request.clear(own.clear()) }.build()?
            }
            What::Control(kind) => match kind {
                CtlType::NOOP | CtlType::NEGOTIATION => flagged(own.pdc.numbered(kind, n)?, retx)?,
                _ => flagged(own.pdc.control(kind, own.pdc.psn(n), 0)?, retx)?,
            },
        }))
    }

    pub(super) fn transmit(&mut self, context: usize, n: u32, fate: Fate, retx: bool) -> Outcome {
        let Some(packet) = self.packet(context, n, retx)? else { return Ok(()) };
        let now = self.t.now();
        let mut pdc = self.own[context].pdc.clone();
        let fate = self.possible(fate);
        if self.t.facts().set_entropy && !pdc.rod {
            // Each packet takes a path of its own.
            pdc.entropy = 0xc000 | (n.wrapping_mul(0x235) & 0x1fff) as u16;
        }
        self.note_arrival(context, n, fate);
        if n == 0 && pdc.remote.is_none() {
            if !self.t.is_secure() {
                // Of the contexts with one identifier, a target may remember only the last one.
                self.openings.retain(|(of, ..)| *of != context);
            }
            self.own[context].opening = Some(pdc.wire(&packet));
        }
        let reserved = match self.what(context, n) {
            Some(What::Part(message, _)) if fate == Fate::Arrives => {
                Some(&self.messages[message].plan).filter(|plan| plan.reserved).map(|plan| plan.seed)
            }
            _ => None,
        };
        if let Some(packet_of) = self.own[context].sent.get_mut(&n) {
            packet_of.entropies.insert(pdc.entropy);
            packet_of.size = packet.to_bytes().len();
            let plain = !retx && matches!(fate, Fate::Arrives | Fate::Marked | Fate::Twice);
            packet_of.undisturbed = plain.then_some(now);
        }
        let mut count = |marked: bool, times: u32| {
            if let Some(packet) = self.own[context].sent.get_mut(&n) {
                packet.with[usize::from(!retx)] += times;
                packet.with[2 + usize::from(!marked)] += times;
            }
        };
        if let Some(seed) = reserved {
            let mut forms = with_reserved_bits(&packet);
            let bytes = forms.swap_remove(seed as usize % forms.len());
            count(false, 1);
            return self.t.send_wire(&pdc.raw(&bytes));
        }
        let (place, code) = match n % 2 {
            0 => (Trimmed::Fabric, NackCode::TRIMMED),
            _ => (Trimmed::LastHop, NackCode::TRIMMED_LASTHOP),
        };
        match fate {
            Fate::Lost => self.t.note("the next packet is lost"),
            Fate::Arrives | Fate::Late => count(false, 1),
            Fate::Twice => {
                count(false, 2);
                self.later(now + self.gap, Due::Deliver(pdc.wire(&packet)));
                return self.t.send(&pdc, &packet);
            }
            Fate::Marked => count(true, 1),
            // The rest is no transmission that counts for `retx` and `m` of an ACK.
            Fate::Trimmed => {
                let known = pdc.remote.is_some() && matches!(self.what(context, n), Some(What::Part(..)));
                if known {
                    self.wanted_answers.push((pdc.from, pdc.psn(n).0, Some(code)));
                }
            }
        }
        self.carry(&pdc, &packet, fate, place)
    }

    /// Notes what the network does to a packet of an ordered context. Above a gap, the device reports the
    /// first one that arrives.
    fn note_arrival(&mut self, context: usize, n: u32, fate: Fate) {
        let is_part = matches!(self.what(context, n), Some(What::Part(..)));
        // On a real network, the order may be another one.
        let in_order = self.t.facts().virtual_time;
        let own = &mut self.own[context];
        if !own.pdc.rod || !in_order {
            return;
        }
        let first = match fate {
            Fate::Lost | Fate::Trimmed => false,
            Fate::Late => {
                own.ordered.arrives_late(n);
                false
            }
            Fate::Arrives | Fate::Marked => own.ordered.arrives(n),
            Fate::Twice => {
                let first = own.ordered.arrives(n);
                own.ordered.arrives_late(n);
                first
            }
        };
        if first && is_part && own.pdc.remote.is_some() {
            let wanted = (own.pdc.from, own.pdc.psn(n).0, Some(NackCode::ROD_OOO));
            self.wanted_answers.push(wanted);
        }
    }

    /// Sends a packet as the network treats it. A switch trims it at this place.
    pub(in crate::random) fn carry(
        &mut self,
        pdc: &Pdc,
        packet: &UetBuf,
        fate: Fate,
        place: Trimmed,
    ) -> Outcome {
        match fate {
            Fate::Lost => Ok(()),
            Fate::Arrives => self.t.send(pdc, packet),
            Fate::Twice => {
                self.t.send(pdc, packet)?;
                self.t.send(pdc, packet)
            }
            Fate::Late => {
                let at = self.t.now() + self.gap * 2;
                self.later(at, Due::Deliver(pdc.wire(packet)));
                Ok(())
            }
            Fate::Marked => self.t.send_wire(&pdc.marked(packet)),
            Fate::Trimmed => {
                let length = packet.to_bytes().len();
                self.t.send_wire(&pdc.trimmed(packet, place, length.min(60)))
            }
        }
    }

    /// The network may be unable to do this.
    pub(in crate::random) fn possible(&self, fate: Fate) -> Fate {
        let facts = self.t.facts();
        match fate {
            Fate::Marked if !(facts.set_ecn && self.t.claims("ecn")) => Fate::Arrives,
            // Nobody can open a packet that was trimmed.
            Fate::Trimmed if !(facts.trim && self.t.claims("trim")) || self.t.is_secure() => Fate::Lost,
            _ if self.settling => Fate::Arrives,
            fate => fate,
        }
    }

    /// Sends an earlier packet of a context again.
    pub(in crate::random) fn repeat(&mut self, context: usize, back: u8, retx: bool) -> Outcome {
        let Some(own) = self.own.get(context) else { return Ok(()) };
        let Some((n, packet)) = own.sent.iter().rev().nth(back.into()) else { return Ok(()) };
        let n = *n;
        if matches!(own.state, State::Closed | State::Dead | State::Closing)
            || !packet.done && retx && own.pdc.rod
        {
            return Ok(());
        }
        self.coverage.seen(own.state, Event::Repeat);
        self.transmit(context, n, Fate::Arrives, retx)
    }

    pub(in crate::random) fn control(
        &mut self,
        context: usize,
        kind: ControlKind,
        back: u8,
        fate: Fate,
    ) -> Outcome {
        let Some(own) = self.own.get(context) else { return Ok(()) };
        let (pdc, state, next, clear) = (own.pdc.clone(), own.state, own.next, own.clear());
        let own_life = own.life;
        let takes = match kind {
            ControlKind::Noop => Some(CtlType::NOOP),
            ControlKind::Negotiation if self.t.claims("negotiation") => Some(CtlType::NEGOTIATION),
            _ => None,
        };
        if let Some(kind) = takes {
            if matches!(state, State::Closed | State::Dead) {
                self.reopen(context)?;
            }
            let own = &self.own[context];
            let full = own.next >= own.covered.saturating_add(own.window);
            if full || own.wants_close || !own.queue.is_empty() || own.state == State::Closing {
                return Ok(());
            }
            return self.send_new(context, What::Control(kind), fate);
        }
        let open = state == State::Open && next > 0;
        if !open {
            return Ok(());
        }
        let psn = pdc.psn(next - 1 - u32::from(back).min(next - 1));
        let packet = match kind {
            ControlKind::AckRequest => pdc.control(CtlType::ACK_REQUEST, psn, 0)?,
            ControlKind::ClearCommand => pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?,
            ControlKind::Probe => {
                let opaque = self.next_id as u16 | 0x8000;
                self.next_id += 1;
                if !matches!(self.possible(fate), Fate::Lost) {
                    self.wanted_probes.push((context, own_life, opaque));
                }
                // Nobody reads the PSN of a PROBE.
                match pdc.probe(opaque, psn)?.pds {
                    Some(PdsBuf::Control(probe)) if back % 2 == 1 => {
                        UetBuf::new(probe.edit().psn(pdc.psn(next)).done()?)
                    }
                    _ => pdc.probe(opaque, psn)?,
                }
            }
            _ => return Ok(()),
        };
        let event = Event::Control(kind);
        self.coverage.seen(state, event);
        let named = Self::distance(psn, pdc.start).filter(|_| kind == ControlKind::AckRequest);
        if let Some(asked) = named.and_then(|n| self.own[context].sent.get_mut(&n)) {
            asked.asked = true;
        }
        if kind == ControlKind::AckRequest && !matches!(self.possible(fate), Fate::Lost) {
            self.wanted_answers.push((pdc.from, psn.0, None));
        }
        let fate = match self.possible(fate) {
            Fate::Late | Fate::Trimmed => Fate::Arrives,
            fate => fate,
        };
        self.carry(&pdc, &packet, fate, Trimmed::Fabric)
    }
}

/// A control packet with this `retx`.
fn flagged(packet: UetBuf, retx: bool) -> Result<UetBuf, Stop> {
    match packet.pds {
        Some(PdsBuf::Control(control)) if retx => {
            Ok(UetBuf { pds: Some(control.edit().retx(true).done()?.into()), ..packet })
        }
        _ => Ok(packet),
    }
}
