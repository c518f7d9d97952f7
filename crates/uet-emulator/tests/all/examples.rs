//! The examples run and print the expected text.

use std::path::Path;
use std::process::Command;

/// Runs an example that `cargo test` has built beside the tests.
fn run(name: &str, args: &[&str]) -> String {
    let tests = std::env::current_exe().unwrap();
    let example = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    let run = Command::new(example).args(args).output();
    let run = run.unwrap_or_else(|error| {
        panic!("{error}: build {name} with `cargo build -p uet-emulator --examples`")
    });
    assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn each_operation_has_one() {
    let said = [
        ("write", "12000 bytes"),
        ("read", "read\n"),
        ("send", "two"),
        ("tagged_send", "odd\neven"),
        ("receive", "before\nfrom seven"),
        ("atomic", "Some(42)"),
    ];
    for (name, expected) in said {
        let out = run(name, &[]);
        assert!(out.contains(expected), "{name}: {out}");
    }
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap();
    assert_eq!(files.count(), said.len() + 1, "with that of the articles");
}

#[test]
fn the_articles_write_has_its_ladder() {
    let out = run("article", &[]);
    for number in 0..4 {
        let request = format!("RUD_REQ PSN {} SYN 0x4001 > ?", 0x12000 + number);
        assert!(out.contains(&request), "{request}: {out}");
    }
    assert!(
        out.contains("0x8001 > 0x4001") && out.ends_with("The write has completed: 16384 bytes.\n"),
        "{out}"
    );
    let lost = run("article", &["drop", "request", "2"]);
    assert!(lost.contains("X  |") && lost.contains("[RETX]") && lost.ends_with("16384 bytes.\n"), "{lost}");
}
