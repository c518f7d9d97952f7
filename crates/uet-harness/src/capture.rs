//! Writes the packets of an instance or finding to a pcapng file, and its trace to a text file.

use crate::dut::packet;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use uet_conformance::passive::Origin;
use uet_conformance::{Entry, InstanceResult, Wire};
use uet_emulator::capture::Capture;
use uet_emulator::frame::{Outer, Record};
use uet_model::Time;
use uet_packet_io::file::{self, Replacement};

/// Writes the packets of an instance to a file in `directory`, named after the instance. Timestamps use the link's
/// clock.
pub fn write_instance(directory: &Path, found: &InstanceResult) -> io::Result<PathBuf> {
    let path = place(directory, found, "pcapng")?;
    let device: BTreeSet<IpAddr> = found
        .ladder
        .entries
        .iter()
        .filter_map(|step| match &step.entry {
            Entry::Sent(wire) => Some(wire.dst),
            Entry::Received(wire) => Some(wire.src),
            _ => None,
        })
        .collect();
    let origin = Origin { instance: Some(found.instance.clone()), device: device.into_iter().collect() };
    let packets = found.ladder.packets().map(|(at, wire)| (at, wire, ""));
    write(&path, packets, &origin)?;
    Ok(path)
}

/// Writes the trace of an instance as text to a file in `directory`, named after the instance.
pub fn write_trace(directory: &Path, found: &InstanceResult) -> io::Result<PathBuf> {
    let path = place(directory, found, "txt")?;
    file::replace(&path, found.ladder.to_string())?;
    Ok(path)
}

/// The file of an instance: `window-beyond[mode=rod].pcapng`. The directory is made if it is missing.
fn place(directory: &Path, found: &InstanceResult, extension: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    Ok(directory.join(format!("{}.{extension}", found.instance.replace('/', "-"))))
}

/// Writes packets with their times and comments to the file `path`. An empty comment is none. The comment of the
/// capture names its origin, so that `uet check` takes errors of the suite's own packets for notes.
pub fn write<'a>(
    path: &Path,
    packets: impl IntoIterator<Item = (Duration, &'a Wire, &'a str)>,
    origin: &Origin,
) -> io::Result<()> {
    let file = Replacement::new(path)?;
    let mut capture =
        Capture::commented(Box::new(BufWriter::new(file.handle()?)), Outer::default(), &origin.comment())?;
    for (at, wire, comment) in packets {
        capture.write(&Record { comment, ..Record::new(Time::ZERO + at, &packet(wire)) });
    }
    capture.finish()?;
    file.commit()
}
