//! An idle device passes no rule, and no rule fails for an unknown reason.

use core::net::IpAddr;
use core::time::Duration;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, VecDeque};
use uet_conformance::random::{self, Length};
use uet_conformance::{
    Dut, DutError, Facts, Instance, Options, RULES, Rule, RuleResult, Verdict, Wire, rule, run, run_instance,
};
use uet_control::{CallError, Counters, ErrorCode, Op, Refusal, Welcome};
use uet_wire::pds::{Nack, Pds};
use uet_wire::registry::NackCode;
use uet_wire::tss::Outer;
use uet_wire::{Uet, UetBuf, Version};

/// Behavior of an idle device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idle {
    /// It succeeds at every operation and drops every packet.
    NoPackets,
    /// It drops every packet, and its control channel is silent.
    Nothing,
    /// It succeeds at every operation, acknowledges nothing, and refuses every request.
    NoAcks,
    /// It answers only `reset`.
    HalfDead,
    /// It succeeds at every operation and sends packets endlessly.
    Floods,
    /// It refuses parameters and counters, and drops every packet.
    Refuses,
}

/// A device that claims every capability and does nothing.
struct Silent {
    how: Idle,
    welcome: Welcome,
    facts: Facts,
    now: Duration,
    refusals: VecDeque<Wire>,
    /// Behavior after a restart, if it can be restarted.
    anew: Option<Idle>,
}

impl Silent {
    fn new(how: Idle) -> Self {
        let needs = RULES.iter().flat_map(|rule| rule.all_needs());
        let claims: BTreeSet<&str> = needs.filter_map(|need| need.capability()).collect();
        let claims = json!({
            "protocol": 1, "name": "silent", "link": {"kind": "inside", "addr": "10.0.0.2"}, "capabilities": claims,
            "parameters": {
                "base_rtt": 6_000, "sender_rate": 100_000_000_000_u64, "receiver_rate": 100_000_000_000_u64,
                "congestion": "nscc", "close_req_time": 1_000_000, "general_pdcs": 8, "reserved_pdcs": 1,
            },
        });
        let facts = Facts {
            trim: true,
            set_ecn: true,
            set_entropy: true,
            set_ttl: true,
            see_class: true,
            see_entropy: true,
            crc: true,
            virtual_time: true,
            ..Facts::new(
                &[[10, 0, 0, 1], [10, 0, 0, 3], [10, 0, 0, 4]].map(IpAddr::from),
                [10, 0, 0, 2].into(),
            )
        };
        let welcome = serde_json::from_value(claims).unwrap();
        Silent { how, welcome, facts, now: Duration::ZERO, refusals: VecDeque::new(), anew: None }
    }
}

