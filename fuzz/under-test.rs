//! The fuzzer of an external parser. UET_START (`eth`, `ip`, `udp`; default `uet`) names the first layer of its
//! packets.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::sync::LazyLock;
use uet_fuzz::mutate;
use uet_under_test::{Parser, run};
use uet_wire::Start;

static START: LazyLock<Start> = LazyLock::new(|| match std::env::var("UET_START").as_deref() {
    Ok("eth") => Start::Eth,
    Ok("ip") => Start::Ip,
    Ok("udp") => Start::Udp,
    Ok("uet") | Err(_) => Start::Uet,
    Ok(other) => panic!("UET_START is {other}, not one of eth, ip, udp, uet"),
});

fuzz_target!(|data: &[u8]| run(Parser::YOURS, *START, data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed, fuzzer_mutate)
});
