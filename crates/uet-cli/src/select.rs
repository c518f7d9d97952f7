//! Selection of packets to show.

use crate::expression::Expression;
use crate::near;
use std::str::FromStr;
use uet_packet_io::json::Decoded;
use uet_wire::catalogue;
use uet_wire::pds::Pds;
use uet_wire::registry::{CtlType, PdsType};
use uet_wire::validate::Severity;

/// A selection of packets. An empty list selects all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Packets of these contexts, by the identifier of either end.
    pub pdcs: Vec<Pdc>,
    /// Packets of these types.
    pub types: Vec<Type>,
    /// Packets with one of these findings.
    pub findings: Vec<Wrong>,
    /// Packets with these numbers.
    pub numbers: Vec<Numbers>,
    /// Packets for which this condition holds.
    pub condition: Option<Expression>,
}

impl Selection {
    /// Returns whether there is any filter.
    pub fn is_some(&self) -> bool {
        let Selection { pdcs, types, findings, numbers, condition } = self;
        !(pdcs.is_empty() && types.is_empty() && findings.is_empty() && numbers.is_empty())
            || condition.is_some()
    }

    /// Returns whether the number of a packet is selected; checked before the packet is read.
    pub fn has_number(&self, number: u64) -> bool {
        self.numbers.is_empty()
            || self.numbers.iter().any(|range| (range.first..=range.last).contains(&number))
    }

    /// Returns whether no packet after this one is selected.
    pub fn is_past(&self, number: u64) -> bool {
        !self.numbers.is_empty() && self.numbers.iter().all(|range| range.last <= number)
    }

    /// Returns whether the other filters select a packet, which came this many nanoseconds after the first one.
    pub fn has(&self, decoded: &Decoded<'_>, time: Option<i64>) -> bool {
        let pds = decoded.packet.uet.pds;
        let pdc = |pdc: &Pdc| pds.is_some_and(|pds| ends(&pds).contains(&Some(pdc.0)));
        let kind = |kind: &Type| match (kind, pds) {
            (Type::Pds(kind), Some(pds)) => pds.kind() == *kind,
            (Type::Pds(kind), None) => *kind == PdsType::TSS && decoded.packet.uet.tss.is_some(),
            (Type::Control(kind), Some(Pds::Control(header))) => header.ctl_type() == *kind,
            (Type::Control(_), _) => false,
        };
        let wrong = |wrong: &Wrong| match wrong {
            Wrong::Id(id) => decoded.findings.iter().any(|finding| finding.requirement.id == *id),
            // `uet check` reports a malformed packet as an error.
            Wrong::Severity(severity) => {
                decoded.findings.iter().any(|finding| finding.severity() == *severity)
                    || (*severity == Severity::Error && decoded.error().is_some())
            }
            Wrong::Malformed => decoded.error().is_some(),
        };
        (self.pdcs.is_empty() || self.pdcs.iter().any(pdc))
            && (self.types.is_empty() || self.types.iter().any(kind))
            && (self.findings.is_empty() || self.findings.iter().any(wrong))
            && self.condition.as_ref().is_none_or(|condition| condition.holds(decoded, time))
    }
}

/// Returns the identifiers of the context that a packet names.
fn ends(pds: &Pds<'_>) -> [Option<u16>; 2] {
    let ends = match pds {
        Pds::Control(header) => (Some(header.spdcid()), header.dpdcid()),
        _ => match (pds.request(), pds.ack(), pds.nack()) {
            (Some(header), ..) => (Some(header.spdcid()), header.dpdcid()),
            (_, Some(header), _) => (Some(header.spdcid()), Some(header.dpdcid())),
            (.., Some(header)) => (Some(header.spdcid()), Some(header.dpdcid())),
            _ => (None, None),
        },
    };
    [ends.0.map(|id| id.0), ends.1.map(|id| id.0)]
}

/// The identifier of a context at one of its ends.
#[derive(Clone, Copy, Debug)]
pub struct Pdc(u16);

impl FromStr for Pdc {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = match text.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.map(Pdc).map_err(|_| {
            "expected a PDCID: a number up to 65535, or 0x with up to four hexadecimal digits".to_owned()
        })
    }
}

/// The type of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// Any packet of this type.
    Pds(PdsType),
    /// Any control packet of this type.
    Control(CtlType),
}

impl FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.to_ascii_uppercase();
        let known = PdsType::REGISTRY.entries.iter().chain(CtlType::REGISTRY.entries).map(|entry| entry.name);
        name.parse()
            .map(Type::Pds)
            .or_else(|_| name.parse().map(Type::Control))
            .map_err(|_| near::unknown("packet type", text, known))
    }
}

/// A kind of finding.
#[derive(Clone, Copy, Debug)]
pub enum Wrong {
    /// A violation of this requirement.
    Id(&'static str),
    /// A finding of this severity. A malformed packet counts as an error.
    Severity(Severity),
    /// A header that cannot be read.
    Malformed,
}

impl FromStr for Wrong {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const SEVERITIES: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];
        if let Some(severity) = SEVERITIES.into_iter().find(|severity| severity.name() == text) {
            return Ok(Wrong::Severity(severity));
        }
        if text == "malformed" {
            return Ok(Wrong::Malformed);
        }
        match catalogue::find(&text.to_ascii_uppercase()) {
            Some(requirement) if !requirement.id.starts_with("WIRE-") => Err(format!(
                "no packet breaks {} by itself: `uet check --annotate OUT.pcapng` writes such findings into \
                 the packets",
                requirement.id
            )),
            Some(requirement) => Ok(Wrong::Id(requirement.id)),
            None => {
                let ids = catalogue::ALL.iter().map(|requirement| requirement.id);
                let known = ids.chain(SEVERITIES.iter().map(|severity| severity.name()));
                Err(near::unknown("finding", text, known))
            }
        }
    }
}

/// Numbers of packets, both ends included: `7`, `1-10`, `100-`.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    first: u64,
    last: u64,
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
        let range = match text.split_once('-') {
            None => number(text).map(|number| (number, number)),
            Some((first, "")) => number(first).map(|first| (first, u64::MAX)),
            Some((first, last)) => number(first).zip(number(last)),
        };
        let (first, last) =
            range.ok_or("expected packet numbers from 1: 7, 1-10, 100-, or several with commas")?;
        if first > last {
            return Err(format!("the range ends before it begins; did you mean {last}-{first}?"));
        }
        Ok(Numbers { first, last })
    }
}
