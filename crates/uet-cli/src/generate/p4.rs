//! Generates P4-16: header types, code points, and a parser.

use super::slots::{Header, Slot};
use super::{
    HeaderField, announces_ses, comment, compare_and_swap, condition, is_request, layouts, opcodes,
    pds_headers, point_name, points, ses_headers, snake,
};
use std::fmt::Write;
use uet_wire::Spec;
use uet_wire::layout::{Kind, Layout, Place};
use uet_wire::outer::{IP_PROTO, UDP_PORT};
use uet_wire::registry::{self, NextHdr, Opcode, PdsType, Registry};

/// Keywords that are also ends of canonical names.
const KEYWORDS: &[&str] = &["type", "list"];

/// Returns the whole file.
pub(super) fn program(spec: &'static Spec) -> String {
    let mut out = include_str!("head.p4").replace("VERSION", spec.name());
    let _ =
        writeln!(out, "\nconst bit<16> UET_UDP_PORT = {UDP_PORT};\nconst bit<8> UET_IP_PROTO = {IP_PROTO};");
    for registry in registry::ALL.iter().filter(|registry| !registry.entries.is_empty()) {
        let _ =
            writeln!(out, "\n// {}\nenum bit<{}> {}_t {{", registry.title, registry.width, snake(registry));
        let all: Vec<_> = points(spec, registry).collect();
        for (at, entry) in all.iter().enumerate() {
            let comma = if at + 1 < all.len() { "," } else { "" };
            let comment = if entry.doc.is_empty() { String::new() } else { format!(" // {}", entry.doc) };
            let _ = writeln!(out, "    {} = {}{comma}{comment}", point_name(entry), entry.code);
        }
        out.push_str("}\n");
    }
    for layout in layouts(spec) {
        one(&mut out, layout);
    }
    parser(&mut out, spec);
    out
}

/// Returns a code point, which must have a name.
fn point(registry: &Registry, code: u8) -> String {
    let name = registry.entry(code).map_or("RESERVED", point_name);
    format!("{}_t.{name}", snake(registry))
}

/// Returns the type of a row.
fn kind(place: &Place) -> String {
    match place.row.kind {
        Kind::Code(registry) if !registry.entries.is_empty() => format!("{}_t", snake(registry)),
        Kind::Int => format!("int<{}>", place.row.width()),
        _ => format!("bit<{}>", place.row.width()),
    }
}

/// Writes the header, and the functions of its fields that depend on others.
fn one(out: &mut String, layout: &'static Layout) {
    let name = layout.name;
    let header = Header::of(layout, KEYWORDS);
    let _ = writeln!(out, "\n// {}\nheader {name}_h {{", layout.title);
    for slot in &header.slots {
        if let [only] = slot.uses.as_slice() {
            for place in &only.rows {
                let about = comment(place.row);
                let _ = writeln!(out, "    {} {};{about}", kind(place), header.name(place));
            }
        } else {
            let _ = writeln!(out, "    bit<{}> {};", slot.hi - slot.lo, header.shared_name(slot));
        }
    }
    out.push_str("}\n");
    for field in &header.fields {
        functions(out, &header, field);
    }
}

fn functions(out: &mut String, header: &Header, HeaderField { name: field, places }: &HeaderField) {
    let name = header.layout.name;
    let function = |out: &mut String, kind: &str, function: &str, place: Option<&Place>, value: &str| {
        let about = place.map_or(String::new(), |place| match place.row.doc {
            "" => format!("// {}\n", place.row.name),
            doc => format!("// {}: {doc}\n", place.row.name),
        });
        let _ =
            writeln!(out, "{about}{kind} {name}_{function}_{field}(in {name}_h hdr) {{ return {value}; }}");
    };
    let tests: Vec<String> = places.iter().filter_map(|place| test(header, place)).collect();
    if tests.len() == places.len() {
        function(out, "bool", "has", None, &tests.join(" || "));
    }
    let [first, rest @ ..] = places.as_slice() else { return };
    if header.layout.has_parts(first) {
        let parts = header.slots.iter().filter(|slot| first.lo() <= slot.lo && slot.hi <= first.hi());
        let parts = parts.flat_map(|slot| match slot.uses.as_slice() {
            [only] => only.rows.iter().map(|place| bits(header, place)).collect(),
            _ => vec![format!("hdr.{}", header.shared_name(slot))],
        });
        function(out, &kind(first), "get", Some(first), &parts.collect::<Vec<_>>().join(" ++ "));
        return;
    }
    let shared =
        |place: &Place| header.find(place).filter(|(slot, _)| slot.uses.len() > 1).map(|(slot, _)| slot);
    let Some(slot) = shared(first) else { return };
    let others = rest.iter().zip(&tests[1..]).filter_map(|(place, test)| Some((shared(place)?, place, test)));
    let value = others.fold(slice(header, slot, first), |before, (slot, place, test)| {
        format!("{test} ? {} : {before}", slice(header, slot, place))
    });
    function(out, &kind(first), "get", Some(first), &value);
}

