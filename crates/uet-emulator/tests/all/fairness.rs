//! A NIC on UDP serves packets, requests and its stop signal during a flood of any one of them.

use crate::ENDLESS;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use uet_emulator::link::server::{Channel, Server};
use uet_emulator::link::udp::UdpLink;
use uet_emulator::{Config, Nic};
use uet_wire::pds::Request;
use uet_wire::registry::{NextHdr, PdsType};
use uet_wire::{PdcId, Psn, PsnOffset};

/// A NIC in a thread of its own.
struct Running {
    packets: SocketAddr,
    control: SocketAddr,
    stop: UnixStream,
    server: JoinHandle<std::io::Result<()>>,
}

impl Running {
    fn start() -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into())
    }

    fn start_at(address: SocketAddr) -> Self {
        let link = UdpLink::bind(address).unwrap();
        let packets = link.local();
        let nic = Nic::new(packets.ip(), Config::real_time()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let control = listener.local_addr().unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let server = Server::new(nic, link, Channel::Tcp(listener), stopped.into());
        Running { packets, control, stop, server: thread::spawn(move || server.run()) }
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let mut suite = self.open();
        let answer = call(&mut suite, HELLO);
        assert!(answer.contains(r#""ok":true"#), "{answer}");
        suite
    }

    fn open(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.control).unwrap();
        // An answer may itself come after that time.
        stream.set_read_timeout(Some(2 * ENDLESS)).unwrap();
        BufReader::new(stream)
    }

    /// Stops the NIC. Its other work goes on, so a NIC that does that work first never stops.
    fn stop(mut self) {
        self.stop.write_all(b".").unwrap();
        let begun = Instant::now();
        while !self.server.is_finished() {
            assert!(begun.elapsed() < ENDLESS, "still running");
            thread::sleep(Duration::from_millis(1));
        }
        self.server.join().unwrap().unwrap();
    }
}

const HELLO: &str = r#"{"id":1,"op":"hello","protocol":1}"#;

fn call(suite: &mut BufReader<TcpStream>, request: &str) -> String {
    suite.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
    loop {
        let mut answer = String::new();
        suite.read_line(&mut answer).unwrap();
        if !answer.starts_with(r#"{"event""#) {
            return answer;
        }
    }
}

/// Two threads that send the same datagram to `to` until the flag is set.
fn flood(to: SocketAddr, done: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let flooder = || {
        let done = Arc::clone(done);
        thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.3:0").unwrap();
            while !done.load(Ordering::Relaxed) {
                let _ = socket.send_to(&[0x38; 64], to);
            }
        })
    };
    vec![flooder(), flooder()]
}

