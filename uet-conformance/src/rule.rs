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
    script: Script,
    /// True if the script compares times that a busy machine can distort, so that a failure is measured
    /// again.
    measured: bool,
}

/// The script of a rule.
pub type Script = fn(&mut Test<'_>) -> Outcome;

/// A rule without its script.
#[derive(Clone, Copy, Debug)]
pub struct RuleDraft(Rule);

/// Begins the declaration of a rule.
///
/// ```
/// use uet_conformance::prelude::*;
///
/// const REPEATS_RETX: Rule = rule("ack/repeats-retx", "An ACK repeats the retx flag of its packet")
///     .checks(&[PDS_ACK_002])
///     .over(&[&MODE, &CARRIER, &START])
///     .run(|t| {
///         let (pdc, region) = t.open()?;
///         t.request(&pdc, pdc.request(1).retx().write(&region, 0, &[1; 16])?)?;
///         let (_, ack) = t.expect_answer(PDS_ACK_003, &pdc, pdc.psn(1))?;
///         t.check(PDS_ACK_002, "flag retx", true, ack.retx());
///         Ok(())
///     });
/// ```
pub const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    let script: Script = |_| Ok(());
    RuleDraft(Rule { id, title, requirements: &[], needs: &[], axes: &[], script, measured: false })
}

impl RuleDraft {
    /// Sets the requirements that the rule checks.
    pub const fn checks(self, requirements: &'static [&'static Requirement]) -> Self {
        RuleDraft(Rule { requirements, ..self.0 })
    }

    /// Sets the needs of every instance.
    pub const fn needs(self, needs: &'static [Need]) -> Self {
        RuleDraft(Rule { needs, ..self.0 })
    }

    /// Sets the axes along which the rule varies.
    pub const fn over(self, axes: &'static [&'static dyn AnyAxis]) -> Self {
        RuleDraft(Rule { axes, ..self.0 })
    }

    /// Completes the rule with its script.
    pub const fn run(self, script: Script) -> Rule {
        Rule { script, ..self.0 }
    }

    /// Completes the rule with a script that compares times. See [`Test::measured`].
    pub const fn measure(self, script: Script) -> Rule {
        Rule { script, measured: true, ..self.0 }
    }
}

impl Rule {
    /// Returns the first part of the id.
    pub fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }

    /// Plays the script.
    pub(crate) fn play(&self, t: &mut Test<'_>) -> Outcome {
        if self.measured { t.measured(self.script) } else { (self.script)(t) }
    }
}

/// A set of rules that a run selects from.
#[derive(Clone, Copy, Debug)]
pub struct Registry(&'static [&'static [&'static [Rule]]]);

impl Registry {
    /// Creates a set from folders of files of rules.
    pub const fn new(folders: &'static [&'static [&'static [Rule]]]) -> Self {
        Registry(folders)
    }

    /// Returns all rules, in the order in which they run.
    pub fn iter(self) -> impl Iterator<Item = &'static Rule> {
        self.0.iter().copied().flatten().copied().flatten()
    }

    /// Returns the rule of this id.
    pub fn find(self, id: &str) -> Option<&'static Rule> {
        self.iter().find(|rule| rule.id == id)
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
