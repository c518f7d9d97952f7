//! `uet run`, against the NIC that is built in.

mod common;

use common::uet;
use serde_json::Value;

#[test]
fn a_line_for_each_case_and_a_summary() {
    let run = uet(&["run", "--group", "ack"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let mut lines = run.out.lines();
    let first: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(first, ["ack/asked-for", "pass"]);
    assert!(lines.next_back().unwrap().ends_with("seed 1)"), "{}", run.out);
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let result = |seed: &str| {
        let run = uet(&["run", "--id", "PDS-ACK-004", "--seed", seed, "--format", "json"]);
        assert_eq!(run.code, 0, "{}", run.err);
        serde_json::from_str::<Value>(&run.out).unwrap()
    };
    assert_eq!(result("5"), result("5"));
    assert_ne!(result("5")["cases"][0]["ladder"], result("6")["cases"][0]["ladder"]);
    assert_eq!(result("5")["cases"][0]["verdict"], "pass");
    assert!(result("5")["device"].as_str().unwrap().starts_with("uet-emulator "));
}

#[test]
fn a_device_that_cannot_be_heard_leaves_all_open() {
    let run = uet(&["run", "--id", "ack/asked-for", "--impair", "drop from 10.0.0.1"]);
    assert_eq!(run.code, 3);
    assert!(
        run.out.contains("inconclusive") && run.out.contains("RUD_REQ"),
        "with what had passed: {}",
        run.out
    );
    assert!(
        run.out.contains("again: uet run --impair 'drop from 10.0.0.1' --id ack/asked-for --seed 1"),
        "{}",
        run.out
    );
}

#[test]
fn what_is_asked_for_must_exist() {
    for (args, said) in [
        (["--id", "ack/asked-fro"], "did you mean ack/asked-for"),
        (["--group", "nonsense"], "there is no group 'nonsense'"),
        (["--impair", "drop request x"], "at 'x' (character 14): expected a percentage"),
        (["--timeout-scale", "NaN"], "a number from"),
    ] {
        let run = uet(&[&["run"], &args[..]].concat());
        assert_eq!(run.code, 2, "{args:?}");
        assert!(run.err.contains(said), "{args:?}: {}", run.err);
    }
}

#[test]
fn what_passed_can_be_looked_at() {
    let file = common::file("run.pcapng", b"");
    let run = uet(&["run", "--id", "ack/asked-for", "--capture", &file]);
    assert_eq!(run.code, 0, "{}", run.err);
    let run = uet(&["decode", "--format", "json", &file]);
    assert_eq!(run.code, 0, "no packet of a case that sends good ones is bad: {}", run.out);
    let packets: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> =
        packets.iter().map(|packet| packet["names"]["pds.type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["RUD_REQ", "ACK_CC", "RUD_REQ", "ACK_CC"]);
    assert_eq!(packets[1]["fields"]["ip.dscp"], 8, "ACKs go in the high place of their class");
}

/// The one case that asks for an ACK, on a network that loses the second.
const LOSING: [&str; 4] = ["--id", "ack/asked-for", "--impair", "drop ack 2..9"];

fn json(args: &[&str]) -> Value {
    let run = uet(&[&["run", "--format", "json"], args].concat());
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err))
}

#[test]
fn a_failure_says_what_was_wanted_what_came_and_how_to_see_it_again() {
    let run = uet(&[&["run"], &LOSING[..]].concat());
    assert_eq!(run.code, 1);
    assert!(
        run.out.starts_with("ack/asked-for  ") && run.out.contains("  fail  PDS-ACK-004: expected"),
        "{}",
        run.out
    );
    // The command is the whole of it.
    let again = run.out.lines().find_map(|line| line.trim().strip_prefix("again: ")).unwrap();
    assert_eq!(again, "uet run --impair 'drop ack 2..9' --id ack/asked-for --seed 1");
}

#[test]
fn a_case_as_json_has_the_keys_that_scripts_know() {
    let result = json(&LOSING);
    let keys: Vec<&String> = result["cases"][0].as_object().unwrap().keys().take(11).collect();
    assert_eq!(
        keys,
        [
            "id",
            "group",
            "verdict",
            "requirements",
            "reason",
            "at_packet",
            "expected",
            "seen",
            "capture",
            "rerun",
            "duration_ns"
        ]
    );
    let case = &result["cases"][0];
    assert_eq!(case["verdict"], "fail");
    assert_eq!(case["requirements"], serde_json::json!(["PDS-ACK-004"]));
    assert_eq!(case["at_packet"], 3);
    assert_eq!(case["seen"], "nothing");
    assert_eq!(case["capture"], Value::Null);
    for key in ["suite", "catalogue", "seed", "statement", "device"] {
        assert!(!result[key].is_null(), "{key}");
    }
    assert_eq!(result["catalogue"].as_str().unwrap().len(), 16);
    assert_eq!(result["statement"]["name"], "uet-emulator");
}

#[test]
fn each_failure_has_its_packets_in_a_file() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("failures");
    let _ = std::fs::remove_dir_all(&directory);
    let result = json(&[&LOSING[..], &["--capture", directory.to_str().unwrap()]].concat());
    let file = result["cases"][0]["capture"].as_str().unwrap();
    assert!(file.ends_with("ack-asked-for.pcapng"), "{file}");
    let run = uet(&["decode", "--format", "summary", file]);
    assert_eq!(run.out.lines().count(), 3, "{}{}", run.out, run.err);
    // A pass leaves none.
    let result = json(&["--id", "ack/asked-for", "--capture", directory.to_str().unwrap()]);
    assert_eq!(result["cases"][0]["capture"], Value::Null);
}

#[test]
fn only_what_is_worse_than_the_baseline_counts() {
    let failed = json(&LOSING).to_string();
    let baseline = common::file("failed.json", failed.as_bytes());
    let run = uet(&[&["run", "--baseline", &baseline], &LOSING[..]].concat());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("known: ack/asked-for") && run.out.contains("of these 1 known"), "{}", run.out);

    let run = uet(&["run", "--baseline", &baseline, "--id", "ack/asked-for"]);
    assert_eq!(run.code, 0);
    assert!(run.out.contains("mended: ack/asked-for"), "{}", run.out);

    let passed = common::file("passed.json", b"");
    assert_eq!(uet(&["run", "--id", "ack/asked-for", "--json", &passed]).code, 0);
    let run = uet(&[&["run", "--baseline", &passed], &LOSING[..]].concat());
    assert_eq!(run.code, 1);
    assert!(run.out.contains("new: ack/asked-for"), "{}", run.out);

    let other = common::file("no-baseline.json", b"{}");
    let run = uet(&["run", "--id", "ack/asked-for", "--baseline", &other]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("not what `uet run --json` writes"), "{}", run.err);
}

