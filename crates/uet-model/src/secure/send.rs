//! The way out: header, counter, seal (section 3.7, sender rules).

use super::{Secure, Statistic};
use crate::Packet;
use crate::pds::{Association, SealError, SecureContext};
use uet_wire::Uet;
use uet_wire::pds::Pds;
use uet_wire::tss::{Direction, ICV, Tss, TssBuf, TssLong, TssShort};

impl Secure {
    pub(super) fn send(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), SealError> {
        let Some(context) = packet.security else { return self.send_clear(packet) };
        if self.params.send_unprotected_nack && is_nack_without_context(&packet) {
            self.count(None, Statistic::OutClear);
            return Ok((packet, None));
        }
        match self.seal_under(packet, context) {
            Ok(sealed) => {
                self.count(Some(context.sdi), Statistic::OutAuth);
                Ok(sealed)
            }
            Err(error) => {
                let known = error != SealError::NoDomain;
                let what = if known { Statistic::OutInvokeFail } else { Statistic::OutErrored };
                self.count(known.then_some(context.sdi), what);
                Err(error)
            }
        }
    }

    /// A packet without a context of security leaves in the clear only if no domain covers its peer.
    fn send_clear(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), SealError> {
        if self.params.require_protection && self.domain_of(packet.dst).is_some() {
            self.count(None, Statistic::OutErrored);
            return Err(SealError::NoDomain);
        }
        self.count(None, Statistic::OutClear);
        Ok((packet, None))
    }

    fn seal_under(
        &mut self,
        packet: Packet,
        context: SecureContext,
    ) -> Result<(Packet, Option<Association>), SealError> {
        let member = self.domains.get(&context.sdi).ok_or(SealError::NoDomain)?;
        if !member.enabled {
            return Err(SealError::Disabled);
        }
        let ssi = member.ssi_towards(context.ssi);
        if member.domain().ssi && ssi.is_none() {
            return Err(SealError::NoKey);
        }
        // `TSS-CTR-001`: each transmission takes a new counter.
        let (epoch, counter) = match member.take_counter().ok_or(SealError::NoKey)? {
            Ok(counted) => counted,
            Err(()) => return Err(SealError::CounterExhausted),
        };
        let an = member.current_an;
        let header = header(context.sdi, ssi, an, epoch, counter).ok_or(SealError::NoKey)?;
        let tss = header.view();
        let mut bytes = Vec::with_capacity(tss.bytes().len() + packet.wire_len() + ICV);
        bytes.extend_from_slice(tss.bytes());
        bytes.extend_from_slice(&packet.head);
        bytes.extend_from_slice(&packet.payload);
        bytes.extend_from_slice(&[0; ICV]);
        let outer = self.outer(&packet, bytes.len(), true);
        let sealed = self.seal_bytes(context.sdi, an, &outer, &tss, &mut bytes);
        sealed.ok_or(SealError::NoKey)?;
        let payload = bytes.split_off(tss.bytes().len());
        let association = Association { context, an, epoch, counter };
        let head = bytes.into_iter().collect();
        Ok((Packet { head, payload: payload.into(), security: None, ..packet }, Some(association)))
    }

    fn seal_bytes(
        &mut self,
        sdi: u32,
        an: bool,
        outer: &uet_wire::tss::Outer,
        tss: &Tss<'_>,
        bytes: &mut [u8],
    ) -> Option<()> {
        let member = self.domains.get(&sdi)?;
        let id = member.domain().key_id(outer, tss, Direction::Outgoing).ok()?;
        if self.cache.get(&id).is_none() {
            let key = id.derive(&member.slot(an)?.key).ok()?;
            self.cache.put(id, key);
        }
        member.domain().seal(self.cache.get(&id)?, outer, bytes).ok()
    }
}

fn header(sdi: u32, ssi: Option<u32>, an: bool, epoch: u16, counter: u64) -> Option<TssBuf> {
    match ssi {
        None => TssShort::build()
            .head(|head| head.sdi(sdi).an(an))
            .tsc(|tsc| tsc.epoch(epoch).counter(counter))
            .done()
            .ok()
            .map(Into::into),
        Some(ssi) => TssLong::build()
            .head(|head| head.sdi(sdi).an(an))
            .ssi(ssi)
            .tsc(|tsc| tsc.epoch(epoch).counter(counter))
            .done()
            .ok()
            .map(Into::into),
    }
}

/// Returns whether this is a NACK of an endpoint that has no such context.
pub(super) fn is_nack_without_context(packet: &Packet) -> bool {
    match Uet::parse(&packet.head).ok().and_then(|uet| uet.pds) {
        Some(Pds::Nack(nack)) => !nack.spdcid().is_valid(),
        _ => false,
    }
}
