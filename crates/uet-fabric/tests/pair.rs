//! Two domains of one process exchange messages over UDP on the loopback interface.
#![cfg(target_os = "linux")]

use bytes::Bytes;
use core::net::Ipv4Addr;
use core::ops::ControlFlow;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use uet_emulator::link::udp::UdpLink;
use uet_emulator::{Config, Nic};
use uet_fabric::{
    AddressVector, Atomic, Code, Completion, CompletionQueue, Counter, Domain, Endpoint, EndpointOptions,
    Entry, Failed, Interface, Name, Peek, Read, Receive, Send, Settings, Tag, UNKNOWN_ADDRESS, UserMemory,
    Write, atomic_opcode, atomic_width, datatype, flags, supports,
};
use uet_model::ses::{Operation, Peer, Work};
use uet_model::{Memory, Time};
use uet_observe::IvHistory;
use uet_packet_io::keys::KeyRing;
use uet_packet_io::{Decoder, input};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, ReturnCode};
use uet_wire::{Options, Start};

/// Ends a test that hangs. No machine is so busy that this ends another.
const ENDLESS: Duration = Duration::from_secs(60);

/// Memory that the test shares with the provider.
#[derive(Clone)]
struct Buffer(Arc<Mutex<Vec<u8>>>, core::ops::Range<usize>);

impl Buffer {
    fn new(length: usize) -> Self {
        Buffer::of(&vec![0; length])
    }

