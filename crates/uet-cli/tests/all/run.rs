//! `uet run`, against the built-in NIC.

use crate::common;

use common::uet;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

#[test]
fn a_line_for_each_rule_and_a_summary() {
    let run = uet(&["run", "--group", "ack"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let mut lines = run.out.lines();
    let first: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(first, ["ack/requested", "pass"]);
    assert!(lines.next_back().unwrap().ends_with("seed 1)"), "{}", run.out);
}

#[test]
fn equal_seeds_give_equal_results() {
    let result = |seed: &str| {
        let run = uet(&["run", "--id", "PDS-ACK-004", "--seed", seed, "--format", "json"]);
        assert_eq!(run.code, 0, "{}", run.err);
        serde_json::from_str::<Value>(&run.out).unwrap()
    };
    assert_eq!(result("5"), result("5"));
    let output = |seed: &str| uet(&[&["run"], &LOSING[..], &["--seed", seed]].concat()).out;
    assert_eq!(output("5"), output("5"));
    let trace = |seed: &str| {
        output(seed).lines().filter(|line| line.contains("-->")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!trace("5").is_empty());
    assert_ne!(trace("5"), trace("6"));
    assert_eq!(result("5")["rules"][0]["verdict"], "pass");
    assert!(result("5")["device"].as_str().unwrap().starts_with("uet-emulator "));
}

#[test]
fn lost_replies_are_inconclusive() {
    let run = uet(&["run", "--id", "ack/requested", "--family", "4", "--impair", "drop from 10.0.0.1"]);
    assert_eq!(run.code, 3);
    assert!(
        run.out.contains("inconclusive") && run.out.contains("RUD_REQ"),
        "with what had passed: {}",
        run.out
    );
    assert!(
        run.out.contains("again: uet run --impair 'drop from 10.0.0.1' --family 4 --id 'ack/requested["),
        "{}",
        run.out
    );
}

#[test]
fn invalid_arguments_are_refused() {
    for (args, said) in [
        (["--id", "ack/requestde"], "did you mean ack/requested"),
        (["--group", "nonsense"], "there is no group 'nonsense'; `uet list` shows what there is"),
        (["--group", "writ"], "did you mean write? `uet list` shows what there is"),
        (["--capability", "atomik"], "no rule needs the capability 'atomik'; did you mean atomic"),
        (["--impair", "drop request x"], "at 'x' (character 14): expected a percentage"),
        (["--impair", "drop 200%"], "at '200%' (character 6): expected a percentage from 0% to 100%"),
        (["--impair", "delay -5us"], "at '-5us' (character 7): expected a time such as"),
        (["--timeout-scale", "NaN"], "a number from"),
        (["--repeat", "0"], "0 is not in 1.."),
    ] {
        let run = uet(&[&["run"], &args[..]].concat());
        assert_eq!(run.code, 2, "{args:?}");
        assert!(run.err.contains(said), "{args:?}: {}", run.err);
    }
}

#[test]
fn wrong_statement_is_refused_with_place_and_remedy() {
    for (name, text, place, remedy) in [
        ("unknown-key", "name = 'x'\nclams = ['rud']\n", "line 2, column 1", "did you mean claims?"),
        ("single-brackets", "[waivers]\nid = 'ack/type'\n", "line 1, column 1", "such as [[waivers]]"),
        ("singular", "[[waiver]]\nid = 'ack/type'\n", "line 1, column 3", "did you mean waivers?"),
        ("syntax", "claims = [\nrud", "line 2, column", "docs/adapter.md"),
    ] {
        let file = common::file(&format!("statement-{name}.toml"), text.as_bytes());
        let run = uet(&["run", "--id", "ack/requested", "--statement", &file]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{name}");
        for said in [&file, place, remedy] {
            assert!(run.err.contains(said), "{name}: {}", run.err);
        }
    }
}

#[test]
fn captures_of_passed_rules_are_readable() {
    let file = common::file("run.pcapng", b"");
    let run = uet(&["run", "--id", "ack/requested", "--capture", &file]);
    assert_eq!(run.code, 0, "{}", run.err);
    let run = uet(&["decode", "--format", "json", &file]);
    assert_eq!(run.code, 0, "no packet of a rule that sends good ones is bad: {}", run.out);
    let packets: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> =
        packets.iter().map(|packet| packet["names"]["pds.type"].as_str().unwrap()).collect();
    // Before them are the packets that measure the round trip.
    assert_eq!(kinds[6..], ["RUD_REQ", "ACK_CC", "RUD_REQ", "ACK_CC"]);
    assert_eq!(packets[7]["fields"]["ip.dscp"], 8, "ACKs go in the high place of their class");
}

/// The only rule that requests an ACK, on a device that does not look at such requests.
const LOSING: [&str; 4] = ["--id", "ack/requested", "--fault", "ignores-ar"];

fn json(args: &[&str]) -> Value {
    let run = uet(&[&["run", "--format", "json"], args].concat());
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err))
}

#[test]
fn failure_reports_expectation_observation_and_rerun() {
    let run = uet(&[&["run"], &LOSING[..]].concat());
    assert_eq!(run.code, 1);
    assert!(
        run.out.starts_with("ack/requested  ") && run.out.contains("  fail  PDS-ACK-004: expected"),
        "{}",
        run.out
    );
    // The line contains the whole command.
    let again = run.out.lines().find_map(|line| line.trim().strip_prefix("again: ")).unwrap();
    let instance = "ack/requested[mode=rud,carrier=write,start=any]";
    assert_eq!(again, format!("uet run --fault ignores-ar --id '{instance}' --seed 1"));
    // Control operations show their arguments.
    let exposed = run.out.lines().find(|line| line.contains("control: expose_region "));
    assert!(exposed.is_some_and(|line| line.contains("\"length\":")), "{}", run.out);
}

#[test]
fn help_tells_which_options_may_be_repeated() {
    let help = uet(&["run", "--help"]).out;
    for option in ["--id <ID>", "--group <GROUP>"] {
        let text = help.split_once(option).unwrap().1;
        let text = text.split_once("\n\n").unwrap().0.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("may be repeated"), "{option}: {text}");
    }
}

#[test]
fn a_rule_as_json_has_the_keys_that_scripts_know() {
    let result = json(&LOSING);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let rule = &result["rules"][0];
    assert_eq!(
        keys(rule),
        "id group verdict requirements reason instances played failing attempts duration_ns"
    );
    assert_eq!(rule["verdict"], "fail");
    assert_eq!(rule["requirements"], serde_json::json!(["PDS-ACK-004"]));
    assert_eq!(keys(&rule["instances"]), "pass fail inconclusive skipped");
    let failing = &rule["failing"][0];
    assert_eq!(keys(failing), "instance verdict observations at_packet rerun");
    let observation = &failing["observations"][0];
    assert_eq!(keys(observation), "requirement what relation expected seen packet");
    assert_eq!(observation["seen"], "nothing");
    assert_eq!(failing["at_packet"], 3);
    for key in ["suite", "catalogue", "seed", "statement", "device"] {
        assert!(!result[key].is_null(), "{key}");
    }
    assert_eq!(result["catalogue"].as_str().unwrap().len(), 16);
    assert_eq!(result["statement"]["name"], "uet-emulator");
}

#[test]
fn packets_that_the_network_lost_are_marked_in_the_trace() {
    let common = [&["run"], &LOSING[..], &["--max-instances", "1", "--impair"]].concat();
    for (impairment, arrow) in [("drop request every 2", " -->  "), ("drop ack", "  --  ")] {
        let run = uet(&[&common[..], &[impairment]].concat());
        let is_lost = |line: &&str| line.contains(arrow) && line.contains("{lost");
        assert!(run.out.lines().any(|line| is_lost(&line)), "{impairment}: {}", run.out);
    }
}

#[test]
fn further_instances_that_break_the_same_requirement_have_only_a_verdict() {
    let result = json(&[&LOSING[..], &["--max-instances", "100"]].concat());
    let failing = result["rules"][0]["failing"].as_array().unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let (first, others) = failing.split_first().unwrap();
    assert_eq!(keys(first), "instance verdict observations at_packet rerun");
    assert!(others.len() > 1);
    others.iter().for_each(|other| assert_eq!(keys(other), "instance verdict"));
}

#[test]
fn results_stay_below_a_megabyte() {
    // This fault breaks more rules than any other.
    for fault in [&[][..], &["--fault", "swaps-pdcids"]] {
        let file = common::file("size.json", b"");
        uet(&[&["run", "--json", &file], fault].concat());
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.len() < 1_000_000, "{fault:?}: {} bytes", text.len());
        let result: Value = serde_json::from_str(&text).unwrap();
        let rules = result["rules"].as_array().unwrap();
        assert!(rules.len() > 800, "{} rules", rules.len());
        assert!(text.lines().filter(|line| line.starts_with("  {\"id\":")).count() >= rules.len());
        for rule in rules {
            let tally = &rule["instances"];
            let bad = tally["fail"].as_u64().unwrap() + tally["inconclusive"].as_u64().unwrap();
            assert_eq!(rule["failing"].as_array().unwrap().len() as u64, bad, "{}", rule["id"]);
        }
    }
}

