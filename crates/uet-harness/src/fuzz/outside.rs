//! Targets in other processes.

use super::judge::SILENCE;
use super::{Target, guard};
use crate::dut::channel::ending;
use crate::dut::{At, Blind, Remote};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use uet_conformance::Dut;

/// Maximum time until a started device can be reached.
const START: Duration = Duration::from_secs(30);

/// Access to a device.
#[derive(Clone, Debug)]
pub enum Way {
    /// A shell command starts the device.
    Program(String),
    /// The device runs at this address, with its control channel if it has one.
    Running {
        /// Destination of its packets.
        at: At,
        /// Its control channel.
        control: Option<String>,
        /// Shell command that restarts a dead device.
        restart: Option<String>,
    },
}

/// A device in another process.
pub struct Outside {
    way: Way,
    local: Vec<IpAddr>,
    /// True if its owner allows any target.
    owned: bool,
    /// Maximum time without an answer on the control channel.
    silence: Duration,
    device: Box<dyn Dut>,
    /// Child process of the restart command.
    helper: Option<Child>,
}

impl Outside {
    /// Connects to the device from these local addresses.
    ///
    /// # Errors
    ///
    /// Fails with [`PermissionDenied`](io::ErrorKind::PermissionDenied) if the destination of its packets is neither on
    /// loopback nor in a private network namespace, unless `owned`. A restarted device is checked again.
    pub fn reach(way: Way, local: Vec<IpAddr>, owned: bool) -> io::Result<Self> {
        let device = reach(&way, &local, owned, SILENCE)?;
        Ok(Outside { way, local, owned, silence: SILENCE, device, helper: None })
    }

    fn end_helper(&mut self) {
        if let Some(mut child) = self.helper.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Connects to a device. Checks that it may be fuzzed at its address before any packet leaves.
fn reach(way: &Way, local: &[IpAddr], owned: bool, silence: Duration) -> io::Result<Box<dyn Dut>> {
    let interface = match way {
        Way::Running { at: At::Raw { interface, .. }, .. } => Some(interface.as_str()),
        _ => None,
    };
    if let Way::Running { at: At::Udp(at), .. } = way {
        if let Ok(named) = at.parse::<SocketAddr>() {
            guard::check(named.ip(), None, owned)?;
        }
    }
    let device = connect(way, local, silence)?;
    guard::check(device.facts().device, interface, owned)?;
    Ok(device)
}

fn connect(way: &Way, local: &[IpAddr], silence: Duration) -> io::Result<Box<dyn Dut>> {
    let remote = match way {
        Way::Program(command) => Remote::start(command, local)?,
        Way::Running { at, control: Some(control), .. } => Remote::connect(control, at, local)?,
        Way::Running { at: At::Udp(at), control: None, .. } => {
            return Ok(Box::new(Blind::new(at, local.first().copied())?));
        }
        Way::Running { control: None, .. } => {
            return Err(io::Error::other(
                "raw:INTERFACE needs --control: the device says there where its packets go",
            ));
        }
    };
    Ok(Box::new(remote.with_silence(silence)))
}

impl Target for Outside {
    fn dut(&mut self) -> &mut dyn Dut {
        &mut *self.device
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn restart(&mut self) -> io::Result<bool> {
        let (Way::Program(command) | Way::Running { restart: Some(command), .. }) = &self.way else {
            return Ok(false);
        };
        let command = command.clone();
        // Frees the sockets before the next device binds.
        self.device = Box::new(Blind::nobody());
        if matches!(self.way, Way::Running { .. }) {
            self.end_helper();
            let mut shell = Command::new("sh");
            shell.args(["-c", &command]).stdin(Stdio::null()).stdout(Stdio::null());
            self.helper = Some(shell.spawn()?);
        }
        let begun = Instant::now();
        loop {
            match reach(&self.way, &self.local, self.owned, self.silence) {
                Ok(device) => {
                    self.device = device;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied || begun.elapsed() > START => {
                    return Err(error);
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn set_silence(&mut self, silence: Duration) {
        self.silence = silence;
    }

    fn ended(&mut self) -> Option<String> {
        self.device.ended().or_else(|| Some(ending(self.helper.as_mut()?.try_wait().ok()??)))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.end_helper();
    }
}
