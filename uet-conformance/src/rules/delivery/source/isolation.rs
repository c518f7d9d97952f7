//! Isolation of the contexts of a source: two are in use at the same time, and each behaves as if it were
//! alone (section 3.5). With the values `wrap` and `half` of START, they have equal PSNs.

use super::steps::smallest_range;
use crate::Show;
use crate::prelude::*;
use crate::rules::steps::{ORDER, ends_first};
use uet_control::ClosePdc;

/// The difference between the device's two contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peers {
    Jobs,
    Addresses,
    Classes,
}

const PEERS: Axis<Peers> = axis("peers").needing(&[
    ("two-jobs", Peers::Jobs, &[]),
    ("two-addresses", Peers::Addresses, &[TWO_ADDRESSES]),
    ("two-classes", Peers::Classes, &[]),
]);

/// The peer and the traffic class of a context.
#[derive(Clone, Copy, Debug)]
struct Route {
    peer: u64,
    class: u8,
}

/// The NACK that both contexts get.
const REFUSAL: Axis<NackCode> = axis("code").values(&[
    ("no-resource", NackCode::NO_RESOURCE),
    ("no-pkt-buffer", NackCode::NO_PKT_BUFFER),
    ("trimmed", NackCode::TRIMMED),
    ("trimmed-lasthop", NackCode::TRIMMED_LASTHOP),
    ("oor-window", NackCode::PSN_OOR_WINDOW),
    ("infer-loss", NackCode::RCVR_INFER_LOSS),
]);

/// An answer to a write of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteAnswer {
    Ack,
    Error,
    Bitmap,
    Nack(NackCode),
}

/// The answer that one of the two contexts gets.
const ANSWER: Axis<WriteAnswer> = axis("answer").values(&[
    ("ack", WriteAnswer::Ack),
    ("error", WriteAnswer::Error),
    ("bitmap", WriteAnswer::Bitmap),
    ("no-resource", WriteAnswer::Nack(NackCode::NO_RESOURCE)),
    ("closing-in-err", WriteAnswer::Nack(NackCode::CLOSING_IN_ERR)),
]);

