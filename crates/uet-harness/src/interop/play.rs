//! Plays a scenario: posts operations at one end and looks at both.

use super::end::{End, Obstacle};
use super::posted::{Place, Posted};
use super::scenario::{Course, MANY, Scenario, Size};
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;
use uet_control::{
    AddPeer, ClosePdc, Completion, Configure, Counters, ExposeRegion, Fill, Hex64, InstallKeys, Mode,
    Permission, Post, PostKind, PostReceive, ReadMemory, Received, Remote, RequestClose, Reset, Status,
};
use uet_emulator::relay::RelayClock;
use uet_packet_io::keys::domains_from_toml;

const INITIATOR: usize = 0;
const TARGET: usize = 1;

/// The target's process and index.
const PROCESS: u16 = 2;
const INDEX: u16 = 10;

/// The number of the first job.
const JOB: u32 = 101;

/// Unused bytes before and after each message in the target's memory.
const GUARD: u64 = 64;

/// The time for a message to arrive before the target posts its receive.
const LATE: Duration = Duration::from_millis(20);

/// Number of times that a restarted initiator sends its message.
const ATTEMPTS: usize = 3;

/// The source identifiers of both ends.
const SSI: [u32; 2] = [0x51, 0x52];

/// The time for contexts to close.
pub(super) const CLOSING: Duration = Duration::from_secs(2);

/// The memory of the target that belongs to a job, and the numbers of the peers.
#[derive(Debug)]
struct Job {
    number: u32,
    region: u64,
    key: Hex64,
    /// The bytes that the region must hold in the end.
    image: Vec<u8>,
    /// The target as a peer of the initiator, and the other way round.
    peers: [u64; 2],
}

/// A report of an end.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) is_well: bool,
    pub(super) text: String,
}

/// A scenario that is being played.
pub(super) struct Play<'a> {
    ends: &'a mut [End; 2],
    /// The address that both ends use as their peer.
    relay: SocketAddr,
    /// The clock of the captured packets.
    clock: RelayClock,
    scenario: Scenario,
    key_file: Option<&'a str>,
    /// The time that the operations may take, and its end.
    patience: Duration,
    until: Instant,
    length: u64,
    count: u64,
    /// The operations belong to this many jobs in turn.
    job_count: u32,
    jobs: Vec<Job>,
    /// The reports of each end.
    pub(super) readings: [Vec<Reading>; 2],
    /// The operations of the initiator.
    pub(super) posted: Posted,
}

impl<'a> Play<'a> {
    pub(super) fn new(
        ends: &'a mut [End; 2],
        (relay, clock): (SocketAddr, RelayClock),
        scenario: Scenario,
        key_file: Option<&'a str>,
        patience: Duration,
    ) -> Self {
        let mtu = ends[INITIATOR].payload_mtu().min(ends[TARGET].payload_mtu());
        let count = match (scenario.course(), scenario.size) {
            (Course::Reused, _) => 100,
            (Course::ManyContexts, _) => u64::from(MANY),
            (_, Size::Mebibyte) => 1,
            _ => 3,
        };
        let job_count = match scenario.course() {
            Course::TwoJobs => 2,
            Course::ManyContexts => MANY,
            _ => 1,
        };
        let initiator = ends[INITIATOR].place.ip();
        Play {
            ends,
            relay,
            clock,
            scenario,
            key_file,
            patience,
            until: Instant::now() + patience,
            length: scenario.length(mtu),
            count,
            job_count,
            jobs: Vec::new(),
            readings: Default::default(),
            posted: Posted {
                kind: scenario.kind(),
                initiator,
                mtu,
                data: Vec::new(),
                places: Vec::new(),
                ssis: BTreeMap::new(),
                begun: Duration::ZERO,
                ended: Duration::ZERO,
                restarted: None,
            },
        }
    }

