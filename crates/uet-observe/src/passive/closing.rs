//! Rules of the answers to CLOSE_COMMAND.

use super::judgments::Rules;
use crate::Direction;
use core::time::Duration;
use uet_wire::catalogue::*;
use uet_wire::pds::Ack;
use uet_wire::registry::{CtlType, NackCode, Opcode};

impl Rules<'_> {
    /// Rules of an ACK after a CLOSE_COMMAND. The close clears every response, so the cumulative PSN in its ACK covers
    /// it. It is the last packet of its direction, so no lost record explains the ACK of a later one.
    pub(super) fn closed(&mut self, flow: &Direction, ack: Ack, cack: i64, named: i64) {
        let Some((close, number)) = flow.close else { return };
        // The PSN may be that of another packet, and a PSN below it may never have been sent.
        let own = flow.controls.get(&close).is_some_and(|(kind, _)| *kind == CtlType::CLOSE_COMMAND)
            && !flow.requests.contains_key(&close);
        if flow.renumbered || !own {
            return;
        }
        // An initiator that sends more after its CLOSE_COMMAND is to blame itself.
        if flow.highest == Some(close) {
            let beyond = cack.max(named) - close;
            self.hold(PDS_PSN_002, Some(number), beyond <= 0, || {
                format!(
                    "acknowledges {beyond} PSNs above the CLOSE_COMMAND, after which its sender sends none"
                )
            });
        }
        if close != named {
            return;
        }
        let complete = close - cack < 4096 && (cack + 1..close).all(|index| flow.is_sent(index));
        if !complete || flow.has_unacknowledged_below(close) {
            return;
        }
        self.hold(PDS_PSN_002, Some(number), cack >= close, || {
            format!("cack_psn {} in the ACK of CLOSE_COMMAND is below the PSN of the command", ack.cack_psn())
        });
    }

    /// Rules of CLOSING_IN_ERR in answer to a CLOSE_COMMAND: the target has unacknowledged return data, or Close_REQ_Time
    /// has ended.
    pub(super) fn refused_close(&mut self, code: NackCode, named: Option<i64>) {
        /// No Close_REQ_Time is shorter.
        const SOON: Duration = Duration::from_millis(10);
        let (asked, own) = (self.received(), self.sent());
        let Some((close, number)) = asked.close.filter(|(close, _)| Some(*close) == named) else { return };
        let Some((start, _)) = self.context.start else { return };
        let opened = self.context.initiator == Some(self.sender.other());
        if code != NackCode::CLOSING_IN_ERR || !opened || asked.renumbered {
            return;
        }
        // A packet that the capture lacks may be a read, return data or a CLOSE_REQUEST.
        if asked.lacking(start) + own.lacking(start) > 0 {
            return;
        }
        // The ACK of return data may be lost after its capture, and return data may wait for credit.
        let sends_data = !own.requests.is_empty() || own.demands_credit;
        let reads = |opcode| matches!(opcode, Opcode::UET_READ | Opcode::UET_FETCHING_ATOMIC);
        let open = asked.requests.values().any(|sent| sent.part.is_none() && sent.opcode.is_some_and(reads))
            || asked.reads.values().any(|read| !read.over)
            || asked.has_unacknowledged_below(close);
        if sends_data || open {
            return;
        }
        if own.closing.is_none() {
            return self.hold(PDS_CLOSE_004, Some(number), false, || {
                "refuses CLOSE_COMMAND, although it has no return data".into()
            });
        }
        let asked_at = self.doubts[self.sender as usize].close_asked;
        let in_time = self.now.zip(asked_at).is_some_and(|(now, asked)| now.saturating_sub(asked) < SOON);
        if in_time {
            self.hold(PDS_CLOSE_007, Some(number), false, || {
                "refuses the CLOSE_COMMAND that it asked for, although it has no return data".into()
            });
        }
    }
}
