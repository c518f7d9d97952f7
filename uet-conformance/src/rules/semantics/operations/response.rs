//! Responses of a target: contents, order, and errors that wait for a clear (sections 3.4.2 and 3.4.3.3).

use crate::prelude::*;
use uet_wire::registry::List;

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("response/success", "A successful write gets OK on list EXPECTED without REQ_CLEAR")
        .checks(&[SES_RESP_002, SES_RESP_001])
        .run(success),
    rule("response/whole-length", "The response to the last packet states the length of the message")
        .checks(&[SES_RESP_004, SES_RESP_006])
        .run(whole_length),
    rule("response/early-last", "A last packet that arrives early is not answered with a shorter length")
        .checks(&[SES_RESP_004, SES_RESP_006])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(early_last),
    rule("response/error-ids", "An error response repeats message_id and job_id of its request")
        .checks(&[SES_RESP_003, SES_RESP_001])
        .needs(&[WRITE])
        .over(&[&MODE, &START])
        .run(error_ids),
    rule("response/out-of-order", "Valid and invalid requests in any order each get their own response")
        .checks(&[SES_RESP_001, PDS_ACK_016])
        .needs(&[RUD, WRITE])
        .over(&[&START])
        .run(|t| {
            let mut session = t.session();
            expect_own_responses(t, &mut session, &[8, 2, 0, 5, 3, 7, 1, 6, 4])
        }),
    rule("response/ordered", "On an ordered context, each request gets its own response")
        .checks(&[SES_RESP_001, PDS_ACK_016])
        .needs(&[ROD, WRITE])
        .over(&[&START])
        .run(|t| {
            let mut session = t.ordered_session();
            expect_own_responses(t, &mut session, &[0, 1, 2, 3, 4, 5, 6, 7, 8])
        }),
    rule("response/error-guaranteed", "An error response requests a clear and holds back the cumulative PSN")
        .checks(&[SES_GTD_001, PDS_PSN_002, SES_RESP_001])
        .run(error_guaranteed),
    rule("response/error-duplicate", "A retransmission of a refused request gets the same error response")
        .checks(&[SES_GTD_001, PDS_DUP_002, SES_RESP_001])
        .run(error_duplicate),
    rule("response/error-cleared", "A cleared error no longer holds back the cumulative PSN")
        .checks(&[PDS_CLR_005, SES_RESP_001])
        .run(error_cleared),
    rule("response/error-length", "An error response has modified_length 0 if nothing was placed")
        .checks(&[SES_ERR_001, SES_RESP_001])
        .run(error_length),
    rule("response/many", "A hundred requests get a hundred responses")
        .checks(&[SES_RESP_001])
        .run(hundred_requests),
    rule("response/expected-list", "A send to a posted receive gets a response on list EXPECTED")
        .checks(&[SES_RESP_002, SES_RESP_001])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &START])
        .run(expected_list),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(14).take(length).collect()
}

fn success(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.patterned(64)?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&region, 0, &bytes(16)).whole()?)?;
    let answer = session.accepted(t, SES_RESP_001, psn)?;
    let list = answer.response.map_or(List::UET_EXPECTED, |response| response.head().list());
    t.check(SES_RESP_002, "the list", List::UET_EXPECTED, list);
    let unguaranteed = [AckRequest::NO_REQUEST, AckRequest::REQ_CLOSE];
    t.one_of(SES_RESP_002, "req of the ACK", &unguaranteed, answer.request);
    Ok(())
}

fn whole_length(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let length = 2 * mtu + 30;
    let (region, _) = t.patterned(length as u64)?;
    let mut session = t.session();

    let psns = session.ask_all(t, &Message::write(&region, 0, &bytes(length)).parts(mtu)?)?;
    let mut lengths = Vec::new();
    for psn in psns {
        lengths.push(session.accepted(t, SES_RESP_006, psn)?.length(length as u32));
    }
    // The last response belongs to the last packet, or to the packet that was placed last.
    t.check(SES_RESP_004, "modified_length of the last", length as u32, lengths[2]);
    Ok(())
}

fn early_last(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let length = 2 * mtu + 30;
    let (region, _) = t.patterned(length as u64)?;
    let mut session = t.session();

    // Without `dc`, the response to the last packet need not wait for the others.
    let whole = Message { complete: false, ..Message::write(&region, 0, &bytes(length)) };
    let parts = whole.parts(mtu)?;
    let psns = session.ask_in_order(t, &parts, &[0, 2])?;
    t.pause(t.soon())?;
    session.ask_late(t, psns[1], &parts[1])?;
    let stated = session.accepted(t, SES_RESP_006, psns[2])?.length(length as u32);
    t.check(SES_RESP_004, "modified_length of the last packet's response", length as u32, stated);
    Ok(())
}

fn error_ids(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.patterned(64)?;
    let mut session = t.session();

    let message = Message::write(&region, 0, &bytes(16)).named(0xbeef).selector(region.key ^ 1);
    let psn = session.ask(t, &message.whole()?)?;
    let answer = session.refused(t, SES_RESP_001, psn)?;
    let ids = answer.response.map(|response| (response.message_id(), response.job_id()));
    t.check(SES_RESP_003, "message_id and job_id", Some((0xbeef, 101)), ids);
    Ok(())
}

