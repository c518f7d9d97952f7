//! Requests beyond the end of their region or without its permission (section 3.4.1).

use crate::prelude::*;
use crate::region::DENIED;
use crate::rules::steps::bytes;
use uet_control::Permission;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// The operation of a message of several packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Write,
    Read,
}

impl Asked {
    fn message(self, region: &Region, offset: u64, length: usize) -> Message {
        match self {
            Asked::Write => Message::write(region, offset, &bytes(length)),
            Asked::Read => Message::read(region, offset, length as u32),
        }
    }
}

const ASKED: Axis<Asked> =
    axis("operation").needing(&[("write", Asked::Write, &[WRITE]), ("read", Asked::Read, &[READ])]);

/// The width in bits at which the sum of buffer_offset and message_offset would wrap into the region.
const SUM: Axis<u32> = axis("sum").values(&[("2-64", 64), ("2-32", 32)]);

/// The bytes beyond the end of the region, as a function of the MTU.
const EXCESS: Axis<fn(usize) -> usize> = axis("excess").values(&[("1", |_| 1), ("2-mtu", |mtu| 2 * mtu)]);

/// The packet that arrives first, by index.
const FIRST: Axis<usize> = axis("first").values(&[("first", 0), ("second", 1)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[WRITE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("addressing/beyond-the-end", "A write that ends outside its region is refused and changes nothing")
        .checks(&[SES_MEM_004, SES_GTD_001])
        .run(|t| expect_outside_refused(t, 60, 5)),
    rule("addressing/far-outside", "A write far outside its region is refused and changes nothing")
        .checks(&[SES_MEM_004, SES_GTD_001])
        .run(|t| {
            for offset in [3 * 64 + 8, (1 << 16) + 8, (1 << 32) + 8, (1 << 63) + 8] {
                expect_outside_refused(t, offset, 16)?;
            }
            Ok(())
        }),
    rule("addressing/wraps-at-2-64", "A write whose end wraps around at 2^64 is refused and changes nothing")
        .checks(&[SES_MEM_004, SES_GTD_001])
        .run(|t| expect_outside_refused(t, u64::MAX - 3, 16)),
    rule("addressing/last-packet", "A last packet that exceeds its region is refused and changes nothing")
        .checks(&[SES_MEM_004])
        .run(last_packet),
    rule("addressing/read-beyond-the-end", "A read that exceeds its region is refused and returns no data")
        .checks(&[SES_MEM_004])
        .needs(&[READ])
        .run(|t| {
            let (region, _) = t.patterned(64)?;
            expect_read_refused(t, SES_MEM_004, &Message::read(&region, 60, 5), &[])?;
            expect_read_refused(t, SES_MEM_004, &Message::read(&region, 0, 65), &[])
        }),
    rule("addressing/not-writable", "A region without write permission refuses writes and stays unchanged")
        .checks(&[SES_MEM_003, SES_MEM_005])
        .run(not_writable),
    rule("addressing/not-readable", "A region without read permission refuses reads and returns no data")
        .checks(&[SES_MEM_003, SES_MEM_005])
        .needs(&[READ])
        .run(|t| {
            let (region, _) = region_with(t, &[Permission::Write, Permission::Atomic])?;
            expect_read_refused(t, SES_MEM_003, &Message::read(&region, 8, 16), DENIED)
        }),
    rule("addressing/no-atomics", "A region without atomic permission refuses atomics and stays unchanged")
        .checks(&[SES_MEM_003, SES_MEM_005])
        .needs(&[ATOMIC])
        .run(no_atomics),
    crate::rule(
        "access/denied-message",
        "No packet of a message without permission takes effect, whichever comes first",
    )
    .checks(&[SES_MEM_003])
    .over(&[&ASKED, &FIRST, &MODE])
    .run(|t| {
        let length = t.mtu() + 64;
        let other = match t.value(&ASKED) {
            Asked::Write => Permission::Read,
            Asked::Read => Permission::Write,
        };
        let permissions = vec![other, Permission::Atomic];
        let (region, memory) = t.exposed(length as u64, |region| ExposeRegion { permissions, ..region })?;
        let message = t.value(&ASKED).message(&region, 0, length);
        expect_all_refused(t, SES_MEM_003, &message, (&region, &memory))
    }),
    crate::rule(
        "access/offset-overflow",
        "Offsets whose sum exceeds 2^32 or 2^64 do not wrap into the region",
    )
    .checks(&[SES_MEM_004])
    .over(&[&ASKED, &SUM, &FIRST, &MODE])
    .run(|t| {
        // The first packet lies beyond the region. The second one would lie inside it if the sum of its
        // offsets lost the highest bit.
        let mtu = t.mtu();
        let (region, memory) = t.patterned(mtu as u64 + 64)?;
        let offset = (u64::MAX >> (64 - t.value(&SUM))) - mtu as u64 + 1 + 8;
        let message = t.value(&ASKED).message(&region, offset, mtu + 40);
        expect_all_refused(t, SES_MEM_004, &message, (&region, &memory))
    }),
    crate::rule(
        "access/beyond-the-end",
        "A message that starts inside its region and ends outside changes nothing",
    )
    .checks(&[SES_MEM_004])
    .over(&[&ASKED, &EXCESS, &FIRST, &MODE])
    .run(|t| {
        // The first packet lies inside the region, the last one beyond its end.
        let mtu = t.mtu();
        let (region, memory) = t.patterned(mtu as u64 + 64)?;
        let length = mtu + 64 - 8 + t.value(&EXCESS)(mtu);
        let message = t.value(&ASKED).message(&region, 8, length);
        expect_all_refused(t, SES_MEM_004, &message, (&region, &memory))
    }),
];

/// Expects that a write outside its region is refused. Open: the return code.
fn expect_outside_refused(t: &mut Test<'_>, offset: u64, length: usize) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&region, offset, &bytes(length)).whole()?)?;
    let answer = session.refused(t, SES_MEM_004, psn)?;
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    t.still_holds(SES_MEM_004, &region, &memory)
}

fn last_packet(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (region, memory) = t.patterned(mtu as u64 + 50)?;
    let mut session = t.session();

    let psns = session.ask_all(t, &Message::write(&region, 0, &bytes(mtu + 51)).parts(mtu)?)?;
    session.refused(t, SES_MEM_004, psns[1])?;
    t.pause(t.soon())?;
    t.check_memory(SES_MEM_004, &region, mtu as u64, &memory[mtu..])
}

/// Expects that a read is refused and returns no data.
fn expect_read_refused(
    t: &mut Test<'_>,
    requirement: &Requirement,
    message: &Message,
    codes: &[ReturnCode],
) -> Outcome {
    let mut session = t.session();
    let psn = session.ask(t, &message.whole()?)?;
    let pdc = session.pdc.clone();
    t.expect_silence(requirement, "no read data", |seen| {
        let carries = seen.request().is_some() && seen.is_for(&pdc) || seen.ack().is_some();
        (carries && !seen.payload().is_empty()).then_some(())
    })?;
    match codes {
        [] => session.refused(t, requirement, psn),
        codes => session.refused_as(t, SES_MEM_005, psn, codes),
    }
    .map(drop)
}

/// Exposes a region with these permissions alone.
fn region_with(t: &mut Test<'_>, permissions: &[Permission]) -> Result<(Region, Vec<u8>), Stop> {
    t.exposed(64, |region| ExposeRegion { permissions: permissions.to_vec(), ..region })
}

fn not_writable(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = region_with(t, &[Permission::Read, Permission::Atomic])?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&region, 8, &bytes(16)).whole()?)?;
    let refused = session.refused_as(t, SES_MEM_005, psn, DENIED);
    t.still_holds(SES_MEM_003, &region, &memory)?;
    refused.map(drop)
}

