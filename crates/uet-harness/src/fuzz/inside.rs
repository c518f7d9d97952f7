//! The embedded NIC as a target: a panic is a crash.

use super::Target;
use crate::dut::Embedded;
use core::time::Duration;
use serde_json::{Map, Value};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use uet_conformance::{Dut, DutError, Facts, Wire};
use uet_control::{CallError, Op, Welcome};
use uet_emulator::Config;
use uet_emulator::config::ConfigError;

/// The embedded NIC, in virtual time.
#[derive(Debug)]
pub struct Inside {
    config: Config,
    nic: Embedded,
    panicked: bool,
}

impl Inside {
    /// Creates a NIC with this configuration.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Ok(Inside { nic: Embedded::new(config.clone())?, config, panicked: false })
    }

    /// Runs an operation unless the NIC has panicked before.
    fn guarded<T>(&mut self, what: impl FnOnce(&mut Embedded) -> T) -> Result<T, DutError> {
        let gone = || DutError("it has panicked".into());
        if self.panicked {
            return Err(gone());
        }
        let nic = &mut self.nic;
        catch_unwind(AssertUnwindSafe(|| what(nic))).map_err(|_| {
            self.panicked = true;
            gone()
        })
    }
}

impl Target for Inside {
    fn dut(&mut self) -> &mut dyn Dut {
        self
    }

    fn restart(&mut self) -> io::Result<bool> {
        *self = Inside::new(self.config.clone()).map_err(io::Error::other)?;
        Ok(true)
    }

    fn ended(&mut self) -> Option<String> {
        self.panicked.then(|| "it has panicked".into())
    }
}

impl Dut for Inside {
    fn welcome(&self) -> &Welcome {
        self.nic.welcome()
    }

    fn facts(&self) -> &Facts {
        self.nic.facts()
    }

    fn now(&self) -> Duration {
        self.nic.now()
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        self.guarded(|nic| nic.send(packet))?
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        self.guarded(|nic| nic.receive(until))?
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        let name = op.name();
        let broken = |error: DutError| CallError::Channel { op: name, error: io::Error::other(error.0) };
        self.guarded(|nic| nic.ask(op)).map_err(broken)?
    }
}
