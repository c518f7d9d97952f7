//! Devices that a packet silences: the rule that sent it fails, and the run goes on or says why it ends.

use crate::around::{Changes, Device};
use core::time::Duration;
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use uet_conformance::{
    Before, Dut, DutError, EarlyEnd, Liveness, NetworkEffects, Options, RuleResult, RunResult, Verdict, Wire,
    run,
};
use uet_control::{CallError, Op};
use uet_harness::dut::Embedded;
use uet_wire::Uet;
use uet_wire::pds::Pds;

/// A device that sends nothing any more after a packet with an unassigned PDS type.
struct Dying {
    /// True if it can be started again.
    restarts: bool,
    /// When its process ends.
    ends: Ends,
    /// The packet that silenced it.
    killer: Option<Vec<u8>>,
    starts: usize,
    /// True if an operation got no answer since the last start.
    hung: bool,
    /// True if another kind of packet silences it instead.
    dies_of: fn(&[u8]) -> bool,
    /// The packets that its host has dropped since its queue is full, if it has one.
    dropped: Option<u64>,
}

/// When a device ends that a packet has silenced.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Never,
    /// At once.
    Soon,
    /// It answers packets and operations until the next `reset`.
    AtReset,
    /// Like that, but its program goes on.
    HangsAtReset,
    /// It only hangs from the next operation on.
    Hangs,
}

impl Ends {
    fn is_late(self) -> bool {
        matches!(self, Ends::AtReset | Ends::HangsAtReset)
    }
}

impl Dying {
    fn new(restarts: bool) -> Device<Self> {
        Device::new(Dying {
            restarts,
            ends: Ends::Never,
            killer: None,
            starts: 1,
            hung: false,
            dies_of: |packet| kind(packet) > 20,
            dropped: None,
        })
    }
}

/// Returns the type of a packet, which is in its first five bits.
fn kind(packet: &[u8]) -> u8 {
    packet.first().map_or(0, |first| first >> 3)
}

impl Changes for Dying {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        if (self.dies_of)(&packet.bytes) {
            self.killer.get_or_insert_with(|| packet.bytes.clone());
        }
        self.dropped = self.dropped.map(|dropped| dropped + u64::from(self.killer.is_some()));
        if self.killer.is_none() || self.ends.is_late() { nic.send(packet) } else { Ok(()) }
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        let received = nic.receive(until)?;
        Ok(received.filter(|_| self.killer.is_none() || self.ends.is_late()))
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        let error = match self.ends {
            Ends::AtReset if self.killer.is_some() && matches!(op, Op::Reset(_)) => {
                io::ErrorKind::UnexpectedEof
            }
            Ends::HangsAtReset if self.killer.is_some() && matches!(op, Op::Reset(_)) => {
                io::ErrorKind::TimedOut
            }
            Ends::Hangs if self.killer.is_some() => io::ErrorKind::TimedOut,
            _ => return nic.ask(op),
        };
        self.hung = true;
        Err(CallError::Channel { op: op.name(), error: error.into() })
    }

    fn network_effects(&mut self, _: &mut Embedded) -> NetworkEffects {
        NetworkEffects { lost: self.dropped.unwrap_or(0), ..NetworkEffects::default() }
    }

    fn reads_nothing(&mut self) -> bool {
        self.dropped.is_some() && self.killer.is_some()
    }

    fn ended(&mut self) -> Option<String> {
        let ended = match self.ends {
            Ends::Never | Ends::Hangs | Ends::HangsAtReset => false,
            Ends::Soon => self.killer.is_some(),
            Ends::AtReset => self.hung,
        };
        ended.then(|| "exit status: 1".into())
    }

    fn restart(&mut self) -> io::Result<bool> {
        self.killer = self.killer.take().filter(|_| !self.restarts);
        self.starts += usize::from(self.restarts);
        self.hung &= !self.restarts;
        Ok(self.restarts)
    }
}

fn played(device: &mut Device<Dying>) -> RunResult {
    let groups = ["robustness", "ack"].map(String::from);
    run(device, &Options { groups: groups.to_vec(), ..Options::default() }, |_| ())
}

fn failed(result: &RunResult) -> Vec<&RuleResult> {
    result.rules.iter().filter(|rule| rule.verdict != Verdict::Pass).collect()
}

/// The queue of a device that reads nothing is full, so its host drops every packet. That is no excuse.
#[test]
fn the_rule_that_silences_it_fails_with_the_packet() {
    [None, Some(0)].into_iter().for_each(silenced);
}

