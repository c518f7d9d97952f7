//! Matching as a matrix: each pair of a receive and a send that does not fit it (section 3.4.1).

use crate::RequestSession;
use crate::prelude::*;
use crate::receives::PostedReceive;
use uet_control::PostReceive;

/// The initiator that the receive names.
const WANTED: Axis<Option<u32>> = axis("initiator").values(&[("given", Some(7)), ("any", None)]);

/// The bits that the receive ignores.
const IGNORE: Axis<u64> =
    axis("ignore").values(&[("none", 0), ("low", 0xff), ("high", 0xff00_0000_0000_0000), ("all", u64::MAX)]);

/// How a send differs from the one that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mismatch {
    Initiator,
    LowBit,
    MiddleBit,
    HighBit,
    Untagged,
    Index,
    Process,
    Job,
}

const OTHER: Axis<Mismatch> = axis("differs").needing(&[
    ("initiator", Mismatch::Initiator, &[]),
    ("low-bit", Mismatch::LowBit, &[]),
    ("middle-bit", Mismatch::MiddleBit, &[]),
    ("high-bit", Mismatch::HighBit, &[]),
    ("untagged", Mismatch::Untagged, &[SEND]),
    ("index", Mismatch::Index, &[]),
    ("process", Mismatch::Process, &[]),
    ("job", Mismatch::Job, &[]),
]);

/// True if the receive is there before the send that differs.
const POSTED: Axis<bool> = axis("posted").values(&[("before", true), ("after", false)]);

const BITS: u64 = 0x7712_3456_789a_bc70;

pub(super) const RULES: &[Rule] = &[rule(
    "matching/matrix",
    "A tagged receive takes only a send that matches its bits, initiator and address",
)
.checks(&[SES_MATCH_001, SES_MATCH_002, SES_ADDR_001, SES_ADDR_002])
.needs(&[TSEND, RECEIVE])
.over(&[&WANTED, &IGNORE, &OTHER, &POSTED, &MODE])
.run(|t| {
    let receive = PostReceive {
        tag: Some(Hex64(BITS)),
        ignore: Hex64(t.value(&IGNORE)),
        initiator: t.value(&WANTED),
        ..room(64)
    };
    // The places that other sends name are there, with a receive that no send is for.
    let nobody = PostReceive { tag: Some(Hex64(0x5ca1_ab1e)), ..room(8) };
    for place in [
        nobody.clone(),
        PostReceive { index: 11, ..nobody.clone() },
        PostReceive { process: 3, ..nobody.clone() },
        PostReceive { job: Some(102), ..nobody },
    ] {
        t.posted(place)?;
    }
    let (message, requirement, taken) = other(t);
    let before = t.value(&POSTED);
    let mut session = t.session();
    let posted = match before {
        true => {
            let posted = t.posted(receive)?;
            sent(t, &mut session, &message, true)?;
            posted
        }
        false => {
            sent(t, &mut session, &message, false)?;
            t.posted(receive)?
        }
    };
    if taken {
        t.expect_received(requirement, &posted, &[1; 24])?;
        return Ok(());
    }
    t.expect_waiting(requirement, &posted)?;
    fits(t, &mut session, &posted, requirement)
})];

/// The send that differs, the requirement by which it does not fit, and whether the receive takes it all the
/// same.
fn other(t: &Test<'_>) -> (Message, &'static Requirement, bool) {
    let (wanted, ignore) = (t.value(&WANTED), t.value(&IGNORE));
    let message = Message { initiator: 7, ..Message::tagged(BITS, &[1; 24]) };
    let bit = |place: u32| {
        let taken = ignore & (1 << place) != 0;
        (Message { selector: BITS ^ (1 << place), ..message.clone() }, SES_MATCH_001, taken)
    };
    match t.value(&OTHER) {
        Mismatch::Initiator => (Message { initiator: 9, ..message }, SES_MATCH_002, wanted.is_none()),
        Mismatch::LowBit => bit(0),
        Mismatch::MiddleBit => bit(33),
        Mismatch::HighBit => bit(63),
        Mismatch::Untagged => (Message { initiator: 7, ..Message::send(&[1; 24]) }, SES_ADDR_002, false),
        Mismatch::Index => (Message { index: 11, ..message }, SES_ADDR_002, false),
        Mismatch::Process => (Message { process: 3, ..message }, SES_ADDR_001, false),
        Mismatch::Job => (Message { job: 102, ..message }, SES_ADDR_001, false),
    }
}

const FITS: [u8; 40] = [0x5a; 40];

/// Sends what fits, and expects it in the receive.
fn fits(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    posted: &PostedReceive,
    requirement: &Requirement,
) -> Outcome {
    let message = Message { initiator: 7, ..Message::tagged(BITS, &FITS) };
    sent(t, session, &message.named(2), true)?;
    t.expect_received(requirement, posted, &FITS)?;
    Ok(())
}

/// Sends a message of one packet. Skips the rule where a send that has to be kept is not.
fn sent(t: &mut Test<'_>, session: &mut RequestSession, message: &Message, may_pass: bool) -> Outcome {
    let psn = session.ask(t, &message.whole()?)?;
    match session.answer(t, psn)?.code() {
        ReturnCode::NO_MATCH if !may_pass => skip("the device keeps no unexpected sends"),
        _ => Ok(()),
    }
}
