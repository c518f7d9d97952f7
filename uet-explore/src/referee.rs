//! Follows both endpoints from outside, and knows what has truly arrived where. It shares no code with the model.

use uet_model::Packet;
use uet_wire::pds::Pds;
use uet_wire::registry::{CtlType, NackCode, PdsType};
use uet_wire::{PdcId, Psn, Uet, Units24, Version};

/// One direction of a context: the packets of one endpoint under one PDCID, from one Start_PSN on. Bit 0 of a set stands
/// for the first PSN.
#[derive(Clone, Debug, Default, Hash)]
struct Direction {
    source: usize,
    pdcid: u16,
    start: u32,
    sent: u64,
    /// The PSNs that the destination has received and not refused.
    arrived: u64,
    /// The PSNs that the destination received ever, refused ones too.
    ever: u64,
    /// The PSNs that an ACK at the source has named or covered.
    answered: u64,
    ordered: bool,
}

/// The most PSNs of a direction.
const LONGEST: u32 = 64;

impl Direction {
    fn bit(&self, psn: Psn) -> Option<u64> {
        let distance = psn.0.wrapping_sub(self.start);
        (distance < LONGEST).then(|| 1 << distance)
    }

    /// Returns the set of all PSNs up to this one; `None` if it is not near this direction.
    fn up_to(&self, psn: Psn) -> Option<u64> {
        let count = psn.0.wrapping_sub(self.start).wrapping_add(1);
        (count <= LONGEST).then(|| if count == LONGEST { u64::MAX } else { (1 << count) - 1 })
    }
}

/// The truth about all contexts.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Referee {
    directions: Vec<Direction>,
    /// The highest demand for credit that reached the peer of each source, in units.
    demand: [Option<u32>; 2],
}

impl Referee {
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
            let direction = self.find_or_add(from, request.spdcid(), request.psn(), start);
            direction.ordered = ordered;
            direction.sent |= direction.bit(request.psn()).unwrap_or(0);
            let clear = request.clear_psn();
            return match direction.up_to(clear) {
                Some(set) if set & !direction.answered == 0 => Ok(()),
                _ => Err(format!("CLEAR_PSN {clear}, and not all packets up to it were answered")),
            };
        }
        if let Some(ack) = pds.ack() {
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
            if let Pds::AckCc(header) = pds {
                for psn in header.sack().copied().sacked(ack.cack_psn()) {
                    let below =
                        direction.bit(psn).is_none() && ack.cack_psn().0.wrapping_sub(psn.0) < 1 << 30;
                    if !below && direction.bit(psn).is_none_or(|bit| bit & direction.ever == 0) {
                        return Err(format!("a SACK of {psn}, which never arrived"));
                    }
                }
                if let Some(credit) = header.credit() {
                    return self.granted(from, credit);
                }
            }
            return Ok(());
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
            if let Some(psn) = nack.nack_psn()
                && let Some(direction) = self.find(1 - from, nack.dpdcid(), psn)
                && !keeps.contains(&code)
            {
                direction.arrived &= !direction.bit(psn).unwrap_or(0);
            }
            return Ok(());
        }
        if let Pds::Control(control) = pds {
            let control = control.copied();
            if control.ctl_type().takes_psn() {
                let start = control.start_psn().filter(|_| control.syn());
                let direction = self.find_or_add(from, control.spdcid(), control.psn(), start);
                direction.sent |= direction.bit(control.psn()).unwrap_or(0);
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
        if packet.trimmed.is_some() {
            return;
        }
        let (request, control) =
            (pds.request(), if let Pds::Control(it) = pds { Some(it.copied()) } else { None });
        if let Some(ack) = pds.ack() {
            if let Some(named) = ack.ack_psn()
                && let Some(direction) = self.find(to, ack.dpdcid(), ack.cack_psn())
            {
                direction.answered |= direction.up_to(ack.cack_psn()).unwrap_or(0);
                direction.answered |= direction.bit(named).unwrap_or(0);
            }
            return;
        }
        let numbered = match (request, control) {
            (Some(request), _) => Some((request.spdcid(), request.psn())),
            (_, Some(control)) if control.ctl_type().takes_psn() => Some((control.spdcid(), control.psn())),
            (_, Some(control)) => {
                if let Some((_, target)) = control.credit_target() {
                    self.demanded(1 - to, target);
                }
                None
            }
            _ => None,
        };
        if let Some((pdcid, psn)) = numbered
            && let Some(direction) = self.find(1 - to, pdcid, psn)
        {
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
