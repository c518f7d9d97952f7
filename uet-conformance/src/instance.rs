//! The instances that the axes of a rule span.

use crate::{Need, Registry, Rule};
use core::fmt;

/// A rule at one value of each of its axes.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The rule.
    pub rule: &'static Rule,
    /// The index of the value on each axis of the rule.
    pub(crate) points: Vec<usize>,
}

impl Instance {
    /// The first value of each axis.
    pub fn first(rule: &'static Rule) -> Self {
        Instance { rule, points: vec![0; rule.axes.len()] }
    }

    /// One instance for each value that cannot be used; they run nowhere and say why.
    pub(crate) fn unusable(
        rule: &'static Rule,
        usable: impl Fn(&[Need]) -> bool + Copy,
    ) -> impl Iterator<Item = Instance> {
        let points: Vec<usize> = rule
            .axes
            .iter()
            .map(|axis| (0..axis.count()).find(|index| usable(axis.needs(*index))).unwrap_or(0))
            .collect();
        let axes = rule.axes.iter().enumerate();
        axes.flat_map(move |(place, axis)| {
            let points = points.clone();
            let unusable = (0..axis.count()).filter(move |index| !usable(axis.needs(*index)));
            unusable.map(move |index| {
                let mut points = points.clone();
                points[place] = index;
                Instance { rule, points }
            })
        })
    }

    /// Everything that device and link must have.
    pub fn needs(&self) -> impl Iterator<Item = Need> + '_ {
        let of_points = self.rule.axes.iter().zip(&self.points).flat_map(|(axis, index)| axis.needs(*index));
        self.rule.needs.iter().chain(of_points).copied()
    }

    /// The values, as pairs of names.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        self.rule.axes.iter().zip(&self.points).map(|(axis, index)| (axis.name(), axis.point(*index)))
    }

    /// The instance of one of these rules by its id. The error says which part of the id is unknown.
    pub fn parse(rules: Registry, id: &str) -> Result<Self, String> {
        if id.contains('[') && !id.ends_with(']') {
            return Err(format!("'{id}' has no ']' at its end: `uet list --instances` names all instances"));
        }
        let (rule, values) = match id.strip_suffix(']').and_then(|id| id.split_once('[')) {
            Some((rule, values)) => (rule, values.split(',').collect()),
            None => (id, Vec::new()),
        };
        let rule = rules.find(rule).ok_or_else(|| format!("no rule is called '{rule}'"))?;
        let mut instance = Instance::first(rule);
        for value in values {
            let (axis, point) = value.split_once('=').unwrap_or((value, ""));
            let place = rule.axes.iter().position(|known| known.name() == axis);
            let place = place.ok_or_else(|| format!("{} has no axis '{axis}'", rule.id))?;
            let known = rule.axes[place];
            let index = (0..known.count()).find(|index| known.point(*index) == point);
            instance.points[place] = index.ok_or_else(|| {
                let names: Vec<&str> = (0..known.count()).map(|index| known.point(index)).collect();
                format!("{}: the axis '{axis}' has no value '{point}', but {}", rule.id, names.join(", "))
            })?;
        }
        Ok(instance)
    }

    /// The index of the value on each axis, by the name of the axis.
    pub(crate) fn indices(&self) -> Vec<(&'static str, usize)> {
        self.rule.axes.iter().zip(&self.points).map(|(axis, index)| (axis.name(), *index)).collect()
    }
}

/// `window/above[mode=rod,at=wrap]`; the id of the rule alone where it has no axes.
impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.id)?;
        for (place, (axis, point)) in self.values().enumerate() {
            write!(f, "{}{axis}={point}", if place == 0 { '[' } else { ',' })?;
        }
        if self.rule.axes.is_empty() { Ok(()) } else { f.write_str("]") }
    }
}

/// The combinations of values that run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Expand {
    /// Every pair of values of two axes occurs in some instance.
    #[default]
    Pairwise,
    /// Every combination of values.
    Full,
}

impl Rule {
    /// The instances that run. The first has the first value of each axis.
    ///
    /// `usable` says whether device and link have what a value needs; the others appear in no instance.
    pub fn instances(&'static self, expand: Expand, usable: impl Fn(&[Need]) -> bool) -> Vec<Instance> {
        let points: Vec<Vec<usize>> = self
            .axes
            .iter()
            .map(|axis| (0..axis.count()).filter(|index| usable(axis.needs(*index))).collect())
            .collect();
        let product = product(&points);
        let chosen = match expand {
            Expand::Pairwise if self.axes.len() > 2 => pairwise(&points, product),
            _ => product,
        };
        chosen.into_iter().map(|points| Instance { rule: self, points }).collect()
    }
}

