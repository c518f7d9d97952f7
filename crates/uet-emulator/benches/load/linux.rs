use bytes::Bytes;
use nix::cmsg_space;
use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Error, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use uet_emulator::link::driver::Driver;
use uet_emulator::link::udp::UdpLink;
use uet_emulator::{Config, Network, Nic};
use uet_model::ses::{Access, Key, Operation, OperationId, Peer, Process, Region, ResourceIndex, Work};

/// Duration of each measurement, and number of rounds, each of which measures all configurations.
const SPAN: Duration = Duration::from_millis(400);
const ROUNDS: usize = 9;

/// Payload of a packet, in bytes.
const PAYLOAD: usize = 4096;

/// Length of a message and number of messages in flight when throughput is measured.
const MESSAGE: usize = 256 << 10;
const UNDER_WAY: usize = 8;

/// Number of short messages in a latency measurement.
const PINGS: usize = 500;

/// Number of datagrams of a plain socket in flight, per system call, and per answer.
const WINDOW: u64 = 64;
const BATCH: usize = 32;
const ANSWERED: u64 = 16;

const INDEX: ResourceIndex = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
const KEY: Key = Key(7);

type Result<T> = core::result::Result<T, Box<dyn core::error::Error>>;

pub(crate) fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["serve"] => serve(false),
        ["serve-offload"] => serve(true),
        ["echo"] => echo(),
        [] => table(),
        ["soak", seconds] => soak(seconds),
        _ => Err("nothing, or: soak SECONDS".into()),
    };
    if let Err(error) = done {
        eprintln!("load: {error}");
        std::process::exit(1);
    }
}

fn soak(seconds: &str) -> Result<()> {
    let span = Duration::from_secs(seconds.parse()?);
    let soaked = crate::soak::soak(|_, elapsed| elapsed.div_duration_f64(span), 1)?;
    let crate::soak::Soaked { rounds, bytes, packets, lost, memory: [early, late] } = soaked;
    println!("{rounds} rounds, {bytes} bytes, none of them wrong; {packets} packets, {lost} lost");
    println!("{} KiB of memory after a tenth of the time, {} in the end", early >> 10, late >> 10);
    Ok(())
}

/// Results of one measurement.
struct Figures {
    name: &'static str,
    bytes: u64,
    /// Processor time of all processes.
    processor: Duration,
    /// Sorted.
    latencies: Vec<Duration>,
}

impl Figures {
    /// Returns megabytes per second of processor time. Other load on the machine does not change it.
    fn efficiency(&self) -> f64 {
        self.bytes as f64 / self.processor.as_secs_f64() / 1e6
    }

    fn latency(&self, share: f64) -> f64 {
        let place = (self.latencies.len() as f64 * share) as usize;
        self.latencies
            .get(place.min(self.latencies.len().saturating_sub(1)))
            .map_or(0.0, |it| it.as_secs_f64() * 1e6)
    }
}

/// Runs this process and those that it starts on one processor. Each then runs until it waits, so that the number of
/// datagrams for which a receiver wakes up does not depend on other load.
fn stay_on_one_processor() -> Result<()> {
    let mut one = CpuSet::new();
    one.set(sched_getcpu()?)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &one)?)
}

fn table() -> Result<()> {
    stay_on_one_processor()?;
    // Rounds alternate, so that a change of the machine's speed changes all figures of a round.
    let round = |_| Ok([plain()?, in_process()?, udp(false)?, udp(true)?]);
    let rounds: Vec<[Figures; 4]> = (0..ROUNDS).map(round).collect::<Result<_>>()?;
    println!("| configuration | MB per CPU second | of plain UDP | lowest, highest | p50 | p99 |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (index, Figures { name, .. }) in rounds[0].iter().enumerate() {
        let sorted = |figure: &dyn Fn(&[Figures; 4]) -> f64| {
            let mut all: Vec<_> = rounds.iter().map(figure).collect();
            all.sort_by(f64::total_cmp);
            (all[0], all[ROUNDS / 2], all[ROUNDS - 1])
        };
        let (_, efficiency, _) = sorted(&|round| round[index].efficiency());
        let (low, share, high) = sorted(&|round| 100.0 * round[index].efficiency() / round[0].efficiency());
        print!("| {name} | {efficiency:.0} | {share:.0} % | {low:.0} %, {high:.0} % |");
        for share in [0.5, 0.99] {
            match rounds[0][index].latencies.is_empty() {
                true => print!(" |"),
                false => print!(" {:.0} µs |", sorted(&|round| round[index].latency(share)).1),
            }
        }
        println!();
    }
    Ok(())
}

