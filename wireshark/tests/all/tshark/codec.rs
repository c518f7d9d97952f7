//! The dissector in tshark. These tests need tshark; `wireshark/test` runs them.

use super::compare::differences;
use super::random::{Random, Trailer};
use super::{Captured, dissect, info};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use uet_packet_io::json::{Decoded, Record};
use uet_wire::catalogue;
use uet_wire::pds::Request;
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;
use uet_wire::validate::RULES;
use uet_wire::{FrameBuilder, Options, Packet, PdcId, Start, TrailerKind};

const ETHERNET: u32 = 1;

fn decode(packet: &Captured, options: &Options) -> Value {
    let record =
        Record { number: 1, start: Start::Eth, bytes: &packet.bytes, wire: packet.wire, ..Record::default() };
    let mut json = Vec::new();
    Decoded::new(record, options, false).write(&mut json);
    serde_json::from_slice(&json).unwrap()
}

/// Compares codec and tshark on each packet. Returns the identifiers of all findings, each alone and with the field
/// that it names.
fn agree(packets: &[Captured], options: &Options, preferences: &[String]) -> BTreeSet<String> {
    let expected: Vec<Value> = packets.iter().map(|packet| decode(packet, options)).collect();
    agree_as(&expected, packets, preferences)
}

/// Compares these readings and tshark on each packet, like [`agree`].
pub(super) fn agree_as(expected: &[Value], packets: &[Captured], preferences: &[String]) -> BTreeSet<String> {
    let seen = dissect(ETHERNET, packets, preferences);
    let (mut wrong, mut compared, mut ids) = (0, 0, BTreeSet::new());
    for ((packet, expected), seen) in packets.iter().zip(expected).zip(&seen) {
        if is_for_others(expected) {
            continue;
        }
        compared += 1;
        let findings = expected["findings"].as_array().unwrap();
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        ids.extend(findings.iter().map(|finding| text(finding, "id")));
        ids.extend(findings.iter().map(|finding| text(finding, "id") + " " + &text(finding, "field")));
        let differences = differences(expected, seen);
        if !differences.is_empty() {
            wrong += 1;
            let hex: String = packet.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            if wrong <= 5 {
                eprintln!("{hex}\n  of {} on the wire\n  {}\n", packet.wire, differences.join("\n  "));
            }
        }
    }
    assert_eq!(wrong, 0, "packets of {} on which the codec and tshark do not agree", packets.len());
    assert!(compared * 10 >= packets.len() * 9, "only {compared} of {} packets compared", packets.len());
    ids
}

/// Returns whether a packet ends before UET or is malformed around it: Wireshark's own dissectors report that.
fn is_for_others(expected: &Value) -> bool {
    let has = |layer: &str| expected["stack"].as_array().unwrap().iter().any(|there| there == layer);
    let other = expected["payload"].is_object() && !has("pds") && !has("tss");
    let is_uet = (has("udp") || has("entropy")) && !other;
    let outer =
        expected["error"]["layer"].as_str().is_some_and(|layer| ["ipv4", "ipv6", "udp"].contains(&layer));
    outer || !is_uet
}

/// Returns the deployment settings for the codec and for tshark.
fn settings(trailer: Trailer, dscps: Option<(u8, u8)>) -> (Options, Vec<String>) {
    let (kind, name) = match trailer {
        Trailer::None => (TrailerKind::None, "none"),
        Trailer::Crc => (TrailerKind::Crc, "crc"),
        Trailer::Icv => (TrailerKind::Icv, "icv"),
    };
    let mut preferences = vec![format!("uet.trailer:{name}")];
    let mut options = Options::default().trailer(kind);
    if let Some((trimmed, last_hop)) = dscps {
        (options.trimmed_dscp, options.trimmed_lasthop_dscp) = (Some(trimmed), Some(last_hop));
        preferences.push(format!("uet.trimmed_dscp:{trimmed}"));
        preferences.push(format!("uet.trimmed_lasthop_dscp:{last_hop}"));
    }
    (options, preferences)
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn fields_and_findings_of_random_packets_are_the_codecs() {
    let mut ids = BTreeSet::new();
    for (seed, trailer, dscps) in [
        (1, Trailer::None, None),
        (2, Trailer::Crc, None),
        (5, Trailer::Icv, None),
        (6, Trailer::Crc, Some((5, 6))),
    ] {
        let mut random = Random::new(seed);
        let packets: Vec<_> = (0..2_500).map(|_| random.frame(trailer, false)).collect();
        let (options, preferences) = settings(trailer, dscps);
        ids.extend(agree(&packets, &options, &preferences));
    }
    // A rule that no packet breaks has not been compared.
    let all = catalogue::ALL.iter().map(|requirement| requirement.id).filter(|id| id.starts_with("WIRE-"));
    let missing: Vec<_> = all.filter(|id| !ids.contains(*id) && !UNBROKEN.contains(id)).collect();
    assert_eq!(missing, [""; 0], "no packet breaks these");
}

/// The Info column matches the codec's sentence for each packet.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn the_info_column_is_the_codecs_sentence() {
    for (seed, trailer, dscps) in [(8, Trailer::None, None), (9, Trailer::Icv, Some((5, 6)))] {
        let mut random = Random::new(seed);
        let packets: Vec<_> = (0..3_000).map(|index| random.frame(trailer, index % 3 == 0)).collect();
        let (options, preferences) = settings(trailer, dscps);
        let lines = info(ETHERNET, &packets, &preferences);
        let (mut compared, mut kinds) = (0, BTreeSet::new());
        for (packet, line) in packets.iter().zip(&lines) {
            if is_for_others(&decode(packet, &options)) {
                continue;
            }
            let expected =
                Packet::parse_sliced(Start::Eth, &packet.bytes, packet.wire, &options).0.to_string();
            let hex: String = packet.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(*line, expected, "{hex} of {} on the wire", packet.wire);
            kinds.extend(expected.split(' ').next().map(str::to_owned));
            compared += 1;
        }
        assert!(compared > 2_000 && kinds.len() > 10, "{compared} lines: {kinds:?}");
    }
}

