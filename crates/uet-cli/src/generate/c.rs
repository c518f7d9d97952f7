//! Generates a header file in C99: code points, lengths, and functions that read and write each field.

use super::{HeaderField, fields, layouts, pds_headers, point_name, points, ses_headers, snake};
use std::fmt::Write;
use uet_wire::Spec;
use uet_wire::layout::{Kind, Layout, Place};
use uet_wire::outer::{IP_PROTO, UDP_PORT};
use uet_wire::registry;

/// Returns the whole file.
pub(super) fn header(spec: &'static Spec) -> String {
    let mut out = include_str!("head.h").replace("VERSION", spec.name());
    let _ = writeln!(out, "\n#define UET_UDP_PORT {UDP_PORT}\n#define UET_IP_PROTO {IP_PROTO}");
    for registry in registry::ALL {
        let _ = writeln!(out, "\n/* {} */\nenum uet_{} {{", registry.title, snake(registry));
        let upper = snake(registry).to_uppercase();
        for entry in points(spec, registry) {
            let name = point_name(entry);
            let comment = if entry.doc.is_empty() { String::new() } else { format!(" /* {} */", entry.doc) };
            let _ = writeln!(out, "    UET_{upper}_{name} = {},{comment}", entry.code);
        }
        let _ = writeln!(out, "    UET_{upper}_BITS = {}\n}};", registry.width);
    }
    for layout in layouts(spec) {
        one(&mut out, layout);
    }
    lengths(&mut out, "pds_bytes", "pds.type", pds_headers(spec));
    lengths(&mut out, "ses_bytes", "pds.next_hdr", ses_headers(spec));
    out.push_str("\n#endif\n");
    out
}

/// Writes the length and the functions of a header.
fn one(out: &mut String, layout: &'static Layout) {
    let (name, upper) = (layout.name, layout.name.to_uppercase());
    let _ = writeln!(out, "\n/* {} */\n#define UET_{upper}_BYTES {}", layout.title, layout.bytes);
    for HeaderField { name: field, places } in fields(layout, &[]) {
        let row = places[0].row;
        let about = if row.doc.is_empty() { String::new() } else { format!(": {}", row.doc) };
        let _ = writeln!(out, "\n/* {}, {} bits{about} */", row.name, row.width());
        let conditions: Vec<String> = places.iter().filter_map(|place| condition(layout, place)).collect();
        let mut check = String::new();
        if conditions.len() == places.len() {
            let body = format!("    return {};\n", conditions.join(" || "));
            function(out, &format!("int uet_{name}_has_{field}(const uint8_t *header)"), &body);
            check = format!("    UET_CHECK(uet_{name}_has_{field}(header));\n");
        }
        // The widest type of C has 64 bits.
        let (width, is_signed) = (row.width(), row.kind == Kind::Int);
        let parts = match width {
            65.. => vec![("_hi", width - 64, 64), ("_lo", 64, 0)],
            _ => vec![("", width, 0)],
        };
        for (suffix, width, low) in parts {
            let kind = c_type(is_signed, width);
            let bits = |place: &Place| (place.hi() - low - width, place.hi() - low);
            let get = |place: &Place| format!("    return {};\n", load(bits(place), is_signed, kind));
            let otherwise = if places.len() > 1 { "    return 0;\n" } else { "" };
            let body = check.clone() + &each(&places, &conditions, get) + otherwise;
            function(out, &format!("{kind} uet_{name}_get_{field}{suffix}(const uint8_t *header)"), &body);
            let body = check.clone() + &each(&places, &conditions, |place| store(bits(place)));
            let head = format!("void uet_{name}_set_{field}{suffix}(uint8_t *header, {kind} value)");
            function(out, &head, &body);
        }
    }
}

fn function(out: &mut String, head: &str, body: &str) {
    let _ = writeln!(out, "static inline {head}\n{{\n{body}}}");
}

/// Returns the statements for a place of a field. If a field has several, each stands under its condition.
fn each(places: &[Place], conditions: &[String], statements: impl Fn(&Place) -> String) -> String {
    if let [place] = places {
        return statements(place);
    }
    let under = |(place, condition): (&Place, &String)| {
        format!("    if ({condition}) {{\n{}    }}\n", statements(place).replace("    ", "        "))
    };
    places.iter().zip(conditions).map(under).collect()
}

