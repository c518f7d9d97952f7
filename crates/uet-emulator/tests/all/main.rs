//! Tests of the emulator, as one program.

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
