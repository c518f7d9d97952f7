//! `uet stats`.

use crate::common::capture::simple;
use crate::common::{file, uet, write};
use serde_json::{Value, json};
use std::time::Duration;
use uet_conformance::passive::{Origin, Restart};
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};

fn learn(name: &str) -> String {
    format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/captures/learn/{}.pcapng"), name)
}

fn measured(capture: &str) -> Value {
    let run = uet(&["stats", "--format", "json", &learn(capture)]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    serde_json::from_str(&run.out).unwrap()
}

/// docs/walkthroughs.md describes both retransmissions.
#[test]
fn retransmissions_and_response_times_are_those_of_the_capture() {
    let stats = measured("loss");
    let total = &stats["total"];
    assert_eq!((&stats["packets"], &stats["contexts"]), (&json!(26), &json!(1)));
    assert_eq!([&total["requests"], &total["retransmissions"], &total["acks"]], [14, 2, 12]);
    // The message has 48 KiB; what came twice counts once.
    assert_eq!(total["payload_bytes"], 49152);
    let response = &total["response_ns"];
    let [p50, p99, max] = ["p50", "p99", "max"].map(|key| response[key].as_u64().unwrap());
    assert!(p50 < 4_000 && p99 > 90_000 && max >= p99, "{response}");
    let times = stats["flows"][0]["series"]["response_ns"].as_array().unwrap();
    assert_eq!(times.iter().filter_map(|point| point[1].as_f64()).fold(0.0, f64::max), max as f64);
    assert_eq!(stats["flows"][0]["series"]["window_psns"].as_array().unwrap().len(), 12);
}

/// A double has 53 bits, so many readers of JSON round the numbers.
#[test]
fn first_and_last_times_are_there_as_exact_text_too() {
    let total = &measured("loss")["total"];
    assert_eq!(
        [&total["first_ns"], &total["last_ns"]],
        [1_768_471_200_000_000_337_u64, 1_768_471_200_000_107_889]
    );
    let [first, last] = ["2026-01-15T10:00:00.000000337Z", "2026-01-15T10:00:00.000107889Z"];
    assert_eq!([&total["first"], &total["last"]], [first, last]);
    let empty = file("stats-empty.pcap", &simple(&[]));
    let run = uet(&["stats", "--format", "json", &empty]);
    assert_eq!(serde_json::from_str::<Value>(&run.out).unwrap()["total"]["first"], Value::Null);
}

/// Its packets are cut off after 160 bytes.
#[test]
fn cut_packets_count_with_their_real_lengths() {
    let stats = measured("incast");
    assert_eq!(stats["total"]["nacks"], json!({"TRIMMED_LASTHOP": 27}));
    assert_eq!(stats["flows"].as_array().unwrap().len(), 4);
    for pair in stats["pairs"].as_array().unwrap() {
        assert_eq!(pair["sums"]["payload_bytes"], 64 << 10, "{pair}");
    }
}

#[test]
fn nothing_is_in_flight_at_the_end_of_a_story() {
    for name in ["write", "loss", "incast", "trimming", "rendezvous", "close", "secured"] {
        for flow in measured(name)["flows"].as_array().unwrap() {
            let last = flow["series"]["in_flight_bytes"].as_array().unwrap().last();
            assert_eq!(last.map_or(0.0, |point| point[1].as_f64().unwrap()), 0.0, "{name}: {flow}");
        }
    }
}

#[test]
fn time_between_captures_does_not_count() {
    let rate = |inputs: &[&str]| {
        let run = uet(&[&["stats", "--format", "json"], inputs].concat());
        serde_json::from_str::<Value>(&run.out).unwrap()["total"]["goodput_bps"].clone()
    };
    let loss = learn("loss");
    assert_eq!(rate(&[&loss, &loss]), rate(&[&loss]));
}

#[test]
fn doubled_packets_are_no_loss() {
    let path = file("stats-doubled.pcap", &simple(&[write(), write(), write()]));
    let run = uet(&["stats", "--format", "json", &path]);
    let total = &serde_json::from_str::<Value>(&run.out).unwrap()["total"];
    assert_eq!([&total["retransmissions"], &total["duplicates"]], [2, 2]);
    let header = uet(&["stats", &path]).out;
    assert!(header.lines().next().unwrap().contains("  retx  dup  NACKs"), "{header}");
}

#[test]
fn requests_without_a_context_have_a_row() {
    let capture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../corpora/captures/reference-provider/ref_rudi_uud.pcap.gz"
    );
    let run = uet(&["stats", capture]);
    let row = run.out.lines().find(|line| line.starts_with("without a context"));
    assert!(row.is_some_and(|row| row.contains("  9  7.83 KB  ")), "{}", run.out);
    let csv = uet(&["stats", "--format", "csv", capture]).out;
    assert!(csv.lines().any(|line| line.starts_with(",,,,,9,")), "{csv}");
}

