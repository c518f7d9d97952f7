//! The commands as scripts use them: exit codes, plain output, filters, and errors that suggest a correction.

use crate::common;

use common::{ack, file, forbidden, lines, malformed, odd, uet, uet_with, write};
use serde_json::Value;

/// Returns every packet of the tests: numbers 1 to 5.
fn all() -> String {
    lines(&[write(), ack(), odd(), forbidden(), malformed()])
}

fn shown(filters: &[&str]) -> (Vec<u64>, i32) {
    let run = uet_with(all().as_bytes(), &[&["decode", "--format", "json", "-"], filters].concat());
    let number = |line: &str| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64().unwrap();
    (run.out.lines().map(number).collect(), run.code)
}

#[test]
fn the_exit_code_of_decode_is_that_of_the_worst_packet() {
    for (packet, code) in [(write(), 0), (odd(), 0), (forbidden(), 1), (malformed(), 1)] {
        for format in ["text", "summary", "json"] {
            let run = uet_with(
                lines(std::slice::from_ref(&packet)).as_bytes(),
                &["decode", "--format", format, "-"],
            );
            assert_eq!((run.code, run.err.as_str()), (code, ""), "{}", run.out);
        }
    }
    let both = [malformed(), write()];
    assert_eq!(uet_with(lines(&both).as_bytes(), &["decode", "-"]).code, 1);
    assert_eq!(uet_with(format!("{}zz", lines(&both)).as_bytes(), &["decode", "-"]).code, 2);
}

#[test]
fn filters_choose_packets() {
    assert_eq!(shown(&[]), (vec![1, 2, 3, 4, 5], 1));
    assert_eq!(shown(&["--pdc", "0x4001"]), (vec![1, 2, 3], 0));
    assert_eq!(shown(&["--pdc", "16386,0x8001"]), (vec![2, 3, 4], 1));
    assert_eq!(shown(&["--type", "ACK,nack"]), (vec![2, 3], 0));
    assert_eq!(shown(&["--type", "PROBE"]), (vec![], 0));
    assert_eq!(shown(&["--finding", "WIRE-SES-003"]), (vec![4], 1));
    assert_eq!(shown(&["--finding", "warning"]), (vec![3], 0));
    assert_eq!(shown(&["--finding", "error"]), (vec![4, 5], 1), "a malformed packet is an error");
    assert_eq!(shown(&["--finding", "malformed"]), (vec![5], 1));
    assert_eq!(shown(&["--finding", "warning,error"]), (vec![3, 4, 5], 1));
    assert_eq!(shown(&["--packets", "1-2,4"]), (vec![1, 2, 4], 1));
    assert_eq!(shown(&["--packets", "4-"]), (vec![4, 5], 1));
    assert_eq!(shown(&["--packets", "1-3", "--type", "NACK", "--pdc", "0x4001"]), (vec![3], 0));
}

#[test]
fn reading_stops_after_the_last_selected_packet() {
    let input = format!("{}this is no packet", all());
    let run = uet_with(input.as_bytes(), &["decode", "--format", "summary", "--packets", "1-2", "-"]);
    assert_eq!((run.code, run.out.lines().count()), (0, 2), "{}", run.err);
}

