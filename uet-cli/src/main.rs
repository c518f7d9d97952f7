//! The uet program.
fn main() {}
