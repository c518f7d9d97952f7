//! Two secure domains of one device: the settings, keys and states of one do not act on the other (section
//! 3.7).

use super::steps::{
    NEEDS, add_key, check_epoch_sent, close_context, content, establish_as, expect_executed, forge_requests,
    latest_an, plain_write, switch_to,
};
use crate::prelude::*;
use crate::rules::steps::{expect_rudi_response, idempotent_region};
use crate::{DomainKind, SECURED, rudi};
use uet_control::{KeyMode, SecureDomain};

/// The kind of the second domain.
const SECOND: Axis<DomainKind> = axis("second").values(&[
    ("cluster", DomainKind { mode: KeyMode::Cluster, ssi: false }),
    ("direct-ssi", DomainKind { mode: KeyMode::Direct, ssi: true }),
    ("server-ssi", DomainKind { mode: KeyMode::Server, ssi: true }),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&SECURED, &SECOND])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-domains/kinds", "Contexts of two domains of different kinds work side by side")
        .checks(&[TSS_KEY_001])
        .run(|t| {
            let mut pair = TwoDomains::open(t, TSS_KEY_001, |_| {})?;
            for n in [1, 2] {
                pair.check_write(t, n)?;
                pair.switch(t)?;
                pair.check_write(t, n)?;
            }
            Ok(())
        }),
    rule("tss-domains/read-data", "Read data and its retransmissions leave in the domain of their context")
        .checks(&[TSS_HDR_001, SES_READ_001])
        .needs(&[RUD, WRITE, READ, TSS])
        .run(|t| {
            let length = t.beyond_ack()?;
            let mut pair = TwoDomains::open(t, TSS_HDR_001, |_| {})?;
            for n in [1, 2] {
                // Both contexts have data to send at once. The first ACK follows the retransmissions.
                pair.read(t, n, length)?;
                pair.switch(t)?;
                pair.read(t, n, length)?;
                for _ in 0..2 {
                    pair.expect_data(t, length, false)?;
                    pair.switch(t)?;
                }
                for _ in 0..2 {
                    let data = pair.expect_data(t, length, true)?;
                    let (pdc, _) = &pair.contexts[0];
                    t.send(pdc, &pdc.ack(data).build()?)?;
                    pair.switch(t)?;
                }
                t.settle()?;
            }
            Ok(())
        }),
    rule("tss-domains/rudi", "A RUDI response leaves in the domain of its request")
        .checks(&[TSS_HDR_001])
        .needs(&[RUD, WRITE, RUDI, TSS])
        .run(|t| {
            let mut pair = TwoDomains::open(t, TSS_HDR_001, |_| {})?;
            let (region, way) = idempotent_region(t)?;
            for id in [0x31, 0x32] {
                // The last packet of a context was in the other domain.
                pair.check_write(t, 1)?;
                pair.switch(t)?;
                t.send(&way, &rudi(id, &way.request(0).write(&region, 0, &[id as u8; 32])?)?)?;
                let response = expect_rudi_response(t, TSS_HDR_001, &way, id)?;
                pair.check_domain(t, &response)?;
                t.expect_memory(TSS_HDR_001, &region, 0, &[id as u8; 32])?;
            }
            Ok(())
        }),
    rule("tss-domains/offset", "Each of two domains has its own confidentiality offset")
        .checks(&[TSS_AAD_001])
        .run(|t| {
            let offset = |domain: &mut SecureDomain| {
                domain.confidentiality_offset = Some(if domain.ssi { 28 } else { 24 });
            };
            let mut pair = match TwoDomains::open(t, TSS_AAD_001, offset) {
                // The sources name no offset but the length of the header.
                Err(Stop::Inconclusive(reason)) => return skip(reason),
                other => other?,
            };
            pair.check_write(t, 1)?;
            pair.switch(t)?;
            pair.check_write(t, 1)
        }),
    rule("tss-domains/key-switch", "A key switch of one domain changes no key of another")
        .checks(&[TSS_AN_002])
        .run(|t| {
            let mut pair = TwoDomains::open(t, TSS_AN_002, |_| {})?;
            add_key(t)?;
            switch_to(t, true)?;
            for an in [1, 0] {
                pair.check_write(t, 1)?;
                let seen = latest_an(t)?;
                t.check(TSS_AN_002, "association number", Some(an), seen);
                pair.switch(t)?;
            }
            Ok(())
        }),
    rule("tss-domains/epoch", "A new epoch of one domain leaves the epoch of another as it is")
        .checks(&[TSS_EPOCH_002])
        .run(|t| {
            let mut pair = TwoDomains::open(t, TSS_EPOCH_002, |domain| domain.epoch = 7)?;
            let shield = t.shield()?;
            (shield.installed.epoch, shield.epoch) = (8, 8);
            t.install()?;
            pair.check_write(t, 1)?;
            check_epoch_sent(t, 8)?;
            pair.switch(t)?;
            pair.check_write(t, 1)?;
            check_epoch_sent(t, 0)
        }),
    rule("tss-domains/wrong-icvs", "Packets with a wrong ICV in one domain do not stop another")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            t.configure("auth_fail_latch", 4)?;
            let mut pair = TwoDomains::open(t, TSS_ICV_002, |_| {})?;
            let (pdc, region) = &pair.contexts[0];
            forge_requests(t, pdc, region, 8)?;
            pair.switch(t)?;
            pair.check_write(t, 1)
        }),
    rule("tss-domains/start-psn", "A context that closes in one domain refuses no Start_PSN in another")
        .checks(&[TSS_START_002])
        .run(|t| {
            t.configure("start_psn_method", "expected")?;
            let mut pair = TwoDomains::open(t, TSS_START_002, |_| {})?;
            let start = pair.contexts[1].0.start;
            let mut above = Pdc { start: start + 0x2000, ..t.initiate() };
            let region = pair.contexts[0].1.clone();
            establish_as(t, TSS_START_002, &mut above, &region)?;
            require(above.start == start + 0x2000, "the device chooses the Start_PSNs of the first domain")?;
            close_context(t, &above, 1)?;
            pair.switch(t)?;
            // The second domain has accepted a lower one.
            let below = Pdc { start: start + 0x100, ..t.initiate() };
            let region = pair.contexts[0].1.clone();
            t.send_wire(&plain_write(&below, &region, 0)?)?;
            expect_executed(t, TSS_START_002, &below, &region, 0)
        }),
];

