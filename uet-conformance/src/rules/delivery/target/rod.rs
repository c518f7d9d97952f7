//! Ordered contexts at a target (section 3.5.21).

use super::steps::clear_command;
use crate::prelude::*;
use crate::{Data, Show};

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[ROD]).over(&[&CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("rod/in-order", "An ordered context delivers and acknowledges packets in order")
        .checks(&[PDS_ROD_001, PDS_PSN_002])
        .run(|t| {
            let (pdc, region) = open(t)?;
            for n in 1..=40 {
                write(t, &pdc, &region, n)?;
            }
            t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(40))?;
            let expected: Vec<u8> = (0..=40).collect();
            t.expect_memory(PDS_ROD_001, &region, 0, &expected)?;
            t.expect_none(PDS_ROD_001, "no NACK", t.soon(), |seen| seen.nack())
        }),
    rule("rod/gap", "A packet above a gap is refused with ROD_OOO and its own PSN")
        .checks(&[PDS_ROD_001, PDS_ROD_002])
        .run(|t| {
            let (pdc, region) = open(t)?;
            write(t, &pdc, &region, 3)?;
            let (_, nack) = t.expect_nack(PDS_ROD_002, &pdc, pdc.psn(3), &[NackCode::ROD_OOO])?;
            t.check(PDS_ROD_002, "spdcid", pdc.remote, Some(nack.spdcid()));
            t.pause(t.soon())?;
            t.check_memory(PDS_ROD_001, &region, 3, &[0])?;
            t.expect_none(PDS_ROD_001, "no ACK of what was dropped", t.soon(), |seen| {
                seen.acknowledges(&pdc, pdc.psn(3))
            })?;
            write(t, &pdc, &region, 1)?;
            t.expect_cack(PDS_ROD_001, &pdc, pdc.psn(1))?;
            Ok(())
        }),
    rule("rod/one-nack-per-gap", "A gap causes only one NACK, however many packets arrive above it")
        .checks(&[PDS_ROD_002, PDS_ROD_001])
        .run(|t| {
            let (pdc, region) = open(t)?;
            for n in 2..=20 {
                write(t, &pdc, &region, n)?;
            }
            t.expect_nack(PDS_ROD_002, &pdc, pdc.psn(2), &[NackCode::ROD_OOO])?;
            t.expect_none(PDS_ROD_002, "no second NACK of the gap", t.soon(), |seen| {
                seen.nack().filter(|_| seen.is_for(&pdc))
            })?;
            t.check_memory(PDS_ROD_001, &region, 1, &[0; 20])
        }),
    rule("rod/next-gap", "Each further gap causes a NACK like the first").checks(&[PDS_ROD_002]).run(|t| {
        let (pdc, region) = open(t)?;
        for first in [1, 4, 7] {
            // The packet after the missing one, then all three.
            write(t, &pdc, &region, first + 1)?;
            t.expect_nack(PDS_ROD_002, &pdc, pdc.psn(first + 1), &[NackCode::ROD_OOO])?;
            for n in first..first + 3 {
                write(t, &pdc, &region, n)?;
            }
            t.expect_cack(PDS_ROD_002, &pdc, pdc.psn(first + 2))?;
        }
        Ok(())
    }),
    rule("rod/go-back", "After a go-back, all retransmitted packets are delivered in order")
        .checks(&[PDS_ROD_001, PDS_ROD_002])
        .run(|t| {
            let (pdc, region) = open(t)?;
            for n in [1, 2, 4, 5, 6, 7] {
                write(t, &pdc, &region, n)?;
            }
            t.expect_nack(PDS_ROD_002, &pdc, pdc.psn(4), &[NackCode::ROD_OOO])?;
            for n in 3..=7 {
                t.request(&pdc, pdc.request(n).retx().write(&region, u64::from(n), &[n as u8])?)?;
            }
            t.expect_cack(PDS_ROD_001, &pdc, pdc.psn(7))?;
            t.expect_memory(PDS_ROD_001, &region, 1, &[1, 2, 3, 4, 5, 6, 7])
        }),
    rule("rod/shuffled", "Packets are delivered in PSN order, whatever the order of arrival")
        .checks(&[PDS_ROD_001])
        .needs(&[ROD, WRITE])
        .over(&[&START])
        .run(|t| {
            const COUNT: u32 = 16;
            let (pdc, region) = open(t)?;
            let mut order: Vec<u32> = (1..=COUNT).collect();
            // All packets write to the same byte, so the last PSN must remain. Each round delivers one more
            // packet at least.
            for _ in 0..COUNT {
                t.rng().shuffle(&mut order);
                for n in &order {
                    t.request(&pdc, pdc.request(*n).retx().write(&region, 0, &[*n as u8])?)?;
                }
            }
            t.expect_cack(PDS_ROD_001, &pdc, pdc.psn(COUNT))?;
            t.pause(t.soon())?;
            t.check_memory(PDS_ROD_001, &region, 0, &[COUNT as u8])
        }),
    rule("rod/fetched-in-order", "Fetching atomics of an ordered context are executed in PSN order")
        .checks(&[PDS_ROD_001, SES_AMO_007])
        .needs(&[ROD, WRITE, FETCH_ATOMIC])
        .over(&[&START])
        .run(|t| {
            require(
                t.parameter("max_ack_data_size") >= 8,
                "the device sends small data on the return direction",
            )?;
            let room = t.reported("stored_responses").unwrap_or(u64::MAX);
            require(room >= 3, format!("the device stores {room} responses"))?;
            let (pdc, region) = open(t)?;
            let fetch = |t: &mut Test<'_>, n: u32| {
                let addend = t.operands(8, &[1 << n]);
                t.request(&pdc, pdc.request(n).add(&region, 8, &addend, true)?)
            };
            // The last one arrives too early at first, and then all without a pause.
            fetch(t, 3)?;
            t.pause(t.grace())?;
            t.forget();
            for n in 1..=3 {
                fetch(t, n)?;
            }
            for (n, old) in [(1, 0), (2, 1 << 1), (3, 1 << 1 | 1 << 2)] {
                let (seen, _) = t.expect_answer(PDS_ROD_001, &pdc, pdc.psn(n))?;
                t.check(SES_AMO_007, "the old value", &t.operands(8, &[old])[..], seen.payload());
            }
            Ok(())
        }),
    rule("rod/before-start", "Nothing is delivered before the packet with Start_PSN")
        .checks(&[PDS_ROD_001, PDS_ROD_002])
        .run(|t| {
            let region = t.region(4096)?;
            let mut pdc = Pdc { rod: true, ..t.initiate() };
            write(t, &pdc, &region, 2)?;
            // The packet may open the context.
            t.expect_nack(PDS_ROD_002, &pdc, pdc.psn(2), &[NackCode::ROD_OOO])?;
            t.pause(t.soon())?;
            t.check_memory(PDS_ROD_001, &region, 0, &[0; 4])?;
            write(t, &pdc, &region, 0)?;
            let (_, ack) = t.expect_ack(PDS_ROD_001, &pdc, pdc.psn(0))?;
            t.check(PDS_ROD_001, "cack_psn", pdc.psn(0), ack.cack_psn());
            pdc.remote = Some(ack.spdcid());
            for n in 1..=3 {
                write(t, &pdc, &region, n)?;
            }
            t.expect_cack(PDS_ROD_001, &pdc, pdc.psn(3))?;
            t.expect_memory(PDS_ROD_001, &region, 0, &[0, 1, 2, 3])
        }),
    rule("rod/duplicates", "A duplicate below the cumulative PSN is acknowledged and not delivered")
        .checks(&[PDS_DUP_001, PDS_DUP_002])
        .needs(&[ROD, WRITE, ATOMIC])
        .over(&[&START])
        .run(|t| {
            let (pdc, region) = open(t)?;
            for n in 1..=8 {
                t.request(&pdc, pdc.request(n).add(&region, 0, &t.operands(8, &[1]), false)?)?;
            }
            t.need("all of them", t.soon(), |seen| (seen.cack(&pdc)? == pdc.psn(8)).then_some(()))?;
            t.gather(t.soon())?;
            for n in [5, 1, 8] {
                t.request(&pdc, pdc.request(n).retx().add(&region, 0, &t.operands(8, &[1]), false)?)?;
                let (_, ack) = t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(n))?;
                t.check(PDS_DUP_002, "cack_psn", pdc.psn(8), ack.cack_psn());
                t.forget();
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_DUP_001, &region, 0, &t.elements(8, &[8]))
        }),
    rule("rod/noop-in-order", "A NOOP takes its place in PSN order").checks(&[PDS_CTL_001, PDS_ROD_002]).run(
        |t| {
            t.need_noop()?;
            let (pdc, region) = open(t)?;
            t.send(&pdc, &pdc.numbered(CtlType::NOOP, 2)?)?;
            t.expect_nack(PDS_ROD_002, &pdc, pdc.psn(2), &[NackCode::ROD_OOO])?;
            write(t, &pdc, &region, 1)?;
            t.send(&pdc, &pdc.numbered(CtlType::NOOP, 2)?)?;
            write(t, &pdc, &region, 3)?;
            t.expect_cack(PDS_CTL_001, &pdc, pdc.psn(3))?;
            t.expect_memory(PDS_CTL_001, &region, 1, &[1, 0, 3])
        },
    ),
    rule("rod/acks-in-order", "ACKs are sent in the order of the requests")
        .checks(&[PDS_ROD_003])
        .over(&[&AR, &CARRIER, &START])
        .run(|t| {
            t.need_noop()?;
            let (all, errors) = t.value(&AR);
            if !all {
                // The device must end its ACK delay in time.
                t.try_configure("ack_delay", 100_000)?;
            }
            let (pdc, region) = open(t)?;
            for n in 1..=12 {
                match n % 3 {
                    0 if errors => t.request(&pdc, pdc.request(n).write_nowhere(&region, &[1])?)?,
                    1 if !all => {
                        t.request(&pdc, pdc.request(n).quiet().write(&region, u64::from(n), &[n as u8])?)?
                    }
                    2 => t.send(&pdc, &pdc.numbered(CtlType::NOOP, n)?)?,
                    _ => write(t, &pdc, &region, n)?,
                }
            }
            let seen = t.gather(t.soon())?;
            let named: Vec<Psn> =
                seen.iter().filter(|seen| seen.is_for(&pdc)).filter_map(named_psn).collect();
            if named.is_empty() {
                return Err(Stop::Inconclusive("no ACK came".into()));
            }
            let swapped = named.windows(2).find(|pair| !pair[1].is_after(pair[0]));
            let seen =
                swapped.map_or_else(|| "none".to_owned(), |pair| format!("{} after {}", pair[1], pair[0]));
            t.holds(PDS_ROD_003, "the ACKs leave in the order of the requests", swapped.is_none(), seen);
            Ok(())
        }),
    rule(
        "rod/pending-response",
        "The ACK of a packet waits for those of earlier packets with slow responses",
    )
    .checks(&[PDS_ROD_003])
    .run(|t| {
        let (pdc, region) = open(t)?;
        // The first packet ends a message whose other packet has a later PSN, so its response has to wait. A
        // device may refuse both.
        t.request(&pdc, pdc.request(1).half(&region, t.mtu(), 1)?)?;
        t.request(&pdc, pdc.request(2).write(&region, 3 * t.mtu() as u64, &[2])?)?;
        let mut seen = t.gather(t.soon())?;
        t.request(&pdc, pdc.request(3).half(&region, t.mtu(), 0)?)?;
        seen.extend(t.gather(t.soon())?);
        let mut named: Vec<u32> = Vec::new();
        for psn in seen.iter().filter(|seen| seen.is_for(&pdc)).filter_map(named_psn) {
            let n = psn - pdc.start;
            // An earlier ACK may have said only that the packet has arrived.
            if (1..=3).contains(&n) && !named.contains(&n) {
                named.push(n);
            }
        }
        if named.is_empty() {
            return Err(Stop::Inconclusive("no ACK came".into()));
        }
        let ordered = named.is_sorted();
        t.holds(PDS_ROD_003, "the ACKs leave in the order of the requests", ordered, named.show());
        Ok(())
    }),
    rule("rod/read-data-in-order", "Data of reads on an ordered context leaves in the order of the requests")
        .checks(&[PDS_ROD_006])
        .needs(&[ROD, READ])
        .over(&[&START])
        .run(|t| {
            // The later read is shorter.
            let mtu = t.mtu();
            let (region, _) = t.patterned(2 * mtu as u64)?;
            let mut session = t.ordered_session();
            let long = Message::read(&region, 0, 2 * mtu as u32);
            let mut parts = long.parts(mtu)?;
            parts.push(Message::read(&region, 0, 100).named(2).whole()?);
            session.ask_all(t, &parts)?;
            let pieces = session.data(t, PDS_ROD_006, 2 * mtu + 100)?;
            let mut of_return: Vec<&Data> = pieces.iter().filter(|piece| !piece.in_ack).collect();
            of_return.sort_by_key(|piece| piece.psn - session.pdc.start);
            let named = |piece: &Data| piece.long().map(|header| header.read_request_message_id());
            let ids: Vec<u16> = of_return.into_iter().filter_map(named).collect();
            t.holds(PDS_ROD_006, "data of read 1 leaves before that of read 2", ids.is_sorted(), ids.show());
            Ok(())
        }),
    rule("rod/wrap", "An ordered context keeps the order across the PSN wrap")
        .checks(&[PDS_PSN_006, PDS_ROD_001, PDS_ROD_002])
        .run(|t| {
            let region = t.region(4096)?;
            let mut pdc = Pdc { rod: true, start: Psn(0xffff_fffd), ..t.initiate() };
            t.establish(&mut pdc, &region)?;
            // PSN 0 arrives before 0xffff_ffff.
            for n in [1, 3] {
                write(t, &pdc, &region, n)?;
            }
            t.expect_nack(PDS_ROD_002, &pdc, Psn(0), &[NackCode::ROD_OOO])?;
            for n in 2..=6 {
                write(t, &pdc, &region, n)?;
            }
            t.expect_cack(PDS_PSN_006, &pdc, Psn(3))?;
            t.expect_memory(PDS_ROD_001, &region, 1, &[1, 2, 3, 4, 5, 6])
        }),
    rule("rod/above-window", "A PSN above the window is refused and not delivered")
        .checks(&[PDS_ROD_001, PDS_ROD_002])
        .run(|t| {
            let (pdc, region) = open(t)?;
            let beyond = t.beyond(&pdc)?;
            let codes = [NackCode::PSN_OOR_WINDOW, NackCode::ROD_OOO];
            t.request(&pdc, pdc.request(beyond).write(&region, 0, &[1; 16])?)?;
            t.expect_nack(PDS_ROD_002, &pdc, pdc.psn(beyond), &codes)?;
            t.pause(t.soon())?;
            t.check_memory(PDS_ROD_001, &region, 0, &[0; 16])
        }),
    rule("rod/error", "An ordered context stores and clears errors like any other")
        .checks(&[PDS_GTD_001, PDS_GTD_002, PDS_CLR_005])
        .run(|t| {
            let (pdc, region) = open(t)?;
            t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1])?)?;
            let (first, ack) = t.need("an error", t.soon(), |seen| seen.answers(&pdc, pdc.psn(1)))?;
            t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
            t.check(PDS_GTD_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.request(&pdc, pdc.request(1).retx().write_nowhere(&region, &[1])?)?;
            let (repeated, _) = t.expect_answer(PDS_GTD_001, &pdc, pdc.psn(1))?;
            t.check(PDS_GTD_001, "the response", first.response(), repeated.response());
            t.send(&pdc, &clear_command(&pdc, pdc.psn(1))?)?;
            write(t, &pdc, &region, 2)?;
            t.expect_cack(PDS_CLR_005, &pdc, pdc.psn(2))?;
            Ok(())
        }),
];

/// Opens an ordered context.
fn open(t: &mut Test<'_>) -> Result<(Pdc, Region), Stop> {
    let region = t.region(1 << 16)?;
    let mut pdc = Pdc { rod: true, ..t.initiate() };
    t.establish(&mut pdc, &region)?;
    Ok((pdc, region))
}

/// Writes the number of the request to the byte at this offset.
fn write(t: &mut Test<'_>, pdc: &Pdc, region: &Region, n: u32) -> Outcome {
    t.request(pdc, pdc.request(n).write(region, u64::from(n), &[n as u8])?)
}

/// A pair: true if all requests have `ar`, and true if every third one fails. The cumulative PSN stays below
/// the first error.
const AR: Axis<(bool, bool)> = axis("ar").values(&[
    ("all", (true, true)),
    ("some", (false, false)),
    ("some-with-errors", (false, true)),
]);

/// Returns the PSN that an ACK names.
fn named_psn(seen: &RxPacket) -> Option<Psn> {
    seen.ack()?.ack_psn()
}
