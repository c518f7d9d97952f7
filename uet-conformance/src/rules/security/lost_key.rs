//! A device that loses the key with which it sends (section 3.7): it neither answers nor retransmits, and
//! sends nothing in plaintext.

use super::steps::{establish_as, open_as, plain_write, rule, write_in_flight};
use crate::prelude::*;
use crate::rules::steps::{post_idempotent, rudi_request};
use crate::{SECURED, Wire, rudi};

/// A packet that a target with a key answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    Write,
    /// A write that no region accepts, so the response is an error.
    Refused,
    Read,
    Opening,
    Probe,
    /// An ACK_REQUEST for a PSN that has not arrived, so the answer is a NACK.
    AckRequest,
    Close,
    Rudi,
}

const ASKING: Axis<Asking> = axis("packet").needing(&[
    ("request", Asking::Write, &[]),
    ("refused", Asking::Refused, &[]),
    ("read", Asking::Read, &[READ]),
    ("opening", Asking::Opening, &[]),
    ("probe", Asking::Probe, &[]),
    ("ack-request", Asking::AckRequest, &[]),
    ("close", Asking::Close, &[]),
    ("rudi", Asking::Rudi, &[RUDI]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("tss-send/lost-key-target", "A target that has lost its current key answers nothing")
        .checks(&[TSS_AN_002, TSS_CLEAR_002])
        .over(&[&SECURED, &ASKING])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_AN_002, t.value(&SECURED), |_| {})?;
            t.settle()?;
            let before = lose_current_key(t)?;
            let asking = asking_packet(t, &pdc, &region)?;
            t.send_wire(&asking)?;
            t.pause(t.soon() + t.rto())?;
            check_silence_without_key(t, before)?;
            let mut next = t.initiate();
            establish_as(t, TSS_AN_002, &mut next, &region)
        }),
    rule("tss-send/lost-key-initiator", "An initiator that has lost its current key retransmits nothing")
        .checks(&[TSS_AN_002, TSS_CLEAR_002])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (_, target) = write_in_flight(t)?;
            let before = lose_current_key(t)?;
            t.pause(t.soon() + t.rto() * 4)?;
            check_silence_without_key(t, before)?;
            // Open: whether the device goes on with the write that it could not retransmit.
            let peer = t.peer_of_job(102)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            Target::accept_beside(t, &[&target])?.ack(t, 0)?;
            t.ends(TSS_AN_002, written, Status::Ok)
        }),
    rule("tss-send/lost-key-data", "A target that has lost its current key retransmits no read data")
        .checks(&[TSS_AN_002, TSS_CLEAR_002])
        .needs(&[RUD, WRITE, READ, TSS])
        .run(|t| {
            let length = t.beyond_ack()?;
            let (pdc, region) = open_as(t, TSS_AN_002, t.value(&SECURED), |_| {})?;
            t.request(&pdc, pdc.request(1).read(&region, 0, length)?)?;
            t.need("the data of the read", t.soon(), |seen| {
                (seen.is_for(&pdc) && !seen.payload().is_empty()).then_some(())
            })?;
            let before = lose_current_key(t)?;
            t.pause(t.soon() + t.rto() * 4)?;
            check_silence_without_key(t, before)?;
            let mut next = t.initiate();
            establish_as(t, TSS_AN_002, &mut next, &region)
        }),
    rule("tss-send/lost-key-rudi", "A device that has lost its current key retransmits no RUDI request")
        .checks(&[TSS_AN_002, TSS_CLEAR_002])
        .needs(&[RUD, WRITE, RUDI, TSS])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            t.post(post_idempotent(PostKind::Write, peer, 64))?;
            t.need("a RUDI request", t.later(), rudi_request)?;
            let before = lose_current_key(t)?;
            t.pause(t.soon() + t.rto() * 4)?;
            check_silence_without_key(t, before)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            Target::accept(t)?.ack(t, 0)?;
            t.ends(TSS_AN_002, written, Status::Ok)
        }),
];

/// The numbers of protected packets and of plaintext packets that the device has sent.
struct Sent {
    protected: usize,
    plaintext: usize,
}

fn sent(t: &mut Test<'_>) -> Result<Sent, Stop> {
    let shield = t.shield()?;
    Ok(Sent { protected: shield.seen.len(), plaintext: shield.clear })
}

/// Removes the key with which the device sends, and installs another one with which the suite sends. Skips
/// the rule if the device refuses that. Returns the packets so far.
fn lose_current_key(t: &mut Test<'_>) -> Result<Sent, Stop> {
    let second = t.fresh_secret();
    let shield = t.shield()?;
    let lost = shield.secrets[0].take();
    (shield.secrets[1], shield.an) = (Some(second), true);
    let installed = t.install();
    // A packet that left before still opens.
    t.shield()?.secrets[0] = lost;
    match installed {
        Err(Stop::Inconclusive(reason)) => return skip(reason),
        other => other?,
    }
    t.settle()?;
    sent(t)
}

/// Checks that the device has sent nothing since then, and makes it send under its other key.
fn check_silence_without_key(t: &mut Test<'_>, before: Sent) -> Outcome {
    let now = sent(t)?;
    t.check(TSS_AN_002, "protected packets without a key:", 0, now.protected - before.protected);
    t.check(TSS_CLEAR_002, "packets in the clear:", 0, now.plaintext - before.plaintext);
    t.forget();
    let shield = t.shield()?;
    shield.secrets[0] = None;
    shield.installed.an = 1;
    t.install()
}

/// Returns the packet of [`ASKING`], without protection.
fn asking_packet(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<Wire, Stop> {
    let packet = match t.value(&ASKING) {
        Asking::Write => return plain_write(pdc, region, 1),
        Asking::Opening => {
            let other = t.initiate();
            return plain_write(&other, region, 0);
        }
        Asking::Refused => pdc.request(1).write_nowhere(region, &[1])?.build()?,
        Asking::Read => pdc.request(1).read(region, 0, 8)?.build()?,
        Asking::Probe => pdc.probe(7, pdc.psn(0))?,
        Asking::AckRequest => pdc.control(CtlType::ACK_REQUEST, pdc.psn(9), 0)?,
        Asking::Close => pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?,
        Asking::Rudi => rudi(0x77, &pdc.request(1).write(region, 64, &[2; 32])?)?,
    };
    Ok(pdc.wire(&packet))
}
