//! `uet wireshark`

use super::{Outcome, about};
use clap::Args;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use uet_wire::{Spec, Version};

/// Write the Wireshark dissector, or install it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet wireshark --install        into the personal plugin folder
  uet wireshark -o uet.lua       then: tshark -X lua_script:uet.lua -r capture.pcapng")]
pub(super) struct Wireshark {
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE", conflicts_with = "install")]
    output: Option<PathBuf>,
    /// Install it into the personal plugin folder that tshark or wireshark reports
    #[arg(long)]
    install: bool,
    /// Version of the specification that packets are judged by, unless the preference says otherwise
    #[arg(long, value_name = "VERSION", value_parser = super::spec, default_value_t = Version::default().spec())]
    spec: &'static Spec,
}

impl Wireshark {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let script = uet_wireshark::dissector(self.spec);
        match (&self.output, self.install) {
            (_, true) => {
                let folder = plugin_folder()?;
                fs::create_dir_all(&folder).map_err(|error| about(&folder, error))?;
                let file = folder.join("uet.lua");
                write(&file, &script)?;
                writeln!(io::stdout(), "{}", file.display())?;
            }
            (Some(file), _) => write(file, &script)?,
            (None, _) => io::stdout().lock().write_all(script.as_bytes())?,
        }
        Ok(Outcome::Ok)
    }
}

fn write(file: &Path, script: &str) -> io::Result<()> {
    uet_packet_io::file::replace(file, script).map_err(|error| about(file, error))
}

/// Returns the folder for a user's own Lua scripts. It depends on the version of Wireshark.
fn plugin_folder() -> io::Result<PathBuf> {
    for program in ["tshark", "wireshark"] {
        let Ok(asked) = Command::new(program).args(["-G", "folders"]).output() else { continue };
        let folders = String::from_utf8_lossy(&asked.stdout).into_owned();
        if let Some(folder) = named(&folders, "Personal Lua Plugins:") {
            return Ok(folder);
        }
    }
    Err(io::Error::other("neither tshark nor wireshark reports a plugin folder; use --output FILE"))
}

fn named(folders: &str, name: &str) -> Option<PathBuf> {
    let folder = folders.lines().find_map(|line| line.strip_prefix(name))?.trim();
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_personal_one() {
        let said = "Temp:                \t/tmp\nPersonal Plugins:    \t/a/4.0\nPersonal Lua Plugins:\t/a b/plugins\n";
        assert_eq!(named(said, "Personal Lua Plugins:"), Some(PathBuf::from("/a b/plugins")));
        assert_eq!(named("Temp:\t/tmp\n", "Personal Lua Plugins:"), None);
    }
}
