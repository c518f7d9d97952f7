//! Rendezvous sends: the request carries the first bytes, and the target reads the rest.

use super::completion::OperationError;
use super::initiator::Owner;
use super::matching::{LandingId, Remote, Rest};
use super::memory::{Access, Key, RegionId};
use super::operation::{Operation, OperationId, Peer, PostError, Work};
use super::post::RendezvousSource;
use super::request::SesRequest;
use super::{Refusal, ResourceIndex, Ses, SesEvent, Why};
use crate::{Pool, Route, RxRequest};
use bytes::BytesMut;
use uet_wire::registry::{List, ReturnCode};
use uet_wire::ses::{ExtBuf, Rendezvous};

impl Ses {
    /// As initiator: returns the first bytes, and the location of the rest.
    ///
    /// `SES-RNDV-001`, `SES-RNDV-002`: the extension names the region, and the offset of the first byte not sent.
    pub(super) fn rendezvous_source(
        &self,
        region: RegionId,
        offset: u64,
        length: u32,
        eager: u32,
    ) -> Result<RendezvousSource, PostError> {
        let exposed = self.regions.get(region).ok_or(PostError::Source)?;
        let end = offset.checked_add(length.into()).ok_or(PostError::Source)?;
        let eager = eager.min(length);
        let rest = offset + u64::from(eager);
        if end > exposed.region.data.len() as u64 || !exposed.region.access.covers(Access::READ) {
            return Err(PostError::Source);
        }
        let mut first = BytesMut::zeroed(eager as usize);
        exposed.region.data.read(offset as usize, &mut first).map_err(|_| PostError::Source)?;
        let ResourceIndex { process, index } = exposed.index;
        let pid = match process {
            super::Process::Absolute { pid } | super::Process::Relative { pid, .. } => pid,
        };
        let generation = self.tables.generation(exposed.index);
        let header = Rendezvous::zeroed()
            .edit()
            .eager_length(eager)
            .read_ri_generation(generation)
            .read_pid_on_fep(pid)
            .read_resource_index(index)
            .read_offset(rest)
            .read_memory_key(exposed.region.key.0)
            .done();
        Ok((first.freeze(), header.map_err(PostError::Header)?.into(), rest..end))
    }

    /// As target: returns the location of the rest of a rendezvous send.
    pub(super) fn remote(&self, rx: &RxRequest, request: &SesRequest) -> Result<Option<Remote>, Refusal> {
        let Some(ExtBuf::Rendezvous(extension)) = request.ext else { return Ok(None) };
        let eager = extension.eager_length();
        // `WIRE-SES-014`: the eager part is not longer than the message.
        if eager > request.total {
            return Err(Refusal::new(ReturnCode::OP_VIOLATION, Why::Lengths));
        }
        if eager == request.total {
            return Ok(None);
        }
        Ok(Some(Remote {
            peer: Peer {
                pid: extension.read_pid_on_fep(),
                index: extension.read_resource_index(),
                generation: extension.read_ri_generation(),
                ..self.back(rx, request)
            },
            key: extension.read_memory_key(),
            offset: extension.read_offset(),
            eager,
        }))
    }

    /// As target: `SES-RNDV-002`: reads the rest of a message into its buffer, as far as it fits.
    pub(super) fn fetch(&mut self, id: LandingId, remote: Remote) {
        let Some(landing) = self.landings.get_mut(id) else { return };
        // An unexpected send was accepted whole, so its initiator waits until all of it was read.
        let end = if landing.list == List::UET_OVERFLOW { landing.total } else { landing.accepted() };
        let length = end.saturating_sub(remote.eager);
        if length == 0 {
            landing.rest = Rest::Nothing;
            self.deliver(id);
            return;
        }
        let read = Work::Read { key: Key(remote.key), offset: remote.offset, length };
        match self.start(Operation::new(remote.peer, read), Owner::Landing(id)) {
            Ok(operation) => {
                if let Some(landing) = self.landings.get_mut(id) {
                    landing.rest = Rest::Reading(remote.eager);
                }
                self.event(SesEvent::Fetching { operation, length });
            }
            Err(PostError::Full) => {
                if let Some(landing) = self.landings.get_mut(id) {
                    landing.rest = Rest::ToRead(remote);
                }
                self.to_read.push_back(id);
            }
            Err(_) => self.end_landing(id, ReturnCode::OP_VIOLATION),
        }
    }

