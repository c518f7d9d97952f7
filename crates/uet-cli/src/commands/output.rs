//! Output of commands: files, and standard output that may be closed early.

use super::{Outcome, about, complain};
use crate::tables::Tables;
use clap::Args;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Standard output of a command with a verdict. If nobody reads on (`| head`) or a write fails, the command continues
/// without output.
pub(super) struct WhileRead<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> WhileRead<W> {
    pub(super) fn new(out: W) -> Self {
        WhileRead { out, failed: None }
    }

    /// Returns whether the output is discarded.
    pub(super) fn is_over(&self) -> bool {
        self.failed.is_some()
    }

    /// Returns the write error, unless the reader only left early.
    pub(super) fn end(self) -> io::Result<()> {
        match self.failed {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    fn attempt<T>(&mut self, otherwise: T, write: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.failed.is_some() {
            return Ok(otherwise);
        }
        match write(&mut self.out) {
            Ok(done) => Ok(done),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.failed = Some(error);
                Ok(otherwise)
            }
        }
    }
}

impl<W: Write> Write for WhileRead<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), Write::flush)
    }
}

/// A capture file that is being written. It reports the first write that fails at once: the command may run for hours
/// until it ends.
#[derive(Debug)]
pub(super) struct CaptureFile {
    file: File,
    path: PathBuf,
    is_reported: bool,
}

impl CaptureFile {
    /// Creates the file and its missing parent directories.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(CaptureFile { file: create(path)?, path: path.to_owned(), is_reported: false })
    }

    /// Lets only the owner read the file, because it will hold keys.
    #[cfg(target_os = "linux")]
    pub(super) fn keep_private(&self) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;

        let kept = match self.file.metadata() {
            Ok(data) if data.is_file() => self.file.set_permissions(fs::Permissions::from_mode(0o600)),
            // A pipe or a terminal has no mode to set.
            other => other.map(drop),
        };
        kept.map_err(|error| about(&self.path, error))
    }

    /// Returns the writer of the packets.
    pub(super) fn buffered(self) -> Box<BufWriter<Self>> {
        Box::new(BufWriter::new(self))
    }
}

impl Write for CaptureFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        match &written {
            Err(error) if error.kind() != io::ErrorKind::Interrupted && !self.is_reported => {
                self.is_reported = true;
                complain(about(&self.path, format_args!("warning: packets are not captured: {error}")));
            }
            _ => {}
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Files that could not be written. The command goes on, and exits with 2 in the end.
#[derive(Debug, Default)]
pub(super) struct Unwritten(bool);

impl Unwritten {
    /// Reports a failed write.
    pub(super) fn note<T>(&mut self, path: &Path, written: io::Result<T>) -> Option<T> {
        written
            .map_err(|error| {
                complain(about(path, error));
                self.0 = true;
            })
            .ok()
    }

    /// Returns this outcome of the command, unless a write failed.
    pub(super) fn or(self, outcome: Outcome) -> Outcome {
        if self.0 { Outcome::UsageError } else { outcome }
    }
}

/// Creates a file and its missing parent directories.
pub(super) fn create(path: &Path) -> io::Result<File> {
    parents(path).and_then(|()| File::create(path)).map_err(|error| about(path, error))
}

/// Writes a text to a file, or to standard output.
pub(super) fn write_text(file: Option<&Path>, text: &str) -> io::Result<()> {
    match file {
        Some(file) => uet_packet_io::file::replace(file, text).map_err(|error| about(file, error)),
        None => io::stdout().lock().write_all(text.as_bytes()),
    }
}

/// Checks that a file can be written later. Existing contents stay, and no new file is left.
pub(super) fn can_be_written(path: &Path) -> io::Result<()> {
    try_writing(path).map_err(|error| about(path, error))
}

/// Checks that files can be written into a directory, which it creates. Errors name the directory, not the file of
/// the attempt.
pub(super) fn can_have_files(directory: &Path) -> io::Result<()> {
    if directory.exists() && !directory.is_dir() {
        return Err(about(directory, "this is not a directory"));
    }
    try_writing(&directory.join("writable")).map_err(|error| about(directory, error))
}

fn try_writing(path: &Path) -> io::Result<()> {
    parents(path)?;
    let new = !path.try_exists()?;
    File::options().append(true).create(true).open(path)?;
    if new { fs::remove_file(path) } else { Ok(()) }
}

fn parents(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// The place of tables.
#[derive(Debug, Args)]
pub(super) struct TablesTo {
    /// Directory for the tables of `--format parquet`
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(super) output: Option<PathBuf>,
}

impl TablesTo {
    /// Creates the tables if the format asks for them. Otherwise the option is an error.
    pub(super) fn open(
        &self,
        is_wanted: bool,
        create: impl FnOnce(&Path) -> io::Result<Tables>,
    ) -> io::Result<Option<Tables>> {
        match (&self.output, is_wanted) {
            (None, false) => Ok(None),
            (Some(_), false) => Err(io::Error::other("--output is for the tables of --format parquet")),
            (Some(directory), true) => create(directory).map(Some).map_err(|error| about(directory, error)),
            (None, true) => {
                Err(io::Error::other("--format parquet needs a directory for the tables: --output DIRECTORY"))
            }
        }
    }
}
