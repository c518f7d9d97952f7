//! A frame through a decoder with the keys of several secure domains.

use crate::Input;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use uet_packet_io::keys::KeyRing;
use uet_packet_io::Decoder;
use uet_packet_io::json::{Record, Settings, encode_sealed};
use uet_wire::tss::Outer;

/// One domain of each mode, with and without source identifiers, and the domain of the published example.
const KEYS: &str = include_str!("secured.toml");

/// The ring that seals. It has no state.
static RING: LazyLock<KeyRing> = LazyLock::new(ring);

thread_local! {
    /// A decoder for each choice of options: creating one takes longer than decoding.
    static DECODERS: RefCell<BTreeMap<u8, Decoder>> = const { RefCell::new(BTreeMap::new()) };
}

fn ring() -> KeyRing {
    KeyRing::from_toml(KEYS).expect("the key file is right")
}

pub(super) fn run(data: &[u8]) {
    let Some(input) = Input::split(data) else { return };
    DECODERS.with_borrow_mut(|decoders| {
        // The lowest bits select the first header, which is no setting of a decoder.
        let decoder = decoders
            .entry(data[0] & !7)
            .or_insert_with(|| Decoder::new(input.options, true).with_keys(ring()));
        if !opens(decoder, &input)
            && let Some(sealed) = sealed(&input)
        {
            assert!(opens(decoder, &Input { bytes: &sealed, ..input }), "a sealed packet opens");
        }
    });
}

/// Decodes a packet and returns whether it was opened. It is then sealed to the same bytes, or else unchanged.
fn opens(decoder: &mut Decoder, input: &Input<'_>) -> bool {
    let record =
        Record { number: 1, start: input.start, bytes: input.bytes, wire: input.wire, ..Record::default() };
    let decoded = decoder.decode(record);
    let protection = decoded.protection.as_ref();
    assert_eq!(protection.is_some(), decoded.packet.uet.tss.is_some());
    let opened = protection.is_some_and(|protection| protection.authenticated == Some(true));
    assert_eq!(protection.is_some_and(|protection| protection.reason.is_none()), opened);
    let mut line = Vec::new();
    decoded.write(&mut line);
    let json = serde_json::from_slice(&line).expect("it is JSON");
    if !opened {
        assert_eq!(decoded.record.bytes, input.bytes);
        return false;
    }
    let settings = Settings { start: input.start, options: input.options };
    match encode_sealed(&json, &settings, &RING) {
        Ok(bytes) => assert_eq!(bytes, input.bytes),
        // A length that promises more than there is, outside of the authenticated range.
        Err(error) => assert!(decoded.error().is_some(), "{error}"),
    }
    let mut again = decoded.record.bytes.to_vec();
    let outer = Outer::of(&decoded.packet).expect("it was opened with its outer headers");
    let offsets = decoded.packet.offsets();
    let start = offsets.uet.expect("it has a security header");
    RING.seal(&outer, &mut again[start..offsets.padding]).expect("the keys are there");
    assert_eq!(again, input.bytes);
    true
}

/// Encrypts a packet that is whole and names one of the domains. No fuzzer finds an ICV.
fn sealed(input: &Input<'_>) -> Option<Vec<u8>> {
    let packet = input.packet();
    let offsets = packet.offsets();
    let (outer, start) = (Outer::of(&packet)?, offsets.uet?);
    let unopened = packet.sliced.is_some() || packet.trimmed.is_some() || packet.error().is_some();
    if packet.uet.tss.is_none() || unopened {
        return None;
    }
    let mut bytes = input.bytes.to_vec();
    RING.seal(&outer, bytes.get_mut(start..offsets.padding)?).ok()?;
    Some(bytes)
}
