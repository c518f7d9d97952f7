//! Messages of peers that nobody knows: what one of them may occupy, and for how long.

use super::pair::*;
use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::Psn;
use uet_wire::registry::{NextHdr, Opcode, ReturnCode};
use uet_wire::ses::{Response, Std, StdMut};

/// A part of a send: 8 bytes at `offset`.
#[derive(Clone, Copy)]
struct Part {
    from: u8,
    confirmed: bool,
    total: u32,
    offset: u32,
    message: u16,
}

impl Part {
    fn first_of(from: u8, total: u32) -> Self {
        Part { from, confirmed: false, total, offset: 0, message: 1 }
    }

    fn pdc(&self) -> PdcHandle {
        handle(u16::from(self.from) + 1)
    }

    /// Returns the header of the part, with this opcode.
    fn header(&self, opcode: Opcode) -> StdMut {
        let Part { total, offset, message, .. } = *self;
        let (som, eom) = (offset == 0, offset + 8 >= total);
        let header = Std::build(opcode).head(|head| head.som(som).eom(eom).rel(true));
        let header = header.message_id(message).request_length(total);
        let header = header.address(|address| address.job_id(JOB).pid_on_fep(PID).resource_index(10));
        if som { header } else { header.payload_length(8).message_offset(offset) }
    }

    /// Delivers a packet with this header, and returns the return codes of all responses.
    fn delivers(&self, psn: u32, header: StdMut, payload: Bytes, target: &mut Ses) -> Vec<ReturnCode> {
        let (ticket, header) = (Ticket::Pdc(self.pdc(), Psn(psn)), header.done().unwrap());
        let rx = arrived(ticket, NextHdr::UET_HDR_REQUEST_STD, header.bytes(), payload);
        let (from, confirmed) = (IpAddr::from([10, 9, 0, self.from]), self.confirmed);
        target.handle(Indication::Request(RxRequest { from, confirmed, ..rx }));
        let responses = core::iter::from_fn(|| match target.poll_command()? {
            Command::Respond(_, response) => Some(response),
            other => panic!("{other:?}"),
        });
        responses.map(|response| Response::parse(&response.head).unwrap().0.head().return_code()).collect()
    }

    /// Delivers the part of a send, and returns the return code of the response.
    fn arrives(self, target: &mut Ses) -> ReturnCode {
        let psn = self.offset + u32::from(self.message);
        self.delivers(psn, self.header(Opcode::UET_SEND), data(8), target)[0]
    }
}

fn target(params: SesParams) -> Ses {
    let mut target = Ses::new(params, &PdsParams::default());
    target.open(Endpoint { process: PROCESS, start: 0, count: 64 }).unwrap();
    target
}

/// Looks for stalled messages until nothing waits, and closes the contexts that are abandoned.
fn stall(target: &mut Ses) {
    for _ in 0..3 {
        let Some(at) = target.poll_timeout() else { return };
        target.handle_timeout(at);
        while let Some(command) = target.poll_command() {
            let Command::Abandon(pdc) = command else { panic!("{command:?}") };
            target.handle(Indication::Closed(pdc));
        }
    }
}

#[test]
fn announced_bytes_occupy_nothing() {
    let params = SesParams { max_unexpected_bytes: 4096, ..SesParams::default() };
    let mut target = target(params);
    for from in 0..20 {
        assert_eq!(Part::first_of(from, 4000).arrives(&mut target), ReturnCode::OK);
    }
    assert_eq!(Part::first_of(20, 4097).arrives(&mut target), ReturnCode::NO_MATCH, "it can never fit");
}

#[test]
fn arriving_bytes_are_bounded() {
    let mut target = target(SesParams { max_unexpected_bytes: 24, ..SesParams::default() });
    let second = Part { offset: 8, ..Part::first_of(0, 24) };
    let parts = [Part::first_of(0, 24), Part::first_of(1, 24), second, Part { from: 1, ..second }];
    let codes = parts.map(|part| part.arrives(&mut target));
    assert_eq!(codes, [ReturnCode::OK, ReturnCode::OK, ReturnCode::OK, ReturnCode::NO_MATCH]);
    // The refused message has left its room to the other one.
    assert_eq!(Part { offset: 16, ..second }.arrives(&mut target), ReturnCode::OK);
}

