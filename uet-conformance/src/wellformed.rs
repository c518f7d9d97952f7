//! What the packets of a device show one by one, whatever the case is about.

use crate::{InstanceResult, Packets};
use serde::Serialize;
use uet_wire::catalogue::Level;
use uet_wire::{Spec, Uet, catalogue};

/// A requirement that single packets of the device break, whatever the case is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PacketFinding {
    /// The requirement; `None` when a packet cannot be read at all.
    pub requirement: Option<String>,
    /// How many packets break it.
    pub count: u64,
    /// The first case in which one did.
    pub case: String,
    /// Its number there.
    pub at_packet: usize,
    /// The field.
    pub field: String,
    /// What is wrong, in words.
    pub message: String,
    /// The command that runs the case again.
    pub rerun: String,
    /// Why it is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
    /// The baseline has it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub known: bool,
}

impl PacketFinding {
    /// Whether it makes a run fail: a peer cannot live with it, and nobody has accepted it.
    pub fn counts(&self) -> bool {
        let level = self.requirement.as_deref().and_then(catalogue::find).map(|known| known.level);
        self.waived.is_none() && !self.known && level.is_none_or(|level| level == Level::Must)
    }
}

impl Packets {
    /// Judges the device's packets of a case by `spec`.
    pub(crate) fn judge(&mut self, case: &InstanceResult, spec: &'static Spec) {
        for (number, wire) in case.ladder.of_the_device() {
            self.judged += 1;
            for finding in &wire.around {
                let id = Some(finding.requirement.id);
                self.add(case, number, id, finding.field, finding.to_string());
            }
            let (uet, error) = Uet::parse_lax(&wire.bytes);
            if let Some(error) = error {
                let field = error.field();
                self.add(case, number, None, field, error.to_string());
                continue;
            }
            for finding in uet.validate(spec) {
                let id = Some(finding.requirement.id);
                self.add(case, number, id, finding.field, finding.to_string());
            }
        }
    }

    fn add(
        &mut self,
        case: &InstanceResult,
        at_packet: usize,
        id: Option<&str>,
        field: &str,
        message: String,
    ) {
        let same = |known: &&mut PacketFinding| known.requirement.as_deref() == id && known.field == field;
        if let Some(known) = self.findings.iter_mut().find(same) {
            known.count += 1;
            return;
        }
        self.findings.push(PacketFinding {
            requirement: id.map(Into::into),
            count: 1,
            case: case.instance.clone(),
            at_packet,
            field: field.into(),
            message,
            rerun: case.rerun.clone(),
            waived: None,
            known: false,
        });
    }
}
