//! Addressing: jobs, processes, endpoints and resource indices (section 3.4.1).

use super::event::Why;
use super::matching::Queue;
use super::memory::{Key, RegionId};
use super::{Refusal, request::SesRequest};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use uet_wire::registry::ReturnCode;

/// A process, in the addressing of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Process {
    /// A process selected by its number alone (`rel` = 0).
    Absolute {
        /// The process number (`pid_on_fep`).
        pid: u16,
    },
    /// A process selected by job and number (`rel` = 1).
    Relative {
        /// The job.
        job: u32,
        /// The process number (`pid_on_fep`).
        pid: u16,
    },
}

/// An index of a process: a queue for sends, one for tagged sends, and a table of memory regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceIndex {
    /// The process.
    pub process: Process,
    /// The number.
    pub index: u16,
}

impl core::fmt::Display for ResourceIndex {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.process {
            Process::Absolute { pid } => write!(f, "index {} of process {pid}", self.index),
            Process::Relative { job, pid } => write!(f, "index {} of process {pid} of job {job}", self.index),
        }
    }
}

/// A range of indices that an application opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The process that owns them.
    pub process: Process,
    /// The first index.
    pub start: u16,
    /// The number of indices.
    pub count: u16,
}

/// The reason why an endpoint could not be opened, or an index could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// An index, a process or a job is too wide for its field.
    TooWide,
    /// One of the indices belongs to another endpoint of the process.
    Taken(ResourceIndex),
    /// No endpoint owns this index.
    NotOwned(ResourceIndex),
    /// The process has a region with this key already.
    KeyTaken(Key),
}

impl core::fmt::Display for AddressError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AddressError::TooWide => {
                f.write_str("a value is too wide: an index or process has 12 bits, a job 24, a generation 8")
            }
            AddressError::Taken(index) => write!(f, "{index} belongs to another endpoint"),
            AddressError::NotOwned(index) => write!(f, "no endpoint owns {index}"),
            AddressError::KeyTaken(key) => write!(f, "the key {:#x} is in use", key.0),
        }
    }
}

impl core::error::Error for AddressError {}

/// The state of an index.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct IndexState {
    /// The current generation. `SES-GEN-003`: 0 if none is configured.
    pub(super) generation: u8,
    /// True if the application disabled it.
    pub(super) disabled: bool,
    /// True if it disables itself when its buffers run out.
    pub(super) ordered: bool,
    /// True if it has disabled itself, until its generation is raised.
    pub(super) exhausted: bool,
    pub(super) queue: Queue,
    /// Regions by the significant bits of their keys.
    pub(super) regions: BTreeMap<u64, RegionId>,
}

/// The address tables of an endpoint.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Tables {
    jobs: BTreeSet<u32>,
    processes: BTreeSet<Process>,
    slots: BTreeMap<ResourceIndex, IndexState>,
    /// Regions by process and the 12 bits of their optimized key.
    optimized: BTreeMap<(Process, u16), RegionId>,
}

impl Tables {
    /// Opens an endpoint. `SES-ADDR-003`: it owns `count` indices from `start` on.
    pub(super) fn open(&mut self, endpoint: Endpoint) -> Result<(), AddressError> {
        let Endpoint { process, start, count } = endpoint;
        let (job, pid) = match process {
            Process::Absolute { pid } => (None, pid),
            Process::Relative { job, pid } => (Some(job), pid),
        };
        let end = u32::from(start) + u32::from(count);
        if end > 1 << 12 || pid >= 1 << 12 || job.is_some_and(|job| job >= 1 << 24) {
            return Err(AddressError::TooWide);
        }
        let indices = (start..end as u16).map(|index| ResourceIndex { process, index });
        if let Some(taken) = indices.clone().find(|index| self.slots.contains_key(index)) {
            return Err(AddressError::Taken(taken));
        }
        self.jobs.extend(job);
        self.processes.insert(process);
        self.slots.extend(indices.map(|index| (index, IndexState::default())));
        Ok(())
    }

    /// Closes an endpoint, in whole or in part, and returns its regions.
    pub(super) fn close(&mut self, endpoint: Endpoint) -> Result<Vec<RegionId>, AddressError> {
        let Endpoint { process, start, count } = endpoint;
        let end = start.saturating_add(count);
        let indices = (start..end).map(|index| ResourceIndex { process, index });
        if let Some(missing) = indices.clone().find(|index| !self.slots.contains_key(index)) {
            return Err(AddressError::NotOwned(missing));
        }
        let slots: Vec<IndexState> = indices.filter_map(|index| self.slots.remove(&index)).collect();
        if !self.slots.keys().any(|index| index.process == process) {
            self.processes.remove(&process);
        }
        if let Process::Relative { job, .. } = process {
            let alive = |other: &Process| matches!(other, Process::Relative { job: of, .. } if *of == job);
            if !self.processes.iter().any(alive) {
                self.jobs.remove(&job);
            }
        }
        Ok(slots.into_iter().flat_map(|slot| slot.regions.into_values()).collect())
    }

