//! The measured operations, shared by both benchmarks: time and instructions.
//!
//! A case is one operation on one packet, done by three:
//!
//! - the codec: this crate, through its public interface;
//! - the overlay: packed structs and byte swaps in C, compiled with `-O2`;
//! - the floor: loading (or copying) the same bytes, once, behind one length check.
//!
//! Codec and overlay get the same bytes and leave the same fields in the same struct. Both check every length, the types
//! that choose the headers, and the opcodes that choose an extension. `Input::check` verifies this. Neither is inlined
//! into the loop around it, and neither knows the packet at compile time.
//!
//! To add an operation, write a function for the codec, one for the overlay, and a paragraph in `operations!`.

mod codec;
mod input;

use codec::Codec;
use input::{Input, OUTER, Output};
use std::hint::black_box;
use std::rc::Rc;
use uet_overlay::{AckCc, AckResponse, Nack, Outer, RequestStd};
use uet_wire::outer::Ip;
use uet_wire::{Options, Packet, Start, Uet, Version};

#[inline(never)]
fn codec_get<T: Codec>(bytes: &[u8], out: &mut T) -> bool {
    match Uet::parse(bytes) {
        Ok(uet) => T::read(&uet, out),
        Err(_) => false,
    }
}

#[inline(never)]
fn codec_get_framed<T: Codec>(bytes: &[u8], outer: &mut Outer, out: &mut T) -> bool {
    let Ok(packet) = Packet::parse(Start::Eth, bytes, &Options::DEFAULT) else { return false };
    let (Some(Ip::V4 { header: ip, .. }), Some(udp)) = (packet.ip, packet.udp) else { return false };
    if packet.trimmed.is_some() {
        return false;
    }
    outer.dscp = ip.dscp();
    outer.ecn = ip.ecn();
    outer.ttl = ip.ttl();
    outer.src = ip.src().to_bits();
    outer.dst = ip.dst().to_bits();
    outer.entropy = udp.src_port();
    T::read(&packet.uet, out)
}

/// Counts the requirements that the packet breaks.
#[inline(never)]
fn codec_validate(bytes: &[u8]) -> Option<usize> {
    Some(Uet::parse(bytes).ok()?.validate(Version::default()).count())
}

#[inline(never)]
fn codec_build<T: Codec>(fields: &T, buffer: &mut [u8]) -> Option<usize> {
    fields.build(buffer)
}

#[inline(never)]
fn codec_emit<T: Codec>(owned: &T::Owned, buffer: &mut [u8]) -> Option<usize> {
    T::emit(owned, buffer)
}

/// The floor of reading: the words of the bytes, loaded.
#[inline(never)]
fn load<const N: usize>(bytes: &[u8]) -> Option<u64> {
    let words = bytes.first_chunk::<N>()?.chunks_exact(8);
    let tail = words.remainder().iter().fold(0, |sum, byte| sum ^ u64::from(*byte));
    Some(words.fold(tail, |sum, word| sum ^ word.try_into().map_or(0, u64::from_ne_bytes)))
}

/// The floor of writing: the bytes, copied.
#[inline(never)]
fn copy<const N: usize>(from: &[u8; N], buffer: &mut [u8]) -> Option<usize> {
    *buffer.first_chunk_mut::<N>()? = *from;
    Some(N)
}
/// The three implementations of a case.
pub(crate) const WHO: [&str; 3] = ["codec", "overlay", "floor"];

/// One operation on one packet.
#[allow(dead_code)] // each benchmark looks at some of it
pub(crate) struct Case {
    pub(crate) operation: &'static str,
    pub(crate) packet: &'static str,
    /// The maximum ratio of the codec's instructions to the overlay's.
    pub(crate) at_most: f64,
    /// The functions that only call the measured operation, one for each of `WHO`.
    pub(crate) callers: [&'static str; 3],
    /// Runs the operation once, by the implementation with this index in `WHO`.
    pub(crate) run: Box<dyn FnMut(usize)>,
}

/// The operations. Each implementation has a caller with a name of its own, and the count covers that caller's callees.
macro_rules! operations {
    ($(
        $operation:literal, at most $at_most:literal |$input:ident, $output:ident| {
            $codec:ident: $by_codec:expr, $overlay:ident: $by_overlay:expr, $floor:ident: $by_floor:expr,
        }
    )*) => {
        $(
            operations! { @caller $codec $input $output $by_codec }
            operations! { @caller $overlay $input $output $by_overlay }
            operations! { @caller $floor $input $output $by_floor }
        )*

        fn cases<T: Codec + 'static, const N: usize>(packet: &'static str, headers: [u8; N], payload: &[u8]) -> Vec<Case> {
            let input = Rc::new(Input::<T, N>::new(headers, payload));
            vec![$({
                let input = Rc::clone(&input);
                let mut output = Output { fields: T::empty(), outer: Outer::default(), buffer: [0; 256] };
                let callers = [$codec::<T, N>, $overlay::<T, N>, $floor::<T, N>];
                Case {
                    operation: $operation,
                    packet,
                    at_most: $at_most,
                    callers: [stringify!($codec), stringify!($overlay), stringify!($floor)],
                    run: Box::new(move |who| callers[who](&input, &mut output)),
                }
            }),*]
        }
    };

