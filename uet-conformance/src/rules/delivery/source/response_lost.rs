//! Lost responses to packets whose arrival a SACK bitmap reports (section 3.5.12).

use crate::prelude::*;
use crate::rules::steps::{message_in_flight, require_retransmissions};

/// The state of the packets when the bitmap reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LostState {
    /// They are in flight for the first time.
    InFlight,
    /// They were retransmitted after a timeout.
    Retransmitted,
    /// They wait for their retransmission after a NACK.
    Refused(NackCode),
}

const STATE: Axis<LostState> = axis("state").values(&[
    ("trimmed", LostState::Refused(NackCode::TRIMMED)),
    ("no-resource", LostState::Refused(NackCode::NO_RESOURCE)),
    ("in-flight", LostState::InFlight),
    ("retransmitted", LostState::Retransmitted),
    ("no-pkt-buffer", LostState::Refused(NackCode::NO_PKT_BUFFER)),
    ("no-gtd-del", LostState::Refused(NackCode::NO_GTD_DEL_AVAIL)),
    ("no-ses-msg", LostState::Refused(NackCode::NO_SES_MSG_AVAIL)),
    ("ses-procg", LostState::Refused(NackCode::RCVD_SES_PROCG)),
    ("trimmed-lasthop", LostState::Refused(NackCode::TRIMMED_LASTHOP)),
]);

/// The number of packets that the bitmap reports.
const COUNT: Axis<u32> = axis("packets").values(&[("1", 1), ("3", 3)]);

pub(super) const RULES: &[Rule] =
    &[rule("retransmit/response-lost", "The device detects a lost response to a packet that SACK reports")
        .checks(&[PDS_SACK_004, PDS_ASK_003, PDS_RTO_001])
        .over(&[&STATE, &COUNT, &MODE, &CARRIER, &START])
        .run(|t| {
            require_retransmissions(t, 2)?;
            let last = 1 + t.value(&COUNT);
            let (mut target, written) = message_in_flight(t, last)?;
            target.ack(t, 1)?;
            let mut missed: Vec<u32> = (2..=last).collect();
            for n in &missed {
                match t.value(&STATE) {
                    LostState::InFlight => {}
                    LostState::Retransmitted => drop(target.expect_again(t, PDS_RTO_001, *n, t.later())?),
                    LostState::Refused(code) => target.refuse(t, code, *n)?,
                }
            }
            target.sack(t, 2, &missed)?;
            // Discards packets that left before the bitmap arrived.
            t.settle()?;
            while !missed.is_empty() {
                let n = expect_missed(t, &target, &missed)?;
                target.name(t, n, 2)?;
                missed.retain(|missed| *missed != n);
            }
            t.ends(PDS_ASK_003, written, Status::Ok)
        })];

/// Expects ACK_REQUEST for one of these packets, and returns the packet. The device may also retransmit it,
/// because a NACK and a bitmap contradict each other.
fn expect_missed(t: &mut Test<'_>, target: &Target, missed: &[u32]) -> Result<u32, Stop> {
    let within = t.soon() + t.scaled(8 * t.rto());
    let reacts = |seen: &RxPacket| {
        let resent = seen.request().filter(|request| {
            request.retx() && Some(request.spdcid()) == target.pdc.remote && seen.wire.dst == target.pdc.from
        });
        let requested = target.control(seen, CtlType::ACK_REQUEST).map(|control| control.psn());
        let psn = requested.or(resent.map(|request| request.psn()))?;
        missed.iter().copied().find(|n| target.psn(*n) == psn)
    };
    let (_, n) = t.expect(PDS_SACK_004, "an ACK_REQUEST, or the packet again", within, reacts)?;
    Ok(n)
}
