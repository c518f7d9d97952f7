//! Every header, truncated after each of its bytes but the last.

use super::parts;
use crate::case::{Bytes, Case, Family};
use crate::usual;
use uet_wire::layout::{Layout, Place};
use uet_wire::outer::{Entropy, Ethernet, Ipv4, Ipv6, Udp, Vlan};
use uet_wire::pds::{AckCc, Control, Request};
use uet_wire::registry::{CcType, CtlType, Opcode};
use uet_wire::ses::{Medium, Std};
use uet_wire::{FrameBuilder, Start};

/// Forms of headers with other truncated fields than the usual form.
const FORMS: &[(&str, &Layout, &str, u8)] = &[
    ("request-syn", Request::LAYOUT, "pds.flags.syn", 1),
    ("ack_cc-credit", AckCc::LAYOUT, "pds.cc_type", CcType::CREDIT.code()),
    ("ack_cc-opaque", AckCc::LAYOUT, "pds.cc_type", 15),
    ("control-probe", Control::LAYOUT, "pds.ctl_type", CtlType::PROBE.code()),
    ("std-middle", Std::LAYOUT, "ses.som", 0),
    ("std-tagged", Std::LAYOUT, "ses.opcode", Opcode::UET_TAGGED_SEND.code()),
    ("std-deferrable", Std::LAYOUT, "ses.opcode", Opcode::UET_DEFERRABLE_SEND.code()),
    ("std-ready", Std::LAYOUT, "ses.opcode", Opcode::UET_DEFERRABLE_RTR.code()),
    ("medium-header-data", Medium::LAYOUT, "ses.hd", 1),
];

pub(super) fn family() -> Family {
    let mut family = Family::new("cuts", "json: errors");
    for layout in usual::layouts().filter(|layout| *layout != Entropy::LAYOUT) {
        cut(&mut family, layout.name, layout, &[]);
    }
    for (name, layout, field, value) in FORMS {
        if let Some(place) = layout.field(field) {
            cut(&mut family, name, layout, &[(place, (*value).into())]);
        }
    }
    outer(&mut family);
    family
}

fn cut(family: &mut Family, name: &str, layout: &'static Layout, given: &[(Place, u128)]) {
    let header = usual::header(layout, given);
    let whole = usual::packet(layout, &header);
    let start = usual::before(layout).len();
    for present in 0..layout.bytes {
        // A packet that ends between two headers is truncated in the second; the announcing header is complete.
        let bytes = whole[..start + present].to_vec();
        let what = format!("{} of {} bytes, of which {present} are there", layout.title, layout.bytes);
        family.add(Case::uet(format!("{name}/{present:02}"), what, bytes));
    }
}

/// The layers around UET. Their lengths exceed the bytes present.
fn outer(family: &mut Family) {
    let ack = usual::header(uet_wire::pds::Ack::LAYOUT, &[]);
    let udp = FrameBuilder::opaque(&ack).udp(0xbeef);
    let v4 = parts::v4(udp.clone());
    let v6 = parts::v6(udp.clone());
    let native = parts::v4(FrameBuilder::opaque(&ack).native(0xbeef));
    let eth = parts::eth(v4.clone());
    for (name, layout, from, before, frame) in [
        ("eth", Ethernet::LAYOUT, Start::Eth, 0, &eth),
        ("vlan", Vlan::LAYOUT, Start::Eth, 14, &eth.clone().vlans(&[7])),
        ("vlan-inner", Vlan::LAYOUT, Start::Eth, 18, &eth.clone().vlans(&[7, 8])),
        ("ipv4", Ipv4::LAYOUT, Start::Ip, 0, &v4),
        ("ipv6", Ipv6::LAYOUT, Start::Ip, 0, &v6),
        ("udp", Udp::LAYOUT, Start::Udp, 0, &udp),
        ("udp-behind-ipv4", Udp::LAYOUT, Start::Ip, 20, &v4),
        ("entropy", Entropy::LAYOUT, Start::Ip, 20, &native),
    ] {
        let whole = frame.bytes();
        for present in 0..layout.bytes {
            let what = format!("{} of {} bytes, of which {present} are there", layout.title, layout.bytes);
            let bytes = whole[..before + present].to_vec();
            family.add(Case::uet(format!("{name}/{present:02}"), what, bytes).from(from));
        }
    }
}
