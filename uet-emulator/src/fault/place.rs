//! Whom a message is for, where its bytes go, how it is cut.

use super::fields::Fields;
use super::tap::Tap;
use super::{Area, Fault};
use uet_model::{Indication, Ticket};

const fn fault(name: &'static str, sentence: &'static str, taps: &'static [Tap]) -> Fault {
    Fault { name, sentence, area: Area::Place, taps }
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "delivers-duplicates",
        "A packet that arrives again is delivered again",
        &[
            Tap::Up(|middle, said| {
                if let Indication::Request(request) = &said {
                    super::seen::push(&mut middle.memo.indications, Indication::Request(request.clone()));
                }
                middle.pass(said);
            }),
            Tap::In(|wire, packet| {
                let again = wire.seen.times(&packet) > 1;
                let psn = super::seen::psn(&packet);
                let of = |said: &&Indication| {
                    matches!(said, Indication::Request(request)
                        if request.from == packet.src && matches!(request.ticket, Ticket::Pdc(_, of) if of == psn))
                };
                if let (true, Some(said)) = (again, wire.memo.indications.iter().find(of).cloned()) {
                    wire.tell(said);
                }
                wire.pass(packet);
            }),
        ],
    ),
    fault(
        "places-at-previous-offset",
        "The bytes of a packet go where those of the packet before it were to go",
        &[Tap::Up(|middle, mut said| {
            if let Indication::Request(request) = &mut said {
                if let (Some(offset), Some(message)) =
                    (request.get("ses.message_offset"), request.get("ses.message_id"))
                {
                    let before = middle.memo.set(request.from, message, offset).unwrap_or_default();
                    request.set("ses.message_offset", before);
                }
            }
            middle.pass(said);
        })],
    ),
];
