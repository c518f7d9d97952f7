//! What is made from something else is as it would be made now.

use std::fs;
use std::path::{Path, PathBuf};
use uet_packet_io::corpus::dictionary;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_dictionaries_are_those_of_the_tables() {
    let read = |name| fs::read_to_string(root().join("corpora").join(name)).unwrap();
    assert!(read("uet.dict") == dictionary::packets(), "uet corpus dictionary > corpora/uet.dict");
    assert!(read("json.dict") == dictionary::json(), "uet corpus dictionary --json > corpora/json.dict");
}

#[test]
fn the_packets_of_the_program_are_those_of_the_corpus() {
    let now = fs::read_to_string(root().join("uet-packet-io/src/corpus/packets.txt")).unwrap();
    let made = uet_fuzz::corpus::packets(&root().join("corpora/parse")).unwrap();
    assert!(now == made, "cargo run -p uet-fuzz --example packets > uet-packet-io/src/corpus/packets.txt");
}