#[test]
fn a_trace_is_complete_in_its_file_only() {
    let directory = no_folder("traces");
    let args = [
        "--id",
        "nscc/rcvd-bytes-long",
        "--fault",
        "wraps-rcvd-bytes-early",
        "--traces",
        directory.to_str().unwrap(),
    ];
    let run = uet(&[&["run"], &args[..]].concat());
    assert_eq!(run.code, 1, "{}{}", run.out, run.err);
    let path = run.out.lines().find_map(|line| line.trim().strip_prefix("trace: ")).unwrap();
    let (whole, shown) = (fs::read_to_string(path).unwrap().lines().count(), run.out.lines().count());
    assert!(run.out.contains("steps are not shown; --traces writes all"), "{}", run.out);
    assert!(whole > 2 * shown, "{whole} {shown}");
    assert!(run.out.contains("  !!  "), "{}", run.out);
}

#[test]
fn each_failure_has_its_packets_in_a_file() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("failures");
    let _ = std::fs::remove_dir_all(&directory);
    let result = json(&[&LOSING[..], &["--capture", directory.to_str().unwrap()]].concat());
    let failing = &result["rules"][0]["failing"][0];
    let file = failing["capture"].as_str().unwrap();
    let name = format!("{}.pcapng", failing["instance"].as_str().unwrap().replace('/', "-"));
    assert!(file.ends_with(&name), "{file}");
    let run = uet(&["decode", "--format", "summary", file]);
    assert_eq!(run.out.lines().count(), 3, "{}{}", run.out, run.err);
    // A passing rule leaves no capture.
    let result = json(&["--id", "ack/requested", "--capture", directory.to_str().unwrap()]);
    assert_eq!(result["rules"][0]["failing"], serde_json::json!([]));
}

