//! Prints the packets of the corpus of `parse`, for `uet corpus export`:
//! `cargo run -p uet-fuzz --example packets > uet-packet-io/src/corpus/packets.txt`.

use std::io::{self, Write};
use std::path::Path;

fn main() -> io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora/parse");
    io::stdout().lock().write_all(uet_fuzz::corpus::packets(&directory)?.as_bytes())
}
