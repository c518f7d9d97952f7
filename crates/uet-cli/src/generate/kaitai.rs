//! Generates a description for Kaitai Struct: a packet, its headers with their conditions, and the code points.

use super::slots::Header;
use super::{
    HeaderField, announces_ses, compare_and_swap, condition, is_request, layouts, opcodes, pds_headers,
    point_name, points, ses_headers, snake,
};
use std::fmt::Write;
use uet_wire::Spec;
use uet_wire::layout::{Kind, Layout, Place};
use uet_wire::registry::{self, AtomicOpcode, NextHdr, Opcode, PdsType, Registry};

/// Returns the whole file.
pub(super) fn description(spec: &'static Spec) -> String {
    let mut out = include_str!("head.ksy").replace("VERSION", spec.name());
    packet(&mut out, spec);
    out.push_str("types:\n");
    for layout in layouts(spec) {
        one(&mut out, layout);
    }
    out.push_str("enums:\n");
    for registry in registry::ALL.iter().filter(|registry| points(spec, registry).next().is_some()) {
        let _ = writeln!(out, "  # {}\n  {}:", registry.title, snake(registry));
        for entry in points(spec, registry) {
            // In quotes: YAML has a word `null`.
            let name = point_name(entry).to_lowercase();
            let _ = match entry.doc {
                "" => writeln!(out, "    {}: {name:?}", entry.code),
                doc => writeln!(out, "    {}: {{ id: {name:?}, doc: {doc:?} }}", entry.code),
            };
        }
    }
    out
}

/// Writes the packet: which header follows which.
fn packet(out: &mut String, spec: &'static Spec) {
    let pds = pds_headers(spec);
    let next =
        pds.iter().filter(|(_, layout)| announces_ses(layout)).flat_map(|(codes, _)| codes.iter().copied());
    let ses = ses_headers(spec);
    let requests = ses.iter().filter(|(_, layout)| is_request(layout));
    let announces = |codes: &[u8]| any("head.next_hdr", NextHdr::REGISTRY, codes);
    let request = requests.clone().flat_map(|(codes, _)| codes.iter().copied()).collect::<Vec<u8>>();
    // The opcode lies at the same place of each request, but Kaitai needs to know the type.
    let opcode = requests.fold(String::new(), |before, (codes, layout)| match before.as_str() {
        "" => format!("ses.as<{}>.opcode", layout.name),
        _ => format!("({} ? ses.as<{}>.opcode : {before})", announces(codes), layout.name),
    });
    let secured = any("head.type", PdsType::REGISTRY, &[PdsType::TSS.code()]);
    out.push_str("instances:\n");
    let mut instance = |name: &str, rest: &str| {
        let _ = writeln!(out, "  {name}:\n    {rest}");
    };
    instance("head", "pos: 0\n    type: prologue");
    instance("is_secured", &format!("value: {secured}"));
    instance("has_source_identifier", "value: security.sp\n    if: is_secured");
    instance("security", "pos: 0\n    type: tss_head");
    instance(
        "has_next_hdr",
        &format!("value: {}", any("head.type", PdsType::REGISTRY, &next.collect::<Vec<_>>())),
    );
    instance("is_request", &format!("value: has_next_hdr and ({})", announces(&request)));
    // A colon ends a key of YAML: the text is a block.
    instance("opcode", &format!("value: >-\n      {opcode}\n    if: is_request"));
    for (name, codes) in
        [("is_rendezvous", opcodes(Opcode::is_rendezvous)), ("is_atomic", opcodes(Opcode::is_atomic))]
    {
        let test = any("opcode", Opcode::REGISTRY, &codes);
        instance(name, &format!("value: is_request and ({test})"));
    }
    // Read first when the parser stands there, and kept.
    instance("atomic_opcode", "pos: _io.pos\n    type: u1\n    enum: atomic_opcode\n    if: is_atomic");
    let swaps = any("atomic_opcode", AtomicOpcode::REGISTRY, &compare_and_swap());
    instance("is_compare_swap", &format!("value: is_atomic and ({swaps})"));

    out.push_str("seq:\n  - id: tss\n    type: tss\n    if: is_secured and not has_source_identifier\n");
    out.push_str("  - id: tss_ssi\n    type: tss_ssi\n    if: is_secured and has_source_identifier\n");
    out.push_str("  - id: pds\n    type:\n      switch-on: head.type\n      cases:\n");
    cases(out, PdsType::REGISTRY, &pds);
    out.push_str("        _: prologue\n    if: not is_secured\n");
    out.push_str("  - id: ses\n    type:\n      switch-on: head.next_hdr\n      cases:\n");
    cases(out, NextHdr::REGISTRY, &ses);
    out.push_str("    if: has_next_hdr\n");
    out.push_str("  - id: rendezvous\n    type: rendezvous\n    if: is_rendezvous\n");
    out.push_str("  - id: atomic\n    type: atomic\n    if: is_atomic and not is_compare_swap\n");
    out.push_str("  - id: compare_swap\n    type: compare_swap\n    if: is_compare_swap\n");
    out.push_str("  - id: payload\n    size-eos: true\n");
}

