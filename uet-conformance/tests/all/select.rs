//! The selection of rules, and their coverage of the catalogue.

use uet_conformance::{Options, RULES, RequirementCoverage, coverage};
use uet_wire::catalogue::{ALL, Level, PDS_ACK_004, PDS_SEC_001, Requirement, WIRE_SES_003};

fn ids(options: &Options) -> Vec<&'static str> {
    options.selected().into_iter().map(|rule| rule.id).collect()
}

#[test]
fn every_rule_is_in_one_shard() {
    let all = ids(&Options::default());
    for count in [1, 2, 3, 8, 1000] {
        let mut found: Vec<&str> = (1..=count)
            .flat_map(|index| {
                ids(&Options { shard: format!("{index}/{count}").parse().unwrap(), ..Options::default() })
            })
            .collect();
        found.sort_by_key(|id| all.iter().position(|known| known == id));
        assert_eq!(found, all);
    }
}

#[test]
fn each_filter_takes_away() {
    let all = ids(&Options::default()).len();
    let rud = Options { capabilities: vec!["rud".into()], ..Options::default() };
    let none = Options { capabilities: vec!["nothing".into()], ..Options::default() };
    let must = Options { levels: vec![Level::Must], ..Options::default() };
    let others = Options { levels: vec![Level::Should, Level::May], ..Options::default() };
    assert!(!ids(&rud).is_empty() && ids(&none).is_empty());
    assert!(!ids(&must).is_empty());
    assert_eq!(ids(&must).len() + ids(&others).len(), all);
    let named = Options { ids: vec!["pds-ack-004".into()], ..Options::default() };
    assert!(ids(&named).contains(&"ack/requested"));
    let other = Options { groups: vec!["close".into()], ..named };
    assert!(!ids(&other).contains(&"ack/requested"));
}

fn of(requirement: &Requirement) -> RequirementCoverage {
    coverage::of(RULES, requirement)
}

#[test]
fn every_requirement_is_checked_or_says_why_not() {
    let open = ALL.iter().filter(|requirement| of(requirement).is_open());
    let open: Vec<&str> = open.map(|requirement| requirement.id).collect();
    assert!(open.is_empty(), "a rule, or a reason in UNSEEN: {open:?}");
}

#[test]
fn each_reason_is_needed() {
    for requirement in ALL.iter().filter(|requirement| of(requirement).unseen.is_some()) {
        let coverage = of(requirement);
        assert!(coverage.rules.is_empty(), "{} is seen by {:?}", requirement.id, coverage.rules);
    }
}

#[test]
fn coverage_names_the_checks() {
    let coverage = of(PDS_ACK_004);
    assert!(coverage.rules.contains(&"ack/requested") && !coverage.is_open());
    assert!(of(WIRE_SES_003).every_packet && !of(PDS_ACK_004).every_packet);
    assert_eq!(of(PDS_SEC_001).word(), "unseen");
}
