//! Transport security against worked examples: numbers that two other implementations computed, and published vectors
//! of the primitives.

mod altered;
mod derivation;
mod examples;
