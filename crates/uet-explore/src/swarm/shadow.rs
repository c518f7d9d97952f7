//! Knows what each operation may do to memory and receives, and judges what happened.

use super::links::LIFETIME;
use super::traffic::{COUNTER, SOURCE, Task, Traffic};
use bytes::Bytes;
use core::net::IpAddr;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use uet_conformance::draw::PostKind;
use uet_emulator::Nic;
use uet_model::ses::{Completion, Done, OperationError, OperationId, Received, RegionId};
use uet_model::{Failure, Mode, Time};
use uet_wire::registry::ReturnCode;

/// The state of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is not posted.
    Waiting,
    /// It is posted.
    Active,
    /// It succeeded.
    Done,
    /// It failed.
    Failed(OperationError),
    /// Its initiator crashed, or did not take it.
    Gone,
}

/// The known facts about a task.
#[derive(Clone, Debug)]
struct Record {
    id: Option<OperationId>,
    end: End,
    /// When it ended, or its initiator crashed.
    ended: Time,
    /// The life of the target in which it was posted, and that in which it ended.
    posted_in: u32,
    ended_in: u32,
    aborted: bool,
    /// The number of tasks posted before it.
    turn: usize,
}

/// The present life of an endpoint: from its start to its next crash.
#[derive(Debug, Default)]
struct Life {
    number: u32,
    since: Time,
    regions: Vec<RegionId>,
    /// The old values that additions fetched.
    fetched: HashSet<u64>,
    /// The turn of the last ordered send that was received, for each initiator, class and context.
    ordered: HashMap<(usize, u8, u32), usize>,
}

/// The truth about all tasks.
pub(super) struct Shadow {
    pub(super) addresses: Vec<IpAddr>,
    /// True if correct endpoints may give up.
    lenient: bool,
    records: Vec<Record>,
    active: Vec<HashMap<OperationId, usize>>,
    lives: Vec<Life>,
    /// The messages that were received, with the life of the receiver.
    received: HashSet<(usize, u32)>,
    turns: usize,
}

/// The bytes that peers read: each 8 bytes tell their own position.
pub(super) static SOURCE_BYTES: LazyLock<Bytes> = LazyLock::new(|| {
    (0..SOURCE / 8).flat_map(|word| (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).to_le_bytes()).collect()
});

/// Returns the data of a write or send: no byte is 0, and the first 8 bytes of a send are its number.
pub(super) fn data(task: &Task, number: usize) -> Vec<u8> {
    let mut data = vec![0; task.length as usize];
    fastrand::Rng::with_seed(number as u64).fill(&mut data);
    data.iter_mut().for_each(|byte| *byte |= 1);
    if task.kind != PostKind::Write
        && let Some(start) = data.first_chunk_mut()
    {
        *start = (number as u64).to_le_bytes();
    }
    data
}

impl Shadow {
    pub(super) fn new(addresses: Vec<IpAddr>, tasks: usize, lenient: bool) -> Self {
        let record = Record {
            id: None,
            end: End::Waiting,
            ended: Time::ZERO,
            posted_in: 0,
            ended_in: 0,
            aborted: false,
            turn: 0,
        };
        let count = addresses.len();
        Shadow {
            addresses,
            lenient,
            records: vec![record; tasks],
            active: vec![HashMap::new(); count],
            lives: (0..count).map(|_| Life::default()).collect(),
            received: HashSet::new(),
            turns: 0,
        }
    }

    /// Starts the next life of an endpoint, with these regions. Its own tasks are gone.
    pub(super) fn starts(&mut self, member: usize, now: Time, regions: Vec<RegionId>) {
        for (_, task) in self.active[member].drain() {
            (self.records[task].end, self.records[task].ended) = (End::Gone, now);
        }
        let number = self.lives[member].number + 1;
        self.lives[member] = Life { number, since: now, regions, ..Life::default() };
    }

    /// Returns the regions of an endpoint.
    pub(super) fn regions(&self, member: usize) -> &[RegionId] {
        &self.lives[member].regions
    }

    /// Records a task that its initiator posted, or refused.
    pub(super) fn posted(&mut self, number: usize, task: &Task, id: Option<OperationId>, now: Time) {
        let record = &mut self.records[number];
        self.turns += 1;
        (record.id, record.turn) = (id, self.turns);
        record.posted_in = self.lives[task.to].number;
        match id {
            Some(id) => {
                record.end = End::Active;
                self.active[task.from].insert(id, number);
            }
            None => (record.end, record.ended) = (End::Gone, now),
        }
    }

