//! The interface of a script to the suite and the device.

mod check;
mod contexts;
mod exchange;
mod operations;
mod parameters;

use crate::axis::{START, Start};
use crate::carrier::Sends;
use crate::passive::{Checker, Finding};
use crate::phase::Phases;
use crate::shield::Shield;
use crate::{Axis, Dut, Entry, Instance, Ladder, Observation, Outcome, Pdc, Region, RxPacket, Show, Stop};
use core::cell::RefCell;
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uet_control::{Completion, Reset};
use uet_observe::Observer;
use uet_wire::registry::CtlType;
use uet_wire::{PdcId, Spec};

/// Number of attempts of a measurement on a shared machine or link.
const TRIES: u32 = 3;

/// The interface of a script to the suite and the device.
pub struct Test<'a> {
    pub(crate) dut: &'a mut dyn Dut,
    spec: &'static Spec,
    /// The running instance; `None` outside a rule.
    instance: Option<Instance>,
    scale: f64,
    pub(crate) rng: fastrand::Rng,
    /// True if the suite grants the requested credit automatically.
    pub auto_credit: bool,
    /// True if the suite acknowledges control packets automatically.
    pub auto_ack_control: bool,
    /// True if the script runs over IPv4. If the link carries both versions, the seed decides.
    ipv4: bool,
    /// The suite's PDCID of the next context; each context of a rule has its own.
    next_pdcid: u16,
    /// Parameters that the rule has set.
    pub(crate) set: BTreeMap<String, Value>,
    /// Names of parameters that the rule has read.
    pub(crate) read: RefCell<BTreeSet<String>>,
    /// The context and region of the liveness check.
    pub(crate) liveness: Option<(Pdc, Region)>,
    /// Maximum delay of the suite's answers.
    late: Duration,
    pub(crate) ladder: Ladder,
    pub(crate) phases: Phases,
    pub(crate) observations: Vec<Observation>,
    pub(crate) packets: usize,
    pub(crate) heard: bool,
    /// Writes sent as sends.
    pub(crate) sends: Sends,
    /// Number of completions of each operation.
    ended: BTreeMap<u64, usize>,
    /// Completions that the device has told; it need not tell them again.
    completions: BTreeMap<u64, Completion>,
    /// Read data that the device must take, by the PDCID of the suite and the PSN.
    pub(crate) proper_data: BTreeSet<(u16, u32)>,
    /// The ACK that refused such data.
    refused_data: Option<RxPacket>,
    /// The last control packet of a type that a device need not support, and its number.
    optional_control: Option<(CtlType, usize)>,
    /// Follows the contexts between suite and device, unless the checker does.
    observer: Observer,
    /// Judges the packets of both ends, in a random conversation.
    checker: Option<Box<Checker>>,
    passive_findings: VecDeque<Finding>,
    /// Ends, and numbers of idempotent requests, of packets that no peer sends. Nobody observes the answers
    /// to them.
    pub(crate) strange_ends: BTreeSet<(IpAddr, PdcId)>,
    pub(crate) strange_packets: BTreeSet<u32>,
    /// Number of packets sent since the last receive.
    unread: usize,
    /// Received packets that no expectation has taken.
    inbox: VecDeque<RxPacket>,
    /// The suite's part in the secure domain of the device.
    pub(crate) shield: Option<Box<Shield>>,
}

/// A count of bytes that the third packet of 4 KiB takes over the wrap of `rcvd_bytes`.
pub(crate) const BEFORE_WRAP: u64 = (1 << 32) - 40 * 256;

impl fmt::Debug for Test<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Test")
            .field("ladder", &self.ladder)
            .field("observations", &self.observations)
            .finish_non_exhaustive()
    }
}

