//! Semantics (section 3.4): the meaning of messages.
//!
//! | file | topic |
//! | --- | --- |
//! | `operation` | operations that an application may post |
//! | `post`, `cut` | cutting operations into messages, and messages into packets |
//! | `initiator` | operations in flight, responses, completions |
//! | `outbox` | the order in which packets leave |
//! | `request` | the fields of a request, from any of its three headers |
//! | `target` | handling requests: placement and responses |
//! | `address`, `memory`, `matching`, `receive` | the process, memory or receive of a request |
//! | `read`, `atomic` (with `arithmetic`, `byte_order`), `rendezvous` (with `ranges`), `deferrable` | the special rules of each |
//! | `unexpected`, `stall` | the room for sends without a receive, and the end of messages that make no progress |
//! | `response` | the responses that a target makes |
//! | `event`, `completion` | the observable results |
//!
//! [`Ses`] uses packet delivery only by [`Indication`] and [`Command`]. This example connects two without a network:
//!
//! ```
//! use bytes::Bytes;
//! use uet_model::ses::{Access, Completion, Endpoint, Key, Operation, Peer, Process, Region, ResourceIndex, Ses, Work};
//! use uet_model::{Command, Indication, PdcHandle, RxRequest, RxResponse, Ticket};
//! use uet_wire::Psn;
//!
//! let (mut initiator, mut target) = (Ses::default(), Ses::default());
//! let process = Process::Relative { job: 101, pid: 2 };
//! target.open(Endpoint { process, start: 0, count: 16 })?;
//! let index = ResourceIndex { process, index: 10 };
//! let region = Region { key: Key(0xacce5), base: 0, access: Access::ALL, data: vec![0; 8] };
//! let region = target.expose(index, region)?;
//!
//! let peer = Peer { index: 10, ..Peer::relative([10, 0, 1, 12], 101, 2) };
//! let data = Bytes::from_static(b"hello");
//! let write = initiator.post(Operation::new(peer, Work::Write { key: Key(0xacce5), offset: 1, data }))?;
//!
//! let Some(Command::Send(_, request)) = initiator.poll_command() else { panic!() };
//! target.handle(Indication::Request(RxRequest {
//!     ticket: Ticket::Pdc(PdcHandle { pdcid: 0x8001, generation: 0 }, Psn(333)),
//!     from: [10, 0, 0, 1].into(),
//!     class: 0,
//!     mode: peer.route.mode,
//!     confirmed: true,
//!     next_hdr: request.next_hdr,
//!     head: request.head,
//!     payload: request.payload,
//! }));
//! assert_eq!(target.memory(region), Some(&b"\0hello\0\0"[..]));
//!
//! let Some(Command::Respond(_, ok)) = target.poll_command() else { panic!() };
//! let response = Some(RxResponse { next_hdr: ok.next_hdr, head: ok.head, payload: ok.payload });
//! initiator.handle(Indication::Response { message: request.message, pdc: None, response });
//! assert!(matches!(initiator.poll_completion(), Some(Completion::Operation { id, result: Ok(_) }) if id == write));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod arithmetic;
mod atomic;
mod byte_order;
mod completion;
mod cut;
mod deferrable;
mod event;
mod initiator;
mod matching;
mod memory;
mod operation;
mod outbox;
mod params;
mod post;
mod ranges;
mod read;
mod receive;
mod rendezvous;
mod request;
mod response;
mod stall;
mod target;
mod unexpected;

pub use address::{AddressError, Endpoint, Process, ResourceIndex};
pub use byte_order::ByteOrder;
pub use completion::{Completion, Done, OperationError, Received, Written};
pub use event::{SesEvent, Why};
pub use matching::{Receive, ReceiveId, Sender, Tag, Unexpected};
pub use memory::{Access, Key, Region, RegionId};
pub use operation::{AtomicOn, Operand, Operation, OperationId, Peer, PostError, Work};
pub use params::{
    Abort, FormChoice, Restart, SesParams, SmallIndex, SwapOrder, TokenOrder, TooLong, UudOpcode,
};
pub use request::Form;

