//! Random settings and results: parsers of files and writers of reports neither panic nor lose their escaping.
//!
//! `UET_FUZZ_SECONDS=1200 cargo test --release -p uet-cli --test all random_inputs` runs each property for so long.

use crate::hostile::{HOSTILE, assert_clean};
use crate::reports::{result, wire};
use fastrand::Rng;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use uet_cli::commands::{configure, corrections, pics, statement};
use uet_cli::paint::Paint;
use uet_cli::report::{html, json, junit, text};
use uet_cli::simulate::settings::Settings;
use uet_conformance::{Baseline, Correction, Corrections, Entry, RunResult, Verdict};
use uet_control::escape_lines;
use uet_emulator::Config;
use uet_wire::{Version, catalogue};

/// Calls a property with random numbers of many seeds, or of new ones for the time that the environment tells.
fn repeat(property: impl Fn(&mut Rng)) {
    let seconds = std::env::var("UET_FUZZ_SECONDS").ok().map(|text| text.parse().unwrap());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut seed = 0;
    while end.map_or(seed < 200, |end| Instant::now() < end) {
        let failed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| property(&mut Rng::with_seed(seed))));
        assert!(failed.is_ok(), "seed {seed}");
        seed += 1;
    }
    println!("{seed} inputs");
}

/// Words that parsers compare, convert or count.
const WORDS: &[&str] = &[
    "0",
    "-1",
    "1e999",
    "nan",
    "-inf",
    "18446744073709551615",
    "18446744073709551616",
    "0x7fffffffffffffff",
    "true",
    "null",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\"",
    "'''",
    "\"\"\"",
    "#",
    "\n",
    "\\u202e",
    "1979-05-27T07:32:00Z",
    "PDS-ACK-001",
    "rud",
    "yes",
    "?",
    "withdrawn",
    "level",
    "must",
    "1us",
    "100Gb/s",
    "0.2..0.8",
    "spine 0 at 1us",
    "\u{202e}",
    "\u{0}",
];

/// Changes some words of a text: removes, doubles, exchanges and replaces them.
fn changed(rng: &mut Rng, text: &str) -> String {
    let at_words = |c: char| !c.is_alphanumeric() && c != '_' && c != '-';
    let mut words: Vec<&str> = text.split_inclusive(at_words).collect();
    for _ in 0..rng.usize(0..6) {
        let place = rng.usize(..words.len());
        let end = rng.usize(..words.len());
        let (known, other) = (WORDS[rng.usize(..WORDS.len())], words[end]);
        match rng.u8(..6) {
            0 if words.len() > 1 => _ = words.remove(place),
            1 => words.insert(place, other),
            2 => words.swap(place, end),
            3 => words.truncate(place + 1),
            4 => words.insert(place, known),
            _ => words[place] = known,
        }
    }
    words.concat()
}

const STATEMENT: &str = "name = 'stepping 3'\nsummary = \"a\\u202e NIC\"\nprovisional = true\nonly = true\nclaims = ['write']\n\
    disclaims = ['nscc']\n[defaults]\nrto_init_time = 5_000_000\n[parameters]\npayload_mtu = 1024\ndscps = [[1, 2, 3, 4]]\n\
    [[regions]]\nkey = '0x7'\njob = 101\nprocess = 1\nlength = 4096\n[[waivers]]\nid = 'PDS-ACK-001'\nreason = \"known\\u202e\"\n";
const CONFIG: &str = "rto_init_time = 1000\ncongestion = \"none\"\nseed = 4\nstart_psn = 7\ndenied = 'BAD_ADDR'\n\
    drop_threshold = 2.5\nack_on_ecn = false\npayload_mtu = 2048\n";
const SCENARIO: &str = "pattern = 'incast'\nsenders = 15\nsize = '2MB'\ntopology = 'leaf-spine'\nleaves = 4\nspines = 2\n\
    rate = '400Gb/s'\nlatency = '1us'\necn = '0.2..0.8'\nuntil = '1s'\nfail = ['spine 0 at 100us', 'leaf 1 uplink 0 at 1ms until 2ms']\n\
    trimming = true\ntrim-at = 1.5\npaths = 'bitmap'\nfast-loss = 64\n";
const CORRECTIONS: &str = "[[requirements]]\nid = 'PDS-ACK-001'\nlevel = 'should'\nsentence = 'x'\nreason = \"y\\u202e\"\n\
    [[requirements]]\nid = 'PDS-ACK-002'\nwithdrawn = true\nreason = 'z'\n";
const FORM: &str = "[implementation]\nvendor = \"a\\u202e\"\n[capabilities]\nwrite = 'yes'\nread = '?'\n[requirements]\n\
    PDS-ACK-001 = 'n/a'\nPDS-ACK-002 = 'no'\n";

/// Checks the error of a parser as the terminal shows it.
fn refused(what: &str, error: io::Error) {
    assert!(!error.to_string().is_empty());
    assert_clean(what, &escape_lines(&error.to_string()));
}