    fn of(bytes: &[u8]) -> Self {
        Buffer(Arc::new(Mutex::new(bytes.to_vec())), 0..bytes.len())
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Memory for Buffer {
    fn len(&self) -> usize {
        self.1.len()
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), ReturnCode> {
        self.0.lock().unwrap().read(self.1.start + offset, into)
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> Result<(), ReturnCode> {
        self.0.lock().unwrap().write(self.1.start + offset, data)
    }
}

impl UserMemory for Buffer {
    fn window(&self, offset: usize, length: usize) -> Box<dyn UserMemory> {
        let start = self.1.start + offset;
        Box::new(Buffer(self.0.clone(), start..start + length))
    }

    fn address(&self) -> usize {
        self.1.start
    }
}

/// A side of the conversation.
struct Side {
    domain: Domain,
    endpoint: Endpoint,
    queue: Arc<CompletionQueue>,
    addresses: Arc<AddressVector>,
    received: Arc<Counter>,
    /// The number of the other side.
    peer: u64,
}

impl Side {
    fn open(variables: &[(&str, &str)]) -> Side {
        let get = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        };
        let settings = Settings::read(get).unwrap();
        let interface =
            Interface::list(&settings).unwrap().into_iter().find(|found| found.is_loopback).unwrap();
        let domain = Domain::open(&interface, &settings).unwrap();
        let options = EndpointOptions { ordered_messages: true, ordered_memory: false, directed: true };
        let endpoint = Endpoint::open(&domain, options).unwrap();
        let queue = Arc::new(CompletionQueue::new(0, false).unwrap());
        let addresses = Arc::new(AddressVector::default());
        let received = Arc::new(Counter::default());
        assert_eq!(endpoint.enable().unwrap_err().code, Code::ENOAV);
        endpoint.bind_addresses(addresses.clone());
        endpoint.bind_queue(&queue, true, true);
        endpoint.bind_counter(&received, flags::RECV);
        endpoint.enable().unwrap();
        Side { domain, endpoint, queue, addresses, received, peer: 0 }
    }

    fn pair(variables: &[(&str, &str)]) -> [Side; 2] {
        let (mut a, mut b) = (Side::open(variables), Side::open(variables));
        a.meet(&mut b);
        [a, b]
    }

    fn meet(&mut self, other: &mut Side) {
        self.peer = self.addresses.insert(other.endpoint.name());
        other.peer = other.addresses.insert(self.endpoint.name());
    }

    fn next(&self) -> Entry {
        assert!(self.domain.wait(Some(ENDLESS), || !self.queue.is_empty()), "nothing completes");
        match self.queue.read() {
            Ok(completion) => Entry::Done(completion),
            Err(_) => Entry::Failed(self.queue.read_failed().unwrap()),
        }
    }

    #[track_caller]
    fn done(&self) -> Completion {
        match self.next() {
            Entry::Done(completion) => completion,
            Entry::Failed(failed) => panic!("{failed:?}"),
        }
    }

    #[track_caller]
    fn failed(&self) -> Failed {
        match self.next() {
            Entry::Done(completion) => panic!("{completion:?}"),
            Entry::Failed(failed) => failed,
        }
    }

    /// Waits until a message of the peer with this tag has arrived, and leaves it there.
    fn look(&self, bits: u64) {
        let (tag, begun) = (Some(Tag { bits, ignore: 0 }), Instant::now());
        loop {
            self.endpoint.peek(self.peer, tag, Peek::Look, 99).unwrap();
            if matches!(self.next(), Entry::Done(_)) {
                return;
            }
            assert!(begun.elapsed() < ENDLESS, "no message arrives");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn send(&self, tag: Option<u64>, data: &[u8]) {
        let (data, context) = (Bytes::copy_from_slice(data), 7);
        let send = Send {
            to: self.peer,
            tag,
            data,
            cq_data: Some(11),
            delivery_complete: false,
            context,
            report: false,
        };
        self.endpoint.send(send).unwrap();
    }

    fn post(&self, tag: Option<u64>, memory: &Buffer, context: usize) {
        let (tag, memory) = (tag.map(|bits| Tag { bits, ignore: 0 }), Box::new(memory.clone()));
        let receive = Receive { from: UNKNOWN_ADDRESS, tag, memory, multi: false, context, report: true };
        self.endpoint.receive(receive).unwrap();
    }
}

const LOOPBACK: &[(&str, &str)] = &[("iface", "lo")];
/// Both sides have the same address and ports of their own.
const SHARED: &[(&str, &str)] = &[("iface", "127.0.0.9")];
/// Both sides share an IPv6 address, and transport security authenticates addresses.
const SECURED: &[(&str, &str)] =
    &[("iface", "::1"), ("keys", concat!(env!("CARGO_TARGET_TMPDIR"), "/secured.toml"))];
const IMPAIRED: &[(&str, &str)] =
    &[("iface", "lo"), ("impair", "drop 5%; duplicate 5%; reorder 3 5%"), ("seed", "5")];

#[test]
fn messages_arrive_in_order() {
    let key = "07".repeat(32);
    let key = format!("[[domain]]\nsdi = 9\nmode = \"cluster\"\nssi = false\nkeys = {{ 0 = \"{key}\" }}\n");
    std::fs::write(SECURED[1].1, key).unwrap();
    let has_ipv6 = std::net::UdpSocket::bind("[::1]:0").is_ok();
    let all = [LOOPBACK, SHARED, IMPAIRED, SECURED];
    for variables in all.into_iter().filter(|variables| has_ipv6 || *variables != SECURED) {
        let [a, b] = Side::pair(variables);
        let buffers: Vec<Buffer> = (0..20).map(|_| Buffer::new(20_000)).collect();
        for (buffer, context) in buffers.iter().zip(0..) {
            b.post(Some(1), buffer, context);
        }
        for number in 0..20 {
            a.send(Some(1), &vec![number; 1000 * usize::from(number)]);
        }
        for (number, buffer) in (0..20).zip(&buffers) {
            let got = b.done();
            assert_eq!((got.context, got.length, got.data, got.source), (number, 1000 * number, 11, b.peer));
            assert!(buffer.bytes()[..got.length].iter().all(|byte| usize::from(*byte) == number));
        }
        assert_eq!(b.received.done.load(std::sync::atomic::Ordering::Acquire), 20);
    }
}

#[test]
fn endpoint_sends_to_itself() {
    let mut a = Side::open(LOOPBACK);
    a.peer = a.addresses.insert(a.endpoint.name());
    let buffer = Buffer::new(100_000);
    a.post(None, &buffer, 1);
    a.send(None, &[9; 100_000]);
    assert_eq!(a.done().length, 100_000);
    assert_eq!(buffer.bytes(), [9; 100_000]);
}

#[test]
fn unexpected_message_is_seen_claimed_and_received() {
    let [a, b] = Side::pair(LOOPBACK);
    let tag = Some(Tag { bits: 0, ignore: u64::MAX });
    b.endpoint.peek(UNKNOWN_ADDRESS, tag, Peek::Look, 1).unwrap();
    assert_eq!(b.failed().code, Code::ENOMSG);
    a.send(Some(5), b"claimed");
    a.send(Some(5), b"next");
    a.send(Some(6), b"last");
    // The queue of sends reports nothing. Messages arrive in order.
    b.look(6);
    b.endpoint.peek(b.peer, tag, Peek::Claim, 2).unwrap();
    let seen = b.done();
    assert_eq!((seen.context, seen.tag, seen.length), (2, 5, 7));
    let (next, claimed) = (Buffer::new(9), Buffer::new(3));
    b.post(Some(5), &next, 3);
    assert_eq!(b.done().length, 4, "the claimed message is out of the way");
    b.endpoint.take_claimed(Box::new(claimed.clone()), 2, false).unwrap();
    let failed = b.failed();
    assert_eq!((failed.code, failed.cut_off, claimed.bytes()), (Code::ETRUNC, 4, b"cla".to_vec()));
}

#[test]
fn buffer_takes_several_messages() {
    let [a, b] = Side::pair(LOOPBACK);
    b.endpoint.set_min_multi_receive(4);
    let memory = Buffer::new(12);
    let posted = Box::new(memory.clone());
    let receive =
        Receive { from: UNKNOWN_ADDRESS, tag: None, memory: posted, multi: true, context: 3, report: true };
    b.endpoint.receive(receive).unwrap();
    for message in [b"one", b"two", b"six"] {
        a.send(None, message);
    }
    let ended: Vec<_> =
        (0..3).map(|_| b.done()).map(|done| (done.buffer, done.flags & flags::MULTI_RECV != 0)).collect();
    assert_eq!(ended, [(0, false), (3, false), (6, true)]);
    assert_eq!(memory.bytes()[..9], *b"onetwosix");
}

#[test]
fn cancelled_receive_completes() {
    let [_, b] = Side::pair(LOOPBACK);
    b.post(None, &Buffer::new(1), 4);
    assert!(!b.endpoint.cancel(5));
    assert!(b.endpoint.cancel(4));
    let failed = b.failed();
    assert_eq!((failed.code, failed.completion.context), (Code::ECANCELED, 4));
}

/// The next endpoint at an index gets nothing that was for the one before: neither early nor late messages.
#[test]
fn closed_endpoint_leaves_no_messages() {
    let [mut a, b] = Side::pair(LOOPBACK);
    let tag = Some(Tag { bits: 0, ignore: u64::MAX });
    a.send(Some(1), b"claimed");
    a.send(Some(1), b"early");
    a.send(Some(2), b"seen");
    // Messages arrive in order.
    b.look(2);
    b.endpoint.peek(b.peer, tag, Peek::Claim, 2).unwrap();
    assert_eq!(b.done().length, 7);
    let before = b.endpoint.name();
    b.endpoint.close();
    let next = Endpoint::open(&b.domain, EndpointOptions::default()).unwrap();
    next.bind_addresses(b.addresses.clone());
    next.bind_queue(&b.queue, true, true);
    next.enable().unwrap();
    assert_ne!(next.name(), before, "the generation differs");
    let next = Side { endpoint: next, ..b };
    assert!(next.endpoint.take_claimed(Box::new(Buffer::new(9)), 2, false).is_err());

    let memory = Buffer::new(9);
    next.post(Some(1), &memory, 3);
    let late = Send {
        to: a.peer,
        tag: Some(1),
        data: Bytes::from_static(b"late"),
        cq_data: None,
        delivery_complete: false,
        context: 4,
        report: true,
    };
    a.endpoint.send(late).unwrap();
    assert_eq!(a.failed().return_code, ReturnCode::BAD_GENERATION.code());
    a.peer = a.addresses.insert(next.endpoint.name());
    a.send(Some(1), b"for it");
    assert_eq!(next.done().length, 6);
    assert_eq!(memory.bytes()[..6], *b"for it");
}

#[test]
fn full_queue_leaves_completions_in_the_nic() {
    let [a, b] = Side::pair(LOOPBACK);
    let small = Arc::new(CompletionQueue::new(4, false).unwrap());
    b.endpoint.bind_queue(&small, false, true);
    let region = b.domain.register(Box::new(Buffer::new(8)), flags::REMOTE_WRITE, Some(7)).unwrap();
    for number in 0..20 {
        let (data, cq_data) = (Bytes::from_static(&[1; 8]), Some(number));
        let (to, key, report) = (a.peer, region.key, true);
        let write = Write { to, key, offset: 0, data, cq_data, delivery_complete: true, context: 1, report };
        a.endpoint.write(write).unwrap();
    }
    for _ in 0..20 {
        a.done();
    }
    b.domain.progress();
    assert_eq!(small.len(), 4);
    let mut all = Vec::new();
    while all.len() < 20 {
        assert!(b.domain.wait(Some(ENDLESS), || !small.is_empty()), "nothing completes");
        all.push(small.read().unwrap().data);
        assert!(small.len() <= 4);
    }
    assert_eq!(all, (0..20).collect::<Vec<_>>());
}

#[test]
fn directed_receive_takes_only_its_sender() {
    let [a, b] = Side::pair(LOOPBACK);
    let mut other = Side::open(LOOPBACK);
    other.peer = other.addresses.insert(b.endpoint.name());
    let third = b.addresses.insert(other.endpoint.name());
    let memory = Buffer::new(9);
    let posted = Box::new(memory.clone());
    b.endpoint
        .receive(Receive { from: third, tag: None, memory: posted, multi: false, context: 1, report: true })
        .unwrap();
    a.send(None, b"not me");
    other.send(None, b"me");
    let got = b.done();
    assert_eq!((got.source, got.length), (third, 2));
}

/// Returns a loopback address that no other process uses, so that its ports are free.
fn own_address(host: u8) -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high, low, host)
}

/// Sends a message to an endpoint from another address with the `initiator` field of another endpoint, which everyone can compute.
fn forge(initiator: &Name, to: &Name, data: &'static [u8]) {
    let hash = initiator.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let initiator = (hash >> 32) as u32 ^ hash as u32;
    let mut link = UdpLink::bind((own_address(66), 4793).into()).unwrap();
    let mut nic = Nic::new(link.local().ip(), Config::real_time()).unwrap();
    let peer = Peer { index: to.index, initiator, ..Peer::relative(to.address.ip(), to.job, to.pid) };
    let work = Work::Send { tag: None, data: Bytes::from_static(data) };
    let operation = nic.post(Operation::new(peer, work)).unwrap();
    let begun = Instant::now();
    let sent = loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "no answer to a forged message");
        let now = Time::ZERO + begun.elapsed();
        nic.handle_timeout(now);
        while let Some(packet) = nic.poll_transmit(now) {
            link.send(&packet, to.address.port()).unwrap();
        }
        while let Some(packet) = link.receive().unwrap() {
            nic.handle_input(now, packet);
        }
        if let Some(sent) = nic.operation(operation) {
            break sent;
        }
        assert!(begun.elapsed() < ENDLESS, "the forged message is not answered");
        std::thread::sleep(Duration::from_millis(1));
    };
    sent.unwrap();
}

