//! A swarm: many endpoints of the reference model on one bad network, drawn from one seed.
//!
//! A run draws groups of 2 to 16 endpoints with different configurations, links between them, operations, aborts,
//! closes, crashes, partitions and new keys. Then the faults stop. Every operation of a live endpoint must end, all
//! endpoints must still reach each other, and the network must come to rest.
//!
//! A shadow of memory, receives and completions judges the effects of all operations. `validate` and the passive judge of the
//! conformance suite judge every packet.

mod act;
mod end;
mod keys;
mod links;
mod plan;
mod shadow;
mod traffic;
mod watch;

use core::time::Duration;
use links::Links;
use plan::Plan;
use shadow::{End, SOURCE_BYTES, Shadow};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use traffic::{Step, Traffic};
use uet_emulator::Nic;
use uet_emulator::fault::Fault;
use uet_model::Time;
use uet_model::network::{Network, stream};
use uet_model::ses::{Access, Key, Process, Region, RegionId, ResourceIndex};
use watch::Watch;

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of operations of each endpoint.
    pub operations: usize,
    /// A deliberate fault of the first endpoint.
    pub fault: Option<&'static Fault>,
    /// True prints packets and decisions.
    pub prints: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { operations: 120, fault: None, prints: false }
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The number of endpoints.
    pub endpoints: usize,
    /// The number of operations that ended.
    pub operations: usize,
    /// The number of operations that failed, with permission.
    pub failed: usize,
    /// The number of packets sent.
    pub packets: u64,
    /// The number of restarts.
    pub restarts: usize,
    /// The first violation.
    pub failure: Option<String>,
}

const PROCESS: Process = Process::Relative { job: 101, pid: 2 };
const INDEX: ResourceIndex = ResourceIndex { process: PROCESS, index: 10 };
/// The index for datagrams.
const DATAGRAMS: ResourceIndex = ResourceIndex { process: PROCESS, index: 11 };
/// The writable regions: the second permits repeated operations.
const TARGETS: [Key; 2] = [Key(7), Key(9).idempotent()];
/// The region that peers read.
const SOURCE: Key = Key(8).idempotent();
/// The region of rendezvous sends. A read that is no part of a send must not touch it.
const SENDS: Key = Key(10);
/// The start of a run. Time zero means "never".
const START: Time = Time(1_000_000);
struct Run {
    plan: Plan,
    traffic: Traffic,
    shadow: Shadow,
    net: Network<Nic, Watch>,
    links: Arc<Mutex<Links>>,
    /// The end of all faults.
    calm: Time,
    restarts: usize,
}

/// Plays the run of a seed.
pub fn run(seed: u64, options: &Options) -> Outcome {
    let mut plan = Plan::draw(&mut stream(seed, 1 << 20));
    if options.prints {
        plan.members.iter_mut().for_each(|member| member.config.pds.event_capacity = 1 << 12);
    }
    let (calm, count) = (START + plan.span, plan.members.len());
    let traffic = Traffic::draw(&mut stream(seed, (1 << 20) + 1), &plan, START, options.operations);
    let addresses: Vec<_> = plan.members.iter().map(|member| member.address).collect();
    let mut links = Links::draw(stream(seed, (1 << 20) + 2), &addresses, START, calm);
    for outage in &traffic.outages {
        links.partition(outage.from, outage.to, 1 << outage.member);
    }
    let lenient = plan.lenient;
    let mut run = Run {
        shadow: Shadow::new(addresses, traffic.tasks.len(), lenient),
        plan,
        traffic,
        net: Network::new(seed),
        links: Arc::new(Mutex::new(links)),
        calm,
        restarts: 0,
    };
    let failure = run.play(options).err().map(|why| {
        let mut text = format!("at {} ns: {why}", run.net.now().0);
        let _ = write!(text, " (lenient: {lenient}, crashes: {})", run.plan.crashes);
        text
    });
    let ended = |wanted: fn(&End) -> bool| {
        (0..run.traffic.tasks.len()).filter(|number| wanted(run.shadow.end(*number))).count()
    };
    Outcome {
        seed,
        endpoints: count,
        operations: ended(|end| matches!(end, End::Done | End::Failed(_))),
        failed: ended(|end| matches!(end, End::Failed(_))),
        packets: run.net.observer.packets,
        restarts: run.restarts,
        failure,
    }
}

impl Run {
    fn play(&mut self, options: &Options) -> Result<(), String> {
        self.set_up(options)?;
        for (at, step) in core::mem::take(&mut self.traffic.steps) {
            self.advance(at)?;
            self.step(step)?;
        }
        self.advance(self.calm)?;
        self.finish()?;
        self.reach_all()?;
        self.finish()?;
        self.rest()?;
        self.check_received()?;
        (0..self.plan.members.len()).try_for_each(|member| self.check_memory(member))
    }

