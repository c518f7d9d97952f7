//! A device that does nothing passes nothing, and is not blamed for what cannot be known.

use core::time::Duration;
use serde_json::{Map, Value, json};
use uet_conformance::{Dut, DutError, Facts, Options, Verdict, Wire, run};
use uet_control::{CallError, Op, Welcome};

/// Claims everything, answers every operation, and lets every packet vanish.
struct Silent {
    welcome: Welcome,
    facts: Facts,
    now: Duration,
}

impl Silent {
    fn new() -> Self {
        let claims = json!({
            "protocol": 1, "name": "silent", "link": {"kind": "inside", "addr": "10.0.0.2"},
            "capabilities": ["rud", "rod", "rudi", "uud", "write", "read", "send", "tsend", "receive", "atomic"],
        });
        let facts = Facts {
            local: vec![[10, 0, 0, 1].into(), [10, 0, 0, 3].into()],
            device: [10, 0, 0, 2].into(),
            trim: true,
            set_ecn: true,
            set_entropy: true,
            see_class: true,
            see_entropy: true,
            crc: true,
            virtual_time: true,
        };
        Silent { welcome: serde_json::from_value(claims).unwrap(), facts, now: Duration::ZERO }
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

    fn send(&mut self, _: &Wire) -> Result<(), DutError> {
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        self.now = self.now.max(until);
        Ok(None)
    }

    fn ask(&mut self, _: Op) -> Result<Map<String, Value>, CallError> {
        let Value::Object(answer) = json!({
            "peer": 1, "region": 1, "operation": 1, "data": "00", "taken": [], "status": "ok",
        }) else {
            unreachable!()
        };
        Ok(answer)
    }
}

#[test]
fn a_device_that_does_nothing_gets_no_pass() {
    let mut told = 0;
    let result = run(&mut Silent::new(), &Options::default(), |_| told += 1);
    assert!(told > 0 && told == result.cases.len());
    let judged = |verdict| !matches!(verdict, Verdict::Inconclusive | Verdict::Skipped);
    let wrong: Vec<_> = result.cases.iter().filter(|case| judged(case.verdict)).collect();
    let wrong: Vec<_> = wrong.iter().map(|case| (&case.id, case.verdict, &case.reason)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(result.exit_code(), 3);
}

#[test]
fn the_same_seed_makes_the_same_packets() {
    let ladders = |seed| {
        let options = Options { seed, ..Options::default() };
        let result = run(&mut Silent::new(), &options, |_| ());
        result.cases.into_iter().map(|case| case.ladder).collect::<Vec<_>>()
    };
    assert_eq!(ladders(7), ladders(7));
    assert_ne!(ladders(7), ladders(8));
}
