//! Isolation of contexts: two contexts have the same state at the same time, and each behaves as if it were
//! alone (section 3.5). In the rules `isolation/source-…`, the device is the source.

use super::steps::clear_command;
use crate::prelude::*;

/// The peer of the second context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecondPeer {
    Same,
    Another,
    /// Another peer whose context has the same PDCID and Start_PSN.
    SameNumbers,
}

const SECOND_PEER: Axis<SecondPeer> = axis("second-peer").needing(&[
    ("same", SecondPeer::Same, &[]),
    ("other", SecondPeer::Another, &[TWO_ADDRESSES]),
    ("same-pdcid", SecondPeer::SameNumbers, &[TWO_ADDRESSES]),
]);

/// True if the script ends the state of the second context first.
const ORDER: Axis<bool> = axis("ends-first").values(&[("first", false), ("second", true)]);

/// The peers of the device's two contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peers {
    Jobs,
    Addresses,
}

const PEERS: Axis<Peers> = axis("peers")
    .needing(&[("two-jobs", Peers::Jobs, &[]), ("two-addresses", Peers::Addresses, &[TWO_ADDRESSES])]);

/// The NACK that both contexts get.
const REFUSAL: Axis<NackCode> = axis("code").values(&[
    ("no-resource", NackCode::NO_RESOURCE),
    ("no-pkt-buffer", NackCode::NO_PKT_BUFFER),
    ("trimmed", NackCode::TRIMMED),
    ("trimmed-lasthop", NackCode::TRIMMED_LASTHOP),
    ("oor-window", NackCode::PSN_OOR_WINDOW),
    ("infer-loss", NackCode::RCVR_INFER_LOSS),
]);

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&SECOND_PEER, &ORDER, &MODE])
}

