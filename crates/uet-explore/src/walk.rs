//! Random walks through the states of a scenario. They serve NICs of the emulator, which cannot be cloned.

use crate::scenario::{Budget, Scenario};
use crate::scenarios::nics;
use crate::search::Violation;
use crate::world::{Choice, World};
use uet_emulator::Nic;
use uet_emulator::fault::Fault;

/// Walks through a scenario this many times between NICs with these faults, with seeds from 0 on. Each walk makes
/// random choices until both endpoints rest, and the passive judge then judges it. Returns the number of the first walk
/// that breaks a property, and the violation.
pub fn walk(
    scenario: &'static Scenario,
    faults: [&[&'static Fault]; 2],
    budget: Budget,
    walks: u64,
) -> Option<(u64, Violation)> {
    (0..walks).find_map(|seed| Some((seed, one(scenario, nics(scenario, faults), budget, seed)?)))
}

/// The most random choices of a walk. A network without loss follows.
const CHOICES: usize = 60;

fn one(scenario: &'static Scenario, ends: [Nic; 2], budget: Budget, seed: u64) -> Option<Violation> {
    let mut rng = uet_model::network::stream(seed, 0);
    let mut taken = Vec::new();
    let mut world = match World::new(scenario, ends, true) {
        Ok(world) => world.with_budget(budget),
        Err(what) => return Some(Violation { what, choices: taken, ladder: String::new() }),
    };
    let result = wander(&mut world, &mut rng, &mut taken);
    let result = result.and_then(|()| world.run_to_rest());
    let judged = result.and_then(|()| match world.trace() {
        Some(trace) if !scenario.reuses_pdcid => trace.judge(),
        _ => Ok(()),
    });
    let ladder = || world.trace().map(ToString::to_string).unwrap_or_default();
    judged.err().map(|what| Violation { what, choices: taken, ladder: ladder() })
}

fn wander(world: &mut World<Nic>, rng: &mut fastrand::Rng, taken: &mut Vec<Choice>) -> Result<(), String> {
    let mut choices = Vec::new();
    for _ in 0..CHOICES {
        world.choices(&mut choices);
        let Some(choice) = rng.choice(&choices).copied() else { return Ok(()) };
        taken.push(choice);
        world.apply(choice)?;
    }
    Ok(())
}
