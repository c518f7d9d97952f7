//! Starts messages, and states what they must do.

use super::{Expect, Sending, capability, operands};
use crate::arithmetic;
use crate::elements::kind;
use crate::random::play::{OWNED, PROCESS, Player, REGIONS, SENDS, initiator, job};
use crate::random::shadow::{Cell, atomic};
use crate::random::step::{self, By, Form, Wrong};
use crate::random::step::{bits, opcode};
use crate::region::DENIED;
use crate::{Message, Outcome, Region, Stop};
use uet_control::{Fill, PostKind};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, Opcode, ReturnCode};

impl Player<'_, '_> {
    pub(in crate::random) fn is_big(&self) -> bool {
        self.t.word("byte_order") == Some("big")
    }

    pub(in crate::random) fn send_message(&mut self, plan: &step::MessagePlan) -> Outcome {
        let Some(own) = self.own.get(plan.context) else { return Ok(()) };
        let index = self.messages.len();
        let mut plan = plan.clone();
        if matches!(plan.by, By::Rudi) && !self.t.claims("rudi")
            || matches!(plan.by, By::Uud) && !self.t.claims("uud")
            || plan.kind != PostKind::NoOp && !self.t.claims(capability(plan.kind))
        {
            return Ok(());
        }
        let number = own.plan.job;
        let id = self.next_id as u16;
        self.next_id += 1;
        let Some((message, expect, effect, expected)) = self.meant(&mut plan, number, id, index)? else {
            return Ok(());
        };
        let mtu = self.t.mtu();
        let mut parts = plan.form.parts(&message, mtu)?;
        if parts.len() > 64 {
            return Ok(());
        }
        if let Some(last) = parts.last_mut().filter(|_| plan.wrong == Wrong::GivenUp) {
            *last = last.clone().edit(|std| std.head(|head| head.ie(true)))?;
        }
        let place = match expected.len().max(effect.as_ref().map_or(0, Vec::len)) {
            0 => 0..0,
            length => plan.offset as usize..plan.offset as usize + length,
        };
        let mut unsure = false;
        if !place.is_empty() {
            let writes = effect.is_some();
            let met = self.regions[plan.region].shadow.begin(index, place.clone(), writes);
            for met in met {
                unsure = true;
                self.messages[met].unsure = true;
            }
        }
        let count = parts.len();
        let data = message.data.clone();
        let sending = Sending::new(plan.clone(), id, parts, expect, expected);
        self.messages.push(Sending { place, effect, data, unsure, ..sending });
        match plan.by {
            By::Context => self.queue(plan.context, index, count),
            By::Uud => self.send_datagram(index),
            By::Rudi => self.send_lone(index),
        }
    }

