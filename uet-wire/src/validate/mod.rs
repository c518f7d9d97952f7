//! Validates a single packet against the specification.
//!
//! Parsing accepts every packet with valid lengths; validation is separate. It returns a [`Finding`] for each broken
//! requirement of the [catalog](crate::catalogue). The checks are data: reserved rows of the layouts, the registries,
//! and the [`RULES`]. Only the checksums need functions.
//!
//! ```
//! use uet_wire::{Uet, Version};
//!
//! // A NACK with code 0x03, which version 1.0.3 removed.
//! let nack = [0x50, 0, 3, 0, 0, 0, 1, 0x4d, 0x80, 1, 0x40, 1, 0, 0, 0, 0];
//! let packet = Uet::parse(&nack)?;
//! let finding = packet.validate(Version::V1_0_3).next().unwrap();
//! assert_eq!(finding.requirement.id, "WIRE-NACK-001");
//! assert_eq!((finding.field, finding.value), ("pds.nack_code", 3));
//! assert_eq!(packet.validate(Version::V1_0_1).count(), 0);
//! # Ok::<(), uet_wire::ParseError>(())
//! ```

mod outer;
mod rule;
mod rules;

pub use rule::{Condition, PAYLOAD, Quantity, Relation, Rule};
pub use rules::RULES;

use crate::catalogue::{self as c, Level, Requirement};
use crate::layout::{Kind, Layout, Place, same};
use crate::registry::Status;
use crate::{Packet, Spec, Uet};
use core::fmt;
pub(crate) use rule::Around;
pub(crate) use rules::{at_fault, broken_by, may_follow};

/// A requirement that a packet breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The broken requirement.
    pub requirement: &'static Requirement,
    /// The field at fault, or the header for reserved bits.
    pub field: &'static str,
    /// The field's value.
    pub value: u128,
    /// The position of reserved bits in the header: first bit and width.
    pub bits: Option<(usize, usize)>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// An unusual packet.
    Note,
    /// The packet breaks a requirement of level `should`.
    Warning,
    /// The packet breaks a requirement of level `must`.
    Error,
}

impl Severity {
    /// Returns the severity for a requirement of this level.
    pub const fn of(level: Level) -> Self {
        match level {
            Level::Must => Severity::Error,
            Level::Should => Severity::Warning,
            Level::May => Severity::Note,
        }
    }

    /// Returns `error`, `warning` or `note`.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl Finding {
    fn of(rule: &Rule, value: i64) -> Self {
        Finding { requirement: rule.requirement, field: rule.field, value: (value as u64).into(), bits: None }
    }

    /// Returns the severity, which depends on the level of the requirement.
    pub const fn severity(&self) -> Severity {
        Severity::of(self.requirement.level)
    }

    /// Displays field, value and the sentence of the requirement, without identifier and severity.
    pub fn detail(&self) -> impl fmt::Display + '_ {
        Detail(self)
    }
}

/// Displays a finding without its identifier and severity.
struct Detail<'a>(&'a Finding);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { requirement, field, value, bits } = self.0;
        f.write_str(field)?;
        match bits {
            Some((bit, width)) => write!(f, ", {width} reserved bits at bit {bit} are {value:#x}")?,
            None => shown(f, field, *value)?,
        }
        write!(f, ". {}", requirement.sentence)
    }
}

/// Writes the value of a field. Everybody else writes a CRC with hexadecimal digits.
fn shown(f: &mut fmt::Formatter<'_>, field: &str, value: u128) -> fmt::Result {
    if field == "crc" { write!(f, " is {value:#010x}") } else { write!(f, " is {value}") }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { requirement, field, value, bits } = self;
        write!(f, "{} {}: {field}", requirement.id, self.severity().name())?;
        match bits {
            Some((bit, width)) => write!(f, " has reserved bits set ({width} at bit {bit} are {value:#x})")?,
            None => shown(f, field, *value)?,
        }
        write!(f, ": {}", requirement.sentence)
    }
}

impl<'a> Uet<'a> {
    /// Returns the requirements of a version of the specification that this packet breaks. Assumes a complete packet;
    /// see [`Packet::validate`].
    pub fn validate<S: Into<&'static Spec>>(
        &self,
        spec: S,
    ) -> impl Iterator<Item = Finding> + Clone + use<'a, S> {
        findings(self, spec.into(), true)
    }
}

impl<'a> Packet<'a> {
    /// Returns the requirements of a version of the specification that this packet breaks. Includes the layers around
    /// UET and the CRC. Ignores lengths that a switch or the capture truncated.
    pub fn validate(&self, spec: impl Into<&'static Spec>) -> impl Iterator<Item = Finding> + Clone {
        let spec = spec.into();
        let whole = self.trimmed.is_none() && self.sliced.is_none() && self.cut.is_none();
        let is_uet = self.content == crate::Content::Uet;
        let around = is_uet.then(|| outer::findings(self, spec));
        around.into_iter().flatten().chain(findings(&self.uet, spec, whole))
    }
}

