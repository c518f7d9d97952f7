//! The languages of settings: impairments, and connection matrices in the format of htsim.

use core::time::Duration;
use uet_model::network::Impairment;
use uet_simulate::{Matrix, Scenario, Simulation, Start, Topology, Traffic};

/// The first byte selects the language.
pub(super) fn run(data: &[u8]) {
    let Some((language, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match language % 2 {
        0 => impairment(text),
        _ => matrix(text),
    }
}

fn impairment(text: &str) {
    match text.parse::<Impairment>() {
        Ok(impairment) => {
            let shown = impairment.to_string();
            let again = shown.parse::<Impairment>().unwrap_or_else(|error| panic!("{shown}: {error}"));
            assert_eq!(again.to_string(), shown);
        }
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.column), "{error:?}");
            let rest: String = text.chars().skip(error.column - 1).collect();
            assert!(rest.starts_with(&error.word), "{error:?}");
            assert!(error.to_string().contains(error.expected));
        }
    }
}

fn matrix(text: &str) {
    let matrix = match text.parse::<Matrix>() {
        Ok(matrix) => matrix,
        Err(error) => {
            assert!(error.line <= text.lines().count() && !error.reason.is_empty(), "{error:?}");
            return;
        }
    };
    let triggers = matrix.triggers.len() as u32;
    for demand in &matrix.demands {
        assert!(demand.from != demand.to && demand.from.max(demand.to) < matrix.hosts, "{demand:?}");
        let start = if let Start::Trigger(trigger) = demand.start { Some(trigger) } else { None };
        assert!(demand.done.into_iter().chain([start]).flatten().all(|trigger| trigger < triggers));
    }
    if matrix.hosts > 64 {
        return;
    }
    // Larger networks do not run.
    let small = matrix.hosts <= 8 && matrix.demands.len() <= 16;
    let scenario = Scenario {
        topology: Topology::Single { hosts: matrix.hosts },
        traffic: Traffic::Matrix(matrix),
        until: Duration::from_micros(if small { 20 } else { 0 }),
        ..Scenario::default()
    };
    match Simulation::new(&scenario) {
        Ok(simulation) if small => _ = simulation.run(),
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
