//! Files of `uet generate` compile, and agree with the golden vectors about every field.

use crate::common::uet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use uet_packet_io::hex::{Hex, decode};
use uet_wire::layout::{Kind, Layout};
use uet_wire::{Options, Packet, Start};

/// A field as the C header names it.
struct Field {
    canonical: String,
    name: String,
    has: bool,
    /// Empty, or `_hi` and `_lo`.
    parts: Vec<String>,
}

/// Returns the fields of each header in the C file.
fn fields(header: &str) -> BTreeMap<String, Vec<Field>> {
    let mut fields: BTreeMap<String, Vec<Field>> = BTreeMap::new();
    let (mut canonical, mut has) = ("", false);
    for line in header.lines() {
        if let Some((name, _)) = line.strip_prefix("/* ").and_then(|line| line.split_once(", ")) {
            (canonical, has) = (name, false);
        }
        has |= line.starts_with("static inline int uet_") && line.contains("_has_");
        let Some((before, _)) = line.split_once("(const uint8_t *header)") else { continue };
        let Some((header, name)) = before.split_once("_get_") else { continue };
        let header = header.rsplit_once(" uet_").unwrap().1;
        let (name, part) = match name.len().checked_sub(3).map(|at| name.split_at(at)) {
            Some((name, part @ ("_hi" | "_lo"))) => (name, part),
            _ => (name, ""),
        };
        let known = fields.entry(header.into()).or_default();
        if part != "_lo" {
            known.push(Field { canonical: canonical.into(), name: name.into(), has, parts: Vec::new() });
        }
        known.last_mut().unwrap().parts.push(part.into());
    }
    fields
}

