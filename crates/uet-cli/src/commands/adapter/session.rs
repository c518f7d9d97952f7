//! A provider as the device of a control channel.

use super::address::{Field, Format};
use super::convert::{self, Running, refusal, unsupported};
use super::{LibfabricAdapter as Options, complain};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};
use uet_control::{
    AddPeer, Answer, Completion, Done, ErrorCode, Event, ExposeRegion, Hex, Hex64, Link, Memory, Op,
    Operated, Peer, Permission, Post, PostReceive, ReadMemory, Received, Refusal, Region, Request,
    WaitCompletion, Welcome,
};
use uet_fabric::{Code, Error, Name, Settings, flags};
use uet_fi::caller::{AddressFormat, Device, Libfabric, Offer, Wishes};

/// The longest time that a closed domain may keep its port.
const CLOSING: Duration = Duration::from_secs(2);

/// The pause between two looks for a completion.
const NAP: Duration = Duration::from_micros(50);

/// The most bytes of a region, a message or a receive.
const LONGEST: u64 = 16 << 20;

/// The most bytes of all that together, and the most peers, regions and operations, between two resets.
const MOST: u64 = 256 << 20;
const MANY: u64 = 1 << 16;

/// The most unread events.
const EVENTS: usize = 4096;

type Answered<T> = Result<T, Refusal>;

/// A provider, opened, with everything that the suite has asked for.
pub(super) struct Session {
    offer: Offer,
    /// The offer of an endpoint that sends in order.
    ordered: Option<Offer>,
    /// Absent only if the provider cannot be opened again.
    device: Option<Device>,
    format: Format,
    /// The place of the endpoint.
    own: Name,
    /// The address and the name in `own`, as far as they could be read.
    read: Option<(SocketAddr, Option<Name>)>,
    welcome: Welcome,
    peers: Vec<AddPeer>,
    /// The number of bytes, and of peers, regions and operations, since the last reset.
    used: (u64, u64),
    /// The numbers of addresses in the address vector.
    inserted: BTreeMap<Vec<u8>, u64>,
    running: BTreeMap<u64, Running>,
    ended: BTreeMap<u64, Completion>,
    /// The buffers of completed receives, by operation.
    received: BTreeMap<u64, Vec<u8>>,
    events: VecDeque<Event>,
}

impl Session {
    /// Loads libfabric and opens the provider.
    pub(super) fn open(options: &Options, parameters: BTreeMap<String, Value>) -> io::Result<Self> {
        let library = Libfabric::load().map_err(io::Error::other)?;
        let wishes = |ordered, domain| Wishes {
            provider: options.provider.clone(),
            domain,
            ordered,
            // Two endpoints of some providers cannot share a port.
            source: options.source.map(|at| SocketAddr::new(at.ip(), if ordered { 0 } else { at.port() })),
        };
        let offer = library.find(&wishes(false, options.domain.clone())).map_err(io::Error::other)?;
        // A provider without ordered endpoints still has the other one.
        let ordered = library.find(&wishes(true, Some(offer.domain()))).ok();
        let device = Device::open(&offer, ordered.as_ref()).map_err(io::Error::other)?;
        let format = options.address_format.clone().unwrap_or_else(|| Format::of(offer.address_format()));
        let read = format.read(&device.name().map_err(io::Error::other)?);
        let link = options.link.clone().or(read.map(|(at, _)| Link::Udp { addr: at.ip(), port: at.port() }));
        let link = link.ok_or_else(|| {
            io::Error::other("the name of the endpoint does not tell its address: name it with --link")
        })?;
        let Options { job, process, index, .. } = *options;
        let at = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let assumed = Name { address: at, job, pid: process, index, generation: 0 };
        let own = read.and_then(|(_, name)| name).unwrap_or(assumed);
        if (own.job, own.pid, own.index) != (101, 2, 10) {
            complain(format_args!(
                "warning: the endpoint has job {}, PIDonFEP {} and index {}; most rules need job 101, PIDonFEP 2 and \
                 index 10. For the provider uet, set FI_UET_JOB=101 FI_UET_PID=2 FI_UET_INDEX=10",
                own.job, own.pid, own.index
            ));
        }
        let welcome = welcome(options, &offer, device.has_ordered(), link, parameters)?;
        Ok(Session {
            offer,
            ordered,
            device: Some(device),
            format,
            own,
            read,
            welcome,
            peers: Vec::new(),
            used: (0, 0),
            inserted: BTreeMap::new(),
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            received: BTreeMap::new(),
            events: VecDeque::new(),
        })
    }

    /// Returns the link of the endpoint.
    pub(super) fn link(&self) -> &Link {
        &self.welcome.link
    }

