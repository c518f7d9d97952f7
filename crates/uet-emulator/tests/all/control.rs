//! The control channel of a NIC, in virtual time.

use core::time::Duration;
use serde_json::{Value, json};
use uet_control::{Answer, Fill, Hex, Link, Request};
use uet_emulator::control::Control;
use uet_emulator::{Config, Network, Nic, NicId};
use uet_model::Time;

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

/// Two NICs, each with its control channel. They are peers of each other.
struct Devices {
    net: Network,
    devices: [(NicId, Control); 2],
    requests: u64,
}

impl Devices {
    fn new() -> Self {
        let mut net = Network::new(1);
        let devices = ADDRESSES.map(|address| {
            let nic = net.add(Nic::new(address, Config::default()).unwrap());
            let link = Link::Inside { addr: address.into() };
            let control = Control::new(&net[nic], link, &[]);
            (nic, control)
        });
        let mut devices = Devices { net, devices, requests: 0 };
        devices.ask(
            0,
            json!({"op": "add_peer", "address": "10.0.0.2", "job": 101, "process": 2, "initiator": 5}),
        );
        devices
    }

    fn begin(&mut self, device: usize, mut request: Value) -> Option<Answer> {
        self.requests += 1;
        request["id"] = self.requests.into();
        let (nic, control) = &mut self.devices[device];
        let request = Request::parse(&request.to_string()).unwrap();
        control.handle(self.net.now(), &mut self.net[*nic], request)
    }

    fn later(&mut self, device: usize, within: Duration) -> Option<Answer> {
        let (nic, control) = &mut self.devices[device];
        let until = self.net.now() + within;
        self.net.run_until(until, |net| control.poll_answer(net.now(), &mut net[*nic]))
    }

    /// Returns the answer, even a delayed one.
    fn ask(&mut self, device: usize, request: Value) -> Value {
        let answer = self.begin(device, request);
        let answer = answer.or_else(|| {
            let due = self.devices[device].1.poll_timeout().unwrap();
            let within = due - self.net.now();
            self.later(device, within)
        });
        serde_json::to_value(answer.expect("an answer")).unwrap()
    }

    fn post(&mut self, request: Value) -> u64 {
        let mut post = json!({"op": "post", "peer": 1, "remote": {"key": "0x7"}, "fill": {"seed": 3}});
        post.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
        self.ask(0, post)["operation"].as_u64().unwrap()
    }

    fn wait(&mut self, device: usize, operation: u64) -> Value {
        self.ask(device, json!({"op": "wait_completion", "operation": operation, "timeout_ns": 100_000_000}))
    }

    fn expose(&mut self, length: usize, fill: Value) -> u64 {
        let region = json!({"op": "expose_region", "length": length, "key": "0x7", "job": 101, "process": 2, "fill": fill});
        self.ask(1, region)["region"].as_u64().unwrap()
    }

    fn memory(&mut self, region: u64, length: usize) -> Value {
        self.ask(1, json!({"op": "read_memory", "region": region, "length": length}))["data"].clone()
    }
}

fn pattern(length: usize) -> Value {
    serde_json::to_value(Hex(Fill::Seed(3).bytes(length))).unwrap()
}

#[test]
fn hello_reports_the_nic() {
    let mut devices = Devices::new();
    let welcome = devices.ask(0, json!({"op": "hello", "protocol": 1}));
    assert_eq!(welcome["link"], json!({"kind": "inside", "addr": "10.0.0.1"}));
    assert_eq!(welcome["specification"], "1.0.3");
    assert_eq!(welcome["parameters"]["rto_init_time"], 100_000, "in nanoseconds");
    let claims = welcome["capabilities"].as_array().unwrap();
    for claim in ["rud", "rudi", "fetch_atomic", "receive", "nscc", "close", "request_close", "tss"] {
        assert!(claims.contains(&claim.into()), "{claim}");
    }
}

