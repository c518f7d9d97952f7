//! Idempotent requests at a target: no context, at least once (sections 3.5.6 and 3.5.7).

use crate::axis::{CARRIER, MODE, START};
use crate::{
    Axis, Message, Need, Outcome, Pdc, Point, Region, Request, Rule, RxPacket, Stop, Test, Wire, rudi,
};
use uet_control::{ExposeRegion, Hex64, Permission, pattern};
use uet_wire::catalogue::*;
use uet_wire::registry::{NextHdr, Opcode, ReturnCode};

const TARGET: &[Need] = &[Need::Capability("rudi"), Need::Capability("write")];
const READS: &[Need] = &[Need::Capability("rudi"), Need::Capability("read")];
const ATOMICS: &[Need] = &[Need::Capability("rudi"), Need::Capability("atomic")];

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "rudi/write",
        title: "A request is delivered and answered with its pkt_id",
        requirements: &[PDS_RUDI_002],
        needs: &[Need::Capability("rudi")],
        axes: &[],
        run: write,
    },
    Rule {
        id: "rudi/any-id",
        title: "Any pkt_id will do, in any order",
        requirements: &[PDS_RUDI_002],
        needs: &[Need::Capability("rudi")],
        axes: &[],
        run: any_id,
    },
    Rule {
        id: "rudi/again",
        title: "A request that comes again is delivered again and answered again",
        requirements: &[PDS_RUDI_003, SES_MODE_003, PDS_RUDI_002],
        needs: &[Need::Capability("rudi")],
        axes: &[],
        run: again,
    },
    Rule {
        id: "rudi/each-once",
        title: "Of many requests each gets one response",
        requirements: &[PDS_RUDI_002],
        needs: &[Need::Capability("rudi")],
        axes: &[],
        run: each_once,
    },
    Rule {
        id: "rudi/room-again",
        title: "A request that is answered, or refused for want of room, makes room for another, again and again",
        requirements: &[PDS_RUDI_002],
        needs: &[Need::Capability("rudi")],
        axes: &[&CARRIER],
        run: room_again,
    },
    Rule {
        id: "rudi/read",
        title: "The data of a read rides in the response, up to an MTU",
        requirements: &[SES_READ_008],
        needs: READS,
        axes: &[],
        run: read,
    },
    Rule {
        id: "rudi/not-safe",
        title: "A region that is not marked as safe is neither written nor read",
        requirements: &[SES_MODE_002],
        needs: &[Need::Capability("rudi")],
        axes: &[],
        run: not_safe,
    },
    Rule {
        id: "rudi/atomic",
        title: "An atomic by RUDI does not reach a region that is not marked as safe",
        requirements: &[SES_MODE_002],
        needs: ATOMICS,
        axes: &[],
        run: atomic,
    },
    Rule {
        id: "rudi/error",
        title: "A request that no region takes is answered by an error, each time it comes",
        requirements: &[PDS_RUDI_002, PDS_RUDI_003],
        needs: &[Need::Capability("rudi")],
        axes: &[&CARRIER],
        run: error,
    },
    Rule {
        id: "rudi/two-sources",
        title: "A pkt_id from two addresses is two requests",
        requirements: &[PDS_RUDI_001, PDS_RUDI_002],
        needs: &[Need::Capability("rudi"), Need::Addresses(2)],
        axes: &[],
        run: two_sources,
    },
    Rule {
        id: "rudi/flags",
        title: "A response says whether its request was marked by congestion",
        requirements: &[PDS_ACK_002],
        needs: &[Need::Capability("rudi"), Need::Capability("ecn"), Need::SetEcn],
        axes: &[&CARRIER],
        run: flags,
    },
    Rule {
        id: "rudi/beside-a-context",
        title: "Idempotent requests and a context do not touch each other",
        requirements: &[PDS_RUDI_002, PDS_PSN_002],
        needs: TARGET,
        axes: &[&MODE, &START],
        run: beside_a_context,
    },
    Rule {
        id: "rudi/denied",
        title: "An idempotent request without permission changes and reads nothing, however often it comes",
        requirements: &[SES_MEM_003, PDS_RUDI_003, SES_MEM_005],
        needs: &[Need::Capability("rudi")],
        axes: &[&DENIED],
        run: denied,
    },
    Rule {
        id: "rudi/size",
        title: "Idempotent requests transfer all bytes of a message, in any order and with duplicates",
        requirements: &[PDS_RUDI_003, SES_PLACE_001, SES_READ_008],
        needs: &[Need::Capability("rudi")],
        axes: &[&TRANSFER, &SIZE, &ARRIVAL],
        run: size,
    },
];

