//! `uet switch` on interfaces: a bridge of the system with a token bucket, and the built-in switch in a process of its
//! own.

use super::{Space, UET};
use crate::common;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};

/// The suite's ports `p0` to `p3` in one namespace, and the switch's `s0` to `s3` in another.
struct Ports {
    near: Space,
    far: Space,
}

const PORTS: usize = 4;

impl Ports {
    fn new() -> Self {
        let [near, far] = Space::pair();
        for n in 0..PORTS {
            near.ip(&format!("link add p{n} type veth peer name s{n} netns {}", far.id()));
            near.ip(&format!("link set p{n} up"));
            far.ip(&format!("link set s{n} up"));
        }
        Ports { near, far }
    }

    fn uet(&self, args: &[&str]) -> Output {
        // The machine may be busy.
        self.near.command(UET).args(["switch", "--timeout-scale", "3"]).args(args).output().unwrap()
    }

    fn tc(&self, args: &str) -> bool {
        let status = self.far.command("tc").args(args.split_whitespace()).stderr(Stdio::null()).status();
        status.expect("iproute2").success()
    }

    fn bridge(&self) {
        self.far.ip("link add bridge type bridge");
        (0..PORTS).for_each(|n| self.far.ip(&format!("link set s{n} master bridge")));
        self.far.ip("link set bridge up");
    }
}

/// Returns a statement: `top` before the ports, `rate` for port 1, then `more`.
fn statement(name: &str, top: &str, rate: &str, more: &str) -> String {
    let ports: String = (0..PORTS)
        .map(|n| {
            let rate = if n == 1 { rate } else { "" };
            format!("[[port]]\nname = 'p{n}'\naddress = '10.0.0.{}'\nlast_hop = true\n{rate}\n", n + 1)
        })
        .collect();
    common::file(name, format!("{top}\n{ports}\n{more}").as_bytes())
}

fn verdicts(run: &Output) -> Vec<(String, String)> {
    let result: Value = serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
    let rules = result["rules"].as_array().unwrap().iter();
    rules.map(|rule| (text(rule, "id"), text(rule, "verdict"))).collect()
}

fn with(verdicts: &[(String, String)], verdict: &str) -> Vec<String> {
    verdicts.iter().filter(|(_, of)| of == verdict).map(|(id, _)| id.clone()).collect()
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn a_bridge_forwards_and_neither_marks_nor_trims() {
    let ports = Ports::new();
    ports.bridge();
    assert!(ports.tc("qdisc add dev s1 root tbf rate 100mbit burst 4k limit 1m"));
    let plain = statement("bridge.toml", "hops = 0", "rate_mbps = 100", "");
    let run = ports.uet(&[&plain, "--format", "json"]);
    let passed = with(&verdicts(&run), "pass");
    assert_eq!(passed, ["forward/bytes", "order/one-entropy", "ecn/idle"], "{run:?}");
    assert_eq!(run.status.code(), Some(0));

    // It does not trim, whatever the statement says. Where the load loses packets, no trim announces them.
    let trims = statement("bridge-trims.toml", "hops = 0", "rate_mbps = 100", "[trim]\nsize = 128");
    let run = ports.uet(&[&trims, "--format", "json", "--id", "trim/data"]);
    assert!(matches!(run.status.code(), Some(1 | 3)), "{run:?}");
    // The TTL does not fall.
    let router = statement("router.toml", "hops = 1", "", "");
    let run = ports.uet(&[&router, "--id", "forward"]);
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.code() == Some(1) && out.contains("NET-FWD-002"), "{out}");
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn the_rate_of_a_port_is_learned() {
    let ports = Ports::new();
    ports.bridge();
    // So slow that a busy machine congests it too.
    assert!(ports.tc("qdisc add dev s1 root tbf rate 10mbit burst 4k limit 1m"));
    let run = ports.uet(&[&statement("learn.toml", "", "", ""), "--learn"]);
    let draft: toml::Table =
        String::from_utf8_lossy(&run.stdout).parse().unwrap_or_else(|_| panic!("{run:?}"));
    assert_eq!(draft["hops"].as_integer(), Some(0));
    let rate = draft["port"][1]["rate_mbps"].as_integer().unwrap();
    assert!((5..=11).contains(&rate), "{rate}");
    assert!(!draft.contains_key("trim"));
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn a_bridge_with_red_marks() {
    let ports = Ports::new();
    ports.bridge();
    assert!(ports.tc("qdisc add dev s1 root handle 1: tbf rate 100mbit burst 4k limit 4m"));
    let red = "qdisc add dev s1 parent 1:1 red limit 4000000 min 60000 max 180000 avpkt 1500 burst 41 probability 1 \
               bandwidth 100mbit ecn";
    if !ports.tc(red) {
        eprintln!("NOT RUN: this kernel has no RED (CONFIG_NET_SCH_RED)");
        return;
    }
    let mark = "[mark]\nfrom = 60000\nto = 400000\naveraged = true";
    let marks = statement("red.toml", "hops = 0", "rate_mbps = 100", mark);
    let run = ports.uet(&[&marks, "--format", "json"]);
    assert!(with(&verdicts(&run), "fail").is_empty(), "{run:?}");
    assert!(with(&verdicts(&run), "pass").contains(&"ecn/not-capable".to_owned()), "{run:?}");
}

/// The software switch in the far namespace.
struct Switch(Child);

impl Switch {
    fn new(ports: &Ports, statement: &str, more: &[&str]) -> Self {
        let mut command = ports.far.command(UET);
        command.args(["switch", statement]).args(more).arg("--emulate");
        let mut child =
            command.args((0..PORTS).map(|n| format!("s{n}"))).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("ready"), "{line}");
        Switch(child)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const TRIMS: &str = "[dscp]\nuntrimmable = 0\n[trim]\nsize = 128\nabove = 60000\n\
                     [[route]]\nto = '10.9.0.1'\nports = ['p2', 'p3']";

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn the_software_switch_trims_between_interfaces() {
    let ports = Ports::new();
    let trims = statement("soft.toml", "hops = 1", "rate_mbps = 100", TRIMS);
    let _switch = Switch::new(&ports, &trims, &[]);
    let run = ports.uet(&[&trims, "--format", "json"]);
    let verdicts = verdicts(&run);
    assert!(with(&verdicts, "fail").is_empty(), "{run:?}");
    let passed = with(&verdicts, "pass");
    for rule in ["forward/bytes", "spread/paths", "trim/data", "trim/control", "incast/degree"] {
        assert!(passed.contains(&rule.to_owned()), "{rule}: {run:?}");
    }
}

#[test]
#[ignore = "makes network namespaces: ./test live"]
fn a_fault_of_the_software_switch_is_caught() {
    let ports = Ports::new();
    let trims = statement("soft-fault.toml", "hops = 1", "rate_mbps = 100", TRIMS);
    let _switch = Switch::new(&ports, &trims, &["--fault", "cuts-one-byte-more"]);
    let run = ports.uet(&[&trims, "--id", "trim/data"]);
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.code() == Some(1) && out.contains("NET-TRIM-002"), "{out}");
}
