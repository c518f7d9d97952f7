//! Declarations of all vectors, one file for each family.

mod control;
mod cuts;
mod disagreements;
mod examples;
mod fields;
mod headers;
mod outer;
mod pairs;
mod parts;
mod registries;
mod reserved;
mod rules;
mod sequences;
mod sliced;
mod trailers;
mod trimmed;
mod tss;

pub(crate) use fields::{IDENTIFYING, values};
pub(crate) use pairs::TYPES;

use crate::case::Family;

/// Returns all families.
pub fn all() -> Vec<Family> {
    vec![
        headers::family(),
        control::family(),
        fields::family(),
        reserved::family(),
        registries::family(),
        pairs::family(),
        rules::family(),
        outer::family(),
        trailers::family(),
        tss::family(),
        cuts::family(),
        trimmed::family(),
        sliced::family(),
        examples::family(),
        sequences::family(),
        disagreements::family(),
    ]
}