/// docs/ci.md promises it.
#[test]
fn unchanged_device_has_nothing_new_with_another_seed_shard_or_selection() {
    let device = ["run", "--fault", "ignores-ar", "--max-instances", "200"];
    let all = ["--group", "ack", "--group", "ack-request", "--group", "write"];
    let baseline = common::file("unchanged.json", b"");
    assert_eq!(uet(&[&device[..], &all, &["--json", &baseline]].concat()).code, 1);
    let again = |more: &[&str]| uet(&[&device[..], more, &["--baseline", &baseline]].concat());
    let mut runs = vec![again(&["--group", "ack"])];
    for more in [["--seed", "2"], ["--seed", "3"], ["--shard", "1/4"], ["--shard", "2/4"]] {
        runs.push(again(&[&all[..], &more].concat()));
    }
    for run in runs {
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        assert!(run.out.contains("\nknown: ") && !run.out.contains("\nnew: "), "{}", run.out);
    }
}

#[test]
fn failures_of_instances_that_the_baseline_did_not_play_are_listed_and_do_not_count() {
    let (rule, fault) = ("arithmetic/integers", ["run", "--fault", "compares-unsigned"]);
    let baseline = common::file("some-instances.json", b"");
    let unsigned = format!("{rule}[operation=sum,datatype=uint64,mode=rud]");
    assert_eq!(uet(&[&fault[..], &["--id", &unsigned, "--json", &baseline]].concat()).code, 0);
    let more = ["--id", rule, "--max-instances", "1000", "--baseline", &baseline];
    let run = uet(&[&fault[..], &more].concat());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains(&format!("\nnot in the baseline: {rule}\n")), "{}", run.out);
    assert!(run.out.contains("nothing that the baseline played is worse"), "{}", run.out);
}

#[test]
fn a_file_in_the_place_of_a_directory_is_refused_by_name() {
    let file = common::file("not-a-directory", b"");
    for option in ["--traces", "--capture"] {
        let run = uet(&["run", option, &file]);
        assert_eq!(run.code, 2, "{option}: {}", run.err);
        assert!(run.err.contains("not-a-directory: this is not a directory"), "{}", run.err);
    }
    assert_eq!(uet(&["run", "--max-instances", "0"]).code, 2);
}

