//! NSCC, rule by rule.

use core::time::Duration;
use uet_model::Time;
use uet_model::cc::{
    AckReport, Algorithm, NackReport, NetworkParams, Nscc, NsccParams, PenaltyReading, Sending, Sent, Sums,
    Wanted, rtt_sample,
};
use uet_wire::registry::NackCode;

const PACKET: u32 = 4096;
/// Packets in flight, so that a rest of bytes in flight does not count as rounding error.
const FLYING: Sums = Sums { backlog: 0, rtx_backlog: 0, waiting_rtx: 0, inflight_pkts: 1 };

fn us(microseconds: f64) -> Duration {
    Duration::from_nanos((microseconds * 1e3) as u64)
}

/// A network of 100 Gb/s and 6 us with trimming, packets of 4,096 bytes, and a window of 50,000. Only the features that
/// a test adds are active: no eta, no quick adapt, and each ACK applies at once.
fn params() -> NsccParams {
    let network = NetworkParams { full_packet: PACKET, ..NetworkParams::default() };
    NsccParams {
        initial_cwnd: 50_000,
        quick_adapt: false,
        eta: 0.0,
        adjust_bytes_threshold: 0,
        adjust_period_threshold: Duration::from_secs(1),
        delay_weight: 1.0,
        ..NsccParams::new(&network).unwrap()
    }
}

fn nscc(change: impl FnOnce(&mut NsccParams)) -> Nscc {
    let mut params = params();
    change(&mut params);
    Nscc::new(params).unwrap()
}

/// Returns an ACK of a packet with this delay in microseconds.
fn ack(newly: u64, delay: f64, marked: bool) -> AckReport {
    AckReport { newly: Some(newly), sample: Some(us(6.0 + delay)), marked, ..AckReport::default() }
}

fn cwnd(nscc: &Nscc) -> u64 {
    nscc.observe().cwnd.unwrap()
}

fn inflight(nscc: &Nscc) -> i64 {
    nscc.observe().inflight.unwrap()
}

fn fly(nscc: &mut Nscc, bytes: u32) {
    nscc.send(Time(0), Sending { size: bytes, is_retransmission: false }, &FLYING);
}

fn nack(nscc: &mut Nscc, now: Time, code: NackCode) {
    nscc.nack(
        now,
        &NackReport { no_pdc: false, code, size: PACKET, sample: None, marked: false, entropy: 0 },
        &FLYING,
    );
}

mod quadrants {
    use super::*;

    #[test]
    fn no_mark_low_delay_grows_proportionally() {
        let mut nscc = nscc(|_| {});
        nscc.ack(Time(1), &ack(4096, 2.0, false), &FLYING);
        // alpha * (4.5 - 2) us = 3,072 * 2.5 / 4.5 bytes per round trip; * 4,096 / 50,000.
        assert_eq!(cwnd(&nscc), 50_139);
        nscc.ack(Time(1), &ack(4096, 4.0, false), &FLYING);
        // 50,139.81 + 3,072 * 0.5 / 4.5 * 4,096 / 50,139.81
        assert_eq!(cwnd(&nscc), 50_167);
    }

    #[test]
    fn no_mark_high_delay_grows_fairly() {
        for delay in [4.5, 5.0, 60.0] {
            let mut nscc = nscc(|_| {});
            nscc.ack(Time(1), &ack(4096, delay, false), &FLYING);
            assert_eq!(cwnd(&nscc), 50_838, "10,240 * 4,096 / 50,000, at {delay} us");
        }
    }

    #[test]
    fn mark_and_low_delay_keep_the_window() {
        for delay in [0.0, 2.0, 4.499] {
            let mut nscc = nscc(|_| {});
            nscc.ack(Time(1_000_000), &ack(4096, delay, true), &FLYING);
            assert_eq!(cwnd(&nscc), 50_000);
        }
    }

