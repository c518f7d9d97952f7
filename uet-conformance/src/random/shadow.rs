//! Expected contents of the device's memory, byte by byte.

use crate::arithmetic::{self, Result};
use core::fmt;
use core::ops::Range;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// A byte of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// It is this.
    Is(u8),
    /// It is one of these: an operation on it is undecided.
    Either(u8, u8),
    /// It may be anything.
    Open,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Is(is) => write!(f, "{is:#04x}"),
            Cell::Either(one, other) => write!(f, "{one:#04x} or {other:#04x}"),
            Cell::Open => f.write_str("any byte"),
        }
    }
}

impl Cell {
    pub(super) fn permits(self, byte: u8) -> bool {
        match self {
            Cell::Is(is) => is == byte,
            Cell::Either(one, other) => one == byte || other == byte,
            Cell::Open => true,
        }
    }

    fn or(self, byte: u8) -> Cell {
        match self {
            Cell::Is(is) if is == byte => self,
            Cell::Is(is) => Cell::Either(is, byte),
            Cell::Either(one, other) if one == byte || other == byte => self,
            _ => Cell::Open,
        }
    }

    fn merged(self, other: Cell) -> Cell {
        match other {
            Cell::Is(byte) => self.or(byte),
            Cell::Either(one, two) => self.or(one).or(two),
            Cell::Open => Cell::Open,
        }
    }
}

/// The memory of a region.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    /// The bytes, as far as they are known.
    bytes: Vec<u8>,
    /// All bytes, once one is not known; empty before.
    cells: Vec<Cell>,
    /// Operations under way: number, place, and if they write.
    active: Vec<(usize, Range<usize>, bool)>,
}

impl Shadow {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Shadow { bytes, ..Shadow::default() }
    }

    /// Returns the bytes of a place; none if it is not inside.
    pub(super) fn get(&self, place: Range<usize>) -> Vec<Cell> {
        if self.cells.is_empty() {
            self.bytes.get(place).unwrap_or_default().iter().copied().map(Cell::Is).collect()
        } else {
            self.cells.get(place).unwrap_or_default().to_vec()
        }
    }

    /// Returns the first byte that may not be what it is.
    pub(super) fn wrong(&self, bytes: &[u8]) -> Option<usize> {
        if self.cells.is_empty() && self.bytes == bytes {
            return None;
        }
        let ends = 0..self.bytes.len().min(bytes.len());
        ends.into_iter().find(|at| !self.at(*at).permits(bytes[*at]))
    }

    /// Returns the byte at a position as far as it is known.
    pub(super) fn at(&self, place: usize) -> Cell {
        self.cells.get(place).copied().unwrap_or_else(|| Cell::Is(self.bytes[place]))
    }

    fn put(&mut self, place: usize, cell: Cell) {
        if let (Cell::Is(byte), true) = (cell, self.cells.is_empty()) {
            return self.bytes[place] = byte;
        }
        if self.cells.is_empty() {
            self.cells = self.get(0..self.bytes.len());
        }
        self.cells[place] = cell;
    }

    /// Begins an operation; returns the operations under way that it meets where one of the two writes.
    pub(super) fn begin(&mut self, number: usize, place: Range<usize>, writes: bool) -> Vec<usize> {
        let meets = |(_, other, write): &&(usize, Range<usize>, bool)| {
            (writes || *write) && other.start < place.end && place.start < other.end
        };
        let met = self.active.iter().filter(meets).map(|(number, _, _)| *number).collect();
        self.active.push((number, place, writes));
        met
    }

    /// Ends an operation.
    pub(super) fn end(&mut self, number: usize) {
        self.active.retain(|(other, _, _)| *other != number);
    }

    /// Stores what an operation has left.
    pub(super) fn set(&mut self, start: usize, cells: &[Cell]) {
        (start..self.bytes.len()).zip(cells).for_each(|(place, cell)| self.put(place, *cell));
    }

    /// Stores what an operation may have left.
    pub(super) fn may_be(&mut self, start: usize, cells: &[Cell]) {
        (start..self.bytes.len()).zip(cells).for_each(|(place, cell)| {
            self.put(place, self.at(place).merged(*cell));
        });
    }

    /// Forgets a place.
    pub(super) fn open(&mut self, place: Range<usize>) {
        if place.end <= self.bytes.len() {
            place.for_each(|place| self.put(place, Cell::Open));
        }
    }
}

/// The operands of an atomic on elements of so many bytes.
#[derive(Clone, Debug)]
pub(super) struct Operands {
    pub(super) opcode: AtomicOpcode,
    pub(super) datatype: AtomicDatatype,
    pub(super) size: usize,
    pub(super) big: bool,
    pub(super) values: Vec<u128>,
    pub(super) swap: u128,
}

/// Returns what an atomic leaves of these bytes.
pub(super) fn atomic(old: &[Cell], with: &Operands) -> Vec<Cell> {
    let mut left = Vec::with_capacity(old.len());
    for (element, value) in old.chunks(with.size).zip(&with.values) {
        let bits = element.iter().enumerate().try_fold(0u128, |bits, (at, cell)| match cell {
            Cell::Is(byte) => {
                let place = if with.big { with.size - 1 - at } else { at };
                Some(bits | u128::from(*byte) << (8 * place))
            }
            _ => None,
        });
        let write = with.opcode == AtomicOpcode::WRITE;
        let result = match bits {
            Some(old) => arithmetic::apply(with.opcode, with.datatype, old, *value, with.swap),
            None if write => Result::Is(*value),
            None => Result::Open,
        };
        let byte = |bits: u128, at: usize| {
            let place = if with.big { with.size - 1 - at } else { at };
            (bits >> (8 * place)) as u8
        };
        left.extend((0..element.len()).map(|at| match result {
            Result::Is(new) => Cell::Is(byte(new, at)),
            Result::Either(one, other) => Cell::Is(byte(one, at)).or(byte(other, at)),
            Result::Open => Cell::Open,
        }));
    }
    left
}
