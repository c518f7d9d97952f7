//! Rules of messages, by neighboring requests.

use super::judgments::Rules;
use crate::{Direction, MessagePart, ReadRequest};
use uet_wire::catalogue::*;
use uet_wire::registry::Opcode;
use uet_wire::ses::Ses;

impl Rules<'_> {
    /// Judges the first transmission of a request beside the requests with the PSNs before and after.
    pub(super) fn neighbors(&mut self, flow: &Direction, index: i64) {
        let part = |index| flow.requests.get(&index).and_then(|sent| Some((sent.part?, sent.number)));
        let Some((this, _)) = part(index) else { return };
        let named = this.message_id != 0 || this.opcode == Opcode::UET_DATAGRAM_SEND;
        self.hold(SES_CUT_007, None, named, || "message_id is 0, which is reserved".into());
        if let Some((before, number)) = part(index - 1) {
            self.pair(index, number, before, this);
        }
        if let Some((after, number)) = part(index + 1) {
            self.pair(index + 1, number, this, after);
        }
    }

    /// Rules of read data with a standard header.
    pub(super) fn data(&mut self, read: Option<ReadRequest>, in_ack: bool) {
        let Some(Ses::ResponseData(header)) = self.packet.uet.ses else { return };
        if self.received().reads.is_empty() {
            return;
        }
        // After the end of the data, this may belong to the next read, whose request is missing.
        let Some(read) = read.filter(|read| !read.over) else { return };
        let (said, asked) = (header.modified_length(), read.bytes);
        self.hold(SES_READ_007, None, said <= asked, || {
            format!("modified_length {said} of a read of {asked} bytes")
        });
        let (own, whole) = (header.job_id(), read.job_id);
        self.hold(SES_RESP_003, None, own == whole, || {
            format!("data of job {own}, and the read is of job {whole}")
        });
        let Some(before) = read.data else { return };
        let with = Some(before.number);
        self.hold(SES_READ_007, with, said == before.modified_length, || {
            format!("modified_length {said} and {} in the data of one read", before.modified_length)
        });
        self.hold(SES_READ_004, with, in_ack == before.in_ack, || {
            "data of one read in an ACK and in a request".into()
        });
    }

    /// Rule of a request with the first data of a read: its initiator has sent that read. (An ACK with data names the
    /// request: `PDS-ACK-016`.)
    pub(super) fn is_of_a_read(&mut self, read: Option<ReadRequest>) {
        let (flow, reader) = (self.received(), self.sender.other());
        let Some(Ses::ResponseData(header)) = self.packet.uet.ses else { return };
        // A capture from the middle lacks the earlier reads.
        let Some((start, _)) = self.context.start.filter(|_| self.context.initiator == Some(reader)) else {
            return;
        };
        if header.message_offset() > 0 || flow.renumbered {
            return;
        }
        let unread = &mut self.doubts[reader as usize].unread;
        *unread += u64::from(read.is_none());
        // Each PSN that the capture lacks may be that of a read. Data may come before the ACK that shows such a PSN.
        let unasked = read.is_none() && *unread > flow.lacking(start);
        let strange = self.suspect(reader, "data of no read", unasked, 3);
        let id = header.read_request_message_id();
        self.hold(SES_READ_005, None, !strange, || format!("no read has the message id {id}"));
    }

    /// Returns whether a message has no first packet below this PSN. All packets from Start_PSN on must be known.
    fn never_began(&self, index: i64, message_id: u16) -> bool {
        let (Some((start, _)), flow) = (self.context.start, self.sent()) else { return false };
        let is_other = |index: i64| match flow.requests.get(&index) {
            Some(sent) => sent.part.is_some_and(|part| part.message_id != message_id || !part.som),
            None => flow.controls.contains_key(&index),
        };
        (flow.index(start)..index).all(is_other) && !flow.renumbered
    }

    /// Judges two neighboring requests. `index` is that of the second.
    fn pair(&mut self, index: i64, with: u64, first: MessagePart, second: MessagePart) {
        let with = Some(with);
        // The initiator may abort a message at any point (SES-ERR-005).
        if first.ie {
            return;
        }
        if first.eom {
            // A deferrable send may continue from an offset, as a message of its own.
            self.hold(SES_CUT_002, with, second.som || second.is_deferrable(), || {
                "a message goes on after its last packet".into()
            });
            return;
        }
        let same = first.message_id == second.message_id;
        let read = first.opcode == Opcode::UET_READ;
        // A read of one packet without eom. A short one is a finding by itself.
        if read && first.som && second.som && !same {
            if first.request_length > super::reads::SMALLEST_MTU {
                self.hold(SES_CUT_002, with, false, || {
                    format!(
                        "message {} begins, and no packet of read {} had eom",
                        second.message_id, first.message_id
                    )
                });
            }
            return;
        }
        let ends = second.opcode == Opcode::UET_MSG_ERROR;
        // A message that takes turns has begun earlier (SES-ORDER-001). A deferrable send may continue from an offset.
        let new = !second.som && !same && !ends && !second.is_deferrable();
        if new && self.never_began(index, second.message_id) {
            return self.hold(SES_CUT_003, with, false, || {
                format!("message {} goes on as message {}", first.message_id, second.message_id)
            });
        }
        self.hold(SES_ORDER_001, with, !second.som && same, || {
            format!("message {} begins before message {} has ended", second.message_id, first.message_id)
        });
        if second.som || !same {
            return;
        }
        self.hold(SES_CUT_003, with, first.request_length == second.request_length, || {
            format!("request_length {} and {} in one message", first.request_length, second.request_length)
        });
        self.hold(SES_CUT_003, with, ends || first.opcode == second.opcode, || {
            format!("{} and {} in one message", first.opcode, second.opcode)
        });
        let (one, other) = (first.destination(), second.destination());
        self.hold(SES_CUT_003, with, ends || one == other, || format!("{one} and {other} in one message"));
        // A deferrable send has none; the MSG_ERROR that may end it has one.
        if let (Some(first), Some(second)) = (first.buffer_offset, second.buffer_offset) {
            self.hold(SES_CUT_006, with, first == second, || {
                format!("buffer_offset {first:#x} and {second:#x} in one message")
            });
        }
        if read && first.som {
            // Only the second packet tells the MTU.
            let mtu = second.message_offset;
            let holds = mtu.is_power_of_two()
                && (super::reads::SMALLEST_MTU..=super::reads::LARGEST_MTU).contains(&mtu);
            return self.hold(SES_CUT_001, with, holds, || {
                format!("message_offset {mtu} in the second packet of a read")
            });
        }
        let expected = first.message_offset.wrapping_add(first.payload_length);
        self.hold(SES_CUT_001, with, second.message_offset == expected, || {
            format!(
                "message_offset {} after {} bytes from {}",
                second.message_offset, first.payload_length, first.message_offset
            )
        });
    }
}
