//! The encoding of every header that a device sends as an initiator. The suite checks each packet against all
//! requirements for a single packet.

use super::steps::request_clear;
use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::message_in_flight;
use uet_control::Remote;
use uet_wire::pds::Pds;
use uet_wire::ses::Ses;

/// Requirements for every request.
const ANY: &[&Requirement] =
    &[WIRE_TYPE_001, WIRE_NEXT_001, WIRE_NEXT_002, WIRE_RSVD_001, WIRE_PDCID_001, WIRE_SES_001];

pub(super) const RULES: &[Rule] = &[
    rule("source-encoding/opening", "Requests that open a context are well formed")
        .checks(&[
            WIRE_RSVD_001,
            WIRE_RSVD_003,
            WIRE_PDCID_001,
            WIRE_SYN_001,
            WIRE_CLEAR_001,
            WIRE_NEXT_002,
            WIRE_NEXT_001,
            WIRE_SES_001,
            WIRE_TYPE_001,
        ])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 3 * t.mtu() + 5))?;
            let mut target = Target::accept(t)?;
            target.watch(t, t.later())?;
            check_requests(t, &target, &[WIRE_RSVD_003, WIRE_SYN_001, WIRE_CLEAR_001]);
            Ok(())
        }),
    rule("source-encoding/established", "Requests and retransmissions of an open context are well formed")
        .checks(&[
            WIRE_RSVD_001,
            WIRE_PDCID_002,
            WIRE_CLEAR_001,
            WIRE_SES_006,
            WIRE_SES_008,
            PDS_RTO_001,
            WIRE_NEXT_001,
            WIRE_NEXT_002,
            WIRE_PDCID_001,
            WIRE_SES_001,
            WIRE_TYPE_001,
        ])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 4)?;
            for n in 1..=4 {
                target.expect_again(t, PDS_RTO_001, n, t.later())?;
            }
            check_requests(t, &target, &[WIRE_PDCID_002, WIRE_CLEAR_001, WIRE_SES_006, WIRE_SES_008]);
            Ok(())
        }),
    rule("source-encoding/operations", "Requests of every operation are well formed and have its opcode")
        .checks(&[
            WIRE_TYPE_001,
            WIRE_NEXT_001,
            WIRE_SES_001,
            WIRE_SES_002,
            WIRE_SES_009,
            WIRE_RSVD_001,
            WIRE_AMO_001,
            WIRE_AMO_002,
            WIRE_NEXT_002,
            WIRE_PDCID_001,
            WIRE_SES_014,
        ])
        .over(&[&MODE, &START])
        .run(|t| {
            let kinds = [
                ("write", PostKind::Write, Opcode::UET_WRITE),
                ("read", PostKind::Read, Opcode::UET_READ),
                ("send", PostKind::Send, Opcode::UET_SEND),
                ("tsend", PostKind::Tsend, Opcode::UET_TAGGED_SEND),
                ("atomic", PostKind::Atomic, Opcode::UET_ATOMIC),
                ("fetch_atomic", PostKind::FetchAtomic, Opcode::UET_FETCHING_ATOMIC),
                ("rendezvous_send", PostKind::RendezvousSend, Opcode::UET_RENDEZVOUS_SEND),
                ("rendezvous_tsend", PostKind::RendezvousTsend, Opcode::UET_RENDEZVOUS_TSEND),
                ("deferrable_send", PostKind::DeferrableSend, Opcode::UET_DEFERRABLE_SEND),
                ("deferrable_tsend", PostKind::DeferrableTsend, Opcode::UET_DEFERRABLE_TSEND),
                ("no_op", PostKind::NoOp, Opcode::UET_NO_OP),
            ];
            require(kinds.iter().any(|(name, ..)| t.claims(name)), "the device claims no kind of operation")?;
            for (name, kind, opcode) in kinds {
                if !t.claims(name) {
                    continue;
                }
                t.note(name);
                // Each operation has its own context.
                let peer = t.peer_of_job(400 + kind as u32)?;
                let since = t.now();
                t.post(operation(kind, peer))?;
                let within = t.later();
                let (seen, _) = t.need("its request", within, |seen| {
                    seen.request().filter(|request| !request.retx() && seen.at > since)
                })?;
                t.check_packet(&seen, ANY);
                t.check_packet(
                    &seen,
                    &[WIRE_SES_002, WIRE_SES_009, WIRE_AMO_001, WIRE_AMO_002, WIRE_SES_014],
                );
                t.check(WIRE_SES_002, "the opcode", Some(opcode), opcode_of(&seen));
            }
            Ok(())
        }),
    rule("source-encoding/header-forms", "Requests with short headers are well formed")
        .checks(&[
            WIRE_NEXT_002,
            WIRE_SES_003,
            WIRE_RSVD_001,
            WIRE_NEXT_001,
            WIRE_PDCID_001,
            WIRE_SES_001,
            WIRE_TYPE_001,
        ])
        .run(|t| {
            let forms = [
                (Form::Medium, NextHdr::UET_HDR_REQUEST_MEDIUM),
                (Form::Small, NextHdr::UET_HDR_REQUEST_SMALL),
            ];
            let mut seen_any = false;
            for (form, next) in forms {
                let peer = t.peer_of_job(500 + form as u32)?;
                // A small header can carry only an optimized key.
                let write = Post { form: Some(form), ..post(PostKind::Write, peer, 64) };
                let remote = Remote { key: Hex64(1 << 62 | 0x5e), index: 0, ..write.remote.clone() };
                match t.post(Post { remote, ..write }) {
                    Ok(_) => {}
                    // A device may choose the form itself.
                    Err(Stop::Skipped(_) | Stop::Inconclusive(_)) => continue,
                    Err(stop) => return Err(stop),
                }
                seen_any = true;
                let mut target = Target::accept(t)?;
                t.check(WIRE_NEXT_002, "next_hdr", next, target.packet(0)?.request.prologue().next_hdr());
                target.watch(t, t.later())?;
                check_requests(t, &target, &[WIRE_SES_003]);
                target.ack(t, 0)?;
                t.settle()?;
            }
            require(seen_any, "the device chooses the header form itself")
        }),
    rule("source-encoding/ordered", "Requests of ordered contexts are well formed")
        .checks(&[
            WIRE_TYPE_001,
            WIRE_RSVD_001,
            WIRE_NEXT_002,
            WIRE_NEXT_001,
            WIRE_PDCID_001,
            WIRE_SES_001,
            WIRE_SES_006,
            WIRE_SES_008,
        ])
        .needs(&[ROD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rod)?;
            t.post(Post { mode: Mode::Rod, ..post(PostKind::Write, peer, 3 * t.mtu()) })?;
            target.collect(t, 4)?;
            target.watch(t, t.later())?;
            check_requests(t, &target, &[WIRE_SES_006, WIRE_SES_008]);
            Ok(())
        }),
    rule("source-encoding/rudi", "RUDI requests and their retransmissions are well formed")
        .checks(&[WIRE_TYPE_001, WIRE_RSVD_001, WIRE_NEXT_002, WIRE_SES_006, WIRE_SES_008])
        .needs(&[RUDI])
        .over(&[])
        .run(|t| {
            let peer = t.peer(0)?;
            let write = Post { mode: Mode::Rudi, ..post(PostKind::Write, peer, 2 * t.mtu()) };
            let remote = Remote { key: Hex64(1 << 63 | 0x5eed), ..write.remote.clone() };
            t.post(Post { remote, ..write })?;
            let within = t.later();
            for _ in 0..4 {
                let (seen, _) = t.need("a RUDI request and its retransmissions", within, |seen| {
                    (seen.uet().pds.map(|pds| pds.kind()) == Some(PdsType::RUDI_REQ)).then_some(())
                })?;
                t.check_packet(
                    &seen,
                    &[WIRE_TYPE_001, WIRE_RSVD_001, WIRE_NEXT_002, WIRE_SES_006, WIRE_SES_008],
                );
            }
            Ok(())
        }),
    rule("source-encoding/credit-demand", "With receiver credit, requests are well formed and carry demand")
        .checks(&[
            RCCC_TYPE_001,
            WIRE_RSVD_001,
            WIRE_NEXT_001,
            WIRE_NEXT_002,
            WIRE_PDCID_001,
            WIRE_SES_001,
            WIRE_TYPE_001,
        ])
        .run(|t| {
            t.configure("congestion", "rccc")?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.watch(t, t.grace())?;
            check_requests(t, &target, &[]);
            for packet in &target.got {
                let kind = packet.request.prologue().kind();
                t.one_of(RCCC_TYPE_001, "pds.type", &[PdsType::RUD_CC_REQ, PdsType::ROD_CC_REQ], kind);
            }
            Ok(())
        }),
    rule("source-encoding/control", "The control packets of an initiator are well formed")
        .checks(&[
            WIRE_CTL_001,
            WIRE_CTL_002,
            WIRE_CTL_004,
            WIRE_CTL_006,
            WIRE_RSVD_001,
            WIRE_PDCID_001,
            WIRE_PDCID_002,
            WIRE_SYN_002,
        ])
        .run(|t| {
            let (target, _) = message_in_flight(t, 3)?;
            target.ack(t, 1)?;
            // The bit causes ACK_REQUEST, and CLEAR_REQUEST causes CLEAR_COMMAND.
            target.sack(t, 2, &[2])?;
            request_clear(t, &target, 1)?;
            if check_control(t, t.later())? == 0 {
                return Err(Stop::Inconclusive("no control packet has arrived".into()));
            }
            Ok(())
        }),
    rule("source-encoding/ack-and-nack", "ACKs and NACKs of an initiator are well formed")
        .checks(&[
            WIRE_ACK_001,
            WIRE_CC_001,
            WIRE_NACK_001,
            WIRE_RSVD_001,
            WIRE_RSVD_002,
            WIRE_PDCID_001,
            PDS_ASK_001,
            WIRE_LEN_001,
            WIRE_NEXT_002,
            WIRE_PDCID_002,
        ])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (_, target) = Target::with_peer(t, Mode::Rud)?;
            let pdc = target.pdc.clone();
            // The device sends an ACK, an ACK above a gap, and a NACK.
            t.send(&pdc, &pdc.numbered(CtlType::NOOP, 0)?)?;
            let (ack, _) = t.need_ack(&pdc, pdc.psn(0))?;
            t.send(&pdc, &pdc.numbered(CtlType::NOOP, 2)?)?;
            let (gap, _) = t.need_ack(&pdc, pdc.psn(2))?;
            t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(1), 0)?)?;
            // Before, the device may have reported the gap by RCVR_INFER_LOSS.
            let (nack, _) = t.expect_nack(PDS_ASK_001, &pdc, pdc.psn(1), &[NackCode::PKT_NOT_RCVD])?;
            for seen in [&ack, &gap] {
                t.check_packet(
                    seen,
                    &[WIRE_ACK_001, WIRE_CC_001, WIRE_RSVD_001, WIRE_RSVD_002, WIRE_NEXT_002],
                );
                t.check_packet(seen, &[WIRE_PDCID_001, WIRE_PDCID_002, WIRE_LEN_001]);
            }
            t.check_packet(&nack, &[WIRE_NACK_001, WIRE_RSVD_001, WIRE_PDCID_002, WIRE_LEN_001]);
            Ok(())
        }),
    rule("source-encoding/single-packet", "A message of at most one packet's payload is a single packet")
        .checks(&[WIRE_SES_007, WIRE_LEN_001])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for (n, length) in (1..).zip([0, 1, t.mtu() - 1, t.mtu()]) {
                t.post(post(PostKind::Write, peer, length))?;
                let packet = target.expect_new(t, WIRE_SES_007, n)?;
                t.check_packet(&packet.seen, &[WIRE_SES_007, WIRE_LEN_001]);
                t.check(WIRE_SES_007, "bytes", length, packet.seen.payload().len());
                target.ack(t, n)?;
            }
            Ok(())
        }),
];

