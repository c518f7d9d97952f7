//! Receiver credit, at both ends (section 3.6.14).

use crate::Trimmed;
use crate::flow::{Answers, Flow, nominal};
use crate::prelude::*;
use crate::rules::steps::with_demand;
use uet_wire::Units24;
use uet_wire::pds::PdsBuf;
use uet_wire::registry::CcType;

/// The packet that carries the demand.
const BEARER: Axis<Bearer> = axis("bearer").needing(&[
    ("request", Bearer::Request, &[]),
    ("credit-request", Bearer::CreditRequest, &[]),
    ("trimmed", Bearer::Trimmed, &[TRIM]),
]);

/// See [`BEARER`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Bearer {
    Request,
    CreditRequest,
    Trimmed,
}

/// The number of sources that have demand at a time.
const SHARERS: Axis<u8> = axis("sources").values(&[("2", 2), ("5", 5), ("16", 16)]);

/// The length of a message, in packets.
const LENGTH: Axis<usize> = axis("packets").values(&[("1", 1), ("4", 4), ("64", 64)]);

/// A NACK that makes the source send again.
const REFUSAL: Axis<NackCode> = axis("nack").values(&[
    ("trimmed", NackCode::TRIMMED),
    ("trimmed-last-hop", NackCode::TRIMMED_LASTHOP),
    ("no-resource", NackCode::NO_RESOURCE),
]);

/// Units after which the counters of credit and demand start again.
const WRAP: u32 = 1 << 24;

