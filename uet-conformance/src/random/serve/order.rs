//! Judges the order of the device's messages, and what it may take for answered.

use super::Posted;
use crate::Outcome;
use crate::random::play::Player;
use crate::serve::SesFields;
use uet_control::PostKind;
use uet_wire::catalogue::*;
use uet_wire::registry::Opcode;

impl Player<'_, '_> {
    /// Judges the first transmission of a packet beside the packet before it, and beside the context of the
    /// rest of its message.
    pub(super) fn judge_order(
        &mut self,
        served: usize,
        n: u32,
        post: Option<usize>,
        fields: &SesFields,
    ) -> Outcome {
        // On a real network, packets may arrive in another order.
        if !self.t.facts().virtual_time || fields.head.ie() || fields.opcode() == Opcode::UET_MSG_ERROR {
            return Ok(());
        }
        let it = &mut self.served[served];
        let unfinished = it.unfinished.take();
        it.unfinished = fields.message_id.filter(|_| !fields.head.eom()).map(|id| (n + 1, id, post));
        // A message that is refused may end early.
        let ended = |post: Option<usize>| {
            post.and_then(|post| self.posts.get(post)).is_some_and(|it| it.refused || it.aborted)
        };
        if let Some((next, id, _)) = unfinished.filter(|(next, _, post)| *next == n && !ended(*post)) {
            if fields.head.som() || fields.message_id != Some(id) {
                let told = format!("packet {next} of the context does not continue message {id}");
                return self.broken(PDS_MSG_001, "one message after the other", told);
            }
        }
        let end = fields.start() + self.wanted_length(fields);
        let Some(posted) = post.and_then(|post| self.posts.get_mut(post)) else { return Ok(()) };
        posted.end = posted.end.max(end);
        // A deferrable send may restart at an offset.
        if matches!(posted.plan.kind, PostKind::DeferrableSend | PostKind::DeferrableTsend) {
            return Ok(());
        }
        if fields.start() == 0 {
            posted.on = Some(served);
        } else if posted.on != Some(served) {
            let told = format!("a packet at offset {} without the first one of its message", fields.start());
            return self.broken(PDS_MSG_002, "a message on one context", told);
        }
        Ok(())
    }

    /// Judges the end of a message that the device gives up.
    pub(super) fn judge_end(&mut self, post: usize, fields: &SesFields) -> Outcome {
        let posted = &self.posts[post];
        let carries = matches!(posted.plan.kind, PostKind::Write | PostKind::Send | PostKind::Tsend);
        if posted.aborted || posted.end == 0 || !carries {
            return Ok(());
        }
        let right = !fields.head.som() && fields.head.eom() && fields.start() == posted.end;
        if right {
            return Ok(());
        }
        let told = format!("message_offset {}, {} bytes have left", fields.start(), posted.end);
        self.broken(SES_ERR_007, "UET_MSG_ERROR with eom where the data stops", told)
    }

    /// Judges that CLEAR_PSN covers no packet whose response is still owed.
    pub(super) fn judge_clear(&mut self, served: usize, cleared: u32) -> Outcome {
        let owed = self.served[served].stored.range(..cleared).find(|(_, stored)| !stored.ready);
        match owed.map(|(n, _)| *n) {
            Some(n) => {
                let told = format!("clears packet {n}, whose response is still owed");
                self.broken(PDS_CLR_001, "CLEAR_PSN of answered packets", told)
            }
            None => Ok(()),
        }
    }

    /// Returns whether the suite owes a response to a packet of an operation, or the rest of it is not read.
    pub(super) fn is_owed(&self, post: usize, posted: &Posted) -> bool {
        let plain = matches!(
            posted.plan.kind,
            PostKind::Write | PostKind::Send | PostKind::Tsend | PostKind::Atomic | PostKind::FetchAtomic
        );
        let mut responses = self.served.iter().flat_map(|it| it.stored.values());
        let reads = posted.rest.and_then(|rest| self.messages.get(rest));
        plain && responses.any(|stored| stored.post == Some(post) && !stored.ready)
            || reads.is_some_and(|read| !read.over && !read.has_data())
    }
}
