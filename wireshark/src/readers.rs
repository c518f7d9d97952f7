//! Generates Lua functions that read a whole header at once. A field of the dissector's hot path costs one table entry
//! and no call.

use crate::fields::Container;
use std::fmt::Write;
use uet_wire::layout::{Kind, Layout, Place, Values};

/// Widest field, in bits, that every Lua of Wireshark holds as a number.
pub(crate) const WIDEST: usize = 32;

/// Returns a Lua function of a string and an offset that reads a complete header. It returns the fields by name, and
/// `reserved`: whether a reserved bit is set.
pub(crate) fn reader(layout: &'static Layout) -> String {
    let bytes = (0..layout.bytes).map(|index| format!("b{index}")).collect::<Vec<_>>().join(", ");
    let mut out = String::from("function(s, p)\n");
    let _ = writeln!(out, "      local {bytes} = byte(s, p + 1, p + {})", layout.bytes);
    let mut names: Vec<&str> = Vec::new();
    let mut deciding: Vec<&str> = layout.places().filter_map(|place| Some(place.row.when?.name)).collect();
    deciding.sort_unstable();
    deciding.dedup();
    for name in &deciding {
        if let Some(place) = layout.field(name) {
            let _ = writeln!(out, "      local {} = {}", local(name), expression(&place));
        }
    }
    out.push_str("      return {");
    for place in layout.fields().filter(|place| place.row.width() <= WIDEST) {
        let name = place.row.name;
        if names.contains(&name) {
            continue;
        }
        names.push(name);
        let forms = layout.fields().filter(|form| form.row.name == name && form.row.width() <= WIDEST);
        let values: Vec<_> = forms.map(|form| value(layout, &form, &deciding)).collect();
        let _ = write!(out, "\n        [{name:?}] = {},", values.join(" or "));
    }
    let reserved: Vec<_> = layout
        .places()
        .filter(|place| place.row.kind == Kind::Reserved)
        .map(|place| any(layout, &place))
        .collect();
    if !reserved.is_empty() {
        let _ = write!(out, "\n        reserved = {},", reserved.join(" or "));
    }
    out.push_str("\n      }\n    end");
    out
}

pub(crate) fn local(name: &str) -> String {
    name.replace('.', "_")
}

fn value(layout: &'static Layout, place: &Place, deciding: &[&str]) -> String {
    let name = place.row.name;
    match condition(layout, place) {
        None if deciding.contains(&name) => local(name),
        None => expression(place),
        Some(condition) => format!("({condition} and {} or nil)", expression(place)),
    }
}

/// Returns the condition for a row to exist, in terms of the local variable of the deciding field.
pub(crate) fn condition(layout: &'static Layout, place: &Place) -> Option<String> {
    let when = place.row.when?;
    let width = layout.field(when.name).map_or(0, |deciding| deciding.row.width());
    let name = local(when.name);
    let are = |values: Values, sign: &str, joint: &str| {
        let each: Vec<_> = values.iter(width).map(|value| format!("{name} {sign} {value}")).collect();
        (each.len() <= 4).then(|| format!("({})", each.join(joint)))
    };
    let long = || {
        let all: Vec<_> = when.values.iter(width).map(|value| format!("{name} == {value}")).collect();
        format!("({})", all.join(" or "))
    };
    Some(
        are(when.values, "==", " or ").or_else(|| are(when.values.not(), "~=", " and ")).unwrap_or_else(long),
    )
}

/// Returns the value of the bits, in terms of the local variables of the bytes.
pub(crate) fn expression(place: &Place) -> String {
    let Container { at, bytes, shift } = Container::of(place);
    let width = place.row.width();
    if width == 1 {
        let bit = 1u32 << shift;
        return format!("(b{at} % {} >= {bit} and 1 or 0)", bit * 2);
    }
    let mut sum = format!("b{at}");
    // Mask the bits above the field in the first byte, if that is enough.
    let above = bytes * 8 - shift - width;
    if above > 0 {
        sum = format!("b{at} % {}", 1u32 << (8 - above));
    }
    for index in at + 1..at + bytes {
        sum = if index == at + 1 {
            format!("{sum} * 256 + b{index}")
        } else {
            format!("({sum}) * 256 + b{index}")
        };
    }
    let sum = if shift > 0 { format!("floor(({sum}) / {})", 1u64 << shift) } else { sum };
    match place.row.kind {
        Kind::Int => format!("signed({sum}, {})", 1u64 << (width - 1)),
        _ => format!("({sum})"),
    }
}

/// Returns a test for any set bit.
fn any(layout: &'static Layout, place: &Place) -> String {
    let bits = (place.lo() / 8..place.hi().div_ceil(8)).map(|index| {
        let (lo, hi) = (place.lo().max(index * 8) - index * 8, place.hi().min(index * 8 + 8) - index * 8);
        let above = if lo > 0 { format!(" % {}", 1 << (8 - lo)) } else { String::new() };
        format!("b{index}{above} >= {}", 1 << (8 - hi))
    });
    let bits = bits.collect::<Vec<_>>().join(" or ");
    match condition(layout, place) {
        Some(condition) => format!("{condition} and ({bits})"),
        None => bits,
    }
}
