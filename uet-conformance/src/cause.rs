//! Causes of a failure that lie before it: refusals, operations given up, and what a device need not support.

use crate::{Entry, Observation, Outcome, Relation, RxPacket, Show, Stop, Test, Wire};
use std::collections::BTreeMap;
use uet_wire::catalogue::{SES_READ_005, SES_READ_006};
use uet_wire::pds::Pds;
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::ses::Ses;
use uet_wire::{PdcId, Uet};

/// Control packets that the sources do not name mandatory: a device that lacks one answers UNEXP_EVENT, or
/// drops it.
const OPTIONAL: [CtlType; 6] = [
    CtlType::NOOP,
    CtlType::PROBE,
    CtlType::CLEAR_REQUEST,
    CtlType::CREDIT,
    CtlType::CREDIT_REQUEST,
    CtlType::NEGOTIATION,
];

/// Maximum number of entries of each kind in a list of causes.
const NAMED: usize = 4;

impl Test<'_> {
    /// Skips the case if the device states that it does not support this packet: parameters
    /// `unsupported_control` and `headers`.
    pub(crate) fn is_stated(&mut self, packet: &Wire) -> Outcome {
        let uet = Uet::parse_lax(&packet.bytes).0;
        if let Some(Pds::Control(header)) = uet.pds {
            let kind = header.ctl_type();
            if !OPTIONAL.contains(&kind) {
                return Ok(());
            }
            let lacks = self.told("unsupported_control").and_then(|list| list.as_array());
            let name = kind.to_string();
            if lacks.is_some_and(|list| list.iter().any(|lacking| lacking.as_str() == Some(&name))) {
                return Err(Stop::Skipped(format!("the device states that it does not support {name}")));
            }
            self.note_optional_control(kind);
        }
        if matches!(uet.ses, Some(Ses::Medium(_) | Ses::Small(_))) && self.word("headers") == Some("standard")
        {
            return Err(Stop::Skipped("the device states that it takes standard headers only".into()));
        }
        Ok(())
    }

    /// Skips the case if the device has refused an optional control packet: UNEXP_EVENT without a context.
    pub(crate) fn is_supported(&self) -> Outcome {
        let Some((kind, number)) = self.optional_control() else { return Ok(()) };
        let refusal = |nack: uet_wire::pds::Nack| {
            nack.nack_code() == NackCode::UNEXP_EVENT && nack.spdcid() == PdcId::NONE
        };
        let refused = self.untaken().any(|seen| seen.number > number && seen.nack().is_some_and(refusal));
        if refused {
            Err(Stop::Skipped(format!("the device does not support {kind}: it answers UNEXP_EVENT")))
        } else {
            Ok(())
        }
    }

    /// Describes the packets that arrived instead of the expected one: the last refusal, or else the last packet, and
    /// the kinds of the others.
    pub(crate) fn others(&self) -> String {
        let refusal = |seen: &&RxPacket| seen.nack().is_some() || seen.is_error();
        let Some(shown) = self.untaken().rfind(refusal).or_else(|| self.untaken().next_back()) else {
            return "nothing".into();
        };
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for seen in self.untaken().filter(|seen| seen.number != shown.number) {
            let uet = seen.uet();
            let kind = match uet.pds {
                Some(Pds::Control(header)) => header.ctl_type().to_string(),
                pds => pds.map_or_else(|| "unreadable".into(), |pds| pds.kind().to_string()),
            };
            *kinds.entry(kind).or_default() += 1;
        }
        let others: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        if others.is_empty() {
            shown.uet().to_string()
        } else {
            format!("{}, beside {}", shown.uet(), others.join(", "))
        }
    }

    /// Returns whether this ACK refuses read data that the device must take.
    pub(crate) fn refuses_data(&self, seen: &RxPacket) -> bool {
        if self.proper_data.is_empty() || !seen.is_error() {
            return false;
        }
        let named = seen.ack().and_then(|ack| Some((ack.dpdcid().0, ack.ack_psn()?.0)));
        named.is_some_and(|named| self.proper_data.contains(&named))
    }

    /// Returns the observation of refused read data in place of one of its consequences.
    pub(crate) fn refusal_of_data(&self, refusal: &RxPacket, consequence: Observation) -> Observation {
        let short = self.ladder.entries.iter().any(|step| match &step.entry {
            Entry::Sent(wire) => matches!(Uet::parse_lax(&wire.bytes).0.ses, Some(Ses::ResponseDataSmall(_))),
            _ => false,
        });
        let requirement = if short { SES_READ_006 } else { SES_READ_005 };
        Observation {
            requirement: requirement.id.into(),
            what: "the device takes the data of its read".into(),
            relation: Relation::True,
            expected: String::new(),
            seen: refusal.uet().to_string(),
            tolerance: None,
            from: None,
            packet: refusal.number,
            ..consequence
        }
    }

    /// Describes what the device has refused or given up so far; empty if nothing.
    pub(crate) fn circumstances(&mut self) -> String {
        let mut nacks: BTreeMap<String, usize> = BTreeMap::new();
        let mut errors: BTreeMap<String, usize> = BTreeMap::new();
        for (number, (_, wire)) in self.ladder.packets().enumerate() {
            let seen = RxPacket { at: core::time::Duration::ZERO, number, wire: wire.clone() };
            if !self.facts().is_device(seen.wire.src) {
                continue;
            }
            if let Some(nack) = seen.nack() {
                *nacks.entry(format!("NACK {}", nack.nack_code())).or_default() += 1;
            } else if let Some(code) = seen.return_code().filter(|_| seen.is_error()) {
                *errors.entry(code.to_string()).or_default() += 1;
            }
        }
        let list = |counts: BTreeMap<String, usize>| {
            let words = counts.into_iter().map(|(word, count)| match count {
                1 => word,
                _ => format!("{word} ({count} times)"),
            });
            words.take(NAMED).collect::<Vec<String>>().join(", ")
        };
        let mut told = Vec::new();
        if !nacks.is_empty() || !errors.is_empty() {
            nacks.extend(errors);
            told.push(format!("the device answered {}", list(nacks)));
        }
        let failed = self.failed_operations();
        if !failed.is_empty() {
            let words = failed.iter().take(NAMED).map(|told| match &told.return_code {
                Some(code) => format!("operation {} ({}, {code})", told.operation, told.status.show()),
                None => format!("operation {} ({})", told.operation, told.status.show()),
            });
            told.push(format!("it ended {}", words.collect::<Vec<String>>().join(", ")));
        }
        told.join("; ")
    }
}