use crate::{Command, Indication, Memory, MessageKey, PdcHandle, PdsParams, Time};
use address::Tables;
use core::net::IpAddr;
use deferrable::Reserved;
use foldhash::fast::RandomState;
use initiator::{ActiveOperation, Purpose};
use matching::{LandingId, Landings};
use memory::Regions;
use outbox::Outbox;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use target::RxMessage;
use uet_wire::registry::ReturnCode;

/// The reason for an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
struct Refusal {
    code: ReturnCode,
    why: Why,
    /// The current generation, with BAD_GENERATION.
    generation: u8,
}

impl Refusal {
    fn new(code: ReturnCode, why: Why) -> Self {
        Refusal { code, why, generation: 0 }
    }
}

/// The semantics of one endpoint, as initiator and as target. See the [module](self).
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone))]
pub struct Ses {
    params: SesParams,
    mtu: u32,
    max_ack_data: u32,

    tables: Tables,
    regions: Regions,
    landings: Landings,

    /// As target: messages of several packets that are arriving, by context and message ID.
    messages: BTreeMap<(PdcHandle, u16), RxMessage>,
    /// Receives reserved for deferred sends, by our token.
    reserved: BTreeMap<u32, Reserved>,
    /// Rendezvous sends that wait for a free operation to read their rest.
    to_read: VecDeque<LandingId>,
    /// The number of packets of read data in flight.
    reads: u16,
    /// The number of bytes that our reads still wait for.
    awaited: u64,

    /// As initiator: operations in flight, and their lookup tables.
    flights: BTreeMap<OperationId, ActiveOperation>,
    by_message: BTreeMap<u16, OperationId>,
    by_psn: HashMap<(PdcHandle, u32), OperationId, RandomState>,
    by_token: BTreeMap<u32, OperationId>,
    /// The initiator that requests to a peer state, by its address and job, for requests that answer another one.
    initiators: BTreeMap<(IpAddr, u32), u32>,
    by_source: BTreeSet<(RegionId, OperationId)>,
    /// The purpose of each message that PDS carries for us.
    sent: BTreeMap<MessageKey, Purpose>,

    outbox: Outbox,
    commands: VecDeque<Command>,
    completions: VecDeque<Completion>,
    /// The number of waiting completions that report writes of peers.
    written: u16,
    events: VecDeque<SesEvent>,
    next: NextIds,
    /// The time of the last call with one, and of the next look for stalled messages.
    now: Time,
    look: Option<Time>,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Ses {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let Ses {
            params: _, mtu: _, max_ack_data: _, events: _, tables, regions, landings, messages, ..
        } = self;
        (tables, regions, landings, messages).hash(state);
        let Ses {
            reserved, to_read, reads, awaited, flights, by_message, by_psn, by_token, initiators, ..
        } = self;
        (reserved, to_read, reads, awaited, flights, by_message, by_token, initiators).hash(state);
        crate::explore::map(by_psn, state);
        let Ses { by_source, sent, outbox, commands, completions, written, next, look, now: _, .. } = self;
        (by_source, sent, outbox, commands, completions, written, next, look).hash(state);
    }
}

/// The next numbers to use.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
struct NextIds {
    operation: u64,
    message: u16,
    response: u16,
    key: u64,
    receive: u64,
    token: u32,
}

impl Default for Ses {
    fn default() -> Self {
        Ses::new(SesParams::default(), &PdsParams::default())
    }
}

