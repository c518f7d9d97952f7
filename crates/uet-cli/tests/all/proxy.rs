//! `uet proxy` between two NICs, each a process of its own on loopback.
#![cfg(target_os = "linux")]

use crate::common;

use common::nic::{Nic, expose, memory, peer, post, ready, wait};
use common::uet;
use serde_json::Value;
use std::io::{BufReader, Read};
use std::process::{Command, Stdio};
use uet_control::{PostKind, Status, pattern};

#[test]
fn lost_packets_are_retransmitted() {
    let (a, b) = (Nic::start("127.0.0.11", &[]), Nic::start("127.0.0.12", &[]));
    let file = common::file("between.pcapng", b"");
    let ends = [format!("127.0.0.11:{}", a.port()), format!("127.0.0.12:{}", b.port())];
    let mut proxy = Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["proxy", &ends[0], &ends[1], "--listen", "127.0.0.19:0", "--capture", &file])
        .args(["--impair", "drop first 2 from 127.0.0.11", "--impair", "duplicate ack every 2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(proxy.stdout.take().unwrap());
    let port = ready(&proxy, &mut out)["link"]["port"].as_u64().unwrap() as u16;

    // Each NIC uses the proxy as its peer.
    let (mut suite, mut other) = (a.connect(), b.connect());
    let region = expose(&mut other, 16_384, None);
    peer(&mut other, "127.0.0.19", port);
    let target = peer(&mut suite, "127.0.0.19", port);
    let operation = suite.call(post(PostKind::Write, target, 16_384)).unwrap().operation;
    assert_eq!(wait(&mut suite, operation).status, Status::Ok);
    assert!(memory(&mut other, region, 16_384).into_iter().eq(pattern(9).take(16_384)));

    common::signal(proxy.id(), "-TERM");
    assert_eq!(proxy.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let told: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(told["lost"], 1, "{told}");

    let run = uet(&["decode", "--format", "summary", &file]);
    assert!(run.out.contains("[RETX]") && run.out.contains("127.0.0.11 > 127.0.0.12"), "{}", run.out);
    let run = uet(&["check", &file]);
    assert_eq!(run.code, 0, "neither is to blame: {}", run.out);
}

#[test]
fn longer_packets_than_uet_has_are_dropped() {
    let far = std::net::UdpSocket::bind("127.0.0.22:0").unwrap();
    far.set_read_timeout(Some(common::ENDLESS)).unwrap();
    let far_end = far.local_addr().unwrap().to_string();
    let ends = ["127.0.0.21:4793", &far_end];
    let mut proxy = Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["proxy", ends[0], ends[1], "--listen", "127.0.0.23:0", "--impair", "delay 1ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(proxy.stdout.take().unwrap());
    let port = ready(&proxy, &mut out)["link"]["port"].as_u64().unwrap() as u16;
    let end = std::net::UdpSocket::bind("127.0.0.21:0").unwrap();
    for length in [60_000, 9_000] {
        end.send_to(&vec![0x10; length], ("127.0.0.23", port)).unwrap();
    }
    // The proxy reads them in this order.
    assert_eq!(far.recv(&mut [0; 10_000]).unwrap(), 9_000);
    common::signal(proxy.id(), "-TERM");
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let told: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(told["sent"], 1, "{told}");
    let said = proxy.wait_with_output().unwrap().stderr;
    assert!(String::from_utf8_lossy(&said).contains(": 1 packet could not be forwarded"));
}

#[test]
fn invalid_ends_are_refused() {
    for (args, said) in [
        (&["127.0.0.1:1", "127.0.0.1:2", "--listen", "127.0.0.9:0"][..], "needs two different addresses"),
        (&["127.0.0.1", "127.0.0.2", "--listen", "203.0.113.1:0"], "203.0.113.1:0: "),
        (
            &["nowhere", "127.0.0.2", "--listen", "127.0.0.9:0"],
            "expected an IP address with an optional port",
        ),
        (&["127.0.0.1", "127.0.0.2"], "--listen"),
    ] {
        let run = uet(&[&["proxy"], args].concat());
        assert_eq!(run.code, 2, "{args:?}");
        assert!(run.err.contains(said), "{args:?}: {}", run.err);
    }
}
