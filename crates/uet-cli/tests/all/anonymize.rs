//! `uet anonymize`.

use crate::common::{capture, file, frame, uet};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uet_cli::anonymize::{Anonymizer, Mapping};
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};
use uet_packet_io::input;
use uet_packet_io::json::{Decoded, Record};
use uet_wire::{Options, Start, TrailerKind};

/// Anonymizes a capture with a fixed key; returns the new one and its manifest.
fn anonymized(capture: &str, name: &str, options: &[&str]) -> (String, Value) {
    let (out, manifest) = (file(&format!("{name}.pcapng"), b""), file(&format!("{name}.json"), b""));
    let run =
        uet(&[&["anonymize", "--seed", "a key", "--manifest", &manifest, capture, &out], options].concat());
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{capture}: {}", run.err);
    (out, serde_json::from_str(&fs::read_to_string(manifest).unwrap()).unwrap())
}

/// Returns the packets of a capture with their bytes.
fn packets(capture: &str, options: &[&str]) -> Vec<Value> {
    let run = uet(&[&["decode", "--format", "json", "--bytes", capture], options].concat());
    assert!(run.code < 2, "{}", run.err);
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the findings of a capture without their messages, which have values; and the summary.
fn findings(capture: &str, options: &[&str]) -> (i32, Vec<Value>, Vec<Value>) {
    let run = uet(&[&["check", "--format", "json", "--limit", "100000", capture], options].concat());
    assert!(run.code < 2, "{}", run.err);
    let mut lines: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut culprits = Vec::new();
    for line in &mut lines {
        if let Some(line) = line.as_object_mut().filter(|line| line.contains_key("message")) {
            line.remove("message");
            line.remove("file");
            culprits.push(line.remove("culprit").unwrap());
        }
    }
    (run.code, lines, culprits)
}

/// Asserts that both captures have the same findings, about the same senders under other addresses.
#[track_caller]
fn assert_same_findings(before: &str, after: &str, options: &[&str]) {
    let (old, new) = (findings(before, options), findings(after, options));
    assert_eq!((old.0, old.1), (new.0, new.1), "{before}");
    let renamed: BTreeSet<_> =
        old.2.iter().zip(&new.2).map(|pair| (pair.0.to_string(), pair.1.to_string())).collect();
    let senders: BTreeSet<_> = renamed.iter().map(|(old, _)| old).collect();
    assert_eq!(senders.len(), renamed.len(), "{renamed:?}");
}

fn captures(folder: &str) -> Vec<String> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let paths = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|name| name == "pcapng" || name == "gz"));
    paths.map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn uet_check_finds_the_same_in_both_captures() {
    let mut tried = 0;
    for folder in ["corpora/captures/learn", "corpora/captures/reference-provider", "vectors/pcap"] {
        for capture in captures(folder) {
            let (out, manifest) = anonymized(&capture, "same", &[]);
            tried += 1;
            if manifest["decrypted"] == 0 && manifest["left_out"]["secured"] == 0 {
                assert_same_findings(&capture, &out, &[]);
            } else if manifest["left_out"]["secured"] == 0 {
                // The secured packets are in the clear now, so the findings are those of such a capture.
                let clear = file("clear.pcapng", b"");
                assert_eq!(uet(&["decrypt", &capture, &clear]).code, 0);
                assert_same_findings(&clear, &out, &[]);
            }
        }
    }
    assert!(tried > 10, "{tried} captures");
}

#[test]
fn uet_check_finds_the_same_in_a_capture_of_the_suite() {
    let suite = file("suite.pcapng", b"");
    // Without secured packets, which are left out.
    let rules = [
        "robustness/truncated-ses-header",
        "robustness/unknown-next-header",
        "encoding/ack",
        "crc/damaged-payload",
    ];
    let rules: Vec<&str> = rules.iter().flat_map(|rule| ["--id", rule]).collect();
    let fault = [&["--fault", "fills-reserved-bits"], &rules[..]].concat();
    let run = uet(&[&["run", "--max-instances", "1", "--capture", &suite], &fault[..]].concat());
    assert_eq!(run.code, 1, "{}", run.err);
    let (out, manifest) = anonymized(&suite, "suite-after", &[]);
    assert_eq!(manifest["left_out"]["secured"], 0);
    assert_same_findings(&suite, &out, &[]);
    assert!(uet(&["check", &out]).out.contains("captured by the suite: "), "{manifest}");
}

