//! Where commands write: standard output that may be closed early, and files.

use super::about;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Standard output of a command whose verdict counts: when nobody reads on (`| head`), or it cannot be written, the command
/// goes on to its end without it.
pub(super) struct WhileRead<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> WhileRead<W> {
    pub(super) fn new(out: W) -> Self {
        WhileRead { out, failed: None }
    }

    /// Whether what is written goes nowhere.
    #[cfg(feature = "live")]
    pub(super) fn is_over(&self) -> bool {
        self.failed.is_some()
    }

    /// What went wrong, where that was not only that nobody read on.
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

/// Creates a file, and the directories above it that are missing.
pub(super) fn create(path: &Path) -> io::Result<File> {
    parents(path).and_then(|()| File::create(path)).map_err(|error| about(path, error))
}

/// Whether a file can be written later; what was in it stays, and where none was none is left.
pub(super) fn can_be_written(path: &Path) -> io::Result<()> {
    let attempt = || {
        parents(path)?;
        let new = !path.try_exists()?;
        File::options().append(true).create(true).open(path)?;
        if new { fs::remove_file(path) } else { Ok(()) }
    };
    attempt().map_err(|error| about(path, error))
}

fn parents(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}
