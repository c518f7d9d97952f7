//! Generates a package in SystemVerilog: packed structures in wire order, code points, and functions that say which
//! header follows.

use super::slots::{Header, Slot};
use super::{
    HeaderField, announces_ses, comment, compare_and_swap, condition, is_request, layouts, opcodes,
    pds_headers, point_name, points, ses_headers, snake,
};
use std::fmt::Write;
use uet_wire::Spec;
use uet_wire::layout::{Kind, Layout, Place};
use uet_wire::outer::{IP_PROTO, UDP_PORT};
use uet_wire::registry::{self, AtomicOpcode, NextHdr, Opcode, PdsType, Registry};

/// Ends of canonical names that are keywords, or words of C++ that Verilator warns of.
const KEYWORDS: &[&str] = &["type", "list"];

/// Returns the whole file.
pub(super) fn package(spec: &'static Spec) -> String {
    let mut out = include_str!("head.sv").replace("VERSION", spec.name());
    let _ = writeln!(out, "\n  localparam logic [15:0] UDP_PORT = 16'd{UDP_PORT};");
    let _ = writeln!(out, "  localparam logic [7:0] IP_PROTO = 8'd{IP_PROTO};");
    for registry in registry::ALL.iter().filter(|registry| has_enum(registry)) {
        let labels = points(spec, registry).map(|entry| {
            let label = format!("{} = {}'d{}", label(registry, entry.code), registry.width, entry.code);
            (label, entry.doc)
        });
        enumeration(&mut out, registry.title, &snake(registry), registry.width, labels.collect());
    }
    for layout in layouts(spec) {
        one(&mut out, layout);
    }
    following(&mut out, spec);
    out.push_str("\n  // verilator lint_on UNUSEDPARAM\n  // verilator lint_on UNUSEDSIGNAL\nendpackage\n");
    out
}

fn enumeration(out: &mut String, title: &str, name: &str, width: usize, labels: Vec<(String, &str)>) {
    let _ = writeln!(out, "\n  // {title}\n  typedef enum {} {{", bits(width, false));
    let last = labels.len().saturating_sub(1);
    for (at, (label, doc)) in labels.iter().enumerate() {
        let comma = if at < last { "," } else { "" };
        let comment = if doc.is_empty() { String::new() } else { format!(" // {doc}") };
        let _ = writeln!(out, "    {label}{comma}{comment}");
    }
    let _ = writeln!(out, "  }} {name}_t;");
}

fn has_enum(registry: &Registry) -> bool {
    !registry.entries.is_empty()
}

/// Returns the name of a code point, which must have one.
fn label(registry: &Registry, code: u8) -> String {
    let name = registry.entry(code).map_or("RESERVED", point_name);
    format!("{}_{name}", snake(registry).to_uppercase())
}

/// Returns the type of this number of bits.
fn bits(width: usize, is_signed: bool) -> String {
    let sign = if is_signed { " signed" } else { "" };
    match width {
        1 => format!("logic{sign}"),
        _ => format!("logic{sign} [{}:0]", width - 1),
    }
}

