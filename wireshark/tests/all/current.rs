//! The committed dissector matches the tables.

#[test]
fn the_committed_dissector_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/uet.lua");
    let committed = std::fs::read_to_string(file).unwrap();
    assert!(
        committed == uet_wireshark::dissector(uet_wire::Version::default().spec()),
        "wireshark/uet.lua is not what the tables give: cargo run -- wireshark -o wireshark/uet.lua"
    );
}

#[test]
fn every_field_of_every_uet_header_is_there() {
    use uet_wire::layout::{ALL, Layer};
    let script = uet_wireshark::dissector(uet_wire::Version::default().spec());
    let around = [Layer::Eth, Layer::Vlan, Layer::Ipv4, Layer::Ipv6, Layer::Udp];
    for layout in ALL.iter().filter(|layout| !around.contains(&layout.layer)) {
        for place in layout.fields() {
            assert!(script.contains(&format!("{{ {:?}, ", place.row.name)), "{}", place.row.name);
        }
    }
}

#[test]
fn dissector_knows_a_version_of_its_own() {
    use uet_wire::catalogue::WIRE_NEXT_003;
    use uet_wire::layout::{self, Kind, Layout, Row, Values};
    use uet_wire::pds::{Prologue, Uud};
    use uet_wire::registry::{Entry, NackCode};
    use uet_wire::validate::{Condition, Rule};
    use uet_wire::{Spec, Version};

    const TOO_WARM: Entry = Entry { code: 0x1b, name: "TOO_WARM", doc: "too warm", since: None, until: None };
    const PROLOGUE: Kind = Kind::Part(Prologue::LAYOUT);
    const ROWS: &[Row] = &[
        Row { name: "prologue", lo: 0, hi: 16, kind: PROLOGUE, when: None, doc: "" },
        Row { name: "pds.flow", lo: 16, hi: 32, kind: Kind::Uint, when: None, doc: "a flow label" },
    ];
    static UUD: Layout = Uud::LAYOUT.revised(ROWS, &layout::places::<{ layout::count(ROWS) }>(ROWS));
    const NO_FLOW_5: Rule = Rule {
        requirement: WIRE_NEXT_003,
        headers: &[Uud::LAYOUT],
        field: "pds.flow",
        broken: &[Condition::In("pds.flow", Values::of(&[5]))],
    };
    static NEXT: Spec = Spec::new("9.9", Version::V1_0_3)
        .with_codes(&[(NackCode::REGISTRY, &TOO_WARM)])
        .with_layouts(&[&UUD])
        .with_rules(&[WIRE_NEXT_003], &[NO_FLOW_5]);

    let script = uet_wireshark::dissector(&NEXT);
    assert!(script.contains("U.versions, U.version = { \"9.9\" }, 1\n"));
    assert!(script.contains("[27] = \"TOO_WARM\",") && script.contains("{ 28, 252 }"));
    assert!(script.contains("{ \"pds.flow\", "));
    assert!(script.contains("== 5 then\n    found(p, \"WIRE-NEXT-003\", \"pds.flow\", "));
    let released = uet_wireshark::dissector(Version::V1_0_2.spec());
    assert!(released.contains("U.versions, U.version = { \"1.0.1\", \"1.0.2\", \"1.0.3\" }, 2\n"));
    assert!(released.contains("{ 27, 252 }") && !released.contains("pds.flow\""));
}
