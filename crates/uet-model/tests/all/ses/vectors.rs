//! The articles' write of 16 KiB, byte for byte.

use super::pair::*;
use serde_json::Value;
use uet_model::PdsParams;
use uet_model::ses::*;
use uet_packet_io::hex;
use uet_wire::registry::NextHdr;
use uet_wire::{Options, Packet, Start};

const KEY: u64 = 0xacce5;

/// Returns the frames of a golden sequence, with the side that sends each.
fn frames(name: &str) -> Vec<(String, Vec<u8>)> {
    let family = name.split('/').next().unwrap();
    let path = format!("{}/../../vectors/{family}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let lines = std::fs::read_to_string(path).unwrap();
    let mut vectors = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let vector = vectors.find(|vector| vector["name"] == name).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packets = vector["packets"].as_array().unwrap().iter();
    packets.map(|packet| (text(&packet["direction"]), hex::decode(&text(&packet["hex"])).unwrap())).collect()
}

/// Returns the SES header and payload of a frame.
fn semantics(frame: &[u8]) -> Vec<u8> {
    let packet = Packet::parse(Start::Eth, frame, &Options::default()).unwrap();
    [packet.uet.ses.unwrap().bytes(), packet.uet.payload].concat()
}

#[test]
fn write_of_16_kib_matches_the_golden_frames() {
    let mut pair = Pair::open();
    let base = 0xba5e_add1;
    let memory = Region { key: Key(0xacce5), base, access: Access::WRITE, data: vec![0xff; 16_384] };
    let memory = pair.side[1].expose(index(10), memory).unwrap();
    pair.side[1].set_generation(index(10), 1).unwrap();
    let peer = Peer { generation: 1, ..peer() };
    for bucket in [11, 12] {
        let write = Work::Write { key: Key(0xacce5), offset: 0, data: data(16_384) };
        pair.side[0].post(Operation { header_data: Some(bucket), ..Operation::new(peer, write) }).unwrap();
    }
    pair.run();

    let golden = frames("examples/write-16-kib");
    let of = |side: &'static str| golden.iter().filter(move |(direction, _)| direction == side);
    // The sequence stops after the first packet of the second chunk.
    for (index, (_, frame)) in of("initiator").enumerate() {
        let (_, _, request) = &pair.requests[index];
        assert_eq!([&request.head[..], &request.payload].concat(), semantics(frame), "packet {index}");
    }
    for (index, (_, frame)) in of("target").enumerate() {
        let (_, response) = &pair.responses[index];
        assert_eq!(response.head[..], semantics(frame)[..], "answer {index}");
    }
    assert_eq!((of("initiator").count(), of("target").count()), (5, 4));

    assert_eq!(pair.side[1].memory(memory), Some(&data(16_384)[..]));
    let events: Vec<SesEvent> = std::iter::from_fn(|| pair.side[1].poll_event()).collect();
    let addresses = events.iter().filter_map(|event| match event {
        SesEvent::Placed { address, length: 4096, .. } => Some(*address),
        _ => None,
    });
    let addresses: Vec<u64> = addresses.take(4).collect();
    assert_eq!(addresses, [0xba5e_add1, 0xba5e_bdd1, 0xba5e_cdd1, 0xba5e_ddd1]);
    let written: Vec<u64> = pair.completions[1]
        .iter()
        .map(|completion| match completion {
            Completion::Written(written) => written.header_data,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(written, [11, 12]);
}

#[test]
fn endpoint_owns_its_indices() {
    for (number, owned) in [(299, false), (300, true), (312, true), (363, true), (364, false)] {
        let mut pair = Pair::new();
        pair.side[1].open(Endpoint { process: PROCESS, start: 300, count: 64 }).unwrap();
        if owned {
            pair.side[1].post_receive(index(number), Receive::new(16)).unwrap();
        }
        let peer = Peer { index: number, ..peer() };
        let sent = pair.run_one(Operation::new(peer, Work::Send { tag: None, data: data(16) }));
        let golden = frames(&format!("examples/index-{number}"));
        assert_eq!(pair.requests[0].2.head[..], semantics(&golden[0].1)[..44], "index {number}");
        // The golden response of an endpoint's index may omit the length.
        let answer = &pair.responses[0].1.head;
        assert_eq!(answer[..8], semantics(&golden[1].1)[..8], "index {number}");
        assert_eq!(sent.is_ok(), owned, "index {number}");
    }
}

/// Returns the semantic fields of a packet without message IDs, which each side chooses. A length of 0 in a plain
/// success means the whole message, and is omitted too.
fn anonymous(next_hdr: NextHdr, head: &[u8], payload: &[u8]) -> (NextHdr, Vec<u8>, Vec<u8>) {
    let mut head = head.to_vec();
    match next_hdr {
        NextHdr::UET_HDR_REQUEST_STD => head[2..4].fill(0),
        NextHdr::UET_HDR_RESPONSE_DATA => {
            head[2..4].fill(0);
            head[8..10].fill(0);
        }
        NextHdr::UET_HDR_RESPONSE => {
            head[2..4].fill(0);
            head[8..12].fill(0);
        }
        _ => {}
    }
    (next_hdr, head, payload.to_vec())
}

/// Sequences 1 and 5 to 8 of `docs/behaviour.md`: the requests and responses of each side, with their headers.
#[test]
fn reads_and_writes_match_the_sequences() {
    let small = Key(10).optimized().0;
    let short = |form, key| Operation { form: Some(form), ..read(key, 0, 64) };
    let cases = [
        ("01-plain", vec![write(KEY, 0, data(16))]),
        ("05-read", vec![read(KEY, 0, 64)]),
        ("06-read-medium", vec![short(Form::Medium, KEY)]),
        ("06-read-small", vec![short(Form::Small, small)]),
        ("07-read-in-ack", vec![read(KEY, 0, 16)]),
        ("08-read-and-write", vec![read(KEY, 0, 2064), write(KEY, 0, data(16))]),
    ];
    for (name, operations) in cases {
        let pds = PdsParams { payload_mtu: 1024, ..PdsParams::default() };
        let explicit = SesParams { explicit_read: true, ..SesParams::default() };
        let mut pair = Pair::of(pds, SesParams::default(), explicit).opened();
        pair.psn[0] = [333, 48];
        for key in [KEY, small] {
            let region = region(&mut pair, key, 4096);
            pair.side[1].memory_mut(region).unwrap().copy_from_slice(&data(4096));
        }
        for operation in operations {
            pair.side[0].post(operation).unwrap();
        }
        pair.run();
        // These are the requests and the responses of each side, in order.
        let mut seen = [[vec![], vec![]], [vec![], vec![]]];
        for (side, _, request) in &pair.requests {
            seen[*side][0].push(anonymous(request.next_hdr, &request.head, &request.payload));
        }
        for (side, response) in &pair.responses {
            seen[*side][1].push(anonymous(response.next_hdr, &response.head, &response.payload));
        }
        let mut golden = [[vec![], vec![]], [vec![], vec![]]];
        for (direction, frame) in frames(&format!("sequences/{name}")) {
            let packet = Packet::parse(Start::Eth, &frame, &Options::default()).unwrap();
            let Some(ses) = packet.uet.ses else { continue };
            let answers = matches!(packet.uet.pds, Some(uet_wire::pds::Pds::Ack(_)));
            golden[usize::from(direction == "target")][usize::from(answers)].push(anonymous(
                ses.next_hdr(),
                ses.bytes(),
                packet.uet.payload,
            ));
        }
        // One ACK may cover several plain successes. In sequence 8, that of 334 does.
        if name == "08-read-and-write" {
            let first = golden[1][1][0].clone();
            golden[1][1].insert(0, first);
            let last = golden[0][1][0].clone();
            golden[0][1].push(last);
        }
        assert_eq!(seen, golden, "{name}");
    }
}
