//! When a target sends an ACK, and which flags of the packet the ACK repeats (section 3.5.12).

use super::steps::delay_acks;
use crate::prelude::*;
use crate::rules::delivery::rule;
use uet_wire::registry::ResponseOpcode;
use uet_wire::ses::Response;

pub(super) const RULES: &[Rule] = &[
    rule("ack/requested", "A packet with ar is acknowledged at once").checks(&[PDS_ACK_004]).run(|t| {
        delay_acks(t)?;
        let (pdc, region) = t.open()?;
        t.request(&pdc, pdc.request(1).write(&region, 16, &[2; 16])?)?;
        t.expect_ack(PDS_ACK_004, &pdc, pdc.psn(1))?;
        Ok(())
    }),
    rule("ack/retransmission-of-lost", "A retransmitted lost packet is delivered and acknowledged at once")
        .checks(&[PDS_ACK_003, PDS_ACK_002, PDS_RUD_001])
        .run(|t| {
            delay_acks(t)?;
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).quiet().retx().write(&region, 0, &[1; 16])?)?;
            let (_, ack) = t.expect_answer(PDS_ACK_003, &pdc, pdc.psn(1))?;
            t.check(PDS_ACK_002, "flag retx", true, ack.retx());
            t.expect_memory(PDS_RUD_001, &region, 0, &[1; 16])
        }),
    rule("ack/retransmission", "A retransmitted duplicate is acknowledged at once and not delivered")
        .checks(&[PDS_DUP_001, PDS_DUP_002])
        .run(|t| {
            delay_acks(t)?;
            let (pdc, region) = t.open()?;
            let first = overwrite(t, &pdc, &region)?;
            for _ in 0..3 {
                t.request(&pdc, first.clone().quiet().retx())?;
                t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(1))?;
                t.forget();
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_DUP_001, &region, 0, &[2; 16])
        }),
    rule("ack/duplicate", "A duplicate created by the network is neither delivered nor refused")
        .checks(&[PDS_DUP_001, PDS_DUP_003])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let first = overwrite(t, &pdc, &region)?;
            t.request(&pdc, first.clone())?;
            t.request(&pdc, first)?;
            let wrong = "no NACK of a copy";
            t.expect_silence(PDS_DUP_003, wrong, |seen| seen.refuses(&pdc, pdc.psn(1)))?;
            t.check_memory(PDS_DUP_001, &region, 0, &[2; 16])
        }),
    rule("ack/default-response", "The ACK of a duplicate carries a default response without message fields")
        .checks(&[PDS_ACK_013, PDS_PSN_005])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let first = overwrite(t, &pdc, &region)?;
            t.request(&pdc, first.retx())?;
            expect_default(t, &pdc, pdc.psn(1))
        }),
    rule("ack/default-generation", "A response made by packet delivery has generation 0, unlike its request")
        .checks(&[PDS_ACK_013, PDS_PSN_005])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &START])
        .run(|t| {
            t.exposed(8, |region| ExposeRegion { generation: 5, ..region })?;
            t.posted(room(64))?;
            let mut session = t.session();
            let send = Message { generation: 5, ..Message::send(&[1; 16]) }.whole()?;
            let psn = session.ask(t, &send)?;
            let answer = session.answer(t, psn)?;
            require(answer.is_ok(), "the device refuses a send with the generation of its index")?;
            t.settle()?;
            session.again(t, psn, &send)?;
            expect_default(t, &session.pdc, psn)?;
            t.settle()?;
            t.send(&session.pdc, &session.pdc.control(CtlType::ACK_REQUEST, psn, 0)?)?;
            expect_default(t, &session.pdc, psn)
        }),
    rule("ack/retx", "An ACK repeats the retx flag of its packet").checks(&[PDS_ACK_002]).run(|t| {
        let (pdc, region) = t.open()?;
        for (n, retx) in [(1, false), (2, true), (3, false)] {
            let request = pdc.request(n).write(&region, 0, &[1; 16])?;
            t.request(&pdc, if retx { request.retx() } else { request })?;
            let (_, ack) = t.expect_answer(PDS_ACK_002, &pdc, pdc.psn(n))?;
            t.check(PDS_ACK_002, "flag retx", retx, ack.retx());
        }
        Ok(())
    }),
    rule("ack/mark", "An ACK reports whether its packet carried a congestion mark")
        .checks(&[PDS_ACK_002])
        .needs(&[ECN, SET_ECN])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for (n, marked) in [(1, true), (2, false), (3, true)] {
                let packet = pdc.request(n).write(&region, 0, &[1; 16])?.build()?;
                t.send_marked(&pdc, &packet, marked)?;
                let (_, ack) = t.expect_answer(PDS_ACK_002, &pdc, pdc.psn(n))?;
                t.check(PDS_ACK_002, "flag m (marked)", marked, ack.m());
            }
            Ok(())
        }),
    rule("ack/marked-at-once", "With ACK_On_ECN, a marked packet is acknowledged at once")
        .checks(&[PDS_ACK_008])
        .needs(&[ECN, SET_ECN])
        .run(|t| {
            delay_acks(t)?;
            t.try_configure("ack_on_ecn", true)?;
            let (pdc, region) = t.open()?;
            let packet = pdc.request(1).quiet().write(&region, 0, &[1; 16])?.build()?;
            t.send_marked(&pdc, &packet, true)?;
            let (_, ack) = t.expect_answer(PDS_ACK_008, &pdc, pdc.psn(1))?;
            t.check(PDS_ACK_008, "flag m (marked)", true, ack.m());
            Ok(())
        }),
    rule("ack/bounded", "A packet without ar is eventually acknowledged").checks(&[PDS_ACK_011]).run(|t| {
        let (pdc, region) = t.open()?;
        t.request(&pdc, pdc.request(1).quiet().write(&region, 0, &[1; 16])?)?;
        expect_eventual_ack(t, &pdc, 1)
    }),
    rule("ack/bounded-with-other-acks", "Packets without ar are acknowledged despite ACKs of other packets")
        .checks(&[PDS_ACK_011])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            // The packets are above a gap, and too far apart for one bitmap.
            let (pdc, region) = t.open()?;
            let step = t.range(&pdc)? / 5;
            for n in 1..=4 {
                t.request(&pdc, pdc.request(2 * n).quiet().write(&region, 0, &[1; 16])?)?;
                t.request(&pdc, pdc.request(step * n).write(&region, 0, &[1; 16])?)?;
                expect_eventual_ack(t, &pdc, 2 * n)?;
            }
            Ok(())
        }),
    rule("ack/trigger", "An ACK is sent after ACK_Gen_Trigger bytes on a context")
        .checks(&[PDS_ACK_010])
        .over(&[&CONTEXTS, &MODE, &CARRIER, &START])
        .run(|t| {
            let size = t.mtu() as u64;
            expect_triggered_ack(t, size, size)
        }),
    rule("ack/small-packets", "A small packet counts as ACK_Gen_Min_Pkt_Add bytes toward the next ACK")
        .checks(&[PDS_ACK_010])
        .run(|t| {
            let least = t.parameter("ack_gen_min_pkt_add");
            expect_triggered_ack(t, 1, least.max(1))
        }),
    rule("ack/each-packet", "With Enb_ACK_Per_Pkt, each packet is acknowledged at once")
        .checks(&[PDS_ACK_009])
        .run(|t| {
            delay_acks(t)?;
            t.configure("enb_ack_per_pkt", true)?;
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).quiet().write(&region, 0, &[1; 16])?)?;
            let within = t.patience(t.soon());
            if t.wait(within, |seen| seen.answers(&pdc, pdc.psn(1)))?.is_none() {
                return check_requests_acks(t);
            }
            for n in 2..=3 {
                t.request(&pdc, pdc.request(n).quiet().write(&region, 0, &[1; 16])?)?;
                t.expect_answer(PDS_ACK_009, &pdc, pdc.psn(n))?;
            }
            Ok(())
        }),
    rule("ack/error-at-once", "An error is reported at once, even for a packet without ar")
        .checks(&[PDS_ACK_005])
        .run(|t| {
            delay_acks(t)?;
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).quiet().write_nowhere(&region, &[1; 16])?)?;
            let (seen, _) = t.expect_answer(PDS_ACK_005, &pdc, pdc.psn(1))?;
            t.holds(PDS_ACK_005, "the ACK carries the error", seen.is_error(), seen.uet());
            Ok(())
        }),
    rule("ack/data-at-once", "Read data in an ACK is sent at once, even for a packet without ar")
        .checks(&[PDS_ACK_006])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            delay_acks(t)?;
            let (pdc, region) = t.open()?;
            let most = t.parameter("max_ack_data_size") as u32;
            require(most != 0, "no read data rides in ACKs")?;
            t.request(&pdc, pdc.request(1).quiet().read(&region, 0, most.min(8))?)?;
            let (_, ack) = t.need("the data", t.soon(), |seen| {
                (seen.is_for(&pdc) && !seen.payload().is_empty()).then(|| seen.ack())
            })?;
            let Some(ack) = ack else {
                return skip("the device sends small reads on the return direction");
            };
            t.check(PDS_ACK_006, "ack_psn", Some(pdc.psn(1)), ack.ack_psn());
            Ok(())
        }),
    rule("ack/partial-success-at-once", "A send longer than its buffer is reported at once, even without ar")
        .checks(&[PDS_ACK_007])
        .needs(&[WRITE, SEND, RECEIVE])
        .over(&[&MODE, &START])
        .run(|t| {
            delay_acks(t)?;
            let (pdc, _) = t.open()?;
            t.posted(room(8))?;
            // Longer than its buffer: the device truncates or refuses it.
            let send = Message::send(&[1; 16]).whole()?;
            t.request(&pdc, pdc.request(1).quiet().ses(send.ses, &send.payload))?;
            let (seen, _) = t.expect_answer(PDS_ACK_007, &pdc, pdc.psn(1))?;
            // A device may refuse the send with an error.
            let opcode = seen.response().map(|response| response.head().opcode());
            let reported = opcode == Some(ResponseOpcode::UET_RESPONSE) || seen.is_error();
            t.holds(PDS_ACK_007, "the response says that not all was taken", reported, seen.uet());
            Ok(())
        }),
];

