//! Rules about packet delivery headers.

use super::{Finding, Rule, Subject};
use crate::catalogue as c;
use crate::pds::{Control, PDC_INFO_RESERVED_POOL, Pds};
use crate::registry::{CtlType, NackCode, NextHdr, PdsType};
use crate::{PdcId, PsnOffset};

pub(super) const RULES: &[Rule] = &[
    next_hdr_may_follow,
    datagram_is_standard,
    nothing_follows,
    payload_fits,
    spdcid_is_set,
    dpdcid_is_set,
    psn_offset_in_window,
    clears_below_itself,
    pdc_info_reserved,
    cc_flags_reserved,
    rudi_nack_without_context,
    nack_without_context,
    control_opens,
    clear_unacknowledged,
    close_acknowledged,
    control_psn,
    control_payload,
    control_mode,
    credit_width,
];

/// What may follow a packet type; `None` for types that have no next header.
pub(super) fn may_follow(kind: PdsType) -> Option<&'static [NextHdr]> {
    use NextHdr as N;
    const NONE: NextHdr = N::UET_HDR_NONE;
    const REQUESTS: [NextHdr; 3] =
        [N::UET_HDR_REQUEST_SMALL, N::UET_HDR_REQUEST_MEDIUM, N::UET_HDR_REQUEST_STD];
    const DATA: [NextHdr; 2] = [N::UET_HDR_RESPONSE_DATA, N::UET_HDR_RESPONSE_DATA_SMALL];
    Some(match kind {
        // Read data comes back in requests of the return direction; nothing follows those that packet
        // delivery makes by itself.
        PdsType::RUD_REQ | PdsType::ROD_REQ | PdsType::RUD_CC_REQ | PdsType::ROD_CC_REQ => {
            &[NONE, REQUESTS[0], REQUESTS[1], REQUESTS[2], DATA[0], DATA[1]]
        }
        PdsType::ACK | PdsType::ACK_CC | PdsType::ACK_CCX => &[NONE, N::UET_HDR_RESPONSE, DATA[0], DATA[1]],
        PdsType::NACK | PdsType::NACK_CCX => &[NONE],
        PdsType::RUDI_REQ => &REQUESTS,
        PdsType::RUDI_RESP => &[N::UET_HDR_RESPONSE, DATA[0], DATA[1]],
        // The small forms are seen too, and read: another requirement flags them.
        PdsType::UUD_REQ => &REQUESTS,
        _ => return None,
    })
}

fn next_hdr_may_follow(subject: &Subject<'_>) -> Option<Finding> {
    let pds = subject.packet.pds?;
    let next = pds.next_hdr();
    // A reserved next header is a finding of its own.
    let odd = next.name().is_some() && !may_follow(pds.kind())?.contains(&next);
    odd.then(|| Finding::new(c::WIRE_NEXT_002, "pds.next_hdr", next.code().into()))
}

fn datagram_is_standard(subject: &Subject<'_>) -> Option<Finding> {
    let Some(Pds::Uud(header)) = subject.packet.pds else { return None };
    let next = header.prologue().next_hdr();
    matches!(next, NextHdr::UET_HDR_REQUEST_SMALL | NextHdr::UET_HDR_REQUEST_MEDIUM)
        .then(|| Finding::new(c::WIRE_NEXT_003, "pds.next_hdr", next.code().into()))
}

fn nothing_follows(subject: &Subject<'_>) -> Option<Finding> {
    let pds = subject.packet.pds?;
    let announced = match pds {
        // One public implementation puts a list of capabilities behind the header: kept as payload.
        Pds::Control(header) if header.ctl_type() == CtlType::NEGOTIATION => true,
        Pds::Control(_) => false,
        Pds::Prologue(_) => true,
        _ if pds.next_hdr() == NextHdr::UET_HDR_NONE => false,
        _ => !matches!(subject.packet.ses, Some(crate::ses::Ses::Response(_))),
    };
    let length = subject.packet.payload.len();
    (!announced && length > 0).then(|| Finding::new(c::WIRE_LEN_001, "payload", length as u128))
}

fn payload_fits(subject: &Subject<'_>) -> Option<Finding> {
    const LARGEST: usize = 8192;
    let length = subject.packet.payload.len();
    let known = subject.packet.tss.is_none() && subject.packet.ses.is_some();
    (known && length > LARGEST).then(|| Finding::new(c::WIRE_LEN_002, "payload", length as u128))
}

fn spdcid_is_set(subject: &Subject<'_>) -> Option<Finding> {
    let pds = subject.packet.pds?;
    let spdcid = match pds {
        Pds::Control(header) => header.spdcid(),
        _ => {
            pds.request().map(|header| header.spdcid()).or_else(|| pds.ack().map(|header| header.spdcid()))?
        }
    };
    (spdcid == PdcId::NONE).then(|| Finding::new(c::WIRE_PDCID_001, "pds.spdcid", 0))
}

fn dpdcid_is_set(subject: &Subject<'_>) -> Option<Finding> {
    let pds = subject.packet.pds?;
    let dpdcid = match pds {
        Pds::Control(header) => header.dpdcid()?,
        _ => match (pds.request(), pds.ack(), pds.nack()) {
            (Some(request), ..) => request.dpdcid()?,
            (_, Some(ack), _) => ack.dpdcid(),
            (.., Some(nack)) if !nack.nt() => nack.dpdcid(),
            _ => return None,
        },
    };
    (dpdcid == PdcId::NONE).then(|| Finding::new(c::WIRE_PDCID_002, "pds.dpdcid", 0))
}

