//! A sequence of packets before the judge of captures.

use crate::Input;
use core::time::Duration;
use uet_conformance::Corrections;
use uet_conformance::passive::{CaptureChecker, CaptureFinding, CapturedPacket, Origin};
use uet_packet_io::json::{Decoded, Record};
use uet_wire::catalogue;
use uet_wire::tss::{DomainKey, KeyIv, Tss};

/// The input is a list: the length of an [`Input`] in two bytes, then the input. A length of 0 begins an instance of
/// the suite.
pub(super) fn run(data: &[u8]) {
    let inputs = split(data);
    let (first, contexts) = judge(&inputs);
    let (second, _) = judge(&inputs);
    assert_eq!(first, second, "a second reading finds something else");
    assert!(contexts <= inputs.len(), "{contexts} contexts in {} packets", inputs.len());
    for (number, finding) in &first {
        assert!((1..=*number).contains(&finding.number), "{finding:?}");
        assert!(finding.with.is_none_or(|with| (1..=*number).contains(&with)), "{finding:?}");
        let known = ["malformed", "not-authentic", "iv-reuse", "old-epoch", "counter-back"];
        assert!(known.contains(&finding.id) || catalogue::find(finding.id).is_some(), "{finding:?}");
        assert!(!finding.message.is_empty());
    }
}

/// Returns the packets; `None` stands for the begin of an instance.
fn split(mut data: &[u8]) -> Vec<Option<Input<'_>>> {
    let mut inputs = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk() {
        let (input, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        inputs.push(Input::split(input));
        data = rest;
    }
    inputs
}

/// Returns the findings, each with the number of the packet after which it was reported, and the number of contexts.
fn judge(inputs: &[Option<Input<'_>>]) -> (Vec<(u64, CaptureFinding)>, usize) {
    let mut checker = CaptureChecker::new(Corrections::default());
    checker.section(&Origin { instance: None, device: vec![[10, 0, 0, 1].into()] }.comment());
    let mut found = Vec::new();
    for (number, input) in (1..).zip(inputs) {
        let Some(Input { start, options, wire, bytes }) = *input else {
            checker.comment(&Origin::begin("write/plain"));
            continue;
        };
        let decoded = Decoded::new(Record { number, start, bytes, wire, ..Record::default() }, &options, false);
        let packet = CapturedPacket {
            number,
            time: Some(Duration::from_millis(number)),
            packet: &decoded.packet,
            findings: &decoded.findings,
            error: decoded.error(),
            authenticated: None,
            // Two keys: the judge follows the counters of each.
            key: decoded.packet.uet.tss.map(|tss| key(bytes.len() % 2, &tss)),
        };
        let now = checker.packet(packet);
        found.extend(checker.released().into_iter().chain(now).map(|finding| (number, finding)));
    }
    checker.end();
    found.extend(checker.released().into_iter().map(|finding| (inputs.len() as u64, finding)));
    (found, checker.contexts())
}

/// Returns the key and the IV of a packet that a secret has opened, without an IV mask.
fn key(place: usize, tss: &Tss<'_>) -> (usize, KeyIv) {
    let secret = DomainKey::new(&[place as u8; 32]).expect("it has 32 bytes");
    let mut iv = [0; 12];
    iv[4..].copy_from_slice(tss.tsc().bytes());
    (place, KeyIv { key: secret.fingerprint(), iv })
}
