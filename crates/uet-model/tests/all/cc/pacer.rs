//! RCCC at the destination: the credit pacer.

use core::time::Duration;
use std::collections::BTreeMap;
use uet_model::cc::{CreditPacer, CreditSource, Grant, NetworkParams, PacerParams};
use uet_model::{PdcHandle, Time};
use uet_wire::Units24;

const VIA: PdcHandle = PdcHandle { pdcid: 1, generation: 0 };
/// 64 units at 99 % of 100 Gb/s take 1,323.96 ns.
const TICK: f64 = 64.0 * 256.0 * 8.0 / 99.0;
/// The largest demand of a source, 112,500 bytes, in units.
const MOST: u32 = 440;

/// Parameters without the measures for sources that start together. [`together`] tests those.
fn params() -> PacerParams {
    PacerParams {
        hold: Duration::ZERO,
        stagger: false,
        ..PacerParams::new(&NetworkParams::default()).unwrap()
    }
}

fn pacer(change: impl FnOnce(&mut PacerParams)) -> CreditPacer {
    let mut params = params();
    change(&mut params);
    CreditPacer::new(params).unwrap()
}

fn source(ccc_id: u8) -> CreditSource {
    CreditSource { address: [10, 0, 0, 1].into(), ccc_id, class: 0 }
}

fn units(units: u32) -> Units24 {
    Units24::new(units).unwrap()
}

fn demand(pacer: &mut CreditPacer, now: u64, from: u8, target: u32) -> bool {
    pacer.demand(Time(now), source(from), VIA, units(target))
}

/// Returns the cumulative grant of each source, by all grants that are due now.
fn due(pacer: &mut CreditPacer, now: u64) -> Vec<(u8, u32)> {
    core::iter::from_fn(|| pacer.poll_grant(Time(now)))
        .take(1_000)
        .map(|grant| (grant.source.ccc_id, grant.credit.get()))
        .collect()
}

/// Returns all grants until `end`, with their times.
fn run(pacer: &mut CreditPacer, end: u64) -> Vec<(u64, u8, u32)> {
    let mut grants = Vec::new();
    while let Some(now) = pacer.timeout().filter(|now| now.0 < end) {
        assert!(grants.len() < 10_000, "no end");
        for (from, credit) in due(pacer, now.0) {
            grants.push((now.0, from, credit));
        }
    }
    grants
}

#[test]
fn idle_pacer_grants_at_once() {
    let mut pacer = pacer(|_| {});
    assert_eq!(pacer.timeout(), None);
    assert!(demand(&mut pacer, 50_000, 1, 200));
    assert_eq!(pacer.timeout(), Some(Time(50_000)));
    assert_eq!(due(&mut pacer, 50_000), [(1, 64)]);
    assert_eq!(pacer.timeout(), Some(Time(51_324)));
    assert_eq!(due(&mut pacer, 51_323), []);
    assert_eq!(due(&mut pacer, 51_324), [(1, 128)]);
}

#[test]
fn next_grant_waits_for_the_last() {
    let mut pacer = pacer(|_| {});
    demand(&mut pacer, 0, 1, 64);
    assert_eq!(due(&mut pacer, 0), [(1, 64)]);
    assert_eq!(pacer.timeout(), None);
    demand(&mut pacer, 100, 2, 64);
    assert_eq!(pacer.timeout(), Some(Time(1_324)));
}

#[test]
fn grants_never_exceed_demand() {
    let mut pacer = pacer(|_| {});
    demand(&mut pacer, 0, 1, 150);
    let grants = run(&mut pacer, 110_000);
    assert_eq!(grants, [(0, 1, 64), (1_324, 1, 128), (2_648, 1, 150)]);
    demand(&mut pacer, 100_000, 1, 150);
    assert_eq!(pacer.timeout(), None);
    demand(&mut pacer, 100_000, 1, 151);
    assert_eq!(due(&mut pacer, 100_000), [(1, 151)]);
}