fn silenced(dropped: Option<u64>) {
    let mut device = Dying::new(true);
    device.changes.dropped = dropped;
    let result = played(&mut device);
    let failed = failed(&result);
    let ids: Vec<&str> = failed.iter().map(|rule| &*rule.id).collect();
    let that_send_it = ["unknown-type", "tiny-packets", "random-packets", "bit-errors"];
    assert_eq!(ids, that_send_it.map(|name| format!("robustness/{name}")));
    for instance in failed.iter().flat_map(|rule| &rule.failing) {
        assert_eq!((instance.verdict, instance.attempts), (Verdict::Fail, 1));
        assert_eq!(instance.requirements, ["ROB-LIFE-001"]);
    }
    let worst = failed[0].worst().expect("an instance");
    let first = worst.at_packet.expect("the first packet without an answer");
    let silenced_by = worst.ladder.packets().position(|(_, wire)| kind(&wire.bytes) > 20);
    assert!(silenced_by.expect("it is in the trace") + 1 >= first, "{}", worst.reason);
    assert!(worst.reason.contains(&format!("no answer to packets {first} to ")), "{}", worst.reason);
    let silenced: usize = failed.iter().map(|rule| rule.instances.fail).sum();
    assert_eq!(device.changes.starts, 1 + silenced, "it is started again each time");
    assert_eq!((result.stopped, result.not_run), (None, 0));
}

#[test]
fn the_failure_of_a_device_that_ends_is_about_the_packets_without_an_answer() {
    let mut device = Dying::new(true);
    device.changes.ends = Ends::Soon;
    let options = Options { ids: vec!["robustness/unknown-type".into()], ..Options::default() };
    let result = run(&mut device, &options, |_| ());
    let worst = result.rules[0].worst().expect("a failure");
    assert!(worst.reason.contains("seen it ended: exit status: 1"), "{}", worst.reason);
    let last_answer = worst.ladder.of_the_device().last().expect("it answered before").0;
    assert_eq!(worst.observations[0].request, Some(last_answer + 1));
    assert_eq!(worst.at_packet, Some(last_answer + 1));
}

/// Returns the results of two rules. The first of them sends the packet.
fn two_rules(ends: Ends, restarts: bool) -> RunResult {
    let mut device = Dying::new(restarts);
    device.changes.ends = ends;
    let ids = ["robustness/unknown-type", "robustness/wrong-crc"].map(String::from);
    let mut result = run(&mut device, &Options { ids: ids.to_vec(), ..Options::default() }, |_| ());
    result.rules.iter_mut().for_each(|rule| rule.failing.truncate(1));
    result
}

#[test]
fn a_device_that_ends_after_an_instance_leaves_no_green_run() {
    for restarts in [true, false] {
        let result = two_rules(Ends::AtReset, restarts);
        let found = result.rules.iter().find_map(RuleResult::worst).expect("a failure");
        assert_eq!((found.verdict, found.requirements[0].as_str()), (Verdict::Fail, "ROB-LIFE-001"));
        let Liveness::EndedAfter(last) = &found.liveness else { panic!("{:?}", found.liveness) };
        assert!(last.starts_with("robustness/unknown-type"), "{last}");
        assert!(
            found.reason.contains(&format!("seen it ended after {last}: exit status: 1")),
            "{}",
            found.reason
        );
        let both =
            [last, &found.instance].map(|id| if id.contains('[') { format!("'{id}'") } else { id.into() });
        assert!(
            found.rerun.contains(&format!("--id {} --id {} --seed", both[0], both[1])),
            "{}",
            found.rerun
        );
        assert_eq!(result.stopped.is_none(), restarts, "{:?}", result.stopped);
    }
}

#[test]
fn a_device_that_ends_after_the_last_instance_leaves_no_green_run() {
    for (ends, what) in [(Ends::AtReset, "it ended after"), (Ends::HangsAtReset, "no answer after")] {
        let mut device = Dying::new(true);
        device.changes.ends = ends;
        let ids = vec!["robustness/unknown-type".into()];
        let result = run(&mut device, &Options { ids, max_instances: Some(1), ..Options::default() }, |_| ());
        let stopped = result.stopped.as_deref().expect("it ended");
        assert!(stopped.contains(&format!("{what} robustness/unknown-type")), "{stopped}");
        assert_eq!(result.exit_code(), 2);
    }
}

#[test]
fn a_device_that_hangs_fails() {
    for restarts in [true, false] {
        let result = two_rules(Ends::Hangs, restarts);
        let found = result.rules[0].worst().expect("a failure");
        assert_eq!((found.verdict, found.requirements[0].as_str()), (Verdict::Fail, "ROB-LIFE-001"));
        assert!(found.reason.contains("nor to a `reset` after it"), "{}", found.reason);
        assert_eq!(result.stopped.is_none(), restarts, "{:?}", result.stopped);
    }
}

