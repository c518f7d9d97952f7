//! The form of a rule. It is data, so that whoever judges packets elsewhere can be generated from it: the
//! Wireshark dissector is.

use super::Finding;
use crate::Version;
use crate::bits;
use crate::catalogue::{self as c, Requirement};
use crate::layout::{Kind, Layout, Place, Values, same};
use crate::registry::Status;

/// A way in which a header breaks a requirement.
///
/// ```
/// use uet_wire::validate::RULES;
///
/// let rule = RULES.iter().find(|rule| rule.requirement.id == "WIRE-CLEAR-001").unwrap();
/// assert_eq!(rule.field, "pds.clear_psn_offset");
/// assert_eq!(rule.headers.iter().map(|header| header.name).collect::<Vec<_>>(), ["request", "request_cc"]);
/// println!("broken when {:?}", rule.broken);
/// ```
#[derive(Debug)]
pub struct Rule {
    /// What is required.
    pub requirement: &'static Requirement,
    /// The headers that can break it.
    pub headers: &'static [&'static Layout],
    /// What is wrong then: a field, or [`PAYLOAD`].
    pub field: &'static str,
    /// The requirement is broken when all of these hold. None holds of a field that is not there.
    pub broken: &'static [Condition],
}

/// The name of the payload where a field's could stand.
pub const PAYLOAD: &str = "payload";

/// Something that may hold of a packet. `F` is how a field is given: by its canonical name, of the header judged
/// or of one before it.
#[derive(Clone, Copy, Debug)]
pub enum Condition<F = &'static str> {
    /// The field has one of these values.
    In(F, Values),
    /// One of these bits of the field is set.
    Bits(F, u64),
    /// The two compare so.
    Is(Quantity<F>, Relation, Quantity<F>),
    /// Nothing was cut from the packet.
    Whole,
}

/// A number that a packet says.
#[derive(Clone, Copy, Debug)]
pub enum Quantity<F = &'static str> {
    /// The value of a field.
    Field(F),
    /// The sum of two.
    Sum(F, F),
    /// The number of bytes of payload.
    Payload,
    /// This number.
    Number(i64),
}

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are the same.
    Equals,
    /// They are not.
    Differs,
    /// The first is the greater one.
    Above,
    /// The first is not the smaller one.
    AtLeast,
}

/// What there is to judge in a header: made once for each, at compile time, so that nothing is looked up by name
/// when a packet comes.
pub(super) struct Judged {
    /// Reserved bits and code points.
    pub(super) alone: &'static [(&'static Place, &'static Requirement)],
    /// The fields that the rules ask for.
    pub(super) fields: [Source; FIELDS],
    pub(super) rules: &'static [Resolved],
}

/// The [`Judged`] of the header with this layout.
macro_rules! judged {
    ($layout:expr) => {
        const {
            use $crate::validate::rule::*;
            &Judged {
                alone: &alone::<{ count_alone($layout) }>($layout),
                fields: fields($layout),
                rules: &rules::<{ count($layout) }>($layout),
            }
        }
    };
}
pub(super) use judged;

/// A rule, for one header: fields are given by their place among [`Judged::fields`].
#[derive(Clone, Copy)]
pub(super) struct Resolved {
    requirement: &'static Requirement,
    field: &'static str,
    /// `None` for the payload.
    value: Option<usize>,
    broken: [Option<Condition<usize>>; CONDITIONS],
    /// The rule before is of the same requirement: when that is broken, this is not asked.
    or_else: bool,
}

// The most that there are; more stop the build.
const CONDITIONS: usize = 6;
const FIELDS: usize = 12;

/// Where the bits of a field of up to 64 bits are. What a [`Place`] says, closer together.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    name: &'static str,
    lo: usize,
    hi: usize,
    signed: bool,
    when: Option<(usize, usize, Values)>,
}

impl Slot {
    const fn of(place: &Place) -> Self {
        let when = match (place.row.when, place.deciding) {
            (Some(when), (lo, hi)) => Some((lo, hi, when.values)),
            (None, _) => None,
        };
        let signed = matches!(place.row.kind, Kind::Int);
        Slot { name: place.row.name, lo: place.lo(), hi: place.hi(), signed, when }
    }

    /// The value of the field where there is one. 64 bits are bits and no number.
    #[inline]
    fn read(&self, header: &[u8]) -> Option<i64> {
        if let Some((lo, hi, values)) = self.when {
            if !values.contains(bits::get_slice(header, lo, hi)?) {
                return None;
            }
        }
        let value = bits::get_slice(header, self.lo, self.hi)? as i64;
        let above = 64 - (self.hi - self.lo).min(64);
        Some(if self.signed { value << above >> above } else { value })
    }
}

/// Where a field is.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Here(Slot),
    /// In a header before.
    Before(&'static str),
    /// There is no field.
    Nowhere,
}

