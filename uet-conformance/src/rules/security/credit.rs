//! Credit in secure domains (sections 3.6.14 and 3.7): grants are protected, and only authentic packets
//! demand or grant credit.

use super::header::secure_with_offset;
use super::steps::{READABLE, with_wrong_icv};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::congestion::credit_source::{Bearer, CCC, CreditSource, demand_step, excess_limit};
use crate::rules::congestion::steps::{expect_granted_bytes, grant_by_ack, short_silence, with_credit};
use crate::{SECURED, Trimmed, Wire};

/// The packet that carries the demand.
const BEARER: Axis<Bearer> =
    axis("demand-in").values(&[("request", Bearer::Request), ("credit-request", Bearer::CreditRequest)]);

/// The reason why a packet is not authentic.
const LACK: Axis<Lack> = axis("packet").values(&[("wrong-icv", Lack::Icv), ("plaintext", Lack::Protection)]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    Icv,
    Protection,
}

/// True if an ACK carries the grant, false if a control packet does.
const BY_ACK: Axis<bool> = axis("grant").values(&[("credit", false), ("ack-cc", true)]);

/// The units of 256 bytes that a wrong packet grants.
const CREDIT: u32 = 500;

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RUD, WRITE, TSS, RCCC])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-credit/granted", "A destination protects the credit that it grants for secured demand")
        .checks(&[RCCC_GRANT_001, TSS_CLEAR_002])
        .over(&[&SECURED, &BEARER])
        .run(|t| {
            let (mut source, step) = (open_source(t, 0)?, demand_step(t)?);
            for n in 1..=2 {
                source.demand_in(t, t.value(&BEARER), step * n)?;
                source.expect_grant(t, RCCC_GRANT_001, step * n)?;
            }
            let clear = t.shield()?.clear;
            t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
            Ok(())
        }),
    rule("tss-credit/wrong-demand", "Demand in a packet that is not authentic gets no credit")
        .checks(&[TSS_ICV_002, TSS_CLEAR_002, RCCC_GRANT_001])
        .over(&[&SECURED, &BEARER, &LACK, &READABLE])
        .run(|t| {
            let (requirement, readable) = (broken(t.value(&LACK)), t.value(&READABLE));
            let (mut source, excess) = (open_source(t, readable)?, excess_limit(t)?);
            let wire = source.pdc.wire(&source.build_demand(t.value(&BEARER), 3 * excess)?);
            send_wrong(t, &wire)?;
            check_not_granted(t, requirement, &mut source, excess)
        }),
    rule("tss-credit/trimmed-demand", "Demand in a trimmed secured request gets no credit")
        .checks(&[TSS_TRIM_001, RCCC_GRANT_001])
        .needs(&[RUD, WRITE, TSS, RCCC, TRIM])
        .over(&[&SECURED])
        .run(|t| {
            // The header of packet delivery is readable, with its demand.
            let (mut source, excess) = (open_source(t, 16)?, excess_limit(t)?);
            let wire = source.pdc.wire(&source.build_demand(Bearer::Request, 3 * excess)?);
            let mut short = t.sealed(&wire)?;
            short.trimmed = Some(Trimmed::Fabric);
            short.taken = short.bytes.split_off(48);
            t.send_as_it_is(&short)?;
            check_not_granted(t, TSS_TRIM_001, &mut source, excess)
        }),
    rule("tss-credit/wrong-grant", "A grant in a packet that is not authentic lets no packet leave")
        .checks(&[TSS_ICV_002, TSS_CLEAR_002, RCCC_CREDIT_001])
        .over(&[&SECURED, &BY_ACK, &LACK, &READABLE])
        .measure(|t| {
            let requirement = broken(t.value(&LACK));
            t.congestion("rccc")?;
            t.slowed()?;
            t.auto_credit = false;
            secure_with_offset(t, t.value(&READABLE))?;
            let packets = (8 * t.bdp()? / t.mtu() as u64).clamp(64, 800) as usize;
            let mut flow = Flow::start(t, Mode::Rud, packets)?;
            for _ in 0..2 {
                flow.fill(t)?;
                grant_by_ack(t, &flow, 0)?;
            }
            let (highest, during) = (flow.count(), short_silence(t)?);
            let grant = if t.value(&BY_ACK) {
                with_credit(flow.answer(highest, &Answers::default())?, CREDIT)?
            } else {
                flow.target.pdc.control(CtlType::CREDIT, Psn(0), CREDIT)?
            };
            let wire = flow.target.pdc.wire(&grant);
            send_wrong(t, &wire)?;
            let what = "a new packet for a grant that is not authentic";
            flow.target.expect_none(t, requirement, what, during, |n| n >= highest)?;
            grant_by_ack(t, &flow, 100)?;
            expect_granted_bytes(t, RCCC_CREDIT_001, 100, &mut flow)
        }),
];

/// Opens a context without demand in the domain of the instance, with this number of readable bytes after the
/// security header.
fn open_source(t: &mut Test<'_>, readable: u8) -> Result<CreditSource, Stop> {
    t.congestion_or_both("rccc")?;
    t.auto_credit = false;
    secure_with_offset(t, readable)?;
    let region = t.region(1 << 16)?;
    let pdc = t.initiate();
    CreditSource::open_on(t, pdc, region, CCC)
}

/// Returns the requirement that a device breaks if it takes such a packet.
fn broken(lack: Lack) -> &'static Requirement {
    match lack {
        Lack::Icv => TSS_ICV_002,
        Lack::Protection => TSS_CLEAR_002,
    }
}

/// Sends a packet that is not authentic.
fn send_wrong(t: &mut Test<'_>, wire: &Wire) -> Outcome {
    match t.value(&LACK) {
        Lack::Icv => {
            let forged = with_wrong_icv(t, wire)?;
            t.send_as_it_is(&forged)
        }
        Lack::Protection => t.send_as_it_is(wire),
    }
}

/// Checks that the last packet got no credit, and that authentic demand gets it. A destination may grant up
/// to `excess` units without demand.
fn check_not_granted(
    t: &mut Test<'_>,
    requirement: &Requirement,
    source: &mut CreditSource,
    excess: u32,
) -> Outcome {
    source.collect_grants(t, excess + 1, t.soon())?;
    t.at_most(requirement, "the cumulative credit, in units", excess, source.credit.get());
    let step = demand_step(t)?;
    source.demand_in(t, Bearer::Request, step)?;
    source.expect_grant(t, RCCC_GRANT_001, step)
}
