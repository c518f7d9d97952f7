//! `uet libfabric`

use super::{Outcome, about};
use clap::Args;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use uet_control::escape;
use uet_fabric::Settings;

/// Cargo's name of the provider, and the name that libfabric loads.
const BUILT: &str = "libuet_fi.so";
const INSTALLED: &str = "libuet-fi.so";

/// Install the libfabric provider, or list its variables
///
/// The provider lets unmodified applications, such as Open MPI, run over UET. docs/applications.md shows how.
/// Build it with `cargo build --release -p uet-libfabric`. Then --install copies it to the name that libfabric loads,
/// and prints the environment to set. An installed `uet` is in another folder than the library: add
/// `--library target/release/libuet_fi.so`. Without --install, lists the variables FI_UET_* that configure it, one
/// per line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet libfabric                    list the variables
  uet libfabric | grep ALGORITHM   describe one of them")]
pub(super) struct Libfabric {
    /// Copy the provider to this folder, and print the environment to set
    #[arg(long, value_name = "DIR")]
    install: Option<PathBuf>,
    /// The built provider [default: libuet_fi.so in the folder of this program]
    #[arg(long, value_name = "FILE", requires = "install")]
    library: Option<PathBuf>,
}

impl Libfabric {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let mut out = io::stdout().lock();
        let Some(folder) = &self.install else {
            for setting in Settings::ALL {
                writeln!(out, "FI_UET_{}\t{}", setting.name.to_uppercase(), setting.help)?;
            }
            return Ok(Outcome::Ok);
        };
        let built = match &self.library {
            Some(library) => library.clone(),
            None => beside_this_program()?,
        };
        let installed = install(&built, folder)?;
        writeln!(out, "export FI_PROVIDER_PATH={}", quoted(&installed))?;
        Ok(Outcome::Ok)
    }
}

fn beside_this_program() -> io::Result<PathBuf> {
    let library = env::current_exe()?.with_file_name(BUILT);
    if library.exists() {
        return Ok(library);
    }
    let message = format!(
        "{} does not exist; build it with `cargo build --release -p uet-libfabric`, then \
         `uet libfabric --install DIR --library target/release/libuet_fi.so`",
        library.display()
    );
    Err(io::Error::new(io::ErrorKind::NotFound, message))
}

/// Copies the provider and returns the folder as an absolute path, which libfabric requires.
fn install(built: &Path, folder: &Path) -> io::Result<PathBuf> {
    let bytes = fs::read(built).map_err(|error| about(built, error))?;
    fs::create_dir_all(folder).map_err(|error| about(folder, error))?;
    let file = folder.join(INSTALLED);
    // A running application keeps the old file.
    uet_packet_io::file::replace(&file, &bytes).map_err(|error| about(&file, error))?;
    fs::canonicalize(folder).map_err(|error| about(folder, error))
}

/// Quotes a path for a shell. A path that could harm a terminal is quoted as `$'...'`, which names its bytes.
fn quoted(path: &Path) -> String {
    match path.to_str() {
        Some(text) if escape(text) == text => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let byte = |byte: &u8| match byte {
                b'\'' | b'\\' | 0x7f.. | ..0x20 => format!("\\x{byte:02x}"),
                _ => char::from(*byte).to_string(),
            };
            format!("$'{}'", path.as_os_str().as_bytes().iter().map(byte).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_under_the_name_that_libfabric_loads() {
        let folder = env::temp_dir().join(format!("uet-libfabric-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let built = folder.join(BUILT);
        fs::write(&built, b"library").unwrap();
        let installed = install(&built, &folder.join("it's")).unwrap();
        assert_eq!(fs::read(installed.join(INSTALLED)).unwrap(), b"library");
        assert!(installed.is_absolute());
        assert!(quoted(&installed).ends_with(r"/it'\''s'"));
        assert_eq!(quoted(Path::new("/a\x1b[2J's\\\u{202e}")), r"$'/a\x1b[2J\x27s\x5c\xe2\x80\xae'");
        assert!(install(&folder.join("missing"), &folder).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