/// Grants that a script waits for at most: a device may grant little at a time.
const MANY: usize = 2000;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RCCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("rccc/grants-demand", "A destination grants all demand of a request").checks(&[RCCC_GRANT_001]).run(
        |t| {
            let (mut source, some) = (CreditSource::open(t)?, some(t)?);
            source.demand(t, some)?;
            source.expect(t, RCCC_GRANT_001, some)
        },
    ),
    rule("rccc/grants-in-units", "Grants in units of 256 bytes exceed the demand by at most 4 BDP")
        .checks(&[RCCC_COUNT_001, RCCC_GRANT_001])
        .run(|t| {
            let mut source = CreditSource::open(t)?;
            source.demand(t, 30)?;
            source.expect(t, RCCC_GRANT_001, 30)?;
            let most = 30 + beyond(t)?;
            t.at_most(RCCC_COUNT_001, "the credit beyond the demand, in units", most, source.credit.get());
            Ok(())
        }),
    rule("rccc/grants-cumulative", "Grants are cumulative over successive demands")
        .checks(&[RCCC_COUNT_001])
        .run(|t| {
            let mut source = CreditSource::open(t)?;
            rounds(t, &mut source, 4)
        }),
    rule("rccc/grants-long", "Grants stay cumulative over 40 successive demands")
        .checks(&[RCCC_COUNT_001])
        .run(|t| {
            let mut source = CreditSource::open(t)?;
            rounds(t, &mut source, 40)
        }),
    rule("rccc/grants-never-decrease", "The cumulative credit of grants never decreases")
        .checks(&[RCCC_COUNT_001])
        .run(|t| {
            let (mut source, some) = (CreditSource::open(t)?, some(t)?);
            for n in 1..=6 {
                source.demand(t, some * n)?;
                source.take(t, some * n, t.soon())?;
            }
            if source.grants.len() < 2 {
                return Err(Stop::Inconclusive("fewer than two grants came".into()));
            }
            let falls = source.grants.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
            t.check(RCCC_COUNT_001, "grants behind the one before", 0, falls);
            Ok(())
        }),
    rule("rccc/grants-credit-request", "A destination grants the demand of a CREDIT_REQUEST")
        .checks(&[RCCC_GRANT_001])
        .run(|t| {
            let (mut source, some) = (CreditSource::open(t)?, some(t)?);
            let payload = u32::from(CCC) << 24 | some;
            let request = source.pdc.control(CtlType::CREDIT_REQUEST, uet_wire::Psn(0), payload)?;
            t.send(&source.pdc, &request)?;
            source.expect(t, RCCC_GRANT_001, some)
        }),
    rule("rccc/grants-rod", "A destination grants the demand of a ROD context")
        .checks(&[RCCC_GRANT_001])
        .needs(&[ROD, RCCC])
        .over(&[&CARRIER, &START])
        .run(|t| {
            t.congestion_or_both("rccc")?;
            t.auto_credit = false;
            let region = t.region(1 << 16)?;
            let pdc = Pdc { rod: true, ..t.initiate() };
            let (mut source, some) = (CreditSource::on(t, pdc, region, CCC)?, some(t)?);
            source.demand(t, some)?;
            source.expect(t, RCCC_GRANT_001, some)
        }),
    rule("rccc/grants-two-sources", "A destination grants the demand of two sources")
        .checks(&[RCCC_GRANT_001])
        .needs(&[RCCC, TWO_ADDRESSES])
        .run(|t| {
            let (mut first, some) = (CreditSource::open(t)?, some(t)?);
            let pdc = t.initiate_from(1)?;
            let mut second = CreditSource::on(t, pdc, first.region.clone(), CCC)?;
            for n in 1..=3 {
                first.demand(t, some * n)?;
                second.demand(t, some * n)?;
                second.expect(t, RCCC_GRANT_001, some * n)?;
                first.expect(t, RCCC_GRANT_001, some * n)?;
            }
            Ok(())
        }),
    rule("rccc/grants-paced", "A destination grants credit at about the rate of its link")
        .checks(&[RCCC_PACE_001])
        .measure(|t| {
            // So many sources that there is demand all the time, whatever each has to wait for the way.
            let count = t.parameter("general_pdcs").clamp(1, 16) as u8;
            let mut sources = vec![CreditSource::open(t)?];
            for n in 1..count {
                let (pdc, region) = (t.initiate(), sources[0].region.clone());
                sources.push(CreditSource::on(t, pdc, region, CCC.wrapping_add(n))?);
            }
            let rate = t.reported("receiver_rate").unwrap_or(0);
            require(rate != 0, "the device does not say the rate of its link")?;
            let (begun, some) = (t.now(), some(t)?);
            for n in 1..=6 {
                for source in &mut sources {
                    source.demand(t, some * n)?;
                }
                for source in &mut sources {
                    source.take(t, some * n, t.soon())?;
                }
            }
            let at = sources.iter().filter_map(|source| Some(source.grants.last()?.0)).max().unwrap_or(begun);
            let units: u32 = sources.iter().map(|source| source.credit.get()).sum();
            let carried = rate as f64 * (at - begun).as_secs_f64() / 8.0 / 256.0;
            // "About" permits half as much again, and a burst.
            let most = Bound::from((carried * 1.5) as u32 + beyond(t)?)
                .from_parameter("receiver_rate")
                .tolerating("half of it, and a burst");
            t.at_most(RCCC_PACE_001, "units of credit granted while the demand lasts", most, units);
            let wanted = some * 6 * u32::from(count);
            t.at_least(RCCC_PACE_001, "units of credit granted, of all that was demanded,", wanted, units);
            // The way there and back takes its time in each round.
            let (link, way) = (f64::from(wanted) * 8.0 * 256.0 / rate as f64, t.grace().as_secs_f64() * 6.0);
            let longest = Bound::from(Duration::from_secs_f64(10.0 * link + way))
                .from_parameter("receiver_rate")
                .tolerating("a factor of 10, and six pauses");
            t.at_most(RCCC_PACE_001, "the time until all demand is granted", longest, at - begun);
            Ok(())
        }),
    rule("rccc/shared-destination", "Each source that shares a destination gets the credit that it demands")
        .checks(&[RCCC_GRANT_001, RCCC_COUNT_001])
        .over(&[&MODE, &CARRIER, &SHARERS, &BEARER])
        .run(|t| {
            // Demand of all at once, so that each waits for the others.
            let (count, bearer) = (t.value(&SHARERS), t.value(&BEARER));
            require(u64::from(count) <= t.parameter("general_pdcs"), "the device has too few contexts")?;
            let (mut sources, some) = (vec![CreditSource::open(t)?], some(t)?);
            for n in 1..count {
                let (pdc, region) = (t.initiate(), sources[0].region.clone());
                sources.push(CreditSource::on(t, pdc, region, CCC.wrapping_add(n))?);
            }
            for n in 1..=3 {
                for (place, source) in (1..).zip(&mut sources) {
                    source.demand_by(t, bearer, some * n + place)?;
                }
                for (place, source) in (1..).zip(&mut sources) {
                    let wanted = some * n + place;
                    source.reaches(t, wanted, t.patience(t.soon()))?;
                    let what = format!("units granted to source {place} of {count} in round {n}");
                    t.at_least(RCCC_GRANT_001, &what, wanted, source.credit.get());
                    let most = wanted + beyond(t)?;
                    let what = format!("units granted beyond the demand to source {place} of {count}");
                    t.at_most(RCCC_COUNT_001, &what, most, source.credit.get());
                }
            }
            Ok(())
        }),
    rule("rccc/trimmed-demand", "A destination grants the demand of a trimmed request")
        .checks(&[RCCC_TRIM_001])
        .needs(&[RCCC, TRIM])
        .run(|t| {
            let (mut source, some) = (CreditSource::open(t)?, some(t)?);
            let packet = source.request(some)?;
            let wire = source.pdc.trimmed(&packet, Trimmed::Fabric, 64);
            t.send_wire(&wire)?;
            source.expect(t, RCCC_TRIM_001, some)
        }),
    rule("rccc/stale-demand", "A credit_target below an earlier one gets no further credit")
        .checks(&[RCCC_COUNT_002, RCCC_GRANT_001])
        .run(|t| {
            let (mut source, some) = (CreditSource::open(t)?, some(t)?);
            source.demand(t, some)?;
            source.expect(t, RCCC_GRANT_001, some)?;
            source.demand(t, some / 2)?;
            let most = some + beyond(t)?;
            source.take(t, most + 1, t.soon())?;
            t.at_most(RCCC_COUNT_002, "the credit beyond the demand, in units", most, source.credit.get());
            source.demand(t, some * 2)?;
            source.expect(t, RCCC_GRANT_001, some * 2)
        }),
    rule("rccc/no-demand", "A source without demand gets at most 4 BDP of credit")
        .checks(&[RCCC_COUNT_001])
        .run(|t| {
            let mut source = CreditSource::open(t)?;
            let most = beyond(t)?;
            source.demand(t, 0)?;
            source.take(t, most + 1, t.soon())?;
            t.at_most(RCCC_COUNT_001, "the credit beyond the demand, in units", most, source.credit.get());
            Ok(())
        }),
    rule("rccc/type-rud", "RUD requests of a source that runs RCCC carry its demand")
        .checks(&[RCCC_TYPE_001])
        .needs(&[RUD, RCCC])
        .over(&[&CARRIER, &START])
        .run(|t| check_kind(t, Mode::Rud, PdsType::RUD_CC_REQ)),
    rule("rccc/type-rod", "ROD requests of a source that runs RCCC carry its demand")
        .checks(&[RCCC_TYPE_001])
        .needs(&[ROD, RCCC])
        .over(&[&CARRIER, &START])
        .run(|t| check_kind(t, Mode::Rod, PdsType::ROD_CC_REQ)),
    rule("rccc/initial-credit", "A source sends at most about one BDP before the first ACK")
        .checks(&[RCCC_START_001])
        .measure(|t| {
            let (mut flow, holds) = flow(t, Mode::Rud)?;
            flow.fill(t)?;
            let most = Bound::from(holds * 3 / 2)
                .from_parameter("rate times base_rtt")
                .tolerating("half as much again");
            t.at_most(RCCC_START_001, "bytes before the first answer", most, flow.bytes());
            Ok(())
        }),
    rule("rccc/no-credit", "A source sends no new packet after ACKs that grant no credit")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            let mut flow = exhausted(t)?;
            // Not for long: a source that waits in vain may try whether the destination still knows it.
            let (highest, during) = (flow.count(), t.grace().min(t.base_rtt()? * 8));
            flow.target
                .expect_none(t, RCCC_CREDIT_001, "nothing without credit", during, |n| n >= highest)?;
            grant(&flow, t, 500)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        }),
    rule("rccc/granted-bytes", "A source sends granted bytes and exceeds them by at most one packet")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            let mut flow = exhausted(t)?;
            grant(&flow, t, 100)?;
            let bytes = spent(t, &mut flow)?;
            check_spent(t, RCCC_CREDIT_001, 100, bytes);
            Ok(())
        }),
    rule("rccc/granted-by-credit", "A CREDIT control packet grants credit as an ACK_CC does")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            let mut flow = exhausted(t)?;
            by_control(t, &flow, 100)?;
            let bytes = spent(t, &mut flow)?;
            check_spent(t, RCCC_CREDIT_001, 100, bytes);
            Ok(())
        }),
    rule("rccc/grant-difference", "A grant adds its difference from the last grant")
        .checks(&[RCCC_COUNT_001])
        .measure(|t| {
            let mut flow = exhausted(t)?;
            for (credit, more) in [(100, 100), (180, 80), (260, 80)] {
                by_control(t, &flow, credit)?;
                let bytes = spent(t, &mut flow)?;
                check_spent(t, RCCC_COUNT_001, more, bytes);
            }
            Ok(())
        }),
    rule("rccc/duplicate-grant", "A duplicate grant adds no credit")
        .checks(&[RCCC_COUNT_001, RCCC_CREDIT_001])
        .measure(|t| {
            let mut flow = exhausted(t)?;
            by_control(t, &flow, 100)?;
            spent(t, &mut flow)?;
            let (highest, during) = (flow.count(), t.grace());
            by_control(t, &flow, 100)?;
            flow.target
                .expect_none(t, RCCC_COUNT_001, "nothing for the same credit", during, |n| n >= highest)?;
            by_control(t, &flow, 200)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        }),
    rule("rccc/stale-grant", "A stale grant adds no credit")
        .checks(&[RCCC_COUNT_002, RCCC_CREDIT_001])
        .measure(|t| {
            let mut flow = exhausted(t)?;
            by_control(t, &flow, 200)?;
            spent(t, &mut flow)?;
            let (highest, during) = (flow.count(), t.grace());
            by_control(t, &flow, 150)?;
            flow.target.expect_none(t, RCCC_COUNT_002, "nothing for old credit", during, |n| n >= highest)?;
            by_control(t, &flow, 300)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        }),
    rule("rccc/demand-cumulative", "While data waits, credit_target is at least the granted credit")
        .checks(&[RCCC_COUNT_001])
        .measure(|t| {
            let mut flow = exhausted(t)?;
            for credit in [200, 400, 600] {
                by_control(t, &flow, credit)?;
                let before = flow.target.got.len();
                spent(t, &mut flow)?;
                let last = flow.target.got[before..].last().and_then(|got| demand(&got.seen));
                let last =
                    last.ok_or_else(|| Stop::Inconclusive("no request with demand has come".into()))?;
                t.at_least(RCCC_COUNT_001, "credit_target after the grant", credit, last.get());
            }
            Ok(())
        }),
    rule("rccc/demand-in-units", "credit_target is at most twice the message and BDP, in 256-byte units")
        .checks(&[RCCC_COUNT_001])
        .over(&[&MODE, &CARRIER, &LENGTH])
        .run(|t| {
            // Open: how much more a source may demand than it has. Twice the message and the network's bytes are
            // far less than a mistake in the unit.
            t.congestion("rccc")?;
            t.auto_credit = false;
            let mut flow = Flow::start(t, Mode::Rud, t.value(&LENGTH))?;
            flow.fill(t)?;
            let message = t.value(&LENGTH) as u64 * nominal(t.mtu() + 16 + 44);
            let most = Bound::from(((message + t.bdp()?) * 2 / 256) as u32)
                .from_parameter("rate times base_rtt")
                .tolerating("twice this and the message");
            for n in 0..flow.count() {
                if let Some(demand) = demand(&flow.target.packet(n)?.seen) {
                    t.at_most(RCCC_COUNT_001, "credit_target before any grant", most.clone(), demand.get());
                }
            }
            Ok(())
        }),
    rule("rccc/credit-request-ccc-id", "A CREDIT_REQUEST has the ccc_id of the requests")
        .checks(&[RCCC_COUNT_001])
        .measure(|t| {
            let flow = exhausted(t)?;
            let named = |seen: &RxPacket| match seen.uet().pds? {
                uet_wire::pds::Pds::RequestCc(header) => Some(header.ccc_id()),
                _ => None,
            };
            let within = t.grace();
            let asked =
                t.wait(within, |seen| flow.target.control(seen, CtlType::CREDIT_REQUEST)?.credit_target())?;
            let Some((_, (ccc_id, _))) = asked else {
                return skip("the device asks for credit by its requests alone");
            };
            t.check(RCCC_COUNT_001, "ccc_id", named(&flow.target.packet(0)?.seen), Some(ccc_id));
            Ok(())
        }),
    rule("rccc/read-data-lost", "A source gets credit to retransmit a read after NACK ACK_WITH_DATA")
        .checks(&[PDS_NACK_015])
        .needs(&[READ, RCCC])
        .run(|t| {
            // Bytes that have arrived are no demand. They are again when they have to be sent again.
            t.congestion_or_both("rccc")?;
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
            t.post(post(PostKind::Read, peer, 8))?;
            target.collect(t, 2)?;
            t.settle()?;
            // A longer packet uses up the rest of its credit.
            t.auto_credit = false;
            t.post(post(PostKind::Write, peer, t.mtu()))?;
            target.watch(t, t.grace())?;
            // The ACK with the data is lost; a later one tells that the request has arrived.
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
            let (flow, _) = flow_under(t, "both", Mode::Rud)?;
            carries_demand(t, flow, PdsType::RUD_CC_REQ)
        }),
    rule("rccc/granted-bytes-with-nscc", "With NSCC, a source exceeds granted bytes by at most one packet")
        .checks(&[RCCC_CREDIT_001])
        .needs(&[RCCC, NSCC])
        .measure(|t| {
            // ACKs tell what NSCC wants to know, which makes room in its window; grants come in control
            // packets.
            let (mut flow, _) = flow_under(t, "both", Mode::Rud)?;
            for _ in 0..2 {
                flow.fill(t)?;
                let ack = flow.answer(flow.count(), &Answers::default())?;
                t.send(&flow.target.pdc, &ack)?;
            }
            let (highest, during) = (flow.count(), t.grace().min(t.base_rtt()? * 8));
            flow.target
                .expect_none(t, RCCC_CREDIT_001, "nothing without credit", during, |n| n >= highest)?;
            by_control(t, &flow, 100)?;
            let bytes = spent(t, &mut flow)?;
            check_spent(t, RCCC_CREDIT_001, 100, bytes);
            Ok(())
        }),
    rule("rccc/demand-across-wrap", "A destination grants demand that wraps at 2^24 units")
        .checks(&[RCCC_COUNT_001])
        .over(&[&MODE, &CARRIER, &BEARER])
        .run(|t| {
            let (mut source, bearer) = (CreditSource::open(t)?, t.value(&BEARER));
            source.near_wrap(t, bearer)?;
            for target in [WRAP - 10, WRAP + 20, WRAP + 50] {
                source.expect_at(t, RCCC_COUNT_001, bearer, target)?;
            }
            Ok(())
        }),
    rule("rccc/stale-demand-before-wrap", "Stale demand from before the wrap at 2^24 units gets no credit")
        .checks(&[RCCC_COUNT_002])
        .over(&[&MODE, &CARRIER, &BEARER])
        .run(|t| {
            let (mut source, bearer) = (CreditSource::open(t)?, t.value(&BEARER));
            source.near_wrap(t, bearer)?;
            source.demand_by(t, bearer, WRAP + 40)?;
            if !source.reaches(t, 40, t.patience(t.soon()))? {
                return Err(Stop::Inconclusive("the demand beyond the wrap was not granted".into()));
            }
            let (before, count) = (source.credit, source.grants.len());
            source.demand_by(t, bearer, WRAP - 20)?;
            source.reaches(t, before.get() + 8_000_000, t.soon())?;
            let more = source.credit.since(before).unwrap_or(0);
            let most = beyond(t)?;
            t.at_most(RCCC_COUNT_002, "units granted for demand from before the wrap", most, more);
            let back = source
                .grants
                .iter()
                .skip(count)
                .filter(|(_, credit)| (Units24::default() + *credit).since(before).is_none());
            t.check(RCCC_COUNT_002, "grants behind the one before", 0, back.count());
            source.expect_at(t, RCCC_COUNT_002, bearer, WRAP + 90)
        }),
    rule("rccc/grant-across-wrap", "A grant that wraps at 2^24 units adds its difference from the last one")
        .checks(&[RCCC_COUNT_001, RCCC_COUNT_002])
        .measure(|t| {
            // So much credit that the counter is close to its wrap. Its rest ends when the device starts anew
            // after idleness.
            t.congestion("rccc")?;
            t.slowed()?;
            t.auto_credit = false;
            let peer = t.peer(0)?;
            let target = Target::established(t, peer, Mode::Rud)?;
            let near = WRAP - 100;
            for credit in [8_000_000, 16_000_000, near] {
                let packet = target.pdc.control(CtlType::CREDIT, uet_wire::Psn(0), credit)?;
                t.send(&target.pdc, &packet)?;
            }
            t.settle()?;
            t.pause(t.base_rtt()? * 200)?;
            let packets = (8 * t.bdp()? / t.mtu() as u64).clamp(64, 800) as usize;
            let mut flow = Flow::start_on(t, target, packets)?;
            for _ in 0..2 {
                flow.fill(t)?;
                grant(&flow, t, near)?;
            }
            let before = flow.count();
            flow.fill(t)?;
            require(flow.count() <= before, "the device keeps its credit while it is idle")?;
            by_control(t, &flow, 100)?;
            let bytes = spent(t, &mut flow)?;
            t.is_kept(&flow.target.pdc)?;
            check_spent(t, RCCC_COUNT_001, 200, bytes);
            // It was overtaken by the one beyond the wrap.
            let (highest, during) = (flow.count(), t.grace().min(t.base_rtt()? * 8));
            by_control(t, &flow, WRAP - 50)?;
            flow.target
                .expect_none(t, RCCC_COUNT_002, "no new packet for old credit", during, |n| n >= highest)?;
            by_control(t, &flow, 200)?;
            flow.target.expect_new(t, RCCC_COUNT_001, highest)?;
            Ok(())
        }),
    rule("rccc/vanished-source", "A source that vanishes with demand does not block grants to others")
        .checks(&[RCCC_GRANT_001])
        .needs(&[RCCC, TWO_ADDRESSES])
        .over(&[&MODE, &CARRIER, &BEARER])
        .run(|t| {
            let (mut gone, some) = (CreditSource::open(t)?, some(t)?);
            let pdc = t.initiate_from(1)?;
            let mut other = CreditSource::on(t, pdc, gone.region.clone(), CCC)?;
            let bearer = t.value(&BEARER);
            gone.demand_by(t, bearer, some * 4)?;
            for n in 1..=6 {
                other.expect_at(t, RCCC_GRANT_001, bearer, some * n)?;
            }
            Ok(())
        }),
    rule("rccc/demand-per-ccc", "A destination counts the demand of each ccc_id separately")
        .checks(&[RCCC_COUNT_001, RCCC_GRANT_001])
        .over(&[&MODE, &CARRIER, &BEARER])
        .run(|t| {
            let (mut first, some, bearer) = (CreditSource::open(t)?, some(t)?, t.value(&BEARER));
            let (pdc, region) = (t.initiate(), first.region.clone());
            let mut second = CreditSource::on(t, pdc, region, CCC ^ 0x55)?;
            first.expect_at(t, RCCC_GRANT_001, bearer, some * 2)?;
            // Less than the first was granted: it is demand all the same.
            second.expect_at(t, RCCC_GRANT_001, bearer, some)?;
            first.expect_at(t, RCCC_GRANT_001, bearer, some * 3)?;
            second.expect_at(t, RCCC_GRANT_001, bearer, some * 2)?;
            let most = some * 2 + beyond(t)?;
            t.at_most(RCCC_COUNT_001, "units granted to the second context", most, second.credit.get());
            Ok(())
        }),
    rule("rccc/lost-grant", "A destination repeats a lost grant on CREDIT_REQUEST")
        .checks(&[RCCC_GRANT_001])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            let (mut source, some) = (CreditSource::open(t)?, some(t)?);
            source.demand(t, some)?;
            if !source.reaches(t, some, t.patience(t.soon()))? {
                return Err(Stop::Inconclusive("the demand was not granted".into()));
            }
            t.forget();
            source.credit = Units24::default();
            source.expect_at(t, RCCC_GRANT_001, Bearer::CreditRequest, some)
        }),
    rule("rccc/demand-until-granted", "A source without credit repeats its demand until it gets a grant")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            // By CREDIT_REQUEST, or by a packet with its demand where it may send one to see whether the
            // destination knows it.
            let mut flow = exhausted(t)?;
            t.settle()?;
            for _ in 0..3 {
                let within = t.later();
                t.expect(RCCC_CREDIT_001, "a packet with the demand", within, |seen| {
                    let asks = flow.target.control(seen, CtlType::CREDIT_REQUEST).is_some();
                    (asks || demand(seen).is_some()).then_some(())
                })?;
                t.settle()?;
            }
            let highest = flow.count();
            by_control(t, &flow, 500)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        }),
    rule("rccc/overdrawn", "A source repays overdrawn credit from later grants")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            // Each grant is for less than a packet: together they pay for all that leaves, but for the last
            // packet.
            let mut flow = exhausted(t)?;
            let (step, mut credit, begun) = (5, 0, flow.bytes());
            for _ in 0..12 {
                credit += step;
                by_control(t, &flow, credit)?;
                let end = t.now() + t.grace() / 4;
                flow.watch_until(t, end)?;
            }
            let full = nominal(t.mtu() + 16 + 44);
            let paid = u64::from(credit) * 256;
            let spent = flow.bytes() - begun;
            t.at_most(RCCC_CREDIT_001, "bytes sent for 12 small grants, less a packet", paid + full, spent);
            t.at_least(
                RCCC_CREDIT_001,
                "bytes sent for 12 small grants",
                paid.saturating_sub(2 * full).min(full),
                spent,
            );
            Ok(())
        }),
    rule("rccc/retransmission-credit", "A retransmission after a NACK needs credit")
        .checks(&[RCCC_CREDIT_001])
        .over(&[&MODE, &CARRIER, &REFUSAL])
        .measure(|t| {
            let mut flow = exhausted(t)?;
            by_control(t, &flow, 100)?;
            let first = flow.count();
            spent(t, &mut flow)?;
            let last = flow.count();
            if last - first < 3 {
                return Err(Stop::Inconclusive("fewer than three packets left for the grant".into()));
            }
            for n in first..last {
                flow.refuse(t, t.value(&REFUSAL), n)?;
            }
            // Not for long: a source that waits in vain may try whether the destination still knows it.
            let (before, during) = (flow.target.got.len(), t.grace().min(t.base_rtt()? * 8));
            let end = t.now() + during;
            flow.watch_until(t, end)?;
            let again = flow.target.got.len() - before;
            t.check(RCCC_CREDIT_001, "packets that leave again without credit", 0, again);
            by_control(t, &flow, 300)?;
            flow.target.expect_again(t, RCCC_CREDIT_001, first, t.later())?;
            let during = t.grace().min(t.base_rtt()? * 8);
            let end = t.now() + during;
            flow.watch_until(t, end)?;
            if t.nack_wait() > during {
                // A source may have started anew while it waited.
                return Ok(());
            }
            let left = (flow.target.got.len() - before) as u64 * nominal(t.mtu() + 16 + 44);
            let most = Bound::from(200 * 256 + nominal(t.mtu() + 16 + 44)).tolerating("a packet");
            t.at_most(RCCC_CREDIT_001, "bytes sent for 200 units, with those that leave again,", most, left);
            Ok(())
        }),
    rule("rccc/message-completes", "A message completes when its demand is granted")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            t.congestion("rccc")?;
            t.auto_credit = false;
            let mut flow = Flow::start(t, Mode::Rud, 60)?;
            flow.fill(t)?;
            for round in 1..=40 {
                if flow.count() == 60 {
                    break;
                }
                grant(&flow, t, 100 * round)?;
                flow.fill(t)?;
            }
            t.check(RCCC_CREDIT_001, "packets that came", 60, flow.count());
            grant(&flow, t, 100 * 40)?;
            t.ends(RCCC_CREDIT_001, flow.operation, Status::Ok)
        }),
];