/// Writes the length, the structure and the conditions of a header.
fn one(out: &mut String, layout: &'static Layout) {
    let (name, upper) = (layout.name, layout.name.to_uppercase());
    let header = Header::of(layout, KEYWORDS);
    let _ = writeln!(out, "\n  // {}\n  localparam int {upper}_BYTES = {};", layout.title, layout.bytes);
    out.push_str("  typedef struct packed {\n");
    let mut open: Option<Place> = None;
    for slot in &header.slots {
        let first = slot.uses.first().and_then(|one| one.rows.first());
        if let (Some(group), None) = (first.and_then(|row| header.group(row)), open) {
            let _ = writeln!(out, "    struct packed {{ // {}: {}", group.row.name, group.row.doc);
            open = Some(group);
        }
        member(out, &header, slot, if open.is_some() { "      " } else { "    " });
        if let Some(group) = open.filter(|group| group.hi() == slot.hi) {
            let _ = writeln!(out, "    }} {};", header.name(&group));
            open = None;
        }
    }
    let _ = writeln!(out, "  }} {name}_t;");
    for HeaderField { name: field, places } in &header.fields {
        let tests: Vec<String> = places.iter().filter_map(|place| test(&header, place)).collect();
        if tests.len() == places.len() {
            let head = format!("logic {name}_has_{field}({name}_t header)");
            let _ = writeln!(
                out,
                "  function automatic {head};\n    return {};\n  endfunction",
                tests.join(" || ")
            );
        }
        if let [place, _, ..] = places.as_slice() {
            let values =
                places.iter().zip(&tests).map(|(place, test)| format!("{test} ? {}", path(&header, place)));
            let value = values.collect::<Vec<_>>().join(" : ");
            let head = format!("{} {name}_{field}({name}_t header)", kind(place));
            let _ = writeln!(out, "  function automatic {head};\n    return {value} : '0;\n  endfunction");
        }
    }
}

/// Returns the member of `header` that holds a row.
fn path(header: &Header, place: &Place) -> String {
    let mut path = String::from("header.");
    if let Some(group) = header.group(place) {
        path += &format!("{}.", header.name(&group));
    }
    if let Some((slot, one)) = header.find(place).filter(|(slot, _)| slot.uses.len() > 1) {
        path += &format!("{}.", header.shared_name(slot));
        if one.rows.len() > 1 {
            path += &format!("{}.", header.use_name(slot, one));
        }
    }
    path + &header.name(place)
}

/// Returns the type of a row.
fn kind(place: &Place) -> String {
    match place.row.kind {
        Kind::Code(registry) if has_enum(registry) => format!("{}_t", snake(registry)),
        kind => bits(place.row.width(), kind == Kind::Int),
    }
}

fn member(out: &mut String, header: &Header, slot: &Slot, indent: &str) {
    if let [only] = slot.uses.as_slice() {
        only.rows.iter().for_each(|place| row(out, header, place, indent));
        return;
    }
    let _ = writeln!(out, "{indent}union packed {{");
    for one in &slot.uses {
        if let [place] = one.rows.as_slice() {
            row(out, header, place, &format!("{indent}  "));
            continue;
        }
        let _ = writeln!(out, "{indent}  struct packed {{");
        one.rows.iter().for_each(|place| row(out, header, place, &format!("{indent}    ")));
        let _ = writeln!(out, "{indent}  }} {};", header.use_name(slot, one));
    }
    let _ = writeln!(out, "{indent}}} {};", header.shared_name(slot));
}

fn row(out: &mut String, header: &Header, place: &Place, indent: &str) {
    let about = comment(place.row);
    let _ = writeln!(out, "{indent}{} {};{about}", kind(place), header.name(place));
}

/// Returns the condition of a row; `None` if the row always exists.
fn test(header: &Header, place: &Place) -> Option<String> {
    let condition = condition(header.layout, place)?;
    let deciding = condition.deciding;
    let value = path(header, &deciding);
    let point = |code: u8| match deciding.row.kind {
        Kind::Code(registry) if registry.entry(code).is_some() => label(registry, code),
        _ => format!("{}'d{code}", deciding.row.width()),
    };
    Some(format!("({})", condition.text(["&&", "||"], &value, point)))
}

