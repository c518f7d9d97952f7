//! Atomics, compared with plain arithmetic of Rust.

use super::pair::*;
use crate::cases::cases;
use bytes::Bytes;
use proptest::prelude::*;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::registry::{AtomicDatatype as Dt, AtomicOpcode as Op, ReturnCode};
use uet_wire::ses::{ResponseData, Std};

const KEY: u64 = 0xacce5;

fn atomic(opcode: Op, datatype: Dt, operand: Operand, fetch: bool) -> Operation {
    let on = AtomicOn::Memory { key: Key(KEY), offset: 0 };
    Operation::new(peer(), Work::Atomic { on, opcode, datatype, operand, fetch })
}

/// Returns the memory after the operation, and the fetched old value.
fn act(memory: &[u8], operation: Operation) -> Result<(Vec<u8>, Bytes), ReturnCode> {
    act_with(SesParams::default(), memory, operation)
}

fn act_with(params: SesParams, memory: &[u8], operation: Operation) -> Result<(Vec<u8>, Bytes), ReturnCode> {
    let mut pair = Pair::with(SesParams::default(), params).opened();
    let region = region(&mut pair, KEY, memory.len());
    pair.side[1].memory_mut(region).unwrap().copy_from_slice(memory);
    let done = pair.run_one(operation).map_err(|fault| {
        assert_eq!(pair.side[1].memory(region).unwrap(), memory, "a refused atomic changes nothing");
        fault.code
    })?;
    Ok((pair.side[1].memory(region).unwrap().to_vec(), done.data))
}

const OPERATIONS: [Op; 11] =
    [Op::MIN, Op::MAX, Op::SUM, Op::DIFF, Op::PROD, Op::LOR, Op::LAND, Op::BOR, Op::BAND, Op::LXOR, Op::BXOR];
const SWAPS: [Op; 6] = [Op::CSWAP, Op::CSWAP_NE, Op::CSWAP_LE, Op::CSWAP_LT, Op::CSWAP_GE, Op::CSWAP_GT];

macro_rules! integers {
    ($($test:ident $int:ty, $datatype:ident;)*) => {$(
        proptest! {
            #![proptest_config(cases(32))]
            #[test]
            fn $test(old: [$int; 3], with: [$int; 3], fetch: bool) {
                let bytes = |values: &[$int]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
                let (memory, operand) = (bytes(&old), bytes(&with));
                for opcode in OPERATIONS {
                    let expected: Vec<$int> = old.iter().zip(&with).map(|(&a, &b)| match opcode {
                        Op::MIN => if a < b { a } else { b },
                        Op::MAX => if a > b { a } else { b },
                        Op::SUM => a.wrapping_add(b),
                        Op::DIFF => a.wrapping_sub(b),
                        Op::PROD => a.wrapping_mul(b),
                        Op::LOR => (a != 0 || b != 0) as $int,
                        Op::LAND => (a != 0 && b != 0) as $int,
                        Op::LXOR => ((a != 0) ^ (b != 0)) as $int,
                        Op::BOR => a | b,
                        Op::BAND => a & b,
                        _ => a ^ b,
                    }).collect();
                    let elements = Operand::Elements(operand.clone().into());
                    let (after, before) = act(&memory, atomic(opcode, Dt::$datatype, elements, fetch)).unwrap();
                    prop_assert_eq!(&after, &bytes(&expected), "{}", opcode);
                    prop_assert_eq!(&before[..], if fetch { &memory[..] } else { &[][..] });
                }
                let write = atomic(Op::WRITE, Dt::$datatype, Operand::Elements(operand.clone().into()), fetch);
                prop_assert_eq!(act(&memory, write).unwrap().0, operand);
                let read = atomic(Op::READ, Dt::$datatype, Operand::None(memory.len() as u32), true);
                prop_assert_eq!(act(&memory, read).unwrap(), (memory.clone(), memory.clone().into()));
                // Sometimes the values are equal, so that the test covers equality.
                let (a, b) = (old[0], if fetch { old[0] } else { with[0] });
                for opcode in SWAPS {
                    let swaps = match opcode {
                        Op::CSWAP => b == a,
                        Op::CSWAP_NE => b != a,
                        Op::CSWAP_LE => b <= a,
                        Op::CSWAP_LT => b < a,
                        Op::CSWAP_GE => b >= a,
                        _ => b > a,
                    };
                    let bits = |value: $int| {
                        let mut wide = [0; 16];
                        wide[..size_of::<$int>()].copy_from_slice(&value.to_le_bytes());
                        u128::from_le_bytes(wide)
                    };
                    let operand = Operand::Swap { compare: bits(b), swap: bits(with[1]) };
                    let one = bytes(&[a]);
                    let (after, before) = act(&one, atomic(opcode, Dt::$datatype, operand, true)).unwrap();
                    prop_assert_eq!(after, bytes(&[if swaps { with[1] } else { a }]), "{}", opcode);
                    prop_assert_eq!(&before[..], &one[..]);
                }
            }
        }
    )*};
}

