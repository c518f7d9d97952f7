//! The declarations of all vectors, a file for each family.

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
mod sequences;
mod sliced;
mod trailers;
mod trimmed;

use crate::case::Family;

/// All families.
pub fn all() -> Vec<Family> {
    vec![
        headers::family(),
        control::family(),
        fields::family(),
        reserved::family(),
        registries::family(),
        pairs::family(),
        outer::family(),
        trailers::family(),
        cuts::family(),
        trimmed::family(),
        sliced::family(),
        examples::family(),
        sequences::family(),
        disagreements::family(),
    ]
}
