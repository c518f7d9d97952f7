//! Deliberate faults of the embedded NIC, by name.

#[cfg(target_os = "linux")]
use super::{Listing, Outcome};
use crate::near;
#[cfg(target_os = "linux")]
use serde_json::json;
#[cfg(target_os = "linux")]
use std::io::{self, IsTerminal, Write};
use uet_emulator::fault::{self, Fault};

/// The list of all faults.
const LIST: &str = if cfg!(target_os = "linux") { "`uet emulate --list-faults`" } else { "docs/faults.md" };

/// Returns the fault of this name.
pub(super) fn named(name: &str) -> Result<&'static Fault, String> {
    fault::find(name).ok_or_else(|| {
        let message = near::unknown("fault", name, fault::all().map(|fault| fault.name));
        format!("{message} ({LIST} names them all)")
    })
}

/// Lists all faults; by area on a terminal, otherwise one per line.
#[cfg(target_os = "linux")]
pub(super) fn list(format: Listing) -> io::Result<Outcome> {
    let stdout = io::stdout().lock();
    let terminal = stdout.is_terminal();
    let mut out = io::BufWriter::new(stdout);
    let mut area = None;
    for fault in fault::all() {
        let Fault { name, sentence, .. } = fault;
        match format {
            Listing::Json => {
                writeln!(
                    out,
                    "{}",
                    json!({"name": name, "area": fault.area().name(), "sentence": sentence})
                )?;
            }
            Listing::Text if terminal => {
                if area.replace(fault.area()) != Some(fault.area()) {
                    writeln!(out, "{}", fault.area().name())?;
                }
                writeln!(out, "  {name:<34} {sentence}")?;
            }
            Listing::Text => writeln!(out, "{name}\t{sentence}")?,
        }
    }
    out.flush()?;
    Ok(Outcome::Ok)
}
