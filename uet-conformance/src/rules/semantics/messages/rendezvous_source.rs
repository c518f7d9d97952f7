//! Rendezvous sends of the device: its request carries the first bytes, and its peer reads the rest (section
//! 3.4.2).

use crate::RequestSession;
use crate::prelude::*;
use uet_control::{Fill, Hex};
use uet_wire::ses::{ExtBuf, Rendezvous};

/// A read that is not the read of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrongRead {
    /// Another address reads the rest.
    OtherAddress,
    /// Another address reads from the rest on, past the end of the memory.
    OtherAddressBeyond,
    /// The target reads the bytes that it has received.
    EagerPart,
    /// The target reads the bytes that it has received, which are more than the rest.
    LongEagerPart,
    /// The target reads as many bytes as the rest has, but starts before it.
    AcrossBoundary,
    /// The target reads the first half of the rest twice.
    FirstHalfTwice,
    /// The target reads at the offset of the rest with another key.
    OtherKey,
    /// The target reads with the key of the rest, far beyond its end.
    FarBeyond,
}

const WRONG_READ: Axis<WrongRead> = axis("read").values(&[
    ("other-address", WrongRead::OtherAddress),
    ("other-address-beyond-end", WrongRead::OtherAddressBeyond),
    ("eager-part", WrongRead::EagerPart),
    ("long-eager-part", WrongRead::LongEagerPart),
    ("across-boundary", WrongRead::AcrossBoundary),
    ("first-half-twice", WrongRead::FirstHalfTwice),
    ("other-key", WrongRead::OtherKey),
    ("far-beyond-end", WrongRead::FarBeyond),
]);

