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
    /// How many of the instances count: those that the device can play, as far as it claims.
    pub counted: usize,
    /// Others, in random order. They run if the device can play none of those, or has skipped other rules.
    pub instead: Vec<Instance>,
}

/// Returns the maximum number of instances.
pub(crate) fn limit(dut: &dyn Dut, options: &Options) -> usize {
    // A device outside of the process is slow even in virtual time.
    let embedded = matches!(dut.welcome().link, Link::Inside { .. });
    options.max_instances.or((!embedded).then_some(EXTERNAL_INSTANCES)).unwrap_or(usize::MAX)
}

/// Returns how many more instances than planned the first of these rules may play. Rules that the device
/// skipped have left a part of the limit, and this is its share of it. `played` counts the instances so far,
/// with those of this rule.
pub(crate) fn share(rules: &[Planned], limit: usize, played: usize) -> usize {
    let [now, later @ ..] = rules else { return 0 };
    let planned: usize = later.iter().map(|rule| rule.counted).sum();
    let others: usize = rules.iter().map(|rule| rule.instead.len()).sum();
    let left = limit.saturating_sub(played + planned);
    (left * now.instead.len()).checked_div(others).unwrap_or(0)
}

/// Returns the rules in the order in which they run.
pub(crate) fn plan(dut: &dyn Dut, options: &Options) -> Vec<Planned> {
    let usable = |needs: &[Need]| needs.iter().all(|need| need.lacking(dut.welcome(), dut.facts()).is_none());
    let limit = limit(dut, options);
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let mut plan: Vec<Planned> = Vec::new();
    // The instances that run in any case, and the others.
    let (mut kept, mut others) = (HashSet::new(), Vec::new());
    let mut counts = Vec::new();
    for (place, rule) in options.selected().into_iter().enumerate() {
        let mut instances = options.instances(rule, usable);
        // A rule that the device cannot play says so once, and leaves the limit to the others.
        let playable = if usable(rule.needs) { instances.len() } else { 0 };
        instances.truncate(playable.max(1));
        // The rules alone may exceed the default limit, so the seed has to choose among all instances of
        // each.
        let choices = if options.max_instances.is_none() { playable } else { 1 };
        let first = rng.usize(..choices.max(1));
        counts.push(playable);
        for instance in 0..playable {
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
        plan.push(Planned { rule, instances, counted: playable, instead: Vec::new() });
    }
    if kept.len() + others.len() > limit {
        rng.shuffle(&mut others);
        for (rule, instance) in others.split_off(limit.saturating_sub(kept.len()).min(others.len())) {
            let other = plan[rule].instances[instance].clone();
            plan[rule].instead.push(other);
            plan[rule].counted -= 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::axis;
    use crate::needs::READ;
    use crate::{Axis, DutError, Facts, Registry, Wire, rule, run, skip};
    use core::time::Duration;
    use serde_json::{Map, Value, json};
    use uet_control::{CallError, Op, Welcome};
    use uet_wire::catalogue::PDS_ACK_002;

    const TENS: Axis<u8> = axis("tens").values(&[("0", 0), ("1", 1), ("2", 2), ("3", 3), ("4", 4), ("5", 5)]);
    const ONES: Axis<u8> = axis("ones").values(&[("0", 0), ("1", 1), ("2", 2), ("3", 3), ("4", 4), ("5", 5)]);
    const OF_WRITES: Rule = rule("x/writes", "").over(&[&TENS, &ONES]).run(|t| {
        t.check(PDS_ACK_002, "it", true, true);
        Ok(())
    });
    const OF_SENDS: Rule = rule("x/sends", "").over(&[&TENS, &ONES]).run(|_| skip("it refuses post"));
    const OF_READS: Rule = rule("x/reads", "").needs(&[READ]).over(&[&TENS, &ONES]).run(|_| Ok(()));

    /// An external device that no test plays on.
    struct Claims(Welcome, Facts);

    impl Dut for Claims {
        fn welcome(&self) -> &Welcome {
            &self.0
        }

        fn facts(&self) -> &Facts {
            &self.1
        }

        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn send(&mut self, _: &Wire) -> Result<(), DutError> {
            Ok(())
        }

        fn receive(&mut self, _: Duration) -> Result<Option<Wire>, DutError> {
            Ok(None)
        }

        fn ask(&mut self, _: Op) -> Result<Map<String, Value>, CallError> {
            Ok(Map::new())
        }
    }

    fn small() -> Claims {
        let welcome = json!({
            "protocol": 1, "name": "small", "link": {"kind": "udp", "addr": "127.0.0.2", "port": 4793},
            "capabilities": ["rud", "write"], "parameters": {},
        });
        let welcome = serde_json::from_value(welcome).expect("a welcome");
        Claims(welcome, Facts::new(&[[127, 0, 0, 1].into()], [127, 0, 0, 2].into()))
    }

    /// Rules that it cannot play once took half of the limit.
    #[test]
    fn a_small_device_plays_as_many_instances_as_the_limit_allows() {
        let device = small();
        let plan = plan(&device, &Options::of(Registry::new(&[&[&[OF_WRITES; 30], &[OF_READS; 30]]])));
        let can = |instance: &&Instance| {
            instance.needs().all(|need| need.lacking(device.welcome(), device.facts()).is_none())
        };
        let played = plan.iter().flat_map(|planned| &planned.instances).filter(can).count();
        assert_eq!(played, EXTERNAL_INSTANCES);
    }

    /// So did rules that it skips for another reason than its claims.
    #[test]
    fn skipped_rules_leave_their_part_of_the_limit_to_later_ones() {
        let rules = Registry::new(&[&[&[OF_SENDS; 10], &[OF_WRITES; 20], &[OF_SENDS; 10], &[OF_WRITES; 20]]]);
        let result = run(&mut small(), &Options::of(rules), |_| ());
        let played: usize = result.rules.iter().map(|rule| rule.instances.pass).sum();
        assert_eq!((result.rules.len(), played), (60, EXTERNAL_INSTANCES));
    }
}
