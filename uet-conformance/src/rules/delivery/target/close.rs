//! The end of a context at a target: CLOSE_COMMAND, late packets and CLOSE_REQUEST (section 3.5.8).

use super::steps::{close_context, numbered_control, remember_closed, return_data};
use crate::prelude::*;
use crate::rules::delivery::rule;
use uet_wire::pds::Control;

/// The time in nanoseconds after which an idle context asks for its close.
const IDLE: u64 = 1_000_000;

pub(super) const RULES: &[Rule] = &[
    rule("close/by-command", "CLOSE_COMMAND is acknowledged without a response")
        .checks(&[PDS_CLOSE_004, PDS_ACK_014, PDS_PSN_002])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            t.forget();
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?)?;
            // Accept any ACK first: an ACK with a wrong cumulative PSN is not a missing ACK.
            let (_, ack) = t.expect(PDS_CLOSE_004, "an ACK of CLOSE_COMMAND", t.soon(), |seen| {
                seen.ack().filter(|_| seen.is_for(&pdc))
            })?;
            t.check(PDS_PSN_002, "cack_psn", pdc.psn(2), ack.cack_psn());
            t.check(PDS_CLOSE_004, "ack_psn", Some(pdc.psn(2)), ack.ack_psn());
            t.check(PDS_ACK_014, "next_hdr", NextHdr::UET_HDR_NONE, ack.prologue().next_hdr());
            Ok(())
        }),
    rule("close/retransmitted-command", "A retransmitted CLOSE_COMMAND is acknowledged with retx")
        .checks(&[PDS_CLOSE_010, PDS_ACK_002])
        .run(|t| {
            remember_closed(t)?;
            let (pdc, _) = t.open()?;
            close(t, &pdc, 1)?;
            for _ in 0..3 {
                t.send(&pdc, &numbered_control(&pdc, CtlType::CLOSE_COMMAND, 1, true, true)?)?;
                let (_, ack) = t.expect_answer(PDS_CLOSE_010, &pdc, pdc.psn(1))?;
                t.check(PDS_ACK_002, "flag retx", true, ack.retx());
            }
            Ok(())
        }),
    rule("close/request-after-close", "A request after the close is refused and not delivered")
        .checks(&[PDS_OPEN_007, PDS_CLOSE_009, PDS_RUD_001])
        .run(|t| {
            let (pdc, region) = open_and_close(t)?;
            for n in [3, 4, 100] {
                t.request(&pdc, pdc.request(n).write(&region, 0, &[9; 16])?)?;
                t.expect_nack(PDS_OPEN_007, &pdc, pdc.psn(n), &GONE)?;
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_CLOSE_009, &region, 0, &[2; 16])
        }),
    rule("close/late-request", "A late duplicate for a closed context is refused or dropped, not delivered")
        .checks(&[PDS_CLOSE_009, PDS_RUD_001])
        .run(|t| {
            let (pdc, region) = open_and_close(t)?;
            let late = pdc.request(1).write(&region, 0, &[1; 16])?;
            t.request(&pdc, late.clone())?;
            t.request(&pdc, late.retx())?;
            expect_only_gone_nacks(t, &pdc)?;
            t.check_memory(PDS_CLOSE_009, &region, 0, &[2; 16])
        }),
    rule("close/late-syn", "A late duplicate of the first packet opens no context and is not delivered")
        .checks(&[PDS_CLOSE_009, PDS_RUD_001])
        .over(&[&USED, &MODE, &CARRIER, &START])
        .run(|t| {
            let requests = t.value(&USED);
            if requests > DISTANCE {
                t.configure("start_psn_distance", DISTANCE)?;
            }
            let (pdc, region) = open_and_close_after(t, requests)?;
            let first = Pdc { remote: None, ..pdc.clone() };
            for n in [0, 1] {
                t.request(&pdc, first.request(n).write(&region, 0, &[1; 16])?)?;
                t.request(&pdc, first.request(n).retx().write(&region, 0, &[1; 16])?)?;
            }
            expect_only_gone_nacks(t, &pdc)?;
            t.check_memory(PDS_CLOSE_009, &region, 0, &[2; 16])
        }),
    rule("close/late-control", "Late control packets, ACKs and NACKs for a closed context change nothing")
        .checks(&[PDS_CLOSE_009, PDS_RUD_001])
        .run(|t| {
            let (pdc, region) = open_and_close(t)?;
            let kinds = [CtlType::NOOP, CtlType::ACK_REQUEST, CtlType::CLEAR_COMMAND, CtlType::CLOSE_COMMAND];
            let negotiation = t.claims("negotiation").then_some(CtlType::NEGOTIATION);
            for kind in kinds.into_iter().chain(negotiation) {
                t.send(&pdc, &pdc.control(kind, pdc.psn(3), pdc.psn(1).0)?)?;
            }
            t.send(&pdc, &pdc.probe(3, pdc.psn(1))?)?;
            t.send(&pdc, &pdc.ack(pdc.start).build()?)?;
            t.send(&pdc, &pdc.nack(NackCode::PKT_NOT_RCVD, pdc.start)?)?;
            expect_only_gone_nacks(t, &pdc)?;
            t.expect_none(PDS_CLOSE_009, "no ACK of a packet after the close", t.soon(), |seen| {
                seen.answers(&pdc, pdc.psn(3))
            })?;
            t.check_memory(PDS_CLOSE_009, &region, 0, &[2; 16])
        }),
    rule("close/reopened", "A closed PDCID with a distant Start_PSN opens a new context at once")
        .checks(&[PDS_CLOSE_011, PDS_RUD_001])
        .run(|t| {
            let (old, region) = open_and_close(t)?;
            let distance = t.parameter("start_psn_distance") as u32;
            let mut pdc = Pdc { remote: None, start: old.psn(2) + distance, ..old };
            for round in 3..6 {
                t.request(&pdc, pdc.request(0).write(&region, 0, &[round; 16])?)?;
                let (_, ack) = t.expect_ack(PDS_CLOSE_011, &pdc, pdc.psn(0))?;
                t.expect_memory(PDS_CLOSE_011, &region, 0, &[round; 16])?;
                pdc.remote = Some(ack.spdcid());
                close(t, &pdc, 1)?;
                pdc = Pdc { remote: None, start: pdc.psn(1) + distance, ..pdc };
            }
            Ok(())
        }),
    rule("close/frees-context", "A closed context makes room for another").checks(&[PDS_CLOSE_004]).run(
        |t| {
            t.configure("general_pdcs", 1)?;
            let (pdc, region) = t.open()?;
            close(t, &pdc, 1)?;
            let other = t.initiate();
            t.expect_room(PDS_CLOSE_004, &other, &region)
        },
    ),
    rule("close/one-of-two", "Closing one context does not affect another context of the same peer")
        .checks(&[PDS_CLOSE_004, PDS_PDC_003])
        .run(|t| {
            let (one, region) = t.open()?;
            let mut two = t.initiate();
            t.establish(&mut two, &region)?;
            t.request(&two, two.request(1).write_nowhere(&region, &[1])?)?;
            let (first, _) = t.need("an error", t.soon(), |seen| seen.answers(&two, two.psn(1)))?;
            t.send(&one, &one.control(CtlType::CLOSE_COMMAND, one.psn(1), 0)?)?;
            t.expect_answer(PDS_CLOSE_004, &one, one.psn(1))?;
            t.request(&two, two.request(1).retx().write_nowhere(&region, &[1])?)?;
            let (repeated, ack) = t.expect_answer(PDS_PDC_003, &two, two.psn(1))?;
            t.check(PDS_PDC_003, "the stored response", first.response(), repeated.response());
            t.check(PDS_PDC_003, "cack_psn", two.psn(0), ack.cack_psn());
            Ok(())
        }),
    rule("close/unacknowledged-data", "CLOSE_COMMAND gets CLOSING_IN_ERR while read data is unacknowledged")
        .checks(&[PDS_CLOSE_005])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, _) = open_with_read_data(t)?;
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?)?;
            t.expect_nack(PDS_CLOSE_005, &pdc, pdc.psn(2), &[NackCode::CLOSING_IN_ERR])?;
            Ok(())
        }),
    rule("close/data-without-credit", "CLOSE_COMMAND gets CLOSING_IN_ERR while read data waits for credit")
        .checks(&[PDS_CLOSE_005])
        .needs(&[READ, RCCC])
        .over(&[&WAITING, &MODE])
        .run(|t| {
            // The suite acknowledges all data that the device has credit for.
            t.congestion_or_both("rccc")?;
            t.auto_credit = false;
            let length = 4 * t.bdp()?;
            let region = t.region(length)?;
            let mut session = t.session();
            let parts = Message::read(&region, 0, length as u32).parts(t.mtu())?;
            let psns = session.ask_all(t, &parts)?;
            session.answer(t, psns[0])?;
            let (pdc, grace) = (session.pdc, t.grace());
            let mut unsent = psns.len();
            for grants in 1..=4 * psns.len() as u32 {
                while let Some((_, data)) = t.wait(grace, |seen| return_data(seen, &pdc))? {
                    unsent = unsent.saturating_sub(1);
                    t.send(&pdc, &pdc.ack(data.psn()).build()?)?;
                }
                if unsent <= t.value(&WAITING).unwrap_or(unsent) {
                    break;
                }
                // Credit for one packet, not for two.
                let units = t.mtu() as u32 / 256;
                t.send(&pdc, &pdc.control(CtlType::CREDIT, Psn(0), grants * units)?)?;
            }
            require(unsent != 0, "the device sends all data without credit")?;
            let close = pdc.psn(psns.len() as u32);
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, close, 0)?)?;
            t.expect_nack(PDS_CLOSE_005, &pdc, close, &[NackCode::CLOSING_IN_ERR])?;
            Ok(())
        }),
    rule("close/after-error", "A request after CLOSING_IN_ERR is refused and not delivered")
        .checks(&[PDS_CLOSE_009, PDS_OPEN_007])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            remember_closed(t)?;
            let (pdc, _) = open_with_read_data(t)?;
            let region = t.region(4096)?;
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?)?;
            t.need("CLOSING_IN_ERR", t.soon(), |seen| seen.refuses(&pdc, pdc.psn(2)))?;
            t.request(&pdc, pdc.request(3).write(&region, 0, &[1; 16])?)?;
            let codes = [GONE[0], GONE[1], NackCode::CLOSING_IN_ERR];
            t.expect_nack(PDS_OPEN_007, &pdc, pdc.psn(3), &codes)?;
            t.pause(t.soon())?;
            t.check_memory(PDS_CLOSE_009, &region, 0, &[0; 16])
        }),
    rule("close/acknowledged-data", "CLOSE_COMMAND is acknowledged after all read data is acknowledged")
        .checks(&[PDS_CLOSE_004])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, data) = open_with_read_data(t)?;
            t.send(&pdc, &pdc.ack(data.psn()).build()?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?)?;
            t.expect_answer(PDS_CLOSE_004, &pdc, pdc.psn(2))?;
            Ok(())
        }),
    rule("close/requested", "An idle target sends CLOSE_REQUEST or REQ_CLOSE and accepts CLOSE_COMMAND")
        .checks(&[PDS_CLOSE_006, PDS_CLOSE_004, WIRE_CTL_003, PDS_SYN_008])
        .run(|t| {
            let (pdc, _, request) = open_until_close_request(t, IDLE)?;
            if let Some(request) = request {
                t.check(WIRE_CTL_003, "ar", true, request.ar());
                t.check(PDS_SYN_008, "psn", pdc.start, request.psn());
                t.send(&pdc, &pdc.ack(request.psn()).build()?)?;
            }
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?)?;
            t.expect_answer(PDS_CLOSE_004, &pdc, pdc.psn(1))?;
            Ok(())
        }),
    rule("close/unacknowledged-request", "CLOSE_COMMAND is acknowledged although CLOSE_REQUEST was not")
        .checks(&[PDS_CLOSE_007, PDS_CLOSE_006])
        .run(|t| {
            let (pdc, _, request) = open_until_close_request(t, IDLE)?;
            require(request.is_some(), "the device uses REQ_CLOSE")?;
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?)?;
            t.expect_answer(PDS_CLOSE_007, &pdc, pdc.psn(1))?;
            Ok(())
        }),
    rule("close/request-timeout", "A target that gets no CLOSE_COMMAND in time sends CLOSING_IN_ERR")
        .checks(&[PDS_CLOSE_008, PDS_CLOSE_006, PDS_RTO_001])
        .over(&[&TRAFFIC, &MODE, &CARRIER, &START])
        .run(|t| {
            t.try_configure("close_req_time", 50_000_000)?;
            let (pdc, region, request) = open_until_close_request(t, IDLE)?;
            let close_req_time = Duration::from_nanos(t.parameter("close_req_time"));
            if let Some(request) = request {
                // It is acknowledged like a request, so it is sent again until then.
                if t.later() < close_req_time {
                    t.expect(PDS_RTO_001, "the CLOSE_REQUEST again", t.later(), |seen| {
                        close_request(seen, &pdc).flatten().filter(|again| again.psn() == request.psn())
                    })?;
                }
                t.send(&pdc, &pdc.ack(request.psn()).build()?)?;
            }
            let mut within = t.scaled(close_req_time) + t.soon();
            let gives_up = |seen: &RxPacket| closes_in_error(seen, &pdc);
            if t.value(&TRAFFIC) {
                let step = within / 8;
                while within > step * 2 {
                    t.request(&pdc, pdc.request(0).write(&region, 0, &[1])?.retx())?;
                    within -= step;
                    if t.wait(step, gives_up)?.is_some() {
                        t.holds(PDS_CLOSE_008, "the target gives up in time", true, "NACK CLOSING_IN_ERR");
                        return Ok(());
                    }
                }
            }
            t.expect(PDS_CLOSE_008, "NACK CLOSING_IN_ERR", within, gives_up)?;
            Ok(())
        }),
    rule("close/request-answered", "Close_REQ_Time ends with CLOSE_COMMAND and hits no later context")
        .checks(&[PDS_CLOSE_008, PDS_CLOSE_006])
        .run(|t| {
            // The next context takes the place of the closed one, and is busy until the time is over.
            t.try_configure("general_pdcs", 1)?;
            t.try_configure("syn_retx_safety_time", 1_000_000)?;
            t.try_configure("close_req_time", 100_000_000)?;
            let close_req_time = t.parameter("close_req_time");
            require(close_req_time <= 1_000_000_000, "Close_REQ_Time is too long")?;
            let (old, region, request) = open_until_close_request(t, 10 * IDLE)?;
            let until = t.now() + t.scaled(Duration::from_nanos(close_req_time)) + t.soon();
            if let Some(request) = request {
                t.send(&old, &old.ack(request.psn()).build()?)?;
            }
            close(t, &old, 1)?;
            // On a busy machine, the device forgets the old context later.
            t.pause(t.scaled(Duration::from_nanos(t.parameter("syn_retx_safety_time"))) * 16)?;
            let mut next = t.initiate();
            t.establish(&mut next, &region)?;
            let mut n = 0;
            while t.now() < until {
                n += 1;
                t.request(&next, next.request(n).write(&region, 0, &[n as u8])?)?;
                t.expect_none(PDS_CLOSE_008, "no NACK CLOSING_IN_ERR", Duration::from_nanos(IDLE), |seen| {
                    closes_in_error(seen, &next).or_else(|| closes_in_error(seen, &old))
                })?;
                let asks = t.hear(Duration::ZERO, |seen| close_request(seen, &next).is_some())?;
                require(!asks, "the device asks for the close of a busy context")?;
            }
            t.need_ack(&next, next.psn(n))?;
            Ok(())
        }),
];

