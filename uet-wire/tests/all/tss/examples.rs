//! Each worked example, both ways.

use serde_json::Value;
use uet_wire::tss::{Direction, Domain, DomainKey, ICV, Mode, Outer, PacketKey, Tss};
use uet_wire::{Options, Packet, Start, TrailerKind};

pub(super) struct Example(Value);

pub(super) fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

impl Example {
    pub(super) fn all() -> Vec<Example> {
        let examples: Vec<Value> = serde_json::from_str(include_str!("examples.json")).unwrap();
        assert_eq!(examples.len(), 18);
        examples.into_iter().map(Example).collect()
    }

    /// Returns an example by its number.
    pub(super) fn number(number: u64) -> Example {
        Example::all().into_iter().find(|example| example.0["example"] == number).unwrap()
    }

    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.0[name].as_str().map(hex)
    }

    pub(super) fn frame(&self) -> Vec<u8> {
        self.bytes("frame").unwrap()
    }

    pub(super) fn secret(&self) -> DomainKey {
        DomainKey::new(&self.bytes("secret").unwrap()).unwrap()
    }

    /// Returns the domain, and the end at which the example stands.
    pub(super) fn domain(&self) -> (Domain, Direction) {
        let mode = match self.0["mode"].as_str().unwrap() {
            "direct" => Mode::Direct,
            "cluster" => Mode::Cluster,
            _ => Mode::Server,
        };
        let mask = u64::from_str_radix(self.0["rekey_mask"].as_str().unwrap(), 16).unwrap();
        // The examples give a mask for all of a domain, and use it in the cluster mode only.
        let domain = Domain {
            ssi: self.0["ssi"].is_string(),
            rekey_mask: mask,
            rekey_shift: self.0["rekey_shift"].as_u64().unwrap() as u8,
            confidentiality_offset: self.0["confidentiality_offset"].as_u64().map(|offset| offset as u8),
            ..Domain::new(0x01_2345, mode)
        };
        domain.check().unwrap();
        // A client's packet is one that the server receives.
        let sent = self.0["sending"].as_bool().unwrap();
        (domain, if sent { Direction::Outgoing } else { Direction::Incoming })
    }
}

/// A frame, and the place of its security header.
pub(super) fn located(frame: &[u8]) -> (Outer, usize, usize) {
    let options = Options::default().trailer(TrailerKind::Icv);
    let packet = Packet::parse(Start::Eth, frame, &options).unwrap();
    let offsets = packet.offsets();
    (Outer::of(&packet).unwrap(), offsets.uet.unwrap(), offsets.padding)
}

/// Returns the key of the example's packet.
pub(super) fn key(example: &Example, domain: &Domain, direction: Direction, frame: &[u8]) -> PacketKey {
    let (outer, uet, _) = located(frame);
    let (tss, _) = Tss::parse(&frame[uet..]).unwrap();
    domain.key_id(&outer, &tss, direction).unwrap().derive(&example.secret()).unwrap()
}

#[test]
fn contexts_of_the_derivation() {
    for example in Example::all() {
        let (domain, direction) = example.domain();
        let frame = example.frame();
        let (outer, uet, _) = located(&frame);
        let (tss, _) = Tss::parse(&frame[uet..]).unwrap();
        let id = domain.key_id(&outer, &tss, direction).unwrap();
        if let Some(context) = example.bytes("context") {
            assert_eq!(id.context(), context, "example {}", example.0["example"]);
        }
    }
}

#[test]
fn opened_and_sealed_again() {
    for example in Example::all() {
        let (domain, direction) = example.domain();
        let number = &example.0["example"];
        let sealed = example.frame();
        let key = key(&example, &domain, direction, &sealed);
        let (outer, uet, end) = located(&sealed);
        let mut frame = sealed.clone();
        domain
            .open(&key, &outer, &mut frame[uet..end])
            .unwrap_or_else(|error| panic!("example {number}: {error}"));
        let plaintext = example.bytes("plaintext").unwrap();
        assert_eq!(frame[end - ICV - plaintext.len()..end - ICV], plaintext, "example {number}");
        frame[end - ICV..end].fill(0);
        domain.seal(&key, &outer, &mut frame[uet..end]).unwrap();
        assert_eq!(frame, sealed, "example {number}");
    }
}

#[test]
fn a_client_holds_the_derived_key() {
    for number in [10, 13] {
        let example = Example::number(number);
        let held = [example.bytes("key").unwrap(), example.bytes("iv_mask").unwrap()].concat();
        let domain = Domain { mode: Mode::Client, ..example.domain().0 };
        let sealed = example.frame();
        let (outer, uet, end) = located(&sealed);
        let (tss, _) = Tss::parse(&sealed[uet..]).unwrap();
        let id = domain.key_id(&outer, &tss, Direction::Outgoing).unwrap();
        let key = id.derive(&DomainKey::new(&held).unwrap()).unwrap();
        let mut frame = sealed.clone();
        domain.open(&key, &outer, &mut frame[uet..end]).unwrap();
        assert_eq!(frame[uet + 16..end - ICV], example.bytes("plaintext").unwrap());
    }
}

#[test]
fn lengths_of_outer_headers() {
    let sealed = Example::number(14).frame();
    let (outer, uet, end) = located(&sealed);
    assert_eq!(outer, Outer::udp([192, 168, 42, 1], [192, 168, 42, 2], 0xc123, end - uet));
    let sealed = Example::number(1).frame();
    let (outer, ..) = located(&sealed);
    assert_eq!(outer, Outer::native([192, 168, 42, 1], [192, 168, 42, 2], 0xc123));
}
