//! Generates Python from the codec's tables: code points, one class for each header, and the links between them.

use std::fmt::Write;
use uet_wire::Spec;
use uet_wire::layout::{self, Kind, Layout, Place, When};
use uet_wire::outer::{IP_PROTO, UDP_PORT};
use uet_wire::pds::Pds;
use uet_wire::registry::{self, AtomicOpcode, Opcode, Registry};
use uet_wire::ses::Ses;

/// Names that Scapy's packets already use.
const TAKEN: &[&str] = &["payload", "name", "fields", "time"];

/// Parts of headers, which packets never start with.
const PARTS: &[&str] =
    &["tss_head", "tsc", "control_prologue", "sack", "request_head", "address", "response_head"];

pub(crate) fn classes(spec: &'static Spec) -> String {
    let mut out = format!("UDP_PORT = {UDP_PORT}\nIP_PROTO = {IP_PROTO}\n\n");
    for registry in registry::ALL {
        let _ = writeln!(out, "{} = {{", constant(registry));
        for entry in (0..=u8::MAX).filter_map(|code| spec.entry(registry, code)) {
            let _ = writeln!(out, "    {}: {:?},", entry.code, entry.name);
        }
        out.push_str("}\n\n");
    }
    for layout in layout::ALL.iter().filter(|layout| layout.layer.is_uet() && !PARTS.contains(&layout.name)) {
        class(&mut out, spec.layout(layout));
    }
    links(&mut out);
    out
}

/// `PdsType` as `PDS_TYPE`.
fn constant(registry: &Registry) -> String {
    registry.words().map(str::to_ascii_uppercase).collect::<Vec<_>>().join("_")
}

/// `ack_cc` as `UETAckCc`.
fn class_name(layout: &Layout) -> String {
    let words = layout.name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
    "UET".to_owned() + &words.collect::<String>()
}

fn class(out: &mut String, layout: &'static Layout) {
    let names = names(layout);
    let _ = writeln!(
        out,
        "\nclass {}(UETHeader):\n    name = {:?}\n    length = {}\n    fields_desc = [",
        class_name(layout),
        format!("UET {}", layout.title),
        layout.bytes
    );
    for (place, name) in &names {
        let field = field(layout, place, name);
        let field = match place.row.when {
            Some(when) => format!("ConditionalField({field}, lambda header: {})", condition(layout, when)),
            None => field,
        };
        let _ = writeln!(out, "        {field},{}", comment(place));
    }
    out.push_str("    ]\n    canonical = {\n");
    for (place, name) in names.iter().filter(|(place, _)| place.row.kind != Kind::Reserved) {
        let _ = writeln!(out, "        {name:?}: {:?},", place.row.name);
    }
    out.push_str("    }\n");
}

fn comment(place: &Place) -> String {
    if place.row.doc.is_empty() { String::new() } else { format!("  # {}", place.row.doc) }
}

/// Returns the rows that divide the bits among themselves, each with its name in Python.
fn names(layout: &'static Layout) -> Vec<(Place, String)> {
    let mut names: Vec<(Place, String)> = Vec::new();
    for place in layout.tiles() {
        let mut name = match place.row.name.rsplit_once('.') {
            _ if place.row.kind == Kind::Reserved => format!("reserved_{}", place.lo()),
            Some((group, tail)) if TAKEN.contains(&tail) => format!("{}_{tail}", group.replace('.', "_")),
            Some((_, tail)) => tail.to_owned(),
            None => place.row.name.to_owned(),
        };
        // A field can have two places, which exclude each other.
        if names.iter().any(|(_, taken)| *taken == name) {
            name += &place.row.when.map_or(String::new(), |when| suffix(layout, when));
        }
        names.push((place, name));
    }
    names
}

/// Returns the condition of a row as the end of a name.
fn suffix(layout: &'static Layout, when: When) -> String {
    let Some(deciding) = layout.field(when.name) else { return String::new() };
    let value = when.values.iter(deciding.row.width()).next().unwrap_or(0);
    match deciding.row.kind {
        Kind::Code(registry) => {
            let name = registry.entry(value).map_or(String::new(), |entry| entry.name.to_lowercase());
            format!("_of_{}", name.trim_start_matches("uet_"))
        }
        _ => format!("_of_{value}"),
    }
}

fn field(layout: &'static Layout, place: &Place, name: &str) -> String {
    let width = place.row.width();
    match place.row.kind {
        Kind::Code(registry) => {
            let value = if place.row.name.ends_with(".type") { first_type(layout) } else { 0 };
            format!("BitEnumField({name:?}, {value}, {width}, {})", constant(registry))
        }
        Kind::Int => format!("SignedBitField({name:?}, 0, {width})"),
        _ if width >= 64 || name.ends_with("_token") => format!("XBitField({name:?}, 0, {width})"),
        _ => format!("BitField({name:?}, 0, {width})"),
    }
}

/// Returns the packet type that a new header gets.
fn first_type(layout: &'static Layout) -> u8 {
    let of = |(kinds, known): &(&[registry::PdsType], &Layout)| {
        (known.name == layout.name).then(|| kinds.first().map_or(0, |kind| kind.code()))
    };
    Pds::TABLE.iter().find_map(of).unwrap_or(registry::PdsType::TSS.code())
}

fn condition(layout: &'static Layout, when: When) -> String {
    let width = layout.field(when.name).map_or(0, |deciding| deciding.row.width());
    let name = when.name.rsplit('.').next().unwrap_or(when.name);
    let list = |values: layout::Values| values.iter(width).map(|value| value.to_string()).collect::<Vec<_>>();
    let (are, are_not) = (list(when.values), list(when.values.not()));
    match (are.as_slice(), are_not.as_slice()) {
        ([value], _) => format!("header.{name} == {value}"),
        (_, [value]) => format!("header.{name} != {value}"),
        _ if are.len() <= are_not.len() => format!("header.{name} in ({})", are.join(", ")),
        _ => format!("header.{name} not in ({})", are_not.join(", ")),
    }
}

/// Writes the code points that announce a header, and the opcodes whose requests have an extension.
fn links(out: &mut String) {
    out.push_str("\nPDS_HEADERS = {\n");
    for (kinds, layout) in Pds::TABLE {
        for kind in *kinds {
            let _ = writeln!(out, "    {}: {},", kind.code(), class_name(layout));
        }
    }
    out.push_str("}\n\nSES_HEADERS = {\n");
    for (nexts, layout) in Ses::TABLE {
        for next in *nexts {
            let _ = writeln!(out, "    {}: {},", next.code(), class_name(layout));
        }
    }
    let set = |codes: Vec<u8>| codes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let opcodes = || (0..64).filter_map(Opcode::new);
    let rendezvous = opcodes().filter(|opcode| opcode.is_rendezvous()).map(Opcode::code).collect();
    let atomic = opcodes().filter(|opcode| opcode.is_atomic()).map(Opcode::code).collect();
    let all = (0..=u8::MAX).filter_map(AtomicOpcode::new);
    let swap = all.filter(|opcode| opcode.is_compare_and_swap()).map(AtomicOpcode::code).collect();
    let _ = writeln!(out, "}}\n\nRENDEZVOUS_OPCODES = ({})", set(rendezvous));
    let _ = writeln!(out, "ATOMIC_OPCODES = ({})", set(atomic));
    let _ = writeln!(out, "COMPARE_AND_SWAP = ({},)", set(swap));
}
