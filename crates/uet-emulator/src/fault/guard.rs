//! A faulty protection around the right one.

use super::fields::Fields;
use super::recipe::Recipe;
use crate::security::Security;
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use uet_control::SecureDomain;
use uet_model::pds::{Association, OpenError, Protect, SealError, SecureContext};
use uet_model::secure::Member;
use uet_model::{Packet, Route};
use uet_wire::Psn;
use uet_wire::tss::ICV;

pub(super) type Sealed = Result<(Packet, Option<Association>), SealError>;
pub(super) type Opened = Result<(Packet, Option<Association>), OpenError>;

/// Decides about the Start_PSN of a peer.
type Accept = fn(&mut Right<'_>, Option<SecureContext>, IpAddr, Psn) -> Result<(), Psn>;

/// The places where a fault of transport security can act.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    /// Changes the domains as they are installed.
    pub(super) install: Option<fn(&mut SecureDomain)>,
    /// Changes the inputs of keys, IV and authenticated data, in both directions.
    pub(super) recipe: Option<fn(&mut Recipe)>,
    /// Seals a packet.
    pub(super) seal: Option<fn(&mut Right<'_>, Packet) -> Sealed>,
    /// Opens a packet.
    pub(super) open: Option<fn(&mut Right<'_>, Packet) -> Opened>,
    /// Judges a Start_PSN.
    pub(super) accept: Option<Accept>,
}

impl Hooks {
    pub(super) const NONE: Hooks =
        Hooks { install: None, recipe: None, seal: None, open: None, accept: None };
}

/// The state of faults. It survives a change of keys.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) numbers: BTreeMap<(u64, u64), u64>,
    pub(super) packets: BTreeMap<(u64, u64), Packet>,
    pub(super) domains: Vec<SecureDomain>,
    /// The number of installations.
    pub(super) installed: u64,
}

/// The right protection, and the state of the faults around it.
pub(super) struct Right<'a> {
    pub(super) security: &'a Security,
    pub(super) notes: &'a mut Notes,
}

/// Returns the bytes of a packet, and the packet with other bytes.
fn with_bytes(packet: &Packet, bytes: Vec<u8>) -> Packet {
    let at = packet.head.len().min(bytes.len());
    let (head, payload) = bytes.split_at(at);
    Packet { head: head.iter().copied().collect(), payload: payload.to_vec().into(), ..packet.clone() }
}

impl Right<'_> {
    pub(super) fn seal(&mut self, packet: Packet) -> Sealed {
        self.security.secure().seal(packet)
    }

    pub(super) fn open(&mut self, packet: Packet) -> Opened {
        self.security.secure().open(packet)
    }

    pub(super) fn accept(
        &mut self,
        context: Option<SecureContext>,
        peer: IpAddr,
        start: Psn,
    ) -> Result<(), Psn> {
        self.security.secure().accept_start(context, peer, start)
    }

    /// Works with the member of a packet's domain.
    pub(super) fn member<T>(&mut self, packet: &Packet, work: impl FnOnce(&mut Member) -> T) -> Option<T> {
        let sdi = packet.security?.sdi;
        self.security.secure().member_mut(sdi).map(work)
    }

    /// Seals a packet under a counter, and leaves the counter of the member as it was.
    pub(super) fn seal_at(&mut self, packet: Packet, counter: u64) -> Sealed {
        let (sdi, an) = (packet.security.map(|context| context.sdi), self.current_an(&packet));
        let next = self.member(&packet, |member| {
            let next = member.counter(an);
            member.set_counter(an, counter);
            next
        });
        let sealed = self.seal(packet);
        if let (Some(sdi), Some(Some(next))) = (sdi, next) {
            if let Some(member) = self.security.secure().member_mut(sdi) {
                member.set_counter(an, next);
            }
        }
        sealed
    }

    pub(super) fn current_an(&mut self, packet: &Packet) -> bool {
        self.member(packet, |member| member.current_an).unwrap_or_default()
    }

    /// Returns the domain that a secured packet names, or the first.
    pub(super) fn domain(&self, packet: &Packet) -> Option<SecureDomain> {
        let bytes = packet.to_wire();
        let sdi = bytes.get(1..4).map(|sdi| u32::from_be_bytes([0, sdi[0], sdi[1], sdi[2]]));
        let domains = &self.security.domains;
        domains.iter().find(|domain| Some(domain.sdi) == sdi).or(domains.first()).cloned()
    }

    /// Returns the right inputs for a secured packet that has arrived.
    pub(super) fn recipe(&self, packet: &Packet) -> Option<Recipe> {
        let bytes = packet.to_wire();
        let outer = self.security.secure().outer(packet, bytes.len(), false);
        Recipe::right(&self.domain(packet)?, outer, &bytes, false)
    }

    /// Opens a packet with other inputs.
    pub(super) fn open_as(&self, packet: &Packet, recipe: &Recipe) -> Option<(Packet, Option<Association>)> {
        let mut bytes = packet.to_wire().to_vec();
        recipe.open(&mut bytes)?;
        self.inner(packet, recipe, bytes)
    }

    /// Decrypts a packet though its ICV is wrong. Returns the right ICV too.
    pub(super) fn decrypt(&self, packet: &Packet) -> Option<(Packet, Option<Association>, [u8; ICV])> {
        let recipe = self.recipe(packet)?;
        let mut bytes = packet.to_wire().to_vec();
        let icv = recipe.decrypt(&mut bytes)?;
        let (inner, association) = self.inner(packet, &recipe, bytes)?;
        Some((inner, association, icv))
    }

    /// Returns the packet within decrypted bytes.
    pub(super) fn inner(
        &self,
        packet: &Packet,
        recipe: &Recipe,
        mut bytes: Vec<u8>,
    ) -> Option<(Packet, Option<Association>)> {
        bytes.truncate(bytes.len() - ICV);
        let inner = bytes.split_off(recipe.header.len());
        let inner = Packet::from_wire(packet.src, packet.dst, inner.into()).ok()?;
        let Packet { class, priority, marked, entropy, .. } = *packet;
        let ssi = recipe.domain.ssi.then(|| u32::from_be_bytes([0, 1, 2, 3].map(|at| recipe.iv[at])));
        let context = SecureContext { sdi: recipe.domain.sdi, ssi };
        let association = Association {
            context,
            an: recipe.header[0] & 1 != 0,
            epoch: u16::from_be_bytes([recipe.iv[4], recipe.iv[5]]),
            counter: 0,
        };
        Some((Packet { class, priority, marked, entropy, ..inner }, Some(association)))
    }
}

