//! The state of a domain: the NIC, its link, and what the application has posted.

mod receive;

use crate::carrier::Carrier;
use crate::error::{Code, Error, Result};
use crate::flags;
use crate::interface::Interface;
use crate::memory::{Region, UserMemory};
use crate::name::Name;
use crate::queue::{Completion, Entry, Failed};
use crate::request::{Atomic, Read, Send, Write};
use crate::settings::Settings;
use crate::state::State;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use uet_emulator::Nic;
use uet_model::ses::{
    self, Access, Key, Operation, OperationId, Peer, PostError, Process, ReceiveId, ResourceIndex, Work,
};
use uet_model::{Memory, Mode, Time};
use uet_packet_io::file::{MAX_SETTINGS, read_text};
use uet_wire::registry::AtomicOpcode;

/// The number of ranges of PDCIDs that the domains of a process use in turn.
const POOLS: u32 = 32;

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
    /// The only sender whose messages it takes, if there is one.
    sender: Option<Name>,
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
    /// The generations of indices that had an endpoint before.
    generations: BTreeMap<u16, u8>,
    /// The resource index of all registered memory, and of the first endpoint. Public sources leave it to the provider.
    pub(crate) index: u16,
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
        /// The number of domains that this process has opened.
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let opened = OPENED.fetch_add(1, Ordering::Relaxed);
        let carrier = Carrier::open(interface, settings, opened)?;
        let refused =
            |error: &dyn core::fmt::Display| Error::new(Code::EINVAL, format!("FI_UET_PARAMS: {error}"));
        let mut config = settings.config.clone();
        if config.seed == 0 {
            config.seed = std::process::id().into();
        }
        // Peers may still know contexts of an earlier domain at this address, so the new ones get other PDCIDs and PSNs.
        config.seed = config.seed.wrapping_add(u64::from(opened) << 32);
        let pool = config.pds.general_pdcs.min(u16::MAX / POOLS as u16);
        let first = config.pds.first_pdcid.checked_add((opened % POOLS) as u16 * pool);
        let first = first.filter(|first| first.checked_add(config.pds.general_pdcs).is_some());
        config.pds.first_pdcid = first.unwrap_or(config.pds.first_pdcid);
        let nic = Nic::new(carrier.identity(), config).map_err(|error| refused(&error))?;
        let mut nic = nic.with_faults(&settings.faults).map_err(|error| refused(&error))?;
        if let Some(path) = &settings.keys {
            let name = path.display();
            let text = read_text(path, MAX_SETTINGS);
            let text = text.map_err(|error| Error::from_io(&format!("FI_UET_KEYS: {name}"), &error))?;
            let random = |error| Error::from_io("FI_UET_KEYS: no random numbers", &error);
            nic = nic.with_process_security().map_err(random)?;
            nic.set_encapsulation(carrier.encapsulation());
            let domains = uet_packet_io::keys::domains_from_toml(&text);
            let installed = domains.and_then(|domains| nic.install_keys(&domains));
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
            generations: BTreeMap::new(),
            index: settings.index,
            operations: HashMap::new(),
            receives: HashMap::new(),
            claims: HashMap::new(),
            claimed: HashMap::new(),
            next_key: 1 << 40,
        })
    }

    /// Returns the name of an endpoint.
    pub(crate) fn name(&self, index: u16) -> Name {
        let Engine { job, pid, .. } = *self;
        let generation = self.generations.get(&index).copied().unwrap_or(self.generation);
        Name { address: self.carrier.local(), job, pid, index, generation }
    }

    pub(crate) fn open_index(&mut self, index: u16) -> Result<()> {
        let place = self.place(index);
        let opened = self.nic.set_index(place, None, None);
        let generation = self.generations.get(&index).copied().unwrap_or(self.generation);
        let opened = opened.and_then(|()| self.nic.set_generation(place, generation));
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
        self.open_index(self.index)?;
        let region = ses::Region { key: Key(key), base, access, data: memory };
        let id = self.nic.expose(self.place(self.index), region);
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
        let queue = self.endpoints.get(&outstanding.endpoint).and_then(|state| state.sends.as_ref());
        if outstanding.report && queue.is_some_and(|queue| queue.is_full()) {
            // The completion would find no place, and the application can make some.
            return Err(PostError::Full.into());
        }
        let id = match self.nic.post(operation) {
            Err(PostError::Full) => {
                // The application may do nothing but try again. A failure of the link shows with a later operation.
                let _ = self.turn();
                return Err(PostError::Full.into());
            }
            posted => posted?,
        };
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
        let peer = self.peer(endpoint, to, Some(self.index))?;
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
        let peer = self.peer(endpoint, from, Some(self.index))?;
        let length = u32::try_from(memory.len()).map_err(|_| Error::from(Code::EMSGSIZE))?;
        let operation = Operation::new(peer, Work::Read { key: Key(key), offset, length });
        let completion = Completion { context, flags: flags::RMA | flags::READ, ..Completion::default() };
        let result = Some(memory);
        self.post(operation, Outstanding { endpoint, completion, counted: flags::READ, report, result })
    }

    pub(crate) fn atomic(&mut self, endpoint: u16, atomic: Atomic) -> Result<()> {
        let Atomic { to, key, offset, opcode, datatype, operand, compare, result, context, report } = atomic;
        let peer = self.peer(endpoint, to, Some(self.index))?;
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

    /// Reports completions whose queue has room. The others stay in the NIC, which then refuses peers' writes.
    fn complete(&mut self) {
        loop {
            let Engine { nic, operations, receives, endpoints, .. } = self;
            let queue_of = |completion: &ses::Completion| match completion {
                ses::Completion::Operation { id, .. } => {
                    let outstanding = operations.get(id).filter(|outstanding| outstanding.report)?;
                    endpoints.get(&outstanding.endpoint)?.sends.as_ref()
                }
                ses::Completion::Received(received) => {
                    endpoints.get(&receives.get(&received.id)?.endpoint)?.receives.as_ref()
                }
                ses::Completion::Written(_) => endpoints.first_key_value()?.1.receives.as_ref(),
            };
            let takes = |completion: &_| queue_of(completion).is_none_or(|queue| !queue.is_full());
            let Some(completion) = nic.poll_completion_if(takes) else { return };
            match completion {
                ses::Completion::Operation { id, result } => self.operation_completed(id, result),
                ses::Completion::Received(received) => self.received(&received),
                ses::Completion::Written(written) => self.written(&written),
            }
        }
    }

    fn operation_completed(&mut self, id: OperationId, result: Result<ses::Done, ses::OperationError>) {
        let Some(outstanding) = self.operations.remove(&id) else { return };
        let Outstanding { endpoint, mut completion, counted, report, result: memory } = outstanding;
        match result {
            Ok(done) => {
                completion.length = done.length as usize;
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

/// Returns the value of one element, which is little-endian in memory.
fn element(bytes: &[u8]) -> u128 {
    let mut wide = [0; 16];
    wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u128::from_le_bytes(wide)
}
