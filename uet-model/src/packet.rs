use arrayvec::ArrayVec;
use bytes::Bytes;
use core::net::IpAddr;
use uet_wire::{ParseError, Uet};

/// The headers of a packet: at most TSS 16, a request with congestion state 16, STD 44, compare and swap 36.
pub type Head = ArrayVec<u8, 112>;

/// A UET packet as it passes between the model and whoever carries it: headers as on the wire, payload shared and
/// not copied, and what IP says of it. Trailers, Ethernet, IP and UDP are the carrier's.
///
/// ```
/// use bytes::Bytes;
/// use uet_model::{Packet, Priority};
///
/// // An ACK as it came from the wire, or any other UET packet, whole.
/// let bytes = Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
/// let packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 1, 12], bytes.clone())?;
/// assert_eq!(packet.to_wire(), bytes);
/// assert_eq!(packet.priority, Priority::Low, "until the carrier says otherwise");
/// # Ok::<(), uet_wire::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The address it comes from.
    pub src: IpAddr,
    /// The address it goes to.
    pub dst: IpAddr,
    /// The number of its traffic class. What DSCP that is, the carrier knows.
    pub class: u8,
    /// Its place within the class (section 3.6.4).
    pub priority: Priority,
    /// Whether a switch marked it (ECN-CE).
    pub marked: bool,
    /// Whether a switch cut it, which its DSCP tells.
    pub trimmed: Option<Trimmed>,
    /// The entropy value: the UDP source port, or natively `pds.entropy`. It chooses the path.
    pub entropy: u16,
    /// The headers.
    pub head: Head,
    /// What follows them.
    pub payload: Bytes,
}

/// The place of a packet within its traffic class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Requests.
    #[default]
    Low,
    /// Requests that a switch has trimmed.
    Medium,
    /// Acknowledgements and control packets.
    High,
}

/// Where a packet was trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trimmed {
    /// By a switch within the fabric.
    Fabric,
    /// By the last one before the destination.
    LastHop,
}

impl Packet {
    /// A packet of these bytes, from the first of UET to the last before a trailer. A trimmed one may lack any
    /// part but its PDS header: see [`from_wire_trimmed`](Self::from_wire_trimmed).
    pub fn from_wire(
        src: impl Into<IpAddr>,
        dst: impl Into<IpAddr>,
        bytes: Bytes,
    ) -> Result<Self, ParseError> {
        let payload = Uet::parse(&bytes)?.payload.len();
        Ok(Self::split(src.into(), dst.into(), None, bytes, payload))
    }

    /// The same for a packet that a switch has cut; it is an error when the PDS header is not whole.
    pub fn from_wire_trimmed(
        src: impl Into<IpAddr>,
        dst: impl Into<IpAddr>,
        trimmed: Trimmed,
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

    fn split(src: IpAddr, dst: IpAddr, trimmed: Option<Trimmed>, mut bytes: Bytes, payload: usize) -> Self {
        // Headers never exceed the room: the sum in `Head`'s comment is of the longest of each.
        let headers = (bytes.len() - payload).min(Head::new_const().capacity());
        let head = bytes.split_to(headers).iter().copied().collect();
        Packet {
            src,
            dst,
            class: 0,
            priority: Priority::default(),
            marked: false,
            trimmed,
            entropy: 0,
            head,
            payload: bytes,
        }
    }

    /// The packet's bytes, from the first of UET to the last before a trailer.
    pub fn to_wire(&self) -> Bytes {
        [&self.head, &self.payload[..]].concat().into()
    }
}