    /// Plays the scenario.
    pub(super) fn run(&mut self) -> Result<(), Obstacle> {
        for end in [INITIATOR, TARGET] {
            self.configure(end)?;
        }
        (JOB..JOB + self.job_count).try_for_each(|job| self.open_job(job))?;
        // Many jobs take long to open on a busy machine.
        self.until = Instant::now() + self.patience;
        self.posted.begun = self.clock.now();
        match self.scenario.course() {
            Course::Plain | Course::TwoJobs | Course::LateReceive | Course::ManyContexts => {
                self.transfer(0..self.count)?;
            }
            Course::Reused => (0..self.count).try_for_each(|n| self.transfer(n..n + 1))?,
            Course::ClosedByInitiator => {
                for n in 0..self.count {
                    self.transfer(n..n + 1)?;
                    self.close(INITIATOR)?;
                }
            }
            Course::ClosedByTarget => {
                for n in 0..self.count {
                    self.transfer(n..n + 1)?;
                    self.request_close(n)?;
                }
            }
            Course::TargetRestarts => self.restart_target()?,
            Course::InitiatorRestarts => self.restart_initiator()?,
        }
        self.compare_memory()?;
        if self.scenario.course() == Course::Plain { self.leave_nothing_open() } else { Ok(()) }
    }

    fn configure(&mut self, end: usize) -> Result<(), Obstacle> {
        if let Some(key_file) = self.key_file {
            let mut domains =
                domains_from_toml(key_file).map_err(|error| Obstacle::Lacks(error.to_string()))?;
            for domain in domains.iter_mut().filter(|domain| domain.ssi) {
                domain.own_ssi = Some(SSI[end]);
                self.posted.ssis.insert(self.ends[end].place.ip(), SSI[end]);
            }
            self.ends[end].call(end, InstallKeys { domains })?;
        }
        let Some(algorithm) = self.scenario.congestion() else { return Ok(()) };
        let parameters = [("congestion".to_owned(), algorithm.into())].into();
        let configured = self.ends[end].call(end, Configure { parameters })?;
        match configured.refused.get("congestion") {
            None => Ok(()),
            Some(why) => Err(Obstacle::Lacks(format!("{}: congestion: {why}", self.ends[end].name))),
        }
    }

    /// Tells an end its peer.
    fn add_peer(&mut self, end: usize, job: u32) -> Result<u64, Obstacle> {
        // The other end: an initiator has process 1.
        let process = [PROCESS, 1][end];
        let port = Some(self.relay.port()).filter(|port| *port != self.ends[end].place.port());
        let peer = AddPeer { address: self.relay.ip(), port, job, process, initiator: 0 };
        Ok(self.ends[end].call(end, peer)?.peer)
    }

    /// Tells both ends their peer, and exposes memory of the target for this job.
    fn open_job(&mut self, job: u32) -> Result<(), Obstacle> {
        let peers = [self.add_peer(INITIATOR, job)?, self.add_peer(TARGET, job)?];
        let length = GUARD + self.count.div_ceil(self.job_count.into()) * (self.slot() + GUARD);
        // Only a key with the highest bit set permits idempotent operations without a context.
        let lone = u64::from(self.scenario.mode == Mode::Rudi) << 63;
        let key = Hex64(lone | (0x5ca1_0000 + u64::from(job)));
        let fill = Fill::Seed(job);
        let image = fill.bytes(length as usize);
        let region = ExposeRegion {
            length,
            key,
            job: Some(job),
            process: PROCESS,
            index: INDEX,
            generation: 0,
            permissions: vec![Permission::Read, Permission::Write, Permission::Atomic],
            fill: Some(fill),
        };
        let exposed = self.ends[TARGET].call(TARGET, region)?;
        let key = exposed.key.unwrap_or(key);
        self.jobs.push(Job { number: job, region: exposed.region, key, image, peers });
        Ok(())
    }

    /// Returns the bytes of memory for one operation, so that each begins at a multiple of eight.
    fn slot(&self) -> u64 {
        self.length.next_multiple_of(8)
    }

