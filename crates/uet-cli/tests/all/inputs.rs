//! Inputs of packets: every kind of capture and of text, whole and damaged.

use crate::common;

use common::capture::{Order, block, enhanced, gzip, interface, pcap, section, simple};
use common::{Run, ack, file, lines, odd, uet, uet_with, write};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use uet_packet_io::input;
use uet_packet_io::json::Decoded;
use uet_wire::{Options, Start};

fn json(name: &str, content: &[u8]) -> (Run, Vec<Value>) {
    let path = file(name, content);
    let run = uet(&["decode", "--format", "json", &path]);
    let packets = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (run, packets)
}

#[test]
fn pcap_in_both_byte_orders_with_micro_and_nanoseconds() {
    let frame = write();
    for order in [Order::Big, Order::Little] {
        for (nano, time) in
            [(false, "2026-01-02T03:03:05.000007000Z"), (true, "2026-01-02T03:03:05.000000007Z")]
        {
            let name = format!("plain-{order:?}-{nano}.pcap");
            let content = pcap(order, nano, 1, &[(1_767_322_985, 7, frame.len(), &frame)]);
            let (run, packets) = json(&name, &content);
            assert_eq!((run.code, packets.len()), (0, 1), "{}", run.err);
            assert_eq!(packets[0]["time"], time);
            assert_eq!(packets[0]["fields"]["pds.psn"], 73728);
            assert_eq!(json(&format!("{name}.gz"), &gzip(&content)).1, packets);
        }
    }
}

#[test]
fn pcapng_with_interfaces_of_other_clocks_and_links() {
    let frame = write();
    let length = frame.len();
    for order in [Order::Big, Order::Little] {
        let content = [
            section(order),
            interface(order, 1, None, None),
            interface(order, 101, Some(9), None),
            interface(order, 228, Some(0x80 | 20), Some(1_000_000_000)),
            enhanced(order, 0, 1_500_000, length, &frame),
            enhanced(order, 1, 1_500_000_000, length - 14, &frame[14..]),
            enhanced(order, 2, 3 << 19, length - 14, &frame[14..]),
            // A packet without a time, an unknown block, another section.
            block(order, 3, &[&order.four(length as u32)[..], &frame].concat()),
            block(order, 0x8000_0001, b"anything"),
            section(order),
            interface(order, 1, Some(3), None),
            enhanced(order, 0, 2_500, length, &frame),
        ]
        .concat();
        let (run, packets) = json(&format!("clocks-{order:?}.pcapng"), &content);
        assert_eq!((run.code, packets.len()), (0, 5), "{}", run.err);
        let times: Vec<_> = packets.iter().map(|packet| packet["time"].as_str()).collect();
        assert_eq!(
            times,
            [
                Some("1970-01-01T00:00:01.500000000Z"),
                Some("1970-01-01T00:00:01.500000000Z"),
                Some("2001-09-09T01:46:41.500000000Z"),
                None,
                Some("1970-01-01T00:00:02.500000000Z")
            ]
        );
        assert!(packets.iter().all(|packet| packet["fields"]["pds.psn"] == 73728));
        assert_eq!(packets[1]["stack"][0], "ipv4");
        // The last section has one interface.
        let interfaces: Vec<_> =
            packets.iter().map(|packet| packet["interface"]["number"].as_u64()).collect();
        assert_eq!(interfaces, [Some(0), Some(1), Some(2), Some(0), None]);
        assert!(packets[4].get("interface").is_none());
    }
}

