//! `uet wireshark`

use super::output::write_text;
use super::{Outcome, about, complain};
use clap::Args;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use uet_control::escape;
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
    /// Install it into the personal plugin folder that tshark or wireshark reports, or else into its default
    #[arg(long)]
    install: bool,
    /// Version of the specification that packets are judged by, unless the preference says otherwise
    #[arg(long, value_name = "VERSION", value_parser = super::spec, default_value_t = Version::default().spec())]
    spec: &'static Spec,
}

impl Wireshark {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let script = uet_wireshark::dissector(self.spec);
        if self.install {
            let folder = plugin_folder()?;
            fs::create_dir_all(&folder).map_err(|error| about(&folder, error))?;
            let file = folder.join("uet.lua");
            write_text(Some(&file), &script)?;
            writeln!(io::stdout(), "{}", escape(&file.display().to_string()))?;
        } else {
            write_text(self.output.as_deref(), &script)?;
        }
        Ok(Outcome::Ok)
    }
}

/// A platform, as far as the folders of Wireshark differ.
#[derive(Clone, Copy, Debug)]
enum Platform {
    Windows,
    MacOs,
    Unix,
}

const PLATFORM: Platform = if cfg!(windows) {
    Platform::Windows
} else if cfg!(target_os = "macos") {
    Platform::MacOs
} else {
    Platform::Unix
};

/// Returns the folder for a user's own Lua scripts. It depends on the version of Wireshark, so an installed one is asked.
fn plugin_folder() -> io::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    for program in programs(PLATFORM, variable) {
        let Ok(asked) = Command::new(program).args(["-G", "folders"]).output() else { continue };
        let folders = String::from_utf8_lossy(&asked.stdout).into_owned();
        if let Some(folder) = named(&folders, "Personal Lua Plugins:") {
            return Ok(folder);
        }
    }
    let folder = default_folder(PLATFORM, variable);
    let folder = folder.ok_or_else(|| {
        io::Error::other("neither tshark nor wireshark reports a plugin folder; use --output FILE")
    })?;
    complain("neither tshark nor wireshark reports a plugin folder; this is the default of Wireshark");
    Ok(folder)
}

/// Returns the programs that may know the folder. Installers for Windows and macOS do not add theirs to the search path.
fn programs(platform: Platform, variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let installed = match platform {
        Platform::Windows => variable("ProgramFiles").map(|folder| PathBuf::from(folder).join("Wireshark")),
        Platform::MacOs => Some(PathBuf::from("/Applications/Wireshark.app/Contents/MacOS")),
        Platform::Unix => None,
    };
    let anywhere = ["tshark", "wireshark"].map(PathBuf::from);
    anywhere.into_iter().chain(installed.map(|folder| folder.join("tshark"))).collect()
}

/// Returns the folder that the manual of Wireshark names. `None` without the variable that it depends on.
fn default_folder(platform: Platform, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let (start, below) = match platform {
        Platform::Windows => ("APPDATA", "Wireshark/plugins"),
        Platform::MacOs | Platform::Unix => ("HOME", ".local/lib/wireshark/plugins"),
    };
    Some(below.split('/').fold(PathBuf::from(variable(start)?), |folder, name| folder.join(name)))
}

fn named(folders: &str, name: &str) -> Option<PathBuf> {
    let folder = folders.lines().find_map(|line| line.strip_prefix(name))?.trim();
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_folder_is_the_personal_one() {
        let said = "Temp:                \t/tmp\nPersonal Plugins:    \t/a/4.0\nPersonal Lua Plugins:\t/a b/plugins\n";
        assert_eq!(named(said, "Personal Lua Plugins:"), Some(PathBuf::from("/a b/plugins")));
        assert_eq!(named("Temp:\t/tmp\n", "Personal Lua Plugins:"), None);
        let windows = "Personal Lua Plugins:\tC:\\Users\\ada\\AppData\\Roaming\\Wireshark\\plugins\r\n";
        let folder = r"C:\Users\ada\AppData\Roaming\Wireshark\plugins";
        assert_eq!(named(windows, "Personal Lua Plugins:"), Some(PathBuf::from(folder)));
    }

    fn variable(name: &str) -> Option<OsString> {
        let value = match name {
            "APPDATA" => r"C:\Users\ada\AppData\Roaming",
            "ProgramFiles" => r"C:\Program Files",
            "HOME" => "/home/ada",
            _ => return None,
        };
        Some(value.into())
    }

    #[test]
    fn each_platform_has_a_default() {
        let windows = Path::new(r"C:\Users\ada\AppData\Roaming").join("Wireshark").join("plugins");
        assert_eq!(default_folder(Platform::Windows, variable), Some(windows));
        let unix = Some(PathBuf::from("/home/ada/.local/lib/wireshark/plugins"));
        assert_eq!(default_folder(Platform::MacOs, variable), unix);
        assert_eq!(default_folder(Platform::Unix, variable), unix);
        assert_eq!(default_folder(PLATFORM, |_| None), None);
    }

    #[test]
    fn programs_outside_the_search_path_are_asked() {
        let last = |platform| programs(platform, variable).pop().unwrap();
        let windows = Path::new(r"C:\Program Files").join("Wireshark").join("tshark");
        assert_eq!(last(Platform::Windows), windows);
        assert_eq!(last(Platform::MacOs), Path::new("/Applications/Wireshark.app/Contents/MacOS/tshark"));
        assert_eq!(programs(Platform::Unix, variable), ["tshark", "wireshark"].map(PathBuf::from));
    }
}
