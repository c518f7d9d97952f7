//! The operations and receives of the applications.

use super::shadow;
use super::traffic::{LONGEST, Task};
use super::{DATAGRAMS, INDEX, Run, SOURCE, TARGETS};
use bytes::Bytes;
use uet_conformance::draw::PostKind;
use uet_model::Mode;
use uet_model::ses::{AtomicOn, Operand, Operation, Peer, PostError, Receive, Work};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

impl Run {
    pub(super) fn peer(&self, task: &Task) -> Peer {
        let index = if task.kind == PostKind::Datagram { DATAGRAMS } else { INDEX };
        let address = self.plan.members[task.to].address;
        let peer =
            Peer { index: index.index, initiator: task.from as u32, ..Peer::relative(address, 101, 2) };
        let mut peer = peer.by(task.mode);
        (peer.route.class, peer.route.context) = (task.class, task.context);
        peer
    }

    pub(super) fn post(&mut self, number: usize) -> Result<(), String> {
        let task = self.traffic.tasks[number];
        let data = || Bytes::from(shadow::data(&task, number));
        let tag = task.is_tagged().then_some(number as u64);
        let key = TARGETS[usize::from(task.mode == Mode::Rudi)];
        let work = match task.kind {
            PostKind::NoOp => Work::NoOp,
            PostKind::Write => Work::Write { key, offset: task.offset, data: data() },
            PostKind::Read => Work::Read { key: SOURCE, offset: task.offset, length: task.length },
            PostKind::Atomic | PostKind::FetchAtomic => Work::Atomic {
                on: AtomicOn::Memory { key, offset: 0 },
                opcode: AtomicOpcode::SUM,
                datatype: AtomicDatatype::UINT64,
                operand: Operand::Elements(Bytes::copy_from_slice(&1u64.to_le_bytes())),
                fetch: task.kind == PostKind::FetchAtomic,
            },
            PostKind::Send | PostKind::Tsend => Work::Send { tag, data: data() },
            PostKind::RendezvousSend | PostKind::RendezvousTsend => Work::Rendezvous {
                tag,
                source: self.shadow.regions(task.from)[3],
                offset: task.offset,
                length: task.length,
                eager: task.eager,
            },
            PostKind::DeferrableSend | PostKind::DeferrableTsend => Work::Deferrable { tag, data: data() },
            PostKind::Datagram => Work::Datagram { data: data() },
        };
        let named = task.named
            && !matches!(
                task.kind,
                PostKind::NoOp | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic
            );
        let operation = Operation {
            header_data: named.then_some(number as u64),
            delivery_complete: task.delivery_complete,
            ..Operation::new(self.peer(&task), work)
        };
        let id = match self.net[task.from].post(operation) {
            Ok(id) => Some(id),
            Err(PostError::Full) if self.plan.lenient => None,
            Err(error) => return Err(format!("{task:?} cannot be posted: {error}")),
        };
        self.shadow.posted(number, &task, id, self.net.now());
        Ok(())
    }

    /// Aborts a task, if it is active.
    pub(super) fn abort(&mut self, number: usize) {
        if let Some(id) = self.shadow.abort(number) {
            self.net[self.traffic.tasks[number].from].abort(id);
        }
    }

    /// Posts a receive for a message.
    pub(super) fn receive(&mut self, number: usize) {
        let task = &self.traffic.tasks[number];
        let (index, tagged) = match task.kind {
            PostKind::Datagram => (DATAGRAMS, false),
            _ => (INDEX, task.is_tagged()),
        };
        let receive = match tagged {
            true => Receive::tagged(LONGEST, number as u64),
            false => Receive::new(LONGEST),
        };
        // The index is open.
        let _ = self.net[task.to].receive(index, receive);
    }

    /// Posts receives for all messages that are still under way.
    pub(super) fn receive_again(&mut self, which: impl Fn(&Task) -> bool) {
        let active: Vec<usize> = self.shadow.active().collect();
        for number in active {
            let task = &self.traffic.tasks[number];
            if task.is_message() && which(task) {
                self.receive(number);
            }
        }
    }
}
