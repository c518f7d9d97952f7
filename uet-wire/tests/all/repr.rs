//! Headers as plain structs.

use crate::every_header::every_header;
use proptest::prelude::*;
use uet_wire::layout::{Kind, Layout};
use uet_wire::pds::{AckCc, AckCcRepr, AckRepr, PrologueRepr, RequestRepr, SackRepr};
use uet_wire::registry::{CcType, NextHdr, PdsType};
use uet_wire::{PdcId, Psn, PsnOffset, Units24};
use uet_wire::{outer, pds, ses, trailer, tss};

/// Clears the bits that a plain struct lacks: reserved bits, and the flags of a prologue alone.
fn named_bits(layout: &'static Layout, header: &[u8]) -> Vec<u8> {
    let mut named = header.to_vec();
    for place in layout.places().filter(|place| place.exists(header)) {
        let is_bare_prologue = layout.bytes == 2 && place.row.name == "pds.flags";
        if place.row.kind == Kind::Reserved || is_bare_prologue {
            place.write(&mut named, 0);
        }
    }
    named
}

macro_rules! repr_comes_back {
    ([$bytes:ident] $($module:ident::$Name:ident)*) => {{
        $({
            #[inline(never)]
            fn comes_back(bytes: &[u8]) {
                let layout = $module::$Name::LAYOUT;
                let repr = $module::$Name::parse(bytes).unwrap().0.to_repr();
                let header = repr.header().unwrap();
                assert_eq!(&header.bytes()[..], named_bits(layout, &bytes[..layout.bytes]), "{}", layout.name);
                assert_eq!(header.to_repr(), repr);

                let mut buffer = vec![0xee; layout.bytes + 3];
                assert_eq!(repr.emit(&mut buffer), Ok(&mut [0xee; 3][..]));
                assert_eq!(&buffer[..layout.bytes], header.bytes());
                assert!(repr.emit(&mut buffer[..layout.bytes - 1]).is_err());
            }
            comes_back($bytes);
        })*
    }};
}

proptest! {
    #[test]
    fn every_repr_round_trips(bytes: [u8; 64]) {
        let bytes = &bytes[..];
        every_header!(repr_comes_back bytes);
    }
}

#[test]
fn a_repr_is_built_matched_and_changed() {
    let prologue = PrologueRepr { kind: PdsType::ACK_CC, next_hdr: NextHdr::UET_HDR_RESPONSE };
    let ack =
        AckRepr { prologue, cack_psn: Psn(7), spdcid: PdcId(1), dpdcid: PdcId(2), ..AckRepr::default() };
    let repr = AckCcRepr { ack, sack: SackRepr { mpr: 8, ..SackRepr::default() }, ..AckCcRepr::default() };
    let header = repr.header().unwrap();
    assert_eq!(header, AckCc::from_bytes(*header.bytes()));
    assert_eq!((header.ack().cack_psn(), header.sack().mpr()), (Psn(7), 8));

    let AckCcRepr { ack: AckRepr { ack_psn_offset: Some(0), .. }, credit: None, .. } = repr else {
        panic!("{repr:?}")
    };
    let credit = AckCcRepr {
        cc_type: CcType::CREDIT,
        credit: Units24::new(9),
        service_time: None,
        rc: None,
        rcv_cwnd_pend: None,
        rcvd_bytes: None,
        ..repr
    };
    assert_eq!(credit.header().unwrap().to_repr(), credit);
    assert_ne!(credit, repr);
}

#[test]
fn a_field_must_be_there_exactly_if_the_header_has_it() {
    let opening = RequestRepr { syn: true, ..RequestRepr::default() };
    let error = opening.header().unwrap_err().to_string();
    assert!(error.contains("pds.dpdcid"), "{error}");
    let opening = RequestRepr { dpdcid: None, ..opening };
    let error = opening.header().unwrap_err().to_string();
    assert!(error.contains("pds.pdc_info") && error.contains("pds.flags.syn"), "{error}");
    let opening = RequestRepr { pdc_info: Some(1), psn_offset: Some(PsnOffset::MAX), ..opening };
    assert_eq!(opening.header().unwrap().to_repr(), opening);
    let wide = RequestRepr { pdc_info: Some(16), ..opening };
    assert!(wide.header().unwrap_err().to_string().contains("pds.pdc_info"));
}