/// Posts of every kind, the fields of their completions, and the memory afterward.
#[test]
fn everything_that_can_be_posted() {
    for (kind, length) in [("write", 10_000), ("write", 0)] {
        let mut devices = Devices::new();
        let region = devices.expose(10_000, json!({"hex": ""}));
        let write = devices.post(json!({"kind": kind, "length": length}));
        let done = devices.wait(0, write);
        assert_eq!(
            (&done["status"], &done["length"], &done["return_code"]),
            (&"ok".into(), &length.into(), &"OK".into())
        );
        assert_eq!(devices.memory(region, length), pattern(length));
    }

    let mut devices = Devices::new();
    devices.expose(10_000, json!({"seed": 3}));
    let read = devices.post(json!({"kind": "read", "length": 10_000, "want_data": true}));
    assert_eq!(devices.wait(0, read)["data"], pattern(10_000));
    let again = devices.wait(0, read);
    assert_eq!((&again["status"], &again["data"]), (&"ok".into(), &Value::Null), "once");
    let read = devices.post(json!({"kind": "read", "length": 10_000}));
    assert_eq!(devices.wait(0, read)["data"], Value::Null, "only when it is wanted");
}

#[test]
fn every_kind_of_send_meets_its_receive() {
    let cases = [
        ("send", json!(null), json!({})),
        ("tsend", json!("0x75"), json!({"tag": "0x75"})),
        ("rendezvous_send", json!(null), json!({"eager": 100})),
        ("rendezvous_tsend", json!("0x75"), json!({"tag": "0x75", "eager": 100})),
        ("deferrable_send", json!(null), json!({})),
        ("deferrable_tsend", json!("0x75"), json!({"tag": "0x75"})),
    ];
    for (kind, tag, more) in cases {
        let mut devices = Devices::new();
        let mut receive = json!({"op": "post_receive", "length": 10_000, "job": 101, "process": 2});
        if !tag.is_null() {
            (receive["tag"], receive["ignore"]) = (json!("0x70"), json!("0xf"));
        }
        let receive = devices.ask(1, receive);
        let mut send = json!({"kind": kind, "length": 9_000, "header_data": "0xb"});
        send.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let send = devices.post(send);
        let received = devices.wait(1, receive["operation"].as_u64().unwrap());
        assert_eq!(
            (&received["status"], &received["length"]),
            (&"ok".into(), &9_000.into()),
            "{kind}: {received}"
        );
        assert_eq!(received["header_data"], "0xb", "{kind}");
        assert_eq!(devices.memory(receive["region"].as_u64().unwrap(), 9_000), pattern(9_000), "{kind}");
        assert_eq!(devices.wait(0, send)["status"], "ok", "{kind}");
    }
}

#[test]
fn set_indices_takes_effect() {
    let mut devices = Devices::new();
    let told =
        json!({"op": "set_indices", "job": 101, "process": 2, "index": 300, "count": 64, "disabled": true});
    devices.ask(1, told);
    let to = |index: u16| json!({"kind": "send", "length": 8, "remote": {"process": 2, "index": index}});
    for (index, code) in [(299, "BAD_INDEX"), (300, "DISABLED"), (363, "DISABLED"), (364, "BAD_INDEX")] {
        let sent = devices.post(to(index));
        assert_eq!(devices.wait(0, sent)["return_code"], code, "{index}");
    }
    // Omitted fields keep their values: the generation is raised, and the indices are still disabled.
    devices.ask(1, json!({"op": "set_indices", "job": 101, "process": 2, "index": 300, "generation": 7}));
    let sent = devices.post(json!({"kind": "send", "remote": {"process": 2, "index": 300, "generation": 7}}));
    assert_eq!(devices.wait(0, sent)["return_code"], "DISABLED");
    devices.ask(1, json!({"op": "set_indices", "job": 101, "process": 2, "index": 300, "disabled": false}));
    let sent = devices.post(json!({"kind": "send", "remote": {"process": 2, "index": 300, "generation": 7}}));
    assert_eq!(devices.wait(0, sent)["status"], "ok");
}