impl Ses {
    /// Creates an endpoint without processes, memory or operations. The MTU and the limit of data in ACKs come from the
    /// parameters of packet delivery.
    pub fn new(params: SesParams, pds: &PdsParams) -> Self {
        let next = NextIds { message: params.start_message_id.wrapping_sub(1), ..NextIds::default() };
        Ses {
            params,
            mtu: u32::from(pds.payload_mtu).max(1),
            max_ack_data: pds.max_ack_data_size.into(),
            tables: Tables::default(),
            regions: Regions::default(),
            landings: Landings::default(),
            messages: BTreeMap::new(),
            reserved: BTreeMap::new(),
            to_read: VecDeque::new(),
            reads: 0,
            awaited: 0,
            flights: BTreeMap::new(),
            by_message: BTreeMap::new(),
            by_psn: HashMap::default(),
            by_token: BTreeMap::new(),
            initiators: BTreeMap::new(),
            by_source: BTreeSet::new(),
            sent: BTreeMap::new(),
            outbox: Outbox::default(),
            commands: VecDeque::new(),
            completions: VecDeque::new(),
            written: 0,
            events: VecDeque::new(),
            next,
            now: Time::ZERO,
            look: None,
        }
    }

    /// Returns the parameters.
    pub fn params(&self) -> &SesParams {
        &self.params
    }

    /// Opens an endpoint: a range of indices of a process.
    pub fn open(&mut self, endpoint: Endpoint) -> Result<(), AddressError> {
        self.tables.open(endpoint)
    }

    /// Closes an endpoint or some of its indices, and returns the regions that were exposed there. Later requests to
    /// them get BAD_INDEX, or BAD_PID if the process has no other index, or BAD_JOB_ID if the job has no other process.
    /// Receives and unexpected sends of these indices are forgotten. A message that has a receive completes.
    ///
    /// ```
    /// use uet_model::ses::{Endpoint, Process, Ses};
    ///
    /// let mut ses = Ses::default();
    /// let endpoint = Endpoint { process: Process::Relative { job: 101, pid: 2 }, start: 0, count: 16 };
    /// ses.open(endpoint)?;
    /// assert!(ses.open(endpoint).is_err(), "it is taken");
    /// assert!(ses.close(endpoint)?.is_empty());
    /// ses.open(endpoint)?;
    /// # Ok::<(), uet_model::ses::AddressError>(())
    /// ```
    pub fn close(&mut self, endpoint: Endpoint) -> Result<Vec<Region<Box<dyn Memory>>>, AddressError> {
        let regions = self.tables.close(endpoint)?;
        let Endpoint { process, start, count } = endpoint;
        let indices = start..start.saturating_add(count);
        self.end_unexpected(|landing| {
            landing.index.process == process && indices.contains(&landing.index.index)
        });
        Ok(regions.into_iter().filter_map(|id| self.withdraw(id)).collect())
    }

    /// Drops the messages of an index that no receive has taken, including those that are arriving.
    pub fn discard_unexpected(&mut self, index: ResourceIndex) -> Result<(), AddressError> {
        self.tables.slot(index)?.queue.forget_deferred();
        self.end_unexpected(|landing| landing.index == index);
        Ok(())
    }

    /// Sets the generation of an index, and enables it if it had run out of buffers.
    pub fn set_generation(&mut self, index: ResourceIndex, generation: u8) -> Result<(), AddressError> {
        let slot = self.tables.slot(index)?;
        (slot.generation, slot.exhausted) = (generation, false);
        Ok(())
    }

    /// Disables or enables an index.
    pub fn set_disabled(&mut self, index: ResourceIndex, disabled: bool) -> Result<(), AddressError> {
        self.tables.slot(index)?.disabled = disabled;
        Ok(())
    }

    /// Makes an index ordered: a send without a buffer disables it until its generation is raised.
    pub fn set_ordered(&mut self, index: ResourceIndex, ordered: bool) -> Result<(), AddressError> {
        self.tables.slot(index)?.ordered = ordered;
        Ok(())
    }

    /// Sets the initiator that requests to a peer state if they answer a request of the peer: a DEFERRABLE_RTR and the
    /// read of a rendezvous send. Such a request states 0 for other peers. The caller limits the number of peers.
    pub fn set_initiator(&mut self, peer: IpAddr, job: u32, initiator: u32) {
        self.initiators.insert((peer, job), initiator);
    }