    /// Adds the record of a further task.
    pub(super) fn add(&mut self) {
        if let Some(first) = self.records.first().cloned() {
            self.records.push(Record { id: None, end: End::Waiting, aborted: false, ..first });
        }
    }

    /// Returns the identifier of an active task, which its initiator is about to abort.
    pub(super) fn abort(&mut self, number: usize) -> Option<OperationId> {
        let record = &mut self.records[number];
        (record.end == End::Active).then(|| record.aborted = true)?;
        record.id
    }

    pub(super) fn end(&self, number: usize) -> &End {
        &self.records[number].end
    }

    /// Returns the tasks that have not ended.
    pub(super) fn active(&self) -> impl Iterator<Item = usize> {
        self.active.iter().flat_map(|active| active.values().copied())
    }

    /// Returns the messages that succeeded and were not received.
    pub(super) fn unreceived(&self, tasks: &[Task]) -> Vec<usize> {
        let missing = |(number, (task, record)): (usize, (&Task, &Record))| {
            let life = self.lives[task.to].number;
            let is_certain = record.end == End::Done && (record.posted_in, record.ended_in) == (life, life);
            let missing = is_certain && task.is_message() && !self.received.contains(&(number, life));
            missing.then_some(number)
        };
        tasks.iter().zip(&self.records).enumerate().filter_map(missing).collect()
    }

    /// Returns whether an endpoint has crashed.
    pub(super) fn has_crashed(&self, member: usize) -> bool {
        self.lives[member].number > 1
    }

    fn may_fail(&self, task: &Task, record: &Record) -> bool {
        self.lenient || record.aborted || self.has_crashed(task.from) || self.has_crashed(task.to)
    }

    /// Judges a completion of an endpoint.
    pub(super) fn completed(
        &mut self,
        member: usize,
        now: Time,
        completion: Completion,
        tasks: &[Task],
        nics: &[Nic],
    ) -> Result<(), String> {
        match completion {
            Completion::Operation { id, result } => {
                let Some(number) = self.active[member].remove(&id) else {
                    return Err(format!("{id} completed twice, or is unknown"));
                };
                let task = &tasks[number];
                let failed = self.ended(number, now, task, result, nics);
                failed.map_err(|why| format!("operation {number} {task:?} {why}"))
            }
            Completion::Received(received) => self.receive(member, &received, tasks),
            Completion::Written(written) => {
                let task = usize::try_from(written.header_data).ok().and_then(|number| tasks.get(number));
                match task {
                    Some(task) if task.named && (task.kind, task.to) == (PostKind::Write, member) => Ok(()),
                    _ => Err(format!("a write reports header data that nobody sent: {written:?}")),
                }
            }
        }
    }

    fn ended(
        &mut self,
        number: usize,
        now: Time,
        task: &Task,
        result: Result<Done, OperationError>,
        nics: &[Nic],
    ) -> Result<(), String> {
        let life = &mut self.lives[task.to];
        let record = &mut self.records[number];
        (record.ended, record.ended_in) = (now, life.number);
        let done = match result {
            Ok(done) => done,
            Err(error) => {
                record.end = End::Failed(error);
                // A peer that has all the data may close the context before its last ACK arrives: `PDS-CLOSE-005`.
                let is_read_out =
                    task.is_rendezvous() && matches!(error.why, Some(Failure::Closed | Failure::Ended(_)));
                let record = &self.records[number];
                let is_undelivered = error.code == ReturnCode::UNDELIVERABLE && self.may_fail(task, record);
                let is_aborted = error.code == ReturnCode::CANCELLED && record.aborted;
                return match is_read_out || is_undelivered || is_aborted {
                    true => Ok(()),
                    false => Err(format!("failed: {error}")),
                };
            }
        };
        record.end = End::Done;
        let lives_on = record.posted_in == record.ended_in;
        match task.kind {
            PostKind::Read
                if done.data[..] != SOURCE_BYTES[task.offset as usize..][..task.length as usize] =>
            {
                Err("read wrong data".into())
            }
            PostKind::FetchAtomic => {
                let old = done.data[..].try_into().map(u64::from_le_bytes);
                let old = old.map_err(|_| format!("fetched {} bytes", done.data.len()))?;
                match lives_on && !life.fetched.insert(old) {
                    true => Err(format!("fetched {old}, like another addition")),
                    false => Ok(()),
                }
            }
            PostKind::Write if lives_on => {
                let region = life.regions[usize::from(task.mode == Mode::Rudi)];
                let memory = nics[task.to].memory(region).unwrap_or_default();
                match memory[task.offset as usize..][..task.length as usize] == data(task, number) {
                    true => Ok(()),
                    false => Err("completed before its data was visible".into()),
                }
            }
            _ => Ok(()),
        }
    }

