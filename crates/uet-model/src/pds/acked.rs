//! Handling received ACKs.

use super::close::State;
use super::event::{CloseReason, Dropped, EventKind, Role};
use super::pdc::Pdc;
use super::pool::TxState;
use super::protect::SecureContext;
use super::shared::Shared;
use super::timers::{Timer, backed_off};
use crate::cc::{AckReport, Sent, rtt_sample};
use crate::{Head, Indication, Packet, RxResponse};
use uet_wire::pds::{Ack, Pds, Sack};
use uet_wire::registry::{AckRequest, NextHdr, ReturnCode};
use uet_wire::ses;
use uet_wire::{PdcId, Psn};

/// The facts that one ACK gives congestion control.
#[derive(Default)]
struct Gathered {
    packets: u32,
    bytes: u64,
    /// The record of the packet that the ACK names.
    sent: Option<Sent>,
    /// The nominal size of that packet, and its entropy value.
    size: Option<u32>,
    entropy: u16,
}

impl Pdc {
    /// Handles a received ACK.
    pub(super) fn acked(&mut self, shared: &mut Shared, packet: &Packet, pds: Pds<'_>, ses: &[u8]) {
        let Some(ack) = pds.ack() else { return };
        let sack = match pds {
            Pds::AckCc(ack) => Some(ack.sack().copied()),
            Pds::AckCcx(ack) => Some(ack.sack().copied()),
            _ => None,
        };
        let named = ack.ack_psn();
        // `PDS-PSN-004`
        if !self.source.was_sent(ack.cack_psn()) || !named.is_none_or(|psn| self.source.was_sent(psn)) {
            return shared.drop_packet(Dropped::AckNotSent);
        }
        self.establish(shared, &ack);
        let mut gathered = Gathered::default();
        match named {
            // `PDS-PRB-002`: the reply to a PROBE reports arrivals and acknowledges nothing.
            None => self.probe_answered(shared, pds, &ack),
            Some(named) => self.taken(shared, packet, &ack, named, sack.as_ref(), ses, &mut gathered),
        }
        if let Some(sack) = &sack {
            self.sacked(shared, ack.cack_psn(), sack, &mut gathered);
        }
        self.infer_losses(shared);
        self.report(shared, pds, &ack, gathered);
        // `PDS-CLOSE-013`
        if ack.req() == AckRequest::REQ_CLOSE && self.role == Role::Initiator {
            self.close(shared, CloseReason::PeerAsked);
        }
        // `PDS-CLOSE-004`: the ACK of CLOSE_COMMAND ends the context here too.
        if self.state == State::Commanded && self.source.is_idle() {
            self.end(shared, CloseReason::Command);
        }
    }

    /// Returns whether the first ACK names another PDCID than the return data before it. The peer has then lost the context
    /// of that data, and opened another for a copy of our first packet.
    pub(super) fn is_replaced(&self, packet: &Packet, ack: &Ack) -> bool {
        let is_first = !self.established && ack.ack_psn().is_some_and(|psn| self.source.is_outstanding(psn));
        let is_peer = self.peer == packet.src && SecureContext::admits(self.security, packet.security);
        is_first && is_peer && ![PdcId::NONE, ack.spdcid()].contains(&self.peer_id)
    }

    /// `PDS-SYN-003`: the first ACK carries the peer's PDCID.
    fn establish(&mut self, shared: &mut Shared, ack: &Ack) {
        if self.established {
            return;
        }
        (self.established, self.peer_id) = (true, ack.spdcid());
        self.event(shared, EventKind::Established(self.peer_id));
        shared.cccs.speaks(self.ccc, self.pdcid());
    }

    #[allow(clippy::too_many_arguments)]
    fn taken(
        &mut self,
        shared: &mut Shared,
        packet: &Packet,
        ack: &Ack,
        named: Psn,
        sack: Option<&Sack>,
        ses: &[u8],
        gathered: &mut Gathered,
    ) {
        let (cack, clear) = (self.source.cack(), self.source.clear());
        let current = self.source.acknowledged(ack.cack_psn());
        if let Some(sack) = sack.filter(|_| current) {
            self.source.stated(shared.params.mp_range(sack.mpr()));
        }
        // A plain ACK states no range, so the last one stays in force.
        self.source.slide();
        // `PDS-ACK-016`: the response in an ACK belongs to the packet that the ACK names. `PDS-PSN-005`: all others up to
        // the cumulative PSN get the default response.
        let mut response = response(ack, packet, ses);
        while self.source.cack().is_after(self.source.clear()) {
            let psn = self.source.clear() + 1;
            let seen = response.take_if(|_| psn == named);
            self.answered(shared, psn, seen, psn == named, gathered);
        }
        // `SES-RESP-007`: above the cumulative PSN, NULL reports an arrival as a set bit does.
        match response.as_ref().is_some_and(proves_arrival_only) {
            true => drop(self.arrived_unanswered(shared, named, gathered)),
            false => self.answered(shared, named, response, true, gathered),
        }
        if self.source.cack() != cack {
            self.event(shared, EventKind::CackSent(self.source.cack()));
        }
        if self.source.clear() != clear {
            self.event(shared, EventKind::ClearMoved(self.source.clear()));
        }
        self.source.arrived(named);
        // `PDS-CLR-006`
        if ack.req() == AckRequest::REQ_CLEAR {
            self.source.want_clear(named);
        }
        self.plan_clear(shared);
    }

