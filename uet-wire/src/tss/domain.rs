use super::{DomainError, KeyId, KeyIv, Outer, OuterLayer, PacketKey, Tss, TssError, key};
use core::net::IpAddr;

/// The highest confidentiality offset that a domain may have.
pub const MAX_CONFIDENTIALITY_OFFSET: u8 = 64;

/// The length of the ICV in bytes.
pub const ICV: usize = 16;

/// The length of the longest authenticated range: two IPv6 addresses, UDP and the part in the clear.
const MAX_AAD: usize = 32 + 8 + MAX_CONFIDENTIALITY_OFFSET as usize;

/// How the members of a secure domain get the key of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All members use the key of the domain as it is.
    Direct,
    /// Each sender has a key of its own, which all members can derive.
    Cluster,
    /// This endpoint is a client: it holds a derived key and never derives one.
    Client,
    /// This endpoint is the server: it derives the key of each client.
    Server,
}

/// The end of a packet's way at which this endpoint stands. Only a server needs it, to know which address is the
/// client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// This endpoint sends the packet.
    Outgoing,
    /// This endpoint has received the packet.
    Incoming,
}

/// The context of the key derivation for a domain that uses source identifiers over IPv6. Public sources disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ipv6SsiContext {
    /// The IPv6 address, in the long context.
    #[default]
    Address,
    /// The source identifier, in the short context.
    Ssi,
}

/// A secure domain: the settings that its members share (section 3.7).
///
/// ```
/// use uet_wire::tss::{Direction, Domain, DomainKey, Mode, Outer, Tss, TssShort};
///
/// let domain = Domain::new(0x01_2345, Mode::Cluster);
/// let secret = DomainKey::new(&[7; 32])?;
/// let header = TssShort::build().head(|h| h.sdi(domain.sdi)).tsc(|t| t.counter(1)).done()?;
///
/// // The security header, a NOOP, and room for the ICV.
/// let mut packet = [0; 12 + 16 + 16];
/// packet[..12].copy_from_slice(header.bytes());
/// packet[12] = 0x59;
///
/// let outer = Outer::native([10, 0, 0, 1], [10, 0, 1, 12], 7);
/// let (tss, _) = Tss::parse(header.bytes())?;
/// let key = domain.key_id(&outer, &tss, Direction::Outgoing)?.derive(&secret)?;
/// domain.seal(&key, &outer, &mut packet)?;
/// assert_ne!(packet[12], 0x59);
///
/// domain.open(&key, &outer, &mut packet)?;
/// assert_eq!(packet[12], 0x59);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The number of the domain (`tss.sdi`, 24 bits).
    pub sdi: u32,
    /// The way to the key of a packet.
    pub mode: Mode,
    /// True if the packets of the domain carry a source identifier.
    pub ssi: bool,
    /// The bits of the counter that select a new key (cluster only). 0 for none.
    pub rekey_mask: u64,
    /// The number of bits by which the masked counter is shifted down.
    pub rekey_shift: u8,
    /// The first encrypted byte, counted from the security header. `None` for the byte after that header.
    pub confidentiality_offset: Option<u8>,
    /// The context of the key derivation over IPv6 with source identifiers.
    pub ipv6_ssi_context: Ipv6SsiContext,
}

impl Domain {
    /// Returns a domain without source identifiers and implicit rekeying, whose packets are encrypted from the first
    /// byte after the security header on.
    pub const fn new(sdi: u32, mode: Mode) -> Self {
        Domain {
            sdi,
            mode,
            ssi: false,
            rekey_mask: 0,
            rekey_shift: 0,
            confidentiality_offset: None,
            ipv6_ssi_context: Ipv6SsiContext::Address,
        }
    }

