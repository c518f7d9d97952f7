//! Runs the programs in `examples/`; each has a test.

#[path = "../../examples/build.rs"]
mod build;
#[path = "../../examples/edit.rs"]
mod edit;
#[path = "../../examples/parse.rs"]
mod parse;
#[path = "../../examples/validate.rs"]
mod validate;
