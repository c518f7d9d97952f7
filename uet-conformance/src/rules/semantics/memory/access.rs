//! Permissions, bounds, generations and sizes, checked for each kind of operation (section 3.4.1).

use crate::elements::{kind, supported};
use crate::prelude::*;
use crate::region::DENIED;
use crate::rules::steps::HEADER;
use crate::{Part, RequestSession};
use uet_control::{Permission, PostReceive};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// An operation on a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Write,
    Read,
    Atomic,
    Fetch,
    Swap,
    FetchSwap,
}

/// An operation, and the permissions of a region that refuses it. Open: whether an atomic needs permission to
/// read, to write, or one of its own. A region that may only be read has at most one of them.
const ACCESS: Axis<(Access, &'static [Permission])> = axis("access").needing(&[
    ("write-without-write", (Access::Write, &[Permission::Read, Permission::Atomic]), &[WRITE]),
    ("read-without-read", (Access::Read, &[Permission::Write, Permission::Atomic]), &[READ]),
    ("atomic-with-read", (Access::Atomic, &[Permission::Read]), &[ATOMIC]),
    ("fetch-with-read", (Access::Fetch, &[Permission::Read]), &[FETCH_ATOMIC]),
    ("swap-with-read", (Access::Swap, &[Permission::Read]), &[ATOMIC]),
    ("fetch-swap-with-read", (Access::FetchSwap, &[Permission::Read]), &[FETCH_ATOMIC]),
]);

const OPERATION: Axis<Access> = axis("operation").needing(&[
    ("write", Access::Write, &[WRITE]),
    ("read", Access::Read, &[READ]),
    ("atomic", Access::Atomic, &[ATOMIC]),
    ("fetch", Access::Fetch, &[FETCH_ATOMIC]),
    ("swap", Access::Swap, &[ATOMIC]),
]);

/// The offset of an access of 8 bytes to a region of 64 bytes.
const OFFSET: Axis<u64> = axis("offset").values(&[
    ("at-the-end", 64),
    ("wraps-at-the-size", 3 * 64 + 8),
    ("wraps-at-2-16", (1 << 16) + 8),
    ("wraps-at-2-32", (1 << 32) + 8),
    ("wraps-at-2-48", (1 << 48) + 8),
    ("highest-bit", (1 << 63) + 8),
    ("maximum", u64::MAX - 7),
]);

/// The opcode and header of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendForm {
    Plain,
    PlainMedium,
    PlainSmall,
    Tagged,
    TaggedMedium,
    Rendezvous,
    RendezvousTagged,
    Deferrable,
    DeferrableTagged,
    Datagram,
    TaggedAtomic,
}

const SEND_FORM: Axis<SendForm> = axis("opcode").needing(&[
    ("send", SendForm::Plain, &[SEND, RECEIVE]),
    ("send-medium", SendForm::PlainMedium, &[SEND, RECEIVE]),
    ("send-small", SendForm::PlainSmall, &[SEND, RECEIVE]),
    ("tagged", SendForm::Tagged, &[TSEND, RECEIVE]),
    ("tagged-medium", SendForm::TaggedMedium, &[TSEND, RECEIVE]),
    ("rendezvous", SendForm::Rendezvous, &[RENDEZVOUS_SEND]),
    ("rendezvous-tagged", SendForm::RendezvousTagged, &[RENDEZVOUS_SEND]),
    ("deferrable", SendForm::Deferrable, &[DEFERRABLE_SEND]),
    ("deferrable-tagged", SendForm::DeferrableTagged, &[DEFERRABLE_SEND]),
    ("datagram", SendForm::Datagram, &[UUD, DATAGRAM]),
    ("tagged-atomic", SendForm::TaggedAtomic, &[TSEND, ATOMIC]),
]);

/// The generation in a send. The index has generation 3.
const STALE: Axis<u8> =
    axis("generation").values(&[("older", 2), ("newer", 4), ("none", 0), ("highest-bit", 0x83)]);

/// An operation that moves bytes to or from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transfer {
    Write,
    Read,
    Send,
    Tagged,
}

