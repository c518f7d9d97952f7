//! Follows both endpoints from outside, and knows what has truly arrived where. It shares no code with the model.

use crate::direction::Direction;
use crate::scenario::{Control, Scenario};
use uet_model::Packet;
use uet_model::cc::Algorithms;
use uet_wire::pds::Pds;
use uet_wire::registry::{AckRequest, CtlType, NackCode, NextHdr, PdsType, ReturnCode};
use uet_wire::ses::Ses;
use uet_wire::{PdcId, Psn, Uet, Units24, Version};

/// The truth about all contexts.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Referee {
    directions: Vec<Direction>,
    /// The highest demand for credit that reached the peer of each source, in units.
    demand: [Option<u32>; 2],
    /// The bytes that each source has sent for the first time, if it needs credit.
    spent: [u64; 2],
    /// The credit of each source, in bytes: the initial one, and the highest grant that reached it.
    credit: Option<[u64; 2]>,
    granted: [u32; 2],
    /// The packets of each source that were trimmed after another copy had arrived.
    trimmed_again: [u8; 2],
    limits: Limits,
}

/// The limits of both endpoints.
#[derive(Clone, Copy, Debug, Default, Hash)]
struct Limits {
    /// The first value of `rcvd_bytes`.
    rcvd_bytes: [u64; 2],
    /// The responses that may wait for a clear.
    stored_responses: [u32; 2],
    /// The PSNs that a direction may use.
    psn_range: [u32; 2],
    /// The most bytes of data in an ACK.
    ack_data: [u16; 2],
    /// The credit of a source that starts.
    initial_credit: u64,
    /// True if congestion control runs.
    controlled: bool,
}

/// The bytes of a packet that its UET headers and payload do not include, by `CC-RCVD-001`.
pub(crate) const NOMINAL: u32 = 8 + 40;

