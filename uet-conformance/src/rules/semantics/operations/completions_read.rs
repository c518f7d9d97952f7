//! Completions of an initiator's reads and fetching atomics, whose data arrives in an ACK or on the return
//! direction (sections 3.4.1 and 3.4.4.2).

use super::steps::{begin, begin_post, post_sum};
use crate::prelude::*;
use crate::target::NOT_WELL;
use uet_control::{ClosePdc, Fill, Hex};
use uet_wire::ses::SesBuf;

/// The other operation whose message_id the data has. Without one, the message_id is unknown and differs from
/// that of the read in these bits.
const NAMED: Axis<(Option<PostKind>, u16)> = axis("named").needing(&[
    ("none", (None, 0x5555), &[]),
    ("high-byte", (None, 0x0100), &[]),
    ("highest-bit", (None, 0x8000), &[]),
    ("write", (Some(PostKind::Write), 0), &[WRITE]),
    ("send", (Some(PostKind::Send), 0), &[SEND]),
]);

/// The header of a read, which decides how its data names it.
const FORM: Axis<Form> = axis("form").values(&[("medium", Form::Medium), ("std", Form::Std)]);

/// An operation whose data is in the ACK of its only packet.
const FETCHED: Axis<(PostKind, Form)> = axis("operation").needing(&[
    ("read", (PostKind::Read, Form::Std), &[READ]),
    ("read-medium", (PostKind::Read, Form::Medium), &[READ]),
    ("fetch", (PostKind::FetchAtomic, Form::Std), &[FETCH_ATOMIC]),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[READ]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("completions/read-in-ack", "A read completes with the data of its ACK").checks(&[SES_DONE_001]).run(
        |t| {
            let data = bytes(8);
            let (posted, target) = begin(t, PostKind::Read, 8, 1)?;
            target.give_in_ack(t, 0, &data)?;
            expect_read(t, SES_DONE_001, posted, &data)
        },
    ),
    rule("completions/read-after-ack", "A read that is acknowledged without data waits for its data")
        .checks(&[SES_DONE_001, SES_READ_003])
        .run(|t| {
            let data = bytes(200);
            let (posted, target) = begin(t, PostKind::Read, 200, 1)?;
            // The default response: the sources leave modified_length of other responses to reads open.
            target.ack(t, 0)?;
            t.settle()?;
            t.is_open(SES_DONE_001, posted)?;
            target.give_all(t, 1, 0, &data)?;
            expect_read(t, SES_READ_003, posted, &data)
        }),
    rule("completions/read-ids", "A read keeps its message_id until its data has arrived")
        .checks(&[SES_READ_005, SES_DONE_001])
        .run(|t| {
            let data = [bytes(200), vec![0x5a; 200]];
            let (first, mut target) = begin(t, PostKind::Read, 200, 1)?;
            target.ack(t, 0)?;
            t.settle()?;
            let peer = t.peer(0)?;
            let second = t.post(Post { want_data: true, ..post(PostKind::Read, peer, 200) })?;
            target.collect(t, 2)?;
            target.ack(t, 1)?;
            let ids = (target.said(0)?.message_id, target.said(1)?.message_id);
            let (Some(one), Some(other)) = ids else { return skip("the device reads by a short header") };
            t.holds(SES_READ_005, "two open reads have two message ids", one != other, one);
            // The data of the later read arrives first.
            let ses = target.data_header(1, 200, 200, 0)?;
            target.give_due(t, 0, ses, &data[1])?;
            expect_read(t, SES_DONE_001, second, &data[1])?;
            t.is_open(SES_READ_005, first)?;
            let ses = target.data_header(0, 200, 200, 0)?;
            target.give_due(t, 1, ses, &data[0])?;
            expect_read(t, SES_DONE_001, first, &data[0])
        }),
    rule("completions/read-before-ack", "A read whose data arrives before its ACK completes with that data")
        .checks(&[SES_DONE_001, SES_READ_003])
        .run(|t| {
            let data = bytes(200);
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let posted = t.post(Post { want_data: true, ..post(PostKind::Read, peer, 200) })?;
            target.collect(t, 2)?;
            let ses = target.data_header(1, 200, 200, 0)?;
            target.give_due(t, 0, ses, &data)?;
            t.settle()?;
            t.is_open(SES_DONE_001, posted)?;
            target.ack(t, 1)?;
            expect_read(t, SES_READ_003, posted, &data)
        }),
    rule("completions/read-in-batches", "A long read sends further requests as its earlier data arrives")
        .checks(&[SES_READ_001, SES_DONE_001])
        .run(|t| {
            const COUNT: u32 = 8;
            let mtu = t.mtu();
            // With a larger limit, the device may request all data at once.
            t.try_configure("max_awaited", 2 * mtu)?;
            let whole = bytes(COUNT as usize * mtu);
            let (posted, mut target) = begin(t, PostKind::Read, whole.len(), 1)?;
            for n in 0..COUNT {
                target.expect_new(t, SES_READ_001, n)?;
                target.ack(t, n)?;
                send_part(t, &target, &whole, n as usize, n)?;
            }
            expect_read(t, SES_DONE_001, posted, &whole)
        }),
    rule("completions/read-after-writes", "Completed writes of any total length leave room for a read")
        .checks(&[SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            const COUNT: u32 = 8;
            let mtu = t.mtu();
            // With a larger limit, the device may have room for all writes and the read.
            t.configure("max_awaited", 2 * mtu)?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for n in 1..=COUNT {
                let written = t.post(post(PostKind::Write, peer, mtu))?;
                target.expect_new(t, SES_DONE_001, n)?;
                target.ack(t, n)?;
                t.ends(SES_DONE_001, written, Status::Ok)?;
            }
            let read = t.post(post(PostKind::Read, peer, 100))?;
            target.expect_new(t, SES_DONE_001, COUNT + 1)?;
            target.ack(t, COUNT + 1)?;
            let ses = target.data_header(COUNT + 1, 100, 100, 0)?;
            target.give_due(t, 0, ses, &bytes(100))?;
            t.ends_with(SES_DONE_001, read, (Status::Ok, 100)).map(drop)
        }),
    rule("completions/read-out-of-order", "Read data that arrives out of order is placed at its offsets")
        .checks(&[SES_READ_001])
        .needs(&[RUD, READ])
        .over(&[&START])
        .run(|t| {
            let (posted, target, whole) = begin_long_read(t)?;
            for (place, k) in [(2, 2), (0, 0), (1, 1)] {
                send_part(t, &target, &whole, k, place)?;
            }
            expect_read(t, SES_READ_001, posted, &whole)
        }),
    rule("completions/read-incomplete", "A read does not complete while part of its data is missing")
        .checks(&[SES_DONE_001])
        .run(|t| {
            let (posted, target, whole) = begin_long_read(t)?;
            send_part(t, &target, &whole, 0, 0)?;
            send_part(t, &target, &whole, 2, 1)?;
            t.pause(t.soon())?;
            t.is_open(SES_DONE_001, posted)?;
            send_part(t, &target, &whole, 1, 2)?;
            expect_read(t, SES_DONE_001, posted, &whole)
        }),
    rule("completions/read-medium", "Data that states the PSN of a medium-header read completes that read")
        .checks(&[SES_READ_006])
        .run(|t| {
            let (one, two) = (bytes(100), vec![0x5a; 100]);
            let peer = t.peer(0)?;
            let read = Post { want_data: true, form: Some(Form::Medium), ..post(PostKind::Read, peer, 100) };
            let first = t.post(read.clone())?;
            let second = t.post(read)?;
            let mut target = Target::accept(t)?;
            target.collect(t, 2)?;
            target.ack(t, 1)?;
            for (n, data) in [(1, &two), (0, &one)] {
                let ses = target.data_header(n, 100, 100, 0)?;
                target.give_due(t, 1 - n, ses, data)?;
            }
            expect_read(t, SES_READ_006, first, &one)?;
            expect_read(t, SES_READ_006, second, &two)
        }),
    rule("completions/read-other-context", "The data of a read completes the read of its own context")
        .checks(&[SES_READ_005, SES_READ_006])
        .over(&[&FORM, &MODE])
        .run(|t| {
            // Two reads with the same PSN. A device may also give them the same message_id.
            let form = t.value(&FORM);
            if form == Form::Medium {
                t.configure("start_psn", 0x0123_4567)?;
            }
            let (one, two) = (bytes(100), vec![0x5a; 100]);
            let peers = [t.peer(0)?, t.peer_of_job(102)?];
            let read = |peer| Post { want_data: true, form: Some(form), ..post(PostKind::Read, peer, 100) };
            let first = t.post(read(peers[0]))?;
            let target = Target::accept(t)?;
            let second = t.post(read(peers[1]))?;
            let other = Target::accept_beside(t, &[&target])?;
            let requirement = if form == Form::Medium {
                require(target.psn(0) == other.psn(0), "the contexts of the device begin at different PSNs")?;
                SES_READ_006
            } else {
                SES_READ_005
            };
            target.ack(t, 0)?;
            other.ack(t, 0)?;
            other.give_due(t, 0, other.data_header(0, 100, 100, 0)?, &two)?;
            expect_read(t, requirement, second, &two)?;
            t.is_open(requirement, first)?;
            target.give_due(t, 0, target.data_header(0, 100, 100, 0)?, &one)?;
            expect_read(t, requirement, first, &one)
        }),
    rule("completions/read-wrong-id", "Data with the message_id of another message does not complete a read")
        .checks(&[SES_READ_005, SES_DONE_001])
        .over(&[&NAMED, &MODE, &START])
        .run(|t| {
            let (posted, mut target) = begin(t, PostKind::Read, 200, 1)?;
            target.ack(t, 0)?;
            let header = target.data_header(0, 200, 200, 0)?;
            let SesBuf::ResponseData(header) = header else {
                return skip("the device reads with short headers");
            };
            let (kind, bits) = t.value(&NAMED);
            let mut id = header.read_request_message_id() ^ bits;
            let mut other = None;
            if let Some(kind) = kind {
                let peer = t.peer(0)?;
                other = Some(t.post(Post { form: Some(Form::Std), ..post(kind, peer, 64) })?);
                target.collect(t, 2)?;
                let named = target.said(1)?.message_id;
                id = named
                    .ok_or_else(|| Stop::Skipped("the device chose a header without a message_id".into()))?;
            }
            let renamed = header.edit().read_request_message_id(id).done()?;
            target.give(t, 0, renamed.into(), &bytes(200))?;
            t.settle()?;
            // A device that ends the context ends both operations.
            if let (Some(other), None) = (other, t.completion(posted, Duration::ZERO)?) {
                t.is_open(SES_DONE_001, other)?;
                target.ack(t, 1)?;
                t.ends(SES_DONE_001, other, Status::Ok)?;
            }
            t.pause(t.soon())?;
            let ended = t.completion(posted, Duration::ZERO)?.map(|completion| completion.status);
            t.one_of(SES_READ_005, "the completion", NOT_WELL, ended);
            Ok(())
        }),
    rule("completions/read-wrong-peer", "Data from another peer does not complete a read")
        .checks(&[SES_READ_005])
        .needs(&[READ, TWO_ADDRESSES])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let other = t.peer(1)?;
            let stranger = Target::established(t, other, Mode::Rud)?;
            let (posted, target) = begin(t, PostKind::Read, 200, 1)?;
            target.ack(t, 0)?;
            stranger.give(t, 0, target.data_header(0, 200, 200, 0)?, &[0x5a; 200])?;
            t.pause(t.soon())?;
            t.is_open(SES_READ_005, posted)?;
            target.give_all(t, 1, 0, &bytes(200))?;
            expect_read(t, SES_READ_005, posted, &bytes(200))
        }),
    rule("completions/read-beyond-end", "Data beyond the end of a read does not complete it successfully")
        .checks(&[WIRE_SES_012, ROB_LIFE_001])
        .run(|t| {
            let peer = t.peer(0)?;
            // Only the data of a standard request states its offset.
            let read = Post { form: Some(Form::Std), ..post(PostKind::Read, peer, 200) };
            let (posted, target) = begin_post(t, read, 1)?;
            target.ack(t, 0)?;
            let ses = target.data_header(0, 200, 400, 150)?;
            target.give(t, 0, ses, &bytes(200))?;
            t.pause(t.soon())?;
            let ended = t.completion(posted, Duration::ZERO)?.map(|completion| completion.status);
            t.one_of(WIRE_SES_012, "the completion", NOT_WELL, ended);
            t.expect_life(ROB_LIFE_001)
        }),
    rule("completions/read-refused", "A refused read completes with the return code")
        .checks(&[SES_ERR_003])
        .run(|t| {
            let (posted, target) = begin(t, PostKind::Read, 200, 1)?;
            target.respond_error(t, 0, ReturnCode::BAD_MKEY)?;
            t.ends_refused(SES_ERR_003, posted, ReturnCode::BAD_MKEY)
        }),
    rule("completions/read-delays-close", "A context with outstanding read data is not closed")
        .checks(&[SES_READ_009, PDS_CLOSE_003])
        .needs(&[READ, CLOSE])
        .run(|t| {
            let data = bytes(200);
            let peer = t.peer(0)?;
            let read = Post { want_data: true, ..post(PostKind::Read, peer, 200) };
            let (posted, target) = begin_post(t, read, 1)?;
            target.ack(t, 0)?;
            t.settle()?;
            t.call(ClosePdc { peer, mode: t.value(&MODE), class: 0 })?;
            let closes = |seen: &crate::RxPacket| target.control(seen, CtlType::CLOSE_COMMAND);
            t.expect_none(SES_READ_009, "no CLOSE_COMMAND before the data", t.soon(), closes)?;
            target.give_all(t, 1, 0, &data)?;
            expect_read(t, SES_READ_009, posted, &data)?;
            t.expect(PDS_CLOSE_003, "CLOSE_COMMAND then", t.later(), closes).map(drop)
        }),
    rule("completions/read-during-close", "A read that waits for data survives the close of another context")
        .checks(&[SES_DONE_001])
        .needs(&[READ, CLOSE])
        .run(|t| {
            let (data, peer, other) = (bytes(200), t.peer(0)?, t.peer_of_job(102)?);
            let closing = Target::established(t, peer, Mode::Rud)?;
            let read = Post { want_data: true, ..post(PostKind::Read, other, 200) };
            let (posted, target) = begin_post(t, read, 1)?;
            target.ack(t, 0)?;
            closing.end(t, peer)?;
            t.is_open(SES_DONE_001, posted)?;
            target.give_all(t, 1, 0, &data)?;
            expect_read(t, SES_DONE_001, posted, &data)
        }),
    rule("completions/fetch", "A fetching atomic completes with the old value from the target")
        .checks(&[SES_AMO_007])
        .needs(&[FETCH_ATOMIC])
        .run(|t| {
            let peer = t.peer(0)?;
            let (operand, old, carried) = (t.elements(8, &[2]), t.elements(8, &[40]), t.operands(8, &[40]));
            let sum = Post {
                atomic_opcode: Some("SUM".into()),
                atomic_datatype: Some("UINT64".into()),
                fill: Some(Fill::Hex(Hex(operand))),
                want_data: true,
                ..post(PostKind::FetchAtomic, peer, 8)
            };
            let (posted, target) = begin_post(t, sum, 1)?;
            target.give_in_ack(t, 0, &carried)?;
            expect_read(t, SES_AMO_007, posted, &old)
        }),
    rule("completions/data-in-acks", "Data in an ACK completes the operation of the packet that it names")
        .checks(&[PDS_ACK_016])
        .needs(&[RUD])
        .over(&[&FETCHED, &START])
        .run(|t| {
            let (kind, form) = t.value(&FETCHED);
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let mut posted = Vec::new();
            for _ in 0..3 {
                let operation = match kind {
                    PostKind::FetchAtomic => post_sum(peer, kind, 8),
                    _ => post(kind, peer, 8),
                };
                posted.push(t.post(Post { want_data: true, form: Some(form), ..operation })?);
            }
            target.collect(t, 4)?;
            // No cumulative PSN covers an operation before its own ACK.
            for n in [3_u32, 1, 2] {
                let (carried, data) = match kind {
                    PostKind::FetchAtomic => (t.operands(8, &[n.into()]), t.elements(8, &[n.into()])),
                    _ => (vec![n as u8; 8], vec![n as u8; 8]),
                };
                target.give_in_ack_above(t, n, 1, &carried)?;
                expect_read(t, PDS_ACK_016, posted[n as usize - 1], &data)?;
            }
            Ok(())
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(9).take(length).collect()
}

/// Expects that a read completes successfully with these bytes.
fn expect_read(t: &mut Test<'_>, requirement: &Requirement, posted: Operated, data: &[u8]) -> Outcome {
    let ended = t.ends_with(requirement, posted, (Status::Ok, data.len() as u64))?;
    let data_read = ended.and_then(|completion| completion.data);
    t.check(requirement, "its data", Some(Hex(data.to_vec())), data_read);
    Ok(())
}

/// Posts a read of three packets and acknowledges its requests.
fn begin_long_read(t: &mut Test<'_>) -> Result<(Operated, Target, Vec<u8>), Stop> {
    let length = 2 * t.mtu() + 100;
    let (posted, target) = begin(t, PostKind::Read, length, 3)?;
    target.ack(t, 2)?;
    Ok((posted, target, bytes(length)))
}

/// Sends part `k` of a read as packet `place` of the return direction.
fn send_part(t: &mut Test<'_>, target: &Target, whole: &[u8], k: usize, place: u32) -> Outcome {
    let mtu = t.mtu();
    let piece = &whole[k * mtu..((k + 1) * mtu).min(whole.len())];
    let ses = target.data_header(0, piece.len(), whole.len(), k * mtu)?;
    target.give_due(t, place, ses, piece)
}
