//! `uet doctor`

use super::device::{Device, DeviceArgs};
use super::statement::StatementArgs;
use super::{Listing, Outcome, known};
use crate::paint::{Paint, Plain};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use uet_conformance::receives::room;
use uet_conformance::{
    Dut, DutExt, Entry, Facts, Instance, InstanceResult, Ladder, Liveness, Need, Options, RULES, Rule, Stop,
    Test, Verdict, rule, run_instance, spec_mismatch, with_statement,
};
use uet_control::{
    AddPeer, CallError, Configure, Counters, Link, Parameter, Post, PostKind, Reset, Welcome, pattern,
};
use uet_wire::Spec;
use uet_wire::catalogue::{PDS_ACK_002, PDS_SYN_003, SES_PLACE_001};

/// Check if a device can be tested, and list its limitations
///
/// Prints one line with a verdict and advice for each prerequisite of the suite. The lines cover the control channel,
/// the clocks, the addresses, the link and its features, the memory of the device, and the rules that will be skipped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet doctor --control 127.0.0.1:9000
  uet doctor --dut exec:'python3 nic.py'
  uet doctor --strict --control 127.0.0.1:9000     before a run in CI
  uet doctor --profile writes --control 127.0.0.1:9000
  uet doctor --dut udp://10.0.0.7:4793 --control tcp://10.0.0.7:9000 --local 10.0.0.1,10.0.0.2

Exit codes: 0 done; 1 with --strict if a line says broken; 2 usage, or the device cannot be reached.")]
pub(super) struct Doctor {
    /// Exit with code 1 if something is broken
    #[arg(long)]
    strict: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Listing,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    statement: StatementArgs,
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Ok,
    /// Some rules cannot run or check less.
    Limited,
    /// No rule can run.
    Broken,
}

#[derive(Debug, Serialize)]
struct DoctorLine {
    check: &'static str,
    verdict: Health,
    what: String,
    #[serde(rename = "do", skip_serializing_if = "String::is_empty")]
    todo: String,
}

impl Doctor {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let options =
            Options { statement: self.statement.read()?, spec: self.device.spec, ..Options::default() };
        let mut device = self.device.open(1)?;
        let mut out = io::stdout().lock();
        let paint = Paint::stdout();
        let mut broken = false;
        examine(&mut device, &options, &mut |line| {
            broken |= line.verdict == Health::Broken;
            match self.format {
                Listing::Json => writeln!(out, "{}", serde_json::to_string(&line)?),
                Listing::Text => line.write(&mut out, paint),
            }
        })?;
        Ok(if self.strict && broken { Outcome::Violation } else { Outcome::Ok })
    }
}

impl DoctorLine {
    fn write(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let verdict = match self.verdict {
            Health::Ok => paint.name("ok"),
            Health::Limited => paint.warning("limited"),
            Health::Broken => paint.error("broken"),
        };
        write!(out, "{:<10} {verdict:<8} {}", self.check, Plain(&self.what))?;
        match self.todo.as_str() {
            "" => writeln!(out),
            todo => writeln!(out, "; {todo}"),
        }
    }
}

type Say<'a> = &'a mut dyn FnMut(DoctorLine) -> io::Result<()>;

fn examine(device: &mut Device, options: &Options, say: Say<'_>) -> io::Result<()> {
    prerequisites(&mut with_statement(device.dut(), &options.statement), options.spec, say)?;
    skipped(device.predicted_skips(options)?, say)
}

fn prerequisites(dut: &mut dyn Dut, spec: &'static Spec, say: Say<'_>) -> io::Result<()> {
    control(dut, say)?;
    specification(dut.welcome(), spec, say)?;
    let facts = dut.facts().clone();
    operations(dut, say)?;
    clock(dut, say)?;
    addresses(&facts, say)?;
    let answered = link(dut, spec, say)?;
    if answered {
        if facts.control {
            memory(dut, spec, say)?;
        }
        marks(dut, spec, say)?;
    }
    let claims_entropy = dut.welcome().capabilities.iter().any(|claim| claim == "entropy");
    classes(&facts, claims_entropy, say)
}