#[test]
fn large_message_fills_the_window() {
    let mut link = UdpLink::bind((own_address(67), 4793).into()).unwrap();
    // No timeout ends in this time, so each packet arrives once.
    let mut a = Side::open(&[("iface", "lo"), ("params", "rto_init_time=600000000000"), ("settle", "0")]);
    a.peer = a.addresses.insert(Name { address: link.local(), ..a.endpoint.name() });
    a.send(None, &vec![0; 2 << 20]);
    let (mut bytes, begun, mut last) = (0, Instant::now(), Instant::now());
    // A sender that pauses before it has sent enough waits for a processor.
    let is_less = |bytes: usize| bytes < 200_000 && begun.elapsed() < ENDLESS;
    while is_less(bytes) || last.elapsed() < Duration::from_millis(300) {
        match link.receive().unwrap() {
            Some(packet) => (bytes, last) = (bytes + packet.payload.len(), Instant::now()),
            None => std::thread::yield_now(),
        }
    }
    // The maximum window of NSCC is 1.5 times 100 Gbit/s times 100 us. A small buffer of the socket may lose much of it.
    assert!((200_000..=1_875_000).contains(&bytes), "{bytes} bytes left before an ACK");
}

#[test]
fn directed_receive_compares_addresses() {
    let [a, b] = Side::pair(LOOPBACK);
    b.endpoint.set_min_multi_receive(1);
    let memory = Box::new(Buffer::new(9));
    let receive = Receive { from: b.peer, tag: None, memory, multi: true, context: 1, report: true };
    b.endpoint.receive(receive).unwrap();
    a.send(None, b"mine");
    assert_eq!(b.done().length, 4);
    forge(&a.endpoint.name(), &b.endpoint.name(), b"forged");
    a.send(None, b"again");
    let got = b.done();
    assert_eq!((got.source, got.length), (b.peer, 5), "also the rest of the buffer is for one sender");
    b.post(None, &Buffer::new(9), 2);
    let got = b.done();
    assert_eq!((got.source, got.length), (UNKNOWN_ADDRESS, 6));
}

