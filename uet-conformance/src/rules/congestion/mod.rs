//! Congestion control (section 3.6): the window of NSCC, receiver credit of RCCC, and path selection.

mod credit_spoofing;
mod nscc;
mod nscc_destination;
mod nscc_over_time;
mod nscc_state;
mod path;
mod rccc;
mod rccc_destination;
mod rccc_next_context;
mod state;

use crate::Rule;

pub(super) const RULES: &[&[Rule]] = &[
    nscc::RULES,
    nscc_over_time::RULES,
    nscc_state::RULES,
    nscc_destination::RULES,
    state::RULES,
    rccc::RULES,
    rccc_destination::RULES,
    rccc_next_context::RULES,
    credit_spoofing::RULES,
    path::RULES,
];
