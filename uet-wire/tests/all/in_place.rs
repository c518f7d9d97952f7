//! Writers in the caller's buffer write all fields or none.

use core::borrow::BorrowMut;
use proptest::prelude::*;
use uet_wire::pds::{AckCc, AckCcMut, Request, RequestMut};
use uet_wire::registry::{CcType, NextHdr, Opcode};
use uet_wire::ses::{Std, StdMut};
use uet_wire::{PdcId, Psn, Units24};

/// Calls the setter that `which` selects.
fn set_request<B: BorrowMut<[u8; 12]>>(to: RequestMut<B>, which: u8, value: u64) -> RequestMut<B> {
    match which % 8 {
        0 => to.syn(value & 1 == 1),
        1 => to.psn(Psn(value as u32)),
        2 => to.clear_psn(Psn(value as u32)),
        3 => to.dpdcid(PdcId(value as u16)),
        4 => to.pdc_info(value as u8),
        5 => to.prologue(|prologue| prologue.flags(value as u8)),
        6 => to.copy_from(&Request::zeroed()),
        _ => to.spdcid(PdcId(value as u16)),
    }
}

fn set_ack_cc<B: BorrowMut<[u8; 32]>>(to: AckCcMut<B>, which: u8, value: u64) -> AckCcMut<B> {
    match which % 7 {
        0 => to.cc_type(CcType::new(value as u8 & 3).unwrap()),
        1 => to.ack(|ack| ack.p(value & 1 == 1)),
        2 => to.ack(|ack| ack.m(true).probe_opaque(value as u16)),
        3 => to.sack(|sack| sack.sack_bitmap(value)),
        4 => to.credit(Units24::from_bytes(value)),
        5 => to.rcv_cwnd_pend(value as u8),
        _ => to.ack_cc_state(value),
    }
}

fn set_std<B: BorrowMut<[u8; 44]>>(to: StdMut<B>, which: u8, value: u64) -> StdMut<B> {
    match which % 7 {
        0 => to.head(|head| head.opcode(Opcode::new(value as u8 & 63).unwrap())),
        1 => to.head(|head| head.som(value & 1 == 1)),
        2 => to.address(|address| address.job_id(value as u32)),
        3 => to.buffer_offset(value),
        4 => to.memory_key(value),
        5 => to.header_data(value),
        _ => to.payload_length(value as u16),
    }
}

macro_rules! all_or_nothing {
    ($Name:ident $set:ident $before:ident $steps:ident) => {{
        let mut bytes = $before;
        let (header, _) = $Name::parse(&$before).unwrap();
        let owned = $steps.iter().fold(header.edit(), |to, (which, value)| $set(to, *which, *value)).done();
        let (writer, _) = $Name::parse_mut(&mut bytes).unwrap();
        let in_place = $steps.iter().fold(writer, |to, (which, value)| $set(to, *which, *value)).done();
        prop_assert_eq!(in_place.map(|header| header.copied()), owned);
        match owned {
            Ok(owned) => prop_assert_eq!(&bytes[..owned.bytes().len()], owned.bytes()),
            Err(_) => prop_assert_eq!(bytes, $before),
        }
    }};
}

proptest! {
    #[test]
    fn failing_chain_leaves_every_byte(
        before: [u8; 48],
        steps in prop::collection::vec((any::<u8>(), any::<u64>()), 0..6),
    ) {
        all_or_nothing!(Request set_request before steps);
        all_or_nothing!(AckCc set_ack_cc before steps);
        all_or_nothing!(Std set_std before steps);
    }
}

#[test]
fn new_header_in_a_buffer_starts_from_zero() {
    let mut bytes = [0xff; 14];
    let (writer, rest) = Request::zeroed_in(&mut bytes).unwrap();
    assert_eq!(rest, [0xff; 2]);
    writer.psn(Psn(1)).done().unwrap();
    assert_eq!(bytes[..12], *Request::zeroed().edit().psn(Psn(1)).done().unwrap().bytes());
    let error = Request::zeroed_in(&mut bytes[..11]).unwrap_err();
    assert_eq!((error.needed(), error.present()), (Some(12), Some(11)));
}

#[test]
fn nothing_is_written_without_done() {
    let mut bytes = [0x5a; 12];
    let (writer, _) = Request::parse_mut(&mut bytes).unwrap();
    drop(writer.psn(Psn(1)));
    assert_eq!(bytes, [0x5a; 12]);
}

#[test]
fn value_that_is_too_wide_leaves_its_neighbors_alone() {
    let writer = Request::zeroed().edit().prologue(|prologue| prologue.flags(0x84));
    let current = writer.current_unchecked();
    assert_eq!((current.prologue().next_hdr(), current.syn()), (NextHdr::UET_HDR_NONE, true));
    assert_eq!(writer.done().unwrap_err().field(), Some("pds.flags"));
}