#[test]
fn deployment_settings_take_effect() {
    let mut elsewhere = write();
    elsewhere[36..38].copy_from_slice(&9999u16.to_be_bytes());
    let elsewhere = lines(&[elsewhere]);
    let json = |options: &[&str], input: &str| {
        let run = uet_with(input.as_bytes(), &[&["decode", "--format", "json", "-"], options].concat());
        (serde_json::from_str::<Value>(run.out.lines().next().unwrap()).unwrap(), run.code)
    };
    assert_eq!(json(&[], &elsewhere).0["fields"].get("pds.psn"), None);
    assert_eq!(json(&["--udp-port", "9999"], &elsewhere).0["fields"]["pds.psn"], 73728);
    let dscp = lines(&[write()]);
    assert_eq!(json(&[], &dscp).0["trimmed"], Value::Null);
    assert_eq!(json(&["--trimmed-dscp", "10"], &dscp).0["trimmed"]["last_hop"], false);
    assert_eq!(json(&["--trimmed-lasthop-dscp", "10"], &dscp).0["trimmed"]["last_hop"], true);
    assert_eq!(json(&["--trailer", "icv"], &dscp).0["trailer"]["kind"], "icv");
    let packet =
        r#"{"src":"10.0.0.1","dst":"10.0.0.2","fields":{"pds.entropy":3,"pds.type":7,"pds.cack_psn":1}}"#;
    let native = uet_with(packet.as_bytes(), &["encode", "--ip-proto", "254"]).out;
    assert_eq!(json(&[], &native).0["fields"].get("pds.cack_psn"), None);
    assert_eq!(json(&["--ip-proto", "254"], &native).0["fields"]["pds.cack_psn"], 1);
    let removed = "50000300000001 4d8001400100000000".replace(' ', "");
    let by = |version| uet(&["decode", "--from", "uet", "--spec", version, "--format", "json", &removed]).out;
    assert!(by("1.0.3").contains("WIRE-NACK-001"), "{}", by("1.0.3"));
    assert!(!by("1.0.1").contains("WIRE-NACK-001"));
}

#[test]
fn piped_output_is_plain() {
    let capture = file("plain.txt", all().as_bytes());
    for arguments in [
        &["decode", &capture][..],
        &["decode", "--format", "summary", &capture],
        &["decode", "--format", "json", &capture],
        &["layout"],
        &["layout", "ack_cc"],
        &["layout", "--draw", "ack_cc"],
        &["explain"],
        &["explain", "nack", "0x0f"],
        &["--help"],
        &["decode", "--help"],
        &["nonsense"],
    ] {
        let run = uet(arguments);
        assert!(!run.out.contains('\x1b') && !run.err.contains('\x1b'), "{arguments:?}");
    }
}

#[test]
fn bad_arguments_suggest_a_correction() {
    for (arguments, right) in [
        (&["decode"][..], "<INPUT>"),
        (&["decode", "--format", "xml", "x"], "possible values: text, summary, json"),
        (&["decode", "--from", "ethernet", "x"], "possible values: eth, ip, udp, uet"),
        (&["decode", "--spec", "1.0", "x"], "the known versions are 1.0.1, 1.0.2, 1.0.3"),
        (&["decode", "--trailer", "fcs", "x"], "possible values: auto, none, crc, icv"),
        (&["decode", "--trimmed-dscp", "64", "x"], "0..64"),
        (&["decode", "--type", "AKC", "x"], "did you mean ACK"),
        (&["decode", "--finding", "WIRE-SES-03", "x"], "did you mean WIRE-SES-003"),
        (&["decode", "--packets", "0", "x"], "packet numbers from 1: 7, 1-10, 100-"),
        (&["decode", "--packets", "9-1", "x"], "the range ends before it begins; did you mean 1-9?"),
        (&["decode", "--pdc", "0x12345", "x"], "up to four hexadecimal digits"),
        (&["decoed"], "'decode'"),
        (&["layout", "nak"], "did you mean nack"),
        (&["explain", "pds.psnn"], "did you mean pds.psn"),
        (&["explain", "nack", "pdc_mismatch"], "did you mean PDC_MODE_MISMATCH or PDC_HDR_MISMATCH"),
        (&["explain", "nonce"], "nothing called 'nonce'; these mention it: TSC"),
        (&["wireshark", "-o", "/nowhere/x.lua"], "/nowhere/x.lua: No such file or directory (os error 2)\n"),
        (&["explain", "nack", "0x100"], "a number up to 255"),
        (&["completions", "tcsh"], "possible values: bash, zsh, fish"),
        (&["fuzz", "--cases", "0"], "0 is not in 1.."),
        (&["site", "/dev/null/x"], "/dev/null/x: "),
        (&["encode", "--format", "pcapng", "--from", "uet"], "use --from eth or --from ip"),
        (&["rnu"], "'run'"),
        (&["explain", "0x0f"], "name its registry too: uet explain nack 0x0f"),
    ] {
        let run = uet(arguments);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}");
        assert!(run.err.contains(right), "{arguments:?}: {}", run.err);
    }
}