    /// Returns the state of each index.
    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = &mut IndexState> {
        self.slots.values_mut()
    }

    pub(super) fn slot(&mut self, index: ResourceIndex) -> Result<&mut IndexState, AddressError> {
        self.slots.get_mut(&index).ok_or(AddressError::NotOwned(index))
    }

    /// Returns the current generation of an index.
    pub(super) fn generation(&self, index: ResourceIndex) -> u8 {
        self.slots.get(&index).map_or(0, |slot| slot.generation)
    }

    /// Adds a region to the table of its index.
    pub(super) fn enter(&mut self, index: ResourceIndex, key: Key, id: RegionId) -> Result<(), AddressError> {
        let short = (index.process, key.short());
        let slot = self.slots.get_mut(&index).ok_or(AddressError::NotOwned(index))?;
        if slot.regions.contains_key(&key.significant())
            || key.is_optimized() && self.optimized.contains_key(&short)
        {
            return Err(AddressError::KeyTaken(key));
        }
        slot.regions.insert(key.significant(), id);
        if key.is_optimized() {
            self.optimized.insert(short, id);
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, index: ResourceIndex, key: Key) {
        if let Some(slot) = self.slots.get_mut(&index) {
            slot.regions.remove(&key.significant());
        }
        if key.is_optimized() {
            self.optimized.remove(&(index.process, key.short()));
        }
    }

    /// Returns the process of a request. `SES-ADDR-001`: absolute addressing selects it by `pid_on_fep` alone, relative
    /// addressing by job and `pid_on_fep`. `SES-ADDR-004`, `SES-ADDR-005`: the error is BAD_JOB_ID or BAD_PID.
    pub(super) fn process(&self, request: &SesRequest) -> Result<Process, Refusal> {
        let (job, pid) = (request.address.job_id(), request.address.pid_on_fep());
        let process = match request.head.rel() {
            true if !self.jobs.contains(&job) => {
                return Err(Refusal::new(ReturnCode::BAD_JOB_ID, Why::NoJob(job)));
            }
            true => Process::Relative { job, pid },
            false => Process::Absolute { pid },
        };
        match self.processes.contains(&process) {
            true => Ok(process),
            false => Err(Refusal::new(ReturnCode::BAD_PID, Why::NoProcess(pid))),
        }
    }

    /// Returns the index of a request. `SES-ADDR-002`: it has the queues and regions. `SES-ADDR-006`: the error is BAD_INDEX
    /// if no endpoint of the process owns it.
    pub(super) fn index(
        &mut self,
        request: &SesRequest,
    ) -> Result<(ResourceIndex, &mut IndexState), Refusal> {
        let index =
            ResourceIndex { process: self.process(request)?, index: request.address.resource_index() };
        match self.slots.get_mut(&index) {
            Some(slot) => Ok((index, slot)),
            None => Err(Refusal::new(ReturnCode::BAD_INDEX, Why::NoIndex(index.index))),
        }
    }

    /// Returns the region with this optimized key, at any index.
    pub(super) fn optimized(&self, process: Process, key: u16) -> Result<RegionId, Refusal> {
        let found = self.optimized.get(&(process, key));
        found.copied().ok_or(Refusal::new(ReturnCode::BAD_MKEY, Why::NoKey(u64::from(key))))
    }
}

impl IndexState {
    /// `SES-GEN-001`, `SES-GEN-002`: refuses a generation that is not current, and returns the current one.
    pub(super) fn check_generation(&self, seen: u8) -> Result<(), Refusal> {
        if seen == self.generation {
            return Ok(());
        }
        let why = Why::Generation { seen, current: self.generation };
        Err(Refusal { generation: self.generation, ..Refusal::new(ReturnCode::BAD_GENERATION, why) })
    }

    /// `SES-IDX-001`: a disabled index replies DISABLED before any match. `SES-IDX-002`: one without buffers replies
    /// DISABLED_GEN until its generation is raised.
    pub(super) fn check_enabled(&self) -> Result<(), Refusal> {
        match (self.disabled, self.exhausted) {
            (true, _) => Err(Refusal::new(ReturnCode::DISABLED, Why::Disabled)),
            (_, true) => Err(Refusal::new(ReturnCode::DISABLED_GEN, Why::Exhausted)),
            _ => Ok(()),
        }
    }

    /// `SES-MEM-001`: the key selects the region in the table of the index. `SES-MEM-005`: the error is BAD_MKEY.
    pub(super) fn region(&self, key: Key) -> Result<RegionId, Refusal> {
        let found = self.regions.get(&key.significant());
        found.copied().ok_or(Refusal::new(ReturnCode::BAD_MKEY, Why::NoKey(key.0)))
    }
}
