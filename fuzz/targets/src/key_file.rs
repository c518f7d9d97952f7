//! Arbitrary text as a key file.

use uet_packet_io::keys::{KeyRing, domains_from_toml};

/// The longest part of a key that an error may show, and the length of the longest number of a domain.
const SHOWN: usize = 7;
const NUMBER: usize = 20;

pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match domains_from_toml(text) {
        Err(error) => {
            assert!(!error.reason().is_empty());
            assert!(error.line().is_none_or(|line| (1..=text.matches('\n').count() + 1).contains(&line)));
            match KeyRing::from_toml(text) {
                Err(same) => assert_eq!(same, error),
                // Readers accept one key in two places.
                Ok(_) => assert!(error.reason().contains(" have one key; "), "{error}"),
            }
            let shown = format!("{error} {error:?}");
            assert!(!shows_digits(&shown, text, SHOWN), "{shown}");
        }
        Ok(domains) => {
            let ring = KeyRing::new(&domains).expect("the domains have been checked");
            assert!(domains.iter().all(|domain| ring.has(domain.sdi)));
            let json = serde_json::to_string(&domains).expect("it becomes JSON");
            assert_eq!(serde_json::from_str::<Vec<_>>(&json).ok(), Some(domains.clone()));
            let shown = format!("{domains:?} {ring:?}");
            assert!(!shows_digits(&shown, text, NUMBER), "{shown}");
        }
    }
}

/// Returns whether a message shows more than `most` hexadecimal digits of a text in a row.
fn shows_digits(message: &str, text: &str, most: usize) -> bool {
    let (message, text) = (message.to_ascii_lowercase(), text.to_ascii_lowercase());
    let runs = message.split(|letter: char| !letter.is_ascii_hexdigit());
    let long = runs.filter(|run| run.len() > most);
    long.flat_map(|run| (0..run.len() - most).map(|at| &run[at..=at + most])).any(|part| text.contains(part))
}
