//! Headers of UET for other languages, from the tables of uet-wire: `uet generate`.
//!
//! One file writes each language. This one has their common view of the tables: code points, names of fields,
//! conditions, and the headers that code points announce.

mod c;
mod kaitai;
mod p4;
mod slots;
mod systemverilog;

use uet_wire::Spec;
use uet_wire::layout::{self, Kind, Layout, Place, Row};
use uet_wire::pds::Pds;
use uet_wire::registry::{AtomicOpcode, Entry, NextHdr, Opcode, PdsType, Registry};
use uet_wire::ses::{RequestHead, Ses};

/// A language that `uet generate` writes.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Language {
    /// A header file in C99, for C++, kernels and eBPF as well
    C,
    /// A description for Kaitai Struct, for parsers in Python, JavaScript, Java, C#, Go and others
    Kaitai,
    /// A package in SystemVerilog, with packed structures
    #[value(name = "systemverilog")]
    SystemVerilog,
    /// Header types and a parser in P4-16
    P4,
}

impl Language {
    /// Returns the usual name of its file.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            Language::C => "uet.h",
            Language::Kaitai => "uet.ksy",
            Language::SystemVerilog => "uet_pkg.sv",
            Language::P4 => "uet.p4",
        }
    }

    /// Returns the file for this version of the specification.
    pub(crate) fn file(self, spec: &'static Spec) -> String {
        match self {
            Language::C => c::header(spec),
            Language::Kaitai => kaitai::description(spec),
            Language::SystemVerilog => systemverilog::package(spec),
            Language::P4 => p4::program(spec),
        }
    }
}

/// Returns the headers of UET, and the parts that several of them share.
fn layouts(spec: &'static Spec) -> impl Iterator<Item = &'static Layout> {
    let ours = layout::ALL.iter().copied().filter(|layout| layout.layer.is_uet());
    ours.map(|layout| spec.layout(layout))
}

/// Returns the code points of a registry in this version.
fn points(spec: &'static Spec, registry: &'static Registry) -> impl Iterator<Item = &'static Entry> {
    (0..=u8::MAX).filter_map(move |code| spec.entry(registry, code))
}

/// Returns the name of a code point without the prefix that some have.
fn point_name(entry: &Entry) -> &'static str {
    entry.name.trim_start_matches("UET_")
}

/// Returns the name of a registry in lower case: `PdsType` as `pds_type`.
fn snake(registry: &Registry) -> String {
    registry.words().map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
}

/// Returns a comment with the name and description of a row. Reserved bits have none.
fn comment(row: &Row) -> String {
    match row.kind {
        Kind::Reserved => String::new(),
        _ if row.doc.is_empty() => format!(" // {}", row.name),
        _ => format!(" // {}: {}", row.name, row.doc),
    }
}

/// A field of a header.
struct HeaderField {
    /// The end of the canonical name, or more of it if the end is not unique or a keyword.
    name: String,
    /// All its places, which exclude each other.
    places: Vec<Place>,
}

/// Returns the fields of a header in wire order, for a language with these keywords.
fn fields(layout: &'static Layout, keywords: &[&str]) -> Vec<HeaderField> {
    let mut fields: Vec<(&str, Vec<Place>)> = Vec::new();
    for place in layout.fields() {
        match fields.iter_mut().find(|(name, _)| *name == place.row.name) {
            Some((_, places)) => places.push(place),
            None => fields.push((place.row.name, vec![place])),
        }
    }
    let last = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
    let names: Vec<&str> = fields.iter().map(|(name, _)| last(name)).collect();
    let is_unique = |name: &str| names.iter().filter(|other| **other == name).count() == 1;
    let short = |name: &'static str| match last(name) {
        tail if keywords.contains(&tail) => name.replace('.', "_"),
        tail if is_unique(tail) => tail.to_owned(),
        _ => name.split_once('.').map_or(name, |(_, rest)| rest).replace('.', "_"),
    };
    fields.into_iter().map(|(name, places)| HeaderField { name: short(name), places }).collect()
}

/// The condition of a row, with the shorter list of values.
struct Condition {
    /// The field that decides.
    deciding: Place,
    /// The values for which the row exists, or those for which it does not.
    values: Vec<u8>,
    /// True if the row does not exist for `values`.
    is_negated: bool,
}

/// Returns the condition of a row; `None` if the row always exists.
fn condition(layout: &'static Layout, place: &Place) -> Option<Condition> {
    let when = place.row.when?;
    let deciding = layout.field(when.name)?;
    let list = |values: layout::Values| values.iter(deciding.row.width()).collect::<Vec<_>>();
    let (are, are_not) = (list(when.values), list(when.values.not()));
    let is_negated = are_not.len() < are.len();
    Some(Condition { deciding, values: if is_negated { are_not } else { are }, is_negated })
}

impl Condition {
    /// Returns the condition as an expression of a language with these words for *and* and *or*. `value` is the
    /// deciding field, and `point` writes one of its values.
    fn text(&self, [and, or]: [&str; 2], value: &str, point: impl Fn(u8) -> String) -> String {
        let (sign, joint) = if self.is_negated { ("!=", and) } else { ("==", or) };
        let tests = self.values.iter().map(|code| format!("{value} {sign} {}", point(*code)));
        tests.collect::<Vec<_>>().join(&format!(" {joint} "))
    }
}

/// Returns the headers that `pds.type` announces, each with its code points.
fn pds_headers(spec: &'static Spec) -> Vec<(Vec<u8>, &'static Layout)> {
    let codes = |kinds: &[PdsType]| kinds.iter().map(|kind| kind.code()).collect();
    Pds::TABLE.iter().map(|(kinds, layout)| (codes(kinds), spec.layout(layout))).collect()
}

/// Returns the headers that `pds.next_hdr` announces, each with its code points.
fn ses_headers(spec: &'static Spec) -> Vec<(Vec<u8>, &'static Layout)> {
    let codes = |kinds: &[NextHdr]| kinds.iter().map(|kind| kind.code()).collect();
    Ses::TABLE.iter().map(|(kinds, layout)| (codes(kinds), spec.layout(layout))).collect()
}

/// Returns true if the `pds.next_hdr` of this PDS header announces what follows. An unknown header announces nothing.
fn announces_ses(layout: &'static Layout) -> bool {
    layout.places().any(|place| place.row.name == "pds.next_hdr") && layout.name != "prologue"
}

/// Returns true for the SES headers of requests, which an extension may follow.
fn is_request(layout: &Layout) -> bool {
    let is_head = |row: &Row| matches!(row.kind, Kind::Part(part) if part.name == RequestHead::LAYOUT.name);
    layout.rows.iter().any(is_head)
}

/// Returns the opcodes of requests that have this property.
fn opcodes(has: impl Fn(Opcode) -> bool) -> Vec<u8> {
    (0..64).filter_map(Opcode::new).filter(|opcode| has(*opcode)).map(Opcode::code).collect()
}

/// Returns the atomic opcodes whose extension has operands.
fn compare_and_swap() -> Vec<u8> {
    let all = (0..=u8::MAX).filter_map(AtomicOpcode::new);
    all.filter(|opcode| opcode.is_compare_and_swap()).map(AtomicOpcode::code).collect()
}
