//! The description for Kaitai Struct: compiled to JavaScript and Python, and run with their runtimes.

use super::{Tally, example, folder, run, vectors};
use crate::common::uet;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use uet_packet_io::hex::Hex;
use uet_wire::layout::Kind;
use uet_wire::{Options, Packet, Start};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/languages/");

/// Returns the canonical names of the fields of each type, by the names in the description.
fn fields(description: &str) -> BTreeMap<&str, BTreeMap<&str, &str>> {
    let mut fields: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    let (mut kind, mut id) = ("", "");
    let types = description.split_once("\ntypes:\n").unwrap().1.split_once("\nenums:\n").unwrap().0;
    for line in types.lines() {
        let (indent, line) = (line.len() - line.trim_start().len(), line.trim_start());
        match indent {
            2 => kind = line.trim_end_matches(':'),
            6 if line.starts_with("- id: ") => id = &line[6..],
            6 => id = line.trim_end_matches(':'),
            _ => {}
        }
        if let Some(canonical) = line.strip_prefix("-orig-id: ") {
            fields.entry(kind).or_default().insert(id, canonical);
        }
    }
    fields
}

#[test]
#[ignore = "needs the compiler and the runtimes of Kaitai Struct: ./test languages"]
fn kaitai_reads_every_field_of_the_vectors() {
    let folder = folder("kaitai");
    let description = uet(&["generate", "--language", "kaitai"]).out;
    let known = fields(&description);
    fs::write(folder.join("uet.ksy"), &description).unwrap();
    fs::write(folder.join("fields.json"), json!(known).to_string()).unwrap();
    let script = |name: &str| format!("{HERE}{name}");
    run(&folder, "node", &[&script("kaitai.js"), "compile", "uet.ksy", "."], String::new());
    // Numbers of JavaScript have 53 bits. The rest of wider fields is rounded there.
    let rounded = |value: u128| if value >> 53 == 0 { value } else { (value as f64) as u128 };
    agrees(&folder, &known, "python3", &[&script("kaitai.py"), ".", "fields.json"], |value| value);
    agrees(&folder, &known, "node", &[&script("kaitai.js"), "read", ".", "fields.json"], rounded);
    for (language, program, name) in
        [("python", "python3", "example.py"), ("javascript", "node", "example.js")]
    {
        let (code, output) = example(language);
        fs::write(folder.join(name), code).unwrap();
        assert_eq!(run(&folder, program, &[name], String::new()), output);
    }
}

/// Compares what a program reads of all packets with the codec and the vectors. `held` is a value as its language holds
/// an integer.
fn agrees(
    folder: &Path,
    known: &BTreeMap<&str, BTreeMap<&str, &str>>,
    program: &str,
    arguments: &[&str],
    held: impl Fn(u128) -> u128,
) {
    let vectors = vectors();
    let packets: Vec<(&[u8], &Value)> =
        vectors.iter().filter_map(|vector| Some((vector.uet()?, &vector.fields))).collect();
    let input = packets.iter().map(|(bytes, _)| format!("{}\n", Hex(bytes))).collect();
    let output = run(folder, program, arguments, input);
    let mut lines = output.lines();
    let (mut tally, mut cut) = (Tally::default(), 0);
    for (bytes, vector) in packets {
        let said: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        let (packet, error) = Packet::parse_lax(Start::Uet, bytes, &Options::default());
        if error.is_some() {
            assert!(said["error"].is_string(), "{program} reads {said} of {}, which is cut", Hex(bytes));
            cut += 1;
            continue;
        }
        let mut headers =
            said["headers"].as_array().unwrap_or_else(|| panic!("{said}: {}", Hex(bytes))).iter();
        for (layout, bytes) in packet.headers() {
            let header = headers.next().unwrap_or_else(|| panic!("{program} does not read {}", layout.name));
            assert_eq!(header[0], layout.name, "{program}, {}", Hex(bytes));
            let mut values: BTreeMap<&str, u128> = BTreeMap::new();
            for (id, value) in header[1].as_object().unwrap() {
                let canonical = known[layout.name][id.as_str()];
                let value = value.as_str().unwrap();
                let mut value = value.parse().unwrap_or_else(|_| value.parse::<i128>().unwrap() as u128);
                let exact = layout.present(bytes).find(|(place, _)| place.row.name == canonical);
                let Some((place, exact)) = exact else { panic!("{canonical} is not in {}", Hex(bytes)) };
                // The two parts of a wide field.
                let low = if place.row.width() > 64 { place.row.width() / 8 * 8 } else { 32 };
                let (shift, exact) = match id.rsplit_once('_') {
                    Some((_, "hi")) => (low, exact >> low),
                    Some((_, "lo")) => (0, exact & (u128::MAX >> (128 - low))),
                    _ => (0, exact),
                };
                if place.row.kind != Kind::Int && value == held(exact) {
                    value = exact;
                }
                let whole = values.entry(canonical).or_insert(0);
                *whole |= value << shift;
            }
            tally.compare(layout, bytes, values, vector);
        }
        assert_eq!(headers.next(), None, "{program}, {}", Hex(bytes));
        assert_eq!(said["payload"], Hex(packet.uet.payload).to_string());
    }
    tally.expect(45_000);
    assert!(cut > 700, "{cut} cut packets");
}
