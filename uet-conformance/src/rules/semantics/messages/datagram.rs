//! Datagrams: one packet without a context and without a reply (sections 3.4.2, 3.5.7).

use crate::prelude::*;
use crate::receives::PostedReceive;
use crate::rules::steps::{datagram_bytes, datagram_of};
use crate::{Part, uud};
use uet_control::{Counters, PostReceive};

/// The opcode of datagrams by UUD, unless it is the default of the device.
const OPCODE: Axis<Option<&str>> = axis("opcode").values(&[("default", None), ("send", Some("send"))]);

/// The length of a datagram and of its buffer, in bytes, as a function of the MTU.
const SIZE: Axis<fn(usize) -> (usize, usize)> = axis("size").values(&[
    ("0", |_| (0, 16)),
    ("mtu-minus-1", |mtu| (mtu - 1, mtu + 16)),
    ("mtu", |mtu| (mtu, mtu)),
    ("1-too-long", |_| (100, 99)),
    ("mtu-too-long", |mtu| (mtu, mtu / 2)),
]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[UUD, DATAGRAM, RECEIVE])
}

pub(super) const RULES: &[Rule] = &[
    rule("datagram/received", "A datagram fills a buffer and delivers its header data")
        .checks(&[SES_MATCH_006])
        .run(|t| {
            let posted = t.posted(room(128))?;
            send_datagram(
                t,
                &Message { header_data: Some(0x77), ..datagram_of(&datagram_bytes(100)) }.whole()?,
            )?;
            let completion = t.expect_received(SES_MATCH_006, &posted, &datagram_bytes(100))?;
            t.check(SES_MATCH_006, "header data", Some(Hex64(0x77)), completion.header_data);
            Ok(())
        }),
    rule("datagram/no-reply", "A received datagram gets no reply")
        .checks(&[SES_MODE_001, PDS_UUD_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let posted = t.posted(room(128))?;
            send_datagram(t, &datagram_of(&datagram_bytes(100)).whole()?)?;
            t.expect_silence(SES_MODE_001, "no packet", |_| Some(()))?;
            t.expect_received(PDS_UUD_001, &posted, &datagram_bytes(100))?;
            Ok(())
        }),
    rule("datagram/no-context", "A datagram opens no context").checks(&[PDS_UUD_001, SES_MATCH_006]).run(
        |t| {
            let posted = t.posted(room(64))?;
            let before = t.call(Counters {})?.pdcs;
            send_datagram(t, &datagram_of(&datagram_bytes(20)).whole()?)?;
            t.expect_received(SES_MATCH_006, &posted, &datagram_bytes(20))?;
            let after = t.call(Counters {})?.pdcs;
            t.check(PDS_UUD_001, "open contexts", before, after);
            Ok(())
        },
    ),
    rule("datagram/undeliverable", "An undeliverable datagram gets no reply and does not harm the next one")
        .checks(&[SES_MODE_001, SES_MATCH_006])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            t.open_index()?;
            for message in [
                Message { job: 102, ..datagram_of(&datagram_bytes(20)) },
                Message { process: 999, ..datagram_of(&datagram_bytes(20)) },
                Message { index: 999, ..datagram_of(&datagram_bytes(20)) },
            ] {
                send_datagram(t, &message.whole()?)?;
            }
            t.expect_silence(SES_MODE_001, "no packet", |_| Some(()))?;
            let posted = t.posted(room(64))?;
            send_datagram(t, &datagram_of(&datagram_bytes(20)).whole()?)?;
            t.expect_received(SES_MATCH_006, &posted, &datagram_bytes(20)).map(drop)
        }),
    rule("datagram/size", "A datagram completes with all its bytes, or with those that its buffer holds")
        .checks(&[SES_MATCH_005, SES_MATCH_006])
        .over(&[&SIZE])
        .run(|t| {
            let (length, capacity) = t.value(&SIZE)(t.mtu());
            let posted = t.posted(room(capacity as u64))?;
            let data = datagram_bytes(length);
            send_datagram(t, &datagram_of(&data).whole()?)?;
            if length <= capacity {
                t.expect_received(SES_MATCH_006, &posted, &data)?;
            } else {
                // The device may truncate or refuse it.
                t.pause(t.soon())?;
                let ended = t.completion(posted.operation, Duration::ZERO)?;
                let received = ended.filter(|it| it.status == Status::Ok).map(|it| it.length);
                let allowed = [None, Some(capacity as u64)];
                t.one_of(SES_MATCH_005, "bytes of a receive that completed successfully", &allowed, received);
                if received.is_some() {
                    t.expect_filled(SES_MATCH_005, &posted, &data[..capacity])?;
                }
            }
            // The next datagram is not affected.
            let next = t.posted(PostReceive { index: 11, ..room(64) })?;
            let message = Message { index: 11, ..datagram_of(&datagram_bytes(30)) };
            send_datagram(t, &message.whole()?)?;
            t.expect_received(SES_MATCH_006, &next, &datagram_bytes(30)).map(drop)
        }),
    rule("datagram/identical", "Two identical datagrams fill two buffers").checks(&[SES_MATCH_006]).run(
        |t| {
            let both: [PostedReceive; 2] = [t.posted(room(64))?, t.posted(room(64))?];
            for _ in 0..2 {
                send_datagram(t, &datagram_of(&datagram_bytes(20)).whole()?)?;
            }
            for posted in &both {
                t.expect_received(SES_MATCH_006, posted, &datagram_bytes(20))?;
            }
            Ok(())
        },
    ),
    rule("datagram/incomplete", "A datagram shorter than its message completes no receive")
        .checks(&[SES_DONE_002])
        .run(|t| {
            let posted = t.posted(room(64))?;
            let message = Message { length: 40, ..datagram_of(&datagram_bytes(20)) };
            send_datagram(t, &message.whole()?.edit(|std| std.head(|head| head.eom(false)))?)?;
            t.expect_waiting(SES_DONE_002, &posted)?;
            send_datagram(t, &datagram_of(&datagram_bytes(30)).whole()?)?;
            t.expect_received(SES_DONE_002, &posted, &datagram_bytes(30))?;
            Ok(())
        }),
    rule("datagram/atomic", "An atomic that arrives twice by UUD takes effect at most once")
        .checks(&[SES_AMO_010, SES_MODE_001])
        .needs(&[UUD, WRITE, ATOMIC])
        .over(&[&OPCODE])
        .run(|t| {
            if let Some(opcode) = t.value(&OPCODE) {
                t.configure("uud_opcode", opcode)?;
            }
            let region = t.region(4096)?;
            let pdc = t.initiate();
            let packet = uud(&pdc.request(0).add(&region, 0, &[1; 8], false)?)?;
            for _ in 0..2 {
                t.send(&pdc, &packet)?;
                t.pause(t.grace())?;
            }
            t.expect_silence(SES_MODE_001, "no reply to a request by UUD", |seen| {
                seen.is_for(&pdc).then_some(())
            })?;
            let held = t.memory(&region, 0, 8)?;
            t.one_of(SES_AMO_010, "the sum of 1 in each byte", &[vec![0; 8], vec![1; 8]], held);
            Ok(())
        }),
];

/// Sends a datagram.
fn send_datagram(t: &mut Test<'_>, part: &Part) -> Outcome {
    let pdc = t.initiate();
    let request: Request = pdc.request(0).ses(part.ses, &part.payload);
    t.send(&pdc, &t.datagram(&request)?)
}
