//! No input makes an endpoint panic, loop or grow. A stranger does not disturb a correct peer.

use super::common::*;
use crate::cases::cases;
use core::time::Duration;
use proptest::prelude::*;
use uet_model::pds::Pds;
use uet_model::*;

/// Draws a packet that is nearly correct: kind and identifiers have few values, the other fields any.
fn packet() -> impl Strategy<Value = Packet> {
    let fields = (2u8..16, 0u8..8, 0u8..128, any::<u16>(), 0u32..600, 0usize..3, 0usize..4);
    let rest = (proptest::collection::vec(any::<u8>(), 0..90), any::<bool>(), 0u8..8, 0usize..3);
    (fields, rest).prop_map(
        |((kind, next, flags, offset, psn, spdcid, dpdcid), (rest, marked, trim, from))| {
            let mut head = vec![kind << 3 | next >> 1, next << 7 | flags];
            head.extend(offset.to_be_bytes());
            head.extend((psn.wrapping_sub(100)).to_be_bytes());
            head.extend([0x4001u16, 0x4002, 0][spdcid].to_be_bytes());
            head.extend([0x8001u16, 0x8002, 0, 0x0fff & offset][dpdcid].to_be_bytes());
            head.extend(rest);
            head.truncate(100);
            Packet {
                src: [[10, 0, 0, 1], [10, 0, 0, 1], [10, 0, 0, 9]][from].into(),
                marked,
                trimmed: [Some(TrimPoint::Fabric), Some(TrimPoint::LastHop)]
                    .get(usize::from(trim))
                    .copied()
                    .flatten(),
                head: head.into_iter().collect(),
                ..wire::packet(A, &[])
            }
        },
    )
}

fn small() -> PdsParams {
    PdsParams {
        first_pdcid: 0x8001,
        general_pdcs: 3,
        reserved_pdcs: 1,
        rx_packets: 20,
        stored_responses: 10,
        receive_slots: 2000,
        answer_queue: 50,
        rudi_requests: 5,
        event_capacity: 100,
        ..plain()
    }
}

/// A layer above that answers everything in varying ways.
fn above(end: &mut Pds, now: Time, turn: &mut u32) {
    while let Some(indication) = end.poll_indication() {
        let Indication::Request(request) = indication else { continue };
        *turn += 1;
        match *turn % 7 {
            0 => end.refuse(now, request.ticket, uet_wire::registry::NackCode::NO_SES_MSG_AVAIL),
            1 => end.respond(now, request.ticket, guaranteed(1)),
            2 => end.respond(now, request.ticket, data_in_ack(1, 8)),
            3 => {}
            _ => end.respond(now, request.ticket, plain_response(1)),
        }
        if *turn % 5 == 0
            && let Ticket::Pdc(handle, _) = request.ticket
        {
            let _ = end.request(now, Via::Return(handle), data(1, 1, 1, true, true, 100));
        }
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn nothing_panics_and_nothing_grows(packets in proptest::collection::vec(packet(), 1..300)) {
        let mut end = Pds::new(small(), address(B), 9).unwrap();
        let (mut now, mut turn) = (Time(0), 0);
        for (index, packet) in packets.into_iter().enumerate() {
            end.handle_input(now, packet);
            above(&mut end, now, &mut turn);
            if index % 50 == 49 {
                now += Duration::from_micros(40);
                end.handle_timeout(now);
            }
            prop_assert!(end.contexts() <= 4);
            prop_assert!(end.held() < 5000, "{}", end.held());
        }
        // The replies are not taken, and they are bounded too.
        let answers = core::iter::from_fn(|| end.poll_transmit(now)).take(1000).count();
        prop_assert!(answers < 1000);
        for _ in 0..200 {
            let Some(at) = end.poll_timeout() else { break };
            prop_assert!(at >= now || at <= now);
            now = now.max(at);
            end.handle_timeout(now);
            while end.poll_transmit(now).is_some() {}
        }
    }

    #[test]
    fn stranger_does_not_disturb_a_context(packets in proptest::collection::vec(packet(), 1..100)) {
        let mut pair = Pair::new(plain());
        pair.send(A, 1);
        pair.run();
        for packet in packets {
            pair.inject(B, Packet { src: [10, 0, 0, 9].into(), ..packet.clone() });
            pair.inject(A, Packet { src: [10, 0, 0, 9].into(), dst: address(A), ..packet });
        }
        let given = pair.given[B].iter().filter(|given| given.from == address(A)).count();
        prop_assert_eq!(given, 1);
        pair.send(A, 2);
        pair.run_for(Duration::from_micros(50));
        prop_assert_eq!((pair.responses(A), pair.failures(A)), (vec![1, 2], vec![]));
    }

    #[test]
    fn any_bytes_at_all(bytes in proptest::collection::vec(any::<u8>(), 0..112)) {
        let mut end = Pds::new(small(), address(B), 9).unwrap();
        end.handle_input(Time(0), wire::packet(A, &[&bytes]));
        above(&mut end, Time(0), &mut 0);
        while end.poll_transmit(Time(0)).is_some() {}
    }
}
