//! Every file of the corpora goes through its target: what crashed once does not crash again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use uet_fuzz::TARGETS;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora")
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn corpora_are_replayed() {
    for target in TARGETS {
        let directory = corpora().join(target.name);
        let mut files = entries(&directory);
        files.retain(|path| path.is_file());
        assert!(files.len() >= 5, "{} has hardly a corpus", target.name);
        let regressions = directory.join("regressions");
        if regressions.exists() {
            files.extend(entries(&regressions));
        }
        for file in files {
            let data = fs::read(&file).unwrap();
            // The name of the file stands above whatever the target says.
            let shown = std::panic::catch_unwind(|| (target.run)(&data));
            assert!(shown.is_ok(), "{} fails on {}", target.name, file.display());
        }
    }
}

#[test]
fn corpora_are_those_of_targets_and_small() {
    let names: BTreeSet<_> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), TARGETS.len(), "two targets of one name");
    let mut bytes = 0;
    for directory in entries(&corpora()).iter().filter(|path| path.is_dir()) {
        let name = directory.file_name().unwrap().to_str().unwrap();
        assert!(names.contains(name), "corpora/{name} is no target's");
        bytes += size(directory);
    }
    assert!(bytes < 4 << 20, "the corpora have {bytes} bytes: minimise them");
}

fn size(path: &Path) -> u64 {
    if path.is_dir() {
        entries(path).iter().map(|path| size(path)).sum()
    } else {
        path.metadata().unwrap().len()
    }
}

#[test]
fn every_target_has_a_fuzzer() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml")).unwrap();
    let names: Vec<_> = manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("{ name = \"")?.split('"').next())
        .collect();
    let targets = TARGETS.iter().map(|target| target.name);
    // That of other people's parsers is the last one.
    assert_eq!(names, targets.chain(["under-test"]).collect::<Vec<_>>());
}