/// Its own time-outs would explain each missing answer too. Only an unanswered `reset` shows that it does not run.
#[test]
fn a_device_that_hangs_within_a_rule_is_not_blamed_for_a_missing_answer() {
    let mut device = Dying::new(true);
    device.changes.ends = Ends::Hangs;
    device.changes.dies_of = |packet| match Uet::parse_lax(packet).0.pds {
        Some(Pds::Request(request)) => request.retx(),
        _ => false,
    };
    let ids = vec!["ack/retransmission".to_owned()];
    let result = run(&mut device, &Options { ids, ..Options::default() }, |_| ());
    let found = result.rules[0].worst().expect("a failure");
    assert_eq!((found.verdict, &found.liveness), (Verdict::Fail, &Liveness::Ended), "{}", found.reason);
    assert!(found.reason.contains("no answer to a `reset` after it"), "{}", found.reason);
}

/// A signal ends the run before the second instance: the first one has failed already.
#[test]
fn a_signal_keeps_the_failure_of_the_rule_in_progress() {
    for (id, fails) in [("robustness/unknown-type", true), ("ack/retransmission", false)] {
        let stop = Arc::new(AtomicBool::new(false));
        let (stops, played) = (Arc::clone(&stop), AtomicUsize::new(0));
        let before = Before::new(move |_| {
            stops.store(played.fetch_add(1, Ordering::Relaxed) == 1, Ordering::Relaxed);
        });
        let options = Options { ids: vec![id.into()], stop, before, ..Options::default() };
        let result = run(&mut Dying::new(true), &options, |_| ());
        let total: Vec<usize> = result.rules.iter().map(|rule| rule.instances.total()).collect();
        assert_eq!((total, result.not_run), if fails { (vec![1], 0) } else { (vec![], 1) }, "{id}");
        assert_eq!(result.circumstances.ended_by, Some(EarlyEnd::Signal), "{id}");
        assert_eq!(result.exit_code(), if fails { 1 } else { 3 }, "{id}");
    }
}

#[test]
fn without_a_restart_the_run_ends() {
    let result = played(&mut Dying::new(false));
    let failed = failed(&result);
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].verdict, Verdict::Fail);
    let stopped = result.stopped.expect("it ended");
    assert!(stopped.contains("silent since robustness/unknown-type"), "{stopped}");
    assert!(result.not_run > 0);
}

#[test]
fn a_device_that_ends_at_each_packet_ends_the_run_soon() {
    let mut device = Dying::new(true);
    device.changes.ends = Ends::Soon;
    device.changes.dies_of = |_| true;
    let result = run(&mut device, &Options { max_instances: Some(1), ..Options::default() }, |_| ());
    let stopped = result.stopped.expect("it ended");
    assert_eq!(stopped, "the device ended in each instance of 10 rules in a row");
    assert_eq!(result.rules.iter().filter(|rule| rule.verdict == Verdict::Fail).count(), 10);
}

/// A device that sends nothing from the begin, or nothing any more once a packet has silenced it. A restart changes nothing.
struct Mute {
    answers: bool,
}

impl Changes for Mute {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        self.answers &= kind(&packet.bytes) <= 20;
        nic.send(packet)
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        Ok(nic.receive(until)?.filter(|_| self.answers))
    }

    fn restart(&mut self) -> io::Result<bool> {
        Ok(true)
    }
}

#[test]
fn a_device_that_never_answers_ends_the_run_soon() {
    let result = run(&mut Device::new(Mute { answers: false }), &Options::default(), |_| ());
    let bad = |rule: &RuleResult| matches!(rule.verdict, Verdict::Fail | Verdict::Pass);
    assert!(!result.rules.iter().any(bad));
    let stopped = result.stopped.expect("it ended");
    assert!(stopped.contains("sent no packet in 5 instances in a row"), "{stopped}");
    assert_eq!(result.rules.iter().map(|rule| rule.instances.inconclusive).sum::<usize>(), 5);
}

/// Its rules that are skipped while they run, or before, stand between the others.
#[test]
fn skipped_instances_do_not_hide_the_silence() {
    let mut device = Device::new(Mute { answers: false });
    device.welcome.capabilities = ["rud", "write"].map(String::from).into();
    let result = run(&mut device, &Options::default(), |_| ());
    let count = |of: fn(&RuleResult) -> usize| result.rules.iter().map(of).sum::<usize>();
    assert!(count(|rule| rule.instances.skipped) > 0, "some are skipped in between");
    assert_eq!(count(|rule| rule.instances.inconclusive), 5);
    assert!(result.stopped.is_some_and(|stopped| stopped.contains("in 5 instances in a row")));
}

#[test]
fn a_device_that_stays_silent_after_its_restart_ends_the_run_soon() {
    let groups = vec!["robustness".to_owned()];
    let options = Options { groups, ..Options::default() };
    let result = run(&mut Device::new(Mute { answers: true }), &options, |_| ());
    let stopped = result.stopped.expect("it ended");
    assert!(stopped.starts_with("the device has been silent since robustness/unknown-type"), "{stopped}");
    assert!(stopped.ends_with("in 5 instances in a row"), "{stopped}");
}