#[test]
fn doctor_says_that_there_is_no_control_channel() {
    let run = uet(&["doctor", "--dut", "udp://127.0.0.1:4999", "--no-control"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("none: nothing was asked of the device"), "{}", run.out);
    assert!(!run.out.contains("resets all state"), "{}", run.out);
}

#[test]
fn failed_names_another_seed_of_the_earlier_run() {
    let rule = r#"{"id":"ack/requested","verdict":"fail","failing":[]}"#;
    let before = format!(r#"{{"schema":1,"seed":5,"rules":[{rule}]}}"#);
    let before = common::file("seed-5.json", before.as_bytes());
    let run = uet(&["run", "--failed", &before]);
    assert!(run.err.contains("is of seed 5, this run of 1; add --seed 5"), "{}", run.err);
    let run = uet(&["run", "--failed", &before, "--seed", "5"]);
    assert!(!run.err.contains("is of seed"), "{}", run.err);
}

#[test]
fn a_baseline_of_a_stopped_run_is_a_warning() {
    let stopped = common::file("stopped.json", br#"{"schema":1,"not_run":7,"rules":[]}"#);
    let run = uet(&["run", "--id", "ack/requested", "--baseline", &stopped]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("the run was stopped with 7 rules not run"), "{}", run.err);
}

#[test]
fn only_regressions_from_the_baseline_count() {
    let failed = json(&LOSING).to_string();
    let baseline = common::file("failed.json", failed.as_bytes());
    let run = uet(&[&["run", "--baseline", &baseline], &LOSING[..]].concat());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("known: ack/requested") && run.out.contains("of these 1 known"), "{}", run.out);

    let run = uet(&["run", "--baseline", &baseline, "--id", "ack/requested"]);
    assert_eq!(run.code, 0);
    assert!(run.out.contains("mended: ack/requested"), "{}", run.out);

    let passed = common::file("passed.json", b"");
    assert_eq!(uet(&["run", "--id", "ack/requested", "--json", &passed]).code, 0);
    let run = uet(&[&["run", "--baseline", &passed], &LOSING[..]].concat());
    assert_eq!(run.code, 1);
    assert!(run.out.contains("new: ack/requested"), "{}", run.out);

    // The rule passes, and a packet breaks a requirement.
    let reserved = ["--fault", "fills-reserved-bits", "--id", "ack/requested"];
    let run = uet(&[&["run", "--baseline", &passed], &reserved[..]].concat());
    let (_, last) = run.out.split_once("\n\ngroup ").unwrap();
    assert!(run.code == 1 && last.contains("new in packets: WIRE-RSVD-001"), "{}", run.out);
    assert!(last.contains(" packets: WIRE-RSVD-001 warning") && !last.contains("worse"), "{}", run.out);

    let other = common::file("no-baseline.json", b"{}");
    let run = uet(&["run", "--id", "ack/requested", "--baseline", &other]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("the file is not a result of `uet run --json`"), "{}", run.err);
}

#[test]
fn a_statement_waives_claims_and_disclaims() {
    let waiver = "[[waivers]]\nid = 'pds-ack-004'\nreason = 'mended in the next stepping'\n";
    let waived = common::file("waived.toml", waiver.as_bytes());
    let run = uet(&[&["run", "--statement", &waived], &LOSING[..]].concat());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("(waived: mended in the next stepping)"), "{}", run.out);
    let run = uet(&["run", "--statement", &waived, "--id", "ack/requested"]);
    assert!(run.out.contains("no longer needed"), "{}", run.out);

    let other = waiver.replace("pds-ack-004", "PDS-ACK-005");
    let other = common::file("other.toml", other.as_bytes());
    assert_eq!(
        uet(&[&["run", "--statement", &other], &LOSING[..]].concat()).code,
        1,
        "of another requirement"
    );

    let stated = common::file(
        "stated.toml",
        b"name = 'stepping 3'\ndisclaims = ['rud', 'rod']\nclaims = ['teleport', 'reserved_pool']\n",
    );
    let run = uet(&["run", "--statement", &stated, "--id", "ack/requested"]);
    assert_eq!(run.code, 3, "nothing was tested");
    assert!(run.out.contains("the device does not claim 'rud'"), "{}", run.out);
    assert!(run.out.contains("claimed for the device by stepping 3: reserved_pool\n"), "{}", run.out);
    assert!(run.err.contains("there is no capability 'teleport'"), "{}", run.err);

    let wrong = common::file("wrong.toml", b"claim = ['rud']\n");
    let run = uet(&["run", "--statement", &wrong]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("claims"), "says what there is: {}", run.err);
}

#[test]
fn profile_lists_its_demands_and_is_provisional() {
    let result = json(&["--id", "ack/requested", "--profile", "reference-provider"]);
    assert_eq!(result["statement"]["provisional"], true);
    assert_eq!(result["statement"]["beyond"], serde_json::json!([]), "the built-in NIC claims all of it");
    assert_eq!(uet(&["run", "--profile", "ai"]).code, 2);
}

#[test]
fn profile_selects_what_an_endpoint_promises() {
    let verdict = |profile: &str, id: &str| {
        let result = json(&["--id", id, "--profile", profile]);
        result["rules"][0]["verdict"].as_str().unwrap().to_owned()
    };
    for (profile, id, expected) in [
        // The profiles of the matrix take nothing away: an option of a device follows the specification.
        ("ai-base", "read/response", "pass"),
        ("ai-base", "atomic/sum", "pass"),
        ("ai-base", "rod/gap", "pass"),
        ("reference-provider", "atomic/sum", "pass"),
        ("reference-provider", "deferrable/deferral", "skipped"),
        ("reference-provider", "ack/mark", "skipped"),
        ("writes", "write/one-packet", "pass"),
        ("writes", "rod/gap", "skipped"),
        ("writes", "ack/mark", "skipped"),
    ] {
        assert_eq!(verdict(profile, id), expected, "{profile}: {id}");
    }
    let listed = uet(&["list", "--profiles"]);
    let names: Vec<&str> = listed.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["ai-base", "ai-full", "hpc", "reference-provider", "writes"]);
}

