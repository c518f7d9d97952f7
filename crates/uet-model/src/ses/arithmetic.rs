//! The arithmetic of atomics (section 3.4.2).
//!
//! Elements are little-endian here; `byte_order` converts others. A complex number starts with its real part. 16-bit floating
//! point and long double are not supported.

use super::Refusal;
use super::event::Why;
use super::params::{SesParams, SwapOrder};
use core::cmp::Ordering;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, ReturnCode};

/// An atomic operation with its operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicOperation<'a> {
    pub(super) opcode: AtomicOpcode,
    pub(super) datatype: AtomicDatatype,
    pub(super) operand: &'a [u8],
    /// The values of a compare and swap.
    pub(super) swap: Option<(u128, u128)>,
}

/// Returns the size of an element. `SES-AMO-003`: the error for an unsupported datatype is AMO_UNSUPPORTED_DT.
pub(super) fn width_of(datatype: AtomicDatatype) -> Result<u32, Refusal> {
    Ok(match datatype {
        AtomicDatatype::INT8 | AtomicDatatype::UINT8 => 1,
        AtomicDatatype::INT16 | AtomicDatatype::UINT16 => 2,
        AtomicDatatype::INT32 | AtomicDatatype::UINT32 | AtomicDatatype::FLOAT => 4,
        AtomicDatatype::INT64
        | AtomicDatatype::UINT64
        | AtomicDatatype::DOUBLE
        | AtomicDatatype::FLOAT_COMPLEX => 8,
        AtomicDatatype::INT128 | AtomicDatatype::UINT128 | AtomicDatatype::DOUBLE_COMPLEX => 16,
        _ => return Err(Refusal::new(ReturnCode::AMO_UNSUPPORTED_DT, Why::AtomicDatatype(datatype))),
    })
}

/// Returns whether an operation changes memory.
pub(super) fn changes(opcode: AtomicOpcode) -> bool {
    opcode != AtomicOpcode::READ
}

/// `SES-AMO-001`: applies the operation to each element in the arithmetic of its datatype. If it fails for one element, none
/// changes.
pub(super) fn apply(
    operation: AtomicOperation<'_>,
    memory: &mut [u8],
    params: &SesParams,
) -> Result<(), Refusal> {
    match operation.datatype {
        AtomicDatatype::INT8 => all::<i8>(operation, memory, params),
        AtomicDatatype::UINT8 => all::<u8>(operation, memory, params),
        AtomicDatatype::INT16 => all::<i16>(operation, memory, params),
        AtomicDatatype::UINT16 => all::<u16>(operation, memory, params),
        AtomicDatatype::INT32 => all::<i32>(operation, memory, params),
        AtomicDatatype::UINT32 => all::<u32>(operation, memory, params),
        AtomicDatatype::INT64 => all::<i64>(operation, memory, params),
        AtomicDatatype::UINT64 => all::<u64>(operation, memory, params),
        AtomicDatatype::INT128 => all::<i128>(operation, memory, params),
        AtomicDatatype::UINT128 => all::<u128>(operation, memory, params),
        AtomicDatatype::FLOAT => all::<f32>(operation, memory, params),
        AtomicDatatype::DOUBLE => all::<f64>(operation, memory, params),
        AtomicDatatype::FLOAT_COMPLEX => all::<Complex<f32>>(operation, memory, params),
        AtomicDatatype::DOUBLE_COMPLEX => all::<Complex<f64>>(operation, memory, params),
        other => Err(Refusal::new(ReturnCode::AMO_UNSUPPORTED_DT, Why::AtomicDatatype(other))),
    }
}

fn all<E: Element>(
    operation: AtomicOperation<'_>,
    memory: &mut [u8],
    params: &SesParams,
) -> Result<(), Refusal> {
    let AtomicOperation { opcode, operand, swap, .. } = operation;
    // `SES-AMO-002`: the reply to an operation that does not exist, or not for this datatype, is AMO_UNSUPPORTED_OP.
    let unsupported = || Refusal::new(ReturnCode::AMO_UNSUPPORTED_OP, Why::AtomicOpcode(opcode));
    let mut changed = Vec::with_capacity(memory.len());
    for (index, old) in memory.chunks_exact(E::SIZE).enumerate() {
        let old = E::load(old);
        let with = operand.get(index * E::SIZE..).and_then(|rest| rest.get(..E::SIZE)).map(E::load);
        let new = match (opcode, swap, with) {
            (AtomicOpcode::READ, ..) => old,
            (_, Some((compare, store)), _) if opcode.is_compare_and_swap() => {
                let (compare, store) = (E::of_bits(compare), E::of_bits(store));
                let swaps = swaps(opcode, compare, old, params.swap_order).ok_or_else(unsupported)?;
                if swaps { store } else { old }
            }
            (AtomicOpcode::WRITE, None, Some(with)) => with,
            (_, None, Some(with)) => {
                let new = E::combine(opcode, old, with).ok_or_else(unsupported)?;
                if let Some(code) = new.fault(old, with).filter(|_| params.float_faults) {
                    return Err(Refusal::new(code, Why::Float));
                }
                new
            }
            _ => return Err(unsupported()),
        };
        new.store(&mut changed);
    }
    memory.copy_from_slice(&changed);
    Ok(())
}

