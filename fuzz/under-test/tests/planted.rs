//! The example has three planted bugs. Each is found, and where there is none, none is.

use std::path::Path;
use uet_fuzz::{Input, Noise, mutate};
use uet_under_test::Parser;
use uet_wire::Start;

/// Far more than any of the bugs takes, and a matter of seconds.
const ROUNDS: u32 = 100_000;

/// Changes the seeds, as the fuzzer does but without its help, until the parser disagrees with the codec.
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

/// The committed corpus of packets that start with UET.
fn seeds() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora/overlay");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
    files.sort();
    let seeds = files.iter().map(|path| std::fs::read(path).unwrap());
    let seeds: Vec<_> =
        seeds.filter(|seed| Input::split(seed).is_some_and(|input| input.start == Start::Uet)).collect();
    assert!(seeds.len() > 10);
    seeds
}

#[test]
fn every_planted_bug_is_found_and_no_other() {
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
fn the_header_is_that_of_the_tables() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("uet_under_test.h");
    let written = std::fs::read_to_string(file).unwrap();
    assert!(written == uet_under_test::header(), "write it anew: its first lines say how");
}