#[test]
fn a_profile_says_which_features_pass_and_which_are_missing() {
    let rows = |result: &Value| -> Vec<(String, String)> {
        let rows = result["profile"]["rows"].as_array().expect("rows").iter();
        rows.map(|row| ["id", "verdict"].map(|key| row[key].as_str().unwrap().to_owned()).into()).collect()
    };
    let ids = ["--id", "rod/gap", "--id", "atomic/sum", "--id", "write/one-packet"];
    let result = json(&[&ids[..], &["--profile", "ai-base"]].concat());
    let verdict =
        |rows: &[(String, String)], id: &str| rows.iter().find(|row| row.0 == id).unwrap().1.clone();
    let found = rows(&result);
    assert_eq!(
        ["PDS-2", "SES-9", "PDS-4", "CMS-2"].map(|id| verdict(&found, id)),
        ["pass", "pass", "not_tested", "not_tested"]
    );

    let statement = common::file("no-rod.toml", b"disclaims = [\"rod\", \"rudi\"]");
    let lacks = [&["run"], &ids[..], &["--profile", "ai-base", "--statement", &statement]].concat();
    let run = uet(&lacks);
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.out.contains("  PDS-2   ROD: mandatory, not claimed\n"), "{}", run.out);
    assert!(!run.out.contains("RUDI"), "it is optional: {}", run.out);

    // A profile of somebody else. The built-in NIC claims RUDI.
    let text =
        b"[[rows]]\nid = \"X-1\"\nfeature = \"RUDI\"\nobligation = \"excluded\"\nclaims = [\"rudi\"]\n";
    let own = common::file("no-rudi.toml", text);
    let run = uet(&[&["run"], &ids[..], &["--profile", &own]].concat());
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.out.contains("  X-1     RUDI: excluded, and claimed\n"), "{}", run.out);
}

#[test]
fn list_names_the_rows_of_the_matrix() {
    let rows = |id: &str| {
        let line = uet(&["list", "--format", "json", "--id", id]).out;
        serde_json::from_str::<Value>(&line).expect("a line")["matrix"].clone()
    };
    assert_eq!(rows("rod/gap"), json!(["PDS-2"]));
    assert_eq!(rows("errors/no-op"), json!(["SES-1", "SES-35"]));
    assert_eq!(rows("write/one-packet"), json!(["SES-6", "SES-7", "SES-35"]));
}

