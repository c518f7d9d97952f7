//! The articles' write of 16 KiB, byte for byte.

use crate::pair::*;
use uet_model::ses::*;
use uet_wire::{Options, Packet, Start};

/// The frames of a golden sequence, with the side that sends each.
fn frames(name: &str) -> Vec<(String, Vec<u8>)> {
    let path = format!("{}/../vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let vector: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let packets = vector["packets"].as_array().unwrap().iter();
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
    };
    packets
        .map(|packet| {
            (packet["direction"].as_str().unwrap().to_owned(), bytes(packet["hex"].as_str().unwrap()))
        })
        .collect()
}

/// The SES header and payload of a frame.
fn semantics(frame: &[u8]) -> Vec<u8> {
    let packet = Packet::parse(Start::Eth, frame, &Options::default()).unwrap();
    [packet.uet.ses.unwrap().bytes(), packet.uet.payload].concat()
}

#[test]
fn a_write_of_16_kib_is_four_packets_and_their_answers() {
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
    let events: Vec<Event> = std::iter::from_fn(|| pair.side[1].poll_event()).collect();
    let addresses = events.iter().filter_map(|event| match event {
        Event::Placed { address, length: 4096, .. } => Some(*address),
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
fn an_endpoint_owns_the_indices_that_it_asked_for() {
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
        // The golden answer of an index that is owned may leave the length out.
        let answer = &pair.responses[0].1.head;
        assert_eq!(answer[..8], semantics(&golden[1].1)[..8], "index {number}");
        assert_eq!(sent.is_ok(), owned, "index {number}");
    }
}
