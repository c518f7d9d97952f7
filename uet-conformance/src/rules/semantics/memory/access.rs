//! Permissions, bounds, generations and sizes of each operation (section 3.4.1).

use crate::Part;
use crate::elements::{kind, supported};
use crate::prelude::*;
use crate::rules::steps::HEADER;
use uet_control::Permission;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// An operation on a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Write,
    Read,
    Atomic,
    Fetch,
    FetchRead,
    Swap,
    FetchSwap,
}

/// An operation, and a permission that it cannot do without. Open: whether an atomic needs the permission to
/// write, too.
const ACCESS: Axis<(Access, Permission)> = axis("access").needing(&[
    ("write-without-write", (Access::Write, Permission::Write), &[WRITE]),
    ("read-without-read", (Access::Read, Permission::Read), &[READ]),
    ("atomic-without-atomic", (Access::Atomic, Permission::Atomic), &[ATOMIC]),
    ("fetch-without-atomic", (Access::Fetch, Permission::Atomic), &[FETCH_ATOMIC]),
    ("fetch-without-read", (Access::Fetch, Permission::Read), &[FETCH_ATOMIC]),
    ("fetch-read-without-read", (Access::FetchRead, Permission::Read), &[FETCH_ATOMIC]),
    ("swap-without-atomic", (Access::Swap, Permission::Atomic), &[ATOMIC]),
    ("fetch-swap-without-atomic", (Access::FetchSwap, Permission::Atomic), &[FETCH_ATOMIC]),
    ("fetch-swap-without-read", (Access::FetchSwap, Permission::Read), &[FETCH_ATOMIC]),
]);

const OPERATION: Axis<Access> = axis("operation").needing(&[
    ("write", Access::Write, &[WRITE]),
    ("read", Access::Read, &[READ]),
    ("atomic", Access::Atomic, &[ATOMIC]),
    ("fetch", Access::Fetch, &[FETCH_ATOMIC]),
    ("swap", Access::Swap, &[ATOMIC]),
]);

/// The offset of 8 bytes in a region of 64.
const PLACE: Axis<u64> = axis("place").values(&[
    ("at-the-end", 64),
    ("wraps-at-the-size", 3 * 64 + 8),
    ("wraps-at-2-16", (1 << 16) + 8),
    ("wraps-at-2-32", (1 << 32) + 8),
    ("wraps-at-2-48", (1 << 48) + 8),
    ("highest-bit", (1 << 63) + 8),
    ("last-of-all", u64::MAX - 7),
]);

const PARTS: Axis<Access> =
    axis("operation").needing(&[("write", Access::Write, &[WRITE]), ("read", Access::Read, &[READ])]);

/// The width at which buffer_offset and message_offset add up to an offset in the region.
const SUM: Axis<u32> = axis("sum").values(&[("2-64", 64), ("2-32", 32)]);

/// The bytes beyond the end of the region, as a function of the MTU.
const EXCESS: Axis<fn(usize) -> usize> = axis("excess").values(&[("1", |_| 1), ("2-mtu", |mtu| 2 * mtu)]);

/// The packet that arrives first.
const FIRST: Axis<usize> = axis("first").values(&[("first", 0), ("second", 1)]);

/// A send to a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Send {
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

const SEND_FORM: Axis<Send> = axis("opcode").needing(&[
    ("send", Send::Plain, &[SEND, RECEIVE]),
    ("send-medium", Send::PlainMedium, &[SEND, RECEIVE]),
    ("send-small", Send::PlainSmall, &[SEND, RECEIVE]),
    ("tagged", Send::Tagged, &[TSEND, RECEIVE]),
    ("tagged-medium", Send::TaggedMedium, &[TSEND, RECEIVE]),
    ("rendezvous", Send::Rendezvous, &[RENDEZVOUS_SEND]),
    ("rendezvous-tagged", Send::RendezvousTagged, &[RENDEZVOUS_SEND]),
    ("deferrable", Send::Deferrable, &[DEFERRABLE_SEND]),
    ("deferrable-tagged", Send::DeferrableTagged, &[DEFERRABLE_SEND]),
    ("datagram", Send::Datagram, &[UUD, DATAGRAM]),
    ("tagged-atomic", Send::TaggedAtomic, &[TSEND, ATOMIC]),
]);

