//! Operations that the device posts, and their completions.

use super::fields::{generation, process, token};
use super::{FIRST, Posted, REFUSAL};
use crate::random::coverage::Event;
use crate::random::data::{difference, shown};
use crate::random::message::{capability, operands};
use crate::random::play::Player;
use crate::random::source::Own;
use crate::random::step::bits;
use crate::random::step::{ContextPlan, Posting};
use crate::serve::SesFields;
use crate::{Outcome, Stop};
use core::time::Duration;
use std::collections::BTreeSet;
use uet_control::{Completion, Fill, Hex, Hex64, Mode, Post, PostKind, Remote, Status};
use uet_wire::catalogue::*;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};
use uet_wire::ses::ExtBuf;

impl Player<'_, '_> {
    /// Has the device post an operation.
    pub(in crate::random) fn post(&mut self, plan: &Posting) -> Outcome {
        if !self.t.claims(capability(plan.kind)) || !self.t.claims(plan.mode.name()) {
            return Ok(());
        }
        self.coverage.operation(Event::Post(plan.kind));
        let number = self.posts.len() as u16;
        let peer = self.peer(plan.peer, plan.job)?;
        let mut plan = plan.clone();
        let key = if plan.mode == Mode::Rudi { 1 << 63 } else { 0 };
        let mut post = Post {
            mode: plan.mode,
            header_data: plan.header_data.then_some(Hex64(0xbead_0000 | u64::from(number))),
            form: plan.form,
            remote: Remote {
                key: Hex64(key | 0x5eed_0000 | u64::from(number)),
                offset: Hex64(plan.offset),
                process: Some(process(number)),
                index: FIRST + number,
                generation: generation(number),
                ..Remote::default()
            },
            ..Post::new(plan.kind, peer, plan.length.into())
        };
        let mut data = Fill::Seed(plan.seed).bytes(plan.length as usize);
        match (plan.kind, plan.atomic) {
            (PostKind::Atomic | PostKind::FetchAtomic, Some((opcode, datatype))) => {
                let of = (AtomicOpcode::new(opcode), AtomicDatatype::new(datatype));
                let (Some(opcode), Some(datatype)) = of else { return Ok(()) };
                if !crate::arithmetic::is_known(opcode, datatype) {
                    return Ok(());
                }
                let size = crate::elements::kind(opcode, datatype).size;
                let swaps = opcode.is_compare_and_swap();
                let count = if swaps { 1 } else { (plan.length as usize / size).clamp(1, 64) };
                plan.length = (count * size) as u32;
                post.length = plan.length.into();
                let with = operands(plan.seed, opcode, datatype, count, self.is_big());
                data = self.t.elements(size, &with.values);
                post.atomic_opcode = Some(opcode.to_string());
                post.atomic_datatype = Some(datatype.to_string());
                if swaps {
                    let bytes = |value: u128| Some(Hex(value.to_be_bytes()[16 - size..].to_vec()));
                    let first = with.values.first().copied().unwrap_or_default();
                    (post.compare, post.swap) = (bytes(first), bytes(with.swap));
                    data.clear();
                }
                plan.offset &= !15;
                post.remote.offset = Hex64(plan.offset);
            }
            (PostKind::Atomic | PostKind::FetchAtomic, None) => return Ok(()),
            (PostKind::NoOp, _) => {
                (plan.length, post.length) = (0, 0);
                data.clear();
            }
            (PostKind::DeferrableSend | PostKind::DeferrableTsend, _) if plan.length == 0 => return Ok(()),
            (PostKind::Tsend | PostKind::RendezvousTsend | PostKind::DeferrableTsend, _) => {
                post.tag = Some(Hex64(bits(plan.tag)));
            }
            _ => {}
        }
        if matches!(plan.kind, PostKind::RendezvousSend | PostKind::RendezvousTsend) {
            post.eager = Some(u64::from(plan.eager.min(plan.length)));
        }
        post.want_data = matches!(plan.kind, PostKind::Read | PostKind::FetchAtomic);
        if !data.is_empty() && plan.kind != PostKind::Read {
            post.fill = Some(Fill::Hex(Hex(data.clone())));
        }
        let covered = vec![false; plan.length as usize];
        let operation = match self.t.call(post) {
            Ok(operation) => operation,
            // The device may refuse a combination, or have no room.
            Err(Stop::Skipped(_) | Stop::Inconclusive(_)) => return Ok(()),
            Err(gone) => return Err(gone),
        };
        let (now, rod) = (self.t.now(), plan.mode == Mode::Rod);
        let meets =
            |(peer, of, until): &(u8, bool, Duration)| *peer == plan.peer && *of == rod && now < *until;
        let aborted = self.aborts.iter().any(meets);
        self.posts.push(Posted {
            plan,
            operation,
            data,
            covered,
            accepted: 0,
            replies: 0,
            id: None,
            refused: false,
            short: None,
            aborted,
            tokens: None,
            on: None,
            end: 0,
            put_off: false,
            rest: None,
            lone: BTreeSet::new(),
            waiting: Vec::new(),
        });
        Ok(())
    }

