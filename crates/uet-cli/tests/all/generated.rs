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
fn the_checklist_has_the_rows_of_catalogue_and_parameters() {
    current("audit.md", &uet_cli::commands::audit::checklist());
}

#[test]
fn the_requirements_are_those_of_the_catalogue() {
    let mut page = String::from(
        "# Requirements\n\nGenerated from the catalogue of uet-wire and the rules of uet-conformance; `uet explain ID` describes \
         one. By public evidence: we have had no access to the specification. A violation of a *must* loses, duplicates, \
         corrupts or misreads data, or makes a correct peer wait forever. A peer can tolerate a violation of a *should*. \
         A *may* is an option. Evidence counts independent public sources; 2 means at least two.\n\nIf you have the \
         specification, [audit.md](audit.md) lists the requirements to check first.\n",
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
