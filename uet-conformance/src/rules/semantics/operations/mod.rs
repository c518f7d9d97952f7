//! Responses, errors and completions of operations, and the resources that they free (sections 3.4.1 to
//! 3.4.3).

mod after_failure;
mod completions;
mod encoding;
mod errors;
mod failure;
mod resources;
mod response;
mod several_packets;
mod unexpected_room;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] = &[
    response::RULES,
    errors::RULES,
    failure::RULES,
    after_failure::RULES,
    several_packets::RULES,
    completions::RULES,
    encoding::RULES,
    resources::RULES,
    unexpected_room::RULES,
];
