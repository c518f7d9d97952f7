//! What a vector is made of.

use uet_packet_io::json::{Decoded, Record};
use uet_wire::{FrameBuilder, Options, Start, TrailerKind, Version};

/// A packet, with all that is needed to read it.
#[derive(Clone, Debug)]
pub struct Case {
    /// `family/.../name`, which is also the file's name.
    pub name: String,
    /// What it shows.
    pub description: String,
    /// Where it comes from.
    pub source: String,
    /// What the bytes start with.
    pub start: Start,
    /// What the deployment sets.
    pub options: Options,
    /// Its length on the wire, when the capture kept less.
    pub wire: Option<usize>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Case {
    /// A packet from where UET starts. Family and source are set by the family that takes it.
    pub fn uet(name: impl Into<String>, description: impl Into<String>, bytes: impl Bytes) -> Self {
        Case {
            name: name.into(),
            description: description.into(),
            source: String::new(),
            start: Start::Uet,
            options: Options::DEFAULT,
            wire: None,
            bytes: bytes.bytes(),
        }
    }

    /// A packet from Ethernet on.
    pub fn eth(name: impl Into<String>, description: impl Into<String>, bytes: impl Bytes) -> Self {
        Case::uet(name, description, bytes).from(Start::Eth)
    }

    /// Says what the bytes start with.
    pub fn from(self, start: Start) -> Self {
        Case { start, ..self }
    }

    /// Says where the packet comes from, when that is not where the rest of the family comes from.
    pub fn source(self, source: impl Into<String>) -> Self {
        Case { source: source.into(), ..self }
    }

    /// Sets what the deployment sets.
    pub fn options(self, options: Options) -> Self {
        Case { options, ..self }
    }

    /// Says which trailer the deployment uses.
    pub fn trailer(self, trailer: TrailerKind) -> Self {
        Case { options: self.options.trailer(trailer), ..self }
    }

    /// Has the packet judged by another version of the specification.
    pub fn version(self, version: Version) -> Self {
        Case { options: self.options.spec(version.spec()), ..self }
    }

    /// Keeps only the first bytes, as a capture with a snap length does.
    pub fn sliced(mut self, captured: usize) -> Self {
        self.wire = Some(self.bytes.len());
        self.bytes.truncate(captured);
        self
    }

    /// The packet, read.
    pub fn decoded(&self) -> Decoded<'_> {
        let wire = self.wire.unwrap_or(self.bytes.len());
        let record = Record { number: 1, start: self.start, bytes: &self.bytes, wire, ..Record::default() };
        Decoded::new(record, &self.options, false)
    }
}

/// What gives the bytes of a packet.
pub trait Bytes {
    /// The bytes.
    fn bytes(&self) -> Vec<u8>;
}

impl Bytes for Vec<u8> {
    fn bytes(&self) -> Vec<u8> {
        self.clone()
    }
}

impl Bytes for FrameBuilder<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut buffer = vec![0; self.len()];
        match self.emit(&mut buffer) {
            Ok(length) => assert_eq!(length, buffer.len()),
            // A case that cannot be built is a mistake in its declaration.
            Err(error) => panic!("{error}"),
        }
        buffer
    }
}

/// Who sends a packet of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The one who opened the context.
    Initiator,
    /// The other one.
    Target,
}

impl Direction {
    /// `initiator`, `target`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Initiator => "initiator",
            Direction::Target => "target",
        }
    }
}

/// A packet of a sequence.
#[derive(Clone, Debug)]
pub struct Step {
    /// Who sends it.
    pub direction: Direction,
    /// When, in nanoseconds from the start of the sequence.
    pub at: u64,
    /// The packet.
    pub case: Case,
}

/// What one file holds.
#[derive(Clone, Debug)]
pub enum Vector {
    /// One packet.
    Packet(Case),
    /// Several packets, in the order of time.
    Sequence {
        /// `family/name`.
        name: String,
        /// What it shows.
        description: String,
        /// Where it comes from.
        source: String,
        /// The packets.
        steps: Vec<Step>,
    },
}

impl Vector {
    /// `family/.../name`.
    pub fn name(&self) -> &str {
        match self {
            Vector::Packet(case) => &case.name,
            Vector::Sequence { name, .. } => name,
        }
    }

    /// The packets.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        let (one, many) = match self {
            Vector::Packet(case) => (Some(case), &[][..]),
            Vector::Sequence { steps, .. } => (None, &steps[..]),
        };
        one.into_iter().chain(many.iter().map(|step| &step.case))
    }
}

/// Vectors that show one thing from all sides.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its name, and that of its directory.
    pub name: &'static str,
    /// Where its packets come from, unless they say otherwise.
    pub source: &'static str,
    /// The vectors, in the order of their declaration.
    pub vectors: Vec<Vector>,
}

impl Family {
    /// A family without vectors.
    pub fn new(name: &'static str, source: &'static str) -> Self {
        Family { name, source, vectors: Vec::new() }
    }

    /// Adds a packet.
    pub fn add(&mut self, case: Case) {
        let name = format!("{}/{}", self.name, case.name);
        let source = if case.source.is_empty() { self.source.to_owned() } else { case.source.clone() };
        self.vectors.push(Vector::Packet(Case { name, source, ..case }));
    }

    /// Adds a sequence.
    pub fn sequence(&mut self, name: &str, description: &str, source: &str, steps: Vec<Step>) {
        let name = format!("{}/{name}", self.name);
        let numbered = steps.into_iter().enumerate().map(|(index, step)| {
            let case = Case { name: format!("{name}/{}", index + 1), source: source.to_owned(), ..step.case };
            Step { case, ..step }
        });
        self.vectors.push(Vector::Sequence {
            description: description.to_owned(),
            source: source.to_owned(),
            steps: numbered.collect(),
            name,
        });
    }
}