#[test]
fn shards_and_levels_take_away() {
    let all = json(&[])["rules"].as_array().unwrap().len();
    let count = |args: &[&str]| {
        let run = uet(&[&["list", "--format", "json"], args].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        run.out.lines().count()
    };
    assert_eq!(count(&[]), all);
    assert_eq!(count(&["--level", "must"]) + count(&["--level", "should", "--level", "may"]), all);
    let one = json(&["--shard", "1/2"])["rules"].as_array().unwrap().len();
    assert_eq!(one, all.div_ceil(2));
    let run = uet(&["run", "--shard", "3/2"]);
    assert!(run.code == 2 && run.err.contains("write 2/8"), "{}", run.err);
}

/// Returns exit code and output of a rule over an IP version, with a fault.
fn over(family: &[&str], fault: &str, rule: &str) -> (i32, String) {
    let run = uet(&[&["run", "--fault", fault, "--id", rule], family].concat());
    (run.code, run.out)
}

#[test]
fn the_built_in_nic_speaks_ipv4_ipv6_and_both() {
    assert_eq!(over(&["--family", "4"], "loses-ipv6-ecn", "ack/mark").0, 0, "IPv4 has no such fault");
    let (code, out) = over(&["--family", "6"], "loses-ipv6-ecn", "ack/mark");
    assert!(code == 1 && out.contains("--family 6"), "the command to run it again: {out}");
    // With both, two seeds in a row take both versions.
    let codes: Vec<i32> = ["1", "2"]
        .map(|seed| over(&["--family", "both", "--seed", seed], "loses-ipv6-ecn", "ack/mark").0)
        .into();
    assert!(codes == [0, 1] || codes == [1, 0], "{codes:?}");
}

/// The harness tests this for all rules.
#[test]
fn every_family_gives_the_same_verdicts() {
    let verdicts = |family| -> Vec<(Value, Value)> {
        let groups = ["--group", "ip", "--group", "trim", "--group", "nack", "--group", "source-establish"];
        let result = json(&[&["--family", family], &groups[..]].concat());
        let rules = result["rules"].as_array().unwrap();
        rules.iter().map(|rule| (rule["id"].clone(), rule["verdict"].clone())).collect()
    };
    let four = verdicts("4");
    assert!(four.iter().all(|(_, verdict)| verdict == "pass"), "{four:?}");
    assert_eq!(verdicts("6"), four);
    assert_eq!(verdicts("both"), four);
}

#[test]
fn rerun_command_can_be_pasted() {
    for args in [&["--fault", "forgets-ecn-echo", "--id", "ack/mark", "--seed", "9"][..], &LOSING] {
        let run = uet(&[&["run"], args].concat());
        assert_eq!(run.code, 1, "{}{}", run.out, run.err);
        let again = run.out.lines().find_map(|line| line.trim().strip_prefix("again: ")).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_uet")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let pasted = Command::new("sh").args(["-c", again]).env("PATH", path).output().unwrap();
        assert_eq!(pasted.status.code(), Some(1), "{again}");
        assert_eq!(String::from_utf8(pasted.stdout).unwrap(), run.out, "{again}");
    }
}

#[test]
fn a_failure_shows_the_packet_field_by_field() {
    let run = uet(&["run", "--fault", "forgets-ecn-echo", "--id", "ack/mark"]);
    let marked: Vec<&str> = run.out.lines().filter(|line| line.starts_with("> ")).collect();
    assert!(marked.len() == 1 && marked[0].contains("<--  ACK"), "{}", run.out);
    for wanted in
        ["    expected flag m (marked) yes", "    seen     no", "      pds.flags.m                 0"]
    {
        assert!(run.out.contains(wanted), "{wanted}: {}", run.out);
    }
}

#[test]
fn impairments_never_make_a_rule_fail() {
    let id = ["--id", "ack/requested", "--impair"];
    for impairment in ["drop ack 40%", "drop ack 2..9"] {
        let verdict = json(&[&id[..], &[impairment]].concat())["rules"][0]["verdict"].clone();
        assert_eq!(verdict, "pass", "{impairment}: an attempt without a loss decides");
    }
    let result = json(&[&id[..], &["drop ack 99%"]].concat());
    assert_eq!(result["rules"][0]["verdict"], "inconclusive");
    let reason = result["rules"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("did not get to") || reason.contains("the network lost"), "{reason}");
}

#[test]
fn the_first_failure_can_be_the_last_rule() {
    let result = json(&["--group", "ack", "--fault", "forgets-ecn-echo", "--fail-fast"]);
    let verdicts: Vec<&str> =
        result["rules"].as_array().unwrap().iter().map(|rule| rule["verdict"].as_str().unwrap()).collect();
    let (last, before) = verdicts.split_last().unwrap();
    assert!(*last == "fail" && before.iter().all(|verdict| *verdict == "pass"), "{verdicts:?}");
    assert_eq!(result["rules"][before.len()]["instances"]["fail"], 1);
    assert_eq!(result["ended_by"], "fail_fast");
    assert_eq!(result["not_run"], result["not_run_rules"].as_array().unwrap().len());
    assert!(json(&["--group", "ack"])["rules"].as_array().unwrap().len() > verdicts.len());
}

#[test]
fn each_rule_is_in_one_of_eight_parts() {
    let ids = |args: &[&str]| -> Vec<String> {
        let rules = json(&[&["--group", "ack", "--group", "nack"], args].concat())["rules"].clone();
        rules.as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap().to_owned()).collect()
    };
    let mut parts: Vec<String> = (1..=8).flat_map(|n| ids(&["--shard", &format!("{n}/8")])).collect();
    let mut all = ids(&[]);
    parts.sort();
    all.sort();
    assert_eq!(parts, all);
}

