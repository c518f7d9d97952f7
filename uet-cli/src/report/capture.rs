//! The packets of a case, as pcapng.

use crate::dut::packet;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use uet_conformance::CaseResult;
use uet_emulator::capture::Capture;
use uet_emulator::frame::{Outer, Record};
use uet_model::Time;

/// Writes what passed in a case into a file of this directory, named after the case. Times are those of the link.
pub fn write(directory: &Path, case: &CaseResult) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let path = directory.join(format!("{}.pcapng", case.id.replace('/', "-")));
    let file = BufWriter::new(File::create(&path)?);
    let mut capture = Capture::new(Box::new(file), Outer::default())?;
    for (at, wire) in case.ladder.packets() {
        capture.write(&Record::new(Time::ZERO + at, &packet(wire)));
    }
    capture.finish()?;
    Ok(path)
}
