//! The requirements and the code that follows them name each other.

use std::collections::BTreeSet;
use uet_wire::catalogue;

#[test]
fn each_requirement_is_followed_somewhere_and_each_that_is_named_exists() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ses");
    let mut named = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        // An identifier stands between backquotes.
        for id in text.split('`').filter(|id| id.starts_with("SES-") || id.starts_with("WIRE-")) {
            assert!(catalogue::find(id).is_some(), "{id} is not in the catalogue");
            named.insert(id.to_owned());
        }
    }
    let missing: Vec<&str> = catalogue::ALL
        .iter()
        .map(|requirement| requirement.id)
        .filter(|id| id.starts_with("SES-") && !named.contains(*id))
        .collect();
    assert!(missing.is_empty(), "{missing:?} are followed nowhere");
}