    fn offset(&self, n: u64) -> u64 {
        GUARD + n / u64::from(self.job_count) * (self.slot() + GUARD)
    }

    fn job(&self, n: u64) -> usize {
        n as usize % self.jobs.len()
    }

    /// Plays these operations at the same time. The target posts its receives first, unless the course says otherwise.
    fn transfer(&mut self, numbers: core::ops::Range<u64>) -> Result<(), Obstacle> {
        let late = self.scenario.course() == Course::LateReceive;
        let mut receives = Vec::new();
        if !late {
            receives = self.post_receives(numbers.clone())?;
        }
        let mut posted = Vec::new();
        for n in numbers.clone() {
            posted.push((n, self.post(n)?));
        }
        if late {
            self.wait_for_arrival(posted.len() as u64)?;
            receives = self.post_receives(numbers)?;
        }
        let mut wrong: Option<(Option<usize>, String)> = None;
        for (n, operation) in posted {
            let ended = self.wait(INITIATOR, operation)?;
            self.report_end(INITIATOR, format!("operation {}", n + 1), ended.as_ref());
            let expected = self.results(n);
            let ok = ended.as_ref().is_some_and(|ended| ended.status == Status::Ok);
            let data = ended.and_then(|ended| ended.data).map(|data| data.0);
            if !ok {
                wrong.get_or_insert((None, format!("operation {} does not end well", n + 1)));
            } else if let Some(expected) = expected.filter(|expected| data.as_ref() != Some(expected)) {
                let place = first_difference(&expected, data.as_deref().unwrap_or_default());
                self.report(INITIATOR, format!("operation {}: the result differs at byte {place}", n + 1));
                wrong.get_or_insert((
                    self.holder(INITIATOR),
                    format!("operation {} returns other bytes", n + 1),
                ));
            }
        }
        self.posted.ended = self.clock.now();
        let received = self.check_receives(receives)?;
        match wrong.or(received) {
            Some((holder, what)) => Err(Obstacle::Differ(holder, what)),
            None => Ok(()),
        }
    }

