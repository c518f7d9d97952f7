//! Correct devices and incomplete captures cause no findings.

use crate::frames::*;
use uet_wire::pds::{self, Ack, Nack, RequestMut};
use uet_wire::registry::{
    AckRequest, CcType, CtlType, NackCode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{Response, ResponseData, Std};
use uet_wire::{FrameBuilder, Options, Packet, PdcId, Psn, PsnOffset, Start, TrailerKind, Units24};

/// Returns a whole context from its first packet to the ACK of its CLOSE_COMMAND, with these identifiers.
fn life(start: u32, here: PdcId, there: PdcId) -> Vec<Vec<u8>> {
    const LAST: u32 = 5;
    let sends = |psn: u32| {
        let ses = Some(write(psn as u16).into());
        let clear = psn.max(start + 1) - if psn == start { 2 } else { 1 };
        let syn = |r: RequestMut| r.syn(true).psn_offset(PsnOffset::ZERO);
        let open = |r: RequestMut| if psn == start { syn(r) } else { r.dpdcid(there) };
        frame(true, 7, 0, header(psn, |r| open(r.spdcid(here)).clear_psn(Psn(clear))), ses, b"data")
    };
    let told = |psn: u32| {
        let ack = Ack::build().cack_psn(Psn(psn)).spdcid(there).dpdcid(here).done().unwrap();
        frame(false, 7, 0, ack, None, b"")
    };
    let close = pds::Control::build(CtlType::CLOSE_COMMAND).ar(true).psn(Psn(start + LAST));
    let close = frame(true, 7, 0, close.spdcid(here).dpdcid(there).done().unwrap(), None, b"");
    let mut life: Vec<_> = (start..start + LAST).flat_map(|psn| [sends(psn), told(psn)]).collect();
    life.extend([close, told(start + LAST)]);
    life
}

/// Both ends assign a free identifier, most often the last one that was freed; the capture may lack the packet that
/// shows it.
#[test]
fn identifiers_are_used_again() {
    let (other, far) = (PdcId(0x4002), 0x4000_0000);
    for (first, second) in [(1000, far), (far, 1000)] {
        for names in [(HERE, THERE), (other, THERE), (HERE, PdcId(0x8002))] {
            let lives = [life(first, HERE, THERE), life(second, names.0, names.1)].concat();
            finds(&lives, &[]);
            for gap in 0..lives.len() {
                finds(&[&lives[..gap], &lives[gap + 1..]].concat(), &[]);
            }
        }
    }
    // Contexts that are open together have other PSNs than the previous one with that identifier.
    let open = life(1000, HERE, THERE)[..10].to_vec();
    let second = life(far, other, THERE);
    finds(&[open.clone(), second.clone()].concat(), &[]);
    finds(&[open.clone(), second[1..].to_vec()].concat(), &[]);
    finds(&[open, second[2..].to_vec()].concat(), &[]);
    finds(&[life(1000, HERE, THERE)[..11].to_vec(), life(990, other, THERE)].concat(), &[]);
    // The PSNs distinguish the two if the capture lacks the end of the first one.
    let lives = |ends: usize| [life(1000, HERE, THERE)[..ends].to_vec(), life(far, HERE, THERE)].concat();
    (1..12).for_each(|ends| finds(&lives(ends), &[]));
    // The end of the first one distinguishes them if the PSNs are adjacent.
    let close = [life(1000, HERE, THERE), life(1005, other, THERE)].concat();
    finds(&close, &[]);
    finds(&[&close[..12], &close[13..]].concat(), &[]);
}

/// The end that was the target of a context opens another one with the same identifiers.
#[test]
fn the_opening_packet_of_the_other_end_may_be_missing() {
    const FAR: u32 = 0x4000_0000;
    let told = Ack::build().cack_psn(Psn(FAR)).spdcid(HERE).dpdcid(THERE).done().unwrap();
    let told = frame(true, 7, 0, told, None, b"");
    let close = control(false, CtlType::CLOSE_COMMAND, FAR + 1);
    finds(&[opens(5, 0), ack(5, 5), told, close], &[]);
}

fn sends(psn: u32, clear: u32) -> Vec<u8> {
    request(psn, |r| r.clear_psn(Psn(clear)))
}

/// An ACK with congestion state.
fn with_state(cack: u32, mpr: u8, state: impl FnOnce(pds::AckCcMut) -> pds::AckCcMut) -> Vec<u8> {
    let simple = ack_of(cack, cack).done().unwrap();
    let ack = pds::AckCc::build().ack(|a| a.copy_from(&simple).prologue(|p| p.kind(PdsType::ACK_CC)));
    let ack = state(ack.sack(|s| s.mpr(mpr).sack_psn_offset(1))).done().unwrap();
    frame(false, 7, 0, ack, None, b"")
}

fn announces(cack: u32, mpr: u8) -> Vec<u8> {
    with_state(cack, mpr, |ack| ack.cc_type(CcType::NSCC).rcvd_bytes(Units24::default()))
}

/// The deployment sets the window before the first announcement. A window never shrinks. An ACK that was overtaken
/// announces nothing.
#[test]
fn window_never_shrinks() {
    let run =
        |from: u32, clear: u32, last: u32| (from..=last).map(|psn| sends(psn, clear)).collect::<Vec<_>>();
    let opened = vec![opens(5, 0), ack(5, 5)];
    finds(&[opened.clone(), run(6, 5, 4100)].concat(), &[]);
    finds(&[vec![opens(5, 0), announces(5, 8)], run(6, 5, 4100)].concat(), &[]);
    // Beyond every possible Default_MPR.
    let base = 5 + 255 * 128;
    let later = [opened, vec![sends(20_000, 5), ack(20_000, 20_000), sends(base, 20_000)]].concat();
    let shrinks = vec![announces(base, 32), announces(base + 1, 1)];
    finds(&[later.clone(), shrinks, run(base + 1, base + 1, base + 4096)].concat(), &[]);
    let overtaken = vec![announces(base, 64), announces(base - 50, 1), ack(base + 10, base + 10)];
    finds(&[later, overtaken, run(base + 11, base + 10, base + 8202)].concat(), &[]);
}

/// The captured length of a truncated packet is not its length; and a capture of one direction shows no requests.
#[test]
fn received_bytes_are_not_those_captured() {
    let bytes = vec![0; 8192];
    let pair = |psn: u32| {
        let ses = Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).message_id(psn as u16);
        let ses = ses.address(|a| a.job_id(101)).request_length(8192).done().unwrap();
        let request = frame(true, 7, 0, header(psn, same), Some(ses.into()), &bytes);
        [request, ack_cc(psn, psn, 0, psn * 8300 / 256)]
    };
    let frames: Vec<_> = (5..2000).flat_map(pair).collect();
    finds(&frames, &[]);
    let acks: Vec<_> = frames.iter().skip(1).step_by(2).cloned().collect();
    finds(&acks, &[]);
    let mut checker = uet_observe::passive::Checker::default();
    for (number, frame) in frames.iter().enumerate() {
        let kept = &frame[..frame.len().min(128)];
        let packet = Packet::parse_sliced(Start::Eth, kept, frame.len(), &Options::default()).0;
        assert_eq!(checker.packet(number as u64, &packet), []);
    }
}

