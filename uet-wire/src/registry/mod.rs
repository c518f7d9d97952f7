//! The registries: every code point with its name.
//!
//! A code point is a number, with a name if the registry has one. Unknown numbers are valid values: they are parsed,
//! kept, printed as numbers and written back.
//!
//! ```
//! use uet_wire::registry::{NackCode, Opcode, PdsType};
//!
//! assert_eq!(PdsType::RUD_REQ.to_string(), "RUD_REQ");
//! assert_eq!(Opcode::new(0x2a).unwrap().to_string(), "0x2a");
//! assert_eq!(Opcode::new(64), None, "an opcode has six bits");
//! match NackCode::new(0x0d).unwrap() {
//!     NackCode::ROD_OOO => {}
//!     other => panic!("{other}"),
//! }
//! assert_eq!("UET_WRITE".parse(), Ok(Opcode::UET_WRITE));
//! ```

mod pds;
mod ses;

pub use pds::*;
pub use ses::*;

use crate::Spec;
use crate::layout::same;

/// A released version of the Ultra Ethernet specification. [`Version::spec`] returns its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Version {
    /// Version 1.0.1.
    V1_0_1,
    /// Version 1.0.2.
    V1_0_2,
    /// Version 1.0.3, of July 2026.
    #[default]
    V1_0_3,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: &'static [Version] = &[Version::V1_0_1, Version::V1_0_2, Version::V1_0_3];

    /// Returns the version number, such as `1.0.3`.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V1_0_1 => "1.0.1",
            Version::V1_0_2 => "1.0.2",
            Version::V1_0_3 => "1.0.3",
        }
    }
}

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// The code points of a field, as data. `Debug` shows only the name.
#[derive(PartialEq)]
pub struct Registry {
    /// The name of the type in this crate: `PdsType`.
    pub name: &'static str,
    /// The subject of the registry in words.
    pub title: &'static str,
    /// The width of the field in bits.
    pub width: usize,
    /// The code points that have a name.
    pub entries: &'static [Entry],
    /// The ranges left to vendors, both ends included.
    pub vendor: &'static [(u8, u8)],
}

/// A code point that has a name.
#[derive(Debug, PartialEq)]
pub struct Entry {
    /// The number.
    pub code: u8,
    /// The canonical name.
    pub name: &'static str,
    /// The meaning in one line.
    pub doc: &'static str,
    /// The version that added the code point. `None` for the first version.
    pub since: Option<Version>,
    /// The version that reserved the code point again.
    pub until: Option<Version>,
}

/// The status of a code point in a version of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has a meaning.
    Assigned,
    /// It is left to vendors.
    Vendor,
    /// The specification removed it, or has not yet added it.
    OtherVersion,
    /// It is reserved.
    Reserved,
}

impl core::fmt::Debug for Registry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Registry({})", self.name)
    }
}

impl Registry {
    /// Returns the words of the name: `Pds` and `Type`.
    ///
    /// ```
    /// use uet_wire::registry::PdsType;
    ///
    /// assert!(PdsType::REGISTRY.words().eq(["Pds", "Type"]));
    /// ```
    pub fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        let mut rest = self.name;
        core::iter::from_fn(move || {
            let next = rest.bytes().skip(1).position(|letter| letter.is_ascii_uppercase());
            let (word, after) = rest.split_at_checked(next.map_or(rest.len(), |at| at + 1))?;
            rest = after;
            (!word.is_empty()).then_some(word)
        })
    }

    /// Returns the entry of this number.
    pub const fn entry(&self, code: u8) -> Option<&'static Entry> {
        let mut i = 0;
        while i < self.entries.len() {
            if self.entries[i].code == code {
                return Some(&self.entries[i]);
            }
            i += 1;
        }
        None
    }

    /// Returns the status of this number in a version of the specification.
    pub fn status(&self, code: u8, spec: impl Into<&'static Spec>) -> Status {
        spec.into().status(self, code)
    }

    /// Returns the numbers that a version neither assigns nor leaves to vendors, in ascending order.
    ///
    /// ```
    /// use uet_wire::Version;
    /// use uet_wire::registry::NackCode;
    ///
    /// // TRIMMED_ACK is gone since 1.0.3.
    /// assert!(!NackCode::REGISTRY.unassigned(Version::V1_0_2).any(|code| code == 3));
    /// assert!(NackCode::REGISTRY.unassigned(Version::V1_0_3).any(|code| code == 3));
    /// ```
    pub fn unassigned(&self, spec: impl Into<&'static Spec>) -> impl Iterator<Item = u8> + Clone {
        let spec = spec.into();
        let all = 0..=u8::MAX >> (8 - self.width);
        all.filter(move |code| matches!(spec.status(self, *code), Status::Reserved | Status::OtherVersion))
    }

    /// Returns the status of this number in a released version.
    pub(crate) const fn released_status(&self, code: u8, version: Version) -> Status {
        match self.entry(code) {
            Some(entry) if entry.is_reserved() => Status::Reserved,
            Some(Entry { since: Some(since), .. }) if (version as u8) < *since as u8 => Status::OtherVersion,
            Some(Entry { until: Some(until), .. }) if version as u8 >= *until as u8 => Status::OtherVersion,
            Some(_) => Status::Assigned,
            None if self.is_vendors(code) => Status::Vendor,
            None => Status::Reserved,
        }
    }

    const fn is_vendors(&self, code: u8) -> bool {
        let mut i = 0;
        while i < self.vendor.len() {
            if self.vendor[i].0 <= code && code <= self.vendor[i].1 {
                return true;
            }
            i += 1;
        }
        false
    }

    /// Returns the numbers that a released version assigns or leaves to vendors, as bits.
    pub(crate) const fn known(&self, version: Version) -> [u64; 4] {
        let mut known = [0; 4];
        let mut code = 0;
        while code < 1 << self.width {
            if let Status::Assigned | Status::Vendor = self.released_status(code as u8, version) {
                known[code / 64] |= 1 << (code % 64);
            }
            code += 1;
        }
        known
    }
}

