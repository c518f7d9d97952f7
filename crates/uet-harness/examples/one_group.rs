//! Runs one group of rules against a device, prints a verdict per rule, and exits with the suite's code.
//!
//!     cargo run -p uet-harness --example one_group                             the embedded NIC, group `write`
//!     cargo run -p uet-harness --example one_group -- read                     another group
//!     cargo run -p uet-harness --example one_group -- write HOST:PORT          a device with this control channel
//!     cargo run -p uet-harness --example one_group -- write exec:'./my-device' a device that a command starts

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use uet_conformance::{Dut, Options, Verdict, run};
use uet_emulator::Config;
use uet_harness::dut::Embedded;
#[cfg(target_os = "linux")]
use uet_harness::dut::{At, Remote};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let group = arguments.next().unwrap_or("write".into());
    match test_group(&group, arguments.next().as_deref(), &mut io::stdout()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the rules of `group` against the device at `address`, and returns the exit code.
pub(crate) fn test_group(
    group: &str,
    address: Option<&str>,
    out: &mut dyn Write,
) -> Result<u8, Box<dyn Error>> {
    let mut device = connect(address)?;
    let options = Options { groups: vec![group.into()], ..Options::default() };
    let result = run(&mut *device, &options, |_| ());
    for rule in &result.rules {
        writeln!(out, "{:<12} {} {}", rule.verdict.name(), rule.id, rule.reason)?;
    }
    writeln!(out, "{}: {} of {} pass", result.device, result.count(Verdict::Pass), result.rules.len())?;
    Ok(result.exit_code())
}

/// Connects to the device at `address`, or creates the embedded NIC if there is none.
fn connect(address: Option<&str>) -> Result<Box<dyn Dut>, Box<dyn Error>> {
    let Some(address) = address else { return Ok(Box::new(Embedded::new(Config::default())?)) };
    #[cfg(target_os = "linux")]
    return Ok(Box::new(match address.strip_prefix("exec:") {
        Some(command) => Remote::start(command, &[])?,
        None => Remote::connect(address, &At::AsItSays, &[])?,
    }));
    #[cfg(not(target_os = "linux"))]
    Err(format!("{address}: remote devices need Linux").into())
}