#[test]
fn only_what_identifies_is_replaced() {
    const FIELDS: [&str; 7] = [
        "ses.job_id",
        "ses.memory_key",
        "ses.read_memory_key",
        "ses.match_bits",
        "ses.header_data",
        "ses.compare_value",
        "ses.swap_value",
    ];
    for capture in captures("corpora/captures/learn") {
        if capture.contains("secured") {
            continue;
        }
        let (out, manifest) = anonymized(&capture, "only", &[]);
        let (old, new) = (packets(&capture, &[]), packets(&out, &[]));
        assert_eq!((old.len(), &manifest["written"]), (new.len(), &json!(old.len())));
        let mut renamed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (old, new) in old.iter().zip(&new) {
            for end in ["src", "dst"] {
                assert_ne!(old[end], new[end]);
                renamed.entry(old[end].to_string()).or_default().insert(new[end].to_string());
            }
            for key in
                ["time", "stack", "names", "payload", "padding", "trimmed", "sliced", "error", "trailer"]
            {
                assert_eq!(old[key], new[key], "{capture} {key}");
            }
            for (name, value) in old["fields"].as_object().unwrap() {
                let is_zero = [json!(0), json!("0x0000000000000000")].contains(value);
                let stays = !FIELDS.contains(&name.as_str()) || is_zero;
                assert_eq!(new["fields"][name] == *value, stays, "{capture} {name} {value}");
            }
            let payload = |packet: &Value| packet["raw"]["payload"].as_str().unwrap().to_owned();
            assert!(payload(old).is_empty() || payload(old) != payload(new));
        }
        assert!(renamed.values().all(|new| new.len() == 1), "{renamed:?}");
        let new: BTreeSet<_> = renamed.values().flatten().collect();
        assert_eq!(new.len(), renamed.len());
    }
}

/// Adds 16-bit words in ones' complement.
fn sum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low)));
    words.fold(0, |sum, word| (sum + word) % 0xffff) as u16
}

#[test]
fn checksums_and_crcs_stay_as_right_as_they_were() {
    let packet = |src: &str, psn: u32, crc: &[&str]| {
        frame(&json!({"src": src, "dst": "10.0.1.12", "stack": crc, "payload_hex": "0102030405", "fields": {
            "pds.type": 2, "pds.clear_psn_offset": -1, "pds.psn": psn, "pds.spdcid": 0x4001, "pds.dpdcid": 0x8001
        }}))
    };
    let mut frames: Vec<_> = (5..9).map(|psn| packet("10.0.0.1", psn, &["crc"])).collect();
    *frames[2].last_mut().unwrap() ^= 1;
    let crc = frames[3].len() - 4;
    frames[3][crc..].reverse();
    // A wrong checksum of IP, and a right one of UDP.
    frames.push(packet("10.0.0.2", 9, &[]));
    frames[4][25] ^= 1;
    let mut udp = packet("10.0.0.3", 10, &[]);
    let pseudo = |frame: &[u8]| [&frame[26..34], &[0, 17], &frame[38..40], &frame[34..]].concat();
    let checksum = !sum(&pseudo(&udp));
    udp[40..42].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(sum(&pseudo(&udp)), 0);
    frames.push(udp);
    let path = file("checksums-in.pcap", &capture::simple(&frames));
    let (out, manifest) = anonymized(&path, "checksums", &["--trailer", "auto"]);
    assert_eq!(manifest["replaced"]["payload"], 6);
    for trailer in ["auto", "crc", "none"] {
        assert_same_findings(&path, &out, &["--trailer", trailer]);
    }
    let new = packets(&out, &["--trailer", "crc"]);
    let is_right: Vec<_> = new[..4].iter().map(|packet| &packet["trailer"]["ok"]).collect();
    assert_eq!(is_right, [true, true, false, false]);
    let run = uet(&["decode", "--trailer", "crc", "--packets", "4", &out]);
    assert!(run.out.contains("in reverse byte order"), "{}", run.out);
    let bytes = |packet: &Value| {
        let raw = |part| packet["raw"][part].as_str().unwrap().to_owned();
        uet_packet_io::hex::decode(&(raw("outer") + &raw("payload"))).unwrap()
    };
    let last = packets(&out, &["--trailer", "none"]).pop().unwrap();
    let (outer, fields) = (bytes(&last), &last["fields"]);
    assert_eq!(fields["pds.psn"], 10);
    // The PDS header, which is neither outer nor payload, is the one that was sent.
    let whole = [&outer[..42], &frames[5][42..54], &outer[42..]].concat();
    assert_eq!(whole.len(), frames[5].len());
    assert_eq!(sum(&pseudo(&whole)), 0, "{last}");
}