fn cases(out: &mut String, registry: &Registry, headers: &[(Vec<u8>, &'static Layout)]) {
    for (codes, layout) in headers {
        for code in codes {
            let _ = writeln!(out, "        {}: {}", point(registry, *code), layout.name);
        }
    }
}

/// Returns an expression that is true if `value` is one of these code points, which have names.
fn any(value: &str, registry: &Registry, codes: &[u8]) -> String {
    let tests = codes.iter().map(|code| format!("{value} == {}", point(registry, *code)));
    tests.collect::<Vec<_>>().join(" or ")
}

/// Returns a code point in an expression.
fn point(registry: &Registry, code: u8) -> String {
    let name = registry.entry(code).map(|entry| point_name(entry).to_lowercase());
    name.map_or_else(|| code.to_string(), |name| format!("{}::{name}", snake(registry)))
}

/// Writes the type of a header. Fields with named parts are read as numbers, and their parts are instances.
fn one(out: &mut String, layout: &'static Layout) {
    let _ = writeln!(out, "  {}:\n    doc: {:?}\n    seq:", layout.name, layout.title);
    let header = Header::of(layout, &[]);
    let name = |place: &Place| {
        let field = header.fields.iter().find(|field| field.places.contains(place))?;
        Some(match field.places.len() {
            1 => field.name.clone(),
            _ => format!("{}_at_{}", field.name, place.lo() / 8),
        })
    };
    let test = |place: &Place| {
        let condition = condition(layout, place)?;
        let name = name(&condition.deciding)?;
        let Kind::Code(registry) = condition.deciding.row.kind else {
            let is_set = condition.values.contains(&1) != condition.is_negated;
            return Some(if is_set { name } else { format!("not {name}") });
        };
        Some(condition.text(["and", "or"], &name, |code| point(registry, code)))
    };
    let mut instances = String::new();
    for place in layout.places() {
        if let Some(group) = header.group(&place) {
            let (Some(name), Some(group_name)) = (name(&place), name(&group)) else { continue };
            let shift = group.hi() - place.hi();
            let mask = (1u64 << place.row.width()) - 1;
            let value = match place.row.kind {
                Kind::Bool => format!("({group_name} & {:#x}) != 0", mask << shift),
                _ => format!("({group_name} >> {shift}) & {mask:#x}"),
            };
            let lines = format!("value: {value}\n{}", about(&place, test(&place)));
            let _ = write!(instances, "      {name}:\n{}", indented(&lines, "        "));
            continue;
        }
        let about = about(&place, test(&place));
        let mut item = |lines: &str| {
            let _ = write!(out, "      - {}", indented(lines, "        ").trim_start());
        };
        let width = place.row.width();
        match name(&place) {
            None => item(&format!("{}\n{about}", read(&place))),
            // Bytes, with the bits before them as a number.
            Some(name) if width > 64 && width % 8 != 0 => {
                item(&format!("id: {name}_hi\ntype: b{}\n{about}", width % 8));
                item(&format!("id: {name}_lo\nsize: {}\n{about}", width / 8));
            }
            // The runtime of JavaScript reads at most 32 bits at once.
            Some(name) if (33..64).contains(&width) => {
                item(&format!("id: {name}_hi\ntype: b{}\n{about}", width - 32));
                item(&format!("id: {name}_lo\ntype: b32\n{about}"));
            }
            Some(name) => item(&format!("id: {name}\n{}\n{about}", read(&place))),
        }
    }
    for HeaderField { name: field, places } in header.fields.iter().filter(|field| field.places.len() > 1) {
        let both = |place: &Place| Some((test(place)?, name(place)?));
        let all: Vec<(String, String)> = places.iter().filter_map(both).collect();
        let exists = all.iter().map(|(test, _)| format!("({test})")).collect::<Vec<_>>().join(" or ");
        let value = all.iter().rev().fold(String::new(), |before, (test, name)| match before.as_str() {
            "" => name.clone(),
            _ => format!("({test}) ? {name} : {before}"),
        });
        let lines = format!("value: >-\n  {value}\n{}", about(&places[0], Some(exists)));
        let _ = write!(instances, "      {field}:\n{}", indented(&lines, "        "));
    }
    if !instances.is_empty() {
        let _ = write!(out, "    instances:\n{instances}");
    }
}

fn indented(lines: &str, by: &str) -> String {
    lines.lines().map(|line| format!("{by}{line}\n")).collect()
}

/// Returns the type of a row, or its length in bytes if no number of Kaitai is wide enough.
fn read(place: &Place) -> String {
    let (width, is_aligned) = (place.row.width(), place.lo() % 8 == 0);
    let sign = if place.row.kind == Kind::Int { "s" } else { "u" };
    match width {
        65.. => format!("size: {}", width / 8),
        8 if is_aligned => format!("type: {sign}1"),
        16 | 32 | 64 if is_aligned => format!("type: {sign}{}", width / 8),
        _ => format!("type: b{width}"),
    }
}

/// Returns the registry, condition and description of a row.
fn about(place: &Place, test: Option<String>) -> String {
    let mut out = String::new();
    if let Kind::Code(registry) = place.row.kind {
        if !registry.entries.is_empty() {
            let _ = writeln!(out, "enum: {}", snake(registry));
        }
    }
    if let Some(test) = test {
        let _ = writeln!(out, "if: {test}");
    }
    if place.row.kind != Kind::Reserved {
        let _ = writeln!(out, "-orig-id: {}", place.row.name);
    }
    if !place.row.doc.is_empty() {
        let _ = writeln!(out, "doc: {:?}", place.row.doc);
    }
    out
}
