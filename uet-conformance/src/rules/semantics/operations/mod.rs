//! Operations from request to completion (sections 3.4.1 to 3.4.3). `response` and `errors` test a target's
//! responses to valid and invalid requests. `failure` and `after_failure` test the state after a failure.
//! `several_packets`, `completions` and `completions_read` test how an initiator completes operations.
//! `encoding`, `encoding_messages` and `encoding_operations` test the SES headers of a device. `resources`
//! and `unexpected` test that contexts and messages free their resources when they end.

mod after_failure;
mod completions;
mod completions_read;
mod encoding;
mod encoding_messages;
mod encoding_operations;
mod errors;
mod failure;
mod resources;
mod response;
mod several_packets;
mod steps;
mod unexpected;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] = &[
    response::RULES,
    errors::RULES,
    failure::RULES,
    after_failure::RULES,
    several_packets::RULES,
    completions::RULES,
    completions_read::RULES,
    encoding::RULES,
    encoding_messages::RULES,
    encoding_operations::RULES,
    resources::RULES,
    unexpected::RULES,
];