impl Referee {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let [one, other] = [0, 1].map(|side| scenario.params(side).0);
        let rccc = [&one, &other].map(|params| match &params.congestion.algorithms {
            Algorithms::Rccc(rccc) | Algorithms::Both(_, rccc) => (rccc.initial_credit, rccc.start_credit),
            _ => (u64::MAX, 0),
        });
        let limits = Limits {
            rcvd_bytes: [one.start_rcvd_bytes, other.start_rcvd_bytes],
            stored_responses: [one.stored_responses, other.stored_responses],
            psn_range: [one.psn_range, other.psn_range],
            ack_data: [one.max_ack_data_size, other.max_ack_data_size],
            controlled: scenario.control != Control::Off,
            initial_credit: rccc[0].0,
        };
        let credit = rccc.map(|(initial, _)| initial);
        Referee {
            limits,
            credit: (credit[0] != u64::MAX).then_some(credit),
            granted: rccc.map(|(_, start)| start),
            ..Referee::default()
        }
    }

    fn find(&mut self, source: usize, pdcid: PdcId, psn: Psn) -> Option<&mut Direction> {
        let mut latest = self.directions.iter_mut().rev();
        latest.find(|one| (one.source, one.pdcid) == (source, pdcid.0) && one.up_to(psn).is_some())
    }

    fn find_or_add(&mut self, source: usize, pdcid: PdcId, psn: Psn, start: Option<Psn>) -> &mut Direction {
        let fits = |one: &Direction| {
            let same = (one.source, one.pdcid) == (source, pdcid.0) && one.bit(psn).is_some();
            same && start.is_none_or(|start| start.0 == one.start)
        };
        let at = self.directions.iter().rposition(fits).unwrap_or_else(|| {
            let start = start.unwrap_or(psn).0;
            self.directions.push(Direction { source, pdcid: pdcid.0, start, ..Direction::default() });
            self.directions.len() - 1
        });
        &mut self.directions[at]
    }

    /// Judges a packet that `from` sends.
    pub(crate) fn sent(&mut self, from: usize, packet: &Packet) -> Result<(), String> {
        let bytes = packet.to_wire();
        let uet = Uet::parse(&bytes).map_err(|error| format!("a packet that cannot be parsed: {error}"))?;
        if let Some(finding) = uet.validate(Version::default()).next() {
            return Err(format!("a packet that `validate` rejects: {finding}"));
        }
        let Some(pds) = uet.pds else { return Ok(()) };
        if let Some(request) = pds.request() {
            let start = request.start_psn().filter(|_| request.syn());
            let ordered = matches!(request.prologue().kind(), PdsType::ROD_REQ | PdsType::ROD_CC_REQ);
            let range = self.limits.psn_range[from];
            let direction = self.find_or_add(from, request.spdcid(), request.psn(), start);
            direction.ordered = ordered;
            let clear = request.clear_psn();
            if direction.up_to(clear).is_none_or(|set| set & !direction.answered != 0) {
                return Err(format!("CLEAR_PSN {clear}, and not all packets up to it were answered"));
            }
            if request.psn().0.wrapping_sub(direction.start) >= range {
                return Err(format!("PSN {}, beyond the {range} of its context", request.psn()));
            }
            let size = NOMINAL + packet.wire_len() as u32;
            let counted = request.prologue().next_hdr() != NextHdr::UET_HDR_NONE;
            let is_first = direction.sends(request.psn(), if counted { size } else { 0 });
            if let Some(head) = uet.ses.and_then(|ses| ses.request_head())
                && is_first
            {
                direction.message(request.psn(), head);
            }
            if counted {
                self.demands(from, &pds)?;
            }
            return if is_first && counted { self.spends(from, size) } else { Ok(()) };
        }
        if let Some(ack) = pds.ack() {
            let start = self.limits.rcvd_bytes[from];
            let most = self.limits.ack_data[from];
            if packet.payload.len() > usize::from(most) {
                return Err(format!(
                    "an ACK with {} bytes of data, and {most} are allowed",
                    packet.payload.len()
                ));
            }
            if self.limits.controlled && uet.ses.is_some() && matches!(pds, Pds::Ack(_)) {
                return Err("an ACK without congestion state".into());
            }
            let Some(direction) = self.find(1 - from, ack.dpdcid(), ack.cack_psn()) else {
                return Err(format!("an ACK with CACK_PSN {} of no context", ack.cack_psn()));
            };
            let set = direction.up_to(ack.cack_psn()).unwrap_or(0);
            if set & !direction.arrived != 0 {
                return Err(format!("CACK_PSN {}, and not all packets up to it arrived", ack.cack_psn()));
            }
            if let Some(psn) = ack.ack_psn()
                && direction.bit(psn).is_none_or(|bit| bit & direction.ever == 0)
            {
                // The ACK may name the PSN before Start_PSN, when it answers nothing in particular.
                if psn.0.wrapping_add(1) != direction.start {
                    return Err(format!("an ACK of {psn}, which never arrived"));
                }
            }
            if let Some(bit) = ack.ack_psn().and_then(|psn| direction.bit(psn)) {
                if let Some((_, all)) = direction.whole.iter().find(|(last, _)| *last == bit)
                    && all & !direction.arrived != 0
                {
                    return Err("an ACK of a message that shall be complete, and is not".into());
                }
                direction.named |= bit;
                // `PDS-GTD-004`: an initiator that keeps its error for read data does not say so.
                let error = uet.ses.as_ref().is_some_and(is_error);
                direction.kept |= if ack.req() == AckRequest::REQ_CLEAR || error { bit } else { 0 };
            }
            if let Pds::AckCc(header) = pds {
                let count = start.wrapping_add(direction.bytes(direction.arrived));
                if let Some(rcvd) = header.rcvd_bytes()
                    && rcvd != Units24::from_bytes(count)
                {
                    return Err(format!("rcvd_bytes {rcvd}, and {count} bytes arrived"));
                }
                let bitmap = header.sack().copied().sacked(ack.cack_psn());
                let told = bitmap.filter_map(|psn| direction.bit(psn)).fold(set, |all, bit| all | bit);
                if direction.arrived & !told != 0 {
                    return Err("a bitmap that lacks a packet".into());
                }
                for psn in header.sack().copied().sacked(ack.cack_psn()) {
                    let below =
                        direction.bit(psn).is_none() && ack.cack_psn().0.wrapping_sub(psn.0) < 1 << 30;
                    if !below && direction.bit(psn).is_none_or(|bit| bit & direction.ever == 0) {
                        return Err(format!("a SACK of {psn}, which never arrived"));
                    }
                }
                if let Some(credit) = header.credit() {
                    self.granted(from, credit)?;
                }
            } else if direction.has_gap() {
                return Err("an ACK without a bitmap, and packets above a gap arrived".into());
            }
            return self.has_room(from);
        }
        if let Some(nack) = pds.nack() {
            let code = nack.nack_code();
            let keeps = [
                NackCode::TRIMMED,
                NackCode::RCVD_SES_PROCG,
                NackCode::ACK_WITH_DATA,
                NackCode::GTD_RESP_UNAVAIL,
                NackCode::CLOSING,
                NackCode::CLOSING_IN_ERR,
            ];
            let lacks = [
                NackCode::NO_RESOURCE,
                NackCode::NO_PKT_BUFFER,
                NackCode::NO_GTD_DEL_AVAIL,
                NackCode::NO_SES_MSG_AVAIL,
                NackCode::PKT_NOT_RCVD,
                NackCode::ROD_OOO,
            ];
            // These codes answer no packet of this PSN.
            let unasked = [NackCode::PKT_NOT_RCVD, NackCode::RCVR_INFER_LOSS, NackCode::CLOSING_IN_ERR];
            if let Some(psn) = nack.nack_psn()
                && let Some(direction) = self.find(1 - from, nack.dpdcid(), psn)
            {
                let bit = direction.bit(psn).unwrap_or(0);
                if !unasked.contains(&code) && bit & !direction.met != 0 {
                    return Err(format!("a NACK of {psn} with {code}, which never arrived"));
                }
                let refuses =
                    lacks.contains(&code) || code == NackCode::CLOSING && direction.close == Some(psn);
                if refuses && direction.named & bit != 0 {
                    return Err(format!("a NACK of {psn} with {code}, after an ACK of it"));
                }
                if !keeps.contains(&code) {
                    direction.arrived &= !bit;
                }
            }
            return Ok(());
        }
        if let Some(control) = pds.control() {
            if control.ctl_type().takes_psn() {
                let start = control.start_psn().filter(|_| control.syn());
                let direction = self.find_or_add(from, control.spdcid(), control.psn(), start);
                direction.sends(control.psn(), 0);
                if control.ctl_type() == CtlType::CLOSE_COMMAND {
                    direction.close = Some(control.psn());
                }
            }
            if control.ctl_type() == CtlType::CLEAR_REQUEST {
                let clear = Psn(control.payload());
                let direction = control.dpdcid().and_then(|pdcid| self.find(1 - from, pdcid, clear));
                if direction.is_none_or(|it| it.bit(clear).is_none_or(|bit| it.kept & bit == 0)) {
                    return Err(format!("CLEAR_REQUEST {clear}, and no response of it waits for a clear"));
                }
            }
            if control.ctl_type() == CtlType::CLEAR_COMMAND {
                let clear = Psn(control.payload());
                let direction = self.find(from, control.spdcid(), clear);
                let true_one = direction.is_some_and(|direction| {
                    direction.up_to(clear).is_some_and(|set| set & !direction.answered == 0)
                });
                if !true_one {
                    return Err(format!("CLEAR_COMMAND {clear}, and not all packets up to it were answered"));
                }
            }
            if let Some(credit) = control.credit() {
                return self.granted(from, credit);
            }
        }
        Ok(())
    }

    /// Returns the bytes of all requests of a source that no ACK has named or covered yet.
    pub(crate) fn unanswered(&self, source: usize) -> u64 {
        let own = self.directions.iter().filter(|one| one.source == source);
        own.map(|one| one.bytes(one.sent & !one.answered)).sum()
    }

    /// Returns how many packets of a source were trimmed after another copy had arrived.
    pub(crate) fn trimmed_again(&self, source: usize) -> u8 {
        self.trimmed_again[source]
    }

    /// Judges a packet to an endpoint that has no context: only a NACK without a context (`PDS-OPEN-003`) may go there.
    pub(crate) fn sent_to_stranger(packet: &Packet) -> Result<(), String> {
        let bytes = packet.to_wire();
        match Uet::parse_lax(&bytes).0.pds.and_then(|pds| pds.nack()) {
            Some(nack) if !nack.spdcid().is_valid() => Ok(()),
            _ => Err("a third endpoint an answer of a context".into()),
        }
    }

    /// Judges the number of responses of an endpoint that wait for a clear.
    fn has_room(&self, from: usize) -> Result<(), String> {
        let waiting = self.directions.iter().filter(|one| one.source != from && one.close.is_none());
        let (kept, most) =
            (waiting.map(|one| one.kept.count_ones()).sum::<u32>(), self.limits.stored_responses[from]);
        match kept > most {
            true => Err(format!("an ACK that asks for a clear, the {kept}th, and there is room for {most}")),
            false => Ok(()),
        }
    }

    /// Judges the demand of a request (`RCCC-TYPE-001`, `RCCC-COUNT-001`): it is cumulative, so it is at least the grants
    /// that the source has used.
    fn demands(&self, from: usize, pds: &Pds<'_>) -> Result<(), String> {
        let Some(credit) = self.credit else { return Ok(()) };
        let Pds::RequestCc(header) = pds else { return Err("a request without demand".into()) };
        let target = header.copied().credit_target().get();
        let behind = self.granted[from].wrapping_sub(target) & 0xff_ffff;
        // Credit that is left reduces the demand, also the initial credit of a source that starts again.
        let left = credit[from].saturating_sub(self.spent[from]) + self.limits.initial_credit;
        match (1..1 << 23).contains(&behind) && u64::from(behind) * Units24::UNIT > left {
            true => Err(format!("a demand of {target} units, {behind} below the grants")),
            false => Ok(()),
        }
    }

    /// Judges whether a source has credit for a new request (`RCCC-CREDIT-001`), and takes the credit.
    fn spends(&mut self, from: usize, size: u32) -> Result<(), String> {
        let Some(credit) = self.credit else { return Ok(()) };
        let before = self.spent[from];
        self.spent[from] += u64::from(size);
        match before < credit[from] {
            true => Ok(()),
            false => Err(format!("a request after {before} bytes, and the credit is {}", credit[from])),
        }
    }

    /// Records a cumulative grant that reaches a source.
    fn credited(&mut self, to: usize, grant: Units24) {
        let more = grant.get().wrapping_sub(self.granted[to]) & 0xff_ffff;
        if let Some(credit) = &mut self.credit
            && more < 1 << 23
        {
            credit[to] += u64::from(more) * Units24::UNIT;
            self.granted[to] = grant.get();
        }
    }

    /// Judges a cumulative grant of `from` against the demand that it knows.
    fn granted(&self, from: usize, credit: Units24) -> Result<(), String> {
        let demand = self.demand[1 - from].unwrap_or(0);
        let beyond = credit.get().wrapping_sub(demand) & 0xff_ffff;
        match (1..1 << 23).contains(&beyond) {
            true => Err(format!("a grant of {credit} units, and the demand is {demand}")),
            false => Ok(()),
        }
    }

    /// Takes note of a packet that arrives at `to`.
    pub(crate) fn arrives(&mut self, to: usize, packet: &Packet) {
        let bytes = packet.to_wire();
        let (uet, _) = Uet::parse_lax(&bytes);
        let Some(pds) = uet.pds else { return };
        if let Pds::RequestCc(header) = pds {
            self.demanded(1 - to, header.copied().credit_target());
        }
        let (request, control) = (pds.request(), pds.control());
        let numbered = match (request, control) {
            (Some(request), _) => Some((request.spdcid(), request.psn())),
            (_, Some(control)) if control.ctl_type().takes_psn() => Some((control.spdcid(), control.psn())),
            _ => None,
        };
        if let Some((pdcid, psn)) = numbered
            && let Some(direction) = self.find(1 - to, pdcid, psn)
        {
            let bit = direction.bit(psn).unwrap_or(0);
            direction.met |= bit;
            let again = packet.trimmed.is_some() && bit & direction.arrived != 0;
            self.trimmed_again[1 - to] += u8::from(again);
        }
        if packet.trimmed.is_some() {
            return;
        }
        let credit = match pds {
            Pds::AckCc(header) => header.credit(),
            Pds::Control(header) => header.copied().credit(),
            _ => None,
        };
        credit.into_iter().for_each(|grant| self.credited(to, grant));
        if let Some(ack) = pds.ack() {
            if let Some(named) = ack.ack_psn()
                && let Some(direction) = self.find(to, ack.dpdcid(), ack.cack_psn())
            {
                direction.answered |= direction.up_to(ack.cack_psn()).unwrap_or(0);
                direction.answered |= direction.bit(named).unwrap_or(0);
            }
            return;
        }
        if let Some(control) = control.filter(|control| !control.ctl_type().takes_psn()) {
            let clear = Psn(control.payload());
            if control.ctl_type() == CtlType::CLEAR_COMMAND
                && let Some(direction) = self.find(1 - to, control.spdcid(), clear)
            {
                direction.clears(clear);
            }
            if let Some((_, target)) = control.credit_target() {
                self.demanded(1 - to, target);
            }
        }
        if let Some((pdcid, psn)) = numbered
            && let Some(direction) = self.find(1 - to, pdcid, psn)
        {
            if let Some(request) = request {
                direction.clears(request.clear_psn());
            }
            let bit = direction.bit(psn).unwrap_or(0);
            // An ordered context takes only the next packet.
            if !direction.ordered || direction.arrived & (bit.wrapping_sub(1)) == bit.wrapping_sub(1) {
                direction.arrived |= bit;
                direction.ever |= bit;
            }
        }
    }

    fn demanded(&mut self, source: usize, target: Units24) {
        let known = self.demand[source].get_or_insert(target.get());
        let ahead = target.get().wrapping_sub(*known) & 0xff_ffff;
        if ahead < 1 << 23 {
            *known = target.get();
        }
    }
}

/// Returns whether a response reports an error.
fn is_error(ses: &Ses<'_>) -> bool {
    ses.return_code().is_some_and(|code| !matches!(code, ReturnCode::OK | ReturnCode::NULL))
}
