//! Ethernet frames on interfaces: a NIC at one end of a cable and the suite at the other, each in a network namespace.
//! `./test live` runs this. It needs `unshare`, `nsenter` and `ip`, but no special privileges.
#![cfg(target_os = "linux")]

mod switch;

use crate::common;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

const UET: &str = env!("CARGO_BIN_EXE_uet");

/// A namespace; dropping it ends it.
struct Space(Child);

/// The process that keeps a namespace alive. It exits when its standard input closes.
const KEEPER: [&str; 3] = ["sh", "-c", "ip link set lo up && echo there && exec cat"];

impl Space {
    fn new(mut command: Command) -> Self {
        let keeper = command.args(KEEPER).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = keeper.spawn().expect("util-linux and iproute2");
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "there\n", "no namespace");
        Space(keeper)
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Creates a command that runs in the namespace.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--preserve-credentials", "--user", "--net", "--target", &self.id(), program]);
        command
    }

    /// Makes two, of which the first may command the second.
    fn pair() -> [Space; 2] {
        let mut first = Command::new("unshare");
        first.args(["--user", "--map-root-user", "--net"]);
        let near = Space::new(first);
        let mut second = near.command("unshare");
        second.arg("--net");
        let far = Space::new(second);
        [near, far]
    }

    fn ip(&self, args: &str) {
        let status = self.command("ip").args(args.split_whitespace()).status().unwrap();
        assert!(status.success(), "ip {args}");
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two namespaces and a cable between them. The control channel uses addresses of the system.
struct Cable {
    near: Space,
    far: Space,
}

const CONTROL: &str = "192.168.7.2:9000";

impl Cable {
    fn new() -> Self {
        let [near, far] = Space::pair();
        near.ip(&format!("link add near mtu 9000 type veth peer name far mtu 9000 netns {}", far.id()));
        near.ip("address add 192.168.7.1/24 dev near");
        far.ip("address add 192.168.7.2/24 dev far");
        near.ip("link set near up");
        far.ip("link set far up");
        Cable { near, far }
    }

    /// Starts a NIC at the far end.
    fn emulate(&self, address: &str, more: &[&str]) -> Emulated {
        let mut command = self.far.command(UET);
        command.args(["emulate", "--interface", "far", "--control", CONTROL, "--address", address]);
        let mut child = command.args(more).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let ready = common::nic::ready(&child, &mut out);
        Emulated { child, ready }
    }

    /// Runs the program at the near end.
    fn uet(&self, args: &[&str]) -> Output {
        self.near.command(UET).args(args).output().unwrap()
    }

    /// Runs the suite at the near end with these addresses.
    fn suite(&self, local: &str, args: &[&str]) -> (Option<i32>, Value, String) {
        // The machine may be busy.
        let common = ["run", "--format", "json", "--timeout-scale", "8", "--dut", "raw:near"];
        let run = self.uet(&[&common[..], &["--control", CONTROL, "--local", local], args].concat());
        let err = String::from_utf8_lossy(&run.stderr).into_owned();
        (run.status.code(), serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{err}")), err)
    }
}

struct Emulated {
    child: Child,
    ready: Value,
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns verdict and reason of each rule.
fn verdicts(result: &Value) -> impl Iterator<Item = (&str, &str, &str)> {
    result["rules"].as_array().unwrap().iter().map(|rule| {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        (text("id"), text("verdict"), text("reason"))
    })
}

const V4: [&str; 2] = ["10.0.0.1", "10.0.0.2,10.0.0.3,10.0.0.4"];
const V6: [&str; 2] = ["fd00::1", "fd00::2,fd00::3,fd00::4"];

const DSCPS: &str = "40,41,42,43";

fn runs(name: &str, [device, local]: [&str; 2], options: &[&str]) {
    let cable = Cable::new();
    // These DSCPs differ from the suite's table.
    let nic = cable.emulate(device, &[options, &["--dscps", DSCPS]].concat());
    assert_eq!((&nic.ready["link"]["kind"], &nic.ready["link"]["addr"]), (&"raw".into(), &device.into()));
    let capture = common::file(&format!("live-{name}.pcapng"), b"");
    let groups = ["establish", "write", "ack", "nack", "trim", "crc"];
    let mut args = vec!["--capture", &capture];
    groups.iter().for_each(|group| args.extend(["--group", group]));
    let (code, result, err) = cable.suite(local, &args);
    let crc = options.contains(&"--crc");
    for (id, verdict, reason) in verdicts(&result) {
        let expected = if id.starts_with("crc/") && !crc { "skipped" } else { "pass" };
        assert_eq!(verdict, expected, "{id}: {reason} {err}");
    }
    assert_eq!(code, Some(0), "{err}");
    for group in groups {
        assert!(verdicts(&result).any(|(id, ..)| id.starts_with(&format!("{group}/"))), "{group}");
    }
    assert_eq!(result["packets"]["findings"], serde_json::json!([]), "around UET, too");

    // The capture contains whole frames with their trailers.
    let trailer = if crc { "crc" } else { "none" };
    let proto = if options.contains(&"--ip-proto") { "254" } else { "253" };
    let deployed =
        ["--trailer", trailer, "--ip-proto", proto, "--trimmed-dscp", "41", "--trimmed-lasthop-dscp", "42"];
    let decoded = common::uet(&[&["decode", "--format", "json"], &deployed[..], &[&capture]].concat());
    let packets: Vec<Value> = decoded.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let layer = if options.contains(&"native") { "entropy" } else { "udp" };
    let has_layer = |packet: &&Value| packet["stack"].as_array().unwrap().contains(&layer.into());
    assert_eq!(packets.iter().filter(has_layer).count(), packets.len());
    assert_eq!(packets.iter().any(|packet| packet["trailer"]["ok"] == true), crc);
    assert_eq!(
        packets.iter().any(|packet| packet["trailer"]["ok"] == false),
        crc,
        "of the rules that damage packets"
    );
    assert!(packets.iter().any(|packet| !packet["trimmed"].is_null()));
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn in_udp_over_ipv4_with_trailers() {
    runs("udp4", V4, &["--crc"]);
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn in_udp_over_ipv6() {
    runs("udp6", V6, &[]);
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn native_over_ipv4() {
    runs("native4", V4, &["--encapsulation", "native"]);
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn native_over_ipv6_with_trailers() {
    runs("native6", V6, &["--encapsulation", "native", "--crc", "--ip-proto", "254"]);
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn wrong_trailers_are_noticed() {
    for (fault, requirement) in [("believes-any-crc", "ROB-CRC-001"), ("crc-of-whole-words", "WIRE-CRC-001")]
    {
        let cable = Cable::new();
        let _nic = cable.emulate(V4[0], &["--crc", "--fault", fault]);
        let (code, result, _) = cable.suite(V4[1], &["--group", "crc"]);
        assert_eq!(code, Some(1), "{fault}");
        let rules = result["rules"].as_array().unwrap();
        let failed: Vec<_> = rules.iter().filter(|rule| rule["verdict"] == "fail").collect();
        assert!(!failed.is_empty());
        for rule in failed {
            assert_eq!(rule["requirements"], serde_json::json!([requirement]), "{fault}");
        }
    }
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn live_traffic_is_judged() {
    judges_live_traffic(&[]);
}

#[test]
#[cfg(feature = "live")]
#[ignore = "makes network namespaces: ./test live"]
fn live_traffic_is_judged_through_libpcap() {
    judges_live_traffic(&["--promiscuous"]);
}

fn judges_live_traffic(more: &[&str]) {
    let cable = Cable::new();
    let _nic = cable.emulate(V4[0], &["--crc", "--fault", "crc-of-whole-words"]);
    let mut watch = cable.near.command(UET);
    watch.args(["check", "--interface", "near", "--trailer", "crc", "--format", "json"]);
    let mut watch = watch.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(watch.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("listening to near"), "{line}");
    let mut decode = cable.near.command(UET);
    decode.args(["decode", "--interface", "near", "--trailer", "crc", "--format", "json", "--filter"]);
    decode.args(["crc && pds.spdcid"]).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut decode = decode.spawn().unwrap();
    let mut decode_said = BufReader::new(decode.stderr.take().unwrap());
    line.clear();
    decode_said.read_line(&mut line).unwrap();
    assert!(line.contains("listening to near"), "{line}");
    let (.., result, _) = cable.suite(V4[1], &["--id", "crc/replies"]);
    assert_eq!(result["rules"].as_array().map(Vec::len), Some(1));
    common::signal(watch.id(), "-INT");
    let mut lines = Vec::new();
    for line in BufReader::new(watch.stdout.take().unwrap()).lines() {
        lines.push(serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    }
    assert_eq!(watch.wait().unwrap().code(), Some(1), "an error was found");
    let last = lines.last().unwrap();
    assert!(
        last["packets"].as_u64().unwrap() > 10 && last["findings"]["WIRE-CRC-001"].as_u64().unwrap() > 0,
        "{last}"
    );
    let crc: Vec<_> = lines.iter().filter(|line| line["id"] == "WIRE-CRC-001").collect();
    assert!(crc.iter().all(|line| line["culprit"] == V4[0]), "{crc:?}");

    common::signal(decode.id(), "-INT");
    let decoded: Vec<String> =
        BufReader::new(decode.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
    assert_eq!(decode.wait().unwrap().code(), Some(1), "a CRC is wrong");
    assert!(decoded.len() > 10 && decoded.iter().all(|line| line.contains(r#""trailer":{"kind":"crc""#)));

    let ended = cable.uet(&["check", "--interface", "near", "--seconds", "0"]);
    assert_eq!(ended.status.code(), Some(0), "nothing passed");
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn live_traffic_is_measured() {
    let cable = Cable::new();
    let _nic = cable.emulate(V4[0], &[]);
    let mut stats = cable.near.command(UET);
    stats.args(["stats", "--interface", "near", "--format", "json"]);
    let mut stats = stats.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(stats.stderr.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert!(line.contains("listening to near"), "{line}");
    let (code, ..) = cable.suite(V4[1], &["--id", "write/several-packets"]);
    assert_eq!(code, Some(0));
    common::signal(stats.id(), "-INT");
    let measured: Value = serde_json::from_reader(stats.stdout.take().unwrap()).unwrap();
    assert_eq!(stats.wait().unwrap().code(), Some(0));
    let to_the_nic = |pair: &&Value| pair["dst"] == V4[0];
    let pair = measured["pairs"].as_array().unwrap().iter().find(to_the_nic).expect("writes to the NIC");
    let [packets, requests, acks] =
        ["packets", "requests", "acks"].map(|key| pair["sums"][key].as_u64().unwrap());
    assert!(requests > 1 && acks > 0 && packets >= requests + acks, "{pair}");
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn a_conversation_is_played_again_over_frames() {
    let cable = Cable::new();
    let _nic = cable.emulate(V4[0], &["--encapsulation", "native"]);
    let capture = common::file("live-replay.pcapng", b"");
    let (code, ..) = cable.suite(V4[1], &["--id", "ack/requested", "--capture", &capture]);
    assert_eq!(code, Some(0));
    let to = ["--to", "raw:near", "--control", CONTROL, "--local", "10.0.0.2", "--wait", "200"];
    let run = cable.uet(&[&["replay", &capture], &to[..]].concat());
    let out = String::from_utf8_lossy(&run.stdout);
    let sent = out.lines().last().unwrap_or_default();
    assert!(!sent.starts_with("0 sent") && !sent.contains(" 0 received"), "{out} {run:?}");
}

/// Runs `peer.py` at the near end.
fn peer(cable: &Cable, manner: &str) -> Value {
    let mut command = cable.near.command("python3");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/peer.py");
    let run = command.args([script, "near", "10.0.0.2", manner, CONTROL]).output().unwrap();
    let err = String::from_utf8_lossy(&run.stderr);
    serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{err}"))
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn nic_asks_for_ethernet_addresses() {
    let cable = Cable::new();
    let nic = cable.emulate(V4[0], &[]);
    let silent = peer(&cable, "silent");
    assert!(silent["questions"].as_u64() > Some(1), "{silent}");
    assert!(silent["broadcast"].as_u64() > Some(1) && silent["unicast"] == 0, "{silent}");
    drop(nic);

    let nic = cable.emulate(V4[0], &[]);
    let answers = peer(&cable, "answer");
    assert_eq!(answers["questions"], 1, "{answers}");
    assert_eq!((&answers["broadcast"], &answers["unicast"]), (&1.into(), &2.into()), "{answers}");
    drop(nic);

    let configured = format!("10.0.0.2={}", answers["mac"].as_str().unwrap());
    let _nic = cable.emulate(V4[0], &["--peer-mac", &configured]);
    let known = peer(&cable, "silent");
    assert_eq!((&known["questions"], &known["broadcast"]), (&0.into(), &0.into()), "{known}");
    assert_eq!(known["unicast"], 2, "{known}");
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn nic_answers_for_its_address() {
    for (address, near, send) in
        [("10.0.0.1", "10.0.0.2/24", "AF_INET"), ("fd00::1", "fd00::2/64 nodad", "AF_INET6")]
    {
        let cable = Cable::new();
        let nic = cable.emulate(address, &[]);
        cable.near.ip(&format!("address add {near} dev near"));
        let script = format!(
            "import socket; socket.socket(socket.{send}, socket.SOCK_DGRAM).sendto(b'x', ('{address}', 9))"
        );
        assert!(cable.near.command("python3").args(["-c", &script]).status().unwrap().success());
        let entry = || {
            let shown = cable.near.command("ip").args(["neighbor", "show", address]).output().unwrap();
            String::from_utf8(shown.stdout).unwrap()
        };
        let mac = nic.ready["link"]["mac"].as_str().unwrap();
        let found = (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            entry().contains(mac)
        });
        assert!(found, "{address}: {}", entry());
    }
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn suite_uses_a_configured_ethernet_address() {
    let cable = Cable::new();
    let nic = cable.emulate(V4[0], &[]);
    let mac = nic.ready["link"]["mac"].as_str().unwrap();
    let local = V4[1];
    let (code, _, err) =
        cable.suite(local, &["--id", "write/one-packet", "--peer-mac", &format!("10.0.0.1={mac}")]);
    assert_eq!(code, Some(0), "{err}");
    // Frames to another address do not reach the NIC.
    let wrong = "10.0.0.1=02:00:00:00:00:07";
    let (code, out, _) = cable.suite(local, &["--id", "write/one-packet", "--peer-mac", wrong]);
    // The rule has several instances. After some of them the run ends, because the device has never answered.
    assert_eq!(code, Some(2), "{out}");
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn missing_interfaces_are_named() {
    let cable = Cable::new();
    let run = cable.uet(&["emulate", "--interface", "nosuch", "--address", "10.0.0.1"]);
    let err = String::from_utf8_lossy(&run.stderr);
    assert_eq!((run.status.code(), err.contains("nosuch")), (Some(2), true), "{err}");
    let _nic = cable.emulate(V4[0], &[]);
    let run = cable.uet(&["run", "--control", CONTROL]);
    let err = String::from_utf8_lossy(&run.stderr);
    assert_eq!((run.status.code(), err.contains("--dut raw:INTERFACE")), (Some(2), true), "{err}");
    let run = cable.uet(&["doctor", "--dut", "raw:near", "--control", CONTROL, "--local", V4[1]]);
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(out.lines().any(|line| line.starts_with("link") && line.contains(" ok ")), "{out}");
}

/// The system takes VLAN tags off; `uet check` shows frames as they are on the wire.
#[test]
#[ignore = "makes network namespaces: ./test live"]
fn check_keeps_vlan_tags() {
    const SEND: &str = "import socket, sys; far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); \
                        far.bind(('far', 0)); [far.send(bytes.fromhex(digits)) for digits in sys.argv[1:]]";
    let cable = Cable::new();
    let out = common::file("live-vlan.pcapng", b"");
    let mut watch = cable.near.command(UET);
    watch.args(["check", "--interface", "near", "--seconds", "60", "--annotate", &out]);
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(watch.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "uet: listening to near\n");
    let frame = common::frame(&json!({
        "src": "192.168.7.2", "dst": "192.168.7.1", "stack": ["eth", "vlan", "ipv4", "udp", "pds", "ses", "payload"],
        "fields": {
            "vlan.id": 7, "pds.type": 2, "pds.clear_psn_offset": -1, "pds.psn": 5, "pds.spdcid": 0x4001,
            "pds.dpdcid": 0x8001, "ses.opcode": 1, "ses.som": 1, "ses.eom": 1, "ses.request_length": 4,
        },
        "payload_hex": "01020304",
    }));
    let digits = |frame: &[u8]| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let frames = [digits(&frame), digits(&common::forbidden())];
    let sent = cable.far.command("python3").args(["-c", SEND]).args(&frames).status().unwrap();
    assert!(sent.success());
    // The program reports the error of the second frame at once, so it has read the first.
    let mut told = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert!(told.any(|line| line.unwrap().contains("WIRE-SES-003")));
    common::signal(watch.id(), "-INT");
    told.for_each(drop);
    watch.wait().unwrap();
    let decoded = common::uet(&["decode", "--format", "json", "--bytes", &out]).out;
    let packets: Vec<Value> = decoded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tagged = packets.iter().filter(|packet| packet["fields"]["pds.psn"] == 5);
    let tags: Vec<&Value> = tagged.map(|packet| &packet["fields"]["vlan.id"]).collect();
    assert_eq!(tags, [7], "{decoded}");
}