    #[test]
    fn mark_and_high_delay_shrink_the_window() {
        let mut nscc = nscc(|_| {});
        nscc.ack(Time(1_000_000), &ack(4096, 6.0, true), &FLYING);
        // 1 - 0.8 * (6 - 4.5) / 6 = 0.8
        assert_eq!(cwnd(&nscc), 40_000);
    }
}

mod decrease {
    use super::*;

    #[test]
    fn at_most_by_half() {
        let mut nscc = nscc(|_| {});
        nscc.ack(Time(1_000_000), &ack(4096, 1000.0, true), &FLYING);
        assert_eq!(cwnd(&nscc), 25_000);
    }

    #[test]
    fn at_most_once_per_base_rtt() {
        let mut nscc = nscc(|_| {});
        nscc.ack(Time(1_000_000), &ack(4096, 6.0, true), &FLYING);
        nscc.ack(Time(1_006_000), &ack(4096, 6.0, true), &FLYING);
        assert_eq!(cwnd(&nscc), 40_000, "6 us later is not more than a base round trip");
        nscc.ack(Time(1_006_001), &ack(4096, 6.0, true), &FLYING);
        assert_eq!(cwnd(&nscc), 32_000);
    }

    #[test]
    fn only_if_average_exceeds_target() {
        let mut nscc = nscc(|params| params.delay_weight = 0.5);
        nscc.ack(Time(1_000_000), &ack(4096, 8.0, true), &FLYING);
        assert_eq!(cwnd(&nscc), 50_000, "an average of 4 us");
        nscc.ack(Time(1_000_000), &ack(4096, 8.0, true), &FLYING);
        assert_eq!(cwnd(&nscc), 40_000, "of 6 us");
    }

    #[test]
    fn skipped_decrease_does_not_delay_the_next() {
        let mut nscc = nscc(|_| {});
        nscc.ack(Time(1_000_000), &ack(4096, 4.5, true), &FLYING);
        nscc.ack(Time(1_000_001), &ack(4096, 6.0, true), &FLYING);
        assert_eq!(cwnd(&nscc), 40_000);
    }

    #[test]
    fn never_below_a_packet() {
        let mut nscc = nscc(|_| {});
        for round in 1..20 {
            nscc.ack(Time(round * 1_000_000), &ack(0, 100.0, true), &FLYING);
        }
        assert_eq!(cwnd(&nscc), 4096);
        assert!(Nscc::may_send(&nscc), "an empty window has room for it");
    }
}

mod fast_increase {
    use super::*;