/// Returns write `n` of a mix of valid and invalid ones, and the code that refuses it.
fn mixed_write(region: &crate::Region, n: u16) -> (Message, Option<ReturnCode>) {
    let good = Message::write(region, 16 * u64::from(n), &bytes(16)).named(n + 1);
    match n {
        2 => (good.selector(region.key ^ 1), Some(ReturnCode::BAD_MKEY)),
        5 => (Message { process: 0xabc, ..good }, Some(ReturnCode::BAD_PID)),
        8 => (Message { job: 0xabcdef, ..good }, Some(ReturnCode::BAD_JOB_ID)),
        _ => (good, None),
    }
}

/// Sends nine writes of which every third is invalid. Returns their PSNs and the expected codes.
fn send_mixed(
    t: &mut Test<'_>,
    session: &mut crate::RequestSession,
    order: &[usize],
) -> Result<Vec<(Psn, Option<ReturnCode>)>, crate::Stop> {
    let (region, _) = t.patterned(256)?;
    let mut parts = Vec::new();
    let mut codes = Vec::new();
    for n in 0..9 {
        let (message, code) = mixed_write(&region, n);
        parts.push(message.whole()?);
        codes.push(code);
    }
    let psns = session.ask_in_order(t, &parts, order)?;
    Ok(psns.into_iter().zip(codes).collect())
}

/// Expects for each write of a mix the response that it gets on its own.
fn expect_own_responses(t: &mut Test<'_>, session: &mut crate::RequestSession, order: &[usize]) -> Outcome {
    // A wrong code for a single invalid write is the failure of another requirement.
    let (region, _) = t.patterned(256)?;
    let mut alone = t.session();
    for n in [2, 5, 8] {
        let (message, code) = mixed_write(&region, n);
        let psn = alone.ask(t, &message.whole()?)?;
        let seen = alone.answer(t, psn)?.code();
        if let Some(code) = code.filter(|code| *code != seen) {
            let requirement = match code {
                ReturnCode::BAD_PID => SES_ADDR_005,
                ReturnCode::BAD_JOB_ID => SES_ADDR_004,
                _ => SES_MEM_005,
            };
            t.check(requirement, "the return code", code, seen);
            return Err(crate::Stop::Failed);
        }
    }
    for (psn, code) in send_mixed(t, session, order)? {
        match code {
            Some(code) => session.refused_as(t, PDS_ACK_016, psn, &[code])?,
            None => session.accepted(t, SES_RESP_001, psn)?,
        };
    }
    Ok(())
}

fn error_guaranteed(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.patterned(64)?;
    let mut session = t.session();
    let bad = Message::write(&region, 0, &bytes(16)).selector(region.key ^ 1);
    let good = Message::write(&region, 0, &bytes(16)).named(2);
    let psns = session.ask_all(t, &[bad.whole()?, good.whole()?])?;
    let answer = session.refused(t, SES_RESP_001, psns[0])?;
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    let pdc = session.pdc.clone();
    t.expect_silence(PDS_PSN_002, "no ACK whose cumulative PSN covers it", |seen| {
        seen.cack(&pdc).filter(|cack| !psns[0].is_after(*cack))
    })
}

fn error_duplicate(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.patterned(64)?;
    let mut session = t.session();
    let part = Message::write(&region, 0, &bytes(16)).selector(region.key ^ 1).whole()?;
    let psn = session.ask(t, &part)?;
    let first = session.refused(t, SES_RESP_001, psn)?;
    session.again(t, psn, &part)?;
    let second = session.refused_as(t, PDS_DUP_002, psn, &[first.code()])?;
    t.check(SES_GTD_001, "the same response", first.response, second.response);
    Ok(())
}

fn error_cleared(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.patterned(64)?;
    let mut session = t.session();
    let bad = Message::write(&region, 0, &bytes(16)).selector(region.key ^ 1);
    let psn = session.ask(t, &bad.whole()?)?;
    session.refused(t, SES_RESP_001, psn)?;
    let good = Message::write(&region, 0, &bytes(16)).named(2).whole()?;
    let request = session.pdc.request(1).ses(good.ses, &good.payload).clear(psn);
    t.send(&session.pdc, &request.build()?)?;
    t.expect_cack(PDS_CLR_005, &session.pdc, session.pdc.psn(1)).map(drop)
}

fn error_length(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (region, _) = t.patterned(64)?;
    let mut session = t.session();

    let message = Message::write(&region, 0, &bytes(2 * mtu)).selector(region.key ^ 1);
    for psn in session.ask_all(t, &message.parts(mtu)?)? {
        let answer = session.refused(t, SES_RESP_001, psn)?;
        let length = answer.response.map(|response| response.modified_length());
        t.check(SES_ERR_001, "modified_length", Some(0), length);
    }
    Ok(())
}

fn hundred_requests(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.patterned(100)?;
    let mut session = t.session();

    let mut psns = Vec::new();
    for n in 0..100 {
        let message = Message::write(&region, n.into(), &[n as u8]).named(n + 1);
        psns.push(session.ask(t, &message.whole()?)?);
        if n == 0 {
            session.accepted(t, SES_RESP_001, psns[0])?;
        }
    }
    session.all_accepted(t, SES_RESP_001, &psns)
}

fn expected_list(t: &mut Test<'_>) -> Outcome {
    let posted = t.posted(room(64))?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::send(&bytes(20)).whole()?)?;
    let answer = session.accepted(t, SES_RESP_001, psn)?;
    let list = answer.response.map_or(List::UET_EXPECTED, |response| response.head().list());
    t.check(SES_RESP_002, "the list", List::UET_EXPECTED, list);
    t.expect_received(SES_RESP_002, &posted, &bytes(20)).map(drop)
}
