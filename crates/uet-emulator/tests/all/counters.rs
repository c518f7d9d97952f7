//! Packet counters and Start_PSNs of a NIC with keys: no IV repeats, and no recorded request executes again.

use bytes::Bytes;
use serde_json::{Value, json};
use uet_control::{Link, Request};
use uet_emulator::control::Control;
use uet_emulator::{Config, Nic};
use uet_model::ses::{Access, Key, Operation, Peer, Process, Region, ResourceIndex, Work};
use uet_model::{Packet, Time};
use uet_observe::IvHistory;
use uet_packet_io::keys::{KeyRing, Opened};
use uet_wire::tss::Outer;

const DEVICE: [u8; 4] = [10, 0, 0, 1];
const PEER: [u8; 4] = [10, 0, 0, 2];

fn secret(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

/// Opens packets with all keys of these tests, and finds repeated IVs.
struct Judge {
    ring: KeyRing,
    history: IvHistory,
    packets: u64,
}

impl Judge {
    fn new() -> Self {
        let keys = [secret(1), secret(2)];
        let domain = |sdi: u32| {
            format!("[[domain]]\nsdi = {sdi}\nmode = \"cluster\"\nkeys = {{ 0 = {keys:?}, 1 = {keys:?} }}\n")
        };
        let ring = KeyRing::from_toml(&[7, 8].map(domain).concat()).unwrap();
        Judge { ring, history: IvHistory::default(), packets: 0 }
    }

    fn packet(&mut self, packet: &Packet) {
        let sealed = packet.to_wire().to_vec();
        let outer = Outer::udp(packet.src, packet.dst, packet.entropy, sealed.len());
        let opened = self.ring.open(&outer, &mut sealed.clone());
        let Opened::Authentic { key_iv, .. } = opened else { panic!("{opened:?}") };
        self.packets += 1;
        let repeats = self.history.repeats(key_iv, sealed, self.packets);
        assert_eq!(repeats, None, "packet {} repeats an IV", self.packets);
    }
}

/// A NIC that sends datagrams.
struct Device {
    nic: Nic,
    control: Control,
    requests: u64,
}

impl Device {
    fn new() -> Self {
        Device::of(Nic::new(DEVICE, Config::default()).unwrap())
    }

    fn of(nic: Nic) -> Self {
        let control = Control::new(&nic, Link::Inside { addr: DEVICE.into() }, &[]);
        Device { nic, control, requests: 0 }
    }

    fn call(&mut self, mut request: Value) -> Value {
        self.requests += 1;
        request["id"] = self.requests.into();
        let request = Request::parse(&request.to_string()).unwrap();
        let answer = self.control.handle(Time::ZERO, &mut self.nic, request).unwrap();
        serde_json::from_str(&answer.to_line()).unwrap()
    }

    /// Installs one domain with one key, changed by `more`.
    fn install(&mut self, sdi: u32, an: &str, byte: u8, epoch: u16) {
        let an_number: u8 = an.parse().unwrap();
        let domain = json!({"sdi": sdi, "mode": "cluster", "keys": {an: secret(byte)}, "an": an_number,
            "epoch": epoch});
        let answer = self.call(json!({"op": "install_keys", "domains": [domain]}));
        assert_eq!(answer["ok"], true, "{answer}");
    }

    /// Sends three datagrams with this content.
    fn send(&mut self, judge: &mut Judge, content: u8) {
        let peer = self.call(json!({"op": "add_peer", "address": "10.0.0.2", "job": 1, "process": 0}));
        for _ in 0..3 {
            let fill = json!({"hex": format!("{content:02x}").repeat(32)});
            let posted = self.call(json!({"op": "post", "kind": "datagram", "mode": "uud", "length": 32,
                "peer": peer["peer"], "fill": fill, "remote": {"index": 1}}));
            assert_eq!(posted["ok"], true, "{posted}");
        }
        let before = judge.packets;
        while let Some(packet) = self.nic.poll_transmit(Time::ZERO) {
            judge.packet(&packet);
        }
        assert_eq!(judge.packets, before + 3);
    }
}

/// Sends under key 1, does something to the device, and sends under key 1 again.
fn sends_twice(between: impl FnOnce(&mut Device, &mut Judge)) {
    let (mut device, mut judge) = (Device::new(), Judge::new());
    device.install(7, "0", 1, 0);
    device.send(&mut judge, 0x41);
    between(&mut device, &mut judge);
    device.send(&mut judge, 0x42);
}

#[test]
fn key_that_comes_back_repeats_no_iv() {
    sends_twice(|device, judge| {
        device.install(7, "0", 2, 0);
        device.send(judge, 0x43);
        device.install(7, "0", 1, 0);
    });
}

#[test]
fn reset_repeats_no_iv() {
    sends_twice(|device, _| {
        assert_eq!(device.call(json!({"op": "reset"}))["ok"], true);
        device.install(7, "0", 1, 0);
    });
}

#[test]
fn epoch_that_comes_back_repeats_no_iv() {
    sends_twice(|device, judge| {
        device.install(7, "0", 1, 1);
        device.send(judge, 0x43);
        device.install(7, "0", 1, 0);
    });
}

#[test]
fn other_slot_repeats_no_iv() {
    sends_twice(|device, _| device.install(7, "1", 1, 0));
}

#[test]
fn other_domain_repeats_no_iv() {
    sends_twice(|device, _| device.install(8, "0", 1, 0));
}

#[test]
fn one_key_for_two_domains_is_refused() {
    let domain = |sdi: u32| json!({"sdi": sdi, "mode": "cluster", "keys": {"0": secret(1)}});
    let answer = Device::new().call(json!({"op": "install_keys", "domains": [domain(7), domain(8)]}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("AN 0 of domain 0x000007 and AN 0 of domain 0x000008 have one key"),
        "{message}"
    );
    assert!(!message.contains("0101"), "{message}");
}

#[cfg(target_os = "linux")]
fn of_process() -> Nic {
    Nic::new(DEVICE, Config::default()).unwrap().with_process_security().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn nics_of_a_process_repeat_no_iv() {
    let mut judge = Judge::new();
    for content in 0x41..0x45 {
        let mut device = Device::of(of_process());
        device.install(7, "0", 1, 0);
        device.send(&mut judge, content);
    }
}

/// Plays two NICs until both are idle. Returns the packets to the first one.
#[cfg(target_os = "linux")]
fn play(target: &mut Nic, peer: &mut Nic) -> Vec<Packet> {
    let (mut now, mut recorded) = (Time::ZERO, Vec::new());
    loop {
        if let Some(packet) = peer.poll_transmit(now) {
            recorded.push(packet.clone());
            target.handle_input(now, packet);
        } else if let Some(packet) = target.poll_transmit(now) {
            peer.handle_input(now, packet);
        } else {
            let next = [target.poll_timeout(), peer.poll_timeout()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next < Time(1_000_000_000)) else { break };
            now = next.max(now);
            target.handle_timeout(now);
            peer.handle_timeout(now);
        }
    }
    recorded
}

#[cfg(target_os = "linux")]
#[test]
fn recorded_requests_do_not_execute_after_a_restart() {
    let keys = format!("[[domain]]\nsdi = 7\nmode = \"cluster\"\nkeys = {{ 0 = \"{}\" }}\n", secret(1));
    let keys = uet_packet_io::keys::domains_from_toml(&keys).unwrap();
    // As `uet emulate` and the libfabric provider start.
    let mut config = Config::default();
    config.secure.start_psn_method = uet_model::secure::StartPsnMethod::Random;
    let index = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
    let target = || {
        let mut nic = Nic::new(DEVICE, config.clone()).unwrap().with_process_security().unwrap();
        nic.install_keys(&keys).unwrap();
        let region = Region { key: Key(7), base: 0, access: Access::ALL, data: vec![0; 8] };
        let region = nic.expose(index, region).unwrap();
        (nic, region)
    };

    let mut peer = Nic::new(PEER, Config::default()).unwrap();
    peer.install_keys(&keys).unwrap();
    let write = Work::Write { key: Key(7), offset: 0, data: Bytes::from_static(b"recorded") };
    peer.post(Operation::new(Peer::relative(DEVICE, 101, 2), write)).unwrap();
    let (mut nic, region) = target();
    let recorded = play(&mut nic, &mut peer);
    assert_eq!(nic.memory(region), Some(&b"recorded"[..]));

    let (mut nic, region) = target();
    for packet in recorded.iter().chain(&recorded) {
        nic.handle_input(Time::ZERO, packet.clone());
        while nic.poll_transmit(Time::ZERO).is_some() {}
    }
    assert_eq!(nic.memory(region), Some(&[0; 8][..]));
}
