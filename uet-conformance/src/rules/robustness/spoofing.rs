//! Packets of every kind from everyone who is not the peer, for a context with something of everything to
//! lose.

use crate::prelude::*;
use uet_wire::ses::Response;

/// The packet of the stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StrangePacket {
    Request,
    ClearingRequest,
    Retransmission,
    Noop,
    CloseCommand,
    CloseRequest,
    ClearCommand,
    ClearRequest,
    AckRequest,
    Probe,
    Credit,
    Ack,
    Sack,
    AskingAck,
    Nack,
    FatalNack,
    Syn,
}

const PACKET: Axis<StrangePacket> = axis("packet").values(&[
    ("request", StrangePacket::Request),
    ("clearing-request", StrangePacket::ClearingRequest),
    ("retransmission", StrangePacket::Retransmission),
    ("noop", StrangePacket::Noop),
    ("close-command", StrangePacket::CloseCommand),
    ("close-request", StrangePacket::CloseRequest),
    ("clear-command", StrangePacket::ClearCommand),
    ("clear-request", StrangePacket::ClearRequest),
    ("ack-request", StrangePacket::AckRequest),
    ("probe", StrangePacket::Probe),
    ("credit", StrangePacket::Credit),
    ("ack", StrangePacket::Ack),
    ("sack", StrangePacket::Sack),
    ("asking-ack", StrangePacket::AskingAck),
    ("nack", StrangePacket::Nack),
    ("fatal-nack", StrangePacket::FatalNack),
    ("syn", StrangePacket::Syn),
]);

/// Its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StrangeSender {
    /// The peer's address, and a PDCID that nobody uses.
    UnusedPdcid,
    /// The peer's address, and the PDCID of another of its contexts.
    OwnContext,
    /// Another address, and the PDCID of the peer.
    OtherAddress,
    /// Another address, and the PDCID of a context of its own.
    OtherPeer,
}

const STRANGER: Axis<StrangeSender> = axis("from").needing(&[
    ("other-pdcid", StrangeSender::UnusedPdcid, &[]),
    ("other-context", StrangeSender::OwnContext, &[]),
    ("other-address", StrangeSender::OtherAddress, &[TWO_ADDRESSES]),
    ("other-peer", StrangeSender::OtherPeer, &[TWO_ADDRESSES]),
]);

/// A context with a kept response at PSN 1 and read data of PSN 2 that is not acknowledged.
struct Rich {
    pdc: Pdc,
    region: Region,
    error: Option<Response>,
    data: Target,
}

