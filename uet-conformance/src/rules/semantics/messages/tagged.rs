//! Tagged sends: match bits, ignore masks and initiators select the receive (sections 3.4.1, 3.4.3.3).

use super::steps::require_kept;
use crate::prelude::*;
use crate::receives::PostedReceive;
use crate::rules::steps::HEADER;
use crate::{Part, RequestSession};
use uet_control::PostReceive;
use uet_wire::registry::List;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[TSEND, RECEIVE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("tagged/same-bits", "A tagged send fills the receive with its match bits")
        .checks(&[SES_MATCH_001, SES_RESP_001])
        .run(|t| {
            let posted = t.posted(tagged_room(64, 0xfeed_0000_0000_0001))?;
            let mut session = t.session();
            let psn = session.ask(t, &Message::tagged(0xfeed_0000_0000_0001, &bytes(40)).whole()?)?;
            session.accepted(t, SES_RESP_001, psn)?;
            t.expect_received(SES_MATCH_001, &posted, &bytes(40))?;
            Ok(())
        }),
    rule("tagged/other-bits", "A tagged send does not fill a receive whose match bits differ in one bit")
        .checks(&[SES_MATCH_001])
        .run(|t| {
            let posted = t.posted(tagged_room(64, 0x70))?;
            let mut session = t.session();
            for (id, bits) in [(1, 0x71), (2, 0x8000_0000_0000_0070)] {
                expect_passed(
                    t,
                    &mut session,
                    SES_MATCH_001,
                    &Message::tagged(bits, &[1; 8]).named(id),
                    &[&posted],
                )?;
            }
            send_one(t, &mut session, &Message::tagged(0x70, &bytes(40)).named(3))?;
            t.expect_received(SES_MATCH_001, &posted, &bytes(40))?;
            Ok(())
        }),
    rule("tagged/picks-by-bits", "A tagged send fills the receive with its match bits, not the oldest one")
        .checks(&[SES_MATCH_001, SES_MATCH_006])
        .run(|t| {
            let others = [t.posted(tagged_room(64, 1))?, t.posted(tagged_room(64, 2))?];
            let posted = t.posted(tagged_room(64, 3))?;
            let mut session = t.session();
            send_one(t, &mut session, &Message::tagged(3, &bytes(40)))?;
            t.expect_received(SES_MATCH_001, &posted, &bytes(40))?;
            others.iter().try_for_each(|other| t.expect_waiting(SES_MATCH_006, other))
        }),
    rule("tagged/ignored-bits", "Match bits that the receive ignores may differ")
        .checks(&[SES_MATCH_001])
        .run(|t| {
            let ignore = Hex64(0xffff_0000_0000_00ff);
            let posted = t.posted(PostReceive { ignore, ..tagged_room(64, 0x1234_0000_0000_7700) })?;
            let mut session = t.session();
            send_one(t, &mut session, &Message::tagged(0xabcd_0000_0000_7742, &bytes(40)))?;
            t.expect_received(SES_MATCH_001, &posted, &bytes(40))?;
            Ok(())
        }),
    rule("tagged/compared-bits", "Match bits that the receive does not ignore must be equal")
        .checks(&[SES_MATCH_001])
        .run(|t| {
            let posted = t.posted(PostReceive { ignore: Hex64(0xff), ..tagged_room(64, 0x7700) })?;
            let mut session = t.session();
            expect_passed(t, &mut session, SES_MATCH_001, &Message::tagged(0x7600, &[1; 8]), &[&posted])?;
            send_one(t, &mut session, &Message::tagged(0x7742, &bytes(40)).named(2))?;
            t.expect_received(SES_MATCH_001, &posted, &bytes(40))?;
            Ok(())
        }),
    rule("tagged/initiator", "A receive for one initiator does not take the send of another initiator")
        .checks(&[SES_MATCH_002])
        .run(|t| {
            let posted = t.posted(PostReceive { initiator: Some(7), ..tagged_room(64, 0x70) })?;
            let mut session = t.session();
            let other = Message { initiator: 0x0001_0007, ..Message::tagged(0x70, &[1; 8]) };
            expect_passed(t, &mut session, SES_MATCH_002, &other, &[&posted])?;
            send_one(t, &mut session, &Message { initiator: 7, id: 2, ..Message::tagged(0x70, &bytes(40)) })?;
            t.expect_received(SES_MATCH_002, &posted, &bytes(40))?;
            Ok(())
        }),
    rule("tagged/any-initiator", "A receive that names no initiator takes a send of any initiator")
        .checks(&[SES_MATCH_002])
        .run(|t| {
            let posted = t.posted(tagged_room(64, 0x70))?;
            let mut session = t.session();
            send_one(
                t,
                &mut session,
                &Message { initiator: 0xffff_fff0, ..Message::tagged(0x70, &bytes(40)) },
            )?;
            t.expect_received(SES_MATCH_002, &posted, &bytes(40))?;
            Ok(())
        }),
    rule("tagged/untagged-send", "An untagged send does not fill a tagged receive that was posted first")
        .checks(&[SES_ADDR_002])
        .run(|t| {
            let tagged = t.posted(tagged_room(64, 0))?;
            let plain = t.posted(room(64))?;
            let mut session = t.session();
            send_one(t, &mut session, &Message::send(&bytes(30)))?;
            t.expect_received(SES_ADDR_002, &plain, &bytes(30))?;
            t.expect_waiting(SES_ADDR_002, &tagged)
        }),
    rule("tagged/untagged-receive", "A tagged send does not fill an untagged receive that was posted first")
        .checks(&[SES_MATCH_001, SES_ADDR_002])
        .run(|t| {
            let plain = t.posted(room(64))?;
            let tagged = t.posted(tagged_room(64, 0))?;
            let mut session = t.session();
            send_one(t, &mut session, &Message::tagged(0, &bytes(50)))?;
            t.expect_received(SES_MATCH_001, &tagged, &bytes(50))?;
            t.expect_waiting(SES_ADDR_002, &plain)
        }),
    rule("tagged/unexpected", "An unexpected tagged send gets list OVERFLOW and fills a later receive")
        .checks(&[SES_MATCH_003, SES_GTD_002, SES_MATCH_001])
        .over(&[&HEADER, &MODE, &START])
        .run(|t| {
            t.open_index()?;
            let part = in_header(t, &Message::tagged(0x70, &bytes(40)))?;
            let mut session = t.session();
            let psn = session.ask(t, &part)?;
            let answer = session.answer(t, psn)?;
            require_kept(&answer)?;
            let list = answer.response.map(|response| response.head().list());
            t.check(SES_MATCH_003, "the list", Some(List::UET_OVERFLOW), list);
            t.check(SES_GTD_002, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
            let posted = t.posted(tagged_room(64, 0x70))?;
            t.expect_received(SES_MATCH_001, &posted, &bytes(40))?;
            Ok(())
        }),
    rule("tagged/unexpected-by-bits", "A later receive gets the unexpected send that it matches")
        .checks(&[SES_MATCH_001, SES_MATCH_006])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            send_one(t, &mut session, &Message::tagged(1, &[0x11; 40]))?;
            send_one(t, &mut session, &Message::tagged(2, &[0x22; 40]).named(2))?;
            let second = t.posted(tagged_room(64, 2))?;
            t.expect_received(SES_MATCH_001, &second, &[0x22; 40])?;
            let first = t.posted(tagged_room(64, 1))?;
            t.expect_received(SES_MATCH_006, &first, &[0x11; 40])?;
            Ok(())
        }),
    rule("tagged/unexpected-by-mask", "A later receive applies its ignore mask to unexpected sends")
        .checks(&[SES_MATCH_001])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            send_one(t, &mut session, &Message::tagged(0x1501, &[0x11; 40]))?;
            send_one(t, &mut session, &Message::tagged(0x7702, &[0x22; 40]).named(2))?;
            let posted = t.posted(PostReceive { ignore: Hex64(0xff), ..tagged_room(64, 0x7700) })?;
            t.expect_received(SES_MATCH_001, &posted, &[0x22; 40])?;
            Ok(())
        }),
    rule("tagged/unexpected-initiator", "A later receive does not take another initiator's unexpected send")
        .checks(&[SES_MATCH_002])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            send_one(t, &mut session, &Message { initiator: 8, ..Message::tagged(0x70, &[0x11; 40]) })?;
            let posted = t.posted(PostReceive { initiator: Some(7), ..tagged_room(64, 0x70) })?;
            t.expect_waiting(SES_MATCH_002, &posted)?;
            send_one(
                t,
                &mut session,
                &Message { initiator: 7, id: 2, ..Message::tagged(0x70, &[0x22; 40]) },
            )?;
            t.expect_received(SES_MATCH_002, &posted, &[0x22; 40])?;
            Ok(())
        }),
    rule("tagged/no-match", "A tagged send without a match and without room for it gets NO_MATCH")
        .checks(&[SES_MATCH_004, SES_GTD_001, SES_ERR_001])
        .needs(&[TSEND, RECEIVE, PARAMETERS])
        .over(&[&HEADER, &MODE, &START])
        .run(|t| {
            t.configure("max_unexpected", 0)?;
            let posted = t.posted(tagged_room(64, 0x71))?;
            let part = in_header(t, &Message::tagged(0x70, &bytes(20)))?;
            let mut session = t.session();
            let psn = session.ask(t, &part)?;
            let answer = session.refused_as(t, SES_MATCH_004, psn, &[ReturnCode::NO_MATCH])?;
            t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
            t.check(SES_ERR_001, "modified_length", 0, answer.length(0));
            t.expect_waiting(SES_MATCH_004, &posted)
        }),
    rule("tagged/reverse-order", "A message that arrives in reverse order fills the receive that it matches")
        .checks(&[SES_MATCH_001, SES_PLACE_003])
        .needs(&[RUD, TSEND, RECEIVE])
        .over(&[&START])
        .run(|t| {
            let mtu = t.mtu();
            let data = bytes(2 * mtu + 2);
            let other = t.posted(tagged_room(3 * mtu as u64, 0x71))?;
            let posted = t.posted(tagged_room(3 * mtu as u64, 0x70))?;
            let mut session = t.session();
            let psns = session.ask_in_order(t, &Message::tagged(0x70, &data).parts(mtu)?, &[2, 1, 0])?;
            session.all_accepted(t, SES_MATCH_001, &psns)?;
            t.expect_received(SES_PLACE_003, &posted, &data)?;
            t.expect_waiting(SES_MATCH_001, &other)
        }),
    rule("tagged/medium", "A tagged send with a medium header matches by its bits and initiator")
        .checks(&[SES_MATCH_001, SES_MATCH_002])
        .run(|t| {
            let other = t.posted(PostReceive { initiator: Some(8), ..tagged_room(64, 0x70) })?;
            let posted = t.posted(PostReceive { initiator: Some(7), ..tagged_room(64, 0x70) })?;
            let mut session = t.session();
            // The header data is no offset.
            let tagged = Message::tagged(0x70, &bytes(40));
            let message = Message { initiator: 7, header_data: Some(9), ..tagged };
            let psn = session.ask(t, &message.medium()?)?;
            session.some_answer(t, psn)?;
            session.accepted(t, SES_MATCH_001, psn)?;
            t.expect_received(SES_MATCH_001, &posted, &bytes(40))?;
            t.expect_waiting(SES_MATCH_002, &other)
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(6).take(length).collect()
}

/// Returns the only packet of a message with the header of this instance.
fn in_header(t: &Test<'_>, message: &Message) -> Result<Part, Stop> {
    Ok(if t.value(&HEADER) { message.medium()? } else { message.whole()? })
}

/// Sends a message of one packet. Skips the rule if the device keeps no unexpected sends.
fn send_one(t: &mut Test<'_>, session: &mut RequestSession, message: &Message) -> Outcome {
    let psn = session.ask(t, &message.whole()?)?;
    require_kept(&session.answer(t, psn)?)
}

/// Expects that a message fills none of these receives. The device may keep or refuse it.
fn expect_passed(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    requirement: &Requirement,
    message: &Message,
    receives: &[&PostedReceive],
) -> Outcome {
    let psn = session.ask(t, &message.whole()?)?;
    session.answer(t, psn)?;
    receives.iter().try_for_each(|posted| t.expect_waiting(requirement, posted))
}
