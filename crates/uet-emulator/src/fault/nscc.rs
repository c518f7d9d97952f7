//! Faults in the NSCC window.

use super::fields::{Fields, Kinds};
use super::seen::psn;
use super::tap::{Tap, Wire};
use super::{Fault, fault};
use std::collections::BTreeMap;
use uet_model::Packet;
use uet_wire::catalogue::*;
use uet_wire::registry::{NackCode, PdsType};

/// Bytes around UET that count: UDP, plus 40.
const AROUND: u64 = 8 + 40;

fn nominal(packet: &Packet) -> u64 {
    AROUND + packet.head.len() as u64 + packet.payload.len() as u64
}

/// Returns the requests of a context, each once.
fn requests<'a>(wire: &'a Wire<'_>, ack: &Packet) -> BTreeMap<u32, &'a Packet> {
    let peer = ack.get("pds.dpdcid").unwrap_or_default();
    wire.seen.requests(ack.dst, peer).map(|packet| (psn(packet).0, packet)).collect()
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "counts-rcvd-bytes-in-bytes",
        "rcvd_bytes counts bytes, not units of 256",
        CC_RCVD_004,
        &[Tap::EditOut(|_, packet| packet.change("pds.rcvd_bytes", |units| units << 8))],
    ),
    fault(
        "counts-since-last-ack",
        "rcvd_bytes counts only the bytes since the last ACK",
        CC_RCVD_001,
        &[Tap::EditOut(|wire, packet| {
            if let (Some(units), Some(peer)) = (packet.get("pds.rcvd_bytes"), packet.get("pds.dpdcid")) {
                let before = wire.memo.set(packet.dst, peer, units).unwrap_or_default();
                packet.set("pds.rcvd_bytes", units.wrapping_sub(before));
            }
        })],
    ),
    fault(
        "counts-payload-alone",
        "rcvd_bytes counts payload without headers",
        CC_RCVD_001,
        &[Tap::EditOut(|wire, packet| {
            if packet.get("pds.rcvd_bytes").is_some() {
                let bytes: u64 =
                    requests(wire, packet).values().map(|request| request.payload.len() as u64).sum();
                packet.set("pds.rcvd_bytes", bytes.div_ceil(256));
            }
        })],
    ),
    fault(
        "rounds-rcvd-bytes-down",
        "rcvd_bytes ignores a partial unit of 256 bytes",
        CC_RCVD_004,
        &[Tap::EditOut(|wire, packet| {
            if packet.get("pds.rcvd_bytes").is_some() {
                let bytes: u64 = requests(wire, packet).values().map(|request| nominal(request)).sum();
                packet.set("pds.rcvd_bytes", bytes / 256);
            }
        })],
    ),
    fault(
        "counts-duplicates",
        "rcvd_bytes counts duplicates again",
        CC_RCVD_002,
        &[
            Tap::In(|wire, packet| {
                if packet.is_request() && packet.trimmed.is_none() && wire.seen.times(&packet) > 1 {
                    let peer = packet.get("pds.spdcid").unwrap_or_default();
                    let before = wire.memo.get(packet.src, peer).unwrap_or_default();
                    wire.memo.set(packet.src, peer, before + nominal(&packet));
                }
                wire.pass(packet);
            }),
            Tap::EditOut(|wire, packet| {
                let again = packet.get("pds.dpdcid").and_then(|peer| wire.memo.get(packet.dst, peer));
                packet.change("pds.rcvd_bytes", |units| units + again.unwrap_or_default().div_ceil(256));
            }),
        ],
    ),
    fault(
        "counts-trimmed",
        "rcvd_bytes counts a trimmed packet as a full packet",
        CC_RCVD_002,
        &[
            Tap::In(|wire, packet| {
                if packet.is_request() && packet.trimmed.is_some() {
                    let peer = packet.get("pds.spdcid").unwrap_or_default();
                    wire.memo.count(packet.src, peer);
                }
                wire.pass(packet);
            }),
            Tap::EditOut(|wire, packet| {
                let trimmed = packet.get("pds.dpdcid").and_then(|peer| wire.memo.get(packet.dst, peer));
                packet.change("pds.rcvd_bytes", |units| units + 16 * trimmed.unwrap_or_default());
            }),
        ],
    ),
    fault(
        "stops-rcvd-bytes",
        "rcvd_bytes stays at its highest value instead of wrapping to 0",
        CC_RCVD_004,
        &[Tap::EditOut(|wire, packet| {
            if let (Some(units), Some(peer)) = (packet.get("pds.rcvd_bytes"), packet.get("pds.dpdcid")) {
                let before = wire.memo.set(packet.dst, peer, units).unwrap_or_default();
                if before > units && before - units > 0x80_0000 {
                    wire.memo.set(packet.dst, peer, 0xff_ffff);
                    packet.set("pds.rcvd_bytes", 0xff_ffff);
                }
            }
        })],
    ),
    fault(
        "wraps-rcvd-bytes-early",
        "rcvd_bytes wraps at 2^10 units, not at 2^24",
        CC_RCVD_004,
        &[Tap::EditOut(|_, packet| packet.change("pds.rcvd_bytes", |units| units & 0x3ff))],
    ),
    fault(
        "counts-service-in-nanoseconds",
        "service_time counts nanoseconds, not units of 128 ns",
        CC_SERVICE_001,
        &[Tap::EditOut(|_, packet| packet.change("pds.service_time", |units| (units * 128).min(0xffff)))],
    ),
    fault(
        "counts-service-in-microseconds",
        "service_time counts units of 1,024 ns, not of 128 ns",
        CC_SERVICE_001,
        &[Tap::EditOut(|_, packet| packet.change("pds.service_time", |units| units / 8))],
    ),
    fault(
        "leaves-out-congestion-state",
        "Every ACK is of the short form without congestion state",
        PDS_ACK_015,
        &[Tap::EditOut(|_, packet| {
            if packet.kind() == PdsType::ACK_CC {
                packet.set("pds.type", PdsType::ACK.code().into());
                packet.head =
                    packet.head.iter().take(12).chain(packet.head.iter().skip(32)).copied().collect();
            }
        })],
    ),
    fault(
        "ignores-marks",
        "An ACK of a marked packet does not shrink the window",
        CC_QUAD_004,
        &[Tap::EditIn(|_, packet| {
            if packet.is_ack() {
                packet.set("pds.flags.m", 0);
            }
        })],
    ),
    fault(
        "ignores-window",
        "A source sends a hundred times as much as its window permits",
        CC_WINDOW_001,
        &[Tap::Config(|config| {
            config.network.sender_rate = config.network.sender_rate.saturating_mul(100);
            config.network.receiver_rate = config.network.receiver_rate.saturating_mul(100);
        })],
    ),
    fault(
        "takes-rcvd-bytes-for-bytes",
        "A source reads rcvd_bytes as bytes, so the window does not open again",
        CC_RCVD_004,
        &[Tap::EditIn(|_, packet| packet.change("pds.rcvd_bytes", |units| units >> 8))],
    ),
    fault(
        "takes-wrapped-bytes-for-stale",
        "A source ignores an rcvd_bytes that has wrapped to a smaller number",
        CC_RCVD_004,
        &[Tap::EditIn(|wire, packet| {
            if let (Some(units), Some(own)) = (packet.get("pds.rcvd_bytes"), packet.get("pds.dpdcid")) {
                let before = wire.memo.get(packet.src, own).unwrap_or_default();
                let highest = units.max(before);
                wire.memo.set(packet.src, own, highest);
                if highest - units > 0x80_0000 {
                    packet.set("pds.rcvd_bytes", highest);
                }
            }
        })],
    ),
    fault(
        "counts-stale-bytes",
        "A source takes an outdated rcvd_bytes for a wrapped one",
        CC_RCVD_003,
        &[Tap::EditIn(|wire, packet| {
            if let (Some(units), Some(own)) = (packet.get("pds.rcvd_bytes"), packet.get("pds.dpdcid")) {
                let before = wire.memo.get(packet.src, own).unwrap_or_default();
                let believed = if units < before { before + 0x7f_ffff } else { units };
                wire.memo.set(packet.src, own, units.max(before));
                packet.set("pds.rcvd_bytes", believed);
            }
        })],
    ),
    fault(
        "ignores-penalty",
        "A source ignores rcv_cwnd_pend",
        CC_PENALTY_001,
        &[Tap::EditIn(|_, packet| packet.set("pds.rcv_cwnd_pend", 0))],
    ),
    fault(
        "never-restores-window",
        "A source ignores rc: after a penalty the window stays small",
        CC_PENALTY_002,
        &[Tap::EditIn(|_, packet| packet.set("pds.rc", 0))],
    ),
    fault(
        "takes-trim-for-shortage",
        "A NACK with TRIMMED does not shrink the window, but causes an immediate retransmission",
        CC_TRIM_001,
        &[
            Tap::Config(|config| config.pds.nack_retx_time = core::time::Duration::ZERO),
            Tap::EditIn(|_, packet| {
                if packet.is("pds.nack_code", NackCode::TRIMMED.code().into()) {
                    packet.set("pds.nack_code", NackCode::NO_PKT_BUFFER.code().into());
                }
            }),
        ],
    ),
    fault(
        "never-asks-for-acks",
        "No request has ar = 1, even if the window has no room for another one",
        CC_ACKREQ_001,
        &[Tap::EditOut(|_, packet| {
            if packet.is_request() {
                packet.set("pds.flags.ar", 0);
            }
        })],
    ),
    fault(
        "takes-last-hop-trim-for-shortage",
        "Without receiver credit, a NACK with TRIMMED_LASTHOP does not shrink the window",
        CC_TRIM_004,
        &[
            Tap::Config(|config| config.pds.nack_retx_time = core::time::Duration::ZERO),
            Tap::EditIn(|_, packet| {
                if packet.is("pds.nack_code", NackCode::TRIMMED_LASTHOP.code().into()) {
                    packet.set("pds.nack_code", NackCode::NO_PKT_BUFFER.code().into());
                }
            }),
        ],
    ),
];
