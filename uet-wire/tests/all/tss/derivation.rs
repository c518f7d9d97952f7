//! The key derivation, and the numbers of usual mistakes, which no packet of ours may have.

use super::examples::{Example, hex};
use aes_gcm::aead::{AeadInOut, KeyInit};
use cmac::Mac;
use uet_wire::tss::{
    Direction, Domain, DomainError, DomainKey, Ipv6SsiContext, KeyCache, Mode, Outer, Tss, TssError,
};
use uet_wire::tss::{TssLong, TssShort};

const SECRET: &str = "34448a064292601b11a0978f56a2d34cf3fc35ede1a6bc04f8db3e5243a2b0ca";

/// The CMAC of `message` under the example's key. A derived key is 16 of its bytes per message, so a mistake in the
/// message shows in the first bytes.
fn block(message: &[u8]) -> String {
    let key: [u8; 32] = hex(SECRET).try_into().unwrap();
    let mut mac = cmac::Cmac::<aes::Aes256>::new(&key.into());
    mac.update(message);
    mac.finalize().into_bytes()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Encrypts zeros with the derived key and no authenticated data beyond the header, to compare keys.
fn fingerprint(domain: &Domain, outer: &Outer, tss: &Tss<'_>, direction: Direction) -> Vec<u8> {
    let secret = DomainKey::new(&hex(SECRET)).unwrap();
    let key = domain.key_id(outer, tss, direction).unwrap().derive(&secret).unwrap();
    let mut packet = [tss.bytes(), &[0; 32]].concat();
    domain.seal(&key, outer, &mut packet).unwrap();
    packet
}

#[test]
fn published_vectors_of_the_primitives() {
    let key: [u8; 32] =
        hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4").try_into().unwrap();
    let tag = |message: &str| {
        let mut mac = cmac::Cmac::<aes::Aes256>::new(&key.into());
        mac.update(&hex(message));
        mac.finalize().into_bytes().to_vec()
    };
    assert_eq!(tag(""), hex("028962f61b7bf89efc6b551f4667d983"));
    assert_eq!(tag("6bc1bee22e409f96e93d7e117393172a"), hex("28a7023f452e8f82bd4bf28d8c37c35c"));
    let mut zeros = [0; 16];
    let cipher = aes_gcm::Aes256Gcm::new(&[0; 32].into());
    let tag = cipher.encrypt_inout_detached(&[0; 12].into(), &[], (&mut zeros[..]).into()).unwrap();
    assert_eq!(zeros.to_vec(), hex("cea7403d4d606b6e074ec5d3baf39d18"));
    assert_eq!(tag.to_vec(), hex("d0d1c8a799996bf0265b98b5d48ab919"));
}

#[test]
fn the_table_of_usual_mistakes() {
    // First the right message, then the mistakes. None of them gives the right bytes.
    let rows = [
        ("01 5531 00 1dc0 000074e5 c0a82a01 0160", "151b4ddb30112971", "right"),
        ("01 5531 00 1dc0 000074e5 c0a82a01 00000160", "b745f161dc04c73b", "length in 4 bytes"),
        ("01 5531 00 1dc0 000074e5 c0a82a01 0180", "7f5a75d8443dd43b", "length 384"),
        ("01 5531 00 1dc0 000074e5 c0a82a01 002c", "bbb3afff88d30dfe", "length in bytes"),
        ("01 5531 1dc0 000074e5 c0a82a01 0160", "d3b796b85331385d", "no 00 after the label"),
        ("00 5531 00 1dc0 000074e5 c0a82a01 0160", "719451b064b02e87", "counts from 0"),
        ("00000001 5531 00 1dc0 000074e5 c0a82a01 0160", "6f2aaa94ac45cbcf", "number in 4 bytes"),
        ("01 5532 00 1dc0 000074e5 c0a82a01 0160", "b8d7459ff854e884", "label U2"),
        ("01 554531 00 1dc0 000074e5 c0a82a01 0160", "0b7b9d9ac8153318", "label UE1"),
        ("01 5531 00 c01d 000074e5 c0a82a01 0160", "6661b8ae00638119", "epoch little-endian"),
        ("01 5531 00 1dc0 00000000 c0a82a01 0160", "0cbd1ff58ba7f993", "rekey index 0"),
    ];
    for (message, expected, mistake) in rows {
        assert_eq!(block(&hex(&message.replace(' ', ""))), expected, "{mistake}");
    }
    // The codec is the first row: see `contexts_of_the_derivation` and `opened_and_sealed_again`.
    let frame = Example::number(1).frame();
    assert_eq!(frame.len(), 138);
}

#[test]
fn each_part_of_the_identity_changes_the_key() {
    let domain = Domain { rekey_mask: 0xff00, rekey_shift: 8, ..Domain::new(0x01_2345, Mode::Cluster) };
    let ssi = Domain { ssi: true, ..domain };
    let outer = Outer::native([10, 0, 0, 1], [10, 0, 0, 2], 1);
    let short = |epoch, counter| {
        TssShort::build().head(|h| h.sdi(0x01_2345)).tsc(|t| t.epoch(epoch).counter(counter)).done().unwrap()
    };
    let id = |domain: &Domain, outer: &Outer, bytes: &[u8]| {
        domain.key_id(outer, &Tss::parse(bytes).unwrap().0, Direction::Outgoing).unwrap()
    };
    let first = id(&domain, &outer, short(1, 0x0100).bytes());
    assert_eq!(first, id(&domain, &outer, short(1, 0x01ff).bytes()), "the same rekey index");
    assert_ne!(first, id(&domain, &outer, short(1, 0x0200).bytes()), "the next rekey index");
    assert_ne!(first, id(&domain, &outer, short(2, 0x0100).bytes()), "the next epoch");
    let other = Outer::native([10, 0, 0, 3], [10, 0, 0, 2], 1);
    assert_ne!(first, id(&domain, &other, short(1, 0x0100).bytes()), "another sender");
    let elsewhere = Outer::native([10, 0, 0, 1], [10, 0, 0, 3], 2);
    assert_eq!(first, id(&domain, &elsewhere, short(1, 0x0100).bytes()), "another destination");
    let long = |number| {
        TssLong::build().head(|h| h.sdi(0x01_2345)).ssi(number).tsc(|t| t.counter(1)).done().unwrap()
    };
    assert_eq!(id(&ssi, &outer, long(5).bytes()), id(&ssi, &other, long(5).bytes()), "identified by the SSI");
    assert_ne!(id(&ssi, &outer, long(5).bytes()), id(&ssi, &outer, long(6).bytes()), "another SSI");
}

#[test]
fn the_other_reading_of_ipv6_with_ssi() {
    // The short context with the SSI gives the key of the same SSI over IPv4.
    let domain = Domain { ssi: true, ..Domain::new(0x01_2345, Mode::Server) };
    let other = Domain { ipv6_ssi_context: Ipv6SsiContext::Ssi, ..domain };
    let header =
        TssLong::build().head(|h| h.sdi(0x01_2345)).ssi(0x1122_3344).tsc(|t| t.counter(9)).done().unwrap();
    let (tss, _) = Tss::parse(header.bytes()).unwrap();
    let v6 = Outer::native(
        [0x2001, 0xcb0, 0, 0, 0xfc0, 0, 0, 0xabc],
        [0x2001, 0xcb0, 0, 0, 0xfc0, 0, 0, 0xabd],
        1,
    );
    let v4 = Outer::native([192, 168, 42, 1], [192, 168, 42, 2], 1);
    let id = |domain: &Domain, outer| domain.key_id(outer, &tss, Direction::Incoming).unwrap();
    assert_eq!(id(&other, &v6), id(&domain, &v4));
    assert_ne!(id(&domain, &v6), id(&domain, &v4));
    assert_ne!(
        fingerprint(&domain, &v6, &tss, Direction::Incoming),
        fingerprint(&other, &v6, &tss, Direction::Incoming)
    );
}

#[test]
fn unsafe_settings_are_refused() {
    let outer = Outer::native([0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 2], 1);
    let header = TssShort::build().head(|h| h.sdi(1)).tsc(|t| t.counter(1)).done().unwrap();
    let (tss, _) = Tss::parse(header.bytes()).unwrap();
    for mode in [Mode::Direct, Mode::Client, Mode::Server] {
        let refused = Domain::new(1, mode).key_id(&outer, &tss, Direction::Outgoing);
        assert_eq!(refused, Err(TssError::NeedsSsi), "{mode:?} over IPv6 without SSI");
    }
    let mixed = Outer { dst: [10, 0, 0, 1].into(), ..outer };
    let cluster = Domain::new(1, Mode::Cluster);
    assert_eq!(cluster.key_id(&mixed, &tss, Direction::Outgoing), Err(TssError::AddressFamilies));
    let ssi = Domain { ssi: true, ..cluster };
    assert_eq!(ssi.key_id(&outer, &tss, Direction::Outgoing), Err(TssError::NeedsSsi));
    assert_eq!(DomainKey::new(&[0; 16]).unwrap_err(), TssError::KeyLength);
    let client = DomainKey::new(&[0; 44]).unwrap();
    let derived = cluster.key_id(&outer, &tss, Direction::Outgoing).unwrap().derive(&client);
    assert_eq!(derived.unwrap_err(), TssError::KeyKind);

    let check = |domain: Domain| domain.check();
    assert_eq!(check(Domain { sdi: 1 << 24, ..cluster }), Err(DomainError::Sdi));
    assert_eq!(check(Domain { rekey_mask: 1 << 48, ..cluster }), Err(DomainError::Rekey));
    assert_eq!(check(Domain { rekey_mask: 0xffff_ffff_ff00, ..cluster }), Err(DomainError::Rekey));
    assert_eq!(
        check(Domain { rekey_mask: 0xff, ..Domain::new(1, Mode::Direct) }),
        Err(DomainError::RekeyMode)
    );
    for offset in [11, 65] {
        let domain = Domain { confidentiality_offset: Some(offset), ..cluster };
        assert_eq!(check(domain), Err(DomainError::ConfidentialityOffset));
    }
    assert!(check(Domain { confidentiality_offset: Some(12), ssi: true, ..cluster }).is_err());
}

#[test]
fn keys_stay_secret() {
    let secret = DomainKey::new(&[0x5a; 32]).unwrap();
    let outer = Outer::native([10, 0, 0, 1], [10, 0, 0, 2], 1);
    let header = TssShort::build().head(|h| h.sdi(1)).tsc(|t| t.counter(1)).done().unwrap();
    let id = Domain::new(1, Mode::Cluster)
        .key_id(&outer, &Tss::parse(header.bytes()).unwrap().0, Direction::Outgoing)
        .unwrap();
    let mut cache = KeyCache::<2>::new();
    cache.put(id, id.derive(&secret).unwrap());
    let shown = format!("{secret:?} {:?} {cache:?}", id.derive(&secret).unwrap());
    assert!(!shown.contains("5a") && !shown.contains("90"), "{shown}");
}

#[test]
fn a_cache_never_grows_and_never_answers_for_another() {
    let secret = DomainKey::new(&[1; 32]).unwrap();
    let domain = Domain::new(1, Mode::Cluster);
    let id = |last: u8| {
        let header = TssShort::build().head(|h| h.sdi(1)).tsc(|t| t.counter(1)).done().unwrap();
        let outer = Outer::native([10, 0, 0, last], [10, 0, 1, 1], 1);
        domain.key_id(&outer, &Tss::parse(header.bytes()).unwrap().0, Direction::Outgoing).unwrap()
    };
    let mut cache = KeyCache::<16>::new();
    for last in 0..100 {
        cache.put(id(last), id(last).derive(&secret).unwrap());
        assert!(cache.get(&id(last)).is_some());
        assert!(cache.get(&id(last + 1)).is_none());
    }
    let kept = (0..100).filter(|last| cache.get(&id(*last)).is_some()).count();
    assert!((8..=16).contains(&kept), "{kept} of 16 places are in use");
    cache.clear();
    assert!(cache.is_empty());
}
