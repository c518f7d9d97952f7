//! RCCC at the source, alone and with NSCC.

use core::time::Duration;
use uet_model::Time;
use uet_model::cc::{
    AckReport, Algorithm, Both, CcParams, Ccc, CccState, NackReport, NetworkParams, NsccParams, Rccc,
    RcccParams, Sending, Sums, Wanted,
};
use uet_wire::Units24;
use uet_wire::registry::NackCode;

const PACKET: u32 = 4096;
/// The interval of requests, 12 us. After 600 us, a source starts anew.
const INTERVAL: u64 = 12_000;
const IDLE: u64 = 600_000;

fn network() -> NetworkParams {
    NetworkParams { full_packet: PACKET, ..NetworkParams::default() }
}

/// Parameters with an initial credit of two packets, and a maximum demand of 20.
fn params() -> RcccParams {
    let two = 2 * u64::from(PACKET);
    RcccParams { initial_credit: two, max_wnd: 10 * two, ..RcccParams::new(&network()).unwrap() }
}

fn ccc() -> Ccc {
    Ccc::with_algorithm(Box::new(Rccc::new(params(), 9).unwrap()), Default::default())
}

/// The units of one packet.
const UNITS: u32 = PACKET / 256;

fn units(packets: u32) -> Units24 {
    Units24::new(packets * UNITS).unwrap()
}

fn credit(ccc: &Ccc) -> i64 {
    ccc.observe().credit.unwrap() / i64::from(PACKET)
}

fn new_data(ccc: &mut Ccc, now: u64, packets: u32) {
    (0..packets).for_each(|_| ccc.new_data(Time(now), PACKET));
}

/// Sends a packet. Returns the demand that it carries, in packets.
fn send(ccc: &mut Ccc, now: u64) -> u32 {
    let (ccc_id, target) =
        ccc.send(Time(now), Sending { size: PACKET, is_retransmission: false }).credit_target.unwrap();
    assert_eq!((ccc_id, target.get() % UNITS), (9, 0));
    target.get() / UNITS
}

fn ack(ccc: &mut Ccc, now: u64, granted: Option<u32>) {
    let credit = granted.map(units);
    ccc.ack(Time(now), AckReport { packets: 1, bytes: PACKET.into(), credit, ..AckReport::default() });
}

fn nack(ccc: &mut Ccc, now: u64, code: NackCode) {
    ccc.nack(
        Time(now),
        NackReport { no_pdc: false, code, size: PACKET, sample: None, marked: false, entropy: 0 },
    );
}

/// Returns the demand of a requested CREDIT_REQUEST, in packets.
fn wanted(ccc: &mut Ccc) -> Option<u32> {
    ccc.poll_wanted().map(|wanted| match wanted {
        Wanted::CreditRequest(9, target) => target.get() / UNITS,
        other => panic!("{other:?}"),
    })
}

mod credit_of_a_source {
    use super::*;

