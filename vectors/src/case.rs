//! The parts of a vector.

use uet_control::SecureDomain;
use uet_packet_io::Decoder;
use uet_packet_io::json::{Decoded, Record};
use uet_packet_io::keys::KeyRing;
use uet_wire::{FrameBuilder, Options, Start, TrailerKind, Version};

/// A packet with the settings needed to read it.
#[derive(Clone, Debug)]
pub struct Case {
    /// `family/.../name`.
    pub name: String,
    /// Subject of the vector.
    pub description: String,
    /// Source of the packet.
    pub source: String,
    /// First layer of the bytes.
    pub start: Start,
    /// Deployment settings.
    pub options: Options,
    /// Secure domains whose keys open the packet.
    pub keys: Vec<SecureDomain>,
    /// Length on the wire, if the capture kept less.
    pub wire: Option<usize>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Case {
    /// Creates a packet that starts with UET. The family sets the name prefix and the source.
    pub fn uet(name: impl Into<String>, description: impl Into<String>, bytes: impl Bytes) -> Self {
        Case {
            name: name.into(),
            description: description.into(),
            source: String::new(),
            start: Start::Uet,
            options: Options::DEFAULT,
            keys: Vec::new(),
            wire: None,
            bytes: bytes.bytes(),
        }
    }

    /// Creates a packet that starts with Ethernet.
    pub fn eth(name: impl Into<String>, description: impl Into<String>, bytes: impl Bytes) -> Self {
        Case::uet(name, description, bytes).from(Start::Eth)
    }

    /// Sets the first layer of the bytes.
    pub fn from(self, start: Start) -> Self {
        Case { start, ..self }
    }

    /// Sets the source, if it differs from that of the family.
    pub fn source(self, source: impl Into<String>) -> Self {
        Case { source: source.into(), ..self }
    }

    /// Sets the deployment settings.
    pub fn options(self, options: Options) -> Self {
        Case { options, ..self }
    }

    /// Sets the trailer of the deployment.
    pub fn trailer(self, trailer: TrailerKind) -> Self {
        Case { options: self.options.trailer(trailer), ..self }
    }

    /// Sets the secure domains, and the trailer of secured packets.
    pub fn keys(self, keys: Vec<SecureDomain>) -> Self {
        Case { keys, ..self.trailer(TrailerKind::Icv) }
    }

    /// Sets the version of the specification that judges the packet.
    pub fn version(self, version: Version) -> Self {
        Case { options: self.options.spec(version.spec()), ..self }
    }

    /// Keeps only the first bytes, as a capture with a snap length does.
    pub fn sliced(mut self, captured: usize) -> Self {
        self.wire = Some(self.bytes.len());
        self.bytes.truncate(captured);
        self
    }

    /// Returns a decoder with the settings and keys of the packet.
    pub fn decoder(&self) -> Decoder {
        let decoder = Decoder::new(self.options, false);
        if self.keys.is_empty() {
            return decoder;
        }
        match KeyRing::new(&self.keys) {
            Ok(keys) => decoder.with_keys(keys),
            // Keys that do not fit are a mistake in the declaration of the case.
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    /// Decodes the packet with its own [`decoder`](Case::decoder).
    pub fn decoded<'a>(&'a self, decoder: &'a mut Decoder) -> Decoded<'a> {
        let wire = self.wire.unwrap_or(self.bytes.len());
        let record = Record { number: 1, start: self.start, bytes: &self.bytes, wire, ..Record::default() };
        decoder.decode(record)
    }
}

/// A source of packet bytes.
pub trait Bytes {
    /// Returns the bytes.
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

/// Sender of a packet of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The end that opened the context.
    Initiator,
    /// The peer.
    Target,
}

impl Direction {
    /// Returns `initiator` or `target`.
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
    /// Sender.
    pub direction: Direction,
    /// Time in nanoseconds from the start of the sequence.
    pub at: u64,
    /// The packet.
    pub case: Case,
}

/// Contents of one line.
#[derive(Clone, Debug)]
pub enum Vector {
    /// One packet.
    Packet(Case),
    /// Several packets, ordered by time.
    Sequence {
        /// `family/name`.
        name: String,
        /// Subject of the vector.
        description: String,
        /// Source of the packets.
        source: String,
        /// The packets.
        steps: Vec<Step>,
    },
}

impl Vector {
    /// Returns the name: `family/.../name`.
    pub fn name(&self) -> &str {
        match self {
            Vector::Packet(case) => &case.name,
            Vector::Sequence { name, .. } => name,
        }
    }

    /// Returns the packets.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        let (one, many) = match self {
            Vector::Packet(case) => (Some(case), &[][..]),
            Vector::Sequence { steps, .. } => (None, &steps[..]),
        };
        one.into_iter().chain(many.iter().map(|step| &step.case))
    }
}

/// Vectors about one subject.
#[derive(Clone, Debug)]
pub struct Family {
    /// Name, also of its file.
    pub name: &'static str,
    /// Source of its packets, unless they have another.
    pub source: &'static str,
    /// The vectors, in the order of their declaration.
    pub vectors: Vec<Vector>,
}

impl Family {
    /// Creates a family without vectors.
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