/// Returns a program that reads lines with the name and the bytes of a header. For each it prints the fields. Then it
/// writes the fields over the inverted bytes, and prints the result.
fn program(fields: &BTreeMap<String, Vec<Field>>) -> String {
    let mut out = String::from(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nstatic int checks = 1;\n\
         #define UET_CHECK(condition) do { if (checks && !(condition)) abort(); } while (0)\n#include \"uet.h\"\n\
         int main(void)\n{\n    static char name[32], hex[256];\n    while (scanf(\"%31s %255s\", name, hex) == 2) {\n\
         uint8_t bytes[128] = {0}, other[128];\n        size_t count = strlen(hex) / 2;\n\
         for (size_t i = 0; i < count; i++) { unsigned byte; if (sscanf(hex + 2 * i, \"%2x\", &byte) != 1) return 1; \
         bytes[i] = (uint8_t)byte; }\n        for (size_t i = 0; i < 128; i++) other[i] = (uint8_t)~bytes[i];\n",
    );
    for (header, fields) in fields {
        let _ = writeln!(out, "if (strcmp(name, \"{header}\") == 0) {{");
        for (pass, checks) in [(0, 0), (1, 0), (2, 1)] {
            let _ = writeln!(out, "checks = {checks};");
            for field in fields {
                let (name, condition) = (
                    &field.name,
                    match field.has {
                        true => format!("if (uet_{header}_has_{}(bytes)) ", field.name),
                        false => String::new(),
                    },
                );
                let get = |part: &str| format!("uet_{header}_get_{name}{part}(bytes)");
                let line = match (pass, field.parts.len()) {
                    (2, 1) => {
                        format!("printf(\"{}=0:%llx \", (unsigned long long){});", field.canonical, get(""))
                    }
                    (2, _) => format!(
                        "printf(\"{}=%llx:%llx \", (unsigned long long){}, (unsigned long long){});",
                        field.canonical,
                        get("_hi"),
                        get("_lo")
                    ),
                    // Twice: the place of a field may depend on a later one.
                    _ => field.parts.iter().fold(String::new(), |line, part| {
                        line + &format!("uet_{header}_set_{name}{part}(other, {}); ", get(part))
                    }),
                };
                let _ = writeln!(out, "{condition}{{ {line} }}");
            }
        }
        out.push_str("}\n");
    }
    out.push_str("printf(\"\\n\");\nfor (size_t i = 0; i < count; i++) printf(\"%02x\", other[i]);\n");
    out + "printf(\"\\n\");\n} return 0; }\n"
}

/// Returns the packets of all golden vectors: where each starts, its bytes and its fields.
fn vectors() -> Vec<(Start, Vec<u8>, Value)> {
    fn add(line: &Value, all: &mut Vec<(Start, Vec<u8>, Value)>) {
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
            all.push((start, decode(hex).unwrap(), line["fields"].clone()));
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

fn compile(compiler: &str, options: &[&str], folder: &Path) {
    let done = Command::new(compiler).args(options).current_dir(folder).output();
    let done = done.unwrap_or_else(|error| panic!("{compiler} is needed for this test: {error}"));
    assert!(done.status.success(), "{compiler} {options:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn c_reads_and_writes_every_field_of_the_vectors() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("languages");
    fs::create_dir_all(&folder).unwrap();
    let header = uet(&["generate", "--language", "c"]).out;
    let known = fields(&header);
    fs::write(folder.join("uet.h"), &header).unwrap();
    fs::write(folder.join("main.c"), program(&known)).unwrap();
    fs::write(
        folder.join("plain.c"),
        "#include \"uet.h\"\nint uet_plain(void);\nint uet_plain(void) { return 0; }\n",
    )
    .unwrap();
    const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"];
    let with = |more: &[&'static str]| [&STRICT[..], more].concat();
    compile("cc", &with(&["-std=c99", "-ffreestanding", "-c", "plain.c", "-o", "plain.o"]), &folder);
    compile("c++", &with(&["-std=c++17", "-x", "c++", "-fsyntax-only", "plain.c"]), &folder);
    compile("cc", &with(&["-std=c99", "main.c", "-o", "main"]), &folder);

    let vectors = vectors();
    let mut asked: Vec<(&'static Layout, Vec<u8>, &Value)> = Vec::new();
    for (start, bytes, fields) in &vectors {
        let packet = Packet::parse_lax(*start, bytes, &Options::default()).0;
        let headers = packet.headers().filter(|(layout, _)| known.contains_key(layout.name));
        asked.extend(headers.map(|(layout, bytes)| (layout, bytes.to_vec(), fields)));
    }
    let input: String =
        asked.iter().map(|(layout, bytes, _)| format!("{} {}\n", layout.name, Hex(bytes))).collect();
    let mut main = Command::new(folder.join("main"));
    let mut main = main.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = main.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = main.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    let mut lines = output.lines();
    let (mut compared, mut told) = (0, 0);
    for (layout, bytes, fields) in asked {
        let mut said: BTreeMap<&str, u128> = BTreeMap::new();
        for field in lines.next().unwrap().split_whitespace() {
            let (name, value) = field.split_once('=').unwrap();
            let (hi, lo) = value.split_once(':').unwrap();
            let half = |digits| u128::from(u64::from_str_radix(digits, 16).unwrap());
            said.insert(name, half(hi) << 64 | half(lo));
        }
        let written = decode(lines.next().unwrap()).unwrap();
        let mut expected: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        for (place, value) in layout.present(&bytes).filter(|(place, _)| place.row.kind != Kind::Reserved) {
            let (name, mask) = (place.row.name, u128::MAX >> (128 - place.row.width()));
            let read =
                said.remove(name).unwrap_or_else(|| panic!("C does not read {name} of {}", layout.name));
            assert_eq!(read & mask, value, "{name} of {}", Hex(&bytes));
            place.write(&mut expected, value);
            if let Some(value) = number(&fields[name]) {
                assert_eq!(read & mask, value & mask, "{name} of the vector {fields}");
                told += 1;
            }
            compared += 1;
        }
        assert!(said.is_empty(), "C reads fields that {} lacks: {said:?}", layout.name);
        assert_eq!(written, expected, "the setters of {}, over the inverted bytes", layout.name);
    }
    assert!(
        compared > 50_000 && told * 10 > compared * 9,
        "{compared} fields compared, {told} of them with the vectors"
    );
}