/// Anonymizes the first bytes of a frame, which end before the packet does if there are fewer than on the wire.
fn replaced(frame: &[u8], captured: usize, trailer: TrailerKind) -> Vec<u8> {
    let options = Options::DEFAULT.trailer(trailer);
    let record =
        Record { start: Start::Eth, bytes: &frame[..captured], wire: frame.len(), ..Record::default() };
    let mut anonymizer = Anonymizer::new(Mapping::new(b"a key"), options);
    anonymizer.frame(&Decoded::new(record, &options, false)).unwrap().bytes
}

#[test]
fn wrong_checksums_and_crcs_tell_nothing_about_the_old_bytes() {
    const IP: usize = 14 + 10;
    const UDP: usize = 14 + 20 + 6;
    let frame =
        frame(&json!({"src": "10.0.0.1", "dst": "10.0.1.12", "stack": ["crc"], "payload_hex": "01020304",
        "fields": {"pds.type": 2, "pds.psn": 7, "pds.spdcid": 1, "pds.dpdcid": 2}}));
    let crc = frame.len() - 4;
    let trailer = TrailerKind::Crc;
    let cuts = [(IP, 14 + 16), (UDP, UDP + 1), (UDP, UDP + 10), (UDP, crc), (crc, crc + 2)];
    for (at, captured) in [(IP, frame.len()), (UDP, frame.len()), (crc, frame.len())].into_iter().chain(cuts)
    {
        let of = |value: [u8; 2]| {
            let mut frame = frame.clone();
            frame[at..at + 2].copy_from_slice(&value);
            replaced(&frame, captured, trailer)
        };
        assert_eq!(of([0x12, 0x34]), of([0x56, 0x78]), "byte {at} of {captured}");
    }
    let mut offloaded = frame.clone();
    offloaded[IP..IP + 2].fill(0);
    offloaded[crc..].fill(0);
    let pseudo = |frame: &[u8]| sum(&[&frame[26..34], &[0, 17], &frame[38..40]].concat()).to_be_bytes();
    let partial = pseudo(&frame);
    offloaded[UDP..UDP + 2].copy_from_slice(&partial);
    let new = replaced(&offloaded, frame.len(), trailer);
    assert_eq!((&new[IP..IP + 2], &new[crc..]), (&[0; 2][..], &[0; 4][..]));
    assert_eq!(new[UDP..UDP + 2], pseudo(&new));
    assert_ne!(partial, pseudo(&new));
}

