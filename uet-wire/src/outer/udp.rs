use crate::header::header;

/// The UDP destination port of UET.
pub const UDP_PORT: u16 = 4793;
/// The default IP protocol number of the native encapsulation. No number is assigned; this one is reserved for
/// experiments.
pub const IP_PROTO: u8 = 253;

header! {
    /// A UDP header. The source port of a UET packet is its entropy value; its checksum is 0.
    Udp[8] UdpMut UdpRepr, Udp "udp" "UDP header" {
        "udp.src_port"   0.. 16  src_port: u16, "the entropy value";
        "udp.dst_port"  16.. 32  dst_port: u16, "4793";
        "udp.length"    32.. 48  length: u16, "bytes from here to the end of the packet; trimming leaves it";
        "udp.checksum"  48.. 64  checksum: u16, "sent as 0";
    }
}

header! {
    /// The header that replaces UDP in the native encapsulation.
    ///
    /// ```
    /// let entropy = uet_wire::outer::Entropy::zeroed().edit().entropy(0xbeef).done()?;
    /// assert_eq!(entropy.bytes(), &[0xbe, 0xef, 0, 0]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    Entropy[4] EntropyMut EntropyRepr, Entropy "entropy" "entropy header" {
        "pds.entropy"    0.. 16  entropy: u16, "the entropy value";
        "-"             16.. 32;
    }
}
