//! One fuzzer for each target, selected by the program's name.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use uet_fuzz::{Kind, Target, mutate, target};

const TARGET: Target = target(env!("CARGO_BIN_NAME")).expect("a program of fuzz/Cargo.toml is no target");

fuzz_target!(|data: &[u8]| (TARGET.run)(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match TARGET.kind {
        Kind::Packet => mutate::mutate(data, size, max_size, seed, fuzzer_mutate),
        _ => fuzzer_mutate(data, size, max_size),
    }
});
