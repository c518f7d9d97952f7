//! `uet proxy`

use super::output::CaptureFile;
use super::{Outcome, about, complain, signal};
use clap::Args;
use serde_json::json;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use uet_emulator::Network;
use uet_emulator::capture::Capture;
use uet_emulator::frame::Outer;
use uet_emulator::link::udp::{UdpLink, wait};
use uet_model::network::{Impairment, SyntaxError};
use uet_model::{Packet, Time};
use uet_wire::outer::UDP_PORT;

/// Maximum delay before a signal is handled.
const LOOK: Duration = Duration::from_millis(100);

/// Number of packets read before packets leave and signals are handled. A flood thus delays neither.
const BATCH: usize = 256;

/// Maximum length of a packet behind the UDP header. No UET packet is longer: headers, 8,192 bytes of payload, trailers.
const LONGEST: usize = 9 << 10;

/// Impair the network between two implementations on UDP
///
/// Each end uses the proxy as its peer: it sends to the proxy's address and receives from there. The proxy
/// distinguishes the ends by their addresses, which the effects of --impair may name.
///
/// When it is ready, it prints one line, {"link":...}. It runs until SIGINT, SIGTERM or SIGHUP, and then prints its
/// counters.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet proxy 10.0.0.1 10.0.0.2 --listen 10.0.0.9 --capture between.pcapng
  uet proxy 127.0.0.1:4801 127.0.0.2:4802 --listen 127.0.0.9:0 --impair 'drop 1%'
  uet proxy 10.0.0.1 10.0.0.2 --listen 10.0.0.9 --impair 'delay 5ms ack from 10.0.0.2'")]
pub(super) struct Proxy {
    /// One end: its address, with its port unless it is the registered one
    #[arg(value_name = "A", value_parser = place)]
    a: SocketAddr,
    /// The other end
    #[arg(value_name = "B", value_parser = place)]
    b: SocketAddr,
    /// Address that both ends use as their peer; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", value_parser = place)]
    listen: SocketAddr,
    /// Impair packets: 'drop 5%', 'drop request 3', 'delay 20us', 'mark ack every 4' ... (docs/emulator.md)
    #[arg(long, value_name = "EFFECT", value_parser = impairment)]
    impair: Vec<Impairment>,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write all packets as pcapng, with a comment beside each impaired packet
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
}

fn place(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, UDP_PORT));
    text.parse().or_else(|_| alone()).map_err(|_| "expected an IP address with an optional port".into())
}

fn impairment(text: &str) -> Result<Impairment, SyntaxError> {
    text.parse()
}

impl Proxy {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        if self.a.ip() == self.b.ip() {
            let message = format!(
                "both ends have the address {}, but the proxy needs two different addresses",
                self.a.ip()
            );
            return Err(io::Error::other(message));
        }
        let bound = UdpLink::bind(self.listen);
        let link =
            bound.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.listen)))?;
        let mut network = Network::new(self.seed);
        [self.a, self.b].into_iter().for_each(|end| network.attach(end.ip()));
        self.impair.iter().for_each(|impairment| network.fabric().impair(impairment.clone()));
        if let Some(path) = &self.capture {
            let capture = Capture::new(CaptureFile::create(path)?.buffered(), Outer::default());
            network.capture(capture.map_err(|error| about(path, error))?);
        }
        let stopped = signal::stopped()?;
        let local = link.local();
        let mut out = io::stdout().lock();
        writeln!(out, "{}", json!({"link": {"kind": "udp", "addr": local.ip(), "port": local.port()}}))?;
        out.flush()?;

        let mut between = Between { proxy: self, links: [link], network, strangers: 0, unsent: 0 };
        between.serve(&stopped)?;
        between.tell(&mut out)?;
        if let (Some(path), Some(capture)) = (&self.capture, between.network.end_capture()) {
            capture.finish().map_err(|error| about(path, error))?;
        }
        Ok(Outcome::Ok)
    }
}

struct Between<'a> {
    proxy: &'a Proxy,
    links: [UdpLink; 1],
    network: Network,
    strangers: u64,
    unsent: u64,
}

impl Between<'_> {
    /// Forwards packets until it is stopped.
    fn serve(&mut self, stopped: &AtomicBool) -> io::Result<()> {
        let begun_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let begun = Instant::now();
        // Wall-clock time for captures, from a monotonic clock.
        let now = || Time::ZERO + begun_at + begun.elapsed();
        while !stopped.load(Ordering::Relaxed) {
            for _ in 0..BATCH {
                let Some(packet) = self.links[0].receive()? else { break };
                self.network.advance(now());
                self.take(packet);
            }
            while let Some((_, packet)) = self.network.run_until(now(), |network| network.poll_arrival()) {
                self.hand_on(packet);
            }
            let next = self.network.next_at().map_or(LOOK, |at| at - now());
            wait(&self.links, next.min(LOOK))?;
        }
        Ok(())
    }

    /// Forwards a packet of one end to the other.
    fn take(&mut self, packet: Packet) {
        // The network holds many packets, so their size matters.
        if packet.head.len() + packet.payload.len() > LONGEST {
            self.unsent += 1;
            return;
        }
        let (a, b) = (self.proxy.a.ip(), self.proxy.b.ip());
        let dst = match packet.src {
            src if src == a => b,
            src if src == b => a,
            _ => {
                self.strangers += 1;
                return;
            }
        };
        self.network.send(Packet { dst, ..packet });
    }

    fn hand_on(&mut self, packet: Packet) {
        let to = if packet.dst == self.proxy.a.ip() { self.proxy.a } else { self.proxy.b };
        let packet = Packet { src: self.links[0].local().ip(), ..packet };
        if self.links[0].send(&packet, to.port()).is_err() {
            self.unsent += 1;
        }
    }

    fn tell(&mut self, out: &mut impl Write) -> io::Result<()> {
        let counted = self.network.fabric().counters();
        let told = json!({
            "sent": counted.sent, "arrived": counted.arrived, "lost": counted.lost, "duplicated": counted.duplicated,
            "delayed": counted.delayed, "reordered": counted.reordered, "marked": counted.marked,
            "trimmed": counted.trimmed, "corrupt": counted.corrupt,
        });
        writeln!(out, "{told}")?;
        if self.strangers > 0 {
            complain(format_args!(
                "warning: {} packets came from neither end and were dropped",
                self.strangers
            ));
        }
        if self.unsent > 0 {
            complain(format_args!("warning: {} packets could not be forwarded", self.unsent));
        }
        Ok(())
    }
}
