//! The selection and the settings of a run.

use crate::{Corrections, Expand, Instance, Registry, Shard, Statement};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use uet_wire::catalogue::Level;
use uet_wire::{Spec, Version};

/// Selection and settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The rules of the suite, which the following fields select from.
    pub rules: Registry,
    /// Groups of rules to run; all if empty.
    pub groups: Vec<String>,
    /// Ids of rules or of requirements of rules to run; all if empty.
    pub ids: Vec<String>,
    /// Levels of the gravest requirement of rules to run; all if empty.
    pub levels: Vec<Level>,
    /// Capabilities that rules to run need; all if empty.
    pub capabilities: Vec<String>,
    /// A part of the selected rules.
    pub shard: Shard,
    /// Choice of combinations of axis values.
    pub expand: Expand,
    /// The maximum number of instances, at least the first of each rule. `None` means all for a device in
    /// this process. For any other it means [`EXTERNAL_INSTANCES`](crate::EXTERNAL_INSTANCES), but at least
    /// one of each rule, which the seed chooses. If the device cannot play the instances of a rule, others
    /// are tried. Rules that are skipped leave their part of the limit to later ones.
    pub max_instances: Option<usize>,
    /// Known or required properties of the device beyond its own claims.
    pub statement: Statement,
    /// Corrections of the catalogue.
    pub corrections: Corrections,
    /// The version of the specification that judges the device.
    pub spec: &'static Spec,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Factor for all expected times.
    pub timeout_scale: f64,
    /// Number of times each rule runs.
    pub repeat: u32,
    /// Maximum number of attempts of an instance that does not pass while the network affects its packets.
    pub attempts: u32,
    /// Stop at the first failing instance. With waivers, stop after its rule, because a waiver may cover
    /// the rule.
    pub fail_fast: bool,
    /// When set, no further instance begins. The current one gets no verdict, because the stop signal may
    /// have reached the device too.
    pub stop: Arc<AtomicBool>,
    /// The command that connects to the same device; results contain it in the command that reruns a rule.
    pub command: String,
    /// Called before each instance.
    pub before: Before,
}

/// A function that is called before each instance, such as one that waits for a person.
#[derive(Clone, Default)]
pub struct Before(Option<Arc<Call>>);

type Call = dyn Fn(&Instance) + Send + Sync;

impl Before {
    /// Creates it from the function.
    pub fn new(call: impl Fn(&Instance) + Send + Sync + 'static) -> Self {
        Before(Some(Arc::new(call)))
    }

    pub(crate) fn call(&self, instance: &Instance) {
        if let Some(call) = &self.0 {
            call(instance);
        }
    }
}

impl core::fmt::Debug for Before {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Before").field(&self.0.is_some()).finish()
    }
}

#[cfg(not(test))]
impl Default for Options {
    fn default() -> Self {
        Options::of(crate::RULES)
    }
}

impl Options {
    /// Selects all of these rules.
    pub fn of(rules: Registry) -> Self {
        Options {
            rules,
            groups: Vec::new(),
            ids: Vec::new(),
            levels: Vec::new(),
            capabilities: Vec::new(),
            shard: Shard::WHOLE,
            expand: Expand::default(),
            max_instances: None,
            statement: Statement::default(),
            corrections: Corrections::default(),
            spec: Version::default().spec(),
            seed: 1,
            timeout_scale: 1.0,
            repeat: 1,
            attempts: 10,
            fail_fast: false,
            stop: Arc::default(),
            command: "uet run".into(),
            before: Before::default(),
        }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
