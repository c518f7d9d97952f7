//! The instances of a run.

use crate::{Dut, Instance, Need, Options, Rule};
use std::collections::HashSet;
use uet_control::Link;

/// The maximum number of instances on a device outside of this process, unless [`Options::max_instances`] says otherwise.
pub const EXTERNAL_INSTANCES: usize = 1000;

/// Returns the rules and their instances in the order in which they run.
pub(crate) fn plan(dut: &dyn Dut, options: &Options) -> Vec<(&'static Rule, Vec<Instance>)> {
    let usable = |needs: &[Need]| needs.iter().all(|need| need.lacking(dut.welcome(), dut.facts()).is_none());
    // A device outside of the process is slow even in virtual time.
    let embedded = matches!(dut.welcome().link, Link::Inside { .. });
    let limit = options.max_instances.or((!embedded).then_some(EXTERNAL_INSTANCES)).unwrap_or(usize::MAX);
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let mut plan: Vec<(&'static Rule, Vec<Instance>)> = Vec::new();
    // The instances that run in any case.
    let mut kept = HashSet::new();
    for (place, rule) in options.selected().into_iter().enumerate() {
        let mut instances = options.instances(rule, usable);
        // The rules alone exceed the default limit, so the seed has to choose among all instances of each.
        let choices = if options.max_instances.is_none() { instances.len() } else { 1 };
        kept.insert((place, rng.usize(..choices.max(1))));
        // Instances that cannot run give the reason, once for each value.
        instances.extend(
            Instance::unusable(rule, usable).filter(|_| !options.ids.iter().any(|id| id.contains('['))),
        );
        plan.push((rule, instances));
    }
    let all = plan
        .iter()
        .enumerate()
        .flat_map(|(rule, (_, instances))| (0..instances.len()).map(move |instance| (rule, instance)));
    let mut others: Vec<(usize, usize)> = all.filter(|place| !kept.contains(place)).collect();
    if kept.len() + others.len() > limit {
        rng.shuffle(&mut others);
        kept.extend(others.into_iter().take(limit.saturating_sub(plan.len())));
        for (rule, (_, instances)) in plan.iter_mut().enumerate() {
            let mut places = 0..;
            instances.retain(|_| places.next().is_some_and(|instance| kept.contains(&(rule, instance))));
        }
    }
    plan
}
