//! SES headers of the device: the encoding rules of each packet, and addresses (section 3.4.2).

use super::steps::{fields_of_packet, post_sum};
use crate::prelude::*;
use uet_control::Remote;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// The encoding rules of requests.
const REQUEST_RULES: &[&Requirement] = &[
    WIRE_RSVD_001,
    WIRE_SES_001,
    WIRE_SES_002,
    WIRE_SES_003,
    WIRE_SES_006,
    WIRE_SES_007,
    WIRE_SES_008,
    WIRE_SES_009,
    WIRE_SES_013,
    WIRE_NEXT_001,
    WIRE_NEXT_002,
];

const ATOMIC_RULES: &[&Requirement] =
    &[WIRE_RSVD_001, WIRE_RSVD_004, WIRE_SES_001, WIRE_SES_007, WIRE_AMO_001, WIRE_AMO_002, WIRE_AMO_003];

const OFFER_RULES: &[&Requirement] = &[WIRE_RSVD_001, WIRE_SES_001, WIRE_SES_002, WIRE_SES_014];

const RESPONSE_RULES: &[&Requirement] = &[
    WIRE_RSVD_001,
    WIRE_SES_001,
    WIRE_SES_006,
    WIRE_SES_010,
    WIRE_SES_011,
    WIRE_SES_012,
    WIRE_NEXT_001,
    WIRE_NEXT_002,
];

pub(super) const RULES: &[Rule] = &[
    rule("ses-encoding/requests", "Every request of an initiator follows the encoding rules")
        .checks(REQUEST_RULES)
        .needs(&[READ, SEND, TSEND])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let tagged = Post { tag: Some(Hex64(0x70)), ..post(PostKind::Tsend, peer, 5) };
            let operations = [
                (post(PostKind::Write, peer, 2 * mtu + 1), 3),
                (post(PostKind::Read, peer, mtu + 1), 2),
                (post(PostKind::Send, peer, mtu + 5), 2),
                (tagged, 1),
            ];
            check_encoding(t, REQUEST_RULES, &operations)
        }),
    rule("ses-encoding/atomics", "Every atomic of an initiator follows the encoding rules")
        .checks(ATOMIC_RULES)
        .needs(&[ATOMIC, FETCH_ATOMIC])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let operations =
                [(post_sum(peer, PostKind::Atomic, 16), 1), (post_sum(peer, PostKind::FetchAtomic, 8), 1)];
            check_encoding(t, ATOMIC_RULES, &operations)
        }),
    rule("ses-encoding/rendezvous-deferrable", "Rendezvous and deferrable sends follow the encoding rules")
        .checks(OFFER_RULES)
        .needs(&[RENDEZVOUS_SEND, DEFERRABLE_SEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let rendezvous = Post { eager: Some(16), ..post(PostKind::RendezvousSend, peer, 100) };
            check_encoding(t, OFFER_RULES, &[(post(PostKind::DeferrableSend, peer, 100), 1), (rendezvous, 1)])
        }),
    rule("ses-encoding/responses", "Every response of a target follows the encoding rules")
        .checks(RESPONSE_RULES)
        .needs(&[READ, ATOMIC])
        .over(&[&MODE, &CARRIER, &START])
        .run(check_responses),
    rule("ses-encoding/address", "A request carries the address, key and offset of its operation")
        .checks(&[SES_ADDR_001, SES_ADDR_002, SES_MEM_001, SES_PLACE_001])
        .needs(&[WRITE])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let remote = Remote {
                key: Hex64(0x0000_1234_5678_9abc),
                offset: Hex64(0x1_0000_0020),
                process: Some(0x345),
                index: 0xabc,
                generation: 7,
                absolute: false,
            };
            let (said, _) = fields_of_packet(
                t,
                Post { remote, form: Some(Form::Std), ..post(PostKind::Write, peer, 100) },
            )?;
            t.check(SES_ADDR_001, "opcode", Opcode::UET_WRITE, said.opcode());
            t.check(SES_ADDR_001, "rel", true, said.head.rel());
            let process = (said.address.job_id(), said.address.pid_on_fep());
            t.check(SES_ADDR_001, "job_id and pid_on_fep", (101, 0x345), process);
            let index = (said.address.resource_index(), said.address.ri_generation());
            t.check(SES_ADDR_002, "resource_index and ri_generation", (0xabc, 7), index);
            t.check(SES_MEM_001, "memory_key", Some(0x0000_1234_5678_9abc), said.memory_key);
            t.check(SES_PLACE_001, "buffer_offset", Some(0x1_0000_0020), said.buffer_offset);
            Ok(())
        }),
    rule("ses-encoding/absolute", "A request with absolute addressing has rel 0")
        .checks(&[SES_ADDR_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let remote = Remote { process: Some(3), index: 4, absolute: true, ..Remote::default() };
            let (said, _) = fields_of_packet(t, Post { remote, ..post(PostKind::Write, peer, 100) })?;
            t.check(SES_ADDR_001, "rel", false, said.head.rel());
            t.check(SES_ADDR_001, "pid_on_fep", 3, said.address.pid_on_fep());
            Ok(())
        }),
];

