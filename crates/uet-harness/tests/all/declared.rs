//! A rule declares exactly the requirements that its script compares something with. That run also writes
//! docs/parameters.md: `UPDATE=1 cargo test --release -p uet-harness --test all declared`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use uet_conformance::{Expand, RULES, run_instance};
use uet_control::PARAMETERS;
use uet_emulator::Config;
use uet_harness::dut::{Embedded, Family};
use uet_wire::Version;

#[test]
fn each_id_belongs_to_one_rule() {
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = RULES.iter().filter(|rule| !seen.insert(rule.id)).map(|rule| rule.id).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn declared_requirements_are_the_recorded_ones() {
    let mut nic = Embedded::over(Family::Both, Config::default(), &[]).expect("a NIC");
    let mut wrong = Vec::new();
    let mut uses: BTreeMap<String, Uses> = BTreeMap::new();
    for rule in RULES.iter() {
        let recorded: BTreeSet<String> = rule
            .instances(Expand::Pairwise, |_| true)
            .iter()
            .flat_map(|instance| {
                let result = run_instance(&mut nic, instance, Version::default().spec(), 1, 1.0);
                for name in result.read {
                    uses.entry(name).or_default().read.insert(rule.id);
                }
                for name in result.set {
                    uses.entry(name).or_default().set.insert(rule.id);
                }
                result.recorded
            })
            .collect();
        let declared: BTreeSet<String> =
            rule.requirements.iter().map(|requirement| requirement.id.to_owned()).collect();
        let list = |set: &BTreeSet<String>, other: &BTreeSet<String>| {
            set.difference(other).cloned().collect::<Vec<_>>().join(" ")
        };
        let (missing, idle) = (list(&recorded, &declared), list(&declared, &recorded));
        if recorded != declared {
            wrong.push(format!("{}: declare [{missing}], do not declare [{idle}]", rule.id));
        }
    }
    check_page(&uses);
    assert!(wrong.is_empty(), "{} rules:\n{}", wrong.len(), wrong.join("\n"));
}

/// The rules that read and that set a parameter.
#[derive(Default)]
struct Uses {
    read: BTreeSet<&'static str>,
    set: BTreeSet<&'static str>,
}

/// Compares docs/parameters.md with the table of parameters and the rules that use them.
fn check_page(uses: &BTreeMap<String, Uses>) {
    let unknown: Vec<&String> =
        uses.keys().filter(|name| !PARAMETERS.iter().any(|parameter| parameter.name == *name)).collect();
    assert!(
        unknown.is_empty(),
        "parameters without a row in crates/uet-control/src/parameter.rs: {unknown:?}"
    );
    let mut page = String::from(
        "# Parameters of a device\n\nA device reports its parameters in the answer to `hello`. A statement (`--statement`) \
         overrides them. Some rules set parameters with `configure`. If a parameter is absent, the suite assumes the default.\n\n\
         Generated from crates/uet-control/src/parameter.rs and from a run of the suite. `uet explain NAME` shows one parameter \
         with all rules that use it. The origin \"open\" means that public sources leave the value or the meaning open: a \
         device may choose, and no rule requires the default.\n\n\
         | name | type | default | origin | meaning | rules that read it | rules that set it |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for parameter in PARAMETERS {
        let some = |rules: &BTreeSet<&str>| match rules.len() {
            0 => "none".to_owned(),
            1..=3 => rules.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(" "),
            count => format!("{count} rules"),
        };
        let nothing = Uses::default();
        let uses = uses.get(parameter.name).unwrap_or(&nothing);
        let _ = writeln!(
            page,
            "| `{}` | {} | `{}` | {} | {} | {} | {} |",
            parameter.name,
            parameter.kind,
            parameter.default,
            parameter.origin,
            parameter.meaning,
            some(&uses.read),
            some(&uses.set)
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/parameters.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).expect("written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/parameters.md is out of date: UPDATE=1 cargo test --release -p uet-harness --test all declared"
    );
}