    /// Checks that the settings are in range and fit each other.
    pub fn check(&self) -> Result<(), DomainError> {
        let header = if self.ssi { 16 } else { 12 };
        if self.sdi >> 24 != 0 {
            return Err(DomainError::Sdi);
        }
        if self.rekey_mask >> 48 != 0
            || self.rekey_shift >= 48
            || self.rekey_mask >> self.rekey_shift >> 32 != 0
        {
            return Err(DomainError::Rekey);
        }
        if self.rekey_mask != 0 && self.mode != Mode::Cluster {
            return Err(DomainError::RekeyMode);
        }
        match self.confidentiality_offset {
            Some(offset) if offset < header || offset > MAX_CONFIDENTIALITY_OFFSET => {
                Err(DomainError::ConfidentialityOffset)
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of the key among those that follow each other without a message (implicit rekey).
    pub fn rekey_index(&self, counter: u64) -> u32 {
        (counter & self.rekey_mask).checked_shr(self.rekey_shift.into()).unwrap_or(0) as u32
    }

    /// Returns everything but the secret that determines the key of a packet.
    ///
    /// # Errors
    ///
    /// Fails if the domain uses source identifiers and the packet has none, or if the addresses have two versions.
    /// Fails for packets over IPv6 without source identifiers in all modes but cluster, because two senders would share
    /// key and IV.
    pub fn key_id(&self, outer: &Outer, tss: &Tss<'_>, direction: Direction) -> Result<KeyId, TssError> {
        let ssi = self.ssi_of(tss)?;
        outer.check()?;
        if self.mode != Mode::Cluster && ssi.is_none() && outer.src.is_ipv6() {
            return Err(TssError::NeedsSsi);
        }
        let (label, address, index) = match self.mode {
            Mode::Direct | Mode::Client => return Ok(KeyId::underived(tss)),
            Mode::Cluster => (key::CLUSTER, outer.src, self.rekey_index(tss.tsc().counter())),
            Mode::Server if direction == Direction::Outgoing => (key::CLIENT_SERVER, outer.dst, 0),
            Mode::Server => (key::CLIENT_SERVER, outer.src, 0),
        };
        let identity = match (ssi, address) {
            (Some(ssi), IpAddr::V4(_)) => key::Identity::Short(ssi),
            (Some(ssi), IpAddr::V6(_)) if self.ipv6_ssi_context == Ipv6SsiContext::Ssi => {
                key::Identity::Short(ssi)
            }
            (None, IpAddr::V4(address)) => key::Identity::Short(address.to_bits()),
            (_, IpAddr::V6(address)) => key::Identity::Long(address.to_bits()),
        };
        Ok(KeyId::derived(tss, label, index, identity))
    }

    /// Returns the source identifier that takes the place of the source address, if the domain uses them.
    fn ssi_of(&self, tss: &Tss<'_>) -> Result<Option<u32>, TssError> {
        match (self.ssi, tss.ssi()) {
            (true, None) => Err(TssError::NeedsSsi),
            (true, ssi) => Ok(ssi),
            (false, _) => Ok(None),
        }
    }

    /// Encrypts a packet in place and writes its ICV.
    ///
    /// `packet` starts with the security header, and its last 16 bytes are room for the ICV. No two packets may have
    /// the same [`KeyIv`].
    pub fn seal(&self, key: &PacketKey, outer: &Outer, packet: &mut [u8]) -> Result<(), TssError> {
        let mut buffer = [0; MAX_AAD];
        let Parts { aad, iv, body, icv } = self.parts(key, outer, packet, &mut buffer)?;
        icv.copy_from_slice(&key.seal(&iv, aad, body)?);
        Ok(())
    }

    /// Authenticates a packet, and decrypts it in place.
    ///
    /// `packet` starts with the security header and ends with the ICV. A packet that is not authentic stays as it is.
    pub fn open(&self, key: &PacketKey, outer: &Outer, packet: &mut [u8]) -> Result<(), TssError> {
        let mut buffer = [0; MAX_AAD];
        let Parts { aad, iv, body, icv } = self.parts(key, outer, packet, &mut buffer)?;
        key.open(&iv, aad, body, icv)
    }

    /// Returns what must be unique to a packet: its key and its IV. `packet` starts with the security header.
    pub fn key_iv(&self, key: &PacketKey, outer: &Outer, packet: &[u8]) -> Result<KeyIv, TssError> {
        let (tss, _) = Tss::parse(packet).map_err(|_| TssError::TooShort)?;
        Ok(KeyIv { key: key.fingerprint(), iv: key.masked(self.iv(outer, &tss)?) })
    }

    /// Takes a packet apart as AES-GCM needs it.
    fn parts<'p, 'b>(
        &self,
        key: &PacketKey,
        outer: &Outer,
        packet: &'p mut [u8],
        buffer: &'b mut [u8; MAX_AAD],
    ) -> Result<Parts<'p, 'b>, TssError> {
        outer.check()?;
        let (packet, icv) = packet.split_last_chunk_mut::<ICV>().ok_or(TssError::TooShort)?;
        let (tss, _) = Tss::parse(packet).map_err(|_| TssError::TooShort)?;
        let iv = key.masked(self.iv(outer, &tss)?);
        let header = tss.bytes().len();
        let offset = self.confidentiality_offset.unwrap_or(0).min(MAX_CONFIDENTIALITY_OFFSET);
        let offset = header.max(offset.into());
        let (clear, body) = packet.split_at_mut(offset.min(packet.len()));
        let mut length = 0;
        outer.each_authenticated(|part| length = append(buffer, length, part));
        length = append(buffer, length, clear);
        Ok(Parts { aad: buffer.get(..length).unwrap_or(&[]), iv, body, icv })
    }

    /// Returns the IV before the mask: who sends, and the packet counter.
    fn iv(&self, outer: &Outer, tss: &Tss<'_>) -> Result<[u8; 12], TssError> {
        let prefix = match (self.ssi_of(tss)?, outer.src) {
            (Some(ssi), _) => ssi.to_be_bytes(),
            (None, IpAddr::V4(address)) => address.octets(),
            (None, IpAddr::V6(_)) => tss.head().sdi().to_be_bytes(),
        };
        let mut iv = [0; 12];
        append(&mut iv, 0, &prefix);
        append(&mut iv, 4, tss.tsc().bytes());
        Ok(iv)
    }
}

/// The inputs of AES-GCM.
struct Parts<'p, 'b> {
    /// The authenticated data, from the IP source address to the confidentiality offset.
    aad: &'b [u8],
    iv: [u8; 12],
    /// The bytes to encrypt or decrypt.
    body: &'p mut [u8],
    icv: &'p mut [u8; ICV],
}

/// Copies `part` to `offset` of `buffer` and returns the end. Bytes beyond the buffer are dropped; the lengths that
/// [`Domain::check`] allows fit.
fn append(buffer: &mut [u8], offset: usize, part: &[u8]) -> usize {
    for (to, from) in buffer.iter_mut().skip(offset).zip(part) {
        *to = *from;
    }
    buffer.len().min(offset.saturating_add(part.len()))
}

impl Outer {
    /// Passes each authenticated part before the security header.
    fn each_authenticated(&self, mut take: impl FnMut(&[u8])) {
        for address in [self.src, self.dst] {
            match address {
                IpAddr::V4(address) => take(&address.octets()),
                IpAddr::V6(address) => take(&address.octets()),
            }
        }
        match self.layer {
            OuterLayer::Native { header } => take(&header),
            OuterLayer::Udp { src_port, dst_port, length } => {
                // The checksum counts as 0.
                let [s0, s1] = src_port.to_be_bytes();
                let [d0, d1] = dst_port.to_be_bytes();
                let [l0, l1] = length.to_be_bytes();
                take(&[s0, s1, d0, d1, l0, l1, 0, 0]);
            }
        }
    }

    fn check(&self) -> Result<(), TssError> {
        match self.src.is_ipv4() == self.dst.is_ipv4() {
            true => Ok(()),
            false => Err(TssError::AddressFamilies),
        }
    }
}