    pub(super) fn post_of(&self, fields: &SesFields) -> Option<usize> {
        let number = fields.address.resource_index().checked_sub(FIRST)?;
        (usize::from(number) < self.posts.len()).then_some(number.into())
    }

    pub(super) fn wanted_length(&self, fields: &SesFields) -> usize {
        match fields.payload_length {
            Some(length) if !fields.head.som() => length.into(),
            _ => (fields.request_length as usize).min(self.t.mtu()),
        }
    }

    /// Reads the rest of a rendezvous send of the device.
    pub(super) fn read_rest(&mut self, post: usize, fields: &SesFields) -> Outcome {
        let Some(ExtBuf::Rendezvous(ext)) = fields.ext else { return Ok(()) };
        let whole = self.posts[post].plan.length;
        if ext.eager_length() >= whole || self.posts[post].rest.is_some() {
            return Ok(());
        }
        let context = self.context_back(post, 0x5000, 0x1000_0000)?;
        let rest = self.rest_of(post, fields, &ext, context)?;
        self.posts[post].rest = Some(rest);
        Ok(())
    }

    /// Returns an open context to the device that has posted this, or opens one with these first numbers. A
    /// context that is about to close may end in an error, and what waits for it is lost.
    fn context_back(&mut self, post: usize, pdcid: u16, start: u32) -> Result<usize, Stop> {
        let (peer, job) = (self.posts[post].plan.peer, self.posts[post].plan.job);
        let fits = |own: &Own| own.plan.peer == peer && own.plan.job == job && !own.wants_close;
        if let Some(context) = self.own.iter().position(fits) {
            return Ok(context);
        }
        let plan = ContextPlan { peer, job, rod: false, pdcid: pdcid + post as u16, start };
        let own = self.new_own(plan)?;
        self.own.push(own);
        Ok(self.own.len() - 1)
    }

    /// Tells the device that a send that was put off is wanted.
    pub(in crate::random) fn want(&mut self, post: usize) -> Outcome {
        let Some(sent) = self.posts[post].tokens else { return Ok(()) };
        let context = self.context_back(post, 0x6000, 0x2000_0000)?;
        self.ready(context, sent, token(post))
    }

    /// Judges a completion that comes while the conversation goes on.
    pub(in crate::random) fn completed_early(&mut self, completion: &Completion) -> Outcome {
        let Some(post) = self.posts.iter().position(|it| it.operation.operation == completion.operation)
        else {
            return Ok(());
        };
        let posted = &self.posts[post];
        let plan = &posted.plan;
        let told = || format!("{} of {}", shown(completion), shown(plan));
        if completion.status != Status::Ok || plan.mode == Mode::Uud {
            return Ok(());
        }
        if plan.kind != PostKind::NoOp && posted.covered.iter().any(|covered| !covered)
            || posted.accepted == 0 && plan.mode != Mode::Rudi
        {
            return self.broken(SES_DONE_001, "no completion before all packets are answered", told());
        }
        if !posted.aborted && self.is_owed(post, posted) {
            let owed = if posted.rest.is_some() { SES_RNDV_003 } else { SES_DONE_001 };
            return self.broken(owed, "no completion before all is answered and read", told());
        }
        if posted.refused && !posted.aborted {
            return self.broken(SES_ERR_003, "an operation that ends with the error", told());
        }
        Ok(())
    }

    /// Judges how an operation of the device has ended.
    pub(in crate::random) fn judge_post(&mut self, post: usize) -> Outcome {
        let operation = self.posts[post].operation;
        let ended = self.t.completion(operation, Duration::ZERO)?;
        let posted = &self.posts[post];
        let plan = &posted.plan;
        let Some(ended) = ended else {
            let told = format!("none of {}", shown(plan));
            return self.broken(SES_DONE_001, "a completion of every operation", told);
        };
        let told = || format!("{} of {}", shown(&ended), shown(plan));
        if posted.aborted {
            return Ok(());
        }
        if posted.refused {
            let right = ended.status == Status::Refused
                && ended.return_code.as_deref().is_none_or(|code| code == REFUSAL.to_string());
            return if right {
                Ok(())
            } else {
                self.broken(SES_ERR_003, "an operation that is refused", told())
            };
        }
        let length = posted.short.unwrap_or(plan.length);
        if self.soon_gives_up() && ended.status == Status::Failed && !plan.replies.is_empty() {
            return Ok(());
        }
        if ended.status != Status::Ok {
            return self.broken(SES_DONE_001, "an operation that ends well", told());
        }
        if ended.length != u64::from(length) && plan.kind != PostKind::NoOp && plan.mode != Mode::Uud {
            return self.broken(SES_RESP_004, &format!("a completion with length {length}"), told());
        }
        if matches!(plan.kind, PostKind::Read | PostKind::FetchAtomic) {
            let expected = Fill::Seed(plan.seed ^ 0xda7a).bytes(plan.length as usize);
            if let Some(Hex(data)) = &ended.data {
                if *data != expected {
                    let told = format!("{} bytes; {}", data.len(), difference(&expected, data));
                    return self.broken(SES_READ_001, "the data that the peer returned", told);
                }
            }
        }
        Ok(())
    }
}
