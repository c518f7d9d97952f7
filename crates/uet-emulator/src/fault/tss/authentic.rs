//! Faults in the check of the ICV, and in the look-up of the domain.

use super::{is_secured, open, seal};
use crate::fault::fields::{Fields, Kinds};
use crate::fault::guard::{Opened, Right, misdirect};
use crate::fault::tap::Tap;
use crate::fault::{Fault, fault};
use uet_model::Packet;
use uet_model::pds::OpenError;
use uet_wire::Uet;
use uet_wire::catalogue::*;
use uet_wire::pds::Control;
use uet_wire::registry::{CtlType, PdsType};
use uet_wire::tss::ICV;

/// Opens a packet whose ICV is wrong, if `believes` takes what it says.
fn believing(right: &mut Right<'_>, packet: Packet, believes: fn(&Packet) -> bool) -> Opened {
    match right.open(packet.clone()) {
        Err(OpenError::NotAuthentic) => match right.decrypt(&packet) {
            Some((inner, association, _)) if believes(&inner) => Ok((inner, association)),
            _ => Err(OpenError::NotAuthentic),
        },
        other => other,
    }
}

/// Opens a packet as one of the domain that this NIC knows, whatever domain it names.
fn as_known_domain(right: &mut Right<'_>, packet: Packet) -> Opened {
    match right.open(packet.clone()) {
        Err(OpenError::NoDomain) => {
            let opened = right.recipe(&packet).and_then(|recipe| right.open_as(&packet, &recipe));
            opened.ok_or(OpenError::NoDomain)
        }
        other => other,
    }
}

/// Opens a packet with the last bytes of its ICV missing.
fn with_short_icv(right: &mut Right<'_>, packet: Packet) -> Opened {
    let opened = right.open(packet.clone());
    if !matches!(opened, Err(OpenError::NotAuthentic)) {
        return opened;
    }
    let Some(recipe) = right.recipe(&packet) else { return opened };
    for missing in 1..=8 {
        let bytes = [&packet.to_wire()[..], &vec![0; missing]].concat();
        let mut clear = bytes.clone();
        let Some(icv) = recipe.decrypt(&mut clear) else { continue };
        if bytes[bytes.len() - ICV..].starts_with(&icv[..ICV - missing]) {
            let mut whole = bytes;
            let at = whole.len() - ICV;
            whole[at..].copy_from_slice(&icv);
            let (head, payload) = whole.split_at(packet.head.len());
            let head = head.iter().copied().collect();
            let longer = Packet { head, payload: payload.to_vec().into(), ..packet.clone() };
            if let Some(opened) = right.open_as(&longer, &recipe) {
                return Ok(opened);
            }
        }
    }
    opened
}

/// Opens a packet with bytes behind its ICV.
fn with_bytes_behind(right: &mut Right<'_>, packet: Packet) -> Opened {
    let opened = right.open(packet.clone());
    if !matches!(opened, Err(OpenError::NotAuthentic)) {
        return opened;
    }
    for behind in [1, 4, 16] {
        let length = packet.payload.len().saturating_sub(behind);
        let shorter = Packet { payload: packet.payload.slice(..length), ..packet.clone() };
        if let Ok(opened) = right.open(shorter) {
            return Ok(opened);
        }
    }
    opened
}

/// Decrypts what is left of a trimmed request, and opens it as a NOOP with its PSN.
fn as_receipt(right: &mut Right<'_>, packet: Packet) -> Opened {
    let receipt = |right: &Right<'_>| {
        packet.trimmed.filter(|_| is_secured(&packet))?;
        let recipe = right.recipe(&packet)?;
        let mut bytes = [&packet.to_wire()[..], &[0; ICV]].concat();
        recipe.decrypt(&mut bytes)?;
        let (header, body) = bytes.split_at_checked(recipe.header.len())?;
        let request = Uet::parse_lax(body).0.pds?.request()?;
        let noop = Control::build(CtlType::NOOP).ar(true).psn(request.psn()).spdcid(request.spdcid());
        let noop = noop.dpdcid(request.dpdcid()?).done().ok()?;
        let whole = Packet { trimmed: None, ..packet.clone() };
        right.inner(&whole, &recipe, [header, noop.bytes(), &[0; ICV]].concat())
    };
    match receipt(right) {
        Some(opened) => Ok(opened),
        None => right.open(packet),
    }
}