// ---- The device as destination.

pub(super) const CCC: u8 = 0xa1;

/// The cumulative credit in a packet for this context.
fn granted(seen: &RxPacket, pdc: &Pdc) -> Option<Units24> {
    let by_ack = seen.ack_cc().and_then(|ack| ack.credit());
    let by_control = seen.control(CtlType::CREDIT).and_then(|control| control.credit());
    by_ack.or(by_control).filter(|_| seen.is_for(pdc))
}

/// A context on which the suite has demand.
pub(super) struct CreditSource {
    pdc: Pdc,
    /// Its congestion control context.
    ccc_id: u8,
    pub(super) region: Region,
    next: u32,
    /// The last grant, and all that have come.
    pub(super) credit: Units24,
    grants: Vec<(Duration, u32)>,
}

impl CreditSource {
    pub(super) fn open(t: &mut Test<'_>) -> Result<Self, Stop> {
        t.congestion_or_both("rccc")?;
        t.auto_credit = false;
        let region = t.region(1 << 16)?;
        let pdc = t.initiate();
        Self::on(t, pdc, region, CCC)
    }

    /// Opens a context by a request without demand.
    pub(super) fn on(t: &mut Test<'_>, mut pdc: Pdc, region: Region, ccc_id: u8) -> Result<Self, Stop> {
        let first = pdc.request(0).write(&region, 0, &[0])?;
        t.send(&pdc, &with_demand(&first, ccc_id, 0)?)?;
        let (_, ack) = t.need("an open context", t.soon(), |seen| seen.acknowledges(&pdc, pdc.psn(0)))?;
        pdc.remote = Some(ack.spdcid());
        t.forget();
        Ok(CreditSource { pdc, ccc_id, region, next: 1, credit: Units24::default(), grants: Vec::new() })
    }

