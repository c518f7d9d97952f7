//! Reports of a run: text, JUnit XML and web page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::{Duration, SystemTime};
use uet_cli::paint::Paint;
use uet_cli::report::{html, junit, text};
use uet_conformance::{
    Baseline, Circumstances, DeviceStatement, Entry, InstanceResult, JudgedRow, Ladder, LadderStep,
    Obligation, Observation, PacketFinding, Packets, Phase, ProfileResult, Relation, RowVerdict, RuleResult,
    RunResult, Tally, Verdict, Waiver, Wire,
};
use uet_packet_io::hex;
use uet_wire::Version;

pub(crate) fn wire(digits: &str) -> Wire {
    let (src, dst) = ("10.0.1.1".parse().unwrap(), "10.0.0.1".parse().unwrap());
    let bytes = hex::decode(digits).unwrap();
    Wire::new(src, dst, 7, bytes)
}

fn step(micros: u64, entry: Entry) -> LadderStep {
    LadderStep { at: Duration::from_micros(micros), phase: Phase::default(), entry }
}

/// Returns the result of a rule with this verdict, with a request and its answer.
fn rule(id: &str, verdict: Verdict) -> RuleResult {
    let broken = Observation {
        requirement: "PDS-ACK-004".into(),
        what: "an ACK <at once>".into(),
        relation: Relation::Present,
        expected: String::new(),
        seen: "a NACK & no ACK".into(),
        tolerance: None,
        from: None,
        packet: 2,
        request: None,
        held: false,
    };
    let failed = verdict.is_failure();
    let ladder = Ladder {
        entries: vec![
            step(9, Entry::Note("control: expose_region".into())),
            step(10, Entry::Sent(wire("10600000001234560000400180010000"))),
            step(30, Entry::Received(wire("50000f00001234564001800100000000"))),
        ],
    };
    let reason = match verdict {
        Verdict::Pass => "",
        Verdict::Skipped => "the link cannot trim",
        Verdict::Inconclusive => "did not get to: an open context",
        _ => "PDS-ACK-004: expected an ACK <at once>, seen a NACK & no ACK",
    };
    let requirements = vec!["PDS-ACK-004".into()];
    let bad = !matches!(verdict, Verdict::Pass | Verdict::Skipped);
    let worst = InstanceResult {
        instance: id.into(),
        verdict,
        requirements: requirements.clone(),
        reason: reason.into(),
        recorded: vec!["PDS-ACK-004".into()],
        declined: false,
        read: Default::default(),
        set: Default::default(),
        sequence: None,
        corrections: Default::default(),
        observations: if failed { vec![broken] } else { Vec::new() },
        at_packet: failed.then_some(2),
        capture: failed.then(|| "failures/x.pcapng".into()),
        trace: None,
        rerun: format!("uet run --id {id} --seed 1"),
        liveness: Default::default(),
        attempts: 1,
        replayed: false,
        duration_ns: 1_500_000,
        ladder,
    };
    RuleResult {
        id: id.into(),
        group: id.split('/').next().unwrap().into(),
        verdict,
        requirements,
        reason: reason.into(),
        declined: false,
        played: Default::default(),
        instances: Tally { pass: usize::from(!bad), fail: usize::from(bad), ..Tally::default() },
        failing: if bad { vec![worst] } else { Vec::new() },
        attempts: 1,
        passed_later: Vec::new(),
        duration_ns: 1_500_000,
        waived: None,
        known: false,
        not_in_baseline: false,
    }
}

pub(crate) fn result() -> RunResult {
    let device = json!({"protocol": 1, "name": "nic", "version": "7", "specification": "1.0.3", "capabilities": ["rud"],
        "parameters": {"payload_mtu": 4096}, "link": {"kind": "udp", "addr": "127.0.0.1", "port": 4793}});
    let waived = RuleResult { waived: Some("known to all".into()), ..rule("close/waived", Verdict::Fail) };
    let finding = PacketFinding {
        requirement: Some("WIRE-SES-001".into()),
        count: 3,
        rule: "ack/requested".into(),
        at_packet: 2,
        field: "ses.version".into(),
        message: "WIRE-SES-001 error: ses.version is 1: The version of a SES header is 0".into(),
        rerun: "uet run --id ack/requested --seed 1".into(),
        level: None,
        waived: None,
        known: false,
    };
    RunResult {
        schema: uet_conformance::SCHEMA,
        circumstances: Circumstances::default(),
        not_run: 0,
        suite: "0.1.0".into(),
        catalogue: "0123456789abcdef".into(),
        specification: "1.0.3".into(),
        device: "nic 7".into(),
        seed: 1,
        statement: DeviceStatement {
            device: serde_json::from_value(device).unwrap(),
            of: "stepping 3".into(),
            provisional: true,
            beyond: vec!["nscc".into()],
            disclaims: vec![],
            waivers: vec![
                Waiver { id: "close/waived".into(), reason: "known to all".into() },
                Waiver { id: "PDS-ACK-001".into(), reason: "of another time".into() },
            ],
        },
        packets: Packets { judged: 12, findings: vec![finding], ..Packets::default() },
        profile: None,
        rules: vec![
            rule("ack/requested", Verdict::Pass),
            rule("ack/wrong", Verdict::Fail),
            rule("ack/at-times", Verdict::Flaky),
            rule("close/open", Verdict::Inconclusive),
            rule("close/trim", Verdict::Skipped),
            waived,
        ],
        random: None,
        stopped: None,
    }
}

