//! Generated files match what they are generated from.

use std::fs;
use std::path::Path;
use uet_fuzz::corpus;
use uet_packet_io::corpus::dictionary;

#[test]
fn dictionaries_match_the_tables() {
    let read = |name| fs::read_to_string(corpus::root().join(name)).unwrap();
    assert!(read("uet.dict") == dictionary::packets(), "uet corpus dictionary > corpora/uet.dict");
    assert!(read("json.dict") == dictionary::json(), "uet corpus dictionary --json > corpora/json.dict");
}

#[test]
fn exported_packets_match_the_corpus() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/uet-packet-io/src/corpus/packets.txt");
    let now = fs::read_to_string(file).unwrap();
    let made = corpus::packets(&corpus::seeds("parse").unwrap());
    assert!(
        now == made,
        "cargo run -p uet-fuzz --example packets > crates/uet-packet-io/src/corpus/packets.txt"
    );
}
