//! The findings of `uet check` on captures of the reference provider. docs/interoperability.md explains each one.

use crate::common::uet;
use std::fs;
use std::path::Path;

#[test]
fn findings_of_the_reference_provider() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora/captures/reference-provider");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut all = String::new();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // The trailers are recognized.
        let run = uet(&["check", "--limit", "20", path.to_str().unwrap()]);
        all += &format!("{name}: exit code {}\n{}\n", run.code, run.out);
    }
    insta::assert_snapshot!("findings", all);
}
