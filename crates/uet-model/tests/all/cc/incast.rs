//! Several sources share one link. The algorithms fill it, share it fairly and keep its queue short. The queue runs at
//! 100 Gb/s, marks from 0.2 to 0.8 BDP and trims at 1.0. The latency is 3 us to the queue, and 3 us back.

use core::time::Duration;
use std::collections::VecDeque;
use uet_model::cc::{
    AckReport, CcParams, Ccc, CreditPacer, CreditSource, NackReport, NetworkParams, Sending, Sums, Wanted,
};
use uet_model::network::{Agenda, stream};
use uet_model::{PdcHandle, Time};
use uet_wire::Units24;
use uet_wire::registry::NackCode;

const SIZE: u32 = 4096;
const BDP: u64 = 75_000;
const ONE_WAY: Duration = Duration::from_micros(3);
/// The time of 4,096 bytes at 100 Gb/s, in nanoseconds.
const SERIALIZATION: f64 = 327.68;
const VIA: PdcHandle = PdcHandle { pdcid: 1, generation: 0 };

/// An event on the agenda.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A packet arrives at the queue: its source, the time of sending and its demand.
    Packet(usize, Time, Option<u32>),
    /// A packet leaves the queue.
    Departure,
    Ack(usize, Time, bool),
    Trimmed(usize),
    Credit(usize, u32),
    Request(usize, u32),
    /// The timer of a source.
    Timer(usize),
    PacerTimer,
}

struct Incast {
    sources: Vec<Ccc>,
    pacer: Option<CreditPacer>,
    pacer_timer: Time,
    agenda: Agenda<Event>,
    queue: VecDeque<(usize, Time)>,
    free: f64,
    rng: fastrand::Rng,
    delivered: Vec<u64>,
    trims: u64,
    /// The sum of the queue lengths at all departures, in bytes, and the longest.
    depth: u64,
    deepest: u64,
}

impl Incast {
    fn new(sources: usize, params: &CcParams) -> Self {
        let mut incast = Incast {
            sources: (0..sources).map(|id| Ccc::new(params, id as u8, id as u64).unwrap()).collect(),
            pacer: params.grants_credit().then(|| CreditPacer::new(params.pacer.clone()).unwrap()),
            pacer_timer: Time::ZERO,
            agenda: Agenda::default(),
            queue: VecDeque::new(),
            free: 0.0,
            rng: stream(1, 0),
            delivered: vec![0; sources],
            trims: 0,
            depth: 0,
            deepest: 0,
        };
        for source in 0..sources {
            (0..16_000).for_each(|_| incast.sources[source].new_data(Time(0), SIZE));
            incast.send(source, Time(0));
        }
        incast
    }

    fn at(&mut self, time: Time, event: Event) {
        self.agenda.add(time.0, event);
    }

