//! CLOSE_COMMAND: how a device closes a context that it has opened (section 3.5.8).

use super::steps::{
    ack_control, close, expect_another_context, expect_close, expect_no_close, read_data, request_close,
    serve_whole,
};
use crate::prelude::*;
use crate::rules::steps::{expect_source_closes_in_range, retransmissions};
use uet_wire::pds::Control;
use uet_wire::registry::ResponseOpcode;
use uet_wire::ses::{Response, ResponseData};

/// The report of the last packet, after which the device must not close yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Nothing,
    /// A bitmap reports its arrival.
    Bitmap,
    /// An ACK names it with a NULL response.
    Null,
}

const REPORT: Axis<Report> = axis("report").values(&[
    ("nothing", Report::Nothing),
    ("bitmap", Report::Bitmap),
    ("null", Report::Null),
]);

/// The reason for which the device closes its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The script asks for it.
    Command,
    /// The target asks for it in an ACK.
    ReqClose,
    /// The target sends CLOSE_REQUEST.
    CloseRequest,
    /// The context is idle once the read has ended.
    Idle,
}

const REASON: Axis<Reason> = axis("reason").needing(&[
    ("command", Reason::Command, &[CLOSE]),
    ("req-close", Reason::ReqClose, &[]),
    ("close-request", Reason::CloseRequest, &[]),
    ("idle", Reason::Idle, &[]),
]);

/// True if the script turns on the limit of PSNs in a direction, false if the device has it by itself.
const LIMITED: Axis<bool> = axis("limit").values(&[("configured", true), ("own", false)]);

/// A NACK that ends the context, and true if it names the target's PDCID.
const FINAL: Axis<(NackCode, bool, &Requirement)> = axis("code").values(&[
    ("closing-in-err", (NackCode::CLOSING_IN_ERR, true, PDS_NACK_013)),
    ("inv-dpdcid", (NackCode::INV_DPDCID, false, PDS_NACK_003)),
    ("hdr-mismatch", (NackCode::PDC_HDR_MISMATCH, false, PDS_NACK_003)),
    ("closing", (NackCode::CLOSING, true, PDS_NACK_003)),
]);

