//! The PSNs of an initiator and its send window (section 3.5.12.6).

use super::steps::smallest_range;
use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::require_retransmissions;
use core::ops::Range;

/// The wider range; twice the narrower one without a number.
const WIDER: Axis<Option<u8>> =
    axis("mpr").values(&[("twice", None), ("127", Some(127)), ("128", Some(128)), ("255", Some(255))]);

/// True if the cumulative PSN of the ACK with the narrower range is newer than that of the one before.
const NEWER: Axis<bool> = axis("cack").values(&[("newer", true), ("same", false)]);

/// The `mpr` that the target of an earlier context has announced; four times the default without a number.
const EARLIER: Axis<Option<u8>> =
    axis("mpr").values(&[("fourfold", None), ("255", Some(255)), ("0", Some(0))]);

/// The job and the traffic class of a second context.
const SECOND: Axis<(u32, u8)> = axis("second").values(&[("other-job", (202, 0)), ("other-class", (101, 1))]);

pub(super) const RULES: &[Rule] = &[
    rule("source-window/no-gaps", "The packets of a message have consecutive PSNs")
        .checks(&[PDS_PSN_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let count = 60;
            t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
            let mut target = Target::accept(t)?;
            for n in 0..count {
                target.expect_new(t, PDS_PSN_001, n)?;
                target.ack(t, n)?;
            }
            target.watch(t, t.grace())?;
            t.check(PDS_PSN_001, "the highest PSN, from 0", count - 1, target.highest());
            Ok(())
        }),
    rule("source-window/across-messages", "PSNs continue from one message to the next without gaps")
        .checks(&[PDS_PSN_001])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let mut next = 1;
            for count in [2, 1, 3] {
                t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
                for n in next..next + count {
                    target.expect_new(t, PDS_PSN_001, n)?;
                }
                next += count;
                target.ack(t, next - 1)?;
            }
            t.check(PDS_PSN_001, "the highest PSN, from 0", 6, target.highest());
            Ok(())
        }),
    rule("source-window/wrap", "PSNs and cumulative ACKs continue when the PSN wraps")
        .checks(&[PDS_PSN_006])
        .run(|t| {
            t.configure("start_psn", u32::MAX - 2)?;
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 8 * t.mtu()))?;
            let mut target = Target::accept(t)?;
            if target.pdc.start != Psn(u32::MAX - 2) {
                return Err(Stop::Inconclusive("the device does not start at start_psn".into()));
            }
            target.collect(t, 8)?;
            t.check(PDS_PSN_006, "PSN 3 after the first", Psn(0), target.packet(3)?.request.psn());
            target.name(t, 1, 0)?;
            target.ack(t, 4)?;
            t.settle()?;
            // The cumulative PSN is that of packet 4, so only later packets are retransmitted.
            target.expect_again(t, PDS_PSN_006, 5, t.later())?;
            target.expect_none(t, PDS_PSN_006, "nothing below the cumulative PSN", t.rto(), |n| {
                !(5..=7).contains(&n)
            })?;
            target.ack(t, 7)?;
            t.ends(PDS_PSN_006, written, Status::Ok)
        }),
    rule("source-window/default", "By default, no PSN exceeds the cumulative PSN + 128 * Default_MPR")
        .checks(&[PDS_WIN_004])
        .run(|t| {
            let range = smallest_range(t)?;
            // An ACK without a range has no congestion state. A device that requires it may stop earlier.
            t.try_configure("congestion", "none")?;
            let mut target = start_message(t, range + 40, None)?;
            fill_window(t, &mut target, 0..u32::MAX, true)?;
            check_highest(t, PDS_WIN_004, &target, range - 1, "default_mpr");
            require_reached(t, &target, range - 1)
        }),
    rule("source-window/announced", "No PSN exceeds the cumulative PSN + the announced range")
        .checks(&[PDS_WIN_004])
        .run(|t| {
            let default = smallest_range(t)?;
            let range = 2 * default;
            let mut target = start_message(t, range + 40, Some((range / 128) as u8))?;
            target.ack(t, 0)?;
            fill_window(t, &mut target, 1..u32::MAX, false)?;
            check_highest(t, PDS_WIN_004, &target, range, "the announced mpr");
            require_reached(t, &target, range)
        }),
    rule("source-window/wider", "A wider announced range lets more packets leave at once")
        .checks(&[PDS_WIN_004, PDS_WIN_005])
        .over(&[&WIDER, &MODE, &CARRIER, &START])
        .run(|t| {
            require_retransmissions(t, 2)?;
            let range = smallest_range(t)?;
            let mut target = start_message(t, 2 * range + 40, Some((range / 128) as u8))?;
            target.ack(t, 0)?;
            fill_window(t, &mut target, 1..u32::MAX, false)?;
            require_reached(t, &target, range)?;
            target.mpr = t.value(&WIDER).unwrap_or(2 * target.mpr);
            let wider = u32::from(target.mpr) * 128;
            // Its cumulative PSN is not below that of the newest ACK, so it is not older.
            target.name(t, range, 1)?;
            fill_window(t, &mut target, 1..u32::MAX, false)?;
            check_highest(t, PDS_WIN_004, &target, wider, "the wider mpr");
            // The range is an upper bound: a source may stop earlier.
            require_reached(t, &target, range + 1)?;
            t.at_least(
                PDS_WIN_005,
                "the highest PSN, from 0, in the wider range",
                range + 1,
                target.highest(),
            );
            Ok(())
        }),
    rule(
        "source-window/narrower",
        "A narrower range takes back no permitted packet, and limits all later ones",
    )
    .checks(&[PDS_WIN_004])
    .over(&[&NEWER, &MODE, &CARRIER, &START])
    .run(|t| {
        require_retransmissions(t, 2)?;
        let (range, newer) = (smallest_range(t)?, t.value(&NEWER));
        if !newer {
            // A device that requires congestion state may stop before the edge.
            t.try_configure("congestion", "none")?;
        }
        let mut target = start_message(t, 3 * range + 80, Some((2 * range / 128) as u8))?;
        target.ack(t, 0)?;
        target.serve(t, 21, |target, packet| Some(target.naming(target.index(&packet.request), 1)))?;
        // The wider range has permitted packets up to this one. A narrower range takes none of them back.
        let mut permitted = 2 * range;
        if !newer {
            target.ack(t, 20)?;
            permitted += 20;
        }
        target.mpr /= 2;
        target.ack(t, 20)?;
        // With the same cumulative PSN, only the ACK above may narrow the range, so the later ones have none.
        fill_window(t, &mut target, 21..u32::MAX, !newer)?;
        check_highest(t, PDS_WIN_004, &target, permitted, "the wider mpr");
        let highest = target.highest();
        // The next cumulative PSN opens only the narrower range.
        match newer {
            true => target.ack(t, highest - 10)?,
            false => t.send(&target.pdc, &target.pdc.ack(target.psn(highest - 10)).build()?)?,
        }
        fill_window(t, &mut target, highest - 9..u32::MAX, !newer)?;
        let narrower = highest - 10 + range;
        check_highest(t, PDS_WIN_004, &target, narrower.max(permitted), "the narrower mpr");
        // A source that stopped where the narrower range ends has used less than it was permitted.
        require_reached(t, &target, narrower)
    }),
    rule("source-window/stale-range", "The device ignores the range in an ACK older than the newest")
        .checks(&[PDS_WIN_002])
        .run(|t| {
            let range = smallest_range(t)?;
            // The ACKs have no congestion state. A device that requires it may stop before the edge.
            t.try_configure("congestion", "none")?;
            let mut target = start_message(t, 2 * range + 40, Some((range / 128) as u8))?;
            target.serve(t, 11, |target, packet| {
                let n = target.index(&packet.request);
                (n <= 10).then(|| target.acking(n))
            })?;
            // Covers packets that arrived out of order.
            target.ack(t, 10)?;
            // This ACK was overtaken, and announces a wider range.
            let stale = target.acking(5);
            target.answer(
                t,
                AckBuilder { mpr: 2 * target.mpr, nscc: stale.nscc.or(Some(Default::default())), ..stale },
            )?;
            // Later ACKs announce no range, since one would undo the effect of the stale ACK.
            fill_window(t, &mut target, 11..u32::MAX, true)?;
            let edge = 10 + range;
            check_highest(t, PDS_WIN_002, &target, edge, "the mpr of the newest ACK");
            require_reached(t, &target, edge)
        }),
    rule("source-window/second-context", "A range announced on one context is not that of a later context")
        .checks(&[PDS_SYN_006, PDS_WIN_004])
        .over(&[&EARLIER, &SECOND, &MODE, &CARRIER, &START])
        .run(|t| {
            let range = smallest_range(t)?;
            t.try_configure("congestion", "none")?;
            let peer = t.peer_of_job(101)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let mut wide = Target::accept(t)?;
            wide.mpr = t.value(&EARLIER).unwrap_or((4 * range / 128).min(255) as u8);
            wide.states = true;
            wide.ack(t, 0)?;
            t.settle()?;
            let (job, class) = t.value(&SECOND);
            let other = t.peer_of_job(job)?;
            let write = post(PostKind::Write, other, (2 * range as usize + 40) * t.mtu());
            t.post(uet_control::Post { class, ..write })?;
            let mut next = Target::accept_beside(t, &[&wide])?;
            next.watch(t, t.rto() * 2)?;
            let edge = Bound::from(range.min(4096) - 1).from_parameter("default_mpr");
            t.at_most(PDS_SYN_006, "the highest psn_offset before the first ACK", edge, next.highest());
            // This ACK announces no range.
            t.send(&next.pdc, &next.pdc.ack(next.psn(0)).build()?)?;
            next.watch(t, t.rto() * 2)?;
            check_highest(t, PDS_WIN_004, &next, range, "default_mpr");
            // The edge says nothing about a device that stops before.
            require(
                next.highest() >= range,
                format!("the device sends no more than {} packets", next.highest()),
            )
        }),
    rule("source-window/no-limit", "A message completes although each ACK has mpr = 0")
        .checks(&[PDS_WIN_005])
        .run(|t| {
            let range = smallest_range(t)?;
            let count = range + 40;
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.mpr = 0;
            for n in 0..count {
                target.expect_new(t, PDS_WIN_005, n)?;
                let ack = target.acking(n);
                target.answer(t, AckBuilder { nscc: ack.nscc.or(Some(Default::default())), ..ack })?;
            }
            t.ends(PDS_WIN_005, written, Status::Ok)
        }),
    rule("source-window/sack", "A SACK bit does not move the send window").checks(&[PDS_WIN_004]).run(|t| {
        require_retransmissions(t, 3)?;
        let range = smallest_range(t)?;
        let mut target = start_message(t, range + 40, Some((range / 128) as u8))?;
        target.ack(t, 0)?;
        // No ACK names the last ten packets before the edge.
        fill_window(t, &mut target, 1..range - 9, false)?;
        require_reached(t, &target, range)?;
        let first = target.psn(range - 9);
        target.answer(t, target.acking(0).sack(first, 0x3ff))?;
        target.expect_none(t, PDS_WIN_004, "nothing above the window", t.rto() * 2, |n| n > range)?;
        target.ack(t, 1)?;
        target.expect_new(t, PDS_WIN_004, range + 1)?;
        Ok(())
    }),
    rule("source-window/opens", "A full window opens as far as the cumulative PSN advances")
        .checks(&[PDS_WIN_004])
        .run(|t| {
            require_retransmissions(t, 2)?;
            let range = smallest_range(t)?;
            let mut target = start_message(t, range + 40, Some((range / 128) as u8))?;
            target.ack(t, 0)?;
            fill_window(t, &mut target, 1..u32::MAX, false)?;
            require_reached(t, &target, range)?;
            target.ack(t, 7)?;
            fill_window(t, &mut target, 8..u32::MAX, false)?;
            check_highest(t, PDS_WIN_004, &target, 7 + range, "the announced mpr");
            require_reached(t, &target, 7 + range)
        }),
    rule("source-window/ordered", "An ordered context stays within the window on cumulative ACKs alone")
        .checks(&[PDS_WIN_004])
        .needs(&[ROD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let range = smallest_range(t)?;
            t.try_configure("congestion", "none")?;
            let peer = t.peer(0)?;
            let write = post(PostKind::Write, peer, (range as usize + 40) * t.mtu());
            t.post(Post { mode: Mode::Rod, ..write })?;
            let mut target = Target::accept(t)?;
            target.mpr = (range / 128) as u8;
            target.ack(t, 0)?;
            target.watch(t, t.rto() * 2)?;
            check_highest(t, PDS_WIN_004, &target, range, "the announced mpr");
            require_reached(t, &target, range)?;
            target.ack(t, 3)?;
            target.expect_new(t, PDS_WIN_004, range + 3)?;
            Ok(())
        }),
    rule("source-window/reads", "The requests of a long read stay within the announced range")
        .checks(&[PDS_WIN_004, SES_DONE_001])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let range = smallest_range(t)?;
            t.try_configure("congestion", "none")?;
            let (peer, length) = (t.peer(0)?, (range as usize + 40) * t.mtu());
            let read = t.post(post(PostKind::Read, peer, length))?;
            let mut target = Target::accept(t)?;
            (target.mpr, target.states) = ((range / 128) as u8, true);
            target.ack(t, 0)?;
            // A device may limit the bytes of its reads before that.
            target.watch(t, t.rto() * 2)?;
            check_highest(t, PDS_WIN_004, &target, range, "the announced mpr");
            t.is_open(SES_DONE_001, read)
        }),
    rule("source-window/one-context", "The rest of a message waits for its own window and takes no other")
        .checks(&[PDS_MSG_002])
        .run(|t| {
            let range = smallest_range(t)?;
            let mut target = start_message(t, range + 40, Some((range / 128) as u8))?;
            target.ack(t, 0)?;
            fill_window(t, &mut target, 1..u32::MAX, false)?;
            let remote = target.pdc.remote;
            t.expect_none(PDS_MSG_002, "no packet by another context", Duration::ZERO, |seen| {
                seen.request().filter(|request| Some(request.spdcid()) != remote)
            })
        }),
];

