//! Generated documentation pages are current. `UPDATE=1 cargo test -p uet-cli --test all generated` writes them.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use uet_conformance::RULES;
use uet_conformance::coverage::{self, RequirementCoverage};
use uet_wire::catalogue::{self, Requirement};
use uet_wire::layout;

fn current(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, text).expect("written");
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == text, "docs/{name} is out of date: UPDATE=1 cargo test -p uet-cli --test all generated");
}

#[test]
fn the_headers_are_drawn_as_the_codec_has_them() {
    let mut page = String::from(
        "# Headers\n\nGenerated from the tables of uet-wire; [wire-format.md](wire-format.md) says what they are for, and \
         `uet layout HEADER` draws one.\n",
    );
    for layout in layout::ALL {
        let drawing = uet_wire::draw(layout).to_string();
        let _ =
            write!(page, "\n## {}\n\n`{}`, {} bytes\n\n```text\n", layout.title, layout.name, layout.bytes);
        drawing.lines().for_each(|line| page += &format!("{}\n", line.trim_end()));
        page += "```\n";
    }
    current("headers.md", &page);
}

#[test]
fn the_requirements_are_those_of_the_catalogue() {
    let mut page = String::from(
        "# Requirements\n\nGenerated from the catalogue of uet-wire and the rules of uet-conformance; `uet explain ID` describes \
         one. By public evidence: we have had no access to the specification. A violation of a *must* loses, duplicates, \
         corrupts or misreads data, or makes a correct peer wait forever. A peer can tolerate a violation of a *should*. \
         A *may* is an option. Evidence counts independent public sources; 2 means at least two.\n",
    );
    let area = |id: &'static str| id.split('-').next().unwrap_or(id);
    let mut before = "";
    for requirement in catalogue::ALL {
        let Requirement { id, level, section, evidence, sentence, .. } = requirement;
        if area(id) != before {
            before = area(id);
            let _ = write!(
                page,
                "\n## {before}\n\n| id | level | section | evidence | requirement | rules |\n\
                 | --- | --- | --- | ---: | --- | --- |\n"
            );
        }
        let RequirementCoverage { rules, every_packet, unseen } = coverage::of(RULES, requirement);
        let mut shown: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
        shown.extend(every_packet.then(|| "every packet".to_owned()));
        shown.extend(unseen.map(|reason| format!("none: {reason}")));
        let (level, rules) = (level.name(), shown.join(" "));
        let _ = writeln!(page, "| {id} | {level} | {section} | {evidence} | {sentence} | {rules} |");
    }
    current("requirements.md", &page);
}

/// Returns the first section that a requirement names, as numbers to sort by, and as text.
fn first_section(requirement: &Requirement) -> (Vec<u32>, &'static str) {
    let first = requirement.section.split(',').next().unwrap_or_default().trim();
    (first.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect(), first)
}

#[test]
fn the_audit_lists_every_requirement_by_section() {
    let mut page = String::from(
        "# Audit\n\nGenerated from the catalogue of uet-wire. This page is for readers who have the specification. We have had no \
         access to it: every requirement comes from public sources. The requirements are in the order of the specification, so \
         that you can read both side by side.\n\nCheck the box of a requirement that is right. Otherwise write the correct \
         level or sentence into the last column, or \"none\" if the specification does not require it. Start with low \
         confidence.\n\n| confidence | meaning |\n| --- | --- |\n| high | at least two independent public sources state it \
         |\n| low | one public source states it |\n\n`uet run --catalogue corrections.toml` applies corrections without a \
         rebuild ([testing.md](testing.md#corrections-of-the-catalogue)). Please send them to us, too.\n",
    );
    let mut requirements: Vec<&Requirement> = catalogue::ALL.to_vec();
    requirements.sort_by_key(|requirement| first_section(requirement));
    let low = requirements.iter().filter(|requirement| requirement.evidence < 2).count();
    let _ = write!(page, "\n{} requirements, {low} of them with low confidence.\n", requirements.len());
    for of_section in requirements.chunk_by(|one, next| first_section(one) == first_section(next)) {
        let (_, section) = first_section(of_section[0]);
        let _ = write!(
            page,
            "\n## Section {section}\n\n| right | id | level | evidence | confidence | requirement | also in | correction |\n\
             | :---: | --- | --- | ---: | --- | --- | --- | --- |\n"
        );
        for Requirement { id, level, section, evidence, sentence, .. } in of_section {
            let confidence = if *evidence < 2 { "low" } else { "high" };
            let others = section.split_once(',').map_or("", |(_, others)| others.trim());
            let level = level.name();
            let _ = writeln!(
                page,
                "| ☐ | {id} | {level} | {evidence} | {confidence} | {sentence} | {others} | |"
            );
        }
    }
    assert_eq!(page.matches("| ☐ |").count(), catalogue::ALL.len());
    current("audit.md", &page);
}
