//! Tables in a program that is built without the feature `parquet`: nobody can create one.

use std::io;
use std::path::Path;
use uet_conformance::passive::CaptureFinding;
use uet_observe::Facts;
use uet_packet_io::json::Decoded;

const NOT_BUILT: &str =
    "--format parquet: this `uet` is built without Parquet; build it with `--features parquet`";

/// The tables of an input.
pub enum NoTables {}

pub use NoTables as Tables;

impl NoTables {
    /// Fails, because the program has no writer for tables.
    pub fn of_packets(_: &Path) -> io::Result<Self> {
        Err(io::Error::other(NOT_BUILT))
    }

    /// Fails, because the program has no writer for tables.
    pub fn of_contexts(_: &Path) -> io::Result<Self> {
        Err(io::Error::other(NOT_BUILT))
    }

    /// Does nothing, because no tables exist.
    pub fn facts(&mut self, _: &Decoded<'_>, _: usize, _: &Facts<'_>) {
        match *self {}
    }

    /// Does nothing, because no tables exist.
    pub fn packet(&mut self, _: &Decoded<'_>, _: &[CaptureFinding]) -> io::Result<()> {
        match *self {}
    }

    /// Does nothing, because no tables exist.
    pub fn findings(&mut self, _: &[CaptureFinding], _: Option<u64>) -> io::Result<()> {
        match *self {}
    }

    /// Does nothing, because no tables exist.
    pub fn finish(self) -> io::Result<()> {
        match self {}
    }
}