/// Returns the processor time of this process and of its children that have ended.
fn processor() -> Result<Duration> {
    let of = |who| -> Result<Duration> {
        let used = getrusage(who)?;
        let time = |time: TimeVal| Duration::from_micros(time.num_microseconds() as u64);
        Ok(time(used.user_time()) + time(used.system_time()))
    };
    Ok(of(UsageWho::RUSAGE_SELF)? + of(UsageWho::RUSAGE_CHILDREN)?)
}

fn region(length: usize) -> Region {
    Region { key: KEY, base: 0, access: Access::ALL, data: vec![0; length] }
}

fn write(to: SocketAddr, data: Bytes) -> Operation {
    Operation::new(Peer::relative(to.ip(), 101, 2), Work::Write { key: KEY, offset: 0, data })
}

/// Measures two NICs on a network in virtual time: the cost of the model and the fabric.
fn in_process() -> Result<Figures> {
    let mut net = Network::new(1);
    let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
    let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
    net[b].expose(INDEX, region(MESSAGE))?;
    let to = SocketAddr::from(([10, 0, 0, 2], 0));
    let data = Bytes::from(vec![0x5a; MESSAGE]);
    let (begun, before, mut bytes) = (Instant::now(), processor()?, 0);
    while begun.elapsed() < SPAN {
        let operations: Vec<_> = (0..UNDER_WAY)
            .map(|_| net[a].post(write(to, data.clone())))
            .collect::<core::result::Result<_, _>>()?;
        for operation in operations {
            let result = net.operation(a, operation).ok_or("a write does not end")?;
            result.map_err(|fault| format!("a write fails: {fault:?}"))?;
            bytes += MESSAGE as u64;
        }
    }
    Ok(Figures { name: "in one process", bytes, processor: processor()? - before, latencies: Vec::new() })
}

/// Another process of this program. Dropping it ends the process.
struct Other(Child, SocketAddr);

impl Other {
    fn start(what: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?).arg(what).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        Ok(Other(child, line.trim().parse()?))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn driver(address: SocketAddr, offload: bool) -> Result<(Driver, SocketAddr)> {
    let mut link = UdpLink::bind(address)?;
    if offload && !link.offload() {
        return Err("the system has no UDP segmentation offload".into());
    }
    let local = link.local();
    let mut config = Config::real_time();
    // Only the system limits the rate.
    (config.network.sender_rate, config.network.receiver_rate) = (100_000_000_000, 100_000_000_000);
    Ok((Driver::new(Nic::new(address.ip(), config)?, link), local))
}

/// Runs a NIC with memory. Its only peer is the latest sender.
fn serve(offload: bool) -> Result<()> {
    let (mut driver, local) = driver(([127, 0, 0, 42], 0).into(), offload)?;
    driver.nic.expose(INDEX, region(MESSAGE))?;
    println!("{local}");
    let port = local.port();
    loop {
        // Both NICs listen on the same port at different addresses.
        if !driver.turn(|_| port)? {
            driver.wait(Duration::from_secs(1))?;
        }
    }
}

/// Measures two NICs in two processes.
fn udp(offload: bool) -> Result<Figures> {
    let what = if offload { "serve-offload" } else { "serve" };
    let before = processor()?;
    let other = Other::start(what)?;
    let mut sender = Sender::new(other.1, offload)?;
    let data = Bytes::from(vec![0x5a; MESSAGE]);
    let (begun, mut bytes) = (Instant::now(), 0);
    let mut under_way = VecDeque::new();
    while begun.elapsed() < SPAN || !under_way.is_empty() {
        while under_way.len() < UNDER_WAY && begun.elapsed() < SPAN {
            under_way.push_back(sender.post(data.clone())?);
        }
        if let Some(operation) = under_way.pop_front() {
            sender.ends(operation)?;
            bytes += MESSAGE as u64;
        }
    }
    drop(other);
    let processor = processor()? - before;

    let other = Other::start(what)?;
    let mut sender = Sender::new(other.1, offload)?;
    let data = Bytes::from(vec![0x5a; 8]);
    let mut latencies = Vec::new();
    for _ in 0..PINGS {
        let begun = Instant::now();
        let operation = sender.post(data.clone())?;
        sender.ends(operation)?;
        latencies.push(begun.elapsed());
    }
    latencies.sort();
    let name = if offload { "the same, with offload" } else { "UET on UDP, two processes" };
    Ok(Figures { name, bytes, processor, latencies })
}

/// A NIC that writes to another.
struct Sender {
    driver: Driver,
    to: SocketAddr,
}

impl Sender {
    fn new(to: SocketAddr, offload: bool) -> Result<Self> {
        Ok(Sender { driver: driver(SocketAddr::new([127, 0, 0, 41].into(), to.port()), offload)?.0, to })
    }

