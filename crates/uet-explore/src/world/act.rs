//! The steps of the applications, and the memory that they use.

use super::{ADDRESSES, Posted, World};
use crate::endpoint::Endpoint;
use crate::scenario::{Action, Trespass};
use bytes::Bytes;
use uet_model::Mode;
use uet_model::ses::{
    Access, AtomicOn, Key, Operand, Operation, Peer, Process, Receive, Region, RegionId, ResourceIndex, Work,
};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// Numbers that use the high bits of their fields.
const JOB: u32 = 0x8_0065;
const INDEX: ResourceIndex = ResourceIndex { process: Process::Relative { job: JOB, pid: 2 }, index: 0x30a };
/// The region that the peer writes to.
const TARGET: Key = Key(7);
/// The region that the peer reads.
const SOURCE: Key = Key(8);
/// The region of [`Action::Lend`].
const LENT: Key = Key(9);
/// The length of the place of each operation in both regions: a message of three packets.
pub(super) const SPAN: usize = 2 * crate::scenario::MTU as usize + 16;
/// The number of operations with a place of their own. Later operations share the last place.
pub(super) const PLACES: usize = 3;
/// The place of the number that [`Action::Add`] changes.
pub(super) const NUMBER: usize = SPAN * PLACES;
/// The place of the number that [`Action::Claim`] sets.
pub(super) const CLAIM: usize = NUMBER + 16;
/// The place of the number that [`Action::Count`] changes.
pub(super) const COUNT: usize = CLAIM + 8;
/// The length of both regions: the last 8 bytes are for [`Action::Trespass`].
const LENGTH: usize = COUNT + 16;
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
/// A full packet of numbers that are 1.
pub(super) static ONES: [u8; crate::scenario::MTU as usize] = {
    let mut bytes = [0; crate::scenario::MTU as usize];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = 1;
        at += 8;
    }
    bytes
};
pub(super) static ZEROS: [u8; LENGTH] = [0; LENGTH];

/// Exposes the regions of an endpoint: that which the peer writes to, that which it reads, and that of
/// [`Action::Lend`].
pub(super) fn expose(end: &mut impl Endpoint, mode: Mode) -> Option<[RegionId; 3]> {
    let region = |data: Vec<u8>, key, access| Region { key: key_for(mode, key), base: 0, access, data };
    let target = end.expose(INDEX, region(vec![0; LENGTH], TARGET, Access::ALL))?;
    let source = end.expose(INDEX, region(PATTERN.to_vec(), SOURCE, Access::READ))?;
    let lent = end.expose(INDEX, region(PATTERN[..16].to_vec(), LENT, Access::READ))?;
    Some([target, source, lent])
}

/// Returns the key of a region that this mode reaches.
fn key_for(mode: Mode, key: Key) -> Key {
    if mode == Mode::Rudi { key.idempotent() } else { key }
}

/// Returns the value that the operation with this number sets.
pub(super) fn claim(number: usize) -> u64 {
    (number as u64 + 1) << 56 | 1
}

/// Returns the tag of the operation with this number.
fn tag(number: u64) -> u64 {
    number << 48 | 5
}

fn atomic(offset: usize, opcode: AtomicOpcode, operand: Operand) -> Work {
    let on = AtomicOn::Memory { key: TARGET, offset: offset as u64 };
    Work::Atomic { on, opcode, datatype: AtomicDatatype::UINT64, operand, fetch: true }
}

