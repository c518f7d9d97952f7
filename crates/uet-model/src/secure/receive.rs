//! The way in: the checks of section 3.7, in their order. Before the ICV is right, nothing changes but statistics.

use super::send::is_nack_without_context;
use super::{Secure, Statistic};
use crate::Packet;
use crate::pds::{Association, OpenError, SecureContext};
use uet_wire::Uet;
use uet_wire::tss::{Direction, ICV, Outer, Tss};

/// The length in bytes of the shortest packet within a protected one: the prologue.
const SHORTEST: usize = 2;

impl Secure {
    pub(super) fn receive(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), OpenError> {
        let Some(length) = security_header(&packet) else { return self.receive_clear(packet) };
        if packet.trimmed.is_some() {
            // `TSS-TRIM-001`: the ICV is gone with the payload.
            self.count(None, Statistic::InTrimmed);
            return Err(OpenError::Malformed);
        }
        if packet.wire_len() < length + SHORTEST + ICV {
            self.count(None, Statistic::InErrored);
            return Err(OpenError::Malformed);
        }
        let mut bytes = packet.to_wire().to_vec();
        let outer = self.outer(&packet, bytes.len(), false);
        let (sdi, opened) = self.open_bytes(&outer, &mut bytes);
        let (what, answer) = match opened {
            Ok(association) => (Statistic::InAuth, Ok(association)),
            Err((what, error)) => (what, Err(error)),
        };
        self.count((what != Statistic::InErrored).then_some(sdi), what);
        let association = answer?;
        bytes.truncate(bytes.len() - ICV);
        bytes.drain(..length);
        let inner =
            Packet::from_wire(packet.src, packet.dst, bytes.into()).map_err(|_| OpenError::Malformed)?;
        if security_header(&inner).is_some() {
            return Err(OpenError::Malformed);
        }
        let Packet { class, priority, marked, entropy, .. } = packet;
        Ok((Packet { class, priority, marked, entropy, ..inner }, Some(association)))
    }

    fn receive_clear(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), OpenError> {
        let permitted = !self.params.require_protection
            || self.domain_of(packet.src).is_none()
            || self.params.accept_unprotected_nack && is_nack_without_context(&packet);
        self.count(None, Statistic::InClear);
        match permitted {
            true => {
                // A NACK in the clear counts as one of the peer's context.
                let covered = self.domain_of(packet.src).filter(|_| self.params.require_protection);
                let context = covered.map(|sdi| SecureContext { sdi, ssi: None });
                let association =
                    context.map(|context| Association { context, an: false, epoch: 0, counter: 0 });
                Ok((packet, association))
            }
            // `TSS-CLEAR-001`
            false => Err(OpenError::Unprotected),
        }
    }

    /// Opens a packet in place. Returns its domain, and the count of a packet that is dropped.
    fn open_bytes(
        &mut self,
        outer: &Outer,
        bytes: &mut [u8],
    ) -> (u32, Result<Association, (Statistic, OpenError)>) {
        let header = bytes.to_vec();
        let Ok((tss, _)) = Tss::parse(&header) else {
            return (0, Err((Statistic::InErrored, OpenError::Malformed)));
        };
        let sdi = tss.head().sdi();
        (sdi, self.checked(outer, &tss, bytes))
    }

    fn checked(
        &mut self,
        outer: &Outer,
        tss: &Tss<'_>,
        bytes: &mut [u8],
    ) -> Result<Association, (Statistic, OpenError)> {
        let (head, tsc) = (tss.head(), tss.tsc());
        let (sdi, an) = (head.sdi(), head.an());
        let member = self.domains.get_mut(&sdi).ok_or((Statistic::InErrored, OpenError::NoDomain))?;
        if !member.enabled {
            return Err((Statistic::InInvalidSa, OpenError::Disabled));
        }
        if self.params.auth_fail_latch.is_some_and(|limit| member.failures > limit) {
            return Err((Statistic::InInvalid, OpenError::Disabled));
        }
        if head.sp() != member.domain().ssi {
            return Err((Statistic::InInvalid, OpenError::Source));
        }
        let slot = member.slot(an).ok_or((Statistic::InInvalidSa, OpenError::NoKey))?;
        // `TSS-EPOCH-001`: serial arithmetic, so that newer epochs pass over the wrap too.
        let behind = slot.epoch.wrapping_sub(tsc.epoch());
        if behind < 1 << 15 && behind > self.params.rx_max_epoch_lifetime {
            return Err((Statistic::InLate, OpenError::Late));
        }
        let id = member.domain().key_id(outer, tss, Direction::Incoming);
        let id = id.map_err(|_| (Statistic::InInvalid, OpenError::Source))?;
        let derived = match self.cache.get(&id) {
            Some(_) => None,
            None => Some(id.derive(&slot.key).map_err(|_| (Statistic::InInvalidSa, OpenError::NoKey))?),
        };
        let key = derived.as_ref().or_else(|| self.cache.get(&id));
        let opened = key.map(|key| member.domain().open(key, outer, bytes));
        if !matches!(opened, Some(Ok(()))) {
            member.failures = member.failures.saturating_add(1);
            return Err((Statistic::InAuthFail, OpenError::NotAuthentic));
        }
        if let Some(derived) = derived {
            // Only now, so that forged headers cannot push keys out.
            self.cache.put(id, derived);
        }
        let context = SecureContext { sdi, ssi: tss.ssi() };
        Ok(Association { context, an, epoch: tsc.epoch(), counter: tsc.counter() })
    }
}

/// Returns the length of the security header, if the packet starts with one.
fn security_header(packet: &Packet) -> Option<usize> {
    let (uet, _) = Uet::parse_lax(&packet.head);
    uet.tss.map(|tss| tss.bytes().len())
}
