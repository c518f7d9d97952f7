//! Rules about semantic headers.

use super::{Finding, Rule, Subject};
use crate::catalogue as c;
use crate::pds::Pds;
use crate::registry::{Opcode, ResponseOpcode};
use crate::ses::{Atomic, Ext, RequestHead, Ses};

pub(super) const RULES: &[Rule] = &[
    version_is_zero,
    short_forms_are_whole,
    datagram_has_no_id,
    datagram_is_whole,
    payload_length_is_true,
    one_packet_carries_all,
    stays_within_request,
    read_carries_nothing,
    response_opcode_fits,
    data_stays_within_read,
    key_reserved,
    eager_within_request,
    atomic_is_whole,
    atomic_is_not_idempotent,
    semantic_control_reserved,
];

fn request<'a>(subject: &Subject<'a>) -> Option<(Ses<'a>, RequestHead)> {
    let ses = subject.packet.ses?;
    Some((ses, ses.request_head()?))
}

/// The first of som and eom that is not set.
fn not_whole(head: RequestHead) -> Option<&'static str> {
    match (head.som(), head.eom()) {
        (true, true) => None,
        (false, _) => Some("ses.som"),
        (true, false) => Some("ses.eom"),
    }
}

fn version_is_zero(subject: &Subject<'_>) -> Option<Finding> {
    let version = match subject.packet.ses? {
        Ses::Response(header) => header.head().version(),
        Ses::ResponseData(header) => header.head().version(),
        Ses::ResponseDataSmall(header) => header.head().version(),
        request => request.request_head()?.version(),
    };
    (version != 0).then(|| Finding::new(c::WIRE_SES_001, "ses.version", version.into()))
}

fn short_forms_are_whole(subject: &Subject<'_>) -> Option<Finding> {
    match request(subject)? {
        (Ses::Small(_) | Ses::Medium(_), head) => Some(Finding::new(c::WIRE_SES_003, not_whole(head)?, 0)),
        _ => None,
    }
}

fn datagram_has_no_id(subject: &Subject<'_>) -> Option<Finding> {
    let Some(Ses::Std(header)) = subject.packet.ses else { return None };
    (header.head().opcode() == Opcode::UET_DATAGRAM_SEND && header.message_id() != 0)
        .then(|| Finding::new(c::WIRE_SES_004, "ses.message_id", header.message_id().into()))
}

fn datagram_is_whole(subject: &Subject<'_>) -> Option<Finding> {
    let (_, head) = request(subject)?;
    let field = not_whole(head).filter(|_| head.opcode() == Opcode::UET_DATAGRAM_SEND)?;
    Some(Finding::new(c::WIRE_SES_005, field, 0))
}

fn payload_length_is_true(subject: &Subject<'_>) -> Option<Finding> {
    let ses = subject.packet.ses?;
    let stated = ses.payload_length()?;
    // A read request asks for these bytes, and carries none; a message given up says nothing of its payload.
    let other = matches!(ses.opcode(), Some(Opcode::UET_READ | Opcode::UET_MSG_ERROR));
    (subject.whole && !other && usize::from(stated) != subject.packet.payload.len())
        .then(|| Finding::new(c::WIRE_SES_006, "ses.payload_length", stated.into()))
}

/// The length of the message of a request whose payload is the message and nothing else.
fn plain_length(ses: Ses<'_>) -> Option<u32> {
    // Deferrable sends are left out: whether a deferred one is sent again whole or in part is open.
    const PLAIN: [Opcode; 4] =
        [Opcode::UET_WRITE, Opcode::UET_SEND, Opcode::UET_DATAGRAM_SEND, Opcode::UET_TAGGED_SEND];
    if !PLAIN.contains(&ses.opcode()?) {
        return None;
    }
    match ses {
        Ses::Std(header) => Some(header.request_length()),
        Ses::Medium(header) => Some(header.request_length().into()),
        Ses::Small(header) => Some(header.request_length().into()),
        _ => None,
    }
}

fn one_packet_carries_all(subject: &Subject<'_>) -> Option<Finding> {
    let (ses, head) = request(subject)?;
    let length = plain_length(ses)?;
    let whole = subject.whole && !head.ie() && not_whole(head).is_none();
    (whole && length as usize != subject.packet.payload.len())
        .then(|| Finding::new(c::WIRE_SES_007, "ses.request_length", length.into()))
}