#[test]
fn memory_is_written_read_and_changed_atomically() {
    let [a, b] = Side::pair(LOOPBACK);
    let memory = Buffer::new(100_000);
    let access = flags::REMOTE_READ | flags::REMOTE_WRITE;
    let region = b.domain.register(Box::new(memory.clone()), access, Some(77)).unwrap();
    let (to, key, context, report) = (a.peer, region.key, 1, true);
    let write = |key, data: &[u8]| {
        let data = Bytes::copy_from_slice(data);
        let write =
            Write { to, key, offset: 8, data, cq_data: Some(5), delivery_complete: true, context, report };
        a.endpoint.write(write).unwrap();
    };
    write(key, &[7; 50_000]);
    assert_eq!(a.done().flags, flags::RMA | flags::WRITE);
    let told = b.done();
    assert_eq!((told.flags & flags::REMOTE_WRITE, told.data, told.length), (flags::REMOTE_WRITE, 5, 50_000));
    assert_eq!(memory.bytes()[8..50_008], [7; 50_000]);

    let got = Buffer::new(60_000);
    let read = Read { from: to, key, offset: 0, memory: Box::new(got.clone()), context, report };
    a.endpoint.read(read).unwrap();
    a.done();
    assert_eq!(got.bytes(), memory.bytes()[..60_000]);

    let old = Buffer::new(8);
    let change = |opcode, operand: u64, compare: Option<u64>| {
        let bytes = |value: u64| Bytes::copy_from_slice(&value.to_le_bytes());
        let (datatype, result) = (AtomicDatatype::UINT64, Some(Box::new(old.clone()) as Box<dyn UserMemory>));
        let (operand, compare) = (bytes(operand), compare.map(bytes));
        a.endpoint
            .atomic(Atomic {
                to,
                key,
                offset: 0,
                opcode,
                datatype,
                operand,
                compare,
                result,
                context,
                report,
            })
            .unwrap();
        a.done();
        u64::from_le_bytes(old.bytes().try_into().unwrap())
    };
    assert_eq!(change(AtomicOpcode::SUM, 40, None), 0);
    assert_eq!(change(AtomicOpcode::CSWAP, 2, Some(40)), 40);
    assert_eq!(change(AtomicOpcode::CSWAP, 3, Some(40)), 2, "the comparison fails");
    assert_eq!(change(AtomicOpcode::READ, 0, None), 2);

    write(78, b"wrong key");
    assert_eq!(a.failed().code, Code::ENOKEY);
    b.domain.withdraw(region);
    write(key, b"gone");
    assert_eq!(a.failed().code, Code::ENOKEY);
}

