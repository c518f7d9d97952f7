//! Prints the packets of the corpus of `parse`, for `uet corpus export`:
//! `cargo run -p uet-fuzz --example packets > crates/uet-packet-io/src/corpus/packets.txt`.

use std::error::Error;
use std::io::{self, Write};
use uet_fuzz::corpus;

fn main() -> Result<(), Box<dyn Error>> {
    let packets = corpus::packets(&corpus::seeds("parse")?);
    Ok(io::stdout().lock().write_all(packets.as_bytes())?)
}
