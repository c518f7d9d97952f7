//! A rule declares exactly the requirements that its script compares something with.

use std::collections::BTreeSet;
use uet_conformance::{Expand, cases, run_instance};
use uet_emulator::Config;
use uet_harness::dut::{Embedded, Family};
use uet_wire::Version;

#[test]
fn declared_requirements_are_the_recorded_ones() {
    let mut nic = Embedded::over(Family::Both, Config::default(), &[]).expect("a NIC");
    let mut wrong = Vec::new();
    for rule in cases::all() {
        let recorded: BTreeSet<String> = rule
            .instances(Expand::Pairwise, |_| true)
            .iter()
            .flat_map(|instance| run_instance(&mut nic, instance, Version::default().spec(), 1, 1.0).recorded)
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
    assert!(wrong.is_empty(), "{} rules:\n{}", wrong.len(), wrong.join("\n"));
}
