//! The worked examples of the public articles, with the values that every implementation should get.

use super::parts::{
    INITIATOR, JOB, Ladder, TARGET, ack, built, control, data, ok, opening, request, response, with_credit,
    with_state, write,
};
use crate::case::{Case, Family};
use uet_wire::pds::{Ack, Control};
use uet_wire::registry::{CcType, CtlType, Opcode, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Std, StdMut};
use uet_wire::{FrameBuilder, PdcId, Psn, PsnOffset, Units24};

pub(super) fn family() -> Family {
    let mut family = Family::new("examples", "public articles: check values");
    indices(&mut family);
    write_of_16_kib(&mut family);
    nscc(&mut family);
    rccc(&mut family);
    check_values(&mut family);
    family
}

/// Job 101, process 2: an endpoint that owns the indices 300 to 363.
fn indices(family: &mut Family) {
    const SOURCE: &str = "public articles: endpoint and resource index";
    for (index, owned) in [(299, false), (300, true), (312, true), (363, true), (364, false)] {
        let send = Std::build(Opcode::UET_SEND).head(|h| h.rel(true).som(true).eom(true)).message_id(1);
        let send = built(
            send.address(|a| a.job_id(JOB).pid_on_fep(2).resource_index(index)).request_length(16).done(),
        );
        let asks = FrameBuilder::new(built(request(333, 332).done())).ses(send).payload(data(0, 16));
        let ladder = Ladder::new().initiator(&format!("a send to index {index}"), asks);
        let ladder = if owned {
            ladder.target("delivered", FrameBuilder::new(built(ack(333, 333).done())).ses(ok(1)))
        } else {
            let refused = built(response(ResponseOpcode::UET_RESPONSE, ReturnCode::BAD_INDEX, 1).done());
            let kept = built(super::parts::guaranteed(332, 333).done());
            ladder.target(
                "no endpoint owns it: BAD_INDEX, kept until cleared",
                FrameBuilder::new(kept).ses(refused),
            )
        };
        let what = "an endpoint that asked for 64 indices from 300 on owns 300 to 363";
        family.sequence(&format!("index-{index}"), what, SOURCE, ladder.steps());
    }
}

/// The header of a packet of the articles' write, whose first chunk has bucket 11 and second 12.
fn chunk(message: u16, head: impl Fn(StdMut) -> StdMut) -> Std {
    let header = Std::build(Opcode::UET_WRITE)
        .head(|h| h.rel(true))
        .message_id(message)
        .address(|a| a.ri_generation(1).job_id(JOB).pid_on_fep(2).resource_index(0x00a));
    built(head(header.memory_key(0xacce5)).request_length(16_384).done())
}

fn write_of_16_kib(family: &mut Family) {
    const SOURCE: &str = "public articles: a 16 KiB write in four packets";
    const START: u32 = 0x12000;
    const MTU: usize = 4096;
    let first = |message, bucket| chunk(message, |h| h.head(|h| h.hd(true).som(true)).header_data(bucket));
    let mut ladder = Ladder::new();
    for index in 0..4u16 {
        let offset = usize::from(index) * MTU;
        let ses = match index {
            0 => first(1, 11),
            _ => chunk(1, |h| {
                h.head(|h| h.eom(index == 3)).payload_length(MTU as u16).message_offset(offset as u32)
            }),
        };
        let pds = built(opening(PdsType::RUD_REQ, START + u32::from(index), index).done());
        let what = format!(
            "packet {} of 4: goes to base + {offset}; syn, since no ACK has come, and psn_offset {index}",
            index + 1
        );
        ladder = ladder.initiator(&what, FrameBuilder::new(pds).ses(ses).payload(data(offset, MTU)));
    }
    for index in 0..4u32 {
        let last = index == 3;
        let answer = response(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK, 1);
        let answer = built(answer.modified_length(if last { 16_384 } else { 0 }).done());
        let what = if last { "completes the message: all 16,384 bytes" } else { "acknowledges one packet" };
        let pds = built(ack(START + index, START + index).done());
        ladder = ladder.target(what, FrameBuilder::new(pds).ses(answer));
    }
    let next = built(request(START + 4, START + 3).done());
    let ladder = ladder.initiator(
        "the first packet of the second chunk, message 2, bucket 12: the target's PDCID is known now",
        FrameBuilder::new(next).ses(first(2, 12)).payload(data(0, MTU)),
    );
    let what = "16,384 bytes in four packets of 4,096, their answers, and the start of the next chunk. The message id, \
                the key and the buffer offset are those of the message in every packet; only message_offset grows";
    family.sequence("write-16-kib", what, SOURCE, ladder.steps());
}

