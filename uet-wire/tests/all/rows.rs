//! A compile error in a row of a header points at the row.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// A broken row: file, the row's text before and after, and the error text at the row.
const BROKEN: &[(&str, &str, &str, &str)] = &[
    ("pds/ack.rs", "m: bool,", "m: char,", "the trait bound `char: "),
    ("pds/ack.rs", "spdcid: PdcId,", "spdcid: PdcIdd,", "cannot find type `PdcIdd`"),
    ("pds/nack.rs", "16.. 24  nack_code", "16.. 25  nack_code", "SharesBitsWithAnotherRow"),
    ("pds/uud.rs", "16.. 32;", "16.. 33;", "BitsAreNotInTheHeader"),
    ("pds/rudi.rs", "0.. 16  prologue", "0.. 24  prologue", "PartHasAnotherLength"),
    (
        "pds/control.rs",
        "psn_offset: PsnOffset [when \"pds.flags.syn\"",
        "psn_offset: PsnOffset [when \"pds.flags.sym\"",
        "HeaderHasNoSuchField",
    ),
    (
        "ses/response.rs",
        "list: List,",
        "list: List [when \"ses.opcode\" crate::layout::is(0)],",
        "DecidingFieldStandsLater",
    ),
];

#[test]
fn compile_errors_point_at_rows() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rows");
    let _ = fs::remove_dir_all(&copy);
    copy_folder(&source, &copy);
    let mut rows = Vec::new();
    for (file, right, wrong, error) in BROKEN {
        let path = copy.join(file);
        let text = fs::read_to_string(&path).unwrap();
        let start = text.find(right).unwrap_or_else(|| panic!("{file} has no {right}"));
        rows.push((*file, text[..start].lines().count(), *error));
        fs::write(&path, text.replacen(right, wrong, 1)).unwrap();
    }
    let errors = errors(&copy);
    for (file, line, error) in rows {
        let at = format!("{file}:{line}:");
        let found = errors.iter().any(|found| found.contains(&at) && found.contains(error));
        assert!(found, "no error at {at} has {error:?}:\n{}", errors.join("\n\n"));
    }
}

/// Returns the compiler's errors. Builds without features, and therefore without dependencies.
fn errors(source: &Path) -> Vec<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"]);
    let output = command.arg(source).arg(source.join("lib.rs")).output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap().replace('\\', "/");
    text.split("\n\n").map(str::to_owned).collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}
