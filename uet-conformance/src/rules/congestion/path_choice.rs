//! The entropy values by which a source selects paths (sections 3.6.10 and 3.6.16).

use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rule;
use crate::target::RxRequest;
use std::collections::{BTreeMap, BTreeSet};
use uet_wire::pds::Nack;

/// The trouble of packets on a bad path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Marked,
    Trimmed,
    Lost,
    /// The switch before the destination trims it.
    TrimmedAtLastHop,
    /// The destination has no room for it.
    Refused,
    /// A switch has marked it, and the destination has no room for it.
    MarkedAndRefused,
}

const TROUBLE: Axis<Trouble> = axis("packets").values(&[
    ("marked", Trouble::Marked),
    ("trimmed", Trouble::Trimmed),
    ("lost", Trouble::Lost),
    ("refused", Trouble::Refused),
    ("trimmed-last-hop", Trouble::TrimmedAtLastHop),
    ("marked-and-refused", Trouble::MarkedAndRefused),
]);

/// The number of packets that leave before an ACK.
const SPRAYED: u32 = 64;

/// The number of packets over several rounds of the entropy values.
const ROUNDS: usize = 900;

const FEW_VALUES: &str = "the device has few entropy values";

pub(super) const RULES: &[Rule] = &[
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
    rule(
        "path/rod-go-back",
        "A busy ROD context has one path for retransmissions and the new packets between them",
    )
    .checks(&[PDS_ROD_005, CC_PATH_003])
    .needs(&[ROD, SEE_ENTROPY])
    .over(&[&CARRIER, &START])
    .run(|t| {
        t.try_configure("congestion", "none")?;
        let peer = t.peer(0)?;
        let parts = |t: &Test<'_>| Post { mode: Mode::Rod, ..post(PostKind::Write, peer, 4 * t.mtu()) };
        let mut target =
            Target::established_by(t, Post { mode: Mode::Rod, ..post(PostKind::Write, peer, 64) })?;
        // The context is never idle, and everything comes within a few round trips.
        for round in 0..3 {
            let first = 1 + 4 * round;
            t.post(parts(t))?;
            target.collect(t, first + 4)?;
            target.refuse(t, NackCode::ROD_OOO, first)?;
            while target.times(first + 3) < 2 && target.next(t, t.later())?.is_some() {}
            if target.times(first + 3) < 2 {
                return Err(Stop::Inconclusive("the device retransmits less".into()));
            }
            target.ack(t, first + 2)?;
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
    rule("path/oblivious-rounds", "Oblivious spraying uses each entropy value once before any a second time")
        .checks(&[CC_PATH_002])
        .needs(&[RUD, PATHS, SEE_ENTROPY])
        .over(&[&CARRIER, &START])
        .run(|t| {
            choose_paths(t, "oblivious")?;
            t.congestion("none")?;
            t.try_configure("payload_mtu", 1024)?;
            let mut flow = Flow::start(t, Mode::Rud, ROUNDS)?;
            let answers = Answers { delay: t.round_trips(1)?, ..Answers::default() };
            let until = t.now() + answers.delay * 100;
            while (flow.count() as usize) < ROUNDS && t.now() < until {
                flow.run(t, answers.delay, &answers)?;
            }
            let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
            flow.target.got.iter().for_each(|got| *counts.entry(got.seen.wire.entropy).or_default() += 1);
            require(counts.len() >= 16, FEW_VALUES)?;
            // A value occurs once in each whole round, and once in the rounds that begin and end the flow. A
            // tenth of the packets may be lost.
            let rounds = (flow.target.got.len() * 11).div_ceil(10 * counts.len());
            let most = counts.values().max().copied().unwrap_or(0);
            t.at_most(CC_PATH_002, "packets with the most frequent entropy value", rounds + 1, most);
            // In order of their PSNs, and if no other packet left, a round is a run of all values.
            let packets = || flow.target.got.iter();
            let order: BTreeMap<u32, u16> =
                packets().map(|got| (flow.target.index(&got.request), got.seen.wire.entropy)).collect();
            let alone = order.len() == packets().count() && flow.target.highest() as usize + 1 == order.len();
            let rounds = (order.len() + 1).saturating_sub(counts.len()) / counts.len();
            if alone && rounds > 0 {
                let values: Vec<u16> = order.into_values().collect();
                let runs = values.windows(counts.len());
                let whole = runs.filter(|run| run.iter().collect::<BTreeSet<_>>().len() == run.len()).count();
                // A device may begin a new order within a round, now and then.
                let least = Bound::from((rounds - 1).max(1)).tolerating("a round");
                t.at_least(CC_PATH_002, "runs of all entropy values without a repetition", least, whole);
            }
            Ok(())
        }),
    rule("path/aware", "A path-aware source rests congested entropy values, and no others, for a round trip")
        .checks(&[CC_PATH_002])
        .needs(&[RUD, PATHS, SEE_ENTROPY])
        .over(&[&TROUBLE, &CARRIER])
        .run(|t| {
            // A mark, a trim in the fabric and a loss report a congested path, and so does a marked NACK. An
            // unmarked NACK of another kind does not. Without a window, enough packets leave at once to use
            // each value again.
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
                    Trouble::TrimmedAtLastHop => target.refuse(t, NackCode::TRIMMED_LASTHOP, n)?,
                    Trouble::Refused => target.refuse(t, NackCode::NO_RESOURCE, n)?,
                    Trouble::MarkedAndRefused => refuse_marked(t, &target, n)?,
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
            if matches!(fate, Trouble::Refused | Trouble::TrimmedAtLastHop) {
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
    let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
    let written = t.post(post(PostKind::Write, peer, SPRAYED as usize * t.mtu()))?;
    target.collect(t, SPRAYED + 1)?;
    Ok((target, written))
}

/// Refuses the `n`-th packet, which has arrived with a mark, for lack of room.
fn refuse_marked(t: &mut Test<'_>, target: &Target, n: u32) -> Outcome {
    let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
    let nack = Nack::build(NackCode::NO_RESOURCE).m(true).nack_psn(target.psn(n));
    let nack = nack.spdcid(target.pdc.local).dpdcid(remote).done()?;
    t.send(&target.pdc, &UetBuf::new(nack))
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