/// The offset that a packet which may open a context carries.
fn opening(pds: Pds<'_>) -> Option<(u8, PsnOffset)> {
    match pds {
        Pds::Control(header) => Some((header.pdc_info()?, header.psn_offset()?)),
        _ => {
            let request = pds.request()?;
            Some((request.pdc_info()?, request.psn_offset()?))
        }
    }
}

fn psn_offset_in_window(subject: &Subject<'_>) -> Option<Finding> {
    const DEFAULT_WINDOW: u16 = 8 * 128;
    let (_, offset) = opening(subject.packet.pds?)?;
    (offset.get() >= DEFAULT_WINDOW)
        .then(|| Finding::new(c::WIRE_SYN_001, "pds.psn_offset", offset.get().into()))
}

fn clears_below_itself(subject: &Subject<'_>) -> Option<Finding> {
    let offset = subject.packet.pds?.request()?.clear_psn_offset();
    (offset >= 0).then(|| Finding::new(c::WIRE_CLEAR_001, "pds.clear_psn_offset", offset as u128))
}

fn pdc_info_reserved(subject: &Subject<'_>) -> Option<Finding> {
    let (info, _) = opening(subject.packet.pds?)?;
    (info & !PDC_INFO_RESERVED_POOL != 0).then(|| Finding::new(c::WIRE_RSVD_003, "pds.pdc_info", info.into()))
}

fn cc_flags_reserved(subject: &Subject<'_>) -> Option<Finding> {
    let flags = match subject.packet.pds? {
        Pds::AckCc(header) => header.cc_flags(),
        Pds::AckCcx(header) => header.cc_flags(),
        _ => return None,
    };
    (flags != 0).then(|| Finding::new(c::WIRE_RSVD_002, "pds.cc_flags", flags.into()))
}

fn rudi_nack_without_context(subject: &Subject<'_>) -> Option<Finding> {
    let nack = subject.packet.pds?.nack().filter(|nack| nack.nt())?;
    if nack.spdcid() != PdcId::NONE {
        Some(Finding::new(c::WIRE_NACK_002, "pds.spdcid", nack.spdcid().0.into()))
    } else if nack.dpdcid() != PdcId::NONE {
        Some(Finding::new(c::WIRE_NACK_002, "pds.dpdcid", nack.dpdcid().0.into()))
    } else {
        None
    }
}

fn nack_without_context(subject: &Subject<'_>) -> Option<Finding> {
    const WITHOUT_CONTEXT: [NackCode; 5] = [
        NackCode::NO_PDC_AVAIL,
        NackCode::NO_CCC_AVAIL,
        NackCode::NO_BITMAP,
        NackCode::INV_DPDCID,
        NackCode::PDC_HDR_MISMATCH,
    ];
    let nack = subject.packet.pds?.nack().filter(|nack| !nack.nt())?;
    (WITHOUT_CONTEXT.contains(&nack.nack_code()) && nack.spdcid() != PdcId::NONE)
        .then(|| Finding::new(c::WIRE_NACK_003, "pds.spdcid", nack.spdcid().0.into()))
}

fn control<'a>(subject: &Subject<'a>) -> Option<(Control<&'a [u8; 16]>, CtlType)> {
    match subject.packet.pds? {
        Pds::Control(header) => Some((header, header.ctl_type())),
        _ => None,
    }
}

/// The control packets that may open a context. Reserved types are not judged: nobody knows what they do.
fn may_open(kind: CtlType) -> bool {
    matches!(kind, CtlType::NOOP | CtlType::NEGOTIATION) || kind.name().is_none()
}

fn control_opens(subject: &Subject<'_>) -> Option<Finding> {
    let (header, kind) = control(subject)?;
    (header.syn() && !may_open(kind)).then(|| Finding::new(c::WIRE_SYN_002, "pds.flags.syn", 1))
}

fn clear_unacknowledged(subject: &Subject<'_>) -> Option<Finding> {
    let (header, kind) = control(subject)?;
    (kind == CtlType::CLEAR_COMMAND && header.ar()).then(|| Finding::new(c::WIRE_CTL_002, "pds.flags.ar", 1))
}

fn close_acknowledged(subject: &Subject<'_>) -> Option<Finding> {
    let (header, kind) = control(subject)?;
    (matches!(kind, CtlType::CLOSE_COMMAND | CtlType::CLOSE_REQUEST) && !header.ar())
        .then(|| Finding::new(c::WIRE_CTL_003, "pds.flags.ar", 0))
}

fn control_psn(subject: &Subject<'_>) -> Option<Finding> {
    let (header, kind) = control(subject)?;
    let without = matches!(
        kind,
        CtlType::CLEAR_COMMAND | CtlType::CLEAR_REQUEST | CtlType::CREDIT | CtlType::CREDIT_REQUEST
    );
    (without && header.psn().0 != 0).then(|| Finding::new(c::WIRE_CTL_004, "pds.psn", header.psn().0.into()))
}

fn control_payload(subject: &Subject<'_>) -> Option<Finding> {
    let (header, kind) = control(subject)?;
    let without = matches!(kind, CtlType::NOOP | CtlType::CLOSE_COMMAND | CtlType::CLOSE_REQUEST);
    (without && header.payload() != 0)
        .then(|| Finding::new(c::WIRE_CTL_005, "pds.payload", header.payload().into()))
}

fn control_mode(subject: &Subject<'_>) -> Option<Finding> {
    let (header, kind) = control(subject)?;
    (header.isrod() && !may_open(kind)).then(|| Finding::new(c::WIRE_CTL_006, "pds.flags.isrod", 1))
}

fn credit_width(subject: &Subject<'_>) -> Option<Finding> {
    let (header, kind) = control(subject)?;
    (kind == CtlType::CREDIT && header.payload() >> 24 != 0)
        .then(|| Finding::new(c::WIRE_CTL_007, "pds.payload", header.payload().into()))
}
