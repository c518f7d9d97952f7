//! A filter finds the same packets as the tree, although the tree is not built for it. These tests need tshark;
//! `wireshark/test` runs them.

use super::random::{Random, Trailer};
use super::{Captured, Dissected, SCRIPT, Scratch, dissect, tshark, write_capture};
use std::collections::BTreeSet;
use uet_wire::Version;

const CRC: &str = "uet.trailer:crc";

fn packets() -> Vec<Captured> {
    let mut random = Random::new(11);
    (0..600).map(|index| random.frame(Trailer::Crc, index % 2 == 0)).collect()
}

fn frames(file: &Scratch, filter: &str) -> Vec<usize> {
    let said = tshark(&[SCRIPT], &["-r", file.0.to_str().unwrap(), "-o", CRC, "-Y", filter]);
    said.lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

/// Returns the packets that contain a field.
fn with(seen: &[Dissected], name: &str) -> Vec<usize> {
    let numbers = seen.iter().enumerate().filter(|(_, packet)| !packet.values(name).is_empty());
    numbers.map(|(index, _)| index + 1).collect()
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn a_filter_finds_the_packets_whose_tree_has_the_field() {
    let packets = packets();
    let file = Scratch::new("pcap");
    write_capture(&file.0, 1, &packets);
    let seen = dissect(1, &packets, &[CRC.into()]);
    // Fields of each layer, with several layouts, without bytes, of findings, and of several packets.
    for name in [
        "tss.sdi",
        "pds.psn",
        "pds.flags.retx",
        "pds.dpdcid",
        "pds.sacked.first",
        "pds.clear_psn",
        "pds.credit_bytes",
        "ses.opcode",
        "ses.job_id",
        "ses.buffer_offset",
        "ses.atomic_opcode",
        "reserved",
        "payload.length",
        "finding",
        "error.layer",
        "crc.ok",
        "pdc",
    ] {
        let expected = with(&seen, name);
        assert!(!expected.is_empty(), "no packet has {name}");
        assert_eq!(frames(&file, &format!("uet.{name}")), expected, "{name}");
    }
    let wrong = frames(&file, "uet.crc.ok == 0");
    assert!(!wrong.is_empty());
    assert_eq!(frames(&file, "uet.WIRE-CRC-001"), wrong);
    assert_eq!(frames(&file, "uet.finding == \"WIRE-CRC-001\""), wrong);
    // Expert items, with a filter that contains no UET name.
    let expert: BTreeSet<_> = frames(&file, "_ws.expert").into_iter().collect();
    let found: BTreeSet<_> = with(&seen, "finding").into_iter().collect();
    assert!(found.is_subset(&expert), "{:?}", found.difference(&expert));
    assert!(wrong.iter().all(|number| expert.contains(number)));
}

/// Requests all fields at once of packets that are not displayed.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn counting_fields_needs_no_tree() {
    let packets = packets();
    let file = Scratch::new("pcap");
    write_capture(&file.0, 1, &packets);
    let seen = dissect(1, &packets, &[CRC.into()]);
    let names: BTreeSet<_> = seen.iter().flat_map(|packet| packet.fields.keys()).collect();
    let numbers = names.iter().filter(|name| seen.iter().any(|packet| packet.number_is_plain(name)));
    // This tshark output counts only one layout of a field that has several.
    let script = uet_wireshark::dissector(Version::default().spec());
    let forms = |name: &str| script.matches(&format!("\n  {{ {name:?}, ")).count();
    let names: Vec<_> = numbers.filter(|name| !name.ends_with("_tree") && forms(name) <= 1).collect();
    assert!(names.len() > 80, "{}", names.len());
    for some in names.chunks(12) {
        let columns: String = some.iter().map(|name| format!(",COUNT(uet.{name})uet.{name}")).collect();
        let statistics = format!("io,stat,0{columns}");
        let said = tshark(&[SCRIPT], &["-q", "-r", file.0.to_str().unwrap(), "-o", CRC, "-z", &statistics]);
        let row = said.lines().find(|line| line.contains("<>")).expect(&said);
        let counts: Vec<usize> = row.split('|').skip(2).filter_map(|cell| cell.trim().parse().ok()).collect();
        let expected: Vec<usize> =
            some.iter().map(|name| seen.iter().map(|packet| packet.values(name).len()).sum()).collect();
        assert_eq!(counts, expected, "{some:?}");
    }
}