#[test]
fn small_grant_takes_less_time() {
    let mut pacer = pacer(|_| {});
    demand(&mut pacer, 0, 1, 8);
    demand(&mut pacer, 0, 2, 8);
    assert_eq!(run(&mut pacer, 1_000), [(0, 1, 8), (166, 2, 8)], "165.49 ns");
}

#[test]
fn sources_take_turns() {
    let mut pacer = pacer(|_| {});
    for from in 1..=3 {
        demand(&mut pacer, 0, from, 100);
    }
    let order: Vec<_> =
        run(&mut pacer, 110_000).into_iter().map(|(_, from, credit)| (from, credit)).collect();
    assert_eq!(order, [(1, 64), (2, 64), (3, 64), (1, 100), (2, 100), (3, 100)]);
}

#[test]
fn repeated_demand_keeps_the_turn() {
    let mut pacer = pacer(|_| {});
    demand(&mut pacer, 0, 1, 100);
    demand(&mut pacer, 0, 2, 100);
    demand(&mut pacer, 0, 1, 200);
    assert_eq!(due(&mut pacer, 0), [(1, 64)]);
}

/// With n sources that all have demand, each gets 1 / n. Together they get 99 % of the link, to a nanosecond.
#[test]
fn sources_share_the_link() {
    for senders in [1_u8, 2, 3, 7] {
        let mut pacer = pacer(|_| {});
        let mut granted: BTreeMap<u8, u32> = BTreeMap::new();
        for from in 0..senders {
            demand(&mut pacer, 0, from, MOST);
        }
        let mut last = 0;
        for _ in 0..7_000 {
            let now = pacer.timeout().unwrap();
            let grant = pacer.poll_grant(now).unwrap();
            let from = grant.source.ccc_id;
            *granted.entry(from).or_default() += 64;
            assert_eq!(grant.credit, Units24::default() + granted[&from]);
            assert!(pacer.demand(now, grant.source, VIA, grant.credit + MOST));
            last = now.0;
        }
        assert_eq!(last, (6_999.0 * TICK).ceil() as u64);
        let share = 7_000 / u32::from(senders);
        for granted in granted.values() {
            assert!((granted / 64).abs_diff(share) <= 1);
        }
    }
}

#[test]
fn percent_limits_the_rate() {
    let mut pacer = pacer(|_| {});
    pacer.set_percent(33);
    demand(&mut pacer, 0, 1, MOST);
    assert_eq!(due(&mut pacer, 0), [(1, 64)]);
    assert_eq!(pacer.timeout(), Some(Time((TICK * 3.0).ceil() as u64)));
    pacer.set_percent(0);
    assert_eq!(due(&mut pacer, 3_972), [(1, 128)]);
    assert!(pacer.timeout() > Some(Time(100_000)), "1 %, never 0");
}

#[test]
fn late_caller_catches_up() {
    let mut pacer = pacer(|params| params.catch_up = Duration::from_nanos(3_000));
    demand(&mut pacer, 0, 1, MOST);
    due(&mut pacer, 0);
    assert_eq!(due(&mut pacer, 1_000_000).len(), 3, "as many as begin within 3,000 ns");
    assert!(pacer.timeout() > Some(Time(1_000_000)));
}

#[test]
fn idle_time_is_not_caught_up() {
    let mut pacer = pacer(|_| {});
    demand(&mut pacer, 1_000_000, 1, MOST);
    assert_eq!(due(&mut pacer, 1_000_000).len(), 1);
}

#[test]
fn demand_is_never_lowered() {
    let mut pacer = pacer(|_| {});
    demand(&mut pacer, 0, 1, 200);
    demand(&mut pacer, 0, 1, 100);
    assert_eq!(run(&mut pacer, 110_000).last().unwrap().2, 200);
}

#[test]
fn grants_use_the_latest_pdc() {
    let mut pacer = pacer(|_| {});
    let other = PdcHandle { pdcid: 2, generation: 3 };
    demand(&mut pacer, 0, 1, 200);
    assert!(pacer.demand(Time(0), source(1), other, units(200)));
    assert_eq!(pacer.poll_grant(Time(0)), Some(Grant { source: source(1), via: other, credit: units(64) }));
}

