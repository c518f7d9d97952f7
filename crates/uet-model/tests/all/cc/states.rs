//! Every event in every state of a context.

use core::time::Duration;
use uet_model::Time;
use uet_model::cc::CccState::{self, Active, Idle, Pending, Ready};
use uet_model::cc::{AckReport, Algorithm, Ccc, NackReport, SendDecision, Sending, Sums};
use uet_wire::Units24;
use uet_wire::registry::NackCode;

const SIZE: u32 = 1000;

/// Permits this many packets, and another for each unit of credit.
#[derive(Debug)]
struct Permits(u32);

impl Algorithm for Permits {
    fn may_send(&self) -> bool {
        self.0 > 0
    }

    fn send(&mut self, _now: Time, _packet: Sending, _sums: &Sums) -> SendDecision {
        self.0 = self.0.saturating_sub(1);
        SendDecision::default()
    }

    fn credit_update(&mut self, _now: Time, credit: Units24, _sums: &Sums) {
        self.0 += credit.get();
    }
}

fn ccc(permits: u32) -> Ccc {
    Ccc::with_algorithm(Box::new(Permits(permits)), Default::default())
}

/// The calls of a context.
#[derive(Clone, Copy, Debug)]
enum Event {
    NewData,
    Send,
    SendAgain,
    Ack,
    Nack,
    Lost,
    Found,
    Credit,
    GoneFlying,
    GoneWaiting,
    GoneUnsent,
    ProbeAnswered,
    Timeout,
}
use Event::*;

fn apply(ccc: &mut Ccc, event: Event) {
    let now = Time(1);
    match event {
        NewData => ccc.new_data(now, SIZE),
        Send => {
            ccc.send(now, Sending { size: SIZE, is_retransmission: false });
        }
        SendAgain => {
            ccc.send(now, Sending { size: SIZE, is_retransmission: true });
        }
        Ack => ccc.ack(now, AckReport { packets: 1, bytes: SIZE.into(), ..AckReport::default() }),
        Nack => ccc.nack(
            now,
            NackReport {
                no_pdc: false,
                code: NackCode::TRIMMED,
                size: SIZE,
                sample: None,
                marked: false,
                entropy: 0,
            },
        ),
        Lost => ccc.lost(now, SIZE, 0),
        Found => ccc.found(now, SIZE),
        Credit => ccc.credit(now, Units24::new(1).unwrap()),
        GoneFlying => ccc.gone(now, 0, &[], &[SIZE]),
        GoneWaiting => ccc.gone(now, 0, &[SIZE], &[]),
        GoneUnsent => ccc.gone(now, SIZE.into(), &[], &[]),
        ProbeAnswered => ccc.probe_answered(Duration::from_micros(1)),
        Timeout => ccc.handle_timeout(now),
    }
}

/// Returns the state after `events` on a context with this many permits.
fn state(permits: u32, events: &[Event]) -> CccState {
    let mut ccc = ccc(permits);
    for event in events {
        apply(&mut ccc, *event);
    }
    ccc.state()
}

/// The path to a state: the permits and the events.
type Way<'a> = (u32, &'a [Event]);

/// The next state for each event.
type Leads<'a> = &'a [(Event, CccState)];

#[test]
fn every_event_in_every_state() {
    let idle: Way<'_> = (2, &[]);
    let idle_barred: Way<'_> = (0, &[]);
    let pending: Way<'_> = (2, &[NewData, Send]);
    let pending_barred: Way<'_> = (1, &[NewData, Send]);
    let active: Way<'_> = (1, &[NewData, NewData, Send]);
    let active_again: Way<'_> = (1, &[NewData, Send, Lost]);
    let ready: Way<'_> = (2, &[NewData]);
    let ready_flying: Way<'_> = (3, &[NewData, NewData, Send]);
    let ready_again: Way<'_> = (2, &[NewData, Send, Lost]);

    // Some calls are impossible: a packet leaves while none waits, or an ACK arrives while none is in flight.
    let table: &[(Way<'_>, CccState, Leads<'_>)] = &[
        (
            idle,
            Idle,
            // New data passes through ACTIVE inside the event.
            &[(NewData, Ready), (Ack, Idle), (Credit, Idle), (ProbeAnswered, Idle), (Timeout, Idle)],
        ),
        (idle_barred, Idle, &[(NewData, Active), (Credit, Idle)]),
        (
            pending,
            Pending,
            &[
                (NewData, Ready),
                (Ack, Idle),
                (Nack, Ready),
                (Lost, Ready),
                (Credit, Pending),
                (GoneFlying, Idle),
                (ProbeAnswered, Pending),
                (Timeout, Pending),
            ],
        ),
        (pending_barred, Pending, &[(NewData, Active), (Nack, Active), (Lost, Active), (Credit, Pending)]),
        (
            active,
            Active,
            &[
                (NewData, Active),
                (Ack, Active),
                (Nack, Active),
                (Lost, Active),
                (Credit, Ready),
                (GoneFlying, Active),
                (GoneUnsent, Pending),
                (ProbeAnswered, Active),
                (Timeout, Active),
            ],
        ),
        (active_again, Active, &[(Found, Pending), (Credit, Ready), (GoneWaiting, Idle)]),
        (
            ready,
            Ready,
            &[
                (NewData, Ready),
                (Send, Pending),
                (Credit, Ready),
                (GoneUnsent, Idle),
                (ProbeAnswered, Ready),
                (Timeout, Ready),
            ],
        ),
        (
            ready_flying,
            Ready,
            &[
                (Send, Pending),
                (Ack, Ready),
                (Nack, Ready),
                (Lost, Ready),
                (GoneFlying, Ready),
                (GoneUnsent, Pending),
            ],
        ),
        (
            ready_again,
            Ready,
            &[(SendAgain, Pending), (Found, Pending), (GoneWaiting, Idle), (NewData, Ready)],
        ),
    ];
    for ((permits, events), from, rows) in table {
        assert_eq!(state(*permits, events), *from, "after {events:?}");
        for (event, to) in *rows {
            let all: Vec<Event> = events.iter().copied().chain([*event]).collect();
            assert_eq!(state(*permits, &all), *to, "{from:?} and {event:?}");
        }
    }
}

#[test]
fn last_packet_uses_the_last_permit() {
    assert_eq!(state(1, &[NewData, NewData]), Ready);
    assert_eq!(state(1, &[NewData, NewData, Send]), Active);
}

#[test]
fn the_four_sums() {
    let mut ccc = ccc(9);
    for event in [NewData, NewData, NewData, Send, Send, Lost] {
        apply(&mut ccc, event);
    }
    let sums = Sums { backlog: 1000, rtx_backlog: 1000, waiting_rtx: 1, inflight_pkts: 1 };
    assert_eq!(ccc.sums(), sums);
    apply(&mut ccc, SendAgain);
    assert_eq!(ccc.sums(), Sums { rtx_backlog: 0, waiting_rtx: 0, inflight_pkts: 2, ..sums });
}

/// A caller that counts wrong does not stop a context by an overflow.
#[test]
fn impossible_events_do_not_panic() {
    let mut ccc = ccc(9);
    for event in [Ack, Nack, Lost, Found, GoneFlying, GoneWaiting, GoneUnsent, Send, SendAgain] {
        apply(&mut ccc, event);
    }
    ccc.new_data(Time(0), u32::MAX);
    ccc.ack(Time(0), AckReport { packets: u32::MAX, ..AckReport::default() });
    assert_eq!(ccc.sums().inflight_pkts, 0);
}
