//! What the specification forbids in a single packet.
//!
//! Parsing accepts whatever is well delimited; judging is a matter of its own. A rule is a function of a
//! packet that gives a [`Finding`] or not, one for each requirement of the [catalogue](crate::catalogue).
//!
//! ```
//! use uet_wire::{Uet, Version};
//!
//! // A NACK with code 0x03, which version 1.0.3 took out.
//! let nack = [0x50, 0, 3, 0, 0, 0, 1, 0x4d, 0x80, 1, 0x40, 1, 0, 0, 0, 0];
//! let packet = Uet::parse(&nack)?;
//! let finding = packet.validate(Version::V1_0_3).next().unwrap();
//! assert_eq!(finding.requirement.id, "WIRE-NACK-001");
//! assert_eq!((finding.field, finding.value), ("pds.nack_code", 3));
//! assert_eq!(packet.validate(Version::V1_0_1).count(), 0);
//! # Ok::<(), uet_wire::ParseError>(())
//! ```

mod outer;
mod pds;
mod ses;

use crate::catalogue::{self as c, Level, Requirement};
use crate::layout::{Kind, Layout, Place};
use crate::registry::Status;
use crate::{Packet, Uet, Version};
use core::fmt;

/// A requirement that a packet breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is required.
    pub requirement: &'static Requirement,
    /// The field that breaks it; for reserved bits, the header.
    pub field: &'static str,
    /// The field's value.
    pub value: u128,
    /// Where a run of reserved bits lies in the header: first bit and width.
    pub bits: Option<(usize, usize)>,
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Unusual.
    Note,
    /// A requirement of level `should` is broken.
    Warning,
    /// A requirement of level `must` is broken.
    Error,
}

impl Severity {
    /// `error`, `warning`, `note`.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl Finding {
    const fn new(requirement: &'static Requirement, field: &'static str, value: u128) -> Self {
        Finding { requirement, field, value, bits: None }
    }

    /// How grave it is, which the level of the requirement says.
    pub const fn severity(&self) -> Severity {
        match self.requirement.level {
            Level::Must => Severity::Error,
            Level::Should => Severity::Warning,
            Level::May => Severity::Note,
        }
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

/// A packet under judgement.
#[derive(Clone, Copy)]
struct Subject<'a> {
    packet: &'a Uet<'a>,
    version: Version,
    /// Nothing was cut from the payload: its length can be judged.
    whole: bool,
}

/// A rule of its own: at most one finding.
type Rule = fn(&Subject<'_>) -> Option<Finding>;

impl<'a> Uet<'a> {
    /// What `version` of the specification forbids in this packet. The packet is taken to be whole; see
    /// [`Packet::validate`].
    pub fn validate(&self, version: Version) -> impl Iterator<Item = Finding> + Clone {
        findings(Subject { packet: self, version, whole: true })
    }
}

impl<'a> Packet<'a> {
    /// What `version` of the specification forbids in this packet, the layers around UET and the CRC
    /// included. Lengths that a switch or the capture cut are not held against it.
    pub fn validate(&self, version: Version) -> impl Iterator<Item = Finding> + Clone {
        let whole = self.trimmed.is_none() && self.sliced.is_none() && self.cut.is_none();
        let is_uet = self.content == crate::Content::Uet;
        let around = outer::RULES.iter().filter_map(move |rule| if is_uet { rule(self) } else { None });
        around.chain(findings(Subject { packet: &self.uet, version, whole }))
    }
}

fn findings<'a>(subject: Subject<'a>) -> impl Iterator<Item = Finding> + Clone + 'a {
    let Subject { packet, version, .. } = subject;
    let headers = [
        packet.tss.filter(|tss| !tss.is_clean(version)).map(|header| (header.layout(), header.bytes())),
        packet.pds.filter(|pds| !pds.is_clean(version)).map(|header| (header.layout(), header.bytes())),
        packet.ses.filter(|ses| !ses.is_clean(version)).map(|header| (header.layout(), header.bytes())),
        packet.ext.filter(|ext| !ext.is_clean(version)).map(|header| (header.layout(), header.bytes())),
    ];
    let fields = headers.into_iter().flatten().flat_map(move |header| by_field(header, version));
    let rules = pds::RULES.iter().chain(ses::RULES);
    fields.chain(rules.filter_map(move |rule| rule(&subject)))
}

/// What is wrong with the fields of a header, each by itself.
fn by_field(
    (layout, bytes): (&'static Layout, &[u8]),
    version: Version,
) -> impl Iterator<Item = Finding> + Clone {
    layout.present(bytes).filter_map(move |(place, value)| field(layout, place, value, version))
}

/// What is wrong with a field by itself: reserved bits that are set, a code point that is not assigned.
fn field(layout: &'static Layout, place: Place, value: u128, version: Version) -> Option<Finding> {
    match place.row.kind {
        Kind::Reserved => reserved(layout, place, value),
        Kind::Code(registry) => match registry.status(value as u8, version) {
            Status::Reserved | Status::OtherVersion => {
                Some(Finding::new(assigned(place.row.name)?, place.row.name, value))
            }
            Status::Assigned | Status::Vendor => None,
        },
        _ => None,
    }
}

/// The requirement that says that the code points of this field are assigned ones.
pub fn assigned(field: &str) -> Option<&'static Requirement> {
    ASSIGNED.iter().find(|(name, _)| *name == field).map(|(_, requirement)| *requirement)
}

/// What may follow a packet type; `None` for types that have no next header.
pub fn may_follow(kind: crate::registry::PdsType) -> Option<&'static [crate::registry::NextHdr]> {
    pds::may_follow(kind)
}

/// Reserved bits that are set.
fn reserved(layout: &'static Layout, place: Place, value: u128) -> Option<Finding> {
    (place.row.kind == Kind::Reserved && value != 0).then(|| Finding {
        requirement: c::WIRE_RSVD_001,
        field: layout.name,
        value,
        bits: Some((place.lo(), place.row.width())),
    })
}

/// Which requirement says that the code points of a field are assigned ones.
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
