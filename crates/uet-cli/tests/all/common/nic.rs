//! The emulated NIC, as a process.

use super::ENDLESS;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use uet_control::{
    AddPeer, Client, Completion, Counted, Counters, ExposeRegion, Fill, Hello, Hex64, PROTOCOL, Post,
    PostKind, ReadMemory, Remote, WaitCompletion,
};

/// A NIC in a process of its own. Dropping it stops the process.
pub(crate) struct Nic {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) ready: Value,
}

impl Nic {
    pub(crate) fn start(address: &str, more: &[&str]) -> Self {
        Self::start_with(address, more, Stdio::inherit()).0
    }

    /// Starts a NIC with this standard error, and returns the other end if that is a pipe.
    pub(crate) fn start_with(address: &str, more: &[&str], err: Stdio) -> (Self, Option<ChildStderr>) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_uet"))
            .args(["emulate", "--listen", &format!("{address}:0")])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(err)
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let ready = ready(&child, &mut out);
        let err = child.stderr.take();
        (Nic { child, out, ready }, err)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn port(&self) -> u16 {
        self.ready["link"]["port"].as_u64().unwrap() as u16
    }

    pub(crate) fn connect(&self) -> Client<BufReader<TcpStream>, TcpStream> {
        let port = self.ready["control"]["port"].as_u64().unwrap() as u16;
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        // An answer may itself come after that time.
        stream.set_read_timeout(Some(2 * ENDLESS)).unwrap();
        let mut client = Client::new(BufReader::new(stream.try_clone().unwrap()), stream);
        client.call(Hello { protocol: PROTOCOL }).unwrap();
        client
    }

    /// Ends the NIC with a signal; returns its exit code and further output.
    pub(crate) fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        super::signal(self.id(), signal);
        let code = self.child.wait().unwrap().code();
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.out, &mut rest).unwrap();
        (code, rest)
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the line with which a NIC or a proxy says that it is ready. Ends one that never does.
pub(crate) fn ready(child: &Child, out: &mut impl BufRead) -> Value {
    let (id, (has_said, said)) = (child.id(), channel::<()>());
    let watch = thread::spawn(move || {
        if said.recv_timeout(ENDLESS) == Err(RecvTimeoutError::Timeout) {
            super::signal(id, "-KILL");
        }
    });
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    drop(has_said);
    watch.join().unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("is not ready: {error}: {line}"))
}

/// A control-channel client.
pub(crate) type Suite = Client<BufReader<TcpStream>, TcpStream>;

pub(crate) fn peer(suite: &mut Suite, address: &str, port: u16) -> u64 {
    let peer =
        AddPeer { address: address.parse().unwrap(), port: Some(port), job: 101, process: 2, initiator: 5 };
    suite.call(peer).unwrap().peer
}

pub(crate) fn expose(suite: &mut Suite, length: u64, fill: Option<Fill>) -> u64 {
    let region = ExposeRegion {
        length,
        key: Hex64(0xacce5),
        job: Some(101),
        process: 2,
        index: 3,
        generation: 4,
        permissions: vec![
            uet_control::Permission::Read,
            uet_control::Permission::Write,
            uet_control::Permission::Atomic,
        ],
        fill,
    };
    suite.call(region).unwrap().region
}

pub(crate) fn post(kind: PostKind, peer: u64, length: u64) -> Post {
    Post {
        fill: Some(Fill::Seed(9)),
        remote: Remote { key: Hex64(0xacce5), index: 3, generation: 4, ..Remote::default() },
        want_data: true,
        ..Post::new(kind, peer, length)
    }
}

pub(crate) fn wait(suite: &mut Suite, operation: u64) -> Completion {
    suite.call(WaitCompletion { operation, timeout_ns: ENDLESS.as_nanos() as u64 }).unwrap()
}

/// Returns the counters once they satisfy `enough`.
pub(crate) fn counted(suite: &mut Suite, enough: impl Fn(&Counted) -> bool) -> Counted {
    let begun = Instant::now();
    loop {
        let counted = suite.call(Counters {}).unwrap();
        if enough(&counted) {
            return counted;
        }
        assert!(begun.elapsed() < 2 * ENDLESS, "{counted:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn memory(suite: &mut Suite, region: u64, length: u64) -> Vec<u8> {
    suite.call(ReadMemory { region, offset: 0, length }).unwrap().data.0
}
