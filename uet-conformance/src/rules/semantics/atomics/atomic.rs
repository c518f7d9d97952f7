//! Atomics by example: results, old values, duplicates, refusals and tags (section 3.4.2).

use crate::elements::{GUARD, Kind, fetch, kind, supported};
use crate::prelude::*;
use crate::rudi;
use uet_wire::registry::{AtomicDatatype as Type, AtomicOpcode as Op};

const SUM64: (Op, Type) = (Op::SUM, Type::UINT64);

/// The number of fetching atomics before the first is retransmitted.
const STORED: Axis<u16> = axis("stored").values(&[("two", 2), ("one", 1)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[ATOMIC]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("atomic/sum", "SUM adds and wraps at the width of its datatype").checks(&[SES_AMO_001]).run(|t| {
        t.expect_atomic(kind(Op::SUM, Type::UINT64), &[40], &[2], &[42])?;
        t.expect_atomic(kind(Op::SUM, Type::UINT64), &[u64::MAX.into()], &[3], &[2])?;
        let highest = i32::MAX as u128;
        t.expect_atomic(kind(Op::SUM, Type::INT32), &[highest], &[1], &[highest + 1])
    }),
    rule("atomic/narrow-elements", "Elements of 8, 16 and 32 bits do not carry into their neighbors")
        .checks(&[SES_AMO_001])
        .run(|t| {
            t.expect_atomic(kind(Op::SUM, Type::UINT8), &[0xff, 1, 0x80], &[1, 1, 0x80], &[0, 2, 0])?;
            t.expect_atomic(kind(Op::SUM, Type::UINT16), &[0xffff, 1], &[1, 1], &[0, 2])?;
            t.expect_atomic(kind(Op::SUM, Type::UINT32), &[0xffff_ffff, 1], &[1, 1], &[0, 2])
        }),
    rule("atomic/wide-elements", "Elements of 128 bits carry from the low half into the high half")
        .checks(&[SES_AMO_001])
        .run(|t| {
            t.expect_atomic(kind(Op::SUM, Type::UINT128), &[u64::MAX.into()], &[1], &[1 << 64])?;
            t.expect_atomic(kind(Op::DIFF, Type::INT128), &[0], &[1], &[u128::MAX])
        }),
    rule("atomic/difference", "DIFF subtracts the operand from the value in memory and wraps")
        .checks(&[SES_AMO_001])
        .run(|t| {
            t.expect_atomic(kind(Op::DIFF, Type::UINT32), &[50], &[8], &[42])?;
            t.expect_atomic(kind(Op::DIFF, Type::UINT64), &[0], &[1], &[u64::MAX.into()])
        }),
    rule("atomic/product", "PROD multiplies, keeps signs and wraps").checks(&[SES_AMO_001]).run(|t| {
        t.expect_atomic(kind(Op::PROD, Type::UINT32), &[6], &[7], &[42])?;
        t.expect_atomic(kind(Op::PROD, Type::INT64), &[minus(3)], &[5], &[minus(15)])?;
        t.expect_atomic(kind(Op::PROD, Type::UINT16), &[0x1001], &[0x10], &[0x0010])
    }),
    rule("atomic/minimum", "MIN distinguishes signed from unsigned numbers").checks(&[SES_AMO_001]).run(
        |t| {
            t.expect_atomic(
                kind(Op::MIN, Type::INT32),
                &[1, minus(5)],
                &[minus(1), 2],
                &[minus(1), minus(5)],
            )?;
            t.expect_atomic(kind(Op::MIN, Type::UINT32), &[1, 7], &[0xffff_ffff, 3], &[1, 3])
        },
    ),
    rule("atomic/maximum", "MAX distinguishes signed from unsigned numbers").checks(&[SES_AMO_001]).run(
        |t| {
            t.expect_atomic(kind(Op::MAX, Type::INT64), &[1, minus(5)], &[minus(1), 2], &[1, 2])?;
            t.expect_atomic(
                kind(Op::MAX, Type::UINT64),
                &[1, 7],
                &[u64::MAX.into(), 3],
                &[u64::MAX.into(), 7],
            )
        },
    ),
    rule("atomic/bitwise", "BOR, BAND and BXOR act on each bit").checks(&[SES_AMO_001]).run(|t| {
        t.expect_atomic(kind(Op::BOR, Type::UINT32), &[0x0ff0_1234], &[0xf00f_0034], &[0xffff_1234])?;
        t.expect_atomic(kind(Op::BAND, Type::UINT32), &[0x0ff0_1234], &[0x0f0f_00ff], &[0x0f00_0034])?;
        t.expect_atomic(kind(Op::BXOR, Type::UINT32), &[0x0ff0_1234], &[0x0f0f_00ff], &[0x00ff_12cb])
    }),
    rule("atomic/logical", "LOR, LAND and LXOR treat nonzero numbers as true and store 1 or 0")
        .checks(&[SES_AMO_001])
        .run(|t| {
            let (old, with) = ([0, 0, 12, 12], [0, 3, 0, 3]);
            t.expect_atomic(kind(Op::LOR, Type::UINT32), &old, &with, &[0, 1, 1, 1])?;
            t.expect_atomic(kind(Op::LAND, Type::UINT32), &old, &with, &[0, 0, 0, 1])?;
            t.expect_atomic(kind(Op::LXOR, Type::UINT32), &old, &with, &[0, 1, 1, 0])
        }),
    rule("atomic/write", "An atomic WRITE stores its operand").checks(&[SES_AMO_001]).run(|t| {
        let (old, new) = ([0x1111_2222_3333_4444], [0xabcd_0000_0000_0001]);
        t.expect_atomic(kind(Op::WRITE, Type::UINT64), &old, &new, &new)
    }),
    rule("atomic/read", "A fetching atomic READ returns the value in memory and leaves it unchanged")
        .checks(&[SES_AMO_007, SES_AMO_001])
        .needs(&[FETCH_ATOMIC])
        .run(read),
    rule("atomic/float-arithmetic", "SUM, DIFF and PROD of FLOAT and DOUBLE use floating-point arithmetic")
        .checks(&[SES_AMO_001])
        .run(|t| {
            t.expect_atomic(kind(Op::SUM, Type::FLOAT), &[float(1.5)], &[float(2.25)], &[float(3.75)])?;
            t.expect_atomic(kind(Op::DIFF, Type::DOUBLE), &[double(1.5)], &[double(2.25)], &[double(-0.75)])?;
            t.expect_atomic(kind(Op::PROD, Type::DOUBLE), &[double(-1.5)], &[double(8.0)], &[double(-12.0)])
        }),
    rule("atomic/float-order", "MIN and MAX of FLOAT and DOUBLE compare values, not bit patterns")
        .checks(&[SES_AMO_001])
        .run(|t| {
            let (low, high) = ([float(-8.0), float(0.5)], [float(-2.0), float(3.0)]);
            t.expect_atomic(kind(Op::MIN, Type::FLOAT), &low, &high, &low)?;
            t.expect_atomic(kind(Op::MAX, Type::FLOAT), &low, &high, &high)?;
            t.expect_atomic(kind(Op::MAX, Type::DOUBLE), &[double(-8.0)], &[double(-2.0)], &[double(-2.0)])
        }),
    rule("atomic/complex", "SUM and PROD of complex numbers use complex arithmetic")
        .checks(&[SES_AMO_001])
        .run(|t| {
            // (1 + 2i) + (3 - 4i) = 4 - 2i; (1 + 2i)(3 - 4i) = 11 + 2i.
            for (opcode, re, im) in [(Op::SUM, 4.0, -2.0), (Op::PROD, 11.0, 2.0)] {
                let parts = Kind { opcode, datatype: Type::FLOAT_COMPLEX, size: 4 };
                let (old, with) = ([float(1.0), float(2.0)], [float(3.0), float(-4.0)]);
                t.expect_atomic(parts, &old, &with, &[float(re), float(im)])?;
            }
            Ok(())
        }),
    rule("atomic/several-elements", "An atomic combines each element with the operand at the same position")
        .checks(&[SES_AMO_001])
        .run(|t| {
            let old: Vec<u128> = (0..100).collect();
            let with: Vec<u128> = (0..100).map(|i| 1000 * i).collect();
            let new: Vec<u128> = (0..100).map(|i| 1001 * i).collect();
            t.expect_atomic(kind(Op::SUM, Type::UINT32), &old, &with, &new)
        }),
    rule("atomic/fetch", "A fetching atomic returns the old value and stores the new one")
        .checks(&[SES_AMO_007, SES_AMO_001])
        .needs(&[FETCH_ATOMIC])
        .run(|t| t.expect_fetching(kind(Op::SUM, Type::UINT64), &[40], &[2], &[42])),
    rule("atomic/fetch-many", "A fetching atomic returns more old values than fit in an ACK")
        .checks(&[SES_AMO_007, SES_AMO_001])
        .needs(&[FETCH_ATOMIC])
        .run(|t| {
            let old: Vec<u128> = (0..128).map(|i| i << 32 | 5).collect();
            let new: Vec<u128> = old.iter().map(|value| value + 1).collect();
            let sum = kind(Op::SUM, Type::UINT64);
            // A device may limit the number of elements.
            let (region, _) = t.elements_in_memory(8, &old)?;
            let ones = t.operands(8, &[1; 128]);
            let mut session = t.session();
            let part = Message::atomic(&region, GUARD as u64, SUM64, &ones)?.whole()?;
            let psn = session.ask(t, &part)?;
            require(
                session.answer(t, psn)?.code() != ReturnCode::AMO_UNSUPPORTED_SIZE,
                "the device takes fewer than 128 elements",
            )?;
            t.expect_fetching(sum, &old, &[1; 128], &new)
        }),
    rule("atomic/fetch-duplicate", "A retransmitted fetching atomic returns its stored value and acts once")
        .checks(&[SES_GTD_003, SES_AMO_010, PDS_DUP_002, SES_AMO_007])
        .needs(&[FETCH_ATOMIC])
        .over(&[&STORED, &MODE, &START])
        .run(fetch_duplicate),
    rule("atomic/duplicate", "An atomic that arrives three times acts once")
        .checks(&[SES_AMO_010, PDS_DUP_002])
        .run(duplicate),
    rule("atomic/out-of-order", "Sixteen atomics on one element all take effect in any arrival order")
        .checks(&[SES_AMO_001, SES_AMO_010])
        .needs(&[RUD, ATOMIC])
        .over(&[&START])
        .run(|t| {
            let (region, _) = t.elements_in_memory(8, &[0])?;
            let mut session = t.session();
            let mut parts = Vec::new();
            for n in 0..16 {
                let one = t.operands(8, &[1 << n]);
                parts.push(Message::atomic(&region, GUARD as u64, SUM64, &one)?.named(n + 1).whole()?);
            }
            let order = [5, 0, 12, 3, 15, 1, 9, 2, 14, 4, 8, 6, 13, 7, 11, 10];
            let psns = session.ask_in_order(t, &parts, &order)?;
            supported(&session.answer(t, psns[0])?, kind(Op::SUM, Type::UINT64))?;
            session.all_accepted(t, SES_AMO_001, &psns)?;
            let expected = t.guarded(8, &[0xffff]);
            t.expect_memory(SES_AMO_010, &region, 0, &expected)
        }),
    rule("atomic/medium", "An atomic may use a medium header").checks(&[SES_AMO_001]).run(medium),
    rule("atomic/unaligned", "An atomic at an unaligned address gets AMO_UNALIGNED and changes nothing")
        .checks(&[SES_AMO_005])
        .run(|t| {
            expect_refused(t, SES_AMO_005, ReturnCode::AMO_UNALIGNED, |region| {
                Ok(Message::atomic(region, GUARD as u64 + 4, SUM64, &[1; 8])?.whole()?)
            })
        }),
    rule("atomic/unknown-opcode", "An unassigned atomic opcode gets AMO_UNSUPPORTED_OP and changes nothing")
        .checks(&[SES_AMO_002])
        .run(|t| {
            let unassigned = Op::unassigned(t.spec()).next().unwrap_or(Op::INVAL);
            expect_refused(t, SES_AMO_002, ReturnCode::AMO_UNSUPPORTED_OP, |region| {
                Ok(Message::atomic(region, GUARD as u64, (unassigned, Type::UINT64), &[1; 8])?.whole()?)
            })
        }),
    rule("atomic/unknown-datatype", "An unassigned datatype gets AMO_UNSUPPORTED_DT and changes nothing")
        .checks(&[SES_AMO_003])
        .run(|t| {
            let unassigned = Type::unassigned(t.spec()).next().unwrap_or(Type::FP16);
            expect_refused(t, SES_AMO_003, ReturnCode::AMO_UNSUPPORTED_DT, |region| {
                Ok(Message::atomic(region, GUARD as u64, (Op::SUM, unassigned), &[1; 8])?.whole()?)
            })
        }),
    rule("atomic/partial-element", "A partial element gets AMO_UNSUPPORTED_SIZE and changes nothing")
        .checks(&[SES_AMO_004])
        .run(|t| {
            expect_refused(t, SES_AMO_004, ReturnCode::AMO_UNSUPPORTED_SIZE, |region| {
                Ok(Message::atomic(region, GUARD as u64, SUM64, &[1; 12])?.whole()?)
            })
        }),
    rule("atomic/several-packets", "An atomic without eom gets OP_VIOLATION and changes nothing")
        .checks(&[SES_AMO_006])
        .run(|t| {
            expect_refused(t, SES_AMO_006, ReturnCode::OP_VIOLATION, |region| {
                let message = Message::atomic(region, GUARD as u64, SUM64, &[1; 8])?;
                message.whole()?.edit(|std| std.head(|head| head.eom(false)))
            })
        }),
    rule("atomic/tagged", "A tagged atomic acts on the buffer that its tag selects, and on no other")
        .checks(&[SES_AMO_011])
        .needs(&[ATOMIC, TSEND, RECEIVE])
        .run(tagged),
    rule("atomic/tagged-fetch", "A tagged fetching atomic returns the old value of the buffer")
        .checks(&[SES_AMO_007, SES_AMO_011])
        .needs(&[FETCH_ATOMIC, TSEND, RECEIVE])
        .run(|t| {
            let posted = t.posted(tagged_room(16, 0x70))?;
            let (bits, stored) = (t.operands(8, &[0xff00]), t.elements(8, &[0xff00]));
            let mask: Vec<u8> = posted.before[..8].iter().zip(&stored).map(|(old, new)| old | new).collect();
            let by_tag = Region { key: 0x70, ..posted.buffer.clone() };
            let message = Message::atomic(&by_tag, 0, (Op::BOR, Type::UINT64), &bits)?;
            let message = message.opcode(Opcode::UET_TSEND_FETCH_ATOMIC);
            let mut session = t.session();
            let fetched = fetch(t, &mut session, &message, kind(Op::BOR, Type::UINT64))?;
            let mut before = posted.before[..8].to_vec();
            if t.elements(8, &[1]) != t.operands(8, &[1]) {
                before.reverse();
            }
            t.check(SES_AMO_007, "what was there before:", Some(before), fetched);
            t.expect_filled(SES_AMO_011, &posted, &mask)
        }),
    rule("atomic/rudi", "An atomic over RUDI does not act twice")
        .checks(&[SES_AMO_010, ROB_LIFE_001])
        .needs(&[RUDI, ATOMIC])
        .over(&[])
        .run(over_rudi),
];

/// Returns the bits of a negative number.
fn minus(value: i128) -> u128 {
    -value as u128
}

fn float(value: f32) -> u128 {
    value.to_bits().into()
}

fn double(value: f64) -> u128 {
    value.to_bits().into()
}

fn read(t: &mut Test<'_>) -> Outcome {
    let kind = kind(Op::READ, Type::UINT64);
    let (region, held) = t.elements_in_memory(8, &[0x1111_2222_3333_4444])?;
    let mut session = t.session();

    let message = Message::atomic(&region, GUARD as u64, (kind.opcode, kind.datatype), &[])?;
    // READ has no operand, so the length is that of the element behind the guard.
    let message = Message { length: 8, ..message.opcode(Opcode::UET_FETCHING_ATOMIC) };
    let fetched = fetch(t, &mut session, &message, kind)?;
    let value = t.operands(8, &[0x1111_2222_3333_4444]);
    t.check(SES_AMO_007, "what is in memory:", Some(value), fetched);
    t.still_holds(SES_AMO_001, &region, &held)
}

fn fetch_duplicate(t: &mut Test<'_>) -> Outcome {
    let kind = kind(Op::SUM, Type::UINT64);
    let count = t.value(&STORED);
    let room = t.reported("stored_responses").unwrap_or(u64::MAX);
    require(room >= count.into(), format!("the device stores {room} responses"))?;
    let (region, _) = t.elements_in_memory(8, &[40])?;
    let two = t.operands(8, &[2]);
    let mut session = t.session();
    let message = Message::atomic(&region, GUARD as u64, SUM64, &two)?.opcode(Opcode::UET_FETCHING_ATOMIC);
    let mut fetched = Vec::new();
    for n in 0..count {
        let part = message.clone().named(n + 1).whole()?;
        let psn = session.ask(t, &part)?;
        supported(&session.answer(t, psn)?, kind)?;
        let pieces = session.data(t, SES_AMO_007, 8)?;
        fetched.push((psn, part, pieces.iter().any(|piece| piece.in_ack)));
    }
    for (n, (psn, part, in_ack)) in (0..).zip(fetched) {
        session.again(t, psn, &part)?;
        session.accepted(t, PDS_DUP_002, psn)?;
        if in_ack {
            let repeated = session.data(t, SES_GTD_003, 8)?;
            let value = repeated.iter().flat_map(|piece| piece.bytes.clone()).collect::<Vec<u8>>();
            t.check(SES_GTD_003, "the old value again", t.operands(8, &[40 + 2 * n]), value);
        }
    }
    let expected = t.guarded(8, &[40 + 2 * u128::from(count)]);
    t.still_holds(SES_AMO_010, &region, &expected)
}

fn duplicate(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.elements_in_memory(8, &[40])?;
    let two = t.operands(8, &[2]);
    let mut session = t.session();
    let part = Message::atomic(&region, GUARD as u64, SUM64, &two)?.whole()?;
    let psn = session.ask(t, &part)?;
    supported(&session.answer(t, psn)?, kind(Op::SUM, Type::UINT64))?;
    for _ in 0..2 {
        session.again(t, psn, &part)?;
        session.accepted(t, PDS_DUP_002, psn)?;
    }
    let expected = t.guarded(8, &[42]);
    t.still_holds(SES_AMO_010, &region, &expected)
}

fn medium(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.elements_in_memory(8, &[40])?;
    let two = t.operands(8, &[2]);
    let mut session = t.session();

    let psn = session.ask(t, &Message::atomic(&region, GUARD as u64, SUM64, &two)?.medium()?)?;
    session.some_answer(t, psn)?;
    supported(&session.answer(t, psn)?, kind(Op::SUM, Type::UINT64))?;
    session.accepted(t, SES_AMO_001, psn)?;
    let expected = t.guarded(8, &[42]);
    t.expect_memory(SES_AMO_001, &region, 0, &expected)
}

/// Expects that an atomic is refused with this code and leaves memory unchanged.
fn expect_refused(
    t: &mut Test<'_>,
    requirement: &Requirement,
    code: ReturnCode,
    message: impl FnOnce(&Region) -> Result<crate::Part, Stop>,
) -> Outcome {
    let (region, held) = t.elements_in_memory(8, &[40, 41])?;
    let mut session = t.session();

    let psn = session.ask(t, &message(&region)?)?;
    session.refused_as(t, requirement, psn, &[code])?;
    t.still_holds(requirement, &region, &held)
}

fn tagged(t: &mut Test<'_>) -> Outcome {
    let other = t.posted(tagged_room(16, 0x71))?;
    let posted = t.posted(tagged_room(16, 0x70))?;
    let (bits, stored) = (t.operands(8, &[0xff00]), t.elements(8, &[0xff00]));
    let mut session = t.session();
    let mask: Vec<u8> = posted.before[..8].iter().zip(&stored).map(|(old, new)| old | new).collect();
    let by_tag = Region { key: 0x70, ..posted.buffer.clone() };
    let message = Message::atomic(&by_tag, 0, (Op::BOR, Type::UINT64), &bits)?;
    let psn = session.ask(t, &message.opcode(Opcode::UET_TSEND_ATOMIC).whole()?)?;
    supported(&session.answer(t, psn)?, kind(Op::BOR, Type::UINT64))?;
    session.accepted(t, SES_AMO_011, psn)?;
    let within = t.soon();
    let ended = t.completion(posted.operation, within)?;
    t.check(SES_AMO_011, "the completion of the receive", Some(Status::Ok), ended.map(|it| it.status));
    t.expect_filled(SES_AMO_011, &posted, &mask)?;
    t.check_memory(SES_AMO_011, &other.buffer, 0, &other.before)?;
    let ended = t.completion(other.operation, Duration::ZERO)?.map(|it| it.status);
    t.check(SES_AMO_011, "the completion of the other receive", None, ended);
    Ok(())
}

/// A device may refuse the atomic, drop it, or execute it once.
fn over_rudi(t: &mut Test<'_>) -> Outcome {
    const IDEMPOTENT: u64 = 1 << 63;
    let held = t.guarded(8, &[40]);
    let fill = Some(uet_control::Fill::Hex(uet_control::Hex(held)));
    let key = Hex64(IDEMPOTENT | 0xacce5);
    let (region, _) = t.exposed(40, |region| ExposeRegion { fill, key, ..region })?;
    let two = t.operands(8, &[2]);
    let pdc = t.initiate();
    let part = Message::atomic(&region, GUARD as u64, SUM64, &two)?.whole()?;
    let request = Request { ext: part.ext, ..pdc.request(0).ses(part.ses, &part.payload) };
    t.send(&pdc, &rudi(0x77, &request)?)?;
    t.pause(t.soon())?;
    t.send(&pdc, &rudi(0x77, &request.retx())?)?;
    t.pause(t.soon())?;
    let allowed = [t.guarded(8, &[40]), t.guarded(8, &[42])];
    let allowed = allowed.map(|memory| memory[GUARD..GUARD + 8].to_vec());
    let seen = t.memory(&region, GUARD as u64, 8)?;
    t.one_of(SES_AMO_010, "the number in memory", &allowed, seen);
    t.expect_life(ROB_LIFE_001)
}
