//! Encodes arbitrary JSON as a frame.

use crate::Input;
use serde_json::Value;
use uet_packet_io::json::{Decoded, Record, Settings, encode};

pub(super) fn run(data: &[u8]) {
    let Some(Input { start, options, bytes: text, .. }) = Input::split(data) else { return };
    let Ok(json) = serde_json::from_slice::<Value>(text) else { return };
    let settings = Settings { start, options };
    let frame = match encode(&json, &settings) {
        Ok(frame) => frame,
        Err(error) => return assert!(!error.at.is_empty() && !error.why.is_empty(), "{error}"),
    };
    let record = Record { number: 1, start, bytes: &frame, wire: frame.len(), ..Record::default() };
    let decoded = Decoded::new(record, &options, true);
    let again = serde_json::to_value(&decoded).expect("it is JSON");
    assert_eq!(encode(&again, &settings), Ok(frame));
}
