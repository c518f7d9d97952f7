use core::fmt;

/// The reason why a packet cannot be sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TssError {
    /// The packet is shorter than the security header and the ICV.
    TooShort,
    /// The packet is longer than an IP packet.
    TooLong,
    /// The domain uses source identifiers, or needs them over IPv6, and the packet has none.
    NeedsSsi,
    /// The source and the destination address have different IP versions.
    AddressFamilies,
    /// A key has neither 32 bytes, nor the 44 bytes of a client.
    KeyLength,
    /// A client's key stands where the key of the domain is needed.
    KeyKind,
    /// The ICV is wrong: another key, or a changed packet.
    NotAuthentic,
}

impl fmt::Display for TssError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TssError::TooShort => "the packet is too short for a security header and an ICV",
            TssError::TooLong => "the packet is longer than an IP packet",
            TssError::NeedsSsi => "the packet has no source identifier (SSI), and its domain needs one",
            TssError::AddressFamilies => "the source and the destination address have different IP versions",
            TssError::KeyLength => "a key has 32 bytes, or 44 for a client",
            TssError::KeyKind => "a client's key (44 bytes) cannot derive other keys",
            TssError::NotAuthentic => "the ICV is wrong",
        })
    }
}

impl core::error::Error for TssError {}

/// The reason why the settings of a secure domain cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DomainError {
    /// The number of the domain has more than 24 bits.
    Sdi,
    /// The mask has bits beyond the counter's 48, or its shifted value has more than 32.
    Rekey,
    /// A domain that is no cluster has a rekey mask.
    RekeyMode,
    /// The first encrypted byte lies within the security header, or after byte 64.
    ConfidentialityOffset,
}

impl fmt::Display for DomainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DomainError::Sdi => "an SDI has at most 24 bits",
            DomainError::Rekey => "rekey_mask has at most 48 bits, and at most 32 after the shift by rekey_shift",
            DomainError::RekeyMode => "only a cluster domain has a rekey_mask",
            DomainError::ConfidentialityOffset => {
                "confidentiality_offset lies between the end of the security header (12, or 16 with SSI) and 64"
            }
        })
    }
}

impl core::error::Error for DomainError {}
