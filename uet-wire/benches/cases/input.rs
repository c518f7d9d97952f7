//! A packet in the forms that the operations need, and the proof that codec and overlay do the same with it.

use super::codec::Codec;
use super::{codec_build, codec_emit, codec_get, codec_get_framed, codec_validate};
use uet_overlay::Outer;
use uet_wire::{FrameBuilder, pds};

/// A packet of kind `T`, whose headers are `N` bytes long, in the forms that the operations need.
pub(super) struct Input<T: Codec, const N: usize> {
    pub(super) buffer: [u8; 256],
    pub(super) length: usize,
    pub(super) headers: [u8; N],
    /// The packet with a flaw: both identifiers of the context are 0.
    pub(super) flawed: [u8; 256],
    pub(super) owned: T::Owned,
    pub(super) fields: T,
}

/// The results of the operations.
pub(super) struct Output<T> {
    pub(super) fields: T,
    pub(super) outer: Outer,
    pub(super) buffer: [u8; 256],
}

/// Ethernet, IPv4 and UDP.
pub(super) const OUTER: usize = 14 + 20 + 8;

impl<T: Codec, const N: usize> Input<T, N> {
    pub(super) fn new(headers: [u8; N], payload: &[u8]) -> Self {
        let mut fields = T::empty();
        assert!(T::get(&headers, &mut fields), "the overlay knows the packet");
        let owned = T::owned(&headers).expect("the codec knows the packet");
        let mut buffer = [0; 256];
        let length = frame(&headers, payload, &mut buffer).expect("the frame fits");
        let mut flawed = [0; 256];
        flawed[..length - OUTER].copy_from_slice(&buffer[OUTER..length]);
        flawed[8..12].fill(0);
        let input = Input { buffer, length, headers, flawed, owned, fields };
        input.check();
        assert_eq!(codec_validate(input.packet()), Some(0), "nothing is wrong with the packet");
        assert_ne!(
            codec_validate(&input.flawed[..length - OUTER]),
            Some(0),
            "something is wrong with this one"
        );
        input
    }

    pub(super) fn frame(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    pub(super) fn packet(&self) -> &[u8] {
        &self.buffer[OUTER..self.length]
    }

    /// Codec and overlay do the same: for the packet, with any one of its bits flipped, and cut anywhere.
    fn check(&self) {
        let flipped = (0..self.length * 8).map(|bit| {
            let mut frame = self.frame().to_vec();
            frame[bit / 8] ^= 0x80 >> (bit % 8);
            frame
        });
        let cut = (0..=self.length).map(|length| self.frame()[..length].to_vec());
        for frame in flipped.chain(cut) {
            let [mut codec, mut overlay] = [(T::empty(), Outer::default()); 2];
            let fine = codec_get_framed(&frame, &mut codec.1, &mut codec.0);
            assert_eq!(fine, T::get_framed(&frame, &mut overlay.1, &mut overlay.0), "{frame:02x?}");
            assert!(!fine || codec == overlay, "{codec:?} {overlay:?}");
            let packet = frame.get(OUTER..).unwrap_or(&[]);
            let [mut codec, mut overlay] = [T::empty(); 2];
            let fine = codec_get(packet, &mut codec);
            assert_eq!(fine, T::get(packet, &mut overlay), "{packet:02x?}");
            assert!(!fine || codec == overlay, "{codec:?} {overlay:?}");
        }
        let written =
            |length: Option<usize>, buffer: [u8; N]| assert_eq!((length, buffer), (Some(N), self.headers));
        let mut buffer = [0xff; N];
        written(codec_build(&self.fields, &mut buffer), buffer);
        written(Some(self.fields.put(&mut buffer)), buffer);
        buffer = [0xff; N];
        written(codec_emit::<T>(&self.owned, &mut buffer), buffer);
        assert_eq!(codec_build(&self.fields, &mut buffer[1..]), None);
        assert_eq!(self.fields.put(&mut buffer[1..]), 0);
    }
}

/// A frame around these bytes.
fn frame(headers: &[u8], payload: &[u8], buffer: &mut [u8]) -> Option<usize> {
    // The builder makes the layers around; the bytes of the PDS header that it knows are put in afterwards.
    let packet = [headers, payload].concat();
    let uud = pds::Uud::new();
    let length = FrameBuilder::new(uud)
        .as_given()
        .payload(packet.get(uud.bytes().len()..)?)
        .udp(0xbeef)
        .ipv4([10, 0, 0, 1], [10, 0, 1, 12])
        .dscp(46)
        .ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .emit(buffer)
        .ok()?;
    buffer.get_mut(OUTER..length)?.copy_from_slice(&packet);
    Some(length)
}
