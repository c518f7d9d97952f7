//! Judges the fields of a request of the device that say what it is for.

use crate::random::play::Player;
use crate::serve::SesFields;
use crate::{Outcome, RxPacket};
use uet_control::{Form, PostKind};
use uet_wire::catalogue::*;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};
use uet_wire::ses::ExtBuf;

/// The process of the peer that an operation names.
pub(super) fn process(number: u16) -> u16 {
    0x800 | (number % 0x100)
}

/// The generation of the index that an operation names.
pub(super) fn generation(number: u16) -> u8 {
    (number % 7) as u8 * 0x21
}

/// The token with which the suite resumes a send of the device.
pub(super) fn token(post: usize) -> u32 {
    0x99 + post as u32
}

impl Player<'_, '_> {
    /// Judges the fields of a request beside the operation that it is part of.
    pub(super) fn judge_fields(&mut self, post: usize, seen: &RxPacket, fields: &SesFields) -> Outcome {
        let mtu = self.t.mtu() as u32;
        let posted = &self.posts[post];
        let (plan, address, number) = (&posted.plan, fields.address, post as u16);
        let rendezvous = matches!(plan.kind, PostKind::RendezvousSend | PostKind::RendezvousTsend);
        let by_key = fields.memory_key.is_some();
        let tells = matches!(plan.kind, PostKind::Write | PostKind::Send | PostKind::Tsend);
        let header_data = plan.header_data.then_some(0xbead_0000 | u64::from(number));
        let left = plan.length.saturating_sub(fields.start() as u32).min(mtu);
        let atomic = plan.atomic.and_then(|(opcode, datatype)| {
            Some((AtomicOpcode::new(opcode)?, AtomicDatatype::new(datatype)?))
        });
        let of_atomic = match fields.ext {
            Some(ExtBuf::Atomic(ext)) => Some((ext.atomic_opcode(), ext.atomic_datatype())),
            Some(ExtBuf::CompareSwap(ext)) => {
                Some((ext.atomic().atomic_opcode(), ext.atomic().atomic_datatype()))
            }
            _ => None,
        };
        let resumed = fields.tokens.filter(|(_, target)| *target != 0);
        let wrong = if !fields.head.rel() {
            Some((SES_ADDR_001, "rel of the operation"))
        } else if address.pid_on_fep() != process(number) {
            Some((SES_ADDR_001, "the process of the operation"))
        } else if address.ri_generation() != generation(number) {
            Some((SES_GEN_001, "the generation of the operation"))
        } else if fields.initiator.is_some_and(|it| it != 0x1000 + u32::from(plan.peer)) {
            Some((SES_MATCH_002, "the initiator of the operation"))
        } else if by_key && fields.form == Form::Medium && fields.buffer_offset.is_none() && plan.offset > 0 {
            Some((SES_CUT_006, "the offset of the operation, for which this header has no room"))
        } else if tells && fields.head.som() && header_data.is_some() != fields.head.hd() {
            Some((SES_CUT_005, "hd with header data"))
        } else if tells && fields.head.som() && header_data.is_some() && fields.header_data != header_data {
            Some((SES_CUT_005, "the header data of the operation"))
        } else if !rendezvous && fields.payload_length.is_some_and(|length| u32::from(length) != left) {
            Some((SES_CUT_005, "payload_length of the piece at message_offset"))
        } else if atomic != of_atomic && plan.atomic.is_some() {
            Some((SES_AMO_001, "the operation and the datatype of the atomic"))
        } else if resumed.is_some_and(|(own, target)| posted.tokens != Some(own) || target != token(post)) {
            Some((SES_DEFER_004, "both tokens of the send"))
        } else {
            None
        };
        match wrong {
            Some((requirement, expected)) => self.broken(requirement, expected, seen.uet().to_string()),
            None => Ok(()),
        }
    }
}
