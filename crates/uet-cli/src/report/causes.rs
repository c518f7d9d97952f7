//! Groups the rules that did not pass by what they expected and saw, so that one cause is read once. The groups compare
//! texts, so they are for readers alone: no verdict depends on them.

use std::collections::BTreeMap;
use uet_conformance::{Entry, InstanceResult, Ladder, Liveness, Relation, RuleResult, RunResult, Verdict};
use uet_wire::Uet;
use uet_wire::pds::Pds;

/// Stands for bytes that differ from the expected ones.
const OTHER_BYTES: &str = "other bytes";

/// The number of its rules that a report names for each cause.
pub const NAMED: usize = 4;

/// Rules that did not pass and have probably one cause.
#[derive(Debug)]
pub struct Cause<'r> {
    /// The missing packets, or the expected and the seen, or the reason of an inconclusive verdict. Numbers are those
    /// of the first rule.
    pub what: String,
    /// The requirements that they compare.
    pub requirements: Vec<&'r str>,
    /// The rules.
    pub rules: Vec<&'r RuleResult>,
    /// True if the device ended or fell silent in one of them, which may affect others.
    pub is_end: bool,
}

/// Returns the causes of a run: first the end or silence of the device, then those of most rules. Waived rules have
/// none.
pub fn of(result: &RunResult) -> Vec<Cause<'_>> {
    of_rules(&result.rules)
}

fn of_rules(rules: &[RuleResult]) -> Vec<Cause<'_>> {
    let mut causes: BTreeMap<Name, Cause<'_>> = BTreeMap::new();
    for rule in rules {
        for found in distinct(rule) {
            let (name, text) = (Name::of(found), text(found));
            let cause = causes.entry(name.clone()).or_insert_with(|| Cause {
                what: text.clone(),
                requirements: Vec::new(),
                rules: Vec::new(),
                is_end: false,
            });
            // The text says more than the name, as long as that of all rules differs only in numbers.
            if without_numbers(&cause.what) != without_numbers(&text) {
                cause.what = name.what;
            }
            cause.rules.push(rule);
            cause.is_end |= found.liveness != Liveness::Alive;
            let broken = found.observations.first();
            for requirement in broken.iter().map(|broken| broken.requirement.as_str()) {
                if !cause.requirements.contains(&requirement) {
                    cause.requirements.push(requirement);
                }
            }
        }
    }
    let mut causes: Vec<Cause<'_>> = causes.into_values().collect();
    causes.sort_by_key(|cause| core::cmp::Reverse((cause.is_end, cause.rules.len())));
    causes
}

/// Returns the worst instance of a rule, and the first of each other requirement that the rule found broken. Returns
/// none if the rule passed, was skipped, or is waived.
fn distinct(rule: &RuleResult) -> Vec<&InstanceResult> {
    let is_bad = !matches!(rule.verdict, Verdict::Pass | Verdict::Skipped) && rule.waived.is_none();
    let broken = |found: &InstanceResult| found.observations.first().map(|broken| broken.requirement.clone());
    let mut told: Vec<&InstanceResult> = rule.worst().filter(|_| is_bad).into_iter().collect();
    for found in rule.failing.iter().filter(|found| is_bad && found.verdict == rule.verdict) {
        let is_new = told.iter().all(|it| broken(it) != broken(found) && Name::of(it) != Name::of(found));
        told.extend(is_new.then_some(found));
    }
    told
}

/// The common part of failures that have probably one cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The missing packets, or the expected and the seen, or the reason, without numbers.
    what: String,
    /// The requirement, if memory or a payload has other bytes: any bug can look like that.
    requirement: Option<String>,
}

impl Name {
    /// Returns the name of the cause that decided the verdict of a rule. Returns `None` if it passed, was skipped, or
    /// is waived.
    pub fn of_rule(rule: &RuleResult) -> Option<Self> {
        distinct(rule).first().copied().map(Self::of)
    }

    fn of(found: &InstanceResult) -> Self {
        if let Some(missing) = missing(found) {
            return Name { what: missing.to_owned(), requirement: None };
        }
        let bytes = found.observations.first().filter(|broken| kind(&broken.seen) == OTHER_BYTES);
        let requirement = bytes.map(|broken| broken.requirement.clone());
        Name { what: without_numbers(&text(found)), requirement }
    }
}

