//! Writes the captures of `corpora/captures/learn`.

use std::io::{self, Write};
use std::process::ExitCode;
use uet_captures::{folder, stories};

fn main() -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    for story in stories() {
        let path = folder().join(story.name).with_extension("pcapng");
        match story.capture() {
            Ok(capture) => {
                std::fs::write(&path, &capture)?;
                writeln!(out, "{} {} bytes", path.display(), capture.len())?;
            }
            Err(error) => {
                writeln!(io::stderr(), "{}: {error}", story.name)?;
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