/// Has the device send a message of `count` packets on a new context. Later ACKs announce this range.
fn start_message(t: &mut Test<'_>, count: u32, mpr: Option<u8>) -> Result<Target, Stop> {
    let peer = t.peer(0)?;
    t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
    let mut target = Target::accept(t)?;
    if let Some(mpr) = mpr {
        // Only an ACK_CC announces a range.
        (target.mpr, target.states) = (mpr, true);
    }
    Ok(target)
}

/// Acknowledges the packets of this range except the first, until no new packet arrives. The cumulative PSN
/// stays below the first. With `plain`, the ACKs announce no range.
fn fill_window(t: &mut Test<'_>, target: &mut Target, named: Range<u32>, plain: bool) -> Outcome {
    // A rule fills the window twice at most before the device gives up the first packet.
    let (until, mut next) = (t.now() + t.until_given_up() * 2 / 5, 0);
    loop {
        while let Some(request) = target.got.get(next) {
            acknowledge(t, target, target.index(&request.request), &named, plain)?;
            next += 1;
        }
        let longest = t.rto() * 2 + t.grace();
        if t.now() > until || target.next(t, longest)?.is_none() {
            return Ok(());
        }
    }
}

/// Acknowledges the `n`-th PSN as [`fill_window`] describes.
fn acknowledge(t: &mut Test<'_>, target: &Target, n: u32, named: &Range<u32>, plain: bool) -> Outcome {
    if n == named.start || !named.contains(&n) {
        return Ok(());
    }
    if plain {
        t.send(&target.pdc, &target.pdc.ack(target.psn(n)).cack(target.psn(named.start) - 1).build()?)
    } else {
        target.name(t, n, named.start)
    }
}

/// Checks that no packet is above the `edge`-th PSN.
fn check_highest(t: &mut Test<'_>, requirement: &Requirement, target: &Target, edge: u32, from: &str) {
    t.at_most(
        requirement,
        "the highest PSN, from 0",
        Bound::from(edge).from_parameter(from),
        target.highest(),
    );
}

/// Requires that the device has reached the edge of the window. Otherwise the rule is inconclusive.
fn require_reached(t: &Test<'_>, target: &Target, edge: u32) -> Outcome {
    if target.highest() >= edge {
        return Ok(());
    }
    t.is_kept(&target.pdc)?;
    Err(Stop::Inconclusive(format!("the device stopped at packet {}, before {edge}", target.highest())))
}
