//! Judges the packets of a message of the device.

use super::FIRST;
use crate::random::data::difference;
use crate::random::message::operands;
use crate::random::play::{Player, job};
use crate::random::step::{bits, opcode as opcode_of};
use crate::serve::SesFields;
use crate::{Outcome, RxPacket};
use uet_control::{Mode, PostKind};
use uet_wire::catalogue::*;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, Opcode};
use uet_wire::ses::ExtBuf;

impl Player<'_, '_> {
    /// Judges a packet of an operation of the device.
    pub(super) fn judge_part(
        &mut self,
        post: usize,
        seen: &RxPacket,
        fields: &SesFields,
        rod: Option<bool>,
    ) -> Outcome {
        let mtu = self.t.mtu();
        let length = self.wanted_length(fields);
        let job_id = job(self.posts[post].plan.job);
        let to = self.t.address(self.place(self.posts[post].plan.peer))?;
        let posted = &mut self.posts[post];
        let plan = &posted.plan;
        let told = || seen.uet().to_string();
        let wanted = match plan.kind {
            PostKind::Datagram => self.t.datagram_opcode(),
            kind => opcode_of(kind),
        };
        let opcode = fields.opcode();
        if opcode == Opcode::UET_MSG_ERROR || fields.head.ie() {
            let ends = opcode == Opcode::UET_MSG_ERROR && rod.is_some();
            let judged = if ends { self.judge_end(post, fields) } else { Ok(()) };
            self.posts[post].aborted = true;
            return judged;
        }
        let by_key =
            matches!(plan.kind, PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic);
        let number = u64::from(fields.address.resource_index() - FIRST);
        let key = if plan.mode == Mode::Rudi { 1 << 63 } else { 0 } | 0x5eed_0000 | number;
        let (start, whole) = (fields.start(), plan.length);
        let tag = match plan.kind {
            PostKind::Tsend | PostKind::RendezvousTsend | PostKind::DeferrableTsend => Some(bits(plan.tag)),
            _ => None,
        };
        let header_data = plan.header_data.then_some(0xbead_0000 | number);
        let wrong = if seen.wire.dst != to {
            Some((PDS_PDC_002, "packets to the peer of the operation"))
        } else if rod.is_some_and(|rod| rod != (plan.mode == Mode::Rod)) {
            Some((PDS_PDC_002, "packets of the mode of the operation"))
        } else if opcode != wanted {
            Some((SES_CUT_003, "the opcode of the operation"))
        } else if fields.address.job_id() != job_id {
            Some((SES_ADDR_001, "the job of the operation"))
        } else if fields.request_length != whole && plan.kind != PostKind::NoOp {
            Some((SES_CUT_003, "the length of the operation"))
        } else if by_key && fields.memory_key.is_some_and(|it| it != key) {
            Some((SES_MEM_001, "the memory key of the operation"))
        } else if by_key && fields.buffer_offset.is_some_and(|it| it != plan.offset) {
            Some((SES_CUT_006, "the offset of the operation"))
        } else if tag.is_some() && fields.match_bits.is_some_and(|it| Some(it) != tag) {
            Some((SES_MATCH_001, "the match bits of the operation"))
        } else if start % mtu != 0 {
            Some((SES_CUT_001, "a packet at a multiple of the MTU"))
        } else if fields.head.som() != (start == 0) {
            Some((SES_CUT_002, "som in the first packet alone"))
        } else if fields.form == uet_control::Form::Std
            && fields.head.eom()
                != (start + length.max(seen.payload().len()) >= whole as usize
                    || posted.data.len() > whole as usize)
            && plan.kind != PostKind::RendezvousSend
            && plan.kind != PostKind::RendezvousTsend
        {
            Some((SES_CUT_002, "eom in the last packet alone"))
        } else if fields.head.som()
            && header_data.is_some()
            && matches!(plan.kind, PostKind::Send | PostKind::Tsend)
            && fields.form != uet_control::Form::Small
            && fields.header_data != header_data
        {
            Some((SES_CUT_005, "the header data of the operation"))
        } else {
            None
        };
        if let Some((requirement, expected)) = wrong {
            return self.broken(requirement, expected, told());
        }
        self.judge_fields(post, seen, fields)?;
        let posted = &mut self.posts[post];
        if let Some(id) = fields.message_id.filter(|_| posted.plan.kind != PostKind::Datagram) {
            let known = *posted.id.get_or_insert(id);
            // A new attempt on another context may have another id.
            if known != id && start != 0 && !posted.aborted {
                return self.broken(SES_CUT_003, "one message_id", told());
            }
            posted.id = Some(id);
        }
        let rendezvous = matches!(posted.plan.kind, PostKind::RendezvousSend | PostKind::RendezvousTsend);
        let carries = !matches!(posted.plan.kind, PostKind::Read | PostKind::NoOp) && !posted.data.is_empty();
        if carries {
            let eager = match fields.ext {
                Some(ExtBuf::Rendezvous(ext)) if rendezvous => Some(ext.eager_length() as usize),
                _ => None,
            };
            let piece = (posted.data.len().min(eager.unwrap_or(usize::MAX))).saturating_sub(start).min(mtu);
            let expected = posted.data.get(start..start + piece).unwrap_or_default();
            if expected != seen.payload() {
                let (length, wrong) = (seen.payload().len(), difference(expected, seen.payload()));
                let told = format!("{length} bytes, not {piece}; {wrong}: {}", told());
                return self.broken(SES_PLACE_001, "the bytes of the operation at their place", told);
            }
        }
        if let Some(ExtBuf::CompareSwap(_)) = fields.ext {
            self.judge_swap(post, fields)?;
        }
        let posted = &mut self.posts[post];
        // The rest of a rendezvous send is read.
        let end = if rendezvous { usize::MAX } else { start + length }.min(posted.covered.len());
        posted.covered.get_mut(start..end).unwrap_or_default().fill(true);
        Ok(())
    }

    fn judge_swap(&mut self, post: usize, fields: &SesFields) -> Outcome {
        let plan = &self.posts[post].plan;
        let (Some((opcode, datatype)), Some(ExtBuf::CompareSwap(ext))) = (plan.atomic, fields.ext) else {
            return Ok(());
        };
        let of = (AtomicOpcode::new(opcode), AtomicDatatype::new(datatype));
        let (Some(opcode), Some(datatype)) = of else { return Ok(()) };
        let with = operands(plan.seed, opcode, datatype, 1, false);
        let expected = (with.values.first().copied().unwrap_or_default(), with.swap);
        let seen = (ext.compare_value(), ext.swap_value());
        if seen == expected {
            Ok(())
        } else {
            self.broken(SES_AMO_009, &format!("operands {expected:x?}"), format!("{seen:x?}"))
        }
    }
}