const TRANSFER: Axis<Transfer> = axis("operation").needing(&[
    ("write", Transfer::Write, &[WRITE]),
    ("read", Transfer::Read, &[READ]),
    ("send", Transfer::Send, &[SEND, RECEIVE]),
    ("tagged", Transfer::Tagged, &[TSEND, RECEIVE]),
]);

/// A length, in bytes, as a function of the MTU and of Max_ACK_Data_Size.
const SIZE: Axis<fn(usize, usize) -> usize> = axis("size").values(&[
    ("0", |_, _| 0),
    ("1", |_, _| 1),
    ("ack", |_, ack| ack),
    ("ack-plus-1", |_, ack| ack + 1),
    ("mtu-minus-1", |mtu, _| mtu - 1),
    ("mtu", |mtu, _| mtu),
    ("mtu-plus-1", |mtu, _| mtu + 1),
    ("2-mtu", |mtu, _| 2 * mtu),
    ("3-mtu-plus-7", |mtu, _| 3 * mtu + 7),
]);

pub(super) const RULES: &[Rule] = &[
    rule("access/denied", "A region refuses every operation that needs a permission it does not grant")
        .checks(&[SES_MEM_003, SES_MEM_005, SES_GTD_001, SES_ERR_001])
        .over(&[&ACCESS, &HEADER, &MODE])
        .run(|t| {
            let (access, granted) = t.value(&ACCESS);
            let permissions = granted.to_vec();
            let (region, memory) = t.exposed(64, |region| ExposeRegion { permissions, ..region })?;
            let message = operation(access, &region, 8)?;
            expect_refused(t, SES_MEM_003, &message, Some((SES_MEM_005, DENIED)), (&region, &memory))
        }),
    rule("access/outside", "Every operation outside its region is refused and leaves memory unchanged")
        .checks(&[SES_MEM_004, SES_GTD_001, SES_ERR_001])
        .over(&[&OPERATION, &OFFSET, &HEADER, &MODE])
        .run(|t| {
            let (region, memory) = t.patterned(64)?;
            let message = operation(t.value(&OPERATION), &region, t.value(&OFFSET))?;
            expect_refused(t, SES_MEM_004, &message, None, (&region, &memory))
        }),
    rule("access/generation", "A send with a wrong generation is refused and consumes no receive")
        .checks(&[SES_GEN_001, SES_GEN_002])
        .needs(&[RECEIVE])
        .over(&[&SEND_FORM, &STALE, &MODE])
        .run(|t| {
            let (form, stale) = (t.value(&SEND_FORM), t.value(&STALE));
            t.exposed(8, |region| ExposeRegion { generation: 3, ..region })?;
            let tagged = matches!(
                form,
                SendForm::Tagged
                    | SendForm::TaggedMedium
                    | SendForm::RendezvousTagged
                    | SendForm::DeferrableTagged
                    | SendForm::TaggedAtomic
            );
            let posted = t.posted(if tagged { tagged_room(8, 0x70) } else { room(8) })?;
            let (wrong, right) = (send(form, stale, 1)?, send(form, 3, 2)?);
            if form == SendForm::Datagram {
                let pdc = t.initiate();
                let packet = |part: &Part| -> Request { pdc.request(0).ses(part.ses, &part.payload) };
                t.send(&pdc, &t.datagram(&packet(&wrong))?)?;
                t.expect_waiting(SES_GEN_001, &posted)?;
                t.check_memory(SES_GEN_001, &posted.buffer, 0, &posted.before)?;
                t.send(&pdc, &t.datagram(&packet(&right))?)?;
                return t.expect_received(SES_GEN_001, &posted, &bytes(8)).map(drop);
            }
            let mut session = t.session();
            let psn = session.ask(t, &wrong)?;
            let answer = session.refused(t, SES_GEN_001, psn)?;
            t.check(SES_GEN_002, "return_code", ReturnCode::BAD_GENERATION, answer.code());
            let current = answer.response.map(|response| response.ri_generation());
            t.check(SES_GEN_002, "ri_generation", Some(3), current);
            t.expect_waiting(SES_GEN_001, &posted)?;
            t.check_memory(SES_GEN_001, &posted.buffer, 0, &posted.before)?;
            let psn = session.ask(t, &right)?;
            let answer = session.answer(t, psn)?;
            if form == SendForm::TaggedAtomic {
                supported(&answer, kind(AtomicOpcode::WRITE, AtomicDatatype::UINT8))?;
                session.accepted(t, SES_GEN_001, psn)?;
                return t.expect_filled(SES_GEN_001, &posted, &bytes(8));
            }
            session.accepted(t, SES_GEN_001, psn)?;
            t.expect_received(SES_GEN_001, &posted, &bytes(8)).map(drop)
        }),
    rule("access/size", "An operation of any size transfers all its bytes and no others")
        .checks(&[SES_RESP_001, SES_MATCH_006, SES_PLACE_001, SES_READ_001, SES_READ_003])
        .over(&[&TRANSFER, &SIZE, &HEADER, &MODE])
        .run(|t| {
            let ack = t.parameter("max_ack_data_size") as usize;
            let length = t.value(&SIZE)(t.mtu(), ack.min(t.mtu() - 1));
            match t.value(&TRANSFER) {
                Transfer::Write => check_write(t, length),
                Transfer::Read => check_read(t, length, ack),
                Transfer::Send => check_send(t, Message::send(&bytes(length)), room(length as u64 + 8)),
                Transfer::Tagged => {
                    let receive = tagged_room(length as u64 + 8, 0x70);
                    check_send(t, Message::tagged(0x70, &bytes(length)), receive)
                }
            }
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(15).take(length).collect()
}

/// Returns an operation on 8 bytes of a region.
fn operation(access: Access, region: &Region, offset: u64) -> Result<Message, Stop> {
    let atomic = |opcode| Message::atomic(region, offset, (opcode, AtomicDatatype::UINT64), &[1; 8]);
    let swap = || {
        let compare = u64::from_le_bytes([0x5a; 8]).into();
        Message::swap(region, offset, (AtomicOpcode::CSWAP_NE, AtomicDatatype::UINT64, 8), (compare, 99))
    };
    Ok(match access {
        Access::Write => Message::write(region, offset, &bytes(8)),
        Access::Read => Message::read(region, offset, 8),
        Access::Atomic => atomic(AtomicOpcode::SUM)?,
        Access::Fetch => atomic(AtomicOpcode::SUM)?.opcode(Opcode::UET_FETCHING_ATOMIC),
        Access::Swap => swap()?,
        Access::FetchSwap => swap()?.opcode(Opcode::UET_FETCHING_ATOMIC),
    })
}

/// Sends a message with the header of this instance and returns its PSNs.
fn send_with_header(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    message: &Message,
) -> Result<Vec<Psn>, Stop> {
    let mtu = t.mtu();
    let medium = t.value(&HEADER) && message.length as usize <= mtu;
    let parts = if medium { vec![message.medium()?] } else { message.parts(mtu)? };
    session.ask_all(t, &parts)
}

/// Checks that a write changes all its bytes and no others.
fn check_write(t: &mut Test<'_>, length: usize) -> Outcome {
    let data = bytes(length);
    let mut session = t.session();
    let (region, mut memory) = t.patterned(length as u64 + 24)?;
    memory[8..8 + length].copy_from_slice(&data);
    let psns = send_with_header(t, &mut session, &Message::write(&region, 8, &data))?;
    session.all_accepted(t, SES_RESP_001, &psns)?;
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
}

/// Checks that a read returns its bytes, and in ACKs only if they fit.
fn check_read(t: &mut Test<'_>, length: usize, ack: usize) -> Outcome {
    let mut session = t.session();
    let (region, memory) = t.patterned(length as u64 + 24)?;
    let psns = send_with_header(t, &mut session, &Message::read(&region, 8, length as u32))?;
    if length > 0 {
        let pieces = session.data(t, SES_READ_001, length)?;
        let in_acks = pieces.iter().filter(|piece| piece.in_ack).count();
        if length > ack {
            t.check(SES_READ_003, "packets of read data in ACKs", 0, in_acks);
        }
        let received: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
        t.check(SES_READ_001, "bytes of read data", length, received);
        let wrong = crate::assemble(&pieces, length)
            .map_or(Some(0), |read| read.iter().zip(&memory[8..]).position(|(seen, held)| seen != held));
        t.check(SES_READ_001, "the first byte that differs from memory", None, wrong);
    }
    session.all_accepted(t, SES_RESP_001, &psns)
}

/// Checks that a send fills its receive with all its bytes.
fn check_send(t: &mut Test<'_>, message: Message, receive: PostReceive) -> Outcome {
    let mut session = t.session();
    let posted = t.posted(receive)?;
    let psns = send_with_header(t, &mut session, &message)?;
    session.all_accepted(t, SES_RESP_001, &psns)?;
    t.expect_received(SES_MATCH_006, &posted, &message.data).map(drop)
}

/// Expects that the device refuses an operation, returns no data and leaves memory unchanged.
fn expect_refused(
    t: &mut Test<'_>,
    requirement: &Requirement,
    message: &Message,
    codes: Option<(&'static Requirement, &[ReturnCode])>,
    (region, memory): (&Region, &[u8]),
) -> Outcome {
    let medium = t.value(&HEADER);
    let mut session = t.session();
    let part = if medium { message.medium()? } else { message.whole()? };
    let psn = session.ask(t, &part)?;
    let pdc = session.pdc.clone();
    t.expect_none(requirement, "no data from the region", t.soon(), |seen| {
        (seen.is_for(&pdc) && !seen.payload().is_empty()).then_some(())
    })?;
    t.check_memory(requirement, region, 0, memory)?;
    let answer = session.refused(t, requirement, psn)?;
    // Open: the code of other refusals.
    if let Some((requirement, codes)) = codes {
        t.one_of(requirement, "return_code", codes, answer.code());
    }
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    t.check(SES_ERR_001, "modified_length", 0, answer.length(0));
    // The message_id and the region are usable for the next request.
    let granted = Message::read(region, 0, 8);
    let psn = session.ask(t, &granted.whole()?)?;
    session.answer(t, psn)?;
    t.check_memory(requirement, region, 0, memory)
}

/// Returns a send of 8 bytes to index 10 with this generation.
fn send(form: SendForm, generation: u8, id: u16) -> Result<Part, Stop> {
    let data = bytes(8);
    let new = |opcode| Message { generation, ..Message::new(opcode).selector(0x70).data(&data).named(id) };
    let tokens = Some((0x77 + u32::from(id), 0));
    let source =
        Region { number: 0, job: 101, process: 1, index: 1, generation: 0, key: 1, message_id: 1, length: 8 };
    Ok(match form {
        SendForm::Plain => new(Opcode::UET_SEND).whole()?,
        SendForm::PlainMedium => new(Opcode::UET_SEND).medium()?,
        SendForm::PlainSmall => new(Opcode::UET_SEND).small()?,
        SendForm::Tagged => new(Opcode::UET_TAGGED_SEND).whole()?,
        SendForm::TaggedMedium => new(Opcode::UET_TAGGED_SEND).medium()?,
        SendForm::Rendezvous => new(Opcode::UET_RENDEZVOUS_SEND).rendezvous(8, &source, 0)?.whole()?,
        SendForm::RendezvousTagged => new(Opcode::UET_RENDEZVOUS_TSEND).rendezvous(8, &source, 0)?.whole()?,
        SendForm::Deferrable => Message { tokens, ..new(Opcode::UET_DEFERRABLE_SEND) }.whole()?,
        SendForm::DeferrableTagged => Message { tokens, ..new(Opcode::UET_DEFERRABLE_TSEND) }.whole()?,
        SendForm::Datagram => new(Opcode::UET_DATAGRAM_SEND).named(0).whole()?,
        SendForm::TaggedAtomic => {
            let region = Region { process: 2, index: 10, key: 0x70, generation, ..source };
            // Elements of one byte look the same in any byte order.
            let kind = (AtomicOpcode::WRITE, AtomicDatatype::UINT8);
            Message::atomic(&region, 0, kind, &data)?.opcode(Opcode::UET_TSEND_ATOMIC).named(id).whole()?
        }
    })
}
