//! Writes the packets of an instance or finding to a pcapng file, and its trace to a text file.

use crate::dut::packet;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
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
    let origin = Origin { case: Some(found.instance.clone()), device: device.into_iter().collect() };
    write_with(&path, found.ladder.packets(), &origin.comment())?;
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

/// Writes packets with their times to the file `path`.
pub fn write<'a>(path: &Path, packets: impl IntoIterator<Item = (Duration, &'a Wire)>) -> io::Result<()> {
    write_with(path, packets, "")
}

fn write_with<'a>(
    path: &Path,
    packets: impl IntoIterator<Item = (Duration, &'a Wire)>,
    comment: &str,
) -> io::Result<()> {
    let file = Replacement::new(path)?;
    let mut capture =
        Capture::commented(Box::new(BufWriter::new(file.handle()?)), Outer::default(), comment)?;
    for (at, wire) in packets {
        capture.write(&Record::new(Time::ZERO + at, &packet(wire)));
    }
    capture.finish()?;
    file.commit()
}

/// The origin of a capture of the suite, which its comment states. The suite breaks requirements on purpose, so findings
/// about its packets say nothing about a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The instance; `None` for a capture of several.
    pub case: Option<String>,
    /// Addresses of the device. All other packets are the suite's.
    pub device: Vec<IpAddr>,
}

impl Origin {
    const BEGIN: &str = "case ";
    const MARK: &str = "captured by the uet conformance suite, which breaks requirements on purpose";

    /// Returns the comment of the capture.
    ///
    /// ```
    /// use uet_harness::capture::Origin;
    ///
    /// let origin = Origin { case: Some("ack/retx[mode=rud]".into()), device: vec![[10, 0, 0, 1].into()] };
    /// assert_eq!(Origin::parse(&origin.comment()), Some(origin));
    /// assert_eq!(Origin::parse("a lab"), None);
    /// ```
    pub fn comment(&self) -> String {
        let device: Vec<String> = self.device.iter().map(ToString::to_string).collect();
        let case = self.case.iter().map(|case| format!("; case {case}")).collect::<String>();
        format!("{}{case}; device {}", Self::MARK, device.join(" "))
    }

    /// Returns the comment on the first packet of an instance, in a capture of several.
    pub(crate) fn begin(instance: &str) -> String {
        format!("{}{instance}", Self::BEGIN)
    }

    /// Reads the comment of a packet: the instance that begins with it.
    ///
    /// ```
    /// use uet_harness::capture::Origin;
    ///
    /// assert_eq!(Origin::begun("case ack/retx[mode=rud]\ndrop 5%"), Some("ack/retx[mode=rud]"));
    /// assert_eq!(Origin::begun("drop 5%"), None);
    /// ```
    pub fn begun(comment: &str) -> Option<&str> {
        comment.lines().next()?.strip_prefix(Self::BEGIN)
    }

    /// Reads the comment of a capture; `None` if it is not one of the suite.
    pub fn parse(comment: &str) -> Option<Self> {
        let mut parts = comment.split("; ");
        let mut origin = (parts.next()? == Self::MARK).then(Origin::default)?;
        for part in parts {
            if let Some(case) = part.strip_prefix("case ") {
                origin.case = Some(case.into());
            } else if let Some(device) = part.strip_prefix("device ") {
                origin.device = device.split(' ').filter_map(|address| address.parse().ok()).collect();
            }
        }
        Some(origin)
    }
}
