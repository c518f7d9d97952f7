//! A NIC served over the [control channel](uet_control) of a device under test.
//!
//! ```
//! use serde_json::json;
//! use uet_control::{Link, Request};
//! use uet_emulator::control::Control;
//! use uet_emulator::{Config, Nic};
//! use uet_model::Time;
//!
//! let address = [10, 0, 0, 1].into();
//! let mut nic = Nic::new(address, Config::default())?;
//! let mut control = Control::new(&nic, Link::Inside { addr: address }, &["trim"]);
//! let request = Request::parse(r#"{"id":1,"op":"expose_region","length":4,"key":"0x7","fill":{"hex":"01"}}"#)?;
//! let answer = control.handle(Time::ZERO, &mut nic, request).unwrap();
//! assert_eq!(answer.to_line(), r#"{"id":1,"ok":true,"region":1}"#);
//!
//! // Slow operations are answered later.
//! let wait = Request::parse(r#"{"id":2,"op":"wait_completion","operation":9,"timeout_ns":0}"#)?;
//! let answer = control.handle(Time::ZERO, &mut nic, wait).unwrap();
//! assert_eq!(answer.to_line(), r#"{"id":2,"error":{"code":"not_found","message":"there is no operation 9"}}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod completion;
mod post;

use crate::classes::Classes;
use crate::config::Config;
use crate::nic::Nic;
use core::net::IpAddr;
use core::time::Duration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uet_control as channel;
use uet_control::{Answer, ErrorCode, Event, Op, Permission, Refusal, Request, SecureDomain, Welcome};
use uet_model::secure::{Encapsulation, Ports};
use uet_model::ses::{
    Access, AddressError, Key, OperationId, Process, Receive, ReceiveId, Region, RegionId, ResourceIndex, Tag,
};
use uet_model::{Mode, Packet, Pool, Route, Time};
use uet_packet_io::keys::KeyError;
use uet_wire::outer::UDP_PORT;

/// Maximum memory that a suite can make a NIC hold.
const MEMORY: u64 = 64 << 20;
const PEERS: usize = 4096;
const DOMAINS: usize = 64;
const REGIONS: usize = 4096;
const OPERATIONS: usize = 1 << 16;
const INDICES: usize = 1 << 16;
/// Longest piece of memory that fits in one line as hexadecimal digits.
const PIECE: u64 = 8 << 20;

/// Control-channel state of a NIC: peers, regions and operations by their assigned numbers.
#[derive(Debug)]
pub struct Control {
    link: channel::Link,
    claims: Vec<&'static str>,
    /// Parameters that the link adds.
    told: BTreeMap<String, Value>,
    startup: Config,
    /// True if the NIC has restarted since [`take_restart`](Self::take_restart).
    has_restarted: bool,
    /// Last assigned number. All kinds share the counter, so no number is ambiguous.
    numbers: u64,
    /// The secure domains to which a reset returns.
    startup_keys: Vec<SecureDomain>,
    /// The source ports of its packets, if its link maps entropy values to them.
    source_ports: Vec<u16>,
    /// The UDP ports of peers, which protection includes.
    ports: Arc<Mutex<BTreeMap<IpAddr, u16>>>,
    peers: BTreeMap<u64, channel::AddPeer>,
    regions: BTreeMap<u64, Memory>,
    /// Indices that the suite has set up; each one costs the NIC a slot.
    indices: BTreeSet<ResourceIndex>,
    /// Bytes of all regions and of messages in flight.
    memory: u64,
    operations: BTreeMap<u64, Operation>,
    by_id: BTreeMap<OperationId, u64>,
    by_receive: BTreeMap<ReceiveId, u64>,
    waiting: Vec<Waiting>,
    answers: VecDeque<Answer>,
    events: VecDeque<Event>,
}

/// The memory behind a region number.
#[derive(Debug)]
enum Memory {
    Exposed(RegionId),
    /// The buffer of a receive, as far as its contents are known here.
    Receive(Vec<u8>),
}

