//! Atomics: the arithmetic of each datatype, once, and the old value for those that fetch (section 3.4.2).

use crate::axis::{MODE, START};
use crate::elements::{GUARD, Kind, fetch, kind, supported};
use crate::receives::tagged_room;
use crate::{Message, Need, Outcome, Region, Request, Rule, Stop, Test, rudi};
use core::time::Duration;
use uet_control::{ExposeRegion, Hex64, Status};
use uet_wire::catalogue::*;
use uet_wire::registry::AtomicDatatype as Type;
use uet_wire::registry::AtomicOpcode as Op;
use uet_wire::registry::{Opcode, ReturnCode};

const TARGET: &[Need] = &[Need::Capability("rud"), Need::Capability("atomic")];
const REPEATED: &[Need] = &[Need::Capability("rudi"), Need::Capability("atomic")];

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "atomic/sum",
        title: "SUM adds, and wraps at the width of its datatype",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: sum,
    },
    Rule {
        id: "atomic/narrow-elements",
        title: "Elements of 8, 16 and 32 bits do not carry into their neighbors",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: narrow_elements,
    },
    Rule {
        id: "atomic/wide-elements",
        title: "Elements of 128 bits carry from one half into the other",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: wide_elements,
    },
    Rule {
        id: "atomic/difference",
        title: "DIFF takes the operand from what is in memory, and wraps",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: difference,
    },
    Rule {
        id: "atomic/product",
        title: "PROD multiplies, keeps signs, and wraps",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: product,
    },
    Rule {
        id: "atomic/minimum",
        title: "MIN knows signed numbers from unsigned ones",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: minimum,
    },
    Rule {
        id: "atomic/maximum",
        title: "MAX knows signed numbers from unsigned ones",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: maximum,
    },
    Rule {
        id: "atomic/bitwise",
        title: "BOR, BAND and BXOR work on each bit",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: bitwise,
    },
    Rule {
        id: "atomic/logical",
        title: "LOR, LAND and LXOR take any number but 0 for true, and leave 1 or 0",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: logical,
    },
    Rule {
        id: "atomic/write",
        title: "An atomic WRITE leaves its operand",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: write,
    },
    Rule {
        id: "atomic/read",
        title: "An atomic READ brings what is in memory, and leaves it",
        requirements: &[SES_AMO_007, SES_AMO_001],
        needs: &[Need::Capability("fetch_atomic")],
        axes: &[&MODE, &START],
        run: read,
    },
    Rule {
        id: "atomic/float-sum",
        title: "SUM, DIFF and PROD of FLOAT and DOUBLE are those of floating point",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: float_sum,
    },
    Rule {
        id: "atomic/float-order",
        title: "MIN and MAX of FLOAT and DOUBLE order by value, not by bits",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: float_order,
    },
    Rule {
        id: "atomic/complex",
        title: "SUM and PROD of complex numbers are those of complex numbers",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: complex,
    },
    Rule {
        id: "atomic/several-elements",
        title: "An atomic acts on each of its elements with the operand of the same place",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: several_elements,
    },
    Rule {
        id: "atomic/fetch",
        title: "A fetching atomic brings the old value and leaves the new one",
        requirements: &[SES_AMO_007, SES_AMO_001],
        needs: &[Need::Capability("fetch_atomic")],
        axes: &[&MODE, &START],
        run: fetching,
    },
    Rule {
        id: "atomic/fetch-much",
        title: "A fetching atomic brings more old values than fit an ACK",
        requirements: &[SES_AMO_007, SES_AMO_001],
        needs: &[Need::Capability("fetch_atomic")],
        axes: &[&MODE, &START],
        run: fetch_much,
    },
    Rule {
        id: "atomic/fetch-again",
        title: "A target keeps the value of a fetching atomic: it brings it again, and acts no more",
        requirements: &[SES_GTD_003, SES_AMO_010, PDS_DUP_002, SES_AMO_007],
        needs: &[Need::Capability("fetch_atomic")],
        axes: &[&MODE, &START],
        run: fetch_again,
    },
    Rule {
        id: "atomic/once",
        title: "An atomic whose packet comes three times acts once",
        requirements: &[SES_AMO_010, PDS_DUP_002],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: once,
    },
    Rule {
        id: "atomic/all-add-up",
        title: "Sixteen atomics on one number, in any order, all count",
        requirements: &[SES_AMO_001, SES_AMO_010],
        needs: TARGET,
        axes: &[&START],
        run: all_add_up,
    },
    Rule {
        id: "atomic/medium",
        title: "An atomic may have a medium header",
        requirements: &[SES_AMO_001],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: medium,
    },
    Rule {
        id: "atomic/unaligned",
        title: "An atomic on an address that is not aligned is refused as such, and changes nothing",
        requirements: &[SES_AMO_005],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: unaligned,
    },
    Rule {
        id: "atomic/unknown-operation",
        title: "An atomic operation that nobody knows is refused as such, and changes nothing",
        requirements: &[SES_AMO_002],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: unknown_operation,
    },
    Rule {
        id: "atomic/unknown-datatype",
        title: "A datatype that nobody knows is refused as such, and changes nothing",
        requirements: &[SES_AMO_003],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: unknown_datatype,
    },
    Rule {
        id: "atomic/half-an-element",
        title: "An atomic of one and a half elements is refused as such, and changes nothing",
        requirements: &[SES_AMO_004],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: half_an_element,
    },
    Rule {
        id: "atomic/several-packets",
        title: "An atomic that claims to have more packets is refused, and changes nothing",
        requirements: &[SES_AMO_006],
        needs: &[Need::Capability("atomic")],
        axes: &[&MODE, &START],
        run: several_packets,
    },
    Rule {
        id: "atomic/tagged",
        title: "An atomic by tag acts on the buffer that its tag selects, and on no other",
        requirements: &[SES_AMO_011],
        needs: &[Need::Capability("atomic"), Need::Capability("tsend"), Need::Capability("receive")],
        axes: &[&MODE, &START],
        run: tagged,
    },
    Rule {
        id: "atomic/tagged-fetch",
        title: "A fetching atomic by tag brings what the buffer held before",
        requirements: &[SES_AMO_007, SES_AMO_011],
        needs: &[Need::Capability("fetch_atomic"), Need::Capability("tsend"), Need::Capability("receive")],
        axes: &[&MODE, &START],
        run: tagged_fetch,
    },
    Rule {
        id: "atomic/by-rudi",
        title: "An atomic that comes by RUDI does not act twice",
        requirements: &[SES_AMO_010, ROB_LIFE_001],
        needs: REPEATED,
        axes: &[],
        run: by_rudi,
    },
];

