//! The packets of a device as a target meet all requirements on single packets (`WIRE-`). Each rule lets the
//! device send packets of one kind, and names the requirements on that kind.

use crate::prelude::*;
use crate::rudi;
use uet_wire::Uet;
use uet_wire::ses::{Medium, Ses, Small};

/// Requirements on every packet with a SES header.
const WITH_SES: &[&Requirement] = &[
    WIRE_RSVD_001,
    WIRE_TYPE_001,
    WIRE_NEXT_001,
    WIRE_NEXT_002,
    WIRE_LEN_001,
    WIRE_PDCID_001,
    WIRE_PDCID_002,
    WIRE_SES_001,
    WIRE_SES_010,
    WIRE_SES_011,
];

pub(super) const RULES: &[Rule] = &[
    rule("encoding/ack", "ACKs of requests are well formed")
        .checks(WITH_SES)
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let region = t.region(4096)?;
            let pdc = t.initiate();
            for n in 0..4 {
                t.request(&pdc, pdc.request(n).write(&region, 0, &vec![1; n as usize * 100])?)?;
                t.request(&pdc, pdc.request(n).retx().write(&region, 0, &vec![1; n as usize * 100])?)?;
            }
            check_arrived(t, "ACK", is_ack, WITH_SES)
        }),
    rule("encoding/ack-with-state", "ACKs with congestion state and a bitmap are well formed")
        .checks(&[WIRE_RSVD_001, WIRE_RSVD_002, WIRE_ACK_001, WIRE_CC_001, WIRE_NEXT_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for n in [2, 4, 80, 5] {
                let packet = pdc.request(n).write(&region, 0, &[1; 1000])?.build()?;
                t.send_marked(&pdc, &packet, n == 80 && t.facts().set_ecn)?;
            }
            let ack_cc = |uet: &Uet<'_>| uet.pds.is_some_and(|pds| pds.kind() == PdsType::ACK_CC);
            let requirements = &[WIRE_RSVD_001, WIRE_RSVD_002, WIRE_ACK_001, WIRE_CC_001, WIRE_NEXT_002];
            check_arrived(t, "ACK_CC", ack_cc, requirements)
        }),
    rule("encoding/ack-of-control", "ACKs of control packets are well formed and end with their header")
        .checks(&[WIRE_NEXT_002, WIRE_LEN_001, WIRE_RSVD_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            t.need_noop()?;
            let pdc = t.initiate();
            t.send(&pdc, &pdc.numbered(CtlType::NOOP, 0)?)?;
            let (first, ack) = t.need_ack(&pdc, pdc.psn(0))?;
            let requirements = &[WIRE_NEXT_002, WIRE_LEN_001, WIRE_RSVD_001];
            t.check_packet(&first, requirements);
            let pdc = Pdc { remote: Some(ack.spdcid()), ..pdc };
            t.send(&pdc, &pdc.numbered(CtlType::NOOP, 1)?)?;
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?)?;
            check_arrived(t, "ACK", is_ack, requirements)
        }),
    rule("encoding/ack-of-ordered", "ACKs and NACKs of an ordered context are well formed")
        .checks(&[WIRE_NEXT_002, WIRE_LEN_001, WIRE_RSVD_001])
        .needs(&[ROD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let region = t.region(4096)?;
            let mut pdc = Pdc { rod: true, ..t.initiate() };
            t.establish(&mut pdc, &region)?;
            for n in [1, 2, 5, 6, 3] {
                t.request(&pdc, pdc.request(n).write(&region, 0, &[1])?)?;
            }
            let requirements = &[WIRE_NEXT_002, WIRE_LEN_001, WIRE_RSVD_001];
            check_arrived(t, "ACK or NACK", |uet| is_ack(uet) || is_nack(uet), requirements)
        }),
    rule("encoding/ack-of-probe", "ACKs of PROBEs are well formed")
        .checks(&[WIRE_RSVD_001, WIRE_RSVD_002, WIRE_CC_001, WIRE_NEXT_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            t.need_probe()?;
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(5).write(&region, 0, &[1])?)?;
            t.need_ack(&pdc, pdc.psn(5))?;
            for base in [0, 1, 5, 200] {
                t.send(&pdc, &pdc.probe(base as u16, pdc.psn(base))?)?;
            }
            let with_p = |uet: &Uet<'_>| uet.pds.and_then(|pds| pds.ack()).is_some_and(|ack| ack.p());
            let requirements = &[WIRE_RSVD_001, WIRE_RSVD_002, WIRE_CC_001, WIRE_NEXT_002];
            check_arrived(t, "answer to a PROBE", with_p, requirements)
        }),
    rule("encoding/error", "Error responses are well formed")
        .checks(WITH_SES)
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let other_process = Region { process: region.process ^ 0x555, ..region.clone() };
            let other_job = Region { job: region.job ^ 0x5555, ..region.clone() };
            t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1])?)?;
            t.request(&pdc, pdc.request(2).write(&other_process, 0, &[1])?)?;
            t.request(&pdc, pdc.request(3).write(&other_job, 0, &[1])?)?;
            t.request(&pdc, pdc.request(4).write(&region, region.length, &[1])?)?;
            check_arrived(t, "response", is_ack, WITH_SES)
        }),
    rule("encoding/nack", "NACKs are well formed, end with their header and name only their own context")
        .checks(&[WIRE_RSVD_001, WIRE_NEXT_002, WIRE_NACK_001, WIRE_NACK_003, WIRE_LEN_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let unknown = t.initiate().of_nobody(pdc.remote);
            let foreign = Pdc { local: unknown.local, ..pdc.clone() };
            t.request(&unknown, unknown.request(0).write(&region, 0, &[1])?)?;
            t.request(&foreign, foreign.request(1).write(&region, 0, &[1])?)?;
            t.request(&pdc, Request { syn: true, offset: 9, ..pdc.request(1).write(&region, 0, &[1])? })?;
            t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(1), 0)?)?;
            if let Ok(beyond) = t.beyond(&pdc) {
                t.request(&pdc, pdc.request(beyond).write(&region, 0, &[1])?)?;
            }
            let requirements = &[WIRE_RSVD_001, WIRE_NEXT_002, WIRE_NACK_001, WIRE_NACK_003, WIRE_LEN_001];
            check_arrived(t, "NACK", is_nack, requirements)
        }),
    rule("encoding/data-in-ack", "Read data in an ACK states its length and stays within the read")
        .checks(&[WIRE_SES_006, WIRE_SES_010, WIRE_SES_012, WIRE_NEXT_002])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let most = t.parameter("max_ack_data_size") as u32;
            require(most != 0, "no read data rides in ACKs")?;
            for (n, length) in [(1, 1), (2, most.min(3)), (3, most)] {
                t.request(&pdc, pdc.request(n).read(&region, 0, length)?)?;
                t.request(&pdc, pdc.request(n).retx().read(&region, 0, length)?)?;
            }
            let requirements = &[WIRE_SES_006, WIRE_SES_010, WIRE_SES_012, WIRE_NEXT_002];
            check_arrived(t, "ACK with data", |uet| is_data(uet, true), requirements)
        }),
    rule("encoding/fetched-value", "The result of a fetching atomic states its length")
        .checks(&[WIRE_SES_006, WIRE_SES_010, WIRE_NEXT_002])
        .needs(&[WRITE, FETCH_ATOMIC])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).add(&region, 0, &t.operands(8, &[1]), true)?)?;
            t.request(&pdc, pdc.request(1).retx().add(&region, 0, &t.operands(8, &[1]), true)?)?;
            let data = |uet: &Uet<'_>| is_data(uet, true) || is_data(uet, false);
            check_arrived(t, "value", data, &[WIRE_SES_006, WIRE_SES_010, WIRE_NEXT_002])
        }),
    rule("encoding/return-data", "Return data of a read with a standard header is well formed")
        .checks(&[WIRE_SES_006, WIRE_SES_010, WIRE_SES_012, WIRE_CLEAR_001, WIRE_NEXT_002])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let mut packets = Vec::new();
            let least = t.beyond_ack()?;
            for (n, length) in [(1, least), (2, t.mtu() as u32), (3, 100 + least)] {
                t.request(&pdc, pdc.request(n).read(&region, 0, length)?)?;
                acknowledge(t, &pdc, &mut packets)?;
            }
            let requirements = [WIRE_SES_006, WIRE_SES_010, WIRE_SES_012, WIRE_CLEAR_001, WIRE_NEXT_002];
            check_data(t, &packets, &requirements)
        }),
    rule("encoding/return-data-short-header", "Return data of reads with short headers is well formed")
        .checks(&[WIRE_SES_006, WIRE_SES_010, WIRE_CLEAR_001, WIRE_NEXT_002])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let mut packets = Vec::new();
            let length = t.beyond_ack()? as u16;
            let read = uet_wire::registry::Opcode::UET_READ;
            let medium = Medium::build(read)
                .head(|head| head.rel(true).som(true).eom(true))
                .request_length(length)
                .address(|a| a.job_id(region.job).pid_on_fep(region.process).resource_index(region.index))
                .memory_key(region.key)
                .done()?;
            let small = Small::build(read)
                .head(|head| head.rel(true).som(true).eom(true))
                .request_length(length)
                .address(|a| a.job_id(region.job).pid_on_fep(region.process).resource_index(region.index))
                .done()?;
            t.request(&pdc, pdc.request(1).ses(medium, &[]))?;
            acknowledge(t, &pdc, &mut packets)?;
            t.request(&pdc, pdc.request(2).ses(small, &[]))?;
            acknowledge(t, &pdc, &mut packets)?;
            check_data(t, &packets, &[WIRE_SES_006, WIRE_SES_010, WIRE_CLEAR_001, WIRE_NEXT_002])
        }),
    rule("encoding/clear-request", "CLEAR_REQUEST is well formed")
        .checks(&[WIRE_CTL_001, WIRE_CTL_004, WIRE_CTL_006, WIRE_RSVD_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1])?)?;
            let wanted = |uet: &Uet<'_>| is_control(uet, CtlType::CLEAR_REQUEST);
            let Some((seen, ())) = t.wait(t.soon(), |seen| wanted(&seen.uet()).then_some(()))? else {
                return skip("the device sends no CLEAR_REQUEST");
            };
            t.check_packet(&seen, &[WIRE_CTL_001, WIRE_CTL_004, WIRE_CTL_006, WIRE_RSVD_001]);
            t.send(&pdc, &pdc.control(CtlType::CLEAR_COMMAND, Psn(0), pdc.psn(1).0)?)
        }),
    rule("encoding/close-request", "CLOSE_REQUEST is well formed and asks for an ACK")
        .checks(&[WIRE_CTL_001, WIRE_CTL_003, WIRE_CTL_005, WIRE_CTL_006, WIRE_RSVD_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            t.configure("idle_time", 1_000_000)?;
            let (pdc, _) = t.open()?;
            let wanted = |uet: &Uet<'_>| is_control(uet, CtlType::CLOSE_REQUEST);
            let req_close = |seen: &RxPacket| {
                seen.is_for(&pdc) && seen.ack().is_some_and(|ack| ack.req() == AckRequest::REQ_CLOSE)
            };
            t.hear(t.patience(t.soon()), |seen| wanted(&seen.uet()) || req_close(seen))?;
            if t.hear(Duration::ZERO, req_close)? && !t.hear(Duration::ZERO, |seen| wanted(&seen.uet()))? {
                return skip("the device asks for the close by REQ_CLOSE");
            }
            let requirements = &[WIRE_CTL_001, WIRE_CTL_003, WIRE_CTL_005, WIRE_CTL_006, WIRE_RSVD_001];
            check_arrived(t, "CLOSE_REQUEST", wanted, requirements)
        }),
    rule("encoding/rudi", "RUDI responses with and without data are well formed")
        .checks(&[WIRE_RSVD_001, WIRE_NEXT_002, WIRE_SES_006, WIRE_SES_010])
        .needs(&[RUDI, READ])
        .over(&[&CARRIER])
        .run(|t| {
            let key = Hex64(1 << 63 | 0xacce5);
            let (region, _) = t.exposed(1 << 14, |region| ExposeRegion { key, ..region })?;
            let pdc = t.initiate();
            let read = pdc.request(0).read(&region, 0, t.mtu() as u32)?;
            t.send(&pdc, &rudi(1, &pdc.request(0).write(&region, 0, &[1; 16])?)?)?;
            t.send(&pdc, &rudi(2, &pdc.request(0).write_nowhere(&region, &[1; 16])?)?)?;
            t.send(&pdc, &rudi(3, &read)?)?;
            t.send(&pdc, &rudi(3, &read.retx())?)?;
            let response = |uet: &Uet<'_>| uet.pds.is_some_and(|pds| pds.kind() == PdsType::RUDI_RESP);
            check_arrived(
                t,
                "RUDI response",
                response,
                &[WIRE_RSVD_001, WIRE_NEXT_002, WIRE_SES_006, WIRE_SES_010],
            )
        }),
];

