//! The security header, the authenticated fields and the length of secured packets (section 3.7.11).

use super::steps::{
    CLUSTER, IDENTIFIED, NEEDS, check_write, establish_as, expect_executed, expect_ignored, expect_no_answer,
    expect_no_effect, flip_bit, open_as, open_new, open_secured, plain_write, write_in_flight,
};
use crate::prelude::*;
use crate::{SECURED, Wire};
use core::net::IpAddr;
use uet_control::KeyMode;
use uet_wire::tss::{ICV, Outer, OuterLayer};

/// The number of plaintext bytes after the security header.
const OFFSET: Axis<u8> = axis("plaintext-bytes").values(&[("0", 0), ("1", 1), ("4", 4), ("12", 12)]);

/// A confidentiality offset within every security header.
const INSIDE: Axis<u8> = axis("offset").values(&[("8", 8), ("0", 0), ("11", 11)]);

/// True if the packet belongs to an open context; otherwise it would open one.
const OPEN: Axis<bool> = axis("context").values(&[("open", true), ("new", false)]);

/// An authenticated field of the outer headers. The suite sends another value than it authenticates.
const FIELD: Axis<Field> = axis("field").values(&[
    ("source", Field::Source),
    ("destination", Field::Destination),
    ("addresses-swapped", Field::AddressesSwapped),
    ("source-port", Field::SourcePort),
    ("destination-port", Field::DestinationPort),
    ("length", Field::Length),
    ("length-without-icv", Field::LengthWithoutIcv),
    ("no-ports", Field::NoPorts),
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Source,
    Destination,
    AddressesSwapped,
    SourcePort,
    DestinationPort,
    Length,
    LengthWithoutIcv,
    NoPorts,
}

/// The entropy value of the packets.
const ENTROPY: Axis<u16> =
    axis("entropy").values(&[("0xc000", 0xc000), ("0xffff", 0xffff), ("0xd5aa", 0xd5aa)]);

const ENTROPY_NEEDS: &[Need] = &[RUD, WRITE, TSS, SET_ENTROPY];

const ECN_NEEDS: &[Need] = &[RUD, WRITE, TSS, SET_ECN];

const ECN_ECHO_NEEDS: &[Need] = &[RUD, WRITE, TSS, ECN, SET_ECN];

const TTL_NEEDS: &[Need] = &[RUD, WRITE, TSS, SET_TTL];

/// A field of the outer headers that the ICV does not cover, and its value on arrival.
const UNCOVERED: Axis<Uncovered> = axis("field").values(&[
    ("ttl-1", Uncovered::Ttl(1)),
    ("ttl-255", Uncovered::Ttl(255)),
    ("udp-checksum", Uncovered::UdpChecksum(0xbeef)),
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Uncovered {
    Ttl(u8),
    UdpChecksum(u16),
}

/// The payload length: the number of payload MTUs, and further bytes.
const LENGTH: Axis<(usize, usize)> = axis("payload").values(&[
    ("1", (0, 1)),
    ("15", (0, 15)),
    ("16", (0, 16)),
    ("17", (0, 17)),
    ("mtu", (1, 0)),
]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS)
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-header/source", "A member's packets carry its source identifier; a server uses its client's")
        .checks(&[TSS_HDR_001])
        .over(&[&IDENTIFIED])
        .run(|t| {
            let kind = t.value(&IDENTIFIED);
            let (pdc, region) = open_as(t, TSS_HDR_001, kind, |_| {})?;
            check_write(t, TSS_HDR_001, &pdc, &region, 1)?;
            let shield = t.shield()?;
            let client = shield.ssi;
            let expected = if kind.mode == KeyMode::Server { client } else { shield.installed.own_ssi };
            let seen = shield.seen.clone();
            for seen in seen {
                t.check(TSS_HDR_001, "source identifier:", expected, seen.ssi);
            }
            Ok(())
        }),
    rule("tss-header/no-source", "A packet without the source identifier that its domain uses has no effect")
        .checks(&[TSS_HDR_004, TSS_ICV_003])
        .over(&[&IDENTIFIED, &OPEN])
        .run(|t| {
            let (kind, open) = (t.value(&IDENTIFIED), t.value(&OPEN));
            t.secure(kind)?;
            let region = t.region(1 << 16)?;
            let mut pdc = t.initiate();
            if open {
                establish_as(t, TSS_HDR_004, &mut pdc, &region)?;
            }
            let has_key = !pdc.from.is_ipv6() || kind.mode == KeyMode::Cluster;
            require(has_key, "over IPv6, a packet without a source identifier has no key")?;
            let wire = plain_write(&pdc, &region, open.into())?;
            let shield = t.shield()?;
            let ssi = shield.ssi.take();
            shield.domain.ssi = false;
            let sealed = t.sealed(&wire);
            let shield = t.shield()?;
            (shield.ssi, shield.domain.ssi) = (ssi, true);
            if open {
                return expect_no_effect(t, [TSS_HDR_004, TSS_ICV_003], (&pdc, &region), 1, &[sealed?]);
            }
            t.send_as_it_is(&sealed?)?;
            expect_ignored(t, [TSS_HDR_004, TSS_ICV_003], &region, (0, &[0; 32]))?;
            establish_as(t, TSS_HDR_004, &mut pdc, &region)?;
            check_write(t, TSS_HDR_004, &pdc, &region, 1)
        }),
    rule("tss-header/reserved-received", "A target accepts an authentic packet with the reserved bit set")
        .checks(&[TSS_HDR_002])
        .over(&[&SECURED])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_HDR_002, t.value(&SECURED), |_| {})?;
            let mut wire = t.unsealed_wire(&plain_write(&pdc, &region, 1)?)?;
            flip_bit(&mut wire, 6);
            t.seal(&mut wire)?;
            t.send_as_it_is(&wire)?;
            expect_executed(t, TSS_HDR_002, &pdc, &region, 1)
        }),
    rule("tss-header/reserved-sent", "A device sends 0 in the reserved bit of the security header")
        .checks(&[TSS_HDR_003])
        .over(&[&SECURED])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            check_write(t, TSS_HDR_003, &pdc, &region, 1)?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            Target::accept(t)?.ack(t, 0)?;
            let count = t.shield()?.seen.iter().filter(|seen| seen.reserved).count();
            t.check(TSS_HDR_003, "packets with the reserved bit:", 0, count);
            Ok(())
        }),
    rule("tss-header/offset", "A target supports a confidentiality offset in both directions")
        .checks(&[TSS_AAD_001])
        .over(&[&SECURED, &OFFSET])
        .run(|t| {
            let (pdc, region) = open_with_offset(t, t.value(&OFFSET))?;
            check_write(t, TSS_AAD_001, &pdc, &region, 1)
        }),
    rule("tss-header/offset-sent", "An initiator encrypts only the bytes from the confidentiality offset on")
        .checks(&[TSS_AAD_001])
        .over(&[&SECURED, &OFFSET])
        .run(|t| {
            secure_with_offset(t, t.value(&OFFSET))?;
            t.shield()?.opens = TSS_AAD_001;
            let (written, target) = write_in_flight(t)?;
            target.ack(t, 0)?;
            t.ends(TSS_AAD_001, written, Status::Ok)
        }),
    rule("tss-header/offset-inside", "No confidentiality offset encrypts part of the security header")
        .checks(&[TSS_AAD_001])
        .over(&[&SECURED, &INSIDE])
        .run(|t| {
            let offset = t.value(&INSIDE);
            match t.secure_as(t.value(&SECURED), |domain| domain.confidentiality_offset = Some(offset)) {
                Err(Stop::Inconclusive(reason)) => {
                    t.holds(TSS_AAD_001, "the device refuses an offset within the header", true, reason);
                    return Ok(());
                }
                other => other?,
            }
            // A device may take it for the length of the header.
            let shield = t.shield()?;
            (shield.domain.confidentiality_offset, shield.opens) = (None, TSS_AAD_001);
            let (pdc, region) = open_new(t, TSS_AAD_001)?;
            check_write(t, TSS_AAD_001, &pdc, &region, 1)
        }),
    rule("tss-header/offset-altered", "A packet altered before the confidentiality offset has no effect")
        .checks(&[TSS_AAD_001, TSS_ICV_003])
        .over(&[&SECURED])
        .run(|t| {
            let (pdc, region) = open_with_offset(t, 12)?;
            let mut sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            let header = t.shield()?.header_length();
            // The flag retx, which a target accepts with either value.
            flip_bit(&mut sealed, header * 8 + 11);
            expect_no_effect(t, [TSS_AAD_001, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-header/outer-headers", "A packet with altered addresses, ports or UDP length has no effect")
        .checks(&[TSS_AAD_001, TSS_ICV_003])
        .over(&[&SECURED, &FIELD])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_AAD_001, t.value(&SECURED), |_| {})?;
            let field = t.value(&FIELD);
            let forged = t.sealed_over(&plain_write(&pdc, &region, 1)?, |outer| alter_outer(field, outer));
            expect_no_effect(t, [TSS_AAD_001, TSS_ICV_003], (&pdc, &region), 1, &[forged?])
        }),
    rule("tss-header/entropy", "A target accepts secured packets with any entropy value")
        .checks(&[TSS_AAD_001])
        .needs(ENTROPY_NEEDS)
        .over(&[&SECURED, &ENTROPY])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let region = t.region(1 << 16)?;
            let mut pdc = Pdc { entropy: t.value(&ENTROPY), ..t.initiate() };
            t.shield()?.opens = TSS_AAD_001;
            establish_as(t, TSS_AAD_001, &mut pdc, &region)?;
            check_write(t, TSS_AAD_001, &pdc, &region, 1)
        }),
    rule("tss-header/ecn", "A target accepts a secured packet that a switch has ECN-marked")
        .checks(&[TSS_AAD_001])
        .needs(ECN_NEEDS)
        .over(&[&SECURED])
        .run(|t| check_accepted_after(t, |sealed| sealed.marked = true)),
    rule("tss-header/ecn-echo", "An ACK reports whether its secured request carried a congestion mark")
        .checks(&[PDS_ACK_002])
        .needs(ECN_ECHO_NEEDS)
        .over(&[&SECURED])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            for (n, marked) in [(1, true), (2, false)] {
                let sealed = t.sealed(&plain_write(&pdc, &region, n)?)?;
                t.send_as_it_is(&Wire { marked, ..sealed })?;
                let (_, ack) = t.expect_ack(PDS_ACK_002, &pdc, pdc.psn(n))?;
                t.check(PDS_ACK_002, "flag m (marked)", marked, ack.m());
            }
            Ok(())
        }),
    rule("tss-header/dscp", "A target accepts a secured request whose DSCP a switch has changed")
        .checks(&[TSS_AAD_001])
        .needs(ECN_NEEDS)
        .over(&[&SECURED])
        .run(|t| check_accepted_after(t, |sealed| sealed.high = Some(true))),
    rule("tss-header/mutable-fields", "A target accepts a secured packet with a changed TTL or UDP checksum")
        .checks(&[TSS_AAD_001])
        .needs(TTL_NEEDS)
        .over(&[&SECURED, &UNCOVERED])
        .run(|t| match t.value(&UNCOVERED) {
            Uncovered::Ttl(ttl) => check_accepted_after(t, |sealed| sealed.ttl = ttl),
            Uncovered::UdpChecksum(checksum) => {
                check_accepted_after(t, |sealed| sealed.udp_checksum = checksum)
            }
        }),
    rule("tss-header/payload-received", "A target delivers payloads without the ICV, up to the payload MTU")
        .checks(&[TSS_LEN_001])
        .over(&[&SECURED, &LENGTH])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let (mtus, rest) = t.value(&LENGTH);
            let data = vec![0x5a; mtus * t.mtu() + rest];
            t.request(&pdc, pdc.request(1).write(&region, 0, &data)?)?;
            t.expect_ack(TSS_LEN_001, &pdc, pdc.psn(1))?;
            let expected = [data, vec![0; 32]].concat();
            t.expect_memory(TSS_LEN_001, &region, 0, &expected)
        }),
    rule("tss-header/payload-sent", "Secured packets carry the full payload MTU")
        .checks(&[TSS_LEN_001])
        .over(&[&SECURED])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let written = t.post(post(PostKind::Write, peer, 2 * mtu + 5))?;
            let mut target = Target::accept(t)?;
            target.collect(t, 3)?;
            for (n, expected) in [(0, mtu), (1, mtu), (2, 5)] {
                let length = target.packet(n)?.seen.payload().len();
                t.check(TSS_LEN_001, "payload bytes:", expected, length);
            }
            target.ack(t, 2)?;
            t.ends(TSS_LEN_001, written, Status::Ok)
        }),
    rule("tss-header/too-short", "A packet too short for its headers and ICV has no effect")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let header = t.shield()?.header_length();
            let sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            t.settle()?;
            for length in [4, header - 1, header, header + 1, header + ICV - 1, header + ICV] {
                let mut short = sealed.clone();
                short.bytes.truncate(length);
                t.send_as_it_is(&short)?;
            }
            // An authentic packet without content.
            let mut empty = t.unsealed_wire(&pdc.raw(&[]))?;
            t.seal(&mut empty)?;
            t.send_as_it_is(&empty)?;
            expect_no_answer(t, TSS_ICV_003)?;
            check_write(t, TSS_ICV_002, &pdc, &region, 1)
        }),
    rule("tss-header/nested", "A secured packet inside a secured packet has no effect")
        .checks(&[TSS_ICV_002])
        .over(&[&CLUSTER])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_ICV_002, t.value(&CLUSTER), |_| {})?;
            let inner = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            let outer = t.sealed(&inner)?;
            expect_no_effect(t, [TSS_ICV_002, TSS_ICV_002], (&pdc, &region), 1, &[outer])
        }),
];