#[test]
fn a_statement_waives_claims_and_disclaims() {
    let waiver = "[[waivers]]\nid = 'pds-ack-004'\nreason = 'mended in the next stepping'\n";
    let waived = common::file("waived.toml", waiver.as_bytes());
    let run = uet(&[&["run", "--statement", &waived], &LOSING[..]].concat());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("(waived: mended in the next stepping)"), "{}", run.out);
    let run = uet(&["run", "--statement", &waived, "--id", "ack/asked-for"]);
    assert!(run.out.contains("no longer needed"), "{}", run.out);

    let other = waiver.replace("pds-ack-004", "PDS-ACK-005");
    let other = common::file("other.toml", other.as_bytes());
    assert_eq!(
        uet(&[&["run", "--statement", &other], &LOSING[..]].concat()).code,
        1,
        "of another requirement"
    );

    let stated =
        common::file("stated.toml", b"name = 'stepping 3'\ndisclaims = ['rud']\nclaims = ['teleport']\n");
    let run = uet(&["run", "--statement", &stated, "--id", "ack/asked-for"]);
    assert_eq!(run.code, 3, "nothing was tested");
    assert!(run.out.contains("the device does not claim 'rud'"), "{}", run.out);
    assert!(run.out.contains("claimed for the device by stepping 3: teleport"), "{}", run.out);

    let wrong = common::file("wrong.toml", b"claim = ['rud']\n");
    let run = uet(&["run", "--statement", &wrong]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("claims"), "says what there is: {}", run.err);
}

#[test]
fn a_profile_says_what_it_wants_and_that_it_is_provisional() {
    let result = json(&["--id", "ack/asked-for", "--profile", "ai-full"]);
    assert_eq!(result["statement"]["provisional"], true);
    assert_eq!(
        result["statement"]["beyond"],
        serde_json::json!([]),
        "the NIC that is built in claims all of it"
    );
    assert_eq!(uet(&["run", "--profile", "ai"]).code, 2);
}

#[test]
fn shards_and_levels_take_away() {
    let all = json(&[])["cases"].as_array().unwrap().len();
    let count = |args: &[&str]| {
        let run = uet(&[&["list", "--format", "json"], args].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        run.out.lines().count()
    };
    assert_eq!(count(&[]), all);
    assert_eq!(count(&["--level", "must"]) + count(&["--level", "should", "--level", "may"]), all);
    let one = json(&["--shard", "1/2"])["cases"].as_array().unwrap().len();
    assert_eq!(one, all.div_ceil(2));
    let run = uet(&["run", "--shard", "3/2"]);
    assert!(run.code == 2 && run.err.contains("write 2/8"), "{}", run.err);
}