    /// The next request, with this demand.
    fn request(&mut self, target: u32) -> Result<UetBuf, Stop> {
        let request = self.pdc.request(self.next).write(&self.region, 0, &[1; 64])?;
        self.next += 1;
        with_demand(&request, self.ccc_id, target)
    }

    fn demand(&mut self, t: &mut Test<'_>, target: u32) -> Outcome {
        let packet = self.request(target)?;
        t.send(&self.pdc, &packet)
    }

    /// Demands credit up to here by what the rule says, modulo 2^24.
    pub(super) fn demand_by(&mut self, t: &mut Test<'_>, bearer: Bearer, target: u32) -> Outcome {
        let target = target % WRAP;
        match bearer {
            Bearer::Request => self.demand(t, target),
            Bearer::CreditRequest => {
                let payload = u32::from(self.ccc_id) << 24 | target;
                let ask = self.pdc.control(CtlType::CREDIT_REQUEST, uet_wire::Psn(0), payload)?;
                t.send(&self.pdc, &ask)
            }
            Bearer::Trimmed => {
                let packet = self.request(target)?;
                self.next -= 1;
                let wire = self.pdc.trimmed(&packet, Trimmed::Fabric, 64);
                t.send_wire(&wire)
            }
        }
    }

    /// Takes in grants until one is serially at this or beyond it; whether one was.
    pub(super) fn reaches(&mut self, t: &mut Test<'_>, wanted: u32, within: Duration) -> Result<bool, Stop> {
        let wanted = Units24::default() + wanted;
        let (until, most) = (t.now() + within, self.grants.len() + MANY);
        while self.credit.since(wanted).is_none() && self.grants.len() < most {
            let left = until.saturating_sub(t.now());
            let Some((seen, ())) = t.wait(left, |seen| granted(seen, &self.pdc).map(drop))? else { break };
            self.note(&seen);
        }
        Ok(self.credit.since(wanted).is_some())
    }

