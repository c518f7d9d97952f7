//! The source of UUD datagrams, which get no ACK (section 3.5.6).

use crate::prelude::*;
use crate::rules::steps::{post_datagram, uud_header};
use uet_wire::pds::Nack;
use uet_wire::ses::Ses;

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[UUD, DATAGRAM])
}

pub(super) const RULES: &[Rule] = &[
    rule("source-uud/one-packet", "A datagram is one UUD packet with a standard header and all its bytes")
        .checks(&[WIRE_NEXT_003, WIRE_SES_004, WIRE_SES_005, WIRE_RSVD_001, WIRE_SES_007])
        .run(|t| {
            let peer = t.peer(0)?;
            for length in [700, 0, 1, t.mtu() - 1, t.mtu()] {
                t.forget();
                t.post(post_datagram(peer, length))?;
                let within = t.later();
                let (seen, _) = t.expect(WIRE_SES_005, "a datagram", within, uud_header)?;
                t.check_packet(&seen, &[WIRE_NEXT_003, WIRE_SES_004, WIRE_SES_005, WIRE_RSVD_001]);
                let (request_length, id) = match seen.uet().ses {
                    Some(Ses::Std(ses)) => (Some(ses.request_length() as usize), Some(ses.message_id())),
                    _ => (None, None),
                };
                if t.datagram_opcode() == Opcode::UET_DATAGRAM_SEND {
                    t.check(WIRE_SES_004, "message_id", Some(0), id);
                }
                t.check(WIRE_SES_007, "request_length", Some(length), request_length);
                t.check(WIRE_SES_007, "bytes", length, seen.payload().len());
            }
            Ok(())
        }),
    rule("source-uud/no-ack", "A datagram completes without an ACK and is not retransmitted")
        .checks(&[PDS_UUD_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let sent = t.post(post_datagram(peer, 100))?;
            let within = t.later();
            t.expect(PDS_UUD_001, "a datagram", within, uud_header)?;
            t.ends(PDS_UUD_001, sent, Status::Ok)?;
            expect_no_retransmission(t, peer)
        }),
    rule("source-uud/nack", "A NACK does not cause the retransmission of a datagram")
        .checks(&[PDS_UUD_001, PDS_NACK_010])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post_datagram(peer, 100))?;
            let within = t.later();
            let (seen, _) = t.need("a datagram", within, uud_header)?;
            let pdc = crate::Pdc { from: seen.wire.dst, to: seen.wire.src, ..t.initiate() };
            for code in [NackCode::TRIMMED, NackCode::NO_RESOURCE] {
                t.send(&pdc, &UetBuf::new(Nack::rudi(code).done()?))?;
                t.send(&pdc, &UetBuf::new(Nack::build(code).done()?))?;
            }
            t.expect_none(PDS_NACK_010, "no NACK for a NACK", t.rto(), RxPacket::nack)?;
            expect_no_retransmission(t, peer)
        }),
    rule("source-uud/no-psn", "A datagram uses no PSN of the context to the same peer")
        .checks(&[PDS_PSN_001, PDS_UUD_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            t.post(post_datagram(peer, 100))?;
            let within = t.later();
            t.expect(PDS_UUD_001, "a datagram", within, uud_header)?;
            t.post(post(PostKind::Write, peer, 64))?;
            target.expect_new(t, PDS_PSN_001, 1)?;
            Ok(())
        }),
];

/// Expects no retransmission of the datagram, while the device still sends another.
fn expect_no_retransmission(t: &mut Test<'_>, peer: u64) -> Outcome {
    t.expect_none(PDS_UUD_001, "no retransmission of the datagram", 8 * t.rto(), uud_header)?;
    t.post(post_datagram(peer, 10))?;
    let within = t.later();
    t.need("a sign of life", within, uud_header)?;
    Ok(())
}