#[test]
fn ipv6_extension_headers_tell_no_address_and_no_data() {
    const SECRET: [u8; 16] = *b"\xfd\x12secret address";
    let plain = frame(&json!({"src": "fd00::1", "dst": "fd00::2", "payload_hex": "01020304",
        "fields": {"pds.type": 2, "pds.psn": 7, "pds.spdcid": 1, "pds.dpdcid": 2}}));
    let with = |first: u8, extension: &[u8]| {
        let mut frame = plain.clone();
        frame[14 + 5] += extension.len() as u8;
        frame[14 + 6] = first;
        frame.splice(14 + 40..14 + 40, extension.iter().copied());
        frame
    };
    let mapped = Mapping::new(b"a key").address(SECRET.into());
    let std::net::IpAddr::V6(mapped) = mapped else { panic!("{mapped}") };
    let segments = [&[17, 4, 4, 1, 1, 0, 9, 9], &SECRET[..], &SECRET].concat();
    let old_route = [&[17, 2, 0, 1, 0, 0, 0, 0], &SECRET[..]].concat();
    let home = [&[17, 2, 1, 2, 0, 0, 0xc9, 16], &SECRET[..]].concat();
    let unknown = [&[17, 2, 0x1e, 20], &SECRET[..], &[1; 4]].concat();
    let mobility = [&[17, 2, 1, 0, 0xab, 0xcd, 0, 0], &SECRET[..]].concat();
    for (first, extension, kept) in
        [(43, segments, 2), (43, old_route, 1), (60, home, 1), (0, unknown, 0), (135, mobility, 0)]
    {
        let frame = with(first, &extension);
        let new = replaced(&frame, frame.len(), TrailerKind::None);
        let count = |bytes: &[u8]| new.windows(bytes.len()).filter(|window| *window == bytes).count();
        assert_eq!((count(&SECRET[2..10]), count(&mapped.octets())), (0, kept), "{first} {new:x?}");
        assert_eq!(new[14 + 40..14 + 42], [17, extension[1]]);
        assert_eq!(count(&[0xab, 0xcd]), 0);
        // The capture ends within the header.
        let cut = replaced(&frame, 14 + 40 + 20, TrailerKind::None);
        assert!(!cut.windows(6).any(|window| window == &SECRET[2..8]), "{first} {cut:x?}");
    }
}

#[test]
fn one_key_gives_one_capture_and_no_key_a_new_one_each_time() {
    let learn = &captures("corpora/captures/learn")[0];
    let out = file("again.pcapng", b"");
    let bytes = |options: &[&str]| {
        assert_eq!(uet(&[&["anonymize", learn, &out], options].concat()).code, 0);
        fs::read(&out).unwrap()
    };
    assert_eq!(bytes(&["--seed", "one"]), bytes(&["--seed", "one"]));
    assert_ne!(bytes(&["--seed", "one"]), bytes(&["--seed", "two"]));
    assert_ne!(bytes(&[]), bytes(&[]));
}

#[test]
fn comments_and_names_stay_behind() {
    const SUITE: &str = "captured by the uet conformance suite, which breaks requirements on purpose; instance ACME; \
                         device 10.0.0.1 ACME; lab-nic";
    for (section, left_out) in [("the lab of ACME", 4), (SUITE, 3)] {
        let path = file("named.pcapng", b"");
        let write = fs::File::create(&path).unwrap();
        let mut write = CaptureWriter::commented(write, LinkType::Ethernet, "lab-nic-7", section).unwrap();
        let packet = crate::common::write();
        for comment in ["ACME says", "instance at ACME", "instance ack/retx\nACME"] {
            let frame = CapturedFrame::new(Duration::ZERO, &packet);
            write.write(&CapturedFrame { comment, ..frame }).unwrap();
        }
        write.write_secrets(b"").unwrap();
        write.finish().unwrap();
        let (out, manifest) = anonymized(&path, "unnamed", &[]);
        let text = String::from_utf8_lossy(&fs::read(&out).unwrap()).into_owned();
        assert!(!text.contains("ACME") && !text.contains("lab-nic"), "{text}");
        assert_eq!(text.contains("ack/retx"), section == SUITE, "{text}");
        assert_eq!(manifest["left_out"]["comments"], left_out);
    }
}

#[test]
fn secured_packets_need_keys() {
    let secured =
        captures("corpora/captures/learn").into_iter().find(|path| path.contains("secured")).unwrap();
    let (out, manifest) = anonymized(&secured, "opened", &[]);
    assert!(manifest["decrypted"].as_u64().unwrap() > 0, "{manifest}");
    assert!(packets(&out, &[]).iter().all(|packet| packet["protection"].is_null()));
    let keys = file(
        "other.toml",
        format!("[[domain]]\nsdi = 999\nmode = \"direct\"\nkeys = {{ 0 = \"{}\" }}\n", "5a".repeat(32))
            .as_bytes(),
    );
    let out = file("unopened.pcapng", b"");
    let run = uet(&["anonymize", "--keys", &keys, &secured, &out]);
    let count = manifest["decrypted"].as_u64().unwrap();
    let warning = format!("uet: warning: left out {count} secured packets that no key opens: ");
    assert!(run.code == 0 && run.err.starts_with(&warning), "{}", run.err);
}

