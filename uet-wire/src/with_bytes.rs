//! Writes headers and packets into any `BufMut`, and shares the payload as `Bytes` (feature `bytes`).
//!
//! ```
//! use bytes::{Bytes, BytesMut};
//! use uet_wire::{Uet, pds::Uud, registry::NextHdr};
//!
//! let mut buffer = BytesMut::new();
//! Uud::new().put(&mut buffer)?;
//! buffer.extend_from_slice(b"hello");
//!
//! let packet: Bytes = buffer.freeze();
//! let uet = Uet::parse(&packet)?;
//! let payload = uet.payload_of(&packet).unwrap();
//! assert_eq!(payload, "hello");
//! assert_eq!(payload.as_ptr(), packet[4..].as_ptr(), "the same memory, counted once more");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A `BufMut` panics when written beyond its end, so this module checks the space first. A short buffer returns
//! [`WriteErrorKind::BufferTooShort`](crate::WriteErrorKind) and stays unchanged.

use crate::layout::Layer;
use crate::{FrameBuilder, Uet, WriteError};
use ::bytes::{BufMut, Bytes};
use alloc::vec;

/// Makes the `put` function of a header.
macro_rules! header {
    ($Name:ident[$bytes:literal] $layer:ident) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "bytes")))]
        impl<B: core::borrow::Borrow<[u8; $bytes]>> $Name<B> {
            /// Writes the header into a `BufMut`; see [`uet_wire::with_bytes`](crate::with_bytes).
            #[inline]
            pub fn put(&self, buffer: &mut impl ::bytes::BufMut) -> Result<(), $crate::WriteError> {
                $crate::with_bytes::put_all(&[self.bytes()], $crate::layout::Layer::$layer, buffer)
            }
        }
    };
}
pub(crate) use header;

/// Makes the `put` function of the enum of a layer.
macro_rules! family {
    ($Name:ident) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "bytes")))]
        impl $Name<'_> {
            /// Writes the header into a `BufMut`; see [`uet_wire::with_bytes`](crate::with_bytes).
            #[inline]
            pub fn put(&self, buffer: &mut impl ::bytes::BufMut) -> Result<(), $crate::WriteError> {
                $crate::with_bytes::put_all(&[self.bytes()], self.layout().layer, buffer)
            }
        }
    };
}
pub(crate) use family;

/// Writes all parts or none.
#[inline]
pub(crate) fn put_all(parts: &[&[u8]], layer: Layer, buffer: &mut impl BufMut) -> Result<(), WriteError> {
    let needed = parts.iter().map(|part| part.len()).sum();
    let present = buffer.remaining_mut();
    if present < needed {
        return Err(WriteError::short(layer, 0, needed, present));
    }
    parts.iter().for_each(|part| buffer.put_slice(part));
    Ok(())
}

impl Uet<'_> {
    /// Writes the packet into a `BufMut` without changes; see [`uet_wire::with_bytes`](crate::with_bytes).
    #[inline]
    pub fn put(&self, buffer: &mut impl BufMut) -> Result<(), WriteError> {
        put_all(&self.parts(), Layer::Pds, buffer)
    }

    /// Returns the payload as a slice of the parsed `packet`, without copying. Returns `None` if the payload does not
    /// lie in `packet`.
    #[inline]
    pub fn payload_of(&self, packet: &Bytes) -> Option<Bytes> {
        let (all, part) = (packet.as_ptr_range(), self.payload.as_ptr_range());
        let inside = all.start <= part.start && part.end <= all.end;
        (inside || self.payload.is_empty()).then(|| packet.slice_ref(self.payload))
    }
}

impl FrameBuilder<'_> {
    /// Writes the frame into a `BufMut` and returns its length; see [`uet_wire::with_bytes`](crate::with_bytes).
    ///
    /// A `BufMut` only moves forward, but checksums precede the bytes that they cover. The frame is therefore built in
    /// a temporary buffer first. [`emit`](FrameBuilder::emit) needs no such buffer.
    pub fn put(&self, buffer: &mut impl BufMut) -> Result<usize, WriteError> {
        let (needed, present) = (self.len(), buffer.remaining_mut());
        if present < needed {
            return Err(WriteError::short(Layer::Eth, 0, needed, present));
        }
        let mut frame = vec![0; needed];
        let length = self.emit(&mut frame)?;
        put_all(&[&frame], Layer::Eth, buffer)?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pds::{Ack, Pds, Uud};
    use ::bytes::BytesMut;

    #[test]
    fn a_buffer_that_is_short_by_one_stays_as_it_was() {
        let ack = Ack::build().done().unwrap();
        let frame = FrameBuilder::new(ack).udp(7).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).pad_to(60);
        let uet = Uet { pds: Some(Pds::from(&ack)), payload: b"abc", ..Uet::default() };
        for length in [12, 15, 60] {
            let mut memory = [0xee; 60];
            let mut short = &mut memory[..length - 1];
            let result = match length {
                12 => ack.put(&mut short).and(Pds::from(&ack).put(&mut short)),
                15 => uet.put(&mut short),
                _ => frame.put(&mut short).map(|_| ()),
            };
            assert_eq!(
                result.map_err(|error| (error.needed(), error.present())),
                Err((Some(length), Some(length - 1)))
            );
            assert_eq!((short.len(), memory), (length - 1, [0xee; 60]));
        }
    }

    #[test]
    fn what_is_put_is_what_is_emitted() {
        let ack = Ack::build().done().unwrap();
        let frame =
            FrameBuilder::new(ack).udp(7).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).payload(b"hello").pad_to(60);
        let (mut growing, mut fixed) = (BytesMut::new(), [0; 128]);
        assert_eq!(frame.put(&mut growing), frame.emit(&mut fixed));
        assert_eq!(growing, fixed[..60]);
        let mut exact = [0; 60];
        assert_eq!(frame.put(&mut &mut exact[..]), Ok(60));
        assert_eq!(exact, fixed[..60]);
        let uet = Uet::parse(&growing[28..45]).unwrap();
        let mut again = BytesMut::new();
        uet.put(&mut again).unwrap();
        assert_eq!(again, growing[28..45]);
    }

    #[test]
    fn payload_is_shared_only_with_the_packet_that_holds_it() {
        let packet = Bytes::copy_from_slice(&[0x30, 0, 0, 0, 1, 2, 3]);
        let elsewhere = Bytes::copy_from_slice(&packet);
        let uet = Uet::parse(&packet).unwrap();
        assert_eq!(uet.payload_of(&packet).unwrap().as_ptr(), packet[4..].as_ptr());
        assert_eq!(uet.payload_of(&elsewhere), None);
        assert_eq!(uet.payload_of(&packet.slice(..6)), None, "only in part");
        let header = Uud::new();
        let empty = Uet { pds: Some(Pds::from(&header)), ..Uet::default() };
        assert_eq!(empty.payload_of(&packet), Some(Bytes::new()));
    }
}