fn nscc(family: &mut Family) {
    const SOURCE: &str = "public articles: NSCC";
    let answer = |psn: u32, penalty: u8, received: u64| {
        let header = with_state(ack(psn, psn));
        let header = header.cc_type(CcType::NSCC).sack(|s| s.mpr(8)).service_time(8).rcv_cwnd_pend(penalty);
        FrameBuilder::new(built(header.rcvd_bytes(Units24::from_bytes(received)).done())).ses(ok(1))
    };
    let asks = |psn: u32| {
        let pds = built(request(psn, psn - 1).done());
        FrameBuilder::new(pds).ses(write(1, 4096)).payload(data(0, 4096))
    };
    let ladder = Ladder::new()
        .initiator("4,096 bytes", asks(335))
        .target("12,288 bytes received so far: 48 units", answer(335, 0, 12_288))
        .initiator("4,096 bytes", asks(336))
        .target("16,384 bytes: 64 units, so 4,096 are new", answer(336, 0, 16_384));
    family.sequence(
        "nscc-received",
        "two values of rcvd_bytes, and what is new between them",
        SOURCE,
        ladder.steps(),
    );
    let what = "a penalty of 64 with 4,096 new bytes takes (64 * 4,096) >> 7 = 2,048 from the window: 75,776 becomes 73,728";
    family.add(Case::uet("nscc-penalty-64", what, answer(336, 64, 16_384)).source(SOURCE));
}

fn rccc(family: &mut Family) {
    const SOURCE: &str = "public articles: RCCC";
    const RCCC_TARGET: PdcId = PdcId(0x4011);
    let wants = |psn: u32, clear: u32, bytes: u64| {
        let header = with_credit(request(psn, clear).dpdcid(RCCC_TARGET))
            .ccc_id(0xa1)
            .credit_target(Units24::from_bytes(bytes));
        FrameBuilder::new(built(header.done())).ses({
            let header = super::parts::std(Opcode::UET_WRITE, 1).memory_key(0xacce5).payload_length(256);
            built(header.message_offset((psn - 333) * 256).request_length(256_000_000).done())
        })
    };
    let grants = |psn: u32, bytes: u64| {
        let header = with_state(ack(psn, psn).spdcid(RCCC_TARGET)).cc_type(CcType::CREDIT).sack(|s| s.mpr(8));
        let header = built(header.credit(Units24::from_bytes(bytes)).ooo_count(0).done());
        FrameBuilder::new(header).ses(ok(1))
    };
    let ladder = Ladder::new()
        .initiator(
            "backlog 255,987,500 bytes: 999,952 units, rounded up",
            wants(334, 333, 255_987_500).payload(data(256, 256)),
        )
        .target("12,500 bytes are 48.83 units: 49", grants(334, 12_500))
        .initiator(
            "the target is cumulative, and stays",
            wants(335, 334, 255_987_500).payload(data(512, 256)),
        )
        .target(
            "25,000 in all are 97.66 units: 98; 12,500 of them used leave 12,500 to spend",
            grants(335, 25_000),
        );
    let what = "a write of 256,000,000 bytes after an initial credit of 12,500 (which the counter leaves out). The wire \
                counts in units of 256 bytes, so every value is rounded up to one; context 0xa1 is the initiator's, the \
                target's 0xb1 never appears";
    family.sequence("rccc", what, SOURCE, ladder.steps());
    let what = "12.5 GB/s shared by two senders: 6,250 bytes for each interval of 1 us, 25 units, rounded up";
    family.add(Case::uet("rccc-two-senders", what, grants(335, 6_250)).source(SOURCE));
    let credit = Control::build(CtlType::CREDIT).spdcid(RCCC_TARGET).dpdcid(INITIATOR);
    let credit = built(credit.payload(Units24::from_bytes(12_500).get()).done());
    family.add(
        Case::uet("rccc-credit-packet", "the same grant in a control packet", FrameBuilder::new(credit))
            .source(SOURCE),
    );
    let units = Units24::from_bytes(255_987_500).get();
    let wanted =
        built(control(CtlType::CREDIT_REQUEST).dpdcid(RCCC_TARGET).payload(0xa1 << 24 | units).done());
    family.add(
        Case::uet("rccc-credit-request", "the same wish in a control packet", FrameBuilder::new(wanted))
            .source(SOURCE),
    );
}

