//! Causes of a failure that lie before it: refusals, operations given up, and what a device need not support.

use super::Test;
use crate::{Outcome, RxPacket, Show, Stop, Wire};
use std::collections::BTreeMap;
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
    /// Skips the rule if the device states that it does not support this packet: parameters
    /// `unsupported_control` and `headers`.
    pub(super) fn is_stated(&mut self, packet: &Wire) -> Outcome {
        let uet = Uet::parse_lax(&packet.bytes).0;
        if let Some(Pds::Control(header)) = uet.pds {
            let kind = header.ctl_type();
            if !OPTIONAL.contains(&kind) {
                return Ok(());
            }
            let lacks = self.session.told("unsupported_control").and_then(|list| list.as_array());
            let name = kind.to_string();
            if lacks.is_some_and(|list| list.iter().any(|lacking| lacking.as_str() == Some(&name))) {
                return Err(Stop::Skipped(format!("the device states that it does not support {name}")));
            }
            self.suite.sent_optional_control(kind, self.judge.packets());
        }
        if matches!(uet.ses, Some(Ses::Medium(_) | Ses::Small(_))) && self.word("headers") == Some("standard")
        {
            return Err(Stop::Skipped("the device states that it takes standard headers only".into()));
        }
        Ok(())
    }

    /// Skips the rule if the device has refused an optional control packet: UNEXP_EVENT without a context.
    pub(super) fn is_supported(&self) -> Outcome {
        let Some((kind, number)) = self.suite.optional_control() else { return Ok(()) };
        let refusal = |nack: uet_wire::pds::Nack| {
            nack.nack_code() == NackCode::UNEXP_EVENT && nack.spdcid() == PdcId::NONE
        };
        let refused = self.inbox.has(number, |seen| seen.nack().is_some_and(refusal));
        if refused {
            Err(Stop::Skipped(format!("the device does not support {kind}: it answers UNEXP_EVENT")))
        } else {
            Ok(())
        }
    }

    /// Describes what the device has refused or given up so far; empty if nothing.
    pub(super) fn circumstances(&mut self) -> String {
        let mut nacks: BTreeMap<String, usize> = BTreeMap::new();
        let mut errors: BTreeMap<String, usize> = BTreeMap::new();
        for (number, (_, wire)) in self.judge.ladder().packets().enumerate() {
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
        let failed = self.session.failed_operations();
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