fn stays_within_request(subject: &Subject<'_>) -> Option<Finding> {
    let (ses, head) = request(subject)?;
    let Ses::Std(header) = ses else { return None };
    let total = u64::from(header.request_length());
    let plain = plain_length(ses).is_some();
    let (field, value, end) = match (header.message_offset(), header.payload_length()) {
        (Some(offset), Some(length)) => ("ses.message_offset", offset, u64::from(offset) + u64::from(length)),
        // The first of several packets: what it carries must leave something over.
        _ if subject.whole && plain && !head.eom() => {
            ("ses.request_length", header.request_length(), subject.packet.payload.len() as u64)
        }
        _ => return None,
    };
    let right = match head.opcode() {
        Opcode::UET_READ if head.eom() => end == total,
        Opcode::UET_READ => end < total,
        _ if plain && head.eom() => end == total,
        _ if plain => end < total,
        // The last of these packets need not be the end of the message.
        opcode if opcode.is_rendezvous() => end <= total,
        _ => true,
    };
    (!right && !head.ie()).then(|| Finding::new(c::WIRE_SES_008, field, value.into()))
}

fn read_carries_nothing(subject: &Subject<'_>) -> Option<Finding> {
    let length = subject.packet.payload.len();
    (subject.packet.ses?.opcode()? == Opcode::UET_READ && length > 0)
        .then(|| Finding::new(c::WIRE_SES_009, "payload", length as u128))
}

fn response_opcode_fits(subject: &Subject<'_>) -> Option<Finding> {
    let (opcode, data) = match subject.packet.ses? {
        Ses::Response(header) => (header.head().opcode(), false),
        Ses::ResponseData(header) => (header.head().opcode(), true),
        Ses::ResponseDataSmall(header) => (header.head().opcode(), true),
        _ => return None,
    };
    // A vendor's opcode may stand in either.
    let known = opcode.name().is_some();
    (known && data != (opcode == ResponseOpcode::UET_RESPONSE_W_DATA))
        .then(|| Finding::new(c::WIRE_SES_010, "ses.opcode", opcode.code().into()))
}

fn data_stays_within_read(subject: &Subject<'_>) -> Option<Finding> {
    let Some(Ses::ResponseData(header)) = subject.packet.ses else { return None };
    let end = u64::from(header.message_offset()) + u64::from(header.payload_length());
    (end > header.modified_length().into())
        .then(|| Finding::new(c::WIRE_SES_012, "ses.message_offset", header.message_offset().into()))
}

fn key_reserved(subject: &Subject<'_>) -> Option<Finding> {
    const ALWAYS: u64 = 0x3f << 56;
    const OPTIMISED: u64 = 1 << 62;
    const WHEN_OPTIMISED: u64 = (1 << 48) - (1 << 12);
    let key = match subject.packet.ses? {
        Ses::Std(header) => header.memory_key()?,
        Ses::Medium(header) => header.memory_key()?,
        _ => return None,
    };
    let reserved = if key & OPTIMISED != 0 { ALWAYS | WHEN_OPTIMISED } else { ALWAYS };
    (key & reserved != 0).then(|| Finding::new(c::WIRE_SES_013, "ses.memory_key", key.into()))
}

fn eager_within_request(subject: &Subject<'_>) -> Option<Finding> {
    let Some(Ext::Rendezvous(extension)) = subject.packet.ext else { return None };
    let total = match subject.packet.ses? {
        Ses::Std(header) => header.request_length(),
        Ses::Medium(header) => header.request_length().into(),
        Ses::Small(header) => header.request_length().into(),
        _ => return None,
    };
    (extension.eager_length() > total)
        .then(|| Finding::new(c::WIRE_SES_014, "ses.eager_length", extension.eager_length().into()))
}

fn atomic_is_whole(subject: &Subject<'_>) -> Option<Finding> {
    let (_, head) = request(subject)?;
    let field = not_whole(head).filter(|_| head.opcode().is_atomic())?;
    Some(Finding::new(c::WIRE_AMO_003, field, 0))
}

fn atomic_is_not_idempotent(subject: &Subject<'_>) -> Option<Finding> {
    let opcode = subject.packet.ses?.opcode()?;
    (matches!(subject.packet.pds, Some(Pds::Rudi(_))) && opcode.is_atomic())
        .then(|| Finding::new(c::WIRE_AMO_004, "ses.opcode", opcode.code().into()))
}

fn semantic_control_reserved(subject: &Subject<'_>) -> Option<Finding> {
    let control = match subject.packet.ext? {
        Ext::Atomic(extension) => extension.semantic_control(),
        Ext::CompareSwap(extension) => extension.atomic().semantic_control(),
        Ext::Rendezvous(_) => return None,
    };
    (control & !(Atomic::CACHEABLE | Atomic::CPU_COHERENT) != 0)
        .then(|| Finding::new(c::WIRE_RSVD_004, "ses.semantic_control", control.into()))
}
