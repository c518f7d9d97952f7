//! Spoofed packets of every type, and interleaved packets of several contexts (section 3.5.8).

use crate::prelude::*;
use std::collections::BTreeSet;
use uet_wire::ses::Response;

/// The spoofed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpoofedPacket {
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
    AckReqClose,
    Nack,
    FatalNack,
    Syn,
}

const PACKET: Axis<SpoofedPacket> = axis("packet").values(&[
    ("request", SpoofedPacket::Request),
    ("clearing-request", SpoofedPacket::ClearingRequest),
    ("retransmission", SpoofedPacket::Retransmission),
    ("noop", SpoofedPacket::Noop),
    ("close-command", SpoofedPacket::CloseCommand),
    ("close-request", SpoofedPacket::CloseRequest),
    ("clear-command", SpoofedPacket::ClearCommand),
    ("clear-request", SpoofedPacket::ClearRequest),
    ("ack-request", SpoofedPacket::AckRequest),
    ("probe", SpoofedPacket::Probe),
    ("credit", SpoofedPacket::Credit),
    ("ack", SpoofedPacket::Ack),
    ("sack", SpoofedPacket::Sack),
    ("ack-req-close", SpoofedPacket::AckReqClose),
    ("nack", SpoofedPacket::Nack),
    ("fatal-nack", SpoofedPacket::FatalNack),
    ("syn", SpoofedPacket::Syn),
]);

/// The sender of the spoofed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpoofingSender {
    /// The peer's address, and a PDCID that nobody uses.
    UnusedPdcid,
    /// The peer's address, and the PDCID of another of its contexts.
    OwnContext,
    /// Another address, and the PDCID of the peer.
    OtherAddress,
    /// Another address, and the PDCID of a context of its own.
    OtherPeer,
}

const SENDER: Axis<SpoofingSender> = axis("from").needing(&[
    ("other-pdcid", SpoofingSender::UnusedPdcid, &[]),
    ("other-context", SpoofingSender::OwnContext, &[]),
    ("other-address", SpoofingSender::OtherAddress, &[TWO_ADDRESSES]),
    ("other-peer", SpoofingSender::OtherPeer, &[TWO_ADDRESSES]),
]);

/// The number of contexts, and of their peers.
const OWNERS: Axis<(usize, usize)> = axis("contexts").needing(&[
    ("three-of-one-peer", (3, 1), &[]),
    ("four-of-two-peers", (4, 2), &[TWO_ADDRESSES]),
    ("eight-of-one-peer", (8, 1), &[]),
]);

/// A context with a stored response for PSN 1, and with read data for PSN 2 that is not acknowledged.
struct LoadedContext {
    pdc: Pdc,
    region: Region,
    error: Option<Response>,
    data: Target,
}

