//! Generated documentation pages are current. `UPDATE=1 cargo test -p uet-cli --test all generated` writes them.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use uet_conformance::RULES;
use uet_conformance::coverage::{self, RequirementCoverage};
use uet_wire::catalogue::{self, Requirement};
use uet_wire::layout::{self, Kind};
use uet_wire::registry::{Entry, NackCode, Registry};

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
         `uet layout HEADER` draws one. The first bit of a byte is its most significant one. \
         The [code points](#code-points) follow the headers.\n",
    );
    for layout in layout::ALL {
        let drawing = uet_wire::draw(layout).to_string();
        let _ =
            write!(page, "\n## {}\n\n`{}`, {} bytes\n\n```text\n", layout.title, layout.name, layout.bytes);
        drawing.lines().for_each(|line| page += &format!("{}\n", line.trim_end()));
        page += "```\n";
    }
    page += "\n## Code points\n";
    code_points(&mut page);
    current("headers.md", &page);
}

/// Adds a table for each registry, in the order of the headers that have its fields.
fn code_points(page: &mut String) {
    let mut fields: Vec<(&Registry, Vec<&str>)> = Vec::new();
    for field in layout::ALL.iter().flat_map(|layout| layout.fields()) {
        let Kind::Code(registry) = field.row.kind else { continue };
        match fields.iter_mut().find(|(known, _)| known.name == registry.name) {
            Some((_, names)) if names.contains(&field.row.name) => {}
            Some((_, names)) => names.push(field.row.name),
            None => fields.push((registry, vec![field.row.name])),
        }
    }
    for (registry, names) in fields {
        let Registry { title, width, entries, vendor, .. } = registry;
        let _ = write!(page, "\n### {title}\n\n`{}`, {width} bits\n\n", names.join("`, `"));
        page.push_str("| number | name | meaning |\n| ---: | --- | --- |\n");
        for Entry { code, name, doc, since, until } in *entries {
            let since = since.map(|version| format!(", since {version}")).unwrap_or_default();
            let until = until.map(|version| format!(", until {version}")).unwrap_or_default();
            let class = match NackCode::new(*code).and_then(NackCode::class) {
                Some(class) if registry.name == "NackCode" => format!("; class {class:?}"),
                _ => String::new(),
            };
            let _ = writeln!(page, "| {code} | {name} | {}{class}{since}{until} |", doc.replace('|', "\\|"));
        }
        for (first, last) in *vendor {
            let _ = writeln!(page, "| {first} to {last} | | for vendors |");
        }
    }
}

#[test]
fn the_requirements_are_those_of_the_catalogue() {
    let mut page = String::from(
        "# Requirements\n\nGenerated from the catalogue of uet-wire and the rules of uet-conformance and `uet switch`; `uet explain ID` describes \
         one. By public evidence: we have had no access to the specification. A violation of a *must* loses, duplicates, \
         corrupts or misreads data, or makes a correct peer wait forever. A peer can tolerate a violation of a *should*. \
         A *may* is an option. Evidence counts independent public sources; 2 means at least two.\n\nIf you have the \
         specification, `uet audit` prints a checklist, with the requirements to check first.\n",
    );
    let area = |id: &'static str| id.split('-').next().unwrap_or(id);
    let mut before = "";
    for requirement in catalogue::ALL.iter().chain(catalogue::NETWORK) {
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
        let of_networks =
            uet_harness::switch::RULES.iter().filter(|rule| rule.requirements.contains(requirement));
        shown.extend(of_networks.map(|rule| format!("`{}`", rule.id)));
        let (level, rules) = (level.name(), shown.join(" "));
        let _ = writeln!(page, "| {id} | {level} | {section} | {evidence} | {sentence} | {rules} |");
    }
    current("requirements.md", &page);
}
