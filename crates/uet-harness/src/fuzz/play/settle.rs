//! Closes contexts by the rules, and checks that the device is alive.

use super::{PLAIN, PassedPacket, Player, packets};
use core::time::Duration;
use uet_conformance::{DutError, Pdc, RxPacket};
use uet_control::Mode;
use uet_observe::{Context, Side};
use uet_wire::registry::{CtlType, NackCode, ReturnCode};
use uet_wire::{PdcId, Psn, UetBuf};

/// Maximum number of lost PSNs of a context that are filled before it is closed.
const FILLED: u32 = 64;

/// Maximum number of rounds of answers to the device before its contexts are closed.
const ROUNDS: usize = 8;

/// The fuzzer's side of a context that it may have opened.
#[derive(Debug)]
pub(super) struct Opened {
    pdc: Pdc,
    /// Number of PSNs that the device has acknowledged cumulatively.
    covered: u32,
    /// Number of used PSNs.
    used: u32,
}

impl Opened {
    pub(super) fn of(context: &Context, side: Side) -> Option<Self> {
        let (pdc, own) = (Pdc::of(context, side), context.direction(side));
        let first = own.index(pdc.start);
        let n = |index: Option<i64>| index.map_or(0, |index| (index + 1 - first).max(0)) as u32;
        let (covered, used) = (n(own.cack.map(|(cack, _)| cack)), n(own.highest));
        context.start.map(|_| Opened { pdc, covered, used })
    }
}

impl Player<'_> {
    /// Sends a packet and waits for one that `wanted` accepts.
    fn ask<T>(
        &mut self,
        pdc: &Pdc,
        packet: Option<UetBuf>,
        wanted: impl Fn(&RxPacket) -> Option<T>,
    ) -> Result<Option<T>, DutError> {
        let mut number = self.passed.len();
        self.send(pdc, packet)?;
        let until = self.dut.now() + self.soon;
        loop {
            while let Some(PassedPacket { at, wire, .. }) = self.passed.get(number).cloned() {
                let found = wanted(&RxPacket { at, number, wire });
                if found.is_some() {
                    return Ok(found);
                }
                number += 1;
            }
            if !self.receive(until)? {
                return Ok(None);
            }
        }
    }

    /// Answers requests of the device, and closes open contexts by the rules. Returns whether the device has confirmed
    /// that all are closed. Otherwise its contexts may legitimately stay open.
    pub(in crate::fuzz) fn close(&mut self) -> Result<bool, DutError> {
        self.answer_all()?;
        if self.posted {
            self.close_by_device(Mode::Rud);
            self.close_by_device(Mode::Rod);
            self.answer_all()?;
        }
        let mut contexts: Vec<&Context> = self.observer.contexts().collect();
        contexts.sort_by_key(|context| context.id);
        let (mut sure, mut open) = (true, core::mem::take(&mut self.closed));
        for context in contexts {
            let side = self.side(context);
            let device = context.direction(side.other());
            let starts = context.start.is_some_and(|(_, number)| self.is_ours(number));
            let Some(opened) = Opened::of(context, side).filter(|_| starts) else {
                sure &= device.highest.is_none() || device.close.is_some();
                continue;
            };
            let mut openings = self.unrefused.iter().filter(|((local, psn), (_, opens))| {
                *local == opened.pdc.local && *opens && context.distance_from_start(Psn(*psn)).is_some()
            });
            // It has opened no context, and has refused each packet.
            if device.names.is_empty() && openings.all(|(_, (count, _))| *count == 0) {
                continue;
            }
            match device.names.len() {
                1 => open.push(opened),
                _ => sure = false,
            }
        }
        for Opened { pdc, covered, used } in open {
            // A changed packet may hide later ones from the observer.
            let own = self.own.iter().find(|own| (own.pdc.local, own.pdc.start) == (pdc.local, pdc.start));
            let used = own.map_or(used, |own| used.max(own.next));
            if used.checked_sub(covered).is_none_or(|missing| missing > FILLED) {
                sure = false;
                continue;
            }
            for n in covered..used {
                self.send(&pdc, packets::control(&pdc, n, CtlType::NOOP).ok())?;
            }
            sure &= self.command(&pdc, used)?;
        }
        Ok(sure)
    }

    /// Sends ACKs until the device sends no more requests.
    fn answer_all(&mut self) -> Result<(), DutError> {
        for _ in 0..ROUNDS {
            self.listen(self.soon / 8, |player| !player.asks.is_empty())?;
            if self.asks.is_empty() {
                break;
            }
            self.answer(&PLAIN, &[])?;
        }
        Ok(())
    }

    /// Sends CLOSE_COMMAND with the `n`-th PSN; returns whether it is acknowledged.
    fn command(&mut self, pdc: &Pdc, n: u32) -> Result<bool, DutError> {
        let gone = [NackCode::INV_DPDCID, NackCode::CLOSING, NackCode::CLOSING_IN_ERR];
        let is_over = |seen: &RxPacket| {
            let is_gone =
                seen.is_for(pdc) && seen.nack().is_some_and(|nack| gone.contains(&nack.nack_code()));
            (is_gone || seen.answers(pdc, pdc.psn(n)).is_some()).then_some(())
        };
        // Repeat on a link that loses packets.
        for _ in 0..3 {
            if self.ask(pdc, packets::control(pdc, n, CtlType::CLOSE_COMMAND).ok(), is_over)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets time pass.
    pub(in crate::fuzz) fn idle(&mut self, span: Duration) -> Result<(), DutError> {
        self.listen(span, |_| false)
    }

    /// Writes to the liveness region on a context of its own, then closes that context. Returns the device's answer and
    /// whether all is closed, as in [`close`](Self::close); `None` for silence.
    pub(in crate::fuzz) fn pulse(
        &mut self,
        local: PdcId,
        start: Psn,
        beat: [u8; 8],
    ) -> Result<Option<(Pulse, bool)>, DutError> {
        let (from, to) = self.way();
        let pdc = Pdc { from, to, local, remote: None, start, rod: false, entropy: 0xc000 };
        let message = pdc.request(0).write(&self.memory.pulse, 0, &beat);
        let Ok(request) = message else { return Ok(None) };
        let answer = |seen: &RxPacket| {
            let refuses = seen.refuses(&pdc, start).is_some();
            let done = matches!(seen.return_code(), None | Some(ReturnCode::OK));
            (refuses || seen.acknowledges(&pdc, start).is_some()).then_some(if done && !refuses {
                Pulse::Done
            } else {
                Pulse::Refused
            })
        };
        for again in 0..4 {
            let request = if again == 0 { request.clone() } else { request.clone().retx() };
            if let Some(pulse) = self.ask(&pdc, request.build().ok(), answer)? {
                return Ok(Some((pulse, self.close()?)));
            }
        }
        Ok(None)
    }
}

/// Answer of a device to a plain write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fuzz) enum Pulse {
    /// The device has executed it.
    Done,
    /// The device has refused it.
    Refused,
}
