//! The steps of the applications, and the memory that they use.

use super::{ADDRESSES, Posted, World};
use crate::endpoint::Endpoint;
use crate::scenario::Action;
use bytes::Bytes;
use uet_model::ses::{
    Access, AtomicOn, Key, Operand, Operation, Peer, Process, Receive, Region, RegionId, ResourceIndex, Work,
};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

const INDEX: ResourceIndex = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 10 };
/// The region that the peer writes to.
const TARGET: Key = Key(7);
/// The region that the peer reads.
const SOURCE: Key = Key(8);
/// The length of the place of each operation in both regions: a message of two packets.
pub(super) const SPAN: usize = crate::scenario::MTU as usize + 16;
/// The number of operations with a place of their own.
pub(super) const PLACES: usize = 4;
/// The place of the number that [`Action::Add`] changes.
pub(super) const NUMBER: usize = SPAN * PLACES;
/// The length of both regions.
const LENGTH: usize = NUMBER + 8;
/// Bytes that identify their position, and are never 0.
pub(super) static PATTERN: [u8; LENGTH] = {
    let mut bytes = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        bytes[at] = (at % 251) as u8 | 1;
        at += 1;
    }
    bytes
};
pub(super) static ZEROS: [u8; LENGTH] = [0; LENGTH];

/// Exposes the regions of an endpoint: that which the peer writes to, and that which it reads.
pub(super) fn expose(end: &mut impl Endpoint) -> Option<[RegionId; 2]> {
    let region = |data: Vec<u8>, key| Region { key, base: 0, access: Access::ALL, data };
    let target = end.expose(INDEX, region(vec![0; LENGTH], TARGET))?;
    Some([target, end.expose(INDEX, region(PATTERN.to_vec(), SOURCE))?])
}

impl<E: Endpoint> World<E> {
    pub(super) fn act(&mut self, side: usize, action: Action) {
        if let Some(trace) = &mut self.trace {
            trace.note(self.now, ADDRESSES[side], action);
        }
        let place = self.posted.len().min(PLACES - 1);
        let offset = (place * SPAN) as u64;
        let data = |length: u16| Bytes::from_static(&PATTERN[place * SPAN..][..usize::from(length)]);
        let work = match action {
            Action::Write(length) => Work::Write { key: TARGET, offset, data: data(length) },
            Action::Add => Work::Atomic {
                on: AtomicOn::Memory { key: TARGET, offset: NUMBER as u64 },
                opcode: AtomicOpcode::SUM,
                datatype: AtomicDatatype::UINT64,
                operand: Operand::Elements(Bytes::copy_from_slice(&1u64.to_le_bytes())),
                fetch: true,
            },
            Action::Read(length) => Work::Read { key: SOURCE, offset, length: length.into() },
            Action::Send(length) => Work::Send { tag: None, data: data(length) },
            Action::Rendezvous(length, eager) => Work::Rendezvous {
                tag: None,
                source: self.regions[side][1],
                offset,
                length: length.into(),
                eager: eager.into(),
            },
            Action::Deferrable(length) => Work::Deferrable { tag: None, data: data(length) },
            Action::Receive => {
                self.receives[side] += 1;
                return self.ends[side].receive(INDEX, Receive::new(SPAN as u32));
            }
            Action::Close => return self.close(side),
            Action::Abort => {
                if let Some(first) = self.posted.iter().find(|posted| posted.side == side) {
                    self.ends[side].abort(first.id);
                }
                return;
            }
        };
        let peer = Peer { index: INDEX.index, ..Peer::relative(ADDRESSES[1 - side], 101, 2) };
        let operation = Operation::new(peer.by(self.scenario.mode), work);
        if let Some(id) = self.ends[side].post(operation) {
            self.posted.push(Posted { action, side, id, result: None });
        }
    }

    fn close(&mut self, side: usize) {
        let owns = self.posted.iter().any(|posted| posted.side == side);
        match self.opened[side] {
            Some(context) if !owns => self.ends[side].close_context(self.now, context),
            _ => {
                let peer = Peer { index: INDEX.index, ..Peer::relative(ADDRESSES[1 - side], 101, 2) };
                let route = peer.by(self.scenario.mode).route;
                self.ends[side].close_route(self.now, &route);
            }
        }
    }
}