const fn is_about(rule: &Rule, layout: &Layout) -> bool {
    let mut i = 0;
    while i < rule.headers.len() {
        if same(rule.headers[i].name, layout.name) {
            return true;
        }
        i += 1;
    }
    false
}

pub(super) const fn count(layout: &Layout) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < super::RULES.len() {
        count += is_about(&super::RULES[i], layout) as usize;
        i += 1;
    }
    count
}

pub(super) const fn rules<const N: usize>(layout: &'static Layout) -> [Resolved; N] {
    let fields = fields(layout);
    let (requirement, broken) = (c::WIRE_RSVD_001, [None; CONDITIONS]);
    let mut all = [Resolved { requirement, field: "", value: None, broken, or_else: false }; N];
    let (mut end, mut i) = (0, 0);
    while i < super::RULES.len() {
        let Rule { requirement, field, broken, .. } = super::RULES[i];
        if is_about(&super::RULES[i], layout) {
            all[end].or_else = end > 0 && same(all[end - 1].requirement.id, requirement.id);
            (all[end].requirement, all[end].field) = (requirement, field);
            all[end].value = if same(field, PAYLOAD) { None } else { Some(index(&fields, field)) };
            let mut j = 0;
            while j < broken.len() {
                all[end].broken[j] = Some(resolved(&fields, broken[j]));
                j += 1;
            }
            end += 1;
        }
        i += 1;
    }
    all
}

const fn resolved(fields: &[Source], condition: Condition) -> Condition<usize> {
    match condition {
        Condition::In(name, values) => Condition::In(index(fields, name), values),
        Condition::Bits(name, bits) => Condition::Bits(index(fields, name), bits),
        Condition::Is(a, relation, b) => Condition::Is(quantity(fields, a), relation, quantity(fields, b)),
        Condition::Whole => Condition::Whole,
    }
}

const fn quantity(fields: &[Source], quantity: Quantity) -> Quantity<usize> {
    match quantity {
        Quantity::Field(name) => Quantity::Field(index(fields, name)),
        Quantity::Sum(a, b) => Quantity::Sum(index(fields, a), index(fields, b)),
        Quantity::Payload => Quantity::Payload,
        Quantity::Number(number) => Quantity::Number(number),
    }
}

/// The place of a field; where it has none yet, the first that is free.
const fn index(fields: &[Source], name: &str) -> usize {
    let mut i = 0;
    loop {
        match fields[i] {
            Source::Here(slot) if same(slot.name, name) => return i,
            Source::Before(other) if same(other, name) => return i,
            Source::Nowhere => return i,
            _ => i += 1,
        }
    }
}

/// The fields that the rules of a header ask for.
pub(super) const fn fields(layout: &'static Layout) -> [Source; FIELDS] {
    let (mut all, mut i) = ([Source::Nowhere; FIELDS], 0);
    while i < super::RULES.len() {
        let Rule { field, broken, .. } = super::RULES[i];
        if is_about(&super::RULES[i], layout) {
            if !same(field, PAYLOAD) {
                all[index(&all, field)] = source(layout, field);
            }
            let mut j = 0;
            while j < broken.len() {
                let [a, b, c] = names(broken[j]);
                if let Some(name) = a {
                    all[index(&all, name)] = source(layout, name);
                }
                if let Some(name) = b {
                    all[index(&all, name)] = source(layout, name);
                }
                if let Some(name) = c {
                    all[index(&all, name)] = source(layout, name);
                }
                j += 1;
            }
        }
        i += 1;
    }
    all
}

/// The fields of a condition.
const fn names(condition: Condition) -> [Option<&'static str>; 3] {
    use Quantity::{Field, Sum};
    match condition {
        Condition::In(name, _) | Condition::Bits(name, _) => [Some(name), None, None],
        Condition::Is(Sum(a, b), _, Field(c)) => [Some(a), Some(b), Some(c)],
        Condition::Is(Sum(a, b), _, _) => [Some(a), Some(b), None],
        Condition::Is(Field(a), _, Field(b)) => [Some(a), Some(b), None],
        Condition::Is(Field(a), _, _) | Condition::Is(_, _, Field(a)) => [Some(a), None, None],
        Condition::Is(_, _, _) | Condition::Whole => [None; 3],
    }
}

const fn source(layout: &'static Layout, name: &'static str) -> Source {
    let mut i = 0;
    while i < layout.places.len() {
        if same(layout.places[i].row.name, name) {
            return Source::Here(Slot::of(&layout.places[i]));
        }
        i += 1;
    }
    Source::Before(name)
}

pub(super) const fn count_alone(layout: &Layout) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < layout.places.len() {
        count += requirement(&layout.places[i]).is_some() as usize;
        i += 1;
    }
    count
}

pub(super) const fn alone<const N: usize>(
    layout: &'static Layout,
) -> [(&'static Place, &'static Requirement); N] {
    let (mut all, mut end, mut i) = ([(&layout.places[0], c::WIRE_RSVD_001); N], 0, 0);
    while i < layout.places.len() {
        if let Some(requirement) = requirement(&layout.places[i]) {
            all[end] = (&layout.places[i], requirement);
            end += 1;
        }
        i += 1;
    }
    all
}