#[test]
fn every_supported_atomic_works() {
    let [a, b] = Side::pair(LOOPBACK);
    let access = flags::REMOTE_READ | flags::REMOTE_WRITE;
    let region = b.domain.register(Box::new(Buffer::new(16)), access, Some(78)).unwrap();
    let kinds = (0..19).flat_map(|op| (0..12).map(move |datatype| (op, datatype)));
    let kinds = kinds.map(|(op, kind)| (atomic_opcode(op).unwrap(), datatype(kind).unwrap()));
    for (opcode, datatype) in kinds.filter(|(opcode, datatype)| supports(*opcode, *datatype)) {
        let operand = Bytes::from(vec![1; atomic_width(datatype).unwrap()]);
        let result = Buffer::new(operand.len());
        let compare = opcode.is_compare_and_swap().then(|| operand.clone());
        let result = Some(Box::new(result) as Box<dyn UserMemory>);
        let (to, key, context, report) = (a.peer, region.key, 1, true);
        let atomic =
            Atomic { to, key, offset: 0, opcode, datatype, operand, compare, result, context, report };
        a.endpoint.atomic(atomic).unwrap();
        let entry = a.next();
        assert!(matches!(entry, Entry::Done(_)), "{opcode} on {datatype}: {entry:?}");
    }
}

