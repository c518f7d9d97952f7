//! Versions of the specification: released ones, and one unknown to this crate.

use uet_wire::catalogue::{WIRE_NEXT_002, WIRE_NEXT_003};
use uet_wire::layout::{self, Kind, Layout, Row, Values};
use uet_wire::pds::{Nack, Prologue, Uud};
use uet_wire::registry::{CtlType, Entry, NackCode, Registry, Status};
use uet_wire::validate::{Condition, Rule};
use uet_wire::{Spec, Uet, Version};

const UUD: [u8; 4] = [0x30, 0, 0xab, 0xcd];
const NACK: [u8; 16] = [0x50, 0, 0x1b, 0, 0, 0, 1, 0x4d, 0x80, 1, 0x40, 1, 0, 0, 0, 0];

fn findings(bytes: &[u8], spec: &'static Spec) -> Vec<&'static str> {
    Uet::parse(bytes).unwrap().validate(spec).map(|finding| finding.requirement.id).collect()
}

#[test]
fn released_versions_differ_in_two_code_points() {
    let mut differences = Vec::new();
    for registry in uet_wire::registry::ALL {
        for code in 0..=u8::MAX >> (8 - registry.width) {
            let status = |spec: &&'static Spec| spec.status(registry, code);
            let all: Vec<_> = Spec::ALL.iter().map(status).collect();
            if all.iter().any(|status| *status != all[0]) {
                differences.push((registry.name, code, all));
            }
        }
    }
    let (yes, no) = (Status::Assigned, Status::OtherVersion);
    let expected = [("NackCode", 3, vec![yes, yes, no])];
    assert_eq!(differences, expected);
}

#[test]
fn unassigned_lists_the_free_code_points() {
    let free = |registry: &Registry, version: Version| registry.unassigned(version).collect::<Vec<_>>();
    assert_eq!(free(CtlType::REGISTRY, Version::V1_0_1), (10..16).collect::<Vec<_>>());
    assert_eq!(NackCode::REGISTRY.unassigned(Version::V1_0_2).nth(1), Some(0x0c));
    assert_eq!(NackCode::REGISTRY.unassigned(Version::V1_0_3).nth(1), Some(0x03));
}

#[test]
fn version_selects_its_spec() {
    for (version, spec) in Version::ALL.iter().zip(Spec::ALL) {
        assert_eq!((version.spec(), spec.released(), spec.name()), (*spec, *version, version.name()));
    }
    assert_eq!(Spec::ALL.len(), Version::ALL.len());
    assert_eq!(<&Spec>::default().name(), "1.0.3");
}

const PROLOGUE: Row =
    Row { name: "prologue", lo: 0, hi: 16, kind: Kind::Part(Prologue::LAYOUT), when: None, doc: "" };
const ROWS: &[Row] =
    &[PROLOGUE, Row { name: "pds.flow", lo: 16, hi: 32, kind: Kind::Uint, when: None, doc: "a flow label" }];
static WITH_FLOW: Layout = Uud::LAYOUT.revised(ROWS, &layout::places::<{ layout::count(ROWS) }>(ROWS));
const TOO_WARM: Entry = Entry { code: 0x1b, name: "TOO_WARM", doc: "overheats", since: None, until: None };
const TAKEN_OUT: Entry = Entry { code: 0x0b, name: "RESERVED", doc: "reserved", since: None, until: None };

static CODES: Spec = Spec::new("codes", Version::V1_0_3)
    .with_codes(&[(NackCode::REGISTRY, &TOO_WARM), (NackCode::REGISTRY, &TAKEN_OUT)]);
static LAYOUTS: Spec = Spec::new("layouts", Version::V1_0_3).with_layouts(&[&WITH_FLOW]);
static RULES: Spec = Spec::new("rules", Version::V1_0_3).with_layouts(&[&WITH_FLOW]).with_rules(
    &[WIRE_NEXT_002],
    &[Rule {
        requirement: WIRE_NEXT_003,
        headers: &[Uud::LAYOUT],
        field: "pds.flow",
        broken: &[Condition::In("pds.flow", Values::of(&[5]))],
    }],
);

#[test]
fn added_and_removed_code_points_decide() {
    let with_code = |code| {
        let mut nack = NACK;
        nack[2] = code;
        nack
    };
    assert_eq!(findings(&with_code(0x1b), &CODES), [""; 0]);
    assert_eq!(findings(&with_code(0x1b), Version::V1_0_3.spec()), ["WIRE-NACK-001"]);
    assert_eq!(findings(&with_code(0x0b), &CODES), ["WIRE-NACK-001"]);
    assert_eq!(findings(&with_code(0x0b), Version::V1_0_3.spec()), [""; 0]);
    assert_eq!(CODES.entry(NackCode::REGISTRY, 0x1b).map(|entry| entry.name), Some("TOO_WARM"));
    assert_eq!(NackCode::REGISTRY.unassigned(&CODES).find(|code| (0x0b..).contains(code)), Some(0x0b));
}

#[test]
fn revised_layout_replaces_reserved_bits() {
    assert_eq!(findings(&UUD, Version::V1_0_3.spec()), ["WIRE-RSVD-001", "WIRE-NEXT-002"]);
    assert_eq!(findings(&UUD, &LAYOUTS), ["WIRE-NEXT-002"]);
    let present = LAYOUTS.layout(Uud::LAYOUT).present(&UUD);
    assert_eq!(present.last().map(|(place, value)| (place.row.name, value)), Some(("pds.flow", 0xabcd)));
    assert_eq!(LAYOUTS.layout(Nack::LAYOUT), Nack::LAYOUT);
}

#[test]
fn rules_are_dropped_and_added() {
    assert_eq!(findings(&UUD, &RULES), [""; 0]);
    assert_eq!(findings(&[0x30, 0, 0, 5], &RULES), ["WIRE-NEXT-003"]);
    assert_eq!(RULES.rules().filter(|rule| rule.requirement.id == "WIRE-NEXT-002").count(), 0);
    assert_eq!(RULES.rules().last().map(|rule| rule.field), Some("pds.flow"));
}