    (@caller $name:ident $input:ident $output:ident $call:expr) => {
        #[inline(never)]
        fn $name<T: Codec, const N: usize>($input: &Input<T, N>, $output: &mut Output<T>) {
            black_box(stringify!($name)); // or the compiler merges callers that do the same
            black_box($call);
            black_box($output);
        }
    };
}

operations! {
    "parse and read every field", at most 1.0 |input, output| {
        get_by_codec: codec_get(black_box(input.packet()), &mut output.fields),
        get_by_overlay: T::get(black_box(input.packet()), &mut output.fields),
        get_by_floor: load::<N>(black_box(input.packet())),
    }
    "the same from Ethernet on", at most 1.0 |input, output| {
        framed_by_codec: codec_get_framed(black_box(input.frame()), &mut output.outer, &mut output.fields),
        framed_by_overlay: T::get_framed(black_box(input.frame()), &mut output.outer, &mut output.fields),
        framed_by_floor: (load::<OUTER>(black_box(input.frame())), load::<N>(black_box(input.packet()))),
    }
    // The overlay judges nothing: its parse stands beside.
    "parse and validate", at most 3.5 |input, output| {
        validate_by_codec: codec_validate(black_box(input.packet())),
        validate_by_overlay: T::get(black_box(input.packet()), &mut output.fields),
        validate_by_floor: load::<N>(black_box(input.packet())),
    }
    "the same, with contexts that have no identifier", at most 5.2 |input, output| {
        flawed_by_codec: codec_validate(black_box(&input.flawed[..input.length - OUTER])),
        flawed_by_overlay: T::get(black_box(input.packet()), &mut output.fields),
        flawed_by_floor: load::<N>(black_box(input.packet())),
    }
    "build in place from fields", at most 1.08 |input, output| {
        build_by_codec: codec_build(black_box(&input.fields), &mut output.buffer),
        build_by_overlay: black_box(&input.fields).put(&mut output.buffer),
        build_by_floor: copy(black_box(&input.headers), &mut output.buffer),
    }
    "emit an owned value", at most 1.2 |input, output| {
        emit_by_codec: codec_emit::<T>(black_box(&input.owned), &mut output.buffer),
        emit_by_overlay: black_box(&input.fields).put(&mut output.buffer),
        emit_by_floor: copy(black_box(&input.headers), &mut output.buffer),
    }
}

/// The names of the packets.
pub(crate) const PACKETS: [&str; 6] = [
    "RUD_REQ, STD, first",
    "RUD_REQ, STD, middle",
    "ACK, RESPONSE",
    "ACK_CC, NSCC",
    "ACK_CC, CREDIT",
    "NACK",
];

/// The operations on the packet with this name.
pub(crate) fn of(packet: &'static str) -> Vec<Case> {
    match packet {
        // A write of 16 KiB: the first packet, and one from the middle, of 64 bytes each.
        "RUD_REQ, STD, first" => cases::<RequestStd, 56>(
            packet,
            [
                0x11, 0x8c, 0xff, 0xff, 0x00, 0x01, 0x20, 0x00, 0x40, 0x01, 0x00, 0x00, // syn
                0x01, 0x0d, 0x00, 0x01, 0x01, 0x00, 0x00, 0x65, 0x00, 0x02, 0x00, 0x0a, // som
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0xcc,
                0xe5, // offset, initiator, key
                0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0x40, 0, // header data, length
            ],
            &[0xda; 64],
        ),
        "RUD_REQ, STD, middle" => cases::<RequestStd, 56>(
            packet,
            [
                0x11, 0x88, 0xff, 0xff, 0x00, 0x01, 0x20, 0x01, 0x40, 0x01, 0x80, 0x01, 0x01, 0x08, 0x00,
                0x01, 0x01, 0x00, 0x00, 0x65, 0x00, 0x02, 0x00, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0, 0x0a, 0xcc, 0xe5, 0, 0, 0, 0x40, 0, 0, 0x10, 0, 0, 0, 0x40,
                0, // payload length, message offset, length
            ],
            &[0xda; 64],
        ),
        "ACK, RESPONSE" => cases::<AckResponse, 24>(
            packet,
            [
                0x3a, 0x00, 0xff, 0xfe, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, 0x00, 0x01, 0x00,
                0x01, 0x00, 0x00, 0x00, 0x65, 0x00, 0x00, 0x40, 0x00,
            ],
            &[],
        ),
        "ACK_CC, NSCC" => cases::<AckCc, 32>(
            packet,
            [
                0x40, 0x20, 0x00, 0x00, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, 0x00, 0x08, 0x00,
                0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2d, 0x00, 0x08, 0x85, 0x00, 0x00, 0x40,
                0x00, 0x03,
            ],
            &[],
        ),
        "ACK_CC, CREDIT" => cases::<AckCc, 32>(
            packet,
            [
                0x40, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, 0x10, 0x08, 0x00,
                0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2d, 0x00, 0x00, 0x62, 0x00, 0x00, 0x00,
                0x00, 0x03,
            ],
            &[],
        ),
        "NACK" => cases::<Nack, 16>(
            packet,
            [0x50, 0x00, 0x0d, 0x00, 0x00, 0x01, 0x20, 0x04, 0x80, 0x01, 0x40, 0x01, 0x00, 0x00, 0x00, 0x00],
            &[],
        ),
        _ => Vec::new(),
    }
}
