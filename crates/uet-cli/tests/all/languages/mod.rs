//! Files of `uet generate` compile, and agree with the golden vectors about every field.
//!
//! Each language has a file here. `./test languages` installs the tools and runs all tests. Those that need only the
//! system's compiler, or none, always run.

mod c;
mod kaitai;
mod p4;
mod systemverilog;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use uet_packet_io::hex::{Hex, decode};
use uet_wire::layout::{Kind, Layout};
use uet_wire::{Options, Packet, Start};

/// A packet of a golden vector.
struct Vector {
    start: Start,
    bytes: Vec<u8>,
    /// Its fields as the vector states them.
    fields: Value,
}

impl Vector {
    fn packet(&self) -> Packet<'_> {
        Packet::parse_lax(self.start, &self.bytes, &Options::default()).0
    }

    /// Returns the bytes from the first UET header on.
    fn uet(&self) -> Option<&[u8]> {
        let offsets = self.packet().offsets();
        let first = if self.start == Start::Uet { Some(0) } else { offsets.uet };
        self.bytes.get(first?..offsets.padding)
    }
}

/// Returns the packets of all golden vectors.
fn vectors() -> Vec<Vector> {
    fn add(line: &Value, all: &mut Vec<Vector>) {
        for packet in line["packets"].as_array().into_iter().flatten() {
            add(packet, all);
        }
        let Some(hex) = line["hex"].as_str() else { return };
        let start = match line["from"].as_str() {
            Some("eth") => Start::Eth,
            Some("ip") => Start::Ip,
            Some("udp") => Start::Udp,
            _ => Start::Uet,
        };
        // The fields of a protected packet are those after its keys have opened it.
        if line["options"]["keys"].is_null() {
            all.push(Vector { start, bytes: decode(hex).unwrap(), fields: line["fields"].clone() });
        }
    }
    let mut all = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            let text = fs::read_to_string(file).unwrap();
            text.lines().for_each(|line| add(&serde_json::from_str(line).unwrap(), &mut all));
        }
    }
    all
}

/// Returns a value of a vector, which writes numbers of more than 64 bits as text.
fn number(value: &Value) -> Option<u128> {
    let text = || u128::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok();
    value.as_u64().map(u128::from).or_else(|| Some(value.as_i64()? as u128)).or_else(text)
}

/// Numbers of fields that agree.
#[derive(Debug, Default)]
struct Tally {
    fields: usize,
    /// Those that a vector states.
    told: usize,
}

impl Tally {
    /// Compares the fields that another language has read of a header with the codec and the vector.
    fn compare(
        &mut self,
        layout: &'static Layout,
        bytes: &[u8],
        mut said: BTreeMap<&str, u128>,
        vector: &Value,
    ) {
        for (place, value) in layout.present(bytes).filter(|(place, _)| place.row.kind != Kind::Reserved) {
            let (name, mask) = (place.row.name, u128::MAX >> (128 - place.row.width()));
            let read = said.remove(name).unwrap_or_else(|| panic!("{name} of {} is not read", layout.name));
            assert_eq!(read & mask, value, "{name} of {} in {}", layout.name, Hex(bytes));
            if let Some(value) = number(&vector[name]) {
                assert_eq!(read & mask, value & mask, "{name} of the vector {vector}");
                self.told += 1;
            }
            self.fields += 1;
        }
        assert!(said.is_empty(), "fields are read that {} lacks: {said:?}", layout.name);
    }

    fn expect(&self, fields: usize) {
        assert!(self.fields > fields && self.told * 10 > self.fields * 9, "{self:?}");
    }
}

/// Returns the example of a language in the documentation, and the output that it shows.
fn example(language: &str) -> (String, String) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/languages.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once(&format!("\n```{language}\n")).unwrap();
    let (code, rest) = rest.split_once("\n```\n").unwrap();
    let output = rest.strip_prefix("\n```text\n").unwrap().split_once("```\n").unwrap().0;
    (code.to_owned() + "\n", output.to_owned())
}

/// Returns an empty folder for the files of a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("languages").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a program in a folder, and returns its output.
fn run(folder: &Path, program: &str, arguments: &[&str], input: String) -> String {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn();
    let mut child =
        child.unwrap_or_else(|error| panic!("{program} is needed, see ./test languages: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    // A program that fails early does not read its input.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, errors) = (text(done.stdout), text(done.stderr));
    assert!(done.status.success(), "{program} {arguments:?}: {errors}{out}");
    out
}
