//! Versions of the specification, as data.
//!
//! A [`Spec`] contains the assigned code points, the header layouts and the rules for packets. Validation, JSON, the
//! conformance suite and the Wireshark tables take a `Spec`. [`Spec::ALL`] lists the released versions; [`Version`]
//! names them. To define another version, start a `static` from a released one:
//!
//! ```
//! use uet_wire::registry::{Entry, NackCode};
//! use uet_wire::{Spec, Uet, Version};
//!
//! static TOO_WARM: Entry = Entry { code: 0x1b, name: "TOO_WARM", doc: "the receiver overheats", since: None, until: None };
//! static NEXT: Spec = Spec::new("next", Version::V1_0_3).with_codes(&[(NackCode::REGISTRY, &TOO_WARM)]);
//!
//! let nack = [0x50, 0, 0x1b, 0, 0, 0, 1, 0x4d, 0x80, 1, 0x40, 1, 0, 0, 0, 0];
//! let packet = Uet::parse(&nack)?;
//! assert_eq!(packet.validate(Version::V1_0_3).count(), 1);
//! assert_eq!(packet.validate(&NEXT).count(), 0);
//! # Ok::<(), uet_wire::ParseError>(())
//! ```
//!
//! A spec changes rows of headers, not their lengths, and adds no header. The parser and the typed accessors therefore
//! read all versions alike. To read a changed row, use [`Spec::layout`]: `spec.layout(Ack::LAYOUT).present(bytes)`.

use crate::catalogue::Requirement;
use crate::layout::{Layout, same};
use crate::registry::{self, Entry, Registry, Status, Version};
use crate::validate::{RULES, Rule};

/// A version of the specification: code points, layouts and rules.
///
/// Two specs are equal when they have the same name.
pub struct Spec {
    name: &'static str,
    released: Version,
    codes: &'static [(&'static Registry, &'static Entry)],
    layouts: &'static [&'static Layout],
    dropped: &'static [&'static Requirement],
    rules: &'static [Rule],
    /// True if the compiled checks of the headers and of [`RULES`] are valid for this version.
    pub(crate) is_compiled: bool,
    /// The code points of each registry that are assigned or left to vendors, as bits. The compiled checks look up
    /// every code point of every packet here.
    known: [[u64; 4]; registry::ALL.len()],
}

static V1_0_1: Spec = Spec::new("1.0.1", Version::V1_0_1);
static V1_0_2: Spec = Spec::new("1.0.2", Version::V1_0_2);
static V1_0_3: Spec = Spec::new("1.0.3", Version::V1_0_3);

impl Spec {
    /// The released versions, oldest first.
    pub const ALL: &'static [&'static Spec] = &[&V1_0_1, &V1_0_2, &V1_0_3];

    /// Creates a version with the content of `released`. Reports show `name`.
    pub const fn new(name: &'static str, released: Version) -> Self {
        let mut known = [[0; 4]; registry::ALL.len()];
        let mut i = 0;
        while i < registry::ALL.len() {
            known[i] = registry::ALL[i].known(released);
            i += 1;
        }
        Spec { name, released, codes: &[], layouts: &[], dropped: &[], rules: &[], is_compiled: true, known }
    }

    /// Adds code points, or redefines those with the same number. An entry with the name `RESERVED` removes a code
    /// point.
    pub const fn with_codes(mut self, codes: &'static [(&'static Registry, &'static Entry)]) -> Self {
        let mut i = 0;
        while i < codes.len() {
            let (registry, entry) = codes[i];
            let word = &mut self.known[registry.index()][entry.code as usize / 64];
            let bit = 1 << (entry.code % 64);
            if entry.is_reserved() {
                *word &= !bit;
            } else {
                *word |= bit;
            }
            i += 1;
        }
        self.codes = codes;
        self
    }

    /// Replaces the layouts with the same names. Create them with [`Layout::revised`].
    pub const fn with_layouts(mut self, layouts: &'static [&'static Layout]) -> Self {
        self.layouts = layouts;
        self.is_compiled = false;
        self
    }

    /// Removes all rules of the requirements in `dropped`, and adds `rules`. To change a rule, drop its requirement and
    /// add all its rules again.
    pub const fn with_rules(
        mut self,
        dropped: &'static [&'static Requirement],
        rules: &'static [Rule],
    ) -> Self {
        self.dropped = dropped;
        self.rules = rules;
        self.is_compiled = false;
        self
    }

    /// Returns the name, such as `1.0.3`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the released version on which this version is based.
    pub const fn released(&self) -> Version {
        self.released
    }

    /// Returns the status of a number in this version.
    pub fn status(&self, registry: &Registry, code: u8) -> Status {
        match self.own_entry(registry, code) {
            Some(entry) if entry.is_reserved() => Status::Reserved,
            Some(_) => Status::Assigned,
            None => registry.released_status(code, self.released),
        }
    }

    /// Returns the entry of a number: its name and meaning. Includes entries of other released versions.
    pub fn entry(&self, registry: &Registry, code: u8) -> Option<&'static Entry> {
        self.own_entry(registry, code).or_else(|| registry.entry(code))
    }

    fn own_entry(&self, registry: &Registry, code: u8) -> Option<&'static Entry> {
        let own = self.codes.iter().find(|(of, entry)| of.name == registry.name && entry.code == code);
        own.map(|(_, entry)| *entry)
    }

    /// Returns this version's layout of the header `layout`.
    pub fn layout(&self, layout: &'static Layout) -> &'static Layout {
        self.revised(layout).unwrap_or(layout)
    }

    /// Returns this version's layout of the header `layout` if it differs.
    pub(crate) fn revised(&self, layout: &Layout) -> Option<&'static Layout> {
        self.layouts.iter().copied().find(|own| own.name == layout.name)
    }

    /// Returns the rules of this version: its own, and those of [`RULES`] that it keeps.
    pub fn rules(&self) -> impl Iterator<Item = &'static Rule> + Clone + use<'_> {
        RULES.iter().filter(|rule| self.keeps(rule)).chain(self.rules)
    }

    /// Returns the rules that only this version has.
    pub(crate) fn own_rules(&self) -> &'static [Rule] {
        self.rules
    }

    /// Returns true if this version has not dropped this rule.
    pub(crate) fn keeps(&self, rule: &Rule) -> bool {
        !self.dropped.iter().any(|dropped| dropped.id == rule.requirement.id)
    }

    /// Returns true if a number of the registry with this index is assigned or left to vendors.
    #[inline(always)]
    pub(crate) const fn knows(&self, index: usize, code: u8) -> bool {
        self.known[index][code as usize / 64] >> (code % 64) & 1 == 1
    }
}

impl Default for &'static Spec {
    /// Returns the newest released version.
    fn default() -> Self {
        Version::default().spec()
    }
}

impl From<Version> for &'static Spec {
    #[inline]
    fn from(version: Version) -> Self {
        version.spec()
    }
}

impl Version {
    /// The content of this version.
    #[inline]
    pub const fn spec(self) -> &'static Spec {
        match self {
            Version::V1_0_1 => &V1_0_1,
            Version::V1_0_2 => &V1_0_2,
            Version::V1_0_3 => &V1_0_3,
        }
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Spec {}

impl core::hash::Hash for Spec {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl core::fmt::Debug for Spec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Spec({})", self.name)
    }
}

impl core::fmt::Display for Spec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name)
    }
}

impl Registry {
    /// Returns the index of the registry in [`registry::ALL`].
    pub(crate) const fn index(&self) -> usize {
        let mut i = 0;
        while !same(registry::ALL[i].name, self.name) {
            i += 1;
        }
        i
    }
}
