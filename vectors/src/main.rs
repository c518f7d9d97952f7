//! Writes the golden vectors, or checks that they are current.

use std::io::{self, Write};
use std::process::ExitCode;
use uet_vectors::{coverage, families, files};

const USAGE: &str = "usage: uet-vectors [--check | --coverage]";

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout().lock();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let done = files::write(&files::root())?;
            let written = done.missing.len() + done.changed.len();
            writeln!(out, "{written} files written, {} deleted", done.stale.len())?;
            Ok(ExitCode::SUCCESS)
        }
        ["--check"] => {
            let difference = files::difference(&files::found(&files::root())?, &files::wanted());
            for (what, paths) in [
                ("missing", &difference.missing),
                ("changed", &difference.changed),
                ("stale", &difference.stale),
            ] {
                for path in paths {
                    writeln!(out, "{what} {}", path.display())?;
                }
            }
            Ok(if difference.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        ["--coverage"] => {
            let table = coverage::table(&families::all());
            write!(out, "{table}")?;
            Ok(if table.missing().next().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        _ => {
            writeln!(io::stderr(), "{USAGE}")?;
            Ok(ExitCode::from(2))
        }
    }
}