#[test]
fn only_calls_in_a_row_sleep() {
    let domain = Side::open(LOOPBACK).domain;
    let time_of = |calls: u32, work: Duration| -> Duration {
        let one = || {
            let begun = Instant::now();
            while begun.elapsed() < work {}
            let called = Instant::now();
            domain.progress();
            called.elapsed()
        };
        (0..calls).map(|_| one()).sum()
    };
    let in_a_row = time_of(1000, Duration::ZERO);
    assert!(in_a_row > Duration::from_millis(40), "{in_a_row:?}");
    let beside_work = time_of(1000, Duration::from_micros(20));
    assert!(beside_work < in_a_row / 2, "{beside_work:?}, in a row {in_a_row:?}");
}

#[test]
fn domain_takes_a_fresh_address() {
    let address = || Side::open(LOOPBACK).endpoint.name().address;
    // Peers may still know contexts at the address of the first.
    assert_ne!(address(), address());
}

#[test]
fn each_domain_has_its_own_capture() {
    const CAPTURED: &[(&str, &str)] =
        &[("iface", "lo"), ("capture", concat!(env!("CARGO_TARGET_TMPDIR"), "/domain-%p.pcapng"))];
    let (folder, process) = (env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let ours = || -> Vec<String> {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let names = files.map(|name| name.into_string().unwrap());
        names.filter(|name| name.starts_with(&format!("domain-{process}"))).collect()
    };
    // An earlier process may have had this ID.
    ours().iter().for_each(|name| std::fs::remove_file(format!("{folder}/{name}")).unwrap());
    let [a, b] = Side::pair(CAPTURED);
    let again = Side::open(CAPTURED);
    b.post(None, &Buffer::new(9), 1);
    a.send(None, b"captured");
    b.done();
    drop((a, b, again));
    assert_eq!(ours().len(), 3, "{:?}", ours());
    for name in ours() {
        use std::os::unix::fs::PermissionsExt;
        let path = format!("{folder}/{name}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path}");
    }
}

/// Somebody else may know the name of a capture, and have put a link there.
#[test]
fn capture_does_not_follow_a_link() {
    const PATH: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/linked-%p");
    let path = PATH.replace("%p", &std::process::id().to_string());
    // The number of the next domain is unknown, as tests run at the same time.
    for number in 1..400 {
        let number = if number > 1 { format!("-{number}") } else { String::new() };
        let _ = std::os::unix::fs::symlink("victim", format!("{path}{number}"));
    }
    let settings = Settings::read(|name| {
        [("iface", "lo"), ("capture", PATH)].iter().find(|(of, _)| *of == name).map(|(_, to)| (*to).into())
    });
    let settings = settings.unwrap();
    assert!(Domain::open(&Interface::list(&settings).unwrap()[0], &settings).is_err());
    assert!(!Path::new(env!("CARGO_TARGET_TMPDIR")).join("victim").exists());
}

#[test]
fn peer_that_is_gone_fails_the_send() {
    // Few retransmissions keep the test short.
    let [a, b] =
        Side::pair(&[("iface", "127.0.0.77"), ("params", "max_rto_retx_cnt=1; rto_init_time=1000000")]);
    let Side { domain, endpoint, .. } = b;
    endpoint.close();
    drop((endpoint, domain));
    std::thread::sleep(Duration::from_millis(50));
    a.send(None, b"hello?");
    assert_eq!(a.failed().code, Code::ETIMEDOUT);
}

#[test]
fn taken_port_is_refused() {
    let settings = Settings::read(|name| match name {
        "iface" => Some(own_address(68).to_string()),
        "port" => Some("4793".into()),
        _ => None,
    });
    let settings = settings.unwrap();
    let interface = Interface::list(&settings).unwrap().remove(0);
    let first = Domain::open(&interface, &settings).unwrap();
    let error = Domain::open(&interface, &settings).err().unwrap();
    assert_eq!(error.code, Code::EADDRINUSE);
    assert!(error.to_string().contains(&format!("{}:4793", own_address(68))), "{error}");
    drop(first);
    for _ in 0..50 {
        // A closed domain has let its port go. A process that another test of this program starts may hold it for a moment.
        let open = |_| {
            let opened = Domain::open(&interface, &settings);
            opened.inspect_err(|_| std::thread::sleep(Duration::from_millis(100))).ok()
        };
        assert!((0..600).find_map(open).is_some());
    }
}

#[test]
fn host_and_service_name_the_first_process() {
    let settings = Settings::read(|name| Some(if name == "job" { "9" } else { "" }.to_string())).unwrap();
    let name = |service| settings.name_at([127, 0, 0, 3].into(), service).to_string();
    assert_eq!(name(Some("14800")), "uet://127.0.0.3:14800/job/9/pid/0/index/0");
    // The service of the application's own connections.
    assert_eq!(name(Some("47592")), "uet://127.0.0.3:4793/job/9/pid/0/index/0");
    assert_eq!(name(None), name(Some("http")));
}

#[test]
fn broken_setting_is_named() {
    for (name, value, reason) in [
        ("iface", "nothing0", "no interface"),
        ("mtu", "1500", "1024, 2048, 4096 or 8192"),
        ("algorithm", "tfc", "none, nscc, rccc, both"),
        ("job", "16777216", "0 to 16777215"),
        ("params", "rto_init_time", "NAME=VALUE"),
        ("params", "no_such=1", "no such parameter"),
        ("impair", "drop often", "expected"),
        ("fault", "none-such", "no fault"),
        ("port", "80", "4793"),
    ] {
        let settings = Settings::read(|asked| (asked == name).then(|| value.to_string()));
        let error = settings.and_then(|settings| Interface::list(&settings)).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with(&format!("FI_UET_{}={value}: ", name.to_uppercase())), "{message}");
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn key_file_is_read_with_a_limit() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("keys.toml");
    let opened = |length: usize| {
        std::fs::write(&path, "#".repeat(length)).unwrap();
        let keys = path.to_str().unwrap().to_owned();
        let settings = Settings::read(|name| (name == "keys").then(|| keys.clone())).unwrap();
        let interface = Interface::list(&settings).unwrap().into_iter().find(|found| found.is_loopback);
        Domain::open(&interface.unwrap(), &settings).map(drop).map_err(|error| error.to_string())
    };
    let within = opened(1 << 20).unwrap_err();
    assert!(!within.contains("limit"), "it holds no domain: {within}");
    let beyond = opened((1 << 20) + 1).unwrap_err();
    assert!(beyond.contains("keys.toml: the file is longer than the limit of 1048576 bytes"), "{beyond}");
}

/// All domains with this key file share key and source identifier.
const KEYS: &str = "[[domain]]\nsdi = 7\nmode = \"cluster\"\nssi = true\nown_ssi = 9\n\
                    keys = { 0 = \"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\" }\n";

/// Exchanges messages between three domains with these keys, two at a time. Captures each domain into the folder.
fn exchange_under_keys(folder: &Path) {
    let keys = folder.join("keys.toml").display().to_string();
    let open = |name: &str| {
        let capture = folder.join(format!("{name}-%p.pcapng")).display().to_string();
        Side::open(&[("iface", "lo"), ("keys", &keys), ("capture", &capture)])
    };
    let mut b = open("b");
    for name in ["a", "c"] {
        let mut other = open(name);
        other.meet(&mut b);
        let (here, there) = (Buffer::new(64), Buffer::new(64));
        b.post(Some(1), &there, 1);
        other.post(Some(1), &here, 1);
        other.send(Some(1), &[0x41; 64]);
        assert_eq!(b.done().length, 64);
        b.send(Some(1), &[0x42; 64]);
        assert_eq!(other.done().length, 64);
        // Closing it ends its capture.
        drop(other);
    }
}

/// Creates a folder with the key file.
fn keys_in(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("keys.toml"), KEYS).unwrap();
    folder
}