/// Returns a capture of secured packets with one bit flipped. `at` takes the length of the first IP packet and returns
/// a byte of it.
fn flipped(name: &str, at: impl Fn(usize) -> usize) -> String {
    let secured =
        captures("corpora/captures/learn").into_iter().find(|path| path.contains("secured")).unwrap();
    let mut bytes = fs::read(secured).unwrap();
    let ip = bytes.windows(3).position(|window| window == [8, 0, 0x45]).unwrap() + 2;
    let length = u16::from_be_bytes([bytes[ip + 2], bytes[ip + 3]]);
    bytes[ip + at(length.into())] ^= 1;
    file(name, &bytes)
}

/// The IPv4 checksum of the first packet of a capture, and its place.
fn first_checksum(capture: &[u8]) -> (u16, usize) {
    let ip = capture.windows(3).position(|window| window == [8, 0, 0x45]).unwrap() + 2;
    (u16::from_be_bytes([capture[ip + 10], capture[ip + 11]]), ip + 10)
}

/// The difference to the right checksum is the checksum of the packet in the clear, so its bits alone would give 0.
#[test]
fn no_wrong_checksum_of_a_secured_packet_becomes_0() {
    let secured = captures("corpora/captures/learn").into_iter().find(|path| path.contains("secured"));
    let (secured, clear) = (secured.unwrap(), file("never-0-clear.pcapng", b""));
    let decrypted = |path: &str| {
        assert_eq!(uet(&["decrypt", path, &clear]).code, 0);
        first_checksum(&fs::read(&clear).unwrap()).0
    };
    let mut bytes = fs::read(&secured).unwrap();
    let ((old, at), new) = (first_checksum(&bytes), decrypted(&secured));
    bytes[at..at + 2].copy_from_slice(&(old ^ new).to_be_bytes());
    assert_eq!(decrypted(&file("never-0.pcapng", &bytes)), 0xffff);
}

#[test]
fn a_wrong_checksum_of_a_secured_packet_stays_wrong() {
    const CHECKSUM: usize = 10;
    let path = flipped("sum.pcapng", |_| CHECKSUM);
    let (out, clear) = (anonymized(&path, "sum-after", &[]).0, file("sum-clear.pcapng", b""));
    assert_eq!(uet(&["decrypt", &path, &clear]).code, 0);
    for capture in [&path, &out, &clear] {
        let run = uet(&["check", capture]);
        assert!(run.code == 1 && run.out.contains(" error WIRE-IP-002 "), "{}", run.out);
    }
}

#[test]
fn forged_and_malformed_packets_are_left_out_for_their_own_reason() {
    const LENGTH: usize = 3;
    type At = fn(usize) -> usize;
    let reasons: [(&str, At, &str); 2] = [
        ("not_authentic", |length| length - 1, "1 secured packet with a wrong ICV: the packet has changed"),
        ("malformed", |_| LENGTH, "1 malformed secured packet\n"),
    ];
    for (reason, at, said) in reasons {
        let path = flipped("left-out.pcapng", at);
        let (out, manifest) = (file("left-out-after.pcapng", b""), file("left-out.json", b""));
        let run = uet(&["anonymize", "--manifest", &manifest, &path, &out]);
        assert!(run.code == 0 && run.err.starts_with("uet: warning: left out "), "{}", run.err);
        assert!(run.err.contains(said) && !run.err.contains("--keys"), "{}", run.err);
        let manifest: Value = serde_json::from_str(&fs::read_to_string(manifest).unwrap()).unwrap();
        let left_out = &manifest["left_out"];
        assert_eq!((&left_out["secured"], &left_out[reason]), (&json!(1), &json!(1)), "{manifest}");
    }
}