/// What a row by itself can break.
const fn requirement(place: &Place) -> Option<&'static Requirement> {
    match place.row.kind {
        Kind::Reserved => Some(c::WIRE_RSVD_001),
        Kind::Code(_) => super::assigned(place.row.name),
        _ => None,
    }
}

/// A header of a packet under judgement.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) layout: &'static Layout,
    pub(super) bytes: &'a [u8],
    pub(super) judged: &'static Judged,
}

/// The packet that it stands in.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) headers: [Option<Subject<'a>>; 4],
    pub(super) payload: usize,
    pub(super) whole: bool,
}

impl<'a> Subject<'a> {
    /// The fields that are wrong by themselves: reserved bits that are set, code points that are not assigned.
    pub(super) fn alone(self, version: Version) -> impl Iterator<Item = Finding> + Clone + 'a {
        self.judged.alone.iter().filter_map(move |(place, requirement)| {
            let value = self.read(place)?;
            let (field, bits) = match place.row.kind {
                Kind::Code(registry) => match registry.status(value as u8, version) {
                    Status::Assigned | Status::Vendor => return None,
                    Status::Reserved | Status::OtherVersion => (place.row.name, None),
                },
                _ if value == 0 => return None,
                _ => (self.layout.name, Some((place.lo(), place.row.width()))),
            };
            Some(Finding { requirement, field, value, bits })
        })
    }

    /// The rules that the header breaks; of the rules of one requirement, the first.
    pub(super) fn broken(self, around: Around<'a>) -> impl Iterator<Item = Finding> + Clone + 'a {
        let (said, mut found) = (self.said(&around), false);
        self.judged.rules.iter().filter_map(move |rule| {
            if !(rule.or_else && found) {
                found = said.breaks(rule);
                return if found { said.finding(rule) } else { None };
            }
            None
        })
    }

    fn said(&self, around: &Around<'_>) -> Said {
        let (mut values, mut present) = ([0; FIELDS], 0);
        for (index, (value, field)) in values.iter_mut().zip(&self.judged.fields).enumerate() {
            let said = match field {
                Source::Here(slot) => slot.read(self.bytes),
                Source::Before(name) => around.find(name),
                Source::Nowhere => break,
            };
            if let Some(said) = said {
                *value = said;
                present |= 1 << index;
            }
        }
        Said { values, present, payload: around.payload as i64, whole: around.whole }
    }

    #[inline]
    fn read(&self, place: &Place) -> Option<u128> {
        if place.exists(self.bytes) { place.read(self.bytes) } else { None }
    }
}

impl Around<'_> {
    fn find(&self, name: &str) -> Option<i64> {
        let mut headers = self.headers.iter().flatten();
        headers.find_map(|header| Slot::of(&header.layout.field(name)?).read(header.bytes))
    }
}

/// What the fields of a header say that its rules ask for.
#[derive(Clone)]
struct Said {
    values: [i64; FIELDS],
    /// Which of the fields there are: a bit for each.
    present: u32,
    payload: i64,
    whole: bool,
}

impl Said {
    #[inline]
    fn breaks(&self, rule: &Resolved) -> bool {
        rule.broken.iter().map_while(Option::as_ref).all(|condition| self.holds(condition))
    }

    fn finding(&self, rule: &Resolved) -> Option<Finding> {
        let value = match rule.value {
            Some(field) => self.value(field)?,
            None => self.payload,
        };
        let value = u128::from(value as u64);
        Some(Finding { requirement: rule.requirement, field: rule.field, value, bits: None })
    }

    #[inline]
    fn holds(&self, condition: &Condition<usize>) -> bool {
        match condition {
            Condition::In(field, values) => {
                self.value(*field).is_some_and(|value| values.contains(value as u128))
            }
            Condition::Bits(field, bits) => self.value(*field).is_some_and(|value| value as u64 & bits != 0),
            Condition::Is(a, relation, b) => match (self.quantity(a), self.quantity(b)) {
                (Some(a), Some(b)) => match relation {
                    Relation::Equals => a == b,
                    Relation::Differs => a != b,
                    Relation::Above => a > b,
                    Relation::AtLeast => a >= b,
                },
                _ => false,
            },
            Condition::Whole => self.whole,
        }
    }

    #[inline]
    fn quantity(&self, quantity: &Quantity<usize>) -> Option<i64> {
        match quantity {
            Quantity::Field(field) => self.value(*field),
            Quantity::Sum(a, b) => self.value(*a)?.checked_add(self.value(*b)?),
            Quantity::Payload => Some(self.payload),
            Quantity::Number(number) => Some(*number),
        }
    }

    #[inline]
    fn value(&self, field: usize) -> Option<i64> {
        let value = self.values.get(field)?;
        (self.present >> field & 1 == 1).then_some(*value)
    }
}