/// A header that can be validated.
pub(crate) trait Judged: Sized {
    const LAYOUT: &'static Layout;

    fn bytes(&self) -> &[u8];
    fn is_clean(&self, spec: &Spec) -> bool;

    /// Returns the faults that the compiled checks find.
    #[inline]
    fn faults(&self, around: &Around<'_>) -> Faults {
        broken_by(self, around) | if self.is_clean(around.spec) { 0 } else { UNCLEAN }
    }
}

/// The faults of a header, one bit each: bit `i` represents `RULES[i]`.
pub(crate) type Faults = u64;

/// Some fields are invalid by themselves.
const UNCLEAN: Faults = 1 << 63;
/// The header may break rules that only its version has.
const OWN_RULES: Faults = 1 << 62;
const _: () = assert!(RULES.len() <= 62, "a bit for each rule");

fn findings<'a>(packet: &Uet<'a>, spec: &'static Spec, whole: bool) -> Findings<'a> {
    let around = Around { packet: *packet, whole, spec };
    let mut faults = [
        packet.tss.map_or(0, |header| header.faults(&around)),
        packet.pds.map_or(0, |header| header.faults(&around)),
        packet.ses.map_or(0, |header| header.faults(&around)),
        packet.ext.map_or(0, |header| header.faults(&around)),
    ];
    if !spec.is_compiled {
        for (faults, header) in faults.iter_mut().zip(packet.headers()) {
            *faults = header.map_or(0, |(layout, bytes)| judged(layout, bytes, *faults, &around));
        }
    }
    Findings { around, headers: faults.map(Remaining::of) }
}

/// Returns the faults of a header in its version, after the compiled checks have found `compiled`.
fn judged(layout: &Layout, bytes: &[u8], compiled: Faults, around: &Around<'_>) -> Faults {
    let spec = around.spec;
    if spec.is_compiled {
        return compiled;
    }
    let own = spec.revised(layout);
    let is_broken = |index: usize, rule: &Rule| match own {
        None => compiled >> index & 1 == 1,
        Some(own) => rule.is_broken(own, bytes, around),
    };
    let broken = RULES.iter().enumerate().filter(|(index, rule)| spec.keeps(rule) && is_broken(*index, rule));
    broken.fold(UNCLEAN | OWN_RULES, |faults, (index, _)| faults | 1 << index)
}

/// The findings in the headers of a packet: first the fields that are invalid by themselves, then the broken rules.
#[derive(Clone)]
struct Findings<'a> {
    around: Around<'a>,
    headers: [Remaining; 4],
}

impl Iterator for Findings<'_> {
    type Item = Finding;

    #[inline]
    fn next(&mut self) -> Option<Finding> {
        // Most packets are sound. Only the others need the tables.
        let faults = self.headers.iter().fold(0, |faults, header| faults | header.faults);
        if faults == 0 { None } else { self.remaining(faults & UNCLEAN != 0) }
    }
}

impl Findings<'_> {
    #[cold]
    fn remaining(&mut self, unclean: bool) -> Option<Finding> {
        let Findings { around, headers } = self;
        if unclean {
            for (index, header) in headers.iter_mut().enumerate() {
                let finding = around
                    .header(index)
                    .and_then(|(layout, bytes)| header.next_field(layout, bytes, around.spec));
                if finding.is_some() {
                    return finding;
                }
            }
        }
        for (index, header) in headers.iter_mut().enumerate().filter(|(_, header)| header.faults != 0) {
            let finding = if around.spec.is_compiled {
                header.next_broken(|rule, _| around.at_fault(index, rule))
            } else {
                around.header(index).and_then(|(layout, bytes)| header.next_rule(layout, bytes, around))
            };
            if finding.is_some() {
                return finding;
            }
        }
        None
    }
}

/// The faults of a header that are still to be reported.
#[derive(Clone)]
struct Remaining {
    faults: Faults,
    /// The number of places that are done, then of rules that only this version has.
    done: usize,
    /// The requirement of the last broken rule.
    reported: Option<&'static Requirement>,
}

impl Remaining {
    const fn of(faults: Faults) -> Self {
        Remaining { faults, done: 0, reported: None }
    }

    /// Returns the next field that is invalid by itself: reserved bits that are set, a code point that is not assigned.
    fn next_field(&mut self, layout: &'static Layout, header: &[u8], spec: &Spec) -> Option<Finding> {
        while self.faults & UNCLEAN != 0 {
            let Some(place) = layout.places.get(self.done) else {
                (self.faults, self.done) = (self.faults & !UNCLEAN, 0);
                break;
            };
            self.done += 1;
            let finding = alone(layout, place, header, spec);
            if finding.is_some() {
                return finding;
            }
        }
        None
    }