    /// Completes an acknowledged packet, and reports it to SES once.
    fn answered(
        &mut self,
        shared: &mut Shared,
        psn: Psn,
        response: Option<RxResponse>,
        by_name: bool,
        gathered: &mut Gathered,
    ) {
        let Some(key) = self.source.take(psn) else { return };
        let Some(state) = shared.pool.get(key).map(|out| out.state) else { return };
        if matches!(state, TxState::RetxQueued | TxState::RetxQueuedAfterSack) {
            shared.pool.unlink(&mut self.source.retx, key);
        }
        let Some(mut out) = shared.pool.remove(key) else { return };
        shared.timers.cancel(&mut out.alarm);
        if out.counted() {
            if by_name {
                (gathered.sent, gathered.size, gathered.entropy) =
                    (Some(out.record()), Some(out.size), out.entropy);
            }
            self.arrived(shared, state, out.size, gathered);
        }
        self.event(shared, EventKind::Answered(psn));
        if let Some(message) = out.message() {
            shared.indications.push_back(Indication::Response {
                message,
                pdc: Some((self.handle, psn)),
                response,
            });
        }
    }

    /// Reports each arrival to congestion control once, for ACK and SACK alike.
    fn arrived(&mut self, shared: &mut Shared, state: TxState, size: u32, gathered: &mut Gathered) {
        match state {
            TxState::Sacked => return,
            TxState::RetxQueued | TxState::NackBackoff => {
                if let Some(ccc) = shared.cccs.get(self.ccc) {
                    ccc.found(shared.now, size);
                }
            }
            TxState::RetxQueuedAfterSack | TxState::Queued => {
                if let Some(ccc) = shared.cccs.get(self.ccc) {
                    ccc.gone(shared.now, size.into(), &[], &[]);
                }
                return;
            }
            TxState::InFlight => {}
        }
        gathered.packets += 1;
        gathered.bytes += u64::from(size);
    }

    /// `PDS-SACK-004`: a set bit reports an arrival; the response is still outstanding. `PDS-SACK-005`: the bitmap may start
    /// anywhere.
    fn sacked(&mut self, shared: &mut Shared, cack: Psn, sack: &Sack, gathered: &mut Gathered) {
        for psn in sack.sacked(cack) {
            self.arrived_unanswered(shared, psn, gathered);
        }
    }

    /// Records that a packet has arrived whose response is outstanding. Returns `None` if that is known, or if the packet
    /// does not wait for a response.
    fn arrived_unanswered(&mut self, shared: &mut Shared, psn: Psn, gathered: &mut Gathered) -> Option<()> {
        let key = self.source.find(psn)?;
        let out = shared.pool.get_mut(key)?;
        let (state, size, counted) = (out.state, out.size, out.counted());
        if !matches!(state, TxState::InFlight | TxState::RetxQueued | TxState::NackBackoff) {
            return None;
        }
        out.state = TxState::Sacked;
        if state != TxState::InFlight {
            let wait = backed_off(shared.params.rto_init_time, out.timeouts);
            shared.timers.arm(&mut out.alarm, shared.now + wait, Timer::Retransmission(key, out.timeouts));
        }
        if state == TxState::RetxQueued {
            shared.pool.unlink(&mut self.source.retx, key);
        }
        self.source.arrived(psn);
        if counted {
            self.arrived(shared, state, size, gathered);
        }
        self.event(shared, EventKind::Arrived(psn));
        Some(())
    }

    fn probe_answered(&mut self, shared: &mut Shared, pds: Pds<'_>, ack: &Ack) {
        let Some((_, at)) = self.probe.take_if(|(opaque, _)| ack.probe_opaque() == Some(*opaque)) else {
            return;
        };
        let service = service_time(pds);
        let sample = rtt_sample(shared.now, Sent { at, retransmissions: 0 }, false, service);
        if let (Some(sample), Some(ccc)) = (sample, shared.cccs.get(self.ccc)) {
            ccc.probe_answered(sample);
        }
    }

    fn report(&mut self, shared: &mut Shared, pds: Pds<'_>, ack: &Ack, gathered: Gathered) {
        let Some(ccc) = shared.cccs.get(self.ccc) else { return };
        let Gathered { packets, bytes, sent, size, entropy } = gathered;
        let rcvd = match pds {
            Pds::AckCc(cc) => cc.rcvd_bytes(),
            _ => None,
        };
        // An ACK without a service time does not state its delay, so 0 is assumed.
        let service = service_time(pds).or(Some(0));
        // `CC-RCVD-005`: each context has a count of its own.
        let mut report = AckReport {
            packets,
            bytes,
            newly: Some(self.source.rcvd.newly(rcvd, bytes)),
            sample: sent.and_then(|sent| rtt_sample(shared.now, sent, ack.retx(), service)),
            size,
            marked: ack.m(),
            entropy,
            ..AckReport::default()
        };
        if let Pds::AckCc(cc) = pds {
            report.restore = cc.rc().unwrap_or(false);
            report.penalty = cc.rcv_cwnd_pend().unwrap_or(0);
            report.credit = cc.credit();
        }
        ccc.ack(shared.now, report);
    }
}

fn service_time(pds: Pds<'_>) -> Option<u16> {
    match pds {
        Pds::AckCc(cc) => cc.service_time(),
        _ => None,
    }
}

/// Returns whether a response says only that its packet has arrived.
fn proves_arrival_only(response: &RxResponse) -> bool {
    let answer = match ses::Ses::parse_as(response.next_hdr, &response.head) {
        Some(Ok((ses::Ses::Response(answer), _))) => answer,
        _ => return false,
    };
    answer.head().return_code() == ReturnCode::NULL
}

/// Returns the response that an ACK carries, if any.
fn response(ack: &Ack, packet: &Packet, ses: &[u8]) -> Option<RxResponse> {
    let next_hdr = ack.prologue().next_hdr();
    let head = Head::try_from(ses).ok()?;
    (next_hdr != NextHdr::UET_HDR_NONE).then(|| RxResponse {
        next_hdr,
        head,
        payload: packet.payload.clone(),
    })
}
