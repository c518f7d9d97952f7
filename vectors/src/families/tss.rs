//! Secured packets with their keys: worked examples of each mode, and the same packets altered.

use crate::case::{Case, Family};
use serde_json::{Value, json};
use std::fmt::Display;
use uet_control::SecureDomain;
use uet_wire::outer::Ipv4;

/// The numbers of the worked examples, which the tests of the codec share.
const EXAMPLES: &str = include_str!("../../../uet-wire/tests/all/tss/examples.json");

const SDI: u32 = 0x01_2345;

/// A second key of the domain of example 1, for the other association number.
const OTHER_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The names and subjects of the examples, in their order.
const SUBJECTS: [(&str, &str); 18] = [
    ("cluster-ipv4", "a request with the first key that the specification derives as an example"),
    ("cluster-ipv4-ack", "its ACK: another sender, so another key"),
    ("cluster-ipv4-retransmitted", "the request again, with a new counter and another entropy value"),
    ("cluster-ipv4-ssi", "a source identifier takes the place of the address; the other association number"),
    ("cluster-ipv6", "a long context, and an IV that starts with the number of the domain"),
    (
        "cluster-ipv6-ssi",
        "the context has the address, the IV the source identifier; public sources disagree",
    ),
    ("direct-ipv4", "the key of the domain itself, and no IV mask"),
    (
        "direct-ipv4-ssi",
        "the key of the domain itself, with a source identifier and the other association number",
    ),
    ("direct-ipv6-ssi", "IPv6 needs a source identifier here"),
    ("server-ipv4-ssi-incoming", "from a client: the server derives the client's key"),
    ("server-ipv4-ssi-outgoing", "to a client: the same key and identifier, counters from the upper half"),
    ("server-ipv4-outgoing", "the context has the client's address, the IV the server's"),
    ("server-ipv6-ssi-incoming", "from a client over IPv6"),
    ("cluster-ipv4-udp", "in UDP the authenticated range includes the UDP header"),
    ("cluster-ipv6-udp", "in UDP over IPv6"),
    ("cluster-ack-expected-psn", "an ACK of CLOSE_COMMAND with Expected_PSN"),
    ("cluster-nack-new-start-psn", "a NACK NEW_START_PSN, protected"),
    ("cluster-clear-part", "12 more bytes in the clear, but authenticated"),
];

/// The examples with one flipped bit: name, example, byte, bit, subject.
const ALTERED: [(&str, usize, usize, u8, &str); 11] = [
    ("icv", 1, 137, 0, "the lowest bit of the ICV"),
    ("entropy", 1, 35, 0, "the entropy value, which is authenticated"),
    ("ciphertext", 1, 50, 7, "the first encrypted bit"),
    ("destination", 1, 33, 0, "the destination address, which is authenticated"),
    ("counter", 1, 49, 0, "the counter, which is in the IV and authenticated"),
    ("reserved-bit", 1, 38, 1, "the reserved bit of the security header, which is authenticated"),
    ("an", 1, 38, 0, "the association number: another key"),
    ("sdi", 1, 41, 0, "the number of the domain: no such domain, so nothing is known of the packet"),
    ("udp-source-port", 14, 35, 0, "the UDP source port, which is authenticated"),
    ("udp-checksum", 14, 41, 0, "the UDP checksum, which counts as 0: the packet opens"),
    ("dscp", 1, 15, 2, "the traffic class, which is not authenticated: the packet opens"),
];

pub(super) fn family() -> Family {
    let mut family = Family::new("tss", "transport security: worked examples");
    let examples: Vec<Value> = made(serde_json::from_str(EXAMPLES));
    for (example, (name, subject)) in examples.iter().zip(SUBJECTS) {
        family.add(Case::eth(name, subject, frame(example)).keys(vec![domain(example)]));
        if let Some(client) = client(example) {
            let name = name.replace("server", "client").replace("incoming", "outgoing");
            family.add(Case::eth(name, "the same packet at its sender", frame(example)).keys(vec![client]));
        }
    }
    for (name, number, byte, bit, subject) in ALTERED {
        let example = &examples[number - 1];
        let mut bytes = frame(example);
        bytes[byte] ^= 1 << bit;
        let sum = Ipv4::parse(&bytes[14..]).map_or(0, |(header, _)| header.computed_checksum(&[]));
        bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        let subject = format!("one bit changed: {subject}");
        family.add(Case::eth(format!("altered-{name}"), subject, bytes).keys(vec![domain(example)]));
    }
    family
}

/// Takes a value that the examples have; otherwise they are wrong.
fn made<T, E: Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => unreachable!("the examples: {error}"),
    }
}

fn text<'e>(example: &'e Value, key: &str) -> &'e str {
    example[key].as_str().unwrap_or_default()
}

fn frame(example: &Value) -> Vec<u8> {
    made(uet_packet_io::hex::decode(text(example, "frame")))
}

/// Returns the domain of an example, at the end that derives.
fn domain(example: &Value) -> SecureDomain {
    let first = frame(example);
    // The association number is the lowest bit of the security header, which the keys of an example need.
    let an = security_header(&first) & 1;
    let mut keys = json!({ an.to_string(): text(example, "secret") });
    if example["example"] == 1 {
        keys["1"] = OTHER_KEY.into();
    }
    described(example, text(example, "mode"), keys)
}

/// Returns the domain of a packet from a client, as the client has it.
fn client(example: &Value) -> Option<SecureDomain> {
    let outgoing = example["mode"] == "server" && example["sending"] == false;
    let held = [text(example, "key"), text(example, "iv_mask")].concat();
    outgoing.then(|| described(example, "client", json!({ "0": held })))
}

fn described(example: &Value, mode: &str, keys: Value) -> SecureDomain {
    let mask = u64::from_str_radix(text(example, "rekey_mask"), 16).unwrap_or(0);
    made(serde_json::from_value(json!({
        "sdi": SDI,
        "mode": mode,
        "ssi": example["ssi"].is_string(),
        "rekey_mask": mask,
        "rekey_shift": example["rekey_shift"],
        "confidentiality_offset": example["confidentiality_offset"],
        "keys": keys,
    })))
}

/// Returns the first byte of the security header of a frame without tags, options and extension headers.
fn security_header(frame: &[u8]) -> u8 {
    let (length, proto) = if frame[12] == 8 { (20, frame[23]) } else { (40, frame[20]) };
    frame[14 + length + if proto == 17 { 8 } else { 4 }]
}
