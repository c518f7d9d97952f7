//! Conversations in a secure domain of the device: its keys, its Start_PSNs, and packets in the clear.

use super::coverage::{Event, State};
use super::play::Player;
use super::serve::Served;
use super::step::{Rekey, Secured, StrangerKind};
use crate::{DomainKind, Outcome, Pdc, RxPacket};
use uet_control::KeyMode;
use uet_wire::catalogue::*;
use uet_wire::pds::{Nack, Request};
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::tss::ICV;
use uet_wire::{PdcId, Psn, UetBuf};

/// The bits of the packet counter that select a key, and their shift: each key lasts for 16 packets.
const REKEY: (u64, u8) = (0xfff0, 4);

/// The readable bytes after the security header: the header of a request.
const READABLE: u8 = 16;

impl Player<'_, '_> {
    /// Makes the device a member of a secure domain.
    pub(super) fn secure(&mut self, with: Secured) -> Outcome {
        let kind = DomainKind { mode: with.mode, ssi: with.ssi };
        self.t.secure_as(kind, |domain| {
            domain.epoch = with.epoch;
            let header = if domain.ssi { 16 } else { 12 };
            domain.confidentiality_offset = with.readable.then_some(header + READABLE);
            if with.rekeys {
                (domain.rekey_mask, domain.rekey_shift) = REKEY;
            }
        })?;
        self.sealing = self.t.shield()?.header_length() + ICV;
        Ok(())
    }

    /// Gives the device another key or epoch.
    pub(super) fn rekey(&mut self, change: Rekey) -> Outcome {
        let Some(domain) = self.sequence.secured.filter(|_| self.t.is_secure()) else { return Ok(()) };
        // A client holds the key of one epoch.
        if change == Rekey::Epoch && domain.mode == KeyMode::Client {
            return Ok(());
        }
        let lifetime = self.t.parameter("rx_max_epoch_lifetime") as u16;
        let shield = self.t.shield()?;
        shield.epoch = shield.installed.epoch;
        // No packet is under way under a key that another one replaces, or in an epoch that is too old.
        let until = self.t.now() + self.t.grace();
        self.pump(until)?;
        self.coverage.operation(Event::Rekey(change));
        let fresh = self.t.fresh_secret();
        let shield = self.t.shield()?;
        let other = usize::from(shield.installed.an == 0);
        match change {
            Rekey::Switch => {
                shield.secrets[other].get_or_insert(fresh);
                shield.installed.an = other as u8;
            }
            Rekey::Replace => {
                shield.secrets[other] = Some(fresh);
                // Its counters may begin anew.
                shield.seen.retain(|old| usize::from(old.an) != other);
                shield.installed.an = other as u8;
            }
            // The epoch of the suite is as old as it may be.
            Rekey::Epoch => shield.installed.epoch = shield.installed.epoch.wrapping_add(lifetime),
        }
        self.t.install()?;
        let shield = self.t.shield()?;
        shield.an = shield.installed.an == 1;
        Ok(())
    }

    /// Sends packets with the numbers of secured contexts in the clear. They must change nothing.
    pub(super) fn plain(&mut self, context: usize) -> Outcome {
        let Some(own) = self.own.get(context) else { return Ok(()) };
        let mut packets: Vec<(Pdc, UetBuf)> = Vec::new();
        if own.state == State::Open && own.next > 0 {
            let (pdc, next) = (own.pdc.clone(), own.next);
            packets.push((pdc.clone(), pdc.control(CtlType::CLEAR_COMMAND, Psn(0), pdc.psn(next - 1).0)?));
            packets.push((pdc.clone(), pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(next), 0)?));
            let region = self.regions.iter().find(|held| !held.plan.no_write && held.plan.length >= 64);
            if let Some(held) = region {
                let write = pdc.request(next).write(&held.region, 8, &[0xee; 32])?;
                packets.push((pdc.clone(), write.build()?));
            }
        }
        for served in self.served.iter().filter(|it| it.state == State::Open) {
            let last = served.pdc.psn(served.next()) - 1;
            packets.push((served.pdc.clone(), served.pdc.ack(last).build()?));
        }
        for (pdc, packet) in packets {
            self.coverage.seen(State::Open, Event::Stranger(StrangerKind::Plain));
            let plain = pdc.wire(&packet);
            self.t.send_as_it_is(&plain)?;
            // Also with a wrong ICV, unless the device counts those.
            if self.t.reported("auth_fail_latch").is_none() {
                let mut spoiled = self.t.sealed(&plain)?;
                if let Some(last) = spoiled.bytes.last_mut() {
                    *last ^= 1;
                }
                self.t.send_as_it_is(&spoiled)?;
            }
        }
        Ok(())
    }

    /// Demands another Start_PSN of the device.
    pub(super) fn demand_start(&mut self, served: usize, psn: Psn) -> Outcome {
        let it = &self.served[served];
        let pdc = it.pdc.clone();
        let nack = Nack::build(NackCode::NEW_START_PSN).nack_psn(psn);
        let nack = nack.dpdcid(pdc.remote.unwrap_or(PdcId::NONE)).payload(pdc.start.0).done()?;
        self.t.send(&pdc, &UetBuf::new(nack))
    }

    /// Judges a request that opens a context beside those whose Start_PSN the suite has refused.
    pub(super) fn judge_start(&mut self, seen: &RxPacket, request: &Request) -> Outcome {
        let waits = |it: &&Served| {
            it.pdc.from == seen.wire.dst
                && it.pdc.remote == Some(request.spdcid())
                && it.state == State::Open
                && it.is_pending()
        };
        match self.served.iter().find(waits) {
            Some(it) => {
                let told = format!("PSN {} of another one; {} was demanded", request.psn(), it.pdc.start);
                self.broken(TSS_START_003, "the Start_PSN that the NACK demands", told)
            }
            None => Ok(()),
        }
    }
}
