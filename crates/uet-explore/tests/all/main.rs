//! The small bounds of all scenarios, and the counterexamples that earlier searches found.

mod faults;
mod swarm;

use uet_conformance::parallel;
use uet_explore::Choice::{Act, Packet, Timer};
use uet_explore::{Choice, Fate, Scenario, explore, play, scenarios};

/// The limit of states. Without optimizations the largest scenarios take minutes: there only the states that few choices lead to
/// are searched. In a release, which `./test exhaustive` builds, it is more than any scenario has within its small bounds.
const LIMIT: usize = if cfg!(debug_assertions) { 2_000 } else { 200_000 };

#[test]
fn small_bounds_contain_no_violation() {
    let search = |scenario: &&'static Scenario| explore(scenario, scenario.small, LIMIT);
    parallel(&scenarios::all(), search, |report| {
        println!("{report}");
        assert!(report.exhausted || report.violation.is_none() && report.states >= LIMIT, "{report}");
    });
}

/// Plays the choices, and then a network without loss until both endpoints rest.
fn replay(name: &str, choices: &[Choice]) -> Result<(), String> {
    let scenario = scenarios::find(name).ok_or("no such scenario")?;
    let (world, violation) = play(scenario, scenario.small, choices);
    let mut world = world.ok_or("no world")?;
    match violation {
        Some(what) => return Err(what),
        None => world.run_to_rest()?,
    }
    world.trace().ok_or("no trace")?.judge()
}

/// A response above a gap took the only place for stored responses, and no packet below it ever found one.
#[test]
fn last_stored_response_is_for_a_packet_in_order() {
    replay("guaranteed-one-slot", &[Packet(1, 0, Fate::Drop), Packet(1, 0, Fate::Arrive)]).unwrap();
}

#[test]
fn choices_print_as_they_are_written() {
    let choices = [Act(0), Packet(1, 0, Fate::Trim), Timer];
    assert_eq!(choices.map(|choice| choice.to_string()), ["Act(0)", "Packet(1, 0, Fate::Trim)", "Timer"]);
}