/// A permission that a region does not grant, and whether a read or a write is tried.
const DENIED: Axis<(Permission, bool)> = Axis::new(
    "denied",
    &[
        Point::needing("write", (Permission::Write, false), &[Need::Capability("write")]),
        Point::needing("read", (Permission::Read, true), &[Need::Capability("read")]),
    ],
);

/// True if the message is a read.
const TRANSFER: Axis<bool> = Axis::new(
    "operation",
    &[
        Point::needing("write", false, &[Need::Capability("write")]),
        Point::needing("read", true, &[Need::Capability("read")]),
    ],
);

const SIZE: Axis<fn(usize) -> usize> = Axis::new(
    "size",
    &[
        Point::new("1", |_| 1),
        Point::new("mtu-minus-1", |mtu| mtu - 1),
        Point::new("mtu", |mtu| mtu),
        Point::new("mtu-plus-1", |mtu| mtu + 1),
        Point::new("3-mtu", |mtu| 3 * mtu),
    ],
);

const ARRIVAL: Axis<bool> =
    Axis::new("arrival", &[Point::new("in-order", false), Point::new("reversed", true)]);

/// The return codes of a request that went well, where there is one.
const WELL: &[Option<ReturnCode>] = &[None, Some(ReturnCode::NULL), Some(ReturnCode::OK)];

/// Bit 63 of a memory key.
const SAFE: u64 = 1 << 63;

pub(super) fn safe(t: &mut Test<'_>) -> Result<(Region, Pdc), Stop> {
    let key = Hex64(SAFE | 0xacce5);
    let (region, _) = t.exposed(1 << 14, |region| ExposeRegion { key, fill: None, ..region })?;
    Ok((region, t.initiate()))
}

fn send(t: &mut Test<'_>, way: &Pdc, id: u32, request: Request) -> Outcome {
    t.send(way, &rudi(id, &request)?)
}

/// The response to this request.
fn answers(seen: &RxPacket, way: &Pdc, id: u32) -> Option<NextHdr> {
    let response = seen.rudi().filter(|response| response.pkt_id() == id && seen.wire.dst == way.from)?;
    Some(response.prologue().next_hdr())
}

pub(super) fn expect(
    t: &mut Test<'_>,
    requirement: &Requirement,
    way: &Pdc,
    id: u32,
) -> Result<RxPacket, Stop> {
    let expected = format!("a RUDI_RESP with pkt_id {id:#x}");
    let (seen, _) = t.expect(requirement, &expected, t.soon(), |seen| answers(seen, way, id))?;
    Ok(seen)
}

fn write(t: &mut Test<'_>) -> Outcome {
    let (region, way) = safe(t)?;
    send(t, &way, 0xdead_beef, way.request(0).write(&region, 8, &[7; 100])?)?;
    let seen = expect(t, PDS_RUDI_002, &way, 0xdead_beef)?;
    t.one_of(PDS_RUDI_002, "return_code", WELL, seen.return_code());
    t.expect_memory(PDS_RUDI_002, &region, 0, &[&[0; 8][..], &[7; 100], &[0; 8]].concat())
}

fn any_id(t: &mut Test<'_>) -> Outcome {
    let (region, way) = safe(t)?;
    for id in [u32::MAX, 0, 1, 0x8000_0000, 0x7fff_ffff] {
        send(t, &way, id, way.request(0).write(&region, 0, &[1])?)?;
        let seen = expect(t, PDS_RUDI_002, &way, id)?;
        t.one_of(PDS_RUDI_002, "return_code", WELL, seen.return_code());
    }
    Ok(())
}

fn again(t: &mut Test<'_>) -> Outcome {
    let (region, way) = safe(t)?;
    let first = way.request(0).write(&region, 0, &[1; 16])?;
    send(t, &way, 1, first.clone())?;
    expect(t, PDS_RUDI_002, &way, 1)?;
    send(t, &way, 2, way.request(0).write(&region, 0, &[2; 16])?)?;
    expect(t, PDS_RUDI_002, &way, 2)?;
    t.expect_memory(PDS_RUDI_002, &region, 0, &[2; 16])?;
    send(t, &way, 1, first.retx())?;
    let seen = expect(t, PDS_RUDI_003, &way, 1)?;
    t.one_of(SES_MODE_003, "return_code", WELL, seen.return_code());
    t.expect_memory(PDS_RUDI_003, &region, 0, &[1; 16])
}

