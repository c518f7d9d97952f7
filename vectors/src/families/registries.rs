//! Every named code point, and the ends of each range of unnamed ones.

use crate::case::{Case, Family};
use crate::usual;
use uet_wire::layout::{Kind, Layout, Place};
use uet_wire::pds::{Ack, AckCc, AckCcx, Control, Nack, NackCcx, Prologue, Request};
use uet_wire::registry::{AtomicOpcode, PdsType, Registry, Status, Version};
use uet_wire::ses::{Atomic, CompareSwap, Medium, Response, ResponseData, ResponseDataSmall, Small, Std};

/// Fields that hold code points, each with the header for its tests.
const FIELDS: &[(&Layout, &str)] = &[
    (Prologue::LAYOUT, "pds.type"),
    (Request::LAYOUT, "pds.next_hdr"),
    (Control::LAYOUT, "pds.ctl_type"),
    (Ack::LAYOUT, "pds.flags.req"),
    (AckCc::LAYOUT, "pds.cc_type"),
    (AckCcx::LAYOUT, "pds.ccx_type"),
    (NackCcx::LAYOUT, "pds.nccx_type"),
    (Nack::LAYOUT, "pds.nack_code"),
    (NackCcx::LAYOUT, "pds.nack_code"),
    (Std::LAYOUT, "ses.opcode"),
    (Medium::LAYOUT, "ses.opcode"),
    (Small::LAYOUT, "ses.opcode"),
    (Atomic::LAYOUT, "ses.atomic_opcode"),
    (Atomic::LAYOUT, "ses.atomic_datatype"),
    (CompareSwap::LAYOUT, "ses.atomic_datatype"),
    (Response::LAYOUT, "ses.opcode"),
    (ResponseData::LAYOUT, "ses.opcode"),
    (ResponseDataSmall::LAYOUT, "ses.opcode"),
    (Response::LAYOUT, "ses.list"),
    (ResponseData::LAYOUT, "ses.list"),
    (Response::LAYOUT, "ses.return_code"),
    (ResponseData::LAYOUT, "ses.return_code"),
    (ResponseDataSmall::LAYOUT, "ses.return_code"),
];

pub(super) fn family() -> Family {
    let mut family = Family::new("registries", "wire-format: the registries");
    for (layout, field) in FIELDS {
        let Some((place, registry)) = coded(layout, field) else {
            unreachable!("{} has no code points in {field}", layout.name)
        };
        for code in tried(registry) {
            family.add(case(layout, place, registry, code));
        }
    }
    // Code points that versions added or removed, judged by all versions.
    for version in Version::ALL {
        for (layout, field, code) in
            [(Nack::LAYOUT, "pds.nack_code", 3), (Control::LAYOUT, "pds.ctl_type", 9)]
        {
            if let Some((place, registry)) = coded(layout, field) {
                let case = case(layout, place, registry, code);
                let name = format!("{}-in-{version}", case.name);
                let description = format!("{}, judged by version {version}", case.description);
                family.add(Case { name, description, ..case }.version(*version));
            }
        }
    }
    family
}

fn coded(layout: &'static Layout, field: &str) -> Option<(Place, &'static Registry)> {
    let place = layout.field(field)?;
    match place.row.kind {
        Kind::Code(registry) => Some((place, registry)),
        _ => None,
    }
}

/// Returns the tested code points: all if they have at most six bits. Of wider ones, returns the named ones and the
/// ends of each unnamed run.
fn tried(registry: &'static Registry) -> impl Iterator<Item = u8> {
    let last = (0xffu16 >> (8 - registry.width)) as u8;
    let kind = move |code: u8| registry.status(code, Version::default());
    (0..=last).filter(move |code| {
        let at_end =
            *code == 0 || *code == last || kind(*code) != kind(code - 1) || kind(*code) != kind(code + 1);
        registry.width <= 6 || registry.entry(*code).is_some() || at_end
    })
}

fn case(layout: &'static Layout, place: Place, registry: &'static Registry, code: u8) -> Case {
    let is_swap = place.row.name == "ses.atomic_opcode"
        && AtomicOpcode::new(code).is_some_and(|code| code.is_compare_and_swap());
    let (layout, place) = match CompareSwap::LAYOUT.field(place.row.name) {
        Some(place) if is_swap => (CompareSwap::LAYOUT, place),
        _ => (layout, place),
    };
    // The type selects the header.
    let layout = match PdsType::new(code) {
        Some(kind) if place.row.name == "pds.type" => usual::pds_layout(kind),
        _ => layout,
    };
    let word = match (registry.entry(code), registry.status(code, Version::default())) {
        (Some(entry), _) => entry.name.to_lowercase().replace('_', "-"),
        (None, Status::Vendor) => "vendor".into(),
        (None, _) => "reserved".into(),
    };
    let digits = registry.width.div_ceil(4);
    let directory = if place.row.name == "pds.type" { "prologue" } else { layout.name };
    let name = format!("{directory}/{}-0x{code:0digits$x}-{word}", place.row.name);
    let meaning = registry.entry(code).map_or(word, |entry| format!("{}, {}", entry.name, entry.doc));
    let description = format!("{}: {code:#x} is {meaning}", registry.title);
    let place = layout.field(place.row.name).unwrap_or(place);
    let mut given = vec![(place, code.into())];
    // Some types require a SES header.
    let next = layout.field("pds.next_hdr").zip(PdsType::new(code)).filter(|_| place.row.name == "pds.type");
    given.extend(next.map(|(next, kind)| (next, usual::next_hdr_of(kind).code().into())));
    Case::uet(name, description, usual::packet(layout, &usual::header(layout, &given)))
}