/// Returns a folder that does not exist.
fn no_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// Starts a run that writes all its reports into a folder; returns its first line too.
fn started(folder: &Path, args: &[&str]) -> (Child, BufReader<ChildStdout>, String) {
    let mut uet = Command::new(env!("CARGO_BIN_EXE_uet"));
    uet.arg("run").args(args).stdout(Stdio::piped());
    for (option, name) in [("--json", "run.json"), ("--junit", "run.xml"), ("--html", "run.html")] {
        uet.arg(option).arg(folder.join(name));
    }
    let mut child = uet.arg("--capture").arg(folder.join("run.pcapng")).spawn().unwrap();
    let (mut out, mut first) = (BufReader::new(child.stdout.take().unwrap()), String::new());
    out.read_line(&mut first).unwrap();
    (child, out, first)
}

/// Reads the reports in a folder.
fn reported(folder: &Path) -> (Value, String) {
    let text = |name| fs::read_to_string(folder.join(name)).unwrap();
    assert!(text("run.html").ends_with("</html>\n"));
    let capture = folder.join("run.pcapng");
    let run = uet(&["decode", "--format", "summary", capture.to_str().unwrap()]);
    assert!(run.code != 2 && run.out.lines().count() > 0, "{}", run.err);
    (serde_json::from_str(&text("run.json")).unwrap(), text("run.xml"))
}

#[test]
fn closed_output_changes_no_verdict() {
    let folder = no_folder("reads-no-further/reports");
    let (mut child, out, _) = started(&folder, &["--group", "ack", "--fault", "forgets-ecn-echo"]);
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(1), "a rule fails");
    let (result, junit) = reported(&folder);
    assert_eq!(result["not_run"], Value::Null);
    assert!(junit.contains("<failure"), "{junit}");
    let run = uet(&["run", "--group", "ack", "--fault", "forgets-ecn-echo", "--json", "/dev/full"]);
    assert_eq!(run.code, 2, "what cannot be written is said: {}", run.err);
}

#[test]
#[cfg(target_os = "linux")]
fn unwritten_report_or_capture_keeps_the_others() {
    let full = no_folder("full");
    fs::create_dir_all(&full).unwrap();
    let capture = full.join("all.pcapng");
    std::os::unix::fs::symlink("/dev/full", &capture).unwrap();
    let capture = capture.to_str().unwrap();
    for (option, path) in [("--capture", capture), ("--json", "/dev/full"), ("--junit", "/dev/full")] {
        let folder = no_folder("beside-full");
        fs::create_dir_all(&folder).unwrap();
        let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let reports = [("--json", place("r.json")), ("--junit", place("r.xml")), ("--html", place("r.html"))];
        let mut args = vec!["run", "--group", "ack", option, path];
        for (other, path) in reports.iter().filter(|(other, _)| *other != option) {
            args.extend([*other, path]);
        }
        let run = uet(&args);
        assert_eq!(run.code, 2, "{option}: {}", run.err);
        for (other, path) in reports.iter().filter(|(other, _)| *other != option) {
            assert!(fs::metadata(path).unwrap().len() > 1000, "{option} {path}");
            assert!(!run.err.contains(path), "{other}: {}", run.err);
        }
        assert!(run.err.contains(&format!("{path}: ")), "{option}: {}", run.err);
        let warned = run.err.contains("all.pcapng: warning: packets are not captured: ");
        assert_eq!(warned, option == "--capture", "{}", run.err);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn signal_ends_the_run_with_partial_reports() {
    for signal in ["-INT", "-TERM"] {
        let folder = no_folder("stopped");
        let (mut child, mut out, first) = started(&folder, &["--repeat", "30", "--max-instances", "1"]);
        assert!(first.contains(" pass"), "{first}");
        common::signal(child.id(), signal);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3), "no failure, and not all: {rest}");
        let (result, junit) = reported(&folder);
        let (ran, left) = (result["rules"].as_array().unwrap().len(), result["not_run"].as_u64().unwrap());
        assert!(ran > 0 && left > 0, "{ran} {left}");
        let named = result["not_run_rules"].as_array().unwrap();
        assert_eq!((named.len() as u64, &result["ended_by"]), (left, &Value::from("signal")));
        assert!(rest.contains(&format!(" pass, {left} not run; stopped by a signal (")), "{rest}");
        let first = named[0].as_str().unwrap();
        assert!(rest.contains(&format!("\nnot run: {first}, ")), "{rest}");
        assert!(
            junit.contains(&format!("the run was stopped by a signal; {left} rules did not run")),
            "{junit}"
        );
        assert!(junit.contains(first), "{junit}");
    }
}