/// Returns the expected and the seen, or the reason.
fn text(found: &InstanceResult) -> String {
    match found.observations.first() {
        Some(broken) => format!("expected {}, seen {}", broken.expectation(), kind(&broken.seen)),
        None => found.reason.split(" (").next().unwrap_or_default().to_owned(),
    }
}

/// Returns what the device did not send, if that is the same for many rules.
fn missing(worst: &InstanceResult) -> Option<&'static str> {
    let (wanted, seen) = match worst.observations.first() {
        Some(broken) if broken.relation == Relation::Absent => return None,
        Some(broken) => (broken.expectation(), broken.seen.as_str()),
        None if worst.reason.contains("sent no NACK") => ("NACK".to_owned(), "nothing"),
        None => {
            let (_, wanted) = worst.reason.split_once("did not get to: ")?;
            let (wanted, seen) = wanted.split_once(" (seen ").unwrap_or((wanted, "nothing"));
            (wanted.to_owned(), seen)
        }
    };
    let (nothing, words) = (seen == "nothing", |text: &str, word: &str| {
        text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word)
    });
    let no_error = nothing || words(seen, "OK") || seen.starts_with("ACK") && !seen.contains("RESPONSE");
    let wants_code = wanted.starts_with("the return code") && !words(&wanted, "OK");
    if nothing && (wanted.starts_with("NACK") || wanted.starts_with("a NACK") || words(&wanted, "refusal")) {
        Some("no NACK")
    } else if no_error && (wants_code || words(&wanted, "error")) {
        Some("no error response")
    } else if nothing
        && (wanted.starts_with("an ACK") || wanted.starts_with("the end of the context"))
        && ends_with_control(&worst.ladder)
    {
        Some("no answer to a control packet")
    } else {
        None
    }
}

/// Returns whether the last packet of a trace is a control packet of the suite.
fn ends_with_control(ladder: &Ladder) -> bool {
    let packets = ladder.entries.iter().rev().map(|step| &step.entry);
    match packets.into_iter().find(|entry| matches!(entry, Entry::Sent(_) | Entry::Received(_))) {
        Some(Entry::Sent(wire)) => matches!(Uet::parse_lax(&wire.bytes).0.pds, Some(Pds::Control(_))),
        _ => false,
    }
}

/// Returns the name of a packet and its error instead of its summary, and neither bytes of memory nor numbers of
/// packets; other values as they are.
fn kind(seen: &str) -> String {
    match seen.split_once(" PSN ") {
        Some((kind, rest)) if !kind.contains(' ') => match error_code(rest) {
            Some(code) => format!("{kind} {code}"),
            None => kind.into(),
        },
        _ if seen.starts_with("no answer to packet") => "no answer".into(),
        _ if seen.contains("the control channel: ") => "no answer of its control channel".into(),
        _ if seen.starts_with("it ended after ") => "it ended".into(),
        _ if seen.starts_with("0x") && seen.contains(" instead of ") => OTHER_BYTES.into(),
        _ => seen.into(),
    }
}

/// Returns the code of the error response in the summary of a packet, if there is one.
fn error_code(summary: &str) -> Option<&str> {
    let (_, response) = summary.split_once(" UET_RESPONSE ")?;
    let code = response.split([' ', ',']).next()?;
    (!matches!(code, "OK" | "NULL")).then_some(code)
}

/// Replaces numbers by N, because those of one cause differ from rule to rule and from run to run.
fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        // Part of a name, such as `ACK_CC2`, ends with the name.
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let in_name = before.ends_with(is_part);
        let length = if in_name { end_of(number, is_part) } else { length_of_number(number) };
        plain.push_str(before);
        plain.push_str(if in_name { &number[..length] } else { "N" });
        rest = &number[length..];
    }
    plain + rest
}

/// Returns the length of the number at the begin of a text: `17`, `0x4001`, `10s`, or `22.5`.
fn length_of_number(text: &str) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let whole = end_of(text, is_part);
    let fraction =
        text[whole..].strip_prefix('.').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    fraction.map_or(whole, |fraction| whole + 1 + end_of(fraction, is_part))
}

