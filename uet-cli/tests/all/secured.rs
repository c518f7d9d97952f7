//! `--keys`: packets under transport security, by the worked examples that the codec's tests hold.

use crate::common::{capture, file, uet, uet_with};
use serde_json::Value;
use uet_packet_io::hex;

const EXAMPLES: &str = include_str!("../../../uet-wire/tests/all/tss/examples.json");

/// The examples of one domain: cluster, IPv4 and IPv6, native and UDP, with the specification's rekey mask.
const CLUSTER: [u64; 6] = [1, 2, 3, 14, 16, 17];

fn example(number: u64) -> Value {
    let examples: Vec<Value> = serde_json::from_str(EXAMPLES).unwrap();
    examples.into_iter().find(|example| example["example"] == number).unwrap()
}

fn frames(numbers: &[u64]) -> Vec<Vec<u8>> {
    numbers.iter().map(|number| hex::decode(example(*number)["frame"].as_str().unwrap()).unwrap()).collect()
}

fn keys(name: &str, secret: &str) -> String {
    let text = format!(
        "[[domain]]\nsdi = 0x012345\nmode = \"cluster\"\nrekey_mask = 0xffff00000000\nrekey_shift = 32\n\
         keys = {{ 0 = [\"{}\", \"{secret}\"] }}\n",
        "11".repeat(32)
    );
    file(name, text.as_bytes())
}

fn secret() -> String {
    example(1)["secret"].as_str().unwrap().to_owned()
}

fn json(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn with_the_right_key_the_packet_is_shown_in_the_clear() {
    let capture = file("cluster.pcap", &capture::simple(&frames(&CLUSTER)));
    let keys = keys("right.toml", &secret());
    let run = uet(&["decode", "--keys", &keys, "--format", "json", &capture]);
    assert_eq!(run.err, "");
    let packets = json(&run.out);
    assert!(packets.iter().all(|packet| packet["protection"]["authenticated"] == true), "{}", run.out);
    assert_eq!(packets[0]["fields"]["ses.request_length"], 16);
    assert_eq!(packets[0]["fields"]["tss.counter"], "0x74e500000023");
    assert_eq!(packets[1]["names"]["pds.type"], "ACK");
    let stack = ["eth", "ipv4", "udp", "tss", "pds", "ses", "payload", "icv"];
    assert_eq!(packets[3]["stack"], serde_json::json!(stack));
    assert_eq!(packets[5]["names"]["pds.nack_code"], "NEW_START_PSN");
}

#[test]
fn without_a_key_it_is_unknown_and_no_error() {
    let capture = file("unknown.pcap", &capture::simple(&frames(&[1])));
    let run = uet(&["decode", "--format", "json", &capture]);
    let packet = &json(&run.out)[0];
    assert_eq!((run.code, &packet["protection"]["authenticated"]), (0, &Value::Null));
    assert_eq!(packet["stack"][3], "tss");
    assert_eq!(packet["trailer"]["kind"], "icv", "recognized");
}

#[test]
fn with_a_wrong_key_nothing_is_decrypted() {
    let capture = file("wrong.pcap", &capture::simple(&frames(&[1])));
    let keys = keys("wrong.toml", &"22".repeat(32));
    let run = uet(&["decode", "--keys", &keys, "--format", "json", &capture]);
    let packet = &json(&run.out)[0];
    assert_eq!((run.code, &packet["protection"]["authenticated"]), (1, &Value::Bool(false)));
    assert_eq!(packet["fields"]["pds.type"], Value::Null);
    let run = uet(&["check", "--keys", &keys, &capture]);
    assert_eq!(run.code, 1, "{}", run.out);
}

#[test]
fn a_decrypted_capture_is_one_in_the_clear() {
    let secured = file("secured.pcap", &capture::simple(&frames(&CLUSTER)));
    let keys = keys("decrypt.toml", &secret());
    let clear = file("clear.pcapng", b"");
    let run = uet(&["decrypt", "--keys", &keys, &secured, &clear]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (0, "uet: 6 packets, 6 decrypted, 0 not authentic, 0 without a fitting key\n")
    );
    let before = json(&uet(&["decode", "--keys", &keys, "--format", "json", &secured]).out);
    let after = json(&uet(&["decode", "--format", "json", &clear]).out);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&after["error"], &after["protection"]), (&Value::Null, &Value::Null));
        for (name, value) in after["fields"].as_object().unwrap() {
            if name != "udp.length" {
                assert_eq!(&before["fields"][name], value, "{name}");
            }
        }
    }
}

#[test]
fn a_decrypted_packet_is_encrypted_again() {
    let capture = file("again.pcap", &capture::simple(&frames(&CLUSTER)));
    let keys = keys("again.toml", &secret());
    let lines: String = frames(&CLUSTER).iter().map(|frame| format!("{}\n", hex::Hex(frame))).collect();
    let with_bytes = uet(&["decode", "--keys", &keys, "--format", "json", "--bytes", &capture]).out;
    let back = uet_with(with_bytes.as_bytes(), &["encode", "--keys", &keys]);
    assert_eq!((back.out.as_str(), back.code), (lines.as_str(), 0), "{}", back.err);
    let refused = uet_with(with_bytes.as_bytes(), &["encode"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(refused.err.contains("line 1: protection: the packet was decrypted"), "{}", refused.err);
}

#[test]
fn a_bad_key_file_names_line_and_reason_and_no_key() {
    let secret = secret();
    let bad = [
        (
            "short.toml",
            format!("[[domain]]\nsdi = 1\nmode = \"direct\"\nkeys = {{ 0 = \"{}\" }}\n", &secret[..62]),
            "line 1: keys: a key has 64",
        ),
        ("mode.toml", format!("[[domain]]\nsdi = 1\nmode = \"{secret}\"\n"), "line 3: unknown variant"),
        ("type.toml", format!("[[domain]]\nsdi = \"{secret}\"\nmode = \"direct\"\n"), "line 2: invalid type"),
        ("syntax.toml", format!("[[domain]]\nsdi = 1\nkeys = {{ 0 = \"{secret}\n"), "line 3: "),
        ("none.toml", String::new(), "has no [[domain]]"),
        (
            "twice.toml",
            format!(
                "[[domain]]\nsdi = 1\nmode = \"direct\"\nkeys = {{ 0 = \"{secret}\", 1 = \"{secret}\" }}\n"
            ),
            "line 1: keys: one key stands in two places",
        ),
    ];
    for (name, text, reason) in bad {
        let keys = file(name, text.as_bytes());
        let run = uet(&["decode", "--keys", &keys, "00"]);
        assert_eq!(run.code, 2, "{name}");
        assert!(run.err.contains(reason), "{name}: {}", run.err);
        assert!(!run.err.contains(&secret[..16]), "{name} shows a key: {}", run.err);
    }
}
