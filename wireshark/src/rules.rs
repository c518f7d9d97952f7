//! Generates the rules of uet-wire as Lua: one function per header, with the fields in local variables.

use crate::readers::{WIDEST, condition, expression, local};
use crate::tables::ours;
use std::fmt::Write;
use uet_wire::Spec;
use uet_wire::layout::{Layout, Place, Values};
use uet_wire::validate::{Condition, PAYLOAD, Quantity, Relation, Rule};

/// Returns all functions: `judge` of each layout, and `U.judge_ipv4` and `U.judge_udp` for the layers around UET.
pub(crate) fn rules(spec: &Spec) -> String {
    let mut out = String::from(
        "-- `p` is the packet, `r` what the fields of the header say, `at` its place in the frame.\n\
         local found, byte, floor, u32, band = U.found, string.byte, math.floor, U.u32, U.band\n",
    );
    for layout in ours(spec).filter(|layout| of(layout, spec).next().is_some()) {
        let name = layout.name;
        let _ = writeln!(out, "U.layouts.{name}.judge = function(p, r, at, payload)");
        hoist(&mut out, layout, spec, |place| format!("r[{:?}]", place.row.name));
        body(&mut out, layout, spec);
    }
    for layout in [uet_wire::outer::Ipv4::LAYOUT, uet_wire::outer::Udp::LAYOUT] {
        let _ = writeln!(out, "U.judge_{} = function(p, at)", layout.name);
        for index in bytes(layout, spec) {
            let _ = writeln!(out, "  local b{index} = byte(p.s, at + {})", index + 1);
        }
        hoist(&mut out, layout, spec, expression);
        body(&mut out, layout, spec);
    }
    out
}

