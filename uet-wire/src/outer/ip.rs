use crate::header::header;
use crate::layout::Layout;
use core::borrow::Borrow;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IP protocol number of UDP.
pub const PROTO_UDP: u8 = 17;

header! {
    /// An IPv4 header, without its options.
    ///
    /// ```
    /// use uet_wire::outer::Ipv4;
    ///
    /// let bytes = [0x45, 0xb9, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 12];
    /// let (ip, _) = Ipv4::parse(&bytes)?;
    /// assert_eq!((ip.dscp(), ip.ecn(), ip.df()), (46, 1, true));
    /// assert_eq!(ip.dst(), std::net::Ipv4Addr::new(10, 0, 1, 12));
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    Ipv4[20] Ipv4Mut Ipv4Repr, Ipv4 "ipv4" "IPv4 header" {
        "ip.version"        0..  4  version: u8, "4";
        "ip.ihl"            4..  8  ihl: u8, "length of the header in words of 4 bytes";
        "ip.dscp"           8.. 14  dscp: u8, "traffic class";
        "ip.ecn"           14.. 16  ecn: u8, "congestion notification, 3 when marked";
        "ip.total_length"  16.. 32  total_length: u16, "bytes from here to the end of the packet";
        "ip.id"            32.. 48  id: u16, "identification";
        "-"                48.. 49;
        "ip.df"            49.. 50  df: bool, "do not fragment";
        "ip.mf"            50.. 51  mf: bool, "more fragments follow";
        "ip.frag_offset"   51.. 64  frag_offset: u16, "place of the fragment in units of 8 bytes";
        "ip.ttl"           64.. 72  ttl: u8, "time to live";
        "ip.proto"         72.. 80  proto: u8, "what follows";
        "ip.checksum"      80.. 96  checksum: u16, "checksum of the header";
        "ip.src"           96..128  src: Ipv4Addr, "source";
        "ip.dst"          128..160  dst: Ipv4Addr, "destination";
    }
}

impl<B: Borrow<[u8; 20]>> Ipv4<B> {
    /// Computes the checksum of the header with these options.
    pub fn computed_checksum(&self, options: &[u8]) -> u16 {
        let header: &[u8; 20] = self.0.borrow();
        let words = header.chunks(2).enumerate().filter(|(index, _)| *index != 5).map(|(_, word)| word);
        let sum = words.chain(options.chunks(2)).fold(0u64, |sum, word| {
            let word = match word {
                [high, low] => u16::from_be_bytes([*high, *low]),
                [high] => u16::from_be_bytes([*high, 0]),
                _ => 0,
            };
            sum + u64::from(word)
        });
        let folded = (sum & 0xffff) + (sum >> 16);
        !((folded & 0xffff) + (folded >> 16)) as u16
    }
}

header! {
    /// An IPv6 header, without its extension headers.
    ///
    /// ```
    /// use uet_wire::outer::Ipv6;
    ///
    /// let ip = Ipv6::zeroed().edit().version(6).dscp(46).ecn(3).next_header(17).hop_limit(64).done()?;
    /// assert_eq!(ip.bytes()[..8], [0x6b, 0xb0, 0, 0, 0, 0, 17, 64]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    Ipv6[40] Ipv6Mut Ipv6Repr, Ipv6 "ipv6" "IPv6 header" {
        "ip.version"          0..  4  version: u8, "6";
        "ip.dscp"             4.. 10  dscp: u8, "traffic class";
        "ip.ecn"             10.. 12  ecn: u8, "congestion notification, 3 when marked";
        "ip.flow_label"      12.. 32  flow_label: u32, "flow label";
        "ip.payload_length"  32.. 48  payload_length: u16, "bytes after this header";
        "ip.proto"           48.. 56  next_header: u8, "what follows";
        "ip.ttl"             56.. 64  hop_limit: u8, "time to live";
        "ip.src"             64..192  src: Ipv6Addr, "source";
        "ip.dst"            192..320  dst: Ipv6Addr, "destination";
    }
}

/// An IP header with its options or extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip<'a> {
    /// Version 4.
    V4 {
        /// The fixed part.
        header: Ipv4<&'a [u8; 20]>,
        /// The options.
        options: &'a [u8],
    },
    /// Version 6.
    V6 {
        /// The fixed part.
        header: Ipv6<&'a [u8; 40]>,
        /// The extension headers.
        extensions: &'a [u8],
    },
}

impl<'a> Ip<'a> {
    /// Returns the layout of the fixed part.
    pub const fn layout(&self) -> &'static Layout {
        match self {
            Ip::V4 { .. } => Ipv4::LAYOUT,
            Ip::V6 { .. } => Ipv6::LAYOUT,
        }
    }

    /// Returns the bytes of the fixed part.
    pub const fn bytes(&self) -> &'a [u8] {
        match self {
            Ip::V4 { header, .. } => header.0,
            Ip::V6 { header, .. } => header.0,
        }
    }

    /// Returns the bytes between the fixed part and the payload: options or extension headers.
    pub const fn extra(&self) -> &'a [u8] {
        match self {
            Ip::V4 { options, .. } => options,
            Ip::V6 { extensions, .. } => extensions,
        }
    }

    /// Returns the source address.
    pub fn src(&self) -> IpAddr {
        match self {
            Ip::V4 { header, .. } => IpAddr::V4(header.src()),
            Ip::V6 { header, .. } => IpAddr::V6(header.src()),
        }
    }

    /// Returns the destination address.
    pub fn dst(&self) -> IpAddr {
        match self {
            Ip::V4 { header, .. } => IpAddr::V4(header.dst()),
            Ip::V6 { header, .. } => IpAddr::V6(header.dst()),
        }
    }

    /// Returns the traffic class (DSCP), 0 to 63.
    #[inline]
    pub fn dscp(&self) -> u8 {
        match self {
            Ip::V4 { header, .. } => header.dscp(),
            Ip::V6 { header, .. } => header.dscp(),
        }
    }

    /// Returns the ECN field, 0 to 3. 3 means marked.
    #[inline]
    pub fn ecn(&self) -> u8 {
        match self {
            Ip::V4 { header, .. } => header.ecn(),
            Ip::V6 { header, .. } => header.ecn(),
        }
    }
}

header! {
    /// The first two bytes of every IPv6 extension header that can be skipped.
    Ipv6Extension[2] Ipv6ExtensionMut Ipv6ExtensionRepr, Ipv6 "ipv6_ext" "start of an IPv6 extension header" {
        "ip.ext.proto"       0..  8  next_header: u8, "what follows";
        "ip.ext.length"      8.. 16  length: u8, "length in units of 8 bytes, the first not counted";
    }
}

header! {
    /// The IPv6 fragment header.
    Ipv6Fragment[8] Ipv6FragmentMut Ipv6FragmentRepr, Ipv6 "ipv6_fragment" "IPv6 fragment header" {
        "ip.ext.proto"       0..  8  next_header: u8, "what follows";
        "-"                  8.. 16;
        "ip.frag_offset"    16.. 29  frag_offset: u16, "place of the fragment in units of 8 bytes";
        "-"                 29.. 31;
        "ip.mf"             31.. 32  mf: bool, "more fragments follow";
        "ip.id"             32.. 64  id: u32, "identification";
    }
}
