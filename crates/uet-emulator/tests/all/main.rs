//! Tests of the emulator, as one program.

#[cfg(target_os = "linux")]
use std::time::Duration;

mod capture;
mod control;
mod counters;
mod examples;
#[cfg(target_os = "linux")]
mod fairness;
mod frame;
mod nic;
#[cfg(target_os = "linux")]
mod secured;
#[cfg(target_os = "linux")]
mod udp;

/// Ends a test that hangs. No machine is so busy that this ends another.
#[cfg(target_os = "linux")]
const ENDLESS: Duration = Duration::from_secs(60);
