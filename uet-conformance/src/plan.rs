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
    // The instances that run in any case.
    let mut kept = HashSet::new();
    let mut counts = Vec::new();
    for (place, rule) in options.selected().into_iter().enumerate() {
        let mut instances = options.instances(rule, usable);
        // The rules alone exceed the default limit, so the seed has to choose among all instances of each.
        let choices = if options.max_instances.is_none() { instances.len() } else { 1 };
        kept.insert((place, rng.usize(..choices.max(1))));
        counts.push(instances.len());
        // Instances that cannot run give the reason, once for each value.
        instances.extend(
            Instance::unusable(rule, usable).filter(|_| !options.ids.iter().any(|id| id.contains('['))),
        );
        plan.push(Planned { rule, instances, instead: Vec::new() });
    }
    let all = plan
        .iter()
        .enumerate()
        .flat_map(|(rule, planned)| (0..planned.instances.len()).map(move |instance| (rule, instance)));
    let mut others: Vec<(usize, usize)> = all.filter(|place| !kept.contains(place)).collect();
    if kept.len() + others.len() > limit {
        rng.shuffle(&mut others);
        let left = others.split_off(limit.saturating_sub(plan.len()).min(others.len()));
        for (rule, instance) in left.into_iter().filter(|&(rule, instance)| instance < counts[rule]) {
            let other = plan[rule].instances[instance].clone();
            plan[rule].instead.push(other);
        }
        kept.extend(others);
        for (rule, planned) in plan.iter_mut().enumerate() {
            let mut places = 0..;
            planned
                .instances
                .retain(|_| places.next().is_some_and(|instance| kept.contains(&(rule, instance))));
        }
    }
    plan
}
