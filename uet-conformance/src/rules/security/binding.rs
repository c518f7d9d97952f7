//! The binding of a context to the domain, the source and the address that opened it (section 3.5.4).

use super::steps::{IDENTIFIED, NEEDS, check_write, open_as, plain_write};
use crate::prelude::*;
use crate::shield::told;
use crate::{SECURED, Wire};
use uet_control::SecureDomain;

const TWO_PEERS: &[Need] = &[RUD, WRITE, TSS, TWO_ADDRESSES];

/// The packet of the other domain: true for one that opens a context, with the PDCID of the suite's context.
const SYN: Axis<bool> = axis("packet").values(&[("request", false), ("opening", true)]);

/// The number of bytes that the device writes or reads.
const LENGTH: usize = 64;

/// The packet that answers a request of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerKind {
    Ack,
    Nack,
    Data,
}

/// The answer that comes in the other domain.
const ANSWER: Axis<AnswerKind> = axis("answer").needing(&[
    ("ack", AnswerKind::Ack, &[]),
    ("nack", AnswerKind::Nack, &[]),
    ("data", AnswerKind::Data, &[READ]),
]);

/// True if the request opens a context, and the answer names another one of the suite.
const FIRST: Axis<bool> = axis("request").values(&[("later", false), ("first", true)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&IDENTIFIED])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-binding/other-domain", "An authentic packet of another domain does not reach a context")
        .checks(&[TSS_BIND_001])
        .over(&[&IDENTIFIED, &SYN])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_BIND_001, t.value(&IDENTIFIED), |_| {})?;
            let secret = t.fresh_secret();
            let shield = t.shield()?;
            let (right, own) = (shield.domain.sdi, shield.secrets[0]);
            let sdi = right ^ 0x00_4000;
            let keys = [("0".to_owned(), told(&secret))].into();
            shield.others = vec![SecureDomain { sdi, keys, ..shield.installed.clone() }];
            t.install()?;
            let wire = if t.value(&SYN) {
                // The sources leave open if this packet opens a context of its own, which then executes it.
                let opening = Pdc { remote: None, ..pdc.clone() };
                pdc.wire(&opening.request(1).write(&region, 1024, &[0xbb; 32])?.build()?)
            } else {
                plain_write(&pdc, &region, 1)?
            };
            let shield = t.shield()?;
            shield.domain.sdi = sdi;
            shield.secrets[0] = Some(secret);
            let sealed = t.sealed(&wire);
            let shield = t.shield()?;
            shield.domain.sdi = right;
            shield.secrets[0] = own;
            let sealed = sealed?;
            // An answer to this packet would name the other domain.
            expect_not_reached(t, &pdc, &region, &sealed)
        }),
    rule("tss-binding/plaintext-context", "A protected packet does not reach a context opened in plaintext")
        .checks(&[TSS_BIND_001])
        .over(&[&SECURED])
        .run(|t| {
            t.configure("require_protection", false)?;
            t.secure(t.value(&SECURED))?;
            let shield = t.shield()?;
            (shield.active, shield.permits_clear) = (false, true);
            let (pdc, region) = t.open()?;
            let protects = !t.shield()?.seen.is_empty();
            require(!protects, "the device protects its answers to plaintext packets")?;
            let sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            expect_not_reached(t, &pdc, &region, &sealed)?;
            // The device goes on to answer this context in plaintext.
            t.send_wire(&plain_write(&pdc, &region, 2)?)?;
            let (ack, _) = t.expect_ack(TSS_BIND_001, &pdc, pdc.psn(2))?;
            let protected = t.shield()?.seen.iter().any(|header| header.number == ack.number);
            t.holds(TSS_BIND_001, "the ACK of a plaintext write is not protected", !protected, ack.uet());
            Ok(())
        }),
    rule("tss-binding/other-source", "An authentic packet of another source does not reach a context")
        .checks(&[TSS_BIND_001])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_BIND_001, t.value(&IDENTIFIED), |_| {})?;
            let sealed = seal_as_other_source(t, &plain_write(&pdc, &region, 1)?)?;
            expect_not_reached(t, &pdc, &region, &sealed)
        }),
    rule("tss-binding/other-source-close", "An authentic CLOSE_COMMAND of another source closes no context")
        .checks(&[TSS_BIND_001])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_BIND_001, t.value(&IDENTIFIED), |_| {})?;
            let close = pdc.wire(&pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?);
            let sealed = seal_as_other_source(t, &close)?;
            expect_not_reached(t, &pdc, &region, &sealed)
        }),
    rule("tss-binding/other-source-nack", "An authentic NACK of another source ends no context")
        .checks(&[TSS_BIND_001])
        .run(|t| {
            t.secure(t.value(&IDENTIFIED))?;
            let peer = t.peer(0)?;
            let first = t.post(post(PostKind::Write, peer, 64))?;
            let mut target = Target::accept(t)?;
            target.ack(t, 0)?;
            t.ends(TSS_BIND_001, first, Status::Ok)?;
            // The first ACK has bound the context to its source.
            let second = t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 2)?;
            let nack = target.pdc.wire(&target.pdc.nack(NackCode::CLOSING_IN_ERR, target.psn(1))?);
            let sealed = seal_as_other_source(t, &nack)?;
            t.send_as_it_is(&sealed)?;
            t.settle()?;
            t.is_open(TSS_BIND_001, second)?;
            target.ack(t, 1)?;
            t.ends(TSS_BIND_001, second, Status::Ok)
        }),
    rule("tss-binding/other-domain-answer", "An authentic answer of another domain ends no operation")
        .checks(&[TSS_BIND_001])
        .over(&[&SECURED, &ANSWER, &FIRST])
        .run(|t| {
            // The device opens its context in the second domain, the only one that it then has.
            t.secure(t.value(&SECURED))?;
            let mut other = t.shield()?.clone();
            t.secure(t.value(&SECURED))?;
            let (answer, first) = (t.value(&ANSWER), t.value(&FIRST));
            let peer = t.peer(0)?;
            let known = if first { None } else { Some(Target::established(t, peer, Mode::Rud)?) };
            let posted = post_answered(t, peer)?;
            let mut target = known.map_or_else(|| Target::accept(t), Ok)?;
            let n = u32::from(!first);
            target.collect(t, n + 1)?;
            let mut liar = target.clone();
            if first {
                liar.pdc.local = PdcId((liar.pdc.local.0 ^ 0x2000).max(1));
            }
            let packet = build_answer(&liar, answer, n)?;
            t.shield()?.others = vec![other.installed.clone()];
            t.install()?;
            core::mem::swap(t.shield()?, &mut other);
            let sealed = t.sealed(&liar.pdc.wire(&packet));
            core::mem::swap(t.shield()?, &mut other);
            t.send_as_it_is(&sealed?)?;
            t.settle()?;
            t.is_open(TSS_BIND_001, posted)?;
            expect_completed(t, &target, posted, n)
        }),
    rule("tss-binding/other-source-answer", "An authentic answer of another source ends no operation")
        .checks(&[TSS_BIND_001])
        .over(&[&IDENTIFIED, &ANSWER])
        .run(|t| {
            t.secure(t.value(&IDENTIFIED))?;
            // The first ACK has bound the context to its source.
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let posted = post_answered(t, peer)?;
            target.collect(t, 2)?;
            let packet = build_answer(&target, t.value(&ANSWER), 1)?;
            let sealed = seal_as_other_source(t, &target.pdc.wire(&packet))?;
            t.send_as_it_is(&sealed)?;
            t.settle()?;
            t.is_open(TSS_BIND_001, posted)?;
            expect_completed(t, &target, posted, 1)
        }),
    rule("tss-binding/other-address", "An authentic packet from another address does not reach a context")
        .checks(&[TSS_BIND_001])
        .needs(TWO_PEERS)
        .over(&[&SECURED])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_BIND_001, t.value(&SECURED), |_| {})?;
            let other = Pdc { from: t.address(1)?, ..pdc.clone() };
            let sealed = t.sealed(&plain_write(&other, &region, 1)?)?;
            expect_not_reached(t, &pdc, &region, &sealed)
        }),
];

