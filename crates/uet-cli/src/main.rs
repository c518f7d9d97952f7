//! The `uet` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    uet_cli::commands::main()
}