integers! {
    int8 i8, INT8;
    uint8 u8, UINT8;
    int16 i16, INT16;
    uint16 u16, UINT16;
    int32 i32, INT32;
    uint32 u32, UINT32;
    int64 i64, INT64;
    uint64 u64, UINT64;
    int128 i128, INT128;
    uint128 u128, UINT128;
}

macro_rules! floats {
    ($($test:ident $float:ty, $datatype:ident, $complex:ident;)*) => {$(
        proptest! {
            #![proptest_config(cases(32))]
            #[test]
            fn $test(old in prop::array::uniform2(-1e9 as $float..1e9), with in prop::array::uniform2(-1e9 as $float..1e9)) {
                let bytes = |values: &[$float]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
                let (memory, elements) = (bytes(&old), Operand::Elements(bytes(&with).into()));
                let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
                for opcode in OPERATIONS {
                    let result = act(&memory, atomic(opcode, Dt::$datatype, elements.clone(), true));
                    if [Op::BOR, Op::BAND, Op::BXOR].contains(&opcode) {
                        prop_assert_eq!(result, Err(ReturnCode::AMO_UNSUPPORTED_OP));
                        continue;
                    }
                    let expected: Vec<$float> = old.iter().zip(&with).map(|(&a, &b)| match opcode {
                        Op::MIN => if a < b { a } else { b },
                        Op::MAX => if a > b { a } else { b },
                        Op::SUM => a + b,
                        Op::DIFF => a - b,
                        Op::PROD => a * b,
                        Op::LOR => truth(a != 0.0 || b != 0.0),
                        Op::LAND => truth(a != 0.0 && b != 0.0),
                        _ => truth((a != 0.0) ^ (b != 0.0)),
                    }).collect();
                    prop_assert_eq!(result, Ok((bytes(&expected), memory.clone().into())), "{}", opcode);
                }
                // The elements form one complex number.
                let (re, im) = ((old[0], with[0]), (old[1], with[1]));
                for opcode in OPERATIONS {
                    let expected = match opcode {
                        Op::SUM => [re.0 + re.1, im.0 + im.1],
                        Op::DIFF => [re.0 - re.1, im.0 - im.1],
                        Op::PROD => [re.0 * re.1 - im.0 * im.1, re.0 * im.1 + im.0 * re.1],
                        _ => {
                            let result = act(&memory, atomic(opcode, Dt::$complex, elements.clone(), true));
                            prop_assert_eq!(result, Err(ReturnCode::AMO_UNSUPPORTED_OP));
                            continue;
                        }
                    };
                    let (after, _) = act(&memory, atomic(opcode, Dt::$complex, elements.clone(), true)).unwrap();
                    prop_assert_eq!(after, bytes(&expected), "{}", opcode);
                }
                for (opcode, swaps) in SWAPS.iter().zip([
                    with[0] == old[0], with[0] != old[0], with[0] <= old[0],
                    with[0] < old[0], with[0] >= old[0], with[0] > old[0],
                ]) {
                    let operand = Operand::Swap { compare: with[0].to_bits().into(), swap: with[1].to_bits().into() };
                    let (after, _) = act(&bytes(&old[..1]), atomic(*opcode, Dt::$datatype, operand, true)).unwrap();
                    prop_assert_eq!(after, bytes(&[if swaps { with[1] } else { old[0] }]), "{}", opcode);
                }
            }
        }
    )*};
}