#[test]
fn datagrams_and_nothing_at_all() {
    let mut devices = Devices::new();
    let receive = devices.ask(1, json!({"op": "post_receive", "length": 1_000, "job": 101, "process": 2}));
    let sent = devices.post(json!({"kind": "datagram", "mode": "uud", "length": 500}));
    assert_eq!(devices.wait(0, sent)["status"], "ok");
    let received = devices.wait(1, receive["operation"].as_u64().unwrap());
    assert_eq!(received["length"], 500);
    let nothing = devices.post(json!({"kind": "no_op"}));
    assert_eq!(devices.wait(0, nothing)["status"], "ok");
}

#[test]
fn atomics() {
    let mut devices = Devices::new();
    let region = devices.expose(8, json!({"hex": "2900000000000000"}));
    let add = json!({"kind": "fetch_atomic", "length": 8, "fill": {"hex": "01"}, "want_data": true,
        "atomic_opcode": "SUM", "atomic_datatype": "UINT64"});
    let add = devices.post(add);
    assert_eq!(devices.wait(0, add)["data"], "2900000000000000");
    let swap = json!({"kind": "atomic", "length": 8, "compare": "2a", "swap": "0102", "atomic_opcode": "CSWAP",
        "atomic_datatype": "UINT64"});
    let swap = devices.post(swap);
    assert_eq!(devices.wait(0, swap)["status"], "ok");
    assert_eq!(devices.memory(region, 8), "0201000000000000");
    let unknown = json!({"op": "post", "kind": "atomic", "peer": 1, "atomic_opcode": "DANCE", "atomic_datatype": "UINT64"});
    assert_eq!(devices.ask(0, unknown)["error"]["code"], "bad_request");
}

#[test]
fn refusals_give_a_reason() {
    let mut devices = Devices::new();
    devices.expose(8, json!({"seed": 1}));
    let write = devices.post(json!({"kind": "write", "length": 4, "remote": {"key": "0x8"}}));
    let refused = devices.wait(0, write);
    assert_eq!((&refused["status"], &refused["return_code"]), (&"refused".into(), &"BAD_MKEY".into()));

    let generation = json!({"op": "expose_region", "length": 8, "key": "0x7", "job": 101, "process": 2, "index": 3, "generation": 4});
    devices.ask(1, generation);
    let write = devices.post(json!({"kind": "write", "length": 4, "remote": {"key": "0x7", "index": 3}}));
    let refused = devices.wait(0, write);
    assert_eq!(
        (&refused["return_code"], &refused["message"]),
        (&"BAD_GENERATION".into(), &"the current generation is 4".into())
    );

    devices.net.fabric().impair("drop to 10.0.0.2".parse().unwrap());
    let write = devices.post(json!({"kind": "write", "length": 4}));
    let failed = devices.wait(0, write);
    assert_eq!((&failed["status"], &failed["return_code"]), (&"failed".into(), &"UNDELIVERABLE".into()));
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let mut devices = Devices::new();
    let receive = devices.ask(1, json!({"op": "post_receive", "length": 8, "job": 101, "process": 2}));
    let operation = receive["operation"].clone();
    let begun = devices.net.now();
    let late =
        devices.ask(1, json!({"op": "wait_completion", "operation": operation, "timeout_ns": 5_000_000}));
    assert_eq!(late["error"]["code"], "timeout");
    assert_eq!(devices.net.now() - begun, Duration::from_millis(5));
    let at_once = devices.ask(1, json!({"op": "wait_completion", "operation": operation, "timeout_ns": 0}));
    assert_eq!(at_once["error"]["code"], "timeout");
    assert_eq!(devices.net.now() - begun, Duration::from_millis(5));
}

#[test]
fn answers_come_in_any_order() {
    let mut devices = Devices::new();
    devices.expose(8, json!({"seed": 1}));
    let never = devices.ask(1, json!({"op": "post_receive", "length": 8, "job": 101, "process": 2}));
    let wait = |operation: &Value| json!({"op": "wait_completion", "operation": operation, "timeout_ns": 50_000_000});
    assert_eq!(devices.begin(1, wait(&never["operation"])), None);
    let other = devices.ask(1, json!({"op": "counters"}));
    assert_eq!(other["ok"], true, "it can be asked while something is waited for");
    let first = devices.requests - 1;
    assert_eq!(devices.later(1, Duration::from_millis(60)).unwrap().id, first);
}

