//! Losses on the host of the suite, and a device that is far away.

use super::{Hears, Says, device, get, hears_all, is, others, passes, results, says_all, set, verdict};
use crate::around::{Changes, Device};
use core::time::Duration;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use uet_conformance::{Dut, DutError, NetworkEffects, Options, Verdict, Wire, run};
use uet_control::{CallError, Op};
use uet_harness::dut::Embedded;
use uet_wire::registry::PdsType;

/// A datagram that the host is known to have lost is not the device's fault.
#[test]
fn its_host_loses_a_datagram() {
    let once: Hears = |device, wire| {
        let lost = is(wire, "pds.type", PdsType::RUDI_REQ.code()) && device.effects.lost == 0;
        device.effects.lost += u64::from(lost);
        !lost
    };
    passes("rudi/one-response", once, says_all);
    let always: Hears = |device, wire| {
        let lost = is(wire, "pds.type", PdsType::RUDI_REQ.code());
        device.effects.lost += u64::from(lost);
        !lost
    };
    let (verdict, reason) = verdict("rudi/one-response", 1, always, says_all);
    assert_eq!(verdict, Verdict::Inconclusive, "{reason}");
}

/// A host on which the device gets no time for the first RUDI request, in this many attempts.
struct Late {
    attempts: u32,
    has_lost: bool,
    is_busy: bool,
}

impl Changes for Late {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        if !self.has_lost && self.attempts > 0 && is(packet, "pds.type", PdsType::RUDI_REQ.code()) {
            self.has_lost = true;
            self.attempts -= 1;
            return Ok(());
        }
        nic.send(packet)
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        self.has_lost &= !matches!(op, Op::Reset(_));
        nic.ask(op)
    }

    fn is_host_busy(&mut self) -> bool {
        self.is_busy
    }
}

/// A busy host settles a failure by another attempt. A device that fails each time is wrong.
#[test]
fn its_host_is_busy() {
    for (attempts, is_busy, expected) in
        [(1, true, (Verdict::Pass, 2)), (1, false, (Verdict::Fail, 1)), (u32::MAX, true, (Verdict::Fail, 4))]
    {
        let late = Late { attempts, has_lost: false, is_busy };
        let result = results(&mut Device::new(late), &["rudi/one-response"]);
        let rule = &result.rules[0];
        assert_eq!((rule.verdict, rule.attempts), expected, "{attempts} {is_busy}: {}", rule.reason);
        // A report names the instances that passed only at another attempt.
        assert_eq!(rule.passed_later.is_empty(), expected != (Verdict::Pass, 2));
    }
}

/// Repetitions count how often an instance fails, so a busy host replaces none of them.
#[test]
fn repetitions_count_each_failure() {
    let late = Late { attempts: 1, has_lost: false, is_busy: true };
    let ids = vec!["rudi/one-response".to_owned()];
    let options = Options { ids, repeat: 3, max_instances: Some(1), ..Options::default() };
    let result = run(&mut Device::new(late), &options, |_| ());
    assert_eq!((result.rules[0].verdict, result.rules[0].attempts), (Verdict::Flaky, 3));
}

/// A device that ignores RUDI requests, although it claims to serve them.
#[test]
fn a_claim_that_no_rule_supports_is_named() {
    let ids = ["rudi/one-response", "rudi/mark", "rudi/unreachable", "ack/retx"];
    let unsupported = |attempts| {
        let result = results(&mut Device::new(Late { attempts, has_lost: false, is_busy: false }), &ids);
        let claims = result.unsupported_claims(uet_conformance::RULES);
        claims.into_iter().map(|(claim, ran)| (claim.to_owned(), ran)).collect::<Vec<_>>()
    };
    assert_eq!(unsupported(u32::MAX), [("rudi".to_owned(), 3)]);
    assert_eq!(unsupported(0), []);
}

/// A device whose ACKs have both PDCIDs in each other's place.
#[test]
fn an_ack_for_no_context_of_the_suite_is_named() {
    let says: Says = |device, mut wire| {
        let ids = ["pds.spdcid", "pds.dpdcid"].map(|name| get(&wire, name));
        if let ([Some(from), Some(to)], true) = (ids, is(&wire, "pds.type", PdsType::ACK_CC.code())) {
            set(&mut wire, "pds.spdcid", to);
            set(&mut wire, "pds.dpdcid", from);
        }
        device.came.push_back(wire);
    };
    for id in ["ack/requested", "close/one-of-two"] {
        let result = results(&mut device(hears_all, says), &[id]);
        let reason = &result.rules[0].reason;
        assert!(reason.contains(", for PDCID 0x0001, which is none of the suite's"), "{id}: {reason}");
    }
}

/// A network of which nothing is known but that it takes 150 ms each way.
#[derive(Default)]
struct Far {
    under_way: VecDeque<(Duration, bool, Wire)>,
}

const ONE_WAY: Duration = Duration::from_millis(150);

impl Changes for Far {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        self.under_way.push_back((nic.now() + ONE_WAY, true, packet.clone()));
        Ok(())
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            let next = self.under_way.front().map_or(until, |(at, ..)| (*at).min(until));
            if let Some(wire) = nic.receive(next)? {
                self.under_way.push_back((nic.now() + ONE_WAY, false, wire));
                continue;
            }
            match self.under_way.pop_front() {
                Some((at, true, wire)) if at <= until => nic.send(&wire)?,
                Some((at, false, wire)) if at <= until => return Ok(Some(wire)),
                Some(later) => {
                    self.under_way.push_front(later);
                    return Ok(None);
                }
                None => return Ok(None),
            }
        }
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        if matches!(op, Op::Reset(_)) {
            self.under_way.clear();
        }
        nic.ask(op)
    }

    fn network_effects(&mut self, _: &mut Embedded) -> NetworkEffects {
        NetworkEffects::default()
    }
}

#[test]
fn it_is_far_away() {
    let result = results(&mut Device::new(Far::default()), &[]);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped, Verdict::Inconclusive]), [""; 0]);
    assert!(result.count(Verdict::Pass) > 300, "{} passed", result.count(Verdict::Pass));
}