/// The order in which the read requests of the rest arrive.
const ORDER: Axis<[usize; 4]> = axis("order").needing(&[
    ("in-order", [0, 1, 2, 3], &[]),
    ("reversed", [3, 2, 1, 0], &[RUD]),
    ("second-late", [0, 2, 1, 3], &[RUD]),
    ("second-last", [0, 2, 3, 1], &[RUD]),
    ("alternating", [3, 1, 2, 0], &[RUD]),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RENDEZVOUS_SEND]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule(
        "rendezvous/source-request",
        "A rendezvous send carries the first eager_length bytes of its message",
    )
    .checks(&[SES_RNDV_001])
    .run(|t| {
        let (_, target, ext) = short_offer(t)?;
        let (fields, payload) = (target.said(0)?, target.packet(0)?.payload());
        t.check(SES_RNDV_001, "opcode", Opcode::UET_RENDEZVOUS_SEND, fields.opcode());
        t.check(SES_RNDV_001, "request_length", 300, fields.request_length);
        // The device may choose another eager_length than the configured one.
        let eager = ext.eager_length() as usize;
        t.check(SES_RNDV_001, "bytes of payload", eager, payload.len());
        t.same_bytes(SES_RNDV_001, "the first bytes of the message", &bytes(300)[..eager], &payload);
        Ok(())
    }),
    rule("rendezvous/source-short-message", "eager_length is at most the length of a short message")
        .checks(&[SES_RNDV_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let fill = Some(Fill::Hex(Hex(bytes(30))));
            t.post(Post { eager: Some(50), fill, ..post(PostKind::RendezvousSend, peer, 30) })?;
            let target = Target::accept(t)?;
            let (fields, payload) = (target.said(0)?, target.packet(0)?.payload());
            let Some(ExtBuf::Rendezvous(ext)) = fields.ext else {
                return Err(Stop::Skipped("the device sends a short message without rendezvous".into()));
            };
            let eager = ext.eager_length();
            t.check(SES_RNDV_001, "bytes of payload", eager as usize, payload.len());
            let is_within = eager <= fields.request_length;
            t.holds(SES_RNDV_001, "eager_length is at most request_length", is_within, eager.to_string());
            Ok(())
        }),
    rule("rendezvous/source-rest", "The extension header of the device names the memory that holds the rest")
        .checks(&[SES_RNDV_002])
        .run(|t| {
            let (_, target, ext) = short_offer(t)?;
            target.ack(t, 0)?;
            let (mut session, rest) = read_rest(t, &target, &ext)?;
            let pieces = session.data(t, SES_RNDV_002, rest.length as usize)?;
            let read = crate::assemble(&pieces, rest.length as usize);
            let expected = &bytes(300)[ext.eager_length() as usize..];
            t.same_bytes(SES_RNDV_002, "the rest of the message", expected, &read.unwrap_or_default());
            Ok(())
        }),
    rule("rendezvous/source-completion", "A rendezvous send of the device completes after its rest is read")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .run(|t| {
            let (posted, target, ext) = short_offer(t)?;
            target.ack(t, 0)?;
            t.settle()?;
            t.is_open(SES_RNDV_003, posted)?;
            let (mut session, rest) = read_rest(t, &target, &ext)?;
            session.data(t, SES_RNDV_002, rest.length as usize)?;
            t.ends_with(SES_RNDV_003, posted, (Status::Ok, 300))?;
            Ok(())
        }),
    rule("rendezvous/source-short-rest", "A rest that fits into an ACK completes the device's send")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .run(|t| {
            // The device may wait until the data in its ACK is cleared.
            let (posted, target, ext) = offer(t, 58, 50)?;
            target.ack(t, 0)?;
            let (mut session, rest) = read_rest(t, &target, &ext)?;
            let pieces = session.data(t, SES_RNDV_002, rest.length as usize)?;
            for piece in pieces.iter().filter(|piece| piece.in_ack) {
                t.send(&session.pdc, &session.pdc.control(CtlType::CLEAR_COMMAND, Psn(0), piece.psn.0)?)?;
            }
            t.ends_with(SES_RNDV_003, posted, (Status::Ok, 58))?;
            Ok(())
        }),
    rule("rendezvous/source-long-rest", "The device's send completes when all packets of its rest are read")
        .checks(&[SES_RNDV_002, SES_RNDV_003])
        .over(&[&ORDER, &MODE, &START])
        .run(|t| {
            let (length, order) = (4 * t.mtu(), t.value(&ORDER));
            let (posted, target, ext) = offer(t, length, 50)?;
            target.ack(t, 0)?;
            let rest = rest_read(&target, &ext)?;
            let mut session = t.session();
            // A ROD target accepts nothing above a gap.
            session.pdc.rod &= order.is_sorted();
            session.ask_in_order(t, &rest.parts(t.mtu())?, &order)?;
            let pieces = session.data(t, SES_RNDV_002, rest.length as usize)?;
            let read = crate::assemble(&pieces, rest.length as usize);
            let expected = &bytes(length)[ext.eager_length() as usize..];
            t.same_bytes(SES_RNDV_002, "the rest of the message", expected, &read.unwrap_or_default());
            t.ends_with(SES_RNDV_003, posted, (Status::Ok, length as u64))?;
            Ok(())
        }),
    rule("rendezvous/source-wrong-read", "Reads of other bytes or peers do not complete the device's send")
        .checks(&[SES_RNDV_002, SES_RNDV_003])
        .needs(&[RENDEZVOUS_SEND, TWO_ADDRESSES])
        .over(&[&WRONG_READ, &MODE])
        .run(|t| {
            let wrong = t.value(&WRONG_READ);
            let eager = if wrong == WrongRead::LongEagerPart { 200 } else { 50 };
            let (posted, target, ext) = offer(t, 300, eager)?;
            target.ack(t, 0)?;
            let rest = rest_read(&target, &ext)?;
            let half = Message { length: rest.length / 2, ..rest.clone() };
            let (address, reads, last) = match wrong {
                WrongRead::OtherAddress => (1, vec![rest.clone()], rest),
                WrongRead::OtherAddressBeyond => {
                    (1, vec![Message { length: t.mtu() as u32, ..rest.clone() }], rest)
                }
                WrongRead::EagerPart | WrongRead::LongEagerPart | WrongRead::AcrossBoundary => {
                    let (back, length) = match wrong {
                        WrongRead::AcrossBoundary => (10, rest.length),
                        _ => (ext.eager_length(), ext.eager_length()),
                    };
                    let Some(offset) = rest.offset.checked_sub(back.into()) else {
                        return skip("the eager bytes are not before the rest");
                    };
                    (0, vec![Message { offset, length, ..rest.clone() }], rest)
                }
                WrongRead::OtherKey => {
                    (0, vec![Message { selector: rest.selector ^ 0x5a5a, ..rest.clone() }], rest)
                }
                WrongRead::FarBeyond => {
                    (0, vec![Message { offset: rest.offset ^ 1 << 40, ..rest.clone() }], rest)
                }
                WrongRead::FirstHalfTwice => {
                    let offset = rest.offset + u64::from(half.length);
                    let last = Message { offset, length: rest.length - half.length, ..rest };
                    (0, vec![half.clone().named(2), half.named(3)], last)
                }
            };
            let mut other = RequestSession::new(t.initiate_from(address)?);
            for read in reads {
                let psn = other.ask(t, &read.whole()?)?;
                // The device may refuse the read.
                if other.answer(t, psn)?.is_ok() {
                    other.data(t, SES_RNDV_002, read.length as usize)?;
                }
            }
            t.settle()?;
            t.is_open(SES_RNDV_003, posted)?;
            let mut session = t.session();
            session.ask(t, &last.whole()?)?;
            session.data(t, SES_RNDV_002, last.length as usize)?;
            t.ends_with(SES_RNDV_003, posted, (Status::Ok, 300))?;
            Ok(())
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(12).take(length).collect()
}

/// Has the device offer 300 bytes with 50 eager bytes.
fn short_offer(t: &mut Test<'_>) -> Result<(Operated, Target, Rendezvous), Stop> {
    offer(t, 300, 50)
}

/// Has the device post a rendezvous send of `length` bytes with `eager` bytes in its request.
fn offer(t: &mut Test<'_>, length: usize, eager: u64) -> Result<(Operated, Target, Rendezvous), Stop> {
    let peer = t.peer(0)?;
    let fill = Some(Fill::Hex(Hex(bytes(length))));
    let posted = t.post(Post { eager: Some(eager), fill, ..post(PostKind::RendezvousSend, peer, length) })?;
    let target = Target::accept(t)?;
    let Some(ExtBuf::Rendezvous(ext)) = target.said(0)?.ext else {
        let seen = target.packet(0)?.seen.uet().to_string();
        t.holds(SES_RNDV_001, "a rendezvous send has its extension header", false, seen);
        return Err(Stop::Failed);
    };
    require((ext.eager_length() as usize) < length, "the device sends all bytes eagerly")?;
    Ok((posted, target, ext))
}

/// Returns the read of the rest that the extension header names.
fn rest_read(target: &Target, ext: &Rendezvous) -> Result<Message, Stop> {
    let fields = target.said(0)?;
    Ok(Message {
        relative: fields.head.rel(),
        job: fields.address.job_id(),
        process: ext.read_pid_on_fep(),
        index: ext.read_resource_index(),
        generation: ext.read_ri_generation(),
        selector: ext.read_memory_key(),
        offset: ext.read_offset(),
        length: fields.request_length - ext.eager_length(),
        ..Message::new(Opcode::UET_READ)
    })
}

/// Reads the rest.
fn read_rest(t: &mut Test<'_>, target: &Target, ext: &Rendezvous) -> Result<(RequestSession, Message), Stop> {
    let rest = rest_read(target, ext)?;
    let mut session = t.session();
    session.ask_all(t, &rest.parts(t.mtu())?)?;
    Ok((session, rest))
}
