//! The instances of a run.

use crate::{Dut, Instance, Need, Options, Rule};
use std::collections::HashSet;
use uet_control::Link;

/// The maximum number of instances on a device outside of this process, unless [`Options::max_instances`]
/// says otherwise.
pub const EXTERNAL_INSTANCES: usize = 1000;

/// A rule and its instances in the order in which they run.
pub(crate) struct Planned {
    pub rule: &'static Rule,
    pub instances: Vec<Instance>,
    /// The instances to run instead if the device can play none of those.
    pub instead: Vec<Instance>,
}

/// Returns the rules in the order in which they run.
pub(crate) fn plan(dut: &dyn Dut, options: &Options) -> Vec<Planned> {
    let usable = |needs: &[Need]| needs.iter().all(|need| need.lacking(dut.welcome(), dut.facts()).is_none());
    // A device outside of the process is slow even in virtual time.
    let embedded = matches!(dut.welcome().link, Link::Inside { .. });
    let limit = options.max_instances.or((!embedded).then_some(EXTERNAL_INSTANCES)).unwrap_or(usize::MAX);
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let mut plan: Vec<Planned> = Vec::new();
    // The instances that run in any case, and the others.
    let (mut kept, mut others) = (HashSet::new(), Vec::new());
    let mut counts = Vec::new();
    for (place, rule) in options.selected().into_iter().enumerate() {
        let mut instances = options.instances(rule, usable);
        // The rules alone may exceed the default limit, so the seed has to choose among all instances of each.
        let choices = if options.max_instances.is_none() { instances.len() } else { 1 };
        let first = rng.usize(..choices.max(1));
        counts.push(instances.len());
        for instance in 0..instances.len() {
            if instance == first {
                kept.insert((place, instance));
            } else {
                others.push((place, instance));
            }
        }
        // Instances that cannot run give the reason, once for each value. They take no time and do not count.
        instances.extend(
            Instance::unusable(rule, usable).filter(|_| !options.ids.iter().any(|id| id.contains('['))),
        );
        plan.push(Planned { rule, instances, instead: Vec::new() });
    }
    if kept.len() + others.len() > limit {
        rng.shuffle(&mut others);
        for (rule, instance) in others.split_off(limit.saturating_sub(kept.len()).min(others.len())) {
            let other = plan[rule].instances[instance].clone();
            plan[rule].instead.push(other);
        }
        kept.extend(others);
        for (rule, planned) in plan.iter_mut().enumerate() {
            let mut places = 0..;
            planned.instances.retain(|_| {
                places
                    .next()
                    .is_some_and(|instance| instance >= counts[rule] || kept.contains(&(rule, instance)))
            });
        }
    }
    plan
}
