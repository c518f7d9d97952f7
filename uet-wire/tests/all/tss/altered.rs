//! Packets with one changed bit: which changes a receiver notices, and which it must not.

use super::examples::{Example, key, located};
use uet_wire::outer::Ipv4;
use uet_wire::tss::TssError;
use uet_wire::tss::{Domain, DomainKey, Mode, Outer, Tss, TssShort};

/// Flips a bit of the example's frame, makes the IPv4 checksum right, and opens it.
fn opened(number: u64, byte: usize, bit: u8) -> Result<(), TssError> {
    let example = Example::number(number);
    let (domain, direction) = example.domain();
    let mut frame = example.frame();
    frame[byte] ^= 1 << bit;
    let header = *Ipv4::parse(&frame[14..]).unwrap().0.bytes();
    let checksum = Ipv4::from_bytes(header).computed_checksum(&[]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    let key = key(&example, &domain, direction, &frame);
    let (outer, uet, end) = located(&frame);
    let before = frame.clone();
    let result = domain.open(&key, &outer, &mut frame[uet..end]);
    if result.is_err() {
        assert_eq!(frame, before, "nothing is decrypted before the ICV is right");
    }
    result
}

#[test]
fn a_changed_bit_is_noticed() {
    let rows = [
        (1, 137, 0, "ICV"),
        (1, 35, 0, "entropy value"),
        (1, 50, 7, "ciphertext"),
        (1, 33, 0, "destination address"),
        (1, 49, 0, "counter"),
        (1, 38, 1, "reserved bit of the security header"),
        (1, 41, 0, "SDI"),
        (14, 35, 0, "UDP source port"),
        (18, 50, 7, "part in the clear"),
    ];
    for (example, byte, bit, changed) in rows {
        assert_eq!(opened(example, byte, bit), Err(TssError::NotAuthentic), "{changed}");
    }
}

#[test]
fn switches_and_checksums_may_change() {
    for (example, byte, bit, changed) in [(14, 41, 0, "UDP checksum"), (1, 15, 2, "DSCP"), (1, 15, 0, "ECN")]
    {
        assert_eq!(opened(example, byte, bit), Ok(()), "{changed}");
    }
}

#[test]
fn every_bit_behind_the_addresses_is_authenticated() {
    let bytes = Example::number(1).frame().len();
    for byte in 26..bytes {
        // The type and the form of the header decide how the packet is read, so another test flips those.
        if byte == 38 {
            continue;
        }
        assert_eq!(opened(1, byte, 3), Err(TssError::NotAuthentic), "byte {byte}");
    }
}

#[test]
fn the_other_key_does_not_open() {
    let example = Example::number(1);
    let (domain, direction) = example.domain();
    let mut frame = example.frame();
    let (outer, uet, end) = located(&frame);
    let (tss, _) = Tss::parse(&frame[uet..]).unwrap();
    let other = DomainKey::new(&core::array::from_fn::<u8, 32, _>(|at| at as u8)).unwrap();
    let key = domain.key_id(&outer, &tss, direction).unwrap().derive(&other).unwrap();
    assert_eq!(domain.open(&key, &outer, &mut frame[uet..end]), Err(TssError::NotAuthentic));
}

#[test]
fn short_packets_are_errors() {
    let domain = Domain::new(1, Mode::Direct);
    let outer = Outer::native([10, 0, 0, 1], [10, 0, 0, 2], 1);
    let header = TssShort::build().head(|h| h.sdi(1)).tsc(|t| t.counter(1)).done().unwrap();
    let (tss, _) = Tss::parse(header.bytes()).unwrap();
    let id = domain.key_id(&outer, &tss, uet_wire::tss::Direction::Outgoing).unwrap();
    let key = id.derive(&DomainKey::new(&[1; 32]).unwrap()).unwrap();
    for length in 0..28 {
        let mut packet = vec![0x08; length];
        assert_eq!(domain.open(&key, &outer, &mut packet), Err(TssError::TooShort), "{length} bytes");
        assert_eq!(domain.seal(&key, &outer, &mut packet), Err(TssError::TooShort), "{length} bytes");
    }
    let mut packet = [header.bytes().as_slice(), &[0; 16]].concat();
    assert_eq!(domain.seal(&key, &outer, &mut packet), Ok(()), "an empty packet has an ICV too");
    assert_eq!(domain.open(&key, &outer, &mut packet), Ok(()));
}
