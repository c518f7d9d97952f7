//! IPv6 extension headers: addresses are replaced, and all other contents become padding or 0.

use super::Mapping;

const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

/// Replaces the contents of extension headers, the first of which has the protocol number `next`.
pub(super) fn replace(mapping: &Mapping, mut next: u8, mut bytes: &mut [u8]) {
    while let [following, length, ..] = *bytes {
        let length = match next {
            FRAGMENT => 8,
            AUTHENTICATION => usize::from(length) * 4 + 8,
            _ => usize::from(length) * 8 + 8,
        };
        let Some((header, rest)) = bytes.split_at_mut_checked(length) else { return };
        match next {
            // Hop-by-hop and destination options.
            0 | 60 => options(mapping, &mut header[2..]),
            43 => routing(mapping, header),
            FRAGMENT => {}
            _ => header[4..].fill(0),
        }
        (next, bytes) = (following, rest);
    }
}

fn options(mapping: &Mapping, mut bytes: &mut [u8]) {
    const PAD1: u8 = 0;
    const PADN: u8 = 1;
    const HOME_ADDRESS: u8 = 0xc9;
    while let Some((kind, rest)) = bytes.split_first_mut() {
        bytes = rest;
        if *kind == PAD1 {
            continue;
        }
        let Some((length, rest)) = bytes.split_first_mut() else {
            *kind = PAD1;
            return;
        };
        let (data, rest) = rest.split_at_mut(usize::from(*length).min(rest.len()));
        match <&mut [u8; 16]>::try_from(&mut *data) {
            Ok(home) if *kind == HOME_ADDRESS => address(mapping, home),
            _ => {
                *kind = PADN;
                data.fill(0);
            }
        }
        bytes = rest;
    }
}

/// Keeps the type, the number of segments that are left, and the number of addresses.
fn routing(mapping: &Mapping, header: &mut [u8]) {
    const SEGMENT_ROUTING: u8 = 4;
    let (fixed, list) = header.split_at_mut(8);
    let (kept, addresses) = match fixed[2] {
        0 | 2 => (4, usize::MAX),
        SEGMENT_ROUTING => (5, usize::from(fixed[4]) + 1),
        _ => (4, 0),
    };
    fixed[kept..].fill(0);
    for (place, bytes) in list.chunks_mut(16).enumerate() {
        match <&mut [u8; 16]>::try_from(&mut *bytes) {
            Ok(segment) if place < addresses => address(mapping, segment),
            // Segment routing reads zeros as padding.
            _ => bytes.fill(0),
        }
    }
}

fn address(mapping: &Mapping, bytes: &mut [u8; 16]) {
    if let Some(replaced) = mapping.field("ip.dst", 128, u128::from_be_bytes(*bytes)) {
        *bytes = replaced.to_be_bytes();
    }
}
