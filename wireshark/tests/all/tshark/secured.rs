//! Secured packets, with and without keys. These tests need tshark; `wireshark/test` runs them.

use super::codec;
use super::compare::differences;
use super::{Captured, Dissected, SCRIPT, Scratch, dissect, dissect_with, info_with, tshark, write_capture};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use uet_packet_io::json::Record;
use uet_packet_io::{Decoder, hex};
use uet_wire::{Options, Start};

/// Gives scripts a slow GcryptCipher, which only later versions offer.
const CIPHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/tshark/gcrypt.lua");

const ETHERNET: u32 = 1;

/// Returns the vectors of secured packets with their names and frames.
fn vectors() -> Vec<(String, Value, Captured)> {
    let vectors = codec::vectors(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/tss.jsonl")));
    assert!(vectors.len() >= 31);
    let frame = |vector: &Value| Captured::whole(hex::decode(vector["hex"].as_str().unwrap()).unwrap());
    vectors.into_iter().map(|(name, vector)| (name, vector.clone(), frame(&vector))).collect()
}

/// Returns a packet as the codec reads it without keys.
fn decode(packet: &Captured, options: Options) -> Value {
    let record =
        Record { number: 1, start: Start::Eth, bytes: &packet.bytes, wire: packet.wire, ..Record::default() };
    let mut json = Vec::new();
    Decoder::new(options, false).recognizing_trailers().decode(record).write(&mut json);
    serde_json::from_slice(&json).unwrap()
}

/// Compares packets with the codec's reading without keys.
fn agree(packets: &[Captured], options: Options, preferences: &[String]) -> Vec<Dissected> {
    let seen = dissect(ETHERNET, packets, preferences);
    for (packet, seen) in packets.iter().zip(&seen) {
        let expected = decode(packet, options);
        assert!(expected["fields"]["tss.sdi"].is_number());
        assert_eq!(differences(&expected, seen), [""; 0], "{:02x?}", packet.bytes);
        assert!(seen.fields.contains_key("tss.encrypted") && seen.values("pds.type").is_empty());
    }
    seen
}

/// Returns the whole tree of a packet as text.
fn tree(packet: &Captured, preference: &str) -> String {
    let file = Scratch::new("pcap");
    write_capture(&file.0, ETHERNET, std::slice::from_ref(packet));
    tshark(&[SCRIPT], &["-r", file.0.to_str().unwrap(), "-V", "-o", preference])
}

/// Returns the key file for the keys of a vector.
fn key_file(keys: &Value) -> String {
    let mut file = String::from("# keys of a vector\n");
    for domain in keys.as_array().unwrap() {
        file.push_str("[[domain]]\n");
        for (name, value) in domain.as_object().unwrap() {
            match value.as_object() {
                None => writeln!(file, "{name} = {value} # a comment").unwrap(),
                Some(keys) => {
                    let keys: Vec<_> = keys.iter().map(|(an, key)| format!("{an} = {key}")).collect();
                    writeln!(file, "{name} = {{ {} }}", keys.join(", ")).unwrap();
                }
            }
        }
    }
    file
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn without_keys_only_the_security_header_and_the_icv_are_read() {
    let packets: Vec<_> = vectors().into_iter().map(|(_, _, packet)| packet).collect();
    let seen = agree(&packets, Options::default(), &[]);
    assert!(seen.iter().all(|packet| packet.values("icv").len() == 1));
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn trimmed_and_sliced_secured_packets_have_no_icv() {
    let (mut trimmed, mut marked) = (Vec::new(), Vec::new());
    for (name, _, packet) in vectors() {
        if name == "tss/cluster-ipv4-udp" {
            for kept in [60, 54, 50] {
                let mut bytes = packet.bytes[..kept].to_vec();
                bytes[16..18].copy_from_slice(&(kept as u16 - 14).to_be_bytes());
                // The IPv4 checksum counts the length.
                bytes[24..26].fill(0);
                let words = bytes[14..34].chunks(2);
                let sum: u32 = words.map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
                let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
                bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
                trimmed.push(Captured::whole(bytes));
            }
            trimmed.push(Captured { bytes: packet.bytes[..100].to_vec(), wire: packet.bytes.len() });
        }
        if name == "tss/altered-dscp" {
            marked.push(packet);
        }
    }
    let seen = agree(&trimmed[..2], Options::default(), &[]);
    assert!(seen.iter().all(|packet| packet.number("trimmed") == Some(1) && packet.values("icv").is_empty()));
    let seen = agree(&trimmed[3..], Options::default(), &[]);
    assert!(seen[0].number("sliced") == Some(1) && seen[0].values("icv").is_empty());
    // The switch left only a part of the security header.
    let expected = decode(&trimmed[2], Options::default());
    assert_eq!(differences(&expected, &dissect(ETHERNET, &trimmed[2..3], &[])[0]), [""; 0]);
    // Native packets have no second length, so the traffic class tells.
    let dscp = marked[0].bytes[15] >> 2;
    let options = Options::default().trimmed_dscp(Some(dscp));
    let seen = agree(&marked, options, &[format!("uet.trimmed_dscp:{dscp}")]);
    assert!(seen[0].number("trimmed") == Some(1) && seen[0].values("icv").is_empty());
}

/// The expected packet has the fields of the decrypted one, if it is authentic.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn keys_open_every_secured_vector() {
    let mut runs: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (name, vector, packet) in vectors() {
        runs.entry(key_file(&vector["options"]["keys"])).or_default().push((name, vector, packet));
    }
    let (mut opened, mut forged) = (0, 0);
    for (keys, cases) in runs {
        let file = Scratch::new("toml");
        std::fs::write(&file.0, &keys).unwrap();
        let preferences = [format!("uet.keys:{}", file.0.display())];
        let packets: Vec<_> = cases.iter().map(|(_, _, packet)| packet.clone()).collect();
        let all = dissect_with(&[CIPHER, SCRIPT], ETHERNET, &packets, &preferences);
        let lines = info_with(&[CIPHER, SCRIPT], ETHERNET, &packets, &preferences);
        for (((name, vector, _), seen), line) in cases.iter().zip(all).zip(lines) {
            assert_eq!(differences(vector, &seen), [""; 0], "{name}");
            let authenticated = vector["protection"]["authenticated"].as_bool();
            assert_eq!(seen.number("tss.authenticated").map(|truth| truth == 1), authenticated, "{name}");
            assert_eq!(seen.fields.contains_key("tss.forged"), authenticated == Some(false), "{name}");
            assert_eq!(line.ends_with("B encrypted"), authenticated != Some(true), "{name}: {line}");
            opened += usize::from(authenticated == Some(true));
            forged += usize::from(authenticated == Some(false));
        }
    }
    assert!(opened >= 20 && forged >= 8, "{opened} opened, {forged} forged");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn confidentiality_offset_bounds_the_readable_part() {
    let (_, vector, packet) =
        vectors().into_iter().find(|(name, ..)| name == "tss/cluster-clear-part").unwrap();
    let file = Scratch::new("toml");
    let keys = key_file(&vector["options"]["keys"]);
    let secret = vector["options"]["keys"][0]["keys"]["0"].as_str().unwrap();
    std::fs::write(&file.0, keys.replace(secret, &"0".repeat(64))).unwrap();
    // With a wrong key, or without a cipher, the PDS header before the offset is all that is readable.
    let shown = tree(&packet, &format!("uet.keys:{}", file.0.display()));
    assert!(shown.contains("    Packet delivery: RUD_REQ PSN 73728"), "{shown}");
    assert!(shown.contains("    Encrypted (60 bytes)\n"), "{shown}");
    assert!(
        shown.contains("uet decrypt IN OUT --keys FILE") || shown.contains("The ICV is wrong"),
        "{shown}"
    );
    assert!(!shown.contains("Readable") && !shown.contains("Semantics"), "{shown}");
    let shown = tree(&packet, "uet.tss_clear:11");
    assert!(shown.contains("    Readable (11 bytes)\n    Encrypted (61 bytes)\n"), "{shown}");
    assert!(!shown.contains("Packet delivery"), "{shown}");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn key_file_errors_name_the_line_and_no_key() {
    let key = "0123456789abcdef".repeat(4);
    for (text, line) in [
        (format!("[[domain]]\nsdi = 1\nmode = \"direct\"\nkeys = {{ 0 = \"{key}\n"), 4),
        (format!("\n[[domain]]\nsdi = 1\nmode = \"direct\"\nkeys = {{ 0 = \"{key}0\" }}\n"), 2),
        (format!("[[domain]]\nsdi = {key}\n"), 2),
    ] {
        let file = Scratch::new("toml");
        std::fs::write(&file.0, text).unwrap();
        let shown = tree(&vectors().remove(0).2, &format!("uet.keys:{}", file.0.display()));
        assert!(shown.contains(&format!("line {line}: ")), "{shown}");
        assert!(!shown.contains("01234567"), "{shown}");
    }
}