const SUM64: (Op, Type) = (Op::SUM, Type::UINT64);

/// A number below zero, as its bits.
fn minus(value: i128) -> u128 {
    -value as u128
}

fn float(value: f32) -> u128 {
    value.to_bits().into()
}

fn double(value: f64) -> u128 {
    value.to_bits().into()
}

fn sum(t: &mut Test<'_>) -> Outcome {
    t.expect_atomic(kind(Op::SUM, Type::UINT64), &[40], &[2], &[42])?;
    t.expect_atomic(kind(Op::SUM, Type::UINT64), &[u64::MAX.into()], &[3], &[2])?;
    let highest = i32::MAX as u128;
    t.expect_atomic(kind(Op::SUM, Type::INT32), &[highest], &[1], &[highest + 1])
}

fn narrow_elements(t: &mut Test<'_>) -> Outcome {
    t.expect_atomic(kind(Op::SUM, Type::UINT8), &[0xff, 1, 0x80], &[1, 1, 0x80], &[0, 2, 0])?;
    t.expect_atomic(kind(Op::SUM, Type::UINT16), &[0xffff, 1], &[1, 1], &[0, 2])?;
    t.expect_atomic(kind(Op::SUM, Type::UINT32), &[0xffff_ffff, 1], &[1, 1], &[0, 2])
}

fn wide_elements(t: &mut Test<'_>) -> Outcome {
    t.expect_atomic(kind(Op::SUM, Type::UINT128), &[u64::MAX.into()], &[1], &[1 << 64])?;
    t.expect_atomic(kind(Op::DIFF, Type::INT128), &[0], &[1], &[u128::MAX])
}

fn difference(t: &mut Test<'_>) -> Outcome {
    t.expect_atomic(kind(Op::DIFF, Type::UINT32), &[50], &[8], &[42])?;
    t.expect_atomic(kind(Op::DIFF, Type::UINT64), &[0], &[1], &[u64::MAX.into()])
}

fn product(t: &mut Test<'_>) -> Outcome {
    t.expect_atomic(kind(Op::PROD, Type::UINT32), &[6], &[7], &[42])?;
    t.expect_atomic(kind(Op::PROD, Type::INT64), &[minus(3)], &[5], &[minus(15)])?;
    t.expect_atomic(kind(Op::PROD, Type::UINT16), &[0x1001], &[0x10], &[0x0010])
}

fn minimum(t: &mut Test<'_>) -> Outcome {
    t.expect_atomic(kind(Op::MIN, Type::INT32), &[1, minus(5)], &[minus(1), 2], &[minus(1), minus(5)])?;
    t.expect_atomic(kind(Op::MIN, Type::UINT32), &[1, 7], &[0xffff_ffff, 3], &[1, 3])
}