    #[test]
    fn starts_with_initial_credit() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 3);
        send(&mut ccc, 0);
        assert_eq!(ccc.state(), CccState::Ready);
        send(&mut ccc, 0);
        assert_eq!((ccc.state(), credit(&ccc)), (CccState::Active, 0));
    }

    #[test]
    fn overshoots_by_less_than_a_packet() {
        let mut ccc = ccc();
        ccc.new_data(Time(0), 2 * PACKET - 1);
        ccc.send(Time(0), Sending { size: 2 * PACKET - 1, is_retransmission: false });
        assert!(ccc.may_send(), "a byte of credit is left");
        ccc.new_data(Time(0), PACKET);
        ccc.send(Time(0), Sending { size: PACKET, is_retransmission: false });
        assert!(!ccc.may_send());
    }

    #[test]
    fn initial_credit_ends_with_first_answer() {
        type Answer = fn(&mut Ccc);
        let answers: [Answer; 3] = [
            |ccc| ack(ccc, 1, None),
            |ccc| nack(ccc, 1, NackCode::TRIMMED),
            |ccc| ccc.credit(Time(1), units(0)),
        ];
        for answer in answers {
            let mut ccc = ccc();
            new_data(&mut ccc, 0, 3);
            send(&mut ccc, 0);
            answer(&mut ccc);
            assert_eq!((credit(&ccc), ccc.state()), (0, CccState::Active));
        }
    }

    #[test]
    fn stays_overdrawn() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 5);
        for _ in 0..3 {
            send(&mut ccc, 0);
        }
        ack(&mut ccc, 1, Some(1));
        assert_eq!(credit(&ccc), 0, "2 initial, 3 sent, 1 granted");
        ack(&mut ccc, 1, Some(3));
        assert_eq!(credit(&ccc), 2);
    }

    #[test]
    fn grows_by_newer_grants() {
        let mut ccc = ccc();
        ack(&mut ccc, 1, Some(3));
        assert_eq!(credit(&ccc), 3);
        ccc.credit(Time(1), units(5));
        assert_eq!(credit(&ccc), 5);
        ack(&mut ccc, 1, Some(4));
        ccc.credit(Time(1), units(5));
        assert_eq!(credit(&ccc), 5, "stale, and known");
        ccc.credit(Time(1), units(5) + (1 << 23));
        assert_eq!(credit(&ccc), 5, "half the circle is stale");
    }

    #[test]
    fn wraps() {
        let mut ccc = ccc();
        ack(&mut ccc, 1, None);
        let mut granted = Units24::default();
        let step = (1 << 22) - UNITS;
        for round in 1..=9 {
            granted = granted + step;
            ccc.credit(Time(1), granted);
            assert_eq!(credit(&ccc), round * i64::from(step / UNITS));
        }
    }

    #[test]
    fn trim_and_loss_return_no_credit() {
        let mut ccc = ccc();
        ack(&mut ccc, 1, Some(2));
        new_data(&mut ccc, 1, 3);
        send(&mut ccc, 1);
        send(&mut ccc, 1);
        nack(&mut ccc, 1, NackCode::TRIMMED);
        ccc.lost(Time(1), PACKET, 0);
        assert_eq!(credit(&ccc), 0);
        assert_eq!(wanted(&mut ccc), Some(5), "but wanted: 2 granted, 3 waiting");
    }

    #[test]
    fn missing_pdc_returns_credit() {
        let missing = [NackCode::NO_PDC_AVAIL, NackCode::NO_CCC_AVAIL, NackCode::NO_BITMAP];
        // A pending context grants nothing either: without this credit, it ended each time before the source started anew.
        for code in missing.into_iter().chain([NackCode::NEW_START_PSN]) {
            let mut ccc = ccc();
            new_data(&mut ccc, 0, 2);
            send(&mut ccc, 0);
            send(&mut ccc, 0);
            nack(&mut ccc, 1, code);
            assert_eq!((credit(&ccc), ccc.state()), (1, CccState::Ready));
            assert_eq!(wanted(&mut ccc), None, "nothing that it could open");
            ack(&mut ccc, 1, None);
            assert_eq!(credit(&ccc), 0, "it was still initial credit");
        }
    }

    #[test]
    fn loss_before_first_answer_returns_credit() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 2);
        send(&mut ccc, 0);
        send(&mut ccc, 0);
        ccc.lost(Time(100_000), PACKET, 0);
        assert_eq!((credit(&ccc), ccc.state()), (1, CccState::Ready));
    }

    #[test]
    fn idle_source_restarts_with_initial_credit() {
        for (idle, credit_then) in [(IDLE - 1, 0), (IDLE, 2)] {
            let mut ccc = ccc();
            new_data(&mut ccc, 0, 1);
            send(&mut ccc, 0);
            ack(&mut ccc, 1_000, None);
            ccc.credit(Time(2_000), units(0));
            new_data(&mut ccc, 1_000 + idle, 1);
            assert_eq!(credit(&ccc), credit_then);
        }
    }

    #[test]
    fn long_idle_time_drops_granted_credit() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 1);
        send(&mut ccc, 0);
        ack(&mut ccc, 0, Some(10));
        new_data(&mut ccc, IDLE, 1);
        assert_eq!(credit(&ccc), 2);
    }

    #[test]
    fn busy_source_does_not_restart() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 1);
        send(&mut ccc, 0);
        ack(&mut ccc, 0, Some(5));
        new_data(&mut ccc, 1, 1);
        send(&mut ccc, 1);
        new_data(&mut ccc, 2 * IDLE, 1);
        assert_eq!(credit(&ccc), 4, "5 granted, 1 sent");
    }

    #[test]
    fn source_with_packets_in_flight_does_not_restart() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 2);
        send(&mut ccc, 0);
        send(&mut ccc, 0);
        ack(&mut ccc, 0, None);
        new_data(&mut ccc, 2 * IDLE, 1);
        assert_eq!(credit(&ccc), 0);
    }
}

