//! Analysis of several packets together. These tests need tshark; `wireshark/test` runs them.

use super::{Captured, SCRIPT, Scratch, capture, tshark, write_capture};
use uet_wire::pds::{Ack, Control, PdsBuf, Request, Rudi};
use uet_wire::registry::{CtlType, NextHdr};
use uet_wire::{FrameBuilder, PdcId, Psn, PsnOffset};

const CLASH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/tshark/clash.lua");

fn traffic(packets: usize) -> Scratch {
    let file = Scratch::new("pcap");
    capture::write(file.0.to_str().unwrap(), packets, 256, 64).unwrap();
    file
}

/// Returns the values of these fields in each frame after two passes, separated by commas.
fn fields(file: &Scratch, names: &[&str]) -> Vec<Vec<String>> {
    let mut arguments = vec!["-2", "-r", file.0.to_str().unwrap(), "-T", "fields"];
    for name in names {
        arguments.extend(["-e", name]);
    }
    let lines = tshark(&[SCRIPT], &arguments);
    lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn frame_of(pds: impl Into<PdsBuf>, from_target: bool) -> Captured {
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (src, dst) = if from_target { (b, a) } else { (a, b) };
    let frame =
        FrameBuilder::new(pds).udp(50_000).ipv4(src, dst).ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes).unwrap();
    Captured::whole(bytes)
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn nack_links_to_request_and_retransmission() {
    let file = traffic(20);
    let names = [
        "uet.nack_for",
        "uet.nacked_in",
        "uet.answers_nack",
        "uet.retransmitted_in",
        "uet.retransmission_of",
        "uet.acked_in",
        "uet.acks",
    ];
    let frames = fields(&file, &names);
    let frame = |number: usize| frames[number - 1].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(frame(14), ["", "15", "", "19", "", "20", ""], "the request");
    assert_eq!(frame(15), ["14", "", "", "19", "", "", ""], "its NACK");
    assert_eq!(frame(19), ["", "", "15", "", "14", "", ""], "the retransmission");
    assert_eq!(frame(18), ["", "", "", "", "", "", "17,13,16"], "the ACK behind the gap");
    assert_eq!(frame(20), ["", "", "", "", "", "", "14"], "the ACK of what was missing");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn contexts_and_messages_are_followed_over_both_directions() {
    let file = traffic(20);
    let names = [
        "uet.pdc",
        "uet.pdc.direction",
        "uet.message.first",
        "uet.message.last",
        "uet.message.bytes",
        "uet.message.completion_time",
        "uet.response_time",
    ];
    let frames = fields(&file, &names);
    assert_eq!(frames[0][..2], ["0", "forward"]);
    assert_eq!(frames[2][..2], ["0", "return"]);
    assert_eq!(frames[19][..2], ["2", "return"]);
    assert_eq!(frames[12][2..5], ["13", "17", "1024"]);
    let seconds = |text: &str| text.parse::<f64>().unwrap();
    assert!((seconds(&frames[12][5]) - 9.1e-6).abs() < 2e-9, "{:?}", frames[12]);
    assert!((seconds(&frames[0][6]) - 3e-6).abs() < 2e-9, "{:?}", frames[0]);
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn oddities_over_several_packets_are_found() {
    let request = |psn: u32| {
        let offset = PsnOffset::new((psn - 100).min(4095) as u16).unwrap();
        Request::rud()
            .syn(true)
            .clear_psn_offset(-1)
            .psn(Psn(psn))
            .spdcid(PdcId(1))
            .pdc_info(0)
            .psn_offset(offset)
            .done()
            .unwrap()
    };
    let ack = |cack: u32| Ack::build().cack_psn(Psn(cack)).spdcid(PdcId(9)).dpdcid(PdcId(1)).done().unwrap();
    let rudi = |header: uet_wire::pds::RudiMut| {
        header.prologue(|prologue| prologue.next_hdr(NextHdr::UET_HDR_NONE)).done().unwrap()
    };
    let packets = [
        frame_of(request(100), false),
        frame_of(request(102), false),
        frame_of(request(100), false),
        frame_of(request(1_300), false),
        frame_of(ack(2_000), true),
        frame_of(request(101), false),
        frame_of(rudi(Rudi::request(7)), false),
        frame_of(rudi(Rudi::response(7)), true),
    ];
    let file = Scratch::new("pcap");
    write_capture(&file.0, 1, &packets);
    let names = [
        "uet.gap",
        "uet.duplicate_of",
        "uet.outside_window",
        "uet.analysis.ack_unseen",
        "uet.answer_in",
        "uet.answer_to",
        "uet.pdc",
    ];
    let frames: Vec<Vec<bool>> = fields(&file, &names)
        .iter()
        .map(|frame| frame.iter().map(|value| !value.is_empty()).collect())
        .collect();
    let shown = |index: usize| {
        names
            .iter()
            .zip(&frames[index])
            .filter(|(_, there)| **there)
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(0), ["uet.pdc"]);
    assert_eq!(shown(1), ["uet.gap", "uet.pdc"]);
    assert_eq!(shown(2), ["uet.duplicate_of", "uet.pdc"]);
    assert_eq!(shown(3), ["uet.gap", "uet.outside_window", "uet.pdc"]);
    assert_eq!(shown(4), ["uet.analysis.ack_unseen", "uet.pdc"]);
    assert_eq!(shown(5), ["uet.pdc"], "acknowledged before it was seen: no more is known");
    assert_eq!(shown(6), ["uet.answer_in"]);
    assert_eq!(shown(7), ["uet.answer_to"]);
}

/// Endpoints reuse identifiers, in either direction. PSNs that no window reaches tell the contexts apart (3.5.8).
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn reused_identifiers_name_another_context() {
    let open = |source: u16, psn: u32| {
        let request = Request::rud().syn(true).clear_psn_offset(-1).psn(Psn(psn)).spdcid(PdcId(source));
        request.pdc_info(0).psn_offset(PsnOffset::ZERO).done().unwrap()
    };
    let ack = |source: u16, target: u16, cack: u32| {
        Ack::build().cack_psn(Psn(cack)).spdcid(PdcId(source)).dpdcid(PdcId(target)).done().unwrap()
    };
    let late = Request::rud().clear_psn_offset(-1).psn(Psn(101)).spdcid(PdcId(1)).dpdcid(PdcId(9));
    let close = Control::build(CtlType::CLOSE_COMMAND).ar(true).psn(Psn(100_001));
    let close = close.spdcid(PdcId(1)).dpdcid(PdcId(9));
    let packets = [
        frame_of(open(1, 100), false),
        frame_of(ack(9, 1, 100), true),
        frame_of(open(1, 100_000), false),
        frame_of(ack(9, 1, 100_000), true),
        frame_of(late.done().unwrap(), false),
        frame_of(ack(9, 1, 1_000_000), true),
        frame_of(close.done().unwrap(), false),
        frame_of(ack(9, 1, 100_001), true),
        frame_of(open(1, 100_002), false),
        frame_of(open(9, 500_000), true),
        frame_of(ack(1, 9, 500_000), false),
    ];
    let file = Scratch::new("pcap");
    write_capture(&file.0, 1, &packets);
    let frames = fields(&file, &["uet.pdc", "uet.pdc.direction", "uet.acked_in"]);
    let shown: Vec<String> = frames.iter().map(|frame| frame.join(" ")).collect();
    assert_eq!(shown[..2], ["0 forward 2", "0 return "]);
    assert_eq!(shown[2..4], ["1 forward 4", "1 return "]);
    assert_eq!(shown[4], "0 forward ", "late");
    assert_eq!(shown[5], "  ", "an ACK of no context");
    assert_eq!(shown[6..8], ["1 forward 8", "1 return "]);
    assert_eq!(shown[8], "2 forward ", "the identifiers of a closed context are free");
    assert_eq!(shown[9..], ["3 forward 11", "3 return "], "from the target of the others");
    let name = file.0.to_str().unwrap();
    let arguments = ["-r", name, "-Y", "uet.analysis.ack_unseen", "-T", "fields", "-e", "frame.number"];
    assert_eq!(tshark(&[SCRIPT], &arguments).trim(), "6");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn a_built_in_protocol_of_the_same_name_does_not_stop_it() {
    let file = traffic(10);
    let name = file.0.to_str().unwrap();
    let filtered = |preference: &str| {
        tshark(&[CLASH, SCRIPT], &["-r", name, "-o", preference, "-Y", "uet.pds.type == 7 && uet.pdc == 0"])
    };
    assert_eq!(filtered("uet_wire.take_over:TRUE").lines().count(), 1, "our fields");
    let untouched = tshark(&[CLASH, SCRIPT], &["-r", name, "-o", "uet_wire.take_over:FALSE"]);
    assert!(untouched.lines().all(|line| line.contains("TAKEN")), "{untouched}");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn statistics_name_contexts_and_nacks() {
    let file = traffic(2_000);
    let said = tshark(&[SCRIPT], &["-q", "-r", file.0.to_str().unwrap(), "-o", "uet.statistics:TRUE"]);
    assert!(said.contains("UET: 2000 packets, 64 contexts"), "{said}");
    assert!(said.contains("NO_PKT_BUFFER="), "{said}");
    let silent = tshark(&[SCRIPT], &["-q", "-r", file.0.to_str().unwrap()]);
    assert_eq!(silent, "");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn a_line_reads_like_a_sentence() {
    let file = traffic(20);
    let said = tshark(&[SCRIPT], &["-r", file.0.to_str().unwrap(), "-T", "fields", "-e", "_ws.col.Info"]);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "RUD_REQ PSN 73728 SYN 0x4001 > ? UET_WRITE 1024 B [SOM]");
    assert_eq!(lines[14], "NACK NO_PKT_BUFFER PSN 2170881 0x8003 > 0x4003");
    assert_eq!(
        lines[17],
        "ACK_CC PSN 2170883 CACK 2170880 0x8003 > 0x4003 SACK 2170882-2170883 UET_DEFAULT_RESPONSE OK"
    );
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn every_code_point_has_its_name() {
    let said = tshark(&[SCRIPT], &["-G", "values"]);
    let known: std::collections::BTreeSet<(&str, u64, &str)> = said
        .lines()
        .filter_map(|line| {
            let mut parts = line.strip_prefix("V\tuet.")?.split('\t');
            let (name, number) = (parts.next()?, parts.next()?);
            let number = number
                .strip_prefix("0x")
                .map_or_else(|| number.parse(), |digits| u64::from_str_radix(digits, 16));
            Some((name, number.ok()?, parts.next()?))
        })
        .collect();
    let mut compared = 0;
    for place in uet_wire::layout::ALL.iter().flat_map(|layout| layout.fields()) {
        if let uet_wire::layout::Kind::Code(registry) = place.row.kind {
            for entry in registry.entries {
                compared += 1;
                assert!(
                    known.contains(&(place.row.name, entry.code.into(), entry.name)),
                    "{} {}",
                    place.row.name,
                    entry.name
                );
            }
        }
    }
    assert!(compared > 200, "{compared}");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn the_filters_of_the_documentation_work() {
    let page = include_str!("../../../../docs/wireshark.md");
    let section = page.split("## Filters").nth(1).unwrap().split("\n## ").next().unwrap();
    let filters: Vec<_> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert!(filters.len() >= 10, "{filters:?}");
    let file = traffic(400);
    let lines =
        |filter: &str| tshark(&[SCRIPT], &["-r", file.0.to_str().unwrap(), "-Y", filter]).lines().count();
    for filter in &filters {
        lines(filter);
    }
    assert!(lines("uet.pdc == 3") > 5);
    assert!(lines("uet.retransmission") > 2);
    assert_eq!(lines("uet.ses.job_id == 101 && uet.ses.opcode == 1 && !uet.pds.psn"), 0);
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn the_coloring_rules_are_valid_filters() {
    let rules = include_str!("../../../coloring-rules");
    let filters: Vec<_> =
        rules.lines().filter_map(|line| line.strip_prefix('@')?.split('@').nth(1)).collect();
    assert!(filters.len() >= 10);
    let file = traffic(40);
    for filter in filters {
        tshark(&[SCRIPT], &["-r", file.0.to_str().unwrap(), "-Y", filter]);
    }
}