/// Names the device and its protocol.
fn greeting(welcome: &Welcome) -> DoctorLine {
    let what = format!("{} {}, protocol {}", welcome.name, welcome.version, welcome.protocol);
    let (verdict, todo) = match welcome.protocol == uet_control::PROTOCOL {
        true => (Health::Ok, String::new()),
        false => (Health::Limited, format!("the suite speaks protocol {}", uet_control::PROTOCOL)),
    };
    DoctorLine { check: "control", verdict, what, todo }
}

/// Explains a run by packets alone.
fn no_control() -> DoctorLine {
    let what = "none: nothing was asked of the device, and nothing resets it".into();
    let todo = "rules that need more than packets are skipped".into();
    DoctorLine { check: "control", verdict: Health::Limited, what, todo }
}

/// Checks the control channel and the operations that every rule needs.
fn control(dut: &mut dyn Dut, say: Say<'_>) -> io::Result<()> {
    let (welcome, present) = (dut.welcome().clone(), dut.facts().control);
    say(if present { greeting(&welcome) } else { no_control() })?;
    let claims = welcome.capabilities.join(" ");
    let (verdict, what, todo) = match claims.as_str() {
        "" => (
            Health::Broken,
            "the device claims no capability",
            "list `capabilities` in the answer to hello (docs/adapter.md)",
        ),
        claims => (Health::Ok, claims, ""),
    };
    say(DoctorLine { check: "claims", verdict, what: what.into(), todo: todo.into() })?;
    for (check, what, todo) in known::strange_capabilities(&welcome.capabilities)
        .map(|what| ("claims", what, "no rule uses it"))
        .chain(
            known::strange_parameters(&welcome.parameters)
                .map(|what| ("parameters", what, "the suite ignores it")),
        )
        .chain(
            Parameter::out_of_range(&welcome.parameters)
                .map(|what| ("parameters", what, "the suite refuses it")),
        )
    {
        say(DoctorLine { check, verdict: Health::Limited, what, todo: todo.into() })?;
    }
    if !present {
        return Ok(());
    }
    let (verdict, what, todo) = match dut.call(Reset {}) {
        Ok(_) => (Health::Ok, "resets all state between rules".to_owned(), ""),
        Err(error) => {
            let todo = match error.is_unsupported() {
                true => "implement it: every rule starts with `reset`",
                false => "every rule starts with `reset`; docs/control-channel.md describes the answer",
            };
            (Health::Broken, error.to_string(), todo)
        }
    };
    say(DoctorLine { check: "reset", verdict, what, todo: todo.into() })?;
    let (verdict, what, todo) = match dut.call(Counters {}) {
        Ok(counted) => (Health::Ok, format!("{} contexts open after a reset", counted.pdcs), ""),
        Err(error) => (Health::Limited, error.to_string(), "the suite skips rules that need counters"),
    };
    say(DoctorLine { check: "counters", verdict, what, todo: todo.into() })
}

/// Calls the operations that many rules need once, as the suite calls them.
fn operations(dut: &mut dyn Dut, say: Say<'_>) -> io::Result<()> {
    let (mut good, mut unsupported, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    let mut note = |name: &'static str, error: Option<CallError>| match error {
        None => good.push(name),
        Some(error) if error.is_unsupported() => unsupported.push(name),
        Some(error) => broken.push(error.to_string()),
    };
    let address = dut.facts().local.first().copied().unwrap_or(dut.facts().device);
    let peer = dut.call(AddPeer { address, port: None, job: 101, process: 1, initiator: 0 });
    let number = peer.as_ref().map_or(0, |peer| peer.peer);
    let has_peer = peer.is_ok();
    note("add_peer", peer.err());
    if has_peer {
        note("post", dut.call(Post::new(PostKind::Write, number, 8)).err());
    }
    note("post_receive", dut.call(room(8)).err());
    note("configure", dut.call(Configure::default()).err());
    let (verdict, what, todo) = match (broken.first(), unsupported.is_empty()) {
        (Some(error), _) => (
            Health::Broken,
            error.clone(),
            "see docs/control-channel.md for its arguments, answer and error codes",
        ),
        (None, true) => (Health::Ok, good.join(" "), ""),
        (None, false) => (
            Health::Limited,
            format!("unsupported: {}", unsupported.join(" ")),
            "rules that need them are skipped while they run",
        ),
    };
    // It may have sent a packet.
    let _ = dut.call(Reset {});
    say(DoctorLine { check: "operations", verdict, what, todo: todo.into() })
}

