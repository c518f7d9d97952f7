//! Steps that rules of several folders share.

use crate::packets::nominal;
use crate::prelude::*;
use crate::serve::SesFields;
use uet_control::Remote;
use uet_wire::Units24;
use uet_wire::pds::{Pds, PdsBuf, RequestCc, Rudi, Uud};
use uet_wire::registry::ResponseOpcode;
use uet_wire::ses::{Response, Ses};

/// True if the script ends the state of the second context first.
pub(super) const ORDER: Axis<bool> = axis("ends-first").values(&[("first", false), ("second", true)]);

/// Codes of NACKs that cause a retransmission.
pub(super) const RETRYING: Axis<NackCode> = axis("code").values(&[
    ("no-resource", NackCode::NO_RESOURCE),
    ("no-pkt-buffer", NackCode::NO_PKT_BUFFER),
    ("no-gtd-del", NackCode::NO_GTD_DEL_AVAIL),
    ("no-ses-msg", NackCode::NO_SES_MSG_AVAIL),
    ("trimmed", NackCode::TRIMMED),
    ("trimmed-lasthop", NackCode::TRIMMED_LASTHOP),
    ("oor-window", NackCode::PSN_OOR_WINDOW),
    ("infer-loss", NackCode::RCVR_INFER_LOSS),
    ("pkt-not-rcvd", NackCode::PKT_NOT_RCVD),
    ("exp-normal", NackCode::EXP_NACK_NORMAL),
    ("exp-err", NackCode::EXP_NACK_ERR),
]);

/// Has the device write `count` packets on an established context. All of them have arrived, the first with
/// PSN 1, and none is acknowledged.
pub(super) fn message_in_flight(t: &mut Test<'_>, count: u32) -> Result<(Target, Operated), Stop> {
    let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
    target.asked = t.now();
    let written = t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
    target.collect(t, count + 1)?;
    Ok((target, written))
}

/// Returns the fields of the device's next request. It may open another context, which `target` then is.
pub(super) fn next_fields(t: &mut Test<'_>, target: &mut Target) -> Result<SesFields, Stop> {
    let within = t.later();
    if let Some(next) = target.next(t, within)? {
        return next.said();
    }
    *target = Target::accept(t)?;
    target.said(0)
}

/// Lets the PSNs that a context of the device uses in a direction end at 512.
pub(super) fn shorten_psn_range(t: &mut Test<'_>, limited: bool) -> Outcome {
    t.configure("limit_psn_range", limited)?;
    t.configure("psn_range", 512)
}

