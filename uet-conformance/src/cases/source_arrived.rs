//! Packets that have arrived, as a bitmap says, and whose responses are lost (section 3.5.12).

use super::retransmit::{lasts, under_way};
use crate::axis::{CARRIER, MODE, START};
use crate::target::Target;
use crate::{Axis, Outcome, Point, Rule, RxPacket, Stop, Test};
use uet_control::Status;
use uet_wire::catalogue::*;
use uet_wire::registry::{CtlType, NackCode};

pub(super) const CASES: &[Rule] = &[Rule {
    id: "source-arrived/response-lost",
    title: "A source misses the response of a packet that a bitmap names, whatever the packet waits for",
    requirements: &[PDS_SACK_004, PDS_ASK_003, PDS_RTO_001],
    needs: &[],
    axes: &[&WAIT, &COUNT, &MODE, &CARRIER, &START],
    run: response_lost,
}];

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

const WAIT: Axis<Wait> = Axis::new(
    "wait",
    &[
        Point::new("trimmed", Wait::Retransmission(NackCode::TRIMMED)),
        Point::new("no-resource", Wait::Retransmission(NackCode::NO_RESOURCE)),
        Point::new("in-flight", Wait::Answer),
        Point::new("in-flight-again", Wait::AnswerAgain),
        Point::new("no-pkt-buffer", Wait::Retransmission(NackCode::NO_PKT_BUFFER)),
        Point::new("no-gtd-del", Wait::Retransmission(NackCode::NO_GTD_DEL_AVAIL)),
        Point::new("no-ses-msg", Wait::Retransmission(NackCode::NO_SES_MSG_AVAIL)),
        Point::new("ses-procg", Wait::Retransmission(NackCode::RCVD_SES_PROCG)),
        Point::new("trimmed-lasthop", Wait::Retransmission(NackCode::TRIMMED_LASTHOP)),
    ],
);

/// How many packets the bitmap names.
const COUNT: Axis<u32> = Axis::new("packets", &[Point::new("1", 1), Point::new("3", 3)]);

fn response_lost(t: &mut Test<'_>) -> Outcome {
    lasts(t, 2)?;
    let last = 1 + t.value(&COUNT);
    let (mut target, written) = under_way(t, last)?;
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
}

/// Expects that the device asks for the response of one of these packets. It may also send it again, because a NACK and a
/// bitmap contradict each other. Returns the packet.
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