#[test]
fn csv_series_and_plots_are_written() {
    let series = file("stats-series.csv", b"");
    let plots = format!("{series}-plots");
    let run = uet(&["stats", "--format", "csv", "--series", &series, "--plots", &plots, &learn("loss")]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let [head, row, pair]: [&str; 3] = run.out.lines().collect::<Vec<_>>().try_into().unwrap();
    let columns = head.split(',').count();
    assert_eq!((columns, columns), (row.split(',').count(), pair.split(',').count()));
    let numbers = row.strip_prefix("1,10.2.0.1,10.2.0.2,8208,RUD,").expect(row);
    assert!(numbers.starts_with("14,"), "{row}");
    assert!(head.ends_with(",packets") && numbers.ends_with(",26"), "14 requests and 12 ACKs: {row}");
    assert_eq!(pair.strip_prefix(",10.2.0.1,10.2.0.2,,,"), Some(numbers), "the pair has one context");
    let series = std::fs::read_to_string(series).unwrap();
    assert!(series.lines().any(|line| line.ends_with(",window_psns,1024")), "{series}");
    let window = std::fs::read_to_string(format!("{plots}/window.svg")).unwrap();
    assert!(window.starts_with("<svg"), "{window}");
}

/// In each context of the capture, one CLOSE_COMMAND follows; in the first, a CLOSE_REQUEST comes the other way.
#[test]
fn control_packets_count_as_packets_of_their_sender() {
    let stats = measured("close");
    let counts = |sums: &Value| ["packets", "requests", "acks"].map(|key| sums[key].as_u64().unwrap());
    assert_eq!(counts(&stats["total"]), [10, 2, 5]);
    let flows: Vec<_> = stats["flows"].as_array().unwrap().iter().map(|flow| counts(&flow["sums"])).collect();
    assert_eq!(flows.iter().filter(|[_, requests, _]| *requests > 0).collect::<Vec<_>>(), [&[4, 1, 2]; 2]);
    assert_eq!(flows.iter().map(|[packets, ..]| packets).sum::<u64>(), 10, "each packet is in a row");
    let pairs = stats["pairs"].as_array().unwrap().iter().map(|pair| counts(&pair["sums"])[0]);
    assert_eq!(pairs.collect::<Vec<_>>(), [4, 6]);
    let text = uet(&["stats", &learn("close")]).out;
    let row = text.lines().nth(1).unwrap();
    assert!(row.starts_with("1 10.5.0.1 > 10.5.0.2 RUD        4         1  382 B  "), "{text}");
}

#[test]
fn text_has_a_row_for_each_context() {
    let run = uet(&["stats", &learn("incast")]);
    let contexts = run.out.lines().filter(|line| line.contains(" > 10.4.0.9 RUD ")).count();
    assert_eq!((run.code, contexts), (0, 4), "{}", run.out);
    assert!(run.out.contains("NACK TRIMMED_LASTHOP: 27"), "{}", run.out);
}

#[test]
fn unreadable_input_is_reported() {
    let run = uet(&["stats", "no-such-file"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("no-such-file"), "{}", run.err);
}

/// An equal packet is a retransmission, but not after a restart.
#[test]
fn contexts_begin_anew_where_a_capture_states_a_restart() {
    let origin = Origin { instance: None, device: vec![[10, 0, 1, 12].into()] };
    let (suite, begin) = (origin.comment(), Origin::begin("ack/requested"));
    for (section, comment, contexts) in [
        ("", "", 1),
        ("", Restart::OF_NIC, 2),
        (suite.as_str(), begin.as_str(), 2),
        ("a lab", begin.as_str(), 1),
    ] {
        let path = file("restart.pcapng", b"");
        let out = std::fs::File::create(&path).unwrap();
        let mut out = CaptureWriter::commented(out, LinkType::Ethernet, "uet", section).unwrap();
        let frame = write();
        out.write(&CapturedFrame::new(Duration::ZERO, &frame)).unwrap();
        let second = CapturedFrame::new(Duration::from_micros(1), &frame);
        out.write(&CapturedFrame { comment, ..second }).unwrap();
        out.finish().unwrap();
        let told = |command| {
            let run = uet(&[command, "--format", "json", &path]);
            serde_json::from_str::<Value>(run.out.lines().last().unwrap()).unwrap()
        };
        let (stats, check) = (told("stats"), told("check"));
        assert_eq!(
            (&stats["contexts"], &check["contexts"]),
            (&json!(contexts), &json!(contexts)),
            "{comment}"
        );
        assert_eq!(stats["total"]["retransmissions"], 2 - contexts, "{comment}");
    }
}
