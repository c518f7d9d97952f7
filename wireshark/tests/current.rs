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