/// A device in two domains with one context in each. The suite opens the packets of both, and sends in one of
/// them at a time.
struct TwoDomains {
    /// The requirement that a failure breaks.
    requirement: &'static Requirement,
    /// The context in the domain in which it acts, and the other one.
    contexts: [(Pdc, Region); 2],
}

impl TwoDomains {
    /// Makes the device a member of the two domains of the instance, and opens the contexts. `change` acts on
    /// the domain of the kind `SECOND`, in which the suite acts first.
    fn open(
        t: &mut Test<'_>,
        requirement: &'static Requirement,
        change: impl FnOnce(&mut SecureDomain),
    ) -> Result<Self, Stop> {
        t.secure(t.value(&SECURED))?;
        let other = t.shield()?.clone();
        t.secure_as(t.value(&SECOND), |domain| {
            // In each domain, the device has a source identifier of its own. A server has none.
            let own = domain.own_ssi.filter(|_| domain.mode != KeyMode::Server);
            domain.own_ssi = own.map(|ssi| ssi ^ 0x0100).or(domain.own_ssi);
            change(domain);
        })?;
        let shield = t.shield()?;
        shield.others = vec![other.installed.clone()];
        shield.beside = Some(Box::new(other));
        t.install()?;
        let regions = [t.region(1 << 16)?, t.region(1 << 16)?];
        let contexts = regions.map(|region| (t.initiate(), region));
        let mut pair = TwoDomains { requirement, contexts };
        for _ in 0..2 {
            t.shield()?.opens = requirement;
            let (pdc, region) = &mut pair.contexts[0];
            establish_as(t, requirement, pdc, region)?;
            pair.switch(t)?;
        }
        Ok(pair)
    }

    /// Acts in the other domain.
    fn switch(&mut self, t: &mut Test<'_>) -> Outcome {
        let shield = t.shield()?;
        let installed = shield.installed.clone();
        shield.switch();
        shield.others = vec![installed];
        self.contexts.swap(0, 1);
        Ok(())
    }

    /// Sends write `n`, and expects that it is executed and acknowledged in its domain.
    fn check_write(&self, t: &mut Test<'_>, n: u32) -> Outcome {
        let (pdc, region) = &self.contexts[0];
        t.send_wire(&plain_write(pdc, region, n)?)?;
        let (seen, _) = t.expect_ack(self.requirement, pdc, pdc.psn(n))?;
        self.check_domain(t, &seen)?;
        let (offset, data) = content(n);
        t.expect_memory(self.requirement, region, offset, &data)
    }

    /// Sends a read of these bytes as request `n`.
    fn read(&self, t: &mut Test<'_>, n: u32, length: u32) -> Outcome {
        let (pdc, region) = &self.contexts[0];
        t.request(pdc, pdc.request(n).clear(pdc.psn(n - 1)).read(region, 0, length)?)
    }

    /// Expects read data of this length on the return direction, and returns its PSN.
    fn expect_data(&self, t: &mut Test<'_>, length: u32, retx: bool) -> Result<Psn, Stop> {
        let (pdc, region) = &self.contexts[0];
        let data = |seen: &RxPacket| {
            let request = seen.request().filter(|request| request.retx() == retx)?;
            (seen.is_for(pdc) && !seen.payload().is_empty()).then_some(request.psn())
        };
        let what = if retx { "the data of the read again, with retx" } else { "the data of the read" };
        let (seen, psn) = t.expect(self.requirement, what, t.later(), data)?;
        self.check_domain(t, &seen)?;
        let expected = t.memory(region, 0, length.into())?;
        t.same_bytes(SES_READ_001, "the data of the read", &expected, seen.payload());
        Ok(psn)
    }

    /// Checks that a packet came in the domain in which the suite acts.
    fn check_domain(&self, t: &mut Test<'_>, seen: &RxPacket) -> Outcome {
        let shield = t.shield()?;
        let here = shield.seen.iter().any(|header| header.number == seen.number);
        let domain = if here { shield.domain.sdi } else { shield.others.first().map_or(0, |it| it.sdi) };
        let expected = shield.domain.sdi;
        t.check(self.requirement, "number of the domain:", expected, domain);
        Ok(())
    }
}
