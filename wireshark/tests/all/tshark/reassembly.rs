//! Data of messages. These tests need tshark; `wireshark/test` runs them.

use super::{Captured, SCRIPT, Scratch, tshark, write_capture};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use uet_packet_io::{hex, input};
use uet_wire::pds::Request;
use uet_wire::registry::Opcode;
use uet_wire::ses::{ResponseData, Std};
use uet_wire::{FrameBuilder, Options, Packet, PdcId, Psn, Start};

const PART: usize = 100;

/// Returns the data of a message: each byte tells its place.
fn data(message: u8) -> Vec<u8> {
    (0..4 * PART).map(|place| message.wrapping_add((place * 7 / 3) as u8)).collect()
}

/// Builds the packet with this part of a message of four packets.
fn packet(message: u8, part: usize, retx: bool) -> Captured {
    let psn = Psn(u32::from(message) * 4 + part as u32);
    let pds = Request::rud().clear_psn_offset(-1).psn(psn).retx(retx).spdcid(PdcId(1)).dpdcid(PdcId(2));
    let ses = Std::build(Opcode::UET_WRITE).head(|head| head.rel(true).som(part == 0).eom(part == 3));
    let ses = ses.message_id(u16::from(message) + 1).request_length(4 * PART as u32);
    let ses = match part {
        0 => ses,
        _ => ses.payload_length(PART as u16).message_offset((part * PART) as u32),
    };
    let data = data(message);
    let frame = FrameBuilder::new(pds.done().unwrap()).ses(ses.done().unwrap());
    let frame = frame.payload(&data[part * PART..(part + 1) * PART]).udp(50_000);
    let frame = frame.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes).unwrap();
    Captured::whole(bytes)
}

/// Cuts a packet as a switch does: the IP length is less than the UDP length.
fn trimmed(mut packet: Captured) -> Captured {
    packet.bytes.truncate(14 + 20 + 8 + 60);
    packet.bytes[16..18].copy_from_slice(&88u16.to_be_bytes());
    packet.wire = packet.bytes.len();
    packet
}

fn capture(packets: &[Captured]) -> Scratch {
    let file = Scratch::new("pcap");
    write_capture(&file.0, 1, packets);
    file
}

/// Returns these fields of each frame.
fn fields(file: &Path, names: &[&str], more: &[&str]) -> Vec<Vec<String>> {
    let mut arguments = vec!["-r", file.to_str().unwrap(), "-T", "fields"];
    names.iter().for_each(|name| arguments.extend(["-e", name]));
    let lines = tshark(&[SCRIPT], &[&arguments, more].concat());
    lines.lines().map(|line| line.split('\t').map(|value| value.replace(':', "")).collect()).collect()
}

fn digits(bytes: &[u8]) -> String {
    hex::Hex(bytes).to_string()
}

