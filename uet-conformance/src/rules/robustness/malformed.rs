//! Packets that no correct peer sends. A device may drop or refuse them, but it stays responsive, and memory
//! and contexts do not change (section 3.5).

use super::steps::*;
use crate::prelude::*;
use uet_wire::pds::{AckCcx, NackCcx, PdsBuf};
use uet_wire::registry::{CcType, CcxType};
use uet_wire::ses::Std;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[WRITE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("robustness/truncated-pds-header", "A packet with a truncated PDS header is silently dropped")
        .checks(&[PDS_OPEN_009, ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            for packet in packets_of_each_type(&v)? {
                let bytes = packet.to_bytes();
                for cut in 0..pds_length(&packet) {
                    t.send_wire(&v.pdc.raw(&bytes[..cut]))?;
                }
            }
            v.expect_no_reply(t)?;
            v.expect_unharmed(t)
        }),
    rule("robustness/truncated-ses-header", "A packet with a truncated SES header changes no memory")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            let mut n = 1;
            for packet in [v.write(1)?.build()?, crate::rudi(1, &v.write(1)?)?, crate::uud(&v.write(1)?)?] {
                let pds = pds_length(&packet);
                for cut in pds..pds + Std::LAYOUT.bytes {
                    // Each has another PSN: whether the device counts it as received is open.
                    let bytes = match packet.pds {
                        Some(PdsBuf::Request(_)) => v.write(n)?.build()?.to_bytes(),
                        _ => packet.to_bytes(),
                    };
                    n += 1;
                    t.send_wire(&v.pdc.raw(&bytes[..cut]))?;
                }
            }
            v.expect_untouched(t)
        }),
    rule("robustness/unknown-type", "A packet with an unassigned PDS type is dropped without a reply")
        .checks(&[PDS_OPEN_009, ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            let bytes = v.write(1)?.build()?.to_bytes();
            for kind in PdsType::unassigned(t.spec()) {
                // The type is the five highest bits.
                let changed = [&[kind.code() << 3 | bytes[0] & 0b111], &bytes[1..]].concat();
                t.send_wire(&v.pdc.raw(&changed))?;
                t.send_wire(&v.pdc.raw(&changed[..12]))?;
            }
            v.expect_no_reply(t)?;
            v.expect_unharmed(t)
        }),
    rule("robustness/secured-without-key", "A secured packet changes nothing if the device has no key")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            let inner = v.write(1)?.build()?.to_bytes();
            // With and without a source identifier, whole and truncated. The content is not encrypted.
            for (flags, length) in [(0, 12), (0b100, 16)] {
                let head = [&[PdsType::TSS.code() << 3 | flags, 0, 0, 1][..], &vec![0; length - 4]].concat();
                let packet = [&head[..], &inner, &[0; 16]].concat();
                for cut in [packet.len(), length + 12, length, length - 1, 3] {
                    t.send_wire(&v.pdc.raw(&packet[..cut]))?;
                }
            }
            v.expect_unharmed(t)
        }),
    rule("robustness/unknown-next-header", "A request with an invalid next header changes no memory")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            // Unassigned next headers, and those of responses.
            let responses = [
                NextHdr::UET_HDR_RESPONSE,
                NextHdr::UET_HDR_RESPONSE_DATA,
                NextHdr::UET_HDR_RESPONSE_DATA_SMALL,
            ];
            let unassigned = NextHdr::unassigned(t.spec());
            for (n, next) in (1..).zip(responses.into_iter().chain(unassigned)) {
                let mut packet = v.write(n)?.build()?;
                let edited = packet.pds.take().and_then(|pds| match pds {
                    PdsBuf::Request(header) => {
                        header.edit().prologue(|prologue| prologue.next_hdr(next)).done().ok()
                    }
                    _ => None,
                });
                packet.pds = edited.map(Into::into);
                t.send(&v.pdc, &packet)?;
            }
            v.expect_untouched(t)
        }),
    rule("robustness/unknown-control", "An unassigned control packet gets no ACK and changes nothing")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            for kind in CtlType::unassigned(t.spec()) {
                t.send(&v.pdc, &v.pdc.control(kind, v.pdc.psn(1), 0)?)?;
            }
            let from = v.pdc.from;
            let replies = t.gather(t.soon())?;
            for seen in replies.iter().filter(|seen| seen.wire.dst == from) {
                // The other fields of a reply are open.
                t.holds(ROB_STATE_001, "the packet is not acknowledged", seen.ack().is_none(), seen.uet());
            }
            v.expect_unharmed(t)
        }),
    rule("robustness/misdirected-control", "Control packets in the wrong direction do not harm the device")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            t.send(&v.pdc, &v.pdc.control(CtlType::CLEAR_REQUEST, Psn(0), v.pdc.psn(0).0)?)?;
            t.send(&v.pdc, &v.pdc.control(CtlType::CREDIT, Psn(0), 0xff_ffff)?)?;
            t.send(&v.pdc, &v.pdc.control(CtlType::CREDIT_REQUEST, Psn(0), 0xffff_ffff)?)?;
            v.expect_unharmed(t)?;
            // The sources leave open if the device takes this PSN.
            t.send(&v.pdc, &v.pdc.control(CtlType::CLOSE_REQUEST, v.pdc.psn(2), 0)?)?;
            t.pause(t.soon())?;
            t.expect_life(ROB_LIFE_001)
        }),
    rule("robustness/proprietary-state", "ACKs and NACKs with unknown congestion state change nothing")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            let (local, remote) = (v.pdc.local, v.pdc.remote.unwrap_or_default());
            for kind in 0..16 {
                let (cc, ccx) =
                    (CcType::new(kind).unwrap_or_default(), CcxType::new(kind).unwrap_or_default());
                let ack = v.pdc.ack(v.pdc.start).sack(v.pdc.start, 1).build()?;
                if let Some(PdsBuf::AckCc(header)) = ack.pds {
                    t.send(&v.pdc, &UetBuf::new(header.edit().cc_type(cc).done()?))?;
                }
                let long = AckCcx::build().ack(|ack| ack.cack_psn(v.pdc.start).spdcid(local).dpdcid(remote));
                t.send(&v.pdc, &UetBuf::new(long.ccx_type(ccx).ack_ccx_state(u128::MAX).done()?))?;
                let nack = NackCcx::build(NackCode::NO_RESOURCE);
                let nack = nack.nack(|nack| nack.nack_psn(v.pdc.start).spdcid(local).dpdcid(remote));
                t.send(&v.pdc, &UetBuf::new(nack.nccx_type(ccx).nack_ccx_state(u128::MAX >> 4).done()?))?;
            }
            v.expect_unharmed(t)
        }),
    rule("robustness/tiny-packets", "Packets of up to three bytes are dropped without a reply")
        .checks(&[PDS_OPEN_009, ROB_LIFE_001, ROB_STATE_001])
        .run(|t| {
            let v = victim(t)?;
            for length in 0..4 {
                for byte in [0, 0x10, 0x38, 0x50, 0x58, 0xff] {
                    t.send_wire(&v.pdc.raw(&vec![byte; length]))?;
                }
            }
            v.expect_no_reply(t)?;
            v.expect_unharmed(t)
        }),
    rule("robustness/oversized", "Packets longer than the protocol allows change no memory")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .over(&[&MODE])
        .run(|t| {
            let v = victim(t)?;
            for (n, length) in (1..).zip([8193, 9001, 16_384, 60_000]) {
                // Longer than any packet, and than the region.
                let packet = v.pdc.request(n).write(&v.region, 0, &vec![0; length])?.build()?;
                let control = UetBuf { payload: vec![0; length], ..v.pdc.control(CtlType::NOOP, Psn(0), 0)? };
                match t.send(&v.pdc, &packet).and_then(|()| t.send(&v.pdc, &control)) {
                    // The link cannot carry such a packet.
                    Err(Stop::Gone(why)) => t.note(why),
                    other => other?,
                }
            }
            v.expect_untouched(t)
        }),
    rule("robustness/impossible-lengths", "A request whose length or offset overflows changes no memory")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .needs(&[])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let v = victim(t)?;
            let length = v.region.length;
            let write = || v.region.request(Opcode::UET_WRITE);
            let whole = |offset: u64, length: u32| {
                write()
                    .head(|head| head.som(true).eom(true))
                    .buffer_offset(offset)
                    .request_length(length)
                    .done()
            };
            let part = |offset: u32, payload: u16, length: u32| {
                let part = write().head(|head| head.eom(true)).payload_length(payload).message_offset(offset);
                part.request_length(length).done()
            };
            let headers = [
                // Beyond the region, across its end, and across 2^64.
                whole(length, 64)?,
                whole(length - 63, 64)?,
                whole(u64::MAX, 64)?,
                whole(u64::MAX - 63, 64)?,
                whole(1 << 63, 64)?,
                // A message offset beyond the region.
                part(u32::MAX, 64, u32::MAX)?,
                part(u32::MAX - 63, 64, u32::MAX)?,
                part(length as u32, 64, length as u32 + 64)?,
                part(1 << 31, 64, (1 << 31) + 64)?,
            ];
            for (n, ses) in (1..).zip(headers) {
                t.request(&v.pdc, v.pdc.request(n).ses(ses, &[0; 64]))?;
            }
            v.expect_untouched(t)
        }),
    rule("robustness/trailing-bytes", "Trailing bytes after a packet without payload change nothing")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            let packets = [
                v.pdc.control(CtlType::ACK_REQUEST, v.pdc.psn(0), 0)?,
                v.pdc.probe(9, v.pdc.psn(0))?,
                v.pdc.control(CtlType::CLEAR_COMMAND, Psn(0), v.pdc.psn(0).0)?,
                v.pdc.nack(NackCode::NO_RESOURCE, v.pdc.start)?,
                v.pdc.ack(v.pdc.start).build()?,
            ];
            for packet in packets {
                for length in [1, 12, 44, 1500] {
                    t.send(&v.pdc, &UetBuf { payload: vec![0xff; length], ..packet.clone() })?;
                }
            }
            v.expect_unharmed(t)
        }),
    rule("robustness/random-packets", "Two thousand random packets change nothing")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .run(|t| {
            let v = victim(t)?;
            for _ in 0..2000 {
                let length = t.rng().usize(..200);
                let mut bytes: Vec<u8> = core::iter::repeat_with(|| t.rng().u8(..)).take(length).collect();
                // Half of them have an assigned type, so that the device parses more than the first byte.
                if let Some(first) = bytes.first_mut().filter(|_| t.rng().bool()) {
                    *first = t.rng().u8(PdsType::RUD_REQ.code()..=PdsType::ROD_CC_REQ.code()) << 3
                        | *first & 0b111;
                }
                t.send_wire(&v.pdc.raw(&bytes))?;
            }
            v.expect_unharmed(t)
        }),
    rule("robustness/bit-errors", "Two thousand packets with bit errors do not stop the device")
        .checks(&[ROB_LIFE_001])
        .needs(&[])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let v = victim(t)?;
            let packets = packets_of_each_type(&v)?;
            for _ in 0..2000 {
                let mut bytes = packets[t.rng().usize(..packets.len())].to_bytes();
                for _ in 0..t.rng().usize(1..4) {
                    let bit = t.rng().usize(..bytes.len() * 8);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                t.send_wire(&v.pdc.raw(&bytes))?;
            }
            t.pause(t.soon())?;
            t.forget();
            t.expect_life(ROB_LIFE_001)
        }),
    rule("robustness/out-of-window", "A thousand requests outside the window do not change the context")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .over(&[&MODE])
        .run(|t| {
            let v = victim(t)?;
            let beyond = t.beyond(&v.pdc)?;
            for _ in 0..1000 {
                let n = t.rng().u32(beyond..(1 << 31));
                let psn = if t.rng().bool() { v.pdc.psn(n) } else { v.pdc.psn(0) - n };
                let shifted = Pdc { start: psn, ..v.pdc.clone() };
                t.request(&v.pdc, shifted.request(0).write(&v.region, 64, &[0; 64])?)?;
            }
            v.expect_unharmed(t)
        }),
    rule("robustness/wrong-pdcids", "Requests with 2000 wrong PDCIDs get no ACK and change nothing")
        .checks(&[ROB_STATE_001, PDS_OPEN_002, ROB_LIFE_001])
        .over(&[&MODE])
        .run(|t| {
            let v = victim(t)?;
            let ours = v.pdc.remote.unwrap_or_default();
            let mut senders = Vec::new();
            for k in 1..=2000u16 {
                // PDCIDs near the one in use, and distant ones.
                let id = PdcId(ours.0.wrapping_add(k.wrapping_mul(31)).max(1));
                let pdc = Pdc { remote: Some(id), ..t.initiate() };
                t.request(&pdc, pdc.request(0).write(&v.region, 64, &[0; 64])?)?;
                senders.push(pdc.local);
            }
            t.expect_none(PDS_OPEN_002, "no ACK without a context", t.soon(), |seen| {
                seen.ack().filter(|ack| senders.contains(&ack.dpdcid()))
            })?;
            t.forget();
            v.expect_unharmed(t)
        }),
];
