//! The catalogue and the model have equal requirements. The model names each of its requirements in a comment at the
//! code that follows it, and names no others.

use std::collections::BTreeSet;
use std::path::Path;
use uet_wire::catalogue;

/// The areas of the model. The codec covers `WIRE-`.
const AREAS: [&str; 4] = ["PDS", "SES", "CC", "RCCC"];

fn is_ours(id: &str) -> bool {
    id.split('-').next().is_some_and(|area| AREAS.contains(&area))
}

/// Collects the identifiers in the comments of the sources in `folder`.
fn named(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            named(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let comments = text.lines().filter_map(|line| line.split_once("//").map(|(_, comment)| comment));
            into.extend(comments.flat_map(identifiers));
        }
    }
}

/// Returns words of the form AREA-TOPIC-NNN.
fn identifiers(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    let words = text.split(|c: char| !is_part(c));
    let is_id = |word: &&str| {
        let parts: Vec<&str> = word.split('-').collect();
        parts.len() == 3 && parts[2].len() == 3 && parts[2].bytes().all(|byte| byte.is_ascii_digit())
    };
    words.filter(is_id).map(str::to_owned).collect()
}

#[test]
fn model_and_catalogue_have_equal_requirements() {
    let mut in_the_model = BTreeSet::new();
    named(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut in_the_model);
    let ours = catalogue::ALL.iter().map(|requirement| requirement.id).filter(|id| is_ours(id));
    let unnamed: Vec<_> = ours.filter(|id| !in_the_model.contains(*id)).collect();
    let unknown: Vec<_> = in_the_model.iter().filter(|id| catalogue::find(id).is_none()).collect();
    assert!(
        unnamed.is_empty(),
        "in the catalogue, and in no comment below crates/uet-model/src: {unnamed:?}"
    );
    assert!(
        unknown.is_empty(),
        "in a comment below crates/uet-model/src, and not in the catalogue: {unknown:?}"
    );
}

#[test]
fn identifiers_are_found_in_text() {
    assert_eq!(identifiers("`PDS-ACK-004`, PDS-SYN-01 and SES-X-123."), ["PDS-ACK-004", "SES-X-123"]);
}