/// Checks that a target with [this range](shorten_psn_range) requests a close before its return direction has
/// used all PSNs.
pub(super) fn expect_close_in_range(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Outcome {
    const STATEMENT: &str = "the device requests a close before the end of the range";
    let length = t.beyond_ack()?;
    for n in 1..512 {
        let request = pdc.request(n).clear(pdc.psn(n - 1)).read(region, 0, length)?;
        t.request(pdc, request)?;
        let arrived = t.wait(t.soon(), |seen| {
            let close = seen.control(CtlType::CLOSE_REQUEST).is_some();
            let req_close = seen.ack().is_some_and(|ack| ack.req() == AckRequest::REQ_CLOSE);
            let data = seen.request().map(|data| data.psn());
            (close || req_close || data.is_some()).then_some(data)
        })?;
        match arrived {
            Some((_, Some(data))) => t.send(pdc, &pdc.ack(data).build()?)?,
            Some((_, None)) => {
                let text = format!("a request to close after {n} reads");
                t.holds(PDS_CLOSE_012, STATEMENT, true, text);
                return Ok(());
            }
            None => return Err(Stop::Inconclusive("the device sends no read data".into())),
        }
        t.forget();
    }
    let text = "511 packets of read data and no request to close";
    t.holds(PDS_CLOSE_012, STATEMENT, false, text);
    Ok(())
}

/// Checks that a context that the device opens closes before it has used this many PSNs of a direction.
pub(super) fn expect_source_closes_in_range(t: &mut Test<'_>, most: u32) -> Outcome {
    let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
    let mut n = 1;
    // Sends single messages until the device uses another context.
    while n < most {
        let written = t.post(post(PostKind::Write, peer, 16))?;
        let within = t.later();
        let Some(next) = target.next(t, within)? else { break };
        let last = Bound::from(most - 1).from_parameter("psn_range");
        let used = next.request.psn() - target.pdc.start;
        t.at_most(PDS_CLOSE_012, "PSNs from Start_PSN to a request", last, used);
        target.ack(t, n)?;
        let within = t.soon();
        t.completion(written, within)?;
        if t.wait(Duration::ZERO, |seen| target.control(seen, CtlType::CLOSE_COMMAND))?.is_some() {
            t.at_most(PDS_CLOSE_012, "requests before CLOSE_COMMAND", most - 1, n);
            return Ok(());
        }
        n += 1;
    }
    let (_, command) = target.expect_control(t, PDS_CLOSE_012, CtlType::CLOSE_COMMAND, t.later())?;
    let last = Bound::from(most).from_parameter("psn_range");
    let used = command.psn() - target.psn(0);
    t.at_most(PDS_CLOSE_012, "PSNs from Start_PSN to CLOSE_COMMAND", last, used);
    Ok(())
}

/// Skips the rule if the device gives a packet up after fewer retransmissions than `least`.
pub(super) fn require_retransmissions(t: &Test<'_>, least: u64) -> Outcome {
    match t.parameter("max_rto_retx_cnt") {
        most if most < least => skip(format!("the device gives up after {most} retransmissions")),
        _ => Ok(()),
    }
}

/// Returns `wanted`, or the number of retransmissions after which the device gives up if that is smaller.
pub(super) fn retransmissions(t: &Test<'_>, wanted: u32) -> Result<u32, Stop> {
    require_retransmissions(t, 1)?;
    Ok(wanted.min(t.parameter("max_rto_retx_cnt") as u32))
}

/// Checks that the device ignores an ACK that belongs to no context of its own: it retransmits the packet at
/// its timeout.
pub(super) fn expect_ack_ignored(
    t: &mut Test<'_>,
    requirement: &Requirement,
    ack: impl Fn(&Target, &mut Test<'_>) -> Outcome,
) -> Outcome {
    let (mut target, written) = message_in_flight(t, 1)?;
    ack(&target, t)?;
    t.settle()?;
    t.is_open(requirement, written)?;
    target.expect_again(t, requirement, 1, t.later())?;
    target.ack(t, 1)?;
    t.ends(requirement, written, Status::Ok)
}

/// Exposes a region that is marked as safe for idempotent requests.
pub(super) fn idempotent_region(t: &mut Test<'_>) -> Result<(Region, Pdc), Stop> {
    let key = Hex64(1 << 63 | 0xacce5);
    let (region, _) = t.exposed(1 << 14, |region| ExposeRegion { key, fill: None, ..region })?;
    Ok((region, t.initiate()))
}

/// Returns the next header of a packet that responds to the RUDI request with this `pkt_id`.
pub(super) fn rudi_response(seen: &RxPacket, way: &Pdc, id: u32) -> Option<NextHdr> {
    let response = seen.rudi().filter(|response| response.pkt_id() == id && seen.wire.dst == way.from)?;
    Some(response.prologue().next_hdr())
}

/// Expects the response to a RUDI request.
pub(super) fn expect_rudi_response(
    t: &mut Test<'_>,
    requirement: &Requirement,
    way: &Pdc,
    id: u32,
) -> Result<RxPacket, Stop> {
    let expected = format!("a RUDI_RESP with pkt_id {id:#x}");
    let (seen, _) = t.expect(requirement, &expected, t.soon(), |seen| rudi_response(seen, way, id))?;
    Ok(seen)
}

/// Returns a RUDI operation of the device on memory that is marked as safe for it.
pub(super) fn post_idempotent(kind: PostKind, peer: u64, length: usize) -> Post {
    let remote = Remote { key: Hex64(1 << 63 | 0x5eed), index: 10, ..Remote::default() };
    Post { mode: Mode::Rudi, remote, ..post(kind, peer, length) }
}

/// Returns the header of a RUDI request of the device.
pub(super) fn rudi_request(seen: &RxPacket) -> Option<Rudi> {
    match seen.uet().pds? {
        Pds::Rudi(header) if header.prologue().kind() == PdsType::RUDI_REQ => Some(header.copied()),
        _ => None,
    }
}

/// Returns the suite's side for replies to a packet that has no context.
pub(super) fn reverse_path(t: &mut Test<'_>, seen: &RxPacket) -> Pdc {
    Pdc { from: seen.wire.dst, to: seen.wire.src, entropy: seen.wire.entropy, ..t.initiate() }
}

/// Returns the response to a RUDI request, with this pkt_id.
pub(super) fn build_rudi_response(seen: &RxPacket, pkt_id: u32, code: ReturnCode) -> Result<UetBuf, Stop> {
    let header = Rudi::response(pkt_id).prologue(|prologue| prologue.next_hdr(NextHdr::UET_HDR_RESPONSE));
    let (message, job) = match seen.uet().ses {
        Some(Ses::Std(ses)) => (ses.message_id(), ses.address().job_id()),
        _ => (0, 0),
    };
    let response = match code {
        ReturnCode::OK => Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, code),
        _ => Response::build(ResponseOpcode::UET_RESPONSE, code).message_id(message).job_id(job),
    };
    Ok(UetBuf { ses: Some(response.done()?.into()), ..UetBuf::new(header.done()?) })
}

/// Returns a datagram for the device to send.
pub(super) fn post_datagram(peer: u64, length: usize) -> Post {
    Post { mode: Mode::Uud, ..post(PostKind::Datagram, peer, length) }
}

/// Returns the header of a datagram of the device.
pub(super) fn uud_header(seen: &RxPacket) -> Option<Uud> {
    match seen.uet().pds? {
        Pds::Uud(header) => Some(header.copied()),
        _ => None,
    }
}

/// Returns a datagram for the device to receive.
pub(super) fn datagram_of(data: &[u8]) -> Message {
    Message::new(Opcode::UET_DATAGRAM_SEND).named(0).data(data)
}

/// Returns the payload of a datagram.
pub(super) fn datagram_bytes(length: usize) -> Vec<u8> {
    pattern(8).take(length).collect()
}

/// The way in which a packet does not belong to the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrongContext {
    /// It comes from another address.
    Address,
    /// Its spdcid is another than the target's.
    Context,
    /// Its spdcid is another, and so is its dpdcid.
    Nowhere,
}

