//! From records to parsed packets, with a memory of what a deployment does: which senders append a CRC, and the keys of
//! secured packets.

use crate::json::{Decoded, Protection, Record};
use crate::keys::{KeyError, KeyRing};
use crate::recognize::Recognizer;
use uet_wire::tss::Outer;
use uet_wire::{Options, Packet, TrailerKind};

/// Parses the packets of an input.
///
/// ```
/// use uet_packet_io::Decoder;
/// use uet_packet_io::json::Record;
/// use uet_wire::{Options, Start};
///
/// let bytes = [0x38, 0, 0, 0, 0, 1, 0x20, 3, 0x80, 1, 0x40, 1];
/// let mut decoder = Decoder::new(Options::default(), false);
/// let decoded = decoder.decode(Record { start: Start::Uet, bytes: &bytes, wire: 12, ..Record::default() });
/// assert!(decoded.packet.uet.pds.is_some());
/// ```
#[derive(Debug)]
pub struct Decoder {
    options: Options,
    raw: bool,
    trailers: Option<Recognizer>,
    keys: Option<KeyRing>,
    /// True if the keys come from captures, which may add more.
    embedded: bool,
    /// A packet that has been decrypted.
    opened: Vec<u8>,
}

impl Decoder {
    /// Creates a decoder for a deployment. With `raw`, the JSON of a packet includes its bytes.
    pub fn new(options: Options, raw: bool) -> Self {
        Decoder { options, raw, trailers: None, keys: None, embedded: true, opened: Vec::new() }
    }

    /// Recognizes the trailer of each packet, instead of expecting the configured one.
    #[must_use]
    pub fn recognizing_trailers(self) -> Self {
        Decoder { trailers: Some(Recognizer::default()), ..self }
    }

    /// Opens secured packets with these keys, and ignores those that captures hold.
    #[must_use]
    pub fn with_keys(self, keys: KeyRing) -> Self {
        Decoder { keys: Some(keys), embedded: false, ..self }
    }

    /// Adds the keys of a decryption secrets block. Has no effect after [`with_keys`](Self::with_keys).
    ///
    /// # Errors
    ///
    /// Fails if the block does not hold a valid key file, or if there are too many domains. The error shows no key.
    pub fn add_secrets(&mut self, key_file: &[u8]) -> Result<(), KeyError> {
        if !self.embedded {
            return Ok(());
        }
        let found = KeyRing::from_toml_bytes(key_file)?;
        match &mut self.keys {
            Some(keys) => keys.add(found),
            None => {
                self.keys = Some(found);
                Ok(())
            }
        }
    }

    /// Returns whether there are keys.
    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Parses a packet.
    pub fn decode<'a>(&'a mut self, record: Record<'a>) -> Decoded<'a> {
        let mut options = self.options;
        let parse =
            |options: &Options| Packet::parse_sliced(record.start, record.bytes, record.wire, options).0;
        if let Some(trailers) = &mut self.trailers {
            options.trailer = trailers.trailer(&parse(&options.trailer(TrailerKind::None)), |kind| {
                parse(&self.options.trailer(kind))
            });
        }
        let packet = parse(&options);
        if packet.uet.tss.is_none() {
            return Decoded::new(record, &options, self.raw);
        }
        let protection = protection(&packet, self.keys.as_mut(), record.bytes, &mut self.opened);
        let (record, options) = match protection.authenticated {
            Some(true) => (Record { bytes: &self.opened, ..record }, options.opened(true)),
            _ => (record, options),
        };
        Decoded::new(record, &options, self.raw).protected_by(protection)
    }
}

/// Tries to open a secured packet, and leaves it in `opened`.
fn protection(
    packet: &Packet<'_>,
    keys: Option<&mut KeyRing>,
    bytes: &[u8],
    opened: &mut Vec<u8>,
) -> Protection {
    let unopened = |reason: &str| Protection { reason: Some(reason.into()), ..Protection::default() };
    let Some(keys) = keys else { return unopened("no keys were given") };
    if packet.sliced.is_some() {
        return unopened("the capture cut off its end");
    }
    // The IP length is not authenticated, and a receiver drops a packet that it does not fit.
    if packet.error().is_some() {
        return unopened("it is malformed");
    }
    if packet.trimmed.is_some() {
        return unopened("a switch trimmed it, so it has no ICV");
    }
    let offsets = packet.offsets();
    let (Some(outer), Some(start)) = (Outer::of(packet), offsets.uet) else {
        return unopened("the addresses, which are authenticated, are missing, or are followed by options");
    };
    opened.clear();
    opened.extend_from_slice(bytes);
    let Some(secured) = opened.get_mut(start..offsets.padding) else { return unopened("it is malformed") };
    let result = keys.open(&outer, secured);
    Protection { authenticated: result.authenticated(), reason: result.reason(), key: result.key() }
}