fn maximum(t: &mut Test<'_>) -> Outcome {
    t.expect_atomic(kind(Op::MAX, Type::INT64), &[1, minus(5)], &[minus(1), 2], &[1, 2])?;
    t.expect_atomic(kind(Op::MAX, Type::UINT64), &[1, 7], &[u64::MAX.into(), 3], &[u64::MAX.into(), 7])
}

fn bitwise(t: &mut Test<'_>) -> Outcome {
    t.expect_atomic(kind(Op::BOR, Type::UINT32), &[0x0ff0_1234], &[0xf00f_0034], &[0xffff_1234])?;
    t.expect_atomic(kind(Op::BAND, Type::UINT32), &[0x0ff0_1234], &[0x0f0f_00ff], &[0x0f00_0034])?;
    t.expect_atomic(kind(Op::BXOR, Type::UINT32), &[0x0ff0_1234], &[0x0f0f_00ff], &[0x00ff_12cb])
}

fn logical(t: &mut Test<'_>) -> Outcome {
    let (old, with) = ([0, 0, 12, 12], [0, 3, 0, 3]);
    t.expect_atomic(kind(Op::LOR, Type::UINT32), &old, &with, &[0, 1, 1, 1])?;
    t.expect_atomic(kind(Op::LAND, Type::UINT32), &old, &with, &[0, 0, 0, 1])?;
    t.expect_atomic(kind(Op::LXOR, Type::UINT32), &old, &with, &[0, 1, 1, 0])
}

fn write(t: &mut Test<'_>) -> Outcome {
    let (old, new) = ([0x1111_2222_3333_4444], [0xabcd_0000_0000_0001]);
    t.expect_atomic(kind(Op::WRITE, Type::UINT64), &old, &new, &new)
}

fn read(t: &mut Test<'_>) -> Outcome {
    let kind = kind(Op::READ, Type::UINT64);
    let (region, held) = t.elements_in_memory(8, &[0x1111_2222_3333_4444])?;
    let mut session = t.session();

    let message = Message::atomic(&region, GUARD as u64, (kind.opcode, kind.datatype), &[])?;
    let message = Message { length: 8, ..message.opcode(Opcode::UET_FETCHING_ATOMIC) };
    let fetched = fetch(t, &mut session, &message, kind)?;
    let carried = t.operands(8, &[0x1111_2222_3333_4444]);
    t.check(SES_AMO_007, "what is in memory:", Some(carried), fetched);
    t.still_holds(SES_AMO_001, &region, &held)
}

fn float_sum(t: &mut Test<'_>) -> Outcome {
    t.expect_atomic(kind(Op::SUM, Type::FLOAT), &[float(1.5)], &[float(2.25)], &[float(3.75)])?;
    t.expect_atomic(kind(Op::DIFF, Type::DOUBLE), &[double(1.5)], &[double(2.25)], &[double(-0.75)])?;
    t.expect_atomic(kind(Op::PROD, Type::DOUBLE), &[double(-1.5)], &[double(8.0)], &[double(-12.0)])
}

fn float_order(t: &mut Test<'_>) -> Outcome {
    let (low, high) = ([float(-8.0), float(0.5)], [float(-2.0), float(3.0)]);
    t.expect_atomic(kind(Op::MIN, Type::FLOAT), &low, &high, &low)?;
    t.expect_atomic(kind(Op::MAX, Type::FLOAT), &low, &high, &high)?;
    t.expect_atomic(kind(Op::MAX, Type::DOUBLE), &[double(-8.0)], &[double(-2.0)], &[double(-2.0)])
}

/// (1 + 2i) + (3 - 4i) = 4 - 2i; (1 + 2i)(3 - 4i) = 11 + 2i.
fn complex(t: &mut Test<'_>) -> Outcome {
    for (opcode, re, im) in [(Op::SUM, 4.0, -2.0), (Op::PROD, 11.0, 2.0)] {
        let parts = Kind { opcode, datatype: Type::FLOAT_COMPLEX, size: 4 };
        let (old, with) = ([float(1.0), float(2.0)], [float(3.0), float(-4.0)]);
        t.expect_atomic(parts, &old, &with, &[float(re), float(im)])?;
    }
    Ok(())
}

fn several_elements(t: &mut Test<'_>) -> Outcome {
    let old: Vec<u128> = (0..100).collect();
    let with: Vec<u128> = (0..100).map(|i| 1000 * i).collect();
    let new: Vec<u128> = (0..100).map(|i| 1001 * i).collect();
    t.expect_atomic(kind(Op::SUM, Type::UINT32), &old, &with, &new)
}

