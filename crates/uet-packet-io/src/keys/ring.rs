use crate::keys::file::{DOMAINS, parse};
use crate::keys::{KeyError, domain, secrets};
use std::collections::BTreeMap;
use uet_control::SecureDomain;
use uet_wire::tss::{
    Direction, Domain, DomainKey, ICV, KeyCache, KeyId, KeyIv, Mode, Outer, PacketKey, Tss, TssError,
};

/// Number of derived keys that a ring keeps.
const KEYS: usize = 512;

/// The keys of secure domains, for packets of which no state is known: captures.
#[derive(Debug)]
pub struct KeyRing {
    domains: BTreeMap<u32, (Domain, [Vec<DomainKey>; 2])>,
    cache: Box<KeyCache<KEYS>>,
}

/// The outcome for a packet that a ring has tried to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opened {
    /// The packet is authentic, and is decrypted.
    Authentic {
        /// The secret that opened it: its place in the list of its association number.
        key: usize,
        /// The key and the IV of the packet.
        key_iv: KeyIv,
    },
    /// There are keys, and none fits: the packet has changed, or the keys are wrong.
    NotAuthentic,
    /// No domain of the ring has this number.
    NoDomain,
    /// The domain has no key with this association number.
    NoKey,
    /// The packet cannot be tried.
    Unfit(TssError),
}

impl Opened {
    /// Returns if the packet is authentic; `None` if that is unknown.
    pub fn authenticated(self) -> Option<bool> {
        match self {
            Opened::Authentic { .. } => Some(true),
            Opened::NotAuthentic => Some(false),
            Opened::NoDomain | Opened::NoKey | Opened::Unfit(_) => None,
        }
    }

    /// Returns the place of the secret that opened the packet, and the key and IV of the packet.
    pub fn key(self) -> Option<(usize, KeyIv)> {
        match self {
            Opened::Authentic { key, key_iv } => Some((key, key_iv)),
            _ => None,
        }
    }

    /// Returns the reason why the packet is not decrypted.
    pub fn reason(self) -> Option<String> {
        match self {
            Opened::Authentic { .. } => None,
            Opened::NotAuthentic => Some("the ICV is wrong".into()),
            Opened::NoDomain => Some("there is no key for this domain".into()),
            Opened::NoKey => Some("there is no key with this association number".into()),
            Opened::Unfit(error) => Some(error.to_string()),
        }
    }
}

impl KeyRing {
    /// Reads a key file. One key may stand in several places, because a capture may show this mistake of a sender.
    pub fn from_toml(text: &str) -> Result<Self, KeyError> {
        let domains: Vec<SecureDomain> = parse(text)?.into_iter().map(|(domain, _)| domain).collect();
        Self::new(&domains)
    }

    /// Takes these domains.
    pub fn new(entries: &[SecureDomain]) -> Result<Self, KeyError> {
        let mut domains = BTreeMap::new();
        for entry in entries {
            domains.insert(entry.sdi, (domain(entry)?, secrets(entry)?));
        }
        Ok(KeyRing { domains, cache: Box::default() })
    }

    /// Reads a key file from bytes, which must be UTF-8.
    pub fn from_toml_bytes(text: &[u8]) -> Result<Self, KeyError> {
        let text = core::str::from_utf8(text).map_err(|_| KeyError::new("the key file is not UTF-8"))?;
        Self::from_toml(text)
    }

    /// Adds the domains of another ring. They replace domains with the same number.
    ///
    /// # Errors
    ///
    /// Fails if the ring would have more than 4,096 domains. It then stays as it is.
    pub fn add(&mut self, other: KeyRing) -> Result<(), KeyError> {
        let new = other.domains.keys().filter(|sdi| !self.domains.contains_key(sdi)).count();
        if self.domains.len() + new > DOMAINS {
            return Err(KeyError::new(format!("there are more than {DOMAINS} domains")));
        }
        self.domains.extend(other.domains);
        // Keys that were derived from replaced secrets are void.
        *self.cache = Default::default();
        Ok(())
    }

    /// Returns whether the ring has keys of this domain.
    pub fn has(&self, sdi: u32) -> bool {
        self.domains.contains_key(&sdi)
    }

    /// Returns the settings of a domain.
    pub fn domain(&self, sdi: u32) -> Option<&Domain> {
        self.domains.get(&sdi).map(|(domain, _)| domain)
    }

