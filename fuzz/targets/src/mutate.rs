//! Mutates packets with knowledge of the protocol.
//!
//! A fuzzer that flips bits rarely gets past a length that it has broken. It rarely finds a code point that selects
//! another header. This mutator sets fields to meaningful values, puts other packets behind the outer headers, and
//! usually repairs lengths and checksums.

use crate::{Input, Noise};
use arbitrary::{Arbitrary, Unstructured};
use uet_wire::outer::{Ip, Ipv4, Ipv6, Udp};
use uet_wire::{Content, Offsets, TrailerKind, UetBuf, crc};

/// Changes the [`Input`] in the first `size` bytes of `data` and returns its new length, at most `max_size`. Leaves
/// half of the changes to `plain`, which ignores the protocol and finds unexpected cases.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    plain: impl FnOnce(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut noise = Noise::new(seed.into());
    if size < Input::LEAD || noise.one_in(2) {
        return plain(data, size, max_size);
    }
    let mut bytes = data[..size].to_vec();
    for _ in 0..=noise.below(3) {
        change(&mut bytes, &mut noise);
    }
    if !noise.one_in(4) {
        repair(&mut bytes);
    }
    bytes.truncate(max_size.min(data.len()));
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}

/// Flips, removes and adds bytes: a replacement for libFuzzer's mutation.
pub fn plain(data: &mut [u8], size: usize, max_size: usize, noise: &mut Noise) -> usize {
    let place = noise.below(size);
    match noise.below(4) {
        0 if size < max_size => {
            data.copy_within(place..size, place + 1);
            data[place] = noise.number() as u8;
            size + 1
        }
        1 if size > 1 => {
            data.copy_within(place + 1..size, place);
            size - 1
        }
        2 if size > 0 => {
            data[place] = noise.number() as u8;
            size
        }
        _ if size > 0 => {
            data[place] ^= 1 << noise.below(8);
            size
        }
        _ => size,
    }
}

fn change(data: &mut Vec<u8>, noise: &mut Noise) {
    match noise.below(8) {
        0 => another_packet(data, noise),
        1 => {
            let length = Input::LEAD + noise.below(data.len() - Input::LEAD + 1);
            data.truncate(length);
        }
        2 => {
            let length = 1 + noise.below(32);
            data.extend(noise.bytes(length));
        }
        3 => data[noise.below(Input::LEAD)] ^= 1 << noise.below(8),
        _ => another_value(data, noise),
    }
}

/// Sets a field of a random header to an interesting value.
fn another_value(data: &mut [u8], noise: &mut Noise) {
    let Some(input) = Input::split(data) else { return };
    let packet = input.packet();
    let Some((layout, header)) = packet.headers().nth(noise.below(packet.headers().count())) else { return };
    let start = header.as_ptr() as usize - data.as_ptr() as usize;
    let Some(place) = layout.places().nth(noise.below(layout.places().count())) else { return };
    let random = u128::from(noise.number()) << 64 | u128::from(noise.number());
    let value = place.notable(place.read(header).unwrap_or(0), noise.number() >> 16, random);
    place.write(&mut data[start..start + layout.bytes], value);
}

/// Puts another packet behind the outer headers.
fn another_packet(data: &mut Vec<u8>, noise: &mut Noise) {
    let Some(input) = Input::split(data) else { return };
    let packet = input.packet();
    if packet.content != Content::Uet {
        return;
    }
    let (start, trailer) =
        (Input::LEAD + packet.offsets().uet.unwrap_or(packet.offsets().payload), input.options.trailer.len());
    let choices = noise.bytes(160);
    if let Ok(other) = UetBuf::arbitrary(&mut Unstructured::new(&choices)) {
        data.truncate(start);
        data.extend(other.to_bytes());
        data.extend(noise.bytes(trailer));
    }
}

/// Repairs lengths and checksums: the packet ends with the bytes.
fn repair(data: &mut [u8]) {
    let Some(input) = Input::split(data) else { return };
    let (packet, options) = (input.packet(), input.options);
    let Offsets { ip: at, transport, .. } = packet.offsets();
    let at = at.unwrap_or(0);
    let ip_end = at + packet.ip.map_or(0, |ip| ip.bytes().len() + ip.extra().len());
    let transport = transport.unwrap_or(ip_end);
    let (ip, has_udp) = (packet.ip.map(|ip| matches!(ip, Ip::V6 { .. })), packet.udp.is_some());
    let bytes = &mut data[Input::LEAD..];
    let length = |from: usize, max: usize| (max - from).min(0xffff) as u16;
    let end = bytes.len();
    if has_udp {
        let udp =
            Udp::parse_mut(&mut bytes[transport..]).map(|(udp, _)| udp.length(length(transport, end)).done());
        debug_assert!(udp.is_ok());
    }
    match ip {
        Some(true) => {
            let from = at + Ipv6::LAYOUT.bytes;
            let _ =
                Ipv6::parse_mut(&mut bytes[at..]).map(|(ip, _)| ip.payload_length(length(from, end)).done());
        }
        Some(false) => {
            let _ = Ipv4::parse_mut(&mut bytes[at..]).map(|(ip, _)| ip.total_length(length(at, end)).done());
            if let Ok((header, rest)) = Ipv4::parse(&bytes[at..]) {
                let options = &rest[..(transport - at - Ipv4::LAYOUT.bytes).min(rest.len())];
                let checksum = header.computed_checksum(options);
                let _ = Ipv4::parse_mut(&mut bytes[at..]).map(|(ip, _)| ip.checksum(checksum).done());
            }
        }
        None => {}
    }
    if let (TrailerKind::Crc, Some(_), Some(end)) = (options.trailer, ip, end.checked_sub(4)) {
        // A packet too short for a trailer has none.
        let _ = crc::append(bytes, at, end);
    }
}