#[test]
fn settings_are_read_or_refused() {
    let path = Path::new("x.toml");
    repeat(|rng| {
        let text = changed(rng, STATEMENT);
        match statement::parse(path, &text) {
            Ok(read) => {
                let again = serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
                assert_eq!(read, again);
                let texts = [&read.name, &read.summary].into_iter().chain(&read.claims);
                texts.for_each(|shown| assert_clean(&text, shown));
                read.waivers.iter().for_each(|waiver| assert_clean(&text, &waiver.reason));
            }
            Err(error) => refused(&text, error),
        }
        let (text, mut config) = (changed(rng, CONFIG), Config::default());
        match configure(path, &text, &mut config) {
            Ok(()) => {
                let mut again = Config::default();
                config.get().iter().for_each(|(name, value)| again.set(name, value).unwrap());
                assert_eq!(again, config, "{text}");
            }
            Err(error) => refused(&text, error),
        }
        let text = changed(rng, SCENARIO);
        match Settings::parse(&text).and_then(|settings| settings.scenario()) {
            Ok(scenario) => assert_eq!(scenario.check(), Ok(()), "{text}"),
            Err(error) => refused(&text, error),
        }
        let text = changed(rng, CORRECTIONS);
        match corrections::parse(path, &text) {
            Ok(Corrections(read)) => read.iter().for_each(|one| assert_clean(&text, &one.to_string())),
            Err(error) => refused(&text, error),
        }
        let text = changed(rng, FORM);
        match pics::parse(path, &text) {
            Ok(form) => form.implementation.values().for_each(|shown| assert_clean(&text, shown)),
            Err(error) => refused(&text, error),
        }
    });
}

/// Returns a text of a device, as the control channel hands it on.
fn told(rng: &mut Rng) -> String {
    let parts = [
        "<zz>",
        "</script>",
        "]]>",
        "&#x1b;",
        "&amp",
        "\"",
        "'",
        "\u{fffe}",
        "\u{ffff}",
        "\u{10ffff}",
        "\n",
        "ab",
        "",
        HOSTILE,
    ];
    let text: String = (0..rng.usize(0..5)).map(|_| parts[rng.usize(..parts.len())]).collect();
    uet_control::escape(&text).into_owned()
}

/// Returns a result with random verdicts, texts and packets.
fn random_result(rng: &mut Rng) -> RunResult {
    let mut result = result();
    result.device = told(rng);
    result.statement.of = told(rng);
    result.statement.beyond = vec![told(rng)];
    result.statement.waivers.iter_mut().for_each(|waiver| waiver.reason = told(rng));
    result.packets.findings.iter_mut().for_each(|finding| finding.message = told(rng));
    if rng.bool() {
        result.stopped = Some(told(rng));
        result.not_run = rng.usize(..);
    }
    if rng.bool() {
        result.circumstances.corrections = Corrections(vec![Correction {
            requirement: catalogue::ALL[rng.usize(..catalogue::ALL.len())],
            level: None,
            sentence: Some(told(rng)),
            withdrawn: false,
            reason: told(rng),
        }]);
    }
    let longest = rng.usize(1..80);
    for rule in &mut result.rules {
        rule.verdict = Verdict::ALL[rng.usize(..Verdict::ALL.len())];
        (rule.reason, rule.duration_ns) = (told(rng), rng.u64(..));
        rule.waived = rng.bool().then(|| told(rng));
        for found in &mut rule.failing {
            (found.verdict, found.reason, found.rerun) = (rule.verdict, told(rng), told(rng));
            found.at_packet = rng.bool().then(|| rng.usize(..4));
            found.observations.iter_mut().for_each(|one| (one.seen, one.expected) = (told(rng), told(rng)));
            for step in &mut found.ladder.entries {
                step.at = Duration::from_nanos(rng.u64(..));
                let mut packet = wire("10");
                packet.bytes = (0..longest).map(|_| rng.u8(..)).collect();
                step.entry = match rng.u8(..4) {
                    0 => Entry::Note(told(rng)),
                    1 => Entry::Lost(packet),
                    2 => Entry::Sent(packet),
                    _ => Entry::Received(packet),
                };
            }
        }
    }
    result
}

#[test]
fn reports_of_any_result_are_escaped_and_well_formed() {
    repeat(|rng| {
        let mut result = random_result(rng);
        let page = html::page(&result, Path::new("report.html"));
        assert_clean("the page", &page);
        assert!(!page.contains("<zz>"), "a tag of the device");
        let xml = junit::xml(&result).unwrap();
        assert_clean("JUnit", &xml);
        assert!(!xml.contains("<zz>") && !xml.contains(['\u{fffe}', '\u{ffff}']));
        let suites = quick_junit::Report::deserialize_from_str(&xml).unwrap().test_suites;
        let tests = suites.iter().flat_map(|suite| &suite.test_cases);
        assert!(tests.count() >= result.rules.len());
        let lines = json::lines(&result).unwrap();
        assert_clean("JSON", &lines);
        let itself: Baseline = serde_json::from_str(&lines).unwrap();
        let changes = itself.compare(&mut result);
        assert_eq!((changes.new, changes.mended, changes.lost), Default::default(), "against itself");
        let other: Baseline = serde_json::from_str(&json::lines(&random_result(rng)).unwrap()).unwrap();
        let changes = other.compare(&mut result);
        let mut out = Vec::new();
        result.rules.iter().for_each(|rule| text::line(&mut out, rule, Paint::default()).unwrap());
        for rule in &result.rules {
            text::failure(&mut out, rule, Version::V1_0_3.spec(), Paint::default()).unwrap();
        }
        text::summary(&mut out, &result, Some(&changes), Paint::default()).unwrap();
        assert_clean("text", &String::from_utf8(out).unwrap());
    });
}
