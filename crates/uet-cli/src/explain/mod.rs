//! Meanings of names: fields, code points, headers, requirements, rules of the suite, parameters, abbreviations.

mod action;
mod item;
pub mod specification;

pub(crate) use item::kind;
pub use item::{Item, Kind};

use crate::near::near;
use std::sync::LazyLock;
use uet_conformance::RULES;
use uet_control::PARAMETERS;
use uet_wire::derived::DERIVED;
use uet_wire::layout::{self, Layout};
use uet_wire::registry::{self, Entry, Registry};
use uet_wire::{catalogue, layout::Kind as FieldKind};

/// Returns all items, by kind.
pub fn all() -> &'static [Item] {
    static ALL: LazyLock<Vec<Item>> = LazyLock::new(|| {
        let mut items = item::fields();
        items.extend(DERIVED.iter().map(|(name, meaning)| Item::derived(name, meaning)));
        for registry in registry::ALL {
            items.extend(registry.entries.iter().map(|entry| Item::code_point(registry, entry)));
        }
        items.extend(layout::ALL.iter().map(|layout| Item::header(layout)));
        let requirements = catalogue::ALL.iter().chain(catalogue::NETWORK);
        items.extend(requirements.map(|requirement| Item::requirement(requirement)));
        items.extend(RULES.iter().map(Item::rule));
        items.extend(PARAMETERS.iter().map(Item::parameter));
        items.extend(glossary().map(|(short, long, meaning)| Item::abbreviation(short, long, meaning)));
        items
    });
    &ALL
}

/// Returns the lines of the glossary: short form, long form, meaning.
fn glossary() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    include_str!("glossary.txt").lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut parts = line.splitn(3, " | ");
        Some((parts.next()?, parts.next()?, parts.next()?))
    })
}

/// Finds the items that these words name: a name, or a registry and a code point. The error suggests similar names.
pub fn explain(words: &[String]) -> Result<Vec<Item>, String> {
    let (first, rest) = words.split_first().ok_or("what?")?;
    // An instance is explained by its rule.
    if let (Some((rule, _)), []) = (first.split_once('['), rest) {
        return name(rule);
    }
    let phrase = words.join(" ");
    if all().iter().any(|item| item.name.eq_ignore_ascii_case(&phrase)) {
        return name(&phrase);
    }
    let (first, rest) = match (first.split_once('='), rest) {
        (Some((registry, code)), []) => (registry, code.to_owned()),
        _ => (first.as_str(), rest.join(" ")),
    };
    if rest.is_empty() { name(first) } else { code_point(first, &rest) }
}

/// Returns all items of this name.
fn name(word: &str) -> Result<Vec<Item>, String> {
    let mut found: Vec<Item> = all().iter().filter(|item| item.is_called(word)).cloned().collect();
    if found.is_empty() {
        found.extend(registries(word).into_iter().map(Item::registry));
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let digits = word.strip_prefix("0x").unwrap_or(word);
    if digits.chars().all(|digit| digit.is_ascii_hexdigit())
        && digits.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(format!(
            "{word} is a code point of many registries; name its registry too: uet explain nack {word}"
        ));
    }
    let known = all().iter().flat_map(|item| [item.id.as_str(), item.name.as_str()]);
    let meant = near(word, known);
    // A term without an entry, such as nonce, may be in the explanations of others.
    let mentions = |item: &&Item| item.meaning.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
    let mentions: Vec<&str> = all().iter().filter(mentions).map(|item| item.id.as_str()).take(3).collect();
    Err(match meant[..] {
        _ if !mentions.is_empty() => {
            format!("there is nothing called '{word}'; these mention it: {}", mentions.join(", "))
        }
        [] => format!("there is nothing called '{word}'; `uet explain` lists all names"),
        _ => format!("there is nothing called '{word}'; did you mean {}?", meant.join(" or ")),
    })
}