/// Breaks each rule in each of its headers, and then misses one condition after the other.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn each_rule_is_judged_alike_where_it_is_broken_and_where_it_is_nearly() {
    let mut random = Random::new(7);
    let mut packets = Vec::new();
    for rule in RULES.iter().filter(|rule| !UNBROKEN.contains(&rule.requirement.id)) {
        for header in rule.headers {
            // Conditions on several fields depend on chance, and so need more packets.
            for miss in (0..rule.broken.len()).map(Some).chain([None; 12]) {
                let packet = random.near(rule, header, miss);
                packets.push(random.around(packet, Trailer::None, false));
            }
        }
    }
    let (options, preferences) = settings(Trailer::None, None);
    let ids = agree(&packets, &options, &preferences);
    let rules = RULES.iter().filter(|rule| !UNBROKEN.contains(&rule.requirement.id));
    let rules = rules.map(|rule| format!("{} {}", rule.requirement.id, rule.field));
    let missing: Vec<_> = rules.filter(|rule| !ids.contains(rule)).collect();
    assert_eq!(missing, [""; 0], "no packet breaks these");
}

/// Rules that need a frame that is damaged around UET, or longer than those here; see `rules_beyond_random_packets`.
const UNBROKEN: [&str; 5] = ["WIRE-IP-001", "WIRE-IP-002", "WIRE-UDP-001", "WIRE-CRC-001", "WIRE-LEN-002"];

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn rules_beyond_random_packets() {
    let request = Request::rud().spdcid(PdcId(1)).dpdcid(PdcId(2)).clear_psn_offset(-1).done().unwrap();
    let write = Std::build(Opcode::UET_WRITE)
        .head(|head| head.som(true).eom(true))
        .request_length(8_200)
        .done()
        .unwrap();
    let payload = [0x5a; 8_200];
    let frame = FrameBuilder::new(request)
        .ses(write)
        .payload(&payload)
        .udp(50_000)
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
    let frame = frame.crc().ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes).unwrap();
    // DF is cleared, the checksums are wrong, and so is a byte of the payload, which the CRC covers.
    for (place, value) in [(20, 0), (24, 0xee), (40, 0x12), (200, 0)] {
        bytes[place] = value;
    }
    let (options, preferences) = settings(Trailer::Crc, None);
    let ids = agree(&[Captured::whole(bytes)], &options, &preferences);
    let ids: BTreeSet<_> = ids.iter().filter(|id| !id.contains(' ')).map(String::as_str).collect();
    assert_eq!(ids, BTreeSet::from(UNBROKEN));
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn twenty_thousand_damaged_packets_are_read_as_the_codec_reads_them() {
    for (seed, trailer, dscps) in [(3, Trailer::None, None), (4, Trailer::Crc, Some((8, 9)))] {
        let mut random = Random::new(seed);
        let (options, preferences) = settings(trailer, dscps);
        for _ in 0..5 {
            let packets: Vec<_> = (0..2_000).map(|_| random.frame(trailer, true)).collect();
            agree(&packets, &options, &preferences);
        }
    }
}