/// Delivers requests 1 and 2, which write to the same bytes, and returns request 1. A second delivery of
/// request 1 would overwrite request 2.
fn overwrite(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<Request, Stop> {
    let first = pdc.request(1).write(region, 0, &[1; 16])?;
    t.request(pdc, first.clone())?;
    t.need_ack(pdc, pdc.psn(1))?;
    t.request(pdc, pdc.request(2).write(region, 0, &[2; 16])?)?;
    t.need_ack(pdc, pdc.psn(2))?;
    t.pause(t.soon())?;
    t.forget();
    Ok(first)
}

/// Expects an ACK of this PSN with a default response.
fn expect_default(t: &mut Test<'_>, pdc: &Pdc, psn: Psn) -> Outcome {
    let (seen, _) = t.expect_ack(PDS_PSN_005, pdc, psn)?;
    match seen.response() {
        Some(response) => check_default(t, response),
        None => t.holds(PDS_PSN_005, "the ACK carries a default response", false, seen.uet()),
    }
    Ok(())
}

/// Checks that a response is the default one and that its other fields are 0.
fn check_default(t: &mut Test<'_>, response: Response) {
    let head = response.head();
    let opcodes = [ResponseOpcode::UET_DEFAULT_RESPONSE, ResponseOpcode::UET_NO_RESPONSE];
    t.one_of(PDS_ACK_013, "ses.opcode", &opcodes, head.opcode());
    t.one_of(PDS_ACK_013, "ses.return_code", &[ReturnCode::NULL, ReturnCode::OK], head.return_code());
    t.check(PDS_ACK_013, "ses.list", 0, head.list().code());
    t.check(PDS_ACK_013, "ses.modified_length", 0, response.modified_length());
    t.check(PDS_ACK_013, "ses.ri_generation", 0, response.ri_generation());
}

/// Expects an ACK of the `n`-th PSN. The sources leave the delay open; a source would not wait longer than
/// this.
fn expect_eventual_ack(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Outcome {
    let long = t.soon() * 50;
    t.expect(PDS_ACK_011, "an ACK in the end", long, |seen| seen.acknowledges(pdc, pdc.psn(n)))?;
    Ok(())
}

/// Expects that each request of the device requests an ACK. The sources leave open whether Enb_ACK_Per_Pkt
/// acts on the receiver or on the source.
fn check_requests_acks(t: &mut Test<'_>) -> Outcome {
    let (peer, mut target) = Target::with_peer(t, t.value(&MODE))?;
    t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
    target.collect(t, 4)?;
    for n in 1..4 {
        t.check(PDS_ACK_009, "flag ar (ACK requested)", true, target.packet(n)?.request.ar());
    }
    Ok(())
}

/// Maximum number of packets without `ar` that a rule sends for one ACK.
const MAX_PACKETS: u64 = 4096;

/// Sends packets without `ar` until the device must acknowledge them. Each has `size` bytes of payload and
/// counts as `counted` bytes.
fn expect_triggered_ack(t: &mut Test<'_>, size: u64, counted: u64) -> Outcome {
    delay_acks(t)?;
    let contexts = t.value(&CONTEXTS);
    let open = (0..contexts).map(|_| t.open()).collect::<Result<Vec<_>, Stop>>()?;
    let count = match t.parameter("ack_gen_trigger").div_ceil(counted) {
        count @ ..=MAX_PACKETS => count as u32,
        count => return skip(format!("{count} packets for an ACK are too many")),
    };
    for n in 1..=count {
        for (pdc, region) in &open {
            t.request(pdc, pdc.request(n).quiet().write(region, 0, &vec![n as u8; size as usize])?)?;
        }
    }
    for (pdc, _) in &open {
        t.expect(PDS_ACK_010, "an ACK of these packets", t.soon(), |seen| {
            (1..=count).find_map(|n| seen.acknowledges(pdc, pdc.psn(n)))
        })?;
    }
    Ok(())
}

/// The number of contexts that receive packets in turn.
const CONTEXTS: Axis<usize> = axis("contexts").values(&[("1", 1), ("2", 2), ("3", 3)]);
