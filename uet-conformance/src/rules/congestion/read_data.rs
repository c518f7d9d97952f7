//! Window and credit of the return direction, which carries the data of reads (sections 3.6.12 to 3.6.14).

use super::credit_source::{Bearer, CCC, CreditSource, demand_step, excess_limit};
use super::steps::{
    credit_target, expect_granted_bytes, fill_window, grant_by_ack, grant_by_control, need_in_flight,
    refuse_half, short_silence, shrink_by_marks, timely_answers,
};
use crate::Trimmed;
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::{check_in_flight, with_demand};

/// The signal of congestion that answers read data.
#[derive(Clone, Copy, Debug)]
enum DataSignal {
    /// Late, marked ACKs.
    Marks,
    /// NACKs with this code.
    Trims(NackCode),
    /// A receiver penalty.
    Penalty,
}

const SIGNAL: Axis<DataSignal> = axis("signal").values(&[
    ("marks", DataSignal::Marks),
    ("trims", DataSignal::Trims(NackCode::TRIMMED)),
    ("last-hop-trims", DataSignal::Trims(NackCode::TRIMMED_LASTHOP)),
    ("penalty", DataSignal::Penalty),
]);

/// The packet that carries the demand: read data, whole or trimmed, or a control packet.
const DEMAND: Axis<Bearer> = axis("demand-in").needing(&[
    ("read-data", Bearer::Request, &[]),
    ("credit-request", Bearer::CreditRequest, &[]),
    ("trimmed-data", Bearer::Trimmed, &[TRIM]),
]);

