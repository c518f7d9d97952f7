//! Interprets the rules literally by field name, and compares the result with validation, which uses no names.

use super::*;
use uet_wire::Spec;
use uet_wire::layout::{self, Kind, Layout};
use uet_wire::validate::{Condition, PAYLOAD, Quantity, RULES, Relation};

/// A header, its packet, and all headers of the packet.
struct Reading<'a> {
    layout: &'static Layout,
    bytes: &'a [u8],
    packet: &'a Uet<'a>,
    all: Vec<(&'static Layout, &'a [u8])>,
}

impl Reading<'_> {
    fn field(&self, name: &str) -> Option<i128> {
        let of = |(layout, bytes): (&'static Layout, &[u8])| {
            let (place, value) = layout.present(bytes).find(|(place, _)| place.row.name == name)?;
            let signed = value as i128
                - if value >> (place.row.width() - 1) == 1 { 1 << place.row.width() } else { 0 };
            Some(if place.row.kind == Kind::Int { signed } else { value as i128 })
        };
        // If the header can have the field, only this header counts.
        match self.layout.field(name) {
            Some(_) => of((self.layout, self.bytes)),
            None => self.all.iter().find_map(|header| of(*header)),
        }
    }

    fn quantity(&self, quantity: &Quantity) -> Option<i128> {
        match quantity {
            Quantity::Field(name) => self.field(name),
            Quantity::Sum(a, b) => Some(self.field(a)? + self.field(b)?),
            Quantity::Payload => Some(self.packet.payload.len() as i128),
            Quantity::Number(number) => Some((*number).into()),
        }
    }

    fn holds(&self, condition: &Condition) -> Option<bool> {
        Some(match condition {
            Condition::In(name, values) => values.contains(self.field(name)? as u128),
            Condition::Bits(name, bits) => self.field(name)? as u64 & bits != 0,
            Condition::Is(a, relation, b) => {
                let (a, b) = (self.quantity(a)?, self.quantity(b)?);
                match relation {
                    Relation::Equals => a == b,
                    Relation::Differs => a != b,
                    Relation::Above => a > b,
                    Relation::AtLeast => a >= b,
                }
            }
            Condition::Whole => true,
        })
    }

    /// Returns requirement, field and value of each finding, with the index of the broken rule.
    fn findings(&self) -> Vec<(usize, &'static str, &'static str, i128)> {
        let mut found: Vec<(usize, &str, &str, i128)> = Vec::new();
        for (index, rule) in RULES.iter().enumerate() {
            let about = rule.headers.iter().any(|header| header.name == self.layout.name);
            let before = found.iter().any(|(_, id, ..)| *id == rule.requirement.id);
            if about && !before && rule.broken.iter().all(|condition| self.holds(condition) == Some(true)) {
                let value = match rule.field {
                    PAYLOAD => self.packet.payload.len() as i128,
                    field => self.field(field).unwrap(),
                };
                found.push((index, rule.requirement.id, rule.field, value));
            }
        }
        found
    }
}

/// Returns pseudo-random numbers that are equal in each run.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Released versions with unchanged layouts as replacements, so that tables validate them instead of compiled checks.
static BY_TABLES: [Spec; 2] = [
    Spec::new("1.0.1 by tables", Version::V1_0_1).with_layouts(layout::ALL),
    Spec::new("1.0.3 by tables", Version::V1_0_3).with_layouts(layout::ALL),
];

#[test]
fn read_literally_the_rules_find_what_validation_finds() {
    let mut state = 7;
    let mut broken_once = vec![false; RULES.len()];
    let starts: Vec<Vec<u8>> =
        clean::clean().into_iter().chain(broken().into_iter().map(|(.., packet)| packet)).collect();
    for turn in 0..20_000 {
        // A mostly valid packet with up to two fields changed, and sometimes a byte added or removed.
        let mut bytes = starts[random(&mut state) as usize % starts.len()].clone();
        for _ in 0..random(&mut state) % 3 {
            let Ok(packet) = Uet::parse(&bytes) else { continue };
            let pds = packet.pds.map(|header| header.layout());
            let ses = packet.ses.map(|header| header.layout());
            let (layout, start) = match (pds, ses) {
                (Some(pds), Some(ses)) if random(&mut state) % 2 == 0 => (ses, pds.bytes),
                (Some(pds), _) => (pds, 0),
                (None, _) => continue,
            };
            let place = layout.places().nth(random(&mut state) as usize % layout.places().count()).unwrap();
            place.write(&mut bytes[start..], (random(&mut state) >> (random(&mut state) % 64)).into());
        }
        match random(&mut state) % 8 {
            0 => bytes.push(0),
            1 => _ = bytes.pop(),
            // Takes the bytes after the first header from another packet, with its `pds.next_hdr`.
            2 => {
                let other = &starts[random(&mut state) as usize % starts.len()];
                let end = |bytes: &[u8]| Uet::parse(bytes).ok()?.pds.map(|header| header.bytes().len());
                if let (Some(end), Some(start)) = (end(&bytes), end(other)) {
                    bytes.truncate(end);
                    bytes.extend_from_slice(&other[start..]);
                    let next = Request::LAYOUT.field("pds.next_hdr").unwrap();
                    next.write(&mut bytes, next.read(other).unwrap());
                }
            }
            _ => {}
        }
        let Ok(packet) = Uet::parse(&bytes) else { continue };
        for spec in &BY_TABLES {
            let compiled = packet.validate(spec.released());
            assert!(packet.validate(spec).eq(compiled), "turn {turn}, {spec}: {packet:?}");
        }
        let headers = [
            packet.tss.map(|header| (header.layout(), header.bytes())),
            packet.pds.map(|header| (header.layout(), header.bytes())),
            packet.ses.map(|header| (header.layout(), header.bytes())),
            packet.ext.map(|header| (header.layout(), header.bytes())),
        ];
        let all: Vec<_> = headers.into_iter().flatten().collect();
        let expected = all.iter().flat_map(|(layout, bytes)| {
            Reading { layout, bytes, packet: &packet, all: all.clone() }.findings()
        });
        let expected: Vec<_> = expected.collect();
        let is_ruled = |id: &str| RULES.iter().any(|rule| rule.requirement.id == id);
        let found = packet.validate(Version::V1_0_3).filter(|finding| is_ruled(finding.requirement.id));
        let found: Vec<_> =
            found.map(|finding| (finding.requirement.id, finding.field, finding.value)).collect();
        let values = |value: i128| value as u64 as u128;
        let named: Vec<_> =
            expected.iter().map(|(_, id, field, value)| (*id, *field, values(*value))).collect();
        assert_eq!(found, named, "turn {turn}: {packet:?}");
        expected.iter().for_each(|(rule, ..)| broken_once[*rule] = true);
    }
    for (rule, broken) in RULES.iter().zip(broken_once) {
        let around = rule.headers.iter().all(|header| ["ipv4", "udp"].contains(&header.name));
        assert!(around || broken, "{}, {:?}: never broken", rule.requirement.id, rule.broken);
    }
}