/// Makes the device a member of a domain with a confidentiality offset, which a device may reject.
pub(super) fn secure_with_offset(t: &mut Test<'_>, plaintext: u8) -> Outcome {
    let kind = t.value(&SECURED);
    let offset = |header| (plaintext > 0).then_some(header + plaintext);
    match t.secure_as(kind, |domain| {
        domain.confidentiality_offset = offset(if domain.ssi { 16 } else { 12 });
    }) {
        // The sources name no offset but the length of the header.
        Err(Stop::Inconclusive(reason)) if plaintext > 0 => skip(reason),
        other => other,
    }
}

/// Opens a context in a domain with a confidentiality offset.
fn open_with_offset(t: &mut Test<'_>, plaintext: u8) -> Result<(Pdc, Region), Stop> {
    secure_with_offset(t, plaintext)?;
    t.shield()?.opens = TSS_AAD_001;
    open_new(t, TSS_AAD_001)
}

/// Returns another address of the same family.
fn altered(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() ^ 0x40).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() ^ 1 << 64).into()),
    }
}

/// Changes this field of the outer headers.
fn alter_outer(field: Field, outer: &mut Outer) {
    match field {
        Field::Source => return outer.src = altered(outer.src),
        Field::Destination => return outer.dst = altered(outer.dst),
        Field::AddressesSwapped => return core::mem::swap(&mut outer.src, &mut outer.dst),
        _ => {}
    }
    match &mut outer.layer {
        OuterLayer::Native { header } => {
            // The entropy value, or the reserved bits after it.
            let byte = if field == Field::SourcePort { 0 } else { 2 };
            header[byte] ^= 1;
        }
        OuterLayer::Udp { src_port, dst_port, length } => match field {
            Field::SourcePort => *src_port ^= 1,
            Field::DestinationPort => *dst_port ^= 1,
            Field::Length => *length ^= 1,
            Field::LengthWithoutIcv => *length = length.wrapping_sub(ICV as u16),
            _ => (*src_port, *dst_port) = (0, 0),
        },
    }
}

/// Changes a sealed packet outside its authenticated fields, and expects that it is executed.
fn check_accepted_after(t: &mut Test<'_>, change: impl FnOnce(&mut Wire)) -> Outcome {
    let (pdc, region) = open_as(t, TSS_AAD_001, t.value(&SECURED), |_| {})?;
    let mut has_udp = false;
    let mut sealed = t.sealed_over(&plain_write(&pdc, &region, 1)?, |outer| {
        has_udp = matches!(outer.layer, OuterLayer::Udp { .. });
    })?;
    change(&mut sealed);
    require(sealed.udp_checksum == 0 || has_udp, "the link has no UDP header")?;
    t.send_as_it_is(&sealed)?;
    expect_executed(t, TSS_AAD_001, &pdc, &region, 1)
}