#[test]
fn events_report_completions() {
    let mut devices = Devices::new();
    devices.expose(8, json!({"seed": 1}));
    let write = devices.post(json!({"kind": "write", "length": 4}));
    devices.net.run(Duration::from_millis(1));
    let (nic, control) = &mut devices.devices[0];
    let event = control.poll_event(&mut devices.net[*nic]).unwrap();
    let event: Value = serde_json::from_str(&event.to_line()).unwrap();
    assert_eq!((&event["event"], &event["operation"]), (&"completion".into(), &write.into()));
    assert_eq!(control.poll_event(&mut devices.net[*nic]), None);
}

#[test]
fn reset_restores_the_start_state() {
    let mut devices = Devices::new();
    let region = devices.expose(8, json!({"seed": 1}));
    devices.ask(1, json!({"op": "configure", "parameters": {"payload_mtu": 1024}}));
    let gone = devices.ask(1, json!({"op": "read_memory", "region": region, "length": 8}));
    assert_eq!(gone["error"]["code"], "not_found", "new parameters start it anew");

    let receive = devices.ask(1, json!({"op": "post_receive", "length": 8, "job": 101, "process": 2}));
    let wait = json!({"op": "wait_completion", "operation": receive["operation"], "timeout_ns": 50_000_000});
    assert_eq!(devices.begin(1, wait), None);
    assert_eq!(devices.ask(1, json!({"op": "reset"}))["ok"], true);
    let waited = devices.later(1, Duration::ZERO).unwrap();
    assert_eq!(waited.error.unwrap().message, "the device was reset");
    assert_eq!(devices.ask(1, json!({"op": "hello", "protocol": 1}))["parameters"]["payload_mtu"], 4096);

    devices.ask(0, json!({"op": "reset"}));
    let post = devices.ask(0, json!({"op": "post", "kind": "write", "peer": 1}));
    assert_eq!(post["error"]["message"], "there is no peer 1");
}

#[test]
fn contexts_are_closed_when_asked() {
    let mut devices = Devices::new();
    devices.expose(8, json!({"seed": 1}));
    let close = json!({"op": "close_pdc", "peer": 1});
    assert_eq!(devices.ask(0, close.clone())["error"]["code"], "not_found");
    let write = devices.post(json!({"kind": "write", "length": 4}));
    devices.wait(0, write);
    assert_eq!(devices.ask(0, json!({"op": "counters"}))["pdcs"], 1);
    assert_eq!(devices.ask(0, close)["ok"], true);
    devices.net.run(Duration::from_secs(1));
    assert_eq!(devices.ask(0, json!({"op": "counters"}))["pdcs"], 0);
}

#[test]
fn a_target_asks_for_the_close() {
    let mut devices = Devices::new();
    devices.expose(8, json!({"seed": 1}));
    let peer = json!({"op": "add_peer", "address": "10.0.0.1", "job": 101});
    let peer = devices.ask(1, peer)["peer"].clone();
    let close = |mode: &str| json!({"op": "request_close", "peer": peer, "mode": mode});
    assert_eq!(devices.ask(1, close("rud"))["error"]["code"], "not_found");
    let write = devices.post(json!({"kind": "write", "length": 4}));
    devices.wait(0, write);
    assert_eq!(devices.ask(1, close("rod"))["error"]["code"], "not_found");
    assert_eq!(devices.ask(0, json!({"op": "request_close", "peer": 1}))["error"]["code"], "not_found");
    assert_eq!(devices.ask(1, close("rud"))["ok"], true);
    devices.net.run(Duration::from_secs(1));
    for device in [0, 1] {
        assert_eq!(devices.ask(device, json!({"op": "counters"}))["pdcs"], 0);
    }
}