/// The packet is too short for an ICV, and only its first byte tells that it is secured.
#[test]
fn a_cut_secured_packet_keeps_its_error() {
    let outer = "02000000000202000000000108004500002b00004000401125b60a0000010a00010cbeef12b900170000";
    let frame = uet_packet_io::hex::decode(&(outer.to_owned() + &"08".repeat(15))).unwrap();
    let path = file("cut-icv.pcap", &capture::simple(&[frame]));
    let (out, _) = anonymized(&path, "cut-icv-after", &[]);
    assert_same_findings(&path, &out, &[]);
    assert!(uet(&["check", &out]).out.contains(" error malformed "));
}

#[test]
fn its_input_is_not_replaced() {
    let path = file("input.pcap", &capture::simple(&[crate::common::write()]));
    let run = uet(&["anonymize", &path, &path]);
    assert!(run.code == 2 && run.err.contains("OUT would replace its input"), "{}", run.err);
    let run = uet(&["anonymize", "no-such-file", "/nowhere/out"]);
    assert!(run.code == 2 && run.err.contains("no-such-file"), "{}", run.err);
}

#[test]
fn the_new_capture_may_go_to_a_pipe_and_holds_what_could_be_read() {
    let capture = fs::read(&captures("corpora/captures/learn")[0]).unwrap();
    let cut = file("cut.pcapng", &capture[..capture.len() / 2]);
    let out = file("cut-after.pcapng", b"");
    let run = uet(&["anonymize", "--seed", "a key", &cut, &out]);
    assert!(run.code == 2 && run.err.contains("the file ends in the middle of a block"), "{}", run.err);
    assert!(packets(&out, &[]).len() > 3);
    let piped = std::process::Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["anonymize", "--seed", "a key", &cut, "-"])
        .output()
        .unwrap();
    assert!(piped.stdout == fs::read(&out).unwrap() && !Path::new("-").exists());
    let run = uet(&["anonymize", "--seed", "", &cut, &out]);
    assert!(run.code == 2 && run.err.contains("--seed"), "{}", run.err);
}

/// Damaged packets keep their length, their error and their findings, and cause no panic.
#[test]
fn random_damage_keeps_its_findings() {
    let mut frames = Vec::new();
    for name in ["headers", "pairs", "outer", "trailers", "tss"] {
        let path =
            captures("vectors/pcap").into_iter().find(|path| path.ends_with(&format!("/{name}.pcapng")));
        let capture = fs::File::open(path.unwrap()).unwrap();
        let mut keep = |record: Record<'_>| {
            frames.push(record.bytes.to_vec());
            Ok(ControlFlow::Continue(()))
        };
        input::read(capture, Start::Eth, &mut keep).unwrap();
    }
    for seed in 0..5000_u64 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bytes = rng.choice(&frames).unwrap().clone();
        for _ in 0..rng.usize(..4) {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }
        if rng.bool() {
            bytes.truncate(rng.usize(1..=bytes.len()));
        }
        let wire = bytes.len() + if rng.bool() { rng.usize(..100) } else { 0 };
        let trailer = *rng.choice(&[TrailerKind::None, TrailerKind::Crc, TrailerKind::Icv]).unwrap();
        let options = Options::DEFAULT.trailer(trailer);
        let record = Record { start: Start::Eth, bytes: &bytes, wire, ..Record::default() };
        let old = Decoded::new(record, &options, false);
        let mut anonymizer = Anonymizer::new(Mapping::new(&seed.to_be_bytes()), options);
        let Some(frame) = anonymizer.frame(&old) else {
            assert!(old.protection.is_some(), "seed {seed}");
            continue;
        };
        assert_eq!((frame.bytes.len(), frame.wire), (bytes.len(), wire), "seed {seed}");
        let new = Decoded::new(Record { bytes: &frame.bytes, ..record }, &options, false);
        let ids = |decoded: &Decoded<'_>| -> Vec<_> {
            decoded.findings.iter().map(|finding| (finding.requirement.id, finding.field)).collect()
        };
        // An error holds bytes of the packet too, and shows what it says.
        let error = |decoded: &Decoded<'_>| format!("{:?}", decoded.error());
        assert_eq!((ids(&old), error(&old)), (ids(&new), error(&new)), "seed {seed}");
    }
}
