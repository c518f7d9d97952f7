//! `uet completions` and `uet man`: files that packagers install with the program.

use super::{Cli, Outcome, about};
use clap::{Args, CommandFactory, ValueEnum};
use std::fs;
use std::io;
use std::path::PathBuf;

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet completions bash > ~/.local/share/bash-completion/completions/uet
  uet completions zsh > ~/.zfunc/_uet
  uet completions fish > ~/.config/fish/completions/uet.fish")]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        use clap_complete::Shell as Known;
        let shell = match self.shell {
            Shell::Bash => Known::Bash,
            Shell::Zsh => Known::Zsh,
            Shell::Fish => Known::Fish,
        };
        // Generate into memory first: the generator panics when its output is closed.
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "uet", &mut script);
        io::Write::write_all(&mut io::stdout().lock(), &script)?;
        Ok(Outcome::Ok)
    }
}

/// Write the manual pages into a directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet man ~/.local/share/man/man1 && man uet-decode")]
pub(super) struct Man {
    /// Output directory, created if it is missing
    dir: PathBuf,
}

impl Man {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let write = || {
            fs::create_dir_all(&self.dir)?;
            clap_mangen::generate_to(Cli::command(), &self.dir)
        };
        write().map_err(|error| about(&self.dir, error))?;
        Ok(Outcome::Ok)
    }
}