    #[test]
    fn after_a_window_without_delay() {
        let mut nscc = nscc(|params| params.alpha = 0.0);
        nscc.ack(Time(1), &ack(50_000, 0.999, false), &FLYING);
        assert_eq!(cwnd(&nscc), 50_000, "a window, not more");
        nscc.ack(Time(1), &ack(1000, 0.999, false), &FLYING);
        assert_eq!(cwnd(&nscc), 50_125, "an eighth of what arrived");
        nscc.ack(Time(1), &ack(8000, 0.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 51_125);
    }

    #[test]
    fn replaces_proportional_increase() {
        let mut nscc = nscc(|_| {});
        nscc.ack(Time(1), &ack(50_001, 0.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 56_250, "50,001 / 8, and no alpha");
    }

    #[test]
    fn restarts_after_delay() {
        let mut nscc = nscc(|params| params.alpha = 0.0);
        nscc.ack(Time(1), &ack(50_001, 0.0, false), &FLYING);
        nscc.ack(Time(1), &ack(8000, 1.0, false), &FLYING);
        nscc.ack(Time(1), &ack(8000, 0.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 56_250);
    }

    #[test]
    fn decrease_resets_it() {
        let mut nscc = nscc(|params| params.alpha = 0.0);
        nscc.ack(Time(1), &ack(50_001, 0.0, false), &FLYING);
        nscc.ack(Time(1), &ack(0, 6.0, true), &FLYING);
        nscc.ack(Time(1), &ack(8000, 0.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 56_250);
    }

    #[test]
    fn never_exceeds_max_wnd() {
        let mut nscc = nscc(|_| {});
        nscc.ack(Time(1), &ack(10_000_000, 0.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 112_500);
    }
}

mod gathering {
    use super::*;

    #[test]
    fn is_applied_after_bytes() {
        let mut nscc = nscc(|params| params.adjust_bytes_threshold = 8192);
        nscc.ack(Time(1), &ack(4096, 5.0, false), &FLYING);
        nscc.ack(Time(1), &ack(4096, 5.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 50_000, "8,192 are not more than 8,192");
        nscc.ack(Time(1), &ack(1, 5.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 51_677, "10,240 * 8,193 / 50,000");
        nscc.ack(Time(1), &ack(8192, 5.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 51_677, "and counted anew");
    }

    #[test]
    fn is_applied_after_a_period_with_eta() {
        let mut nscc = nscc(|params| {
            params.adjust_bytes_threshold = 1 << 40;
            params.adjust_period_threshold = us(6.0);
            params.eta = 307.2;
        });
        nscc.ack(Time(5_999), &ack(4096, 5.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 50_000);
        nscc.ack(Time(6_000), &ack(0, 5.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 51_146, "50,000 + 838.86 + 307.2");
        nscc.ack(Time(11_999), &ack(0, 5.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 51_146);
        nscc.ack(Time(12_000), &ack(0, 5.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 51_453);
    }

    #[test]
    fn bytes_alone_add_no_eta() {
        let mut nscc = nscc(|params| params.eta = 307.2);
        nscc.ack(Time(1), &ack(4096, 4.0, true), &FLYING);
        assert_eq!(cwnd(&nscc), 50_000);
    }

    #[test]
    fn needs_a_sample() {
        let mut nscc = nscc(|params| params.eta = 307.2);
        nscc.ack(Time(2_000_000_000), &AckReport { newly: Some(4096), ..AckReport::default() }, &FLYING);
        assert_eq!(cwnd(&nscc), 50_000);
    }
}

mod flight {
    use super::*;

    #[test]
    fn packet_must_fit_the_window() {
        let mut nscc = nscc(|params| params.initial_cwnd = 8192);
        fly(&mut nscc, 4096);
        assert!(Nscc::may_send(&nscc));
        fly(&mut nscc, 1);
        assert!(!Nscc::may_send(&nscc));
    }

    #[test]
    fn follows_sent_and_acknowledged_bytes() {
        let mut nscc = nscc(|_| {});
        fly(&mut nscc, 10_000);
        nscc.ack(Time(1), &ack(4096, 5.0, false), &FLYING);
        assert_eq!(inflight(&nscc), 5_904);
        nack(&mut nscc, Time(1), NackCode::ROD_OOO);
        assert_eq!(inflight(&nscc), 1_808);
        nscc.ack(Time(1), &ack(2048, 5.0, false), &FLYING);
        assert_eq!(inflight(&nscc), -240, "rounding to 256 bytes");
        nscc.ack(Time(1), &ack(0, 5.0, false), &Sums::default());
        assert_eq!(inflight(&nscc), 0, "no packet, no byte");
    }

    #[test]
    fn ack_without_count_uses_packet_sizes() {
        let mut nscc = nscc(|_| {});
        fly(&mut nscc, 10_000);
        nscc.ack(Time(1), &AckReport { bytes: 4000, ..AckReport::default() }, &FLYING);
        assert_eq!(inflight(&nscc), 6_000);
    }

    #[test]
    fn loss_shrinks_the_window() {
        let mut nscc = nscc(|_| {});
        fly(&mut nscc, 10_000);
        nscc.inferred_loss(Time(1), 4000, &FLYING);
        assert_eq!((inflight(&nscc), cwnd(&nscc)), (6_000, 46_000));
        nscc.found(Time(1), 4000, &FLYING);
        assert_eq!((inflight(&nscc), cwnd(&nscc)), (10_000, 46_000));
        nscc.gone(Time(1), 3000, &FLYING);
        assert_eq!((inflight(&nscc), cwnd(&nscc)), (7_000, 46_000));
        for _ in 0..20 {
            nscc.inferred_loss(Time(1), 4000, &FLYING);
        }
        assert_eq!(cwnd(&nscc), 4096, "never below a packet");
    }

    #[test]
    fn last_packet_that_fits_requests_an_ack() {
        let mut nscc = nscc(|_| {});
        let mut send =
            |size| nscc.send(Time(0), Sending { size, is_retransmission: false }, &FLYING).ack_request;
        assert!(!send(50_000 - 4096), "one fits");
        assert!(send(1));
    }

    #[test]
    fn window_below_ack_trigger_requests_acks() {
        for (cwnd, asked) in [(16_383, true), (16_384, false)] {
            let mut nscc = nscc(|params| params.initial_cwnd = cwnd);
            assert_eq!(
                nscc.send(Time(0), Sending { size: 1, is_retransmission: false }, &FLYING).ack_request,
                asked
            );
        }
    }
}

mod round_trip {
    use super::*;

    #[test]
    fn samples_by_retransmission() {
        let at = |retransmissions| Sent { at: Time(1_000), retransmissions };
        let sample = |sent, retx| rtt_sample(Time(9_024), sent, retx, Some(8));
        assert_eq!(sample(at(0), false), Some(us(7.0)));
        assert_eq!(sample(at(1), true), Some(us(7.0)));
        assert_eq!(sample(at(0), true), None);
        assert_eq!(sample(at(1), false), None, "it answers the first transmission, or the second");
        assert_eq!(sample(at(2), true), None, "it answers the second, or the third");
        assert_eq!(sample(at(2), false), None);
    }

    #[test]
    fn samples_by_service_time() {
        let sent = Sent { at: Time(1_000), retransmissions: 0 };
        let sample = |service| rtt_sample(Time(9_024), sent, false, service);
        assert_eq!(sample(None), Some(Duration::from_nanos(8_024)), "a NACK has none");
        assert_eq!(sample(Some(0)), None, "not valid");
        assert_eq!(sample(Some(0xffff)), None, "or more");
        assert_eq!(sample(Some(63)), None, "longer than the round trip");
        assert_eq!(sample(Some(62)), Some(Duration::from_nanos(88)));
    }

    #[test]
    fn smallest_sample_is_the_base() {
        let mut nscc = nscc(|_| {});
        let base = |nscc: &Nscc| nscc.observe().base_rtt.unwrap();
        nscc.ack(Time(1), &ack(0, 1.0, false), &FLYING);
        assert_eq!(base(&nscc), us(6.0));
        nscc.ack(Time(1), &AckReport { sample: Some(us(5.0)), ..AckReport::default() }, &FLYING);
        assert_eq!(base(&nscc), us(5.0));
        nscc.ack(Time(1), &AckReport { sample: Some(us(5.5)), ..AckReport::default() }, &FLYING);
        assert_eq!(nscc.observe().average_delay, Some(us(0.5)));
        let report = NackReport {
            no_pdc: false,
            code: NackCode::NO_RESOURCE,
            size: 0,
            sample: Some(us(4.0)),
            marked: false,
            entropy: 0,
        };
        nscc.nack(Time(1), &report, &FLYING);
        assert_eq!(base(&nscc), us(4.0));
        nscc.probe_answered(us(3.0));
        assert_eq!(base(&nscc), us(3.0));
        assert_eq!(nscc.observe().average_delay, Some(us(0.5)), "neither has a delay");
    }

    /// Each of 4 links takes 327.68 ns for a full packet of 4,096 bytes, and 322.56 ns less for a PROBE of 64.
    #[test]
    fn samples_of_short_packets_count_as_those_of_full_ones() {
        let mut nscc = nscc(|params| params.store_and_forward_links = 4);
        let base = |nscc: &Nscc| nscc.observe().base_rtt.unwrap();
        nscc.probe_answered(us(4.0));
        assert_eq!(base(&nscc), Duration::from_nanos(4_000 + 1_290));
        let short = AckReport { sample: Some(us(4.0)), size: Some(2048), ..AckReport::default() };
        nscc.ack(Time(1), &short, &FLYING);
        assert_eq!(base(&nscc), Duration::from_nanos(4_000 + 655));
        nscc.ack(Time(1), &AckReport { sample: Some(us(5.0)), ..short }, &FLYING);
        assert_eq!(nscc.observe().average_delay, Some(us(1.0)));
        nscc.ack(Time(1), &AckReport { sample: Some(us(4.5)), size: Some(PACKET), ..short }, &FLYING);
        assert_eq!(base(&nscc), us(4.5));
    }

    #[test]
    fn new_base_limits_the_next_window_change() {
        let mut nscc = nscc(|params| params.initial_cwnd = 112_500);
        nscc.probe_answered(us(4.0));
        assert_eq!(cwnd(&nscc), 112_500);
        nscc.ack(
            Time(1),
            &AckReport { newly: Some(1), sample: Some(us(9.0)), ..AckReport::default() },
            &FLYING,
        );
        assert_eq!(cwnd(&nscc), 75_000, "1.5 * 100 Gb/s * 4 us");
    }

    #[test]
    fn cached_base_is_used() {
        let nscc = nscc(|params| params.cached_base_rtt = Some(us(5.0)));
        assert_eq!(nscc.observe().base_rtt, Some(us(5.0)));
    }
}

mod probe {
    use super::*;

    const MUCH: Sums = Sums { backlog: 74_000, rtx_backlog: 1_000, waiting_rtx: 1, inflight_pkts: 1 };
    const LITTLE: Sums = Sums { backlog: 73_999, ..MUCH };

    #[test]
    fn after_the_first_ack_once() {
        let mut nscc = nscc(|_| {});
        assert_eq!(nscc.poll_wanted(), None, "not before");
        nscc.ack(Time(1), &AckReport::default(), &MUCH);
        assert_eq!(nscc.poll_wanted(), Some(Wanted::Probe));
        assert_eq!(nscc.poll_wanted(), None);
        nscc.ack(Time(1), &AckReport::default(), &MUCH);
        assert_eq!(nscc.poll_wanted(), None, "the second");
    }

    #[test]
    fn after_the_first_nack() {
        let mut nscc = nscc(|_| {});
        let report = NackReport {
            no_pdc: false,
            code: NackCode::TRIMMED,
            size: 0,
            sample: None,
            marked: false,
            entropy: 0,
        };
        nscc.nack(Time(1), &report, &MUCH);
        assert_eq!(nscc.poll_wanted(), Some(Wanted::Probe));
    }

    #[test]
    fn not_for_little_data() {
        let mut nscc = nscc(|_| {});
        nscc.ack(Time(1), &AckReport::default(), &LITTLE);
        assert_eq!(nscc.poll_wanted(), None);
    }

    #[test]
    fn not_with_a_cached_base() {
        let mut nscc = nscc(|params| params.cached_base_rtt = Some(us(5.0)));
        nscc.ack(Time(1), &AckReport::default(), &MUCH);
        assert_eq!(nscc.poll_wanted(), None);
    }
}

mod penalty {
    use super::*;

    fn penalized(newly: u64, penalty: u8) -> AckReport {
        AckReport { newly: Some(newly), penalty, ..AckReport::default() }
    }

    /// Returns the bytes in flight after a round trip.
    fn after_a_round_trip(reading: PenaltyReading, penalty: u8) -> i64 {
        let mut nscc = nscc(|params| {
            params.initial_cwnd = 25 * 4096;
            params.penalty_reading = reading;
        });
        while Nscc::may_send(&nscc) {
            fly(&mut nscc, PACKET);
        }
        for _ in 0..25 {
            nscc.ack(Time(1), &penalized(4096, penalty), &FLYING);
            while Nscc::may_send(&nscc) {
                fly(&mut nscc, PACKET);
            }
        }
        inflight(&nscc)
    }

    #[test]
    fn intended_64_halves_and_127_leaves_a_packet() {
        assert_eq!(after_a_round_trip(PenaltyReading::Intended, 64), 12 * 4096);
        assert_eq!(after_a_round_trip(PenaltyReading::Intended, 127), 4096);
        assert_eq!(after_a_round_trip(PenaltyReading::Intended, 1), 24 * 4096);
    }

    #[test]
    fn literal_any_leaves_a_packet() {
        for penalty in [1, 64, 127] {
            assert_eq!(after_a_round_trip(PenaltyReading::Literal, penalty), 4096, "{penalty}");
        }
    }

    #[test]
    fn limits_the_window_once_to_bytes_in_flight() {
        let mut nscc = nscc(|_| {});
        fly(&mut nscc, 30_000);
        nscc.ack(Time(1), &penalized(10_000, 64), &FLYING);
        assert_eq!(cwnd(&nscc), 25_000, "before the ACK");
        nscc.ack(Time(1), &penalized(10_000, 64), &FLYING);
        assert_eq!(cwnd(&nscc), 20_000, "and not again");
    }

    #[test]
    fn literal_limits_the_window_every_time() {
        let mut nscc = nscc(|params| params.penalty_reading = PenaltyReading::Literal);
        fly(&mut nscc, 30_000);
        nscc.ack(Time(1), &penalized(10_000, 64), &FLYING);
        assert_eq!(cwnd(&nscc), 15_000, "after the ACK");
        nscc.ack(Time(1), &penalized(10_000, 64), &FLYING);
        assert_eq!(cwnd(&nscc), 5_000);
    }

    #[test]
    fn is_restored() {
        let mut nscc = nscc(|_| {});
        let over = AckReport { restore: true, ..AckReport::default() };
        fly(&mut nscc, 100_000);
        nscc.ack(Time(1), &over, &FLYING);
        assert_eq!(cwnd(&nscc), 50_000, "nothing to restore");
        nscc.ack(Time(1), &penalized(10_000, 64), &FLYING);
        nscc.ack(Time(1), &penalized(10_000, 64), &FLYING);
        nscc.ack(Time(1), &AckReport::default(), &FLYING);
        assert_eq!(cwnd(&nscc), 40_000, "a penalty of 0 alone does not");
        nscc.ack(Time(1), &AckReport { penalty: 1, ..over }, &FLYING);
        assert_eq!(cwnd(&nscc), 40_000, "nor rc alone");
        nscc.ack(Time(1), &over, &FLYING);
        assert_eq!(cwnd(&nscc), 50_000, "the window before the first");
        nscc.inferred_loss(Time(1), 4096, &FLYING);
        nscc.ack(Time(1), &over, &FLYING);
        assert_eq!(cwnd(&nscc), 45_904, "once");
    }

    #[test]
    fn restored_window_respects_the_base() {
        let mut nscc = nscc(|params| params.initial_cwnd = 112_500);
        nscc.ack(Time(1), &penalized(10_000, 64), &FLYING);
        nscc.probe_answered(us(3.0));
        nscc.ack(Time(1), &AckReport { restore: true, ..AckReport::default() }, &FLYING);
        assert_eq!(cwnd(&nscc), 56_250);
    }

    #[test]
    fn stops_increases_except_eta() {
        for delay in [0.0, 2.0, 5.0] {
            let mut nscc = nscc(|params| {
                params.eta = 300.0;
                params.adjust_period_threshold = us(6.0);
            });
            fly(&mut nscc, 100_000);
            let report = AckReport { penalty: 1, ..ack(51_200, delay, false) };
            nscc.ack(Time(6_000), &report, &FLYING);
            assert_eq!(cwnd(&nscc), 50_000 - 400 + 300, "at {delay} us");
        }
    }

    #[test]
    fn permits_decreases() {
        let mut nscc = nscc(|_| {});
        fly(&mut nscc, 100_000);
        nscc.ack(Time(1_000_000), &AckReport { penalty: 1, ..ack(0, 6.0, true) }, &FLYING);
        assert_eq!(cwnd(&nscc), 40_000);
    }
}

mod trims {
    use super::*;

    #[test]
    fn shrink_the_window_by_the_packet() {
        for code in [NackCode::TRIMMED, NackCode::TRIMMED_LASTHOP] {
            let mut nscc = nscc(|_| {});
            fly(&mut nscc, 10_000);
            nack(&mut nscc, Time(1), code);
            assert_eq!((inflight(&nscc), cwnd(&nscc)), (5_904, 45_904));
        }
    }

    #[test]
    fn count_one_base_rtt_as_delay() {
        let mut nscc = nscc(|params| params.delay_weight = 0.5);
        nscc.probe_answered(us(4.0));
        nack(&mut nscc, Time(1), NackCode::TRIMMED);
        assert_eq!(nscc.observe().average_delay, Some(us(3.0)), "the configured one");
    }

    #[test]
    fn other_nacks_keep_the_window() {
        let mut nscc = nscc(|_| {});
        nack(&mut nscc, Time(1), NackCode::NO_PKT_BUFFER);
        assert_eq!((inflight(&nscc), cwnd(&nscc)), (-4096, 50_000));
        assert_eq!(nscc.observe().average_delay, Some(Duration::ZERO));
    }

    #[test]
    fn keep_one_packet_of_window() {
        let mut nscc = nscc(|_| {});
        for _ in 0..20 {
            nack(&mut nscc, Time(1), NackCode::TRIMMED);
        }
        assert_eq!(cwnd(&nscc), 4096);
    }
}

/// The round trip of quick adapt takes 10.5 us: base and target. Its threshold is 1/8 of 112,500: 14,062.5.
mod quick_adapt {
    use super::*;

    /// Returns a window that measures since 100 us, with 40,000 bytes in flight.
    fn measuring(change: impl FnOnce(&mut NsccParams)) -> Nscc {
        let mut nscc = nscc(|params| {
            params.quick_adapt = true;
            params.alpha = 0.0;
            params.fi = 0.0;
            change(params);
        });
        nscc.ack(Time(100_000), &ack(0, 4.0, false), &FLYING);
        fly(&mut nscc, 40_000);
        nscc
    }

    #[test]
    fn sets_the_window_to_achieved_bytes() {
        let mut nscc = measuring(|_| {});
        nscc.ack(Time(105_000), &ack(10_000, 4.0, false), &FLYING);
        nack(&mut nscc, Time(110_499), NackCode::TRIMMED);
        assert_eq!(cwnd(&nscc), 45_904, "before the end a packet less");
        nack(&mut nscc, Time(110_500), NackCode::TRIMMED);
        assert_eq!(cwnd(&nscc), 10_000);
    }

    #[test]
    fn never_below_a_packet() {
        let mut nscc = measuring(|_| {});
        nack(&mut nscc, Time(110_500), NackCode::TRIMMED);
        assert_eq!(cwnd(&nscc), 4096);
    }

    #[test]
    fn remembers_a_trim_until_the_end() {
        let mut nscc = measuring(|_| {});
        nack(&mut nscc, Time(105_000), NackCode::TRIMMED);
        nscc.ack(Time(110_500), &ack(5_000, 4.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 5_000);
    }

    #[test]
    fn acts_once_per_trim() {
        let mut nscc = measuring(|_| {});
        nscc.ack(Time(105_000), &ack(10_000, 4.0, false), &FLYING);
        nack(&mut nscc, Time(110_500), NackCode::TRIMMED);
        nscc.ack(Time(121_000), &ack(5_000, 4.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 10_000);
    }

    #[test]
    fn needs_a_loss() {
        let mut nscc = measuring(|_| {});
        nscc.ack(Time(110_500), &ack(5_000, 100.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 50_000);
    }

    #[test]
    fn needs_few_achieved_bytes() {
        for (arrived, cwnd_then) in [(14_062, 14_062), (14_063, 45_904)] {
            let mut nscc = measuring(|_| {});
            nscc.ack(Time(105_000), &ack(arrived, 4.0, false), &FLYING);
            nack(&mut nscc, Time(110_500), NackCode::TRIMMED);
            assert_eq!(cwnd(&nscc), cwnd_then);
        }
    }

    #[test]
    fn needs_a_full_measurement() {
        let mut nscc = nscc(|params| params.quick_adapt = true);
        nack(&mut nscc, Time(1_000_000), NackCode::TRIMMED);
        assert_eq!(cwnd(&nscc), 45_904);
        nack(&mut nscc, Time(1_010_500), NackCode::TRIMMED);
        assert_eq!(cwnd(&nscc), 4096, "that one began to measure");
    }

    #[test]
    fn restarts_each_round_trip() {
        let mut nscc = measuring(|_| {});
        nscc.ack(Time(110_500), &ack(20_000, 4.0, false), &FLYING);
        nscc.ack(Time(115_000), &ack(6_000, 4.0, false), &FLYING);
        nack(&mut nscc, Time(121_000), NackCode::TRIMMED);
        assert_eq!(cwnd(&nscc), 6_000);
    }

    #[test]
    fn long_delay_is_a_loss_without_trimming() {
        for (delay, cwnd_then) in [(24.0, 50_000), (24.001, 5_000)] {
            let mut nscc = measuring(|params| params.qa_threshold = Some(us(24.0)));
            nscc.ack(Time(110_500), &ack(5_000, delay, false), &FLYING);
            assert_eq!(cwnd(&nscc), cwnd_then, "{delay} us");
        }
    }

    #[test]
    fn ignores_marks_of_packets_then_in_flight() {
        let mut nscc = measuring(|params| params.qa_gate = 0);
        nscc.ack(Time(105_000), &ack(30_000, 4.0, false), &FLYING);
        fly(&mut nscc, 10_000);
        nack(&mut nscc, Time(110_500), NackCode::TRIMMED);
        assert_eq!((cwnd(&nscc), inflight(&nscc)), (30_000, 15_904));
        nscc.ack(Time(120_000), &ack(10_000, 100.0, true), &FLYING);
        assert_eq!(cwnd(&nscc), 30_000, "5,904 are still to come");
        nscc.inferred_loss(Time(120_000), 2_000, &FLYING);
        assert_eq!(cwnd(&nscc), 28_000, "a loss is never ignored, and 3,904 are left");
        nack(&mut nscc, Time(120_000), NackCode::TRIMMED);
        assert_eq!(cwnd(&nscc), 28_000 - 4096, "with this packet all has been seen");
    }

    #[test]
    fn ignores_no_ack_without_a_mark() {
        let mut nscc = measuring(|params| params.fi = 10_240.0);
        nack(&mut nscc, Time(110_500), NackCode::TRIMMED);
        nscc.ack(Time(111_000), &ack(4096, 5.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 4096 + 10_240);
    }

    #[test]
    fn discards_collected_growth() {
        let mut nscc = measuring(|params| {
            params.fi = 10_240.0;
            params.adjust_bytes_threshold = 8192;
        });
        nscc.ack(Time(101_000), &ack(4096, 5.0, false), &FLYING);
        nack(&mut nscc, Time(110_500), NackCode::TRIMMED);
        nscc.ack(Time(111_000), &ack(8193, 4.0, false), &FLYING);
        assert_eq!(cwnd(&nscc), 4096);
    }

    #[test]
    fn can_be_switched_off() {
        let mut nscc = measuring(|params| params.quick_adapt = false);
        nack(&mut nscc, Time(110_500), NackCode::TRIMMED);
        assert_eq!(cwnd(&nscc), 45_904);
    }
}
