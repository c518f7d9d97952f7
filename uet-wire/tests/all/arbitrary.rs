//! Packets from a fuzzer's bytes are consistent and vary.

use arbitrary::{Arbitrary, Unstructured};
use std::collections::HashSet;
use uet_wire::{Uet, UetBuf};

#[test]
fn arbitrary_packets_come_back_and_differ() {
    let mut kinds = HashSet::new();
    let mut noise = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..256)
            .map(|_| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (noise >> 56) as u8
            })
            .collect();
        let packet = UetBuf::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
        let mut buffer = vec![0; 1024];
        let length = packet.view().emit(&mut buffer).unwrap();
        assert_eq!(Uet::parse(&buffer[..length]).unwrap().to_buf(), packet);
        kinds.insert(packet.view().pds.map(|pds| pds.kind()));
    }
    // Secured packets hide their PDS header. All other headers occur.
    assert!(kinds.contains(&None) && kinds.len() > 12, "{kinds:?}");
}