    fn receive(&mut self, member: usize, received: &Received, tasks: &[Task]) -> Result<(), String> {
        if received.code != ReturnCode::OK {
            // The sender gave up, was aborted or crashed.
            let told = received.header_data.and_then(|number| usize::try_from(number).ok());
            let may = told.is_none_or(|number| {
                tasks.get(number).is_some_and(|task| self.may_fail(task, &self.records[number]))
            });
            return match may {
                true => Ok(()),
                false => Err(format!("a receive ended with {}: {received:?}", received.code)),
            };
        }
        let start = received.data.first_chunk().copied().map(u64::from_le_bytes);
        let number = received.header_data.or(start).and_then(|number| usize::try_from(number).ok());
        let known = number.and_then(|number| Some((number, tasks.get(number)?)));
        let Some((number, task)) = known else {
            return Err(format!("received a message that nobody sent: {received:?}"));
        };
        let life = &mut self.lives[member];
        let is_right = task.to == member
            && received.sender.from == self.addresses[task.from]
            && (task.is_message() || task.kind == PostKind::Datagram)
            && received.data == data(task, number)
            && received.header_data == task.named.then_some(number as u64);
        if !is_right {
            return Err(format!("received a wrong message {number} {task:?}: {received:?}"));
        }
        if task.kind == PostKind::Datagram {
            return Ok(());
        }
        if !self.received.insert((number, life.number)) {
            return Err(format!("received message {number} twice: {task:?}"));
        }
        if task.kind == PostKind::Send && task.mode == Mode::Rod {
            let queue = (task.from, task.class, task.context);
            let turn = self.records[number].turn;
            let last = life.ordered.insert(queue, turn).unwrap_or_default();
            if last > turn && !self.has_crashed(task.from) {
                return Err(format!("received message {number} late, out of order: {task:?}"));
            }
        }
        Ok(())
    }

    /// Judges the memory of an endpoint: each byte was written by an operation of this life, and each successful
    /// operation is visible.
    pub(super) fn check_memory(&self, member: usize, traffic: &Traffic, nic: &Nic) -> Result<(), String> {
        let life = &self.lives[member];
        let mut memory: Vec<Vec<u8>> = life
            .regions
            .iter()
            .take(2)
            .map(|region| nic.memory(*region).unwrap_or_default().to_vec())
            .collect();
        let (mut fewest, mut most) = (0, 0);
        let to_member = traffic.tasks.iter().zip(&self.records).enumerate();
        for (number, (task, record)) in to_member.filter(|(_, (task, _))| task.to == member) {
            let is_certain =
                record.end == End::Done && (record.posted_in, record.ended_in) == (life.number, life.number);
            match task.kind {
                PostKind::Atomic | PostKind::FetchAtomic => {
                    let over = matches!(record.end, End::Done | End::Failed(_) | End::Gone)
                        && record.ended + LIFETIME < life.since;
                    fewest += u64::from(is_certain);
                    most += u64::from(record.end != End::Waiting && !over);
                }
                PostKind::Write => {
                    let region = &mut memory[usize::from(task.mode == Mode::Rudi)];
                    let place = &mut region[task.offset as usize..][..task.length as usize];
                    let expected = data(task, number);
                    let may = |(is, may): (&u8, &u8)| is == may || *is == 0 && !is_certain;
                    if !place.iter().zip(&expected).all(may) {
                        return Err(format!("memory is wrong for write {number} {task:?}, {record:?}"));
                    }
                    place.fill(0);
                }
                _ => {}
            }
        }
        let Some((counter, rest)) = memory[0].split_first_chunk::<COUNTER>() else { return Ok(()) };
        let counter = u64::from_le_bytes(*counter);
        if !(fewest..=most).contains(&counter) {
            return Err(format!("the counter is {counter}, not from {fewest} to {most}"));
        }
        match rest.iter().chain(&memory[1]).any(|byte| *byte != 0) {
            true => Err("memory that no operation wrote has changed".into()),
            false => Ok(()),
        }
    }
}