#[test]
fn address_ccc_id_and_class_identify_a_source() {
    let mut pacer = pacer(|_| {});
    let one = source(1);
    let others = [
        CreditSource { address: [10, 0, 0, 2].into(), ..one },
        CreditSource { ccc_id: 2, ..one },
        CreditSource { class: 1, ..one },
    ];
    for source in [one, others[0], others[1], others[2], one] {
        assert!(pacer.demand(Time(0), source, VIA, units(10)));
    }
    assert_eq!(pacer.sources(), 4);
    assert_eq!(pacer.granted(&one), units(0));
    pacer.poll_grant(Time(0));
    assert_eq!((pacer.granted(&one), pacer.granted(&others[0])), (units(10), units(0)));
    assert_eq!(pacer.granted(&source(99)), units(0));
}

mod requests {
    use super::*;

    fn request(pacer: &mut CreditPacer, now: u64, from: u8, target: u32) -> bool {
        pacer.request(Time(now), source(from), VIA, units(target))
    }

    #[test]
    fn are_always_answered() {
        let mut pacer = pacer(|_| {});
        demand(&mut pacer, 0, 1, 50);
        due(&mut pacer, 0);
        request(&mut pacer, 100, 1, 50);
        assert!(pacer.timeout().is_some_and(|at| at <= Time(100)));
        assert_eq!(due(&mut pacer, 100), [(1, 50)], "the last grant again");
        assert_eq!((due(&mut pacer, 100), pacer.timeout()), (vec![], None), "once");
    }

    #[test]
    fn due_grant_answers_them() {
        let mut pacer = pacer(|_| {});
        request(&mut pacer, 0, 1, 50);
        assert_eq!(due(&mut pacer, 0), [(1, 50)]);
    }

    #[test]
    fn duplicates_get_one_answer() {
        let mut pacer = pacer(|_| {});
        demand(&mut pacer, 0, 1, 50);
        due(&mut pacer, 0);
        (0..1_000).for_each(|_| assert!(request(&mut pacer, 100, 1, 50)));
        assert_eq!(due(&mut pacer, 100), [(1, 50)]);
    }

    #[test]
    fn are_answered_in_order() {
        let mut pacer = pacer(|_| {});
        request(&mut pacer, 0, 3, 0);
        request(&mut pacer, 0, 1, 0);
        request(&mut pacer, 0, 2, 0);
        assert_eq!(due(&mut pacer, 0), [(3, 0), (1, 0), (2, 0)]);
    }

    #[test]
    fn bypass_the_pace() {
        let mut pacer = pacer(|_| {});
        demand(&mut pacer, 0, 1, MOST);
        due(&mut pacer, 0);
        request(&mut pacer, 1, 1, MOST);
        assert_eq!(due(&mut pacer, 1), [(1, 64)]);
        assert_eq!(pacer.timeout(), Some(Time(1_324)));
    }

    #[test]
    fn refused_source_gets_no_answer() {
        let mut pacer = pacer(|params| params.max_sources = 1);
        assert!(request(&mut pacer, 0, 1, 0));
        assert!(!request(&mut pacer, 0, 2, 0));
        assert_eq!(due(&mut pacer, 0), [(1, 0)]);
    }
}

mod idle_credit {
    use super::*;

    #[test]
    fn is_off_by_default() {
        let mut pacer = pacer(|_| {});
        demand(&mut pacer, 0, 1, 10);
        assert_eq!(run(&mut pacer, 1_000_000), [(0, 1, 10)]);
    }

    #[test]
    fn fills_all_sources_in_turn() {
        let mut pacer = pacer(|params| params.idle_credit = true);
        demand(&mut pacer, 0, 1, 10);
        demand(&mut pacer, 0, 2, 20);
        let grants = run(&mut pacer, 1_000_000);
        let last = |from| grants.iter().rfind(|grant| grant.1 == from).unwrap().2;
        assert_eq!((last(1), last(2)), (10 + MOST, 20 + MOST));
        assert_eq!(grants[2..6].iter().map(|grant| grant.1).collect::<Vec<_>>(), [1, 2, 1, 2]);
        assert_eq!(pacer.timeout(), None, "both are full");
    }

