//! Elements of atomic operations: numbers of a datatype in the device's memory.

use crate::{Answer, Message, Outcome, Region, RequestSession, Stop, Test, assemble};
use uet_control::{ExposeRegion, Fill, Hex};
use uet_wire::catalogue::*;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, Opcode, ReturnCode};

/// Bytes before and behind the elements, which no atomic may touch.
pub const GUARD: usize = 16;

/// An atomic operation on elements of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The operation.
    pub opcode: AtomicOpcode,
    /// The type of the elements.
    pub datatype: AtomicDatatype,
    /// The size of an element.
    pub size: usize,
}

/// An operation on a datatype.
pub fn kind(opcode: AtomicOpcode, datatype: AtomicDatatype) -> Kind {
    let size = match datatype {
        AtomicDatatype::INT8 | AtomicDatatype::UINT8 => 1,
        AtomicDatatype::INT16 | AtomicDatatype::UINT16 => 2,
        AtomicDatatype::INT32 | AtomicDatatype::UINT32 | AtomicDatatype::FLOAT => 4,
        AtomicDatatype::INT128 | AtomicDatatype::UINT128 | AtomicDatatype::DOUBLE_COMPLEX => 16,
        _ => 8,
    };
    Kind { opcode, datatype, size }
}

impl Test<'_> {
    /// Elements as the device has them in memory. Open: the order of their bytes; its parameter `byte_order`
    /// says `big`, else it is that of little-endian hosts.
    pub fn elements(&self, size: usize, values: &[u128]) -> Vec<u8> {
        in_order(self.word("byte_order"), size, values)
    }

    /// Operands and results as packets carry them. Open: the order of their bytes; the parameter
    /// `operand_order` says it, else it is that of memory.
    pub fn operands(&self, size: usize, values: &[u128]) -> Vec<u8> {
        in_order(self.word("operand_order").or(self.word("byte_order")), size, values)
    }

    /// A region with these elements between two guards, and what it holds.
    pub fn elements_in_memory(&mut self, size: usize, values: &[u128]) -> Result<(Region, Vec<u8>), Stop> {
        let held = self.guarded(size, values);
        let fill = Some(Fill::Hex(Hex(held.clone())));
        let (region, _) = self.exposed(held.len() as u64, |region| ExposeRegion { fill, ..region })?;
        Ok((region, held))
    }

    /// Returns the bytes of memory with these elements between two guards.
    pub fn guarded(&self, size: usize, values: &[u128]) -> Vec<u8> {
        let guard = [0x5a; GUARD];
        [&guard[..], &self.elements(size, values), &guard[..]].concat()
    }

    /// Expects that memory which held `old` holds `new` after this operation, and nothing beside it has
    /// changed.
    pub fn expect_atomic(&mut self, kind: Kind, old: &[u128], with: &[u128], new: &[u128]) -> Outcome {
        let (region, _) = self.elements_in_memory(kind.size, old)?;
        let operands = self.operands(kind.size, with);
        let mut session = self.session();

        let message = Message::atomic(&region, GUARD as u64, (kind.opcode, kind.datatype), &operands)?;
        let psn = session.ask(self, &message.whole()?)?;
        supported(&session.answer(self, psn)?, kind)?;
        session.accepted(self, SES_AMO_001, psn)?;
        let expected = self.guarded(kind.size, new);
        self.expect_memory(SES_AMO_001, &region, 0, &expected)
    }

    /// Expects the same effect as [`expect_atomic`](Self::expect_atomic), and that the fetching atomic
    /// returns `old`.
    pub fn expect_fetching(&mut self, kind: Kind, old: &[u128], with: &[u128], new: &[u128]) -> Outcome {
        let (region, _) = self.elements_in_memory(kind.size, old)?;
        let operands = self.operands(kind.size, with);
        let mut session = self.session();

        let message = Message::atomic(&region, GUARD as u64, (kind.opcode, kind.datatype), &operands)?;
        let message = message.opcode(Opcode::UET_FETCHING_ATOMIC);
        let fetched = fetch(self, &mut session, &message, kind)?;
        let before = self.operands(kind.size, old);
        self.check(SES_AMO_007, "the old value:", Some(before), fetched);
        let expected = self.guarded(kind.size, new);
        self.expect_memory(SES_AMO_001, &region, 0, &expected)
    }
}

/// Returns these numbers with their highest byte first if `order` is `big`, else last.
fn in_order(order: Option<&str>, size: usize, values: &[u128]) -> Vec<u8> {
    let bytes = |value: &u128| match order {
        Some("big") => value.to_be_bytes()[16 - size..].to_vec(),
        _ => value.to_le_bytes()[..size].to_vec(),
    };
    values.iter().flat_map(bytes).collect()
}

/// Asks for a fetching atomic and gets what it brings.
pub fn fetch(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    message: &Message,
    kind: Kind,
) -> Result<Option<Vec<u8>>, Stop> {
    let psn = session.ask(t, &message.whole()?)?;
    supported(&session.answer(t, psn)?, kind)?;
    let pieces = session.data(t, SES_AMO_007, message.length as usize)?;
    Ok(assemble(&pieces, message.length as usize))
}

/// Skips the rule where the device lacks the operation.
pub fn supported(answer: &Answer, Kind { opcode, datatype, .. }: Kind) -> Outcome {
    match answer.code() {
        ReturnCode::AMO_UNSUPPORTED_OP | ReturnCode::AMO_UNSUPPORTED_DT | ReturnCode::UNSUPPORTED_OP => {
            Err(Stop::Skipped(format!("the device lacks {opcode} of {datatype}")))
        }
        _ => Ok(()),
    }
}
