//! The packets that a destination counts in rcvd_bytes (section 3.6.13): their flags, their copies, and the
//! ACKs of other packets, which state the count too.

use super::nscc_destination::{CountedContext, PLACE};
use crate::prelude::*;

/// A packet that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewPacket {
    Marked,
    /// The network has lost the first copy.
    Retransmitted,
    WithoutAr,
    /// No region accepts it, so its response is an error.
    Error,
}

const NEW: Axis<NewPacket> = axis("packet").needing(&[
    ("marked", NewPacket::Marked, &[ECN, SET_ECN]),
    ("retransmitted", NewPacket::Retransmitted, &[]),
    ("without-ar", NewPacket::WithoutAr, &[]),
    ("error", NewPacket::Error, &[]),
]);

/// The response to a packet above a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseKind {
    Default,
    Error,
    /// It is not ready, because the message is incomplete.
    Pending,
}

const RESPONSE: Axis<ResponseKind> = axis("response").values(&[
    ("default", ResponseKind::Default),
    ("error", ResponseKind::Error),
    ("pending", ResponseKind::Pending),
]);

/// A packet that does not count, and gets an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpareReply {
    Duplicate,
    Noop,
    AckRequest,
}

const SPARE_REPLY: Axis<SpareReply> = axis("packet").values(&[
    ("duplicate", SpareReply::Duplicate),
    ("noop", SpareReply::Noop),
    ("ack-request", SpareReply::AckRequest),
]);

/// A packet that the context does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotTaken {
    /// Its type is of the other delivery mode.
    Mode,
    /// Its first PSN is not that of the context.
    Start,
    /// It comes from another address.
    Address,
}