/// Compares the IVs of all packets in the captures of a folder, and removes it.
fn assert_unique_ivs(folder: &Path, captures: usize) {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "pcapng")).collect();
    assert_eq!(files.len(), captures);
    let mut decoder = Decoder::new(Options::default(), false).with_keys(KeyRing::from_toml(KEYS).unwrap());
    let (mut history, mut number) = (IvHistory::default(), 0);
    for file in files {
        input::read(std::fs::File::open(&file).unwrap(), Start::Eth, &mut |record| {
            let decoded = decoder.decode(record);
            let protection = decoded.protection.as_ref().expect("it is protected");
            let (_, key_iv) = protection.key.unwrap_or_else(|| panic!("{protection:?}"));
            let (packet, ip) = (&decoded.packet, decoded.packet.ip.unwrap());
            number += 1;
            // Sender and receiver capture one packet each.
            let content = (packet.uet.parts(), ip.src(), ip.dst(), packet.entropy_value());
            assert_eq!(history.repeats(key_iv, content, number), None, "{}", file.display());
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    }
    assert!(number > 4 * captures as u64, "{number} packets");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn domains_of_a_process_repeat_no_iv() {
    let folder = keys_in("domains");
    exchange_under_keys(&folder);
    assert_unique_ivs(&folder, 3);
}

#[test]
fn processes_repeat_no_iv() {
    const CHILD: &str = "UET_TEST_EXCHANGE";
    if let Some(folder) = std::env::var_os(CHILD) {
        return exchange_under_keys(folder.as_ref());
    }
    let folder = keys_in("processes");
    for _ in 0..2 {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "processes_repeat_no_iv"]).env(CHILD, &folder);
        assert!(child.stdout(Stdio::null()).status().unwrap().success());
    }
    assert_unique_ivs(&folder, 6);
}

#[test]
fn each_context_needs_a_fresh_start_psn() {
    let settings = Settings::read(|_| None).unwrap();
    assert_eq!(settings.parameters()["start_psn_method"], "random");
}