#[test]
fn a_suite_cannot_make_it_grow_without_end() {
    let mut devices = Devices::new();
    let mut big = json!({"op": "expose_region", "length": 60u64 << 20, "key": "0x1", "job": 1});
    assert_eq!(devices.ask(1, big.clone())["ok"], true);
    big["key"] = "0x2".into();
    assert_eq!(devices.ask(1, big)["error"]["code"], "exhausted");
    for length in [json!(u64::MAX), json!(1u64 << 40)] {
        let region = json!({"op": "expose_region", "length": length, "key": "0x3", "job": 1});
        assert_eq!(devices.ask(1, region)["error"]["code"], "exhausted");
        let post = json!({"op": "post", "kind": "write", "peer": 1, "length": length});
        assert_eq!(devices.ask(0, post)["error"]["code"], "bad_request");
        let piece = json!({"op": "read_memory", "region": 1, "offset": length, "length": length});
        assert_eq!(devices.ask(1, piece)["error"]["code"], "bad_request");
    }
    // A failed post or exposure counts no memory.
    for _ in 0..10 {
        let long = json!({"op": "post", "kind": "datagram", "mode": "uud", "peer": 1, "length": 16u64 << 20});
        assert_eq!(devices.ask(0, long)["error"]["code"], "bad_request", "it has to fit one packet");
        let unknown = json!({"op": "post", "kind": "atomic", "peer": 1, "length": 16u64 << 20});
        assert_eq!(devices.ask(0, unknown)["error"]["code"], "bad_request");
    }
    for _ in 0..10 {
        let same = json!({"op": "expose_region", "length": 1u64 << 20, "key": "0x1", "job": 1});
        assert_eq!(devices.ask(1, same)["error"]["code"], "bad_request", "the key is taken");
    }
}

#[test]
fn messages_on_their_way_are_memory_too() {
    let mut devices = Devices::new();
    devices.net.fabric().impair("drop".parse().unwrap());
    let write = json!({"op": "post", "kind": "write", "peer": 1, "length": 16u64 << 20});
    let posted: Vec<Value> = (0..5).map(|_| devices.ask(0, write.clone())).collect();
    assert!(posted[..4].iter().all(|answer| answer["ok"] == true));
    assert_eq!(posted[4]["error"]["code"], "exhausted");
    for answer in &posted[..4] {
        devices.wait(0, answer["operation"].as_u64().unwrap());
    }
    assert_eq!(devices.ask(0, write)["ok"], true, "they have ended");
}

#[test]
fn untaken_data_counts_as_memory() {
    let mut devices = Devices::new();
    let region = json!({"op": "expose_region", "length": 4u64 << 20, "key": "0x7", "job": 101, "process": 2});
    devices.ask(1, region);
    let read = json!({"op": "post", "kind": "read", "peer": 1, "length": 4u64 << 20, "want_data": true, "remote": {"key": "0x7"}});
    let mut posted = Vec::new();
    for _ in 0..16 {
        posted.push(devices.ask(0, read.clone())["operation"].as_u64().unwrap());
        devices.net.run(Duration::from_millis(10));
    }
    assert_eq!(devices.ask(0, read.clone())["error"]["code"], "exhausted");
    assert_eq!(devices.wait(0, posted[0])["length"], 4u64 << 20);
    assert_eq!(devices.ask(0, read)["ok"], true, "one has been taken");
}

#[test]
fn rendezvous_memory_is_freed() {
    let mut devices = Devices::new();
    // The total exceeds the memory that the NIC may hold.
    for _ in 0..5 {
        let send =
            devices.post(json!({"kind": "rendezvous_send", "length": 15u64 << 20, "remote": {"process": 9}}));
        assert_eq!(devices.wait(0, send)["return_code"], "BAD_JOB_ID");
    }
}

#[test]
fn ports_of_peers() {
    let mut devices = Devices::new();
    let address = "10.0.0.9".parse().unwrap();
    assert_eq!(devices.devices[0].1.port_of(address), None);
    devices.ask(0, json!({"op": "add_peer", "address": "10.0.0.9", "port": 5000, "job": 1}));
    devices.ask(0, json!({"op": "add_peer", "address": "10.0.0.9", "port": 5001, "job": 1}));
    assert_eq!(devices.devices[0].1.port_of(address), Some(5001), "the last word counts");
    assert!(devices.net.now() == Time::ZERO, "all that took no time");
}