/// The code of a NACK for a lack of resources.
const REFUSED: Axis<NackCode> = axis("code")
    .values(&[("no-resource", NackCode::NO_RESOURCE), ("no-pkt-buffer", NackCode::NO_PKT_BUFFER)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[CLOSE]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("source-close/command", "CLOSE_COMMAND for an idle context has the next PSN and requests an ACK")
        .checks(&[
            PDS_CLOSE_002,
            PDS_CTL_001,
            PDS_PDC_003,
            PDS_SYN_010,
            WIRE_CTL_003,
            WIRE_CTL_005,
            WIRE_RSVD_001,
        ])
        .run(|t| {
            let (peer, target) = Target::with_peer(t, Mode::Rud)?;
            close(t, peer)?;
            let (seen, command) = expect_close(t, &target, PDS_CLOSE_002)?;
            t.check(PDS_CTL_001, "psn", target.psn(1), command.psn());
            t.check(PDS_CLOSE_002, "ar", true, command.ar());
            t.check(PDS_SYN_010, "syn", false, command.syn());
            t.check(PDS_PDC_003, "dpdcid", Some(target.pdc.local), command.dpdcid());
            t.check_packet(&seen, &[WIRE_CTL_003, WIRE_CTL_005, WIRE_RSVD_001]);
            Ok(())
        }),
    rule("source-close/waits-for-acks", "The device does not close while a request is unacknowledged")
        .checks(&[PDS_CLOSE_001, PDS_CLOSE_002])
        .over(&[&REPORT, &MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
            target.collect(t, 3)?;
            close(t, peer)?;
            target.ack(t, 1)?;
            // Both say only that the packet has arrived. Its response may still be an error.
            match t.value(&REPORT) {
                Report::Nothing => {}
                Report::Bitmap => target.sack(t, 2, &[2])?,
                Report::Null => {
                    let null = Response::build(ResponseOpcode::UET_NO_RESPONSE, ReturnCode::NULL).done()?;
                    target.answer(t, AckBuilder { response: Some(null), ..target.naming(2, 2) })?;
                }
            }
            expect_no_close(t, &target, PDS_CLOSE_001)?;
            target.ack(t, 2)?;
            t.ends(PDS_CLOSE_001, written, Status::Ok)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_001)?;
            t.check(PDS_CLOSE_002, "psn", target.psn(3), command.psn());
            Ok(())
        }),
    rule("source-close/waits-for-data", "The device does not close while read data is outstanding")
        .checks(&[PDS_CLOSE_001, PDS_CLOSE_003, PDS_CLOSE_013])
        .needs(&[READ])
        .over(&[&REASON, &MODE, &START])
        .run(|t| {
            let (reason, idle_time) = (t.value(&REASON), 1_000_000_u64);
            if reason == Reason::Idle {
                t.configure("idle_time", idle_time)?;
            }
            // The read opens the context, which is therefore never idle.
            let peer = t.peer(0)?;
            let read = t.post(post(PostKind::Read, peer, 500))?;
            let target = Target::accept(t)?;
            let mut first = 0;
            match reason {
                Reason::ReqClose => {
                    target.answer(t, AckBuilder { request: AckRequest::REQ_CLOSE, ..target.acking(0) })?
                }
                _ => target.ack(t, 0)?,
            }
            t.settle()?;
            match reason {
                Reason::Command => close(t, peer)?,
                Reason::CloseRequest => {
                    request_close(t, &target)?;
                    first = 1;
                }
                Reason::Idle => t.pause(t.scaled(Duration::from_nanos(2 * idle_time)))?,
                Reason::ReqClose => {}
            }
            expect_no_close(t, &target, PDS_CLOSE_001)?;
            t.is_open(PDS_CLOSE_003, read)?;
            t.send(&target.pdc, &return_data(&target, first, &[7; 500])?)?;
            t.ends(PDS_CLOSE_003, read, Status::Ok)?;
            let requirement = match reason {
                Reason::Command => PDS_CLOSE_001,
                Reason::ReqClose | Reason::CloseRequest => PDS_CLOSE_013,
                Reason::Idle => return Ok(()),
            };
            expect_close(t, &target, requirement)?;
            Ok(())
        }),
    rule("source-close/after-message", "The device closes a context after a message, not within one")
        .checks(&[PDS_CLOSE_003, PDS_MSG_002])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            // So long that part of it waits for ACKs.
            let count = 100;
            let written = t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
            target.collect(t, 3)?;
            close(t, peer)?;
            serve_whole(t, &mut target, count, |target, packet| {
                Some(target.acking(target.index(&packet.request)))
            })?;
            t.ends(PDS_MSG_002, written, Status::Ok)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_003)?;
            t.check(PDS_CLOSE_003, "psn", target.psn(count + 1), command.psn());
            Ok(())
        }),
    rule("source-close/retransmitted", "CLOSE_COMMAND is retransmitted with the same PSN and with retx")
        .checks(&[PDS_RTO_001, PDS_RTO_005, PDS_CLOSE_002])
        .run(|t| {
            let (_, target, first) = open_and_close(t)?;
            t.check(PDS_RTO_005, "flag retx", false, first.retx());
            for n in 0..retransmissions(t, 2)? {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                let (_, repeated) = target.expect_control(t, PDS_RTO_001, CtlType::CLOSE_COMMAND, within)?;
                t.check(PDS_RTO_005, "psn", first.psn(), repeated.psn());
                t.check(PDS_RTO_005, "flag retx", true, repeated.retx());
                t.check(PDS_CLOSE_002, "ar", true, repeated.ar());
            }
            Ok(())
        }),
    rule("source-close/old-ack", "An old ACK does not stand for the ACK of CLOSE_COMMAND")
        .checks(&[PDS_RTO_001, PDS_CLOSE_002])
        .run(|t| {
            let (_, target, first) = open_and_close(t)?;
            target.ack(t, 0)?;
            let within = t.later();
            let (_, repeated) = target.expect_control(t, PDS_RTO_001, CtlType::CLOSE_COMMAND, within)?;
            t.check(PDS_RTO_001, "psn", first.psn(), repeated.psn());
            ack_control(t, &target, first.psn())
        }),
    rule("source-close/next-context", "After CLOSE_COMMAND, a new message opens another context")
        .checks(&[PDS_CLOSE_004, PDS_SYN_001, PDS_CLOSE_002, PDS_SYN_007])
        .run(|t| {
            let (peer, target, command) = open_and_close(t)?;
            let since = t.now();
            t.post(post(PostKind::Write, peer, 64))?;
            // The sources leave open if a new context waits until this one has ended.
            if !t.hear(t.early(), |seen| seen.at > since && seen.request().is_some())? {
                ack_control(t, &target, command.psn())?;
            }
            expect_another_context(t, &target, PDS_CLOSE_004, since)
        }),
    rule("source-close/acknowledged", "The ACK of CLOSE_COMMAND ends the context")
        .checks(&[PDS_CLOSE_004, PDS_CLOSE_002, PDS_SYN_001, PDS_SYN_007])
        .run(|t| {
            let (peer, target, command) = open_and_close(t)?;
            ack_control(t, &target, command.psn())?;
            expect_closed(t, peer, &target, PDS_CLOSE_004)
        }),
    rule(
        "source-close/covered",
        "A CACK_PSN that covers CLOSE_COMMAND ends the context, whatever PSN the ACK names",
    )
    .checks(&[PDS_PSN_005, PDS_CLOSE_002, PDS_SYN_001, PDS_SYN_007])
    .run(|t| {
        let (peer, target, command) = open_and_close(t)?;
        let ack = target.pdc.ack(target.psn(0)).cack(command.psn());
        target.answer(t, AckBuilder { response: None, ..ack })?;
        expect_closed(t, peer, &target, PDS_PSN_005)
    }),
    rule("source-close/refused", "A NACK that ends a context ends one that sent CLOSE_COMMAND")
        .checks(&[PDS_NACK_013, PDS_NACK_003, PDS_CLOSE_002, PDS_SYN_001, PDS_SYN_007])
        .over(&[&FINAL, &MODE, &CARRIER, &START])
        .run(|t| {
            let (code, named, requirement) = t.value(&FINAL);
            let (peer, target, command) = open_and_close(t)?;
            let nack = target.pdc.nack(code, command.psn())?;
            match named {
                true => t.send(&target.pdc, &nack)?,
                false => target.refuse_without_context(t, code, 1)?,
            }
            expect_closed(t, peer, &target, requirement)
        }),
    rule(
        "source-close/refusals",
        "A CLOSE_COMMAND that is always refused is given up, and the context with it",
    )
    .checks(&[PDS_NACK_005, PDS_CLOSE_002, PDS_SYN_001, PDS_SYN_007])
    .over(&[&REFUSED, &MODE, &CARRIER, &START])
    .run(|t| {
        let most = (t.nack_limit()? + t.parameter("max_rto_retx_cnt")) as usize;
        let (peer, target, command) = open_and_close(t)?;
        let mut times = 1;
        while times < most + 3 {
            t.send(&target.pdc, &target.pdc.nack(t.value(&REFUSED), command.psn())?)?;
            if t.wait(t.later(), |seen| target.control(seen, CtlType::CLOSE_COMMAND))?.is_none() {
                break;
            }
            times += 1;
        }
        let bound = Bound::from(most + 1).from_parameter("max_nack_retx_cnt and max_rto_retx_cnt");
        t.at_most(PDS_NACK_005, "transmissions of CLOSE_COMMAND", bound, times);
        let since = t.now();
        t.post(post(PostKind::Write, peer, 64))?;
        expect_another_context(t, &target, PDS_NACK_005, since)
    }),
    rule("source-close/nack", "A CLOSE_COMMAND that gets a NACK for lack of a resource is retransmitted")
        .checks(&[PDS_NACK_004, PDS_RTO_005, PDS_CLOSE_002, PDS_CLOSE_004])
        .over(&[&REFUSED, &MODE, &CARRIER, &START])
        .measure(|t| {
            let short = t.nack_wait() * 2 + t.grace() < t.early();
            require(short, "NACK_Retx_Time is not well below RTO_Init_Time")?;
            let (peer, target) = Target::with_peer(t, Mode::Rud)?;
            close(t, peer)?;
            let (first, command) = expect_close(t, &target, PDS_CLOSE_002)?;
            t.send(&target.pdc, &target.pdc.nack(t.value(&REFUSED), command.psn())?)?;
            let within = t.later();
            let (seen, repeated) = target.expect_control(t, PDS_NACK_004, CtlType::CLOSE_COMMAND, within)?;
            t.check(PDS_RTO_005, "psn", command.psn(), repeated.psn());
            t.check(PDS_RTO_005, "flag retx", true, repeated.retx());
            t.check(PDS_CLOSE_002, "ar", true, repeated.ar());
            let bound = Bound::from(t.early()).from_parameter("70 % of rto_init_time");
            let waited = seen.at.saturating_sub(first.at);
            t.at_most(PDS_NACK_004, "the time before the retransmission", bound, waited);
            ack_control(t, &target, command.psn())?;
            t.settle()?;
            let span = 4 * t.rto();
            t.expect_none(PDS_CLOSE_004, "no CLOSE_COMMAND after its ACK", span, |seen| {
                target.control(seen, CtlType::CLOSE_COMMAND)
            })?;
            t.expect_action(peer)
        }),
    rule("source-close/limit", "CLOSE_COMMAND is retransmitted at most Max_RTO_Retx_Cnt times")
        .checks(&[PDS_RTO_003, PDS_CLOSE_002, PDS_RTO_004, PDS_SYN_001, PDS_SYN_007])
        .run(|t| {
            let most = t.timeout_limit()? as usize;
            let (peer, target, _) = open_and_close(t)?;
            let span = t.until_given_up();
            t.pause(span)?;
            let mut times = 1;
            while t.wait(Duration::ZERO, |seen| target.control(seen, CtlType::CLOSE_COMMAND))?.is_some() {
                times += 1;
            }
            let range = Bound::from(2..=most + 1).from_parameter("max_rto_retx_cnt");
            t.between(PDS_RTO_003, "transmissions of CLOSE_COMMAND", range, times);
            let since = t.now();
            t.post(post(PostKind::Write, peer, 64))?;
            expect_another_context(t, &target, PDS_RTO_004, since)
        }),
    rule("source-close/late-data", "Read data that arrives after the close is refused")
        .checks(&[PDS_CLOSE_009, PDS_CLOSE_002])
        .run(|t| {
            let (peer, target, command) = open_and_close(t)?;
            ack_control(t, &target, command.psn())?;
            t.settle()?;
            let head = ResponseData::build().read_request_message_id(1).job_id(101).response_message_id(9);
            let late =
                target.pdc.request(0).ses(head.payload_length(64).modified_length(64).done()?, &[7; 64]);
            let pdc = target.pdc.clone();
            t.request(&pdc, late)?;
            t.expect_nack(PDS_CLOSE_009, &pdc, target.psn(0), &[NackCode::INV_DPDCID, NackCode::CLOSING])?;
            t.expect_action(peer)
        }),
    rule("source-close/other-contexts", "A close leaves another context to the same peer open")
        .checks(&[PDS_PDC_003, PDS_CLOSE_002])
        .needs(&[RUD, ROD, CLOSE])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (peer, mut ordered) = Target::with_peer(t, Mode::Rod)?;
            let target = Target::established(t, peer, Mode::Rud)?;
            close(t, peer)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_002)?;
            ack_control(t, &target, command.psn())?;
            t.settle()?;
            let written = t.post(Post { mode: Mode::Rod, ..post(PostKind::Write, peer, 64) })?;
            let next = ordered.expect_new(t, PDS_PDC_003, 1)?;
            t.check(PDS_PDC_003, "dpdcid", Some(ordered.pdc.local), next.request.dpdcid());
            ordered.ack(t, 1)?;
            t.ends(PDS_PDC_003, written, Status::Ok)
        }),
    rule("source-close/psn-range", "A context closes before one direction has used all its PSNs")
        .checks(&[PDS_CLOSE_012])
        .needs(&[])
        .over(&[&MODE, &CARRIER, &START, &LIMITED])
        .run(|t| {
            let most = 300;
            if t.value(&LIMITED) {
                t.configure("limit_psn_range", true)?;
            } else {
                // A secure domain has a limit in any case.
                let limits = t.reported("limit_psn_range") != Some(0) && !t.is_secure();
                require(limits, "the device does not limit the range of PSNs")?;
            }
            t.configure("psn_range", most)?;
            expect_source_closes_in_range(t, most)
        }),
];

