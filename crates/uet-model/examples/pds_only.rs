//! Packet delivery alone, with a custom layer in the place of SES: a service that turns text into capitals.
//!
//! The headers of that layer are its own; packet delivery never looks into them. It only learns the start and the end of
//! a message, and the guarantee of a response. The first request is lost and retransmitted. Run it to see the ladder:
//! `cargo run -p uet-model --example pds_only`.

use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use uet_model::ladder::{Fate, Ladder};
use uet_model::pds::Pds;
use uet_model::*;
use uet_wire::registry::NextHdr;

const DELAY: Duration = Duration::from_micros(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client: IpAddr = [10, 0, 0, 1].into();
    let server: IpAddr = [10, 0, 1, 12].into();
    let params = || PdsParams { event_capacity: 100, ..PdsParams::default() }.uncontrolled();
    let mut ends = [Pds::new(params(), client, 1)?, Pds::new(params(), server, 2)?];
    let mut ladder = Ladder::new(("client", client), ("server", server));
    let mut now = Time::ZERO;
    let mut on_the_way: Vec<(Time, Packet)> = Vec::new();
    let mut lost = false;

    let route =
        Route { job: 1, destination: server, class: 0, mode: Mode::Rud, pool: Pool::General, context: 0 };
    ends[0].request(now, Via::Route(route), question("make this large")).map_err(|_| "it is busy")?;

    let answer = 'answer: loop {
        for end in &mut ends {
            // The requests that have reached this layer.
            while let Some(indication) = end.poll_indication() {
                match indication {
                    Indication::Request(request) => {
                        end.respond(now, request.ticket, capitals(&request.payload))
                    }
                    Indication::Response { response: Some(response), .. } => break 'answer response.payload,
                    Indication::Failed { why, .. } => return Err(format!("it failed: {why:?}").into()),
                    _ => {}
                }
            }
            // The packets that leave, and their reasons.
            while let Some(packet) = end.poll_transmit(now) {
                while let Some(event) = end.poll_event() {
                    ladder.note(event.at, end.address(), event);
                }
                let fate = if lost { Fate::Arrives } else { Fate::Lost };
                ladder.packet(now, &packet, fate);
                if core::mem::replace(&mut lost, true) {
                    on_the_way.push((now + DELAY, packet));
                }
            }
        }
        // The next thing that happens: a packet arrives, or a timer fires.
        let timers = ends.iter().filter_map(Pds::poll_timeout);
        let next = on_the_way.iter().map(|(at, _)| *at).chain(timers).min();
        now = next.ok_or("nothing happens any more")?;
        let (arriving, waiting): (Vec<_>, Vec<_>) = on_the_way.into_iter().partition(|(at, _)| *at <= now);
        on_the_way = waiting;
        for (_, packet) in arriving {
            let to = usize::from(packet.dst == server);
            ends[to].handle_input(now, packet);
        }
        for end in &mut ends {
            end.handle_timeout(now);
        }
    };
    println!("{ladder}\nThe answer is {:?}.", core::str::from_utf8(&answer)?);
    assert_eq!(answer, "MAKE THIS LARGE");
    Ok(())
}

/// A message of one packet. A standard header comes first, whose content is this layer's own affair.
fn question(text: &'static str) -> TxRequest {
    TxRequest {
        message: MessageKey(1),
        som: true,
        eom: true,
        next_hdr: NextHdr::UET_HDR_REQUEST_STD,
        head: [0; 44].into_iter().collect(),
        payload: Bytes::from_static(text.as_bytes()),
    }
}

/// A response with data, which must arrive: it is kept until the client has it.
fn capitals(text: &[u8]) -> TxResponse {
    TxResponse {
        delivery: Delivery::Guaranteed,
        next_hdr: NextHdr::UET_HDR_RESPONSE_DATA,
        head: [0; 20].into_iter().collect(),
        payload: text.to_ascii_uppercase().into(),
    }
}
