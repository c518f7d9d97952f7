//! `--keys`: packets under transport security, by the worked examples that the codec's tests hold.

use crate::common::capture::Order;
use crate::common::{capture, file, uet, uet_with};
use serde_json::Value;
use uet_packet_io::hex;

const EXAMPLES: &str = include_str!("../../../../uet-wire/tests/all/tss/examples.json");

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
    for command in ["check", "stats"] {
        let run = uet(&[command, &capture]);
        let said = "uet: 1 packet is encrypted and not read: no keys were given (option --keys)\n";
        assert_eq!((run.code, run.err.as_str()), (0, said), "{command}");
    }
    let unjudged = "nothing was judged, because 1 packet is encrypted and not read";
    assert_eq!(uet(&["check", &capture]).out.lines().last(), Some(unjudged));
    let summary = json(&uet(&["check", "--format", "json", &capture]).out).pop().unwrap();
    assert_eq!(summary["unjudged"], unjudged);
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
        (0, "uet: 6 packets, 6 decrypted, 0 not authentic, 0 not tried\n")
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
fn packets_that_stay_secured_are_counted_by_key_and_reason() {
    let secured = file("closed.pcap", &capture::simple(&frames(&CLUSTER)));
    let clear = file("closed-clear.pcapng", b"");
    let wrong = keys("decrypt-wrong.toml", &"22".repeat(32));
    let other = std::fs::read_to_string(&wrong).unwrap().replace("0x012345", "7");
    let other = file("decrypt-other.toml", other.as_bytes());
    for (keys, counts, why) in [
        (
            &wrong,
            "6 not authentic, 0 not tried",
            "the ICV is wrong: the packet has changed, or the key is another",
        ),
        (&other, "0 not authentic, 6 not tried", "there is no key for this domain"),
    ] {
        let run = uet(&["decrypt", "--keys", keys, &secured, &clear]);
        let expected = format!(
            "uet: 6 packets, 0 decrypted, {counts}\n\
             uet: domain 0x012345, association number 0: 6 packets not decrypted: {why}\n\
             uet: the keys come from {keys}: compare its domains, association numbers and keys with these\n"
        );
        assert_eq!((run.code, run.err), (1, expected));
    }
}

#[test]
fn a_decrypted_capture_may_go_to_a_pipe() {
    let secured = file("piped.pcap", &capture::simple(&frames(&CLUSTER)));
    let (keys, clear) = (keys("piped.toml", &secret()), file("piped-clear.pcapng", b""));
    assert_eq!(uet(&["decrypt", "--keys", &keys, &secured, &clear]).code, 0);
    let piped = std::process::Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["decrypt", "--keys", &keys, &secured, "-"])
        .output()
        .unwrap();
    assert!(piped.stdout == std::fs::read(clear).unwrap() && !std::path::Path::new("-").exists());
}

