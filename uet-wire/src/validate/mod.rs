//! What the specification forbids in a single packet.
//!
//! Parsing accepts whatever is well delimited; judging is a matter of its own. What gives a [`Finding`], one for each
//! requirement of the [catalogue](crate::catalogue), is data: the reserved rows of the layouts, the registries,
//! and the [`RULES`]. Only what has to be computed, the checksums, is a function.
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
mod rule;
mod rules;

pub use rule::{Condition, PAYLOAD, Quantity, Relation, Rule};
pub use rules::RULES;

use crate::catalogue::{self as c, Level, Requirement};
use crate::layout::{Layout, same};
use crate::pds::{self, Pds};
use crate::ses::{self, Ext, Ses};
use crate::tss::{self, Tss};
use crate::{Packet, Uet, Version};
use core::fmt;
use rule::{Around, Judged, Subject, judged};

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

impl<'a> Uet<'a> {
    /// What `version` of the specification forbids in this packet. The packet is taken to be whole; see
    /// [`Packet::validate`].
    pub fn validate(&self, version: Version) -> impl Iterator<Item = Finding> + Clone {
        findings(self, version, true)
    }
}

impl<'a> Packet<'a> {
    /// What `version` of the specification forbids in this packet, the layers around UET and the CRC
    /// included. Lengths that a switch or the capture cut are not held against it.
    pub fn validate(&self, version: Version) -> impl Iterator<Item = Finding> + Clone {
        let whole = self.trimmed.is_none() && self.sliced.is_none() && self.cut.is_none();
        let is_uet = self.content == crate::Content::Uet;
        let around = is_uet.then(|| outer::findings(self, version));
        around.into_iter().flatten().chain(findings(&self.uet, version, whole))
    }
}

fn findings<'a>(
    packet: &Uet<'a>,
    version: Version,
    whole: bool,
) -> impl Iterator<Item = Finding> + Clone + 'a {
    let headers = [
        packet.tss.map(|header| subject(header.layout(), header.bytes(), of_tss(&header))),
        packet.pds.map(|header| subject(header.layout(), header.bytes(), of_pds(&header))),
        packet.ses.map(|header| subject(header.layout(), header.bytes(), of_ses(&header))),
        packet.ext.map(|header| subject(header.layout(), header.bytes(), of_ext(&header))),
    ];
    let dirty = [
        packet.tss.is_some_and(|header| !header.is_clean(version)),
        packet.pds.is_some_and(|header| !header.is_clean(version)),
        packet.ses.is_some_and(|header| !header.is_clean(version)),
        packet.ext.is_some_and(|header| !header.is_clean(version)),
    ];
    let around = Around { headers, payload: packet.payload.len(), whole };
    let suspects = headers.into_iter().zip(dirty).filter_map(|(header, dirty)| header.filter(|_| dirty));
    let alone = suspects.flat_map(move |header| header.alone(version));
    alone.chain(headers.into_iter().flatten().flat_map(move |header| header.broken(around)))
}

fn subject<'a>(layout: &'static Layout, bytes: &'a [u8], judged: &'static Judged) -> Subject<'a> {
    Subject { layout, bytes, judged }
}

fn of_tss(header: &Tss<'_>) -> &'static Judged {
    match header {
        Tss::TssShort(_) => judged!(tss::TssShort::LAYOUT),
        Tss::TssLong(_) => judged!(tss::TssLong::LAYOUT),
    }
}

fn of_pds(header: &Pds<'_>) -> &'static Judged {
    match header {
        Pds::Request(_) => judged!(pds::Request::LAYOUT),
        Pds::RequestCc(_) => judged!(pds::RequestCc::LAYOUT),
        Pds::Rudi(_) => judged!(pds::Rudi::LAYOUT),
        Pds::Uud(_) => judged!(pds::Uud::LAYOUT),
        Pds::Ack(_) => judged!(pds::Ack::LAYOUT),
        Pds::AckCc(_) => judged!(pds::AckCc::LAYOUT),
        Pds::AckCcx(_) => judged!(pds::AckCcx::LAYOUT),
        Pds::Nack(_) => judged!(pds::Nack::LAYOUT),
        Pds::NackCcx(_) => judged!(pds::NackCcx::LAYOUT),
        Pds::Control(_) => judged!(pds::Control::LAYOUT),
        Pds::Prologue(_) => judged!(pds::Prologue::LAYOUT),
    }
}

fn of_ses(header: &Ses<'_>) -> &'static Judged {
    match header {
        Ses::Small(_) => judged!(ses::Small::LAYOUT),
        Ses::Medium(_) => judged!(ses::Medium::LAYOUT),
        Ses::Std(_) => judged!(ses::Std::LAYOUT),
        Ses::Response(_) => judged!(ses::Response::LAYOUT),
        Ses::ResponseData(_) => judged!(ses::ResponseData::LAYOUT),
        Ses::ResponseDataSmall(_) => judged!(ses::ResponseDataSmall::LAYOUT),
    }
}

fn of_ext(header: &Ext<'_>) -> &'static Judged {
    match header {
        Ext::Rendezvous(_) => judged!(ses::Rendezvous::LAYOUT),
        Ext::Atomic(_) => judged!(ses::Atomic::LAYOUT),
        Ext::CompareSwap(_) => judged!(ses::CompareSwap::LAYOUT),
    }
}

/// The requirement that says that the code points of this field are assigned ones.
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
