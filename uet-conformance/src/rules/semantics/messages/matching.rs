//! Tag matching as a matrix: every receive with every send that differs in one field (section 3.4.1).

use crate::RequestSession;
use crate::prelude::*;
use crate::receives::PostedReceive;
use crate::rules::steps::HEADER;
use uet_control::PostReceive;

/// The initiator that the receive names.
const INITIATOR: Axis<Option<u32>> = axis("initiator").values(&[("given", Some(7)), ("any", None)]);

/// The bits that the receive ignores.
const IGNORE: Axis<u64> =
    axis("ignore").values(&[("none", 0), ("low", 0xff), ("high", 0xff00_0000_0000_0000), ("all", u64::MAX)]);

/// The field in which a send differs from the matching one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    Initiator,
    LowBit,
    MiddleBit,
    HighBit,
    Untagged,
    Index,
    Process,
    Job,
}

const DIFFERENCE: Axis<Difference> = axis("differs").needing(&[
    ("initiator", Difference::Initiator, &[]),
    ("low-bit", Difference::LowBit, &[]),
    ("middle-bit", Difference::MiddleBit, &[]),
    ("high-bit", Difference::HighBit, &[]),
    ("untagged", Difference::Untagged, &[SEND]),
    ("index", Difference::Index, &[]),
    ("process", Difference::Process, &[]),
    ("job", Difference::Job, &[]),
]);

/// True if the receive is posted before the send that differs.
const POSTED: Axis<bool> = axis("posted").values(&[("before", true), ("after", false)]);

const BITS: u64 = 0x7712_3456_789a_bc70;

pub(super) const RULES: &[Rule] = &[rule(
    "matching/matrix",
    "A tagged receive takes only a send that matches its bits, initiator and address",
)
.checks(&[SES_MATCH_001, SES_MATCH_002, SES_ADDR_001, SES_ADDR_002])
.needs(&[TSEND, RECEIVE])
.over(&[&INITIATOR, &IGNORE, &DIFFERENCE, &POSTED, &HEADER, &MODE])
.run(|t| {
    let receive = PostReceive {
        tag: Some(Hex64(BITS)),
        ignore: Hex64(t.value(&IGNORE)),
        initiator: t.value(&INITIATOR),
        ..room(64)
    };
    // Every address that a send names exists, and has a receive that matches no send.
    let unmatched = PostReceive { tag: Some(Hex64(0x5ca1_ab1e)), ..room(8) };
    for receive in [
        unmatched.clone(),
        PostReceive { index: 11, ..unmatched.clone() },
        PostReceive { process: 3, ..unmatched.clone() },
        PostReceive { job: Some(102), ..unmatched },
    ] {
        t.posted(receive)?;
    }
    let (message, requirement, matches) = differing_send(t);
    let posted_first = t.value(&POSTED);
    let mut session = t.session();
    let posted = if posted_first {
        let posted = t.posted(receive)?;
        send_one(t, &mut session, &message, true)?;
        posted
    } else {
        send_one(t, &mut session, &message, false)?;
        t.posted(receive)?
    };
    if matches {
        t.expect_received(requirement, &posted, &[1; 24])?;
        return Ok(());
    }
    t.expect_waiting(requirement, &posted)?;
    expect_match(t, &mut session, &posted, requirement)
})];

/// Returns the send that differs, the requirement for this field, and whether the receive still matches it.
fn differing_send(t: &Test<'_>) -> (Message, &'static Requirement, bool) {
    let (initiator, ignore) = (t.value(&INITIATOR), t.value(&IGNORE));
    let message = Message { initiator: 7, ..Message::tagged(BITS, &[1; 24]) };
    let with_bit = |n: u32| {
        let matches = ignore & (1 << n) != 0;
        (Message { selector: BITS ^ (1 << n), ..message.clone() }, SES_MATCH_001, matches)
    };
    match t.value(&DIFFERENCE) {
        Difference::Initiator => (Message { initiator: 9, ..message }, SES_MATCH_002, initiator.is_none()),
        Difference::LowBit => with_bit(0),
        Difference::MiddleBit => with_bit(33),
        Difference::HighBit => with_bit(63),
        Difference::Untagged => (Message { initiator: 7, ..Message::send(&[1; 24]) }, SES_ADDR_002, false),
        Difference::Index => (Message { index: 11, ..message }, SES_ADDR_002, false),
        Difference::Process => (Message { process: 3, ..message }, SES_ADDR_001, false),
        Difference::Job => (Message { job: 102, ..message }, SES_ADDR_001, false),
    }
}

/// The payload of the send that matches.
const MATCHING: [u8; 40] = [0x5a; 40];

/// Sends the message that matches, and expects it in the receive.
fn expect_match(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    posted: &PostedReceive,
    requirement: &Requirement,
) -> Outcome {
    let message = Message { initiator: 7, ..Message::tagged(BITS, &MATCHING) };
    send_one(t, session, &message.named(2), true)?;
    t.expect_received(requirement, posted, &MATCHING)?;
    Ok(())
}

/// Sends a message of one packet. If it must be kept, skips the rule unless the device keeps it.
fn send_one(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    message: &Message,
    may_be_refused: bool,
) -> Outcome {
    let part = if t.value(&HEADER) { message.medium()? } else { message.whole()? };
    let psn = session.ask(t, &part)?;
    match session.answer(t, psn)?.code() {
        ReturnCode::NO_MATCH if !may_be_refused => skip("the device keeps no unexpected sends"),
        _ => Ok(()),
    }
}
