//! Parses, then emits: the bytes are equal.

use crate::Input;
use uet_wire::layout::Layout;
use uet_wire::ses::Ext;
use uet_wire::{Packet, Start, Uet, UetBuf};

pub(super) fn run(data: &[u8]) {
    let Some(input) = Input::split(data) else { return };
    let packet = input.packet();
    assert_eq!(packet.parts().concat(), input.bytes);
    packet.headers().for_each(|(layout, header)| rebuilt(layout, header));
    if input.wire == input.bytes.len() {
        let strict = Packet::parse(input.start, input.bytes, &input.options);
        assert_eq!(strict, packet.error().map_or(Ok(packet), Err));
    }
    if input.start == Start::Uet && input.options.trailer.is_empty() {
        assert_eq!(Uet::parse_lax(input.bytes).0, packet.uet);
    }

    // Any bytes are also a packet that starts with UET.
    for bytes in [input.bytes, packet.parts()[7..12].concat().as_slice()] {
        whole(bytes);
    }
}

/// Checks that the rows of a table cover every bit of a header: copying through them into zeros reproduces it.
fn rebuilt(layout: &'static Layout, header: &[u8]) {
    let mut again = vec![0; header.len()];
    for place in layout.places() {
        if place.exists(&again) {
            let value = place.read(header).expect("the header is whole");
            assert!(place.write(&mut again, value));
        }
    }
    assert_eq!(again, header, "{}", layout.name);
}

fn whole(bytes: &[u8]) {
    let (packet, cut) = Uet::parse_lax(bytes);
    let kept = cut.map_or(bytes.len(), |cut| cut.header_offset());
    let mut emitted = vec![0; bytes.len()];
    assert_eq!(packet.emit(&mut emitted), Ok(kept));
    assert_eq!(emitted[..kept], bytes[..kept]);
    assert_eq!(packet.len(), kept);
    let owned = packet.to_buf();
    assert_eq!(owned.view(), packet);
    assert_eq!(owned.to_bytes(), bytes[..kept]);
    assert_eq!((UetBuf::from(packet) == owned, packet.is_empty()), (true, kept == 0));
    match cut {
        None => {
            assert_eq!(Uet::parse(bytes), Ok(packet));
            assert_eq!(owned.clone().consistent(), owned, "what comes off the wire is consistent");
        }
        Some(cut) => {
            assert_eq!(Uet::parse(bytes), Err(cut));
            if let Some(Err(error)) = packet.ses.and_then(|ses| Ext::parse_after(&ses, &bytes[kept..])) {
                assert_eq!((error.field(), error.offset() + kept), (cut.field(), cut.offset()));
            }
            assert!(kept == 0 || packet.emit(&mut emitted[..kept - 1]).is_err());
        }
    }
}