pub(super) const RULES: &[Rule] = &[
    rule("isolation/gap", "Two contexts with gaps report their own gaps")
        .checks(&[PDS_ROD_002, PDS_ACK_011, PDS_PSN_002])
        .needs(&[WRITE])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            // After this, no packet arrives in order.
            for (pdc, n) in pair.iter().zip(2u8..) {
                t.request(pdc, pdc.request(2).write(&region, u64::from(n), &[n])?)?;
            }
            for pdc in &pair {
                if pdc.rod {
                    t.expect_nack(PDS_ROD_002, pdc, pdc.psn(2), &[NackCode::ROD_OOO])?;
                } else {
                    t.expect_ack(PDS_ACK_011, pdc, pdc.psn(2))?;
                }
            }
            for pdc in ends_first(t, pair) {
                t.request(&pdc, pdc.request(1).write(&region, 64, &[1])?)?;
                let last = if pdc.rod { pdc.psn(1) } else { pdc.psn(2) };
                t.expect_cack(PDS_PSN_002, &pdc, last)?;
            }
            Ok(())
        }),
    rule("isolation/stored-error", "CLEAR releases only the stored error of its own context")
        .checks(&[PDS_GTD_001, PDS_GTD_002, PDS_CLR_005])
        .needs(&[WRITE])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            for pdc in &pair {
                t.request(pdc, pdc.request(1).write_nowhere(&region, &[1; 16])?)?;
                let (seen, ack) = t.expect_answer(PDS_GTD_002, pdc, pdc.psn(1))?;
                t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
                t.holds(PDS_GTD_002, "the answer is an error", seen.is_error(), seen.uet());
            }
            let [released, held] = ends_first(t, pair);
            t.send(&released, &clear_command(&released, released.psn(1))?)?;
            t.request(&released, released.request(2).clear(released.psn(1)).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_CLR_005, &released, released.psn(2))?;
            t.forget();
            t.request(&held, held.request(1).retx().write_nowhere(&region, &[1; 16])?)?;
            let (seen, ack) = t.expect_answer(PDS_GTD_001, &held, held.psn(1))?;
            t.holds(PDS_GTD_001, "the answer is the stored error", seen.is_error(), seen.uet());
            t.check(PDS_GTD_001, "cack_psn", held.psn(0), ack.cack_psn());
            Ok(())
        }),
    rule("isolation/fetched-value", "Two contexts store their own fetched values under the same PSN")
        .checks(&[SES_AMO_007, SES_GTD_003])
        .needs(&[WRITE, ATOMIC])
        .run(|t| {
            require(t.parameter("max_ack_data_size") >= 8, "the device puts no 8 bytes into an ACK")?;
            let (region, pair) = open_two(t)?;
            let one = t.operands(8, &[1]);
            for (pdc, old) in pair.iter().zip([0, 1]) {
                t.request(pdc, pdc.request(1).add(&region, 0, &one, true)?)?;
                let (seen, _) = t.expect_answer(SES_AMO_007, pdc, pdc.psn(1))?;
                t.same_bytes(SES_AMO_007, "the old value", &t.operands(8, &[old]), seen.payload());
            }
            t.forget();
            let olds = ends_first(t, [0, 1]);
            let [released, held] = ends_first(t, pair);
            t.send(&released, &clear_command(&released, released.psn(1))?)?;
            t.settle()?;
            t.request(&held, held.request(1).retx().add(&region, 0, &one, true)?)?;
            let (seen, _) = t.expect_answer(SES_GTD_003, &held, held.psn(1))?;
            t.same_bytes(SES_GTD_003, "the old value", &t.operands(8, &[olds[1]]), seen.payload());
            Ok(())
        }),
    rule("isolation/window", "The window of one context stays in place while another advances")
        .checks(&[PDS_WIN_001, PDS_DUP_004])
        .needs(&[WRITE])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            let [ahead, behind] = ends_first(t, pair);
            for n in 1..=40 {
                t.request(&ahead, ahead.request(n).write(&region, u64::from(n), &[n as u8])?)?;
            }
            t.expect_cack(PDS_WIN_001, &ahead, ahead.psn(40))?;
            t.request(&behind, behind.request(1).write(&region, 100, &[1])?)?;
            t.expect_cack(PDS_WIN_001, &behind, behind.psn(1))?;
            t.forget();
            t.request(&ahead, ahead.request(5).retx().write(&region, 5, &[5])?)?;
            let (_, ack) = t.expect_answer(PDS_DUP_004, &ahead, ahead.psn(5))?;
            t.check(PDS_DUP_004, "cack_psn", ahead.psn(40), ack.cack_psn());
            Ok(())
        }),
    rule("isolation/read-data", "An ACK of read data on one context leaves another's read data outstanding")
        .checks(&[PDS_RTO_001, SES_READ_001, PDS_PDC_003])
        .needs(&[WRITE, READ])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            let length = t.beyond_ack()?;
            let mut data = Vec::new();
            for pdc in &pair {
                t.request(pdc, pdc.request(1).read(&region, 0, length)?)?;
                let mut target = Target::of_return(t, pdc);
                target.expect_new(t, SES_READ_001, 0)?;
                data.push(target);
            }
            if t.value(&ORDER) {
                data.reverse();
            }
            data[0].ack(t, 0)?;
            data[1].expect_again(t, PDS_RTO_001, 0, t.later())?;
            data[1].ack(t, 0)?;
            for target in data {
                let pdc = &target.pdc;
                t.request(pdc, pdc.request(2).write(&region, 0, &[1])?)?;
                t.expect_cack(PDS_PDC_003, pdc, pdc.psn(2))?;
            }
            Ok(())
        }),
    rule("isolation/ack-request", "ACK_REQUEST and PROBE are answered from the state of their own context")
        .checks(&[PDS_ASK_001, PDS_ASK_002, PDS_PRB_001])
        .needs(&[WRITE])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            let [one, other] = ends_first(t, pair);
            t.request(&one, one.request(1).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_ASK_002, &one, one.psn(1))?;
            t.forget();
            for (pdc, arrived) in [(&other, false), (&one, true)] {
                t.send(pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(1), 0)?)?;
                if arrived {
                    t.expect_answer(PDS_ASK_002, pdc, pdc.psn(1))?;
                } else {
                    t.expect_nack(PDS_ASK_001, pdc, pdc.psn(1), &[NackCode::PKT_NOT_RCVD])?;
                }
            }
            for (pdc, opaque) in [(&one, 0x1111), (&other, 0x2222)] {
                t.send(pdc, &pdc.probe(opaque, pdc.psn(0))?)?;
            }
            for (pdc, opaque) in [(&one, 0x1111), (&other, 0x2222)] {
                let soon = t.soon();
                let answer = |seen: &RxPacket| seen.ack().filter(|ack| seen.is_for(pdc) && ack.p());
                let (_, ack) = t.expect(PDS_PRB_001, "an ACK with p = 1", soon, answer)?;
                t.check(PDS_PRB_001, "probe_opaque", Some(opaque), ack.probe_opaque());
            }
            Ok(())
        }),
    rule("isolation/source-loss", "Packets lost on two contexts are retransmitted within their own timeouts")
        .checks(&[PDS_RTO_001, PDS_RTO_002, PDS_RTO_005])
        .over(&[&PEERS, &ORDER, &MODE])
        .measure(|t| {
            let (_, mut pair) = open_with_writes(t)?;
            for (target, _) in &mut pair {
                let first = target.packet(1)?.seen.at;
                let retransmission = target.expect_again(t, PDS_RTO_001, 1, t.later())?;
                t.check(
                    PDS_RTO_005,
                    "SES header and payload",
                    target.packet(1)?.content(),
                    retransmission.content(),
                );
                let longest = t.scaled(t.rto().mul_f64(1.5)) + t.grace();
                let bound = Bound::from(longest).from_parameter("rto_init_time").tolerating("50 %");
                let waited = retransmission.seen.at.saturating_sub(first);
                t.at_most(PDS_RTO_002, "the time before the first retransmission", bound, waited);
            }
            for (target, written) in pair {
                target.ack(t, 1)?;
                t.ends(PDS_RTO_001, written, Status::Ok)?;
            }
            Ok(())
        }),
    rule("isolation/source-nack", "Packets refused on two contexts are retransmitted independently")
        .checks(&[PDS_NACK_004, PDS_NACK_005])
        .over(&[&PEERS, &REFUSAL, &ORDER, &MODE])
        .measure(|t| {
            let code = t.value(&REFUSAL);
            require(
                t.nack_wait() * 2 + t.grace() < t.early(),
                "NACK_Retx_Time is not well below RTO_Init_Time",
            )?;
            let (peers, mut pair) = open_with_writes(t)?;
            for (target, _) in &pair {
                target.refuse(t, code, 1)?;
            }
            for (target, _) in &mut pair {
                let retransmission = target.expect_again(t, PDS_NACK_004, 1, t.later())?;
                let waited = retransmission.seen.at.saturating_sub(target.packet(1)?.seen.at);
                let bound = Bound::from(t.early()).from_parameter("70 % of rto_init_time");
                t.at_most(PDS_NACK_004, "the time before the retransmission", bound, waited);
            }
            // Retransmissions of one context do not count for the other.
            for (target, written) in &pair {
                target.ack(t, 1)?;
                t.ends(PDS_NACK_004, *written, Status::Ok)?;
            }
            // Trims shrink the window, which the two contexts may share. The next writes may wait for it.
            if matches!(code, NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP) {
                return Ok(());
            }
            let peers = ends_first(t, peers);
            let written =
                [t.post(post(PostKind::Write, peers[0], 64))?, t.post(post(PostKind::Write, peers[1], 64))?];
            let [(first, _), (second, _)] = &mut pair[..] else { return Ok(()) };
            first.collect(t, 3)?;
            second.collect(t, 3)?;
            for _ in 1..t.parameter("max_nack_retx_cnt").min(4) {
                first.refuse(t, code, 2)?;
                first.expect_again(t, PDS_NACK_004, 2, t.later())?;
            }
            second.refuse(t, code, 2)?;
            second.expect_again(t, PDS_NACK_005, 2, t.later())?;
            first.ack(t, 2)?;
            second.ack(t, 2)?;
            t.ends(PDS_NACK_004, written[1], Status::Ok)
        }),
    rule("isolation/source-ack-request", "Two contexts each send ACK_REQUEST for their own SACKed packet")
        .checks(&[PDS_SACK_004])
        .over(&[&PEERS, &ORDER, &MODE])
        .run(|t| {
            let (_, pair) = open_with_writes(t)?;
            for (target, _) in &pair {
                target.sack(t, 1, &[1])?;
            }
            for (target, written) in &pair {
                let (_, request) = target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
                t.check(PDS_SACK_004, "the PSN of ACK_REQUEST", target.psn(1), request.psn());
                t.is_open(PDS_SACK_004, *written)?;
            }
            Ok(())
        }),
    rule("isolation/source-clear", "Two contexts with errors each send CLEAR_COMMAND for their own PSN")
        .checks(&[PDS_CLR_006])
        .over(&[&PEERS, &ORDER, &MODE])
        .run(|t| {
            let (_, pair) = open_with_writes(t)?;
            for (target, _) in &pair {
                target.respond_error(t, 1, ReturnCode::UNCOR)?;
            }
            for (target, _) in &pair {
                let (_, command) =
                    target.expect_control(t, PDS_CLR_006, CtlType::CLEAR_COMMAND, t.later() * 4)?;
                t.check(PDS_CLR_006, "CLEAR_PSN", target.psn(1).0, command.payload());
            }
            Ok(())
        }),
    rule("isolation/source-first-ack", "The first ACK of one context does not establish another")
        .checks(&[PDS_SYN_001, PDS_SYN_004])
        .over(&[&PEERS, &ORDER, &MODE])
        .run(|t| {
            // Only one of the contexts gets its first ACK.
            let both = two_peers(t)?;
            let peers = ends_first(t, both);
            t.post(post(PostKind::Write, peers[0], 64))?;
            let mut one = Target::accept(t)?;
            t.post(post(PostKind::Write, peers[1], 64))?;
            let mut other = Target::accept_beside(t, &[&one])?;
            one.ack(t, 0)?;
            t.settle()?;
            t.post(post(PostKind::Write, peers[0], 64))?;
            let next = one.expect_new(t, PDS_SYN_004, 1)?;
            t.check(PDS_SYN_004, "syn", false, next.request.syn());
            t.check(PDS_SYN_004, "dpdcid", Some(one.pdc.local), next.request.dpdcid());
            let retransmission = other.expect_again(t, PDS_SYN_001, 0, t.later())?;
            t.check(PDS_SYN_001, "syn", true, retransmission.request.syn());
            t.check(
                PDS_SYN_001,
                "psn_offset",
                Some(0),
                retransmission.request.psn_offset().map(|offset| offset.get()),
            );
            other.ack(t, 0)?;
            one.ack(t, 1)
        }),
    rule("isolation/source-close", "The device closes both of two contexts whose targets request it")
        .checks(&[PDS_CLOSE_013])
        .over(&[&PEERS, &ORDER, &MODE])
        .run(|t| {
            let (_, pair) = open_with_writes(t)?;
            for (target, _) in &pair {
                target.answer(t, AckBuilder { request: AckRequest::REQ_CLOSE, ..target.acking(1) })?;
            }
            for (target, _) in &pair {
                let (_, command) =
                    target.expect_control(t, PDS_CLOSE_013, CtlType::CLOSE_COMMAND, t.later())?;
                t.check(PDS_CLOSE_013, "the PSN of CLOSE_COMMAND", target.psn(2), command.psn());
                target.answer(t, AckBuilder { response: None, ..target.pdc.ack(command.psn()) })?;
            }
            Ok(())
        }),
];

