//! The program that a page in the browser runs: one command, an input on standard input, lines of JSON as the answer.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let ended = uet_web::run(&arguments, io::stdin(), &mut out).and_then(|()| Ok(out.flush()?));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