/// TFC grants credit too (3.6.15), and its requests demand none.
#[test]
fn unrequested_credit_is_tfc() {
    let credit = Units24::new(100).unwrap();
    let granting = |psn: u32| with_state(psn, 8, |ack| ack.cc_type(CcType::CREDIT).credit(credit));
    finds(&(5..20).flat_map(|psn| [request(psn, same), granting(psn)]).collect::<Vec<_>>(), &[]);
}

/// A RUDI request of 4 bytes of message `message`.
fn asks(id: u32, message: u16) -> Vec<u8> {
    let request =
        pds::Rudi::request(id).prologue(|p| p.next_hdr(NextHdr::UET_HDR_REQUEST_STD)).done().unwrap();
    frame(true, 7, 0, request, Some(write(message).into()), b"data")
}

fn answers(id: u32) -> Vec<u8> {
    let response =
        pds::Rudi::response(id).prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE)).done().unwrap();
    let ses = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).done().unwrap();
    frame(false, 7, 0, response, Some(ses.into()), b"")
}

#[test]
fn a_trimmed_rudi_request_is_sent_again() {
    let trimmed = |id| {
        let mut frame = asks(id, id as u16);
        frame.truncate(14 + 20 + 24);
        frame[16..18].copy_from_slice(&44u16.to_be_bytes()); // the IP length shrinks, the UDP length does not
        frame
    };
    finds(&(1..9).flat_map(|id| [trimmed(id), asks(id, id as u16), answers(id)]).collect::<Vec<_>>(), &[]);
}