impl Entry {
    pub(crate) const fn is_reserved(&self) -> bool {
        same(self.name, "RESERVED")
    }
}

macro_rules! registry {
    (
        $(#[$meta:meta])*
        $Name:ident($width:literal) $title:literal $(vendor $vlo:literal..=$vhi:literal)* {
            $($code:literal $NAME:ident $doc:literal $(since $since:ident)? $(until $until:ident)?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $Name(u8);

        impl $Name {
            $(
                #[doc = concat!("`", stringify!($code), "`: ", $doc, ".")]
                pub const $NAME: $Name = $Name($code);
            )*

            /// The registry as data.
            pub const REGISTRY: &'static $crate::registry::Registry = &$crate::registry::Registry {
                name: stringify!($Name),
                title: $title,
                width: $width,
                entries: &[$($crate::registry::Entry {
                    code: $code,
                    name: stringify!($NAME),
                    doc: $doc,
                    since: $crate::registry::registry!(@version $($since)?),
                    until: $crate::registry::registry!(@version $($until)?),
                }),*],
                vendor: &[$(($vlo, $vhi)),*],
            };

            /// Creates the code point with this number, or returns `None` if the field cannot hold it.
            #[inline]
            pub const fn new(code: u8) -> Option<Self> {
                if code as u128 <= $crate::bits::mask($width) { Some($Name(code)) } else { None }
            }

            /// Returns the number.
            #[inline]
            pub const fn code(self) -> u8 {
                self.0
            }

            /// Returns the canonical name, if the registry has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($NAME)),)*
                    _ => None,
                }
            }

            /// Returns the status in a version of the specification.
            pub fn status(self, spec: impl Into<&'static $crate::Spec>) -> $crate::registry::Status {
                spec.into().status(Self::REGISTRY, self.0)
            }

            /// Returns the code points that a version of the specification neither assigns nor leaves to vendors.
            pub fn unassigned(spec: impl Into<&'static $crate::Spec>) -> impl Iterator<Item = Self> + Clone {
                Self::REGISTRY.unassigned(spec).map($Name)
            }

            /// Returns true if `spec` assigns the code point or leaves it to vendors.
            #[inline(always)]
            pub(crate) const fn is_known(self, spec: &$crate::Spec) -> bool {
                const INDEX: usize = $Name::REGISTRY.index();
                spec.knows(INDEX, self.0)
            }

            /// Returns a set of these code points, for a condition on a field of at most six bits.
            #[allow(dead_code)] // only some registries decide about other fields
            pub(crate) const fn set(codes: &[$Name]) -> $crate::layout::Values {
                let mut set = $crate::layout::Values(0);
                let mut i = 0;
                while i < codes.len() {
                    set = set.or($crate::layout::is(codes[i].0));
                    i += 1;
                }
                set
            }
        }

        impl core::fmt::Display for $Name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => write!(f, "{:#04x}", self.0),
                }
            }
        }

        impl core::fmt::Debug for $Name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }

        impl core::str::FromStr for $Name {
            type Err = $crate::registry::UnknownName;

            /// Parses a canonical name.
            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match Self::REGISTRY.entries.iter().find(|entry| entry.name == name) {
                    Some(entry) => Ok($Name(entry.code)),
                    None => Err($crate::registry::UnknownName { registry: stringify!($Name) }),
                }
            }
        }

        $crate::value::value! {
            $Name: $crate::layout::Kind::Code($Name::REGISTRY), |raw| $Name(raw as u8), |this| this.0 as u128, $Name::is_known;
        }

        #[cfg(feature = "serde")]
        $crate::with_serde::number! {
            $Name: stringify!($Name), $width, $crate::layout::Kind::Code($Name::REGISTRY), $Name::code, |raw| $Name(raw as u8);
        }
        #[cfg(feature = "arbitrary")]
        $crate::with_arbitrary::number! { $Name: $width, |raw| $Name(raw as u8); }
        #[cfg(feature = "proptest")]
        $crate::with_proptest::number! { $Name: $width, |raw| $Name(raw as u8); }

        impl $Name {
            const _WIDTH: () = assert!($width <= 8);
        }
    };
    (@version) => { None };
    (@version $version:ident) => { Some($crate::registry::Version::$version) };
}
pub(crate) use registry;

/// The error for a name that a registry does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The registry that was searched.
    pub registry: &'static str,
}

impl core::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} has no code point of this name", self.registry)
    }
}

impl core::error::Error for UnknownName {}

/// Every registry of this crate.
pub const ALL: &[&Registry] = &[
    PdsType::REGISTRY,
    NextHdr::REGISTRY,
    CtlType::REGISTRY,
    AckRequest::REGISTRY,
    CcType::REGISTRY,
    CcxType::REGISTRY,
    NackCode::REGISTRY,
    Opcode::REGISTRY,
    AtomicOpcode::REGISTRY,
    AtomicDatatype::REGISTRY,
    ResponseOpcode::REGISTRY,
    List::REGISTRY,
    ReturnCode::REGISTRY,
];
