//! Opening packets that are refused for lack of a context (sections 3.5 and 3.5.8).

use super::nack::{MOST, expect_given_up, set_most};
use crate::prelude::*;
use crate::rules::delivery::rule;

/// Codes of a target that has no room for a context.
const SHORTAGE: Axis<NackCode> = axis("code").values(&[
    ("no-pdc", NackCode::NO_PDC_AVAIL),
    ("no-ccc", NackCode::NO_CCC_AVAIL),
    ("no-bitmap", NackCode::NO_BITMAP),
]);

/// The operation that opens the context.
const OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("read", PostKind::Read, &[READ]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
]);

/// The number of packets of the first message, and those of them that are refused.
const BURST: Axis<(u32, &[u32])> =
    axis("burst").values(&[("one", (1, &[0])), ("each-of-four", (4, &[0, 1, 2, 3])), ("second", (3, &[1]))]);

pub(super) const RULES: &[Rule] = &[
    rule("source-nack/opening-limit", "Refusals for lack of a context end an opening at Max_NACK_Retx_Cnt")
        .checks(&[PDS_NACK_005])
        .over(&[&SHORTAGE, &MOST, &OPERATION, &MODE, &START])
        .run(|t| {
            let most = set_most(t)?;
            let (code, kind) = (t.value(&SHORTAGE), t.value(&OPERATION));
            let peer = t.peer(0)?;
            let tag = (kind == PostKind::Tsend).then_some(uet_control::Hex64(0x7a9));
            let posted = t.post(uet_control::Post { tag, ..post(kind, peer, 64) })?;
            let mut target = Target::accept(t)?;
            expect_given_up(t, &mut target, (0, most), |t, target| {
                target.refuse_without_context(t, code, 0)
            })?;
            t.fails(PDS_NACK_005, posted, t.until_given_up())
        }),
    rule(
        "source-nack/opening-wait",
        "Packets refused for lack of a context wait for NACK_Retx_Time, with syn",
    )
    .checks(&[PDS_NACK_006, PDS_NACK_004, PDS_NACK_005, PDS_SYN_001])
    .over(&[&SHORTAGE, &BURST, &MODE, &CARRIER, &START])
    .measure(|t| {
        // Timeouts are far away, so each retransmission is the answer to a NACK.
        t.slowed()?;
        let (code, (count, refused)) = (t.value(&SHORTAGE), t.value(&BURST));
        // The refusals of one packet do not count for another.
        let rounds = t.nack_limit()?.min(2);
        let peer = t.peer(0)?;
        let written = t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
        let mut target = Target::accept(t)?;
        target.watch(t, t.grace())?;
        require(target.highest() + 1 == count, "the device sends one packet before the first ACK")?;
        for _ in 0..rounds {
            for n in refused {
                let since = t.now();
                let sent = target.of(*n).last().map_or(since, |got| got.seen.at);
                let timely = since + t.nack_wait() * 2 < sent + t.early();
                target.refuse_without_context(t, code, *n)?;
                let again = target.expect_again(t, PDS_NACK_004, *n, t.later())?;
                let waited = again.seen.at.saturating_sub(since);
                let bound = Bound::from(t.nack_wait()).from_parameter("nack_retx_time");
                // A packet also leaves at its timeout, and an ordered source goes back with an earlier one.
                if timely && (*n == refused[0] || !target.pdc.rod) {
                    t.at_least(PDS_NACK_006, "the time before the retransmission", bound, waited);
                }
                let offset = again.request.psn_offset().map(|offset| u32::from(offset.get()));
                t.check(PDS_SYN_001, "psn_offset", Some(*n), offset);
                t.check(PDS_SYN_001, "syn", true, again.request.syn());
            }
        }
        target.ack(t, count - 1)?;
        t.ends(PDS_NACK_005, written, Status::Ok)
    }),
];
