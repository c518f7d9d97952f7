//! `uet proxy`

use super::output::CaptureFile;
use super::{Outcome, about, complain, signal};
use crate::text;
use clap::Args;
use serde_json::json;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use uet_emulator::capture::Capture;
use uet_emulator::frame::Outer;
use uet_emulator::relay::Relay;
use uet_model::network::{Impairment, SyntaxError};
use uet_wire::outer::UDP_PORT;

/// Impair the network between two implementations on UDP
///
/// Each end uses the proxy as its peer: it sends to the proxy's address and receives from there. The proxy
/// distinguishes the ends by their addresses, which the effects of --impair may name.
///
/// When it is ready, it prints one line, {"link":...}. It runs until SIGINT, SIGTERM or SIGHUP, and then prints its
/// counters.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet proxy 10.0.0.1 10.0.0.2 --listen 10.0.0.9 --capture relay.pcapng
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
        let mut relay = Relay::new([self.a, self.b], self.listen, self.seed)?;
        let network = relay.network();
        self.impair.iter().for_each(|impairment| network.fabric().impair(impairment.clone()));
        if let Some(path) = &self.capture {
            let capture = Capture::new(CaptureFile::create(path)?.buffered(), Outer::default());
            network.capture(capture.map_err(|error| about(path, error))?);
        }
        let stopped = signal::stopped()?;
        let local = relay.local();
        let mut out = io::stdout().lock();
        writeln!(out, "{}", json!({"link": {"kind": "udp", "addr": local.ip(), "port": local.port()}}))?;
        out.flush()?;

        relay.serve(&stopped)?;
        tell(&mut relay, &mut out)?;
        if let (Some(path), Some(capture)) = (&self.capture, relay.network().end_capture()) {
            capture.finish().map_err(|error| about(path, error))?;
        }
        Ok(Outcome::Ok)
    }
}

fn tell(relay: &mut Relay, out: &mut impl Write) -> io::Result<()> {
    let counted = relay.network().fabric().counters();
    let told = json!({
        "sent": counted.sent, "arrived": counted.arrived, "lost": counted.lost, "duplicated": counted.duplicated,
        "delayed": counted.delayed, "reordered": counted.reordered, "marked": counted.marked,
        "trimmed": counted.trimmed, "corrupt": counted.corrupt,
    });
    writeln!(out, "{told}")?;
    if relay.strangers > 0 {
        let dropped = text::counted(relay.strangers, "packet");
        complain(format_args!("warning: dropped {dropped} that came from neither end"));
    }
    if relay.unsent > 0 {
        let unsent = text::counted(relay.unsent, "packet");
        complain(format_args!("warning: {unsent} could not be forwarded"));
    }
    Ok(())
}
