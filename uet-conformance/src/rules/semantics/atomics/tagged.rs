//! Duplicates of tagged atomics, which a second receive would match (section 3.4.2).

use super::steps::FORM;
use crate::elements::{kind, supported};
use crate::prelude::*;
use uet_wire::registry::{AtomicDatatype as Type, AtomicOpcode as Op};

/// True if the duplicate is a retransmission, false if the network copied the packet.
const DUPLICATE: Axis<bool> = axis("duplicate").values(&[("retransmission", true), ("copy", false)]);

pub(super) const RULES: &[Rule] =
    &[rule("atomic-tagged/duplicate", "A duplicate of a tagged atomic acts on no second buffer")
        .checks(&[SES_AMO_010, SES_AMO_011])
        .needs(&[ATOMIC, TSEND, RECEIVE])
        .over(&[&FORM, &DUPLICATE, &MODE])
        .run(duplicate)];

fn duplicate(t: &mut Test<'_>) -> Outcome {
    let receives = [t.posted(tagged_room(16, 0x70))?, t.posted(tagged_room(16, 0x70))?];
    let by_tag = Region { key: 0x70, ..receives[0].buffer.clone() };
    let opcode = if t.value(&FORM) { Opcode::UET_TSEND_FETCH_ATOMIC } else { Opcode::UET_TSEND_ATOMIC };
    // Elements of one byte look the same in any byte order.
    let stored = (Op::WRITE, Type::UINT8);
    let part = Message::atomic(&by_tag, 0, stored, &[0xa5; 8])?.opcode(opcode).whole()?;
    let mut session = t.session();
    let psn = session.ask(t, &part)?;
    supported(&session.answer(t, psn)?, kind(stored.0, stored.1))?;
    session.accepted(t, SES_AMO_011, psn)?;
    for _ in 0..2 {
        if t.value(&DUPLICATE) {
            session.again(t, psn, &part)?;
            session.accepted(t, SES_AMO_010, psn)?;
        } else {
            session.ask_late(t, psn, &part)?;
        }
    }
    t.pause(t.soon())?;
    // Open: which of the two receives the atomic takes.
    let mut changed = 0;
    for posted in &receives {
        changed += usize::from(t.memory(&posted.buffer, 0, 16)? != posted.before);
    }
    t.check(SES_AMO_010, "buffers that the atomic has changed:", 1, changed);
    Ok(())
}
