//! The passive rules on the golden sequences, and on each sequence with one kind of damage.

mod correct;
mod frames;
mod questions;
mod rules;

use serde_json::Value;
use std::fs;
use uet_observe::passive::{Checker, Finding};
use uet_wire::{Options, Packet, Start};

/// Returns the frames of a golden sequence.
fn sequence(vector: &Value) -> Vec<Vec<u8>> {
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    };
    vector["packets"].as_array().unwrap().iter().map(|packet| hex(packet["hex"].as_str().unwrap())).collect()
}

fn sequences() -> Vec<(String, Vec<Vec<u8>>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/sequences.jsonl");
    let lines = fs::read_to_string(path).unwrap();
    let vectors = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let all: Vec<_> =
        vectors.map(|vector| (vector["name"].as_str().unwrap().to_owned(), sequence(&vector))).collect();
    assert!(all.len() >= 16);
    all
}

fn check<'a>(frames: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<Finding> {
    let mut checker = Checker::default();
    let judge = |(number, frame): (usize, &Vec<u8>)| {
        let packet = Packet::parse_lax(Start::Eth, frame, &Options::default()).0;
        checker.packet(number as u64 + 1, &packet)
    };
    frames.into_iter().enumerate().flat_map(judge).collect()
}

#[test]
fn golden_sequences_break_nothing() {
    for (name, frames) in sequences() {
        assert_eq!(check(&frames), [], "{name}");
    }
}

#[test]
fn incomplete_capture_has_no_findings() {
    for (name, frames) in sequences() {
        for gap in 0..frames.len() {
            let without = frames.iter().enumerate().filter(|(at, _)| *at != gap).map(|(_, frame)| frame);
            assert_eq!(check(without), [], "{name} without packet {}", gap + 1);
            assert_eq!(check(&frames[gap..]), [], "{name} from packet {}", gap + 1);
        }
    }
}