/// Checks that the device implements the version of the specification selected by `--spec`.
fn specification(welcome: &Welcome, spec: &Spec, say: Say<'_>) -> io::Result<()> {
    let (verdict, what, todo) = match spec_mismatch(welcome, spec) {
        Some(warning) => (Health::Limited, warning, ""),
        None if welcome.specification.is_empty() => (
            Health::Limited,
            "the device names no version".into(),
            "add `specification` to the answer to hello",
        ),
        None => (Health::Ok, format!("version {spec}"), ""),
    };
    say(DoctorLine { check: "spec", verdict, what, todo: todo.into() })
}

/// Measures the delay of the control channel in wall-clock time.
fn clock(dut: &mut dyn Dut, say: Say<'_>) -> io::Result<()> {
    const ROUNDS: u32 = 20;
    if dut.facts().virtual_time {
        let what = "virtual: time passes only while the suite waits".into();
        return say(DoctorLine { check: "clock", verdict: Health::Ok, what, todo: String::new() });
    }
    let mut longest = Duration::ZERO;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        if dut.call(Reset {}).is_err() {
            return Ok(());
        }
        longest = longest.max(begun.elapsed());
    }
    let what = format!("real; the control channel takes up to {:.1} ms", longest.as_secs_f64() * 1e3);
    let (verdict, todo) = match longest > Duration::from_millis(20) {
        true => (Health::Limited, "if rules are flaky, use --timeout-scale 5".into()),
        false => (Health::Ok, String::new()),
    };
    say(DoctorLine { check: "clock", verdict, what, todo })
}

fn addresses(facts: &Facts, say: Say<'_>) -> io::Result<()> {
    let local: Vec<String> = facts.local.iter().map(ToString::to_string).collect();
    let what = format!("the suite uses {}; the device uses {}", local.join(" and "), facts.device);
    let wanted = RULES.iter().flat_map(Rule::all_needs).filter_map(|need| match need {
        Need::Addresses(count) => Some(count),
        _ => None,
    });
    let wanted = wanted.max().unwrap_or(1);
    let (verdict, todo) = match local.len() < wanted {
        true => (
            Health::Limited,
            format!("some rules need {wanted} addresses; name them with --local ADDRESS,..."),
        ),
        false => (Health::Ok, String::new()),
    };
    say(DoctorLine { check: "addresses", verdict, what, todo })
}

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

const WRITES: &[Need] = &[Need::Capability("rud"), Need::Capability("write")];

const MARKS: &[Need] =
    &[Need::Capability("rud"), Need::Capability("write"), Need::Capability("ecn"), Need::SetEcn];