/// An operation or a receive.
#[derive(Debug)]
struct Operation {
    want_data: bool,
    /// The region of a receive, by number.
    region: Option<u64>,
    /// Local memory that the peer reads. It is freed with the operation.
    source: Option<RegionId>,
    /// Bytes of memory that the operation holds until it completes.
    bytes: u64,
    ended: Option<channel::Completion>,
}

/// An unanswered `wait_completion`.
#[derive(Debug)]
struct Waiting {
    id: u64,
    operation: u64,
    until: Time,
}

type Answered = Result<Answer, Refusal>;

fn refusal(code: ErrorCode, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into() }
}

fn not_found(what: &str, number: u64) -> Refusal {
    refusal(ErrorCode::NotFound, format!("there is no {what} {number}"))
}

impl Control {
    /// Creates the control channel of a NIC whose packets use this link. `claims` lists the capabilities that the link
    /// adds to the NIC's own.
    pub fn new(nic: &Nic, link: channel::Link, claims: &[&'static str]) -> Self {
        Control {
            link,
            claims: claims.to_vec(),
            told: BTreeMap::new(),
            startup: nic.config().clone(),
            startup_keys: Vec::new(),
            source_ports: Vec::new(),
            ports: Arc::default(),
            has_restarted: false,
            numbers: 0,
            peers: BTreeMap::new(),
            regions: BTreeMap::new(),
            indices: BTreeSet::new(),
            memory: 0,
            operations: BTreeMap::new(),
            by_id: BTreeMap::new(),
            by_receive: BTreeMap::new(),
            waiting: Vec::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Returns the port for packets to this address, if a peer has set one.
    pub fn port_of(&self, address: IpAddr) -> Option<u16> {
        self.peers.values().rev().find(|peer| peer.address == address).and_then(|peer| peer.port)
    }

    /// Handles a request. [`poll_answer`](Self::poll_answer) returns delayed answers.
    pub fn handle(&mut self, now: Time, nic: &mut Nic, request: Request) -> Option<Answer> {
        self.collect(nic);
        let id = request.id;
        let answered = match request.op {
            Op::WaitCompletion(wait) => return self.wait(now, id, wait),
            op => self.answer(now, nic, id, op),
        };
        Some(answered.unwrap_or_else(|Refusal { code, message }| Answer::error(id, code, message)))
    }

    /// Handles a line of the channel. Refuses a line that is not a request.
    pub fn handle_line(&mut self, now: Time, nic: &mut Nic, line: &str) -> Option<Answer> {
        match Request::parse(line) {
            Ok(request) => self.handle(now, nic, request),
            Err(error) => Some(Request::refuse(line, &error)),
        }
    }

    /// Returns the next delayed answer.
    pub fn poll_answer(&mut self, now: Time, nic: &mut Nic) -> Option<Answer> {
        self.collect(nic);
        self.time_out(now);
        self.answers.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self, nic: &mut Nic) -> Option<Event> {
        self.collect(nic);
        self.events.pop_front()
    }

    /// Returns whether an event waits to be read.
    pub fn has_event(&mut self, nic: &mut Nic) -> bool {
        self.collect(nic);
        !self.events.is_empty()
    }

    /// Returns whether the NIC has forgotten its contexts since the last call.
    pub fn take_restart(&mut self) -> bool {
        core::mem::take(&mut self.has_restarted)
    }

    /// Returns the latest time at which a delayed answer is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.waiting.iter().map(|waiting| waiting.until).min()
    }

    /// Forgets all waiting requests after the suite has disconnected.
    pub fn hang_up(&mut self) {
        self.waiting.clear();
        self.answers.clear();
        self.events.clear();
    }

    fn answer(&mut self, now: Time, nic: &mut Nic, id: u64, op: Op) -> Answered {
        let done = channel::Done {};
        Ok(match op {
            Op::Hello(_) => Answer::ok(id, &self.welcome(nic)),
            Op::Reset(_) => {
                self.peers.clear();
                self.restart(nic, self.startup.clone())?;
                self.ports().clear();
                let keys = self.startup_keys.clone();
                self.install_keys(nic, &keys)?;
                Answer::ok(id, &done)
            }
            Op::Configure(configure) => Answer::ok(id, &self.configure(nic, configure)?),
            Op::AddPeer(peer) => {
                room(self.peers.len(), PEERS, "peers")?;
                let number = self.number();
                if let Some(port) = peer.port {
                    self.ports().insert(peer.address, port);
                }
                nic.set_initiator(peer.address, peer.job, peer.initiator);
                self.peers.insert(number, peer);
                Answer::ok(id, &channel::Peer { peer: number })
            }
            Op::SetIndices(indices) => {
                self.set_indices(nic, &indices)?;
                Answer::ok(id, &done)
            }
            Op::ExposeRegion(region) => Answer::ok(id, &self.expose(nic, region)?),
            Op::ReadMemory(piece) => Answer::ok(id, &self.read(nic, piece)?),
            Op::Post(post) => Answer::ok(id, &self.post(nic, post)?),
            Op::PostReceive(receive) => Answer::ok(id, &self.post_receive(nic, receive)?),
            Op::ClosePdc(close) => {
                let peer = self.peer(close.peer)?;
                let route = route(peer, close.mode, close.class);
                if !nic.close(now, &route) {
                    return Err(refusal(ErrorCode::NotFound, "no open context leads to this peer"));
                }
                Answer::ok(id, &done)
            }
            Op::RequestClose(close) => {
                let peer = self.peer(close.peer)?;
                if !nic.request_close(now, &route(peer, close.mode, close.class)) {
                    return Err(refusal(ErrorCode::NotFound, "the peer has no open context to this device"));
                }
                Answer::ok(id, &done)
            }
            Op::InstallKeys(keys) => {
                self.install_keys(nic, &keys.domains)?;
                Answer::ok(id, &done)
            }
            Op::Counters(_) => Answer::ok(id, &counted(nic)),
            Op::Bye(_) => Answer::ok(id, &done),
            Op::Now(_) | Op::Advance(_) => {
                return Err(refusal(ErrorCode::Unsupported, "the NIC has no time of its own"));
            }
            Op::WaitCompletion(_) => return Err(refusal(ErrorCode::Internal, "not answered here")),
        })
    }

    /// Installs secure domains, to which a reset returns.
    pub fn with_keys(mut self, nic: &mut Nic, domains: &[SecureDomain]) -> Result<Self, KeyError> {
        self.startup_keys = domains.to_vec();
        nic.set_encapsulation(self.encapsulation());
        nic.install_keys(domains)?;
        Ok(self)
    }

    /// Adds a capability.
    #[must_use]
    pub fn with_claim(mut self, claim: &'static str) -> Self {
        self.claims.push(claim);
        self
    }

    /// Names the source ports of its packets, by the remainder of the entropy value.
    #[must_use]
    pub fn with_source_ports(self, source_ports: Vec<u16>) -> Self {
        Control { source_ports, ..self }
    }

    fn ports(&self) -> MutexGuard<'_, BTreeMap<IpAddr, u16>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn install_keys(&mut self, nic: &mut Nic, domains: &[SecureDomain]) -> Result<(), Refusal> {
        room(domains.len().saturating_sub(1), DOMAINS, "secure domains")?;
        nic.set_encapsulation(self.encapsulation());
        nic.install_keys(domains).map_err(|error| refusal(ErrorCode::BadRequest, error.to_string()))
    }

    /// Returns the encapsulation of the packets on its link, with their ports.
    fn encapsulation(&self) -> Encapsulation {
        let own = match &self.link {
            channel::Link::Udp { port, .. } => *port,
            channel::Link::Raw { proto: Some(_), .. } => return Encapsulation::Native,
            channel::Link::Raw { port, .. } => port.unwrap_or(UDP_PORT),
            channel::Link::Inside { .. } => return Encapsulation::Udp,
        };
        let (ways, peers) = (self.source_ports.clone(), self.ports.clone());
        let leaving = move |packet: &Packet| {
            let way = usize::from(packet.entropy).checked_rem(ways.len()).and_then(|way| ways.get(way));
            let peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
            let dst = peers.get(&packet.dst).copied().unwrap_or(own);
            Ports { src: way.copied().unwrap_or(packet.entropy), dst }
        };
        let came = move |packet: &Packet| Ports { src: packet.entropy, dst: own };
        Encapsulation::UdpPorts(Box::new(leaving), Box::new(came))
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn peer(&self, number: u64) -> Result<&channel::AddPeer, Refusal> {
        self.peers.get(&number).ok_or_else(|| not_found("peer", number))
    }

    /// Sets the DSCPs of the traffic classes of its link.
    #[must_use]
    pub fn with_classes(mut self, classes: &Classes) -> Self {
        self.told.insert("dscps".into(), classes.into());
        self
    }

    fn welcome(&self, nic: &Nic) -> Welcome {
        let reserved: &[&str] = if nic.config().pds.reserved_pdcs > 0 { &["reserved_pool"] } else { &[] };
        let negotiates: &[&str] = if nic.config().pds.negotiation { &["negotiation"] } else { &[] };
        let claims = [CLAIMS, reserved, negotiates, &self.claims].concat();
        let limits = [
            ("pdcs", u64::from(nic.config().pds.general_pdcs)),
            ("regions", REGIONS as u64),
            ("memory", MEMORY),
            ("operations", u64::from(nic.config().ses.max_operations)),
        ];
        let mut parameters = nic.config().get();
        let trailer = if claims.contains(&"crc") { "crc" } else { "none" };
        parameters.insert("trailer".into(), trailer.into());
        parameters.extend(self.told.clone());
        Welcome {
            version: env!("CARGO_PKG_VERSION").into(),
            specification: nic.config().version.name().into(),
            capabilities: claims.into_iter().map(Into::into).collect(),
            parameters,
            limits: limits.into_iter().map(|(name, limit)| (name.into(), limit)).collect(),
            ..Welcome::new("uet-emulator", self.link.clone())
        }
    }

    /// Restarts the NIC and forgets everything that the NIC forgets.
    fn restart(&mut self, nic: &mut Nic, config: Config) -> Result<(), Refusal> {
        nic.restart(config).map_err(|error| refusal(ErrorCode::Internal, error.to_string()))?;
        self.has_restarted = true;
        for peer in self.peers.values() {
            nic.set_initiator(peer.address, peer.job, peer.initiator);
        }
        self.regions.clear();
        self.indices.clear();
        self.memory = 0;
        self.operations.clear();
        self.by_id.clear();
        self.by_receive.clear();
        self.events.clear();
        for waiting in self.waiting.drain(..) {
            self.answers.push_back(Answer::error(waiting.id, ErrorCode::NotFound, "the device was reset"));
        }
        Ok(())
    }

    /// Applies the valid parameters and restarts the NIC with them; peers stay.
    fn configure(
        &mut self,
        nic: &mut Nic,
        configure: channel::Configure,
    ) -> Result<channel::Configured, Refusal> {
        let mut config = nic.config().clone();
        let mut configured = channel::Configured::default();
        for (name, value) in configure.parameters {
            match config.set(&name, &value) {
                Ok(()) => configured.taken.push(name),
                Err(error) => {
                    configured.refused.insert(name, error.reason);
                }
            }
        }
        if !configured.taken.is_empty() {
            self.restart(nic, config)?;
        }
        Ok(configured)
    }

    /// Accounts for memory that the suite requests: for regions and for messages in flight.
    fn take_memory(&mut self, length: u64) -> Result<usize, Refusal> {
        if length > MEMORY - self.memory {
            return Err(refusal(
                ErrorCode::Exhausted,
                format!("the request exceeds the limit of {MEMORY} bytes of memory in total"),
            ));
        }
        self.memory += length;
        Ok(length as usize)
    }

    fn set_indices(&mut self, nic: &mut Nic, indices: &channel::SetIndices) -> Result<(), Refusal> {
        let refused = |error: AddressError| refusal(ErrorCode::BadRequest, error.to_string());
        let process = process(indices.job, indices.process);
        for n in 0..indices.count {
            // The NIC refuses an index that is wider than its field.
            let index = ResourceIndex { process, index: indices.index.saturating_add(n) };
            if !self.indices.contains(&index) {
                room(self.indices.len(), INDICES, "indices")?;
            }
            nic.set_index(index, indices.disabled, indices.ordered).map_err(refused)?;
            self.indices.insert(index);
            indices
                .generation
                .map_or(Ok(()), |generation| nic.set_generation(index, generation))
                .map_err(refused)?;
        }
        Ok(())
    }

    fn expose(&mut self, nic: &mut Nic, region: channel::ExposeRegion) -> Result<channel::Region, Refusal> {
        room(self.regions.len(), REGIONS, "regions")?;
        let length = self.take_memory(region.length)?;
        let data = region.fill.map_or_else(|| vec![0; length], |fill| fill.bytes(length));
        let may = |permission| region.permissions.contains(&permission);
        let access = Access {
            read: may(Permission::Read),
            write: may(Permission::Write),
            atomic: may(Permission::Atomic),
        };
        let index = ResourceIndex { process: process(region.job, region.process), index: region.index };
        let exposed = Region { key: Key(region.key.0), base: 0, access, data };
        let exposed = nic.expose(index, exposed).and_then(|id| {
            nic.set_generation(index, region.generation)?;
            Ok(id)
        });
        let id = exposed.map_err(|error| {
            self.memory -= length as u64;
            refusal(ErrorCode::BadRequest, error.to_string())
        })?;
        let number = self.number();
        self.regions.insert(number, Memory::Exposed(id));
        Ok(channel::Region { region: number, key: None })
    }

    fn read(&self, nic: &Nic, piece: channel::ReadMemory) -> Result<channel::Memory, Refusal> {
        let unknown = || not_found("region", piece.region);
        let data = match self.regions.get(&piece.region).ok_or_else(unknown)? {
            Memory::Exposed(id) => nic.memory(*id).ok_or_else(unknown)?,
            Memory::Receive(data) => data,
        };
        let end = piece.offset.checked_add(piece.length).filter(|_| piece.length <= PIECE);
        let range = end.map(|end| piece.offset as usize..end as usize);
        let bytes = range.and_then(|range| data.get(range)).ok_or_else(|| {
            let (offset, length, size) = (piece.offset, piece.length, data.len());
            let message =
                format!("{length} bytes at offset {offset} are outside a region of {size} bytes, or above the limit of {PIECE} per read");
            refusal(ErrorCode::BadRequest, message)
        })?;
        Ok(channel::Memory { data: channel::Hex(bytes.to_vec()) })
    }

    fn post_receive(
        &mut self,
        nic: &mut Nic,
        receive: channel::PostReceive,
    ) -> Result<channel::Received, Refusal> {
        let too_long =
            |_| refusal(ErrorCode::BadRequest, "length: must be below 2^32, the limit of a message");
        let capacity = u32::try_from(receive.length).map_err(too_long)?;
        self.make_room()?;
        room(self.regions.len(), REGIONS, "regions")?;
        let length = self.take_memory(receive.length)?;
        let index = ResourceIndex { process: process(receive.job, receive.process), index: receive.index };
        let tag = receive.tag.map(|tag| Tag { bits: tag.0, ignore: receive.ignore.0 });
        let posted = Receive { tag, initiator: receive.initiator, ..Receive::new(capacity) };
        let id = nic.receive(index, posted).map_err(|error| {
            self.memory -= length as u64;
            refusal(ErrorCode::BadRequest, error.to_string())
        })?;
        let (operation, region) = (self.number(), self.number());
        self.regions.insert(region, Memory::Receive(vec![0; length]));
        self.by_receive.insert(id, operation);
        let entry = Operation { want_data: false, region: Some(region), source: None, bytes: 0, ended: None };
        self.operations.insert(operation, entry);
        Ok(channel::Received { operation, region })
    }

    fn wait(&mut self, now: Time, id: u64, wait: channel::WaitCompletion) -> Option<Answer> {
        if !self.operations.contains_key(&wait.operation) {
            let Refusal { code, message } = not_found("operation", wait.operation);
            return Some(Answer::error(id, code, message));
        }
        if let Some(ended) = self.hand_over(wait.operation) {
            return Some(Answer::ok(id, &ended));
        }
        if wait.timeout_ns == 0 {
            return Some(too_late(id));
        }
        if self.waiting.len() >= OPERATIONS {
            return Some(Answer::error(id, ErrorCode::Exhausted, "too many requests wait for a completion"));
        }
        let until = now + Duration::from_nanos(wait.timeout_ns);
        self.waiting.push(Waiting { id, operation: wait.operation, until });
        None
    }

    fn time_out(&mut self, now: Time) {
        let answers = &mut self.answers;
        self.waiting.retain(|waiting| {
            let waits = waiting.until > now;
            if !waits {
                answers.push_back(too_late(waiting.id));
            }
            waits
        });
    }

    /// Makes room for one more operation. If there is none, forgets the oldest completed operation.
    fn make_room(&mut self) -> Result<(), Refusal> {
        if self.operations.len() >= OPERATIONS {
            let ended = self.operations.iter().find(|(_, operation)| operation.ended.is_some());
            let ended = ended.map(|(number, _)| *number);
            let number =
                ended.ok_or_else(|| refusal(ErrorCode::Exhausted, "too many operations are in progress"))?;
            let forgotten = self.operations.remove(&number);
            self.memory -= forgotten.map_or(0, |operation| operation.bytes);
        }
        Ok(())
    }
}

/// Capabilities of the NIC on every link.
const CLAIMS: &[&str] = &[
    "tss",
    "rud",
    "rod",
    "rudi",
    "uud",
    "write",
    "read",
    "send",
    "tsend",
    "datagram",
    "atomic",
    "fetch_atomic",
    "rendezvous_send",
    "rendezvous_tsend",
    "deferrable_send",
    "deferrable_tsend",
    "no_op",
    "nscc",
    "rccc",
    "paths",
    "receive",
    "indices",
    "close",
    "request_close",
    "parameters",
];

fn room(held: usize, most: usize, what: &str) -> Result<(), Refusal> {
    match held < most {
        true => Ok(()),
        false => Err(refusal(ErrorCode::Exhausted, format!("the device has room for at most {most} {what}"))),
    }
}

fn too_late(id: u64) -> Answer {
    Answer::error(id, ErrorCode::Timeout, "the operation has not completed")
}

fn process(job: Option<u32>, pid: u16) -> Process {
    match job {
        Some(job) => Process::Relative { job, pid },
        None => Process::Absolute { pid },
    }
}

fn route(peer: &channel::AddPeer, mode: channel::Mode, class: u8) -> Route {
    let mode = match mode {
        channel::Mode::Rud => Mode::Rud,
        channel::Mode::Rod => Mode::Rod,
        channel::Mode::Rudi => Mode::Rudi,
        channel::Mode::Uud => Mode::Uud,
    };
    Route { job: peer.job, destination: peer.address, class, mode, pool: Pool::General, context: 0 }
}

fn counted(nic: &Nic) -> channel::Counted {
    let counted = nic.counted();
    channel::Counted {
        received: counted.received,
        sent: counted.sent,
        dropped: counted.dropped,
        pdcs: counted.pdcs,
        more: [("held".to_owned(), counted.held)].into(),
    }
}
