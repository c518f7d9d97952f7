//! Operations of an initiator that have several packets: errors at any packet, and proof of success (sections
//! 3.4.2 and 3.5.17).

use super::steps::OPERATION;
use crate::Show;
use crate::prelude::*;
use crate::rules::steps::bytes;
use uet_wire::registry::ResponseOpcode;
use uet_wire::ses::Response;

/// The packets of three that are refused, by index.
const REFUSED: Axis<&[u32]> = axis("refused").values(&[
    ("all", &[0, 1, 2]),
    ("first", &[0]),
    ("middle", &[1]),
    ("last", &[2]),
    ("first-and-last", &[0, 2]),
]);

const CODE: Axis<ReturnCode> = axis("code").values(&[
    ("bad-mkey", ReturnCode::BAD_MKEY),
    ("perm-violation", ReturnCode::PERM_VIOLATION),
    ("bad-generation", ReturnCode::BAD_GENERATION),
    ("uncor", ReturnCode::UNCOR),
    ("bad-pid", ReturnCode::BAD_PID),
    ("disabled", ReturnCode::DISABLED),
    ("dropped", ReturnCode::DROPPED),
]);

/// The opcode of the NULL response.
const OPCODE: Axis<ResponseOpcode> = axis("response")
    .values(&[("default", ResponseOpcode::UET_DEFAULT_RESPONSE), ("none", ResponseOpcode::UET_NO_RESPONSE)]);

pub(super) const RULES: &[Rule] = &[
    rule("operation/refused", "One refused packet completes the whole operation, once, with its error")
        .checks(&[SES_ERR_003, SES_DONE_001])
        .over(&[&OPERATION, &REFUSED, &CODE, &MODE])
        .run(|t| {
            let (refused, code) = (t.value(&REFUSED), t.value(&CODE));
            // Open: a device may repeat the send with the current generation.
            if code == ReturnCode::BAD_GENERATION && t.parameter("generation_repeats") > 0 {
                t.configure("generation_repeats", 0)?;
            }
            let (posted, target, length) = operation_in_flight(t, 3)?;
            let first = refused[0];
            for n in 0..3 {
                // The cumulative PSN does not pass an error that is not cleared.
                let below = n.min(first) + u32::from(n < first);
                if refused.contains(&n) {
                    let response = target.response(n, code, 0)?;
                    target.answer(t, target.naming(n, below).guaranteed(response))?;
                } else {
                    target.name(t, n, below)?;
                }
            }
            if t.value(&OPERATION) == PostKind::Read {
                let data = bytes(length);
                for (k, n) in (0..3).filter(|n| !refused.contains(n)).enumerate() {
                    let start = n as usize * t.mtu();
                    let piece = &data[start..(start + t.mtu()).min(length)];
                    let header = target.data_header(n, piece.len(), length, start)?;
                    target.give(t, k as u32, header, piece)?;
                }
            }
            t.ends_refused(SES_ERR_003, posted, code)?;
            t.settle()?;
            match t.times_ended(posted) {
                Ok(times) => t.check(SES_DONE_001, "completions of the operation", 1, times),
                Err(Stop::Skipped(_)) => {}
                Err(stop) => return Err(stop),
            }
            Ok(())
        }),
    rule("operation/null-response", "A NULL response above the cumulative PSN completes no operation")
        .checks(&[SES_RESP_007])
        .needs(&[RUD])
        .over(&[&OPERATION, &OPCODE])
        .run(|t| {
            // An ACK names the second of two packets and covers neither.
            let (peer, kind, opcode) = (t.peer(0)?, t.value(&OPERATION), t.value(&OPCODE));
            let mut target = Target::established(t, peer, Mode::Rud)?;
            t.post(post(PostKind::Write, peer, 40))?;
            let posted = t.post(Post { want_data: true, form: Some(Form::Std), ..post(kind, peer, 100) })?;
            target.collect(t, 3)?;
            let response = Response::build(opcode, ReturnCode::NULL).done()?;
            target.answer(t, AckBuilder { response: Some(response), ..target.naming(2, 1) })?;
            t.settle()?;
            t.is_open(SES_RESP_007, posted)?;
            let response = target.response(2, ReturnCode::BAD_MKEY, 0)?;
            let error = target.naming(2, 1);
            target.answer(
                t,
                AckBuilder { request: AckRequest::REQ_CLEAR, response: Some(response), ..error },
            )?;
            t.ends_refused(SES_RESP_007, posted, ReturnCode::BAD_MKEY)
        }),
    rule("operation/message-offset", "Packets of a message longer than 64 KiB state their message_offset")
        .checks(&[SES_CUT_001, SES_CUT_003])
        .over(&[&OPERATION, &MODE])
        .run(|t| {
            let mtu = t.mtu();
            let packets = (80 * 1024 / mtu) as u32;
            let (peer, kind, mode) = (t.peer(0)?, t.value(&OPERATION), t.value(&MODE));
            let length = packets as usize * mtu;
            t.requests_all(kind, length)?;
            let posted = t.post(Post { mode, want_data: true, ..post(kind, peer, length) })?;
            let mut target = Target::accept(t)?;
            for n in 0..packets {
                target.expect_new(t, SES_CUT_001, n)?;
                if n % 4 == 3 {
                    target.ack(t, n)?;
                }
                let said = target.said(n)?;
                t.check(SES_CUT_003, "request_length", length as u32, said.request_length);
                t.check(SES_CUT_001, "message_offset", n as usize * mtu, said.start());
            }
            if kind == PostKind::Read {
                return Ok(());
            }
            target.ack(t, packets - 1)?;
            let within = t.soon();
            match t.completion(posted, within)?.map(|ended| ended.status) {
                Some(Status::Ok) => Ok(()),
                other => {
                    Err(Stop::Inconclusive(format!("the acknowledged message ends with: {}", other.show())))
                }
            }
        }),
];

/// Posts an operation of `packets` packets and receives all of them.
fn operation_in_flight(t: &mut Test<'_>, packets: u32) -> Result<(Operated, Target, usize), Stop> {
    let (peer, kind, mode, mtu) = (t.peer(0)?, t.value(&OPERATION), t.value(&MODE), t.mtu());
    let length = (packets as usize - 1) * mtu + 100;
    t.requests_all(kind, length)?;
    let posted = t.post(Post { mode, want_data: true, ..post(kind, peer, length) })?;
    let mut target = Target::accept(t)?;
    target.collect(t, packets)?;
    Ok((posted, target, length))
}