/// Forged addresses give a stranger no second share, and leave a peer its own.
#[test]
fn strangers_share_one_part_of_the_room() {
    for params in [
        SesParams { max_unexpected_of_peer: 5, ..SesParams::default() },
        SesParams { max_unexpected_bytes_of_peer: 40, ..SesParams::default() },
    ] {
        let mut target = target(params);
        let kept = |part: Part, target: &mut Ses| part.arrives(target) == ReturnCode::OK;
        let strangers = (0..20).filter(|from| kept(Part::first_of(*from, 8), &mut target)).count();
        let known = Part { confirmed: true, ..Part::first_of(30, 8) };
        let own = (0..20).filter(|message| kept(Part { message: *message, ..known }, &mut target)).count();
        assert_eq!((strangers, own), (5, 5));
        // One of the strangers turns out to be a peer.
        target.handle(Indication::Confirmed(Part::first_of(0, 8).pdc()));
        assert!(kept(Part::first_of(40, 8), &mut target) && !kept(Part::first_of(41, 8), &mut target));
    }
}

/// The rest of a refused message is refused again, so a forged one needs no place.
#[test]
fn refused_messages_of_strangers_take_no_place() {
    let mut target = target(SesParams { max_messages: 4, max_unexpected_bytes: 16, ..SesParams::default() });
    for from in 0..20 {
        assert_eq!(Part::first_of(from, 24).arrives(&mut target), ReturnCode::NO_MATCH);
    }
    let known = Part { confirmed: true, ..Part::first_of(30, 16) };
    assert_eq!(known.arrives(&mut target), ReturnCode::OK);
    let rest = Part { offset: 8, ..Part::first_of(0, 24) };
    assert_eq!(rest.arrives(&mut target), ReturnCode::NO_MATCH);
}

/// A deferred send reserves a receive for seconds, so forged ones come after all others.
#[test]
fn deferred_sends_of_strangers_come_last() {
    let mut target = target(SesParams { max_deferred: 10, ..SesParams::default() });
    let deferred = |part: Part, target: &mut Ses| {
        let header = part.header(Opcode::UET_DEFERRABLE_SEND).send_initiator_token(7);
        part.delivers(1, header, data(8), target) == [ReturnCode::OK]
    };
    let strangers = (0..20).filter(|from| deferred(Part::first_of(*from, 8), &mut target)).count();
    let known = Part { confirmed: true, ..Part::first_of(30, 8) };
    let own = (0..20).filter(|message| deferred(Part { message: *message, ..known }, &mut target)).count();
    assert_eq!((strangers, own), (5, 5));
    // Two of the strangers turn out to be peers, so the first receives are for them.
    for from in [3, 1] {
        target.handle(Indication::Confirmed(Part::first_of(from, 8).pdc()));
    }
    let wanted = (0..4).map(|_| {
        target.post_receive(index(10), Receive::new(8)).unwrap();
        let Some(Command::Send(Via::Route(route), _)) = target.poll_command() else { panic!("no request") };
        route.destination
    });
    assert_eq!(wanted.collect::<Vec<_>>(), [1, 3, 30, 30].map(|from| IpAddr::from([10, 9, 0, from])));
}

#[test]
fn a_second_end_of_a_message_is_refused() {
    let mut target = target(SesParams::default());
    let end = Part { offset: 8, ..Part::first_of(1, 24) };
    let ends = |offset: u32, length: u32| {
        let header = end.header(Opcode::UET_SEND).head(|head| head.eom(true).dc(true));
        header.payload_length(length as u16).message_offset(offset)
    };
    assert_eq!(end.delivers(1, ends(16, 8), data(8), &mut target), [], "it waits for the rest");
    let both = end.delivers(2, ends(24, 0), Bytes::new(), &mut target);
    assert_eq!(both, [ReturnCode::OP_VIOLATION; 2], "neither of them waits for ever");
}

#[test]
fn unexpected_message_of_a_stranger_ends() {
    let mut target = target(SesParams::default());
    Part::first_of(0, 8).arrives(&mut target);
    Part::first_of(1, 16).arrives(&mut target);
    Part { confirmed: true, ..Part::first_of(2, 8) }.arrives(&mut target);
    Part { confirmed: true, ..Part::first_of(3, 16) }.arrives(&mut target);
    stall(&mut target);
    assert_eq!(target.poll_timeout(), None, "nothing waits any longer");
    // Only the whole message of a known peer is left.
    for expected in [Some([10, 9, 0, 2]), None] {
        target.post_receive(index(10), Receive::new(8)).unwrap();
        let received = match target.poll_completion() {
            Some(Completion::Received(received)) => Some(received.sender.from),
            _ => None,
        };
        assert_eq!(received, expected.map(IpAddr::from));
    }
}