/// Drops one record in 101: this number shares no period with the frames.
fn lacking(frames: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    frames.enumerate().filter(|(at, _)| at % 101 != 50).map(|(_, frame)| frame).collect()
}

#[test]
fn long_capture_may_lack_several_records() {
    // Responses with reused numbers.
    finds(&lacking((0..4000).flat_map(|k: u32| [asks(k % 4, k as u16), answers(k % 4)])), &[]);
    finds(&lacking((0..4000).flat_map(|k: u32| [asks(k, k as u16), answers(k)])), &[]);
    // Requests for data.
    finds(&lacking((5..4000).flat_map(|psn| [read(psn, psn as u16, 4), data(psn, psn as u16, 4)])), &[]);
    // Retransmissions on other paths.
    let answer = |psn: u32| match psn % 100 {
        50 => frame(false, 9, 0, ack_of(psn, psn).retx(true).done().unwrap(), None, b""),
        _ => ack(psn, psn),
    };
    finds(&(5..4000).flat_map(|psn| [request(psn, same), answer(psn)]).collect::<Vec<_>>(), &[]);
}

fn read(psn: u32, message: u16, length: u32) -> Vec<u8> {
    let read = Std::build(Opcode::UET_READ).head(|head| head.som(true).eom(true)).message_id(message);
    let read = read.address(|a| a.job_id(101)).request_length(length).done().unwrap();
    frame(true, 7, 0, header(psn, same), Some(read.into()), b"")
}

/// Returns all the data of a read.
fn data(psn: u32, message: u16, length: u16) -> Vec<u8> {
    let ses = ResponseData::build().read_request_message_id(message).payload_length(length);
    let ses = ses.modified_length(length.into()).job_id(101).done().unwrap();
    let next = NextHdr::UET_HDR_RESPONSE_DATA;
    let request = pds::Request::rud().prologue(|p| p.next_hdr(next)).clear_psn_offset(-1).psn(Psn(psn));
    let request = request.spdcid(THERE).dpdcid(HERE).done().unwrap();
    frame(false, 7, 0, request, Some(ses.into()), &vec![0; length.into()])
}

#[test]
fn request_of_a_later_read_may_be_missing() {
    finds(&[read(5, 1, 100), data(5, 1, 100), data(6, 1, 200)], &[]);
    let refusal =
        Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::BAD_MKEY).message_id(1).job_id(101);
    let refused = ack_of(5, 5).prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE)).done().unwrap();
    let refused = frame(false, 7, 0, refused, Some(refusal.done().unwrap().into()), b"");
    finds(&[read(5, 1, 100), refused, data(5, 1, 200)], &[]);
}

/// An ordered context may change its path when it is idle.
#[test]
fn an_idle_context_may_take_another_path() {
    let entropy = |psn: u32| psn as u16 % 2;
    let rod = |psn: u32| {
        let request =
            pds::Request::rod().prologue(|p| p.next_hdr(NextHdr::UET_HDR_REQUEST_STD)).psn(Psn(psn));
        let request = request.clear_psn_offset(-1).spdcid(HERE).dpdcid(THERE).done().unwrap();
        frame(true, entropy(psn), 0, request, Some(write(psn as u16).into()), b"data")
    };
    let told = |psn: u32| frame(false, entropy(psn), 0, ack_of(psn, psn).done().unwrap(), None, b"");
    finds(&(5..50).flat_map(|psn| [rod(psn), told(psn)]).collect::<Vec<_>>(), &[]);
    finds(&(5..50).map(rod).collect::<Vec<_>>(), &[]); // the ACKs are missing
}

const GOES_ON: (bool, bool) = (false, false);
const ENDS: (bool, bool) = (true, false);
const ABORTS: (bool, bool) = (false, true);

/// Builds a packet of a message of 12 bytes: the first one, or the one at an offset.
fn part(
    psn: u32,
    opcode: Opcode,
    message: u16,
    offset: u32,
    (eom, ie): (bool, bool),
    data: &[u8],
) -> Vec<u8> {
    let ses = Std::build(opcode)
        .head(|h| h.som(offset == 0).eom(eom).ie(ie))
        .message_id(message)
        .request_length(12);
    let ses = ses.address(|a| a.job_id(101));
    let ses = match offset {
        0 => ses,
        _ => ses.payload_length(data.len() as u16).message_offset(offset),
    };
    frame(true, 7, 0, header(psn, same), Some(ses.done().unwrap().into()), data)
}

