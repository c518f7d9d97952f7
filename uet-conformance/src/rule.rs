use crate::{AnyAxis, Facts, Outcome, Test};
use core::fmt;
use uet_control::Welcome;
use uet_wire::catalogue::Requirement;

/// A statement about devices, and the script that checks it.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Identifier, as `GROUP/NAME`.
    pub id: &'static str,
    /// The statement.
    pub title: &'static str,
    /// The requirements that it checks.
    pub requirements: &'static [&'static Requirement],
    /// Needs of every instance.
    pub needs: &'static [Need],
    /// Axes along which it varies, in the order of the ids of its instances.
    pub axes: &'static [&'static dyn AnyAxis],
    /// The script.
    pub run: fn(&mut Test<'_>) -> Outcome,
}

impl Rule {
    /// Returns the first part of the id.
    pub fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }
}

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

impl Need {
    /// Returns the capability that the device must claim, by its name in the control channel.
    pub fn capability(self) -> Option<&'static str> {
        match self {
            Need::Capability(name) => Some(name),
            Need::Trim => Some("trim"),
            _ => None,
        }
    }

    /// Returns the reason to skip a case with this need; `None` if the need is met.
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

/// Displays the name of the need in a list of cases.
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
