//! `uet replay`

use super::fuzz::reach;
use super::{Deployment, Outcome, about};
use clap::Args;
use core::net::IpAddr;
use core::time::Duration;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use uet_harness::replay;

#[cfg(target_os = "linux")]
use super::device::Place;

/// Replay one side of a capture to a device, and report replies that differ from the recording
///
/// Replaces PDCIDs that the device chooses. Exposes the memory that the requests name first, if the device supports it:
/// with --control, and in the built-in NIC.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet replay capture.pcapng                           to the built-in NIC
  uet replay capture.pcapng --to udp://127.0.0.1:4793 --control 127.0.0.1:9000
  uet replay capture.pcapng --side 10.0.0.1           the packets of this address

Each difference is one line: - for an answer that is missing now, + for an answer that is new.

Exit codes: 0 no difference, 1 a difference, 2 usage, unreadable input, or the device cannot be reached.")]
pub(super) struct Replay {
    /// The capture
    capture: PathBuf,
    /// Address whose packets are sent [default: the source of the first request that opens a context]
    #[arg(long, value_name = "ADDRESS")]
    side: Option<IpAddr>,
    /// Device: `udp://HOST:PORT`, `raw:INTERFACE` (the local interface to a device on Ethernet; needs --control),
    /// `exec:COMMAND` (control channel on its standard input and output), or `embedded`
    #[cfg(target_os = "linux")]
    #[arg(long, default_value = "embedded", value_name = "DEVICE")]
    to: Place,
    /// The control channel of the device: tcp://HOST:PORT, or HOST:PORT
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "ADDRESS")]
    control: Option<String>,
    /// Local address [default: 127.0.0.2 if the device is on loopback]
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "ADDRESS")]
    local: Option<IpAddr>,
    /// Allow a target outside of loopback and of private network namespaces
    #[arg(long)]
    i_own_this_target: bool,
    /// Wait this many milliseconds for each answer
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 20)]
    wait: u64,
    #[command(flatten)]
    deployment: Deployment,
}

impl Replay {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let file = File::open(&self.capture).map_err(|error| about(&self.capture, error))?;
        let conversation = replay::read(file, self.side, &self.deployment.options());
        let conversation = conversation.map_err(|error| about(&self.capture, error))?;
        if conversation.is_empty() {
            return Err(about(&self.capture, "the capture contains no packet of the selected side"));
        }
        #[cfg(target_os = "linux")]
        let mut target = reach(&self.to, self.control.as_ref(), self.local, None, 1, self.i_own_this_target)?;
        #[cfg(not(target_os = "linux"))]
        let mut target = reach(1)?;
        conversation.prepare(target.dut());
        let wait = Duration::from_millis(self.wait);
        let replayed = conversation.play(target.dut(), wait).map_err(io::Error::other)?;
        let mut out = io::stdout().lock();
        replayed.missing.iter().try_for_each(|line| writeln!(out, "- {line}"))?;
        replayed.extra.iter().try_for_each(|line| writeln!(out, "+ {line}"))?;
        let (missing, new) = (replayed.missing.len(), replayed.extra.len());
        let (sent, received) = (replayed.sent, replayed.received);
        writeln!(out, "{sent} sent, {received} received, {missing} missing, {new} new")?;
        Ok(if missing + new == 0 { Outcome::Ok } else { Outcome::Violation })
    }
}