    /// Returns the oldest event that the suite has not got.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Answers a line of the control channel.
    pub(super) fn handle_line(&mut self, line: &str) -> Answer {
        let request = match Request::parse(line) {
            Ok(request) => request,
            Err(error) => return Request::refuse(line, &error),
        };
        let id = request.id;
        self.handle(id, request.op).unwrap_or_else(|refusal| Answer::error(id, refusal.code, refusal.message))
    }

    fn handle(&mut self, id: u64, op: Op) -> Answered<Answer> {
        self.collect();
        let done = Done {};
        Ok(match op {
            Op::Hello(_) => Answer::ok(id, &self.welcome),
            Op::Reset(_) => {
                self.reset()?;
                Answer::ok(id, &done)
            }
            Op::AddPeer(peer) => {
                if peer.initiator != 0 {
                    return Err(unsupported("libfabric does not set the field initiator"));
                }
                self.take(0)?;
                self.peers.push(peer);
                Answer::ok(id, &Peer { peer: self.peers.len() as u64 })
            }
            Op::ExposeRegion(region) => Answer::ok(id, &self.expose(region)?),
            Op::ReadMemory(piece) => Answer::ok(id, &self.read(&piece)?),
            Op::Post(post) => Answer::ok(id, &self.post(post)?),
            Op::PostReceive(receive) => Answer::ok(id, &self.post_receive(&receive)?),
            Op::WaitCompletion(wait) => Answer::ok(id, &self.wait(wait)?),
            Op::Bye(_) => Answer::ok(id, &done),
            Op::Counters(_) => return Err(unsupported("libfabric does not count packets and contexts")),
            Op::Configure(_)
            | Op::SetIndices(_)
            | Op::InstallKeys(_)
            | Op::ClosePdc(_)
            | Op::RequestClose(_) => return Err(unsupported("libfabric has no such call")),
            Op::Now(_) | Op::Advance(_) => return Err(unsupported("the NIC runs in real time")),
        })
    }

    fn device(&mut self) -> Answered<&mut Device> {
        self.device.as_mut().ok_or_else(|| refusal(ErrorCode::Internal, "the provider is closed"))
    }

