//! Reads files with a size limit, and replaces files atomically.

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The size limit of a settings file in bytes: a configuration, a statement, a scenario.
pub const MAX_SETTINGS: u64 = 1 << 20;

/// The size limit of a file from another program in bytes: a traffic matrix, a workload.
pub const MAX_RESULTS: u64 = 64 << 20;

/// The size limit of the result of an earlier run in bytes. Parsed, it takes up to 16 times as much memory.
pub const MAX_BASELINE: u64 = 16 << 20;

/// The size limit of a fuzzer's script in bytes.
pub const MAX_SCRIPT: u64 = 16 << 20;

fn too_long(what: &str, limit: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is longer than the limit of {limit} bytes"))
}

/// Reads a text file of at most `limit` bytes.
///
/// # Errors
///
/// Fails if the file cannot be read, exceeds the limit, or is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(limit + 1).read_to_string(&mut text)?;
    if read as u64 > limit { Err(too_long("the file", limit)) } else { Ok(text) }
}

/// Reads a line of at most `limit` bytes, without its line end. Returns `None` at the end of the input.
///
/// # Errors
///
/// Fails if the input cannot be read, the line exceeds the limit, or it is not UTF-8.
pub fn read_line(input: &mut impl BufRead, limit: u64) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let read = input.take(limit + 1).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    match (read, line.len() as u64 > limit) {
        (0, _) => Ok(None),
        (_, true) => Err(too_long("the line", limit)),
        (_, false) => String::from_utf8(line)
            .map(Some)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the line is not UTF-8")),
    }
}

/// Replaces a file with these bytes. A failure leaves the old file unchanged.
///
/// # Errors
///
/// Fails if the new file cannot be written, synced or renamed.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = Replacement::new(path)?;
    file.write_all(bytes.as_ref())?;
    file.commit()
}

/// Leaves out the temporary name that the library adds to the text, and nobody knows.
fn of_system(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((text, _)) => io::Error::new(error.kind(), text),
        None => error,
    }
}

/// A file under a temporary name beside the file that it will replace. Dropping it without [`commit`](Self::commit)
/// deletes it.
///
/// If the path is not a regular file (a terminal, a pipe, `/dev/null`), writes go directly to it.
///
/// ```
/// use std::io::Write;
/// use uet_packet_io::file::Replacement;
///
/// let path = std::env::temp_dir().join(format!("replacement-{}", std::process::id()));
/// std::fs::write(&path, "old")?;
/// let mut file = Replacement::new(&path)?;
/// file.write_all(b"new")?;
/// assert_eq!(std::fs::read_to_string(&path)?, "old");
/// file.commit()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "new");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Replacement(Target);

#[derive(Debug)]
enum Target {
    InPlace(File),
    Temporary {
        file: NamedTempFile,
        path: PathBuf,
        /// The permissions of the file once it is complete. Until then only its owner can read it, because a signal may
        /// leave it behind.
        permissions: Option<fs::Permissions>,
    },
}

impl Replacement {
    /// Creates the temporary file.
    ///
    /// # Errors
    ///
    /// Fails if the directory does not allow new files.
    pub fn new(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                return Ok(Replacement(Target::InPlace(File::options().write(true).open(path)?)));
            }
            // A read-only file is not replaced.
            Ok(_) => drop(File::options().append(true).open(path)?),
            Err(_) => {}
        }
        // A symbolic link stays, and its target is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".").suffix(".new").tempfile_in(parent);
        let file = file.map_err(of_system)?;
        let permissions = match fs::metadata(&path) {
            Ok(old) => Some(old.permissions()),
            Err(_) => of_new_files(parent)?,
        };
        Ok(Replacement(Target::Temporary { file, path, permissions }))
    }

    /// Lets only the owner read the complete file, because it will hold keys.
    pub fn keep_private(&mut self) {
        if let Target::Temporary { permissions, .. } = &mut self.0 {
            *permissions = None;
        }
    }

    /// Returns a second handle, for a writer that must own its file.
    ///
    /// # Errors
    ///
    /// Fails if the system has no more handles.
    pub fn handle(&self) -> io::Result<File> {
        match &self.0 {
            Target::InPlace(file) => file.try_clone(),
            Target::Temporary { file, .. } => file.as_file().try_clone(),
        }
    }

    /// Syncs the file and renames it to its final name.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot write or rename the file. The old file stays.
    pub fn commit(self) -> io::Result<()> {
        match self.0 {
            Target::InPlace(_) => Ok(()),
            Target::Temporary { file, path, permissions } => {
                if let Some(permissions) = permissions {
                    file.as_file().set_permissions(permissions)?;
                }
                file.as_file().sync_all()?;
                file.persist(path).map(|_| ()).map_err(|error| error.error)
            }
        }
    }
}

/// Returns the permissions that the system gives to new files in a directory, as a file shows that is then deleted.
#[cfg(unix)]
fn of_new_files(directory: &Path) -> io::Result<Option<fs::Permissions>> {
    use std::os::unix::fs::PermissionsExt;

    let mut builder = tempfile::Builder::new();
    let file = builder.permissions(fs::Permissions::from_mode(0o666)).tempfile_in(directory)?;
    Ok(Some(file.as_file().metadata()?.permissions()))
}

/// The temporary file has the permissions of new files.
#[cfg(not(unix))]
fn of_new_files(_: &Path) -> io::Result<Option<fs::Permissions>> {
    Ok(None)
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Target::InPlace(file) => file.write(bytes),
            Target::Temporary { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Target::InPlace(file) => file.flush(),
            Target::Temporary { file, .. } => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_replacement_leaves_the_old_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        fs::write(&path, "old").unwrap();
        let mut file = Replacement::new(&path).unwrap();
        file.write_all(b"half of the n").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[cfg(unix)]
    #[test]
    fn incomplete_file_is_readable_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (plain, path) = (folder.path().join("plain"), folder.path().join("clear.pcapng"));
        File::create(&plain).unwrap();
        for expected in [mode(&plain), 0o640] {
            let file = Replacement::new(&path).unwrap();
            let incomplete = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
            let incomplete: Vec<_> = incomplete.filter(|it| *it != plain && *it != path).collect();
            assert_eq!(incomplete.iter().map(|it| mode(it)).collect::<Vec<_>>(), [0o600]);
            file.commit().unwrap();
            assert_eq!(mode(&path), expected);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        }
        let mut file = Replacement::new(&path).unwrap();
        file.keep_private();
        file.commit().unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn full_disk_leaves_the_old_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        replace(&path, "first").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        if Path::new("/dev/full").exists() {
            assert!(replace(Path::new("/dev/full"), "second").is_err());
        }
        replace(Path::new("/dev/null"), "third").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file(), "a device is not replaced");
    }

    #[test]
    fn endless_input_is_an_error_that_names_the_limit() {
        if Path::new("/dev/zero").exists() {
            let error = read_text(Path::new("/dev/zero"), 1000).unwrap_err().to_string();
            assert_eq!(error, "the file is longer than the limit of 1000 bytes");
        }
        let mut endless = io::BufReader::new(io::repeat(b'a'));
        let error = read_line(&mut endless, 1000).unwrap_err().to_string();
        assert_eq!(error, "the line is longer than the limit of 1000 bytes");
        let mut lines = &b"one\n\nthree"[..];
        let mut next = || read_line(&mut lines, 5).unwrap();
        assert_eq!(
            [next(), next(), next(), next()],
            [Some("one".into()), Some(String::new()), Some("three".into()), None]
        );
    }
}
