//! Suggestions for unknown words.

/// Returns the known words closest to `word`, the closest first. Omits distant ones.
pub fn near<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const CLOSE: f64 = 0.75;
    const SHOWN: usize = 3;
    // The comparison takes as many steps as the product of both lengths, and no known word is this long.
    const LONGEST: usize = 200;
    if word.len() > LONGEST {
        return Vec::new();
    }
    let word = word.to_ascii_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .map(|known| {
            let lower = known.to_ascii_lowercase();
            // Users often omit the layer of a name, or what all names of a table begin with.
            let last = lower.rsplit('.').next().unwrap_or(&lower);
            let last = last.strip_prefix("uet_").unwrap_or(last);
            (likeness(&word, &lower).max(likeness(&word, last)), known)
        })
        .filter(|(score, _)| *score >= CLOSE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by_key(|(_, known)| *known);
    scored.into_iter().take(SHOWN).map(|(_, known)| known).collect()
}

fn likeness(a: &str, b: &str) -> f64 {
    // One typing error, also in a short word.
    const SLIP: f64 = 0.97;
    let similar = strsim::jaro_winkler(a, b);
    if strsim::damerau_levenshtein(a, b) == 1 { similar.max(SLIP) } else { similar }
}

/// Returns an error text for an unknown word with similar known words.
///
/// ```
/// let message = uet_cli::near::unknown("color", "blu", ["red", "blue"].into_iter());
/// assert_eq!(message, "there is no color 'blu'; did you mean blue?");
/// ```
pub fn unknown<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    format!("there is no {what} '{word}'{}", advice(word, known))
}

/// Returns an error text for a capability that no rule needs, with similar ones.
pub fn unneeded<'a>(capability: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    format!("no rule needs the capability '{capability}'{}", advice(capability, known))
}

/// Names similar words, or else all if they are few.
fn advice<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let meant = near(word, known.clone());
    let all: Vec<&str> = known.take(21).collect();
    match meant[..] {
        [] if all.len() <= 20 => format!("; there are {}", all.join(", ")),
        [] => String::new(),
        _ => format!("; did you mean {}?", meant.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{near, unneeded};

    #[test]
    fn capability_without_rules_is_named() {
        let text = unneeded("atomik", ["atomic", "write"].into_iter());
        assert_eq!(text, "no rule needs the capability 'atomik'; did you mean atomic?");
    }

    #[test]
    fn what_all_names_begin_with_may_be_omitted() {
        assert_eq!(near("write", ["UET_READ", "UET_WRITE"].into_iter()), ["UET_WRITE"]);
    }

    #[test]
    fn long_word_is_near_nothing() {
        assert_eq!(near("aaaaaaab", ["aaaaaaaa"].into_iter()), ["aaaaaaaa"]);
        let long = "a".repeat(1 << 10);
        assert!(near(&long, [long.as_str()].into_iter()).is_empty());
    }
}