#[test]
fn a_message_may_be_given_up_or_go_on_later() {
    const SEND: Opcode = Opcode::UET_DEFERRABLE_SEND;
    let first = [part(5, SEND, 1, 0, GOES_ON, b"data"), part(6, SEND, 1, 4, GOES_ON, b"data")];
    let gives_up = part(7, Opcode::UET_MSG_ERROR, 1, 8, ENDS, b"");
    finds(&[&first[..], &[gives_up]].concat(), &[]);
    // The rest of a deferred message, as a message of its own.
    let last = part(7, SEND, 1, 8, ENDS, b"data");
    let rest = [part(8, SEND, 2, 4, GOES_ON, b"data"), part(9, SEND, 2, 8, ENDS, b"data")];
    finds(&[&first[..], &[last], &rest[..]].concat(), &[]);
    // SES-ERR-005: an error of the initiator ends the message.
    let begins = part(5, Opcode::UET_WRITE, 1, 0, GOES_ON, b"data");
    finds(&[begins, part(6, Opcode::UET_WRITE, 1, 4, ABORTS, b""), request(7, same)], &[]);
}

/// The ACK of a plain response may request a CLEAR for a later one.
#[test]
fn a_clear_may_be_asked_for_in_any_ack() {
    let answer = |psn: u32, cack: u32, code| {
        let ses = Response::build(ResponseOpcode::UET_RESPONSE, code).message_id(psn as u16).job_id(101);
        let ack = ack_of(cack, psn).prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE));
        let ack = ack.req(AckRequest::REQ_CLEAR).done().unwrap();
        frame(false, 7, 0, ack, Some(ses.done().unwrap().into()), b"")
    };
    let requests = [request(5, same), request(6, same)];
    let told = [answer(6, 4, ReturnCode::BAD_MKEY), answer(5, 5, ReturnCode::OK)];
    finds(&[requests, told].concat(), &[]);
}

/// A receiver may answer a burst of questions after the last one.
#[test]
fn every_probe_of_a_burst_is_known() {
    let probe = |opaque| {
        let probe = pds::Control::build(CtlType::PROBE).probe_opaque(opaque).spdcid(HERE).dpdcid(THERE);
        frame(true, 7, 0, probe.done().unwrap(), None, b"")
    };
    let answer = |opaque| {
        let ack = Ack::build().p(true).probe_opaque(opaque).cack_psn(Psn(5)).spdcid(THERE).dpdcid(HERE);
        frame(false, 7, 0, ack.done().unwrap(), None, b"")
    };
    let frames: Vec<_> = (0..1000).map(probe).chain((0..1000).map(answer)).collect();
    finds(&frames, &[]);
}

/// An initiator that sends PSNs below its start is to blame, and not the target that answers them.
#[test]
fn psn_below_the_start_is_no_mistake_of_the_receiver() {
    let below = |psn: u32| vec![request(psn, same), ack(1001, psn)];
    let begun = vec![opens(1000, 0), ack(1000, 1000), request(1001, same), ack(1001, 1001)];
    let found = |frames: &[Vec<u8>]| -> Vec<(&str, String)> {
        let named =
            |finding: uet_observe::passive::Finding| (finding.requirement.id, finding.culprit.to_string());
        super::check(frames).into_iter().map(named).collect()
    };
    let all = [begun, below(999), below(998), below(997), below(996)].concat();
    let culprits = found(&all);
    assert!(
        culprits.iter().any(|(id, culprit)| *id == "PDS-SYN-008" && culprit == "10.0.0.1"),
        "{culprits:?}"
    );
    assert!(culprits.iter().all(|(_, culprit)| culprit == "10.0.0.1"), "{culprits:?}");
}

/// A response may be about any of several requests with one PSN.
#[test]
fn response_to_a_changed_request_is_not_judged() {
    let other = |retx: bool, message: u16| {
        let header = header(5, |request| request.retx(retx));
        frame(true, 7, 0, header, Some(write(message).into()), b"data")
    };
    let response = |message| {
        let ses = Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::BAD_MKEY)
            .message_id(message)
            .job_id(101);
        let ack = ack_of(4, 5).prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE)).req(AckRequest::REQ_CLEAR);
        frame(false, 7, 0, ack.done().unwrap(), Some(ses.done().unwrap().into()), b"")
    };
    finds(&[other(false, 1), response(2)], &[("SES-RESP-003", 2)]);
    finds(&[other(false, 1), other(true, 2), response(2)], &[("PDS-RTO-005", 2)]);
    finds(
        &[other(false, 1), other(true, 2), other(true, 3), response(2)],
        &[("PDS-RTO-005", 2), ("PDS-RTO-005", 3)],
    );
}

