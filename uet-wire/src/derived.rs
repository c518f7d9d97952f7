//! Values computed from the fields of a packet.

use crate::Uet;
use crate::pds::{Pds, Sack, Sacked};
use crate::ses::Ses;
use crate::{Psn, Units24};

/// A derived value.
#[derive(Clone, Debug)]
pub enum Derived {
    /// A number.
    Number(u64),
    /// Ranges of PSNs: first and last.
    Ranges(Sacked),
}

/// All derived values with their meanings.
pub const DERIVED: &[(&str, &str)] = &[
    ("pds.ack_psn", "the PSN that an ACK answers: cack_psn + ack_psn_offset"),
    ("pds.sack_psn", "the PSN of bit 0 of the bitmap: cack_psn + sack_psn_offset"),
    ("pds.sacked", "the PSNs that the bitmap says have been received, as [first, last]"),
    ("pds.clear_psn", "the highest PSN cleared: psn + clear_psn_offset, or the payload of a clear"),
    ("pds.start_psn", "the first PSN of the context: psn - psn_offset"),
    ("pds.mp_range", "how many PSNs above the cumulative one may be sent: 128 * mpr; absent without limit"),
    ("pds.service_time_ns", "the service time in nanoseconds: 128 * service_time; absent when not valid"),
    ("pds.rcvd_bytes_bytes", "the bytes received: 256 * rcvd_bytes"),
    ("pds.credit_bytes", "the credit granted in bytes: 256 * credit"),
    ("ses.end_offset", "where in the message the payload ends: message_offset + payload_length"),
];

/// Returns the derived values of a packet, in the order of [`DERIVED`].
pub fn derived(packet: &Uet<'_>) -> impl Iterator<Item = (&'static str, Derived)> + Clone + use<> {
    let psn = |psn: Psn| Derived::Number(psn.0.into());
    let bytes = |units: Units24| Derived::Number(units.bytes());
    let (ack, request) = (packet.pds.and_then(|pds| pds.ack()), packet.pds.and_then(|pds| pds.request()));
    let (cc, control) = match packet.pds {
        Some(Pds::AckCc(header)) => (Some(header), None),
        Some(Pds::Control(header)) => (None, Some(header)),
        _ => (None, None),
    };
    let sack: Option<(Psn, Sack)> = match packet.pds {
        Some(Pds::AckCc(header)) => Some((header.ack().cack_psn(), header.sack().copied())),
        Some(Pds::AckCcx(header)) => Some((header.ack().cack_psn(), header.sack().copied())),
        _ => None,
    };
    let start = request.and_then(|header| header.start_psn()).or_else(|| control?.start_psn());
    let clear = request.map(|header| header.clear_psn()).or_else(|| control?.clear_psn());
    let credit = cc.and_then(|header| header.credit()).or_else(|| control?.credit());
    let end = match packet.ses {
        Some(Ses::Std(header)) => header.message_offset().zip(header.payload_length()),
        Some(Ses::ResponseData(header)) => Some((header.message_offset(), header.payload_length())),
        _ => None,
    };
    [
        ("pds.ack_psn", ack.and_then(|header| header.ack_psn()).map(psn)),
        ("pds.sack_psn", sack.map(|(cack, sack)| psn(sack.sack_psn(cack)))),
        ("pds.sacked", sack.map(|(cack, sack)| Derived::Ranges(sack.sacked(cack)))),
        ("pds.clear_psn", clear.map(psn)),
        ("pds.start_psn", start.map(psn)),
        (
            "pds.mp_range",
            sack.and_then(|(_, sack)| sack.mp_range()).map(|range| Derived::Number(range.into())),
        ),
        (
            "pds.service_time_ns",
            cc.and_then(|header| header.service_time_ns()).map(|ns| Derived::Number(ns.into())),
        ),
        ("pds.rcvd_bytes_bytes", cc.and_then(|header| header.rcvd_bytes()).map(bytes)),
        ("pds.credit_bytes", credit.map(bytes)),
        (
            "ses.end_offset",
            end.map(|(offset, length)| Derived::Number(u64::from(offset) + u64::from(length))),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
}