/// The axis values that decide whether an instance fails: `fails for datatype=INT8, INT16; passes for INT64`.
///
/// Empty if no instance fails, or each does.
pub(crate) fn pattern(results: &[(Instance, bool)]) -> String {
    let failed = results.iter().filter(|(_, failed)| *failed).count();
    let Some((first, _)) = results.first().filter(|_| (1..results.len()).contains(&failed)) else {
        return String::new();
    };
    for (place, axis) in first.rule.axes.iter().enumerate() {
        let (mut fails, mut passes, mut both) = (Vec::new(), Vec::new(), false);
        for point in 0..axis.count() {
            let mut of_point =
                results.iter().filter(|(it, _)| it.points[place] == point).map(|(_, failed)| *failed);
            let Some(one) = of_point.next() else { continue };
            both |= of_point.any(|other| other != one);
            if one { fails.push(axis.point(point)) } else { passes.push(axis.point(point)) }
        }
        if !both && !fails.is_empty() && !passes.is_empty() {
            return format!(
                "fails for {}={}; passes for {}",
                axis.name(),
                fails.join(", "),
                passes.join(", ")
            );
        }
    }
    format!("fails for {failed} of {} instances", results.len())
}

/// All combinations, the first values first.
fn product(points: &[Vec<usize>]) -> Vec<Vec<usize>> {
    points.iter().fold(vec![Vec::new()], |rows, points| {
        let longer = |row: &Vec<usize>, point| row.iter().copied().chain([point]).collect();
        rows.iter().flat_map(|row| points.iter().map(move |point| longer(row, *point))).collect()
    })
}

/// Some of `candidates`, so that each pair of values occurs: always the one with the most pairs that are
/// missing.
fn pairwise(points: &[Vec<usize>], candidates: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    // Each value of each axis has a number, and each pair of them a place in a table.
    let most = points.iter().flatten().max().map_or(0, |last| last + 1);
    let values = points.len() * most;
    let pairs = |row: Vec<usize>| {
        let number = |axis: usize| axis * most + row[axis];
        let axes = (0..row.len()).flat_map(|a| (a + 1..row.len()).map(move |b| (a, b)));
        let pairs: Vec<usize> = axes.map(|(a, b)| number(a) * values + number(b)).collect();
        (row, pairs)
    };
    let counts = || points.iter().map(Vec::len);
    let mut missing: usize =
        counts().enumerate().map(|(place, count)| count * counts().skip(place + 1).sum::<usize>()).sum();
    let candidates: Vec<_> = candidates.into_iter().map(pairs).collect();
    let mut covered = vec![false; values * values];
    let mut chosen = Vec::new();
    while missing > 0 {
        let new = |pairs: &[usize]| pairs.iter().filter(|pair| !covered[**pair]).count();
        // The first of the best, so that the order of values decides.
        let best = candidates.iter().rev().max_by_key(|(_, pairs)| new(pairs));
        let Some((row, pairs)) = best else { break };
        for pair in pairs {
            missing -= usize::from(!core::mem::replace(&mut covered[*pair], true));
        }
        chosen.push(row.clone());
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::axis;
    use crate::needs::{CRC, TRIM};
    use crate::{Axis, rule};

    const LETTER: Axis<char> = axis("letter").values(&[("a", 'a'), ("b", 'b'), ("c", 'c')]);
    const DIGIT: Axis<u8> = axis("digit").values(&[("0", 0), ("1", 1)]);
    const SIGN: Axis<i8> = axis("sign").needing(&[("plus", 1, &[]), ("minus", -1, &[TRIM])]);
    const WORD: Axis<&str> = axis("word").values(&[("x", "x"), ("y", "y")]);
    static RULE: Rule =
        rule("group/rule", "").needs(&[CRC]).over(&[&LETTER, &DIGIT, &SIGN, &WORD]).run(|_| Ok(()));

    fn ids(expand: Expand, trims: bool) -> Vec<String> {
        let usable = |needs: &[Need]| trims || !needs.contains(&Need::Trim);
        RULE.instances(expand, usable).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn first_instance_has_first_values() {
        assert_eq!(ids(Expand::Pairwise, true)[0], "group/rule[letter=a,digit=0,sign=plus,word=x]");
        assert_eq!(Instance::first(&RULE).to_string(), ids(Expand::Full, true)[0]);
    }

    #[test]
    fn full_is_the_product() {
        assert_eq!(ids(Expand::Full, true).len(), 3 * 2 * 2 * 2);
        assert_eq!(ids(Expand::Full, false).len(), 3 * 2 * 2);
    }

    #[test]
    fn pairwise_has_every_pair_in_few_instances() {
        let chosen = ids(Expand::Pairwise, true);
        assert!(chosen.len() <= 8, "{chosen:?}");
        let all = ids(Expand::Full, true);
        let parts = |id: &str| id["group/rule[".len()..id.len() - 1].split(',').map(str::to_owned).collect();
        let pairs = |ids: &[String]| {
            let mut pairs = std::collections::BTreeSet::new();
            for parts in ids.iter().map(|id| -> Vec<String> { parts(id) }) {
                for (place, one) in parts.iter().enumerate() {
                    pairs.extend(parts[place + 1..].iter().map(|other| (one.clone(), other.clone())));
                }
            }
            pairs
        };
        assert_eq!(pairs(&chosen), pairs(&all));
    }

    #[test]
    fn unusable_values_appear_in_no_instance() {
        assert!(ids(Expand::Pairwise, false).iter().all(|id| id.contains("sign=plus")));
        let minus = RULE.instances(Expand::Full, |_| true).into_iter().find(|it| it.points[2] == 1);
        assert_eq!(minus.unwrap().needs().collect::<Vec<_>>(), [Need::Crc, Need::Trim]);
    }
}