floats! {
    float f32, FLOAT, FLOAT_COMPLEX;
    double f64, DOUBLE, DOUBLE_COMPLEX;
}

#[test]
fn swap_order_is_configurable() {
    let operation = || {
        let operand = Operand::Swap { compare: 1, swap: 9 };
        atomic(Op::CSWAP_LT, Dt::UINT32, operand, true)
    };
    let memory = 2u32.to_le_bytes();
    assert_eq!(act(&memory, operation()).unwrap().0, 9u32.to_le_bytes());
    let other = SesParams { swap_order: SwapOrder::MemoryFirst, ..SesParams::default() };
    assert_eq!(act_with(other, &memory, operation()).unwrap().0, memory);
}

#[test]
fn complex_numbers_have_equality_but_no_order() {
    let memory = [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat();
    let bits = |re: f32, im: f32| u128::from(re.to_bits()) | u128::from(im.to_bits()) << 32;
    let operation =
        |opcode| atomic(opcode, Dt::FLOAT_COMPLEX, Operand::Swap { compare: bits(1.0, 2.0), swap: 0 }, true);
    assert_eq!(act(&memory, operation(Op::CSWAP)).unwrap().0, [0; 8]);
    assert_eq!(act(&memory, operation(Op::CSWAP_NE)).unwrap().0, memory);
    assert_eq!(act(&memory, operation(Op::CSWAP_LE)), Err(ReturnCode::AMO_UNSUPPORTED_OP));
}

#[test]
fn floating_point_faults_are_configurable() {
    let faults = SesParams { float_faults: true, ..SesParams::default() };
    for (opcode, old, with, code) in [
        (Op::SUM, f64::INFINITY, f64::NEG_INFINITY, ReturnCode::AMO_FP_NAN),
        (Op::PROD, f64::MAX, 2.0, ReturnCode::AMO_FP_OVERFLOW),
        (Op::PROD, f64::MIN_POSITIVE, 0.5, ReturnCode::AMO_FP_UNDERFLOW),
    ] {
        let operation =
            || atomic(opcode, Dt::DOUBLE, Operand::Elements(with.to_le_bytes().to_vec().into()), false);
        assert_eq!(act_with(faults.clone(), &old.to_le_bytes(), operation()), Err(code));
        assert!(act(&old.to_le_bytes(), operation()).is_ok());
    }
}

#[test]
fn fetched_value_is_guaranteed() {
    for (length, returned) in [(16, false), (24, true)] {
        let mut pair = Pair::open();
        region(&mut pair, KEY, length);
        let operand = Operand::Elements(vec![1; length].into());
        let done = pair.run_one(atomic(Op::SUM, Dt::UINT64, operand, true)).unwrap();
        assert_eq!(done.data, Bytes::from(vec![0; length]));
        assert_eq!(pair.requests.iter().any(|(side, ..)| *side == 1), returned);
        let first = &pair.responses[0].1;
        assert_eq!(first.delivery, if returned { Delivery::Default } else { Delivery::Guaranteed });
        assert_eq!(pair.held, [0, 0]);
    }
}

#[test]
fn tagged_atomic_uses_the_receive_buffer() {
    let mut pair = Pair::open();
    let on = AtomicOn::Tagged { tag: 5, offset: 4 };
    let work = |fetch| Work::Atomic {
        on,
        opcode: Op::SUM,
        datatype: Dt::UINT32,
        operand: Operand::Elements(7u32.to_le_bytes().to_vec().into()),
        fetch,
    };
    assert_eq!(pair.run_one(Operation::new(peer(), work(true))).unwrap_err().code, ReturnCode::NO_MATCH);
    for fetch in [false, true] {
        let initial = Bytes::from_static(&[1, 0, 0, 0, 2, 0, 0, 0]);
        let receive = Receive { initial, ..Receive::tagged(12, 5) };
        pair.side[1].post_receive(index(10), receive).unwrap();
        let done = pair.run_one(Operation::new(peer(), work(fetch))).unwrap();
        assert_eq!(&done.data[..], if fetch { &[2, 0, 0, 0][..] } else { &[] });
        let received = pair.received();
        assert_eq!(&received.last().unwrap().data[..], [1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    }
}

#[test]
fn elements_have_the_byte_orders_of_the_parameters() {
    use ByteOrder::{Big, Little};
    for (memory, packets) in [(Little, None), (Little, Some(Big)), (Big, None), (Big, Some(Little))] {
        let params = SesParams { byte_order: memory, operand_order: packets, ..SesParams::default() };
        let mut pair = Pair::with(params.clone(), params).opened();
        let region = region(&mut pair, KEY, 8);
        let in_order = |order, value: u32| match order {
            Little => value.to_le_bytes(),
            Big => value.to_be_bytes(),
        };
        let elements =
            |order, values: [u32; 2]| Bytes::from(values.map(|value| in_order(order, value)).concat());
        let (old, with) = ([0x100, 7], [0x1ff, 9]);
        pair.side[1].memory_mut(region).unwrap().copy_from_slice(&elements(memory, old));
        let operand = Operand::Elements(elements(memory, with));
        let done = pair.run_one(atomic(Op::SUM, Dt::UINT32, operand, true)).unwrap();
        assert_eq!(done.data, elements(memory, old), "the old values as in memory");
        assert_eq!(pair.side[1].memory(region), Some(&elements(memory, [0x2ff, 16])[..]));
        let on_wire = packets.unwrap_or(memory);
        assert_eq!(pair.requests[0].2.payload, elements(on_wire, with));
        assert_eq!(pair.responses[0].1.payload, elements(on_wire, old));
    }
}

#[test]
fn parts_of_complex_numbers_have_their_own_byte_order() {
    let params = SesParams { byte_order: ByteOrder::Big, ..SesParams::default() };
    let mut pair = Pair::with(params.clone(), params).opened();
    let region = region(&mut pair, KEY, 8);
    let complex = |re: f32, im: f32| [re.to_be_bytes(), im.to_be_bytes()].concat();
    pair.side[1].memory_mut(region).unwrap().copy_from_slice(&complex(1.0, 2.0));
    let operand = Operand::Elements(complex(10.0, 20.0).into());
    pair.run_one(atomic(Op::SUM, Dt::FLOAT_COMPLEX, operand, false)).unwrap();
    assert_eq!(pair.side[1].memory(region), Some(&complex(11.0, 22.0)[..]));
}

#[test]
fn compare_and_swap_states_the_length_of_the_parameter() {
    let long = SesParams { swap_length: Some(32), ..SesParams::default() };
    let swap = || atomic(Op::CSWAP, Dt::UINT64, Operand::Swap { compare: 0, swap: 9 }, true);
    let mut pair = Pair::with(long.clone(), long.clone()).opened();
    let memory = region(&mut pair, KEY, 8);
    let done = pair.run_one(swap()).unwrap();
    assert_eq!((done.length, &done.data[..]), (8, &[0; 8][..]));
    assert_eq!(pair.side[1].memory(memory), Some(&9u64.to_le_bytes()[..]));
    assert_eq!(Std::parse(&pair.requests[0].2.head).unwrap().0.request_length(), 32);
    let answer = ResponseData::parse(&pair.responses[0].1.head).unwrap().0.copied();
    assert_eq!((answer.payload_length(), answer.modified_length()), (8, 32));

    for (initiator, target) in [(long.clone(), SesParams::default()), (SesParams::default(), long)] {
        let mut pair = Pair::with(initiator, target).opened();
        region(&mut pair, KEY, 8);
        assert_eq!(pair.run_one(swap()).unwrap_err().code, ReturnCode::AMO_UNSUPPORTED_SIZE);
    }
}