pub(in crate::fault) const FAULTS: &[Fault] = &[
    fault(
        "crc-behind-icv",
        "The NIC appends four more bytes behind the ICV",
        TSS_ICV_001,
        &[seal(|right, packet| {
            right.seal(packet).map(|(sealed, association)| {
                let payload = [&sealed.payload[..], &[0; 4]].concat().into();
                (Packet { payload, ..sealed }, association)
            })
        })],
    ),
    fault(
        "accepts-any-icv",
        "The NIC does not look at the ICV",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, |_| true))],
    ),
    fault(
        "compares-half-the-icv",
        "The NIC compares only the first eight bytes of the ICV",
        TSS_ICV_002,
        &[open(|right, packet| match right.open(packet.clone()) {
            Err(OpenError::NotAuthentic) => match right.decrypt(&packet) {
                Some((inner, association, icv))
                    if packet.to_wire()[packet.wire_len() - ICV..][..8] == icv[..8] =>
                {
                    Ok((inner, association))
                }
                _ => Err(OpenError::NotAuthentic),
            },
            other => other,
        })],
    ),
    fault(
        "accepts-short-icv",
        "The NIC accepts an ICV of eight bytes or more",
        TSS_ICV_002,
        &[open(with_short_icv)],
    ),
    fault(
        "accepts-bytes-behind-icv",
        "The NIC ignores bytes behind the ICV",
        TSS_ICV_002,
        &[open(with_bytes_behind)],
    ),
    fault(
        "answers-altered-packets",
        "The NIC answers packets whose ICV is wrong with a NACK",
        TSS_ICV_003,
        &[open(|right, packet| match right.open(packet.clone()) {
            Err(OpenError::NotAuthentic) => match right.decrypt(&packet) {
                Some((inner, association, _)) if inner.is_request() => Ok((misdirect(inner), association)),
                _ => Err(OpenError::NotAuthentic),
            },
            other => other,
        })],
    ),
    fault(
        "believes-altered-acks",
        "The NIC takes ACKs whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, Kinds::is_ack))],
    ),
    fault(
        "believes-altered-nacks",
        "The NIC takes NACKs whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, Kinds::is_nack))],
    ),
    fault(
        "believes-altered-control",
        "The NIC takes control packets whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, |inner| inner.kind() == PdsType::CP))],
    ),
    fault(
        "believes-altered-idempotents",
        "The NIC takes idempotent requests whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, |inner| inner.kind() == PdsType::RUDI_REQ))],
    ),
    fault(
        "believes-altered-datagrams",
        "The NIC takes datagrams whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, |inner| inner.kind() == PdsType::UUD_REQ))],
    ),
    fault(
        "believes-altered-openings",
        "The NIC takes opening requests whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| {
            believing(right, packet, |inner| inner.is_request() && inner.is("pds.flags.syn", 1))
        })],
    ),
    fault(
        "latches-early",
        "The NIC drops all packets of a domain after ten packets with a wrong ICV",
        TSS_ICV_002,
        &[Tap::Config(|config| config.secure.auth_fail_latch = Some(10))],
    ),
    fault(
        "accepts-unknown-domain",
        "The NIC takes a packet of an unknown domain for one of its own",
        TSS_SDI_001,
        &[open(as_known_domain)],
    ),
    fault(
        "answers-unknown-domain",
        "The NIC answers a packet of an unknown domain with a NACK",
        TSS_SDI_001,
        &[open(|right, packet| {
            let known = right.security.domains.iter().any(|domain| {
                Uet::parse_lax(&packet.head).0.tss.is_some_and(|tss| tss.head().sdi() == domain.sdi)
            });
            let opened = as_known_domain(right, packet)?;
            Ok(if known { opened } else { (misdirect(opened.0), opened.1) })
        })],
    ),
    fault(
        "acknowledges-trimmed-packets",
        "The NIC takes what is left of a trimmed secured request as its receipt",
        TSS_TRIM_001,
        &[open(as_receipt)],
    ),
];