    /// Returns the finding of the next broken rule, including rules that only this version has.
    fn next_rule(&mut self, layout: &'static Layout, header: &[u8], around: &Around<'_>) -> Option<Finding> {
        let value = |rule: &Rule| rule.at_fault(layout, header, around);
        let mut finding = self.next_broken(|_, rule| value(rule));
        while finding.is_none() {
            let Some(rule) = around.spec.own_rules().get(self.done) else {
                self.faults = 0;
                break;
            };
            self.done += 1;
            let is_new = self.reported.is_none_or(|reported| reported.id != rule.requirement.id);
            if is_new && rule.is_broken(layout, header, around) {
                finding = value(rule).map(|value| Finding::of(rule, value));
            }
        }
        self.reported = finding.map(|finding| finding.requirement).or(self.reported);
        finding
    }

    /// Returns the finding of the next broken rule of [`RULES`]. `value` returns the value at fault.
    fn next_broken(&mut self, value: impl Fn(usize, &'static Rule) -> Option<i64>) -> Option<Finding> {
        loop {
            let index = self.faults.trailing_zeros() as usize;
            let rule = RULES.get(index)?;
            self.faults &= self.faults - 1;
            if let Some(value) = value(index, rule) {
                self.faults &= !ALTERNATIVES[index];
                return Some(Finding::of(rule, value));
            }
        }
    }
}

/// For each of [`RULES`], the later rules of its requirement, as bits. If a header breaks several of them, only the first
/// counts.
static ALTERNATIVES: [Faults; RULES.len()] = {
    let mut alternatives = [0; RULES.len()];
    let mut i = RULES.len() - 1;
    while i > 0 {
        i -= 1;
        if same(RULES[i].requirement.id, RULES[i + 1].requirement.id) {
            alternatives[i] = alternatives[i + 1] | 1 << (i + 1);
        }
    }
    alternatives
};

/// Returns the finding for a field that is invalid by itself: reserved bits that are set, a code point that is not
/// assigned.
fn alone(layout: &Layout, place: &Place, header: &[u8], spec: &Spec) -> Option<Finding> {
    let value = if place.exists(header) { place.read(header)? } else { return None };
    let (requirement, field, bits) = match place.row.kind {
        Kind::Code(registry) => match spec.status(registry, value as u8) {
            Status::Assigned | Status::Vendor => return None,
            Status::Reserved | Status::OtherVersion => (assigned(place.row.name)?, place.row.name, None),
        },
        Kind::Reserved if value != 0 => {
            (c::WIRE_RSVD_001, layout.name, Some((place.lo(), place.row.width())))
        }
        _ => return None,
    };
    Some(Finding { requirement, field, value, bits })
}

/// Returns the requirement that limits this field to assigned code points.
pub const fn assigned(field: &str) -> Option<&'static Requirement> {
    let mut i = 0;
    while i < ASSIGNED.len() {
        if same(ASSIGNED[i].0, field) {
            return Some(ASSIGNED[i].1);
        }
        i += 1;
    }
    None
}

/// The requirements that limit fields to assigned code points.
const ASSIGNED: &[(&str, &Requirement)] = &[
    ("pds.type", c::WIRE_TYPE_001),
    ("pds.next_hdr", c::WIRE_NEXT_001),
    ("pds.ctl_type", c::WIRE_CTL_001),
    ("pds.flags.req", c::WIRE_ACK_001),
    ("pds.cc_type", c::WIRE_CC_001),
    ("pds.ccx_type", c::WIRE_CC_001),
    ("pds.nccx_type", c::WIRE_CC_001),
    ("pds.nack_code", c::WIRE_NACK_001),
    ("ses.opcode", c::WIRE_SES_002),
    ("ses.return_code", c::WIRE_SES_011),
    ("ses.atomic_opcode", c::WIRE_AMO_001),
    ("ses.atomic_datatype", c::WIRE_AMO_002),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_of_some_fields_have_to_be_assigned_ones() {
        assert!(assigned("pds.nack_code").is_some());
        assert!(assigned("pds.psn").is_none());
    }

    #[test]
    fn each_header_with_next_hdr_says_what_may_follow() {
        use crate::pds::{Pds, Prologue};
        // Nothing is known of what follows the header of a reserved type.
        let known = Pds::TABLE.iter().filter(|(_, layout)| *layout != Prologue::LAYOUT);
        for (codes, layout) in known {
            for code in *codes {
                let some_may = rules::may_follow(*code) != crate::layout::Values(0);
                assert_eq!(some_may, layout.field("pds.next_hdr").is_some(), "may_follow: {code}");
            }
        }
    }
}