/// Out of order, with a duplicate, and with a trimmed packet that comes again.
fn disorder() -> Vec<Captured> {
    vec![
        packet(0, 0, false),
        packet(0, 2, false),
        packet(1, 3, false),
        trimmed(packet(0, 1, false)),
        packet(0, 2, false),
        packet(1, 0, false),
        packet(0, 3, false),
        packet(0, 1, true),
        packet(1, 1, false),
    ]
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn message_shows_its_data_in_the_packet_that_completes_it() {
    let file = capture(&disorder());
    let names = ["uet.message.data", "uet.message.segment", "uet.message.reassembled_in"];
    let expected = |links: bool| -> Vec<Vec<String>> {
        let link = |frame| if links && [1, 2, 4, 5, 7].contains(&frame) { "8" } else { "" };
        let row = |frame| match frame {
            8 => vec![digits(&data(0)), "1,8,2,7".into(), String::new()],
            // The trimmed packet has only a part of its data.
            4 => vec![String::new(); 3],
            _ => vec![String::new(), String::new(), link(frame).into()],
        };
        (1..=9).map(row).collect()
    };
    assert_eq!(fields(&file.0, &names, &[]), expected(false));
    assert_eq!(fields(&file.0, &names, &["-2"]), expected(true));
    let filtered = fields(&file.0, &["frame.number"], &["-Y", "uet.message.data contains 07:09:0b"]);
    assert_eq!(filtered, [["8"]]);
}

/// Compares the data with the payloads of the segments, as the codec reads them.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn data_is_that_of_the_segments() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let (mut several, mut single) = (0, 0);
    let files = ["examples", "sequences", "headers"].map(|name| format!("vectors/pcap/{name}"));
    for name in
        files.into_iter().chain(["write", "rendezvous"].map(|name| format!("corpora/captures/learn/{name}")))
    {
        let file = root.join(format!("{name}.pcapng"));
        let mut payloads = Vec::new();
        input::read(File::open(&file).unwrap(), Start::Eth, &mut |record| {
            let options = Options::default();
            let (packet, _) = Packet::parse_sliced(record.start, record.bytes, record.wire, &options);
            payloads.push(packet.uet.payload.to_vec());
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        let names = ["uet.message.data", "uet.message.segment"];
        for (frame, row) in fields(&file, &names, &["-o", "uet.trailer:none"]).iter().enumerate() {
            let segments: Vec<usize> = row[1].split(',').filter_map(|number| number.parse().ok()).collect();
            if segments.is_empty() && !row[0].is_empty() {
                assert_eq!(row[0], digits(&payloads[frame]), "{name} {frame}");
                single += 1;
            } else if !segments.is_empty() {
                let data: Vec<u8> = segments.iter().flat_map(|number| payloads[number - 1].clone()).collect();
                assert_eq!(row[0], digits(&data), "{name} {frame}");
                several += 1;
            }
        }
    }
    assert!(several >= 3 && single >= 5, "{several} messages of several packets, {single} of one");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn messages_are_exported_to_files() {
    let folder = Scratch::new("export");
    std::fs::create_dir(&folder.0).unwrap();
    #[cfg(unix)]
    {
        // tshark may run as another user.
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&folder.0, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let file = capture(&disorder());
    let preference = format!("uet.export:{}", folder.0.display());
    tshark(&[SCRIPT], &["-q", "-r", file.0.to_str().unwrap(), "-o", &preference]);
    assert_eq!(std::fs::read(folder.0.join("message-1.bin")).unwrap(), data(0));
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "the second message is not complete");
    std::fs::remove_dir_all(&folder.0).unwrap();
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn follow_prints_the_messages_of_a_context() {
    let file = capture(&disorder());
    let said = tshark(&[SCRIPT], &["-q", "-r", file.0.to_str().unwrap(), "-o", "uet.follow:0"]);
    let mut lines = said.lines().skip_while(|line| !line.starts_with("UET: "));
    assert_eq!(lines.next(), Some("UET: context 0, 1 messages with data"));
    assert_eq!(lines.next(), Some("UET_WRITE 400 B, frames 1 to 8"));
    let dumped: Vec<_> = lines.collect();
    assert_eq!(dumped.len(), 25);
    for (line, bytes) in dumped.iter().zip(data(0).chunks(16)) {
        assert_eq!(line[10..57].replace(' ', ""), digits(bytes));
    }
    let said = tshark(&[SCRIPT], &["-q", "-r", file.0.to_str().unwrap(), "-o", "uet.follow:1"]);
    assert!(said.contains("UET: context 1, 0 messages with data"), "{said}");
}

/// The target sends the response in two packets. The second one is trimmed first, and then retransmitted.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn read_shows_the_data_of_its_responses() {
    let whole = data(7);
    let sent = |frame: FrameBuilder<'_>, from_target: bool| {
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let (src, dst) = if from_target { (b, a) } else { (a, b) };
        let frame = frame.udp(50_000).ipv4(src, dst).ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let mut bytes = vec![0; frame.len()];
        frame.emit(&mut bytes).unwrap();
        Captured::whole(bytes)
    };
    let pds = Request::rud().clear_psn_offset(-1).psn(Psn(5)).spdcid(PdcId(1)).dpdcid(PdcId(2));
    let read = Std::build(Opcode::UET_READ).head(|head| head.som(true).eom(true)).message_id(1);
    let read = read.request_length(whole.len() as u32);
    let request = sent(FrameBuilder::new(pds.done().unwrap()).ses(read.done().unwrap()), false);
    let response = |part: usize, retx: bool| {
        let psn = Psn(90 + part as u32);
        let pds = Request::rud().clear_psn_offset(-1).psn(psn).retx(retx).spdcid(PdcId(2)).dpdcid(PdcId(1));
        let half = whole.len() / 2;
        let ses = ResponseData::build().read_request_message_id(1).payload_length(half as u16);
        let ses = ses.modified_length(whole.len() as u32).message_offset((part * half) as u32);
        let frame = FrameBuilder::new(pds.done().unwrap()).ses(ses.done().unwrap());
        sent(frame.payload(&whole[part * half..(part + 1) * half]), true)
    };
    let packets = [request, response(0, false), trimmed(response(1, false)), response(1, true)];
    let names = ["uet.message.data", "uet.message.segment"];
    let rows = fields(&capture(&packets).0, &names, &[]);
    assert_eq!(rows[3], [digits(&whole), "2,4".to_owned()]);
    assert!(rows[..3].iter().all(|row| row.iter().all(String::is_empty)), "{rows:?}");
}
