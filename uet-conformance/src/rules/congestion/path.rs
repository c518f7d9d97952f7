//! Entropy values, which select the path of a packet (sections 3.6.10 and 3.6.16).

use crate::Trimmed;
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::target::RxRequest;
use std::collections::{BTreeMap, BTreeSet};

/// The state of the request that an ACK_REQUEST names.
#[derive(Clone, Copy, Debug)]
enum Named {
    Missing,
    /// The message of the request is incomplete.
    Incomplete,
    AboveGap,
    BelowGap,
}

const NAMED: Axis<Named> = axis("request").values(&[
    ("missing", Named::Missing),
    ("incomplete", Named::Incomplete),
    ("above-gap", Named::AboveGap),
    ("below-gap", Named::BelowGap),
]);

/// The reason why an ACK leaves late.
#[derive(Clone, Copy, Debug)]
enum Late {
    /// Nobody requests it at once.
    AckDelay,
    /// The message is incomplete, so its response is not ready.
    Response,
}

const LATE: Axis<Late> = axis("late").values(&[("ack", Late::AckDelay), ("response", Late::Response)]);

/// The trouble of packets on a bad path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Marked,
    Trimmed,
    Lost,
    /// The destination has no room for it.
    Refused,
}

const TROUBLE: Axis<Trouble> = axis("packets").values(&[
    ("marked", Trouble::Marked),
    ("trimmed", Trouble::Trimmed),
    ("lost", Trouble::Lost),
    ("refused", Trouble::Refused),
]);

/// The number of packets that leave before an ACK.
const SPRAYED: u32 = 64;

