//! From a file, or from the operation `install_keys`, to checked domains.

use crate::keys::KeyError;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;
use uet_control::{KeyMode, SecureDomain, SsiContext};
use uet_wire::tss::{Domain, DomainKey, Ipv6SsiContext, Mode};
use zeroize::Zeroizing;

/// Maximum number of domains in a file, and of a ring.
pub(crate) const DOMAINS: usize = 4096;

/// Maximum number of keys for an association number. A captured packet may cost an attempt with each.
const KEYS: usize = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    domain: Vec<Spanned<SecureDomain>>,
}

/// Reads the domains of a key file for a sender, and checks them. Refuses a key that stands in two places.
pub fn domains_from_toml(text: &str) -> Result<Vec<SecureDomain>, KeyError> {
    let (domains, lines): (Vec<_>, Vec<_>) = parse(text)?.into_iter().unzip();
    unique(&domains).map_err(|(at, error)| lines.get(at).map_or(error.clone(), |line| error.at(*line)))?;
    Ok(domains)
}

/// Reads the domains of a key file, each with its line, and checks each by itself.
pub(crate) fn parse(text: &str) -> Result<Vec<(SecureDomain, usize)>, KeyError> {
    let line = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
    let file: File = toml::from_str(text).map_err(|error| KeyError::of_parser(&error, text))?;
    if file.domain.is_empty() {
        return Err(KeyError::new("the file has no [[domain]]"));
    }
    if file.domain.len() > DOMAINS {
        return Err(KeyError::new(format!("the file has more than {DOMAINS} domains")));
    }
    let mut seen = BTreeSet::new();
    let mut domains = Vec::new();
    for entry in file.domain {
        let at = line(entry.span().start);
        let entry = entry.into_inner();
        domain(&entry).and_then(|_| secrets(&entry)).map_err(|error| error.at(at))?;
        if !seen.insert(entry.sdi) {
            return Err(KeyError::new(format!("sdi: two domains have the number {:#08x}", entry.sdi)).at(at));
        }
        domains.push((entry, at));
    }
    Ok(domains)
}

/// Refuses a key that stands in two places: two senders would count its packets, and could repeat an IV.
pub fn check_unique(domains: &[SecureDomain]) -> Result<(), KeyError> {
    unique(domains).map_err(|(_, error)| error)
}

/// Checks it as [`check_unique`] does. An error comes with the index of the second domain.
fn unique(domains: &[SecureDomain]) -> Result<(), (usize, KeyError)> {
    let mut seen = BTreeMap::new();
    for (at, entry) in domains.iter().enumerate() {
        for (an, keys) in secrets(entry).map_err(|error| (at, error))?.iter().enumerate() {
            for key in keys {
                let place = format!("AN {an} of domain {:#08x}", entry.sdi);
                if let Some(first) = seen.insert(key.fingerprint(), place.clone()) {
                    let reason =
                        format!("keys: {first} and {place} have one key; give each place a key of its own");
                    return Err((at, KeyError::new(reason)));
                }
            }
        }
    }
    Ok(())
}

/// Returns the settings of a domain, checked.
pub fn domain(entry: &SecureDomain) -> Result<Domain, KeyError> {
    let mode = match entry.mode {
        KeyMode::Direct => Mode::Direct,
        KeyMode::Cluster => Mode::Cluster,
        KeyMode::Client => Mode::Client,
        KeyMode::Server => Mode::Server,
    };
    let domain = Domain {
        ssi: entry.ssi,
        rekey_mask: entry.rekey_mask,
        rekey_shift: entry.rekey_shift,
        confidentiality_offset: entry.confidentiality_offset,
        ipv6_ssi_context: match entry.ipv6_ssi_context {
            SsiContext::Address => Ipv6SsiContext::Address,
            SsiContext::Ssi => Ipv6SsiContext::Ssi,
        },
        ..Domain::new(entry.sdi, mode)
    };
    domain.check().map_err(|error| KeyError::new(error.to_string()))?;
    if entry.an > 1 {
        return Err(KeyError::new("an: an association number is 0 or 1"));
    }
    Ok(domain)
}

/// Returns the keys of a domain by association number, checked.
pub fn secrets(entry: &SecureDomain) -> Result<[Vec<DomainKey>; 2], KeyError> {
    let mut keys = [Vec::new(), Vec::new()];
    for (an, listed) in &entry.keys {
        let slot = match an.as_str() {
            "0" => 0,
            "1" => 1,
            _ => return Err(KeyError::new("keys: an association number is 0 or 1")),
        };
        if listed.iter().nth(KEYS).is_some() {
            return Err(KeyError::new(format!("keys: an association number has at most {KEYS} keys")));
        }
        for secret in listed.iter() {
            let bytes = bytes(&secret.0)?;
            let key = DomainKey::new(&bytes).map_err(|_| length(secret.0.len()))?;
            if key.is_client() != (entry.mode == KeyMode::Client) {
                return Err(KeyError::new(match entry.mode {
                    KeyMode::Client => "keys: a client holds 88 hexadecimal digits: its key and its IV mask",
                    _ => "keys: only a client (mode = \"client\") holds 88 hexadecimal digits",
                }));
            }
            keys[slot].push(key);
        }
    }
    match keys.iter().all(Vec::is_empty) {
        true => Err(KeyError::new("keys: the domain has no key")),
        false => Ok(keys),
    }
}

fn length(digits: usize) -> KeyError {
    KeyError::new(format!("keys: a key has 64 hexadecimal digits, or 88 for a client; this one has {digits}"))
}

fn bytes(digits: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    if !digits.is_ascii() || digits.bytes().any(|digit| !digit.is_ascii_hexdigit()) {
        return Err(KeyError::new("keys: a key has hexadecimal digits only"));
    }
    if digits.len() != 64 && digits.len() != 88 {
        return Err(length(digits.len()));
    }
    let pair =
        |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0);
    Ok(Zeroizing::new((0..digits.len()).step_by(2).map(pair).collect()))
}
