//! Checks the files against the generator, the schema, the coverage table, the captures and the README.

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use uet_packet_io::input;
use uet_packet_io::json::Decoded;
use uet_vectors::{Case, coverage, families, files};
use uet_wire::Start;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The committed files.
static FOUND: LazyLock<Files> = LazyLock::new(|| files::found(&files::root()).unwrap());

fn vectors() -> impl Iterator<Item = (&'static Path, Value)> {
    let files = FOUND.iter().filter(|(path, _)| path.extension().is_some_and(|kind| kind == "jsonl"));
    files.flat_map(|(path, bytes)| {
        let lines = str::from_utf8(bytes).unwrap().lines();
        lines.map(|line| (path.as_path(), serde_json::from_str(line).unwrap()))
    })
}

#[test]
fn files_match_the_generator() {
    let difference = files::difference(&FOUND, &files::wanted());
    assert!(difference.is_none(), "run cargo run -p uet-vectors: {difference:#?}");
}

#[test]
fn every_vector_is_valid_by_the_schema() {
    let schema: Value =
        serde_json::from_slice(&fs::read(files::root().join("schema.json")).unwrap()).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut names = BTreeSet::new();
    for (path, vector) in vectors() {
        let errors: Vec<String> = validator.iter_errors(&vector).map(|error| error.to_string()).collect();
        let name = vector["name"].as_str().unwrap();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
        assert!(Path::new(name).starts_with(path.with_extension("")), "{name} is in {}", path.display());
        assert!(names.insert(name.to_owned()), "two vectors have the name {name}");
    }
}

#[test]
fn schema_refuses_other_json() {
    let schema: Value =
        serde_json::from_slice(&fs::read(files::root().join("schema.json")).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let (_, packet) = vectors().find(|(_, vector)| vector.get("hex").is_some()).unwrap();
    let (_, sequence) = vectors().find(|(_, vector)| vector.get("packets").is_some()).unwrap();
    assert!(validator.is_valid(&packet) && validator.is_valid(&sequence));
    for key in packet.as_object().unwrap().keys() {
        let mut without = packet.clone();
        without.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&without), "without {key}");
        let mut wrong = packet.clone();
        wrong[key] = Value::from(0.5);
        assert!(!validator.is_valid(&wrong), "{key} is 0.5");
    }
    let mut more = packet.clone();
    more["another"] = Value::Null;
    assert!(!validator.is_valid(&more));
    for key in ["direction", "at", "hex"] {
        let mut without = sequence.clone();
        without["packets"][0].as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&without), "a packet of a sequence without {key}");
    }
}

#[test]
fn nothing_is_left_out() {
    let table = coverage::table(&families::all());
    let missing: Vec<_> = table.missing().collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(table.vectors() > 1000);
    let undamaged = table.count("single packets from uet without error", "any");
    assert!(undamaged >= Some(300), "{undamaged:?}");
}

#[test]
fn sequences_keep_the_order_of_time_and_have_two_sides() {
    for family in families::all() {
        for vector in &family.vectors {
            let uet_vectors::Vector::Sequence { steps, name, .. } = vector else { continue };
            assert!(steps.is_sorted_by_key(|step| step.at), "{name}");
            let sides: BTreeSet<&str> = steps.iter().map(|step| step.direction.name()).collect();
            assert_eq!(sides.len(), 2, "{name}");
            // The addresses identify the sender too.
            for step in steps {
                let mut decoder = step.case.decoder();
                let decoded = step.case.decoded(&mut decoder);
                let src = decoded.packet.ip.unwrap().src().to_string();
                let expected = if step.direction.name() == "initiator" { "10.0.0.1" } else { "10.0.1.12" };
                assert_eq!(src, expected, "{name}");
                assert_eq!(decoded.error(), None, "{name}");
            }
        }
    }
}

/// Returns the UET fields, and whether anything was wrong or missing.
fn essence(decoded: &Decoded<'_>) -> (Vec<(&'static str, u128)>, usize, [bool; 3]) {
    let inside = |name: &&str| ["pds.", "ses.", "tss."].iter().any(|prefix| name.starts_with(prefix));
    let fields = decoded.view().fields().map(|(name, _, value)| (name, value));
    let packet = &decoded.packet;
    let flags = [decoded.error().is_some(), packet.trimmed.is_some(), packet.sliced.is_some()];
    (fields.filter(|(name, _)| inside(name)).collect(), packet.uet.payload.len(), flags)
}

/// Returns the comments of a capture's packets.
fn comments(capture: &[u8]) -> Vec<String> {
    let mut reader = PcapNgReader::new(capture).unwrap();
    let mut comments = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        for option in packet.options {
            if let EnhancedPacketOption::Comment(comment) = option {
                comments.push(comment.into_owned());
            }
        }
    }
    comments
}

#[test]
fn the_captures_hold_the_same_packets() {
    for family in families::all() {
        let cases: Vec<&Case> = family.vectors.iter().flat_map(|vector| vector.cases()).collect();
        let capture = &FOUND[Path::new(&format!("pcap/{}.pcapng", family.name))];
        let mut next = cases.iter();
        let mut before = None;
        let mut compare = |record: uet_packet_io::json::Record<'_>| {
            let case = next.next().unwrap();
            assert_eq!(record.start, Start::Eth);
            assert!(before <= Some(record.time.unwrap()), "{}: time goes on", case.name);
            before = record.time;
            assert_eq!(record.bytes[record.bytes.len() - case.bytes.len()..], case.bytes, "{}", case.name);
            let (mut of_capture, mut of_case) = (case.decoder(), case.decoder());
            let captured = of_capture.decode(record);
            assert_eq!(essence(&captured), essence(&case.decoded(&mut of_case)), "{}", case.name);
            Ok(std::ops::ControlFlow::Continue(()))
        };
        input::read(Cursor::new(capture), Start::Eth, &mut compare).unwrap();
        assert!(next.next().is_none(), "{}: packets are missing", family.name);
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(comments(capture), names);
    }
}

#[test]
fn the_example_of_the_readme_runs() {
    let readme = fs::read_to_string(files::root().join("README.md")).unwrap();
    let (_, after) = readme.split_once("```python\n").unwrap();
    let (code, _) = after.split_once("```").unwrap();
    assert!(code.lines().count() <= 17, "short enough to be read");
    let mut python = Command::new("python3")
        .current_dir(files::root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .arg("-")
        .spawn()
        .expect("python3 runs the example of the README");
    python.stdin.take().unwrap().write_all(code.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    let agreed: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert!(agreed > 100, "{said}");
}

#[test]
fn the_readme_names_every_family() {
    let readme = fs::read_to_string(files::root().join("README.md")).unwrap();
    for family in families::all() {
        assert!(readme.contains(&format!("| `{}` |", family.name)), "{}", family.name);
    }
}
