//! The verdict of a scenario: who is to blame, by the packets and by the reports of both ends.

use super::closes::Closes;
use super::end::{End, Obstacle};
use super::judge::Evidence;
use super::play::{CLOSING, Reading};
use super::unrepeated::Unanswered;
use super::{PairVerdict, ScenarioResult, blank};
use core::net::IpAddr;
use core::time::Duration;
use uet_wire::catalogue::{
    PDS_CLOSE_004, PDS_RTO_001, ROB_LIFE_001, SES_DONE_001, SES_PLACE_003, SES_READ_003,
};

/// The time after which a lost packet was never sent again, if the timeout is not longer.
const LONG: Duration = Duration::from_secs(1);

/// Returns the verdict of a scenario that has ended so. Datagrams may be lost on the way, so those are `lossy`.
pub(super) fn verdict(
    ends: &[End; 2],
    ended: Result<(), Obstacle>,
    evidence: Evidence,
    readings: [Vec<Reading>; 2],
    lossy: bool,
) -> ScenarioResult {
    let name =
        |address: IpAddr| ends.iter().find(|end| end.place.ip() == address).map(|end| end.name.clone());
    let blamed = |blame: Option<String>, requirement: Option<&str>, reason: String| ScenarioResult {
        blame,
        requirement: requirement.map(Into::into),
        ..blank(PairVerdict::Fail, reason)
    };
    match ended {
        Err(Obstacle::Lacks(reason)) => return blank(PairVerdict::Skipped, reason),
        Err(Obstacle::Dead(end, reason)) => {
            return blamed(Some(ends[end].name.clone()), Some(ROB_LIFE_001.id), reason);
        }
        Err(Obstacle::Refused(end, reason)) => return blamed(Some(ends[end].name.clone()), None, reason),
        Ok(()) | Err(Obstacle::Differ(..) | Obstacle::Open(..)) => {}
    }
    if let Some(error) = evidence.errors.first() {
        let blame = error.culprit.and_then(name);
        return blamed(blame, Some(error.id), format!("{} (packet {})", error.message, error.number));
    }
    let (holder, keeper, what) = match ended {
        Err(Obstacle::Differ(holder, what)) => (holder, None, what),
        Err(Obstacle::Open(keeper, what)) => (None, Some(keeper), what),
        _ => return blank(PairVerdict::Pass, String::new()),
    };
    if lossy && holder.is_none() {
        return blank(PairVerdict::Inconclusive, format!("{what}: datagrams may be lost on the way"));
    }
    // Before the bytes: those at a wrong place are others.
    if let Some((sender, number, place)) = evidence.misplaced {
        let reason = format!("{what}; packet {number} names the place {place}, which no operation has");
        return blamed(name(sender), None, reason);
    }
    if let Some((sender, number)) = evidence.stray {
        let reason = format!("{what}; packet {number} carries bytes that no message has there");
        return blamed(name(sender), None, reason);
    }
    // An operation that ends too early leaves memory as it is so far.
    let is_early = |packet: &Unanswered| packet.sender == ends[0].place.ip();
    if let Some(packet) = evidence.unanswered.filter(|packet| holder.is_some() && is_early(packet)) {
        let reason =
            format!("{what}; all operations ended well, although packet {} has no answer", packet.number);
        return blamed(Some(ends[0].name.clone()), Some(SES_DONE_001.id), reason);
    }
    if holder.is_some() && !evidence.is_complete {
        let reason = format!("{what}; all operations ended well, although packets carried only a part");
        return blamed(Some(ends[0].name.clone()), Some(SES_DONE_001.id), reason);
    }
    if let Some(end) = holder {
        let reason = format!("{what}, although the packets carry the right bytes and all ended well");
        return blamed(Some(ends[end].name.clone()), Some(SES_PLACE_003.id), reason);
    }
    if let Some(error) = evidence.causes.first() {
        let reason = format!("{what}; {} (packet {})", error.message, error.number);
        return blamed(error.culprit.and_then(name), Some(error.id), reason);
    }
    if let Some((end, how)) = keeper.and_then(|keeper| never_closed(ends, keeper, &evidence.closes)) {
        return blamed(Some(ends[end].name.clone()), Some(PDS_CLOSE_004.id), format!("{what}; {how}"));
    }
    if let Some((end, number)) =
        evidence.unrepeated.and_then(|packet| never_repeated(ends, packet, evidence.read_at))
    {
        let reason = format!("{what}; packet {number} was lost, and never sent again");
        return blamed(Some(ends[end].name.clone()), Some(PDS_RTO_001.id), reason);
    }
    if let Some((end, number)) =
        evidence.silent.and_then(|silent| never_returned(ends, silent, evidence.read_at))
    {
        let reason = format!("{what}; packet {number} acknowledges a read, and no data has followed");
        return blamed(Some(ends[end].name.clone()), Some(SES_READ_003.id), reason);
    }
    let [initiator, target] = readings.map(shortened);
    let mut readings = vec![
        format!("{} (initiator): {initiator}", ends[0].name),
        format!("{} (target): {target}", ends[1].name),
    ];
    readings.extend(
        evidence
            .refusal
            .map(|(sender, what)| format!("last refusal: {}, {what}", name(sender).unwrap_or_default())),
    );
    ScenarioResult { readings, ..blank(PairVerdict::Disagree, what) }
}