#[test]
fn every_help_has_examples() {
    let help = uet(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.out.contains("Examples:"));
    assert_eq!((uet(&["help"]).out, uet(&["help", "run"]).out), (help.out, uet(&["run", "--help"]).out));
    for command in ["decode", "encode", "layout", "explain", "completions", "man", "run", "emulate"] {
        let run = uet(&[command, "--help"]);
        assert_eq!(run.code, 0);
        assert!(
            run.out.contains("Examples:\n  ") && run.out.contains(&format!("uet {command}")),
            "{}",
            run.out
        );
    }
}

#[test]
fn the_packet_that_help_shows_is_a_good_one() {
    for help in [uet(&["--help"]), uet(&["decode", "--help"])] {
        let line = help.out.lines().find(|line| line.contains("--from uet")).unwrap();
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert_eq!(uet(&words).code, 0, "{line}");
    }
}

#[test]
fn layout_lists_one_item_per_line() {
    let run = uet(&["layout"]);
    let names: Vec<&str> = run.out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let known: Vec<&str> = uet_wire::layout::ALL.iter().map(|layout| layout.name).collect();
    assert_eq!(names, known);
    assert!(run.out.starts_with("eth                  eth       14 bytes  Ethernet header\n"), "{}", run.out);
    assert_eq!(uet(&["layout", "RUD_REQ"]).out, uet(&["layout", "request"]).out);
    assert_eq!(uet(&["layout", "ACK_CC"]).out, uet(&["layout", "ack_cc"]).out);
    let run = uet(&["layout", "nack"]);
    assert!(run.out.starts_with("pds.type  "), "{}", run.out);
    assert!(run.out.lines().any(|line| line.starts_with("nack@9:1 ")));
    assert!(run.out.contains("(when pds.flags.nt = 1)"));
    insta::assert_snapshot!("layout_draw", uet(&["layout", "--draw", "nack"]).out);
}