    /// Closes everything and opens the provider again.
    pub(super) fn reset(&mut self) -> Answered<()> {
        self.device = None;
        self.peers.clear();
        self.used = (0, 0);
        self.inserted.clear();
        self.running.clear();
        self.ended.clear();
        self.received.clear();
        self.events.clear();
        let begun = Instant::now();
        loop {
            match Device::open(&self.offer, self.ordered.as_ref()) {
                Ok(device) if device.name().is_ok_and(|name| self.format.read(&name) == self.read) => {
                    self.device = Some(device);
                    return Ok(());
                }
                // The provider's threads may hold the port for a moment.
                Ok(_) if begun.elapsed() < CLOSING => {}
                Err(error) if error.code == Code::EADDRINUSE && begun.elapsed() < CLOSING => {}
                Ok(_) => {
                    let message = "after a reset, the endpoint has another address; give the provider a fixed one, for example with --source";
                    return Err(refusal(ErrorCode::Internal, message));
                }
                Err(error) => return Err(refusal(ErrorCode::Internal, error.to_string())),
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets the provider make progress, and collects completions.
    pub(super) fn collect(&mut self) {
        loop {
            let finished = match self.device.as_mut().map(Device::poll) {
                Some(Ok(Some(finished))) => finished,
                Some(Ok(None)) | None => return,
                Some(Err(error)) => {
                    complain(format_args!("the completion queue failed: {error}"));
                    self.device = None;
                    return;
                }
            };
            let Some(running) = self.running.remove(&finished.number) else { continue };
            let completion = convert::completion(&finished, &running);
            if running.is_receive {
                self.received.insert(finished.number, finished.bytes.unwrap_or_default());
            }
            if self.events.len() >= EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(Event::Completion(Completion { data: None, ..completion.clone() }));
            self.ended.insert(finished.number, completion);
        }
    }

    /// Counts one more peer, region or operation with this many bytes. The suite is trusted with no more than the limits.
    fn take(&mut self, length: u64) -> Answered<usize> {
        let (bytes, number) = self.used;
        let fits = usize::try_from(length).ok().filter(|_| length <= LONGEST);
        let fits = fits.filter(|_| bytes + length <= MOST && number < MANY);
        self.used = (bytes + if fits.is_some() { length } else { 0 }, number + u64::from(fits.is_some()));
        fits.ok_or_else(|| {
            let message = format!(
                "at most {LONGEST} bytes at once, {MOST} bytes and {MANY} peers, regions and operations until a reset"
            );
            refusal(ErrorCode::Exhausted, message)
        })
    }

    fn expose(&mut self, region: ExposeRegion) -> Answered<Region> {
        self.is_own(region.job, region.process, region.index)?;
        if region.generation != self.own.generation {
            return Err(unsupported(format!("the endpoint has the generation {}", self.own.generation)));
        }
        let permits = |wanted| region.permissions.contains(&wanted);
        if permits(Permission::Write) != permits(Permission::Atomic) {
            return Err(unsupported("libfabric has one permission for writes and atomics"));
        }
        let length = self.take(region.length)?;
        let mut access = if permits(Permission::Read) { flags::REMOTE_READ } else { 0 };
        access |= if permits(Permission::Write) { flags::REMOTE_WRITE } else { 0 };
        let content = region.fill.map_or_else(|| vec![0; length], |fill| fill.bytes(length));
        let device =
            self.device.as_mut().ok_or_else(|| refusal(ErrorCode::Internal, "the provider is closed"))?;
        let registered = device.register(content, access, region.key.0, &self.offer);
        // A key that the provider rejects is one that it cannot have.
        let (number, key) = registered.map_err(|error| unsupported(error.to_string()))?;
        let key = (key != region.key.0).then_some(Hex64(key));
        Ok(Region { region: number, key })
    }

    /// Refuses a place other than that of the endpoint.
    fn is_own(&self, job: Option<u32>, process: u16, index: u16) -> Answered<()> {
        let Name { job: own_job, pid, index: own_index, .. } = self.own;
        if (job, process, index) == (Some(own_job), pid, own_index) {
            return Ok(());
        }
        Err(unsupported(format!("the endpoint has job {own_job}, process {pid} and index {own_index}")))
    }

    fn read(&mut self, piece: &ReadMemory) -> Answered<Memory> {
        let range = || -> Option<Range<usize>> {
            let end = piece.offset.checked_add(piece.length)?;
            Some(usize::try_from(piece.offset).ok()?..usize::try_from(end).ok()?)
        };
        let outside = || refusal(ErrorCode::BadRequest, "no region has this number and these bytes");
        let range = range().ok_or_else(outside)?;
        let received = self.received.get(&piece.region).and_then(|buffer| buffer.get(range.clone()));
        if let Some(bytes) = received {
            return Ok(Memory { data: Hex(bytes.to_vec()) });
        }
        let device = self.device()?;
        let bytes = device.memory(piece.region, range.clone()).or_else(|| device.buffer(piece.region, range));
        Ok(Memory { data: Hex(bytes.ok_or_else(outside)?) })
    }

    fn post(&mut self, post: Post) -> Answered<Operated> {
        self.take(post.length)?;
        let posting = convert::posting(&post)?;
        let place = post.peer.checked_sub(1).and_then(|place| self.peers.get(usize::try_from(place).ok()?));
        let peer =
            place.ok_or_else(|| refusal(ErrorCode::NotFound, format!("there is no peer {}", post.peer)))?;
        let remote = self.place(peer, &post)?;
        let to = self.insert(&remote)?;
        let number = self.device()?.post(uet_fi::caller::Posting { to, ..posting }).map_err(refused)?;
        let Post { length, want_data, .. } = post;
        // libfabric leaves the length of other completions open, but the provider uet tells it.
        let has_length = self.format == Format::Uet;
        let running = Running { length, want_data, is_receive: false, has_length };
        self.running.insert(number, running);
        Ok(Operated { operation: number })
    }

    /// Returns the place of a peer, as far as the format of addresses can tell it.
    fn place(&self, peer: &AddPeer, post: &Post) -> Answered<Name> {
        let port = match &self.welcome.link {
            Link::Udp { port, .. } => *port,
            _ => 4793,
        };
        let remote = &post.remote;
        let name = Name {
            address: SocketAddr::new(peer.address, peer.port.unwrap_or(port)),
            job: peer.job,
            pid: remote.process.unwrap_or(peer.process),
            index: remote.index,
            generation: remote.generation,
        };
        let accesses_memory = convert::accesses_memory(post.kind);
        if remote.absolute {
            return Err(unsupported("absolute addressing"));
        }
        // The provider uet has one index for the memory of all peers.
        let fixed = accesses_memory && self.format == Format::Uet || !self.format.has(Field::Index);
        if fixed && name.index != self.own.index {
            return Err(unsupported(format!("the provider addresses index {} only", self.own.index)));
        }
        if !self.format.has(Field::Generation) && name.generation != 0 {
            return Err(unsupported("addresses of this provider have no generation"));
        }
        if !self.format.has(Field::Job) && name.job != self.own.job {
            return Err(unsupported(format!("the provider addresses job {} only", self.own.job)));
        }
        Ok(name)
    }

    fn insert(&mut self, place: &Name) -> Answered<u64> {
        let bytes = self.format.write(place);
        if let Some(number) = self.inserted.get(&bytes) {
            return Ok(*number);
        }
        let number = self.device()?.insert(&bytes).map_err(refused)?;
        self.inserted.insert(bytes, number);
        Ok(number)
    }

    fn post_receive(&mut self, receive: &PostReceive) -> Answered<Received> {
        self.is_own(receive.job, receive.process, receive.index)?;
        if receive.initiator.is_some() {
            return Err(unsupported("libfabric names a sender by its address, not by the field initiator"));
        }
        let length = self.take(receive.length)?;
        let tag = receive.tag.map(|tag| (tag.0, receive.ignore.0));
        let number = self.device()?.receive(tag, length).map_err(refused)?;
        let running =
            Running { length: receive.length, want_data: false, is_receive: true, has_length: true };
        self.running.insert(number, running);
        Ok(Received { operation: number, region: number })
    }

    fn wait(&mut self, wait: WaitCompletion) -> Answered<Completion> {
        let number = wait.operation;
        let begun = Instant::now();
        loop {
            if let Some(ended) = self.ended.get(&number) {
                return Ok(ended.clone());
            }
            if !self.running.contains_key(&number) {
                return Err(refusal(ErrorCode::NotFound, format!("there is no operation {number}")));
            }
            if begun.elapsed() >= Duration::from_nanos(wait.timeout_ns) {
                return Err(refusal(ErrorCode::Timeout, "the operation has not ended"));
            }
            thread::sleep(NAP);
            self.collect();
            self.device()?;
        }
    }
}

fn refused(error: Error) -> Refusal {
    let code = match error.code {
        Code::EOPNOTSUPP | Code::ENOSYS => ErrorCode::Unsupported,
        Code::EAGAIN | Code::ENOMEM => ErrorCode::Exhausted,
        Code::EINVAL | Code::EMSGSIZE => ErrorCode::BadRequest,
        _ => ErrorCode::Internal,
    };
    refusal(code, error.to_string())
}

/// Returns the answer to `hello`: what the provider says of itself, and what the options add.
/// Returns whether an endpoint reads or writes memory. `FI_RMA` alone stands for both.
fn has_access(capabilities: u64, wanted: u64) -> bool {
    let named = flags::READ | flags::WRITE | flags::REMOTE_READ | flags::REMOTE_WRITE;
    let wanted = if capabilities & named == 0 { flags::RMA } else { flags::RMA | wanted };
    capabilities & wanted == wanted
}

fn welcome(
    options: &Options,
    offer: &Offer,
    ordered: bool,
    link: Link,
    given: BTreeMap<String, Value>,
) -> io::Result<Welcome> {
    let caps = offer.capabilities();
    let mut claims: Vec<String> = vec!["rud".into()];
    let groups: [(bool, &[&str]); 6] = [
        (ordered, &["rod"]),
        (has_access(caps, flags::WRITE), &["write"]),
        (has_access(caps, flags::READ), &["read"]),
        (caps & flags::MSG != 0, &["send", "receive"]),
        (caps & flags::TAGGED != 0 && offer.tag_bits() == 64, &["tsend"]),
        (caps & flags::ATOMIC != 0, &["atomic", "fetch_atomic"]),
    ];
    let names = groups.iter().filter(|(has, _)| *has).flat_map(|(_, names)| *names);
    claims.extend(names.map(|name| String::from(*name)));
    let mut parameters = BTreeMap::new();
    // Other providers have this name, too.
    if offer.address_format() == AddressFormat::Uet {
        let setting = |name: &str| env::var(format!("FI_UET_{}", name.to_uppercase())).ok();
        parameters = Settings::read(setting).map_err(io::Error::other)?.parameters();
        parameters.insert("trailer".into(), "none".into());
        claims.extend(["nscc", "rccc", "paths", "ecn", "dscp"].map(String::from));
        let negotiates = parameters.get("negotiation").and_then(Value::as_bool) == Some(true);
        claims.extend(negotiates.then(|| "negotiation".into()));
    }
    parameters.extend(given);
    claims.extend(options.claim.iter().filter(|claim| !claims.contains(claim)).cloned().collect::<Vec<_>>());
    let limits = [("message", offer.longest_message()), ("cq_data", offer.data_size())];
    let (major, minor) = offer.version();
    Ok(Welcome {
        version: format!("{major}.{minor}"),
        capabilities: claims,
        parameters,
        limits: limits.into_iter().map(|(name, limit)| (name.into(), limit as u64)).collect(),
        ..Welcome::new(format!("libfabric provider {}, domain {}", offer.provider(), offer.domain()), link)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_that_of_the_named_capabilities() {
        for (capabilities, reads, writes) in [
            (flags::MSG, false, false),
            (flags::RMA, true, true),
            (flags::RMA | flags::WRITE | flags::REMOTE_WRITE, false, true),
            (flags::RMA | flags::READ, true, false),
            (flags::MSG | flags::READ, false, false),
        ] {
            let found = [flags::READ, flags::WRITE].map(|wanted| has_access(capabilities, wanted));
            assert_eq!(found, [reads, writes], "{capabilities:#x}");
        }
    }
}
