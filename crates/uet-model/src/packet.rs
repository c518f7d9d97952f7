use crate::pds::SecureContext;
use arrayvec::{ArrayVec, CapacityError};
use bytes::Bytes;
use core::fmt;
use core::net::IpAddr;
use uet_wire::{ParseError, Uet, WriteError};

/// The headers of a packet: at most TSS 16, a request with congestion state 16, STD 44, compare and swap 36 bytes.
pub type Head = ArrayVec<u8, 112>;

/// A UET packet between the model and its carrier: headers as on the wire, a shared payload, and the relevant IP
/// fields. The carrier handles trailers, Ethernet, IP and UDP.
///
/// ```
/// use bytes::Bytes;
/// use uet_model::{Packet, Priority};
///
/// // The bytes of a whole UET packet, here an ACK.
/// let bytes = Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
/// let packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 1, 12], bytes.clone())?;
/// assert_eq!(packet.to_wire(), bytes);
/// assert_eq!(packet.priority, Priority::Low, "until the carrier says otherwise");
/// # Ok::<(), uet_wire::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Packet {
    /// The source address.
    pub src: IpAddr,
    /// The destination address.
    pub dst: IpAddr,
    /// The traffic class. The carrier maps it to a DSCP.
    pub class: u8,
    /// The priority within the class (section 3.6.4).
    pub priority: Priority,
    /// True if a switch marked the packet (ECN-CE).
    pub marked: bool,
    /// The point where a switch trimmed the packet, if one did. The DSCP carries it.
    pub trimmed: Option<TrimPoint>,
    /// The entropy value: the UDP source port, or `pds.entropy` in native packets. It selects the path.
    pub entropy: u16,
    /// The TTL or hop limit. Switches decrement it, and receivers ignore it.
    pub ttl: u8,
    /// The UDP checksum. Senders set it to 0, and receivers ignore it.
    pub udp_checksum: u16,
    /// The security domain and source that protect the packet; `None` in the clear. Carriers leave it `None`.
    pub security: Option<SecureContext>,
    /// The headers.
    pub head: Head,
    /// The bytes after the headers.
    pub payload: Bytes,
}

/// The priority of a packet within its traffic class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Requests.
    #[default]
    Low,
    /// Trimmed requests.
    Medium,
    /// ACKs, NACKs and control packets.
    High,
}

/// The point where a packet was trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrimPoint {
    /// A switch within the fabric.
    Fabric,
    /// The last switch before the destination.
    LastHop,
}

impl Packet {
    /// The TTL of a sent packet.
    pub const TTL: u8 = 64;

    /// Parses a packet from its bytes: the first of UET to the last before a trailer. Fails if a header is malformed.
    /// For a trimmed packet, see [`from_wire_trimmed`](Self::from_wire_trimmed).
    pub fn from_wire(
        src: impl Into<IpAddr>,
        dst: impl Into<IpAddr>,
        bytes: Bytes,
    ) -> Result<Self, ParseError> {
        let payload = Uet::parse(&bytes)?.payload.len();
        Ok(Self::split(src.into(), dst.into(), None, bytes, payload))
    }

    /// Parses a trimmed packet. Fails if the PDS header is incomplete.
    pub fn from_wire_trimmed(
        src: impl Into<IpAddr>,
        dst: impl Into<IpAddr>,
        trimmed: TrimPoint,
        bytes: Bytes,
    ) -> Result<Self, ParseError> {
        let (uet, cut) = Uet::parse_lax(&bytes);
        match cut {
            Some(error) if uet.pds.is_none() && uet.tss.is_none() => Err(error),
            _ => {
                let payload = uet.payload.len();
                Ok(Self::split(src.into(), dst.into(), Some(trimmed), bytes, payload))
            }
        }
    }

    fn split(src: IpAddr, dst: IpAddr, trimmed: Option<TrimPoint>, mut bytes: Bytes, payload: usize) -> Self {
        // Headers never exceed the capacity, because the comment on `Head` sums the longest of each.
        let headers = (bytes.len() - payload).min(Head::new_const().capacity());
        let head = Head::try_from(&bytes.split_to(headers)[..]).unwrap_or_default();
        Packet {
            src,
            dst,
            class: 0,
            priority: Priority::default(),
            marked: false,
            trimmed,
            entropy: 0,
            ttl: Self::TTL,
            udp_checksum: 0,
            security: None,
            head,
            payload: bytes,
        }
    }

    /// Returns the packet's bytes, from the first of UET to the last before a trailer.
    pub fn to_wire(&self) -> Bytes {
        [&self.head, &self.payload[..]].concat().into()
    }

    /// Returns the number of bytes of [`to_wire`](Self::to_wire).
    pub fn wire_len(&self) -> usize {
        self.head.len() + self.payload.len()
    }

    /// Writes the bytes of [`to_wire`](Self::to_wire) to the start of `buffer`, without allocation, and returns the
    /// fields that the carrier needs. Fails if the buffer is too small.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use uet_model::Packet;
    ///
    /// let bytes = Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
    /// let packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 1, 12], bytes.clone())?;
    /// let mut buffer = [0; 1500];
    /// let transmit = packet.write_to(&mut buffer).unwrap();
    /// assert_eq!(buffer[..transmit.length], bytes);
    /// assert_eq!(packet.write_to(&mut buffer[..8]).unwrap_err().needed, 12);
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    pub fn write_to(&self, buffer: &mut [u8]) -> Result<Transmit, BufferTooSmall> {
        let length = self.wire_len();
        let too_small = BufferTooSmall { needed: length, present: buffer.len() };
        let (head, rest) = buffer.split_at_mut_checked(self.head.len()).ok_or(too_small)?;
        let payload = rest.get_mut(..self.payload.len()).ok_or(too_small)?;
        head.copy_from_slice(&self.head);
        payload.copy_from_slice(&self.payload);
        let Packet { src, dst, class, priority, entropy, .. } = *self;
        Ok(Transmit { src, dst, class, priority, entropy, length })
    }
}

/// A packet in the caller's buffer, with the fields that the carrier needs to send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The source address.
    pub src: IpAddr,
    /// The destination address.
    pub dst: IpAddr,
    /// The traffic class.
    pub class: u8,
    /// The priority within the class.
    pub priority: Priority,
    /// The entropy value.
    pub entropy: u16,
    /// The number of bytes written, from the first of UET to the last before a trailer.
    pub length: usize,
}

/// The error for a buffer that is too small for the next packet. The packet stays queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTooSmall {
    /// The length of the packet in bytes.
    pub needed: usize,
    /// The length of the buffer in bytes.
    pub present: usize,
}

impl fmt::Display for BufferTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BufferTooSmall { needed, present } = self;
        write!(f, "the packet has {needed} bytes, but the buffer has {present}; pass a larger buffer")
    }
}

impl core::error::Error for BufferTooSmall {}

/// The error for a packet that cannot be built: a value does not fit its field, or the headers do not fit [`Head`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unbuildable;

impl From<WriteError> for Unbuildable {
    fn from(_: WriteError) -> Self {
        Unbuildable
    }
}

impl<T> From<CapacityError<T>> for Unbuildable {
    fn from(_: CapacityError<T>) -> Self {
        Unbuildable
    }
}