    /// Starts reads that waited for a free operation.
    pub(super) fn read_more(&mut self) {
        while self.flights.len() < self.params.max_operations.into() {
            let Some(id) = self.to_read.pop_front() else { return };
            if let Some(Rest::ToRead(remote)) = self.landings.get(id).map(|landing| landing.rest) {
                self.fetch(id, remote);
            }
        }
    }

    /// As target: `SES-RNDV-003`: completes the receive with the rest of the message.
    pub(super) fn rest_has_come(&mut self, id: LandingId, mut code: ReturnCode, data: &[u8]) {
        if let Some(landing) = self.landings.get_mut(id) {
            if let Rest::Reading(eager) = landing.rest {
                landing.buffer.resize(eager as usize + data.len());
                if let Err(error) = landing.buffer.place(eager, data) {
                    code = error;
                }
            }
            landing.rest = Rest::Nothing;
        }
        match code {
            ReturnCode::UNDELIVERABLE => self.give_up(id),
            code => self.end_landing(id, code),
        }
    }

    /// As initiator: returns whether a peer is reading one of our sends from this region.
    pub(super) fn is_rendezvous_source(&self, region: RegionId) -> bool {
        self.by_source.range((region, OperationId(0))..=(region, OperationId(u64::MAX))).next().is_some()
    }

    /// As initiator: finds the send that a read belongs to. A read does not name its send, and several sends may share
    /// memory. An exact match of the rest comes first, then a matching start, then any rest that contains the read. No byte
    /// is read twice for one send; otherwise one send would complete too early and another never.
    pub(super) fn rendezvous_of(
        &mut self,
        rx: &RxRequest,
        request: &SesRequest,
        region: RegionId,
        length: u32,
    ) -> Option<OperationId> {
        let start = request.buffer_offset.saturating_add(request.offset.into());
        let piece = start..start.saturating_add(length.into());
        let sends = self.by_source.range((region, OperationId(0))..=(region, OperationId(u64::MAX)));
        let fitting = sends.filter_map(|(_, id)| {
            let flight = self.flights.get(id)?;
            let (_, rest) = flight.source.as_ref()?;
            let wanted = flight.claimed.has_room_for(&piece);
            let inside = rest.start <= piece.start && piece.end <= rest.end;
            let theirs = flight.outline.peer.route.destination == rx.from;
            let starts = rest.start == request.buffer_offset;
            let all = request.total == flight.length().saturating_sub(flight.outline.span);
            (wanted && inside && theirs).then_some((!(starts && all), !starts, *id))
        });
        let (.., id) = fitting.min()?;
        let flight = self.flights.get_mut(&id)?;
        flight.claimed.insert(piece);
        Some(id)
    }

    /// As initiator: handles a refused read of one of our sends.
    pub(super) fn read_refused(&mut self, rx: &RxRequest, request: &SesRequest, code: ReturnCode) {
        let sends = self.by_source.iter().map(|(_, id)| *id);
        let refused: Vec<OperationId> = sends
            .filter(|id| {
                self.flights.get(id).is_some_and(|flight| {
                    let names = match flight.outline.ext {
                        Some(ExtBuf::Rendezvous(header)) => {
                            header.read_memory_key() == request.selector
                                && header.read_offset() == request.buffer_offset
                        }
                        _ => false,
                    };
                    names && flight.outline.peer.route.destination == rx.from
                })
            })
            .collect();
        for id in refused {
            if let Some(flight) = self.flights.get_mut(&id) {
                flight.fault.get_or_insert(OperationError::new(code));
            }
            self.complete_if_done(id);
        }
    }

    /// As initiator: records that bytes of a send were read.
    pub(super) fn was_read(&mut self, id: OperationId, length: u32) {
        if let Some(flight) = self.flights.get_mut(&id) {
            flight.read_out = flight.read_out.saturating_add(length);
        }
        self.complete_if_done(id);
    }

    /// Returns the peer of a reply to a request, with equal addressing.
    pub(super) fn back(&self, rx: &RxRequest, request: &SesRequest) -> Peer {
        let job = request.address.job_id();
        let route = Route {
            job,
            destination: rx.from,
            class: rx.class,
            mode: rx.mode,
            pool: Pool::General,
            context: 0,
        };
        let initiator = self.initiators.get(&(rx.from, job)).copied().unwrap_or_default();
        Peer { route, relative: request.head.rel(), pid: 0, index: 0, generation: 0, initiator }
    }
}
