//! The bytes that an address may get before it has proven that it receives them (`PdsParams::unconfirmed_factor`).
//!
//! A packet with a forged source address must not turn the endpoint into an amplifier. Until a peer names a PDCID of
//! ours, its address gets at most a few times the bytes that came from it. QUIC has the same rule.

use super::event::{Dropped, Role};
use super::pdc::Pdc;
use super::shared::{Hasher, Shared};
use crate::packet::Unbuildable;
use crate::{Packet, Route};
use core::net::IpAddr;
use std::collections::HashMap;
use uet_wire::pds::{Control, RequestCc};

/// The accounts of all addresses with contexts.
#[cfg_attr(feature = "explore", derive(Clone))]
pub(super) struct Allowances {
    factor: u64,
    by_address: HashMap<IpAddr, Account, Hasher>,
    /// Contexts that waited and may now send.
    woken: Vec<u16>,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Allowances {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        crate::explore::map(&self.by_address, state);
        self.woken.hash(state);
    }
}

#[derive(Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
struct Account {
    contexts: u32,
    /// The number of contexts that the peer has confirmed. With one, there is no limit.
    confirmed: u32,
    /// The number of bytes that may still leave.
    left: u64,
    /// Contexts that wait for bytes of the peer.
    waiting: Vec<u16>,
}

impl Allowances {
    pub(super) fn new(factor: u8, seed: u64) -> Self {
        let by_address = HashMap::with_hasher(Hasher::with_seed(seed));
        Allowances { factor: factor.into(), by_address, woken: Vec::new() }
    }

    fn enter(&mut self, peer: IpAddr) {
        self.by_address.entry(peer).or_default().contexts += 1;
    }

    /// Records the end of a context.
    pub(super) fn leave(&mut self, peer: IpAddr, confirmed: bool) {
        let Some(account) = self.by_address.get_mut(&peer) else { return };
        account.confirmed -= u32::from(confirmed).min(account.confirmed);
        account.contexts -= 1;
        if account.contexts == 0 {
            self.by_address.remove(&peer);
        }
    }

    fn change(&mut self, peer: IpAddr, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.by_address.get_mut(&peer) {
            change(account);
            self.woken.append(&mut account.waiting);
        }
    }

    fn permits(&self, peer: IpAddr, bytes: usize) -> bool {
        let account = self.by_address.get(&peer);
        account.is_some_and(|account| account.confirmed > 0 || account.left >= bytes as u64)
    }

    /// Returns a context that waited and may now send.
    pub(super) fn pop_woken(&mut self) -> Option<u16> {
        self.woken.pop()
    }
}

impl Pdc {
    /// Opens the account of a new context.
    pub(super) fn enter(&mut self, shared: &mut Shared) {
        shared.allowances.enter(self.peer);
        let is_asked = self.role == Role::Target || self.route().context == Route::REPLY;
        self.limited = is_asked && shared.allowances.factor > 0;
    }

    /// Records that the peer has named this context.
    pub(super) fn enter_confirmed(&mut self, shared: &mut Shared) {
        self.limited = false;
        shared.allowances.change(self.peer, |account| account.confirmed += 1);
    }

    /// Records the bytes of a packet that arrived.
    pub(super) fn earn(&self, shared: &mut Shared, packet: &Packet) {
        if self.limited {
            let bytes = shared.allowances.factor * packet.wire_len() as u64;
            shared.allowances.change(self.peer, |account| account.left = account.left.saturating_add(bytes));
        }
    }

    /// Takes the bytes of a packet from the allowance of the peer; `false` if there are too few. The packet then counts
    /// as lost.
    pub(super) fn spend(&self, shared: &mut Shared, packet: &Packet) -> bool {
        if !self.limited {
            return true;
        }
        let bytes = packet.wire_len();
        let permitted = shared.allowances.permits(self.peer, bytes);
        match shared.allowances.by_address.get_mut(&self.peer) {
            Some(account) if permitted => account.left = account.left.saturating_sub(bytes as u64),
            _ => shared.drop_packet(Dropped::Unconfirmed),
        }
        permitted
    }

    /// Returns whether the peer may get this packet now.
    pub(super) fn affords(&self, shared: &Shared, packet: &Packet) -> bool {
        !self.limited || shared.allowances.permits(self.peer, packet.wire_len())
    }

    /// Sends a packet without a retransmission timer, if the peer may get it.
    pub(super) fn answer_peer(&self, shared: &mut Shared, packet: Result<Packet, Unbuildable>) {
        if packet.as_ref().map_or(true, |packet| self.spend(shared, packet)) {
            shared.answer(packet);
        }
    }

    /// Returns whether its next new packet must wait for bytes of the peer. A context that answers a request sends one
    /// packet until the first ACK.
    fn is_starved(&self, shared: &Shared) -> bool {
        let Some((key, true)) = self.first(shared).filter(|_| self.limited) else { return false };
        let Some(out) = shared.pool.get(key) else { return false };
        let bytes = match out.counted() {
            true => RequestCc::LAYOUT.bytes + out.head.len() + out.payload.len(),
            false => Control::LAYOUT.bytes,
        };
        let is_second = self.role == Role::Initiator && self.source.used() > 0;
        is_second || !shared.allowances.permits(self.peer, bytes)
    }

    /// Returns whether it waits for the answer to a PROBE before it sends data.
    pub(super) fn is_asking(&self) -> bool {
        self.starved && self.role == Role::Target
    }

    /// Waits for bytes of the peer if it needs them. A target asks for them by a PROBE.
    pub(super) fn watch_allowance(&mut self, shared: &mut Shared) {
        let starved = self.is_starved(shared);
        let before = core::mem::replace(&mut self.starved, starved);
        if before || !self.starved {
            return;
        }
        if let Some(account) = shared.allowances.by_address.get_mut(&self.peer) {
            account.waiting.push(self.handle.pdcid);
        }
        if self.is_asking() && self.probe.is_none() {
            self.send_probe(shared);
        }
    }
}
