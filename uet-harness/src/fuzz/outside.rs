//! Devices in other processes as targets.

use super::{Target, guard};
use crate::dut::{At, Blind, Remote};
use core::net::IpAddr;
use core::time::Duration;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use uet_conformance::Dut;

/// How long a device may take until it can be reached, once it has been started.
const START: Duration = Duration::from_secs(30);

/// How long its control channel may be silent: what is asked takes no time.
const SILENCE: Duration = Duration::from_secs(5);

/// How a device is reached.
#[derive(Clone, Debug)]
pub enum Way {
    /// A command of the shell starts it.
    Program(String),
    /// It runs there, with its control channel there, where it has one.
    Running {
        /// Where its packets go.
        at: At,
        /// Its control channel.
        control: Option<String>,
        /// A command of the shell that brings it back when it has gone.
        restart: Option<String>,
    },
}

/// A device in another process.
#[derive(Debug)]
pub struct Outside {
    way: Way,
    local: Vec<IpAddr>,
    /// Its owner allows any target.
    owned: bool,
    device: Device,
    /// What the command for bringing it back has started.
    helper: Option<Child>,
}

#[derive(Debug)]
enum Device {
    Told(Box<Remote>),
    Blind(Box<Blind>),
}

impl Outside {
    /// Reaches it, from these addresses of this machine.
    ///
    /// # Errors
    ///
    /// Fails with [`PermissionDenied`](io::ErrorKind::PermissionDenied) if the address that its packets would go to is neither
    /// on loopback nor in a private network namespace, unless `owned`. A device that is started anew is judged anew.
    pub fn reach(way: Way, local: Vec<IpAddr>, owned: bool) -> io::Result<Self> {
        let device = reach(&way, &local, owned)?;
        Ok(Outside { way, local, owned, device, helper: None })
    }

    fn end_helper(&mut self) {
        if let Some(mut child) = self.helper.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reaches a device and, before any packet leaves, asks whether it may be fuzzed where it is now.
fn reach(way: &Way, local: &[IpAddr], owned: bool) -> io::Result<Device> {
    let mut device = connect(way, local)?;
    let interface = match way {
        Way::Running { at: At::Raw(interface), .. } => Some(interface.as_str()),
        _ => None,
    };
    guard::check(device.dut().facts().device, interface, owned)?;
    Ok(device)
}

fn connect(way: &Way, local: &[IpAddr]) -> io::Result<Device> {
    let remote = match way {
        Way::Program(command) => Remote::start(command, local)?,
        Way::Running { at, control: Some(control), .. } => Remote::connect(control, at, local)?,
        Way::Running { at: At::Udp(at), control: None, .. } => {
            return Blind::new(at, local.first().copied()).map(|blind| Device::Blind(Box::new(blind)));
        }
        Way::Running { control: None, .. } => {
            return Err(io::Error::other(
                "raw:INTERFACE needs --control: the device says there where its packets go",
            ));
        }
    };
    Ok(Device::Told(Box::new(remote.with_silence(SILENCE))))
}

impl Device {
    fn dut(&mut self) -> &mut dyn Dut {
        match self {
            Device::Told(device) => &mut **device,
            Device::Blind(device) => &mut **device,
        }
    }
}

impl Target for Outside {
    fn dut(&mut self) -> &mut dyn Dut {
        self.device.dut()
    }

    fn restart(&mut self) -> io::Result<bool> {
        let (Way::Program(command) | Way::Running { restart: Some(command), .. }) = &self.way else {
            return Ok(false);
        };
        let command = command.clone();
        // What it has bound is free before the next wants it.
        self.device = Device::Blind(Box::new(Blind::nobody()));
        if matches!(self.way, Way::Running { .. }) {
            self.end_helper();
            let mut shell = Command::new("sh");
            shell.args(["-c", &command]).stdin(Stdio::null()).stdout(Stdio::null());
            self.helper = Some(shell.spawn()?);
        }
        let begun = Instant::now();
        loop {
            match reach(&self.way, &self.local, self.owned) {
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

    fn ended(&mut self) -> Option<String> {
        let of_program = match &mut self.device {
            Device::Told(device) => device.ended(),
            Device::Blind(_) => None,
        };
        of_program.or_else(|| Some(self.helper.as_mut()?.try_wait().ok()??.to_string()))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.end_helper();
    }
}
