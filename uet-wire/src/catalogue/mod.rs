//! The catalog of requirements. Each has a permanent identifier, a level and one sentence.
//!
//! Requirements on a single packet come first (`WIRE-`). Requirements on several packets are listed here too, so one
//! catalog holds all identifiers. Other crates check them.
//!
//! ```
//! use uet_wire::catalogue;
//!
//! let requirement = catalogue::find("WIRE-SES-003").unwrap();
//! assert_eq!(requirement.sentence, "A small or medium request is a whole message: som and eom are 1");
//! ```

/// A requirement on an implementation.
#[derive(Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The identifier in the form `AREA-TOPIC-NNN`. It never changes.
    pub id: &'static str,
    /// The severity of a violation.
    pub level: Level,
    /// The section of the specification, or the area if the section is unknown.
    pub section: &'static str,
    /// The requirement in one sentence.
    pub sentence: &'static str,
    /// The page of the project's documents that states it.
    pub source: &'static str,
    /// The number of independent public sources that are known to state it. 2 means two or more.
    pub evidence: u8,
}

/// The severity of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// An option, or a hint at an unusual packet.
    May,
    /// A peer can tolerate the violation.
    Should,
    /// The violation loses, duplicates, corrupts or misreads data, or makes a correct peer wait forever.
    Must,
}

impl Level {
    /// Returns `must`, `should` or `may`.
    pub const fn name(self) -> &'static str {
        match self {
            Level::May => "may",
            Level::Should => "should",
            Level::Must => "must",
        }
    }
}

/// Returns the requirement with this identifier, on an endpoint or on the network.
pub fn find(id: &str) -> Option<&'static Requirement> {
    ALL.iter().chain(NETWORK).copied().find(|requirement| requirement.id == id)
}

// A constant, the identifier, level, section, evidence, the page of `docs/`, the sentence without full stop.
macro_rules! catalogue {
    ($($NAME:ident $id:literal $level:ident $section:literal $evidence:literal $source:literal $sentence:literal;)*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $sentence, ".")]
            pub const $NAME: &Requirement = &Requirement {
                id: $id,
                level: Level::$level,
                section: $section,
                sentence: $sentence,
                source: $source,
                evidence: $evidence,
            };
        )*

        pub(super) const ALL: &[&Requirement] = &[$($NAME),*];
    };
}

mod cc;
mod net;
mod pds;
mod rationale;
mod rob;
mod ses;
mod tss;
mod wire;

pub use cc::*;
pub use net::*;
pub use pds::*;
pub use rob::*;
pub use ses::*;
pub use tss::*;
pub use wire::*;

const AREAS: [&[&Requirement]; 6] = [wire::ALL, pds::ALL, ses::ALL, cc::ALL, tss::ALL, rob::ALL];
const COUNT: usize = {
    let (mut area, mut count) = (0, 0);
    while area < AREAS.len() {
        (area, count) = (area + 1, count + AREAS[area].len());
    }
    count
};

/// All requirements on endpoints, by area.
pub const ALL: &[&Requirement] = &{
    let mut all = [wire::ALL[0]; COUNT];
    let (mut area, mut count) = (0, 0);
    while area < AREAS.len() {
        let mut i = 0;
        while i < AREAS[area].len() {
            all[count] = AREAS[area][i];
            (i, count) = (i + 1, count + 1);
        }
        area += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_well_formed_and_unique() {
        let all = || ALL.iter().chain(NETWORK);
        for (index, requirement) in all().enumerate() {
            let mut parts = requirement.id.split('-');
            let (area, topic, number) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            assert!(
                ["WIRE", "PDS", "SES", "CC", "RCCC", "TSS", "ROB", "NET"].contains(&area),
                "{}",
                requirement.id
            );
            assert!(topic.bytes().all(|byte| byte.is_ascii_uppercase()), "{}", requirement.id);
            assert!(
                number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit()),
                "{}",
                requirement.id
            );
            assert_eq!(parts.next(), None);
            assert!(!requirement.sentence.ends_with('.'), "{}", requirement.id);
            assert!(requirement.evidence > 0, "{}", requirement.id);
            assert!(all().take(index).all(|before| before.id != requirement.id), "{}", requirement.id);
            assert_eq!(find(requirement.id), Some(*requirement));
        }
        assert_eq!(find("WIRE-NONE-999"), None);
    }
}
