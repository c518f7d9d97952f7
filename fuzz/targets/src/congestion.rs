//! Congestion control on a network controlled by the input: the property tests of uet-model with a fuzzer's bytes.

#[path = "../../../crates/uet-model/tests/all/cc/world.rs"]
mod world;

pub(super) fn run(data: &[u8]) {
    world::history(data);
}
