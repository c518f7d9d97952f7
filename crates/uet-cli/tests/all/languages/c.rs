//! The header file in C: compiled as each kind of program that uses it, and run.

use super::{Tally, example, folder, run, vectors};
use crate::common::uet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use uet_packet_io::hex::{Hex, decode};
use uet_wire::layout::{Kind, Layout};

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

/// Returns a program without a C library that calls all functions, for compilers of kernels and eBPF.
fn plain(fields: &BTreeMap<String, Vec<Field>>) -> String {
    let mut out = String::from("#include \"uet.h\"\n");
    for (header, fields) in fields {
        let _ = writeln!(out, "void copy_{header}(const uint8_t *from, uint8_t *to);");
        let _ = writeln!(out, "void copy_{header}(const uint8_t *from, uint8_t *to)\n{{");
        for Field { name, has, parts, .. } in fields {
            let condition = if *has { format!("if (uet_{header}_has_{name}(from)) ") } else { String::new() };
            for part in parts {
                let value = format!("uet_{header}_get_{name}{part}(from)");
                let _ = writeln!(out, "    {condition}uet_{header}_set_{name}{part}(to, {value});");
            }
        }
        out.push_str("}\n");
    }
    out
}

const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"];

/// Compiles a file with all warnings as errors.
fn compile(folder: &Path, compiler: &str, options: &str) {
    let options: Vec<&str> = STRICT.into_iter().chain(options.split_whitespace()).collect();
    run(folder, compiler, &options, String::new());
}

#[test]
fn c_reads_and_writes_every_field_of_the_vectors() {
    reads_and_writes("cc", "c++");
}

#[test]
#[ignore = "needs clang: ./test languages"]
fn clang_does_so_too_and_compiles_for_ebpf() {
    let folder = reads_and_writes("clang", "clang++");
    compile(&folder, "clang", "-target bpf -ffreestanding -O2 -c plain.c -o plain.bpf");
}

/// Compiles all programs, and compares what they do with the codec and the vectors. Returns their folder.
fn reads_and_writes(c: &str, cpp: &str) -> PathBuf {
    let folder = folder(c);
    let header = uet(&["generate", "--language", "c"]).out;
    let known = fields(&header);
    fs::write(folder.join("uet.h"), &header).unwrap();
    fs::write(folder.join("main.c"), program(&known)).unwrap();
    fs::write(folder.join("plain.c"), plain(&known)).unwrap();
    compile(&folder, c, "-std=c99 -ffreestanding -c plain.c -o plain.o");
    compile(&folder, cpp, "-std=c++17 -x c++ -fsyntax-only plain.c");
    compile(&folder, c, "-std=c99 main.c -o main");
    // A kernel has no <stdint.h>, and types of its own.
    fs::create_dir_all(folder.join("linux")).unwrap();
    let bits = [("8", "char"), ("16", "short"), ("32", "int"), ("64", "long long")];
    let types = bits.map(|(bits, kind)| {
        format!("typedef unsigned {kind} uint{bits}_t;\ntypedef signed {kind} int{bits}_t;\n")
    });
    fs::write(folder.join("linux/types.h"), types.concat()).unwrap();
    let warnings = "-Wundef -Wstrict-prototypes -Wdeclaration-after-statement -Wno-pedantic";
    compile(
        &folder,
        c,
        &format!("-std=gnu11 -nostdinc -ffreestanding -D__KERNEL__ -I . {warnings} -c plain.c -o kernel.o"),
    );
    let (code, output) = example("c");
    fs::write(folder.join("example.c"), code).unwrap();
    compile(&folder, c, "-std=c99 example.c -o example");
    assert_eq!(run(&folder, "./example", &[], String::new()), output);

    let vectors = vectors();
    let mut asked: Vec<(&'static Layout, &[u8], &Value)> = Vec::new();
    let packets: Vec<_> = vectors.iter().map(|vector| (vector.packet(), &vector.fields)).collect();
    for (packet, fields) in &packets {
        let headers = packet.headers().filter(|(layout, _)| known.contains_key(layout.name));
        asked.extend(headers.map(|(layout, bytes)| (layout, bytes, *fields)));
    }
    let input = asked.iter().map(|(layout, bytes, _)| format!("{} {}\n", layout.name, Hex(bytes))).collect();
    let output = run(&folder, "./main", &[], input);
    let mut lines = output.lines();
    let mut tally = Tally::default();
    for (layout, bytes, fields) in asked {
        let mut said: BTreeMap<&str, u128> = BTreeMap::new();
        for field in lines.next().unwrap().split_whitespace() {
            let (name, value) = field.split_once('=').unwrap();
            let (hi, lo) = value.split_once(':').unwrap();
            let half = |digits| u128::from(u64::from_str_radix(digits, 16).unwrap());
            said.insert(name, half(hi) << 64 | half(lo));
        }
        tally.compare(layout, bytes, said, fields);
        let mut expected: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        for (place, value) in layout.present(bytes).filter(|(place, _)| place.row.kind != Kind::Reserved) {
            place.write(&mut expected, value);
        }
        let written = decode(lines.next().unwrap()).unwrap();
        assert_eq!(written, expected, "the setters of {}, over the inverted bytes", layout.name);
    }
    tally.expect(50_000);
    folder
}