const NOT_TAKEN: Axis<NotTaken> = axis("packet").needing(&[
    ("other-mode", NotTaken::Mode, &[RUD, ROD]),
    ("other-start", NotTaken::Start, &[]),
    ("other-address", NotTaken::Address, &[TWO_ADDRESSES]),
]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[WRITE, NSCC])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc/rcvd-bytes-kinds", "rcvd_bytes counts new packets with any flags, mark or response")
        .checks(&[CC_RCVD_001])
        .over(&[&NEW, &MODE, &START])
        .run(|t| {
            let (mut counted, kind) = (CountedContext::open(t)?, t.value(&NEW));
            for _ in 0..3 {
                let request = counted.write(1000)?;
                let request = match kind {
                    NewPacket::Marked => request,
                    NewPacket::Retransmitted => request.retx(),
                    NewPacket::WithoutAr => request.quiet(),
                    NewPacket::Error => request.write_nowhere(&counted.region, &[7; 1000])?,
                };
                counted.send_marked(t, &request, kind == NewPacket::Marked)?;
                if kind != NewPacket::WithoutAr {
                    counted.expect_count(t, CC_RCVD_001, request.psn)?;
                }
            }
            t.forget();
            counted.check_write(t, CC_RCVD_001, 16)
        }),
    rule(
        "nscc/rcvd-bytes-copies",
        "Copies of a packet above a gap add nothing to rcvd_bytes, whatever its response is",
    )
    .checks(&[CC_RCVD_002])
    .needs(&[RUD, WRITE, NSCC])
    .over(&[&RESPONSE, &START])
    .run(|t| {
        let (mut counted, mtu) = (CountedContext::open(t)?, t.mtu());
        let (missing, above) = (counted.write(1000)?, counted.write(1000)?);
        let (missing, above) = match t.value(&RESPONSE) {
            ResponseKind::Default => (missing, above),
            ResponseKind::Error => (missing, above.write_nowhere(&counted.region, &[7; 1000])?),
            ResponseKind::Pending => {
                (missing.half(&counted.region, mtu, 0)?, above.half(&counted.region, mtu, 1)?)
            }
        };
        // The other writes belong to another message.
        counted.region.message_id ^= 1;
        counted.send(t, &above)?;
        for _ in 0..3 {
            t.request(&counted.pdc, above.clone().retx())?;
        }
        t.pause(t.soon())?;
        t.forget();
        counted.check_write(t, CC_RCVD_002, 16)?;
        counted.send(t, &missing)?;
        counted.expect_count(t, CC_RCVD_002, missing.psn)
    }),
    rule(
        "nscc/rcvd-bytes-trimmed-copies",
        "Trimmed copies of a packet that has arrived add nothing to rcvd_bytes",
    )
    .checks(&[CC_RCVD_002])
    .needs(&[WRITE, NSCC, TRIM])
    .over(&[&PLACE, &MODE, &START])
    .run(|t| {
        let (mut counted, place) = (CountedContext::open(t)?, t.value(&PLACE));
        let request = counted.write(1000)?;
        counted.send(t, &request)?;
        counted.expect_count(t, CC_RCVD_002, request.psn)?;
        let copy = request.retx().build()?;
        for keep in [16, 64, 1000] {
            t.send_wire(&counted.pdc.trimmed(&copy, place, keep))?;
        }
        t.pause(t.soon())?;
        t.forget();
        counted.check_write(t, CC_RCVD_002, 16)
    }),
    rule("nscc/rcvd-bytes-ordered", "An ordered context counts a packet above a gap once it accepts it")
        .checks(&[CC_RCVD_001])
        .needs(&[ROD, NSCC])
        .over(&[&CARRIER, &START])
        .run(|t| {
            t.congestion_or_both("nscc")?;
            let region = t.region(1 << 16)?;
            let pdc = Pdc { rod: true, ..t.initiate() };
            let mut counted = CountedContext::open_on(t, pdc, region)?;
            let (missing, above) = (counted.write(1000)?, counted.write(1000)?);
            for _ in 0..3 {
                t.request(&counted.pdc, above.clone())?;
            }
            let refuses = |seen: &RxPacket| seen.refuses(&counted.pdc, above.psn);
            t.need("a NACK of the packet above the gap", t.soon(), refuses)?;
            for request in [missing, above.retx()] {
                counted.send(t, &request)?;
                counted.expect_count(t, CC_RCVD_001, request.psn)?;
            }
            Ok(())
        }),
    rule("nscc/rcvd-bytes-not-taken", "A packet that its context does not take adds nothing to rcvd_bytes")
        .checks(&[CC_RCVD_001])
        .over(&[&NOT_TAKEN, &MODE, &START])
        .run(|t| {
            let mut counted = CountedContext::open(t)?;
            counted.check_write(t, CC_RCVD_001, 1000)?;
            let request = counted.write(1000)?;
            // The PSN stays free.
            counted.next -= 1;
            let pdc = counted.pdc.clone();
            let (from, invalid) = match t.value(&NOT_TAKEN) {
                NotTaken::Mode => (pdc.from, Request { rod: !request.rod, ..request }),
                NotTaken::Start => (pdc.from, Request { syn: true, offset: request.offset + 7, ..request }),
                NotTaken::Address => (t.address(1)?, request),
            };
            let sender = Pdc { from, ..pdc };
            for _ in 0..3 {
                t.request(&sender, invalid.clone())?;
            }
            t.pause(t.soon())?;
            t.forget();
            for length in [16, 300] {
                counted.check_write(t, CC_RCVD_001, length)?;
            }
            Ok(())
        }),
    rule(
        "nscc/rcvd-bytes-every-ack",
        "The ACK of a packet that does not count states the current rcvd_bytes",
    )
    .checks(&[CC_RCVD_004])
    .needs(&[NSCC])
    .over(&[&SPARE_REPLY, &MODE, &CARRIER, &START])
    .run(|t| {
        let uncounted = t.value(&SPARE_REPLY);
        let mut counted = CountedContext::open(t)?;
        let first = counted.write(1000)?;
        counted.send(t, &first)?;
        counted.expect_count(t, CC_RCVD_004, first.psn)?;
        for length in [1000, 500] {
            counted.check_write(t, CC_RCVD_004, length)?;
        }
        let pdc = &counted.pdc;
        match uncounted {
            SpareReply::Duplicate => t.request(pdc, first.retx())?,
            SpareReply::Noop => t.send(pdc, &pdc.numbered(CtlType::NOOP, counted.next)?)?,
            SpareReply::AckRequest => t.send(pdc, &pdc.control(CtlType::ACK_REQUEST, first.psn, 0)?)?,
        }
        counted.check_next_ack(t, CC_RCVD_004)
    }),
];