    /// Waits until an operation of an end has ended, but not after the scenario's time. Reads what the other end tells
    /// meanwhile: an implementation may stand still while nobody reads it.
    fn wait(&mut self, end: usize, operation: u64) -> Result<Option<Completion>, Obstacle> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let ended = self.ends[end].wait(end, operation, left)?;
            if ended.is_some() || left.is_zero() {
                return Ok(ended);
            }
            let other = 1 - end;
            if let Err(dead @ Obstacle::Dead(..)) = self.ends[other].call(other, Counters {}) {
                return Err(dead);
            }
        }
    }

    /// Notes what is wrong at an end.
    fn report(&mut self, end: usize, text: String) {
        self.readings[end].push(Reading { is_well: false, text });
    }

    /// Notes how an operation or a receive has ended.
    fn report_end(&mut self, end: usize, what: String, ended: Option<&Completion>) {
        let is_well = ended.is_some_and(|ended| ended.status == Status::Ok);
        self.readings[end].push(Reading { is_well, text: format!("{what}: {}", ending(ended)) });
    }

    /// Returns the end that is to blame if it holds other bytes than the packets carried. Atomics depend on the order of
    /// bytes, which the ends may choose.
    fn holder(&self, end: usize) -> Option<usize> {
        (!matches!(self.scenario.kind(), PostKind::Atomic | PostKind::FetchAtomic)).then_some(end)
    }

    /// Waits until the target has received this many packets, or for a time if it has no counters.
    fn wait_for_arrival(&mut self, packets: u64) -> Result<(), Obstacle> {
        let until = Instant::now() + CLOSING;
        while Instant::now() < until {
            std::thread::sleep(LATE);
            match self.ends[TARGET].call(TARGET, Counters {}) {
                Err(Obstacle::Lacks(_)) => break,
                counted if counted.as_ref().is_ok_and(|counted| counted.received >= packets) => break,
                counted => drop(counted?),
            }
        }
        Ok(())
    }

    fn post_receives(&mut self, numbers: core::ops::Range<u64>) -> Result<Vec<(u64, Received)>, Obstacle> {
        let mut receives = Vec::new();
        for n in numbers.filter(|_| self.scenario.receives()) {
            let receive = PostReceive {
                length: self.length.max(8),
                job: Some(self.jobs[self.job(n)].number),
                process: PROCESS,
                index: INDEX,
                tag: self.tag(n),
                ignore: Hex64(0),
                initiator: None,
            };
            receives.push((n, self.ends[TARGET].call(TARGET, receive)?));
        }
        Ok(receives)
    }

    fn tag(&self, n: u64) -> Option<Hex64> {
        (self.scenario.kind() == PostKind::Tsend).then_some(Hex64(0x7a67_0000 + n))
    }

    fn post(&mut self, n: u64) -> Result<u64, Obstacle> {
        let job = self.job(n);
        let fill = Fill::Seed(1000 + n as u32);
        let data = fill.bytes(self.length as usize);
        let (kind, offset) = (self.scenario.kind(), self.offset(n));
        let on_memory = !self.scenario.receives();
        let remote = match on_memory {
            true => {
                Remote { key: self.jobs[job].key, offset: Hex64(offset), index: INDEX, ..Remote::default() }
            }
            false => Remote { index: INDEX, ..Remote::default() },
        };
        let sum = matches!(kind, PostKind::Atomic | PostKind::FetchAtomic);
        let post = Post {
            mode: self.scenario.mode,
            fill: (kind != PostKind::Read).then_some(fill),
            remote,
            tag: self.tag(n),
            want_data: matches!(kind, PostKind::Read | PostKind::FetchAtomic),
            atomic_opcode: sum.then(|| "SUM".to_owned()),
            atomic_datatype: sum.then(|| "UINT64".to_owned()),
            ..Post::new(kind, self.jobs[job].peers[INITIATOR], self.length)
        };
        let operation = self.ends[INITIATOR].call(INITIATOR, post)?.operation;
        let place = offset as usize..(offset + self.length) as usize;
        match kind {
            PostKind::Write => self.jobs[job].image[place].copy_from_slice(&data),
            PostKind::Atomic | PostKind::FetchAtomic => {
                let big = [INITIATOR, TARGET].map(|end| self.ends[end].word("byte_order", "little") == "big");
                let memory = &mut self.jobs[job].image[place];
                for (old, operand) in memory.chunks_mut(8).zip(data.chunks(8)) {
                    let sum = element(old, big[TARGET]).wrapping_add(element(operand, big[INITIATOR]));
                    old.copy_from_slice(&if big[TARGET] { sum.to_be_bytes() } else { sum.to_le_bytes() });
                }
            }
            _ => {}
        }
        let before = self.initial(n);
        self.posted.data.push(if kind == PostKind::Read { before.clone() } else { data });
        let (job, key) = (self.jobs[job].number, self.jobs[job].key.0);
        self.posted.places.push(Place { job, process: PROCESS, index: INDEX, key, offset, before });
        Ok(operation)
    }

    /// Returns what memory held at the place of an operation in the beginning.
    fn initial(&self, n: u64) -> Vec<u8> {
        let fill = Fill::Seed(self.jobs[self.job(n)].number);
        fill.part(self.offset(n) as usize, self.length as usize)
    }

    /// Returns the bytes that an operation returns; `None` if it returns none.
    fn results(&self, n: u64) -> Option<Vec<u8>> {
        let same_order = self.ends[INITIATOR].word("byte_order", "little")
            == self.ends[TARGET].word("byte_order", "little");
        match self.scenario.kind() {
            PostKind::Read => Some(self.initial(n)),
            PostKind::FetchAtomic if same_order => Some(self.initial(n)),
            PostKind::FetchAtomic => {
                Some(self.initial(n).chunks(8).flat_map(|element| element.iter().rev().copied()).collect())
            }
            _ => None,
        }
    }

    /// Checks receives and their buffers. Untagged messages may arrive in any order.
    fn check_receives(
        &mut self,
        receives: Vec<(u64, Received)>,
    ) -> Result<Option<(Option<usize>, String)>, Obstacle> {
        let mut wrong = None;
        let mut open: Vec<(u64, Vec<u8>)> = receives
            .iter()
            .map(|(n, _)| (*n, Fill::Seed(1000 + *n as u32).bytes(self.length as usize)))
            .collect();
        for (n, receive) in receives {
            let ended = self.wait(TARGET, receive.operation)?;
            self.report_end(TARGET, format!("receive {}", n + 1), ended.as_ref());
            let Some(ended) = ended.filter(|ended| ended.status == Status::Ok) else {
                wrong.get_or_insert((None, format!("receive {} does not end well", n + 1)));
                continue;
            };
            let length = ended.length;
            let held = match self.length {
                0 => Vec::new(),
                length => {
                    let read = ReadMemory { region: receive.region, offset: 0, length };
                    self.ends[TARGET].call(TARGET, read)?.data.0
                }
            };
            let fits = |(number, data): &(u64, Vec<u8>)| {
                *data == held && (self.scenario.kind() != PostKind::Tsend || *number == n)
            };
            let there = open.iter().position(fits);
            if length != self.length || there.is_none() {
                self.report(TARGET, format!("receive {}: {length} bytes, which nobody sent", n + 1));
                // A message of several packets may have a name that its sender has given to two.
                let lone = self.scenario.size != Size::Packets && self.scenario.size != Size::Mebibyte;
                wrong.get_or_insert((lone.then_some(TARGET), format!("receive {} holds other bytes", n + 1)));
            }
            there.into_iter().for_each(|place| drop(open.remove(place)));
        }
        Ok(wrong)
    }

    fn compare_memory(&mut self) -> Result<(), Obstacle> {
        for job in &self.jobs {
            let read = ReadMemory { region: job.region, offset: 0, length: job.image.len() as u64 };
            let held = self.ends[TARGET].call(TARGET, read)?.data.0;
            if held != job.image {
                let place = first_difference(&job.image, &held);
                let text = format!("memory of job {}: other bytes from {place} on", job.number);
                self.readings[TARGET].push(Reading { is_well: false, text });
                let what = format!(
                    "the memory of job {} differs from what was written, from byte {place} on",
                    job.number
                );
                return Err(Obstacle::Differ(self.holder(TARGET), what));
            }
        }
        Ok(())
    }

    /// Has an end close its own context to the other.
    fn close(&mut self, by: usize) -> Result<(), Obstacle> {
        let peer = self.jobs[0].peers[by];
        let close = ClosePdc { peer, mode: self.scenario.mode, class: 0 };
        match self.ends[by].call(by, close) {
            // There may be none, or none any longer.
            Err(Obstacle::Refused(..)) => Ok(()),
            closed => closed.map(drop),
        }
    }

    /// Has the target ask for the close of the context of the `n`-th operation.
    fn request_close(&mut self, n: u64) -> Result<(), Obstacle> {
        let peer = self.jobs[0].peers[TARGET];
        let close = RequestClose { peer, mode: self.scenario.mode, class: 0 };
        match self.ends[TARGET].call(TARGET, close) {
            // A later operation may have used a context that is closed by now, because the target asked before.
            Err(Obstacle::Refused(_, why)) if n == 0 && !self.has_no_context(TARGET)? => {
                Err(Obstacle::Differ(None, format!("the target does not ask for the close: {why}")))
            }
            Err(Obstacle::Refused(..)) => Ok(()),
            asked => asked.map(drop),
        }
    }

    /// Returns whether an end says that it has no context. Nothing keeps it from closing early.
    fn has_no_context(&mut self, end: usize) -> Result<bool, Obstacle> {
        match self.ends[end].call(end, Counters {}) {
            Ok(counted) => Ok(counted.pdcs == 0),
            Err(Obstacle::Refused(..)) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Lets an end forget everything.
    fn reset(&mut self, end: usize) -> Result<(), Obstacle> {
        self.posted.restarted = Some(self.clock.now());
        self.ends[end].call(end, Reset {})?;
        self.configure(end)
    }

    /// Lets the target forget everything while a message arrives. The operation ends, well or not. If it ended before
    /// that, the next one finds out, and may fail.
    fn restart_target(&mut self) -> Result<(), Obstacle> {
        let operation = self.post(0)?;
        std::thread::sleep(Duration::from_millis(2));
        self.reset(TARGET)?;
        self.jobs.clear();
        self.open_job(JOB)?;
        let ended = self.wait(INITIATOR, operation)?;
        self.report_end(INITIATOR, "interrupted operation".into(), ended.as_ref());
        if ended.is_none() {
            return Err(Obstacle::Differ(None, "the interrupted operation does not end".into()));
        }
        self.transfer_at_last()
    }

    /// Lets the initiator forget everything while its message leaves. It sends the message again. The target may hold the
    /// old context under the same identifiers and refuse the new one, but not every time.
    fn restart_initiator(&mut self) -> Result<(), Obstacle> {
        self.post(0)?;
        std::thread::sleep(Duration::from_millis(2));
        self.reset(INITIATOR)?;
        self.jobs[0].peers[INITIATOR] = self.add_peer(INITIATOR, JOB)?;
        self.transfer_at_last()
    }

    /// Sends a message until one arrives.
    fn transfer_at_last(&mut self) -> Result<(), Obstacle> {
        for _ in 1..ATTEMPTS {
            // Late packets of an earlier operation may write before the new context is there.
            self.posted.data.clear();
            match self.transfer(0..1) {
                Err(Obstacle::Differ(..)) => self.readings = Default::default(),
                ended => return ended,
            }
        }
        self.posted.data.clear();
        self.transfer(0..1)
    }

    /// Closes the context, and waits until neither end counts one.
    fn leave_nothing_open(&mut self) -> Result<(), Obstacle> {
        let closable =
            matches!(self.scenario.mode, Mode::Rud | Mode::Rod) && self.ends[INITIATOR].claims("close");
        if !closable {
            return Ok(());
        }
        self.close(INITIATOR)?;
        // A rendezvous has opened one the other way round.
        if self.ends[TARGET].claims("close") {
            self.close(TARGET)?;
        }
        let until = Instant::now() + CLOSING;
        for end in [INITIATOR, TARGET] {
            loop {
                let counted = match self.ends[end].call(end, Counters {}) {
                    Err(Obstacle::Lacks(_)) => break,
                    counted => counted?,
                };
                if counted.pdcs == 0 {
                    break;
                }
                if Instant::now() >= until {
                    let who = ["initiator", "target"][end];
                    self.report(end, format!("{} contexts open after the close", counted.pdcs));
                    return Err(Obstacle::Open(end, format!("the {who} keeps a context that was closed")));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }
}

fn element(bytes: &[u8], big: bool) -> u64 {
    let bytes = bytes.try_into().unwrap_or_default();
    if big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
}

fn ending(completion: Option<&Completion>) -> String {
    match completion {
        None => "has not ended".into(),
        Some(Completion { status: Status::Ok, length, .. }) => format!("ok, {length} bytes"),
        Some(Completion { status, return_code, message, .. }) => {
            let code = return_code.as_deref().unwrap_or_default();
            format!("{status:?} {code} {message}").trim_end().to_lowercase()
        }
    }
}

fn first_difference(expected: &[u8], held: &[u8]) -> usize {
    let same = expected.iter().zip(held).position(|(expected, held)| expected != held);
    same.unwrap_or(expected.len().min(held.len()))
}
