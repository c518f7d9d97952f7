//! Generates Lua from the codec's tables.

use crate::fields::{Container, Field};
use crate::readers::reader;
use std::fmt::Write;
use uet_model::pds::NackAction;
use uet_wire::catalogue::{self, Level};
use uet_wire::layout::{self, Kind, Layout, Place};
use uet_wire::outer::{IP_PROTO, UDP_PORT};
use uet_wire::pds::Pds;
use uet_wire::registry::{self, AtomicOpcode, CtlType, NackCode, Opcode, Registry};
use uet_wire::ses::Ses;
use uet_wire::{Spec, validate};

/// Returns all tables: `U.fields`, `U.layouts`, `U.registries`, and the smaller ones behind them.
pub(crate) fn tables(spec: &'static Spec) -> String {
    let mut out = String::from(
        "local byte, floor = string.byte, math.floor\n\
         local function signed(value, half) return value < half and value or value - half * 2 end\n",
    );
    let mut fields: Vec<Field> = Vec::new();
    for place in ours(spec).flat_map(|layout| layout.places()) {
        let field = Field::of(&place);
        if !fields.iter().any(|known| Field { doc: field.doc, ..known.clone() } == field) {
            fields.push(field);
        }
    }
    let _ = writeln!(out, "U.udp_port, U.ip_proto = {UDP_PORT}, {IP_PROTO}");
    versions(&mut out, spec);
    registries(&mut out, spec);
    out.push_str("\n-- name, label, constructor, base, registry, mask, meaning\nU.fields = {\n");
    for field in &fields {
        let registry = match field.kind {
            Kind::Code(registry) => format!("U.registries.{}", registry.name),
            _ => "nil".into(),
        };
        let mask = field.mask.map_or("nil".into(), |mask| format!("{mask:#x}"));
        let (name, label, base) = (field.name, field.label(), field.base());
        let constructor = field.constructor();
        let _ = writeln!(
            out,
            "  {{ {name:?}, {label:?}, {constructor:?}, {base}, {registry}, {mask}, {:?} }},",
            field.doc
        );
    }
    out.push_str("}\n\n-- Each row: name, first byte, bytes, first bit, bits, field; then the field that decides, its\n-- values, and whether it is all values but those.\nU.layouts = {\n");
    for layout in ours(spec) {
        one_layout(&mut out, layout, &fields);
    }
    out.push_str("}\n");
    families(&mut out);
    sets(&mut out);
    requirements(&mut out, spec);
    out
}

/// Returns the layouts that the dissector shows, as the version defines them.
pub(crate) fn ours(spec: &Spec) -> impl Iterator<Item = &'static Layout> {
    layout::ALL.iter().copied().filter(|layout| layout.layer.is_uet()).map(|layout| spec.layout(layout))
}

/// Returns the versions to choose from: all released ones, or the given one alone if it is not released.
fn offered(spec: &'static Spec) -> Vec<&'static Spec> {
    if Spec::ALL.contains(&spec) { Spec::ALL.to_vec() } else { vec![spec] }
}

fn versions(out: &mut String, spec: &'static Spec) {
    let offered = offered(spec);
    let names: Vec<_> = offered.iter().map(|offered| format!("{:?}", offered.name())).collect();
    let chosen = offered.iter().take_while(|offered| **offered != spec).count() + 1;
    let _ = writeln!(out, "U.versions, U.version = {{ {} }}, {chosen}", names.join(", "));
}

/// Writes the names of each registry, and the unassigned numbers for each version.
fn registries(out: &mut String, spec: &'static Spec) {
    out.push_str("U.registries = {\n");
    for registry in registry::ALL {
        let _ = writeln!(out, "  {} = {{\n    names = {{", registry.name);
        for entry in (0..=u8::MAX).filter_map(|code| spec.entry(registry, code)) {
            let _ = writeln!(out, "      [{}] = {:?},", entry.code, entry.name);
        }
        out.push_str("    },\n    unassigned = {\n");
        for offered in offered(spec) {
            let runs: Vec<_> =
                unassigned(registry, offered).iter().map(|(lo, hi)| format!("{{ {lo}, {hi} }}")).collect();
            let _ = writeln!(out, "      {{ {} }},", runs.join(", "));
        }
        out.push_str("    },\n  },\n");
    }
    out.push_str(CODES);
}

/// Adds the inverse of `names` to each registry. An unknown name is an error.
const CODES: &str = "}
local function unknown(_, name) error('no code point ' .. name) end
for _, registry in pairs(U.registries) do
  registry.codes = setmetatable({}, { __index = unknown })
  for code, name in pairs(registry.names) do registry.codes[name] = code end
end
";

/// Returns the runs of numbers that cause a finding.
fn unassigned(registry: &Registry, spec: &'static Spec) -> Vec<(u8, u8)> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for code in registry.unassigned(spec) {
        match runs.last_mut() {
            Some((_, hi)) if *hi + 1 == code => *hi = code,
            _ => runs.push((code, code)),
        }
    }
    runs
}

