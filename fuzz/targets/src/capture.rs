//! Arbitrary bytes as a capture file.

use std::ops::ControlFlow;
use uet_packet_io::input::{self, InputError};
use uet_packet_io::json::Decoded;
use uet_wire::{Options, Start};

/// More packets than any uncompressed file of the fuzzer has.
const MOST: u64 = 4096;

pub(super) fn run(data: &[u8]) {
    let mut packets = 0;
    let mut line = Vec::new();
    let compressed = data.starts_with(&[0x1f, 0x8b]);
    let read = input::read(data, Start::Eth, &mut |record| {
        packets += 1;
        assert_eq!(record.number, packets);
        assert!(compressed || record.link.len() + record.bytes.len() <= data.len());
        let decoded = Decoded::new(record, &Options::DEFAULT, true);
        line.clear();
        decoded.write(&mut line);
        Ok(if packets < MOST { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    });
    if let Err(error) = read {
        assert!(!error.to_string().is_empty());
        assert!(!matches!(error, InputError::Sink(_) | InputError::Digits(_)), "{error}");
    }
}