fn check_values(family: &mut Family) {
    let mut add = |name: &str, what: &str, frame: FrameBuilder<'_>| {
        family.add(Case::uet(name, what, frame));
    };
    let answers =
        |offset| Ack::build().ack_psn_offset(offset).cack_psn(Psn(1)).spdcid(TARGET).dpdcid(INITIATOR);
    add(
        "ack-psn-wraps",
        "cack 1 and offset -2: ack_psn is 0xffffffff",
        FrameBuilder::new(built(answers(-2).done())).ses(ok(1)),
    );
    add(
        "ack-psn-offset-lowest",
        "offset -32,768",
        FrameBuilder::new(built(answers(i16::MIN).done())).ses(ok(1)),
    );
    add(
        "ack-psn-offset-highest",
        "offset 32,767",
        FrameBuilder::new(built(answers(i16::MAX).done())).ses(ok(1)),
    );
    let opens = |offset: u16| {
        let pds = opening(PdsType::RUD_REQ, 0x12000 + u32::from(offset), offset);
        FrameBuilder::new(built(pds.done())).ses(write(1, 16)).payload(data(0, 16))
    };
    add(
        "psn-offset-4095",
        "the largest offset: Start_PSN is 0x12000. Beyond the default window, which is noted",
        opens(4095),
    );
    add("psn-offset-1023", "the last in the default window", opens(1023));
    add("psn-offset-1024", "the first beyond the default window", opens(1024));
    let wraps = opening(PdsType::RUD_REQ, 2, 0).psn_offset(PsnOffset::new(5).unwrap_or_default());
    add("start-psn-wraps", "PSN 2 and offset 5: Start_PSN is 0xfffffffd", {
        FrameBuilder::new(built(wraps.done())).ses(write(1, 16)).payload(data(0, 16))
    });
    for (word, offset) in [("lowest", i16::MIN), ("minus-one", -1), ("zero", 0), ("highest", i16::MAX)] {
        let pds = built(request(333, 332).clear_psn_offset(offset).done());
        let what = format!("clear_psn_offset {offset}");
        add(
            &format!("clear-psn-offset-{word}"),
            &what,
            FrameBuilder::new(pds).ses(write(1, 16)).payload(data(0, 16)),
        );
    }
    for (bytes, units) in [(0, 0), (1, 1), (256, 1), (257, 2), (256 << 24, 0)] {
        let header = with_state(ack(333, 333));
        let header = header.cc_type(CcType::NSCC).rcvd_bytes(Units24::from_bytes(bytes));
        let what = format!("{bytes} bytes are {units} units");
        add(&format!("rcvd-bytes-{bytes}"), &what, FrameBuilder::new(built(header.done())).ses(ok(1)));
    }
    let window = with_state(ack(332, 332)).sack(|s| s.mpr(8));
    add(
        "window",
        "cack 332 and mpr 8: the PSNs 333 to 1,356 are inside",
        FrameBuilder::new(built(window.done())).ses(ok(1)),
    );
    for (word, psn) in [("first", 333), ("last", 1356), ("beyond", 1357)] {
        let pds = built(request(psn, 332).done());
        let what = format!("PSN {psn}, {word} of the window 333 to 1,356");
        add(&format!("window-{word}"), &what, FrameBuilder::new(pds).ses(write(1, 16)).payload(data(0, 16)));
    }
    for (word, units) in [("not-valid", 0), ("one", 1), ("longest", 0xffff)] {
        let header = with_state(ack(333, 333));
        let header = header.cc_type(CcType::NSCC).service_time(units);
        let what = format!(
            "service_time {units} in units of 128 ns; 0 is not valid, the highest stands for all above"
        );
        add(&format!("service-time-{word}"), &what, FrameBuilder::new(built(header.done())).ses(ok(1)));
    }
}
