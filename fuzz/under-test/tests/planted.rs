//! Comparing the example parser with the codec finds each of its three planted bugs, and nothing in the correct parser.

use std::path::Path;
use uet_fuzz::{Input, Noise, corpus, mutate};
use uet_under_test::Parser;
use uet_wire::Start;

/// Mutated packets per parser: far more than any of the bugs needs.
const ROUNDS: u32 = 100_000;

/// Mutates the seeds without coverage feedback until the parser disagrees with the codec.
fn search(parser: Parser, seeds: &[Vec<u8>]) -> Option<(u32, String)> {
    let mut noise = Noise::new(1);
    let mut data = Vec::new();
    for round in 0..ROUNDS {
        data.clone_from(&seeds[noise.below(seeds.len())]);
        let size = data.len();
        data.resize(256.max(size), 0);
        let mut choices = noise.clone();
        let plain = |data: &mut [u8], size, max| mutate::plain(data, size, max, &mut choices);
        let size = mutate::mutate(&mut data, size, 256, noise.number() as u32, plain);
        let bytes = data.get(Input::LEAD..size).unwrap_or(&[]);
        if let Some(difference) = parser.difference(Start::Uet, bytes) {
            return Some((round, difference));
        }
    }
    None
}

/// Returns the committed seeds that start with UET.
fn seeds() -> Vec<Vec<u8>> {
    let seeds = corpus::seeds("overlay").unwrap().into_iter().map(|seed| seed.data);
    let seeds: Vec<_> =
        seeds.filter(|seed| Input::split(seed).is_some_and(|input| input.start == Start::Uet)).collect();
    assert!(seeds.len() > 10);
    seeds
}

#[test]
fn only_planted_bugs_are_found() {
    let seeds = seeds();
    let [right, wrong @ ..] = Parser::EXAMPLES;
    assert_eq!(search(right, &seeds), None);
    for (parser, field) in
        wrong.into_iter().zip(["pds.psn_offset", "what the codec refuses", "pds.vendor_code"])
    {
        let (round, difference) = search(parser, &seeds).expect(field);
        assert!(difference.contains(field), "{difference} in round {round}");
    }
}

#[test]
fn header_matches_the_tables() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("uet_under_test.h");
    let written = std::fs::read_to_string(file).unwrap();
    assert!(written == uet_under_test::header(), "outdated: its first lines name the command that writes it");
}