/// Returns where the characters at the begin of a text end.
fn end_of(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !is_part(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use uet_conformance::{LadderStep, Observation, Phase, Played, Tally, Wire};

    /// Returns a rule whose only failing instance expected and saw this. Without an observation, it is inconclusive.
    fn rule(id: &str, expected: &str, seen: Option<&str>) -> RuleResult {
        let observation = |seen: &str| Observation {
            requirement: "PDS-CTL-001".into(),
            what: expected.into(),
            relation: Relation::Present,
            expected: String::new(),
            seen: seen.into(),
            tolerance: None,
            from: None,
            packet: 1,
            request: None,
            held: false,
        };
        let verdict = if seen.is_some() { Verdict::Fail } else { Verdict::Inconclusive };
        let worst = InstanceResult {
            instance: id.into(),
            verdict,
            requirements: Vec::new(),
            reason: expected.into(),
            declined: false,
            recorded: Vec::new(),
            read: Default::default(),
            set: Default::default(),
            observations: seen.map(observation).into_iter().collect(),
            at_packet: None,
            capture: None,
            trace: None,
            rerun: String::new(),
            liveness: Default::default(),
            attempts: 1,
            replayed: false,
            duration_ns: 0,
            sequence: None,
            corrections: Default::default(),
            ladder: Ladder::default(),
        };
        RuleResult {
            id: id.into(),
            group: String::new(),
            verdict,
            requirements: Vec::new(),
            reason: worst.reason.clone(),
            instances: Tally::default(),
            declined: false,
            played: Played::default(),
            failing: vec![worst],
            attempts: 1,
            passed_later: Vec::new(),
            duration_ns: 0,
            waived: None,
            known: false,
            not_in_baseline: false,
        }
    }

    fn named(expected: &str, seen: Option<&str>) -> String {
        Name::of_rule(&rule("a/rule", expected, seen)).unwrap().what
    }

    #[test]
    fn missing_answers_are_one_cause_whatever_their_codes() {
        let success = "ACK_CC PSN 7 CACK 7 0x9 > 0x8 UET_DEFAULT_RESPONSE OK, beside 1 ACK_CC";
        for (expected, seen, name) in [
            ("NACK INV_DPDCID for 2555675615", Some("nothing"), "no NACK"),
            ("NACK INVALID_SYN for 7", Some("nothing"), "no NACK"),
            ("did not get to: a refusal", None, "no NACK"),
            ("the device sent no NACK", None, "no NACK"),
            ("a response with an error", Some(success), "no error response"),
            ("a response with an error", Some("ACK PSN 7 CACK 7 0x9 > 0x8"), "no error response"),
            ("the return code BAD_MKEY", Some("OK"), "no error response"),
            ("the ACK carries the error", Some(success), "no error response"),
            ("did not get to: an error for 7", None, "no error response"),
        ] {
            assert_eq!(named(expected, seen), name, "{expected}");
        }
        for (expected, seen) in [
            ("NACK INV_DPDCID for 7", "NACK INVALID_SYN PSN 7"),
            ("the return code BAD_MKEY", "BAD_PID"),
            ("the return code OK", "nothing"),
            ("an ACK that names 7", "nothing"),
        ] {
            let name = named(expected, Some(seen));
            assert!(name.starts_with(&format!("expected {}", without_numbers(expected))), "{name}");
        }
    }

    #[test]
    fn unanswered_control_packet_is_seen_in_the_trace() {
        let step = |entry| LadderStep { at: Duration::ZERO, phase: Phase::default(), entry };
        let wire = |bytes: &[u8]| {
            let [src, dst] = [1, 2].map(|end| [10, 0, 0, end].into());
            Wire::new(src, dst, 0, bytes.to_vec())
        };
        let noop = uet_wire::pds::Control::build(uet_wire::registry::CtlType::NOOP).done().unwrap();
        let noop = uet_wire::UetBuf::new(noop).to_bytes();
        for (expected, seen) in
            [("an ACK that names 7", Some("nothing")), ("did not get to: the end of the context", None)]
        {
            let mut rule = rule("a/rule", expected, seen);
            rule.failing[0].ladder.entries.push(step(Entry::Sent(wire(&noop))));
            rule.failing[0].ladder.entries.push(step(Entry::Note("a step".into())));
            assert_eq!(Name::of_rule(&rule).unwrap().what, "no answer to a control packet");
            rule.failing[0].ladder.entries.push(step(Entry::Sent(wire(&[0x10; 16]))));
            assert_ne!(Name::of_rule(&rule).unwrap().what, "no answer to a control packet");
        }
    }

    #[test]
    fn silence_is_one_cause_whatever_the_packet() {
        let silent = |packets| format!("no answer to {packets}, and none to 4 plain writes after a reset");
        let name = |packets| named("that the device goes on to answer", Some(&silent(packets)));
        assert_eq!(name("packet 3"), "expected that the device goes on to answer, seen no answer");
        assert_eq!(name("packet 3"), name("packets 12 to 17"));
    }

    #[test]
    fn numbers_of_a_run_are_left_out() {
        assert_eq!(without_numbers("NACK NO_BITMAP for 4043746305"), "NACK NO_BITMAP for N");
        assert_eq!(without_numbers("0 bytes, 0x4001 and WIRE_1234"), "N bytes, N and WIRE_1234");
        assert_eq!(without_numbers("from 60 µs to 22.5 ms, in 10s."), "from N µs to N ms, in N.");
        assert_eq!(
            without_numbers("127.0.0.73 is no address, ACK_CC2 at 1"),
            "N.N is no address, ACK_CC2 at N"
        );
        assert_eq!(without_numbers(""), "");
    }

    #[test]
    fn cause_has_the_values_of_its_first_rule() {
        let mut failed = ["1", "40", "4096"].map(|all| rule(all, "modified_length 16", Some(all))).to_vec();
        failed.push(rule("other", "message_offset 0", Some("7")));
        let causes = of_rules(&failed);
        let found: Vec<_> = causes.iter().map(|cause| (cause.what.as_str(), cause.rules.len())).collect();
        assert_eq!(
            found,
            [("expected modified_length 16, seen 1", 3), ("expected message_offset 0, seen 7", 1)]
        );
    }

    #[test]
    fn end_of_the_device_is_the_first_cause() {
        let mut failed = ["1", "40"].map(|all| rule(all, "modified_length 16", Some(all))).to_vec();
        failed.push(rule("last", "that the device goes on", Some("it ended: exit status: 7")));
        failed[2].failing[0].liveness = Liveness::Ended;
        let causes = of_rules(&failed);
        let counts: Vec<usize> = causes.iter().map(|cause| cause.rules.len()).collect();
        assert_eq!((causes[0].what.contains("the device goes on"), counts), (true, vec![1, 2]));
    }

    #[test]
    fn different_requirements_share_no_wrong_bytes() {
        let of = |seen| {
            let mut failed = ["1", "2"].map(|id| rule(id, "an ACK of 7", Some(seen)));
            failed[1].failing[0].observations[0].requirement = "PDS-ACK-001".into();
            of_rules(&failed).len()
        };
        assert_eq!((of("0x1 instead of 0x2 at byte 8"), of("nothing")), (2, 1));
    }

    #[test]
    fn another_requirement_of_a_rule_is_a_cause_too() {
        let mut failed = ["1", "40"].map(|all| rule(all, "modified_length 16", Some(all))).to_vec();
        let [mut other, mut same] = [(); 2].map(|()| failed[1].failing[0].clone());
        other.observations[0] = Observation {
            requirement: "SES-ERR-001".into(),
            what: "the return code BAD_MKEY".into(),
            seen: "BAD_PID".into(),
            ..other.observations[0].clone()
        };
        same.observations[0].seen = "4096".into();
        failed[1].failing.extend([other, same]);
        let causes = of_rules(&failed);
        let counts: Vec<usize> = causes.iter().map(|cause| cause.rules.len()).collect();
        assert_eq!((counts, &*causes[1].requirements), (vec![2, 1], &["SES-ERR-001"][..]));
    }

    #[test]
    fn packet_is_named_by_its_kind() {
        assert_eq!(kind("ACK_CC PSN 7 CACK 7"), "ACK_CC");
        assert_eq!(kind("ACK PSN 7 CACK 6 0x1 > 0x2 REQ_CLEAR UET_RESPONSE BAD_MKEY"), "ACK BAD_MKEY");
        assert_eq!(kind("ACK PSN 7 CACK 7 0x1 > 0x2 UET_RESPONSE OK 16 B"), "ACK");
        assert_eq!(kind("0x12 instead of 0x34 at byte 8"), "other bytes");
        assert_eq!(kind("UET_DEFAULT_RESPONSE OK"), "UET_DEFAULT_RESPONSE OK");
    }
}