    fn run(&mut self, end: Time) {
        while let Some((now, event)) = self.agenda.pop(end.0) {
            self.handle(Time(now), event);
        }
    }

    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Packet(source, left, target) => self.arrive(now, source, left, target),
            Event::Departure => self.depart(now),
            Event::Ack(source, left, marked) => {
                let report = AckReport {
                    packets: 1,
                    bytes: SIZE.into(),
                    newly: Some(SIZE.into()),
                    sample: Some(now - left),
                    marked,
                    ..AckReport::default()
                };
                self.sources[source].ack(now, report);
                self.send(source, now);
            }
            Event::Trimmed(source) => {
                let code = if self.pacer.is_some() { NackCode::TRIMMED_LASTHOP } else { NackCode::TRIMMED };
                let report =
                    NackReport { no_pdc: false, code, size: SIZE, sample: None, marked: false, entropy: 0 };
                self.sources[source].nack(now, report);
                self.send(source, now);
            }
            Event::Credit(source, credit) => {
                self.sources[source].credit(now, Units24::new(credit).unwrap());
                self.send(source, now);
            }
            Event::Request(source, target) => {
                let target = Units24::new(target).unwrap();
                assert!(self.pacer.as_mut().unwrap().request(now, who(source), VIA, target));
                self.grant(now);
            }
            Event::Timer(source) => {
                if self.sources[source].timeout().is_some_and(|at| at <= now) {
                    self.sources[source].handle_timeout(now);
                    self.send(source, now);
                }
            }
            Event::PacerTimer => self.grant(now),
        }
    }

    fn send(&mut self, source: usize, now: Time) {
        while self.sources[source].may_send() {
            let Sums { waiting_rtx, .. } = self.sources[source].sums();
            let departure =
                self.sources[source].send(now, Sending { size: SIZE, is_retransmission: waiting_rtx > 0 });
            let target = departure.credit_target.map(|(_, target)| target.get());
            self.at(now + ONE_WAY, Event::Packet(source, now, target));
        }
        while let Some(wanted) = self.sources[source].poll_wanted() {
            if let Wanted::CreditRequest(_, target) = wanted {
                self.at(now + ONE_WAY, Event::Request(source, target.get()));
            }
        }
        if let Some(time) = self.sources[source].timeout() {
            self.at(time, Event::Timer(source));
        }
    }

    fn grant(&mut self, now: Time) {
        let Some(pacer) = &mut self.pacer else { return };
        let grants: Vec<_> = core::iter::from_fn(|| pacer.poll_grant(now)).collect();
        let timeout = pacer.timeout();
        for grant in grants {
            self.at(now + ONE_WAY, Event::Credit(grant.source.ccc_id.into(), grant.credit.get()));
        }
        if let Some(timeout) = timeout.filter(|timeout| *timeout != self.pacer_timer) {
            self.pacer_timer = timeout;
            self.at(timeout.max(now), Event::PacerTimer);
        }
    }

    fn waiting(&self) -> u64 {
        self.queue.len() as u64 * u64::from(SIZE)
    }

    fn arrive(&mut self, now: Time, source: usize, left: Time, target: Option<u32>) {
        if let (Some(target), Some(pacer)) = (target.and_then(Units24::new), &mut self.pacer) {
            assert!(pacer.demand(now, who(source), VIA, target));
            self.grant(now);
        }
        if self.waiting() >= BDP {
            self.trims += 1;
            self.at(now + ONE_WAY, Event::Trimmed(source));
            return;
        }
        self.queue.push_back((source, left));
        self.free = self.free.max(now.0 as f64) + SERIALIZATION;
        self.at(Time(self.free as u64), Event::Departure);
        self.deepest = self.deepest.max(self.waiting());
    }

    fn depart(&mut self, now: Time) {
        let (source, left) = self.queue.pop_front().unwrap();
        let waiting = self.waiting();
        self.depth += waiting;
        self.delivered[source] += u64::from(SIZE);
        let mark = (waiting as f64 / BDP as f64 - 0.2) / 0.6;
        // Credit replaces marks at the last hop.
        let marked = self.pacer.is_none() && self.rng.f64() < mark;
        self.at(now + ONE_WAY, Event::Ack(source, left, marked));
    }

    /// Returns the link utilization, the mean queue in BDPs, and the unfairness of the shares, over 4 ms after a warm-up of
    /// 1 ms.
    fn measure(&mut self) -> (f64, f64, f64) {
        self.run(Time(1_000_000));
        (self.delivered, self.depth, self.trims, self.deepest) = (vec![0; self.sources.len()], 0, 0, 0);
        self.run(Time(5_000_000));
        let all: u64 = self.delivered.iter().sum();
        let most = *self.delivered.iter().max().unwrap() as f64;
        let least = *self.delivered.iter().min().unwrap() as f64;
        let departures = all / u64::from(SIZE);
        (all as f64 / 50e6, self.depth as f64 / departures as f64 / BDP as f64, most / least)
    }
}

fn who(source: usize) -> CreditSource {
    CreditSource { address: [10, 0, 0, 1].into(), ccc_id: source as u8, class: 0 }
}

fn network() -> NetworkParams {
    NetworkParams { full_packet: SIZE, ..NetworkParams::default() }
}

#[test]
fn nscc_fills_link_fairly_with_short_queue() {
    for sources in [1, 2, 4, 8] {
        let mut incast = Incast::new(sources, &CcParams::nscc(&network()).unwrap());
        let (used, depth, unfairness) = incast.measure();
        assert!(used > 0.95, "{used} with {sources}");
        assert!(depth < 0.8, "{depth} with {sources}");
        assert!(unfairness < 1.5, "{unfairness} with {sources}");
    }
}

#[test]
fn rccc_fills_link_fairly_without_queue() {
    for (name, params) in [("rccc", CcParams::rccc(&network())), ("both", CcParams::both(&network()))] {
        for sources in [1, 2, 4, 8] {
            let mut incast = Incast::new(sources, &params.clone().unwrap());
            let (used, depth, unfairness) = incast.measure();
            assert!(used > 0.95, "{name}: {used} with {sources}");
            assert!(depth < 0.5, "{name}: {depth} with {sources}");
            assert!(unfairness < 1.1, "{name}: {unfairness} with {sources}");
            assert_eq!(incast.trims, 0, "{name} with {sources}");
        }
    }
}
