//! The keys of secured packets: derivation, epochs and counters (section 3.7.8).

use super::steps::{
    EPOCH, IDENTIFIED, MEMBER, NEEDS, check_write, establish_as, expect_executed, expect_no_effect, open_as,
    plain_write, write_in_flight,
};
use crate::prelude::*;
use crate::{DomainKind, SECURED};
use uet_control::KeyMode;

const TWO_PEERS: &[Need] = &[RUD, WRITE, TSS, TWO_ADDRESSES];

/// The counter of the suite. A receiver expects none of these.
const COUNTER: Axis<u64> = axis("counter").values(&[
    ("each-byte", 0x0102_0304_0506),
    ("16-bits", 0xffff),
    ("32-bits", 0xffff_ffff),
    ("high", 0x7fff_ffff_fff0),
]);

/// Domains of clients and servers.
const CLIENT_SERVER: Axis<DomainKind> = axis("domain").values(&[
    ("server", DomainKind { mode: KeyMode::Server, ssi: false }),
    ("server-ssi", DomainKind { mode: KeyMode::Server, ssi: true }),
    ("client", DomainKind { mode: KeyMode::Client, ssi: false }),
    ("client-ssi", DomainKind { mode: KeyMode::Client, ssi: true }),
]);

/// Domains in which the device is a server.
const SERVER: Axis<DomainKind> = axis("domain").values(&[
    ("server-ssi", DomainKind { mode: KeyMode::Server, ssi: true }),
    ("server", DomainKind { mode: KeyMode::Server, ssi: false }),
]);