const FEW_VALUES: &str = "the device has few entropy values";

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[SET_ENTROPY, SEE_ENTROPY]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("path/ack", "An ACK has the entropy value of its packet").checks(&[CC_PATH_001]).run(|t| {
        let (mut pdc, region) = t.open()?;
        for (n, entropy) in [(1, 0xc111), (2, 0xc222), (3, 0xffff), (4, 0xc111)] {
            pdc.entropy = entropy;
            t.request(&pdc, pdc.request(n).write(&region, 0, &[1; 16])?)?;
            let (seen, _) = t.expect_answer(CC_PATH_001, &pdc, pdc.psn(n))?;
            t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
        }
        Ok(())
    }),
    rule("path/retransmission", "The ACK of a retransmission has the entropy value of the retransmission")
        .checks(&[CC_PATH_001])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            let request = pdc.request(1).write(&region, 0, &[1; 16])?;
            pdc.entropy = 0xc111;
            t.request(&pdc, request.clone())?;
            t.need_ack(&pdc, pdc.psn(1))?;
            pdc.entropy = 0xc222;
            t.request(&pdc, request.retx())?;
            let (seen, _) = t.expect_answer(CC_PATH_001, &pdc, pdc.psn(1))?;
            t.check(CC_PATH_001, "entropy", 0xc222, seen.wire.entropy);
            Ok(())
        }),
    rule("path/delayed-ack", "A delayed ACK has the entropy value of the packet that it names")
        .checks(&[CC_PATH_001])
        .over(&[&LATE, &MODE, &CARRIER, &START])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            let within = t.soon() * 50;
            if let Late::Response = t.value(&LATE) {
                // The last packet of a message is answered once the first one has arrived too.
                require(!pdc.rod, "an ordered context accepts no last packet before the first")?;
                let mtu = t.mtu();
                for (n, half, entropy) in [(2, 1, 0xc111), (1, 0, 0xc222)] {
                    pdc.entropy = entropy;
                    t.request(&pdc, pdc.request(n).half(&region, mtu, half)?)?;
                }
                let (seen, _) =
                    t.need("an ACK of the last packet", within, |seen| seen.answers(&pdc, pdc.psn(2)))?;
                t.check(CC_PATH_001, "entropy", 0xc111, seen.wire.entropy);
                return Ok(());
            }
            for (n, entropy) in [(1, 0xc111), (2, 0xc222)] {
                pdc.entropy = entropy;
                t.request(&pdc, pdc.request(n).quiet().write(&region, 0, &[1; 16])?)?;
                // `ack/bounded` checks that the device sends an ACK at all.
                let (seen, _) = t.need("an ACK of a request that asks for none", within, |seen| {
                    seen.acknowledges(&pdc, pdc.psn(n))
                })?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
    rule("path/control-packet", "The ACK of a control packet has the entropy value of that packet")
        .checks(&[CC_PATH_001])
        .run(|t| {
            t.need_noop()?;
            let (mut pdc, _) = t.open()?;
            for (n, entropy) in [(1, 0xc111), (2, 0xc222)] {
                pdc.entropy = entropy;
                t.send(&pdc, &pdc.numbered(CtlType::NOOP, n)?)?;
                let (seen, _) = t.expect_answer(CC_PATH_001, &pdc, pdc.psn(n))?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
    rule("path/nack", "A NACK has the entropy value of the packet that it refuses")
        .checks(&[CC_PATH_001])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            let outside = t.beyond(&pdc)? + 10;
            for (n, entropy) in [(outside, 0xc111), (outside + 1, 0xc222)] {
                pdc.entropy = entropy;
                t.request(&pdc, pdc.request(n).write(&region, 0, &[1; 16])?)?;
                let (seen, _) = t.expect_nack(CC_PATH_001, &pdc, pdc.psn(n), &[NackCode::PSN_OOR_WINDOW])?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
    rule("path/nack-without-context", "A NACK without a context has the entropy value of the refused packet")
        .checks(&[CC_PATH_001])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            let open = pdc.remote.map_or(0, |id| id.0);
            pdc.remote = Some(PdcId(open ^ 0x3fff));
            pdc.entropy = 0xc111;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
            let (seen, _) = t.expect_nack(CC_PATH_001, &pdc, pdc.psn(1), &[NackCode::INV_DPDCID])?;
            t.check(CC_PATH_001, "entropy", 0xc111, seen.wire.entropy);
            Ok(())
        }),
    rule("path/ack-request", "A reply to ACK_REQUEST has its entropy value or that of the named request")
        .checks(&[CC_PATH_001])
        .needs(&[RUD, SET_ENTROPY, SEE_ENTROPY])
        .over(&[&NAMED, &CARRIER])
        .run(|t| {
            let named = t.value(&NAMED);
            let (mut pdc, region) = t.open()?;
            let n = if matches!(named, Named::BelowGap) { 1 } else { 2 };
            pdc.entropy = 0xc111;
            match named {
                Named::Missing => {}
                // The first half is missing.
                Named::Incomplete => t.request(&pdc, pdc.request(n).quiet().half(&region, t.mtu(), 1)?)?,
                Named::AboveGap | Named::BelowGap => {
                    t.request(&pdc, pdc.request(n).write(&region, 0, &[1; 16])?)?;
                    t.need_ack(&pdc, pdc.psn(n))?;
                }
            }
            t.pause(t.soon())?;
            t.forget();
            pdc.entropy = 0xc222;
            t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(n), 0)?)?;
            let replies = |seen: &RxPacket| {
                let about =
                    seen.answers(&pdc, pdc.psn(n)).is_some() || seen.refuses(&pdc, pdc.psn(n)).is_some();
                about.then_some(())
            };
            let (seen, ()) = t.need("a reply to ACK_REQUEST", t.soon(), replies)?;
            match named {
                Named::Missing => t.check(CC_PATH_001, "entropy", 0xc222, seen.wire.entropy),
                _ => t.one_of(CC_PATH_001, "entropy", &[0xc111, 0xc222], seen.wire.entropy),
            }
            Ok(())
        }),
    rule("path/trimmed", "The NACK of a trimmed packet has the entropy value of that packet")
        .checks(&[CC_PATH_001])
        .needs(&[SET_ENTROPY, SEE_ENTROPY, TRIM])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            pdc.entropy = 0xc111;
            let packet = pdc.request(1).write(&region, 0, &[1; 1000])?.build()?;
            t.send_wire(&pdc.trimmed(&packet, Trimmed::Fabric, 64))?;
            let (seen, _) = t.expect_nack(CC_PATH_001, &pdc, pdc.psn(1), &[NackCode::TRIMMED])?;
            t.check(CC_PATH_001, "entropy", 0xc111, seen.wire.entropy);
            Ok(())
        }),
    rule("path/rod", "A ROD context keeps its entropy value")
        .checks(&[PDS_ROD_005, CC_PATH_003])
        .needs(&[ROD, SEE_ENTROPY])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let length = 20 * t.mtu();
            t.post(Post { mode: Mode::Rod, ..post(PostKind::Write, peer, length) })?;
            let mut target = Target::accept(t)?;
            target.serve(t, 20, |target, packet| Some(target.acking(target.index(&packet.request))))?;
            check_changes(t, PDS_ROD_005, &target)
        }),
    rule("path/rod-retransmission", "A ROD context keeps its entropy value for retransmissions")
        .checks(&[PDS_ROD_005, CC_PATH_003])
        .needs(&[ROD, SEE_ENTROPY])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let length = 20 * t.mtu();
            t.post(Post { mode: Mode::Rod, ..post(PostKind::Write, peer, length) })?;
            let mut target = Target::accept(t)?;
            target.collect(t, 4)?;
            target.ack(t, 1)?;
            target.refuse(t, NackCode::ROD_OOO, 2)?;
            target.watch(t, t.later())?;
            let retransmitted = target.got.iter().filter(|got| got.request.retx()).count();
            if retransmitted == 0 {
                return Err(Stop::Inconclusive("the device retransmitted nothing".into()));
            }
            check_changes(t, PDS_ROD_005, &target)
        }),
    rule("path/rod-read-data", "The return data of a ROD context keeps its entropy value")
        .checks(&[PDS_ROD_005])
        .needs(&[ROD, READ, SEE_ENTROPY])
        .over(&[&START])
        .run(|t| {
            let mtu = t.mtu();
            let (region, _) = t.patterned(12 * mtu as u64)?;
            let mut session = t.ordered_session();
            session.ask_all(t, &Message::read(&region, 0, 12 * mtu as u32).parts(mtu)?)?;
            let data = session.data(t, PDS_ROD_005, 12 * mtu)?;
            let of_requests = data.iter().filter(|piece| !piece.in_ack);
            let mut values: Vec<u16> = of_requests.map(|piece| piece.seen.wire.entropy).collect();
            values.dedup();
            t.at_most(PDS_ROD_005, "entropy values of the return data, one after the other", 2, values.len());
            Ok(())
        }),
    rule("path/rod-congestion", "A congested ROD context rarely changes its entropy value")
        .checks(&[CC_PATH_003])
        .needs(&[ROD, SEE_ENTROPY])
        .over(&[&CARRIER, &START])
        .measure(|t| {
            let mut flow = Flow::start(t, Mode::Rod, 200)?;
            let answers = Answers { delay: t.round_trips(2)?, marked: true, ..Answers::default() };
            flow.run(t, answers.delay * 20, &answers)?;
            check_changes(t, CC_PATH_003, &flow.target)
        }),
    rule("path/spread", "A RUD source uses several entropy values, each for at most half of its packets")
        .checks(&[CC_PATH_002])
        .needs(&[RUD, PATHS, SEE_ENTROPY])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let mut flow = Flow::start(t, Mode::Rud, 200)?;
            let answers = Answers { delay: t.round_trips(1)?, ..Answers::default() };
            let until = t.now() + answers.delay * 60;
            while flow.count() < 200 && t.now() < until {
                flow.run(t, answers.delay, &answers)?;
            }
            let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
            flow.target.got.iter().for_each(|got| *counts.entry(got.seen.wire.entropy).or_default() += 1);
            let most = counts.values().copied().max().unwrap_or(0);
            t.at_least(CC_PATH_002, "the number of entropy values", 2, counts.len());
            t.at_most(CC_PATH_002, "packets with the same entropy value", flow.target.got.len() / 2, most);
            Ok(())
        }),
    rule("path/oblivious", "Oblivious entropy values have no pattern, and none repeats in the next packet")
        .checks(&[CC_PATH_002])
        .needs(&[RUD, PATHS, SEE_ENTROPY])
        .over(&[&CARRIER])
        .run(|t| {
            // Each value comes once in a pseudo-random order, and retransmissions take part in it.
            choose_paths(t, "oblivious")?;
            let (mut target, _) = spray(t)?;
            for n in (1..=SPRAYED).step_by(8) {
                target.refuse(t, NackCode::NO_RESOURCE, n)?;
            }
            let within = t.nack_wait() * 2 + t.grace();
            target.watch(t, within)?;
            let values = entropy_values(&target.got);
            require(values.iter().collect::<BTreeSet<_>>().len() >= 16, FEW_VALUES)?;
            let mut steps: BTreeMap<u16, usize> = BTreeMap::new();
            for pair in values.windows(2) {
                *steps.entry(pair[1].wrapping_sub(pair[0])).or_default() += 1;
            }
            let repeats = steps.get(&0).copied().unwrap_or(0);
            let most = Bound::from(values.len() / 16).tolerating("a sixteenth");
            t.at_most(CC_PATH_002, "packets with the entropy value of the packet before", most, repeats);
            let common = steps.values().copied().max().unwrap_or(0);
            let most = Bound::from(values.len() / 2).tolerating("a half");
            t.at_most(CC_PATH_002, "packets with the same step from the value before", most, common);
            Ok(())
        }),
    rule("path/aware", "A path-aware source rests congested entropy values, and no others, for a round trip")
        .checks(&[CC_PATH_002])
        .needs(&[RUD, PATHS, SEE_ENTROPY])
        .over(&[&TROUBLE, &CARRIER])
        .run(|t| {
            // A mark, a trim in the fabric and a loss report a congested path. An unmarked NACK of another
            // kind does not. Without a window, enough packets to use each value again leave at once.
            choose_paths(t, "bitmap")?;
            t.congestion("none")?;
            t.keeps_base_rtt()?;
            let ((mut target, written), fate) = (spray(t)?, t.value(&TROUBLE));
            let mut known = Vec::new();
            for value in entropy_values(&target.got[1..]) {
                if !known.contains(&value) {
                    known.push(value);
                }
            }
            require(known.len() >= 16, FEW_VALUES)?;
            // Values that are used one after the other have different fates.
            let congested: Vec<u16> = known.iter().copied().step_by(8).collect();
            let others: Vec<u16> = known.into_iter().filter(|value| !congested.contains(value)).collect();
            let is_bad = |n: u32| target.of(n).any(|got| congested.contains(&got.seen.wire.entropy));
            let bad: Vec<u32> = (1..=SPRAYED).filter(|n| is_bad(*n)).collect();
            for n in 1..=SPRAYED {
                let is_bad = bad.contains(&n);
                match fate {
                    Trouble::Marked => target.answer(t, AckBuilder { marked: is_bad, ..target.acking(n) })?,
                    _ if !is_bad => target.name(t, n, bad[0].min(n + 1))?,
                    Trouble::Trimmed => target.refuse(t, NackCode::TRIMMED, n)?,
                    Trouble::Refused => target.refuse(t, NackCode::NO_RESOURCE, n)?,
                    Trouble::Lost => {}
                }
            }
            // The completion or the retransmissions show that the device knows the fate of all packets.
            let within = t.patience(t.later());
            if fate == Trouble::Marked {
                t.completion(written, within)?;
            }
            for n in bad.into_iter().filter(|_| fate != Trouble::Marked) {
                while target.times(n) < 2 && target.next(t, within)?.is_some() {}
            }
            let (begun, during) = (target.got.len(), t.base_rtt()?);
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 448 * t.mtu()))?;
            target.watch(t, during)?;
            let later = entropy_values(&target.got[begun..]);
            let uses = |values: &[u16]| later.iter().filter(|value| values.contains(value)).count();
            let (seen, others) = (uses(&congested), uses(&others) * congested.len() / others.len());
            require(others * 4 >= congested.len() * 3, "too few packets leave within a round trip")?;
            let what = "packets with entropy values of such packets, compared with as many other values";
            if fate == Trouble::Refused {
                t.at_least(CC_PATH_002, what, Bound::from(others / 2).tolerating("a half"), seen);
            } else {
                t.at_most(CC_PATH_002, what, Bound::from(others * 3 / 4).tolerating("three quarters"), seen);
            }
            Ok(())
        }),
];