    /// Expects a grant that is serially at this or beyond it.
    fn expect_at(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        bearer: Bearer,
        wanted: u32,
    ) -> Outcome {
        self.demand_by(t, bearer, wanted)?;
        let reached = self.reaches(t, wanted % WRAP, t.patience(t.soon()))?;
        let last = self.credit.get();
        let statement = format!("a cumulative credit of {} units or more", wanted % WRAP);
        t.holds(requirement, &statement, reached, format_args!("{last} units"));
        Ok(())
    }

    /// Demands more and more until the counters are close to their wrap. A device that grants at the pace of
    /// a slow link does not get there in time.
    fn near_wrap(&mut self, t: &mut Test<'_>, bearer: Bearer) -> Outcome {
        for target in [5_000_000, 10_000_000, 15_000_000, WRAP - 60] {
            self.demand_by(t, bearer, target)?;
            if !self.reaches(t, target, t.patience(t.soon()))? {
                return skip(format!(
                    "the device has granted {} units, not {target}: it takes too long to the wrap",
                    self.credit.get()
                ));
            }
        }
        Ok(())
    }

    fn note(&mut self, seen: &RxPacket) {
        if let Some(credit) = granted(seen, &self.pdc) {
            self.grants.push((seen.at, credit.get()));
            if credit.since(self.credit).is_some() {
                self.credit = credit;
            }
        }
    }