/// The generation of a send to an index whose generation is 3.
const STALE: Axis<u8> =
    axis("generation").values(&[("older", 2), ("newer", 4), ("none", 0), ("highest-bit", 0x83)]);

/// The operation that carries bytes to or from the device.
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
            let (access, denied) = t.value(&ACCESS);
            let all = [Permission::Read, Permission::Write, Permission::Atomic];
            let permissions: Vec<Permission> = all.into_iter().filter(|it| *it != denied).collect();
            let (region, memory) = t.exposed(64, |region| ExposeRegion { permissions, ..region })?;
            let message = operation(access, &region, 8)?;
            let codes = [ReturnCode::PERM_VIOLATION, ReturnCode::AT_PERM];
            refuses(t, SES_MEM_003, &message, Some((SES_MEM_005, &codes)), (&region, &memory))
        }),
    rule("access/outside", "Every operation outside its region is refused and leaves memory unchanged")
        .checks(&[SES_MEM_004, SES_GTD_001, SES_ERR_001])
        .over(&[&OPERATION, &PLACE, &HEADER, &MODE])
        .run(|t| {
            let (region, memory) = t.patterned(64)?;
            let message = operation(t.value(&OPERATION), &region, t.value(&PLACE))?;
            refuses(t, SES_MEM_004, &message, None, (&region, &memory))
        }),
    rule("access/offset-overflow", "Offsets whose sum exceeds 2^32 or 2^64 do not wrap into the region")
        .checks(&[SES_MEM_004])
        .over(&[&PARTS, &SUM, &FIRST, &MODE])
        .run(|t| {
            // The first packet lies beyond the region; the second one would lie in it, if the sum of its offsets
            // lost its highest bit.
            let mtu = t.mtu();
            let (region, memory) = t.patterned(mtu as u64 + 64)?;
            let offset = (u64::MAX >> (64 - t.value(&SUM))) - mtu as u64 + 1 + 8;
            let message = match t.value(&PARTS) {
                Access::Read => Message::read(&region, offset, mtu as u32 + 40),
                _ => Message::write(&region, offset, &bytes(mtu + 40)),
            };
            refuses_parts(t, &message, (&region, &memory))
        }),
    rule("access/beyond-the-end", "A message that starts inside its region and ends outside changes nothing")
        .checks(&[SES_MEM_004])
        .over(&[&PARTS, &EXCESS, &FIRST, &MODE])
        .run(|t| {
            // The first packet lies in the region, the last one beyond its end.
            let mtu = t.mtu();
            let (region, memory) = t.patterned(mtu as u64 + 64)?;
            let length = mtu + 64 - 8 + t.value(&EXCESS)(mtu);
            let message = match t.value(&PARTS) {
                Access::Read => Message::read(&region, 8, length as u32),
                _ => Message::write(&region, 8, &bytes(length)),
            };
            refuses_parts(t, &message, (&region, &memory))
        }),
    rule("access/generation", "A send with a wrong generation is refused and consumes no receive")
        .checks(&[SES_GEN_001, SES_GEN_002])
        .needs(&[RECEIVE])
        .over(&[&SEND_FORM, &STALE, &MODE])
        .run(|t| {
            let (sending, stale) = (t.value(&SEND_FORM), t.value(&STALE));
            t.exposed(8, |region| ExposeRegion { generation: 3, ..region })?;
            let tagged = matches!(
                sending,
                Send::Tagged
                    | Send::TaggedMedium
                    | Send::RendezvousTagged
                    | Send::DeferrableTagged
                    | Send::TaggedAtomic
            );
            let posted = t.posted(if tagged { tagged_room(8, 0x70) } else { room(8) })?;
            let (wrong, right) = (send(sending, stale, 1)?, send(sending, 3, 2)?);
            if sending == Send::Datagram {
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
            let told = answer.response.map(|response| response.ri_generation());
            t.check(SES_GEN_002, "ri_generation", Some(3), told);
            t.expect_waiting(SES_GEN_001, &posted)?;
            t.check_memory(SES_GEN_001, &posted.buffer, 0, &posted.before)?;
            let psn = session.ask(t, &right)?;
            let answer = session.answer(t, psn)?;
            if sending == Send::TaggedAtomic {
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
            let (mtu, ack) = (t.mtu(), t.parameter("max_ack_data_size") as usize);
            let (transfer, length) = (t.value(&TRANSFER), t.value(&SIZE)(mtu, ack.min(mtu - 1)));
            let data = bytes(length);
            let mut session = t.session();
            let parts = |message: Message, medium: bool| -> Result<Vec<Part>, Stop> {
                Ok(if medium && length <= mtu { vec![message.medium()?] } else { message.parts(mtu)? })
            };
            let medium = t.value(&HEADER);
            match transfer {
                Transfer::Write => {
                    let (region, mut memory) = t.patterned(length as u64 + 24)?;
                    memory[8..8 + length].copy_from_slice(&data);
                    let psns = session.ask_all(t, &parts(Message::write(&region, 8, &data), medium)?)?;
                    session.all_accepted(t, SES_RESP_001, &psns)?;
                    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
                }
                Transfer::Read => {
                    let (region, memory) = t.patterned(length as u64 + 24)?;
                    let psns =
                        session.ask_all(t, &parts(Message::read(&region, 8, length as u32), medium)?)?;
                    if length > 0 {
                        let pieces = session.data(t, SES_READ_001, length)?;
                        let ridden = pieces.iter().filter(|piece| piece.in_ack).count();
                        if length > ack {
                            t.check(SES_READ_003, "packets of read data in ACKs", 0, ridden);
                        }
                        let brought: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
                        t.check(SES_READ_001, "bytes of read data", length, brought);
                        let wrong = crate::assemble(&pieces, length).map_or(Some(0), |read| {
                            read.iter().zip(&memory[8..]).position(|(seen, held)| seen != held)
                        });
                        t.check(SES_READ_001, "the first byte that differs from memory", None, wrong);
                    }
                    session.all_accepted(t, SES_RESP_001, &psns)
                }
                Transfer::Send | Transfer::Tagged => {
                    let (posted, message) = match transfer {
                        Transfer::Send => (t.posted(room(length as u64 + 8))?, Message::send(&data)),
                        _ => (t.posted(tagged_room(length as u64 + 8, 0x70))?, Message::tagged(0x70, &data)),
                    };
                    let psns = session.ask_all(t, &parts(message, medium)?)?;
                    session.all_accepted(t, SES_RESP_001, &psns)?;
                    t.expect_received(SES_MATCH_006, &posted, &data).map(drop)
                }
            }
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(15).take(length).collect()
}

/// An operation on 8 bytes of a region.
fn operation(access: Access, region: &Region, offset: u64) -> Result<Message, Stop> {
    let of = |opcode| Message::atomic(region, offset, (opcode, AtomicDatatype::UINT64), &[1; 8]);
    let swap = || {
        let compare = u64::from_le_bytes([0x5a; 8]).into();
        Message::swap(region, offset, (AtomicOpcode::CSWAP_NE, AtomicDatatype::UINT64, 8), (compare, 99))
    };
    Ok(match access {
        Access::Write => Message::write(region, offset, &bytes(8)),
        Access::Read => Message::read(region, offset, 8),
        Access::Atomic => of(AtomicOpcode::SUM)?,
        Access::Fetch => of(AtomicOpcode::SUM)?.opcode(Opcode::UET_FETCHING_ATOMIC),
        Access::FetchRead => {
            let read = Message::atomic(region, offset, (AtomicOpcode::READ, AtomicDatatype::UINT64), &[])?;
            Message { length: 8, ..read.opcode(Opcode::UET_FETCHING_ATOMIC) }
        }
        Access::Swap => swap()?,
        Access::FetchSwap => swap()?.opcode(Opcode::UET_FETCHING_ATOMIC),
    })
}

/// Expects that the device refuses an operation, brings no data, and leaves memory as it is.
fn refuses(
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
    // Elsewhere the code is open.
    if let Some((requirement, codes)) = codes {
        t.one_of(requirement, "return_code", codes, answer.code());
    }
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    t.check(SES_ERR_001, "modified_length", 0, answer.length(0));
    // The message id and the region serve the next request.
    let granted = Message::read(region, 0, 8);
    let psn = session.ask(t, &granted.whole()?)?;
    session.answer(t, psn)?;
    t.check_memory(requirement, region, 0, memory)
}

/// Expects that the device refuses a message of several packets, brings no data, and leaves memory as it is.
fn refuses_parts(t: &mut Test<'_>, message: &Message, (region, memory): (&Region, &[u8])) -> Outcome {
    let mut session = t.session();
    let parts = message.parts(t.mtu())?;
    let mut order: Vec<usize> = (0..parts.len()).collect();
    let reversed = t.value(&FIRST) == 1;
    if reversed {
        order.reverse();
    }
    let psns = session.ask_in_order(t, &parts, &order)?;
    let pdc = session.pdc.clone();
    if pdc.rod && reversed {
        // An ordered context has dropped them.
        for (psn, part) in psns.iter().zip(&parts).skip(1) {
            session.again(t, *psn, part)?;
        }
    }
    t.expect_none(SES_MEM_004, "no data from the region", t.soon(), |seen| {
        (seen.is_for(&pdc) && !seen.payload().is_empty()).then_some(())
    })?;
    session.refused(t, SES_MEM_004, psns[1])?;
    t.check_memory(SES_MEM_004, region, 0, memory)
}

/// A send of 8 bytes to index 10, with this generation.
fn send(send: Send, generation: u8, id: u16) -> Result<Part, Stop> {
    let data = bytes(8);
    let new = |opcode| Message { generation, ..Message::new(opcode).selector(0x70).data(&data).named(id) };
    let tokens = Some((0x77 + u32::from(id), 0));
    let nowhere =
        Region { number: 0, job: 101, process: 1, index: 1, generation: 0, key: 1, message_id: 1, length: 8 };
    Ok(match send {
        Send::Plain => new(Opcode::UET_SEND).whole()?,
        Send::PlainMedium => new(Opcode::UET_SEND).medium()?,
        Send::PlainSmall => new(Opcode::UET_SEND).small()?,
        Send::Tagged => new(Opcode::UET_TAGGED_SEND).whole()?,
        Send::TaggedMedium => new(Opcode::UET_TAGGED_SEND).medium()?,
        Send::Rendezvous => new(Opcode::UET_RENDEZVOUS_SEND).rendezvous(8, &nowhere, 0)?.whole()?,
        Send::RendezvousTagged => new(Opcode::UET_RENDEZVOUS_TSEND).rendezvous(8, &nowhere, 0)?.whole()?,
        Send::Deferrable => Message { tokens, ..new(Opcode::UET_DEFERRABLE_SEND) }.whole()?,
        Send::DeferrableTagged => Message { tokens, ..new(Opcode::UET_DEFERRABLE_TSEND) }.whole()?,
        Send::Datagram => new(Opcode::UET_DATAGRAM_SEND).named(0).whole()?,
        Send::TaggedAtomic => {
            let region = Region { process: 2, index: 10, key: 0x70, generation, ..nowhere };
            // No byte order changes such elements.
            let of = (AtomicOpcode::WRITE, AtomicDatatype::UINT8);
            Message::atomic(&region, 0, of, &data)?.opcode(Opcode::UET_TSEND_ATOMIC).named(id).whole()?
        }
    })
}