    fn set_up(&mut self, options: &Options) -> Result<(), String> {
        let links = self.links.clone();
        self.net.fabric().latency = Duration::from_nanos(100);
        self.net.fabric().rule(move |now, packet, treatment| {
            links.lock().unwrap_or_else(PoisonError::into_inner).treat(now, packet, treatment);
        });
        self.net.observer.prints = options.prints;
        for (number, member) in self.plan.members.iter().enumerate() {
            let nic = Nic::new(member.address, member.config.clone());
            let faults: Vec<_> = options.fault.filter(|_| number == 0).into_iter().collect();
            let nic = nic.and_then(|nic| if faults.is_empty() { Ok(nic) } else { nic.with_faults(&faults) });
            self.net.add(member.address, nic.map_err(|error| error.to_string())?);
        }
        let few = (0..self.plan.members.len()).filter(|member| self.plan.is_small(*member, *member));
        self.net.observer.unjudged.extend(few.map(|member| self.plan.members[member].address));
        self.net.advance(START);
        for group in 0..self.plan.groups.len() {
            self.keys(group, 0)?;
        }
        for number in 0..self.plan.members.len() {
            if let Some(key_file) = self.key_file(self.plan.members[number].group, 0, 0) {
                self.net.observer.protected.insert(self.plan.members[number].address);
                self.install(number, &key_file)?;
            }
            self.start(number)?;
        }
        Ok(())
    }

    /// Exposes the regions of an endpoint that has started.
    fn start(&mut self, member: usize) -> Result<(), String> {
        let [first, second, third] = self.traffic.lengths[member];
        let mut sends = vec![0; third.max(1) as usize];
        for (number, task) in self.traffic.tasks.iter().enumerate() {
            if task.from == member && task.is_rendezvous() {
                sends[task.offset as usize..][..task.length as usize]
                    .copy_from_slice(&shadow::data(task, number));
            }
        }
        let room = end::TRIES as u64 * 8 * self.plan.members.len() as u64;
        let region = |key, data| Region { key, base: 0, access: Access::ALL, data };
        let regions = [
            region(TARGETS[0], vec![0; (first + room) as usize]),
            region(TARGETS[1], vec![0; second.max(1) as usize]),
            region(SOURCE, SOURCE_BYTES.to_vec()),
            region(SENDS, sends),
        ];
        let nic = &mut self.net[member];
        let regions: Result<Vec<RegionId>, _> =
            regions.into_iter().map(|region| nic.expose(INDEX, region)).collect();
        self.shadow.starts(member, self.net.now(), regions.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Runs the network until this time, and judges completions and packets.
    fn advance(&mut self, until: Time) -> Result<(), String> {
        let Run { net, shadow, traffic, .. } = self;
        let failed = net.run_until(until, |net| {
            if let Some(failure) = net.observer.failure.take() {
                return Some(failure);
            }
            let now = net.now();
            for member in 0..net.nodes().len() {
                while let Some(completion) = net[member].poll_completion() {
                    let judged = shadow.completed(member, now, completion, &traffic.tasks, net.nodes());
                    if let Err(why) = judged {
                        return Some(format!("{}: {why}", net[member].address()));
                    }
                }
            }
            None
        });
        failed.map_or(Ok(()), Err)
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Post(number) => self.post(number)?,
            Step::Receive(number) => self.receive(number),
            Step::Abort(number) => self.abort(number),
            Step::Close(number) => {
                let task = self.traffic.tasks[number];
                let (now, route) = (self.net.now(), self.peer(&task).route);
                self.net[task.from].close(now, &route);
            }
            Step::Restart(member) => self.restart(member)?,
            Step::Offer(group, round) => self.keys(group, round)?,
            Step::Switch(member, round) => {
                let key_file = self.key_file(self.plan.members[member].group, round, round);
                key_file.map_or(Ok(()), |key_file| self.install(member, &key_file))?;
            }
        }
        Ok(())
    }

    /// Restarts an endpoint. Its applications post the receives of all messages that are still under way.
    fn restart(&mut self, member: usize) -> Result<(), String> {
        self.check_memory(member)?;
        let Plan { members, .. } = &self.plan;
        let mut config = members[member].config.clone();
        // Peers still use the PDCIDs of the last life. Over protected packets, even its PSNs may fit the next one.
        config.pds.first_pdcid += plan::PDCIDS * ((self.restarts % 3) as u16 + 1);
        self.net[member].restart(config).map_err(|error| error.to_string())?;
        self.net.observer.unjudged.insert(members[member].address);
        self.restarts += 1;
        self.start(member)?;
        self.receive_again(|task| task.to == member);
        Ok(())
    }

    fn check_memory(&self, member: usize) -> Result<(), String> {
        let checked = self.shadow.check_memory(member, &self.traffic, &self.net[member]);
        checked.map_err(|why| format!("{}: {why}", self.plan.members[member].address))
    }
}
