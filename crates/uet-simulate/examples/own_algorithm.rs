//! Runs a congestion control algorithm of your own on a simulated fabric, beside NSCC:
//! `cargo run --release -p uet-simulate --example own_algorithm`.
//!
//! The algorithm keeps a window, as NSCC does, but measures no delay. Once per round trip it reduces the window by half
//! of the average share of marked ACKs, or adds a packet if no ACK was marked.

use std::time::Duration;
use uet_model::Time;
use uet_model::cc::{
    AckReport, Algorithm, CreateAlgorithm, CustomAlgorithm, NackReport, NetworkParams, Observed,
    SendDecision, Sending, Sums,
};
use uet_simulate::{Congestion, Control, Outcome, Scenario, Simulation, Topology, Traffic, spread};

/// The parameters of the algorithm.
#[derive(Debug)]
struct MarkShare {
    /// The weight of a round trip in the average share of marks.
    weight: f64,
}

impl CreateAlgorithm for MarkShare {
    fn create(&self, network: &NetworkParams) -> Box<dyn Algorithm> {
        let packet = f64::from(network.full_packet);
        let max = (1.5 * network.bdp()).max(packet);
        Box::new(MarkWindow {
            weight: self.weight,
            packet,
            max,
            window: max,
            share: 0.0,
            round: network.base_rtt,
            round_began: Time::ZERO,
            acks: 0,
            marks: 0,
            in_flight: 0,
        })
    }
}

/// The window of a context, in bytes.
#[derive(Debug)]
struct MarkWindow {
    weight: f64,
    packet: f64,
    max: f64,
    window: f64,
    /// The average share of marked ACKs.
    share: f64,
    round: Duration,
    round_began: Time,
    acks: u32,
    marks: u32,
    /// Packets in flight.
    in_flight: u32,
}

impl MarkWindow {
    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(self.packet, self.max);
    }

    fn end_round(&mut self, now: Time) {
        let marked = f64::from(self.marks) / f64::from(self.acks.max(1));
        self.share += self.weight * (marked - self.share);
        let window = match self.marks {
            0 => self.window + self.packet,
            _ => self.window * (1.0 - self.share / 2.0),
        };
        self.set_window(window);
        (self.acks, self.marks, self.round_began) = (0, 0, now);
    }
}

impl Algorithm for MarkWindow {
    fn may_send(&self) -> bool {
        f64::from(self.in_flight + 1) * self.packet <= self.window
    }

    fn send(&mut self, _now: Time, _packet: Sending, sums: &Sums) -> SendDecision {
        self.in_flight = sums.inflight_pkts;
        SendDecision::default()
    }

    fn ack(&mut self, now: Time, report: &AckReport, sums: &Sums) {
        self.in_flight = sums.inflight_pkts;
        self.acks += 1;
        self.marks += u32::from(report.marked);
        if now - self.round_began >= self.round {
            self.end_round(now);
        }
    }

    fn nack(&mut self, _now: Time, report: &NackReport, sums: &Sums) {
        self.in_flight = sums.inflight_pkts;
        self.set_window(self.window - f64::from(report.size));
    }

    fn inferred_loss(&mut self, _now: Time, size: u32, sums: &Sums) {
        self.in_flight = sums.inflight_pkts;
        self.set_window(self.window - f64::from(size));
    }

    fn found(&mut self, _now: Time, _size: u32, sums: &Sums) {
        self.in_flight = sums.inflight_pkts;
    }

    fn gone(&mut self, _now: Time, _in_flight: u64, sums: &Sums) {
        self.in_flight = sums.inflight_pkts;
    }

    fn observe(&self) -> Observed {
        Observed { cwnd: Some(self.window as u64), ..Observed::default() }
    }
}

/// Runs an incast of 16 with an algorithm.
fn run(control: Control) -> Outcome {
    let scenario = Scenario {
        topology: Topology::Single { hosts: 17 },
        traffic: Traffic::Incast { senders: 16, size: 1_000_000 },
        congestion: Congestion { control, ..Congestion::default() },
        ..Scenario::default()
    };
    Simulation::new(&scenario).expect("the scenario is possible").run()
}

fn main() {
    println!("| algorithm | completion, p99 | retransmissions per packet | marked | mean queue |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let own = Control::Custom(CustomAlgorithm::new(MarkShare { weight: 0.0625 }));
    for (name, control) in [("NSCC", Control::Nscc), ("share of marks", own)] {
        let outcome = run(control);
        let mut times: Vec<Duration> = outcome.flows.iter().filter_map(|flow| flow.completed).collect();
        let [_, _, p99, _] = spread(&mut times).expect("flows completed");
        println!(
            "| {name} | {p99:.1?} | {:.3} | {} | {:.1} KB |",
            outcome.counted.again_per_arrival(),
            outcome.counted.marked,
            outcome.last_hop.mean() / 1e3,
        );
    }
}

#[test]
fn own_algorithm_decides_when_packets_leave() {
    let own = run(Control::Custom(CustomAlgorithm::new(MarkShare { weight: 0.0625 })));
    assert!(own.flows.iter().all(|flow| flow.completed.is_some()));
    let (nscc, none) = (run(Control::Nscc), run(Control::None));
    assert_ne!(own.counted, nscc.counted);
    assert!(own.counted.trimmed * 2 < none.counted.trimmed, "{:?} {:?}", own.counted, none.counted);
    assert!(own.series.samples.iter().any(|sample| sample.flows[0].window < Some(30_000)));
}
