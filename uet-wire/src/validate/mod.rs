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
use crate::layout::{Kind, Layout, same};
use crate::registry::Status;
use crate::{Packet, Spec, Uet};
use core::fmt;
pub(crate) use rule::Around;
pub(crate) use rules::{broken_by, may_follow};

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
            None => write!(f, " is {value}")?,
        }
        write!(f, ". {}", requirement.sentence)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { requirement, field, value, bits } = self;
        write!(f, "{} {}: {field}", requirement.id, self.severity().name())?;
        match bits {
            Some((bit, width)) => write!(f, " has reserved bits set ({width} at bit {bit} are {value:#x})")?,
            None => write!(f, " is {value}")?,
        }
        write!(f, ": {}", requirement.sentence)
    }
}

impl<'a> Uet<'a> {
    /// Returns the requirements of a version of the specification that this packet breaks. Assumes a complete packet;
    /// see [`Packet::validate`].
    pub fn validate(&self, spec: impl Into<&'static Spec>) -> impl Iterator<Item = Finding> + Clone {
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

    /// Returns true if the compiled checks find nothing.
    #[inline]
    fn is_sound(&self, spec: &Spec, around: &Around<'_>) -> bool {
        self.is_clean(spec) && broken_by(self, around) == 0
    }
}

/// A header and the rules that it breaks: bit `i` represents `RULES[i]`.
type Judgment<'a> = (&'static Layout, &'a [u8], u64);

fn findings<'a>(
    packet: &Uet<'a>,
    spec: &'static Spec,
    whole: bool,
) -> impl Iterator<Item = Finding> + Clone + 'a {
    let around = Around { packet: *packet, whole, spec };
    let sound = packet.tss.is_none_or(|tss| tss.is_sound(spec, &around))
        && packet.pds.is_none_or(|pds| pds.is_sound(spec, &around))
        && packet.ses.is_none_or(|ses| ses.is_sound(spec, &around))
        && packet.ext.is_none_or(|ext| ext.is_sound(spec, &around));
    // Most packets are sound. Only the others need a walk through the tables.
    let headers = if sound { [None; 4] } else { judged(&around) };
    let headers = headers.into_iter().flatten();
    let alone = headers.clone().flat_map(move |(layout, bytes, _)| alone(layout, bytes, spec));
    alone.chain(headers.flat_map(move |judgment| broken(judgment, around)))
}

#[cold]
fn judged<'a>(around: &Around<'a>) -> [Option<Judgment<'a>>; 4] {
    let Uet { tss, pds, ses, ext, .. } = around.packet;
    [
        tss.map(|header| of_spec(header.layout(), header.bytes(), header.broken(around), around)),
        pds.map(|header| of_spec(header.layout(), header.bytes(), header.broken(around), around)),
        ses.map(|header| of_spec(header.layout(), header.bytes(), header.broken(around), around)),
        ext.map(|header| of_spec(header.layout(), header.bytes(), header.broken(around), around)),
    ]
}

/// Validates a header against its version. `compiled` has a bit for each of [`RULES`] that the compiled checks find
/// broken.
fn of_spec<'a>(layout: &'static Layout, bytes: &'a [u8], compiled: u64, around: &Around<'_>) -> Judgment<'a> {
    let spec = around.spec;
    if spec.is_compiled {
        return (layout, bytes, compiled);
    }
    let own = spec.revised(layout);
    let is_broken = |index: usize, rule: &Rule| match own {
        None => compiled >> index & 1 == 1,
        Some(own) => rule.is_broken(own, bytes, around),
    };
    let broken = RULES.iter().enumerate().filter(|(index, rule)| spec.keeps(rule) && is_broken(*index, rule));
    (own.unwrap_or(layout), bytes, broken.fold(0, |broken, (index, _)| broken | 1 << index))
}

/// Returns the fields that are invalid by themselves: reserved bits that are set, code points that are not assigned.
fn alone(
    layout: &'static Layout,
    header: &[u8],
    spec: &'static Spec,
) -> impl Iterator<Item = Finding> + Clone {
    layout.present(header).filter_map(move |(place, value)| {
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
    })
}

/// Returns the findings of the set rule bits and of the version's own rules. If several rules of a requirement are
/// broken, returns only the first finding.
fn broken<'a>(
    (layout, header, mut rules): Judgment<'a>,
    around: Around<'a>,
) -> impl Iterator<Item = Finding> + Clone + 'a {
    let mut found = None;
    let mut own = around.spec.own_rules().iter();
    let broken = core::iter::from_fn(move || match RULES.get(rules.trailing_zeros() as usize) {
        Some(rule) => {
            rules &= rules - 1;
            Some(rule)
        }
        None => own.find(|rule| rule.is_broken(layout, header, &around)),
    });
    broken.filter_map(move |rule| {
        let id = Some(rule.requirement.id);
        let finding = if found == id { None } else { rule.finding(layout, header, &around) };
        if finding.is_some() {
            found = id;
        }
        finding
    })
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
}