/// Returns what an end reports, on one line. Of many operations that end well, only the number is of use.
fn shortened(all: Vec<Reading>) -> String {
    const MANY: usize = 6;
    if all.is_empty() {
        return "no report".into();
    }
    let is_long = all.len() > MANY;
    let shown = all.iter().filter(|reading| !is_long || !reading.is_well).take(MANY);
    let mut lines: Vec<&str> = shown.map(|reading| reading.text.as_str()).collect();
    let bad = all.iter().filter(|reading| !reading.is_well).count();
    let count = match all.len() - bad {
        0 => format!("{} reports, all of them not ok", all.len()),
        _ => format!("{} reports, {bad} of them not ok", all.len()),
    };
    if is_long {
        lines.insert(0, &count);
    }
    lines.join("; ")
}

/// Returns the end that did not take part in a close, and how its packets show it. `keeper` still counts a context.
fn never_closed(ends: &[End; 2], keeper: usize, closes: &Closes) -> Option<(usize, String)> {
    if let Some((address, number)) = closes.unanswered() {
        let end = ends.iter().position(|end| end.place.ip() == address)?;
        return Some((end, format!("the CLOSE_COMMAND in packet {number} was repeated, and has no answer")));
    }
    let number = closes.all_acknowledged_by(ends[keeper].place.ip())?;
    // It may remember a closed context for late packets, and count it meanwhile.
    let remembered = Duration::from_nanos(ends[keeper].number("syn_retx_safety_time")?);
    let how = format!("it has acknowledged the CLOSE_COMMAND in packet {number}");
    (remembered * 4 <= CLOSING).then_some((keeper, how))
}

/// Returns the end that should have sent an unanswered packet again by now, and the number of the packet.
fn never_repeated(ends: &[End; 2], packet: Unanswered, now: Duration) -> Option<(usize, u64)> {
    let end = late(ends, packet.sender, now.checked_sub(packet.time)?)?;
    (ends[end].number("max_rto_retx_cnt")? > 0).then_some((end, packet.number))
}

/// Returns the target that should have sent the data of a read by now, and the ACK of the read.
fn never_returned(
    ends: &[End; 2],
    (target, number, time): (IpAddr, u64, Duration),
    now: Duration,
) -> Option<(usize, u64)> {
    Some((late(ends, target, now.checked_sub(time)?)?, number))
}

/// Returns the end with this address if `waited` was time for several timeouts, by the parameters that this end states.
fn late(ends: &[End; 2], address: IpAddr, waited: Duration) -> Option<usize> {
    let end = ends.iter().position(|end| end.place.ip() == address)?;
    let timeout = Duration::from_nanos(ends[end].number("rto_init_time")?);
    (waited > LONG.max(timeout * 16)).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_reports_are_counted() {
        let reading = |bad: usize, n: usize| Reading { is_well: n >= bad, text: format!("operation {n}: x") };
        let all = |bad| (0..8).map(|n| reading(bad, n)).collect::<Vec<_>>();
        assert_eq!(shortened(Vec::new()), "no report");
        assert_eq!(shortened(all(0)), "8 reports, 0 of them not ok");
        assert_eq!(shortened(all(1)), "8 reports, 1 of them not ok; operation 0: x");
        assert!(shortened(all(8)).starts_with("8 reports, all of them not ok; operation 0: x"));
    }
}
