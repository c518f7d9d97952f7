//! Arbitrary text as a key file.

use uet_keys::{KeyRing, domains_from_toml};

/// The longest part of a key that a message may show.
const SHOWN: usize = 7;

pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let shown = match domains_from_toml(text) {
        Err(error) => {
            assert!(!error.reason().is_empty());
            assert!(error.line().is_none_or(|line| (1..=text.matches('\n').count() + 1).contains(&line)));
            assert_eq!(KeyRing::from_toml(text).err(), Some(error.clone()));
            format!("{error} {error:?}")
        }
        Ok(domains) => {
            let ring = KeyRing::new(&domains).expect("the domains have been checked");
            assert!(domains.iter().all(|domain| ring.has(domain.sdi)));
            let json = serde_json::to_string(&domains).expect("it becomes JSON");
            assert_eq!(serde_json::from_str::<Vec<_>>(&json).ok(), Some(domains.clone()));
            format!("{domains:?} {ring:?}")
        }
    };
    assert!(!shows_digits(&shown, text), "{shown}");
}

/// Returns whether a message shows more hexadecimal digits of a text in a row than it may.
fn shows_digits(message: &str, text: &str) -> bool {
    let (message, text) = (message.to_ascii_lowercase(), text.to_ascii_lowercase());
    let runs = message.split(|letter: char| !letter.is_ascii_hexdigit());
    let long = runs.filter(|run| run.len() > SHOWN);
    long.flat_map(|run| (0..run.len() - SHOWN).map(|at| &run[at..=at + SHOWN])).any(|part| text.contains(part))
}