/// Closes a context by its `n`-th PSN. Earlier packets of the device no longer count.
fn close(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Outcome {
    close_context(t, pdc, n)?;
    t.forget();
    Ok(())
}

/// Opens a context, delivers one request, and closes the context by PSN 2. The request wrote ones, which
/// another context has overwritten with twos.
fn open_and_close(t: &mut Test<'_>) -> Result<(Pdc, Region), Stop> {
    open_and_close_after(t, 1)
}

/// Opens and closes a context likewise, after this many requests behind the first.
fn open_and_close_after(t: &mut Test<'_>, requests: u32) -> Result<(Pdc, Region), Stop> {
    remember_closed(t)?;
    let (pdc, region) = t.open()?;
    for n in 1..=requests {
        t.request(&pdc, pdc.request(n).write(&region, 0, &[1; 16])?)?;
        t.need_ack(&pdc, pdc.psn(n))?;
    }
    let mut other = t.initiate();
    t.establish(&mut other, &region)?;
    t.request(&other, other.request(1).write(&region, 0, &[2; 16])?)?;
    t.need_ack(&other, other.psn(1))?;
    t.expect_memory(PDS_RUD_001, &region, 0, &[2; 16])?;
    close(t, &pdc, requests + 1)?;
    Ok((pdc, region))
}

/// The codes that refuse a packet for a closed context.
const GONE: [NackCode; 2] = [NackCode::CLOSING, NackCode::INV_DPDCID];

/// Expects no NACK but those that report a closed context. An ACK_REQUEST may also ask about a packet that
/// the context has not received.
fn expect_only_gone_nacks(t: &mut Test<'_>, pdc: &Pdc) -> Outcome {
    t.expect_silence(PDS_CLOSE_009, "nothing but NACK CLOSING, INV_DPDCID or PKT_NOT_RCVD", |seen| {
        let code = seen.nack().filter(|_| seen.is_for(pdc))?.nack_code();
        (code != NackCode::PKT_NOT_RCVD && !GONE.contains(&code)).then_some(())
    })
}

/// A small Start_PSN distance, which a rule can exceed with few requests.
const DISTANCE: u32 = 16;

/// The number of requests before the close: fewer or more than the distance from its Start_PSN to the next
/// one.
const USED: Axis<u32> = axis("requests").values(&[("few", 1), ("many", 2 * DISTANCE)]);

/// Lets the device send read data on the return direction, and does not acknowledge it.
fn open_with_read_data(t: &mut Test<'_>) -> Result<(Pdc, uet_wire::pds::Request), Stop> {
    let (pdc, region) = t.open()?;
    let length = t.beyond_ack()?;
    t.request(&pdc, pdc.request(1).read(&region, 0, length)?)?;
    let (_, data) = t.need("read data on the return direction", t.soon(), |seen| return_data(seen, &pdc))?;
    Ok((pdc, data))
}

/// The packets of read data that wait for credit: all that remain at the start, or one.
const WAITING: Axis<Option<usize>> = axis("waiting").values(&[("many", None), ("one", Some(1))]);

/// Opens a context and waits until the idle device requests its close. Returns the CLOSE_REQUEST, unless the
/// device uses REQ_CLOSE in an ACK.
fn open_until_close_request(
    t: &mut Test<'_>,
    idle_time: u64,
) -> Result<(Pdc, Region, Option<Control>), Stop> {
    t.auto_ack_control = false;
    t.configure("idle_time", idle_time)?;
    let (pdc, region) = t.open()?;
    let expected = "CLOSE_REQUEST or REQ_CLOSE";
    let (_, request) = t.expect(PDS_CLOSE_006, expected, t.soon(), |seen| close_request(seen, &pdc))?;
    Ok((pdc, region, request))
}

/// Returns the CLOSE_REQUEST in a packet, or the inner `None` for an ACK with REQ_CLOSE.
fn close_request(seen: &RxPacket, pdc: &Pdc) -> Option<Option<Control>> {
    if let Some(request) = seen.control(CtlType::CLOSE_REQUEST).filter(|_| seen.is_for(pdc)) {
        return Some(Some(request));
    }
    seen.ack().filter(|ack| seen.is_for(pdc) && ack.req() == AckRequest::REQ_CLOSE).map(|_| None)
}

/// Returns `Some` for a NACK that closes the context in error.
fn closes_in_error(seen: &RxPacket, pdc: &Pdc) -> Option<()> {
    let code = seen.nack().filter(|_| seen.is_for(pdc)).map(|nack| nack.nack_code());
    (code == Some(NackCode::CLOSING_IN_ERR)).then_some(())
}

/// True if retransmissions arrive while the target waits.
const TRAFFIC: Axis<bool> = axis("traffic").values(&[("silent", false), ("busy", true)]);