pub(super) const RULES: &[Rule] = &[
    rule("spoofing/no-effect", "A packet from anyone but the peer does not change a context")
        .checks(&[PDS_OPEN_003, PDS_PDC_003])
        .needs(&[WRITE, READ])
        .over(&[&PACKET, &SENDER, &MODE])
        .run(|t| {
            let loaded = loaded_context(t)?;
            let spoofed = spoofed_end(t, &loaded)?;
            let opens = t.value(&PACKET) == SpoofedPacket::Syn;
            t.forget();
            let sent = t.now();
            let packet = spoofed_packet(t, &spoofed, &loaded)?;
            t.send(&spoofed, &packet)?;
            t.settle()?;
            let LoadedContext { pdc, region, error, mut data } = loaded;
            if !opens {
                let acks = |seen: &RxPacket| {
                    (seen.wire.dst == spoofed.from && seen.at >= sent)
                        .then(|| seen.ack())
                        .flatten()
                        .filter(|ack| ack.dpdcid() == spoofed.local && Some(ack.spdcid()) == pdc.remote)
                };
                t.expect_none(PDS_OPEN_003, "no ACK for the sender", t.grace(), acks)?;
            }
            t.forget();
            // The stored response is unchanged.
            t.request(&pdc, pdc.request(1).retx().write_nowhere(&region, &[1; 16])?)?;
            let (seen, ack) = t.expect_answer(PDS_OPEN_003, &pdc, pdc.psn(1))?;
            t.check(PDS_OPEN_003, "the stored response", error, seen.response());
            t.check(PDS_OPEN_003, "cack_psn", pdc.psn(0), ack.cack_psn());
            // The device retransmits the read data.
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
            let region = t.region(1 << 16)?;
            let contexts = interleaved_contexts(t, &region)?;
            send_interleaved(t, &contexts, &region)?;
            check_separate(t, &contexts, &region)?;
            let count = contexts.len() as u32;
            let (first, last) = (&contexts[0], &contexts[contexts.len() - 1]);
            let highest = count + 3;
            // The first context clears its error and the last one closes. The others do not change.
            t.send(first, &first.control(CtlType::CLEAR_COMMAND, Psn(0), first.psn(2).0)?)?;
            t.send(last, &last.control(CtlType::CLOSE_COMMAND, last.psn(highest + 1), 0)?)?;
            t.need("the end of a context", t.soon(), |seen| seen.answers(last, last.psn(highest + 1)))?;
            t.forget();
            for (pdc, k) in contexts.iter().zip(0..count - 1) {
                t.request(pdc, pdc.request(highest + 1).write(&region, 4096, &[k as u8])?)?;
                let (_, ack) = t.expect_ack(PDS_PDC_003, pdc, pdc.psn(highest + 1))?;
                let cack = if k == 0 { pdc.psn(highest + 1) } else { pdc.psn(k + 1) };
                t.check(PDS_PDC_003, "cack_psn", cack, ack.cack_psn());
            }
            Ok(())
        }),
];

/// Opens the contexts of [`OWNERS`].
fn interleaved_contexts(t: &mut Test<'_>, region: &Region) -> Result<Vec<Pdc>, Stop> {
    let (count, peers) = t.value(&OWNERS);
    let mut contexts: Vec<Pdc> = Vec::new();
    for k in 0..count {
        let mut pdc = t.initiate_from(k % peers)?;
        // Contexts of different peers have the same PDCID.
        if let Some(before) = contexts.last().filter(|_| k % peers > 0) {
            (pdc.local, pdc.start) = (before.local, before.start);
        }
        t.establish(&mut pdc, region)?;
        contexts.push(pdc);
    }
    let distinct: BTreeSet<PdcId> = contexts.iter().filter_map(|pdc| pdc.remote).collect();
    t.check(PDS_PDC_001, "PDCIDs of the device", count, distinct.len());
    Ok(contexts)
}

/// Sends requests on all contexts in turn. Context k gets k + 1 writes, a write that fails, and more writes.
fn send_interleaved(t: &mut Test<'_>, contexts: &[Pdc], region: &Region) -> Outcome {
    for round in 1..=contexts.len() as u32 + 3 {
        for (k, pdc) in contexts.iter().enumerate() {
            let offset = 64 * k as u64 + u64::from(round % 64);
            let request = pdc.request(round);
            let request = if round == k as u32 + 2 {
                request.write_nowhere(region, &[round as u8])?
            } else {
                request.write(region, offset, &[round as u8])?
            };
            t.request(pdc, request)?;
        }
    }
    Ok(())
}

/// Checks that each context has its own error, its own cumulative PSN and its own data.
fn check_separate(t: &mut Test<'_>, contexts: &[Pdc], region: &Region) -> Outcome {
    let seen = t.gather(t.soon())?;
    for (k, pdc) in contexts.iter().enumerate() {
        let error = k as u32 + 2;
        let last = seen.iter().rev().find_map(|seen| seen.cack(pdc));
        t.check(PDS_PSN_002, "the last cack_psn", Some(pdc.psn(error - 1)), last);
        let named = |seen: &&RxPacket| seen.answers(pdc, pdc.psn(error)).is_some();
        let reported = seen.iter().find(named).is_some_and(RxPacket::is_error);
        t.holds(PDS_PDC_003, "the context of the failed write gets the error", reported, pdc.psn(error));
        let mut expected: Vec<u8> = (1..=contexts.len() as u8 + 3).collect();
        expected[error as usize - 1] = 0;
        t.check_memory(PDS_PDC_003, region, 64 * k as u64 + 1, &expected)?;
    }
    Ok(())
}