/// A PROBE with `syn` opens nothing, so its PSN is no start.
#[test]
fn probe_with_syn_names_no_start() {
    let probe = pds::Control::build(CtlType::PROBE).syn(true).probe_opaque(1).psn(Psn(900)).spdcid(HERE);
    let probe = frame(true, 7, 0, probe.done().unwrap(), None, b"");
    finds(&[probe, request(890, same), ack(890, 890)], &[]);
}

/// Receivers discard a packet with a wrong CRC.
#[test]
fn damaged_packet_is_not_judged() {
    use uet_observe::passive::Checker;

    let damaged = |change: u8| {
        let ses = write(5);
        let frame = FrameBuilder::new(header(5, same)).ses(ses).payload(b"data").udp(7).crc();
        let mut buffer = vec![0; 200];
        let length = frame.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).emit(&mut buffer).unwrap();
        buffer.truncate(length);
        buffer[length - 6] ^= change;
        buffer
    };
    let mut checker = Checker::default();
    let options = Options::default().trailer(TrailerKind::Crc);
    let mut judge = |number: u64, frame: &[u8]| {
        checker.packet(number, &Packet::parse(Start::Ip, frame, &options).unwrap()).len()
    };
    assert_eq!((judge(1, &damaged(0)), judge(2, &damaged(1)), judge(3, &damaged(0))), (0, 0, 0));
}

/// A busy peer may ask for the ACK of each packet of a long burst. Such an ACK leaves on the path of the question.
#[test]
fn many_acks_may_be_asked_for() {
    for count in [1, 64, 65, 154, 1000, 4096, 4097, 5000] {
        let psns = 5..5 + count;
        let asks = |psn: u32| {
            let ask = pds::Control::build(CtlType::ACK_REQUEST).psn(Psn(psn)).spdcid(HERE).dpdcid(THERE);
            frame(true, 8, 0, ask.done().unwrap(), None, b"")
        };
        let told = |psn: u32| frame(false, 8, 0, ack_of(psn, psn).done().unwrap(), None, b"");
        let sent = psns.clone().map(|psn| request(psn, |request| request.clear_psn(Psn(4))));
        finds(&sent.chain(psns.clone().map(asks)).chain(psns.map(told)).collect::<Vec<_>>(), &[]);
    }
}

/// A question belongs to the context whose PSN it names, and its answer has the question's entropy value.
#[test]
fn a_late_copy_of_an_opening_packet_takes_no_question() {
    let ask =
        pds::Control::build(CtlType::ACK_REQUEST).psn(Psn(1003)).spdcid(HERE).dpdcid(THERE).done().unwrap();
    let answer = Ack::build().cack_psn(Psn(1003)).spdcid(THERE).dpdcid(HERE).done().unwrap();
    let late = opens(0x4000_0000, 0);
    let mut frames = [&life(1000, HERE, THERE)[..8], &[late]].concat();
    for entropy in 20..24 {
        frames.push(frame(true, entropy, 0, ask, None, b""));
        frames.push(frame(false, entropy, 0, answer, None, b""));
    }
    finds(&frames, &[]);
}

/// Packets that a target renumbers open the context once more. They leave in any order, and CLEAR_PSN grows meanwhile.
#[test]
fn renumbered_packets_come_in_any_order() {
    const NEW: u32 = 0x4000_0000;
    let nack =
        Nack::build(NackCode::NEW_START_PSN).nack_psn(Psn(1002)).payload(NEW).dpdcid(HERE).done().unwrap();
    let sends =
        |psn: u32, clear: i32| request(NEW + psn, |r| r.clear_psn(Psn(NEW.wrapping_add_signed(clear))));
    let frames = [
        opens(1000, 0),
        opens(1001, 1),
        opens(1002, 2),
        frame(false, 7, 0, nack, None, b""),
        opens(NEW + 2, 2),
        ack(NEW - 1, NEW + 2),
        sends(0, -1),
        ack(NEW, NEW),
        sends(1, 0),
        ack(NEW + 2, NEW + 1),
    ];
    finds(&frames, &[]);
    // Without the renumbering, the same packets are an error.
    finds(&frames[4..], &[("PDS-CLR-002", 5)]);
}
