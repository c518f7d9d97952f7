//! What the fuzzers run: a target is a function over bytes that panics where a promise of the code is broken.
//!
//! The fuzzers in `fuzz/` call them with bytes of their making, `tests/replay.rs` with every file of `corpora/`.
//! docs/fuzzing.md says how a target is added.

pub mod corpus;
mod cut_off;
mod input;
pub mod mutate;
mod noise;

pub use input::Input;
pub use noise::Noise;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of its file, of its fuzzer and of its corpus.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// What its bytes are.
    pub kind: Kind,
    /// Panics where something is wrong.
    pub run: fn(&[u8]),
}

/// What the bytes of a target are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An [`Input`]: a packet behind two bytes that say how it is to be read.
    Packet,
    /// What the `arbitrary` crate makes values of.
    Values,
    /// A byte that chooses, and a text.
    Text,
    /// A line of JSON, behind two bytes that say what comes of it.
    Json,
    /// A capture, or a text of hexadecimal digits.
    Capture,
}

macro_rules! targets {
    ($($name:ident $kind:ident $about:literal;)*) => {
        $(mod $name;)*

        /// All targets.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name), about: $about, kind: Kind::$kind, run: $name::run,
        }),*];
    };
}

targets! {
    parse Packet "whatever the bytes are, each is in one part of the packet";
    parse_emit Packet "what has been parsed is emitted as it was, bit for bit; the strict parser sees the same";
    emit_parse Values "what has been built is parsed as it was meant";
    writers Values "a header says what its writer was told; a frame is refused or parsed as it was meant";
    validate Packet "findings name fields that are there and values that they have";
    crc Packet "the CRC is that of the polynomial; what it covers cannot change unnoticed, the rest can";
    json Packet "decoded with its bytes and encoded, a frame is the same; the texts for people come out";
    json_encode Json "whatever the JSON is, it is encoded or refused; what is encoded can be decoded";
    capture Capture "whatever the file is, its packets come out or the damage is named";
    setters Packet "a change in place changes what it should and nothing else, and a refused one nothing";
    names Text "a name stands for one thing, which has it; figures and numbers come out right";
    overlay Packet "the codec and the C overlay read the same fields with the same values";
    pdc Values "an endpoint holds no more than it may, whatever comes in, and each of its requests ends once";
    endpoints Values "whatever the network does, each operation ends once and well, and nothing is left";
    congestion Values "sums are right, windows in their bounds, and nobody waits for what will not come";
}

/// The target of this name; in a constant, so that a program with one target holds no other.
pub const fn target(name: &str) -> Option<Target> {
    let mut index = 0;
    while index < TARGETS.len() {
        if same(TARGETS[index].name, name) {
            return Some(TARGETS[index]);
        }
        index += 1;
    }
    None
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}