fn each_once(t: &mut Test<'_>) -> Outcome {
    const COUNT: u32 = 100;
    let (region, way) = safe(t)?;
    for id in 0..COUNT {
        send(t, &way, id, way.request(0).write(&region, u64::from(id), &[id as u8])?)?;
    }
    let seen = t.gather(t.soon())?;
    if seen.is_empty() {
        return Err(Stop::Inconclusive("no answer came".into()));
    }
    for id in 0..COUNT {
        let count = seen.iter().filter(|seen| answers(seen, &way, id).is_some()).count();
        t.check(PDS_RUDI_002, &format!("responses with pkt_id {id}:"), 1, count);
    }
    let expected: Vec<u8> = (0..COUNT as u8).collect();
    t.expect_memory(PDS_RUDI_002, &region, 0, &expected)
}

/// More requests, one after the other, than may wait at a time.
fn room_again(t: &mut Test<'_>) -> Outcome {
    let most = match t.try_configure("rudi_requests", 4)? {
        true => 4,
        false => t.parameter("rudi_requests").min(4096) as u32,
    };
    // Then there is none for what a write with header data leaves to be told.
    let refuses = t.try_configure("max_written", 0)?;
    let (region, way) = safe(t)?;
    if refuses {
        for id in 0..most + 8 {
            let ses = region.request(Opcode::UET_WRITE).head(|head| head.som(true).eom(true).hd(true));
            let ses = ses.request_length(1).header_data(7).done()?;
            send(t, &way, id, way.request(0).ses(ses, &[1]))?;
        }
        t.pause(t.grace())?;
        t.forget();
    }
    for id in 0..most + 8 {
        send(t, &way, id, way.request(0).write(&region, 0, &[1])?)?;
        expect(t, PDS_RUDI_002, &way, id)?;
    }
    Ok(())
}

fn read(t: &mut Test<'_>) -> Outcome {
    let key = Hex64(SAFE | 0xacce5);
    let (region, held) = t.exposed(1 << 14, |region| ExposeRegion { key, ..region })?;
    let way = t.initiate();
    let mtu = t.mtu();
    for (id, offset, length) in [(1, 0, 1), (2, 100, 64), (3, 512, mtu)] {
        send(t, &way, id, way.request(0).read(&region, offset as u64, length as u32)?)?;
        let seen = expect(t, SES_READ_008, &way, id)?;
        t.same_bytes(SES_READ_008, "the read data", &held[offset..offset + length], seen.payload());
    }
    Ok(())
}

fn not_safe(t: &mut Test<'_>) -> Outcome {
    let (region, held) = t.patterned(4096)?;
    let way = t.initiate();
    let attempts = [way.request(0).write(&region, 0, &[0; 16])?, way.request(0).read(&region, 0, 16)?];
    for (id, request) in (1..).zip(attempts) {
        send(t, &way, id, request)?;
        let seen = expect(t, SES_MODE_002, &way, id)?;
        t.check(SES_MODE_002, "return_code", Some(ReturnCode::OP_VIOLATION), seen.return_code());
        t.check(SES_MODE_002, "bytes of data", 0, seen.payload().len());
    }
    t.still_holds(SES_MODE_002, &region, &held)
}

fn atomic(t: &mut Test<'_>) -> Outcome {
    // Of a region that is marked, `atomic/by-rudi` judges that it acts once at most.
    let (region, held) = t.patterned(64)?;
    let way = t.initiate();
    send(t, &way, 1, way.request(0).add(&region, 0, &t.operands(8, &[1]), false)?)?;
    let seen = expect(t, SES_MODE_002, &way, 1)?;
    t.holds(SES_MODE_002, "the response has an error code", seen.is_error(), seen.uet());
    t.still_holds(SES_MODE_002, &region, &held)
}

fn error(t: &mut Test<'_>) -> Outcome {
    let (region, way) = safe(t)?;
    let nowhere = way.request(0).write_nowhere(&region, &[1])?;
    for (requirement, retx) in [(PDS_RUDI_002, false), (PDS_RUDI_003, true), (PDS_RUDI_003, true)] {
        send(t, &way, 1, Request { retx, ..nowhere.clone() })?;
        let seen = expect(t, requirement, &way, 1)?;
        t.holds(requirement, "the response has an error code", seen.is_error(), seen.uet());
    }
    Ok(())
}