pub(super) const RULES: &[Rule] = &[
    rule("spoofing/no-effect", "A packet from anyone but the peer does not change a context")
        .checks(&[PDS_OPEN_003, PDS_PDC_003])
        .needs(&[WRITE, READ])
        .over(&[&PACKET, &STRANGER, &MODE])
        .run(|t| {
            let rich = rich(t)?;
            let way = stranger(t, &rich)?;
            let opens = t.value(&PACKET) == StrangePacket::Syn;
            t.forget();
            let sent = t.now();
            let packet = forged(t, &way, &rich)?;
            t.send(&way, &packet)?;
            t.settle()?;
            let Rich { pdc, region, error, mut data } = rich;
            if !opens {
                let acks = |seen: &RxPacket| {
                    (seen.wire.dst == way.from && seen.at >= sent)
                        .then(|| seen.ack())
                        .flatten()
                        .filter(|ack| ack.dpdcid() == way.local && Some(ack.spdcid()) == pdc.remote)
                };
                t.expect_none(PDS_OPEN_003, "no ACK for a stranger", t.grace(), acks)?;
            }
            t.forget();
            // Kept responses stay.
            t.request(&pdc, pdc.request(1).retx().write_nowhere(&region, &[1; 16])?)?;
            let (seen, ack) = t.expect_answer(PDS_OPEN_003, &pdc, pdc.psn(1))?;
            t.check(PDS_OPEN_003, "the response that is kept", error, seen.response());
            t.check(PDS_OPEN_003, "cack_psn", pdc.psn(0), ack.cack_psn());
            // Read data is still owed, and comes again.
            data.expect_again(t, PDS_PDC_003, 0, t.later())?;
            // The PSN is still free.
            t.request(&pdc, pdc.request(3).clear(pdc.psn(1)).write(&region, 16, &[2; 16])?)?;
            t.expect_cack(PDS_OPEN_003, &pdc, pdc.psn(3))?;
            t.expect_memory(PDS_OPEN_003, &region, 16, &[2; 16])?;
            if !opens {
                t.check_memory(PDS_OPEN_003, &region, 0, &[0; 16])?;
            }
            data.ack(t, 0)?;
            t.settle()?;
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(4), 0)?)?;
            t.expect_answer(PDS_PDC_003, &pdc, pdc.psn(4))?;
            Ok(())
        }),
    rule("spoofing/interleaved", "Interleaved contexts keep their PSNs, gaps and errors apart")
        .checks(&[PDS_PDC_003, PDS_PSN_002, PDS_PDC_001])
        .needs(&[WRITE])
        .over(&[&OWNERS, &MODE])
        .run(|t| {
            let (count, peers) = t.value(&OWNERS);
            let region = t.region(1 << 16)?;
            let mut contexts = Vec::new();
            for k in 0..count {
                let mut pdc = t.initiate_from(k % peers)?;
                // Contexts of different peers share the identifier of the suite.
                if let Some(before) = (k % peers > 0).then(|| contexts.last()).flatten() {
                    let before: &Pdc = before;
                    (pdc.local, pdc.start) = (before.local, before.start);
                }
                t.establish(&mut pdc, &region)?;
                contexts.push(pdc);
            }
            let distinct: std::collections::BTreeSet<PdcId> =
                contexts.iter().filter_map(|pdc| pdc.remote).collect();
            t.check(PDS_PDC_001, "PDCIDs of the device", count, distinct.len());
            // Context k gets k + 1 writes, an error, and so many writes above it.
            for round in 1..=count as u32 + 3 {
                for (k, pdc) in contexts.iter().enumerate() {
                    let place = 64 * k as u64 + u64::from(round % 64);
                    let request = pdc.request(round);
                    let request = match round.cmp(&(k as u32 + 2)) {
                        core::cmp::Ordering::Equal => request.write_nowhere(&region, &[round as u8])?,
                        _ => request.write(&region, place, &[round as u8])?,
                    };
                    t.request(pdc, request)?;
                }
            }
            let seen = t.gather(t.soon())?;
            for (k, pdc) in contexts.iter().enumerate() {
                let error = k as u32 + 2;
                let last = seen.iter().rev().find_map(|seen| seen.cack(pdc));
                t.check(PDS_PSN_002, "the last cack_psn", Some(pdc.psn(error - 1)), last);
                let named = |seen: &&RxPacket| seen.answers(pdc, pdc.psn(error)).is_some();
                let told = seen.iter().find(named).is_some_and(RxPacket::is_error);
                t.holds(PDS_PDC_003, "the error is told to the context that earned it", told, pdc.psn(error));
                let mut expected: Vec<u8> = (1..=count as u8 + 3).collect();
                expected[error as usize - 1] = 0;
                t.check_memory(PDS_PDC_003, &region, 64 * k as u64 + 1, &expected)?;
            }
            // One clears, one closes, and the others stay.
            let (first, last) = (&contexts[0], &contexts[count - 1]);
            let all = count as u32 + 3;
            t.send(first, &first.control(CtlType::CLEAR_COMMAND, Psn(0), first.psn(2).0)?)?;
            t.send(last, &last.control(CtlType::CLOSE_COMMAND, last.psn(all + 1), 0)?)?;
            t.need("the end of a context", t.soon(), |seen| seen.answers(last, last.psn(all + 1)))?;
            t.forget();
            for (k, pdc) in contexts.iter().enumerate().take(count - 1) {
                t.request(pdc, pdc.request(all + 1).write(&region, 4096, &[k as u8])?)?;
                let (_, ack) = t.expect_ack(PDS_PDC_003, pdc, pdc.psn(all + 1))?;
                let cack = if k == 0 { pdc.psn(all + 1) } else { pdc.psn(k as u32 + 1) };
                t.check(PDS_PDC_003, "cack_psn", cack, ack.cack_psn());
            }
            Ok(())
        }),
];