/// Opens two contexts and a region.
fn open_two(t: &mut Test<'_>) -> Result<(Region, [Pdc; 2]), Stop> {
    let (first, region) = t.open()?;
    let mut second = match t.value(&SECOND_PEER) {
        SecondPeer::Same => t.initiate(),
        SecondPeer::Another => t.initiate_from(1)?,
        SecondPeer::SameNumbers => Pdc { from: t.address(1)?, remote: None, ..first.clone() },
    };
    t.establish(&mut second, &region)?;
    Ok((region, [first, second]))
}

/// Sorts the two by the order in which their state ends.
fn ends_first<T>(t: &Test<'_>, pair: [T; 2]) -> [T; 2] {
    let [first, second] = pair;
    if t.value(&ORDER) { [second, first] } else { [first, second] }
}

/// Returns the peers of the two contexts.
fn two_peers(t: &mut Test<'_>) -> Result<[u64; 2], Stop> {
    Ok(match t.value(&PEERS) {
        Peers::Jobs => [t.peer_of_job(101)?, t.peer_of_job(202)?],
        Peers::Addresses => [t.peer(0)?, t.peer(1)?],
    })
}

/// Establishes two contexts of the device.
fn establish_two(t: &mut Test<'_>) -> Result<([u64; 2], [Target; 2]), Stop> {
    let peers = two_peers(t)?;
    let first = Target::established(t, peers[0], Mode::Rud)?;
    let second = Target::established(t, peers[1], Mode::Rud)?;
    Ok((peers, [first, second]))
}

/// The peers of two contexts, and each context with its write.
type Pair = ([u64; 2], Vec<(Target, uet_control::Operated)>);

/// Establishes two contexts of the device, each with a write of one packet in flight.
fn open_with_writes(t: &mut Test<'_>) -> Result<Pair, Stop> {
    let (peers, targets) = establish_two(t)?;
    let mut written = Vec::new();
    for peer in peers {
        written.push(t.post(post(PostKind::Write, peer, 64))?);
    }
    let mut pair = Vec::new();
    for (mut target, written) in targets.into_iter().zip(written) {
        target.collect(t, 2)?;
        pair.push((target, written));
    }
    if t.value(&ORDER) {
        pair.reverse();
    }
    Ok((peers, pair))
}
