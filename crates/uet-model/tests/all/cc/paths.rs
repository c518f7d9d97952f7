//! Path selection.

use core::time::Duration;
use std::collections::BTreeSet;
use uet_model::Time;
use uet_model::cc::PathFeedback::{Bad, Congested, Good, TimedOut};
use uet_model::cc::{
    AckReport, CcParams, Ccc, NackReport, NetworkParams, PathMode, PathParams, PathSelector, Sending,
};
use uet_wire::registry::NackCode;

fn params(mode: PathMode) -> PathParams {
    PathParams { mode, values: 16, first: 1000, ..PathParams::new(&NetworkParams::default()) }
}

fn paths(mode: PathMode) -> PathSelector {
    PathSelector::new(params(mode), 7).unwrap()
}

fn round(paths: &mut PathSelector, packets: usize) -> Vec<u16> {
    (0..packets).map(|_| paths.next()).collect()
}

fn all() -> BTreeSet<u16> {
    (1000..1016).collect()
}

fn set(values: Vec<u16>) -> BTreeSet<u16> {
    values.into_iter().collect()
}

#[test]
fn oblivious_shuffles_each_round() {
    let mut paths = paths(PathMode::Oblivious);
    let rounds: Vec<_> = (0..4).map(|_| round(&mut paths, 16)).collect();
    for (index, one) in rounds.iter().enumerate() {
        assert_eq!(set(one.clone()), all());
        assert!(rounds[..index].iter().all(|other| other != one));
    }
}

#[test]
fn oblivious_ignores_feedback() {
    let (mut deaf, mut other) = (paths(PathMode::Oblivious), paths(PathMode::Oblivious));
    for value in all() {
        deaf.feedback(Time(1), value, TimedOut);
    }
    assert_eq!(round(&mut deaf, 32), round(&mut other, 32));
}

#[test]
fn seed_determines_the_order() {
    for mode in [PathMode::Single, PathMode::Oblivious, PathMode::Recycling, PathMode::Bitmap] {
        let with = |seed| round(&mut PathSelector::new(params(mode), seed).unwrap(), 16);
        assert_eq!(with(1), with(1));
        assert!((2..9).any(|seed| with(seed) != with(1)));
    }
}

#[test]
fn recycling_reuses_unmarked_values() {
    let mut paths = paths(PathMode::Recycling);
    for value in [1003, 1001, 1002] {
        paths.feedback(Time(1), value, Good);
    }
    assert_eq!(round(&mut paths, 3), [1003, 1001, 1002], "the oldest first");
}

#[test]
fn recycling_drops_other_values() {
    for feedback in [Congested, Bad, TimedOut] {
        let mut paths = paths(PathMode::Recycling);
        for value in [1003, 1001, 1003, 1002] {
            paths.feedback(Time(1), value, Good);
        }
        paths.feedback(Time(1), 1003, feedback);
        assert_eq!(round(&mut paths, 2), [1001, 1002]);
    }
}

#[test]
fn recycling_keeps_eight() {
    let mut paths = paths(PathMode::Recycling);
    for value in 1000..1010 {
        paths.feedback(Time(1), value, Good);
    }
    assert_eq!(round(&mut paths, 8), (1002..1010).collect::<Vec<_>>());
}

#[test]
fn empty_ring_draws_random_values() {
    assert_eq!(set(round(&mut paths(PathMode::Recycling), 500)), all());
}

#[test]
fn bitmap_skips_congested_value_once() {
    for feedback in [Congested, Bad] {
        let mut paths = paths(PathMode::Bitmap);
        paths.feedback(Time(1), 1003, feedback);
        paths.feedback(Time(1), 1003, feedback);
        paths.feedback(Time(1), 1007, feedback);
        let first = round(&mut paths, 14);
        assert_eq!(set(first), all().into_iter().filter(|value| ![1003, 1007].contains(value)).collect());
        assert_eq!(set(round(&mut paths, 16)), all(), "used again in the next round");
    }
}