#[test]
fn flood_of_packets_delays_neither_requests_nor_stop() {
    let (nic, done) = (Running::start(), Arc::new(AtomicBool::new(false)));
    let flooders = flood(nic.packets, &done);
    let mut suite = nic.connect();
    for _ in 0..100 {
        assert!(call(&mut suite, r#"{"id":1,"op":"counters"}"#).contains(r#""ok":true"#));
    }
    nic.stop();
    done.store(true, Ordering::Relaxed);
    flooders.into_iter().for_each(|flooder| flooder.join().unwrap());
}

#[test]
fn stream_of_requests_delays_neither_packets_nor_stop() {
    let nic = Running::start();
    let streaming = nic.connect().into_inner();
    let mut reading = streaming.try_clone().unwrap();
    let reader = thread::spawn(move || std::io::copy(&mut reading, &mut std::io::sink()));
    let mut writing = streaming.try_clone().unwrap();
    let writer = thread::spawn(move || {
        let many = "{\"id\":1,\"op\":\"counters\"}\n".repeat(1000);
        while writing.write_all(many.as_bytes()).is_ok() {}
    });
    // A request to an unknown context gets a NACK, which goes to the NIC's own port at the sender's address.
    let peer = UdpSocket::bind(("127.0.0.4", nic.packets.port())).unwrap();
    peer.set_read_timeout(Some(ENDLESS)).unwrap();
    thread::sleep(Duration::from_millis(300));
    let request = [0x10, 0, 0, 0, 0, 0, 0, 7, 0, 9, 0x40, 9, 0, 0, 0, 0];
    peer.send_to(&request, nic.packets).unwrap();
    let mut nack = [0; 64];
    let answered = peer.recv(&mut nack);
    nic.stop();
    let _ = streaming.shutdown(std::net::Shutdown::Both);
    writer.join().unwrap();
    let _ = reader.join();
    assert!(answered.is_ok(), "the request was not answered: {answered:?}");
}

#[test]
fn stream_of_empty_lines_does_not_delay_stop() {
    for greets in [false, true] {
        let nic = Running::start();
        let suite = if greets { nic.connect() } else { nic.open() };
        let mut streaming = suite.into_inner();
        let (sender, written) = channel();
        let writer = thread::spawn(move || {
            while streaming.write_all(&[b'\n'; 1 << 16]).is_ok() {
                let _ = sender.send(());
            }
        });
        // The sockets hold only a part of this. A NIC that ends the connection earlier ends the wait.
        let _ = written.iter().nth(1000);
        nic.stop();
        writer.join().unwrap();
    }
}

/// A request with syn that opens a context for `spdcid` and names no memory.
fn syn(spdcid: u16) -> Vec<u8> {
    let request = Request::zeroed()
        .edit()
        .prologue(|p| p.kind(PdsType::RUD_REQ).next_hdr(NextHdr::UET_HDR_REQUEST_STD));
    let request = request.syn(true).ar(true).psn(Psn(48)).clear_psn_offset(-1).spdcid(PdcId(spdcid));
    let request = request.psn_offset(PsnOffset::new(0).unwrap()).done().unwrap();
    [&request.bytes()[..], &[0; 44]].concat()
}

#[test]
fn syn_flood_does_not_keep_a_peer_out() {
    let (target, done) = (Running::start(), Arc::new(AtomicBool::new(false)));
    let peer = Running::start_at(([127, 0, 0, 5], target.packets.port()).into());
    let mut suite = target.connect();
    let region = json!({"id": 1, "op": "expose_region", "length": 64, "key": "0x7", "job": 101});
    assert!(call(&mut suite, &region.to_string()).contains("ok"));

    // From 256 addresses, two thousand contexts a second. More would only fill the socket of a slow machine.
    let (to, flag) = (target.packets, Arc::clone(&done));
    let flooder = thread::spawn(move || {
        let bind = |n| UdpSocket::bind(SocketAddr::from(([127, 1, 0, n], 0))).unwrap();
        let sockets: Vec<_> = (0..=255).map(bind).collect();
        let mut sent = 0;
        while !flag.load(Ordering::Relaxed) {
            for socket in sockets.iter().cycle().skip(sent % 256).take(16) {
                let _ = socket.send_to(&syn((sent / 256) as u16 + 1), to);
                sent += 1;
            }
            thread::sleep(Duration::from_millis(8));
        }
        sent
    });
    let begun = Instant::now();
    let mut full = serde_json::Value::Null;
    while full["pdcs"] != 1024 && begun.elapsed() < Duration::from_secs(120) {
        thread::sleep(Duration::from_millis(50));
        full = serde_json::from_str(&call(&mut suite, r#"{"id":1,"op":"counters"}"#)).unwrap();
    }

    let mut initiator = peer.connect();
    let add =
        json!({"id": 1, "op": "add_peer", "address": "127.0.0.1", "port": target.packets.port(), "job": 101});
    let added: serde_json::Value = serde_json::from_str(&call(&mut initiator, &add.to_string())).unwrap();
    let mut last = String::new();
    for _ in 0..20 {
        let post = json!({"id": 2, "op": "post", "kind": "write", "peer": added["peer"], "length": 64, "remote": {"key": "0x7"}});
        let posted: serde_json::Value =
            serde_json::from_str(&call(&mut initiator, &post.to_string())).unwrap();
        let (operation, limit) = (&posted["operation"], ENDLESS.as_nanos() as u64);
        let wait = json!({"id": 3, "op": "wait_completion", "operation": operation, "timeout_ns": limit});
        last = call(&mut initiator, &wait.to_string());
        if !last.contains(r#""status":"ok""#) {
            break;
        }
    }
    done.store(true, Ordering::Relaxed);
    let sent = flooder.join().unwrap();
    peer.stop();
    target.stop();
    assert_eq!(full["pdcs"], 1024, "the flood fills the target: {full}");
    assert!(last.contains(r#""status":"ok""#), "after {sent} syn packets: {last}");
}

#[test]
fn thousand_quick_reconnects_are_served() {
    let nic = Running::start();
    for n in 0..1000 {
        let mut suite = nic.connect();
        let answer = call(&mut suite, r#"{"id":1,"op":"counters"}"#);
        assert!(answer.contains(r#""ok":true"#), "connection {n}: {answer}");
    }
    nic.stop();
}

/// Connects a suite that has requested this many lines of 16 MiB.
fn greedy_suite(nic: &Running, lines: usize) -> BufReader<TcpStream> {
    let mut suite = nic.connect();
    let region = json!({"id": 1, "op": "expose_region", "length": 8 << 20, "key": "0x7", "job": 101});
    assert!(call(&mut suite, &region.to_string()).contains("ok"));
    let read = json!({"id": 2, "op": "read_memory", "region": 1, "offset": 0, "length": 8 << 20});
    suite.get_mut().write_all(format!("{read}\n").repeat(lines).as_bytes()).unwrap();
    suite
}

/// Reads lines of 16 MiB slowly, until the connection ends.
fn slow_reader(nic: &Running) -> JoinHandle<()> {
    let mut suite = greedy_suite(nic, 8);
    let reader = thread::spawn(move || {
        while suite.get_mut().read(&mut [0; 512]).is_ok_and(|read| read > 0) {
            thread::sleep(Duration::from_millis(5));
        }
    });
    thread::sleep(Duration::from_millis(300));
    reader
}

#[test]
fn slow_reader_delays_neither_stop_nor_another_suite() {
    let nic = Running::start();
    slow_reader(&nic);
    nic.stop();

    let nic = Running::start();
    slow_reader(&nic);
    // The NIC disconnects the slow suite first.
    let answer = call(&mut nic.connect(), r#"{"id":1,"op":"counters"}"#);
    assert!(answer.contains(r#""ok":true"#), "{answer}");
    nic.stop();
}

#[test]
fn suite_that_does_not_read_delays_no_packets() {
    let nic = Running::start();
    let mut suite = greedy_suite(&nic, 1);
    suite.fill_buf().unwrap();
    let peer = UdpSocket::bind(("127.0.0.6", nic.packets.port())).unwrap();
    peer.set_read_timeout(Some(ENDLESS)).unwrap();
    let request = [0x10, 0, 0, 0, 0, 0, 0, 7, 0, 9, 0x40, 9, 0, 0, 0, 0];
    peer.send_to(&request, nic.packets).unwrap();
    peer.recv(&mut [0; 64]).expect("a NACK");
    // The NIC has not disconnected it yet.
    let mut line = String::new();
    suite.read_line(&mut line).unwrap();
    assert!(line.len() > 16 << 20 && line.ends_with('\n'), "{} bytes", line.len());
    nic.stop();
}

#[test]
fn second_suite_is_refused_while_the_first_stays() {
    let nic = Running::start();
    let mut first = nic.connect();
    assert!(call(&mut first, r#"{"id":1,"op":"counters"}"#).contains("ok"));
    let mut second = nic.open();
    assert!(call(&mut second, HELLO).contains("another suite is already connected"));
    assert!(call(&mut first, r#"{"id":2,"op":"counters"}"#).contains("ok"));
    nic.stop();
}

#[test]
fn connection_without_hello_gives_way_to_the_next() {
    let nic = Running::start();
    let mut silent = nic.open();
    let mut second = nic.connect();
    let mut told = String::new();
    silent.read_line(&mut told).unwrap();
    assert!(told.contains("another suite connected before this one sent `hello`"), "{told}");
    assert!(call(&mut second, r#"{"id":2,"op":"counters"}"#).contains("ok"));
    nic.stop();
}

#[test]
fn indices_are_bounded() {
    let nic = Running::start();
    let mut suite = nic.connect();
    let mut refused = None;
    for process in 0..20 {
        let request = json!({"id": process, "op": "set_indices", "job": 1, "process": process, "index": 0, "count": 4096});
        let answer = call(&mut suite, &request.to_string());
        if answer.contains("error") {
            refused = Some((process, answer));
            break;
        }
    }
    let (process, answer) = refused.expect("a bound on indices");
    assert_eq!(process, 16, "{answer}");
    assert!(answer.contains("at most 65536 indices"), "{answer}");
    assert!(call(&mut suite, r#"{"id":1,"op":"reset"}"#).contains("ok"));
    let again = r#"{"id":2,"op":"set_indices","job":1,"process":1,"index":0,"count":4096}"#;
    assert!(call(&mut suite, again).contains("ok"));
    nic.stop();
}
