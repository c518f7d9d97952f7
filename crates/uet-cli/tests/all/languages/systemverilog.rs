//! The package in SystemVerilog: elaborated and run by Verilator and Icarus Verilog.

use super::{Tally, example, folder, run, vectors};
use crate::common::uet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use uet_packet_io::hex::Hex;
use uet_wire::layout::Layout;
use uet_wire::{Options, Packet, Start};

/// The structure of a header as the package declares it.
#[derive(Default)]
struct Structure {
    name: String,
    /// Canonical name and path of each member.
    members: Vec<(String, String)>,
}

/// Returns the structures of the package.
fn structures(package: &str) -> Vec<Structure> {
    let mut all = Vec::new();
    let mut open: Vec<Vec<(String, String)>> = Vec::new();
    for line in package.lines().map(str::trim) {
        if line.contains("packed {") {
            open.push(Vec::new());
            // The whole group is a field as well: it has an empty path in itself.
            if let Some((_, about)) = line.split_once("// ") {
                let name = about.split(':').next().unwrap();
                open.last_mut().unwrap().push((name.into(), String::new()));
            }
        } else if let Some(name) = line.strip_prefix("} ").filter(|_| !open.is_empty()) {
            let (name, members) = (name.trim_end_matches(';'), open.pop().unwrap());
            match open.last_mut() {
                Some(outer) => outer.extend(members.into_iter().map(|(canonical, path)| {
                    (canonical, if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") })
                })),
                None => all.push(Structure { name: name.trim_end_matches("_t").into(), members }),
            }
        } else if let (Some(members), Some((member, about))) = (open.last_mut(), line.split_once("; // ")) {
            let canonical = about.split(':').next().unwrap();
            members.push((canonical.into(), member.rsplit(' ').next().unwrap().into()));
        }
    }
    all
}

/// Returns a module that reads lines with the number of a structure and its bits, and prints the fields of each. Then
/// it prints the results of all functions that say which header follows, one letter each.
fn bench(package: &str, structures: &[Structure], bytes: impl Fn(&str) -> usize) -> String {
    let mut out = String::from(
        "module bench;\nimport uet_pkg::*;\nint file;\nint which;\nlogic [1023:0] bits;\nheader_t header;\n",
    );
    for Structure { name, .. } in structures {
        // Some names are keywords.
        let _ = writeln!(out, "{name}_t h_{name};");
    }
    out.push_str("initial begin\nfile = $fopen(\"headers.txt\", \"r\");\n");
    out.push_str("while ($fscanf(file, \"%d %h\", which, bits) == 2) begin\ncase (which)\n");
    for (at, Structure { name, members }) in structures.iter().enumerate() {
        let _ = writeln!(out, "{at}: begin\nh_{name} = bits[{}:0];", bytes(name) * 8 - 1);
        for (canonical, path) in members {
            let tail = path.rsplit('.').next().unwrap();
            let (has, get) = (format!("{name}_has_{tail}"), format!("{name}_{tail}"));
            let is_declared = |function: &str| package.contains(&format!(" {function}({name}_t header)"));
            let is_there = if is_declared(&has) { format!("if ({has}(h_{name})) ") } else { String::new() };
            // A field with several places has a function that chooses.
            let value =
                if is_declared(&get) { format!("{get}(h_{name})") } else { format!("h_{name}.{path}") };
            let _ = writeln!(out, "{is_there}$write(\"{canonical}=%h \", {value});");
        }
        out.push_str("end\n");
    }
    out += "default: ;\nendcase\n$write(\"\\n\");\nend\n\
            for (int i = 0; i < 256; i++) $write(\"%c\", 8'd65 + {3'd0, first_header(i[7:0])});\n\
            for (int i = 0; i < 512; i++) begin\nh_prologue = {i[8:0], 7'd0};\n\
            header = first_header({i[8:4], 3'd0});\n\
            $write(\"%c\", 8'd65 + {3'd0, ses_header(header, h_prologue.next_hdr)});\nend\n\
            for (int i = 0; i < 16; i++) for (int j = 0; j < 64; j++)\n\
            for (int k = 12; k < 14; k++) extension(i, j, k);\n\
            for (int k = 0; k < 256; k++) extension(3, 3, k);\n\
            $write(\"\\n\");\n$finish;\nend\n\
            task extension(int i, int j, int k);\nh_prologue = {5'd0, i[3:0], 7'd0};\n\
            h_request_head = {2'd0, j[5:0], 8'd0};\nh_atomic = {k[7:0], 24'd0};\n\
            header = ses_header(HEADER_REQUEST, h_prologue.next_hdr);\n\
            $write(\"%c\", 8'd65 + {3'd0, ext_header(header, h_request_head.opcode, h_atomic.atomic_opcode)});\n\
            endtask\nendmodule\n";
    out
}

/// Returns the letters that the bench prints, from the codec. `letter` is that of a header.
fn following(letter: impl Fn(&str) -> char) -> String {
    let header = |bytes: &[u8], at: usize| {
        let packet = Packet::parse_lax(Start::Uet, bytes, &Options::default()).0;
        let name = packet.headers().nth(at).map_or("none", |(layout, _)| layout.name);
        letter(name)
    };
    let mut out = String::new();
    let mut bytes = [0; 128];
    for first in 0..=u8::MAX {
        bytes[0] = first;
        out.push(header(&bytes, 0));
    }
    for kind in 0..32 {
        for next in 0..16u8 {
            bytes[..2].copy_from_slice(&[kind << 3 | next >> 1, next << 7]);
            out.push(header(&bytes, 1));
        }
    }
    let all =
        (0..16).flat_map(|next| (0..64).flat_map(move |opcode| [(next, opcode, 12), (next, opcode, 13)]));
    for (next, opcode, atomic) in all.chain((0..=u8::MAX).map(|atomic| (3, 3, atomic))) {
        // Each header after a request of 12 bytes.
        let mut bytes = [0; 128];
        bytes[..2].copy_from_slice(&[2 << 3 | next >> 1, next << 7]);
        let packet = Packet::parse_lax(Start::Uet, &bytes, &Options::default()).0;
        let end = 12 + packet.headers().nth(1).map_or(0, |(layout, _)| layout.bytes);
        (bytes[12], bytes[end]) = if end > 12 { (opcode, atomic) } else { (0, 0) };
        out.push(header(&bytes, 2));
    }
    out
}

#[test]
#[ignore = "needs Verilator and Icarus Verilog: ./test languages"]
fn systemverilog_reads_every_field_of_the_vectors() {
    let folder = folder("systemverilog");
    let package = uet(&["generate", "--language", "systemverilog"]).out;
    let structures = structures(&package);
    let vectors = vectors();
    let packets: Vec<_> = vectors.iter().map(|vector| (vector.packet(), &vector.fields)).collect();
    let mut asked: Vec<(usize, &'static Layout, &[u8], &Value)> = Vec::new();
    for (packet, fields) in &packets {
        for (layout, bytes) in packet.headers().filter(|(layout, _)| layout.layer.is_uet()) {
            let at = structures.iter().position(|structure| structure.name == layout.name);
            asked.push((at.unwrap_or_else(|| panic!("no {}", layout.name)), layout, bytes, fields));
        }
    }
    let length = |name: &str| {
        let length =
            package.lines().find_map(|line| line.split_once(&format!(" {}_BYTES = ", name.to_uppercase())));
        length.unwrap().1.trim_end_matches(';').parse().unwrap()
    };
    let lines = asked.iter().map(|(at, _, bytes, _)| format!("{at} {}\n", Hex(bytes)));
    fs::write(folder.join("headers.txt"), lines.collect::<String>()).unwrap();
    fs::write(folder.join("uet_pkg.sv"), &package).unwrap();
    fs::write(folder.join("bench.sv"), bench(&package, &structures, length)).unwrap();

    let mut following = following(|name| {
        let label = format!(" HEADER_{} = 5'd", name.to_uppercase());
        let number = package.lines().find_map(|line| line.split_once(&label));
        let number = number.unwrap_or_else(|| panic!("no{label}")).1.split([',', ' ']).next();
        char::from(b'A' + number.unwrap().parse::<u8>().unwrap())
    });
    following.push('\n');
    let agrees = |output: &str| {
        let mut lines = output.lines();
        let mut tally = Tally::default();
        for (_, layout, bytes, fields) in &asked {
            let mut said: BTreeMap<&str, u128> = BTreeMap::new();
            for field in lines.next().unwrap().split_whitespace() {
                let (name, value) = field.split_once('=').unwrap();
                said.insert(name, u128::from_str_radix(value, 16).unwrap());
            }
            tally.compare(layout, bytes, said, fields);
        }
        tally.expect(50_000);
        let said = lines.next().unwrap();
        let differs = said.chars().zip(following.chars()).position(|(said, right)| said != right);
        assert!(said == following.trim(), "the functions differ from the codec at {differs:?}");
    };
    let none = String::new;
    let folder = &folder;
    let (code, shown) = example("systemverilog");
    fs::write(folder.join("example.sv"), code).unwrap();
    run(folder, "iverilog", &["-g2012", "-o", "example.vvp", "uet_pkg.sv", "example.sv"], none());
    assert_eq!(run(folder, "vvp", &["-n", "example.vvp"], none()), shown);
    run(folder, "verilator", &["--lint-only", "-Wall", "uet_pkg.sv"], none());
    run(folder, "iverilog", &["-g2012", "-Wall", "-o", "bench.vvp", "uet_pkg.sv", "bench.sv"], none());
    agrees(&run(folder, "vvp", &["-n", "bench.vvp"], none()));
    run(
        folder,
        "verilator",
        &["--binary", "--build-jobs", "2", "uet_pkg.sv", "bench.sv", "--top", "bench"],
        none(),
    );
    agrees(&run(folder, "obj_dir/Vbench", &[], none()));
}