#[test]
fn bitmap_skips_timed_out_value_longer() {
    let mut paths = paths(PathMode::Bitmap);
    paths.feedback(Time(1), 1003, TimedOut);
    paths.feedback(Time(1), 1003, Congested);
    for _ in 0..4 {
        assert!(!round(&mut paths, 15).contains(&1003));
    }
    assert!(round(&mut paths, 16).contains(&1003));
}

#[test]
fn bitmap_uses_all_if_most_are_resting() {
    let mut half = paths(PathMode::Bitmap);
    (1000..1008).for_each(|value| half.feedback(Time(1), value, Congested));
    assert_eq!(set(round(&mut half, 8)), (1008..1016).collect());

    let mut more = paths(PathMode::Bitmap);
    (1000..1009).for_each(|value| more.feedback(Time(1), value, Congested));
    let used = set(round(&mut more, 8));
    assert!(used.iter().any(|value| *value < 1009), "{used:?}");

    let mut all_bad = paths(PathMode::Bitmap);
    for _ in 0..20 {
        all().into_iter().for_each(|value| all_bad.feedback(Time(1), value, TimedOut));
        assert!(all().contains(&all_bad.next()));
    }
}

#[test]
fn bitmap_counts_resting_values() {
    let mut paths = paths(PathMode::Bitmap);
    for value in all() {
        paths.feedback(Time(1), value, Congested);
        round(&mut paths, 31);
    }
    paths.feedback(Time(1), 1003, Congested);
    assert!(!round(&mut paths, 15).contains(&1003), "none rests but this one");
}

#[test]
fn good_paths_never_rest() {
    let mut paths = paths(PathMode::Bitmap);
    all().into_iter().for_each(|value| paths.feedback(Time(1), value, Good));
    assert_eq!(set(round(&mut paths, 16)), all());
}

#[test]
fn single_value_set_works() {
    for mode in [PathMode::Single, PathMode::Oblivious, PathMode::Recycling, PathMode::Bitmap] {
        let params = PathParams { values: 1, first: u16::MAX, ..params(mode) };
        let mut paths = PathSelector::new(params, 7).unwrap();
        for _ in 0..3 {
            paths.feedback(Time(u64::MAX), u16::MAX, TimedOut);
            paths.idle(Time(u64::MAX));
            assert_eq!(paths.next(), u16::MAX);
        }
    }
}

#[test]
fn unknown_values_are_ignored() {
    for mode in [PathMode::Single, PathMode::Oblivious, PathMode::Recycling, PathMode::Bitmap] {
        let mut paths = paths(mode);
        for value in [0, 999, 1016, u16::MAX] {
            for feedback in [Good, Congested, Bad, TimedOut] {
                paths.feedback(Time(1_000_000), value, feedback);
            }
        }
        assert!(set(round(&mut paths, 100)).is_subset(&all()));
    }
}

mod single {
    use super::*;

    /// 10 round trips of 6 us.
    const REROUTE: u64 = 60_000;

    #[test]
    fn stays() {
        let mut paths = paths(PathMode::Single);
        let value = paths.next();
        paths.idle(Time(REROUTE));
        paths.feedback(Time(REROUTE), value, Good);
        paths.idle(Time(REROUTE));
        assert_eq!(set(round(&mut paths, 100)), [value].into());
    }

    #[test]
    fn changes_on_congestion_after_t_reroute() {
        for feedback in [Congested, Bad, TimedOut] {
            let mut paths = paths(PathMode::Single);
            let value = paths.next();
            paths.feedback(Time(REROUTE - 1), value, feedback);
            assert_eq!(paths.next(), value);
            paths.feedback(Time(REROUTE), value, feedback);
            let second = paths.next();
            assert_ne!(second, value);
            paths.feedback(Time(3 * REROUTE), value, feedback);
            assert_eq!(paths.next(), second, "that was about another path");
            paths.feedback(Time(2 * REROUTE - 1), second, feedback);
            assert_eq!(paths.next(), second);
            paths.feedback(Time(2 * REROUTE), second, feedback);
            assert_ne!(paths.next(), second);
        }
    }

