//! The committed captures are those that the program writes.

use std::collections::BTreeSet;
use std::fs;
use uet_captures::{folder, stories};

/// The limit of a capture, in bytes.
const SMALL: usize = 100_000;

#[test]
fn files_match_the_stories() {
    let mut names = BTreeSet::new();
    for story in stories() {
        let name = format!("{}.pcapng", story.name);
        let capture = story.capture().unwrap();
        assert!(capture.len() < SMALL, "{name} has {} bytes", capture.len());
        assert!(
            fs::read(folder().join(&name)).unwrap() == capture,
            "{name} is stale: cargo run -p uet-captures"
        );
        names.insert(name);
    }
    let found =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(found.collect::<BTreeSet<_>>(), names);
}
