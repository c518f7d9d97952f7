//! The demand that a source of RCCC states (section 3.6.14).

use super::steps::{
    WRAP, bytes_after_grant, credit_flow, credit_target, flow_without_credit, grant_by_control,
    opening_request, with_credit,
};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::full_packet_size;
use uet_wire::pds::Pds;

/// The length of a message, in packets.
const LENGTH: Axis<usize> = axis("packets").values(&[("1", 1), ("4", 4), ("64", 64)]);

const ALGORITHMS: Axis<&str> =
    axis("algorithms").needing(&[("rccc", "rccc", &[]), ("both", "both", &[NSCC])]);

/// The base round trips between the close and the next message.
const PAUSE: Axis<u32> = axis("pause").values(&[("none", 0), ("long", 400)]);

/// The data that waits for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// A new packet that is smaller than a unit of credit.
    SmallPacket,
    /// Packets that were refused.
    Retransmissions(NackCode),
}

const WAITING: Axis<Waiting> = axis("waits").values(&[
    ("small-packet", Waiting::SmallPacket),
    ("trimmed-packets", Waiting::Retransmissions(NackCode::TRIMMED)),
    ("refused-packets", Waiting::Retransmissions(NackCode::NO_RESOURCE)),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RCCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("rccc/type-rud", "RUD requests of a source that runs RCCC carry its demand")
        .checks(&[RCCC_TYPE_001])
        .needs(&[RUD, RCCC])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let flow = credit_flow(t, "rccc", Mode::Rud)?;
            check_type(t, flow, PdsType::RUD_CC_REQ)
        }),
    rule("rccc/type-rod", "ROD requests of a source that runs RCCC carry its demand")
        .checks(&[RCCC_TYPE_001])
        .needs(&[ROD, RCCC])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let flow = credit_flow(t, "rccc", Mode::Rod)?;
            check_type(t, flow, PdsType::ROD_CC_REQ)
        }),
    rule("rccc/type-timeout", "A retransmission after a timeout carries the demand of its source")
        .checks(&[RCCC_TYPE_001])
        .run(|t| {
            t.congestion_or_both("rccc")?;
            let mut target = Flow::start(t, Mode::Rud, 2)?.target;
            target.collect(t, 2)?;
            target.ack(t, 0)?;
            let lost = target.psn(1);
            let again =
                |seen: &RxPacket| seen.request().filter(|request| request.retx() && request.psn() == lost);
            let (seen, _) = t.need("a retransmission after a timeout", t.later(), again)?;
            let demands = credit_target(&seen).is_some();
            t.holds(RCCC_TYPE_001, "a retransmission carries the demand", demands, seen.uet());
            target.ack(t, 1)
        }),
    rule("rccc/demand-cumulative", "While data waits, credit_target is at least the granted credit")
        .checks(&[RCCC_COUNT_001])
        .measure(|t| {
            let mut flow = flow_without_credit(t)?;
            for credit in [200, 400, 600] {
                grant_by_control(t, &flow.target, credit)?;
                let before = flow.target.got.len();
                bytes_after_grant(t, &mut flow)?;
                let last = flow.target.got[before..].last().and_then(|got| credit_target(&got.seen));
                let last =
                    last.ok_or_else(|| Stop::Inconclusive("no request with demand has arrived".into()))?;
                t.at_least(RCCC_COUNT_001, "credit_target after the grant", credit, last.get());
            }
            Ok(())
        }),
    rule("rccc/demand-in-units", "credit_target is at most twice the message and BDP, in 256-byte units")
        .checks(&[RCCC_COUNT_001])
        .over(&[&MODE, &CARRIER, &LENGTH])
        .run(|t| {
            // The sources leave open how much more than its data a source may demand. An error in the unit
            // exceeds twice the message and the BDP by far.
            t.congestion("rccc")?;
            t.auto_credit = false;
            let mut flow = Flow::start(t, Mode::Rud, t.value(&LENGTH))?;
            flow.fill(t)?;
            let message = t.value(&LENGTH) as u64 * full_packet_size(t);
            let most = Bound::from(((message + t.bdp()?) * 2 / 256) as u32)
                .from_parameter("rate times base_rtt")
                .tolerating("twice this and the message");
            let mut demands = Vec::new();
            for n in 0..flow.count() {
                demands.extend(credit_target(&flow.target.packet(n)?.seen));
            }
            // A target in the half behind the grants is an old one, and demands nothing.
            let (ahead, behind): (Vec<_>, Vec<_>) =
                demands.into_iter().partition(|demand| demand.get() < WRAP / 2);
            for demand in &ahead {
                t.at_most(RCCC_COUNT_001, "credit_target before any grant", most.clone(), demand.get());
            }
            if ahead.is_empty() && !behind.is_empty() {
                return skip("the demands lie behind the credit");
            }
            Ok(())
        }),
    rule("rccc/credit-request-ccc-id", "A CREDIT_REQUEST has the ccc_id of the requests")
        .checks(&[RCCC_COUNT_001])
        .measure(|t| {
            let flow = flow_without_credit(t)?;
            let ccc_id = |seen: &RxPacket| match seen.uet().pds? {
                Pds::RequestCc(header) => Some(header.ccc_id()),
                _ => None,
            };
            let within = t.grace();
            let request =
                t.wait(within, |seen| flow.target.control(seen, CtlType::CREDIT_REQUEST)?.credit_target())?;
            let Some((_, (requested, _))) = request else {
                return skip("the device sends no CREDIT_REQUEST");
            };
            t.check(RCCC_COUNT_001, "ccc_id", ccc_id(&flow.target.packet(0)?.seen), Some(requested));
            Ok(())
        }),
    rule("rccc/read-data-lost", "A source gets credit to retransmit a read after NACK ACK_WITH_DATA")
        .checks(&[PDS_NACK_015])
        .needs(&[READ, RCCC])
        .run(|t| {
            // Bytes that have arrived are no demand, but a retransmission of them is.
            t.congestion_or_both("rccc")?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            t.post(post(PostKind::Read, peer, 8))?;
            target.collect(t, 2)?;
            t.settle()?;
            // A longer packet uses up the rest of the credit.
            t.auto_credit = false;
            t.post(post(PostKind::Write, peer, t.mtu()))?;
            target.watch(t, t.grace())?;
            // The ACK with the data is lost. A later ACK reports that the request has arrived.
            let arrived = (target.highest() == 2).then(|| target.naming(2, 1).sack(target.psn(1), 0b11));
            match arrived {
                Some(both) => target.answer(t, both)?,
                None => target.sack(t, 1, &[1])?,
            }
            t.need("an ACK_REQUEST", t.later(), |seen| target.control(seen, CtlType::ACK_REQUEST))?;
            t.auto_credit = true;
            target.refuse(t, NackCode::ACK_WITH_DATA, 1)?;
            target.expect_again(t, PDS_NACK_015, 1, t.later())?;
            Ok(())
        }),
    rule("rccc/type-with-nscc", "Requests of a source that runs both NSCC and RCCC carry its demand")
        .checks(&[RCCC_TYPE_001])
        .needs(&[RUD, RCCC, NSCC])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let flow = credit_flow(t, "both", Mode::Rud)?;
            check_type(t, flow, PdsType::RUD_CC_REQ)
        }),
    rule("rccc/demand-until-granted", "A source without credit repeats its demand until it gets a grant")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            // A source may send CREDIT_REQUEST, or a request with its demand.
            let mut flow = flow_without_credit(t)?;
            t.settle()?;
            for _ in 0..3 {
                let within = t.later();
                t.expect(RCCC_CREDIT_001, "a packet with the demand", within, |seen| {
                    let requests = flow.target.control(seen, CtlType::CREDIT_REQUEST).is_some();
                    (requests || credit_target(seen).is_some()).then_some(())
                })?;
                t.settle()?;
            }
            let highest = flow.count();
            grant_by_control(t, &flow.target, 500)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        }),
    rule("rccc/demand-complete", "The demand of a source covers small packets and retransmissions")
        .checks(&[RCCC_COUNT_001])
        .over(&[&WAITING, &ALGORITHMS, &MODE, &CARRIER])
        .measure(|t| {
            // The first answer ends the use of initial credit, and from then on the suite grants what the
            // device demands.
            t.congestion(t.value(&ALGORITHMS))?;
            t.slowed()?;
            t.auto_credit = false;
            t.try_configure("payload_mtu", 1024)?;
            require(t.bdp()? >= 16 * full_packet_size(t), "the network holds too few packets")?;
            let mut flow = Flow::start(t, Mode::Rud, 8)?;
            flow.fill(t)?;
            let waiting = t.value(&WAITING);
            let answered = if waiting == Waiting::SmallPacket { flow.count() } else { 1 };
            let ack = flow.answer(answered, &Answers::default())?;
            // With NSCC, its state takes the place of the grant.
            let ack = if t.value(&ALGORITHMS) == "rccc" { with_credit(ack, 0)? } else { ack };
            t.send(&flow.target.pdc, &ack)?;
            t.settle()?;
            t.auto_credit = true;
            match waiting {
                Waiting::SmallPacket => {
                    let (peer, highest) = (t.peer(0)?, flow.count());
                    t.post(post(PostKind::Write, peer, 1))?;
                    flow.target.expect_new(t, RCCC_COUNT_001, highest)?;
                }
                Waiting::Retransmissions(code) => {
                    for n in 1..flow.count() {
                        flow.refuse(t, code, n)?;
                    }
                    flow.target.expect_again(t, RCCC_COUNT_001, 1, t.later())?;
                }
            }
            Ok(())
        }),
    rule("rccc/next-context", "A message starts on a new context after one that ended without credit")
        .checks(&[SES_DONE_001])
        .needs(&[RCCC, CLOSE])
        .over(&[&ALGORITHMS, &PAUSE, &MODE])
        .run(|t| {
            // Without a context, a device cannot request credit. A short message needs no grant.
            t.congestion(t.value(&ALGORITHMS))?;
            t.auto_credit = false;
            let peer = t.peer(0)?;
            for round in 0..3 {
                let written = t.post(post(PostKind::Write, peer, t.mtu()))?;
                let first = opening_request(t, SES_DONE_001, round)?;
                let target = Target::opened_by(t, first)?;
                target.ack(t, 0)?;
                t.ends(SES_DONE_001, written, Status::Ok)?;
                target.end(t, peer)?;
                t.pause(t.base_rtt()? * t.value(&PAUSE))?;
                t.forget();
            }
            Ok(())
        }),
];

/// Checks that all requests of the flow carry demand, and that they have this type.
fn check_type(t: &mut Test<'_>, mut flow: Flow, expected: PdsType) -> Outcome {
    flow.fill(t)?;
    let first = flow.target.got[0].request.prologue().kind();
    let without = flow.target.got.iter().filter(|request| credit_target(&request.seen).is_none()).count();
    t.check(RCCC_TYPE_001, "pds.type", expected, first);
    t.check(RCCC_TYPE_001, "requests without demand", 0, without);
    Ok(())
}