/// The protection of a NIC with faults.
#[derive(Debug)]
pub(crate) struct Guard {
    security: Security,
    hooks: Vec<Hooks>,
    notes: Arc<Mutex<Notes>>,
}

impl core::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Hooks")
    }
}

/// The state that the faults of a NIC share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Notes>>);

impl Guard {
    pub(crate) fn new(security: &Security, hooks: Vec<Hooks>, shared: &Shared) -> Self {
        let notes = shared.0.clone();
        let mut noted = notes.lock().unwrap_or_else(PoisonError::into_inner);
        noted.installed += 1;
        let domains = &mut noted.domains;
        domains.extend(security.domains.iter().cloned());
        let excess = domains.len().saturating_sub(64);
        domains.drain(..excess);
        Guard { security: security.clone(), hooks, notes: shared.0.clone() }
    }

    fn with<T>(&mut self, work: impl FnOnce(&mut Right<'_>) -> T) -> T {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut Right { security: &self.security, notes: &mut notes })
    }

    /// Makes a rightly sealed packet one of a fault's, or the other way round. A packet that does not open stays, with
    /// an ICV that is wrong.
    fn transcode(&self, packet: Packet, leaving: bool) -> Packet {
        let mut bytes = packet.to_wire().to_vec();
        let outer = self.security.secure().outer(&packet, bytes.len(), leaving);
        let named = bytes.get(1..4).map(|sdi| u32::from_be_bytes([0, sdi[0], sdi[1], sdi[2]]));
        let domain = self.security.domains.iter().find(|domain| Some(domain.sdi) == named);
        let changes: Vec<_> = self.hooks.iter().filter_map(|hooks| hooks.recipe).collect();
        let secured = bytes.first().is_some_and(|first| first >> 3 == 1);
        let (Some(domain), true, false) = (domain, secured, changes.is_empty()) else { return packet };
        let Some(right) = Recipe::right(domain, outer, &bytes, leaving) else { return packet };
        let mut wrong = right.clone();
        changes.iter().for_each(|change| change(&mut wrong));
        let (from, to) = if leaving { (&right, &wrong) } else { (&wrong, &right) };
        let made = from.open(&mut bytes).and_then(|()| to.seal(&mut bytes));
        if made.is_none() {
            bytes.last_mut().into_iter().for_each(|last| *last ^= 1);
        }
        with_bytes(&packet, bytes)
    }
}

impl Protect for Guard {
    fn outbound(&mut self, route: &Route) -> Option<SecureContext> {
        self.security.secure().outbound(route)
    }

    fn seal(&mut self, packet: Packet) -> Sealed {
        let hook = self.hooks.iter().find_map(|hooks| hooks.seal);
        let (sealed, association) = self.with(|right| match hook {
            Some(hook) => hook(right, packet),
            None => right.seal(packet),
        })?;
        Ok((self.transcode(sealed, true), association))
    }

    fn open(&mut self, packet: Packet) -> Opened {
        let packet = if packet.trimmed.is_none() { self.transcode(packet, false) } else { packet };
        let hook = self.hooks.iter().find_map(|hooks| hooks.open);
        self.with(|right| match hook {
            Some(hook) => hook(right, packet),
            None => right.open(packet),
        })
    }

    fn start_psn(&mut self, context: Option<SecureContext>) -> Option<Psn> {
        self.security.secure().start_psn(context)
    }

    fn accept_start(&mut self, context: Option<SecureContext>, peer: IpAddr, start: Psn) -> Result<(), Psn> {
        let hook = self.hooks.iter().find_map(|hooks| hooks.accept);
        self.with(|right| match hook {
            Some(hook) => hook(right, context, peer, start),
            None => right.accept(context, peer, start),
        })
    }

    fn closed(&mut self, context: Option<SecureContext>, start: Psn, highest: Psn) {
        self.security.secure().closed(context, start, highest);
    }

    fn expected_psn(&mut self, context: Option<SecureContext>, start: Psn, highest: Psn) -> Option<Psn> {
        self.security.secure().expected_psn(context, start, highest)
    }

    fn learn_expected_psn(&mut self, context: Option<SecureContext>, expected: Psn) {
        self.security.secure().learn_expected_psn(context, expected);
    }
}

/// Names a context of this NIC that does not exist, so that the packet has no effect but an answer.
pub(super) fn misdirect(mut packet: Packet) -> Packet {
    packet.change("pds.dpdcid", |pdcid| (pdcid ^ 0x4000).max(1));
    packet
}
