//! The committed layer, and the layers of other versions. `crates/uet-scapy/test` checks it with Scapy.

use uet_wire::Version;

#[test]
fn the_committed_layer_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/uet.py");
    let committed = std::fs::read_to_string(file).unwrap();
    assert!(
        committed == uet_scapy::layer(Version::default().spec()),
        "crates/uet-scapy/uet.py is not what the tables give: cargo run -- scapy -o crates/uet-scapy/uet.py"
    );
}

#[test]
fn a_version_has_its_own_code_points() {
    let [old, new] = [Version::V1_0_1, Version::V1_0_3].map(|version| uet_scapy::layer(version.spec()));
    assert!(old.starts_with("# Ultra Ethernet Transport 1.0.1 for Scapy."), "{}", &old[..80]);
    assert_ne!(old, new);
}