/// A number of sources. A device may keep the derived keys of fewer.
const SOURCES: u32 = 300;

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS)
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-key/target", "A target decrypts with the sender's key and answers with its own")
        .checks(&[TSS_KEY_001])
        .over(&[&SECURED, &EPOCH])
        .run(|t| {
            let epoch = t.value(&EPOCH);
            let (pdc, region) = open_as(t, TSS_KEY_001, t.value(&SECURED), |domain| domain.epoch = epoch)?;
            t.shield()?.opens = TSS_KEY_001;
            check_write(t, TSS_KEY_001, &pdc, &region, 1)
        }),
    rule("tss-key/initiator", "An initiator encrypts with its own key and decrypts with the target's")
        .checks(&[TSS_KEY_001])
        .over(&[&SECURED, &EPOCH])
        .run(|t| {
            let epoch = t.value(&EPOCH);
            t.secure_as(t.value(&SECURED), |domain| domain.epoch = epoch)?;
            t.shield()?.opens = TSS_KEY_001;
            let (written, target) = write_in_flight(t)?;
            target.ack(t, 0)?;
            t.ends(TSS_KEY_001, written, Status::Ok)
        }),
    rule("tss-key/client-server", "Client and server both use the client's key and source identifier")
        .checks(&[TSS_KEY_002])
        .over(&[&CLIENT_SERVER])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_KEY_002, t.value(&CLIENT_SERVER), |_| {})?;
            check_write(t, TSS_KEY_002, &pdc, &region, 1)?;
            let shield = t.shield()?;
            let (client, seen) = (shield.ssi, shield.seen.last().and_then(|seen| seen.ssi));
            t.check(TSS_KEY_002, "source identifier:", client, seen);
            Ok(())
        }),
    rule("tss-key/two-sources", "A target decrypts packets of two sources, each with its own key")
        .checks(&[TSS_KEY_001])
        .needs(TWO_PEERS)
        .over(&[&MEMBER])
        .run(|t| {
            t.secure(t.value(&MEMBER))?;
            let region = t.region(1 << 16)?;
            let mut first = t.initiate();
            let mut second = t.initiate_from(1)?;
            // A domain without source identifiers identifies a source by its address. Otherwise, both are one
            // source.
            establish_as(t, TSS_KEY_001, &mut first, &region)?;
            establish_as(t, TSS_KEY_001, &mut second, &region)?;
            check_write(t, TSS_KEY_001, &first, &region, 1)?;
            check_write(t, TSS_KEY_001, &second, &region, 2)?;
            check_write(t, TSS_KEY_001, &first, &region, 3)
        }),
    rule("tss-key/two-clients", "Each of two clients gets its answers under its own key and identifier")
        .checks(&[TSS_KEY_002])
        .needs(&[RUD, WRITE, READ, TSS, TWO_ADDRESSES])
        .over(&[&SERVER])
        .run(|t| {
            let length = t.beyond_ack()?;
            t.secure(t.value(&SERVER))?;
            let region = t.region(1 << 16)?;
            let ssi = t.shield()?.ssi;
            let (pdc, other) = (t.initiate(), t.initiate_from(1)?);
            let mut clients = [Client { ssi, pdc }, Client { ssi: ssi.map(|ssi| ssi ^ 0x0100), pdc: other }];
            for client in &mut clients {
                t.shield()?.ssi = client.ssi;
                establish_as(t, TSS_KEY_002, &mut client.pdc, &region)?;
            }
            for n in [1, 2] {
                // Between the data and its retransmission, the other client sends the last packet.
                let [reader, writer] = &clients;
                t.shield()?.ssi = reader.ssi;
                let read = reader.pdc.request(n).clear(reader.psn(n - 1)).read(&region, 0, length)?;
                t.request(&reader.pdc, read)?;
                reader.expect_data(t, false)?;
                t.shield()?.ssi = writer.ssi;
                let write =
                    writer.pdc.request(n).clear(writer.psn(n - 1)).write(&region, 0, &[n as u8; 32])?;
                t.request(&writer.pdc, write)?;
                let (seen, _) = t.expect_ack(TSS_KEY_002, &writer.pdc, writer.psn(n))?;
                writer.check_source(t, &seen)?;
                let data = reader.expect_data(t, true)?;
                t.shield()?.ssi = reader.ssi;
                t.send(&reader.pdc, &reader.pdc.ack(data).build()?)?;
                t.settle()?;
                clients.reverse();
            }
            Ok(())
        }),
    rule("tss-key/many-sources", "A target serves a new source after packets of many others")
        .checks(&[TSS_KEY_001])
        .over(&[&IDENTIFIED])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_KEY_001, t.value(&IDENTIFIED), |_| {})?;
            let own = t.shield()?.ssi;
            // An ACK without a context gets no answer, and opens nothing.
            let nobody = t.initiate().of_nobody(pdc.remote);
            let ack = nobody.ack(nobody.psn(0)).build()?;
            for n in 1..=SOURCES {
                t.shield()?.ssi = own.map(|ssi| ssi ^ n);
                t.send(&nobody, &ack)?;
            }
            t.settle()?;
            t.shield()?.ssi = own;
            check_write(t, TSS_KEY_001, &pdc, &region, 1)?;
            t.shield()?.ssi = own.map(|ssi| ssi ^ 0x0fff);
            let mut new = t.initiate();
            establish_as(t, TSS_KEY_001, &mut new, &region)?;
            check_write(t, TSS_KEY_001, &new, &region, 2)
        }),
    rule("tss-key/epochs", "A target accepts packets of two epochs in any order")
        .checks(&[TSS_KEY_003])
        .over(&[&MEMBER])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_KEY_003, t.value(&MEMBER), |domain| domain.epoch = 5)?;
            let lifetime = t.parameter("rx_max_epoch_lifetime");
            require(lifetime != 0, "the device accepts one epoch only")?;
            for (n, epoch) in [(1, 4), (2, 5), (3, 4), (4, 5)] {
                t.shield()?.epoch = epoch;
                check_write(t, TSS_KEY_003, &pdc, &region, n)?;
            }
            Ok(())
        }),
    rule("tss-key/counter", "A target accepts and answers a packet with any counter")
        .checks(&[TSS_IV_001])
        .over(&[&SECURED, &COUNTER])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_IV_001, t.value(&SECURED), |domain| domain.epoch = 0x0203)?;
            let upper = t.shield()?.counter & 1 << 47;
            let counter = t.value(&COUNTER) | upper;
            let shield = t.shield()?;
            (shield.counter, shield.opens) = (counter, TSS_IV_001);
            check_write(t, TSS_IV_001, &pdc, &region, 1)?;
            check_write(t, TSS_IV_001, &pdc, &region, 2)
        }),
    rule("tss-key/counter-reordered", "A target accepts packets whose counters arrive out of order")
        .checks(&[TSS_KEY_003])
        .over(&[&SECURED])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_KEY_003, t.value(&SECURED), |_| {})?;
            let early = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            t.shield()?.counter += 1 << 20;
            check_write(t, TSS_KEY_003, &pdc, &region, 2)?;
            t.send_as_it_is(&early)?;
            expect_executed(t, TSS_KEY_003, &pdc, &region, 1)
        }),
    rule("tss-key/wrong-secret", "A packet under a wrong secret has no effect")
        .checks(&[TSS_KEY_001, TSS_ICV_003])
        .over(&[&SECURED])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_KEY_001, t.value(&SECURED), |_| {})?;
            let other = t.fresh_secret();
            let wire = plain_write(&pdc, &region, 1)?;
            let an = usize::from(t.shield()?.an);
            let right = t.shield()?.secrets[an].replace(other);
            let forged = t.sealed(&wire)?;
            t.shield()?.secrets[an] = right;
            expect_no_effect(t, [TSS_KEY_001, TSS_ICV_003], (&pdc, &region), 1, &[forged])
        }),
    rule("tss-key/wrong-mode", "A packet whose key is derived for another mode has no effect")
        .checks(&[TSS_KEY_001, TSS_ICV_003])
        .over(&[&MEMBER])
        .run(|t| {
            use uet_wire::tss::Mode;
            let (pdc, region) = open_as(t, TSS_KEY_001, t.value(&MEMBER), |_| {})?;
            let wire = plain_write(&pdc, &region, 1)?;
            let right = t.shield()?.domain.mode;
            let mut forged = Vec::new();
            for mode in [Mode::Direct, Mode::Cluster, Mode::Server].into_iter().filter(|mode| *mode != right)
            {
                let shield = t.shield()?;
                if mode != Mode::Cluster && !shield.domain.ssi && pdc.from.is_ipv6() {
                    continue;
                }
                shield.domain.mode = mode;
                let sealed = t.sealed(&wire);
                t.shield()?.domain.mode = right;
                forged.push(sealed?);
            }
            expect_no_effect(t, [TSS_KEY_001, TSS_ICV_003], (&pdc, &region), 1, &forged)
        }),
];

/// A client of the device, with the source identifier of its packets and its context.
struct Client {
    ssi: Option<u32>,
    pdc: Pdc,
}

impl Client {
    fn psn(&self, n: u32) -> Psn {
        self.pdc.psn(n)
    }

    /// Expects read data on the return direction, and returns its PSN.
    fn expect_data(&self, t: &mut Test<'_>, retx: bool) -> Result<Psn, Stop> {
        let data = |seen: &RxPacket| {
            let request = seen.request().filter(|request| request.retx() == retx)?;
            (seen.is_for(&self.pdc) && !seen.payload().is_empty()).then_some(request.psn())
        };
        let what = if retx { "the data of the read again, with retx" } else { "the data of the read" };
        let (seen, psn) = t.expect(TSS_KEY_002, what, t.later(), data)?;
        self.check_source(t, &seen)?;
        Ok(psn)
    }

    /// Checks that a packet has the source identifier of the client.
    fn check_source(&self, t: &mut Test<'_>, seen: &RxPacket) -> Outcome {
        let header = t.shield()?.seen.iter().find(|header| header.number == seen.number);
        let ssi = header.and_then(|header| header.ssi);
        t.check(TSS_KEY_002, "source identifier:", self.ssi, ssi);
        Ok(())
    }
}