    #[test]
    fn gives_way_to_demand() {
        let mut pacer = pacer(|params| params.idle_credit = true);
        demand(&mut pacer, 0, 1, 10);
        due(&mut pacer, 0);
        demand(&mut pacer, 0, 2, 200);
        let order: Vec<_> = run(&mut pacer, 8_000).into_iter().map(|grant| grant.1).collect();
        assert_eq!(order[..4], [2, 2, 2, 2]);
    }

    #[test]
    fn continues_when_used() {
        let mut pacer = pacer(|params| params.idle_credit = true);
        demand(&mut pacer, 0, 1, 10);
        run(&mut pacer, 1_000_000);
        demand(&mut pacer, 1_000_000, 1, 50);
        assert_eq!(run(&mut pacer, 2_000_000), [(1_000_000, 1, 50 + MOST)]);
    }
}

mod lives {
    use super::*;

    /// The time after which a source is forgotten, 6 ms.
    const FORGET: u64 = 6_000_000;

    #[test]
    fn vanished_source_costs_its_demand() {
        let mut pacer = pacer(|_| {});
        demand(&mut pacer, 0, 1, MOST);
        demand(&mut pacer, 0, 2, MOST);
        let grants = run(&mut pacer, FORGET);
        assert_eq!(grants.len(), 14, "7 quanta each");
        assert_eq!(pacer.timeout(), None);
    }

    #[test]
    fn silent_sources_are_forgotten() {
        let mut pacer = pacer(|_| {});
        demand(&mut pacer, 0, 1, 10);
        demand(&mut pacer, 1, 2, 10);
        demand(&mut pacer, FORGET - 1, 3, 10);
        assert_eq!(pacer.sources(), 3);
        demand(&mut pacer, FORGET, 3, 10);
        assert_eq!(pacer.sources(), 2, "the first was silent for 6 ms");
        assert_eq!(pacer.granted(&source(1)), units(0));
    }

    #[test]
    fn active_source_is_not_forgotten() {
        let mut pacer = pacer(|_| {});
        for time in 0..9 {
            demand(&mut pacer, time * FORGET / 2, 1, 10);
        }
        demand(&mut pacer, 9 * FORGET / 2, 2, 10);
        assert_eq!(pacer.sources(), 2);
    }

    #[test]
    fn silent_source_loses_its_turn() {
        let mut pacer = pacer(|_| {});
        demand(&mut pacer, 0, 1, MOST);
        assert_eq!(due(&mut pacer, FORGET), [], "nobody polled for long");
        assert_eq!((pacer.sources(), pacer.timeout()), (0, None));
    }

    #[test]
    fn forgotten_source_gets_no_answer() {
        let mut pacer = pacer(|_| {});
        assert!(pacer.request(Time(0), source(1), VIA, units(0)));
        assert!(pacer.request(Time(FORGET), source(2), VIA, units(0)));
        assert_eq!(due(&mut pacer, FORGET), [(2, 0)]);
        assert_eq!(pacer.timeout(), None);
    }

    #[test]
    fn source_table_is_bounded() {
        let mut pacer = pacer(|params| params.max_sources = 2);
        assert!(demand(&mut pacer, 0, 1, 10));
        assert!(demand(&mut pacer, 0, 2, 10));
        assert!(!demand(&mut pacer, 1, 3, 10));
        assert!(demand(&mut pacer, 1, 1, 20));
        assert_eq!(pacer.sources(), 2);
        assert!(demand(&mut pacer, FORGET, 3, 10), "the second was silent, and makes room");
    }

    /// A forgotten source with a credit of 5,000 units continues from there.
    #[test]
    fn forgotten_source_continues() {
        for granted in [5_000, 0xff_ff00, 0x80_0000] {
            let mut pacer = pacer(|_| {});
            let granted = units(granted);
            let target = granted + 100;
            assert!(pacer.demand(Time(0), source(1), VIA, target));
            let last = core::iter::from_fn(|| {
                let now = pacer.timeout()?;
                pacer.poll_grant(now)
            })
            .last();
            assert_eq!(last.unwrap().credit, target);
            assert!(pacer.granted(&source(1)).since(granted) == Some(100));
        }
    }

