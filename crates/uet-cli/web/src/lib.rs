//! Commands for a page in a browser. Each reads an input and answers with lines of JSON.
//!
//! | command | input | answer |
//! | --- | --- | --- |
//! | `packets` | a capture or hexadecimal text | one line per packet and finding, then a summary |
//! | `packet N` | the same | the fields of the `N`-th packet, with their bits |
//! | `forms` | none | the headers with their fields, for building packets |
//! | `build FROM` | a packet as `uet decode --format json` prints it | its bytes, its fields, and Rust that builds it |
//! | `play` | an operation and impairments | what two model endpoints do |
//!
//! ```
//! let mut out = Vec::new();
//! let command = ["packets".to_owned()];
//! uet_web::run(&command, &b"380000000001200380014001\n"[..], &mut out)?;
//! let text = String::from_utf8(out)?;
//! assert!(text.contains("ACK PSN 73731"), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod packet;
mod packets;
mod play;
mod rust;

use std::error::Error;
use std::io::{Read, Write};

/// Runs one command.
pub fn run(
    arguments: &[String],
    input: impl Read + Send,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["packets"] => packets::list(input, out),
        ["packet", number] => packet::show(input, number.parse()?, out),
        ["forms"] => build::forms(out),
        ["build", from] => build::build(input, from, out),
        ["play"] => play::play(input, out),
        _ => Err(format!("no command {}", arguments.join(" ")).into()),
    }
}

/// The largest input of a command that builds or plays, in bytes.
const LARGEST_TEXT: u64 = 1 << 20;

/// Reads an input of JSON.
fn json(input: impl Read) -> Result<serde_json::Value, Box<dyn Error>> {
    let mut text = String::new();
    input.take(LARGEST_TEXT).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}