/// Selects this mode of path selection, unless the device has it already.
fn choose_paths(t: &mut Test<'_>, mode: &str) -> Outcome {
    match t.word("paths") {
        Some(chosen) if chosen == mode => Ok(()),
        _ => t.configure("paths", mode),
    }
}

/// Has the device send small packets on an established context, from PSN 1 on. None is acknowledged.
fn spray(t: &mut Test<'_>) -> Result<(Target, Operated), Stop> {
    t.try_configure("payload_mtu", 1024)?;
    let peer = t.peer(0)?;
    let mut target = Target::established(t, peer, Mode::Rud)?;
    let written = t.post(post(PostKind::Write, peer, SPRAYED as usize * t.mtu()))?;
    target.collect(t, SPRAYED + 1)?;
    Ok((target, written))
}

/// Returns the entropy values of these packets.
fn entropy_values(packets: &[RxRequest]) -> Vec<u16> {
    packets.iter().map(|got| got.seen.wire.entropy).collect()
}

/// Checks that a busy context keeps its entropy value. It may change it once per t_reroute, which is ten
/// round trips.
fn check_changes(t: &mut Test<'_>, requirement: &Requirement, target: &Target) -> Outcome {
    let pairs = target.got.windows(2);
    let changed = pairs.filter(|pair| pair[0].seen.wire.entropy != pair[1].seen.wire.entropy);
    let changes: Vec<Duration> = changed.map(|pair| pair[1].seen.at).collect();
    // Half of that time may be lost between device and suite.
    let least = t.base_rtt()? * 5;
    let early = changes.windows(2).filter(|pair| pair[1] - pair[0] < least).count();
    t.check(requirement, "changes of the path soon after the last one", 0, early);
    let at = |packet: Option<&RxRequest>| packet.map_or(Duration::ZERO, |packet| packet.seen.at);
    let span = at(target.got.last()).saturating_sub(at(target.got.first()));
    let most = 1 + (span.as_nanos() / least.as_nanos().max(1)) as usize;
    let most = Bound::from(most).from_parameter("10 times base_rtt").tolerating("a factor of 2");
    t.at_most(CC_PATH_003, "changes of the path of a context that is not idle", most, changes.len());
    Ok(())
}
