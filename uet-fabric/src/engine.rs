//! The state of a domain: the NIC, its link, and what the application has posted.

use crate::address::{AddressVector, UNKNOWN_ADDRESS};
use crate::carrier::Carrier;
use crate::endpoint::State;
use crate::error::{Code, Error, Result};
use crate::flags;
use crate::interface::Interface;
use crate::memory::{Region, UserMemory};
use crate::name::Name;
use crate::queue::{Completion, Entry, Failed};
use crate::settings::Settings;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::SystemTime;
use uet_control::{KeyMode, SecureDomain};
use uet_emulator::Nic;
use uet_model::ses::{
    self, Access, Key, Operation, OperationId, Peer, Process, ReceiveId, ResourceIndex, Work,
};
use uet_model::{Memory, Mode, Time};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, ReturnCode};

/// The resource index of all registered memory. Public sources leave it to the provider.
const MEMORY_INDEX: u16 = 0;

/// A message to send.
#[derive(Debug)]
pub struct Send {
    /// The number of the peer in the address vector.
    pub to: u64,
    /// The tag; `None` for a plain message.
    pub tag: Option<u64>,
    /// The message.
    pub data: Bytes,
    /// Data for the completion of the receiver.
    pub cq_data: Option<u64>,
    /// True if the operation completes when the message is in the receiver's memory.
    pub delivery_complete: bool,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}

/// The tags that a receive accepts.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    /// The bits.
    pub bits: u64,
    /// The bits that do not matter.
    pub ignore: u64,
}

/// A buffer for a message.
pub struct Receive {
    /// The number of the sender, or [`UNKNOWN_ADDRESS`] for any.
    pub from: u64,
    /// The tags; `None` for plain messages.
    pub tag: Option<Tag>,
    /// The memory.
    pub memory: Box<dyn UserMemory>,
    /// True if the memory takes several messages.
    pub multi: bool,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}

/// The purpose of a look at unexpected messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// The message stays.
    Look,
    /// The message is set aside for a later receive with the same context.
    Claim,
    /// The message is dropped.
    Discard,
}

/// A read of remote memory.
pub struct Read {
    /// The number of the peer in the address vector.
    pub from: u64,
    /// The key of the region.
    pub key: u64,
    /// The offset in the region.
    pub offset: u64,
    /// The memory for the data, whose length is the number of bytes to read.
    pub memory: Box<dyn UserMemory>,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}

/// A write to remote memory.
#[derive(Debug)]
pub struct Write {
    /// The number of the peer in the address vector.
    pub to: u64,
    /// The key of the region.
    pub key: u64,
    /// The offset in the region.
    pub offset: u64,
    /// The bytes.
    pub data: Bytes,
    /// Data for a completion at the target.
    pub cq_data: Option<u64>,
    /// True if the operation completes when the data is in the target's memory.
    pub delivery_complete: bool,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}

/// An atomic operation on remote memory.
pub struct Atomic {
    /// The number of the peer in the address vector.
    pub to: u64,
    /// The key of the region.
    pub key: u64,
    /// The offset in the region.
    pub offset: u64,
    /// The operation.
    pub opcode: AtomicOpcode,
    /// The data type.
    pub datatype: AtomicDatatype,
    /// The operands, one for each element.
    pub operand: Bytes,
    /// The value to compare with.
    pub compare: Option<Bytes>,
    /// The memory for the old values, if they are wanted.
    pub result: Option<Box<dyn UserMemory>>,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}

/// An operation in flight.
struct Outstanding {
    endpoint: u16,
    completion: Completion,
    /// The kind of operation for counters: SEND, WRITE or READ.
    counted: u64,
    report: bool,
    result: Option<Box<dyn UserMemory>>,
}

/// A posted receive.
struct Posted {
    endpoint: u16,
    /// The rest of the buffer that the message does not use, if the buffer takes several.
    memory: Option<Box<dyn UserMemory>>,
    tagged: bool,
    address: usize,
    context: usize,
    report: bool,
}

