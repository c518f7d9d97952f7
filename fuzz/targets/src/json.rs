//! Converts a frame to JSON and back, and to its one-line summary.

use crate::Input;
use crate::cut_off::cut_off;
use serde_json::Value;
use uet_packet_io::json::{Decoded, Record, Settings, encode};

pub(super) fn run(data: &[u8]) {
    let Some(input) = Input::split(data) else { return };
    let Input { start, options, wire, bytes } = input;
    let record = Record { number: 1, start, bytes, wire, ..Record::default() };
    let decoded = Decoded::new(record, &options, true);

    let mut line = Vec::new();
    decoded.write(&mut line);
    let json: Value = serde_json::from_slice(&line).expect("it is JSON");
    assert_eq!(encode(&json, &Settings { start, options }).as_deref(), Ok(bytes));

    let shown = decoded.packet.to_string();
    assert!(!shown.contains(char::is_control), "{shown:?}");
    let choice = data.iter().fold(0, |sum: usize, byte| sum * 31 % 0xffff + usize::from(*byte));
    cut_off(decoded.packet, choice);
    decoded.packet.error().into_iter().for_each(|error| cut_off(error, choice));
}
