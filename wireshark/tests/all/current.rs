//! The committed dissector is the one that the tables give.

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
    use uet_wire::registry::{Entry, NackCode};
    use uet_wire::{Spec, Version};
    const TOO_WARM: Entry = Entry { code: 0x1b, name: "TOO_WARM", doc: "too warm", since: None, until: None };
    static NEXT: Spec = Spec::new("9.9", Version::V1_0_3).with_codes(&[(NackCode::REGISTRY, &TOO_WARM)]);
    let script = uet_wireshark::dissector(&NEXT);
    assert!(script.contains("U.versions, U.version = { \"9.9\" }, 1\n"));
    assert!(script.contains("[27] = \"TOO_WARM\",") && script.contains("{ 28, 252 }"));
    let released = uet_wireshark::dissector(Version::V1_0_2.spec());
    assert!(released.contains("U.versions, U.version = { \"1.0.1\", \"1.0.2\", \"1.0.3\" }, 2\n"));
    assert!(released.contains("{ 27, 252 }"));
}