/// The vectors' packets as frames of a capture, with their expected fields.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn every_vector_is_read_as_it_says() {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors")).unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    let vectors: Vec<_> = files.iter().flat_map(|file| vectors(file)).collect();
    assert!(vectors.len() > 1000);
    // One run of tshark covers all packets with equal settings and link type.
    type Expected<'a> = (&'a str, Value, Captured, bool);
    let mut runs: BTreeMap<(u32, Vec<String>), Vec<Expected<'_>>> = BTreeMap::new();
    for (name, vector) in &vectors {
        if vector["protection"]["authenticated"] == true {
            continue; // `secured.rs` has the keys
        }
        let packets = vector["packets"].as_array().cloned().unwrap_or_else(|| vec![vector.clone()]);
        let options = &vector["options"];
        let pick = |key: &str| options[key].as_u64().map(|number| format!("uet.{key}:{number}"));
        let numbers = ["ip_proto", "trimmed_dscp", "trimmed_lasthop_dscp"].iter();
        let mut preferences: Vec<String> = numbers.filter_map(|key| pick(key)).collect();
        preferences.extend(options["udp_port"].as_u64().map(|port| format!("uet.ports:{port}")));
        preferences.extend(options["spec"].as_str().map(|version| format!("uet.version:{version}")));
        preferences.push(format!("uet.trailer:{}", options["trailer"].as_str().unwrap_or("none")));
        let port = options["udp_port"].as_u64().unwrap_or(4793) as u16;
        for packet in packets {
            let start = packet["from"].as_str().or(vector["from"].as_str()).unwrap_or("eth");
            let bytes = uet_packet_io::hex::decode(packet["hex"].as_str().unwrap()).unwrap();
            let wire = packet["sliced"]["wire"].as_u64().map_or(bytes.len(), |wire| wire as usize);
            let (link, captured, wrapped) = wrap(start, bytes, wire, port);
            runs.entry((link, preferences.clone())).or_default().push((name, packet, captured, wrapped));
        }
    }
    let (mut wrong, mut compared) = (0, 0);
    for ((link, preferences), cases) in &runs {
        let packets: Vec<_> = cases.iter().map(|(_, _, captured, _)| captured.clone()).collect();
        for ((name, packet, _, wrapped), seen) in cases.iter().zip(dissect(*link, &packets, preferences)) {
            let before_uet = packet["fields"]["pds.type"].is_null() && packet["fields"]["tss.type"].is_null();
            let differences = if is_for_others(packet) && (!wrapped || before_uet) {
                let must_say = packet["error"].is_object() && !wrapped && !SILENT.contains(name);
                let silent = must_say && seen.experts == 0;
                silent.then(|| "no expert item".to_owned()).into_iter().collect()
            } else {
                compared += 1;
                let mut differences = differences(packet, &seen);
                // The added layers mark the end of the packet and give it a CRC.
                let around =
                    ["trimmed", "error", "crc", "findings: expected [], tshark has [\"WIRE-CRC-001\"]"];
                differences.retain(|text| !wrapped || !around.iter().any(|what| text.starts_with(what)));
                differences
            };
            if !differences.is_empty() {
                wrong += 1;
                eprintln!("{name}\n  {}", differences.join("\n  "));
            }
        }
    }
    assert_eq!(wrong, 0, "packets of {} vectors that tshark reads otherwise", vectors.len());
    println!("{} vectors, {compared} packets compared", vectors.len());
}

/// Vectors with damage around UET that Wireshark reports only as text.
const SILENT: [&str; 2] = ["outer/ip-version-5", "outer/ipv4-total-length-20"];

/// Returns the vectors of a file with their names.
pub(super) fn vectors(file: &Path) -> Vec<(String, Value)> {
    let lines = std::fs::read_to_string(file).unwrap();
    let vectors = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    vectors.map(|vector| (vector["name"].as_str().unwrap().to_owned(), vector)).collect()
}

/// Adds the missing outer layers to a packet that starts behind IP. Returns link type, packet, and whether it was
/// wrapped.
fn wrap(start: &str, bytes: Vec<u8>, wire: usize, port: u16) -> (u32, Captured, bool) {
    const RAW_IP: u32 = 101;
    let missing = wire - bytes.len();
    let outer = match start {
        "eth" => return (ETHERNET, Captured { bytes, wire }, false),
        "ip" => return (RAW_IP, Captured { bytes, wire }, false),
        "udp" => 20,
        _ => 28,
    };
    let total = (outer + wire) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    let sum: u32 = packet.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    if start == "uet" {
        packet.extend(50_000u16.to_be_bytes());
        packet.extend(port.to_be_bytes());
        packet.extend((total - 20).to_be_bytes());
        packet.extend([0, 0]);
    }
    packet.extend(bytes);
    let wire = packet.len() + missing;
    (RAW_IP, Captured { bytes: packet, wire }, true)
}
