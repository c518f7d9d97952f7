//! Two processes of `uet emulate` on loopback, driven over their control channels.
#![cfg(target_os = "linux")]

use crate::common;

use common::nic::{Nic, counted, expose, memory, peer, post, wait};
use common::{ENDLESS, uet};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant};
use uet_control::{
    Bye, Counters, Fill, Hello, Hex, Hex64, Mode, PROTOCOL, Post, PostKind, PostReceive, Remote, Reset,
    Status, Welcome,
};

#[test]
fn two_of_them_write_read_and_send() {
    let capture = common::file("emulate.pcapng", b"");
    let (a, b) = (Nic::start("127.0.0.1", &["--capture", &capture]), Nic::start("127.0.0.2", &[]));
    let (mut to_a, mut to_b) = (a.connect(), b.connect());
    let welcome: Welcome = to_a.call(Hello { protocol: PROTOCOL }).unwrap();
    assert_eq!(serde_json::to_value(&welcome.link).unwrap(), a.ready["link"]);
    assert_eq!(welcome.parameters["rto_init_time"], 20_000_000);

    let b_seen = peer(&mut to_a, "127.0.0.2", b.port());
    peer(&mut to_b, "127.0.0.1", a.port());
    let region = expose(&mut to_b, 20_000, None);
    let data = Fill::Seed(9).bytes(20_000);

    for mode in [Mode::Rud, Mode::Rod] {
        let write = Post { mode, ..post(PostKind::Write, b_seen, 20_000) };
        let operation = to_a.call(write).unwrap().operation;
        assert_eq!(wait(&mut to_a, operation).status, Status::Ok);
        assert_eq!(memory(&mut to_b, region, 20_000), data);
    }

    let operation = to_a.call(post(PostKind::Read, b_seen, 20_000)).unwrap().operation;
    let read = wait(&mut to_a, operation);
    assert_eq!((read.length, read.data), (20_000, Some(Hex(data.clone()))));

    let receive = PostReceive {
        length: 9_000,
        job: Some(101),
        process: 2,
        index: 3,
        tag: Some(Hex64(0x77)),
        ignore: Hex64(0xf),
        initiator: Some(5),
    };
    let receive = to_b.call(receive).unwrap();
    let send =
        Post { tag: Some(Hex64(0x7a)), header_data: Some(Hex64(11)), ..post(PostKind::Tsend, b_seen, 8_000) };
    let operation = to_a.call(send).unwrap().operation;
    let received = wait(&mut to_b, receive.operation);
    assert_eq!((received.length, received.header_data), (8_000, Some(Hex64(11))));
    assert_eq!(memory(&mut to_b, receive.region, 8_000), data[..8_000]);
    assert_eq!(wait(&mut to_a, operation).status, Status::Ok);

    let wrong = Post {
        remote: Remote { key: Hex64(1), index: 3, generation: 4, ..Remote::default() },
        ..post(PostKind::Write, b_seen, 10)
    };
    let operation = to_a.call(wrong).unwrap().operation;
    let refused = wait(&mut to_a, operation);
    assert_eq!((refused.status, refused.return_code.as_deref()), (Status::Refused, Some("BAD_MKEY")));

    to_a.call(Bye {}).unwrap();
    assert_eq!(a.stop("-TERM"), (Some(0), String::new()));
    assert_eq!(b.stop("-INT"), (Some(0), String::new()));

    // Readers recognize UET regardless of the port.
    let run = uet(&["decode", "--format", "json", &capture]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(run.out.lines().count() > 10 && run.out.lines().all(|line| line.contains("\"pds.type\":")));
}

#[test]
fn it_survives_any_packets() {
    let nic = Nic::start("127.0.0.3", &[]);
    let mut suite = nic.connect();
    let socket = UdpSocket::bind("127.0.0.4:0").unwrap();
    let to = ("127.0.0.3", nic.port());
    let mut rng = fastrand::Rng::with_seed(1);
    let mut sent = 0;
    for length in (0..200).chain([1500, 9000, 60_000]) {
        let bytes: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
        socket.send_to(&bytes, to).unwrap();
        sent += 1;
    }
    let counted = counted(&mut suite, |counted| counted.received >= sent);
    assert_eq!(counted.received, sent);
    assert!(counted.dropped["malformed"] > 0, "{counted:?}");
    // Random bytes may open a context; a reset forgets it.
    suite.call(Reset {}).unwrap();
    let counted = suite.call(Counters {}).unwrap();
    assert_eq!((counted.received, counted.pdcs), (0, 0));
}

const HELLO: &str = r#"{"id":1,"op":"hello","protocol":1}"#;

#[test]
fn connection_begins_with_hello() {
    let nic = Nic::start("127.0.0.20", &[]);
    let port = nic.ready["control"]["port"].as_u64().unwrap() as u16;
    let answers = |request: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        // It only ends a hang.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        // A connection that closes with unread lines may lose the answer.
        BufReader::new(stream).lines().map_while(Result::ok).collect::<Vec<String>>()
    };
    let add_peer = r#"{"id":2,"op":"add_peer","address":"127.0.0.21","job":101}"#;
    for first in ["POST / HTTP/1.1\r\n", "nonsense\n", "[1]\n", &format!("{add_peer}\n")] {
        let [answer] = &answers(first)[..] else { panic!("{first}: not one line, and then the end") };
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(answer["error"]["code"], "bad_request", "{first}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("must be"), "{answer}");
    }
    let page = format!("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n{HELLO}\n{add_peer}\n");
    assert!(answers(&page).iter().all(|line| !line.contains("\"ok\"")));

    let run = common::uet_with(
        format!("{add_peer}\n{HELLO}\n").as_bytes(),
        &["emulate", "--listen", "127.0.0.20:0", "--control", "stdio"],
    );
    assert_eq!(run.out.lines().count(), 1, "{}", run.out);
    // The NIC is still there.
    nic.connect();
}

#[test]
fn it_survives_any_requests() {
    let nic = Nic::start("127.0.0.5", &[]);
    let port = nic.ready["control"]["port"].as_u64().unwrap() as u16;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut say = |line: &str| -> Value {
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    assert_eq!(say(HELLO)["name"], "uet-emulator");
    assert_eq!(say("nonsense")["error"]["code"], "bad_request");
    assert_eq!(
        say(r#"{"id":3,"op":"dance"}"#),
        json!({"id": 3, "error": {"code": "unsupported", "message": "there is no operation 'dance'"}})
    );
    assert_eq!(say(r#"{"id":4,"op":"post"}"#)["error"]["code"], "bad_request");
    assert_eq!(say(r#"{"id":5,"op":"post","kind":"write","peer":9}"#)["error"]["code"], "not_found");
    let configured =
        say(r#"{"id":6,"op":"configure","parameters":{"payload_mtu":1024,"nonsense":1,"default_mpr":0}}"#);
    assert_eq!(configured["taken"], json!(["payload_mtu"]));
    assert_eq!(
        configured["refused"],
        json!({"default_mpr": "must be from 1 to 255", "nonsense": "there is no such parameter; docs/parameters.md lists them"})
    );

    // A second suite waits until the first has disconnected.
    let other = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let refused = BufReader::new(other).lines().next().unwrap().unwrap();
    assert!(refused.contains("another suite is already connected"), "{refused}");

    // Invalid UTF-8 ends the connection, not the NIC.
    stream.write_all(b"\xff\xff\n").unwrap();
    let told = lines.next().unwrap().unwrap();
    assert!(told.contains("bad_request") && told.contains("not UTF-8"), "{told}");
    assert!(lines.next().is_none_or(|line| line.is_err()));
    assert_eq!(nic.connect().call(Hello { protocol: PROTOCOL }).unwrap().parameters["payload_mtu"], 1024);
}

#[test]
#[cfg(not(feature = "live"))]
fn without_libpcap_it_is_said_how_to_get_it() {
    let run = uet(&["check", "--interface", "lo", "--promiscuous"]);
    assert_eq!((run.code, run.err.contains("--features live")), (2, true), "{}", run.err);
}

#[test]
fn over_standard_input_and_output() {
    let run = common::uet_with(
        b"{\"id\":1,\"op\":\"hello\",\"protocol\":1}\n{\"id\":2,\"op\":\"bye\"}\n",
        &["emulate", "--listen", "127.0.0.6:0", "--control", "stdio"],
    );
    let lines: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, lines.len()), (0, 2), "{}", run.err);
    assert_eq!(lines[0]["name"], "uet-emulator");
    assert_eq!(lines[1], json!({"id": 2, "ok": true}));
}

#[test]
fn it_ends_if_nobody_reads_its_standard_output() {
    let mut nic = std::process::Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["emulate", "--listen", "127.0.0.22:0", "--control", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = nic.stdin.take().unwrap();
    requests.write_all(format!("{HELLO}\n").as_bytes()).unwrap();
    // The answers fill the pipe.
    let counters = "{\"id\":2,\"op\":\"counters\"}\n".repeat(1000);
    while requests.write_all(counters.as_bytes()).is_ok() {}
    let ended = nic.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    let expected = "the control channel: nobody has read a line on standard output for 2 s";
    assert!(ended.status.code() == Some(2) && told.contains(expected), "{:?}: {told}", ended.status);
}

#[test]
fn parameters_from_a_file() {
    let file = common::file("nic.toml", b"rto_init_time = 1000\ncongestion = \"none\"\nseed = 4\n");
    let nic = Nic::start("127.0.0.7", &["--config", &file, "--seed", "5"]);
    let welcome = nic.connect().call(Hello { protocol: PROTOCOL }).unwrap();
    assert_eq!(welcome.parameters["rto_init_time"], 1000);
    assert_eq!(welcome.parameters["seed"], 5);
    assert_eq!(welcome.parameters["congestion"], "none");

    let wrong = common::file("wrong.toml", b"seed = 4\npayload_mtu = 1500\n");
    let run = uet(&["emulate", "--listen", "127.0.0.7:0", "--config", &wrong]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.ends_with("wrong.toml: line 2: payload_mtu: must be 1024, 2048, 4096 or 8192\n"),
        "{}",
        run.err
    );
    let run = uet(&["emulate", "--listen", "0.0.0.0"]);
    assert_eq!(
        (run.code, run.err.contains("is not the address of one endpoint; name an address of this machine")),
        (2, true),
        "{}",
        run.err
    );
}

/// Two runs use the same PDCIDs, PSNs and addresses.
#[test]
fn runs_in_one_capture_are_judged_apart() {
    let capture = common::file("two-runs.pcapng", b"");
    let nic = Nic::start("127.0.0.221", &["--capture", &capture]);
    let control = format!("127.0.0.1:{}", nic.ready["control"]["port"]);
    let device = ["--control", &control, "--local", "127.0.0.222,127.0.0.223"];
    for _ in 0..2 {
        let rule = ["run", "--id", "write/one-packet", "--timeout-scale", "50"];
        let run = uet(&[&rule[..], &device].concat());
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    }
    assert_eq!(nic.stop("-TERM").0, Some(0));
    let shared = common::file("two-runs-shared.pcapng", b"");
    assert_eq!(uet(&["anonymize", &capture, &shared]).code, 0);
    let clear = common::file("two-runs-clear.pcapng", b"");
    assert_eq!(uet(&["decrypt", &capture, &clear]).code, 0);
    for capture in [&capture, &shared, &clear] {
        let check = uet(&["check", capture]);
        assert_eq!((check.code, check.err.as_str()), (0, ""), "{}", check.out);
        let stats = uet(&["stats", "--format", "json", capture]).out;
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(stats["total"]["duplicates"], 0, "{stats}");
    }
}

#[test]
fn the_suite_runs_against_it() {
    let nic = Nic::start("127.0.0.8", &[]);
    let control = format!("127.0.0.1:{}", nic.ready["control"]["port"]);
    let capture = common::file("remote.pcapng", b"");
    let device = ["--control", &control, "--local", "127.0.0.9,127.0.0.10", "--capture", &capture];
    // The machine may be busy.
    let run = uet(&[&["run", "--group", "ack", "--timeout-scale", "50"], &device[..]].concat());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let port = nic.port().to_string();
    let decoded = uet(&["decode", "--format", "summary", "--udp-port", &port, &capture]);
    assert_eq!(decoded.code, 0);
}

#[test]
fn send_and_write_errors_are_reported() {
    let (nic, err) = Nic::start_with("127.0.0.17", &["--capture", "/dev/full"], Stdio::piped());
    let mut suite = nic.connect();
    // IPv4 cannot send to IPv6.
    let nowhere = peer(&mut suite, "fd00::1", 4793);
    suite.call(post(PostKind::Write, nowhere, 10)).unwrap();
    counted(&mut suite, |counted| counted.dropped.contains_key("not sent: the system cannot"));
    let known = peer(&mut suite, "127.0.0.18", 4793);
    suite.call(post(PostKind::Write, known, 10)).unwrap();
    counted(&mut suite, |counted| counted.sent >= 3);
    drop(suite);
    // Before any signal: a NIC may run for weeks.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(BufReader::new(err.unwrap()).lines().next().unwrap().unwrap()));
    let said = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(said.contains("/dev/full: warning: packets are not captured: "), "{said}");
    assert_eq!(nic.stop("-TERM").0, Some(2), "nothing of the capture could be kept");
}

#[test]
fn a_suite_gets_no_answers_of_another() {
    let nic = Nic::start("127.0.0.19", &[]);
    let port = nic.ready["control"]["port"].as_u64().unwrap() as u16;
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        (BufReader::new(stream.try_clone().unwrap()).lines(), stream)
    };
    let (mut lines, mut stream) = connect();
    stream
        .write_all(format!("{HELLO}\n{{\"id\":1,\"op\":\"post_receive\",\"length\":8}}\n").as_bytes())
        .unwrap();
    assert!(lines.next().unwrap().unwrap().contains("uet-emulator"));
    assert!(lines.next().unwrap().unwrap().contains("\"operation\":1"));
    stream
        .write_all(b"{\"id\":77,\"op\":\"wait_completion\",\"operation\":1,\"timeout_ns\":500000000}\n")
        .unwrap();
    drop((lines, stream));

    // The NIC may take a moment to notice that the first suite has disconnected.
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < ENDLESS, "the first suite is still connected");
        let (mut lines, mut stream) = connect();
        stream.write_all(format!("{HELLO}\n").as_bytes()).unwrap();
        match lines.next() {
            Some(Ok(line)) if line.contains("uet-emulator") => {}
            _ => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
        }
        stream
            .write_all(b"{\"id\":2,\"op\":\"wait_completion\",\"operation\":1,\"timeout_ns\":1000000000}\n")
            .unwrap();
        let line = lines.next().unwrap().unwrap();
        assert!(line.starts_with("{\"id\":2,\"error\":{\"code\":\"timeout\""), "{line}");
        break;
    }
}

#[test]
fn unavailable_address_is_reported_with_advice() {
    let nic = Nic::start("127.0.0.1", &[]);
    let taken = format!("127.0.0.1:{}", nic.port());
    for (at, said) in [(&taken[..], "another program listens there"), ("203.0.113.1:0", "of this machine")] {
        let run = uet(&["emulate", "--listen", at]);
        assert_eq!(run.code, 2);
        assert!(run.err.contains(said), "{}", run.err);
    }
}