#[test]
fn only_secured_packets_need_keys() {
    let (plain, clear) = (capture::simple(&[crate::common::write()]), file("plain-clear.pcapng", b""));
    let run = uet(&["decrypt", &file("plain.pcap", &plain), &clear]);
    let counts = "uet: 1 packet, 0 decrypted, 0 not authentic, 0 not tried\n";
    assert_eq!((run.code, run.err.as_str()), (0, counts));
    let empty = file("empty", b"");
    for command in ["decrypt", "anonymize"] {
        let run = uet(&[command, &empty, &clear]);
        let told = format!("uet: {empty}: the input contains no packet\n");
        assert!(run.code == 0 && run.err.ends_with(&told), "{}", run.err);
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
        (
            "mode.toml",
            format!("[[domain]]\nsdi = 1\nmode = \"{secret}\"\n"),
            "line 3, column 8: expected one of `direct`, ",
        ),
        (
            "type.toml",
            format!("[[domain]]\nsdi = \"{secret}\"\nmode = \"direct\"\n"),
            "line 2, column 7: expected u32",
        ),
        ("syntax.toml", format!("[[domain]]\nsdi = 1\nkeys = {{ 0 = \"{secret}\n"), "line 3, column "),
        ("none.toml", String::new(), "has no [[domain]]"),
    ];
    for (name, text, reason) in bad {
        let keys = file(name, text.as_bytes());
        let run = uet(&["decode", "--keys", &keys, "00"]);
        assert_eq!(run.code, 2, "{name}");
        assert!(run.err.contains(reason), "{name}: {}", run.err);
        assert!(!run.err.contains(&secret[..16]), "{name} shows a key: {}", run.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn senders_refuse_one_key_in_two_places() {
    let domain =
        |sdi: u32, keys: &str| format!("[[domain]]\nsdi = {sdi}\nmode = \"direct\"\nkeys = {{ {keys} }}\n");
    let secret = secret();
    let in_an = |an: u8| format!("{an} = \"{secret}\"");
    let slots = domain(1, &format!("{}, {}", in_an(0), in_an(1)));
    let domains = [domain(1, &in_an(1)), domain(2, &in_an(0))].concat();
    for (text, reason) in [
        (slots, "line 1: keys: AN 0 of domain 0x000001 and AN 1 of domain 0x000001 have one key"),
        (domains, "line 5: keys: AN 1 of domain 0x000001 and AN 0 of domain 0x000002 have one key"),
    ] {
        let keys = file("two-places.toml", text.as_bytes());
        let run = uet(&["emulate", "--listen", "127.0.0.1:0", "--control", "stdio", "--keys", &keys]);
        assert_eq!(run.code, 2);
        assert!(run.err.contains(reason) && !run.err.contains(&secret[..8]), "{}", run.err);
        // A capture may show a sender with this fault.
        let capture = file("two-places.pcap", &capture::simple(&frames(&[1])));
        assert_eq!(uet(&["decode", "--keys", &keys, &capture]).err, "");
    }
}

/// Encodes the packets of the cluster again, as a capture.
fn encoded(name: &str, more: &[&str]) -> String {
    let secured = file(&format!("{name}.pcap"), &capture::simple(&frames(&CLUSTER)));
    let keys = keys(&format!("{name}.toml"), &secret());
    let lines = uet(&["decode", "--keys", &keys, "--format", "json", "--bytes", &secured]).out;
    let out = file(&format!("{name}.pcapng"), b"");
    let arguments = ["encode", "--format", "pcapng", "--keys", &keys, "-o", &out];
    let run = uet_with(lines.as_bytes(), &[&arguments, more].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    out
}

/// Replaces the key in a capture by another of the same length.
fn with_other_key(capture: &str, name: &str, other: &str) -> String {
    let (bytes, secret) = (std::fs::read(capture).unwrap(), secret());
    let at = bytes.windows(64).position(|window| window == secret.as_bytes()).unwrap();
    file(name, &[&bytes[..at], other.as_bytes(), &bytes[at + 64..]].concat())
}

#[test]
fn keys_travel_in_a_capture_on_request() {
    let plain = encoded("keys-apart", &[]);
    assert!(!std::fs::read(&plain).unwrap().windows(16).any(|part| part == &secret().as_bytes()[..16]));
    assert_eq!(
        json(&uet(&["decode", "--format", "json", &plain]).out)[0]["protection"]["authenticated"],
        Value::Null
    );
    let run = uet(&["decrypt", &plain, &file("no-keys.pcapng", b"")]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("the capture holds no keys; give them with --keys FILE"), "{}", run.err);

    let capture = encoded("keys-inside", &["--embed-keys"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&capture).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may read the keys");
    }
    let decode = uet(&["decode", "--format", "json", &capture]);
    let packets = json(&decode.out);
    assert!(packets.iter().all(|packet| packet["protection"]["authenticated"] == true), "{}", decode.out);
    let clear = file("keys-gone.pcapng", b"");
    let decrypt = uet(&["decrypt", &capture, &clear]);
    assert_eq!(decrypt.err, "uet: 6 packets, 6 decrypted, 0 not authentic, 0 not tried\n");
    let check = uet(&["check", "--format", "json", &capture]);
    assert!(!check.out.contains("not-authentic"), "{}", check.out);
    let written = std::fs::read(&clear).unwrap();
    assert!(!written.windows(16).any(|part| part == &secret().as_bytes()[..16]));
    for run in [&decode, &decrypt, &check] {
        assert!(!run.out.contains(&secret()[..16]) && !run.err.contains(&secret()[..16]));
    }

    // Keys of the command line come first.
    let wrong = keys("keys-wrong.toml", &"22".repeat(32));
    let run = uet(&["decode", "--keys", &wrong, "--format", "json", &capture]);
    assert_eq!((run.code, &json(&run.out)[0]["protection"]["authenticated"]), (1, &Value::Bool(false)));
    // A wrong key in the capture is used, too.
    let other = with_other_key(&capture, "keys-other.pcapng", &"33".repeat(32));
    assert_eq!(uet(&["check", &other]).code, 1);
}

#[test]
fn damaged_keys_in_a_capture_cause_a_warning_without_a_key() {
    let capture = encoded("keys-damaged", &["--embed-keys"]);
    let damaged = with_other_key(&capture, "keys-odd.pcapng", &format!("{}x", &secret()[..63]));
    let run = uet(&["decode", "--format", "json", &damaged]);
    assert_eq!((run.code, &json(&run.out)[0]["protection"]["authenticated"]), (0, &Value::Null));
    let expected =
        "uet: warning: the decryption secrets of the capture are not used: line 1: keys: a key has";
    assert!(run.err.starts_with(expected) && !run.err.contains(&secret()[..8]), "{}", run.err);
}

#[test]
fn secrets_have_their_type_in_the_byte_order_of_the_section() {
    let key_file = format!(
        "[[domain]]\nsdi=74565\nmode=\"cluster\"\nrekey_mask=0xffff00000000\nrekey_shift=32\nkeys={{0=\"{}\"}}",
        secret()
    );
    let frame = &frames(&[1])[0];
    // `UETK` with the highest bit set; the key log of TLS.
    for (kind, expected) in [(0xd545_544b, Value::Bool(true)), (0x544c_534b, Value::Null)] {
        for order in [Order::Big, Order::Little] {
            let secrets =
                [&order.four(kind)[..], &order.four(key_file.len() as u32), key_file.as_bytes()].concat();
            let capture = [
                capture::section(order),
                capture::interface(order, 1, None, None),
                capture::block(order, 10, &secrets),
                capture::enhanced(order, 0, 0, frame.len(), frame),
            ];
            let run = uet(&["decode", "--format", "json", &file("order.pcapng", &capture.concat())]);
            assert_eq!(
                (run.err.as_str(), &json(&run.out)[0]["protection"]["authenticated"]),
                ("", &expected)
            );
        }
    }
}

#[test]
fn key_files_of_a_capture_are_bounded() {
    let key_file = format!("[[domain]]\nsdi=7\nmode=\"direct\"\nkeys={{0=\"{}\"}}\n", secret());
    let frame = &frames(&[1])[0];
    let with = |count: usize, key_file: &str| {
        let order = Order::Little;
        let length = order.four(key_file.len() as u32);
        let block = [&order.four(0xd545_544b)[..], &length, key_file.as_bytes()].concat();
        let mut capture = [capture::section(order), capture::interface(order, 1, None, None)].concat();
        (0..count).for_each(|_| capture.extend(capture::block(order, 10, &block)));
        capture.extend(capture::enhanced(order, 0, 0, frame.len(), frame));
        uet(&["check", &file("key-files.pcapng", &capture)])
    };
    assert!(with(64, &key_file).err.contains("there is no key for this domain"));
    let long = format!("{key_file}# {}", "x".repeat(1 << 20));
    for (count, key_file) in [(65, &key_file), (4, &long)] {
        let run = with(count, key_file);
        assert_eq!(run.code, 2, "{}", run.out);
        assert!(run.err.contains("the capture has more than 64 key files, or 4 MiB of them"), "{}", run.err);
    }
}

#[test]
fn embedding_keys_needs_keys_and_a_capture() {
    let keys = keys("embed-nothing.toml", &secret());
    let out = file("embed-nothing.pcapng", b"");
    let run = uet_with(b"", &["encode", "--keys", &keys, "--embed-keys", "-o", &out]);
    assert_eq!((run.code, run.err.as_str()), (2, "uet: --embed-keys needs a capture: use --format pcapng\n"));
    assert_eq!(uet_with(b"", &["encode", "--format", "pcapng", "--embed-keys", "-o", &out]).code, 2);
    // The shell may put standard output into a file that everybody may read.
    let run = uet_with(b"", &["encode", "--format", "pcapng", "--keys", &keys, "--embed-keys"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("--output <FILE>"), "{}", run.err);
    assert_eq!(uet(&["emulate", "--keys", &keys, "--embed-keys"]).code, 2);
}

#[cfg(target_os = "linux")]
#[test]
fn emulate_embeds_keys_on_request() {
    let keys = keys("emulate.toml", &secret());
    for embed in [false, true] {
        let capture = file("emulate.pcapng", b"");
        let arguments = [
            "emulate",
            "--listen",
            "127.0.0.1:0",
            "--control",
            "stdio",
            "--keys",
            &keys,
            "--capture",
            &capture,
        ];
        let more: &[&str] = if embed { &["--embed-keys"] } else { &[] };
        let run = uet_with(b"", &[&arguments, more].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        let written = std::fs::read(&capture).unwrap();
        assert_eq!(written.windows(64).any(|part| part == secret().as_bytes()), embed);
    }
}

/// Seals example 1 anew, with these fields.
fn sealed(keys: &str, decoded: &str, fields: &[(&str, Value)]) -> Vec<u8> {
    let mut packet: Value = serde_json::from_str(decoded).unwrap();
    for (field, value) in fields {
        packet["fields"][*field] = value.clone();
    }
    let run = uet_with(format!("{packet}\n").as_bytes(), &["encode", "--keys", keys]);
    assert_eq!(run.code, 0, "{}", run.err);
    hex::decode(run.out.trim()).unwrap()
}

#[test]
fn check_finds_an_iv_again_in_other_domains_slots_and_files() {
    let domain = |sdi: u32| {
        format!(
            "[[domain]]\nsdi = {sdi}\nmode = \"cluster\"\nrekey_mask = 0xffff00000000\nrekey_shift = 32\n\
             keys = {{ 0 = \"{0}\", 1 = \"{0}\" }}\n",
            secret()
        )
    };
    let keys = file("iv-places.toml", [domain(0x01_2345), domain(7)].concat().as_bytes());
    let original = file("iv-places.pcap", &capture::simple(&frames(&[1])));
    let decoded = uet(&["decode", "--keys", &keys, "--format", "json", &original]).out;
    let packet = |message: u16, sdi: u32, an: u8| {
        let fields = [("ses.message_id", message.into()), ("tss.sdi", sdi.into()), ("tss.an", an.into())];
        sealed(&keys, &decoded, &fields)
    };
    let first = packet(1, 0x01_2345, 0);
    let check = |second: Vec<u8>, apart: bool| {
        let packets = [first.clone(), second];
        let files: Vec<String> = match apart {
            true => packets
                .iter()
                .zip(["iv-one.pcap", "iv-two.pcap"])
                .map(|(packet, name)| file(name, &capture::simple(core::slice::from_ref(packet))))
                .collect(),
            false => vec![file("iv-both.pcap", &capture::simple(&packets))],
        };
        let mut arguments = vec!["check", "--keys", &keys, "--format", "json"];
        arguments.extend(files.iter().map(String::as_str));
        let found = json(&uet(&arguments).out);
        found.iter().filter(|line| line["id"] == "TSS-CTR-001").count()
    };
    assert_eq!(check(packet(2, 7, 0), false), 1, "another domain");
    assert_eq!(check(packet(2, 0x01_2345, 1), false), 1, "another association number");
    assert_eq!(check(packet(2, 0x01_2345, 0), true), 1, "another file");
    assert_eq!(check(packet(2, 7, 1), true), 1);
    assert_eq!(check(first.clone(), true), 0, "a capture at the other end");
}

#[cfg(target_os = "linux")]
#[test]
fn runs_of_emulate_repeat_no_iv() {
    use crate::common::nic::{Nic, peer, post};
    use uet_control::{Counters, Hello, Mode, PROTOCOL, Post, PostKind, Welcome};

    let keys = keys("runs.toml", &secret());
    let captures = ["run-1.pcapng", "run-2.pcapng"].map(|name| file(name, b""));
    for capture in &captures {
        let nic = Nic::start("127.0.0.1", &["--keys", &keys, "--capture", capture]);
        let mut suite = nic.connect();
        let welcome: Welcome = suite.call(Hello { protocol: PROTOCOL }).unwrap();
        assert_eq!(welcome.parameters["start_psn_method"], "random");
        let peer = peer(&mut suite, "127.0.0.9", 4793);
        for _ in 0..3 {
            suite.call(Post { mode: Mode::Uud, ..post(PostKind::Datagram, peer, 32) }).unwrap();
        }
        let begun = std::time::Instant::now();
        while suite.call(Counters {}).unwrap().sent < 3 {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60));
        }
        assert_eq!(nic.stop("-TERM").0, Some(0));
    }
    let counters = |capture: &String| {
        let decoded = json(&uet(&["decode", "--keys", &keys, "--format", "json", capture]).out);
        let all: Vec<_> = decoded.iter().map(|packet| packet["fields"]["tss.counter"].to_string()).collect();
        assert_eq!(all.len(), 3);
        all
    };
    let [first, second] = captures.each_ref().map(counters);
    assert!(first.iter().all(|counter| !second.contains(counter)), "{first:?} {second:?}");
}

#[test]
fn check_judges_counters_and_epochs_of_opened_packets() {
    let keys = keys("judged.toml", &secret());
    let original = file("judged.pcap", &capture::simple(&frames(&[1])));
    let decoded = uet(&["decode", "--keys", &keys, "--format", "json", &original]).out;
    let packet = |epoch: u16, counter: u64, message: u16| {
        let counter = format!("{counter:#014x}");
        let fields = [
            ("tss.epoch", epoch.into()),
            ("tss.counter", counter.into()),
            ("ses.message_id", message.into()),
        ];
        sealed(&keys, &decoded, &fields)
    };
    let check = |name: &str, packets: &[Vec<u8>]| -> (i32, Vec<String>) {
        let path = file(name, &capture::simple(packets));
        let run = uet(&["check", "--keys", &keys, "--format", "json", &path]);
        let found = json(&run.out).into_iter().filter(|line| line["id"] != Value::Null);
        let protection = found.filter(|line| {
            ["TSS-CTR-001", "counter-back", "old-epoch"].contains(&line["id"].as_str().unwrap())
        });
        (
            run.code,
            protection
                .map(|line| format!("{} {} {}", line["number"], line["severity"], line["id"]))
                .collect(),
        )
    };
    let none: Vec<String> = vec![];
    // A copy is no second use of the IV.
    let first = packet(7, 0x23, 1);
    assert_eq!(check("iv-copy.pcap", &[first.clone(), first.clone()]), (0, none.clone()));
    let (code, found) = check("iv-again.pcap", &[first.clone(), packet(7, 0x23, 2)]);
    assert_eq!((code, found), (1, vec!["2 \"error\" \"TSS-CTR-001\"".into()]));
    // Another epoch is another key.
    assert_eq!(check("iv-epoch.pcap", &[first, packet(8, 0x23, 2)]).1, none);
    let back = [packet(7, 0x5_0000, 1), packet(7, 0x4_ffff, 2), packet(7, 3, 3), packet(7, 4, 4)];
    assert_eq!(check("back.pcap", &back).1, ["3 \"note\" \"counter-back\""]);
    let epochs = [packet(0xfff8, 1, 1), packet(8, 2, 2), packet(0xfff8, 3, 3), packet(0xfff7, 4, 4)];
    assert_eq!(check("epochs.pcap", &epochs).1, ["4 \"warning\" \"old-epoch\""]);
    // A packet that is not authentic says nothing.
    let mut damaged = packet(7, 0x23, 2);
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(check("iv-damaged.pcap", &[packet(7, 0x23, 1), damaged]).1, none);
}