#[test]
fn as_text() {
    let mut out = Vec::new();
    let mut result = result();
    let before = json!({"rules": [{"id": "ack/requested", "verdict": "fail"}, {"id": "close/open", "verdict": "inconclusive"}]});
    let baseline: Baseline = serde_json::from_value(before).unwrap();
    let changes = baseline.compare(&mut result);
    for rule in &result.rules {
        text::line(&mut out, rule, Paint::default()).unwrap();
    }
    let spec = Version::V1_0_3.spec();
    text::failure(&mut out, &result.rules[1], spec, Paint::default()).unwrap();
    text::failure(&mut out, &result.rules[3], spec, Paint::default()).unwrap();
    text::summary(&mut out, &result, Some(&changes), Paint::default()).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn packet_of_a_failure_is_judged_by_the_version_of_the_run() {
    for (version, is_wrong) in [("1.0.1", false), ("1.0.3", true)] {
        let mut result = RunResult { specification: version.into(), ..result() };
        // NACK code 3 is TRIMMED_ACK, which 1.0.3 removes.
        let nack = Entry::Received(wire("50000300001234564001800100000000"));
        result.rules[1].failing[0].ladder.entries[2].entry = nack;
        for report in [junit::xml(&result).unwrap(), html::page(&result, Path::new("report.html"))] {
            assert_eq!(report.contains("WIRE-NACK-001: pds.nack_code is 3"), is_wrong, "{version}: {report}");
        }
    }
}

#[test]
fn as_junit() {
    insta::assert_snapshot!(junit::xml(&result()).unwrap());
}

/// Lists the elements of a page with their classes, without texts. Repeated elements appear once.
#[test]
fn each_report_has_the_features_of_a_profile() {
    let row = |id: &str, feature: &str, verdict| JudgedRow {
        id: id.into(),
        feature: feature.into(),
        obligation: Obligation::Mandatory,
        verdict,
        claimed: false,
        rules: vec!["ack/requested".into()],
    };
    let rows = vec![
        row("PDS-2", "ROD <b>", RowVerdict::Missing),
        row("SES-6", "write", RowVerdict::Pass),
        JudgedRow { obligation: Obligation::Excluded, ..row("X-1", "RUDI", RowVerdict::Excluded) },
    ];
    let profile = Some(ProfileResult { name: "AI Base".into(), rows });
    let result = RunResult { profile, rules: vec![rule("ack/requested", Verdict::Pass)], ..result() };
    let page = html::page(&result, Path::new("report.html"));
    assert!(page.contains("AI Base: 1 of 2 mandatory features pass"));
    assert!(page.contains("<td>X-1<td>RUDI<td>excluded<td>excluded<td>1</tr>"), "{page}");
    assert!(page.contains("<td>PDS-2<td>ROD &lt;b&gt;<td>mandatory<td>missing<td>1</tr>"), "{page}");
    let xml = junit::xml(&result).unwrap();
    assert!(
        xml.contains(r#"<testsuite name="AI Base" tests="3" skipped="0" errors="0" failures="2">"#),
        "{xml}"
    );
    let mut out = Vec::new();
    text::summary(&mut out, &result, None, Paint::default()).unwrap();
    let out = String::from_utf8(out).unwrap();
    let lines = "AI Base: 1 of 2 mandatory features pass\n  PDS-2   ROD <b>: mandatory, not claimed\n  \
                 X-1     RUDI: excluded, and claimed\n";
    assert!(out.contains(lines), "{out}");
}

fn outline(page: &str) -> String {
    let body = &page[page.find("<main>").unwrap()..page.find("</main>").unwrap()];
    let mut lines: Vec<String> = Vec::new();
    for tag in body.split('<').skip(1).filter(|tag| !tag.starts_with('/')) {
        let tag = tag.split('>').next().unwrap();
        let name = tag.split([' ', '/']).next().unwrap();
        // Rows and what they contain depend on the catalogue.
        if ["tr", "td", "th", "code", "br", "dt", "dd", "i", "p", "b"].contains(&name) {
            continue;
        }
        let value = |key: &str| {
            let (_, value) = tag.split_once(&format!(" {key}="))?;
            let value = match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => value.split(' ').next(),
            };
            value.map(|value| format!(" {key}={value}"))
        };
        let line = format!("{name}{}{}", value("id").unwrap_or_default(), value("class").unwrap_or_default());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

#[test]
fn page_has_a_summary_failures_with_ladders_and_lists() {
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let mut result = result();
    let late = Observation {
        what: "time to the ACK".into(),
        relation: Relation::AtMost,
        expected: "2 ms".into(),
        seen: "3 ms".into(),
        ..result.rules[1].failing[0].observations[0].clone()
    };
    result.rules[1].failing[0].observations.push(late.clone());
    result.rules[1].failing[0].ladder.entries.push(step(40, Entry::Observed(Box::new(late))));
    let page = html::page_at(&result, Path::new("report.html"), end);
    insta::assert_snapshot!(outline(&page));
    for wanted in [
        "<dt>date<dd>2023-11-14 22:13 UTC",
        "<dt>device<dd>nic 7",
        "<dt>suite<dd>0.1.0",
        "data-search=\"ack/\"",
        "data-fields=\"f0-2\"",
        "class=\"packet from marked refusal\"",
        "x1=\"80.0%\"",
        "PDS-ACK-004: time to the ACK &lt;= 2 ms; seen <b class=broken>3 ms",
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
}

#[test]
fn texts_of_a_device_stay_texts_in_the_page() {
    const HOSTILE: &str = "x\"><script>alert(1)</script><img src=x onerror=alert(2)>";
    let mut result = RunResult { device: HOSTILE.into(), stopped: Some(HOSTILE.into()), ..result() };
    let device = &mut result.statement.device;
    (device.name, device.version, device.specification) = (HOSTILE.into(), HOSTILE.into(), HOSTILE.into());
    device.capabilities.push(HOSTILE.into());
    device.parameters.insert(HOSTILE.into(), HOSTILE.into());
    result.packets.findings[0].message = HOSTILE.into();
    for rule in &mut result.rules {
        (rule.id, rule.group, rule.reason) = (HOSTILE.into(), HOSTILE.into(), HOSTILE.into());
        for found in &mut rule.failing {
            (found.instance, found.reason, found.rerun) = (HOSTILE.into(), HOSTILE.into(), HOSTILE.into());
            (found.capture, found.trace) = (Some(HOSTILE.into()), Some(HOSTILE.into()));
            let seen = Observation {
                requirement: HOSTILE.into(),
                what: HOSTILE.into(),
                relation: Relation::AtMost,
                expected: "2 <b>".into(),
                seen: "3 <b>".into(),
                tolerance: Some(HOSTILE.into()),
                from: Some(HOSTILE.into()),
                packet: 2,
                request: None,
                held: false,
            };
            found.observations = vec![seen.clone()];
            found.ladder.entries.push(step(50, Entry::Observed(Box::new(seen))));
            found.ladder.entries.push(step(50, Entry::Note(HOSTILE.into())));
        }
    }
    let page = html::page(&result, Path::new("report.html"));
    assert!(page.contains("&lt;script&gt;"), "the texts are there");
    for markup in ["<script>alert", "<img", "<b>\"", "2 <b>", "3 <b>", "x\">"] {
        assert!(!page.contains(markup), "{markup}");
    }
}

#[test]
fn as_a_page_that_fetches_nothing() {
    let page = html::page(&result(), Path::new("report.html"));
    for wanted in [
        "By public evidence",
        "an ACK &lt;at once&gt;",
        "a NACK &amp; no ACK",
        "<a href=\"failures/x.pcapng\">",
        "<mark>  2",
        "<tr id=PDS-ACK-004><td><code>PDS-ACK-004</code><td>must<td class=fail>failed",
        "<tr id=WIRE-SES-001><td><code>WIRE-SES-001</code><td>must<td class=fail>failed",
        "waived: known to all",
        "stepping 3 (provisional)",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    for fetched in ["http:", "https:", " src=", "<link", "url(", "@import"] {
        assert!(!page.contains(fetched), "{fetched}");
    }
    // No other script runs, and no page can be fetched.
    let script = page.rsplit_once("<script>").unwrap().1.rsplit_once("</script>").unwrap().0;
    let digest = STANDARD.encode(Sha256::digest(script));
    let policy = format!(
        "<meta http-equiv=content-security-policy content=\"default-src 'none'; base-uri 'none'; form-action 'none'; \
         style-src 'unsafe-inline'; script-src 'sha256-{digest}'\">"
    );
    assert!(page.contains(&policy), "{policy}");
    // Every opened tag is closed.
    for tag in [
        "section", "table", "pre", "details", "svg", "g", "text", "figure", "dl", "a", "main", "style",
        "script", "html", "p", "h2", "h3",
    ] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}
