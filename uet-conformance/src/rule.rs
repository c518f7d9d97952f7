use crate::{AnyAxis, Need, Outcome, Test};
use uet_wire::catalogue::Requirement;

/// A statement about devices, and the script that checks it.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Identifier, as `GROUP/NAME`.
    pub id: &'static str,
    /// The statement.
    pub title: &'static str,
    /// The requirements that it checks.
    pub requirements: &'static [&'static Requirement],
    /// Needs of every instance.
    pub needs: &'static [Need],
    /// Axes along which it varies, in the order of the ids of its instances.
    pub axes: &'static [&'static dyn AnyAxis],
    script: Script,
    /// True if the script compares times that a busy machine can distort, so that a failure is measured
    /// again.
    measured: bool,
}

/// The script of a rule.
pub type Script = fn(&mut Test<'_>) -> Outcome;

/// A rule without its script.
#[derive(Clone, Copy, Debug)]
pub struct RuleDraft(Rule);

/// Begins the declaration of a rule.
///
/// ```
/// use uet_conformance::prelude::*;
///
/// const REPEATS_RETX: Rule = rule("ack/repeats-retx", "An ACK repeats the retx flag of its packet")
///     .checks(&[PDS_ACK_002])
///     .over(&[&MODE, &CARRIER, &START])
///     .run(|t| {
///         let (pdc, region) = t.open()?;
///         t.request(&pdc, pdc.request(1).retx().write(&region, 0, &[1; 16])?)?;
///         let (_, ack) = t.expect_answer(PDS_ACK_003, &pdc, pdc.psn(1))?;
///         t.check(PDS_ACK_002, "flag retx", true, ack.retx());
///         Ok(())
///     });
/// ```
pub const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    let script: Script = |_| Ok(());
    RuleDraft(Rule { id, title, requirements: &[], needs: &[], axes: &[], script, measured: false })
}

impl RuleDraft {
    /// Sets the requirements that the rule checks.
    pub const fn checks(self, requirements: &'static [&'static Requirement]) -> Self {
        RuleDraft(Rule { requirements, ..self.0 })
    }

    /// Sets the needs of every instance.
    pub const fn needs(self, needs: &'static [Need]) -> Self {
        RuleDraft(Rule { needs, ..self.0 })
    }

    /// Sets the axes along which the rule varies.
    pub const fn over(self, axes: &'static [&'static dyn AnyAxis]) -> Self {
        RuleDraft(Rule { axes, ..self.0 })
    }

    /// Completes the rule with its script.
    pub const fn run(self, script: Script) -> Rule {
        Rule { script, ..self.0 }
    }

    /// Completes the rule with a script that compares times. See [`Test::measured`].
    pub const fn measure(self, script: Script) -> Rule {
        Rule { script, measured: true, ..self.0 }
    }
}

impl Rule {
    /// Returns the first part of the id.
    pub fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }

    /// Plays the script.
    pub(crate) fn play(&self, t: &mut Test<'_>) -> Outcome {
        if self.measured { t.measured(self.script) } else { (self.script)(t) }
    }
}

/// A set of rules that a run selects from.
#[derive(Clone, Copy, Debug)]
pub struct Registry(&'static [&'static [&'static [Rule]]]);

impl Registry {
    /// Creates a set from folders of files of rules.
    pub const fn new(folders: &'static [&'static [&'static [Rule]]]) -> Self {
        Registry(folders)
    }

    /// Returns all rules, in the order in which they run.
    pub fn iter(self) -> impl Iterator<Item = &'static Rule> {
        self.0.iter().copied().flatten().copied().flatten()
    }

    /// Returns the rule of this id.
    pub fn find(self, id: &str) -> Option<&'static Rule> {
        self.iter().find(|rule| rule.id == id)
    }
}
