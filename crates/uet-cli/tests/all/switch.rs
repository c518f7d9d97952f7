//! `uet switch` against the built-in switch.

use crate::common::{file, uet};
use serde_json::Value;
use std::fs;

#[test]
fn the_built_in_switch_passes() {
    let run = uet(&["switch"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    assert!(run.out.ends_with("\n12 pass\n") && !run.out.contains('\u{1b}'), "{}", run.out);
    assert!(run.out.contains("median time from trim to retransmission"), "{}", run.out);
}

#[test]
fn reports_agree() {
    let [csv, junit] = ["switch.csv", "switch.xml"].map(|name| file(name, b""));
    let common = ["switch", "--fault", "trims-acks", "--id", "trim", "--csv", &csv, "--junit", &junit];
    let text = uet(&common);
    assert_eq!(text.code, 1);
    assert!(text.out.contains("trim/control             fail\n  NET-TRIM-005: packet "), "{}", text.out);
    let json: Value = serde_json::from_str(&uet(&[&common[..], &["--format", "json"]].concat()).out).unwrap();
    let failed = json["rules"].as_array().unwrap().iter().filter(|rule| rule["verdict"] == "fail");
    let failed: Vec<_> = failed.map(|rule| (&rule["id"], &rule["violations"][0]["requirement"])).collect();
    assert_eq!(failed, [(&"trim/control".into(), &"NET-TRIM-005".into())]);
    let markdown = uet(&[&common[..], &["--format", "markdown"]].concat()).out;
    assert!(markdown.contains("| trim/control | fail | NET-TRIM-005: "), "{markdown}");
    assert!(fs::read_to_string(junit).unwrap().contains("<failure message=\"NET-TRIM-005"));
    let csv = fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("group,name,value,unit\nload,") && csv.contains("Mbit/s"), "{csv}");
}

#[test]
fn a_learned_draft_is_a_statement() {
    let draft = uet(&["switch", "--learn"]);
    assert_eq!(draft.code, 0, "{}", draft.err);
    let statement = file("draft.toml", draft.out.as_bytes());
    let run = uet(&["switch", "--network", "embedded", &statement, "--id", "trim"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
}

#[test]
fn faults_and_rules_are_listed() {
    for list in ["--list", "--list-faults"] {
        let text = uet(&["switch", list]);
        let json = uet(&["switch", list, "--format", "json"]);
        assert_eq!((text.code, json.code), (0, 0));
        let first = |line: &str| line.split('\t').next().unwrap().to_owned();
        let name =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
        let names: Vec<_> = text.out.lines().map(first).collect();
        assert_eq!(names, json.out.lines().map(name).collect::<Vec<_>>());
        assert!(names.len() >= 10, "{names:?}");
    }
    assert!(uet(&["explain", "NET-TRIM-002"]).out.contains("docs/switch.md"));
}

#[test]
fn wrong_use_names_the_place() {
    let ports = "[[port]]\nname = 'a'\naddress = '10.0.0.1'\n[[port]]\nname = 'b'\naddress = '10.0.0.2'\n";
    let wrong = |name: &str, text: String| file(name, text.as_bytes());
    let unknown = wrong("unknown.toml", format!("{ports}[trim]\nsize = 128\ndepth = 7\n"));
    let twice = wrong("twice.toml", ports.replace("10.0.0.2", "10.0.0.1"));
    let lone = wrong("lone.toml", "[[port]]\nname = 'a'\naddress = '10.0.0.1'\n".into());
    let small = wrong("small.toml", format!("{ports}[trim]\nsize = 20\n"));
    let dscps = wrong("dscps.toml", format!("{ports}[dscp]\ndata = 8\n"));
    let nowhere = wrong("nowhere.toml", ports.into());
    for (arguments, said) in [
        (&[&*unknown][..], "line 9"),
        (&[&unknown], "unknown field `depth`"),
        (&[&twice], "port b: another port has its `name` or `address`"),
        (&[&lone], "1 [[port]]; 2 to 64 are needed"),
        (&[&small], "trim: `size` must be from 58 to 750"),
        (&[&dscps], "no two classes share one"),
        (&[&nowhere], "there is no interface a"),
        (&[&nowhere, "--fault", "duplicates"], "--fault is for the built-in switch"),
        (&["--fault", "duplicate"], "did you mean duplicates?"),
        (&["--id", "forwards"], "there is no rule 'forwards'"),
        (&["--network", "raw"], "--network raw needs a file"),
    ] {
        let run = uet(&[&["switch"], arguments].concat());
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.out);
        assert!(run.err.contains(said), "{arguments:?}: {}", run.err);
    }
}