/// Checks all packets that arrive against the requirements on single packets. At least one must be of the
/// wanted kind, which `requirements` apply to.
fn check_arrived(
    t: &mut Test<'_>,
    what: &str,
    wanted: impl Fn(&Uet<'_>) -> bool,
    requirements: &[&'static Requirement],
) -> Outcome {
    let seen = t.gather(t.soon())?;
    let (of_kind, others): (Vec<&RxPacket>, Vec<&RxPacket>) =
        seen.iter().partition(|seen| wanted(&seen.uet()));
    for seen in &of_kind {
        t.check_packet(seen, requirements);
    }
    for seen in others {
        t.check_packet(seen, &[]);
    }
    if of_kind.is_empty() { Err(Stop::Inconclusive(format!("the device sent no {what}"))) } else { Ok(()) }
}

fn is_ack(uet: &Uet<'_>) -> bool {
    uet.pds.is_some_and(|pds| pds.ack().is_some())
}

fn is_nack(uet: &Uet<'_>) -> bool {
    uet.pds.is_some_and(|pds| pds.nack().is_some())
}

/// Returns whether a packet carries read data, in an ACK or on the return direction.
fn is_data(uet: &Uet<'_>, in_ack: bool) -> bool {
    matches!(uet.ses, Some(Ses::ResponseData(_) | Ses::ResponseDataSmall(_))) && is_ack(uet) == in_ack
}

/// Acknowledges the read data that has arrived on the return direction, so that the device may send more.
fn acknowledge(t: &mut Test<'_>, pdc: &Pdc, packets: &mut Vec<RxPacket>) -> Outcome {
    let fresh = t.gather(t.soon() / 4)?;
    let last = fresh.iter().filter_map(RxPacket::request).map(|data| data.psn()).next_back();
    packets.extend(fresh);
    last.map_or(Ok(()), |psn| t.send(pdc, &pdc.ack(psn).build()?))
}

/// Checks the read data on the return direction among these packets. There must be some.
fn check_data(t: &mut Test<'_>, packets: &[RxPacket], requirements: &[&'static Requirement]) -> Outcome {
    let data: Vec<&RxPacket> = packets.iter().filter(|seen| is_data(&seen.uet(), false)).collect();
    for seen in &data {
        t.check_packet(seen, requirements);
    }
    if data.is_empty() {
        Err(Stop::Inconclusive("no read data came on the return direction".into()))
    } else {
        Ok(())
    }
}

fn is_control(uet: &Uet<'_>, kind: CtlType) -> bool {
    uet.pds.and_then(|pds| pds.control()).is_some_and(|header| header.ctl_type() == kind)
}