    /// Exposes memory to peers. The memory is any [`Memory`], such as a `Vec<u8>` or a handle to a shared buffer.
    pub fn expose<M: Memory + 'static>(
        &mut self,
        index: ResourceIndex,
        region: Region<M>,
    ) -> Result<RegionId, AddressError> {
        let region = region.boxed();
        let key = region.key;
        self.tables.slot(index)?;
        let id = self.regions.add(region, index);
        match self.tables.enter(index, key, id) {
            Ok(()) => Ok(id),
            Err(error) => {
                self.regions.remove(id);
                Err(error)
            }
        }
    }

    /// Withdraws a region and returns it. Requests still in flight to it get BAD_MKEY.
    pub fn withdraw(&mut self, id: RegionId) -> Option<Region<Box<dyn Memory>>> {
        let exposed = self.regions.remove(id)?;
        self.tables.leave(exposed.index, exposed.region.key);
        Some(exposed.region)
    }

    /// Returns the bytes of a region; `None` if there is no such region or its memory is not available as a slice.
    pub fn memory(&self, id: RegionId) -> Option<&[u8]> {
        self.regions.get(id)?.region.data.as_slice()
    }

    /// Returns the bytes of a region for changes. The conditions of [`memory`](Self::memory) apply.
    pub fn memory_mut(&mut self, id: RegionId) -> Option<&mut [u8]> {
        self.regions.get_mut(id)?.region.data.as_mut_slice()
    }

    /// Makes every access to a region fail with this code (HOST_POISONED, AT_NO_TRANS, UNCOR ...), to imitate failed
    /// memory. `None` ends that.
    pub fn set_host_fault(&mut self, id: RegionId, code: Option<ReturnCode>) {
        if let Some(exposed) = self.regions.get_mut(id) {
            exposed.fault = code;
        }
    }

    /// Handles an indication of packet delivery.
    pub fn handle(&mut self, indication: Indication) {
        match indication {
            Indication::Request(request) => self.request(request),
            Indication::Numbered { message, pdc, psn } => self.numbered(message, pdc, psn),
            Indication::Response { message, response, .. } => self.response(message, response),
            Indication::Failed { message, why } => self.failed(message, why),
            Indication::Confirmed(pdc) => self.confirmed(pdc),
            Indication::Closed(pdc) => self.closed(pdc),
            Indication::Paused(via) => self.outbox.pause(via),
            Indication::Resumed(via) => self.outbox.resume(via),
        }
    }

    /// Returns the next command for packet delivery: responses first, then packets of lanes that are not paused.
    pub fn poll_command(&mut self) -> Option<Command> {
        if let Some(command) = self.commands.pop_front() {
            return Some(command);
        }
        let next = self.next_packet();
        // Cutting the last packet of a datagram completes it without a command.
        next.or_else(|| self.commands.pop_front())
    }

    /// Returns the next completion.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.poll_completion_if(|_| true)
    }

    /// Returns the next completion that `takes` accepts. The others stay in order. Completions of peers' writes that stay
    /// count toward [`max_written`](SesParams::max_written), so a slow application slows its peers.
    pub fn poll_completion_if(&mut self, takes: impl Fn(&Completion) -> bool) -> Option<Completion> {
        let place = self.completions.iter().position(takes)?;
        let completion = self.completions.remove(place);
        if let Some(Completion::Written(_)) = completion {
            self.written = self.written.saturating_sub(1);
        }
        completion
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<SesEvent> {
        self.events.pop_front()
    }

    fn event(&mut self, event: SesEvent) {
        if self.events.len() >= self.params.max_events.into() {
            self.events.pop_front();
        }
        if self.params.max_events > 0 {
            self.events.push_back(event);
        }
    }

    /// Handles the end of a context.
    fn closed(&mut self, pdc: PdcHandle) {
        self.close_inbound(pdc);
        self.close_return(pdc);
        self.close_flights(pdc);
    }
}
