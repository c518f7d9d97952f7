//! The corpora as data.

use crate::Input;
use std::path::Path;
use std::{fs, io};
use uet_packet_io::hex::Hex;
use uet_wire::Start;
use uet_wire::outer::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};

/// The packets of a directory of inputs, as `uet corpus export` has them: a line for each, what it starts with and
/// its digits.
pub fn packets(directory: &Path) -> io::Result<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if !path.is_file() {
            continue;
        }
        let data = fs::read(path)?;
        let start = Input::split(&data).map(|input| (input.start, input.bytes));
        let (start, bytes) = match start {
            Some((Start::Eth, bytes)) => ("eth", bytes),
            Some((Start::Ip | Start::EtherType(ETHERTYPE_IPV4 | ETHERTYPE_IPV6), bytes)) => ("ip", bytes),
            Some((Start::Udp, bytes)) => ("udp", bytes),
            Some((Start::Uet, bytes)) => ("uet", bytes),
            _ => continue,
        };
        if !bytes.is_empty() {
            lines.push(format!("{start} {}\n", Hex(bytes)));
        }
    }
    lines.sort();
    lines.dedup();
    Ok(lines.concat())
}