fn one_layout(out: &mut String, layout: &'static Layout, fields: &[Field]) {
    let _ = writeln!(
        out,
        "  {} = {{\n    name = {:?}, title = {:?}, layer = {:?}, bytes = {},\n    rows = {{",
        layout.name,
        layout.name,
        layout.title,
        layout.layer.name(),
        layout.bytes
    );
    for place in layout.places() {
        let _ = writeln!(out, "      {{ {} }},", row(layout, &place, fields));
    }
    let _ = writeln!(out, "    }},\n    read = {},\n  }},", reader(layout));
}

fn row(layout: &'static Layout, place: &Place, fields: &[Field]) -> String {
    let container = Container::of(place);
    let of_place = Field::of(place);
    let field = fields.iter().position(|field| Field { doc: of_place.doc, ..field.clone() } == of_place);
    let mut row = format!(
        "{:?}, {}, {}, {}, {}, {}",
        of_place.name,
        container.at,
        container.bytes,
        place.lo(),
        place.row.width(),
        field.unwrap_or(fields.len()) + 1
    );
    if let Some(when) = place.row.when {
        let width = layout.field(when.name).map_or(0, |deciding| deciding.row.width());
        // Use the shorter list: the values, or all the others.
        let (few, many) = (when.values, when.values.not());
        let but = few.iter(width).count() > many.iter(width).count();
        let values = if but { many } else { few }.iter(width);
        let values: Vec<_> = values.map(|value| format!("[{value}] = true")).collect();
        let _ = write!(row, ", {:?}, {{ {} }}, {but}", when.name, values.join(", "));
    }
    row
}

/// Writes the mapping from code points to the headers that they announce.
fn families(out: &mut String) {
    out.push_str("U.pds_layouts = {\n");
    for (kinds, layout) in Pds::TABLE {
        for kind in *kinds {
            let _ = writeln!(out, "  [{}] = U.layouts.{},", kind.code(), layout.name);
        }
    }
    out.push_str("}\nU.ses_layouts = {\n");
    for (nexts, layout) in Ses::TABLE {
        for next in *nexts {
            let _ = writeln!(out, "  [{}] = U.layouts.{},", next.code(), layout.name);
        }
    }
    out.push_str("}\n");
}

fn sets(out: &mut String) {
    let set =
        |codes: Vec<u8>| codes.iter().map(|code| format!("[{code}] = true")).collect::<Vec<_>>().join(", ");
    let opcodes = || (0..64).filter_map(Opcode::new);
    let plain = opcodes().filter(|opcode| opcode.is_plain()).map(Opcode::code).collect();
    let numbered =
        (0..16).filter_map(CtlType::new).filter(|kind| kind.takes_psn()).map(CtlType::code).collect();
    let rendezvous = opcodes().filter(|opcode| opcode.is_rendezvous()).map(Opcode::code).collect();
    let atomic = opcodes().filter(|opcode| opcode.is_atomic()).map(Opcode::code).collect();
    let all = (0..=u8::MAX).filter_map(AtomicOpcode::new);
    let swap = all.filter(|opcode| opcode.is_compare_and_swap()).map(AtomicOpcode::code).collect();
    let _ = writeln!(out, "U.takes_psn = {{ {} }}", set(numbered));
    let _ = writeln!(out, "U.plain = {{ {} }}", set(plain));
    let _ = writeln!(out, "U.rendezvous = {{ {} }}", set(rendezvous));
    let _ = writeln!(out, "U.atomic = {{ {} }}", set(atomic));
    let _ = writeln!(out, "U.compare_and_swap = {{ {} }}", set(swap));
    out.push_str("U.nack_class = {\n");
    for code in (0..=u8::MAX).filter_map(NackCode::new) {
        if let (Some(class), Some(action)) = (code.class(), NackAction::of(code)) {
            let _ = writeln!(
                out,
                "  [{}] = {{ {:?}, {:?} }},",
                code.code(),
                words(&format!("{class:?}")),
                words(&format!("{action:?}"))
            );
        }
    }
    out.push_str("}\n");
}

/// `GoBackN` as `go back n`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

fn requirements(out: &mut String, spec: &Spec) {
    out.push_str("U.requirements = {\n");
    // Requirements of other areas concern several packets and are checked elsewhere.
    for requirement in catalogue::ALL.iter().filter(|requirement| requirement.id.starts_with("WIRE-")) {
        let severity = match requirement.level {
            Level::Must => "error",
            Level::Should => "warning",
            Level::May => "note",
        };
        let _ = writeln!(out, "  {{ {:?}, {severity:?}, {:?} }},", requirement.id, requirement.sentence);
    }
    out.push_str("}\nU.assigned = {\n");
    let names =
        layout::ALL.iter().flat_map(|layout| spec.layout(layout).fields()).map(|place| place.row.name);
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if let (Some(requirement), false) = (validate::assigned(name), seen.contains(&name)) {
            let _ = writeln!(out, "  [{name:?}] = {:?},", requirement.id);
            seen.push(name);
        }
    }
    out.push_str("}\n");
}