/// Returns a code point of a registry, by number or name.
fn code_point(word: &str, code: &str) -> Result<Vec<Item>, String> {
    let registries = registries(word);
    if registries.is_empty() {
        let known = registry::ALL.iter().map(|registry| registry.name).chain(coded().map(|(field, _)| field));
        return Err(match near(word, known)[..] {
            [] => format!("'{word}' has no code points; `uet explain` lists those of all registries"),
            ref meant => format!("'{word}' has no code points; did you mean {}?", meant.join(" or ")),
        });
    }
    let number = match code.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => code.parse().ok(),
    };
    let mut found = Vec::new();
    for registry in &registries {
        let fits = |number: &u8| usize::from(*number) < 1 << registry.width;
        let by_name = |entry: &&Entry| entry.name.eq_ignore_ascii_case(code);
        match (number.filter(fits), registry.entries.iter().find(by_name)) {
            (None, None) => {}
            (Some(number), _) => found.push(Item::code(registry, number)),
            (_, Some(entry)) => found.push(Item::code_point(registry, entry)),
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let known = || registries.iter().flat_map(|registry| registry.entries).map(|entry| entry.name);
    let widest = registries.iter().map(|registry| (1u16 << registry.width) - 1).max().unwrap_or(0);
    Err(match near(code, known())[..] {
        [] => format!("{word} has no code point '{code}'; write a number up to {widest}, or a name"),
        ref meant => format!("{word} has no code point '{code}'; did you mean {}?", meant.join(" or ")),
    })
}

/// Returns the fields that hold code points.
fn coded() -> impl Iterator<Item = (&'static str, &'static Registry)> {
    layout::ALL.iter().copied().flat_map(Layout::fields).filter_map(|place| match place.row.kind {
        FieldKind::Code(registry) => Some((place.row.name, registry)),
        _ => None,
    })
}

/// Returns the registries that a word may mean: `NackCode`, `nack`, `nack_code`, `pds.nack_code`.
fn registries(word: &str) -> Vec<&'static Registry> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '-'], "");
    let word = plain(word);
    let of = |is: &dyn Fn(&str) -> bool| -> Vec<&'static Registry> {
        let by_field =
            |registry: &Registry| coded().any(|(field, of)| of.name == registry.name && is(&plain(field)));
        registry::ALL
            .iter()
            .copied()
            .filter(|registry| is(&plain(registry.name)) || by_field(registry))
            .collect()
    };
    let last = |name: &str| name.rsplit('.').next() == Some(&word);
    match of(&|name| name == word || last(name)) {
        exact if !exact.is_empty() => exact,
        _ if word.len() < 2 => Vec::new(),
        _ => of(&|name| {
            name.starts_with(&word) || name.rsplit('.').next().is_some_and(|n| n.starts_with(&word))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        explain(&words).unwrap_or_default().into_iter().map(|item| item.id).collect()
    }

    #[test]
    fn a_code_point_is_found_by_number_and_by_name() {
        for words in [
            &["nack", "0x0f"][..],
            &["nack", "15"],
            &["pds.nack_code", "0x0f"],
            &["nack_code=15"],
            &["NackCode", "pdc_hdr_mismatch"],
            &["PDC_HDR_MISMATCH"],
            &["NackCode.PDC_HDR_MISMATCH"],
        ] {
            assert_eq!(ids(words), ["NackCode.PDC_HDR_MISMATCH"], "{words:?}");
        }
    }

    #[test]
    fn every_item_is_found_by_its_id() {
        for item in all() {
            assert!(ids(&[&item.id]).contains(&item.id), "{}", item.id);
        }
    }

    #[test]
    fn words_that_other_commands_print_are_explained() {
        for word in ["counter-back", "dup", "malformed", "not-authentic", "old-epoch"] {
            assert_eq!(ids(&[word]), [word]);
        }
    }

    #[test]
    fn ids_are_unique_and_hold_no_space() {
        let mut ids: Vec<&str> = all().iter().map(|item| item.id.as_str()).collect();
        assert!(ids.iter().all(|id| !id.contains(' ')));
        ids.sort_unstable();
        let before = ids.len();
        ids.dedup();
        // An abbreviation may be the name of a header: only rule distinguishes `nack` from NACK.
        assert_eq!(ids.len(), before);
    }

    #[test]
    fn the_glossary_is_whole_and_sorted() {
        let lines = include_str!("glossary.txt").lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(glossary().count(), lines);
        assert!(glossary().map(|(short, ..)| short).is_sorted());
    }
}