fn of(layout: &'static Layout, spec: &Spec) -> impl Iterator<Item = &'static Rule> {
    spec.rules().filter(move |rule| rule.headers.iter().any(|header| header.name == layout.name))
}

/// Returns the fields that the rules of a header use, each once.
fn names(layout: &'static Layout, spec: &Spec) -> Vec<&'static str> {
    let mut names = Vec::new();
    for rule in of(layout, spec) {
        names.push(rule.field);
        let mut quantity = |quantity: &Quantity| match *quantity {
            Quantity::Field(name) => names.push(name),
            Quantity::Sum(a, b) => names.extend([a, b]),
            Quantity::Payload | Quantity::Number(_) => {}
        };
        for condition in rule.broken {
            match condition {
                Condition::Is(a, _, b) => [a, b].into_iter().for_each(&mut quantity),
                Condition::In(name, _) | Condition::Bits(name, _) => quantity(&Quantity::Field(name)),
                Condition::Whole => {}
            }
        }
    }
    // The existence of a field that is not a number depends on another field.
    let deciding = names.iter().filter_map(|name| Some(layout.field(name)?.row.when?.name));
    names.extend(deciding.collect::<Vec<_>>());
    names.retain(|name| *name != PAYLOAD);
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the bytes that hold them.
fn bytes(layout: &'static Layout, spec: &Spec) -> Vec<usize> {
    let places = names(layout, spec).into_iter().filter_map(|name| layout.field(name));
    let mut bytes: Vec<_> = places.flat_map(|place| place.lo() / 8..place.hi().div_ceil(8)).collect();
    bytes.dedup();
    bytes
}

fn hoist(out: &mut String, layout: &'static Layout, spec: &Spec, read: impl Fn(&Place) -> String) {
    for name in names(layout, spec) {
        let value = match layout.field(name) {
            Some(place) if place.row.width() > WIDEST => continue,
            Some(place) => read(&place),
            // The field belongs to an earlier header: the name starts with its layer.
            None => {
                let (layer, _) = name.split_once('.').unwrap_or((name, ""));
                format!("p.{layer} and p.{layer}[{name:?}]")
            }
        };
        let _ = writeln!(out, "  local {} = {value}", local(name));
    }
}

fn body(out: &mut String, layout: &'static Layout, spec: &Spec) {
    let mut before = "";
    for rule in of(layout, spec) {
        let id = rule.requirement.id;
        let joint = match before {
            "" => "if",
            _ if before == id => "elseif",
            _ => "end\n  if",
        };
        before = id;
        let conditions: Vec<_> = rule.broken.iter().map(|condition| holds(layout, condition)).collect();
        let value = match layout.field(rule.field) {
            None => "payload".into(),
            Some(place) if place.row.width() > WIDEST => {
                let [high, low] = halves(&place);
                format!("string.format(\"0x%08x%08x\", {high}, {low})")
            }
            Some(_) => local(rule.field),
        };
        let _ = writeln!(
            out,
            "  {joint} {} then\n    found(p, {id:?}, {:?}, {value})",
            conditions.join(" and "),
            rule.field
        );
    }
    out.push_str("  end\nend\n");
}

/// Returns whether a field can be absent from its header, which requires a check for nil.
fn may_lack(layout: &'static Layout, name: &str) -> bool {
    layout.field(name).is_none_or(|place| place.row.when.is_some())
}

fn holds(layout: &'static Layout, condition: &Condition) -> String {
    match condition {
        Condition::In(name, values) => {
            guarded(layout, &[name], is_in(&local(name), *values, width(layout, name)))
        }
        Condition::Bits(name, bits) => any_of(layout, name, *bits),
        Condition::Is(a, relation, b) => {
            let sign = match relation {
                Relation::Equals => "==",
                Relation::Differs => "~=",
                Relation::Above => ">",
                Relation::AtLeast => ">=",
            };
            let ((a, of_a), (b, of_b)) = (quantity(a), quantity(b));
            guarded(layout, &[of_a, of_b].concat(), format!("{a} {sign} {b}"))
        }
        Condition::Whole => "p.whole".into(),
    }
}

fn guarded(layout: &'static Layout, names: &[&str], what: String) -> String {
    let lacking = names.iter().filter(|name| may_lack(layout, name));
    lacking.map(|name| format!("{} and ", local(name))).collect::<String>() + &what
}

fn quantity(quantity: &Quantity) -> (String, Vec<&'static str>) {
    match *quantity {
        Quantity::Field(name) => (local(name), vec![name]),
        Quantity::Sum(a, b) => (format!("{} + {}", local(a), local(b)), vec![a, b]),
        Quantity::Payload => ("payload".into(), vec![]),
        Quantity::Number(number) => (number.to_string(), vec![]),
    }
}

fn width(layout: &'static Layout, name: &str) -> usize {
    layout.field(name).map_or(6, |place| place.row.width())
}

/// Returns the shortest test: a range, the values, or all the others.
fn is_in(name: &str, values: Values, width: usize) -> String {
    let (these, others): (Vec<_>, Vec<_>) =
        (values.iter(width).collect(), values.not().iter(width).collect());
    match *these {
        [lo, .., hi] if usize::from(hi - lo) + 1 == these.len() && these.len() > 2 => {
            format!("{name} >= {lo} and {name} <= {hi}")
        }
        _ if others.len() < these.len() => joined(name, "~=", " and ", &others),
        [_] => joined(name, "==", "", &these),
        _ => format!("({})", joined(name, "==", " or ", &these)),
    }
}

fn joined(name: &str, sign: &str, joint: &str, values: &[u8]) -> String {
    values.iter().map(|value| format!("{name} {sign} {value}")).collect::<Vec<_>>().join(joint)
}

fn any_of(layout: &'static Layout, name: &str, bits: u64) -> String {
    let width = width(layout, name);
    if let Some(place) = layout.field(name).filter(|_| width > WIDEST) {
        let [high, low] = halves(&place);
        let each = [(high, bits >> 32), (low, bits & 0xffff_ffff)].into_iter().filter(|(_, bits)| *bits != 0);
        let each: Vec<_> = each.map(|(half, bits)| format!("band({half}, {bits:#x}) ~= 0")).collect();
        let there = condition(layout, &place).map_or(String::new(), |there| there + " and ");
        return format!("{there}({})", each.join(" or "));
    }
    let bits = bits & (u64::MAX >> (64 - width));
    // Bits from one position up are set exactly in numbers of at least some value.
    let what = match bits.trailing_zeros() {
        0 if bits.count_ones() as usize == width => format!("{} ~= 0", local(name)),
        low if (bits >> low).count_ones() as usize == width - low as usize => {
            format!("{} >= {}", local(name), 1u64 << low)
        }
        _ => format!("band({}, {bits:#x}) ~= 0", local(name)),
    };
    guarded(layout, &[name], what)
}

/// Returns the halves of a 64-bit field, which not every Lua can hold.
fn halves(place: &Place) -> [String; 2] {
    [0, 4].map(|half| format!("u32(p.s, at + {})", place.lo() / 8 + half))
}