/// Checks all received requests of a context.
fn check_requests(t: &mut Test<'_>, target: &Target, requirements: &[&'static Requirement]) {
    for packet in &target.got {
        t.check_packet(&packet.seen, ANY);
        t.check_packet(&packet.seen, requirements);
    }
}

/// Returns an operation of this kind with the fields that it needs.
fn operation(kind: PostKind, peer: u64) -> Post {
    let plain = post(kind, peer, 64);
    match kind {
        PostKind::Tsend | PostKind::DeferrableTsend => Post { tag: Some(Hex64(0x7a9)), ..plain },
        PostKind::RendezvousSend => Post { eager: Some(16), length: 10_000, ..plain },
        PostKind::RendezvousTsend => {
            Post { eager: Some(16), length: 10_000, tag: Some(Hex64(0x7a9)), ..plain }
        }
        PostKind::Atomic | PostKind::FetchAtomic => Post {
            length: 8,
            atomic_opcode: Some("SUM".into()),
            atomic_datatype: Some("UINT64".into()),
            ..plain
        },
        PostKind::NoOp => Post { length: 0, ..plain },
        _ => plain,
    }
}

/// Returns the opcode of a request.
fn opcode_of(seen: &RxPacket) -> Option<Opcode> {
    match seen.uet().ses? {
        Ses::Std(ses) => Some(ses.head().opcode()),
        Ses::Medium(ses) => Some(ses.head().opcode()),
        Ses::Small(ses) => Some(ses.head().opcode()),
        _ => None,
    }
}

/// Checks all control packets that arrive within this time. Returns their number.
fn check_control(t: &mut Test<'_>, during: Duration) -> Result<usize, Stop> {
    let mut count = 0;
    let until = t.now() + during;
    let any = |seen: &RxPacket| matches!(seen.uet().pds, Some(Pds::Control(_))).then_some(());
    while let Some((seen, ())) = t.wait(until.saturating_sub(t.now()), any)? {
        t.check_packet(&seen, &[WIRE_CTL_001, WIRE_CTL_002, WIRE_CTL_004, WIRE_CTL_006, WIRE_RSVD_001]);
        t.check_packet(&seen, &[WIRE_PDCID_001, WIRE_PDCID_002, WIRE_SYN_002]);
        count += 1;
    }
    Ok(count)
}