#[test]
fn unwritable_files_are_reported_first() {
    let there = common::file("no-folder", b"");
    for option in ["--json", "--junit", "--html", "--capture"] {
        let run = uet(&["run", "--id", "ack/requested", option, &format!("{there}/x")]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{option}");
        assert!(run.err.contains("no-folder/x"), "{option}: {}", run.err);
    }
}

#[test]
fn slips_in_a_statement_are_said() {
    let text =
        "claims = ['wriet']\ndisclaims = ['atomik']\n[parameters]\nrto_init_tim = 5\npayload_mtu = '1024'\n";
    let slips = common::file("slips.toml", text.as_bytes());
    let run = uet(&["run", "--id", "ack/requested", "--statement", &slips]);
    assert_eq!(run.code, 0, "a later version may know them: {}{}", run.out, run.err);
    for said in [
        "there is no capability 'wriet'; did you mean write",
        "there is no capability 'atomik'; did you mean atomic",
        "there is no parameter 'rto_init_tim'; did you mean rto_init_time",
        "payload_mtu is \"1024\", but must be a whole number (bytes)",
    ] {
        assert!(run.err.contains(said), "{said}: {}", run.err);
    }
    let waived = common::file("no-such-waiver.toml", b"[[waivers]]\nid = 'PDS-NOPE-1'\nreason = 'x'\n");
    let run = uet(&["run", "--id", "ack/requested", "--statement", &waived]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("there is no rule or requirement 'PDS-NOPE-1'"), "{}", run.err);
}

/// Many rules fail by one error. The report says so once.
#[test]
fn causes_group_the_rules_that_did_not_pass() {
    let arguments = ["run", "--group", "addressing", "--fault", "guarantees-nothing"];
    let run = uet(&[&arguments[..], &["--brief"]].concat());
    assert_eq!(run.code, 1, "{}", run.out);
    let (cause, rest) =
        run.out.split_once("rules: expected req of the ACK REQ_CLEAR, seen NO_REQUEST\n").unwrap();
    let count: usize = cause.lines().last().unwrap().trim().parse().unwrap();
    assert!(count >= 5 && rest.starts_with("  SES-GTD-001 addressing/"), "{}", run.out);
    assert!(!run.out.contains("again:"), "{}", run.out);
    assert!(uet(&arguments).out.contains("again:"));
}

/// A device without writes: the list says so for each rule that needs them.
#[test]
#[cfg(target_os = "linux")]
fn list_names_the_rules_that_a_device_skips() {
    let welcome = r#"{"id":1,"ok":true,"protocol":1,"name":"small","capabilities":["rud"],"link":{"kind":"udp","addr":"127.0.0.79","port":4998}}"#;
    let refuse =
        r#"id=${line#*:}; echo "{\"id\":${id%%,*},\"error\":{\"code\":\"unsupported\",\"message\":\"no\"}}""#;
    let device = format!("exec:read -r line; echo '{welcome}'; while read -r line; do {refuse}; done");
    // One group by the needs of its rules, the other by the values of an axis.
    let listed = uet(&["list", "--dut", &device, "--group", "read", "--group", "access"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    assert!(
        listed.out.lines().all(|line| line.contains("skipped: the device does not claim ")),
        "{}",
        listed.out
    );
    let json = uet(&["list", "--dut", &device, "--id", "read/few-bytes", "--format", "json"]);
    let line: Value = serde_json::from_str(&json.out).unwrap();
    assert!(line["skipped"].as_str().unwrap().contains("read"), "{line}");
    let instances = uet(&["list", "--dut", &device, "--group", "read", "--instances"]);
    assert_eq!((instances.code, instances.out), (0, String::new()));
    let embedded = uet(&["list", "--dut", "embedded", "--group", "read"]);
    assert!(!embedded.out.contains("skipped: "), "{}", embedded.out);
}