impl<E: Endpoint> World<E> {
    pub(super) fn act(&mut self, side: usize, action: Action) {
        if let Some(trace) = &mut self.trace {
            trace.note(self.now, ADDRESSES[side], action);
        }
        let place = self.posted.len().min(PLACES - 1);
        let (mode, offset) = (self.scenario.mode_of(self.posted.len()), (place * SPAN) as u64);
        let data = |length: u16| Bytes::from_static(&PATTERN[place * SPAN..][..usize::from(length)]);
        let work = match action {
            Action::Write(length) => Work::Write { key: key_for(mode, TARGET), offset, data: data(length) },
            Action::Trespass(place) => {
                let (key, at) = match place {
                    Trespass::ReadOnly => (SOURCE, 0),
                    Trespass::Beyond => (TARGET, LENGTH - 4),
                    Trespass::Outside => (TARGET, 1 << 40),
                    Trespass::Nowhere => (Key(99), 0),
                };
                Work::Write { key: key_for(mode, key), offset: at as u64, data: data(8) }
            }
            Action::Add => {
                let ones = [1u64.to_le_bytes(); 2].concat();
                atomic(NUMBER, AtomicOpcode::SUM, Operand::Elements(ones.into()))
            }
            Action::AddFull => {
                let ones = Operand::Elements(Bytes::from_static(&ONES));
                atomic(place * SPAN, AtomicOpcode::SUM, ones)
            }
            Action::Count => {
                let one = Bytes::copy_from_slice(&1u64.to_le_bytes());
                atomic(COUNT, AtomicOpcode::SUM, Operand::Elements(one))
            }
            Action::Claim => {
                let swap = claim(self.posted.len()).into();
                atomic(CLAIM, AtomicOpcode::CSWAP, Operand::Swap { compare: 0, swap })
            }
            Action::Read(length) => Work::Read { key: key_for(mode, SOURCE), offset, length: length.into() },
            Action::Send(length) => Work::Send { tag: None, data: data(length) },
            Action::Tagged(length) => {
                Work::Send { tag: Some(tag(self.posted.len() as u64)), data: data(length) }
            }
            Action::Rendezvous(length, eager) => Work::Rendezvous {
                tag: None,
                source: self.regions[side][1],
                offset,
                length: length.into(),
                eager: eager.into(),
            },
            Action::Lend(length) => Work::Rendezvous {
                tag: None,
                source: self.regions[side][2],
                offset: 0,
                length: length.into(),
                eager: 0,
            },
            Action::Deferrable(length) => Work::Deferrable { tag: None, data: data(length) },
            Action::Receive => {
                self.receives[side] += 1;
                return self.ends[side].receive(INDEX, Receive::new(SPAN as u32));
            }
            Action::ReceiveTagged(number, length) => {
                self.receives[side] += 1;
                let receive = Receive::tagged(length.into(), tag(number.into()));
                return self.ends[side].receive(INDEX, receive);
            }
            Action::Close => return self.close(side),
            Action::Withdraw => {
                let own = self.posted.iter_mut().filter(|posted| posted.side == side);
                let lent = own.filter(|posted| matches!(posted.action, Action::Lend(_)));
                lent.for_each(|posted| posted.may_fail = true);
                return self.ends[side].withdraw(self.regions[side][2]);
            }
            Action::Abort => {
                if let Some(latest) = self.posted.iter_mut().rfind(|posted| posted.side == side) {
                    latest.may_fail = true;
                    self.ends[side].abort(latest.id);
                }
                return;
            }
        };
        let peer = Peer { index: INDEX.index, ..Peer::relative(ADDRESSES[1 - side], JOB, 2) };
        let operation = Operation {
            header_data: self.scenario.header_data(self.posted.len(), action),
            delivery_complete: self.scenario.delivery_complete && matches!(action, Action::Write(_)),
            ..Operation::new(peer.by(mode), work)
        };
        if let Some(id) = self.ends[side].post(operation) {
            self.posted.push(Posted { action, side, id, may_fail: false, result: None });
        }
    }

    fn close(&mut self, side: usize) {
        let owns = self.posted.iter().any(|posted| posted.side == side);
        match self.opened[side] {
            Some(context) if !owns => self.ends[side].close_context(self.now, context),
            _ => {
                let peer = Peer { index: INDEX.index, ..Peer::relative(ADDRESSES[1 - side], JOB, 2) };
                let route = peer.by(self.scenario.mode).route;
                self.ends[side].close_route(self.now, &route);
            }
        }
    }
}
