//! Packets that no peer sends: changed, cut, repeated or random. They come from an address that is no peer of
//! the device, so they must change nothing.

use super::coverage::{Event, State};
use super::play::Player;
use super::step::{Hostile, Step};
use crate::draw::Source;
use crate::{Edit, Entry, Outcome, Pdc, Region, Wire, rudi, uud};
use core::net::IpAddr;
use std::collections::BTreeSet;
use uet_wire::pds::Pds;
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::{PdcId, Psn, Uet, WriteError};

/// Memory that no device of a conversation has.
const NOWHERE: Region = Region {
    number: 0,
    job: 999,
    process: 0x7e,
    index: 0x3ff,
    generation: 0,
    key: 0x2bad_0bad,
    message_id: 7,
    length: 64,
};

/// Maximum number of changes of a packet.
const CHANGES: u64 = 3;

impl Hostile {
    /// Returns all kinds but random bytes.
    pub(super) const ALL: [Hostile; 9] = [
        Hostile::Opening,
        Hostile::Request,
        Hostile::Rudi,
        Hostile::Datagram,
        Hostile::Control,
        Hostile::Close,
        Hostile::Ack,
        Hostile::Nack,
        Hostile::Replay,
    ];

    /// Builds the packet before its changes. A replay is built elsewhere.
    fn built(self, pdc: &Pdc, n: u32) -> Result<Vec<u8>, WriteError> {
        let write = |pdc: &Pdc| pdc.request(n).write(&NOWHERE, 8, &[0xee; 32]);
        let packet = match self {
            Hostile::Opening => {
                let opening = Pdc { remote: None, local: PdcId(pdc.local.0 ^ 0x2a5a), ..pdc.clone() };
                opening.request(0).write(&NOWHERE, 8, &[0xee; 32])?.build()?
            }
            Hostile::Request => write(pdc)?.build()?,
            Hostile::Rudi => rudi(0x0bad_0000 | n, &write(pdc)?)?,
            Hostile::Datagram => uud(&write(pdc)?)?,
            Hostile::Control => pdc.control(CtlType::CLEAR_COMMAND, Psn(0), pdc.psn(n).0)?,
            Hostile::Close => pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(n), 0)?,
            Hostile::Ack => pdc.ack(pdc.psn(n)).build()?,
            Hostile::Nack => pdc.nack(NackCode::CLOSING, pdc.psn(n))?,
            Hostile::Replay | Hostile::Bytes => return Ok(Vec::new()),
        };
        Ok(packet.to_bytes())
    }

    /// Draws the changes of a packet of this kind. Random bytes are one change: bytes that an empty packet
    /// gains.
    pub(super) fn changes(self, source: &mut impl Source) -> Vec<Edit> {
        if self == Hostile::Bytes {
            return vec![Edit::Grow { bytes: uet_control::Hex(Edit::noise(source)) }];
        }
        let any = IpAddr::from([0; 4]);
        let remote = Some(PdcId(0x4001));
        let sample =
            Pdc { from: any, to: any, local: PdcId(1), remote, start: Psn(7), rod: false, entropy: 0 };
        let kind = if self == Hostile::Replay { Hostile::Request } else { self };
        let bytes = kind.built(&sample, 1).unwrap_or_default();
        (0..source.within(1..=CHANGES)).filter_map(|_| Edit::draw(&bytes, source)).collect()
    }
}

impl Player<'_, '_> {
    /// Sends a packet that no peer sends, unless it could be one of a peer after all.
    pub(super) fn hostile(&mut self, context: usize, kind: Hostile, edits: &[Edit]) -> Outcome {
        let Some(own) = self.own.get(context) else { return Ok(()) };
        // A member of a secure domain is no outsider.
        let Some(from) = self.outsider().filter(|_| !self.t.is_secure()) else { return Ok(()) };
        let served = self.served.iter().rev().find(|it| it.state == State::Open);
        let pdc = match (kind, served) {
            (Hostile::Ack | Hostile::Nack, Some(served)) => served.pdc.clone(),
            _ => own.pdc.clone(),
        };
        let mut bytes = match kind {
            Hostile::Replay => self.last_sent(pdc.from).unwrap_or_default(),
            _ => kind.built(&Pdc { from, ..pdc.clone() }, own.next)?,
        };
        edits.iter().for_each(|edit| edit.apply(&mut bytes));
        if !self.is_of_nobody(from, &bytes) {
            return Ok(());
        }
        self.coverage.seen(State::Open, Event::Hostile(kind));
        let marked = edits.contains(&Edit::Mark);
        let wire = Wire { marked, ..Wire::new(from, pdc.to, 0xc222, bytes) };
        let copies = 1 + edits.iter().filter(|edit| **edit == Edit::Twice).count();
        (0..copies).try_for_each(|_| self.t.send_unobserved(&wire))
    }

    /// Returns an address of the suite that is no peer in this conversation. The device takes the first
    /// packet from a peer for an answer while it opens a context.
    fn outsider(&self) -> Option<IpAddr> {
        let posted = self.sequence.steps.iter().filter_map(|step| match step {
            Step::Post(posting) => Some(posting.peer),
            _ => None,
        });
        let opened = self.sequence.contexts.iter().map(|plan| plan.peer);
        let taken: BTreeSet<usize> = opened.chain(posted).map(|peer| self.place(peer)).collect();
        let free = (0..self.t.addresses()).find(|address| !taken.contains(address))?;
        self.t.address(free).ok()
    }

    /// Returns the last packet that an address of the suite has sent on a context. Requests without one would
    /// be served.
    fn last_sent(&self, from: IpAddr) -> Option<Vec<u8>> {
        let on_context = |wire: &Wire| match Uet::parse_lax(&wire.bytes).0.pds {
            Some(pds) => pds.request().is_some() || pds.ack().is_some() || matches!(pds, Pds::Control(_)),
            None => false,
        };
        self.t.trace().entries.iter().rev().find_map(|step| match &step.entry {
            Entry::Sent(wire) if wire.src == from && on_context(wire) => Some(wire.bytes.clone()),
            _ => None,
        })
    }

    /// Returns whether a packet from an outsider must change nothing. The device may answer it.
    fn is_of_nobody(&mut self, from: IpAddr, bytes: &[u8]) -> bool {
        let Some(pds) = Uet::parse_lax(bytes).0.pds else { return true };
        let opens = match &pds {
            Pds::Control(control) => control.start_psn().is_some(),
            Pds::Rudi(rudi) => {
                // The suite knows the requests of RUDI by their numbers.
                let known = |waiting: &u32| *waiting == rudi.pkt_id();
                let ours = self.messages.iter().any(|it| it.has_lone(rudi.pkt_id()));
                if ours || self.posts.iter().any(|it| it.waiting.iter().any(known)) {
                    return false;
                }
                self.t.watch().ignore_packet(rudi.pkt_id());
                return true;
            }
            pds => pds.request().is_some_and(|request| request.syn()),
        };
        if opens {
            return false;
        }
        let place = pds.layout().field("pds.spdcid");
        if let Some(local) = place.and_then(|place| place.read(pds.bytes())).map(|id| PdcId(id as u16)) {
            self.strangers.insert(local.0);
            self.t.watch().ignore_end(from, local);
        }
        true
    }
}