/// Opens such a context.
fn loaded_context(t: &mut Test<'_>) -> Result<LoadedContext, Stop> {
    let (pdc, region) = t.open()?;
    t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1; 16])?)?;
    let (seen, _) = t.need("an error", t.soon(), |seen| seen.answers(&pdc, pdc.psn(1)))?;
    let error = seen.response();
    let length = t.beyond_ack()?;
    t.request(&pdc, pdc.request(2).read(&region, 0, length)?)?;
    let mut data = Target::of_return(t, &pdc);
    data.collect(t, 1)?;
    Ok(LoadedContext { pdc, region, error, data })
}

/// Returns the end of the context that the sender of [`SENDER`] uses.
fn spoofed_end(t: &mut Test<'_>, loaded: &LoadedContext) -> Result<Pdc, Stop> {
    let mut other = match t.value(&SENDER) {
        SpoofingSender::OtherAddress | SpoofingSender::OtherPeer => t.initiate_from(1)?,
        _ => t.initiate(),
    };
    match t.value(&SENDER) {
        SpoofingSender::UnusedPdcid => {}
        SpoofingSender::OwnContext | SpoofingSender::OtherPeer => t.establish(&mut other, &loaded.region)?,
        SpoofingSender::OtherAddress => other.local = loaded.pdc.local,
    }
    // It names the PDCID of the device in the context of the peer.
    Ok(Pdc { from: other.from, to: other.to, local: other.local, ..loaded.pdc.clone() })
}

/// Returns the spoofed packet. Its PSN is 3 if it takes one of the forward direction.
fn spoofed_packet(t: &Test<'_>, pdc: &Pdc, loaded: &LoadedContext) -> Result<UetBuf, Stop> {
    let region = &loaded.region;
    let data = loaded.data.psn(0);
    let nack = |code| pdc.nack(code, data);
    Ok(match t.value(&PACKET) {
        SpoofedPacket::Request => pdc.request(3).write(region, 0, &[1; 16])?.build()?,
        SpoofedPacket::ClearingRequest => {
            pdc.request(3).clear(pdc.psn(2)).write(region, 0, &[1; 16])?.build()?
        }
        SpoofedPacket::Retransmission => pdc.request(3).retx().write(region, 0, &[1; 16])?.build()?,
        SpoofedPacket::Noop => pdc.numbered(CtlType::NOOP, 3)?,
        SpoofedPacket::CloseCommand => pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(3), 0)?,
        SpoofedPacket::CloseRequest => pdc.control(CtlType::CLOSE_REQUEST, pdc.psn(3), 0)?,
        SpoofedPacket::ClearCommand => pdc.control(CtlType::CLEAR_COMMAND, Psn(0), pdc.psn(2).0)?,
        SpoofedPacket::ClearRequest => pdc.control(CtlType::CLEAR_REQUEST, Psn(0), pdc.psn(2).0)?,
        SpoofedPacket::AckRequest => pdc.control(CtlType::ACK_REQUEST, pdc.psn(1), 0)?,
        SpoofedPacket::Probe => pdc.probe(7, pdc.psn(1))?,
        SpoofedPacket::Credit => pdc.control(CtlType::CREDIT, Psn(0), 0xff_ffff)?,
        SpoofedPacket::Ack => pdc.ack(data).build()?,
        SpoofedPacket::Sack => pdc.ack(data - 1).sack(data, 1).build()?,
        SpoofedPacket::AckReqClose => {
            AckBuilder { request: AckRequest::REQ_CLOSE, ..pdc.ack(data) }.build()?
        }
        SpoofedPacket::Nack => nack(NackCode::NO_RESOURCE)?,
        SpoofedPacket::FatalNack => nack(NackCode::CLOSING_IN_ERR)?,
        SpoofedPacket::Syn => {
            let syn = Pdc { remote: None, ..pdc.clone() };
            // It would move Start_PSN of the context that it finds.
            let request = crate::Request { offset: 0, ..syn.request(3) };
            request.write(region, 0, &[1; 16])?.build()?
        }
    })
}