    /// Takes in what is granted until it is as much, or for so long.
    fn take(&mut self, t: &mut Test<'_>, wanted: u32, within: Duration) -> Outcome {
        let until = t.now() + within;
        while self.credit.get() < wanted {
            let left = until.saturating_sub(t.now());
            let Some((seen, ())) = t.wait(left, |seen| granted(seen, &self.pdc).map(drop))? else { break };
            self.note(&seen);
        }
        Ok(())
    }

    /// Expects that as much is granted as was asked for.
    fn expect(&mut self, t: &mut Test<'_>, requirement: &Requirement, wanted: u32) -> Outcome {
        let within = t.soon();
        self.take(t, wanted, within)?;
        t.at_least(requirement, "the cumulative credit, in units of 256 bytes,", wanted, self.credit.get());
        Ok(())
    }
}

/// How far beyond the demand a destination may grant: what the network holds, and a good deal more.
fn beyond(t: &Test<'_>) -> Result<u32, Stop> {
    Ok((t.bdp()? * 4 / 256) as u32)
}

/// Demand that a source may have at a time: no more than the network holds.
pub(super) fn some(t: &Test<'_>) -> Result<u32, Stop> {
    Ok((t.bdp()? / 256).clamp(32, 250) as u32)
}

/// Demand on top of demand, each when the one before is granted.
fn rounds(t: &mut Test<'_>, source: &mut CreditSource, count: u32) -> Outcome {
    let some = some(t)?;
    for n in 1..=count {
        source.demand(t, some * n)?;
        source.expect(t, RCCC_COUNT_001, some * n)?;
    }
    Ok(())
}

