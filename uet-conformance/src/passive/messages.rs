//! What neighbouring requests show of the messages that they are part of.

use super::context::{Flow, Part};
use super::{Judge, Seen};
use uet_wire::catalogue::*;
use uet_wire::registry::Opcode;
use uet_wire::ses::Ses;

/// Judges a request that was seen for the first time beside those with the PSNs before and after.
pub(super) fn neighbours(judge: &mut Judge, flow: &Flow, seen: &Seen<'_>, at: i64) {
    // Each packet of a read asks for a part of its own, and carries nothing.
    if seen.packet.uet.ses.and_then(|ses| ses.opcode()) == Some(Opcode::UET_READ) {
        return;
    }
    let part = |at: i64| flow.requests.get(&at).and_then(|sent| Some((sent.part?, sent.number)));
    let Some((this, _)) = part(at) else { return };
    if let Some((before, number)) = part(at - 1) {
        pair(judge, seen, number, before, this);
    }
    if let Some((after, number)) = part(at + 1) {
        pair(judge, seen, number, this, after);
    }
}

/// Read data with a standard header: of which read, and how much of it. `flow` are the requests of who reads.
pub(super) fn data(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>) {
    let Some(Ses::ResponseData(header)) = seen.packet.uet.ses else { return };
    if flow.reads.is_empty() {
        return;
    }
    let id = header.read_request_message_id();
    let read = flow.reads.get(&id).copied();
    // All requests of one read may be missing, and those of a second.
    let unread = read.is_none() && flow.unread.replace(id) != Some(id);
    let strange = flow.suspect("data of no read", unread, 3);
    judge.hold(SES_READ_005, seen, None, !strange, || format!("no read has the message id {id}"));
    // Where the data has ended, this may be that of the next one, whose request is missing.
    let Some(read) = read.filter(|read| !read.over) else { return };
    let (said, asked) = (header.modified_length(), read.bytes);
    judge.hold(SES_READ_007, seen, None, said <= asked, || {
        format!("modified_length {said} of a read of {asked} bytes")
    });
    if header.message_offset().saturating_add(header.payload_length().into()) >= said {
        flow.end_read(id);
    }
}

fn pair(judge: &mut Judge, seen: &Seen<'_>, with: u64, first: Part, second: Part) {
    let with = Some(with);
    // The initiator may give a message up anywhere (SES-ERR-005).
    if first.ie {
        return;
    }
    if first.eom {
        // A deferrable send may go on from an offset, as a message of its own.
        judge.hold(SES_CUT_002, seen, with, second.som || second.deferrable, || {
            "a message goes on after its last packet".into()
        });
        return;
    }
    let same = first.message_id == second.message_id;
    judge.hold(SES_ORDER_001, seen, with, !second.som && same, || {
        format!("message {} begins before message {} has ended", second.message_id, first.message_id)
    });
    if second.som || !same {
        return;
    }
    judge.hold(SES_CUT_003, seen, with, first.total == second.total, || {
        format!("request_length {} and {} in one message", first.total, second.total)
    });
    // A deferrable send has none, and the MSG_ERROR that may end it has.
    if let (Some(first), Some(second)) = (first.buffer, second.buffer) {
        judge.hold(SES_CUT_006, seen, with, first == second, || {
            format!("buffer_offset {first:#x} and {second:#x} in one message")
        });
    }
    let expected = first.offset.wrapping_add(first.length);
    judge.hold(SES_CUT_001, seen, with, second.offset == expected, || {
        format!("message_offset {} after {} bytes from {}", second.offset, first.length, first.offset)
    });
}