/// Checks for an answer to a first write and measures its delay.
fn link(dut: &mut dyn Dut, spec: &'static Spec, say: Say<'_>) -> io::Result<bool> {
    fn script(t: &mut Test<'_>) -> uet_conformance::Outcome {
        let region = t.region(64)?;
        let pdc = t.initiate();
        t.send(&pdc, &pdc.request(0).write(&region, 0, &[1; 64])?.build()?)?;
        t.expect(PDS_SYN_003, "an answer", PATIENCE, |seen| seen.is_for(&pdc).then_some(()))?;
        Ok(())
    }
    static LINK: Rule = rule("doctor/link", "").checks(&[PDS_SYN_003]).needs(WRITES).run(script);
    let before = dut.call(Counters {}).ok();
    let result = run_instance(dut, &Instance::first(&LINK), spec, 1, 1.0);
    if result.verdict == Verdict::Inconclusive && unanswered(&result.ladder) {
        let grown = before.zip(dut.call(Counters {}).ok()).map(|(before, after)| {
            [after.received.saturating_sub(before.received), after.sent.saturating_sub(before.sent)]
        });
        let facts = dut.facts().clone();
        let port = match dut.welcome().link {
            Link::Udp { port, .. } if facts.control => Some(port),
            _ => None,
        };
        say(silent(&facts, port, grown))?;
        return Ok(false);
    }
    let (verdict, what, todo) = match (result.verdict, round_trip(&result.ladder)) {
        (Verdict::Pass, Some(time)) if time > Duration::from_millis(10) => (
            Health::Limited,
            format!("a write is answered in {:.1} ms", time.as_secs_f64() * 1e3),
            "the suite waits that much longer; times of the device below it cannot be judged",
        ),
        (Verdict::Pass, time) => {
            let micros = time.unwrap_or_default().as_micros();
            (Health::Ok, format!("a write is answered in {micros} microseconds"), "")
        }
        (Verdict::Skipped, _) => (Health::Limited, result.reason.clone(), "the link was not tested"),
        // The control channel refused what the write needs.
        (Verdict::Inconclusive, _) => (Health::Broken, result.reason.clone(), "the link was not tested"),
        _ => (
            Health::Broken,
            match result.observations.first() {
                Some(broken) => format!("a write of 64 bytes is not answered: seen {}", broken.seen),
                None => format!("a write of 64 bytes is not answered: {}", result.reason),
            },
            "check that the device listens at the address of its `link`, that it answers to the suite's address and known port, \
             and that no firewall drops UDP; `uet run --id ack/requested --capture all.pcapng` records the packets",
        ),
    };
    say(DoctorLine { check: "link", verdict, what, todo: todo.into() })?;
    Ok(result.verdict == Verdict::Pass)
}

/// Returns true if the suite sent packets and received none.
fn unanswered(ladder: &Ladder) -> bool {
    let sent = ladder.entries.iter().any(|step| matches!(step.entry, Entry::Sent(_)));
    sent && !ladder.entries.iter().any(|step| matches!(step.entry, Entry::Received(_)))
}

/// Explains a link without any reply. `port` is the one that `hello` states. `grown` says by how much the device's
/// counters of received and sent packets grew. A device may clear them in `reset`, so that only growth tells something.
fn silent(facts: &Facts, port: Option<u16>, grown: Option<[u64; 2]>) -> DoctorLine {
    let port = port.map(|port| format!("; the port of its `link` is {port}")).unwrap_or_default();
    let counted = match grown {
        Some([received, sent]) if sent > 0 => {
            format!("; the device counts {received} received and {sent} sent, so its replies go elsewhere")
        }
        Some([received, _]) if received > 0 => {
            format!("; the device counts {received} received and none sent, so it does not reply")
        }
        _ => String::new(),
    };
    DoctorLine {
        check: "link",
        verdict: Health::Broken,
        what: format!("no reply to a write of 64 bytes that was sent to {}{port}{counted}", facts.device),
        todo: "check that the device listens at the address and port of its `link`, that it replies to the address of \
               the request and the port of `add_peer` or else of its own `link`, never to the source port, and that no \
               firewall drops UDP"
            .into(),
    }
}

/// Returns the time from the suite's packet to the device's.
fn round_trip(ladder: &Ladder) -> Option<Duration> {
    let sent = ladder.entries.iter().find(|step| matches!(step.entry, Entry::Sent(_)))?.at;
    let got = ladder.entries.iter().find(|step| matches!(step.entry, Entry::Received(_)))?.at;
    got.checked_sub(sent)
}