    #[test]
    fn changes_after_congestion_when_idle() {
        let mut paths = paths(PathMode::Single);
        let value = paths.next();
        paths.feedback(Time(1), value, Congested);
        paths.idle(Time(2));
        let second = paths.next();
        assert_ne!(second, value);
        paths.idle(Time(3));
        assert_eq!(paths.next(), second, "nothing is known against it");
    }
}

/// The feedback that a context gives its paths.
mod context {
    use super::*;

    fn ccc(mode: PathMode) -> Ccc {
        let params = CcParams { paths: params(mode), ..CcParams::none(&NetworkParams::default()).unwrap() };
        Ccc::new(&params, 1, 7).unwrap()
    }

    fn send(ccc: &mut Ccc) -> u16 {
        ccc.send(Time(0), Sending { size: 100, is_retransmission: false }).entropy
    }

    fn nack(code: NackCode, marked: bool, entropy: u16) -> NackReport {
        NackReport { no_pdc: false, code, size: 100, sample: None, marked, entropy }
    }

    /// Returns true if a good value is used again after this feedback.
    fn is_kept(event: impl Fn(&mut Ccc)) -> bool {
        let mut ccc = ccc(PathMode::Recycling);
        ccc.ack(Time(0), AckReport { packets: 1, entropy: 1005, ..AckReport::default() });
        ccc.ack(Time(0), AckReport { packets: 1, entropy: 1006, ..AckReport::default() });
        event(&mut ccc);
        send(&mut ccc) == 1005
    }

    #[test]
    fn follows_marks_of_acks_and_nacks() {
        let ack = |marked| {
            move |ccc: &mut Ccc| ccc.ack(Time(0), AckReport { marked, entropy: 1005, ..AckReport::default() })
        };
        assert!(is_kept(ack(false)));
        assert!(!is_kept(ack(true)));
        for code in [NackCode::TRIMMED_LASTHOP, NackCode::NO_RESOURCE] {
            assert!(is_kept(|ccc| ccc.nack(Time(0), nack(code, false, 1005))));
            assert!(!is_kept(|ccc| ccc.nack(Time(0), nack(code, true, 1005))));
        }
        assert!(!is_kept(|ccc| ccc.nack(Time(0), nack(NackCode::TRIMMED, false, 1005))));
        assert!(!is_kept(|ccc| ccc.lost(Time(0), 100, 1005)));
    }

    #[test]
    fn timeout_outweighs_a_mark() {
        let mut ccc = ccc(PathMode::Bitmap);
        ccc.lost(Time(0), 100, 1005);
        let used: Vec<_> = (0..60).map(|_| send(&mut ccc)).collect();
        assert!(!used.contains(&1005));
    }

    #[test]
    fn idle_context_changes_its_single_path() {
        let mut ccc = ccc(PathMode::Single);
        ccc.new_data(Time(0), 100);
        let value = send(&mut ccc);
        ccc.new_data(Time(0), 100);
        ccc.ack(Time(1), AckReport { packets: 1, marked: true, entropy: value, ..AckReport::default() });
        ccc.new_data(Time(1), 100);
        assert_eq!(send(&mut ccc), value, "some waited");
        assert_eq!(send(&mut ccc), value);
        ccc.ack(Time(2), AckReport { packets: 2, entropy: value, ..AckReport::default() });
        ccc.new_data(Time(2), 100);
        assert_ne!(send(&mut ccc), value);
    }

    #[test]
    fn last_hop_trim_keeps_the_single_path() {
        let mut ccc = ccc(PathMode::Single);
        ccc.new_data(Time(0), 100);
        let value = send(&mut ccc);
        let late = Time(0) + Duration::from_secs(1);
        ccc.nack(late, nack(NackCode::TRIMMED_LASTHOP, false, value));
        assert_eq!(send(&mut ccc), value);
        ccc.nack(late, nack(NackCode::TRIMMED, false, value));
        assert_ne!(send(&mut ccc), value);
    }
}
