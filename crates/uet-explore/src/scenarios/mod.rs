//! The scenarios, one row each.

mod congestion;
mod delivery;
mod semantics;

use crate::scenario::{Budget, Control, Scenario};
use crate::world::ADDRESSES;
use uet_emulator::config::Congestion;
use uet_emulator::fault::Fault;
use uet_emulator::{Config, Nic};
use uet_model::Fep;
use uet_model::cc::PathMode;
use uet_model::pds::Unprotected;
use uet_wire::Psn;

const BLANK: Scenario = Scenario::BLANK;
/// A message of two packets.
const TWO: u16 = 1040;
/// A message of three packets.
const THREE: u16 = 2064;

const fn budget(drop: u8, copy: u8, reorder: u8, mark: u8, trim: u8, early: u8) -> Budget {
    Budget { drop, copy, reorder, mark, trim, stray: 0, early }
}

/// Duplicates that arrive late.
const COPIES: Budget = budget(0, 1, 1, 0, 0, 1);

/// Returns all scenarios.
pub fn all() -> Vec<&'static Scenario> {
    [delivery::ROWS, semantics::ROWS, congestion::ROWS].into_iter().flatten().collect()
}

/// Returns the scenario of this name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}

/// Returns both endpoints of a scenario, made of the reference model.
pub(crate) fn endpoints(scenario: &'static Scenario) -> [Fep; 2] {
    [0, 1].map(|side| {
        let (pds, ses) = scenario.params(side);
        #[expect(clippy::expect_used, reason = "a row with impossible parameters is a bug of this crate")]
        let fep = Fep::new(pds, ses, ADDRESSES[side], 1 + side as u64).expect("the parameters fit");
        match floor(scenario, side) {
            Some(floor) => fep.with_protection(floor),
            None => fep,
        }
    })
}

/// Returns both endpoints as NICs of the emulator, with these faults.
pub(crate) fn nics(scenario: &'static Scenario, faults: [&[&'static Fault]; 2]) -> [Nic; 2] {
    [0, 1].map(|side| {
        let (pds, ses) = scenario.params(side);
        let congestion = match scenario.control {
            Control::Off => Congestion::None,
            Control::Nscc(_) => Congestion::Nscc,
            Control::Rccc(_) => Congestion::Rccc,
            Control::Both => Congestion::Both,
        };
        let (network, paths, seed) = (scenario.network(), PathMode::Single, 1 + side as u64);
        let config = Config { pds, ses, congestion, network, paths, seed, ..Config::default() };
        let nic = Nic::new(ADDRESSES[side], config).and_then(|nic| nic.with_faults(faults[side]));
        #[expect(clippy::expect_used, reason = "a row with impossible parameters is a bug of this crate")]
        let nic = nic.expect("the parameters fit");
        match floor(scenario, side) {
            Some(floor) => nic.with_protection(floor),
            None => nic,
        }
    })
}

/// Returns the protection by which the second endpoint accepts no context below a Start_PSN.
fn floor(scenario: &Scenario, side: usize) -> Option<Unprotected> {
    let lowest_start = scenario.floor.filter(|_| side == 1).map(Psn);
    lowest_start.map(|lowest| Unprotected { lowest_start: Some(lowest) })
}
