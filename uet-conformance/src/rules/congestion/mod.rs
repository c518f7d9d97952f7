//! Congestion control (section 3.6). `nscc_*` test the window of a source and the feedback of a destination
//! (3.6.13). `rccc_*` test receiver credit at both ends (3.6.14), and `state` the state of both algorithms
//! (3.6.12 to 3.6.14). `read_data` tests both algorithms on the return direction. `path*` test the entropy
//! values that select paths (3.6.10 and 3.6.16). `credit_source` is the suite as a source that demands
//! credit, and `steps` holds the other shared steps.

pub(super) mod credit_source;
mod nscc_adapt;
mod nscc_counted;
mod nscc_delay;
mod nscc_destination;
mod nscc_growth;
mod nscc_loss;
mod nscc_over_time;
mod nscc_samples;
mod nscc_service_time;
mod nscc_state;
mod nscc_window;
mod path;
mod path_choice;
mod rccc_destination;
mod rccc_source_credit;
mod rccc_source_demand;
mod rccc_sources;
mod rccc_spoofing;
mod read_data;
mod state;
pub(super) mod steps;

use crate::Rule;

pub(super) const RULES: &[&[Rule]] = &[
    nscc_window::RULES,
    nscc_delay::RULES,
    nscc_samples::RULES,
    nscc_loss::RULES,
    nscc_destination::RULES,
    nscc_counted::RULES,
    nscc_service_time::RULES,
    nscc_growth::RULES,
    nscc_over_time::RULES,
    nscc_adapt::RULES,
    nscc_state::RULES,
    state::RULES,
    rccc_destination::RULES,
    rccc_sources::RULES,
    rccc_source_demand::RULES,
    rccc_source_credit::RULES,
    rccc_spoofing::RULES,
    read_data::RULES,
    path::RULES,
    path_choice::RULES,
];