/// `SES-AMO-008`: a compare and swap stores its second value if comparing its first value with memory succeeds.
fn swaps<E: Element>(opcode: AtomicOpcode, compare: E, memory: E, order: SwapOrder) -> Option<bool> {
    let ordering = match order {
        SwapOrder::OperandFirst => compare.order(memory),
        SwapOrder::MemoryFirst => memory.order(compare),
    };
    Some(match opcode {
        AtomicOpcode::CSWAP => compare == memory,
        AtomicOpcode::CSWAP_NE => compare != memory,
        AtomicOpcode::CSWAP_LE => ordering?.is_some_and(Ordering::is_le),
        AtomicOpcode::CSWAP_LT => ordering?.is_some_and(Ordering::is_lt),
        AtomicOpcode::CSWAP_GE => ordering?.is_some_and(Ordering::is_ge),
        AtomicOpcode::CSWAP_GT => ordering?.is_some_and(Ordering::is_gt),
        _ => return None,
    })
}

/// A datatype with arithmetic.
trait Element: Copy + PartialEq {
    const SIZE: usize;
    fn load(bytes: &[u8]) -> Self;
    fn store(self, to: &mut Vec<u8>);
    /// Compares two values; `None` for a datatype without an order.
    fn order(self, other: Self) -> Option<Option<Ordering>>;
    /// Combines two values; `None` if the datatype lacks the operation.
    fn combine(opcode: AtomicOpcode, old: Self, with: Self) -> Option<Self>;
    /// Returns the floating-point fault of this result, if any.
    fn fault(self, _old: Self, _with: Self) -> Option<ReturnCode> {
        None
    }
    /// `SES-AMO-009`: reads the value in the lower bits of an operand.
    fn of_bits(bits: u128) -> Self {
        Self::load(&bits.to_le_bytes())
    }
}

/// Returns the first bytes of a slice.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Element for $int {
            const SIZE: usize = size_of::<$int>();

            fn load(bytes: &[u8]) -> Self {
                Self::from_le_bytes(array(bytes))
            }

            fn store(self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }

            fn order(self, other: Self) -> Option<Option<Ordering>> {
                Some(Some(self.cmp(&other)))
            }

            fn combine(opcode: AtomicOpcode, old: Self, with: Self) -> Option<Self> {
                Some(match opcode {
                    AtomicOpcode::MIN => old.min(with),
                    AtomicOpcode::MAX => old.max(with),
                    AtomicOpcode::SUM => old.wrapping_add(with),
                    AtomicOpcode::DIFF => old.wrapping_sub(with),
                    AtomicOpcode::PROD => old.wrapping_mul(with),
                    AtomicOpcode::LOR => (old != 0 || with != 0).into(),
                    AtomicOpcode::LAND => (old != 0 && with != 0).into(),
                    AtomicOpcode::LXOR => ((old != 0) != (with != 0)).into(),
                    AtomicOpcode::BOR => old | with,
                    AtomicOpcode::BAND => old & with,
                    AtomicOpcode::BXOR => old ^ with,
                    _ => return None,
                })
            }
        }
    )*};
}

integers! { i8 u8 i16 u16 i32 u32 i64 u64 i128 u128 }

macro_rules! floats {
    ($($float:ty)*) => {$(
        impl Element for $float {
            const SIZE: usize = size_of::<$float>();

            fn load(bytes: &[u8]) -> Self {
                Self::from_le_bytes(array(bytes))
            }

            fn store(self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }

            fn order(self, other: Self) -> Option<Option<Ordering>> {
                Some(self.partial_cmp(&other))
            }

            fn combine(opcode: AtomicOpcode, old: Self, with: Self) -> Option<Self> {
                let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
                Some(match opcode {
                    AtomicOpcode::MIN => old.min(with),
                    AtomicOpcode::MAX => old.max(with),
                    AtomicOpcode::SUM => old + with,
                    AtomicOpcode::DIFF => old - with,
                    AtomicOpcode::PROD => old * with,
                    AtomicOpcode::LOR => truth(old != 0.0 || with != 0.0),
                    AtomicOpcode::LAND => truth(old != 0.0 && with != 0.0),
                    AtomicOpcode::LXOR => truth((old != 0.0) != (with != 0.0)),
                    _ => return None,
                })
            }

            fn fault(self, old: Self, with: Self) -> Option<ReturnCode> {
                if self.is_nan() {
                    Some(ReturnCode::AMO_FP_NAN)
                } else if self.is_infinite() && old.is_finite() && with.is_finite() {
                    Some(ReturnCode::AMO_FP_OVERFLOW)
                } else if self.is_subnormal() && old.is_normal() && with.is_normal() {
                    Some(ReturnCode::AMO_FP_UNDERFLOW)
                } else {
                    None
                }
            }
        }
    )*};
}

floats! { f32 f64 }

/// A complex number: supports sum, difference, product and equality.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Complex<F> {
    re: F,
    im: F,
}

impl<F> Element for Complex<F>
where
    F: Element + core::ops::Add<Output = F> + core::ops::Sub<Output = F> + core::ops::Mul<Output = F>,
{
    const SIZE: usize = 2 * F::SIZE;

    fn load(bytes: &[u8]) -> Self {
        Complex { re: F::load(bytes), im: F::load(bytes.get(F::SIZE..).unwrap_or_default()) }
    }

    fn store(self, to: &mut Vec<u8>) {
        self.re.store(to);
        self.im.store(to);
    }

    fn order(self, _: Self) -> Option<Option<Ordering>> {
        None
    }

    fn combine(opcode: AtomicOpcode, old: Self, with: Self) -> Option<Self> {
        Some(match opcode {
            AtomicOpcode::SUM => Complex { re: old.re + with.re, im: old.im + with.im },
            AtomicOpcode::DIFF => Complex { re: old.re - with.re, im: old.im - with.im },
            AtomicOpcode::PROD => {
                Complex { re: old.re * with.re - old.im * with.im, im: old.re * with.im + old.im * with.re }
            }
            _ => return None,
        })
    }

    fn fault(self, old: Self, with: Self) -> Option<ReturnCode> {
        self.re.fault(old.re, with.re).or_else(|| self.im.fault(old.im, with.im))
    }
}