/// The NACK that ends the first context. Without one, its packet gets no answer.
const FAILURE: Axis<Option<NackCode>> = axis("failure").values(&[
    ("timeout", None),
    ("inv-dpdcid", Some(NackCode::INV_DPDCID)),
    ("closing-in-err", Some(NackCode::CLOSING_IN_ERR)),
]);

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&PEERS, &ORDER, &MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("isolation/source-loss", "Packets lost on two contexts are retransmitted within their own timeouts")
        .checks(&[PDS_RTO_001, PDS_RTO_002, PDS_RTO_005])
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
        .over(&[&PEERS, &REFUSAL, &ORDER, &MODE, &START])
        .measure(|t| {
            let code = t.value(&REFUSAL);
            require(
                t.nack_wait() * 2 + t.grace() < t.early(),
                "NACK_Retx_Time is not well below RTO_Init_Time",
            )?;
            let (routes, mut pair) = open_with_writes(t)?;
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
            let routes = ends_first(t, routes);
            let written = [t.post(routes[0].write(64))?, t.post(routes[1].write(64))?];
            let [(first, _), (second, _)] = &mut pair[..] else { return Ok(()) };
            first.collect(t, 3)?;
            second.collect(t, 3)?;
            // With one more of the other context, a count that both share exceeds the maximum.
            for _ in 0..t.parameter("max_nack_retx_cnt").min(8) {
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
        .run(|t| {
            // Only one of the contexts gets its first ACK.
            let both = two_routes(t)?;
            let routes = ends_first(t, both);
            t.post(routes[0].write(64))?;
            let mut one = Target::accept(t)?;
            let mut other = accept_second(t, &one, routes[1])?;
            one.ack(t, 0)?;
            t.settle()?;
            t.post(routes[0].write(64))?;
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
    rule("isolation/source-window", "A range announced to one context leaves the window of another")
        .checks(&[PDS_WIN_004])
        .run(|t| {
            let range = smallest_range(t)?;
            t.try_configure("congestion", "none")?;
            let both = two_routes(t)?;
            let routes = ends_first(t, both);
            t.post(routes[0].write(64))?;
            let mut wide = Target::accept(t)?;
            let mut narrow = accept_second(t, &wide, routes[1])?;
            (narrow.mpr, narrow.states) = ((range / 128) as u8, true);
            (wide.mpr, wide.states) = (2 * narrow.mpr, true);
            narrow.ack(t, 0)?;
            wide.ack(t, 0)?;
            t.settle()?;
            t.post(routes[1].write((2 * range + 40) as usize * t.mtu()))?;
            narrow.watch(t, t.rto() * 2)?;
            let edge = Bound::from(range).from_parameter("the announced mpr");
            t.at_most(PDS_WIN_004, "the highest PSN, from 0", edge, narrow.highest());
            Ok(())
        }),
    rule("isolation/source-answer", "An answer to one context leaves the packet of another outstanding")
        .checks(&[PDS_RTO_001, PDS_PDC_003, SES_DONE_001])
        .over(&[&PEERS, &ANSWER, &ORDER, &MODE, &START])
        .measure(|t| {
            let (_, mut pair) = open_with_writes(t)?;
            let [(one, _), (other, written)] = &mut pair[..] else { return Ok(()) };
            match t.value(&ANSWER) {
                WriteAnswer::Ack => one.ack(t, 1)?,
                WriteAnswer::Error => one.respond_error(t, 1, ReturnCode::BAD_MKEY)?,
                WriteAnswer::Bitmap => one.sack(t, 1, &[1])?,
                WriteAnswer::Nack(code) => one.refuse(t, code, 1)?,
            }
            let first = other.packet(1)?.seen.at;
            let again = other.expect_again(t, PDS_RTO_001, 1, t.later())?;
            let least = Bound::from(t.earliest_retransmission().mul_f64(0.7));
            t.at_least(
                PDS_PDC_003,
                "the time before the retransmission on the other context",
                least.from_parameter("70 % of the timeout"),
                again.seen.at.saturating_sub(first),
            );
            t.is_open(SES_DONE_001, *written)?;
            other.ack(t, 1)?;
            t.ends(SES_DONE_001, *written, Status::Ok)
        }),
    rule("isolation/source-failure", "The failure of one context leaves the waiting read of another open")
        .checks(&[SES_DONE_001])
        .needs(&[READ])
        .over(&[&PEERS, &FAILURE, &ORDER, &MODE, &START])
        .run(|t| {
            let failure = t.value(&FAILURE);
            if failure.is_none() {
                t.timeout_limit()?;
            }
            let (routes, targets) = establish_two(t)?;
            let ([fails, reads], [mut failing, mut reading]) =
                (ends_first(t, routes), ends_first(t, targets));
            let read = Post { want_data: true, ..post(PostKind::Read, reads.peer, 200) };
            let read = t.post(Post { class: reads.class, ..read })?;
            reading.collect(t, 2)?;
            reading.ack(t, 1)?;
            t.settle()?;
            t.post(fails.write(64))?;
            failing.collect(t, 2)?;
            match failure {
                None => failing.watch(t, t.until_given_up())?,
                Some(NackCode::INV_DPDCID) => failing.refuse_without_context(t, NackCode::INV_DPDCID, 1)?,
                Some(code) => failing.refuse(t, code, 1)?,
            }
            t.settle()?;
            t.is_open(SES_DONE_001, read)?;
            let data: Vec<u8> = pattern(9).take(200).collect();
            let header = reading.data_header(1, data.len(), data.len(), 0)?;
            reading.give_due(t, 0, header, &data)?;
            let ended = t.ends_with(SES_DONE_001, read, (Status::Ok, 200))?;
            let held = ended.and_then(|ended| ended.data).map(|data| data.0).unwrap_or_default();
            t.same_bytes(SES_DONE_001, "the data of the read", &data, &held);
            Ok(())
        }),
    rule("isolation/source-pdcid", "A new context never gets the PDCID of an open one, even in a small pool")
        .checks(&[PDS_PDC_003])
        .needs(&[CLOSE])
        .run(|t| {
            t.configure("general_pdcs", 2)?;
            let both = two_routes(t)?;
            let [stays, changes] = ends_first(t, both);
            let mut open = Target::established_by(t, stays.write(64))?;
            for _ in 0..3 {
                let target = establish_second(t, &open, changes)?;
                let (id, free) = (target.pdc.remote, target.pdc.remote != open.pdc.remote);
                if !free {
                    t.is_kept(&open.pdc)?;
                }
                t.holds(PDS_PDC_003, "the PDCID of a new context is not in use", free, id.show());
                close(t, &target, changes)?;
            }
            let written = t.post(stays.write(64))?;
            let next = open.expect_new(t, PDS_PDC_003, 1)?;
            t.check(PDS_PDC_003, "dpdcid", Some(open.pdc.local), next.request.dpdcid());
            open.ack(t, 1)?;
            t.ends(PDS_PDC_003, written, Status::Ok)
        }),
];

impl Route {
    /// Returns a write of the device on this route.
    fn write(self, length: usize) -> Post {
        Post { class: self.class, ..post(PostKind::Write, self.peer, length) }
    }
}

/// Returns the routes of the two contexts.
fn two_routes(t: &mut Test<'_>) -> Result<[Route; 2], Stop> {
    let peers = match t.value(&PEERS) {
        Peers::Jobs => [t.peer_of_job(101)?, t.peer_of_job(202)?],
        Peers::Addresses => [t.peer(0)?, t.peer(1)?],
        Peers::Classes => {
            let peer = t.peer(0)?;
            return Ok([Route { peer, class: 0 }, Route { peer, class: 1 }]);
        }
    };
    Ok(peers.map(|peer| Route { peer, class: 0 }))
}

/// Has the device close this context, and acknowledges the close.
fn close(t: &mut Test<'_>, target: &Target, route: Route) -> Outcome {
    t.call(ClosePdc { peer: route.peer, mode: t.value(&MODE), class: route.class })?;
    let closes = |seen: &RxPacket| target.control(seen, CtlType::CLOSE_COMMAND);
    let (_, command) = t.need("CLOSE_COMMAND", t.later(), closes)?;
    target.answer(t, AckBuilder { response: None, ..target.pdc.ack(command.psn()) })?;
    t.settle()
}

/// Establishes two contexts of the device.
fn establish_two(t: &mut Test<'_>) -> Result<([Route; 2], [Target; 2]), Stop> {
    let routes = two_routes(t)?;
    let first = Target::established_by(t, routes[0].write(64))?;
    let second = establish_second(t, &first, routes[1])?;
    Ok((routes, [first, second]))
}

/// Establishes the second of two contexts.
fn establish_second(t: &mut Test<'_>, first: &Target, route: Route) -> Result<Target, Stop> {
    let second = Target::established_by(t, route.write(64));
    unless_shared(t, first, second)
}

/// Has the device open the second of two contexts.
fn accept_second(t: &mut Test<'_>, first: &Target, route: Route) -> Result<Target, Stop> {
    t.post(route.write(64))?;
    let second = Target::accept_beside(t, &[first]);
    unless_shared(t, first, second)
}

/// Returns the second context. Skips the rule if the device writes on the first one instead. `PDS-PDC-002` is a
/// recommendation, and rules of `source-establish` report such a device.
fn unless_shared(t: &mut Test<'_>, first: &Target, second: Result<Target, Stop>) -> Result<Target, Stop> {
    let next = |seen: &RxPacket| {
        let request = seen.request().filter(|request| seen.wire.dst == first.pdc.from && !request.retx());
        request.is_some_and(|request| {
            Some(request.spdcid()) == first.pdc.remote && first.index(&request) == first.highest() + 1
        })
    };
    if matches!(second, Err(Stop::Inconclusive(_))) && t.hear(Duration::ZERO, next)? {
        return skip("the device uses one context for both routes");
    }
    second
}

/// The routes of two contexts, and each context with its write.
type Pair = ([Route; 2], Vec<(Target, Operated)>);

/// Establishes two contexts of the device, each with a write of one packet in flight.
fn open_with_writes(t: &mut Test<'_>) -> Result<Pair, Stop> {
    let (routes, targets) = establish_two(t)?;
    let mut written = Vec::new();
    for route in routes {
        written.push(t.post(route.write(64))?);
    }
    let mut pair = Vec::new();
    for (mut target, written) in targets.into_iter().zip(written) {
        target.collect(t, 2)?;
        pair.push((target, written));
    }
    if t.value(&ORDER) {
        pair.reverse();
    }
    Ok((routes, pair))
}