/// Opens a context, and has the device close it. Returns the peer, the target and CLOSE_COMMAND.
fn open_and_close(t: &mut Test<'_>) -> Result<(u64, Target, Control), Stop> {
    let (peer, target) = Target::with_peer(t, Mode::Rud)?;
    close(t, peer)?;
    let (_, command) = expect_close(t, &target, PDS_CLOSE_002)?;
    Ok((peer, target, command))
}

/// Expects that the device does not retransmit CLOSE_COMMAND, and that its next message opens another
/// context.
fn expect_closed(t: &mut Test<'_>, peer: u64, target: &Target, requirement: &Requirement) -> Outcome {
    t.settle()?;
    let (span, since) = (4 * t.rto(), t.now());
    t.expect_none(requirement, "no retransmitted CLOSE_COMMAND", span, |seen| {
        target.control(seen, CtlType::CLOSE_COMMAND)
    })?;
    t.post(post(PostKind::Write, peer, 64))?;
    expect_another_context(t, target, requirement, since)
}

/// Returns the data of a read of one packet that opened the context, as packet `n` of the return direction.
fn return_data(target: &Target, n: u32, bytes: &[u8]) -> Result<UetBuf, Stop> {
    let data = read_data(&target.packet(0)?.seen, bytes.len(), ReturnCode::OK)?;
    Ok(target.pdc.request(n).ses(data, bytes).build()?)
}