/// Writes this many bytes in one packet, and reads them back over the control channel.
fn write_and_read(t: &mut Test<'_>, length: usize) -> uet_conformance::Outcome {
    let data: Vec<u8> = pattern(7).take(length).collect();
    let region = t.region(length as u64)?;
    let pdc = t.initiate();
    t.request(&pdc, pdc.request(0).write(&region, 0, &data)?)?;
    let (seen, _) = t.need("an ACK of the write", PATIENCE, |seen| seen.acknowledges(&pdc, pdc.psn(0)))?;
    match seen.return_code().filter(|_| seen.is_error()) {
        Some(code) => Err(Stop::Inconclusive(format!("the device refuses the write: {code}"))),
        None => t.expect_memory(SES_PLACE_001, &region, 0, &data),
    }
}

/// Returns why a write was not read back, if it was not.
fn difference(result: &InstanceResult) -> Option<String> {
    let is_compared = result.recorded.iter().any(|id| id == SES_PLACE_001.id);
    match result.verdict {
        Verdict::Pass => None,
        // The packets may break other requirements, which the suite reports.
        Verdict::Fail if result.liveness == Liveness::Alive && is_compared => {
            let broken = result.observations.iter().find(|broken| broken.requirement == SES_PLACE_001.id);
            broken.map(|broken| format!("the write is acknowledged, but read_memory returns {}", broken.seen))
        }
        _ => Some(result.reason.clone()),
    }
}

/// Checks that an acknowledged write has changed the memory of the device, and that a full packet does too.
fn memory(dut: &mut dyn Dut, spec: &'static Spec, say: Say<'_>) -> io::Result<()> {
    static MEMORY: Rule =
        rule("doctor/memory", "").checks(&[SES_PLACE_001]).needs(WRITES).run(|t| write_and_read(t, 64));
    static MTU: Rule = rule("doctor/mtu", "").checks(&[SES_PLACE_001]).needs(WRITES).run(|t| {
        let mtu = t.mtu();
        write_and_read(t, mtu)
    });
    let result = run_instance(dut, &Instance::first(&MEMORY), spec, 1, 1.0);
    let (verdict, what, todo) = match difference(&result) {
        None => (Health::Ok, "read_memory returns the 64 bytes of a write".to_owned(), ""),
        Some(why) if result.verdict == Verdict::Skipped => {
            (Health::Limited, why, "the suite skips rules that read memory")
        }
        // The control channel failed, or the write got no ACK.
        Some(why) if result.verdict == Verdict::Inconclusive => {
            (Health::Broken, format!("a write of 64 bytes is not read back: {why}"), "")
        }
        Some(why) => (
            Health::Broken,
            format!("a write of 64 bytes is not read back: {why}"),
            "place the payload where the key of the request points, and let read_memory read there",
        ),
    };
    say(DoctorLine { check: "memory", verdict, what, todo: todo.into() })?;
    if verdict != Health::Ok {
        return Ok(());
    }
    let told = dut.welcome().parameters.get("payload_mtu").and_then(|mtu| mtu.as_u64());
    let default = || Parameter::find("payload_mtu").and_then(Parameter::number);
    let mtu = told.or_else(default).unwrap_or_default();
    let result = run_instance(dut, &Instance::first(&MTU), spec, 1, 1.0);
    let (verdict, what, todo) = match difference(&result) {
        None => {
            let what = format!("a packet with the payload_mtu of {mtu} bytes arrives");
            match [1024, 2048, 4096, 8192].contains(&mtu) {
                true => (Health::Ok, what, ""),
                false => (Health::Limited, what, "the specification knows 1024, 2048, 4096 and 8192"),
            }
        }
        Some(why) => (
            Health::Broken,
            format!("a write with the payload_mtu of {mtu} bytes is not read back: {why}"),
            "the path must carry payload_mtu and 150 bytes of headers; raise its MTU, or report a smaller payload_mtu",
        ),
    };
    say(DoctorLine { check: "mtu", verdict, what, todo: todo.into() })
}

