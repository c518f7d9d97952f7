//! Atomics that state more bytes than a packet holds (section 3.4.2).

use super::steps::{FORM, OPERATIONS};
use crate::elements::{GUARD, kind};
use crate::prelude::*;
use crate::rules::steps::HEADER;
use uet_wire::registry::{AtomicDatatype as Type, AtomicOpcode as Op};

const OPERATION: Axis<Op> = axis("operation").values(OPERATIONS);

const DATATYPE: Axis<Type> = axis("datatype").values(&[
    ("uint64", Type::UINT64),
    ("int8", Type::INT8),
    ("uint16", Type::UINT16),
    ("int32", Type::INT32),
    ("uint128", Type::UINT128),
    ("float", Type::FLOAT),
    ("double", Type::DOUBLE),
    ("float-complex", Type::FLOAT_COMPLEX),
]);

/// The number of bytes that the atomic states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatedLength {
    /// One payload MTU and one element.
    Element,
    /// Two payload MTUs.
    TwoPackets,
}

const STATED: Axis<StatedLength> = axis("stated")
    .values(&[("mtu-plus-element", StatedLength::Element), ("2-mtu", StatedLength::TwoPackets)]);

/// The number of bytes that the packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Nothing,
    Element,
    Packet,
}

const CARRIED: Axis<Carried> = axis("carried").values(&[
    ("nothing", Carried::Nothing),
    ("element", Carried::Element),
    ("packet", Carried::Packet),
]);

pub(super) const RULES: &[Rule] =
    &[rule("atomic-length/exceeds-packet", "An atomic whose length exceeds one packet has no effect")
        .checks(&[SES_AMO_004, ROB_LIFE_001])
        .needs(&[ATOMIC, WRITE])
        .over(&[&OPERATION, &STATED, &CARRIED, &DATATYPE, &FORM, &HEADER, &MODE])
        .run(exceeds_packet)];

fn exceeds_packet(t: &mut Test<'_>) -> Outcome {
    let kind = kind(t.value(&OPERATION), t.value(&DATATYPE));
    let stated = t.mtu()
        + match t.value(&STATED) {
            StatedLength::Element => kind.size,
            StatedLength::TwoPackets => t.mtu(),
        };
    let carried = match t.value(&CARRIED) {
        Carried::Nothing => 0,
        Carried::Element => kind.size,
        Carried::Packet => t.mtu(),
    };
    let elements = |value: u128, bytes: usize| vec![value; bytes / kind.size];
    let (region, held) = t.elements_in_memory(kind.size, &elements(0x55, stated))?;
    let operands = t.operands(kind.size, &elements(0x2a, carried));
    let message = Message::atomic(&region, GUARD as u64, (kind.opcode, kind.datatype), &operands)?;
    let opcode = if t.value(&FORM) { Opcode::UET_FETCHING_ATOMIC } else { Opcode::UET_ATOMIC };
    let message = Message { length: stated as u32, ..message.opcode(opcode) };
    // The length field of a medium header is too short for two packets of the largest MTU.
    let medium = t.value(&HEADER) && stated < 1 << 14;
    let part = if medium { message.medium()? } else { message.whole()? };
    // Open: the code of the refusal. A device may also drop the packet because of its lengths.
    let mut session = t.session();
    let psn = session.ask(t, &part)?;
    let pdc = session.pdc.clone();
    t.expect_none(SES_AMO_004, "no success, and no old value", t.soon(), |seen: &RxPacket| {
        let ok = seen.answers(&pdc, psn).is_some() && seen.return_code() == Some(ReturnCode::OK);
        (seen.is_for(&pdc) && (ok || !seen.payload().is_empty())).then_some(())
    })?;
    t.check_memory(SES_AMO_004, &region, 0, &held)?;
    t.expect_life(ROB_LIFE_001)
}