    /// Authenticates a packet, and decrypts it in place. `packet` goes from the security header to the ICV. Unless the
    /// result is [`Opened::Authentic`], it stays as it is.
    pub fn open(&mut self, outer: &Outer, packet: &mut [u8]) -> Opened {
        let (domain, ids, secrets) = match candidates(&self.domains, outer, packet) {
            Ok(candidates) => candidates,
            Err(why) => return why,
        };
        for id in ids {
            // The cache does not tell which of several secrets it holds.
            let is_only = secrets.len() == 1;
            if let Some(key) = self.cache.get(&id).filter(|_| is_only) {
                if let Ok(key_iv) = opened(domain, key, outer, packet) {
                    return Opened::Authentic { key: 0, key_iv };
                }
            }
            let derived = secrets.iter().map(|secret| id.derive(secret).ok());
            for (place, key) in derived.enumerate().filter_map(|(place, key)| Some((place, key?))) {
                match opened(domain, &key, outer, packet) {
                    Ok(key_iv) => {
                        if is_only {
                            self.cache.put(id, key);
                        }
                        return Opened::Authentic { key: place, key_iv };
                    }
                    Err(TssError::NotAuthentic) => {}
                    Err(error) => return Opened::Unfit(error),
                }
            }
        }
        Opened::NotAuthentic
    }

    /// Encrypts a packet in place and writes its ICV. Of several keys, takes the one that gives the ICV that the packet
    /// already has, or else the first.
    pub fn seal(&self, outer: &Outer, packet: &mut [u8]) -> Result<(), Opened> {
        let (domain, ids, secrets) = candidates(&self.domains, outer, packet)?;
        let icv = packet.last_chunk::<ICV>().copied().ok_or(Opened::Unfit(TssError::TooShort))?;
        // Packets that the ring has opened leave their keys. The cache does not tell which of several secrets it holds.
        let is_only = secrets.len() == 1;
        let mut first = None;
        for (id, secret) in ids.iter().flat_map(|id| secrets.iter().map(move |secret| (id, secret))) {
            let known = self.cache.get(id).filter(|_| is_only);
            let derived = if known.is_none() { id.derive(secret).ok() } else { None };
            let Some(key) = known.or(derived.as_ref()) else { continue };
            let mut sealed = packet.to_vec();
            domain.seal(key, outer, &mut sealed).map_err(Opened::Unfit)?;
            if sealed.ends_with(&icv) {
                packet.copy_from_slice(&sealed);
                return Ok(());
            }
            first.get_or_insert(sealed);
        }
        packet.copy_from_slice(&first.ok_or(Opened::NoKey)?);
        Ok(())
    }
}

/// Opens a packet in place.
fn opened(domain: &Domain, key: &PacketKey, outer: &Outer, packet: &mut [u8]) -> Result<KeyIv, TssError> {
    domain.open(key, outer, packet)?;
    domain.key_iv(key, outer, packet)
}

type Domains = BTreeMap<u32, (Domain, [Vec<DomainKey>; 2])>;

/// Returns the domain of a packet, the ways to derive its key, and the secrets to derive it from.
fn candidates<'d>(
    domains: &'d Domains,
    outer: &Outer,
    packet: &[u8],
) -> Result<(&'d Domain, Vec<KeyId>, &'d [DomainKey]), Opened> {
    let (tss, _) = Tss::parse(packet).map_err(|_| Opened::Unfit(TssError::TooShort))?;
    let head = tss.head();
    let (domain, keys) = domains.get(&head.sdi()).ok_or(Opened::NoDomain)?;
    let secrets = &keys[usize::from(head.an())];
    if secrets.is_empty() {
        return Err(Opened::NoKey);
    }
    // A capture does not tell which end is the server, so either address may be the client's.
    let directions: &[Direction] = match domain.mode {
        Mode::Server => &[Direction::Incoming, Direction::Outgoing],
        _ => &[Direction::Incoming],
    };
    let ids = directions.iter().map(|direction| domain.key_id(outer, &tss, *direction));
    let ids = ids.collect::<Result<Vec<_>, _>>().map_err(Opened::Unfit)?;
    Ok((domain, ids, secrets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(numbers: core::ops::Range<u32>) -> KeyRing {
        let key = "5a".repeat(32);
        let one = |sdi| format!("[[domain]]\nsdi = {sdi}\nmode = \"direct\"\nkeys = {{ 0 = \"{key}\" }}\n");
        KeyRing::from_toml(&numbers.map(one).collect::<String>()).unwrap()
    }

    #[test]
    fn number_of_domains_is_bounded() {
        let mut ring = domains(0..4000);
        ring.add(domains(3000..4096)).unwrap();
        ring.add(domains(0..9)).unwrap();
        let error = ring.add(domains(4090..4097)).unwrap_err().to_string();
        assert_eq!(error, "there are more than 4096 domains");
        assert!(ring.has(4095) && !ring.has(4096));
    }

    #[test]
    fn number_of_keys_in_a_slot_is_bounded() {
        let ring = |count: usize| {
            let keys: Vec<String> = (0..count).map(|key| format!("\"{key:064x}\"")).collect();
            let keys = keys.join(", ");
            KeyRing::from_toml(&format!(
                "[[domain]]\nsdi = 7\nmode = \"direct\"\nkeys = {{ 1 = [{keys}] }}\n"
            ))
        };
        assert!(ring(8).is_ok());
        let error = ring(9).unwrap_err().to_string();
        assert_eq!(error, "line 1: keys: an association number has at most 8 keys");
    }
}
