//! Writes the packets of a case or finding to a pcapng file.

use crate::dut::packet;
use core::time::Duration;
use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use uet_conformance::{CaseResult, Wire};
use uet_emulator::capture::Capture;
use uet_emulator::frame::{Outer, Record};
use uet_model::Time;
use uet_packet_io::file::Replacement;

/// Writes the packets of a case to a file in `directory`, named after the case. Times are those of the link.
pub fn write_case(directory: &Path, case: &CaseResult) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let path = directory.join(format!("{}.pcapng", case.id.replace('/', "-")));
    write(&path, case.ladder.packets())?;
    Ok(path)
}

/// Writes packets with their times to the file `path`.
pub fn write<'a>(path: &Path, packets: impl IntoIterator<Item = (Duration, &'a Wire)>) -> io::Result<()> {
    let file = Replacement::new(path)?;
    let mut capture = Capture::new(Box::new(BufWriter::new(file.handle()?)), Outer::default())?;
    for (at, wire) in packets {
        capture.write(&Record::new(Time::ZERO + at, &packet(wire)));
    }
    capture.finish()?;
    file.commit()
}