fn fetching(t: &mut Test<'_>) -> Outcome {
    t.expect_fetching(kind(Op::SUM, Type::UINT64), &[40], &[2], &[42])
}

fn fetch_much(t: &mut Test<'_>) -> Outcome {
    let old: Vec<u128> = (0..128).map(|i| i << 32 | 5).collect();
    let new: Vec<u128> = old.iter().map(|value| value + 1).collect();
    let sum = kind(Op::SUM, Type::UINT64);
    // A device may limit the number of elements.
    let (region, _) = t.elements_in_memory(8, &old)?;
    let ones = t.operands(8, &[1; 128]);
    let mut session = t.session();
    let part = Message::atomic(&region, GUARD as u64, SUM64, &ones)?.whole()?;
    let psn = session.ask(t, &part)?;
    if session.answer(t, psn)?.code() == ReturnCode::AMO_UNSUPPORTED_SIZE {
        return Err(Stop::Skipped("the device takes fewer than 128 elements".into()));
    }
    t.expect_fetching(sum, &old, &[1; 128], &new)
}

fn fetch_again(t: &mut Test<'_>) -> Outcome {
    let kind = kind(Op::SUM, Type::UINT64);
    let (region, _) = t.elements_in_memory(8, &[40])?;
    let two = t.operands(8, &[2]);
    let mut session = t.session();
    let message = Message::atomic(&region, GUARD as u64, SUM64, &two)?;
    let part = message.opcode(Opcode::UET_FETCHING_ATOMIC).whole()?;

    let psn = session.ask(t, &part)?;
    supported(&session.answer(t, psn)?, kind)?;
    let pieces = session.data(t, SES_AMO_007, 8)?;
    session.again(t, psn, &part)?;
    session.accepted(t, PDS_DUP_002, psn)?;
    if pieces.iter().any(|piece| piece.in_ack) {
        let again = session.data(t, SES_GTD_003, 8)?;
        let value = again.iter().flat_map(|piece| piece.bytes.clone()).collect::<Vec<u8>>();
        t.check(SES_GTD_003, "the old value again", t.operands(8, &[40]), value);
    }
    let expected = t.guarded(8, &[42]);
    t.still_holds(SES_AMO_010, &region, &expected)
}

fn once(t: &mut Test<'_>) -> Outcome {
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

fn all_add_up(t: &mut Test<'_>) -> Outcome {
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

/// Expects that this atomic is refused with this code, and that memory stays as it is.
fn refused(
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

fn unaligned(t: &mut Test<'_>) -> Outcome {
    refused(t, SES_AMO_005, ReturnCode::AMO_UNALIGNED, |region| {
        Ok(Message::atomic(region, GUARD as u64 + 4, SUM64, &[1; 8])?.whole()?)
    })
}

fn unknown_operation(t: &mut Test<'_>) -> Outcome {
    let unassigned = Op::unassigned(t.spec()).next().unwrap_or(Op::INVAL);
    refused(t, SES_AMO_002, ReturnCode::AMO_UNSUPPORTED_OP, |region| {
        Ok(Message::atomic(region, GUARD as u64, (unassigned, Type::UINT64), &[1; 8])?.whole()?)
    })
}

fn unknown_datatype(t: &mut Test<'_>) -> Outcome {
    let unassigned = Type::unassigned(t.spec()).next().unwrap_or(Type::FP16);
    refused(t, SES_AMO_003, ReturnCode::AMO_UNSUPPORTED_DT, |region| {
        Ok(Message::atomic(region, GUARD as u64, (Op::SUM, unassigned), &[1; 8])?.whole()?)
    })
}

fn half_an_element(t: &mut Test<'_>) -> Outcome {
    refused(t, SES_AMO_004, ReturnCode::AMO_UNSUPPORTED_SIZE, |region| {
        Ok(Message::atomic(region, GUARD as u64, SUM64, &[1; 12])?.whole()?)
    })
}

fn several_packets(t: &mut Test<'_>) -> Outcome {
    refused(t, SES_AMO_006, ReturnCode::OP_VIOLATION, |region| {
        let message = Message::atomic(region, GUARD as u64, SUM64, &[1; 8])?;
        message.whole()?.edit(|std| std.head(|head| head.eom(false)))
    })
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

fn tagged_fetch(t: &mut Test<'_>) -> Outcome {
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
}

/// It may be refused, or dropped; if it acts, it acts once.
fn by_rudi(t: &mut Test<'_>) -> Outcome {
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