// ---- The device as source.

/// A long write on a device that runs RCCC, and what the network holds.
fn flow(t: &mut Test<'_>, mode: Mode) -> Result<(Flow, u64), Stop> {
    flow_under(t, "rccc", mode)
}

fn flow_under(t: &mut Test<'_>, congestion: &str, mode: Mode) -> Result<(Flow, u64), Stop> {
    t.congestion(congestion)?;
    t.slowed()?;
    t.auto_credit = false;
    let holds = t.bdp()?;
    let packets = (8 * holds / t.mtu() as u64).clamp(64, 800) as usize;
    Ok((Flow::start(t, mode, packets)?, holds))
}

/// An ACK of all that has come, with this cumulative credit.
fn grant(flow: &Flow, t: &mut Test<'_>, credit: u32) -> Outcome {
    let mut packet = flow.answer(flow.count(), &Answers::default())?;
    if let Some(PdsBuf::AckCc(header)) = packet.pds {
        let header = header.edit().cc_type(CcType::CREDIT);
        let header = header.credit(Units24::default() + credit).ooo_count(0);
        packet.pds = Some(header.done()?.into());
    }
    t.send(&flow.target.pdc, &packet)
}

/// The demand that a request carries.
fn demand(seen: &RxPacket) -> Option<Units24> {
    match seen.uet().pds? {
        uet_wire::pds::Pds::RequestCc(header) => Some(header.credit_target()),
        _ => None,
    }
}