fn rich(t: &mut Test<'_>) -> Result<Rich, Stop> {
    let (pdc, region) = t.open()?;
    t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1; 16])?)?;
    let (seen, _) = t.need("an error", t.soon(), |seen| seen.answers(&pdc, pdc.psn(1)))?;
    let error = seen.response();
    let length = t.beyond_ack()?;
    t.request(&pdc, pdc.request(2).read(&region, 0, length)?)?;
    let mut data = Target::of_return(t, &pdc);
    data.collect(t, 1)?;
    Ok(Rich { pdc, region, error, data })
}

fn stranger(t: &mut Test<'_>, rich: &Rich) -> Result<Pdc, Stop> {
    let mut other = match t.value(&STRANGER) {
        StrangeSender::OtherAddress | StrangeSender::OtherPeer => t.initiate_from(1)?,
        _ => t.initiate(),
    };
    match t.value(&STRANGER) {
        StrangeSender::UnusedPdcid => {}
        StrangeSender::OwnContext | StrangeSender::OtherPeer => t.establish(&mut other, &rich.region)?,
        StrangeSender::OtherAddress => other.local = rich.pdc.local,
    }
    // It names the context of the other.
    Ok(Pdc { from: other.from, to: other.to, local: other.local, ..rich.pdc.clone() })
}

/// The packet, as if it came from the peer. Its PSN, if it takes one of the forward direction, is 3.
fn forged(t: &Test<'_>, way: &Pdc, rich: &Rich) -> Result<UetBuf, Stop> {
    let region = &rich.region;
    let data = rich.data.psn(0);
    let nack = |code| way.nack(code, data);
    Ok(match t.value(&PACKET) {
        StrangePacket::Request => way.request(3).write(region, 0, &[1; 16])?.build()?,
        StrangePacket::ClearingRequest => {
            way.request(3).clear(way.psn(2)).write(region, 0, &[1; 16])?.build()?
        }
        StrangePacket::Retransmission => way.request(3).retx().write(region, 0, &[1; 16])?.build()?,
        StrangePacket::Noop => way.numbered(CtlType::NOOP, 3)?,
        StrangePacket::CloseCommand => way.control(CtlType::CLOSE_COMMAND, way.psn(3), 0)?,
        StrangePacket::CloseRequest => way.control(CtlType::CLOSE_REQUEST, way.psn(3), 0)?,
        StrangePacket::ClearCommand => way.control(CtlType::CLEAR_COMMAND, Psn(0), way.psn(2).0)?,
        StrangePacket::ClearRequest => way.control(CtlType::CLEAR_REQUEST, Psn(0), way.psn(2).0)?,
        StrangePacket::AckRequest => way.control(CtlType::ACK_REQUEST, way.psn(1), 0)?,
        StrangePacket::Probe => way.probe(7, way.psn(1))?,
        StrangePacket::Credit => way.control(CtlType::CREDIT, Psn(0), 0xff_ffff)?,
        StrangePacket::Ack => way.ack(data).build()?,
        StrangePacket::Sack => way.ack(data - 1).sack(data, 1).build()?,
        StrangePacket::AskingAck => AckBuilder { request: AckRequest::REQ_CLOSE, ..way.ack(data) }.build()?,
        StrangePacket::Nack => nack(NackCode::NO_RESOURCE)?,
        StrangePacket::FatalNack => nack(NackCode::CLOSING_IN_ERR)?,
        StrangePacket::Syn => {
            let syn = Pdc { remote: None, ..way.clone() };
            // It moves the start of whatever it finds.
            let request = crate::Request { offset: 0, ..syn.request(3) };
            request.write(region, 0, &[1; 16])?.build()?
        }
    })
}

/// How many contexts, and of how many peers.
const OWNERS: Axis<(usize, usize)> = axis("contexts").needing(&[
    ("three-of-one", (3, 1), &[]),
    ("four-of-two", (4, 2), &[TWO_ADDRESSES]),
    ("eight-of-one", (8, 1), &[]),
]);