    /// Returns a message, its answer, its effect, and the data that it gets; `None` if it cannot be.
    #[allow(clippy::type_complexity)]
    fn meant(
        &mut self,
        plan: &mut step::MessagePlan,
        number: u8,
        id: u16,
        index: usize,
    ) -> Result<Option<(Message, Expect, Option<Vec<Cell>>, Vec<Cell>)>, Stop> {
        let mtu = self.t.mtu() as u32;
        let on_region =
            matches!(plan.kind, PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic);
        let mut message = Message {
            id,
            job: job(number),
            process: PROCESS,
            index: SENDS,
            ..Message::new(opcode(plan.kind))
        };
        plan.complete &= !self.t.refuses_dc();
        message.complete = plan.complete;
        message.initiator = initiator(number);
        if plan.form != Form::Std && (plan.length > mtu || plan.wrong == Wrong::GivenUp) {
            plan.form = Form::Std;
        }
        let mut codes: Vec<Vec<ReturnCode>> = Vec::new();
        match plan.wrong {
            Wrong::Job => message.job = 999,
            Wrong::Process => message.process = 0x7e,
            // The neighbors of owned indices belong to nobody.
            Wrong::Index => {
                let strange = [OWNED.end + 1, OWNED.end, OWNED.start - 1];
                message.index = strange[plan.seed as usize % strange.len()];
            }
            Wrong::Generation if !on_region => message.generation = 7,
            Wrong::Opcode if plan.by == By::Context => {
                let unknown = Opcode::unassigned(self.t.spec()).next();
                let simple =
                    matches!(plan.kind, PostKind::Write | PostKind::Read | PostKind::Send | PostKind::Tsend);
                let Some(unknown) = unknown.filter(|_| simple && plan.form == Form::Std) else {
                    return Ok(None);
                };
                message.opcode = unknown;
            }
            _ => {}
        }
        let of_wrong = match plan.wrong {
            Wrong::Job => vec![ReturnCode::BAD_JOB_ID],
            // The device may have nothing in this job.
            Wrong::Process => vec![ReturnCode::BAD_PID, ReturnCode::BAD_JOB_ID],
            Wrong::Index => vec![ReturnCode::BAD_INDEX, ReturnCode::BAD_JOB_ID],
            Wrong::Generation if !on_region => vec![ReturnCode::BAD_GENERATION],
            Wrong::Opcode => vec![ReturnCode::UNSUPPORTED_OP],
            Wrong::GivenUp => vec![ReturnCode::INITIATOR_ERR],
            _ => Vec::new(),
        };
        let has_code = !of_wrong.is_empty();
        codes.extend(has_code.then_some(of_wrong));
        if !on_region {
            let data = Fill::Seed(plan.seed).bytes(plan.length as usize);
            message = message.data(&data);
            message.header_data = plan.header_data.then_some(0xfeed_0000_0000_0000 | index as u64);
            match plan.kind {
                PostKind::Tsend => message.selector = bits(plan.tag),
                PostKind::DeferrableSend | PostKind::DeferrableTsend if plan.length == 0 => return Ok(None),
                PostKind::DeferrableSend | PostKind::DeferrableTsend => {
                    message.selector =
                        if plan.kind == PostKind::DeferrableTsend { bits(plan.tag) } else { 0 };
                    message.tokens = Some(self.second.take().unwrap_or((0x7000_0000 | index as u32, 0)));
                    plan.form = Form::Std;
                }
                PostKind::RendezvousSend | PostKind::RendezvousTsend => {
                    if plan.wrong == Wrong::GivenUp {
                        return Ok(None);
                    }
                    plan.form = Form::Std;
                    message.selector =
                        if plan.kind == PostKind::RendezvousTsend { bits(plan.tag) } else { 0 };
                    let rest = Region {
                        number: 0,
                        job: message.job,
                        process: 0x345,
                        index: 0xc00 + index as u16 % 0x200,
                        generation: 0,
                        key: 0x1234_0000 | index as u64,
                        message_id: 1,
                        length: plan.length.into(),
                    };
                    let eager = (plan.eager.min(plan.length).min(mtu)) as usize;
                    message = message.data(&data[..eager]).rendezvous(plan.length, &rest, 0x4000)?;
                }
                PostKind::Datagram => (message.id, plan.length) = (0, plan.length.min(mtu)),
                _ => {}
            }
            if plan.kind == PostKind::Datagram {
                message = message.data(&data[..plan.length as usize]);
            }
            if plan.form != Form::Std && matches!(plan.kind, PostKind::Tsend) && plan.form == Form::Small
                || plan.form == Form::Small && plan.header_data
            {
                plan.form = Form::Medium;
            }
            if plan.form == Form::Medium {
                message.offset = 0;
            }
            let expect = match codes.len() {
                0 if plan.kind == PostKind::NoOp => Expect::Open,
                0 => Expect::Well,
                // One word would do for what has several faults.
                1 if plan.wrong != Wrong::GivenUp => Expect::Codes(codes.remove(0)),
                _ => Expect::Error,
            };
            return Ok(Some((message, expect, None, Vec::new())));
        }
        let Some(held) = self.regions.get(plan.region) else { return Ok(None) };
        let region = held.plan;
        let size = u64::from(region.length);
        let (mut length, index) = (plan.length, REGIONS + plan.region as u16);
        let fetches = plan.kind == PostKind::FetchAtomic;
        let operands = match (plan.kind, plan.atomic) {
            (PostKind::Atomic | PostKind::FetchAtomic, Some((opcode, datatype))) => {
                let (opcode, datatype) = (AtomicOpcode::new(opcode), AtomicDatatype::new(datatype));
                let (Some(opcode), Some(datatype)) = (opcode, datatype) else { return Ok(None) };
                if !arithmetic::is_known(opcode, datatype) {
                    return Ok(None);
                }
                let element = kind(opcode, datatype).size as u32;
                let count =
                    if opcode.is_compare_and_swap() { 1 } else { (length / element).clamp(1, mtu / element) };
                length = count * element;
                plan.offset -= plan.offset % u64::from(element);
                if plan.wrong == Wrong::Alignment && element > 1 {
                    plan.offset += 1;
                    codes.push(vec![ReturnCode::AMO_UNALIGNED]);
                }
                Some(operands(plan.seed, opcode, datatype, count as usize, self.is_big()))
            }
            (PostKind::Atomic | PostKind::FetchAtomic, None) => return Ok(None),
            _ => None,
        };
        if operands.is_some() && plan.by != By::Context {
            return Ok(None);
        }
        plan.length = length;
        let end = plan.offset.saturating_add(length.into());
        let mut open = false;
        if plan.wrong == Wrong::Range {
            plan.offset = match (plan.seed % 4, size) {
                (0, _) => size - size.min(u64::from(length / 2)),
                (1, _) => (1 << 32) + plan.offset,
                (2, _) => u64::MAX - 15,
                _ => size,
            };
            plan.offset -= plan.offset % 16;
            open |= length == 0 || plan.offset < size && plan.offset.saturating_add(length.into()) <= size;
        } else if end > size {
            return Ok(None);
        }
        let outside = plan.offset.checked_add(length.into()).is_none_or(|end| end > size);
        if outside {
            codes.push(Vec::new());
        }
        let denied = match plan.kind {
            PostKind::Write => region.no_write,
            PostKind::Read => region.no_read,
            _ => region.no_atomic && region.no_write,
        };
        if denied {
            codes.push(DENIED.to_vec());
            open |= length == 0;
        }
        // Open: which permissions an atomic needs.
        let lacks_any = region.no_atomic || region.no_write || region.no_read;
        open |= operands.is_some() && lacks_any && !denied;
        if plan.by == By::Rudi && !region.safe {
            codes.push(vec![ReturnCode::OP_VIOLATION]);
            open |= length == 0;
        }
        if plan.wrong == Wrong::Key {
            codes.push(vec![ReturnCode::BAD_MKEY]);
            open |= length == 0;
        }
        if region.job != number && !has_code {
            codes.push(Vec::new());
            open |= length == 0;
        }
        if plan.form == Form::Small {
            plan.form = Form::Medium;
        }
        (message.selector, message.offset) = (held.region.key, plan.offset);
        if !matches!(plan.wrong, Wrong::Index) {
            message.index = index;
        }
        if plan.wrong == Wrong::Key {
            message.selector ^= 0x5a_0000;
        }
        message.length = length;
        let inside =
            if outside { 0..0 } else { plan.offset as usize..plan.offset as usize + length as usize };
        let old = held.shadow.get(inside);
        let mut effect = None;
        if let Some(operands) = &operands {
            let bytes = |values: &[u128], size| self.t.elements(size, values);
            let ext = match operands.opcode.is_compare_and_swap() {
                true => {
                    let of = (operands.opcode, operands.datatype, length);
                    let swap = (operands.values.first().copied().unwrap_or_default(), operands.swap);
                    Message::swap(&held.region, plan.offset, of, swap)?.ext
                }
                false => {
                    let data = bytes(&operands.values, operands.size);
                    let of = (operands.opcode, operands.datatype);
                    let atomic = Message::atomic(&held.region, plan.offset, of, &data)?;
                    message.data = data;
                    atomic.ext
                }
            };
            message.ext = ext;
            let new = atomic(&old, operands);
            let float = operands.datatype.code() >= AtomicDatatype::FLOAT.code();
            let faults = self.t.device().parameters.get("float_faults").is_some_and(|it| it == true);
            open |= float && (faults || new.contains(&Cell::Open));
            effect = Some(new);
        } else if plan.kind == PostKind::Write {
            let data = Fill::Seed(plan.seed).bytes(length as usize);
            effect = Some(data.iter().map(|byte| Cell::Is(*byte)).collect());
            message = message.data(&data);
            if plan.header_data && plan.form == Form::Std {
                message.header_data = Some(0xfeed);
            }
        }
        let reads = plan.kind == PostKind::Read || fetches;
        if plan.form == Form::Medium && (plan.header_data || message.header_data.is_some()) {
            message.header_data = None;
        }
        if reads && plan.wrong == Wrong::GivenUp {
            open = true;
        }
        let expect = match codes.len() {
            _ if open => Expect::Open,
            0 => Expect::Well,
            1 if codes[0].is_empty() || plan.wrong == Wrong::GivenUp => Expect::Error,
            1 => Expect::Codes(codes.remove(0)),
            _ => Expect::Error,
        };
        let expected = match expect {
            Expect::Well | Expect::Open if reads => old,
            _ => Vec::new(),
        };
        let partly = plan.wrong == Wrong::GivenUp;
        let effect = effect.filter(|_| partly || matches!(expect, Expect::Well | Expect::Open));
        Ok(Some((message, expect, effect.filter(|effect| !effect.is_empty() && !outside), expected)))
    }
}
