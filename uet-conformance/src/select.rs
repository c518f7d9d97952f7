//! The selection of rules and their instances by the options of a run.

use crate::{Instance, Need, Options, Rule};
use uet_wire::catalogue::Level;

impl Options {
    /// Returns whether a rule is selected, regardless of [`shard`](Self::shard).
    pub fn selects(&self, rule: &Rule) -> bool {
        fn any<T>(wanted: &[T], has: impl FnMut(&T) -> bool) -> bool {
            wanted.is_empty() || wanted.iter().any(has)
        }
        any(&self.groups, |group| group.eq_ignore_ascii_case(rule.group()))
            && any(&self.ids, |id| names(id, rule) || rule.checks(id))
            && any(&self.levels, |level| self.corrections.level_of(rule.requirements) == Some(*level))
            && any(&self.capabilities, |name| rule.wants(name))
    }

    /// Returns the selected instances of a rule. Their values are usable.
    ///
    /// The id of an instance selects it, regardless of [`expand`](Self::expand).
    pub(crate) fn instances(&self, rule: &'static Rule, usable: impl Fn(&[Need]) -> bool) -> Vec<Instance> {
        let whole = |id: &String| id.eq_ignore_ascii_case(rule.id) || rule.checks(id);
        if self.ids.is_empty() || self.ids.iter().any(whole) {
            return rule.instances(self.expand, usable);
        }
        let named = self.ids.iter().filter(|id| names(id, rule));
        named.filter_map(|id| Instance::parse(self.rules, id).ok()).collect()
    }

    /// Returns the selected rules in the order in which they run.
    pub fn selected(&self) -> Vec<&'static Rule> {
        self.shard.part(self.rules.iter().filter(|rule| self.selects(rule))).collect()
    }
}

/// Returns whether this is the id of the rule or of one of its instances.
fn names(id: &str, rule: &Rule) -> bool {
    id.split('[').next().is_some_and(|id| id.eq_ignore_ascii_case(rule.id))
}

impl Rule {
    /// Returns the level of the gravest requirement that it checks.
    pub fn level(&self) -> Option<Level> {
        self.requirements.iter().map(|requirement| requirement.level).max()
    }

    /// Returns whether it checks the requirement of this id.
    pub fn checks(&self, requirement: &str) -> bool {
        self.requirements.iter().any(|checked| checked.id.eq_ignore_ascii_case(requirement))
    }

    /// Returns whether it or one of its instances needs this capability of the device.
    pub fn wants(&self, capability: &str) -> bool {
        self.all_needs().any(|need| need.capability() == Some(capability))
    }

    /// Returns the needs of the rule and of the values on its axes.
    pub fn all_needs(&self) -> impl Iterator<Item = Need> + '_ {
        let axes = self.axes.iter().flat_map(|axis| (0..axis.count()).flat_map(|index| axis.needs(index)));
        self.needs.iter().chain(axes).copied()
    }
}