impl<'a> Test<'a> {
    pub(crate) fn new(dut: &'a mut dyn Dut, spec: &'static Spec, seed: u64, scale: f64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let facts = dut.facts();
        // Consecutive seeds alternate.
        let ipv4 = facts.device.is_ipv4() != (facts.second_device.is_some() && seed % 2 == 1);
        Test {
            ipv4,
            dut,
            spec,
            instance: None,
            scale,
            auto_credit: true,
            auto_ack_control: true,
            next_pdcid: rng.u16(1..),
            rng,
            set: BTreeMap::new(),
            read: RefCell::default(),
            liveness: None,
            late: Duration::ZERO,
            ladder: Ladder::default(),
            phases: Phases::default(),
            observations: Vec::new(),
            packets: 0,
            heard: false,
            sends: Sends::default(),
            ended: BTreeMap::new(),
            completions: BTreeMap::new(),
            proper_data: BTreeSet::new(),
            refused_data: None,
            optional_control: None,
            observer: Observer::default(),
            checker: None,
            passive_findings: VecDeque::new(),
            strange_ends: BTreeSet::new(),
            strange_packets: BTreeSet::new(),
            unread: 0,
            inbox: VecDeque::new(),
            shield: None,
        }
    }

    /// Runs as this instance of a rule.
    pub(crate) fn at(self, instance: &Instance) -> Self {
        Test { instance: Some(instance.clone()), ..self }
    }

    /// Makes the PSNs of the device's own contexts and its counts of bytes start where [`START`] says, if the
    /// device lets them be set.
    pub(crate) fn begin(&mut self) -> Outcome {
        let start = self.value(&START);
        let counted = match start {
            Start::Any => return Ok(()),
            Start::Wrap => BEFORE_WRAP,
            Start::Half => BEFORE_WRAP - (1 << 31),
        };
        if self.claims("parameters") {
            let psn = self.start_at(start).0;
            self.try_configure("start_psn", psn)?;
            self.try_configure("start_rcvd_bytes", counted)?;
        }
        Ok(())
    }

    /// Returns the number of bytes from which `rcvd_bytes` counts.
    pub(crate) fn start_of_count(&self) -> u64 {
        self.parameter("start_rcvd_bytes")
    }

    /// Returns the value of an axis in this instance; the first value if the rule lacks the axis.
    pub fn value<T: Copy>(&self, axis: &Axis<T>) -> T {
        let index = self.instance.as_ref().and_then(|instance| instance.index(axis.name));
        axis.value(index.unwrap_or(0))
    }

    /// Adds a remark about the next step to the ladder.
    pub fn note(&mut self, text: impl Into<String>) {
        self.step(self.dut.now(), Entry::Note(text.into()));
    }

    /// Runs a measurement. On a shared machine or link, a failed one is repeated, since a wrong device fails
    /// each time. If the suite itself was too late, the result is inconclusive.
    pub fn measured(&mut self, measure: impl Fn(&mut Self) -> Outcome) -> Outcome {
        self.measured_by(&measure)
    }

    fn measured_by(&mut self, measure: &dyn Fn(&mut Self) -> Outcome) -> Outcome {
        let mut tries = if self.facts().virtual_time { 1 } else { TRIES };
        let before = self.observations.len();
        loop {
            self.late = Duration::ZERO;
            let outcome = measure(self);
            let held = outcome.is_ok() && self.observations.iter().skip(before).all(|seen| seen.held);
            tries -= 1;
            if held
                || matches!(outcome, Err(Stop::Skipped(_) | Stop::Gone(_)))
                || tries == 0 && self.late.is_zero()
            {
                return outcome;
            }
            self.observations.truncate(before);
            if tries == 0 {
                let late = self.late.show();
                let why =
                    format!("an answer of the suite left {late} late: the machine is too busy for this");
                return Err(Stop::Inconclusive(why));
            }
            self.note("measured again");
            self.call(Reset {})?;
            (self.liveness, self.auto_credit, self.auto_ack_control) = (None, true, true);
            self.inbox.clear();
            self.set.clear();
            self.observer = Observer::default();
            self.ended.clear();
            self.completions.clear();
            self.proper_data.clear();
            self.sends = Sends::default();
        }
    }

    /// Records the delay of an answer that a device can notice.
    pub(crate) fn was_late(&mut self, by: Duration) {
        if self.base_rtt().is_ok_and(|base| by * 4 > base) {
            self.late = self.late.max(by);
        }
    }
}
