//! The form of a rule. Rules are data, so other validators can be generated from them, such as the Wireshark dissector.

use crate::bits;
use crate::catalogue::Requirement;
use crate::layout::{Kind, Layout, Place, Values, same};
use crate::{Spec, Uet};

/// A combination of conditions under which a header breaks a requirement.
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
    /// The broken requirement.
    pub requirement: &'static Requirement,
    /// The headers that can break it.
    pub headers: &'static [&'static Layout],
    /// The field at fault, or [`PAYLOAD`].
    pub field: &'static str,
    /// The requirement is broken if all of these hold. Conditions on absent fields do not hold.
    pub broken: &'static [Condition],
}

/// The name of the payload, in place of a field name.
pub const PAYLOAD: &str = "payload";

/// A condition on a packet. `F` identifies a field, by default by its canonical name. The field is in the validated
/// header or in an earlier one.
#[derive(Clone, Copy, Debug)]
pub enum Condition<F = &'static str> {
    /// The field has one of these values.
    In(F, Values),
    /// One of these bits of the field is set.
    Bits(F, u64),
    /// The comparison of the two quantities holds.
    Is(Quantity<F>, Relation, Quantity<F>),
    /// The packet is complete.
    Whole,
}

/// A number in a packet.
#[derive(Clone, Copy, Debug)]
pub enum Quantity<F = &'static str> {
    /// The value of a field.
    Field(F),
    /// The sum of two fields.
    Sum(F, F),
    /// The number of bytes of payload.
    Payload,
    /// A constant.
    Number(i64),
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The numbers are equal.
    Equals,
    /// The numbers differ.
    Differs,
    /// The first number is greater.
    Above,
    /// The first number is greater or equal.
    AtLeast,
}

/// The packet around the validated header.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(super) packet: Uet<'a>,
    /// True if the packet is complete.
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

    /// Returns true if the header breaks the rule according to the tables.
    pub(super) fn is_broken(&self, layout: &'static Layout, header: &[u8], around: &Around<'_>) -> bool {
        Self::is_about(self.headers, layout)
            && self.broken.iter().all(|condition| condition.of(layout).holds(header, around))
    }

    /// Returns the value at fault in a header that breaks the rule, or `None` if the field is absent.
    pub(super) fn at_fault(
        &self,
        layout: &'static Layout,
        header: &[u8],
        around: &Around<'_>,
    ) -> Option<i64> {
        Quantity::at_fault(self.field).of(layout).read(header, around)
    }
}

/// The location of a field, as seen from a header with a known layout.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Here(Slot),
    /// In an earlier header.
    Before(&'static str),
}

/// The location of a field of up to 64 bits.
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

    /// Returns the value of the field if it is present. Fields of 64 bits hold bits, not numbers.
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

impl<'a> Around<'a> {
    /// Returns the layout in this version and the bytes of the header with this index.
    pub(super) fn header(&self, index: usize) -> Option<(&'static Layout, &'a [u8])> {
        let (layout, bytes) = self.packet.header(index)?;
        Some((self.spec.layout(layout), bytes))
    }

    /// Returns the value that breaks the rule with this index of [`RULES`](super::RULES), in the header with this index.
    pub(super) fn at_fault(&self, header: usize, rule: usize) -> Option<i64> {
        match header {
            0 => self.packet.tss?.at_fault(rule, self),
            1 => self.packet.pds?.at_fault(rule, self),
            2 => self.packet.ses?.at_fault(rule, self),
            _ => self.packet.ext?.at_fault(rule, self),
        }
    }

    #[cold]
    fn find(&self, field: &str) -> Option<i64> {
        let mut headers = self.packet.headers().into_iter().flatten();
        headers.find_map(|(layout, bytes)| Slot::of(&self.spec.layout(layout).field(field)?).read(bytes))
    }
}

impl Condition {
    /// Returns the condition for a header with this layout.
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
    /// Returns the quantity that a rule names as the field at fault.
    pub(super) const fn at_fault(field: &'static str) -> Self {
        if same(field, PAYLOAD) { Quantity::Payload } else { Quantity::Field(field) }
    }

    pub(super) const fn of(self, layout: &'static Layout) -> Quantity<Source> {
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
    pub(super) fn read(&self, header: &[u8], around: &Around<'_>) -> Option<i64> {
        match self {
            Quantity::Field(field) => field.read(header, around),
            Quantity::Sum(a, b) => a.read(header, around)?.checked_add(b.read(header, around)?),
            Quantity::Payload => Some(around.packet.payload.len() as i64),
            Quantity::Number(number) => Some(*number),
        }
    }
}