#[test]
fn packets_of_several_interfaces_name_theirs() {
    let (order, frame) = (Order::Little, write());
    let named = |name: &[u8; 4]| {
        let option = [&order.two(2)[..], &order.two(4), name, &[0; 4]].concat();
        block(order, 1, &[&order.two(1)[..], &order.two(0), &order.four(0), &option].concat())
    };
    let content = [
        section(order),
        named(b"eth0"),
        named(b"a\"\\b"),
        named(b"a\x1b[m"),
        enhanced(order, 1, 1, frame.len(), &frame),
        enhanced(order, 2, 2, frame.len(), &frame),
    ]
    .concat();
    let (_, packets) = json("named-interfaces.pcapng", &content);
    let interfaces: Vec<_> = packets.iter().map(|packet| packet["interface"].clone()).collect();
    let quoted = serde_json::json!({"number": 1, "name": "a\"\\b"});
    assert_eq!(interfaces, [quoted, serde_json::json!({"number": 2, "name": null})]);
    let path = file("named-interfaces.pcapng", &content);
    let text = uet(&["decode", &path]).out;
    let interfaces: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("  interface")).collect();
    assert_eq!(interfaces.iter().map(|it| it.trim()).collect::<Vec<_>>(), ["1 (a\"\\b)", "2"]);
    // `uet encode` accepts the key.
    let lines = uet(&["decode", "--format", "json", &path]).out;
    let run = uet_with(lines.as_bytes(), &["encode", "-"]);
    assert_eq!((run.code, run.out.lines().count()), (0, 2), "{}", run.err);
}

#[test]
fn simple_packet_block_padding_is_excluded() {
    let (order, frame) = (Order::Little, write());
    let kept = 50; // two bytes short of the block's next word
    let snapped = [&order.two(1)[..], &order.two(0), &order.four(kept as u32)].concat();
    let simple = [&order.four(frame.len() as u32)[..], &frame[..kept]].concat();
    let content = [section(order), block(order, 1, &snapped), block(order, 3, &simple)].concat();
    let (run, packets) = json("simple-block.pcapng", &content);
    assert_eq!((run.code, packets.len()), (0, 1), "{}", run.err);
    assert_eq!(packets[0]["sliced"], serde_json::json!({"captured": kept, "wire": frame.len()}));
}

#[test]
fn every_link_type() {
    let v4 = &write()[14..];
    let v6 = common::frame(&serde_json::json!({"src": "fd00::1", "dst": "fd00::2", "fields": {"pds.type": 7,
        "pds.cack_psn": 73728, "pds.spdcid": 1, "pds.dpdcid": 2}}))[14..]
        .to_vec();
    let cooked = |ethertype: u16| [&[0; 14][..], &ethertype.to_be_bytes()].concat();
    let cooked2 = |ethertype: u16| [&ethertype.to_be_bytes()[..], &[0; 18]].concat();
    let cases: Vec<(&str, u32, Vec<u8>, &[u8])> = vec![
        ("RAW", 101, vec![], v4),
        ("RAW, IPv6", 101, vec![], &v6),
        ("RAW of OpenBSD", 12, vec![], v4),
        ("IPV4", 228, vec![], v4),
        ("IPV6", 229, vec![], &v6),
        ("LINUX_SLL", 113, cooked(0x0800), v4),
        ("LINUX_SLL, IPv6", 113, cooked(0x86dd), &v6),
        ("LINUX_SLL2", 276, cooked2(0x0800), v4),
        ("NULL", 0, 2u32.to_ne_bytes().to_vec(), v4),
        ("NULL, the other order", 0, 2u32.to_ne_bytes().iter().rev().copied().collect(), v4),
        ("NULL, IPv6", 0, 30u32.to_ne_bytes().to_vec(), &v6),
        ("LOOP", 108, 2u32.to_be_bytes().to_vec(), v4),
    ];
    for (name, link, header, packet) in cases {
        let bytes = [&header[..], packet].concat();
        let content = pcap(Order::Little, false, link, &[(0, 0, bytes.len(), &bytes)]);
        let (run, packets) = json(&format!("link-{}.pcap", name.replace(' ', "-")), &content);
        assert_eq!(run.code, 0, "{name}: {}", run.err);
        let fields = &packets[0]["fields"];
        assert!(fields["pds.psn"] == 73728 || fields["pds.cack_psn"] == 73728, "{name}: {}", run.out);
    }
    // Packets of an unknown link type are skipped without an error.
    let content = pcap(Order::Little, false, 147, &[(0, 0, 3, b"abc")]);
    let (run, packets) = json("link-unknown.pcap", &content);
    assert_eq!((run.code, &packets[0]["stack"]), (0, &serde_json::json!(["payload"])));
}

