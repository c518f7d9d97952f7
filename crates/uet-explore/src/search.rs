//! A breadth-first search through all states of a scenario.

use crate::digest::digest;
use crate::scenario::{Budget, Scenario};
use crate::scenarios::endpoints;
use crate::world::{Choice, PATIENCE, RESTLESS, World};
use core::fmt;
use std::collections::{HashSet, VecDeque};
use std::time::Instant;
use uet_model::Fep;

type Set = HashSet<u64, foldhash::fast::FixedState>;

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Report {
    /// The scenario.
    pub name: &'static str,
    /// The number of different states.
    pub states: usize,
    /// The number of choices made.
    pub transitions: usize,
    /// The most choices on the shortest way to a state.
    pub depth: usize,
    /// The number of different states of rest.
    pub rests: usize,
    /// The time of the search.
    pub seconds: f64,
    /// True if no state within the bounds is left.
    pub exhausted: bool,
    /// The first violation, on a shortest way.
    pub violation: Option<Violation>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { name, states, transitions, depth, rests, seconds, exhausted, violation } = self;
        let end = match (violation, exhausted) {
            (Some(_), _) => "VIOLATION",
            (None, true) => "exhausted",
            (None, false) => "cut off",
        };
        write!(f, "{name:<26} {states:>9} {transitions:>10} {depth:>5} {rests:>6} {seconds:>8.1}  {end}")?;
        violation.iter().try_for_each(|violation| write!(f, "\n{violation}"))
    }
}

/// A way to a state that breaks a property.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The broken property.
    pub what: String,
    /// The choices from the start on.
    pub choices: Vec<Choice>,
    /// The ladder of the run.
    pub ladder: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choices: Vec<String> = self.choices.iter().map(Choice::to_string).collect();
        writeln!(f, "{}\n[{}]", self.what, choices.join(", "))?;
        f.write_str(&self.ladder)
    }
}

/// Plays choices from the start of a scenario, and records them. Returns the world, and the first violation.
pub fn play(
    scenario: &'static Scenario,
    budget: Budget,
    choices: &[Choice],
) -> (Option<World<Fep>>, Option<String>) {
    let mut world = match World::new(scenario, endpoints(scenario), true) {
        Ok(world) => world.with_budget(budget),
        Err(what) => return (None, Some(what)),
    };
    for choice in choices {
        if let Err(what) = world.apply(*choice) {
            return (Some(world), Some(what));
        }
    }
    (Some(world), None)
}

struct Search {
    scenario: &'static Scenario,
    budget: Budget,
    /// For each state, its predecessor and the choice that leads from there to it.
    ways: Vec<(u32, Choice)>,
    seen: Set,
    /// The states, without budgets, from which a network without loss brings both endpoints to rest.
    live: Set,
    rests: usize,
}

/// Explores a scenario within this budget, up to this number of states.
pub fn explore(scenario: &'static Scenario, budget: Budget, limit: usize) -> Report {
    let began = Instant::now();
    let mut report = Report {
        name: scenario.name,
        states: 0,
        transitions: 0,
        depth: 0,
        rests: 0,
        seconds: 0.0,
        exhausted: false,
        violation: None,
    };
    let found = |what: String, choices: Vec<Choice>| {
        let (world, _) = play(scenario, budget, &choices);
        let ladder = world.and_then(|world| Some(world.trace()?.to_string())).unwrap_or_default();
        Some(Violation { what, choices, ladder })
    };
    let start = match World::new(scenario, endpoints(scenario), false) {
        Ok(world) => world.with_budget(budget),
        Err(what) => {
            report.violation = found(what, Vec::new());
            return report;
        }
    };
    let mut search =
        Search { scenario, budget, ways: Vec::new(), seen: Set::default(), live: Set::default(), rests: 0 };
    let mut frontier = VecDeque::new();
    let mut choices = Vec::new();
    search.ways.push((u32::MAX, Choice::Timer));
    search.seen.insert(fingerprint(&start));
    let mut end = search.reach_rest(&start, 0).err();
    frontier.push_back((0, 0, start));
    'all: while let Some((id, depth, world)) = frontier.pop_front() {
        if end.is_some() || search.ways.len() >= limit {
            break;
        }
        report.depth = depth;
        world.choices(&mut choices);
        for choice in &choices {
            report.transitions += 1;
            let mut next = world.clone();
            if let Err(what) = next.apply(*choice) {
                let mut way = search.way(id);
                way.push(*choice);
                end = Some((what, way));
                break 'all;
            }
            if !search.seen.insert(fingerprint(&next)) {
                continue;
            }
            let number = search.ways.len() as u32;
            search.ways.push((id, *choice));
            if let Err(violation) = search.reach_rest(&next, number) {
                end = Some(violation);
                break 'all;
            }
            frontier.push_back((number, depth + 1, next));
        }
    }
    report.exhausted = frontier.is_empty() && end.is_none();
    report.violation = end.and_then(|(what, choices)| found(what, choices));
    (report.states, report.rests) = (search.ways.len(), search.rests);
    report.seconds = began.elapsed().as_secs_f64();
    report
}

fn fingerprint(world: &World<Fep>) -> u64 {
    digest(&(world.left(), world), world.now())
}

impl Search {
    /// Returns the choices that lead from the start to a state.
    fn way(&self, mut id: u32) -> Vec<Choice> {
        let mut way = Vec::new();
        while id > 0 {
            let (before, choice) = self.ways[id as usize];
            way.push(choice);
            id = before;
        }
        way.reverse();
        way
    }

    /// Follows a network without loss until both endpoints rest, or to a state from which they are known to. Checks the
    /// state of rest, and lets the passive judge judge the whole run.
    fn reach_rest(&mut self, world: &World<Fep>, id: u32) -> Result<(), (String, Vec<Choice>)> {
        let mut chain = Vec::new();
        let mut steps = Vec::new();
        let mut world = world.clone();
        let fail = |search: &Self, what: String, steps: &[Choice]| {
            let mut way = search.way(id);
            way.extend_from_slice(steps);
            Err((what, way))
        };
        loop {
            let state = digest(&world, world.now());
            if self.live.contains(&state) {
                break;
            }
            if chain.contains(&state) || chain.len() > PATIENCE {
                return fail(self, RESTLESS.into(), &steps);
            }
            chain.push(state);
            let Some(choice) = world.calm_choice() else {
                if let Err(what) = world.check_rest() {
                    return fail(self, what, &steps);
                }
                self.rests += 1;
                let mut way = self.way(id);
                way.extend_from_slice(&steps);
                let (played, _) = play(self.scenario, self.budget, &way);
                let played = played.filter(|_| !self.scenario.reuses_pdcid);
                let judged = played.and_then(|world| world.trace().map(crate::trace::Trace::judge));
                if let Some(Err(what)) = judged {
                    return Err((what, way));
                }
                break;
            };
            steps.push(choice);
            if let Err(what) = world.apply(choice) {
                return fail(self, what, &steps);
            }
        }
        self.live.extend(chain);
        Ok(())
    }
}