/// Returns the condition of a row in C; `None` if the row always exists.
fn condition(layout: &'static Layout, place: &Place) -> Option<String> {
    let condition = super::condition(layout, place)?;
    let deciding = condition.deciding;
    let value = load((deciding.lo(), deciding.hi()), false, "uint8_t");
    let sign = if condition.is_negated { "!=" } else { "==" };
    Some(match condition.values.as_slice() {
        [one] => format!("{value} {sign} {one}"),
        values => {
            let mask = values.iter().fold(0u64, |mask, value| mask | 1 << value);
            let sign = if condition.is_negated { "==" } else { "!=" };
            format!("({mask:#x}ull >> {value} & 1) {sign} 0")
        }
    })
}

/// Returns the narrowest type of C for this number of bits.
fn c_type(is_signed: bool, width: usize) -> &'static str {
    match (is_signed, width) {
        (true, ..=8) => "int8_t",
        (true, ..=16) => "int16_t",
        (true, ..=32) => "int32_t",
        (true, _) => "int64_t",
        (_, ..=8) => "uint8_t",
        (_, ..=16) => "uint16_t",
        (_, ..=32) => "uint32_t",
        _ => "uint64_t",
    }
}

/// Returns an expression for the bits from `lo` to before `hi`.
fn load((lo, hi): (usize, usize), is_signed: bool, kind: &str) -> String {
    let (first, last, width) = (lo / 8, (hi - 1) / 8, hi - lo);
    let wide = if last - first >= 4 { "uint64_t" } else { "uint32_t" };
    let right = 8 * (last + 1) - hi;
    // The bits of each byte move to their place in the number. A field of 64 bits may lie in nine bytes.
    let byte = |at: usize| {
        let left = (8 * (last - at)) as isize - right as isize;
        let byte = format!("({wide})header[{at}]");
        match left {
            0 => byte,
            1.. => format!("{byte} << {left}"),
            _ => format!("{byte} >> {}", -left),
        }
    };
    let bytes: Vec<String> = (first..=last).map(byte).collect();
    let value = bytes.join(" | ");
    let has_other_bits = lo % 8 != 0;
    let value = match (bytes.len(), has_other_bits) {
        (1, false) if right == 0 => format!("header[{first}]"),
        (_, true) if width < 64 => format!("(({value}) & {:#x})", (1u64 << width) - 1),
        _ => format!("({value})"),
    };
    if is_signed && ![8, 16, 32, 64].contains(&width) {
        let sign = 1u64 << (width - 1);
        return format!("({kind})(({value} ^ {sign:#x}) - {sign:#x})");
    }
    format!("({kind}){value}")
}

/// Returns statements that write `value` to the bits from `lo` to before `hi`.
fn store((lo, hi): (usize, usize)) -> String {
    let mut out = String::new();
    for at in lo / 8..=(hi - 1) / 8 {
        // The bits of this byte that belong to the field, and the distance of its lowest bit from that of the field.
        let (from, to) = (lo.max(8 * at), hi.min(8 * at + 8));
        let mask = ((1u16 << (to - from)) - 1) << (8 * at + 8 - to);
        let shift = (hi as isize) - (8 * at + 8) as isize;
        let value = match shift {
            0 => "value".to_owned(),
            1.. => format!("value >> {shift}"),
            _ => format!("value << {}", -shift),
        };
        let _ = match mask {
            0xff => writeln!(out, "    header[{at}] = (uint8_t)({value});"),
            _ => writeln!(
                out,
                "    header[{at}] = (uint8_t)((header[{at}] & {:#x}) | (({value}) & {mask:#x}));",
                !mask & 0xff
            ),
        };
    }
    out
}

/// Writes a function that returns the length of the header of each code point.
fn lengths(out: &mut String, name: &str, field: &str, headers: Vec<(Vec<u8>, &'static Layout)>) {
    let _ = writeln!(out, "\n/* The length of the header that {field} announces; 0 for other code points */");
    let _ = writeln!(out, "static inline unsigned uet_{name}(uint8_t code)\n{{\n    switch (code) {{");
    for (codes, layout) in headers.into_iter().filter(|(codes, _)| !codes.is_empty()) {
        for code in codes {
            let _ = writeln!(out, "    case {code}:");
        }
        let _ = writeln!(out, "        return UET_{}_BYTES;", layout.name.to_uppercase());
    }
    out.push_str("    default:\n        return 0;\n    }\n}\n");
}