#[test]
fn progress_keeps_a_message() {
    let mut target = target(SesParams::default());
    target.post_receive(index(10), Receive::new(24)).unwrap();
    for offset in [0, 8, 16] {
        Part { offset, ..Part::first_of(0, 24) }.arrives(&mut target);
        target.handle_timeout(target.poll_timeout().unwrap_or_default());
    }
    assert!(
        matches!(target.poll_completion(), Some(Completion::Received(it)) if it.data == [data(8), data(8), data(8)].concat())
    );
}

/// Parts that overlap can have the length of the message, and leave a hole.
#[test]
fn overlapping_parts_complete_nothing() {
    let mut target = target(SesParams::default());
    target.post_receive(index(10), Receive::new(24)).unwrap();
    let codes = [0, 7, 16].map(|offset| Part { offset, ..Part::first_of(0, 24) }.arrives(&mut target));
    assert_eq!(codes, [ReturnCode::OK, ReturnCode::OP_VIOLATION, ReturnCode::OP_VIOLATION]);
    let Some(Completion::Received(received)) = target.poll_completion() else { panic!("no completion") };
    assert_eq!((received.code, received.length), (ReturnCode::OP_VIOLATION, 0));
}

/// A stalled message gives its receive back if it may be forged; otherwise the application learns of the loss.
#[test]
fn stalled_message_gives_its_receive_back() {
    let mut target = target(SesParams::default());
    for tag in 0..3 {
        // The order of the receives shows in their buffers.
        target.post_receive(index(10), Receive::new(16 + tag)).unwrap();
    }
    Part::first_of(0, 16).arrives(&mut target);
    Part { confirmed: true, ..Part::first_of(1, 16) }.arrives(&mut target);
    stall(&mut target);
    let Some(Completion::Received(lost)) = target.poll_completion() else { panic!("no completion") };
    assert_eq!((lost.id, lost.code), (ReceiveId(1), ReturnCode::UNDELIVERABLE));
    assert_eq!(target.poll_completion(), None);
    for id in [0, 2] {
        Part::first_of(2, 8).arrives(&mut target);
        assert!(matches!(target.poll_completion(), Some(Completion::Received(it)) if it.id == ReceiveId(id)));
    }
}

/// The first packet of a message has a forged address, or its sender is gone: the receive serves the next message.
#[test]
fn first_packet_alone_occupies_nothing_for_good() {
    let fep = |address: [u8; 4]| {
        let mut fep = Fep::new(PdsParams::default(), SesParams::default(), address.into(), 1).unwrap();
        fep.ses_mut().open(Endpoint { process: PROCESS, start: 0, count: 64 }).unwrap();
        fep
    };
    for rendezvous in [true, false] {
        let [mut dead, mut alive, mut target] = [[10, 0, 0, 7], [10, 0, 0, 8], ADDRESS[1]].map(fep);
        let region = Region { key: Key(9), base: 0, access: Access::READ, data: vec![0; 9000] };
        let source = dead.ses_mut().expose(index(20), region).unwrap();
        let work = match rendezvous {
            true => Work::Rendezvous { tag: None, source, offset: 0, length: 9000, eager: 0 },
            false => Work::Send { tag: None, data: data(9000) },
        };
        dead.ses_mut().post(Operation::new(peer(), work)).unwrap();
        target.ses_mut().post_receive(index(10), Receive::new(9000)).unwrap();
        let mut now = Time::ZERO;
        target.handle_input(now, dead.poll_transmit(now).unwrap());
        // Everything that leaves is lost.
        let mut left = 0;
        while target.poll_transmit(now).is_some() {
            left += 1;
        }
        // An ACK, and one read although the rest needs three: the address of the sender may be forged.
        assert_eq!(left, 1 + usize::from(rendezvous));
        while let Some(at) = target.poll_timeout().filter(|at| *at < Time::ZERO + Duration::from_secs(60)) {
            now = at;
            target.handle_timeout(now);
            while target.poll_transmit(now).is_some() {}
        }
        assert_eq!(target.poll_completion(), None, "the application does not hear of it");
        assert_eq!(target.pds().contexts(), usize::from(rendezvous), "the rest of a send needs its context");
        alive.ses_mut().post(send(None, Bytes::from_static(b"hello"))).unwrap();
        target.handle_input(now, alive.poll_transmit(now).unwrap());
        assert!(matches!(target.poll_completion(), Some(Completion::Received(it)) if it.data == "hello"));
    }
}