mod demand {
    use super::*;

    #[test]
    fn is_backlog_beyond_credit() {
        let mut ccc = ccc();
        ack(&mut ccc, 0, Some(3));
        new_data(&mut ccc, 0, 10);
        assert_eq!(send(&mut ccc, 0), 10, "3 granted, 9 waiting, 2 left");
        assert_eq!(send(&mut ccc, 0), 10);
        ccc.lost(Time(0), PACKET, 0);
        assert_eq!(send(&mut ccc, 0), 11, "one has to be sent twice");
    }

    #[test]
    fn equals_grant_without_backlog() {
        let mut ccc = ccc();
        ack(&mut ccc, 0, Some(5));
        new_data(&mut ccc, 0, 2);
        assert_eq!(send(&mut ccc, 0), 5);
        assert_eq!(send(&mut ccc, 0), 5);
    }

    #[test]
    fn is_capped() {
        let mut ccc = ccc();
        ack(&mut ccc, 0, Some(1));
        ccc.new_data(Time(0), u32::MAX);
        assert_eq!(send(&mut ccc, 0), 21, "20 beyond what was granted");
        send(&mut ccc, 0);
        send(&mut ccc, 0);
        assert_eq!(send(&mut ccc, 0), 22, "whatever was sent without credit");
    }

    #[test]
    fn is_at_least_a_packet_while_speculating() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 2);
        assert_eq!(send(&mut ccc, 0), 1, "credit for it is left, but it is initial credit");
        assert_eq!(send(&mut ccc, 0), 0, "nothing waits");
    }

    #[test]
    fn rounds_up() {
        let mut ccc = ccc();
        ack(&mut ccc, 0, Some(0));
        ccc.new_data(Time(0), 100);
        ccc.new_data(Time(0), 1);
        let departure = ccc.send(Time(0), Sending { size: 100, is_retransmission: false });
        assert_eq!(departure.credit_target, Some((9, Units24::from_bytes(101))), "100 overdrawn, 1 waits");
    }

    #[test]
    fn wraps() {
        let mut ccc = ccc();
        ack(&mut ccc, 0, None);
        let last = (1 << 24) - UNITS;
        for granted in [1 << 22, 2 << 22, 3 << 22, last] {
            ccc.credit(Time(0), Units24::new(granted).unwrap());
        }
        let size = last * 256;
        ccc.new_data(Time(0), size);
        ccc.send(Time(0), Sending { size, is_retransmission: false });
        assert_eq!(credit(&ccc), 0);
        new_data(&mut ccc, 0, 2);
        assert_eq!(wanted(&mut ccc), Some(1), "one until the wrap, one beyond");
    }
}

mod requests {
    use super::*;