fn check_kind(t: &mut Test<'_>, mode: Mode, expected: PdsType) -> Outcome {
    let (flow, _) = flow(t, mode)?;
    carries_demand(t, flow, expected)
}

fn carries_demand(t: &mut Test<'_>, mut flow: Flow, expected: PdsType) -> Outcome {
    flow.fill(t)?;
    let first = flow.target.got[0].request.prologue().kind();
    let kinds = flow.target.got.iter().filter(|got| demand(&got.seen).is_none()).count();
    t.check(RCCC_TYPE_001, "pds.type", expected, first);
    t.check(RCCC_TYPE_001, "requests without demand", 0, kinds);
    Ok(())
}

/// All that has come is acknowledged without a grant: the credit is at an end.
pub(super) fn exhausted(t: &mut Test<'_>) -> Result<Flow, Stop> {
    let (mut flow, _) = flow(t, Mode::Rud)?;
    flow.fill(t)?;
    grant(&flow, t, 0)?;
    flow.fill(t)?;
    grant(&flow, t, 0)?;
    Ok(flow)
}

/// Lets what is granted leave; how many bytes more have come then.
fn spent(t: &mut Test<'_>, flow: &mut Flow) -> Result<u64, Stop> {
    let before = flow.bytes();
    flow.fill(t)?;
    Ok(flow.bytes() - before)
}

/// Checks that a grant of so many units was used, and not exceeded.
fn check_spent(t: &mut Test<'_>, requirement: &Requirement, units: u32, bytes: u64) {
    let full = nominal(t.mtu() + 16 + 44);
    let credit = u64::from(units) * 256;
    let most = Bound::from(credit + full).tolerating("a packet");
    t.at_most(requirement, "bytes sent for the grant", most, bytes);
    t.at_least(requirement, "bytes sent for the grant", 1, bytes);
}

pub(super) fn by_control(t: &mut Test<'_>, flow: &Flow, credit: u32) -> Outcome {
    let packet = flow.target.pdc.control(CtlType::CREDIT, uet_wire::Psn(0), credit)?;
    t.send(&flow.target.pdc, &packet)
}