/// Posts operations one after the other, each with its number of packets, and checks the encoding of every
/// packet.
fn check_encoding(t: &mut Test<'_>, rules: &[&'static Requirement], operations: &[(Post, u32)]) -> Outcome {
    let mut opened: Option<Target> = None;
    let mut next = 0;
    for (post, count) in operations {
        t.post(post.clone())?;
        let target = match &mut opened {
            Some(target) => target,
            none => none.insert(Target::accept(t)?),
        };
        target.collect(t, next + count)?;
        for n in next..next + count {
            let seen = target.packet(n)?.seen.clone();
            t.check_packet(&seen, rules);
        }
        target.ack(t, next + count - 1)?;
        // A device may send its next message only after the data of the read arrived.
        if post.kind == PostKind::Read {
            let (whole, mtu) = (vec![0; post.length as usize], t.mtu());
            for k in 0..*count {
                let start = target.said(next + k)?.start();
                let piece = &whole[start..(start + mtu).min(whole.len())];
                let ses = target.data_header(next + k, piece.len(), whole.len(), start)?;
                target.give_due(t, k, ses, piece)?;
            }
        }
        next += count;
    }
    Ok(())
}

/// Requests one response of each kind: without data, with data in an ACK or a request, and an error.
fn check_responses(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (region, _) = t.patterned(2 * mtu as u64)?;
    let mut session = t.session();
    let mut parts = vec![Message::write(&region, 0, &[1; 40]).whole()?];
    parts.extend(Message::read(&region, 0, mtu as u32 + 8).named(2).parts(mtu)?);
    parts.push(Message::read(&region, 0, 8).named(3).whole()?);
    parts.push(Message::read(&region, 0, 8).named(4).medium()?);
    parts.push(Message::read(&region, 0, 100).named(5).medium()?);
    let sum = (AtomicOpcode::SUM, AtomicDatatype::UINT64);
    let fetch = Message::atomic(&region, 0, sum, &[1; 8])?.named(6).opcode(Opcode::UET_FETCHING_ATOMIC);
    parts.push(fetch.whole()?);
    parts.push(Message::read(&region, 0, 8).named(7).selector(region.key ^ 1).whole()?);
    session.ask_all(t, &parts)?;
    let packets = t.gather(t.soon())?;
    let responses = packets.iter().filter(|seen| seen.uet().ses.is_some());
    let mut count = 0;
    for seen in responses.filter(|seen| seen.is_for(&session.pdc)) {
        t.check_packet(seen, RESPONSE_RULES);
        count += 1;
    }
    if count < 3 {
        return Err(Stop::Inconclusive(format!("{count} packets with a response")));
    }
    Ok(())
}