/// Writes the functions that say which header follows.
fn following(out: &mut String, spec: &'static Spec) {
    let (pds, ses) = (pds_headers(spec), ses_headers(spec));
    let known = |name: &str| layouts(spec).find(|layout| layout.name == name);
    let others = |names: &[&str]| names.iter().filter_map(|name| known(name)).collect::<Vec<_>>();
    let mut all = others(&["tss", "tss_ssi"]);
    all.extend(pds.iter().chain(&ses).map(|(_, layout)| *layout));
    all.extend(others(&["rendezvous", "atomic", "compare_swap"]));
    let kind = |layout: &Layout| format!("HEADER_{}", layout.name.to_uppercase());
    let mut labels = vec![("HEADER_NONE = 5'd0".to_owned(), "no known header follows")];
    labels.extend(
        all.iter().zip(1..).map(|(layout, at)| (format!("{} = 5'd{at}", kind(layout)), layout.title)),
    );
    enumeration(out, "The headers", "header", 5, labels);

    let function = |out: &mut String, about: &str, head: &str, value: &str, cases: &str, otherwise: &str| {
        let _ = writeln!(out, "\n  // {about}\n  function automatic {head};\n    case ({value})");
        let _ = writeln!(out, "{cases}      default: return {otherwise};\n    endcase\n  endfunction");
    };
    let case = |labels: Vec<String>, result: &str| match labels.is_empty() {
        true => String::new(),
        false => format!("      {}: return {result};\n", labels.join(", ")),
    };
    let labels =
        |registry: &Registry, codes: &[u8]| codes.iter().map(|code| label(registry, *code)).collect();
    let lengths: String = all
        .iter()
        .map(|layout| case(vec![kind(layout)], &format!("{}_BYTES", layout.name.to_uppercase())))
        .collect();
    function(out, "The length of a header", "int header_bytes(header_t header)", "header", &lengths, "0");

    let secured = "first_byte[2] ? HEADER_TSS_SSI : HEADER_TSS";
    let mut cases = case(labels(PdsType::REGISTRY, &[PdsType::TSS.code()]), secured);
    let announced = |registry: &'static Registry, headers: &[(Vec<u8>, &'static Layout)]| {
        let one = |(codes, layout): &(Vec<u8>, &Layout)| case(labels(registry, codes), &kind(layout));
        headers.iter().map(one).collect::<String>()
    };
    cases += &announced(PdsType::REGISTRY, &pds);
    let about =
        "The first header of a packet, by its first byte. The bytes after a security header are encrypted";
    let head = "header_t first_header(logic [7:0] first_byte)";
    function(out, about, head, "first_byte[7:3]", &cases, "HEADER_PROLOGUE");

    let none = |name: &str, headers: &[(Vec<u8>, &'static Layout)], has: &dyn Fn(&'static Layout) -> bool| {
        let having = headers.iter().filter(|(_, layout)| has(layout));
        let tests = having.map(|(_, layout)| format!("{name} != {}", kind(layout))).collect::<Vec<_>>();
        format!("if ({}) return HEADER_NONE", tests.join(" && "))
    };
    let about = "The header after the PDS header";
    let none_after = none("pds", &pds, &announces_ses);
    let head = format!("header_t ses_header(header_t pds, next_hdr_t next_hdr);\n    {none_after}");
    function(out, about, &head, "next_hdr", &announced(NextHdr::REGISTRY, &ses), "HEADER_NONE");

    let none_after = none("ses", &ses, &|layout| is_request(layout));
    let swaps: Vec<String> = labels(AtomicOpcode::REGISTRY, &compare_and_swap());
    let swaps =
        swaps.iter().map(|label| format!("atomic_opcode == {label}")).collect::<Vec<_>>().join(" || ");
    let mut cases = case(labels(Opcode::REGISTRY, &opcodes(Opcode::is_rendezvous)), "HEADER_RENDEZVOUS");
    let atomic = format!("({swaps}) ? HEADER_COMPARE_SWAP : HEADER_ATOMIC");
    cases += &case(labels(Opcode::REGISTRY, &opcodes(Opcode::is_atomic)), &atomic);
    let about = "The extension after a SES header. `atomic_opcode` is the first byte after it";
    let arguments = "header_t ses, opcode_t opcode, atomic_opcode_t atomic_opcode";
    let head = format!("header_t ext_header({arguments});\n    {none_after}");
    function(out, about, &head, "opcode", &cases, "HEADER_NONE");
}
