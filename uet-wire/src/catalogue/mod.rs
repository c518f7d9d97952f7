//! The catalogue of requirements: each with an identifier that never changes, a level and one sentence.
//!
//! It opens with what a single packet shows (`WIRE-`). Behaviour over several packets is listed here too, so
//! that there is one place to look an identifier up; who judges it lies in other crates.
//!
//! ```
//! use uet_wire::catalogue;
//!
//! let requirement = catalogue::find("WIRE-SES-003").unwrap();
//! assert_eq!(requirement.sentence, "A small or medium request is a whole message: som and eom are 1");
//! ```

/// One thing that an implementation has to do, or not to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Requirement {
    /// `AREA-TOPIC-NNN`, for ever.
    pub id: &'static str,
    /// How grave it is to break it.
    pub level: Level,
    /// The section of the specification, or the area where the section is not known.
    pub section: &'static str,
    /// The requirement.
    pub sentence: &'static str,
    /// Where the project's own documents say so.
    pub source: &'static str,
    /// How many independent public sources say so, as far as known: 2 stands for at least two.
    pub evidence: u8,
}

/// How grave it is to break a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// An option, or a hint that something is unusual.
    May,
    /// A peer can live with it.
    Should,
    /// Data is lost, duplicated, corrupted or misread, or a correct peer waits for ever.
    Must,
}

impl Level {
    /// `must`, `should`, `may`.
    pub const fn name(self) -> &'static str {
        match self {
            Level::May => "may",
            Level::Should => "should",
            Level::Must => "must",
        }
    }
}

/// The requirement with this identifier.
pub fn find(id: &str) -> Option<&'static Requirement> {
    ALL.iter().copied().find(|requirement| requirement.id == id)
}

// A constant, the identifier, level, section, evidence, the page of `docs/` that says so, the sentence without full stop.
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
mod pds;
mod rob;
mod ses;
mod wire;

pub use cc::*;
pub use pds::*;
pub use rob::*;
pub use ses::*;
pub use wire::*;

const AREAS: [&[&Requirement]; 5] = [wire::ALL, pds::ALL, ses::ALL, cc::ALL, rob::ALL];
const COUNT: usize = AREAS[0].len() + AREAS[1].len() + AREAS[2].len() + AREAS[3].len() + AREAS[4].len();

/// All requirements, by area.
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
        for (index, requirement) in ALL.iter().enumerate() {
            let mut parts = requirement.id.split('-');
            let (area, topic, number) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            assert!(["WIRE", "PDS", "SES", "CC", "RCCC", "ROB"].contains(&area), "{}", requirement.id);
            assert!(topic.bytes().all(|byte| byte.is_ascii_uppercase()), "{}", requirement.id);
            assert!(
                number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit()),
                "{}",
                requirement.id
            );
            assert_eq!(parts.next(), None);
            assert!(!requirement.sentence.ends_with('.'), "{}", requirement.id);
            assert!(requirement.evidence > 0, "{}", requirement.id);
            assert!(ALL.iter().take(index).all(|before| before.id != requirement.id), "{}", requirement.id);
            assert_eq!(find(requirement.id), Some(*requirement));
        }
        assert_eq!(find("WIRE-NONE-999"), None);
    }
}