#[test]
fn layout_gives_the_tables_as_json() {
    let run = uet(&["layout", "--format", "json"]);
    let headers: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(headers.len(), uet_wire::layout::ALL.len());
    for header in &headers {
        let bits = header["bytes"].as_u64().unwrap() * 8;
        for field in header["fields"].as_array().unwrap() {
            assert!(field["bit"].as_u64().unwrap() + field["width"].as_u64().unwrap() <= bits, "{field}");
        }
    }
    let nack: Value = serde_json::from_str(&uet(&["layout", "--format", "json", "nack"]).out).unwrap();
    assert!(headers.contains(&nack));
    let field =
        |name: &str| nack["fields"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap().clone();
    assert_eq!(field("pds.nack_code")["registry"], "NackCode");
    assert_eq!(field("pds.nack_psn")["when"], serde_json::json!({"field": "pds.flags.nt", "values": [0]}));
}

#[test]
fn explain_answers() {
    for (words, answer) in [
        (&["nack", "0x0f"][..], "close the context and retry on a new one"),
        (&["nack", "13"], "NackCode.ROD_OOO"),
        (&["pds.clear_psn_offset"], "request: bit 16, 16 wide, signed"),
        (&["retx"], "pds.flags.retx, field"),
        (&["clear_psn_offset"], "distance from psn to the highest PSN cleared"),
        (&["WIRE-SES-003"], "som and eom are 1"),
        (&["wire-ses-003"], "must"),
        (&["WIRE-SES-003"], "cannot place a second packet"),
        (&["SES-PLACE-001"], "`uet run --id SES-PLACE-001 --dut ...` shows the packets"),
        (&["CACK_PSN"], "cumulative acknowledgment PSN"),
        (&["SACK"], "selective acknowledgment"),
        (&["pdc"], "packet delivery context"),
        (&["UET_WRITE"], "writes into a memory region"),
        (&["ack_cc"], "32 bytes"),
        (&["pds.credit_bytes"], "derived value"),
        (&["opcode", "0x2a"], "reserved"),
        (&["opcode", "0x31"], "left to vendors"),
        (&["AckRequest"], "REQ_CLEAR"),
    ] {
        let run = uet(&[&["explain"], words].concat());
        assert_eq!(run.code, 0, "{words:?}: {}", run.err);
        assert!(run.out.contains(answer), "{words:?}: {}", run.out);
        let json = uet(&[&["explain", "--format", "json"], words].concat());
        assert!(json.out.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", json.out);
    }
}

#[test]
fn explain_shows_a_rule_as_a_specification() {
    let text = uet(&["explain", "window/above"]);
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    insta::assert_snapshot!("explain_rule", text.out);
    let json = uet(&["explain", "window/above", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    insta::assert_snapshot!("explain_rule_json", serde_json::to_string_pretty(&json).unwrap());
    let other = uet(&["explain", "window/above[mode=rod,carrier=write,start=wrap]"]).out;
    assert!(other.contains("ROD_REQ PSN 4294967294 SYN"), "{other}");
    assert!(!other.contains("write carried as send"), "{other}");
    let carried = uet(&["explain", "window/above[mode=rud,carrier=send,start=any]"]).out;
    assert_eq!(carried.matches("write carried as send").count(), 1, "{carried}");
}

#[test]
fn explain_names_the_rules_of_a_parameter() {
    let text = uet(&["explain", "rto_init_time"]).out;
    let read = text.lines().find(|line| line.starts_with("  read by ")).unwrap();
    assert!(read.contains(" rules: ") && read.len() < 300, "{read}");
    let json = uet(&["explain", "rto_init_time", "--format", "json"]).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let all = json["details"]["read by"].as_array().unwrap();
    assert!(read.contains(&format!(" {} rules: {}, ", all.len(), all[0].as_str().unwrap())), "{read}");
    assert!(all.len() > 20 && all.iter().all(|rule| !rule.as_str().unwrap().contains(' ')), "{all:?}");
}

#[test]
fn explain_lists_all_items() {
    let run = uet(&["explain"]);
    let json = uet(&["explain", "--format", "json"]);
    assert_eq!((run.code, json.code), (0, 0));
    assert_eq!(run.out.lines().count(), json.out.lines().count());
    for (line, json) in run.out.lines().zip(json.out.lines()) {
        let json: Value = serde_json::from_str(json).unwrap();
        assert_eq!(json["id"], line.split(' ').next().unwrap());
        assert!(!json["meaning"].as_str().unwrap().is_empty(), "{line}");
    }
}

#[test]
fn completions_and_manual_pages_are_made() {
    for shell in ["bash", "zsh", "fish"] {
        let run = uet(&["completions", shell]);
        assert_eq!(run.code, 0);
        assert!(run.out.contains("trimmed-lasthop-dscp"), "{shell}");
    }
    let dir = format!("{}/man/one", env!("CARGO_TARGET_TMPDIR"));
    assert_eq!(uet(&["man", &dir]).code, 0);
    let page = std::fs::read_to_string(format!("{dir}/uet-decode.1")).unwrap();
    assert!(page.starts_with(".ie") || page.contains(".TH"), "{page}");
    assert!(page.contains("Examples"));
    assert_eq!(uet(&["man", &file("no-directory", b"")]).code, 2);
}

/// As after `cargo install`, which does not build the provider.
#[cfg(target_os = "linux")]
#[test]
fn installed_program_says_how_to_install_the_provider() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed-alone");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("uet");
    let _ = std::fs::remove_file(&program);
    std::fs::hard_link(env!("CARGO_BIN_EXE_uet"), &program).unwrap();
    let run = std::process::Command::new(&program).args(["libfabric", "--install", "x"]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    let said = String::from_utf8(run.stderr).unwrap();
    let advice = "cargo build --release -p uet-libfabric`, then \
                  `uet libfabric --install DIR --library target/release/libuet_fi.so`";
    assert!(said.contains(advice), "{said}");
}