/// Checks that a congestion mark arrives at the device and its answer arrives here.
fn marks(dut: &mut dyn Dut, spec: &'static Spec, say: Say<'_>) -> io::Result<()> {
    fn script(t: &mut Test<'_>) -> uet_conformance::Outcome {
        let region = t.region(64)?;
        let pdc = t.initiate();
        let write = pdc.request(0).write(&region, 0, &[1; 64])?.build()?;
        t.send_wire(&pdc.marked(&write))?;
        let (_, ack) = t.need("an ACK of a marked write", PATIENCE, |seen| seen.ack())?;
        t.check(PDS_ACK_002, "m of the ACK of a marked write:", true, ack.m());
        Ok(())
    }
    static MARK: Rule = rule("doctor/ecn", "").checks(&[PDS_ACK_002]).needs(MARKS).run(script);
    let result = run_instance(dut, &Instance::first(&MARK), spec, 1, 1.0);
    let (verdict, what, todo) = match result.verdict {
        Verdict::Pass => (Health::Ok, "a marked write is acknowledged with m = 1".into(), ""),
        Verdict::Skipped => (Health::Limited, result.reason, "rules about marks are skipped"),
        Verdict::Inconclusive => (
            Health::Limited,
            "a marked write is not acknowledged".into(),
            "the network may drop marked packets: rules about marks will fail",
        ),
        _ => (
            Health::Limited,
            "a marked write is acknowledged without m".into(),
            "the network clears the mark, or the device ignores it; rules about marks will fail",
        ),
    };
    say(DoctorLine { check: "ecn", verdict, what, todo: todo.into() })
}

fn classes(facts: &Facts, claims_entropy: bool, say: Say<'_>) -> io::Result<()> {
    let mut tell = |check, there: bool, what: &str, todo: &str| {
        let (verdict, todo) = if there { (Health::Ok, "") } else { (Health::Limited, todo) };
        let not = if there { "" } else { "not " };
        say(DoctorLine { check, verdict, what: format!("{what} {not}seen"), todo: todo.into() })
    };
    tell("dscp", facts.see_class, "traffic classes are", "if the device sets them, claim 'dscp'")?;
    let entropy = match claims_entropy {
        true => "the link hides source ports",
        false => "if the source ports of the device tell them, claim 'entropy'",
    };
    tell("entropy", facts.see_entropy, "entropy values are", entropy)
}

/// Counts the rules that will be skipped, by reason.
fn skipped(skips: Vec<(&'static str, String)>, say: Say<'_>) -> io::Result<()> {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    skips.into_iter().for_each(|(id, reason)| reasons.entry(reason).or_default().push(id));
    let (all, left): (usize, usize) = (RULES.iter().count(), reasons.values().map(Vec::len).sum());
    let verdict = match left {
        0 => Health::Ok,
        _ if left == all => Health::Broken,
        _ => Health::Limited,
    };
    let what = format!("{} of {all} can be run", all - left);
    say(DoctorLine { check: "rules", verdict, what, todo: String::new() })?;
    for (reason, ids) in reasons {
        let count = ids.len();
        let first = ids.first().copied().unwrap_or_default();
        let what = format!("{count} skipped: {reason} ({first}{})", if count > 1 { " ..." } else { "" });
        say(DoctorLine { check: "skipped", verdict: Health::Limited, what, todo: String::new() })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_link_names_the_address_and_what_the_device_counted() {
        let facts = Facts::new(&[[127, 0, 0, 1].into()], [127, 0, 0, 9].into());
        let line = |grown| silent(&facts, None, grown).what;
        assert!(line(Some([4, 4])).ends_with("4 received and 4 sent, so its replies go elsewhere"));
        assert!(line(Some([4, 0])).ends_with("none sent, so it does not reply"));
        assert!(line(Some([0, 0])).ends_with("that was sent to 127.0.0.9"));
        let stated = silent(&facts, Some(4800), None).what;
        assert!(stated.ends_with("that was sent to 127.0.0.9; the port of its `link` is 4800"));
    }
}