impl Dut for Silent {
    fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn outer(&self, packet: &Wire, length: usize, _: bool) -> Option<Outer> {
        Some(Outer::udp(packet.src, packet.dst, packet.entropy, length))
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        let (uet, _) = Uet::parse_lax(&packet.bytes);
        let request = uet.pds.and_then(|pds: Pds<'_>| pds.request());
        if let (Idle::NoAcks, Some(request)) = (self.how, request) {
            let nack = Nack::build(NackCode::NO_RESOURCE).nack_psn(request.psn()).dpdcid(request.spdcid());
            let bytes = UetBuf::new(nack.done().unwrap()).to_bytes();
            self.refusals.push_back(Wire { src: packet.dst, dst: packet.src, bytes, ..packet.clone() });
        }
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        if let Some(refusal) = self.refusals.pop_front() {
            return Ok(Some(refusal));
        }
        if self.how == Idle::Floods {
            let (src, dst) = (self.facts.device, self.facts.local[0]);
            return Ok(Some(Wire::new(src, dst, 0, vec![0; 8192])));
        }
        self.now = self.now.max(until);
        Ok(None)
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        let is_reset = matches!(op, Op::Reset(_));
        if self.how == Idle::Nothing || self.how == Idle::HalfDead && !is_reset {
            return Err(CallError::Channel { op: op.name(), error: std::io::ErrorKind::TimedOut.into() });
        }
        let answer = match &op {
            Op::Configure(_) if self.how == Idle::Refuses => {
                json!({"taken": [], "refused": {"payload_mtu": "it is fixed"}})
            }
            Op::Counters(_) if self.how == Idle::Refuses => {
                let refusal = Refusal { code: ErrorCode::Exhausted, message: "too many".into() };
                return Err(CallError::Refused { op: op.name(), refusal });
            }
            Op::Configure(configure) => json!({"taken": configure.parameters.keys().collect::<Vec<_>>()}),
            Op::ReadMemory(read) => json!({"data": "00".repeat(read.length as usize)}),
            Op::WaitCompletion(wait) => {
                self.now += Duration::from_nanos(wait.timeout_ns);
                let refusal = Refusal { code: ErrorCode::Timeout, message: "not yet".into() };
                return Err(CallError::Refused { op: op.name(), refusal });
            }
            _ => json!({"peer": 1, "region": 1, "operation": 1}),
        };
        let Value::Object(answer) = answer else { unreachable!() };
        Ok(answer)
    }

    fn restart(&mut self) -> std::io::Result<bool> {
        self.how = self.anew.unwrap_or(self.how);
        Ok(self.anew.is_some())
    }
}

fn judged(how: Idle) -> Vec<RuleResult> {
    judged_of(Silent::new(how), 1)
}

/// Runs each rule in a run of its own: a run ends soon if a device answers nothing.
fn judged_of(mut device: Silent, seed: u64) -> Vec<RuleResult> {
    let (mut results, how) = (Vec::new(), device.how);
    for rule in RULES.iter() {
        let options =
            Options { ids: vec![rule.id.into()], max_instances: Some(3), seed, ..Options::default() };
        results.extend(run(&mut device, &options, |_| ()).rules);
    }
    assert!(results.len() > 700 && results.len() == RULES.iter().count());
    let passed: Vec<_> = results.iter().filter(|rule| rule.verdict == Verdict::Pass).collect();
    let passed: Vec<_> = passed.iter().map(|rule| &rule.id).collect();
    assert!(passed.is_empty(), "{how:?}: {passed:#?}");
    results
}

#[test]
fn idle_device_gets_no_pass_and_no_failure() {
    // A device that is restarted once its control channel is silent.
    let hung = Silent { anew: Some(Idle::NoPackets), ..Silent::new(Idle::Nothing) };
    for device in [Silent::new(Idle::NoPackets), hung] {
        let how = device.how;
        let rules = judged_of(device, 1);
        let wrong: Vec<_> = rules.iter().filter(|rule| rule.verdict.is_failure()).collect();
        let wrong: Vec<_> = wrong.iter().map(|rule| (&rule.id, rule.verdict, &rule.reason)).collect();
        assert!(wrong.is_empty(), "{how:?}: {wrong:#?}");
        let skipped = rules.iter().filter(|rule| rule.verdict == Verdict::Skipped).count();
        assert!(skipped < rules.len() / 10, "{how:?}: {skipped} skipped");
    }
}

#[test]
fn run_on_a_device_without_packets_ends_soon() {
    let result = run(&mut Silent::new(Idle::NoPackets), &Options::default(), |_| ());
    let played: usize = result.rules.iter().map(|rule| rule.instances.inconclusive).sum();
    assert_eq!(played, 5);
    let stopped = result.stopped.as_deref().unwrap_or_default();
    assert!(
        stopped.starts_with("the device sent no packet in 5 instances in a row: `uet doctor`"),
        "{stopped}"
    );
    assert_eq!(result.exit_code(), 2);
}

#[test]
fn a_device_that_has_gone_ends_the_run() {
    let gone = Silent::new(Idle::Nothing);
    // A restart does not help.
    let again = Silent { anew: Some(Idle::Nothing), ..Silent::new(Idle::Nothing) };
    for mut device in [gone, again] {
        let result = run(&mut device, &Options::default(), |_| ());
        assert_eq!((result.rules.len(), result.rules[0].instances.inconclusive), (1, 2));
        assert_eq!(result.stopped.as_deref(), Some("the device did not answer to reset, 2 times in a row"));
        assert_eq!(result.exit_code(), 2);
    }
}

#[test]
fn device_with_excessive_parameters_is_not_run() {
    for (name, value) in [("rto_init_time", u64::MAX), ("payload_mtu", 0)] {
        let mut device = Silent::new(Idle::NoAcks);
        device.welcome.parameters.insert(name.into(), value.into());
        let result = run(&mut device, &Options::default(), |_| ());
        let stopped = result.stopped.as_deref().unwrap_or_default();
        assert!(
            stopped.starts_with(&format!("the device's parameter {name} is {value}, but must be from ")),
            "{stopped}"
        );
        assert_eq!((result.rules.len(), result.not_run), (0, RULES.iter().count()));
        assert_eq!(result.exit_code(), 2);
        let random = random::run(&mut device, &Options::default(), Length::Conversations(1), |_| ());
        assert_eq!((random.stopped, random.random), (result.stopped, None));
    }
}

#[test]
fn half_dead_or_flooding_device_ends_the_run_with_the_bound() {
    for (how, bound) in [
        (Idle::HalfDead, "the control channel"),
        (Idle::Floods, "more than 32768 packets or 16777216 bytes in one rule"),
    ] {
        let result = run(&mut Silent::new(how), &Options::default(), |_| ());
        assert!(result.rules.len() <= 10, "{how:?}: {} rules", result.rules.len());
        assert_eq!(result.count(Verdict::Pass), 0, "{how:?}");
        let stopped = result.stopped.as_deref().unwrap_or_default();
        assert!(stopped.contains(bound) && stopped.ends_with("3 instances in a row"), "{how:?}: {stopped}");
        assert!(
            result.rules.iter().flat_map(|rule| &rule.failing).all(|it| it.ladder.entries.len() <= 1001),
            "{how:?}"
        );
        assert_eq!(result.exit_code(), 2, "{how:?}");
    }
}

#[test]
fn device_without_acks_gets_no_pass() {
    let failed = judged(Idle::NoAcks).iter().filter(|rule| rule.verdict == Verdict::Fail).count();
    assert!(failed > 100, "{failed} fail");
}

#[test]
fn trace_shows_refused_operations() {
    static REFUSED: Rule = rule("test/refused", "").run(|t| {
        t.try_configure("payload_mtu", 1024)?;
        t.call(Counters {})?;
        Ok(())
    });
    let (mut device, spec) = (Silent::new(Idle::Refuses), Version::default().spec());
    let trace = run_instance(&mut device, &Instance::first(&REFUSED), spec, 1, 1.0).ladder.to_string();
    let lines = trace.lines().map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "));
    let wanted = [
        r#"control: configure {"parameters":{"payload_mtu":1024}}"#,
        "refused: payload_mtu: it is fixed",
        "control: counters {}",
        "refused: counters: exhausted: too many",
    ];
    assert_eq!(lines.collect::<Vec<_>>(), wanted);
}

#[test]
fn equal_seeds_make_equal_packets() {
    let ladders = |seed| {
        let rules = judged_of(Silent::new(Idle::NoPackets), seed);
        rules.into_iter().flat_map(|rule| rule.failing).map(|it| it.ladder).collect::<Vec<_>>()
    };
    assert_eq!(ladders(7), ladders(7));
    assert_ne!(ladders(7), ladders(8));
}