    /// Another context of the source gets its number, with counters from 0.
    #[test]
    fn restarted_source_is_served() {
        for granted in [5_000, 0x7f_ff00, 0x80_0000, 0xff_0000] {
            let mut pacer = pacer(|_| {});
            assert!(pacer.demand(Time(0), source(1), VIA, units(granted)));
            while let Some(now) = pacer.timeout() {
                pacer.poll_grant(now);
            }
            assert_eq!(pacer.granted(&source(1)), units(granted));
            demand(&mut pacer, 1_000_000, 1, 16);
            assert_eq!(due(&mut pacer, 1_000_000), [(1, 16)]);
        }
    }

    #[test]
    fn stale_request_does_not_restart_it() {
        let mut pacer = pacer(|_| {});
        demand(&mut pacer, 0, 1, MOST);
        run(&mut pacer, 110_000);
        for target in [MOST, 1, 0] {
            demand(&mut pacer, 100_000, 1, target);
            assert_eq!((due(&mut pacer, 100_000), pacer.granted(&source(1))), (vec![], units(MOST)));
        }
    }
}

mod together {
    use super::*;

    /// Returns a pacer with two sources, both known since time 0.
    fn two(change: impl FnOnce(&mut PacerParams)) -> CreditPacer {
        let mut pacer = pacer(|params| {
            params.hold = Duration::from_micros(6);
            change(params);
        });
        assert!(demand(&mut pacer, 0, 1, 400));
        assert_eq!(due(&mut pacer, 0), [(1, 64)], "who is alone gets its grant at once");
        pacer
    }

    #[test]
    fn grants_wait_for_initial_credit() {
        let mut pacer = two(|_| {});
        for now in (500..5_500).step_by(500) {
            assert!(demand(&mut pacer, now, 2, 400));
            assert_eq!(due(&mut pacer, now), [], "at {now}");
        }
        assert_eq!(pacer.timeout(), Some(Time(6_000)), "a base round trip after the last, at the latest");
        assert_eq!(due(&mut pacer, 6_000), [(1, 128)]);
        // After 6.5 us, the second source is not new any more.
        assert!(demand(&mut pacer, 6_600, 2, 400));
        assert_eq!(due(&mut pacer, 7_324), [(2, 64)]);
    }

    #[test]
    fn grants_wait_for_a_full_last_hop() {
        let mut pacer = two(|_| {});
        pacer.last_hop_is_full(Time(1_000));
        assert_eq!(pacer.timeout(), Some(Time(2_324)), "until a grant's time after the last trim");
        pacer.last_hop_is_full(Time(5_500));
        assert_eq!(pacer.timeout(), Some(Time(6_000)), "not for ever");
        let mut pacer = two(|params| params.hold = Duration::ZERO);
        pacer.last_hop_is_full(Time(1_000));
        assert_eq!(pacer.timeout(), Some(Time(1_324)), "and not at all where that is off");
    }

    #[test]
    fn first_grants_are_staggered() {
        let mut pacer = pacer(|params| params.stagger = true);
        (1..=40).for_each(|from| assert!(demand(&mut pacer, 0, from, 400)));
        let grants = run(&mut pacer, 110_000);
        let first: Vec<u32> = grants[..40].iter().map(|(.., units)| *units).collect();
        assert_eq!(first[..4], [64, 57, 50, 59]);
        let sums: Vec<u32> =
            first.chunks(16).map(|chunk| chunk.iter().sum::<u32>() / chunk.len() as u32).collect();
        assert!(sums.iter().all(|mean| (55..=58).contains(mean)), "{sums:?}");
        let second = |at: usize| grants[40 + at].2 - first[at];
        assert!((0..30).all(|at| second(at) == 64), "only the first are smaller");
    }
}