    fn post(&mut self, data: Bytes) -> Result<OperationId> {
        Ok(self.driver.nic.post(write(self.to, data))?)
    }

    fn ends(&mut self, operation: OperationId) -> Result<()> {
        loop {
            let busy = self.driver.turn(|_| self.to.port())?;
            if let Some(result) = self.driver.nic.operation(operation) {
                return result.map(|_| ()).map_err(|fault| format!("a write fails: {fault:?}").into());
            }
            if !busy {
                self.driver.wait(Duration::from_secs(1))?;
            }
        }
    }
}

/// Opens a plain socket with buffers as large as a NIC's.
fn socket(address: &str) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    let room = socket2::SockRef::from(&socket);
    room.set_recv_buffer_size(4 << 20)?;
    room.set_send_buffer_size(4 << 20)?;
    Ok(socket)
}

/// Runs a plain socket that echoes short datagrams and answers every sixteenth long one.
fn echo() -> Result<()> {
    let socket = socket("127.0.0.42:0")?;
    println!("{}", socket.local_addr()?);
    let mut buffer = vec![0; BATCH * PAYLOAD];
    let mut count = 0;
    loop {
        let mut parts: Vec<_> =
            buffer.chunks_exact_mut(PAYLOAD).map(|part| [IoSliceMut::new(part)]).collect();
        let mut headers = MultiHeaders::preallocate(BATCH, Some(cmsg_space!(i32)));
        let flags = MsgFlags::MSG_WAITFORONE;
        for message in recvmmsg(socket.as_raw_fd(), &mut headers, &mut parts, flags, None)? {
            let from =
                message.address.and_then(|from: SockaddrStorage| Some((*from.as_sockaddr_in()?).into()));
            let from: std::net::SocketAddrV4 = from.ok_or("a datagram has no sender")?;
            count += u64::from(message.bytes >= PAYLOAD);
            if message.bytes < PAYLOAD || count % ANSWERED == 0 {
                socket.send_to(&[0; 8], from)?;
            }
        }
    }
}

/// Sends this datagram as many times, in one system call.
fn send_many(socket: &UdpSocket, datagram: &[u8], times: usize) -> Result<()> {
    let parts = vec![[IoSlice::new(datagram)]; times];
    let to = vec![None::<SockaddrStorage>; times];
    let mut headers = MultiHeaders::preallocate(times, None);
    let sent = sendmmsg(socket.as_raw_fd(), &mut headers, &parts, &to, [], MsgFlags::empty())?.count();
    if sent == times { Ok(()) } else { Err("plain UDP sends only a part".into()) }
}

/// Measures plain sockets in two processes, with `sendmmsg` and `recvmmsg` and without offload. They check nothing and
/// retransmit nothing.
fn plain() -> Result<Figures> {
    let lost = |error: Error| format!("plain UDP loses: {error}");
    let before = processor()?;
    let (other, socket) = plain_pair()?;
    let mut buffer = vec![0x5a; PAYLOAD];
    let (begun, mut sent, mut answered) = (Instant::now(), 0, 0);
    while begun.elapsed() < SPAN || answered < sent / ANSWERED * ANSWERED {
        let room = (answered + WINDOW - sent).min(BATCH as u64);
        if room >= ANSWERED && begun.elapsed() < SPAN {
            send_many(&socket, &buffer, room as usize)?;
            sent += room;
            continue;
        }
        if sent >= answered + ANSWERED {
            socket.recv(&mut buffer[..8]).map_err(lost)?;
            answered += ANSWERED;
        }
    }
    drop(other);
    let processor = processor()? - before;

    let (_other, socket) = plain_pair()?;
    let mut latencies = Vec::new();
    for _ in 0..PINGS {
        let begun = Instant::now();
        socket.send(&buffer[..8])?;
        socket.recv(&mut buffer).map_err(lost)?;
        latencies.push(begun.elapsed());
    }
    latencies.sort();
    let bytes = sent * PAYLOAD as u64;
    Ok(Figures { name: "plain UDP, two processes", bytes, processor, latencies })
}

fn plain_pair() -> Result<(Other, UdpSocket)> {
    let other = Other::start("echo")?;
    let socket = socket("127.0.0.41:0")?;
    socket.connect(other.1)?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    Ok((other, socket))
}