    /// Returns a source with `waiting` packets that has used its credit and has had a reply.
    fn blocked(waiting: u32) -> Ccc {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 2 + waiting);
        send(&mut ccc, 0);
        send(&mut ccc, 0);
        ack(&mut ccc, 0, None);
        ack(&mut ccc, 0, None);
        ccc
    }

    #[test]
    fn leave_at_once_for_new_data() {
        let mut ccc = blocked(0);
        assert_eq!((wanted(&mut ccc), ccc.timeout()), (None, None), "nothing waits");
        new_data(&mut ccc, 100, 1);
        assert_eq!((wanted(&mut ccc), wanted(&mut ccc)), (Some(1), None));
        assert_eq!(ccc.timeout(), Some(Time(100 + INTERVAL)));
    }

    #[test]
    fn leave_at_once_for_nack_and_loss() {
        for refused in [true, false] {
            let mut ccc = blocked(0);
            ack(&mut ccc, 0, Some(2));
            new_data(&mut ccc, 0, 2);
            send(&mut ccc, 0);
            send(&mut ccc, 0);
            assert_eq!(wanted(&mut ccc), None);
            if refused {
                nack(&mut ccc, 100, NackCode::TRIMMED);
            } else {
                ccc.lost(Time(100), PACKET, 0);
            }
            assert_eq!(wanted(&mut ccc), Some(3));
        }
    }

    #[test]
    fn respect_the_interval() {
        let mut ccc = blocked(0);
        new_data(&mut ccc, 100, 1);
        assert!(wanted(&mut ccc).is_some());
        new_data(&mut ccc, 200, 1);
        assert_eq!((wanted(&mut ccc), ccc.timeout()), (None, Some(Time(100 + INTERVAL))));
        new_data(&mut ccc, 100 + INTERVAL, 1);
        assert_eq!(wanted(&mut ccc), Some(3));
    }

    #[test]
    fn wait_an_interval_if_demand_is_known() {
        let mut ccc = blocked(3);
        assert_eq!((wanted(&mut ccc), ccc.timeout()), (None, Some(Time(INTERVAL))));
        ccc.handle_timeout(Time(INTERVAL - 1));
        assert_eq!(wanted(&mut ccc), None);
        for round in [1, 2, 4, 8, 16] {
            assert_eq!(ccc.timeout(), Some(Time(round * INTERVAL)), "each waits as long as all before");
            ccc.handle_timeout(Time(round * INTERVAL));
            assert_eq!(wanted(&mut ccc), Some(3));
        }
        assert_eq!(
            ccc.timeout(),
            Some(Time(16 * INTERVAL + IDLE / 4)),
            "but the other side must not forget us"
        );
    }

    #[test]
    fn wait_longer_after_a_slow_grant() {
        let mut ccc = blocked(9);
        ccc.credit(Time(5 * INTERVAL), units(1));
        send(&mut ccc, 5 * INTERVAL);
        assert_eq!(ccc.timeout(), Some(Time(15 * INTERVAL)), "twice the 5 intervals of the last grant");
        ccc.credit(Time(6 * INTERVAL), units(2));
        send(&mut ccc, 6 * INTERVAL);
        assert_eq!(ccc.timeout(), Some(Time(8 * INTERVAL)));
    }

    #[test]
    fn one_packet_opens_the_pdc_first() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 5);
        send(&mut ccc, 0);
        send(&mut ccc, 0);
        let trimmed = NackReport {
            code: NackCode::TRIMMED_LASTHOP,
            size: PACKET,
            sample: None,
            marked: false,
            entropy: 0,
            no_pdc: true,
        };
        ccc.nack(Time(1_000), trimmed);
        assert!(!ccc.may_send(), "another is still on its way, and may open it");
        ccc.nack(Time(1_000), trimmed);
        assert_eq!(credit(&ccc), 1);
        ccc.send(Time(1_000), Sending { size: PACKET, is_retransmission: true });
        assert!(!ccc.may_send());
        ack(&mut ccc, 2_000, None);
        assert!(!ccc.may_send(), "from here on credit is granted");
    }

    #[test]
    fn end_with_a_grant() {
        let mut ccc = blocked(3);
        ccc.credit(Time(1_000), units(2));
        assert_eq!(ccc.timeout(), None, "it may send");
        send(&mut ccc, 1_000);
        assert_eq!(ccc.timeout(), None);
        send(&mut ccc, 1_000);
        assert_eq!(ccc.timeout(), Some(Time(1_000 + INTERVAL)), "and waits again");
        ccc.credit(Time(2_000), units(2));
        assert_eq!(ccc.timeout(), Some(Time(1_000 + INTERVAL)), "that was no grant");
    }

    #[test]
    fn restart_the_wait_after_a_small_grant() {
        let mut ccc = blocked(3);
        send(&mut ccc, 0);
        assert_eq!(ccc.timeout(), Some(Time(INTERVAL)));
        ccc.credit(Time(5_000), units(1));
        assert_eq!((credit(&ccc), ccc.timeout()), (0, Some(Time(5_000 + INTERVAL))), "overdrawn by one");
    }

    #[test]
    fn end_with_the_data() {
        let mut ccc = blocked(3);
        ccc.gone(Time(10), 3 * u64::from(PACKET), &[], &[]);
        assert_eq!((ccc.timeout(), ccc.state()), (None, CccState::Idle));
    }

    #[test]
    fn end_when_waiting_data_arrived() {
        let mut ccc = blocked(0);
        ack(&mut ccc, 0, Some(1));
        new_data(&mut ccc, 0, 1);
        send(&mut ccc, 0);
        ccc.lost(Time(0), PACKET, 0);
        assert!(ccc.timeout().is_some());
        ccc.found(Time(1), PACKET);
        assert_eq!(ccc.timeout(), None);
    }

    /// No reply arrives: the PDC of the requests may have ended, or the peer has forgotten everything.
    #[test]
    fn unanswered_ones_restart_the_source() {
        let mut ccc = blocked(3);
        let mut now = 0;
        while !ccc.may_send() {
            now = ccc.timeout().unwrap().0;
            assert!(now <= IDLE + IDLE / 4, "it starts anew in bounded time");
            ccc.handle_timeout(Time(now));
            ccc.poll_wanted();
        }
        assert!(now >= IDLE);
        assert_eq!(credit(&ccc), 2);
    }

    #[test]
    fn answered_ones_continue() {
        let mut ccc = blocked(3);
        while let Some(now) = ccc.timeout().filter(|now| now.0 < 5 * IDLE) {
            ccc.handle_timeout(now);
            assert_eq!(wanted(&mut ccc), Some(3));
            ccc.credit(now, units(0));
        }
        assert!(!ccc.may_send(), "the turn will come");
    }

    #[test]
    fn continue_while_packets_are_in_flight() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 3);
        send(&mut ccc, 0);
        send(&mut ccc, 0);
        ack(&mut ccc, 0, None);
        ccc.handle_timeout(Time(2 * IDLE));
        assert!(!ccc.may_send());
        assert!(wanted(&mut ccc).is_some());
    }
}

