use crate::header::header;

/// The EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// The EtherType of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// The EtherType of an 802.1Q tag.
pub const ETHERTYPE_VLAN: u16 = 0x8100;
/// The EtherType of an 802.1ad service tag.
pub const ETHERTYPE_QINQ: u16 = 0x88a8;
/// The EtherType of a service tag in networks older than 802.1ad.
pub const ETHERTYPE_OLD_QINQ: u16 = 0x9100;

/// The maximum number of tags that are read. A further one is another protocol.
pub const MAX_VLANS: usize = 2;

/// Returns true if a tag follows this EtherType.
#[inline(always)]
pub(crate) const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ | ETHERTYPE_OLD_QINQ)
}

header! {
    /// An Ethernet header, without its tags.
    ///
    /// ```
    /// use uet_wire::outer::Ethernet;
    ///
    /// let (eth, _) = Ethernet::parse(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00])?;
    /// assert_eq!((eth.src(), eth.ethertype()), ([2, 0, 0, 0, 0, 2], 0x0800));
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    Ethernet[14] EthernetMut EthernetRepr, Eth "eth" "Ethernet header" {
        "eth.dst"       0.. 48  dst: [u8; 6], "destination";
        "eth.src"      48.. 96  src: [u8; 6], "source";
        "eth.type"     96..112  ethertype: u16, "what follows";
    }
}

header! {
    /// An 802.1Q or 802.1ad tag, or an older service tag, from the bytes after its EtherType.
    Vlan[4] VlanMut VlanRepr, Vlan "vlan" "VLAN tag" {
        "vlan.pcp"      0..  3  pcp: u8, "priority";
        "vlan.dei"      3..  4  dei: bool, "drop eligible";
        "vlan.id"       4.. 16  id: u16, "the VLAN";
        "vlan.type"    16.. 32  ethertype: u16, "what follows";
    }
}