/// The sender of a packet that does not belong to the context.
pub(super) const STRANGER: Axis<WrongContext> = axis("stranger").needing(&[
    ("address", WrongContext::Address, &[TWO_ADDRESSES]),
    ("context", WrongContext::Context, &[]),
    ("nowhere", WrongContext::Nowhere, &[]),
]);

/// Returns the end of the context that the sender of [`STRANGER`] uses.
pub(super) fn wrong_context(t: &mut Test<'_>, pdc: &Pdc) -> Result<Pdc, crate::Stop> {
    let twin = PdcId(if pdc.local.0 == 1 { 2 } else { pdc.local.0 - 1 });
    Ok(match t.value(&STRANGER) {
        WrongContext::Address => Pdc { from: t.address(1)?, ..pdc.clone() },
        WrongContext::Context => Pdc { local: twin, ..pdc.clone() },
        WrongContext::Nowhere => Pdc { local: twin, ..pdc.of_nobody(None) },
    })
}

/// The form of a request header.
pub(super) const FORM: Axis<Form> =
    axis("form").values(&[("std", Form::Std), ("medium", Form::Medium), ("small", Form::Small)]);

/// The header form: true for the medium header.
pub(super) const HEADER: Axis<bool> = axis("header").values(&[("std", false), ("medium", true)]);

/// Returns bytes that nearly all differ from those of a patterned region.
pub(super) fn bytes(length: usize) -> Vec<u8> {
    pattern(3).take(length).collect()
}

/// Builds a request that carries demand for receiver credit.
pub(super) fn with_demand(request: &Request, ccc_id: u8, target: u32) -> Result<UetBuf, Stop> {
    let mut packet = request.build()?;
    if let Some(PdsBuf::Request(header)) = packet.pds {
        let kind = if request.rod { RequestCc::rod() } else { RequestCc::rud() };
        let kind = kind.current_unchecked().request().prologue().kind();
        let target = Units24::default() + target;
        let demand = RequestCc::rud().request(|r| r.copy_from(&header).prologue(|p| p.kind(kind)));
        packet.pds = Some(demand.ccc_id(ccc_id).credit_target(target).done()?.into());
    }
    Ok(packet)
}

/// Returns the nominal size of a full packet.
pub(super) fn full_packet_size(t: &Test<'_>) -> u64 {
    nominal(t.mtu() + 16 + 44)
}

/// Checks that no more is in flight than the largest window.
pub(super) fn check_in_flight(t: &mut Test<'_>, requirement: &Requirement, largest: u64, seen: u64) {
    let bound = Bound::from(largest).from_parameter("1.5 times the rate times base_rtt");
    t.at_most(requirement, "bytes in flight", bound, seen);
}

/// Returns the context whose state the script ends first, and then the other.
pub(super) fn ends_first<T>(t: &Test<'_>, pair: [T; 2]) -> [T; 2] {
    let [first, second] = pair;
    if t.value(&ORDER) { [second, first] } else { [first, second] }
}
