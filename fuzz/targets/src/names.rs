//! Names of code points, requirements, fields and figures; and numbers with their own arithmetic.

use crate::cut_off::cut_off;
use arbitrary::{Arbitrary, Unstructured};
use std::fmt::Debug;
use std::str::FromStr;
use uet_wire::layout::{ALL, Kind, Layout, Values, When};
use uet_wire::registry::*;
use uet_wire::tss::Tsc;
use uet_wire::{PdcId, Psn, PsnOffset, Units24, Version, catalogue, draw};

pub(super) fn run(data: &[u8]) {
    let Some((chosen, rest)) = data.split_first() else { return };
    let layout = ALL[usize::from(*chosen) % ALL.len()];
    figure(layout);
    cut_off(draw(layout), data.len() * 8);
    header(layout, rest);
    if let Ok((psn, by, other)) = Unstructured::new(rest).arbitrary() {
        numbers(psn, by, other);
    }
    if let Ok(text) = std::str::from_utf8(rest) {
        find(text);
        ALL.iter().for_each(|layout| {
            if let Some(place) = layout.place(text) {
                assert_eq!(layout.key(&place).to_string(), text);
            }
        });
    }
}

/// Checks that a name stands for one thing with that name.
fn find(text: &str) {
    macro_rules! code_points {
        ($($Name:ident)*) => {$(
            match $Name::from_str(text) {
                Ok(code) => {
                    assert_eq!(code.name(), Some(text));
                    assert_eq!($Name::new(code.code()), Some(code));
                    assert!(Version::ALL.iter().any(|version| code.status(*version) != Status::Vendor));
                }
                Err(error) => assert!(error.to_string().contains(error.registry)),
            }
            let number = text.bytes().next().unwrap_or(0);
            if let Some(code) = $Name::new(number) {
                assert_eq!(code.to_string().parse(), code.name().map_or(code.to_string().parse(), |_| Ok(code)));
                assert_eq!(format!("{code:?}"), code.to_string());
                assert_eq!($Name::REGISTRY.entry(number).map(|entry| entry.name), code.name());
            }
        )*};
    }
    for code in (0..=u8::MAX).filter_map(NackCode::new) {
        assert_eq!(code.class().is_some(), code.name().is_some(), "{code}");
    }
    code_points! {
        PdsType NextHdr CtlType AckRequest CcType CcxType NackCode Opcode AtomicOpcode AtomicDatatype ResponseOpcode
        List ReturnCode
    }
    if let Some(version) = Version::ALL.iter().find(|version| version.name() == text) {
        assert_eq!(version.to_string(), text);
    }
    if let Some(requirement) = catalogue::find(text) {
        assert!(requirement.id == text && !requirement.level.name().is_empty());
    }
}

/// Checks that the figure of a header is as wide as its bits and names its fields.
fn figure(layout: &'static Layout) {
    let figure = draw(layout).to_string();
    let width = (layout.bytes * 8).min(32) * 2 + 1;
    for line in figure.lines().filter(|line| line.starts_with(['|', '+'])) {
        assert!(line.len() >= width || !layout.bytes.is_multiple_of(4), "{line:?}");
    }
    assert!(layout.fields().all(|place| figure.contains(place.row.name)), "{figure}");
}

/// Checks that a header displays each of its fields.
fn header(layout: &'static Layout, bytes: &[u8]) {
    for (place, value) in layout.present(bytes) {
        let shown = place.display(value).to_string();
        if let (Kind::Code(registry), Ok(code)) = (place.row.kind, u8::try_from(value)) {
            assert!(registry.entry(code).is_none_or(|entry| shown.contains(entry.name)), "{shown}");
        }
        assert!(!shown.is_empty());
        if let Some(when) = place.row.when {
            assert!(layout.condition(&when).to_string().contains(when.name));
        }
        // Arbitrary values of any field, including one that the header lacks.
        for header in [layout, Tsc::LAYOUT] {
            let when = When { name: place.row.name, values: Values::of(bytes) };
            assert!(header.condition(&when).to_string().starts_with(when.name));
            cut_off(header.condition(&when), bytes.len() * 7 + place.lo());
        }
    }
    assert!(shown(bytes).iter().all(|text| !text.is_empty()));
}

/// Displays the first bytes as each header.
fn shown(bytes: &[u8]) -> Vec<String> {
    fn debug<T: Debug, R, E>(parsed: Result<(T, R), E>) -> Option<String> {
        parsed.ok().map(|(header, _)| format!("{header:?}"))
    }
    use uet_wire::{outer, pds, ses, tss};
    [
        debug(outer::Ethernet::parse(bytes)),
        debug(outer::Ipv6::parse(bytes)),
        debug(pds::AckCc::parse(bytes)),
        debug(pds::Control::parse(bytes)),
        debug(ses::Std::parse(bytes)),
        debug(ses::Small::parse(bytes)),
        debug(tss::Tss::parse(bytes)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[derive(Debug, Arbitrary)]
struct Step {
    short: i16,
    wide: u32,
    offset: PsnOffset,
    id: PdcId,
}

fn numbers(psn: Psn, by: Step, credit: (Units24, Units24)) {
    let there = psn.offset(by.short);
    assert_eq!(there.offset_from(psn), Some(by.short));
    assert_eq!(psn + by.wide - by.wide, psn);
    let distance = by.wide;
    assert_eq!((psn + distance) - psn, distance);
    match (psn + distance).serial_cmp(psn) {
        Some(order) => assert_eq!(order.is_gt(), (psn + distance).is_after(psn)),
        None => assert_eq!(distance, 1 << 31, "half a circle away"),
    }
    assert_eq!((psn + (1 << 31)).serial_cmp(psn), None);
    assert_eq!(PsnOffset::between(psn, psn + distance), u16::try_from(distance).ok().and_then(PsnOffset::new));
    let last = psn + u32::from(by.offset.get());
    assert_eq!(PsnOffset::between(psn, last), Some(by.offset));
    assert!(last.is_within(psn, last) && psn.is_within(psn, last) && !(last + 1).is_within(psn, last));

    let (units, more) = credit;
    let sum = units + more.get();
    assert_eq!(Units24::from_bytes(units.bytes()), units);
    assert_eq!(sum.since(units), (more.get() < 1 << 23).then_some(more.get()));
    assert_eq!(by.id.is_valid(), by.id != PdcId::NONE);
    for text in [psn.to_string(), units.to_string(), by.offset.to_string(), by.id.to_string()] {
        assert!(!text.is_empty());
    }
}