fn no_atomics(t: &mut Test<'_>) -> Outcome {
    // Open: which permissions an atomic needs. Permission to read alone is never enough.
    let (region, memory) = region_with(t, &[Permission::Read])?;
    let mut session = t.session();

    let sum = (AtomicOpcode::SUM, AtomicDatatype::UINT64);
    let psn = session.ask(t, &Message::atomic(&region, 8, sum, &[1; 8])?.whole()?)?;
    let refused = session.refused_as(t, SES_MEM_005, psn, DENIED);
    t.still_holds(SES_MEM_003, &region, &memory)?;
    refused.map(drop)
}

/// Expects that the device refuses a message, returns no data and leaves memory unchanged.
fn expect_all_refused(
    t: &mut Test<'_>,
    requirement: &Requirement,
    message: &Message,
    (region, memory): (&Region, &[u8]),
) -> Outcome {
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
        // An ordered context dropped the packets that arrived out of order.
        for (psn, part) in psns.iter().zip(&parts).skip(1) {
            session.again(t, *psn, part)?;
        }
    }
    t.expect_none(requirement, "no data from the region", t.soon(), |seen| {
        (seen.is_for(&pdc) && !seen.payload().is_empty()).then_some(())
    })?;
    session.refused(t, requirement, psns[1])?;
    t.check_memory(requirement, region, 0, memory)
}