/// Has the device write, or read if the answer is data.
fn post_answered(t: &mut Test<'_>, peer: u64) -> Result<Operated, Stop> {
    let reads = t.value(&ANSWER) == AnswerKind::Data;
    let kind = if reads { PostKind::Read } else { PostKind::Write };
    t.post(Post { want_data: reads, ..post(kind, peer, LENGTH) })
}

/// Builds the answer to the `n`-th request. It acknowledges, refuses or gives wrong data.
fn build_answer(target: &Target, answer: AnswerKind, n: u32) -> Result<UetBuf, Stop> {
    Ok(match answer {
        AnswerKind::Ack => target.acking(n).build()?,
        AnswerKind::Nack => target.pdc.nack(NackCode::CLOSING_IN_ERR, target.psn(n))?,
        AnswerKind::Data => {
            let ses = target.data_header(n, LENGTH, LENGTH, 0)?;
            target.pdc.request(0).ses(ses, &[0xbb; LENGTH]).build()?
        }
    })
}

/// Acknowledges the `n`-th request and gives the data of a read. Expects that the operation completes.
fn expect_completed(t: &mut Test<'_>, target: &Target, posted: Operated, n: u32) -> Outcome {
    target.ack(t, n)?;
    if t.value(&ANSWER) != AnswerKind::Data {
        return t.ends(TSS_BIND_001, posted, Status::Ok);
    }
    let data: Vec<u8> = pattern(9).take(LENGTH).collect();
    target.give(t, 0, target.data_header(n, LENGTH, LENGTH, 0)?, &data)?;
    let ended = t.ends_with(TSS_BIND_001, posted, (Status::Ok, LENGTH as u64))?;
    let held = ended.and_then(|ended| ended.data).map(|data| data.0).unwrap_or_default();
    t.same_bytes(TSS_BIND_001, "the data of the read", &data, &held);
    Ok(())
}

/// Seals a packet with another source identifier.
fn seal_as_other_source(t: &mut Test<'_>, wire: &Wire) -> Result<Wire, Stop> {
    let right = t.shield()?.ssi;
    t.shield()?.ssi = right.map(|ssi| ssi ^ 0x0100);
    let sealed = t.sealed(wire);
    t.shield()?.ssi = right;
    sealed
}

/// Sends a packet, and expects that it does not execute write 1. The device may refuse or drop the packet.
fn expect_not_reached(t: &mut Test<'_>, pdc: &Pdc, region: &Region, packet: &Wire) -> Outcome {
    t.send_as_it_is(packet)?;
    t.pause(t.soon())?;
    t.forget();
    t.check_memory(TSS_BIND_001, region, 64, &[0; 32])?;
    check_write(t, TSS_BIND_001, pdc, region, 1)
}
