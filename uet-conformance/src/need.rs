//! Needs of rules from the device and the link.

use crate::Facts;
use core::fmt;
use uet_control::Welcome;

/// A need of a rule from the device or the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// A capability of the device, by its name in the control channel.
    Capability(&'static str),
    /// This many addresses of the suite.
    Addresses(usize),
    /// A link that can send trimmed packets, and a device that claims to support them.
    Trim,
    /// A link that can set congestion marks.
    SetEcn,
    /// A link that sends with any entropy value.
    SetEntropy,
    /// A link that sends with any TTL and UDP checksum.
    SetTtl,
    /// A link that shows traffic classes.
    SeeClass,
    /// A link that shows entropy values.
    SeeEntropy,
    /// A link that makes CRC trailers.
    Crc,
}

/// Needs by short names, as rules list them.
#[allow(missing_docs)] // A name is all that there is to say.
pub mod needs {
    use super::Need;

    pub const WRITE: Need = Need::Capability("write");
    pub const READ: Need = Need::Capability("read");
    pub const RUD: Need = Need::Capability("rud");
    pub const RECEIVE: Need = Need::Capability("receive");
    pub const SEND: Need = Need::Capability("send");
    pub const ATOMIC: Need = Need::Capability("atomic");
    pub const ROD: Need = Need::Capability("rod");
    pub const NSCC: Need = Need::Capability("nscc");
    pub const RCCC: Need = Need::Capability("rccc");
    pub const RUDI: Need = Need::Capability("rudi");
    pub const TSEND: Need = Need::Capability("tsend");
    pub const RENDEZVOUS_SEND: Need = Need::Capability("rendezvous_send");
    pub const DEFERRABLE_SEND: Need = Need::Capability("deferrable_send");
    pub const CLOSE: Need = Need::Capability("close");
    pub const FETCH_ATOMIC: Need = Need::Capability("fetch_atomic");
    pub const TSS: Need = Need::Capability("tss");
    pub const UUD: Need = Need::Capability("uud");
    pub const ECN: Need = Need::Capability("ecn");
    pub const PARAMETERS: Need = Need::Capability("parameters");
    pub const DATAGRAM: Need = Need::Capability("datagram");
    pub const INDICES: Need = Need::Capability("indices");
    pub const DEFERRABLE_TSEND: Need = Need::Capability("deferrable_tsend");
    pub const RENDEZVOUS_TSEND: Need = Need::Capability("rendezvous_tsend");
    pub const PATHS: Need = Need::Capability("paths");
    pub const NEGOTIATION: Need = Need::Capability("negotiation");
    pub const TWO_ADDRESSES: Need = Need::Addresses(2);
    pub const TRIM: Need = Need::Trim;
    pub const SET_ECN: Need = Need::SetEcn;
    pub const SET_ENTROPY: Need = Need::SetEntropy;
    pub const SET_TTL: Need = Need::SetTtl;
    pub const SEE_CLASS: Need = Need::SeeClass;
    pub const SEE_ENTROPY: Need = Need::SeeEntropy;
    pub const CRC: Need = Need::Crc;
}

impl Need {
    /// Returns the capability that the device must claim, by its name in the control channel.
    pub fn capability(self) -> Option<&'static str> {
        match self {
            Need::Capability(name) => Some(name),
            Need::Trim => Some("trim"),
            _ => None,
        }
    }

    /// Returns the reason to skip a rule with this need; `None` if the need is met.
    pub fn lacking(self, device: &Welcome, link: &Facts) -> Option<String> {
        let unless = |there: bool, reason: &str| (!there).then(|| reason.to_owned());
        let of_link = match self {
            Need::Capability(_) => None,
            Need::Addresses(count) => (link.local.len() < count)
                .then(|| format!("needs {count} addresses of the suite, has {} (--local)", link.local.len())),
            Need::Trim => unless(link.trim, "the link cannot trim"),
            Need::SetEcn => unless(link.set_ecn, "the link cannot set ECN"),
            Need::SetEntropy => unless(link.set_entropy, "the link chooses entropy values itself"),
            Need::SetTtl => unless(link.set_ttl, "the link chooses TTL and UDP checksum itself"),
            Need::SeeClass => unless(link.see_class, "the link does not show traffic classes"),
            Need::SeeEntropy => unless(link.see_entropy, "the link does not show entropy values"),
            Need::Crc => unless(link.crc, "the link has no CRC trailers"),
        };
        let claimed = |name: &str| device.capabilities.iter().any(|capability| capability == name);
        let unclaimed = || self.capability().filter(|name| !claimed(name));
        of_link.or_else(|| unclaimed().map(|name| format!("the device does not claim '{name}'")))
    }
}

/// Displays the name of the need in a list of rules.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Capability(name) => f.write_str(name),
            Need::Addresses(count) => write!(f, "{count} addresses"),
            Need::Trim => f.write_str("a link that trims"),
            Need::SetEcn => f.write_str("a link that marks"),
            Need::SetEntropy => f.write_str("a link that sends with any entropy"),
            Need::SetTtl => f.write_str("a link that sends with any TTL"),
            Need::SeeClass => f.write_str("a link that shows classes"),
            Need::SeeEntropy => f.write_str("a link that shows entropy"),
            Need::Crc => f.write_str("a link with CRC trailers"),
        }
    }
}
