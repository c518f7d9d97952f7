//! How operations of the device end: once all is answered, with what the answers say (sections 3.4.1, 3.4.2).

use crate::prelude::*;
use crate::serve::{FAILED, NOT_WELL};
use uet_control::{ClosePdc, Fill, Hex};
use uet_wire::pds::Pds;
use uet_wire::registry::{List, ResponseOpcode};
use uet_wire::ses::{Response, SesBuf};

/// The list of the receive that a send went to.
const LIST: Axis<List> =
    axis("list").values(&[("expected", List::UET_EXPECTED), ("overflow", List::UET_OVERFLOW)]);

/// The operation that wrong data names, beside the read.
const NAMED: Axis<Option<PostKind>> = axis("named").needing(&[
    ("none", None, &[]),
    ("write", Some(PostKind::Write), &[WRITE]),
    ("send", Some(PostKind::Send), &[SEND]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("completions/write", "A write completes when it is acknowledged, and not before")
        .checks(&[SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begun(t, PostKind::Write, 100, 1)?;
            t.settle()?;
            t.is_open(SES_DONE_001, posted)?;
            target.ack(t, 0)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("completions/once", "Duplicate ACKs do not complete a write a second time")
        .checks(&[SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begun(t, PostKind::Write, 100, 1)?;
            target.ack(t, 0)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            for _ in 0..3 {
                target.ack(t, 0)?;
            }
            t.settle()?;
            let times = t.times_ended(posted)?;
            t.check(SES_DONE_001, "completions of the write", 1, times);
            Ok(())
        }),
    rule("completions/all-packets", "A message completes once its last outstanding packet is acknowledged")
        .checks(&[SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let mtu = t.mtu();
            let (posted, target) = begun(t, PostKind::Write, 3 * mtu, 3)?;
            target.name(t, 2, 0)?;
            target.name(t, 0, 1)?;
            t.settle()?;
            t.is_open(SES_DONE_001, posted)?;
            target.ack(t, 1)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 3 * mtu as u64))?;
            Ok(())
        }),
    rule("completions/zero-length", "A write of zero bytes completes when it is acknowledged")
        .checks(&[SES_CUT_004])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begun(t, PostKind::Write, 0, 1)?;
            target.ack(t, 0)?;
            t.ends_with(SES_CUT_004, posted, (Status::Ok, 0))?;
            Ok(())
        }),
    rule("completions/out-of-order", "A later operation completes first if it is acknowledged first")
        .checks(&[SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
            let first = t.post(post(PostKind::Write, peer, 40))?;
            let second = t.post(post(PostKind::Write, peer, 50))?;
            target.collect(t, 3)?;
            target.name(t, 2, 1)?;
            t.ends_with(SES_DONE_001, second, (Status::Ok, 50))?;
            t.is_open(SES_DONE_001, first)?;
            target.ack(t, 2)?;
            t.ends_with(SES_DONE_001, first, (Status::Ok, 40))?;
            Ok(())
        }),
    rule("completions/default-response", "A default response with modified_length 0 completes all bytes")
        .checks(&[SES_RESP_006])
        .needs(&[SEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let (posted, target) = begun(t, PostKind::Send, 100, 1)?;
            let response = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).done()?;
            target.respond(t, 0, response)?;
            t.ends_with(SES_RESP_006, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("completions/truncated", "A send completes with the smaller modified_length of its response")
        .checks(&[SES_RESP_004])
        .needs(&[SEND])
        .over(&[&LIST, &MODE, &START])
        .run(|t| {
            let (mut posted, mut target) = begun(t, PostKind::Send, 100, 1)?;
            let list = t.value(&LIST);
            // The sources leave open what 0 bytes on the overflow list mean.
            let lengths: &[u32] = if list == List::UET_OVERFLOW { &[60, 1] } else { &[60, 0] };
            for (n, accepted) in (0..).zip(lengths.iter().copied()) {
                if n > 0 {
                    let peer = t.peer(0)?;
                    posted = t.post(post(PostKind::Send, peer, 100))?;
                    target.collect(t, n + 1)?;
                }
                let response = target.response(n, ReturnCode::OK, accepted)?;
                let response = response.edit().head(|head| head.list(list)).done()?;
                target.answer(t, target.naming(n, n).guaranteed(response))?;
                let within = t.soon();
                let ended = t.completion(posted, within)?;
                // The sources leave open what the source tells of such a send; one that fails it tells no
                // length.
                require(
                    ended.as_ref().is_some_and(|ended| ended.status == Status::Ok),
                    "the device ends a send that was cut as failed",
                )?;
                let ended = ended.map(|completion| completion.length);
                t.check(SES_RESP_004, "bytes that were accepted", Some(u64::from(accepted)), ended);
            }
            Ok(())
        }),
    rule("completions/overflow", "A send that matched the overflow list completes successfully")
        .checks(&[SES_DONE_001])
        .needs(&[SEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let (posted, target) = begun(t, PostKind::Send, 100, 1)?;
            let response = target.response(0, ReturnCode::OK, 100)?;
            let response = response.edit().head(|head| head.list(List::UET_OVERFLOW)).done()?;
            target.answer(t, target.naming(0, 0).guaranteed(response))?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("completions/refused", "An error response completes the operation with its return code")
        .checks(&[SES_ERR_003])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begun(t, PostKind::Write, 100, 1)?;
            target.respond_error(t, 0, ReturnCode::BAD_MKEY)?;
            t.ends_refused(SES_ERR_003, posted, ReturnCode::BAD_MKEY)
        }),
    rule("completions/unknown-code", "An unassigned return code does not complete an operation successfully")
        .checks(&[SES_ERR_003])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begun(t, PostKind::Write, 100, 1)?;
            let unassigned = ReturnCode::unassigned(t.spec()).next().unwrap_or(ReturnCode::EXTENDED);
            target.respond_error(t, 0, unassigned)?;
            let within = t.soon();
            let ended = t.completion(posted, within)?.map(|completion| completion.status);
            t.one_of(SES_ERR_003, "the completion", FAILED, ended);
            Ok(())
        }),
    rule("completions/one-packet-refused", "One refused packet completes its message with the return code")
        .checks(&[SES_ERR_003])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            // The error comes when the whole message has left, so that nothing has to be said of how a message is
            // cut off.
            let mtu = t.mtu();
            let (posted, target) = begun(t, PostKind::Write, 3 * mtu, 3)?;
            target.name(t, 0, 1)?;
            target.respond_error(t, 1, ReturnCode::PERM_VIOLATION)?;
            target.name(t, 2, 1)?;
            t.ends_refused(SES_ERR_003, posted, ReturnCode::PERM_VIOLATION)
        }),
    rule("completions/early-end", "A source marks the early end of a refused message and reports the error")
        .checks(&[SES_ERR_003, SES_ERR_007])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            // Open: how a message is ended before its end: by UET_MSG_ERROR, by ie, or by sending it all the
            // same.
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let posted = t.post(post(PostKind::Write, peer, 300 * mtu))?;
            let mut target = Target::accept(t)?;
            let (mut last, mut answered, mut cleared) = (None, 0, false);
            let (pdc, first) = (target.pdc.clone(), target.psn(0));
            let clears = |seen: &RxPacket| {
                let command = seen.control(CtlType::CLEAR_COMMAND).map(|command| Psn(command.payload()));
                let carried = seen.request().filter(|_| seen.wire.dst == pdc.from).map(|it| it.clear_psn());
                command.or(carried).is_some_and(|clear| !first.is_after(clear))
            };
            let last = loop {
                // On several paths its last packet may overtake others.
                match last {
                    Some((n, said)) if (0..n).all(|n| target.times(n) > 0) => break said,
                    _ => {}
                }
                // The window can be full until the cumulative PSN has moved.
                let pause = t.grace();
                if !cleared
                    && target.got.len() == answered
                    && target.next(t, pause)?.is_none()
                    && answered > 0
                {
                    let within = t.later();
                    cleared = t.hear(within, clears)?;
                    if cleared {
                        let missing = (0..).find(|n| target.times(*n) == 0).unwrap_or(1);
                        target.ack(t, missing - 1)?;
                    }
                }
                while target.got.len() == answered {
                    let within = t.later();
                    if target.next(t, within)?.is_none() {
                        let seen = format!("{} packets and no last one", target.got.len());
                        t.holds(SES_ERR_003, "the source ends the message", false, seen);
                        return Err(Stop::Failed);
                    }
                }
                let got = target.got[answered].clone();
                answered += 1;
                let n = target.index(&got.request);
                // The error holds the cumulative PSN back until the device has cleared it.
                cleared |= clears(&got.seen) || t.hear(Duration::ZERO, clears)?;
                let below = match cleared {
                    true => (0..).find(|n| target.times(*n) == 0).unwrap_or(0),
                    false => 0,
                };
                match n {
                    0 => target.respond_error(t, 0, ReturnCode::BAD_MKEY)?,
                    n => target.name(t, n, below)?,
                }
                let said = got.said()?;
                if said.head.eom() {
                    last = Some((n, said));
                }
            };
            let length = |n: &u32| target.packet(*n).map_or(0, |got| got.payload().len());
            let data: usize = target.order().iter().map(length).sum();
            // Where the data stops is judged only where each packet says its place.
            let misplaced = target.order().into_iter().filter(|n| length(n) > 0).find_map(|n| {
                let said = target.said(n).ok()?.start();
                (said != n as usize * mtu).then_some((n as usize * mtu, said))
            });
            if let Some((expected, said)) = misplaced {
                t.check(SES_CUT_001, "message_offset", expected, said);
                return Err(Stop::Failed);
            }
            let unsaid = data < 300 * mtu && last.opcode() != Opcode::UET_MSG_ERROR && !last.head.ie();
            let seen = format!("{} with eom after {data} bytes", last.opcode());
            t.holds(SES_ERR_007, "an early end differs from the true end", !unsaid, seen);
            if last.opcode() == Opcode::UET_MSG_ERROR {
                let told = (last.head.som(), last.message_offset);
                t.check(
                    SES_ERR_007,
                    "som, and message_offset where the data stops",
                    (false, Some(data as u32)),
                    told,
                );
            }
            t.ends_refused(SES_ERR_003, posted, ReturnCode::BAD_MKEY)
        }),
    rule("completions/next-operation", "The operation after a refused one completes successfully")
        .checks(&[SES_ERR_003, SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let (bad, mut target) = begun_as(t, post(PostKind::Write, peer, 100), 1)?;
            target.respond_error(t, 0, ReturnCode::BAD_MKEY)?;
            t.ends_refused(SES_ERR_003, bad, ReturnCode::BAD_MKEY)?;
            let good = t.post(post(PostKind::Write, peer, 50))?;
            target.collect(t, 2)?;
            target.ack(t, 1)?;
            t.ends_with(SES_DONE_001, good, (Status::Ok, 50))?;
            Ok(())
        }),
    rule("completions/processing", "RCVD_SES_PROCG does not complete an operation; the later response does")
        .checks(&[PDS_NACK_012, SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begun(t, PostKind::Write, 100, 1)?;
            target.refuse(t, NackCode::RCVD_SES_PROCG, 0)?;
            t.settle()?;
            t.is_open(PDS_NACK_012, posted)?;
            target.ack(t, 0)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("completions/read-in-ack", "A read completes with the data of its ACK")
        .checks(&[SES_DONE_001])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let data = bytes(8);
            let (posted, target) = begun(t, PostKind::Read, 8, 1)?;
            target.give_in_ack(t, 0, &data)?;
            ends_reading(t, SES_DONE_001, posted, &data)
        }),
    rule("completions/read-after-ack", "A read that is acknowledged without data waits for its data")
        .checks(&[SES_DONE_001, SES_READ_003])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let data = bytes(200);
            let (posted, target) = begun(t, PostKind::Read, 200, 1)?;
            // The default response: the sources leave modified_length of other responses to reads open.
            target.ack(t, 0)?;
            t.settle()?;
            t.is_open(SES_DONE_001, posted)?;
            target.give_all(t, 1, 0, &data)?;
            ends_reading(t, SES_READ_003, posted, &data)
        }),
    rule("completions/read-before-ack", "A read whose data arrives before its ACK completes with that data")
        .checks(&[SES_DONE_001, SES_READ_003])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let data = bytes(200);
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
            let posted = t.post(Post { want_data: true, ..post(PostKind::Read, peer, 200) })?;
            target.collect(t, 2)?;
            let ses = target.data_header(1, 200, 200, 0)?;
            target.give_due(t, 0, ses, &data)?;
            t.settle()?;
            t.is_open(SES_DONE_001, posted)?;
            target.ack(t, 1)?;
            ends_reading(t, SES_READ_003, posted, &data)
        }),
    rule("completions/read-in-batches", "A long read sends further requests as its earlier data arrives")
        .checks(&[SES_READ_001, SES_DONE_001])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            const COUNT: u32 = 8;
            let mtu = t.mtu();
            // Else the device awaits them all, perhaps.
            t.try_configure("max_awaited", 2 * mtu)?;
            let whole = bytes(COUNT as usize * mtu);
            let (posted, mut target) = begun(t, PostKind::Read, whole.len(), 1)?;
            for n in 0..COUNT {
                target.expect_new(t, SES_READ_001, n)?;
                target.ack(t, n)?;
                give_part(t, &target, &whole, n as usize, n)?;
            }
            ends_reading(t, SES_DONE_001, posted, &whole)
        }),
    rule("completions/read-after-writes", "Completed writes of any total length leave room for a read")
        .checks(&[SES_DONE_001])
        .needs(&[READ])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            const COUNT: u32 = 8;
            let mtu = t.mtu();
            // Else the device has room for them all, perhaps.
            t.configure("max_awaited", 2 * mtu)?;
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
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
            t.ends_with(SES_DONE_001, read, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("completions/read-out-of-order", "Read data that arrives out of order is placed at its offsets")
        .checks(&[SES_READ_001])
        .needs(&[RUD, READ])
        .over(&[&START])
        .run(|t| {
            let (posted, target, whole) = long_read(t)?;
            for (place, k) in [(2, 2), (0, 0), (1, 1)] {
                give_part(t, &target, &whole, k, place)?;
            }
            ends_reading(t, SES_READ_001, posted, &whole)
        }),
    rule("completions/read-incomplete", "A read does not complete while part of its data is missing")
        .checks(&[SES_DONE_001])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (posted, target, whole) = long_read(t)?;
            give_part(t, &target, &whole, 0, 0)?;
            give_part(t, &target, &whole, 2, 1)?;
            t.pause(t.soon())?;
            t.is_open(SES_DONE_001, posted)?;
            give_part(t, &target, &whole, 1, 2)?;
            ends_reading(t, SES_DONE_001, posted, &whole)
        }),
    rule("completions/read-medium", "Data that states the PSN of a medium-header read completes that read")
        .checks(&[SES_READ_006])
        .needs(&[READ])
        .over(&[&MODE, &START])
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
            ends_reading(t, SES_READ_006, first, &one)?;
            ends_reading(t, SES_READ_006, second, &two)
        }),
    rule("completions/read-wrong-id", "Data with the message_id of another message does not complete a read")
        .checks(&[SES_READ_005, SES_DONE_001])
        .needs(&[READ])
        .over(&[&NAMED, &MODE, &START])
        .run(|t| {
            let (posted, mut target) = begun(t, PostKind::Read, 200, 1)?;
            target.ack(t, 0)?;
            let header = target.data_header(0, 200, 200, 0)?;
            let SesBuf::ResponseData(header) = header else {
                return skip("the device reads with short headers");
            };
            let mut id = header.read_request_message_id() ^ 0x5555;
            let mut beside = None;
            if let Some(kind) = t.value(&NAMED) {
                let peer = t.peer(0)?;
                beside = Some(t.post(Post { form: Some(Form::Std), ..post(kind, peer, 64) })?);
                target.collect(t, 2)?;
                let named = target.said(1)?.message_id;
                id = named
                    .ok_or_else(|| Stop::Skipped("the device chose a header without a message_id".into()))?;
            }
            let other = header.edit().read_request_message_id(id).done()?;
            target.give(t, 0, other.into(), &bytes(200))?;
            t.settle()?;
            // A device that ends the context ends both operations.
            if let (Some(beside), None) = (beside, t.completion(posted, Duration::ZERO)?) {
                t.is_open(SES_DONE_001, beside)?;
                target.ack(t, 1)?;
                t.ends(SES_DONE_001, beside, Status::Ok)?;
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
            let (posted, target) = begun(t, PostKind::Read, 200, 1)?;
            target.ack(t, 0)?;
            stranger.give(t, 0, target.data_header(0, 200, 200, 0)?, &[0x5a; 200])?;
            t.pause(t.soon())?;
            t.is_open(SES_READ_005, posted)?;
            target.give_all(t, 1, 0, &bytes(200))?;
            ends_reading(t, SES_READ_005, posted, &bytes(200))
        }),
    rule("completions/read-beyond-end", "Data beyond the end of a read does not complete it successfully")
        .checks(&[WIRE_SES_012, ROB_LIFE_001])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            // Only the data of a standard request says where it lies.
            let read = Post { form: Some(Form::Std), ..post(PostKind::Read, peer, 200) };
            let (posted, target) = begun_as(t, read, 1)?;
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
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (posted, target) = begun(t, PostKind::Read, 200, 1)?;
            target.respond_error(t, 0, ReturnCode::BAD_MKEY)?;
            t.ends_refused(SES_ERR_003, posted, ReturnCode::BAD_MKEY)
        }),
    rule("completions/read-delays-close", "A context with outstanding read data is not closed")
        .checks(&[SES_READ_009, PDS_CLOSE_003])
        .needs(&[READ, CLOSE])
        .over(&[&MODE, &START])
        .run(|t| {
            let data = bytes(200);
            let peer = t.peer(0)?;
            let read = Post { want_data: true, ..post(PostKind::Read, peer, 200) };
            let (posted, target) = begun_as(t, read, 1)?;
            target.ack(t, 0)?;
            t.settle()?;
            t.call(ClosePdc { peer, mode: t.value(&MODE), class: 0 })?;
            let closes = |seen: &crate::RxPacket| target.control(seen, CtlType::CLOSE_COMMAND);
            t.expect_none(SES_READ_009, "no CLOSE_COMMAND before the data", t.soon(), closes)?;
            target.give_all(t, 1, 0, &data)?;
            ends_reading(t, SES_READ_009, posted, &data)?;
            t.expect(PDS_CLOSE_003, "CLOSE_COMMAND then", t.later(), closes)?;
            Ok(())
        }),
    rule("completions/read-during-close", "A read that waits for data survives the close of another context")
        .checks(&[SES_DONE_001])
        .needs(&[READ, CLOSE])
        .over(&[&MODE, &START])
        .run(|t| {
            let (data, peer, other) = (bytes(200), t.peer(0)?, t.peer_of_job(102)?);
            let closing = Target::established(t, peer, Mode::Rud)?;
            let read = Post { want_data: true, ..post(PostKind::Read, other, 200) };
            let (posted, target) = begun_as(t, read, 1)?;
            target.ack(t, 0)?;
            closing.end(t, peer)?;
            t.is_open(SES_DONE_001, posted)?;
            target.give_all(t, 1, 0, &data)?;
            ends_reading(t, SES_DONE_001, posted, &data)
        }),
    rule("completions/fetch", "A fetching atomic completes with the old value from the target")
        .checks(&[SES_AMO_007])
        .needs(&[FETCH_ATOMIC])
        .over(&[&MODE, &START])
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
            let (posted, target) = begun_as(t, sum, 1)?;
            target.give_in_ack(t, 0, &carried)?;
            ends_reading(t, SES_AMO_007, posted, &old)
        }),
    rule("completions/datagram", "A datagram completes without a response")
        .checks(&[SES_MODE_001])
        .needs(&[UUD, DATAGRAM])
        .run(|t| {
            let peer = t.peer(0)?;
            let posted = t.post(Post { mode: Mode::Uud, ..post(PostKind::Datagram, peer, 100) })?;
            t.need("a datagram", t.later(), |seen| {
                matches!(seen.uet().pds, Some(Pds::Uud(_))).then_some(())
            })?;
            t.ends_with(SES_MODE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(9).take(length).collect()
}

/// An operation of the device, and the context on which its `count` packets have come.
fn begun(t: &mut Test<'_>, kind: PostKind, length: usize, count: u32) -> Result<(Operated, Target), Stop> {
    let peer = t.peer(0)?;
    begun_as(t, Post { want_data: true, ..post(kind, peer, length) }, count)
}

fn begun_as(t: &mut Test<'_>, post: Post, count: u32) -> Result<(Operated, Target), Stop> {
    let posted = t.post(post)?;
    let mut target = Target::accept(t)?;
    target.collect(t, count)?;
    Ok((posted, target))
}

/// Expects that a read has ended well, with these bytes.
fn ends_reading(t: &mut Test<'_>, requirement: &Requirement, posted: Operated, data: &[u8]) -> Outcome {
    let ended = t.ends_with(requirement, posted, (Status::Ok, data.len() as u64))?;
    let brought = ended.and_then(|completion| completion.data);
    t.check(requirement, "its data", Some(Hex(data.to_vec())), brought);
    Ok(())
}

/// A read of three packets, whose requests have been answered.
fn long_read(t: &mut Test<'_>) -> Result<(Operated, Target, Vec<u8>), Stop> {
    let length = 2 * t.mtu() + 100;
    let (posted, target) = begun(t, PostKind::Read, length, 3)?;
    target.ack(t, 2)?;
    Ok((posted, target, bytes(length)))
}

/// Gives part `k` of such a read as the packet `place` of the return direction.
fn give_part(t: &mut Test<'_>, target: &Target, whole: &[u8], k: usize, place: u32) -> Outcome {
    let mtu = t.mtu();
    let piece = &whole[k * mtu..((k + 1) * mtu).min(whole.len())];
    let ses = target.data_header(0, piece.len(), whole.len(), k * mtu)?;
    target.give_due(t, place, ses, piece)
}