fn two_sources(t: &mut Test<'_>) -> Outcome {
    let (region, one) = safe(t)?;
    let two = t.initiate_from(1)?;
    send(t, &one, 7, one.request(0).write(&region, 0, &[1; 16])?)?;
    send(t, &two, 7, two.request(0).write(&region, 16, &[2; 16])?)?;
    for way in [&one, &two] {
        let seen = expect(t, PDS_RUDI_001, way, 7)?;
        t.one_of(PDS_RUDI_002, "return_code", WELL, seen.return_code());
    }
    t.expect_memory(PDS_RUDI_001, &region, 0, &[[1; 16], [2; 16]].concat())
}

fn flags(t: &mut Test<'_>) -> Outcome {
    let (region, way) = safe(t)?;
    for (id, marked, retx) in [(1, false, false), (2, true, false), (3, false, true), (4, true, true)] {
        let request = Request { retx, ..way.request(0).write(&region, 0, &[1])? };
        t.send_wire(&Wire { marked, ..way.wire(&rudi(id, &request)?) })?;
        let seen = expect(t, PDS_ACK_002, &way, id)?;
        // The sources name retx of ACKs and NACKs only.
        let told = seen.rudi().and_then(|response| response.m());
        t.check(PDS_ACK_002, "flag m (marked)", Some(marked), told);
    }
    Ok(())
}

fn beside_a_context(t: &mut Test<'_>) -> Outcome {
    let (region, _) = safe(t)?;
    let mut pdc = t.initiate();
    t.establish(&mut pdc, &region)?;
    for n in 1..=10 {
        t.request(&pdc, pdc.request(n).write(&region, u64::from(n), &[n as u8])?)?;
        // The identifier is the same number as the PSN.
        let id = pdc.psn(n).0;
        send(t, &pdc, id, pdc.request(n).write(&region, 64 + u64::from(n), &[n as u8])?)?;
        expect(t, PDS_RUDI_002, &pdc, id)?;
    }
    t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(10))?;
    let numbers: Vec<u8> = (1..=10).collect();
    t.expect_memory(PDS_PSN_002, &region, 1, &numbers)?;
    t.expect_memory(PDS_RUDI_002, &region, 65, &numbers)
}

fn denied(t: &mut Test<'_>) -> Outcome {
    let (denied, reads) = t.value(&DENIED);
    let all = [Permission::Read, Permission::Write, Permission::Atomic];
    let permissions: Vec<Permission> = all.into_iter().filter(|it| *it != denied).collect();
    let key = Hex64(SAFE | 0xacce5);
    let (region, held) = t.exposed(64, |region| ExposeRegion { key, permissions, ..region })?;
    let way = t.initiate();
    let request = match reads {
        true => way.request(0).read(&region, 8, 16)?,
        false => way.request(0).write(&region, 8, &[0; 16])?,
    };
    for retx in [false, true] {
        send(t, &way, 1, Request { retx, ..request.clone() })?;
        let seen = expect(t, PDS_RUDI_003, &way, 1)?;
        let codes = [Some(ReturnCode::PERM_VIOLATION), Some(ReturnCode::AT_PERM)];
        t.one_of(SES_MEM_005, "return_code", &codes, seen.return_code());
        t.check(SES_MEM_003, "bytes of data", 0, seen.payload().len());
    }
    t.still_holds(SES_MEM_003, &region, &held)
}

fn size(t: &mut Test<'_>) -> Outcome {
    let (mtu, reads) = (t.mtu(), t.value(&TRANSFER));
    let length = t.value(&SIZE)(mtu);
    let key = Hex64(SAFE | 0xacce5);
    let (region, mut memory) = t.exposed(length as u64 + 16, |region| ExposeRegion { key, ..region })?;
    let data: Vec<u8> = pattern(17).take(length).collect();
    let message = match reads {
        true => Message::read(&region, 8, length as u32),
        false => Message::write(&region, 8, &data),
    };
    let parts = message.parts(mtu)?;
    let way = t.initiate();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    if t.value(&ARRIVAL) {
        order.reverse();
    }
    // Each packet comes twice, the second time when its answer has come.
    for retx in [false, true] {
        for k in &order {
            let (part, id) = (&parts[*k], 0x1000 + *k as u32);
            let request = Request { ext: part.ext, ..way.request(0).ses(part.ses, &part.payload) };
            send(t, &way, id, Request { retx, ..request })?;
            let seen = expect(t, PDS_RUDI_003, &way, id)?;
            t.one_of(PDS_RUDI_003, "return_code", WELL, seen.return_code());
            if reads {
                let start = 8 + k * mtu;
                let held = &memory[start..(start + mtu).min(8 + length)];
                t.same_bytes(SES_READ_008, "the read data", held, seen.payload());
            }
        }
    }
    if !reads {
        memory[8..8 + length].copy_from_slice(&data);
    }
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
}