#[test]
fn snap_length_is_no_error() {
    let frame = write();
    for kept in 0..frame.len() {
        let content = pcap(Order::Little, false, 1, &[(0, 0, frame.len(), &frame[..kept])]);
        let (run, packets) = if kept % 16 == 0 {
            json("sliced.pcap", &content)
        } else {
            (Run { code: 0, out: String::new(), err: String::new() }, decode(&content).0)
        };
        assert_eq!((run.code, packets.len()), (0, 1), "{kept}: {}", run.err);
        assert_eq!(packets[0]["sliced"], serde_json::json!({"captured": kept, "wire": frame.len()}));
        assert_eq!((&packets[0]["error"], &packets[0]["trimmed"]), (&Value::Null, &Value::Null));
    }
}

#[test]
fn hexadecimal_text() {
    let (first, second) = (lines(&[write()]), lines(&[ack()]));
    let text = format!("# a comment\n\n{first}  0x{second}\r\n");
    let (run, packets) = json("packets.txt", text.as_bytes());
    assert_eq!((run.code, packets.len()), (0, 2), "{}", run.err);
    assert_eq!(packets[1]["number"], 2);
    assert_eq!(packets[1]["time"], Value::Null);

    let run = uet_with(first.as_bytes(), &["decode", "--format", "json", "-"]);
    assert_eq!(run.out.lines().next(), uet(&["decode", "--format", "json", first.trim()]).out.lines().next());
    let run = uet(&[
        "decode",
        "--format",
        "json",
        "--from",
        "uet",
        "3a00 0000 00012003 80014001 0101000100000065 00004000",
    ]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains(r#""pds.cack_psn":73731"#), "{}", run.out);

    let broken = format!("{first}12 3x\n{second}");
    let (run, packets) = json("broken.txt", broken.as_bytes());
    assert_eq!((run.code, packets.len()), (2, 1));
    assert!(run.err.ends_with("line 2: 'x' at character 5 is not a hexadecimal digit\n"), "{}", run.err);

    let (run, _) = json("no-capture.txt", b"To whom it may concern\n");
    assert!(
        run.err.contains("line 1: the input is not a capture (pcap, pcapng), nor hexadecimal text: "),
        "{}",
        run.err
    );
}

#[test]
fn captures_on_standard_input() {
    let content = simple(&[write(), ack()]);
    for content in [content.clone(), gzip(&content)] {
        let run = uet_with(&content, &["decode", "--format", "summary", "-"]);
        assert_eq!((run.code, run.out.lines().count()), (0, 2), "{}", run.err);
    }
}

#[test]
fn unreadable_inputs() {
    let (empty, full) = (file("empty", b""), file("full.pcap", &simple(&[write()])));
    let told = format!("uet: {empty}: the input contains no packet\n");
    let run = uet(&["decode", &empty]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", told.as_str()));
    for command in ["decode", "check"] {
        let run = uet(&[command, &full, &empty]);
        assert_eq!((run.code, run.err.as_str()), (0, told.as_str()), "one of two");
    }
    let run = uet(&["decode", env!("CARGO_TARGET_TMPDIR")]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("directory"), "{}", run.err);
    let run = uet(&["decode", "no-such-file.pcap"]);
    assert_eq!(run.code, 2);
    assert!(run.err.starts_with("uet: no-such-file.pcap: No such file"), "{}", run.err);
    let run = uet(&["decode", "3a0z"]);
    assert_eq!(run.code, 2);
    assert!(
        run.err
            .contains("there is no file of this name, nor is it hexadecimal text: 'z' at character 4 is not"),
        "{}",
        run.err
    );
    let digits = "380000000001200380014001";
    let said =
        format!("uet: {digits}: no UET packet; the digits may begin with another layer: try --from uet\n");
    assert_eq!(uet(&["decode", digits]).err, said);
    assert_eq!(uet(&["decode", digits, "--from", "uet"]).err, "");
    for (name, content) in [("picture", &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..]), ("zeros", &[0; 64])] {
        let run = uet(&["decode", &file(name, content)]);
        assert_eq!(run.code, 2);
        assert!(
            run.err.contains("the input is not a capture (pcap, pcapng), nor hexadecimal text"),
            "{}",
            run.err
        );
    }
    for (start, with) in [(&b"PK\x03\x04 "[..], "zip"), (b"\x28\xb5\x2f\xfd ", "zstd")] {
        let run = uet(&["check", &file(with, start)]);
        assert!(
            run.err.contains(&format!("the input is compressed with {with}: unpack it first")),
            "{}",
            run.err
        );
        assert_eq!(run.code, 2);
    }
    let run = uet(&["decode", &file("endless", &vec![b'0'; 3 << 20])]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("line 1: the line is longer than the limit of"), "{}", run.err);
}

#[test]
fn one_bad_input_does_not_hide_the_others() {
    let good = file("good.pcap", &simple(&[write()]));
    let run = uet(&["decode", "--format", "summary", "no-such-file.pcap", &good]);
    assert_eq!((run.code, run.out.lines().count()), (2, 1));
}

/// Reads a capture in this process: the packets, and the reason for the end.
fn decode(content: &[u8]) -> (Vec<Value>, Option<String>) {
    let (lines, end) = decode_lines(content);
    (lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect(), end)
}

fn decode_lines(content: &[u8]) -> (Vec<Vec<u8>>, Option<String>) {
    let mut packets = Vec::new();
    let ended = input::read(content, Start::Eth, &mut |record| {
        let mut line = Vec::new();
        Decoded::new(record, &Options::default(), false).write(&mut line);
        packets.push(line);
        Ok(ControlFlow::Continue(()))
    });
    (packets, ended.err().map(|error| error.to_string()))
}

fn captures() -> [Vec<u8>; 2] {
    let order = Order::Little;
    let frames = [write(), ack(), odd()];
    let mut pcapng = [section(order), interface(order, 1, Some(9), None)].concat();
    for frame in &frames {
        pcapng.extend(enhanced(order, 0, 7, frame.len(), frame));
    }
    [simple(&frames), pcapng]
}

#[test]
fn truncated_captures_yield_all_whole_packets() {
    for (index, whole) in captures().into_iter().enumerate() {
        let (all, end) = decode_lines(&whole);
        assert_eq!((all.len(), end), (3, None));
        let mut counts = Vec::new();
        for length in 4..whole.len() {
            let (packets, end) = decode_lines(&whole[..length]);
            assert_eq!(packets[..], all[..packets.len()], "{length}");
            let between = end.is_none();
            let message = end.unwrap_or_default();
            assert!(between || message.starts_with("damaged at byte "), "{length}: {message}");
            if between {
                counts.push(packets.len());
            }
            if length % 64 == 5 {
                let run = uet(&["decode", "--format", "summary", &file("truncated", &whole[..length])]);
                assert_eq!(run.out.lines().count(), packets.len(), "{length}");
                assert_eq!(run.code, if between { 0 } else { 2 }, "{length}: {}", run.err);
                assert!(run.err.contains(&message));
            }
        }
        // Only a cut between two blocks is not an error.
        assert_eq!(counts.len(), [3, 4][index], "{counts:?}");
        // A truncated compressed capture yields all packets that the decompressor can recover.
        let packed = gzip(&whole);
        for length in 2..packed.len() {
            let (packets, end) = decode_lines(&packed[..length]);
            assert_eq!(packets[..], all[..packets.len()], "{length}");
            assert!(end.is_some(), "{length}");
        }
    }
}

#[test]
fn damaged_at_every_byte_never_panics() {
    for whole in captures() {
        for at in 0..whole.len() {
            for value in [0, 0xff, whole[at] ^ 1, whole[at] ^ 0x80] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                decode_lines(&damaged);
            }
        }
    }
}

#[test]
fn corrupt_blocks_are_named_with_their_offset() {
    let order = Order::Little;
    let start = [section(order), interface(order, 1, None, None)].concat();
    let good = enhanced(order, 0, 0, 20, &[0; 20]);
    let mut long = good.clone();
    long[20..24].copy_from_slice(&200u32.to_le_bytes());
    let mut torn = good.clone();
    torn[4..8].copy_from_slice(&7u32.to_le_bytes());
    let cases = [
        (
            enhanced(order, 5, 0, 20, &[0; 20]),
            "a packet names interface 5, but no block before it describes this interface",
        ),
        (long, "the file ends in the middle of a block, or the lengths in the block are wrong"),
        (torn, "a block is shorter than 12 bytes"),
        (interface(order, 1, Some(100), None), "if_tsresol 0x64"),
        (
            [&order.four(6)[..], &order.four(0x7fff_fff0), &[0; 64]].concat(),
            "the file ends in the middle of a block",
        ),
    ];
    for (index, (bad, why)) in cases.into_iter().enumerate() {
        let content = [&start[..], &good, &bad, &good].concat();
        let (run, packets) = json(&format!("corrupt-{index}.pcapng"), &content);
        assert_eq!((run.code, packets.len()), (2, 1), "{why}: {}", run.err);
        let offset = start.len() + good.len();
        assert!(run.err.contains(&format!("damaged at byte {offset}: {why}")), "{why}: {}", run.err);
        let packed = json(&format!("corrupt-{index}.pcapng.gz"), &gzip(&content)).0;
        let where_it_is = "bytes are those of the uncompressed data";
        let told = [&run, &packed].map(|run| run.err.contains(where_it_is));
        assert!(packed.err.contains(&format!("damaged at byte {offset}: ")) && told == [false, true]);
    }
}

#[test]
fn times_that_do_not_fit_are_not_others() {
    let order = Order::Little;
    let ticks = |ticks| enhanced(order, 0, ticks, 60, &write()[..60]);
    let parts =
        [section(order), interface(order, 1, Some(0), None), ticks(u64::MAX), ticks(1 << 35), ticks(1)];
    let (run, packets) = json("times.pcapng", &parts.concat());
    assert_eq!(
        (packets[0]["time"].clone(), packets[2]["time"].is_string()),
        (Value::Null, true),
        "{}",
        run.out
    );
    let path = file("times.pcapng", &parts.concat());
    let run = uet(&["anonymize", &path, &file("times-after.pcapng", b"")]);
    assert!(run.err.contains("warning: 1 packet had times outside 1970 to 2554"), "{}", run.err);
}

#[test]
fn outputs_replace_neither_inputs_nor_each_other() {
    let content = simple(&[write()]);
    let capture = file("packets.parquet", &content);
    let folder = std::path::Path::new(&capture).parent().unwrap().to_str().unwrap();
    let new = format!("{folder}/new");
    let key_text =
        format!("[[domain]]\nsdi = 1\nmode = \"direct\"\nkeys = {{ 0 = \"{}\" }}\n", "5a".repeat(32));
    let keys = file("distinct.toml", key_text.as_bytes());
    for words in [
        &["decrypt", "--keys", &keys, &capture, &capture][..],
        &["decrypt", "--keys", &keys, &capture, &keys],
        &["anonymize", "--manifest", &capture, &capture, &new],
        &["anonymize", "--manifest", &new, &capture, &format!("{folder}/./new")],
        &["stats", "--series", &capture, &capture],
        &["decode", "--format", "parquet", "-o", folder, &capture],
    ] {
        let run = uet(words);
        assert!(run.code == 2 && run.err.contains("would replace its input"), "{words:?}: {}", run.err);
        assert_eq!(
            (std::fs::read(&capture).unwrap(), std::fs::read_to_string(&keys).unwrap()),
            (content.clone(), key_text.clone())
        );
    }
}

#[test]
fn captures_without_pds_headers_say_so() {
    let frame = write();
    for (kept, said) in [
        (42, "before the end of their PDS header"),
        (40, "before the end of their UDP header"),
        (34, "before the end of their UDP header"),
        (20, "within their IP header"),
    ] {
        let content = pcap(Order::Little, false, 1, &[(1, 1, frame.len(), &frame[..kept])]);
        let path = file("headless.pcap", &content);
        let run = uet(&["check", &path]);
        assert_eq!(run.code, 0, "{}", run.err);
        let last = run.out.lines().last().unwrap();
        assert!(last.starts_with("nothing was judged, because ") && last.ends_with(said), "{last}");
    }
    let mut fragment = write();
    fragment[20] |= 0x20;
    let run = uet(&["check", &file("fragment.hex", lines(&[write(), fragment]).as_bytes())]);
    assert!(run.err.contains("1 fragment of IP packets not read"), "{}", run.err);
}

#[test]
fn two_vlan_tags_are_read_and_a_third_one_is_named() {
    let tagged = |tags: &[u8]| {
        let mut frame = write();
        frame.splice(12..12, tags.iter().copied());
        uet(&["check", &file("tagged.pcap", &simple(&[frame]))])
    };
    let run = tagged(&[0x91, 0, 0, 10, 0x81, 0, 0, 20]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    assert!(run.out.starts_with("1 packet, 1 context, "), "{}", run.out);
    let run = tagged(&[0x88, 0xa8, 0, 10, 0x91, 0, 0, 20, 0x81, 0, 0, 30]);
    assert_eq!(run.err, "uet: no packet is UET\nuet: 1 packet with more than 2 VLAN tags not read\n");
    let last = run.out.lines().last().unwrap();
    let said = "nothing was judged, because no packet is UET; packets have more than 2 VLAN tags";
    assert_eq!((run.code, last), (0, said));
}

#[test]
fn skipped_packets_are_reported() {
    let frame = write();
    let mut elsewhere = frame.clone();
    elsewhere[36..38].copy_from_slice(&49_150u16.to_be_bytes());
    let order = Order::Little;
    // DNS is UDP too, and no UET.
    let mut dns = elsewhere.clone();
    dns[36..38].copy_from_slice(&53u16.to_be_bytes());
    dns[42..].fill(0xff);
    for (name, link, frames, code, said) in [
        (
            "link-105.pcap",
            105,
            &[&frame][..],
            2,
            "link-105.pcap: 1 packet was skipped: link type 105 is not supported; supported are Ethernet",
        ),
        (
            "port-49150.pcap",
            1,
            &[&dns, &elsewhere, &dns],
            0,
            "no packet is UET; 1 of 3 are UDP to port 49150: try --udp-port 49150",
        ),
    ] {
        let packets: Vec<_> = frames.iter().map(|frame| (1, 1, frame.len(), &frame[..])).collect();
        let path = file(name, &pcap(order, false, link, &packets));
        for command in ["decode", "check", "stats"] {
            let run = uet(&[command, &path]);
            // `uet decode` shows the bytes.
            assert_eq!(run.code, if command == "decode" { 0 } else { code }, "{command} {name}");
            assert!(run.err.contains(said), "{command} {name}: {}", run.err);
        }
        let run = uet(&["check", &path]);
        let last = run.out.lines().last().unwrap();
        let seen = if code == 0 { "UDP destination ports: 53 (2), 49150 (1)" } else { "their link type" };
        assert!(last.starts_with(&format!("nothing was judged, because no packet is UET; {seen}")), "{last}");
        let run = uet(&["check", "--format", "json", &path]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&run.out).unwrap()["unjudged"], last);
        let run = uet(&["fuzz", "--from", &path]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{name}");
        assert!(run.err.contains("no UET conversation"), "{}", run.err);
    }
    let mixed = file("mixed-ports.pcap", &simple(&[elsewhere, frame]));
    assert_eq!(uet(&["check", &mixed]).err, "", "others may talk too");
}

#[test]
fn text_may_start_with_a_byte_order_mark() {
    let run = uet_with(format!("\u{feff}{}", lines(&[write()])).as_bytes(), &["decode", "-"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

/// Feeds standard input in pieces and keeps it open, then sends a signal.
#[test]
#[cfg(target_os = "linux")]
fn standard_input_is_shown_as_it_arrives() {
    let whole = [simple(&[write(), ack()]), captures()[1].clone(), lines(&[write(), ack()]).into_bytes()];
    for (index, bytes) in whole.iter().enumerate() {
        let mut child = Command::new(env!("CARGO_BIN_EXE_uet"))
            .args(["decode", "--format", "summary", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        for piece in bytes.chunks(7) {
            input.write_all(piece).unwrap();
        }
        // The start of another packet, which never ends.
        input.write_all(&bytes[bytes.len() - 9..bytes.len() - 2]).unwrap();
        for _ in 0..2 {
            let line = out.next().unwrap().unwrap();
            assert!(line.contains(" PSN "), "{index}: {line}");
        }
        common::signal(child.id(), "-INT");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{index}");
        drop(input);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn check_reports_packets_before_the_signal() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&simple(&[common::forbidden(), write()])).unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = out.next().unwrap().unwrap();
    assert!(line.contains("1 error WIRE-SES-003"), "{line}");
    common::signal(child.id(), "-TERM");
    let last = out.map(Result::unwrap).last().unwrap();
    assert!(last.starts_with("2 packets"), "{last}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