/// Returns a field of `hdr` as plain bits, which the concatenation needs.
fn bits(header: &Header, place: &Place) -> String {
    match place.row.kind {
        Kind::Code(_) | Kind::Int => format!("(bit<{}>)hdr.{}", place.row.width(), header.name(place)),
        _ => format!("hdr.{}", header.name(place)),
    }
}

/// Returns the bits of a row in the field of its slot.
fn slice(header: &Header, slot: &Slot, place: &Place) -> String {
    let whole = format!("hdr.{}", header.shared_name(slot));
    let part = match (slot.lo, slot.hi) == (place.lo(), place.hi()) {
        true => whole,
        false => format!("{whole}[{}:{}]", slot.hi - 1 - place.lo(), slot.hi - place.hi()),
    };
    match place.row.kind {
        Kind::Code(_) | Kind::Int => format!("({}){part}", kind(place)),
        _ => part,
    }
}

/// Returns the condition of a row; `None` if the row always exists.
fn test(header: &Header, place: &Place) -> Option<String> {
    let condition = condition(header.layout, place)?;
    let value = format!("hdr.{}", header.name(&condition.deciding));
    let point = |code: u8| match condition.deciding.row.kind {
        Kind::Code(registry) if registry.entry(code).is_some() => point(registry, code),
        _ => code.to_string(),
    };
    Some(format!("({})", condition.text(["&&", "||"], &value, point)))
}

/// Writes the structure of all headers, and the parser.
fn parser(out: &mut String, spec: &'static Spec) {
    let (pds, ses) = (pds_headers(spec), ses_headers(spec));
    let known = pds.iter().chain(&ses).map(|(_, layout)| layout.name);
    let names: Vec<&str> =
        ["tss", "tss_ssi"].into_iter().chain(known).chain(["rendezvous", "atomic", "compare_swap"]).collect();
    out.push_str(
        "\n// A packet has one security header, or one header of each layer.\nstruct uet_headers_t {\n",
    );
    for name in &names {
        let _ = writeln!(out, "    {name}_h {name};");
    }
    out.push_str(
        "}\n\n// Reads a packet from its first UET header on. The payload stays in `packet`. After a security\n\
         // header, it is encrypted.\n\
         parser UetParser(packet_in packet, out uet_headers_t hdr) {\n    prologue_h first;\n    opcode_t opcode;\n\n",
    );
    let select = |before: &str, value: &str, cases: &[(String, String)], otherwise: &str| {
        let mut body = format!("{before}        transition select({value}) {{\n");
        for (code, state) in cases {
            let _ = writeln!(body, "            {code}: {state};");
        }
        body + &format!("            default: {otherwise};\n        }}\n")
    };
    let state = |out: &mut String, name: &str, body: &str| {
        let _ = writeln!(out, "    state {name} {{\n{body}    }}");
    };
    let cases = |registry: &Registry, codes: &[u8], to: &str| {
        codes.iter().map(|code| (point(registry, *code), to.to_owned())).collect::<Vec<_>>()
    };
    let announced = |registry: &'static Registry, headers: &[(Vec<u8>, &'static Layout)]| {
        headers
            .iter()
            .flat_map(|(codes, layout)| cases(registry, codes, &format!("parse_{}", layout.name)))
            .collect()
    };
    let mut first: Vec<_> = cases(PdsType::REGISTRY, &[PdsType::TSS.code()], "parse_security");
    first.extend::<Vec<_>>(announced(PdsType::REGISTRY, &pds));
    let look = "        first = packet.lookahead<prologue_h>();\n";
    state(out, "start", &select(look, "first.pds_type", &first, "parse_prologue"));
    let sp = [("1".to_owned(), "parse_tss_ssi".to_owned())];
    state(out, "parse_security", &select("", "packet.lookahead<tss_head_h>().sp", &sp, "parse_tss"));
    let next: Vec<_> = announced(NextHdr::REGISTRY, &ses);
    state(out, "parse_ses", &select("", "first.next_hdr", &next, "accept"));
    let mut extensions = cases(Opcode::REGISTRY, &opcodes(Opcode::is_rendezvous), "parse_rendezvous");
    extensions.extend(cases(Opcode::REGISTRY, &opcodes(Opcode::is_atomic), "parse_atomic_extension"));
    state(out, "parse_extension", &select("", "opcode", &extensions, "accept"));
    let swaps: Vec<_> =
        compare_and_swap().iter().map(|code| (code.to_string(), "parse_compare_swap".to_owned())).collect();
    state(out, "parse_atomic_extension", &select("", "packet.lookahead<bit<8>>()", &swaps, "parse_atomic"));
    for name in names {
        let goes_on = pds.iter().any(|(_, layout)| layout.name == name && announces_ses(layout));
        let is_request = ses.iter().any(|(_, layout)| layout.name == name && is_request(layout));
        let (before, next) = match (goes_on, is_request) {
            (true, _) => (String::new(), "parse_ses"),
            (_, true) => (format!("        opcode = hdr.{name}.opcode;\n"), "parse_extension"),
            _ => (String::new(), "accept"),
        };
        let body = format!("        packet.extract(hdr.{name});\n{before}        transition {next};\n");
        state(out, &format!("parse_{name}"), &body);
    }
    out.push_str("}\n");
}