pub(crate) struct Engine {
    pub(crate) nic: Nic,
    pub(crate) carrier: Carrier,
    pub(crate) endpoints: BTreeMap<u16, State>,
    process: Process,
    job: u32,
    pid: u16,
    generation: u8,
    operations: HashMap<OperationId, Outstanding>,
    receives: HashMap<ReceiveId, Posted>,
    /// Receives that take a message aside, with its endpoint and context if it is kept.
    claims: HashMap<ReceiveId, Option<(u16, usize)>>,
    /// Messages set aside, by endpoint and context.
    claimed: HashMap<(u16, usize), ses::Received>,
    next_key: u64,
}

impl Engine {
    pub(crate) fn open(interface: &Interface, settings: &Settings) -> Result<Self> {
        let carrier = Carrier::open(interface, settings)?;
        let refused =
            |error: &dyn core::fmt::Display| Error::new(Code::EINVAL, format!("FI_UET_PARAMS: {error}"));
        let mut config = settings.config.clone();
        if config.seed == 0 {
            config.seed = std::process::id().into();
        }
        let nic = Nic::new(carrier.identity(), config).map_err(|error| refused(&error))?;
        let mut nic = nic.with_faults(&settings.faults).map_err(|error| refused(&error))?;
        if let Some(path) = &settings.keys {
            let name = path.display();
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| Error::from_io(&format!("FI_UET_KEYS: {name}"), &error))?;
            nic.set_encapsulation(carrier.encapsulation());
            let domains = uet_keys::domains_from_toml(&text);
            let installed = domains.and_then(|domains| nic.install_keys(&with_fresh_counters(domains)));
            installed.map_err(|error| Error::new(Code::EINVAL, format!("FI_UET_KEYS: {name}: {error}")))?;
        }
        let pid = settings.pid.unwrap_or((std::process::id() & 0xfff) as u16);
        Ok(Engine {
            nic,
            carrier,
            endpoints: BTreeMap::new(),
            process: Process::Relative { job: settings.job, pid },
            job: settings.job,
            pid,
            generation: settings.generation,
            operations: HashMap::new(),
            receives: HashMap::new(),
            claims: HashMap::new(),
            claimed: HashMap::new(),
            next_key: 1 << 40,
        })
    }

    /// Returns the name of an endpoint.
    pub(crate) fn name(&self, index: u16) -> Name {
        let Engine { job, pid, generation, .. } = *self;
        Name { address: self.carrier.local(), job, pid, index, generation }
    }

    pub(crate) fn open_index(&mut self, index: u16) -> Result<()> {
        let place = self.place(index);
        let opened = self.nic.set_index(place, None, None);
        let opened = opened.and_then(|()| self.nic.set_generation(place, self.generation));
        opened.map_err(|error| Error::new(Code::EINVAL, error.to_string()))
    }

    fn place(&self, index: u16) -> ResourceIndex {
        ResourceIndex { process: self.process, index }
    }

    // ---- Memory.

    pub(crate) fn register(
        &mut self,
        memory: Box<dyn UserMemory>,
        access: u64,
        key: Option<u64>,
    ) -> Result<Region> {
        let key = key.unwrap_or_else(|| {
            self.next_key += 1;
            self.next_key
        });
        if key >> 48 != 0 {
            return Err(Error::new(Code::EINVAL, format!("the key {key:#x} has more than 48 bits")));
        }
        let remote_write = access & flags::REMOTE_WRITE != 0;
        let access =
            Access { read: access & flags::REMOTE_READ != 0, write: remote_write, atomic: remote_write };
        let base = memory.address() as u64;
        self.open_index(MEMORY_INDEX)?;
        let region = ses::Region { key: Key(key), base, access, data: memory };
        let id = self.nic.expose(self.place(MEMORY_INDEX), region);
        let id = id.map_err(|error| Error::new(Code::EINVAL, error.to_string()))?;
        Ok(Region { id, key })
    }

    pub(crate) fn withdraw(&mut self, region: Region) {
        self.nic.withdraw(region.id);
    }

    // ---- Operations.

    fn state(&self, endpoint: u16) -> Result<&State> {
        let state = self.endpoints.get(&endpoint).filter(|state| state.enabled);
        state.ok_or(Error::new(Code::EOPBADSTATE, "the endpoint is not enabled"))
    }

    fn name_of(&mut self, endpoint: u16, number: u64) -> Result<Name> {
        let addresses = self.state(endpoint)?.addresses.as_ref();
        let addresses = addresses.ok_or(Error::new(Code::ENOAV, "the endpoint has no address vector"))?;
        let name = addresses.get(number);
        let name = name.ok_or(Error::new(Code::EINVAL, "no such peer in the address vector"))?;
        self.carrier.add_peer(name.address);
        Ok(name)
    }

    fn peer(&mut self, endpoint: u16, number: u64, index: Option<u16>) -> Result<Peer> {
        let name = self.name_of(endpoint, number)?;
        let options = self.state(endpoint)?.options;
        let ordered = if index.is_some() { options.ordered_memory } else { options.ordered_messages };
        let peer = Peer::relative(name.identity(), name.job, name.pid);
        let initiator = self.name(endpoint).initiator();
        let peer =
            Peer { index: index.unwrap_or(name.index), generation: name.generation, initiator, ..peer };
        Ok(peer.by(if ordered { Mode::Rod } else { Mode::Rud }))
    }

    fn post(&mut self, operation: Operation, outstanding: Outstanding) -> Result<()> {
        let id = self.nic.post(operation)?;
        self.operations.insert(id, outstanding);
        self.carrier.send(&mut self.nic);
        Ok(())
    }

    pub(crate) fn send(&mut self, endpoint: u16, send: Send) -> Result<()> {
        let Send { to, tag, data, cq_data, delivery_complete, context, report } = send;
        let peer = self.peer(endpoint, to, None)?;
        let kind = if tag.is_some() { flags::TAGGED } else { flags::MSG };
        let work = Work::Send { tag, data };
        let operation = Operation { header_data: cq_data, delivery_complete, ..Operation::new(peer, work) };
        let completion = Completion { context, flags: flags::SEND | kind, ..Completion::default() };
        self.post(operation, Outstanding { endpoint, completion, counted: flags::SEND, report, result: None })
    }

    pub(crate) fn write(&mut self, endpoint: u16, write: Write) -> Result<()> {
        let Write { to, key, offset, data, cq_data, delivery_complete, context, report } = write;
        let peer = self.peer(endpoint, to, Some(MEMORY_INDEX))?;
        let work = Work::Write { key: Key(key), offset, data };
        let operation = Operation { header_data: cq_data, delivery_complete, ..Operation::new(peer, work) };
        let completion = Completion { context, flags: flags::RMA | flags::WRITE, ..Completion::default() };
        self.post(
            operation,
            Outstanding { endpoint, completion, counted: flags::WRITE, report, result: None },
        )
    }

    pub(crate) fn read(&mut self, endpoint: u16, read: Read) -> Result<()> {
        let Read { from, key, offset, memory, context, report } = read;
        let peer = self.peer(endpoint, from, Some(MEMORY_INDEX))?;
        let length = u32::try_from(memory.len()).map_err(|_| Error::from(Code::EMSGSIZE))?;
        let operation = Operation::new(peer, Work::Read { key: Key(key), offset, length });
        let completion = Completion { context, flags: flags::RMA | flags::READ, ..Completion::default() };
        let result = Some(memory);
        self.post(operation, Outstanding { endpoint, completion, counted: flags::READ, report, result })
    }

    pub(crate) fn atomic(&mut self, endpoint: u16, atomic: Atomic) -> Result<()> {
        let Atomic { to, key, offset, opcode, datatype, operand, compare, result, context, report } = atomic;
        let peer = self.peer(endpoint, to, Some(MEMORY_INDEX))?;
        let operand = match compare {
            Some(compare) => ses::Operand::Swap { compare: element(&compare), swap: element(&operand) },
            None if opcode == AtomicOpcode::READ => ses::Operand::None(operand.len() as u32),
            None => ses::Operand::Elements(operand),
        };
        let (fetch, on) = (result.is_some(), ses::AtomicOn::Memory { key: Key(key), offset });
        let operation = Operation::new(peer, Work::Atomic { on, opcode, datatype, operand, fetch });
        let counted = if fetch { flags::READ } else { flags::WRITE };
        let completion = Completion { context, flags: flags::ATOMIC | counted, ..Completion::default() };
        self.post(operation, Outstanding { endpoint, completion, counted, report, result })
    }

    // ---- Receives.

    pub(crate) fn receive(&mut self, endpoint: u16, receive: Receive) -> Result<()> {
        let Receive { from, tag, memory, multi, context, report } = receive;
        let initiator = self.initiator_of(endpoint, from)?;
        let address = memory.address();
        let whole = multi.then(|| memory.window(0, memory.len()));
        let tagged = tag.is_some();
        let pattern = pattern(memory.len(), tag, initiator);
        let id = self.nic.receive_into(self.place(endpoint), pattern, memory);
        let id = id.map_err(|error| Error::new(Code::EINVAL, error.to_string()))?;
        self.receives.insert(id, Posted { endpoint, memory: whole, tagged, address, context, report });
        self.complete();
        Ok(())
    }

    fn initiator_of(&mut self, endpoint: u16, from: u64) -> Result<Option<u32>> {
        let directed = self.state(endpoint)?.options.directed && from != UNKNOWN_ADDRESS;
        directed.then(|| self.name_of(endpoint, from).map(|name| name.initiator())).transpose()
    }

    /// Looks for an unexpected message. Reports it to the queue, or ENOMSG if there is none.
    pub(crate) fn peek(
        &mut self,
        endpoint: u16,
        from: u64,
        tag: Option<Tag>,
        what: Peek,
        context: usize,
    ) -> Result<()> {
        let initiator = self.initiator_of(endpoint, from)?;
        let kind = if tag.is_some() { flags::TAGGED } else { flags::MSG };
        let place = self.place(endpoint);
        let pattern = pattern(u32::MAX as usize, tag, initiator);
        let found = self.nic.peek_unexpected(place, &pattern);
        let mut completion = Completion { context, flags: flags::RECV | kind, ..Completion::default() };
        let Some(found) = found else {
            self.report_failure(endpoint, flags::RECV, completion, Code::ENOMSG, 0);
            return Ok(());
        };
        completion.length = found.length as usize;
        self.fill(endpoint, &mut completion, &found.sender, found.header_data);
        if what != Peek::Look {
            // The message moves from the NIC's list to ours, or away.
            let id = self
                .nic
                .receive(place, pattern)
                .map_err(|error| Error::new(Code::EINVAL, error.to_string()))?;
            self.claims.insert(id, (what == Peek::Claim).then_some((endpoint, context)));
            self.complete();
        }
        if let Some(state) = self.endpoints.get(&endpoint) {
            state.report(flags::RECV, Entry::Done(completion), true, false);
        }
        Ok(())
    }

    /// Completes a receive with the message that [`peek`](Self::peek) claimed with this context, or discards the message.
    pub(crate) fn take_claimed(
        &mut self,
        endpoint: u16,
        mut memory: Box<dyn UserMemory>,
        context: usize,
        discard: bool,
    ) -> Result<()> {
        let claimed = self.claimed.remove(&(endpoint, context));
        let mut received =
            claimed.ok_or(Error::new(Code::EINVAL, "no message was claimed with this context"))?;
        let room = if discard { received.data.len() } else { memory.len().min(received.data.len()) };
        if !discard {
            // The memory is the application's, of this length.
            let _ = memory.write(0, received.data.get(..room).unwrap_or_default());
        }
        received.length = room as u32;
        let kind = if received.sender.tag.is_some() { flags::TAGGED } else { flags::MSG };
        let mut completion =
            Completion { context, flags: flags::RECV | kind, length: room, ..Completion::default() };
        self.fill(endpoint, &mut completion, &received.sender, received.header_data);
        self.report_received(endpoint, completion, &received, true);
        Ok(())
    }

    fn fill(&self, endpoint: u16, to: &mut Completion, sender: &ses::Sender, header_data: Option<u64>) {
        to.tag = sender.tag.unwrap_or_default();
        if let Some(data) = header_data {
            (to.data, to.flags) = (data, to.flags | flags::REMOTE_CQ_DATA);
        }
        let addresses = self.endpoints.get(&endpoint).and_then(|state| state.addresses.as_ref());
        let find = |addresses: &std::sync::Arc<AddressVector>| addresses.find(sender.from, sender.initiator);
        to.source = addresses.map_or(UNKNOWN_ADDRESS, find);
    }

    /// Cancels the receives with this context that no message has matched; returns whether there was one.
    pub(crate) fn cancel(&mut self, endpoint: u16, context: usize) -> bool {
        let of_context =
            |(_, posted): &(&ReceiveId, &Posted)| posted.endpoint == endpoint && posted.context == context;
        let ids: Vec<ReceiveId> = self.receives.iter().filter(of_context).map(|(id, _)| *id).collect();
        let place = self.place(endpoint);
        let mut cancelled = false;
        for id in ids {
            cancelled |= !self.nic.has_matched(id) && self.nic.cancel_receive(place, id);
        }
        self.complete();
        cancelled
    }

    /// Removes an endpoint. Its memory is not touched any more.
    pub(crate) fn close_endpoint(&mut self, endpoint: u16) {
        self.operations.retain(|_, outstanding| outstanding.endpoint != endpoint);
        let place = self.place(endpoint);
        let of_endpoint = |(_, posted): &(&ReceiveId, &Posted)| posted.endpoint == endpoint;
        let ids: Vec<ReceiveId> = self.receives.iter().filter(of_endpoint).map(|(id, _)| *id).collect();
        for id in ids {
            self.receives.remove(&id);
            self.nic.cancel_receive(place, id);
        }
        self.endpoints.remove(&endpoint);
    }

    // ---- Progress.

    /// Receives and sends packets, runs timers, and reports completions. Returns whether there may be more to do at once.
    pub(crate) fn turn(&mut self) -> io::Result<bool> {
        let received = self.carrier.receive(&mut self.nic)?;
        let now = self.carrier.now();
        if self.nic.poll_timeout().is_some_and(|at| at <= now) {
            self.nic.handle_timeout(now);
        }
        let more = self.carrier.send(&mut self.nic);
        self.complete();
        Ok(received || more)
    }

    /// Returns the time of the next timer.
    pub(crate) fn poll_timeout(&mut self) -> Option<Time> {
        [self.nic.poll_timeout(), self.carrier.poll_timeout()].into_iter().flatten().min()
    }

    fn complete(&mut self) {
        while let Some(completion) = self.nic.poll_completion() {
            match completion {
                ses::Completion::Operation { id, result } => self.operation_completed(id, result),
                ses::Completion::Received(received) => self.received(&received),
                ses::Completion::Written(written) => self.written(&written),
            }
        }
    }

    fn operation_completed(&mut self, id: OperationId, result: Result<ses::Done, ses::OperationError>) {
        let Some(outstanding) = self.operations.remove(&id) else { return };
        let Outstanding { endpoint, completion, counted, report, result: memory } = outstanding;
        match result {
            Ok(done) => {
                if let Some(mut memory) = memory {
                    let room = memory.len().min(done.data.len());
                    // The memory is the application's, of this length.
                    let _ = memory.write(0, done.data.get(..room).unwrap_or_default());
                }
                if let Some(state) = self.endpoints.get(&endpoint) {
                    state.report(counted, Entry::Done(completion), report, true);
                }
            }
            Err(error) => {
                let code = Code::of_operation(&error);
                self.report_failure(endpoint, counted, completion, code, error.code.code());
            }
        }
    }

    fn received(&mut self, received: &ses::Received) {
        if let Some(claim) = self.claims.remove(&received.id) {
            if let Some(claim) = claim {
                self.claimed.insert(claim, received.clone());
            }
            return;
        }
        let Some(posted) = self.receives.remove(&received.id) else { return };
        let Posted { endpoint, memory, tagged, address, context, report } = posted;
        let kind = if tagged { flags::TAGGED } else { flags::MSG };
        let mut completion = Completion { context, flags: flags::RECV | kind, ..Completion::default() };
        completion.length = received.length as usize;
        if received.code == ReturnCode::OK {
            self.fill(endpoint, &mut completion, &received.sender, received.header_data);
        }
        if let Some(memory) = memory {
            completion.buffer = address;
            let least = self.endpoints.get(&endpoint).map_or(1, |state| state.min_multi_receive.max(1));
            let left = memory.len().saturating_sub(completion.length);
            if received.code != ReturnCode::OK || left < least {
                completion.flags |= flags::MULTI_RECV;
            } else {
                let memory = memory.window(completion.length, left);
                let again =
                    Receive { from: UNKNOWN_ADDRESS, tag: None, memory, multi: true, context, report };
                // The report comes first, since the next message may be there already.
                self.report_received(endpoint, completion, received, report);
                // The index is open, so this cannot fail.
                let _ = self.receive(endpoint, again);
                return;
            }
        }
        self.report_received(endpoint, completion, received, report);
    }

    fn report_received(&self, endpoint: u16, completion: Completion, received: &ses::Received, report: bool) {
        let Some(state) = self.endpoints.get(&endpoint) else { return };
        let cut_off = received.total.saturating_sub(received.length) as usize;
        let code = match received.code {
            ReturnCode::OK if cut_off == 0 => {
                return state.report(flags::RECV, Entry::Done(completion), report, true);
            }
            ReturnCode::OK => Code::ETRUNC,
            code => Code::of_response(code),
        };
        let failed = Failed { completion, code, cut_off, return_code: received.code.code() };
        state.report(flags::RECV, Entry::Failed(failed), true, true);
    }

    fn written(&self, written: &ses::Written) {
        // Memory belongs to the domain, so its first endpoint hears of the write.
        let Some((endpoint, state)) = self.endpoints.first_key_value() else { return };
        let kind = flags::RMA | flags::REMOTE_WRITE;
        let mut completion =
            Completion { flags: kind, length: written.length as usize, ..Completion::default() };
        self.fill(*endpoint, &mut completion, &written.sender, Some(written.header_data));
        state.report(flags::REMOTE_WRITE, Entry::Done(completion), true, true);
    }

    fn report_failure(
        &self,
        endpoint: u16,
        counted: u64,
        completion: Completion,
        code: Code,
        return_code: u8,
    ) {
        if let Some(state) = self.endpoints.get(&endpoint) {
            let counts = code != Code::ENOMSG;
            state.report(
                counted,
                Entry::Failed(Failed { completion, code, cut_off: 0, return_code }),
                true,
                counts,
            );
        }
    }
}

/// Gives each domain a first counter that earlier processes with the same key have not used: 65,536 for each second since
/// 1970.
fn with_fresh_counters(mut domains: Vec<SecureDomain>) -> Vec<SecureDomain> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    for domain in &mut domains {
        // Client and server share a key, and each has a half of the counters.
        let half = if domain.mode == KeyMode::Server { 1 << 47 } else { 0 };
        domain.counter.get_or_insert(half + (since.as_secs() << 16));
    }
    domains
}

/// Returns the value of one element, which is little-endian in memory.
fn element(bytes: &[u8]) -> u128 {
    let mut wide = [0; 16];
    wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u128::from_le_bytes(wide)
}

fn pattern(length: usize, tag: Option<Tag>, initiator: Option<u32>) -> ses::Receive {
    let tag = tag.map(|Tag { bits, ignore }| ses::Tag { bits, ignore });
    let capacity = u32::try_from(length).unwrap_or(u32::MAX);
    ses::Receive { tag, initiator, ..ses::Receive::new(capacity) }
}
