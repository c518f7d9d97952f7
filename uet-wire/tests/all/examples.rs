//! Runs the programs in `examples/`; each has a test.

#[path = "../../examples/answer.rs"]
mod answer;
#[path = "../../examples/build.rs"]
mod build;
#[path = "../../examples/edit.rs"]
mod edit;
#[path = "../../examples/message.rs"]
mod message;
#[path = "../../examples/parse.rs"]
mod parse;
#[path = "../../examples/validate.rs"]
mod validate;
