//! Selection of rules, shared by the commands that run, list and judge them.

use crate::near;
use clap::{Args, ValueEnum};
use std::io;
use uet_conformance::{Expand, Instance, Options, RULES, Rule};
use uet_wire::catalogue::{self, Level};

/// Selection of rules. Repeated values of one option are alternatives; different options must all match.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which rules")]
pub(super) struct Filter {
    /// This rule, this instance of a rule, or all rules that check this requirement; may be repeated
    #[arg(long, value_name = "ID")]
    pub(super) id: Vec<String>,
    /// The rules of this group; may be repeated, like the other selections
    #[arg(long, value_name = "GROUP")]
    pub(super) group: Vec<String>,
    /// Only rules whose strictest requirement has exactly this level
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(super) level: Vec<Grade>,
    /// Rules that need this capability of the device
    #[arg(long, value_name = "NAME")]
    pub(super) capability: Vec<String>,
    /// A rule varies axes, such as delivery mode and size. This selects the combinations to run
    #[arg(long, value_enum, default_value = "pairwise")]
    pub(super) expand: Combinations,
}

/// See [`Expand`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Combinations {
    /// Enough to cover every pair of values of two axes
    #[default]
    Pairwise,
    /// Every combination of values
    Full,
}

impl Combinations {
    pub(super) fn expand(self) -> Expand {
        match self {
            Combinations::Pairwise => Expand::Pairwise,
            Combinations::Full => Expand::Full,
        }
    }
}

/// Requirement level of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Grade {
    /// If broken, data is lost, duplicated or misread, or a correct peer waits forever
    Must,
    /// If broken, a peer can tolerate it
    Should,
    /// Optional behavior
    May,
}

impl Grade {
    pub(super) fn level(self) -> Level {
        match self {
            Grade::Must => Level::Must,
            Grade::Should => Level::Should,
            Grade::May => Level::May,
        }
    }
}

impl Filter {
    /// Converts the filter to options of the suite. Fails if a name is unknown.
    pub(super) fn options(&self) -> io::Result<Options> {
        let groups = || distinct(RULES.iter().map(Rule::group));
        let requirements = catalogue::ALL.iter().map(|requirement| requirement.id);
        let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).chain(requirements).collect();
        known(&self.group, &groups(), |word, all| near::unknown("group", word, all))?;
        let of_instances = |id: &&String| id.contains('[');
        let whole: Vec<String> = self.id.iter().filter(|id| !of_instances(id)).cloned().collect();
        known(&whole, &ids, |word, all| near::unknown("rule or requirement", word, all))?;
        self.id
            .iter()
            .filter(of_instances)
            .try_for_each(|id| Instance::parse(RULES, id).map(drop))
            .map_err(io::Error::other)?;
        known(&self.capability, &capabilities(), near::unneeded)?;
        let options = Options {
            ids: self.id.clone(),
            groups: self.group.clone(),
            levels: self.level.iter().map(|grade| grade.level()).collect(),
            capabilities: self.capability.clone(),
            expand: self.expand.expand(),
            ..Options::default()
        };
        let unchecked = |id: &&String| {
            !RULES.iter().any(|rule| Options { ids: vec![(*id).clone()], ..Options::default() }.selects(rule))
        };
        if let Some(id) = self.id.iter().find(unchecked) {
            return Err(io::Error::other(format!("no rule checks {id}; `uet explain {id}` says why")));
        }
        Ok(options)
    }
}

/// Returns the capabilities that rules need.
pub(super) fn capabilities() -> Vec<&'static str> {
    let needs = RULES.iter().flat_map(Rule::all_needs);
    distinct(needs.filter_map(|need| need.capability()))
}

/// The known words.
type Words<'w> = core::iter::Copied<core::slice::Iter<'w, &'w str>>;

/// Fails if a given word is unknown, with this text about it.
fn known<'w>(given: &[String], known: &'w [&'w str], text: fn(&str, Words<'w>) -> String) -> io::Result<()> {
    match given.iter().find(|word| !known.iter().any(|known| known.eq_ignore_ascii_case(word))) {
        Some(word) => {
            let unknown = text(word, known.iter().copied());
            let gap = if unknown.ends_with('?') { " " } else { "; " };
            Err(io::Error::other(format!("{unknown}{gap}`uet list` shows what there is")))
        }
        None => Ok(()),
    }
}

/// Removes duplicates and keeps the order of first occurrence.
pub(super) fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for word in words {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    seen
}
