//! Packets that have arrived, as a bitmap says, and whose responses are lost (section 3.5.12).

use crate::prelude::*;
use crate::rules::steps::{message_in_flight, require_retransmissions};

/// Why the packets wait when the bitmap names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// They are in flight for the first time.
    Answer,
    /// They are in flight again after a timeout.
    AnswerAgain,
    /// They wait for their retransmission after a NACK.
    Retransmission(NackCode),
}

const WAIT: Axis<Wait> = axis("wait").values(&[
    ("trimmed", Wait::Retransmission(NackCode::TRIMMED)),
    ("no-resource", Wait::Retransmission(NackCode::NO_RESOURCE)),
    ("in-flight", Wait::Answer),
    ("in-flight-again", Wait::AnswerAgain),
    ("no-pkt-buffer", Wait::Retransmission(NackCode::NO_PKT_BUFFER)),
    ("no-gtd-del", Wait::Retransmission(NackCode::NO_GTD_DEL_AVAIL)),
    ("no-ses-msg", Wait::Retransmission(NackCode::NO_SES_MSG_AVAIL)),
    ("ses-procg", Wait::Retransmission(NackCode::RCVD_SES_PROCG)),
    ("trimmed-lasthop", Wait::Retransmission(NackCode::TRIMMED_LASTHOP)),
]);

/// How many packets the bitmap names.
const COUNT: Axis<u32> = axis("packets").values(&[("1", 1), ("3", 3)]);

pub(super) const RULES: &[Rule] =
    &[rule("retransmit/response-lost", "The device detects a lost response to a packet that SACK reports")
        .checks(&[PDS_SACK_004, PDS_ASK_003, PDS_RTO_001])
        .over(&[&WAIT, &COUNT, &MODE, &CARRIER, &START])
        .run(|t| {
            require_retransmissions(t, 2)?;
            let last = 1 + t.value(&COUNT);
            let (mut target, written) = message_in_flight(t, last)?;
            target.ack(t, 1)?;
            let mut missed: Vec<u32> = (2..=last).collect();
            for n in &missed {
                match t.value(&WAIT) {
                    Wait::Answer => {}
                    Wait::AnswerAgain => drop(target.expect_again(t, PDS_RTO_001, *n, t.later())?),
                    Wait::Retransmission(code) => target.refuse(t, code, *n)?,
                }
            }
            target.sack(t, 2, &missed)?;
            // Packets that left before the bitmap came say nothing.
            t.settle()?;
            while !missed.is_empty() {
                let n = expect_missed(t, &target, &missed)?;
                target.name(t, n, 2)?;
                missed.retain(|missed| *missed != n);
            }
            t.ends(PDS_ASK_003, written, Status::Ok)
        })];

/// Expects that the device asks for the response of one of these packets. It may also send it again, because
/// a NACK and a bitmap contradict each other. Returns the packet.
fn expect_missed(t: &mut Test<'_>, target: &Target, missed: &[u32]) -> Result<u32, Stop> {
    let within = t.soon() + t.scaled(8 * t.rto());
    let asks = |seen: &RxPacket| {
        let again = seen.request().filter(|request| {
            request.retx() && Some(request.spdcid()) == target.pdc.remote && seen.wire.dst == target.pdc.from
        });
        let asked = target.control(seen, CtlType::ACK_REQUEST).map(|control| control.psn());
        let psn = asked.or(again.map(|again| again.psn()))?;
        missed.iter().copied().find(|n| target.psn(*n) == psn)
    };
    let (_, n) = t.expect(PDS_SACK_004, "an ACK_REQUEST, or the packet again", within, asks)?;
    Ok(n)
}
