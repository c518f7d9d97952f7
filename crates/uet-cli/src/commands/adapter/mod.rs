//! `uet adapter`

mod address;
mod convert;
mod session;

use super::emulate::ControlPlace;
use super::{Outcome, about, complain};
use address::Format;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use session::Session;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use uet_control::{Handshake, Lines, Link};
use uet_packet_io::file;

/// The time without a request after which the provider makes progress.
const TURN: Duration = Duration::from_micros(200);

/// Time that a connection has for its `hello`, and then to read each answer.
const GREETING: Duration = Duration::from_secs(5);

/// Connect a device to the conformance suite
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet adapter libfabric --help   the options, with examples")]
pub(super) struct Adapter {
    #[command(subcommand)]
    interface: Interface,
}

#[derive(Debug, Subcommand)]
enum Interface {
    Libfabric(Box<LibfabricAdapter>),
}

/// Drive a NIC through its libfabric provider
///
/// Loads libfabric, opens the provider, and answers the conformance suite on the control channel: `uet run --control
/// ADDRESS` then tests the NIC. docs/applications.md shows how. When it is ready, it prints one line with its ports:
/// {"link":...,"control":...}. With `--control stdio` it prints none, since the channel uses standard output.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet adapter libfabric --provider uet --control 127.0.0.1:9000
  uet adapter libfabric --provider nic --domain nic0 --link 10.0.0.7:4793 --control 10.0.0.7:9000
  uet run --dut 'exec:uet adapter libfabric --provider uet --control stdio'

An address format is `uet`, `sockaddr`, or hexadecimal digits with fields in braces: {ip}, {ip6}, {port}, {job},
{process}, {index}, {generation}. Numbers are big-endian; {port:le} is little-endian. The format of the provider uet:
  55455401{job}{port}{process}{index}{generation}00{ip6}0000000000000000")]
struct LibfabricAdapter {
    /// Name of the provider, as `fi_info` lists it
    #[arg(long, value_name = "NAME")]
    provider: String,
    /// Address and port of the control channel, or `stdio`
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    control: ControlPlace,
    /// Name of the domain [default: the first one that the provider offers]
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// Own address and port, for a provider that takes them from `fi_getinfo`
    #[arg(long, value_name = "ADDRESS:PORT")]
    source: Option<SocketAddr>,
    /// Format of addresses in the address vector [default: the provider's, `sockaddr` if that is unknown]
    #[arg(long, value_name = "FORMAT")]
    address_format: Option<Format>,
    /// Address and port of the NIC's packets, or the `link` of hello in JSON [default: the name of the endpoint]
    #[arg(long, value_name = "LINK", value_parser = link)]
    link: Option<Link>,
    /// Job of the endpoint, if its name does not tell
    #[arg(long, value_name = "JOB", default_value_t = 101)]
    job: u32,
    /// PIDonFEP of the endpoint, if its name does not tell
    #[arg(long, value_name = "PROCESS", default_value_t = 2)]
    process: u16,
    /// Resource index of the endpoint and of its memory, if its name does not tell
    #[arg(long, value_name = "INDEX", default_value_t = 10)]
    index: u16,
    /// Further capabilities of the NIC, which libfabric cannot tell: ecn, nscc, paths
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    claim: Vec<String>,
    /// Parameters of the NIC, as TOML (docs/parameters.md)
    #[arg(long, value_name = "FILE")]
    parameters: Option<PathBuf>,
}

/// Parses the argument of `--link`.
fn link(text: &str) -> Result<Link, String> {
    if let Ok(address) = SocketAddr::from_str(text) {
        return Ok(Link::Udp { addr: address.ip(), port: address.port() });
    }
    serde_json::from_str(text)
        .map_err(|error| format!("expected ADDRESS:PORT, or JSON such as {{\"kind\":\"raw\",...}}: {error}"))
}

impl Adapter {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let Interface::Libfabric(libfabric) = &self.interface;
        libfabric.run()
    }
}

impl LibfabricAdapter {
    fn run(&self) -> io::Result<Outcome> {
        let parameters = self.parameters.as_deref().map(read_parameters).transpose()?;
        let mut session = Session::open(self, parameters.unwrap_or_default())?;
        match self.control {
            ControlPlace::Stdio => {
                serve(&mut session, BufReader::new(io::stdin()), io::stdout(), Duration::MAX)?
            }
            ControlPlace::Tcp(address) => {
                let listener = TcpListener::bind(address).map_err(|error| {
                    io::Error::new(error.kind(), format!("the control channel at {address}: {error}"))
                })?;
                let local = listener.local_addr()?;
                if !local.ip().is_loopback() {
                    complain(format_args!(
                        "warning: anyone who can reach {local} can control this NIC; to prevent it, use --control 127.0.0.1:PORT"
                    ));
                }
                let control = json!({"kind": "tcp", "addr": local.ip(), "port": local.port()});
                let mut out = io::stdout().lock();
                writeln!(out, "{}", json!({"link": session.link(), "control": control}))?;
                out.flush()?;
                loop {
                    let (stream, _) = listener.accept()?;
                    stream.set_nodelay(true)?;
                    stream.set_write_timeout(Some(GREETING))?;
                    let reader = BufReader::new(stream.try_clone()?);
                    // A suite that has left does not end the adapter.
                    if let Err(error) = serve(&mut session, reader, &stream, GREETING) {
                        complain(format_args!("the control channel: {error}"));
                    }
                    // The thread that reads has the connection, too. One that is closed already needs no more.
                    let _ = stream.shutdown(Shutdown::Both);
                    session.reset().map_err(|refusal| io::Error::other(refusal.message))?;
                }
            }
        }
        Ok(Outcome::Ok)
    }
}

fn read_parameters(path: &Path) -> io::Result<BTreeMap<String, Value>> {
    let text = file::read_text(path, file::MAX_SETTINGS).map_err(|error| about(path, error))?;
    let table: toml::Table = text.parse().map_err(|error| about(path, error))?;
    table.into_iter().map(|(name, value)| Ok((name, serde_json::to_value(value)?))).collect()
}

/// Serves one suite until its channel ends. A connection must send `hello` in time, because it keeps out all others.
fn serve(
    session: &mut Session,
    from: impl BufRead + Send + 'static,
    mut to: impl Write,
    greeting: Duration,
) -> io::Result<()> {
    let (sender, requests) = sync_channel(16);
    thread::spawn(move || {
        let mut lines = Lines::new(from);
        loop {
            let line = lines.read();
            let ended = !matches!(line, Ok(Some(_)));
            if sender.send(line).is_err() || ended {
                return;
            }
        }
    });
    let (mut handshake, begun) = (Handshake::default(), Instant::now());
    loop {
        if !handshake.is_done() && begun.elapsed() > greeting {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no `hello` within {greeting:?}")));
        }
        let line = match requests.recv_timeout(TURN) {
            Ok(line) => line?,
            Err(RecvTimeoutError::Timeout) => {
                session.collect();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let Some(line) = line else { return Ok(()) };
        if let Some(answer) = handshake.refuse(&line) {
            return writeln!(to, "{}", answer.to_line());
        }
        let answer = session.handle_line(&line);
        let mut text = String::new();
        while let Some(event) = session.poll_event() {
            text.push_str(&event.to_line());
            text.push('\n');
        }
        text.push_str(&answer.to_line());
        text.push('\n');
        to.write_all(text.as_bytes())?;
        to.flush()?;
    }
}
