//! Runs every seed and every regression through its target.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use uet_fuzz::{TARGETS, corpus};

#[test]
fn every_input_passes_its_target() {
    let mut total = 0;
    for target in TARGETS {
        let mut seeds = corpus::seeds(target.name).unwrap();
        assert!(seeds.len() >= 5, "the corpus of {} has only {} seeds", target.name, seeds.len());
        seeds.extend(corpus::regressions(target.name).unwrap());
        println!("{}: {} inputs", target.name, seeds.len());
        total += seeds.len();
        for seed in seeds {
            // Print the name of the seed above the target's message.
            let outcome = std::panic::catch_unwind(|| (target.run)(&seed.data));
            assert!(outcome.is_ok(), "{} fails on {}", target.name, seed.name);
        }
    }
    println!("{total} inputs");
}

#[test]
fn corpora_belong_to_targets_and_are_small() {
    let names: BTreeSet<_> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), TARGETS.len(), "two targets share a name");
    let mut bytes = 0;
    for entry in fs::read_dir(corpus::root()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        match name.strip_suffix("_seed_corpus.zip") {
            Some(target) => {
                assert!(names.contains(target), "corpora/{name} belongs to no target");
                bytes += entry.metadata().unwrap().len();
            }
            // Captures to learn from and to check, and lists of bugs and mutants, which no fuzzer reads.
            None if ["captures", "bugs", "mutants"].contains(&&*name) => {}
            None if entry.path().is_dir() => {
                assert!(names.contains(&name[..]), "corpora/{name} belongs to no target");
                let contents: Vec<_> =
                    fs::read_dir(entry.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
                assert_eq!(contents, ["regressions"], "pack the seeds: fuzz/corpus pack {name} DIR");
            }
            None => {}
        }
    }
    assert!(bytes < 5 << 20, "the corpora have {bytes} bytes: minimize them");
}

#[test]
fn every_target_has_a_fuzzer() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml")).unwrap();
    let names: Vec<_> = manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("{ name = \"")?.split('"').next())
        .collect();
    let targets = TARGETS.iter().map(|target| target.name);
    // The last program compares a parser of the user.
    assert_eq!(names, targets.chain(["under-test"]).collect::<Vec<_>>());
}
