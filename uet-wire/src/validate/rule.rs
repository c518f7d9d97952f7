//! The form of a rule. It is data, so that whoever judges packets elsewhere can be generated from it: the
//! Wireshark dissector is.

use crate::bits;
use crate::catalogue::Requirement;
use crate::layout::{Kind, Layout, Place, Values, same};
use crate::{Spec, Uet, validate::Finding};

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

/// The packet that a header under judgement stands in.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(super) packet: Uet<'a>,
    /// Nothing was cut from it.
    pub(super) whole: bool,
    /// The version of the specification.
    pub(super) spec: &'static Spec,
}

impl Rule {
    pub(super) const fn is_about(headers: &[&Layout], layout: &Layout) -> bool {
        let mut i = 0;
        while i < headers.len() {
            if same(headers[i].name, layout.name) {
                return true;
            }
            i += 1;
        }
        false
    }

    /// Whether a header breaks the rule, by the tables.
    pub(super) fn is_broken(&self, layout: &'static Layout, header: &[u8], around: &Around<'_>) -> bool {
        Self::is_about(self.headers, layout)
            && self.broken.iter().all(|condition| condition.of(layout).holds(header, around))
    }

    /// The finding in a header that breaks the rule; none where the field that is wrong is not there.
    pub(super) fn finding(
        &self,
        layout: &'static Layout,
        header: &[u8],
        around: &Around<'_>,
    ) -> Option<Finding> {
        let value = match self.field {
            PAYLOAD => around.packet.payload.len() as u64,
            field => Source::of(field, layout).read(header, around)? as u64,
        };
        Some(Finding { requirement: self.requirement, field: self.field, value: value.into(), bits: None })
    }
}

/// Where a field is, from a header of a known kind.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Here(Slot),
    /// In a header before.
    Before(&'static str),
}

/// Where the bits of a field of up to 64 bits are.
#[derive(Clone, Copy)]
pub(super) struct Slot {
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
        Slot { lo: place.lo(), hi: place.hi(), signed: matches!(place.row.kind, Kind::Int), when }
    }

    /// The value of the field where there is one. 64 bits are bits and no number.
    #[inline(always)]
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

impl Source {
    const fn of(field: &'static str, layout: &'static Layout) -> Self {
        let mut i = 0;
        while i < layout.places.len() {
            if same(layout.places[i].row.name, field) {
                return Source::Here(Slot::of(&layout.places[i]));
            }
            i += 1;
        }
        Source::Before(field)
    }

    #[inline(always)]
    fn read(&self, header: &[u8], around: &Around<'_>) -> Option<i64> {
        match self {
            Source::Here(slot) => slot.read(header),
            Source::Before(field) => around.find(field),
        }
    }
}

impl Around<'_> {
    #[cold]
    fn find(&self, field: &str) -> Option<i64> {
        let mut headers = self.packet.headers().into_iter().flatten();
        headers.find_map(|(layout, bytes)| Slot::of(&self.spec.layout(layout).field(field)?).read(bytes))
    }
}

impl Condition {
    /// The condition for a header with this layout.
    pub(super) const fn of(self, layout: &'static Layout) -> Condition<Source> {
        match self {
            Condition::In(field, values) => Condition::In(Source::of(field, layout), values),
            Condition::Bits(field, bits) => Condition::Bits(Source::of(field, layout), bits),
            Condition::Is(a, relation, b) => Condition::Is(a.of(layout), relation, b.of(layout)),
            Condition::Whole => Condition::Whole,
        }
    }
}

impl Quantity {
    const fn of(self, layout: &'static Layout) -> Quantity<Source> {
        match self {
            Quantity::Field(field) => Quantity::Field(Source::of(field, layout)),
            Quantity::Sum(a, b) => Quantity::Sum(Source::of(a, layout), Source::of(b, layout)),
            Quantity::Payload => Quantity::Payload,
            Quantity::Number(number) => Quantity::Number(number),
        }
    }
}

impl Condition<Source> {
    #[inline(always)]
    pub(super) fn holds(&self, header: &[u8], around: &Around<'_>) -> bool {
        match self {
            Condition::In(field, values) => {
                field.read(header, around).is_some_and(|value| values.contains(value as u128))
            }
            Condition::Bits(field, bits) => {
                field.read(header, around).is_some_and(|value| value as u64 & bits != 0)
            }
            Condition::Is(a, relation, b) => match (a.read(header, around), b.read(header, around)) {
                (Some(a), Some(b)) => match relation {
                    Relation::Equals => a == b,
                    Relation::Differs => a != b,
                    Relation::Above => a > b,
                    Relation::AtLeast => a >= b,
                },
                _ => false,
            },
            Condition::Whole => around.whole,
        }
    }
}

impl Quantity<Source> {
    #[inline(always)]
    fn read(&self, header: &[u8], around: &Around<'_>) -> Option<i64> {
        match self {
            Quantity::Field(field) => field.read(header, around),
            Quantity::Sum(a, b) => a.read(header, around)?.checked_add(b.read(header, around)?),
            Quantity::Payload => Some(around.packet.payload.len() as i64),
            Quantity::Number(number) => Some(*number),
        }
    }
}