/// The number of reads whose data arrives while requests are in flight.
const READS: u32 = 4;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[WRITE, READ, NSCC]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc/read-data-window", "The read data in flight never exceeds the maximum window")
        .checks(&[CC_WINDOW_001, CC_WINDOW_002])
        .measure(|t| {
            let (mut flow, max_window) = read_flow(t, 8)?;
            flow.fill(t)?;
            need_in_flight(&flow, 4)?;
            check_in_flight(t, CC_WINDOW_001, max_window, flow.in_flight());
            let (answers, round) = timely_answers(t, &flow)?;
            let most = flow.run(t, round * 6, &answers)?;
            check_in_flight(t, CC_WINDOW_002, max_window, most);
            Ok(())
        }),
    rule("nscc/read-data-signals", "Marks, trims and penalties in answers to read data shrink its window")
        .checks(&[CC_QUAD_004, CC_TRIM_001, CC_TRIM_004, CC_PENALTY_001])
        .needs(&[RUD, WRITE, READ, NSCC])
        .over(&[&SIGNAL, &START])
        .measure(|t| {
            let (mut flow, max_window) = read_flow(t, 16)?;
            fill_window(t, &mut flow)?;
            need_in_flight(&flow, 8)?;
            // A device may serve so few reads at a time that a smaller window changes nothing.
            let before = flow.in_flight();
            require(
                before >= max_window * 3 / 4,
                "the data of all reads in progress is less than the window",
            )?;
            let most = Bound::from(before * 3 / 4).tolerating("three quarters of before");
            match t.value(&SIGNAL) {
                DataSignal::Marks => {
                    let after = shrink_by_marks(t, &mut flow)?;
                    t.at_most(CC_QUAD_004, "bytes in flight after marks and delay", most, after);
                }
                DataSignal::Penalty => {
                    let (answers, round) = timely_answers(t, &flow)?;
                    let after = flow.run(t, round * 10, &Answers { penalty: 100, ..answers })?;
                    t.at_most(CC_PENALTY_001, "bytes in flight under the penalty", most, after);
                }
                DataSignal::Trims(code) => {
                    let fabric = code == NackCode::TRIMMED;
                    let requirement = if fabric { CC_TRIM_001 } else { CC_TRIM_004 };
                    let (left, half) = refuse_half(t, &mut flow, code)?;
                    t.at_most(requirement, "packets that leave after the trims", half - 1, left);
                }
            }
            Ok(())
        }),
    rule("nscc/read-data-arrival", "Read data that arrives takes no request of the device out of flight")
        .checks(&[CC_WINDOW_001])
        .measure(|t| {
            t.congestion("nscc")?;
            t.slowed()?;
            t.beyond_ack()?;
            let (max_window, mtu) = (t.bdp()? * 3 / 2, t.mtu());
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for n in 1..=READS {
                t.post(post(PostKind::Read, peer, mtu))?;
                target.collect(t, n + 1)?;
            }
            target.ack(t, READS)?;
            t.settle()?;
            let mut data = Vec::new();
            for n in 1..=READS {
                data.push(target.data_header(n, mtu, mtu, 0)?);
            }
            let packets = (4 * max_window / mtu as u64).clamp(64, 4000) as usize;
            let mut flow = Flow::start_on(t, target, packets)?;
            flow.fill(t)?;
            need_in_flight(&flow, 2 * READS)?;
            for (k, ses) in (0..).zip(data) {
                flow.target.give_due(t, k, ses, &vec![7; mtu])?;
            }
            flow.fill(t)?;
            check_in_flight(t, CC_WINDOW_001, max_window, flow.in_flight());
            Ok(())
        }),
    rule("rccc/read-data-credit", "Read data carries its demand, and exceeds a grant by at most one packet")
        .checks(&[RCCC_START_001, RCCC_TYPE_001, RCCC_CREDIT_001])
        .needs(&[WRITE, READ, RCCC])
        .measure(|t| {
            t.congestion("rccc")?;
            t.slowed()?;
            let source = CreditSource::open(t)?;
            let bdp = t.bdp()?;
            request_reads(t, &source.pdc, &source.region, 8 * bdp)?;
            let mut flow = Flow::of_return(t, &source.pdc);
            flow.fill(t)?;
            need_in_flight(&flow, 1)?;
            let most = Bound::from(bdp * 3 / 2)
                .from_parameter("rate times base_rtt")
                .tolerating("half as much again");
            t.at_most(RCCC_START_001, "bytes of read data before the first ACK", most, flow.bytes());
            let without = flow.target.got.iter().filter(|data| credit_target(&data.seen).is_none()).count();
            t.check(RCCC_TYPE_001, "packets of read data without demand", 0, without);
            for _ in 0..2 {
                grant_by_ack(t, &flow, 0)?;
                flow.fill(t)?;
            }
            let (highest, silence) = (flow.count(), short_silence(t)?);
            let what = "new read data without credit";
            flow.target.expect_none(t, RCCC_CREDIT_001, what, silence, |n| n >= highest)?;
            grant_by_control(t, &flow.target, 100)?;
            expect_granted_bytes(t, RCCC_CREDIT_001, 100, &mut flow)
        }),
    rule("rccc/grants-read-data", "A device that reads grants the demand of the source of the data")
        .checks(&[RCCC_GRANT_001, RCCC_COUNT_001])
        .needs(&[READ, RCCC])
        .over(&[&DEMAND, &MODE, &START])
        .run(|t| {
            t.congestion_or_both("rccc")?;
            t.beyond_ack()?;
            let (mtu, region) = (t.mtu(), t.region(4096)?);
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            t.post(post(PostKind::Read, peer, mtu))?;
            target.collect(t, 2)?;
            target.ack(t, 1)?;
            let mut source = CreditSource::of_return(target.pdc.clone(), region);
            let step = demand_step(t)?;
            let data = target.pdc.request(0).ses(target.data_header(1, mtu, mtu, 0)?, &vec![7; mtu]);
            let packet = with_demand(&data, CCC, step)?;
            match t.value(&DEMAND) {
                Bearer::Request => {
                    t.must_take_data(&target.pdc, data.psn);
                    t.send(&target.pdc, &packet)?;
                }
                Bearer::CreditRequest => source.demand_in(t, Bearer::CreditRequest, step)?,
                Bearer::Trimmed => t.send_wire(&target.pdc.trimmed(&packet, Trimmed::Fabric, 16))?,
            }
            source.expect_grant(t, RCCC_GRANT_001, step)?;
            let most = step + excess_limit(t)?;
            t.at_most(RCCC_COUNT_001, "the cumulative credit, in units", most, source.credit.get());
            Ok(())
        }),
];

/// Requests this number of bytes by reads of a packet each, from PSN 1 on, within the receive window of the
/// device. Skips if the data of a packet fits into an ACK.
fn request_reads(t: &mut Test<'_>, pdc: &Pdc, region: &Region, bytes: u64) -> Outcome {
    t.beyond_ack()?;
    let length = t.mtu() as u32;
    let count = (bytes / u64::from(length)).clamp(32, 600) as u32;
    for n in 1..=count.min(t.range(pdc)? / 2) {
        // Each read is a separate message.
        let message_id = region.message_id.wrapping_add(2 * n as u16) | 1;
        t.request(pdc, pdc.request(n).read(&Region { message_id, ..region.clone() }, 0, length)?)?;
    }
    Ok(())
}

/// Reads this number of maximum windows from a device that runs NSCC. Returns the flow of the data and the
/// maximum window.
fn read_flow(t: &mut Test<'_>, windows: u64) -> Result<(Flow, u64), Stop> {
    t.congestion("nscc")?;
    t.slowed()?;
    let way = t.keeps_base_rtt()?;
    let max_window = t.bdp()? * 3 / 2;
    let (region, _) = t.patterned(1 << 16)?;
    let mut pdc = t.initiate();
    t.establish(&mut pdc, &region)?;
    t.forget();
    request_reads(t, &pdc, &region, windows * max_window)?;
    let mut flow = Flow::of_return(t, &pdc);
    flow.way = way;
    Ok((flow, max_window))
}