mod both {
    use super::*;

    fn nscc() -> NsccParams {
        NsccParams { initial_cwnd: 5 * u64::from(PACKET), ..NsccParams::new(&network()).unwrap() }
    }

    fn ccc() -> Ccc {
        Ccc::with_algorithm(Box::new(Both::new(nscc(), params(), 9).unwrap()), Default::default())
    }

    #[test]
    fn both_must_permit_a_packet() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 9);
        send(&mut ccc, 0);
        send(&mut ccc, 0);
        assert!(!ccc.may_send(), "no credit");
        ccc.credit(Time(0), units(9));
        assert!(ccc.may_send());
        for _ in 0..3 {
            send(&mut ccc, 0);
        }
        assert!(!ccc.may_send(), "no window");
        let shown = ccc.observe();
        assert_eq!((shown.inflight, shown.credit), (Some(5 * 4096), Some(6 * 4096)));
    }

    #[test]
    fn window_and_a_packet_cap_demand() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 50);
        send(&mut ccc, 0);
        assert_eq!(send(&mut ccc, 0), 6);
        ccc.lost(Time(0), PACKET, 0);
        ack(&mut ccc, 0, None);
        assert_eq!(send(&mut ccc, 0), 6, "a window of 4 and a packet, 1 sent without credit");
    }

    #[test]
    fn every_event_updates_demand_to_the_window() {
        let sums = Sums { backlog: 1 << 30, inflight_pkts: 1, ..Sums::default() };
        type Shrinks = fn(&mut Both, &Sums);
        let table: [(Shrinks, u32); 3] = [
            // The window shrinks to one packet, and one was sent without credit.
            (
                |both, sums| {
                    both.ack(
                        Time(1),
                        &AckReport { newly: Some(1 << 20), penalty: 127, ..AckReport::default() },
                        sums,
                    )
                },
                3,
            ),
            // The window shrinks to four packets, and one was sent without credit.
            (
                |both, sums| {
                    let code = NackCode::TRIMMED;
                    let trim = NackReport {
                        no_pdc: false,
                        code,
                        size: PACKET,
                        sample: None,
                        marked: false,
                        entropy: 0,
                    };
                    both.nack(Time(1), &trim, sums);
                },
                6,
            ),
            // The window shrinks to four packets. Two of three packets of initial credit are left.
            (|both, sums| both.inferred_loss(Time(1), PACKET, sums), 3),
        ];
        for (shrinks, packets) in table {
            let mut both = Both::new(nscc(), params(), 9).unwrap();
            shrinks(&mut both, &sums);
            let ticket = both.send(Time(1), Sending { size: PACKET, is_retransmission: false }, &sums);
            assert_eq!(ticket.credit_target, Some((9, units(packets))));
        }
    }

    #[test]
    fn last_hop_trim_keeps_the_window() {
        let mut both = Both::new(nscc(), params(), 9).unwrap();
        let trim =
            |code| NackReport { no_pdc: false, code, size: PACKET, sample: None, marked: false, entropy: 0 };
        let sums = Sums { inflight_pkts: 1, ..Sums::default() };
        both.nack(Time(1), &trim(NackCode::TRIMMED_LASTHOP), &sums);
        assert_eq!(both.observe().cwnd, Some(5 * 4096));
        assert!(both.observe().average_delay > Some(Duration::ZERO), "it enters the average delay");
        both.nack(Time(1), &trim(NackCode::TRIMMED), &sums);
        assert_eq!(both.observe().cwnd, Some(4 * 4096));
    }

    #[test]
    fn quick_adapt_ignores_last_hop_trim() {
        let mut both = Both::new(nscc(), params(), 9).unwrap();
        let trim = NackReport {
            no_pdc: false,
            code: NackCode::TRIMMED_LASTHOP,
            size: PACKET,
            sample: None,
            marked: false,
            entropy: 0,
        };
        let sums = Sums { inflight_pkts: 1, ..Sums::default() };
        let report =
            AckReport { newly: Some(0), sample: Some(Duration::from_micros(10)), ..AckReport::default() };
        both.ack(Time(100_000), &report, &sums);
        both.nack(Time(110_500), &trim, &sums);
        let cwnd = both.observe().cwnd;
        both.ack(Time(110_500), &report, &sums);
        assert!(both.observe().cwnd >= cwnd);
    }

    #[test]
    fn events_reach_both() {
        let mut both = Both::new(nscc(), params(), 9).unwrap();
        let size = PACKET;
        let sums = Sums { backlog: 80_000, inflight_pkts: 1, ..Sums::default() };
        both.ack(Time(0), &AckReport::default(), &sums);
        assert_eq!(both.poll_wanted(), Some(Wanted::Probe));
        both.new_data(Time(0), &sums);
        assert!(matches!(both.poll_wanted(), Some(Wanted::CreditRequest(9, _))));
        assert_eq!(both.poll_wanted(), None);
        assert_eq!(both.timeout(), Some(Time(INTERVAL)));
        both.handle_timeout(Time(INTERVAL), &sums);
        assert!(both.poll_wanted().is_some());
        both.send(Time(0), Sending { size, is_retransmission: false }, &sums);
        both.inferred_loss(Time(0), size, &sums);
        assert_eq!(both.observe().inflight, Some(0));
        both.found(Time(0), size, &sums);
        assert_eq!(both.observe().inflight, Some(4096));
        both.gone(Time(0), 4096, &Sums::default());
        assert_eq!((both.observe().inflight, both.timeout()), (Some(0), None));
        both.probe_answered(Duration::from_micros(2));
        assert_eq!(both.observe().base_rtt, Some(Duration::from_micros(2)));
    }

    #[test]
    fn full_window_requests_an_ack() {
        let mut ccc = ccc();
        new_data(&mut ccc, 0, 9);
        let asked: Vec<_> = (0..5)
            .map(|_| ccc.send(Time(0), Sending { size: PACKET, is_retransmission: false }).ack_request)
            .collect();
        assert_eq!(asked, [false, false, false, false, true]);
    }

    #[test]
    fn both_check_their_parameters() {
        let wrong = NsccParams { gamma: 2.0, ..nscc() };
        assert_eq!(Both::new(wrong, params(), 9).unwrap_err().parameter, "gamma");
        let wrong = RcccParams { initial_credit: 0, ..params() };
        assert_eq!(Both::new(nscc(), wrong, 9).unwrap_err().parameter, "initial_credit");
    }

    #[test]
    fn requests_carry_ccc_id() {
        let params = CcParams::both(&network()).unwrap();
        let mut ccc = Ccc::new(&params, 77, 0).unwrap();
        ccc.new_data(Time(0), PACKET);
        let departure = ccc.send(Time(0), Sending { size: PACKET, is_retransmission: false });
        assert_eq!(departure.credit_target.unwrap().0, 77);
    }
}
