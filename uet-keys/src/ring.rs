use crate::{KeyError, domain, domains_from_toml, secrets};
use std::collections::BTreeMap;
use uet_control::SecureDomain;
use uet_wire::tss::{Direction, Domain, DomainKey, KeyCache, Mode, Outer, Tss, TssError};

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
    Authentic,
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
            Opened::Authentic => Some(true),
            Opened::NotAuthentic => Some(false),
            Opened::NoDomain | Opened::NoKey | Opened::Unfit(_) => None,
        }
    }

    /// Returns the reason why the packet is not decrypted.
    pub fn reason(self) -> Option<String> {
        match self {
            Opened::Authentic => None,
            Opened::NotAuthentic => Some("the ICV is wrong".into()),
            Opened::NoDomain => Some("there is no key for this domain".into()),
            Opened::NoKey => Some("there is no key with this association number".into()),
            Opened::Unfit(error) => Some(error.to_string()),
        }
    }
}

impl KeyRing {
    /// Reads a key file.
    pub fn from_toml(text: &str) -> Result<Self, KeyError> {
        Self::new(&domains_from_toml(text)?)
    }

    /// Takes these domains.
    pub fn new(entries: &[SecureDomain]) -> Result<Self, KeyError> {
        let mut domains = BTreeMap::new();
        for entry in entries {
            domains.insert(entry.sdi, (domain(entry)?, secrets(entry)?));
        }
        Ok(KeyRing { domains, cache: Box::default() })
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
        let header: [u8; 16] = core::array::from_fn(|at| packet.get(at).copied().unwrap_or(0));
        let Ok((tss, _)) = Tss::parse(&header) else { return Opened::Unfit(TssError::TooShort) };
        if packet.len() < tss.bytes().len() {
            return Opened::Unfit(TssError::TooShort);
        }
        let head = tss.head();
        let Some((domain, keys)) = self.domains.get(&head.sdi()) else { return Opened::NoDomain };
        let secrets = keys.get(usize::from(head.an())).map_or(&[][..], Vec::as_slice);
        if secrets.is_empty() {
            return Opened::NoKey;
        }
        // A capture does not tell which end is the server, so either address may be the client's.
        let directions: &[Direction] = match domain.mode {
            Mode::Server => &[Direction::Incoming, Direction::Outgoing],
            _ => &[Direction::Incoming],
        };
        for direction in directions {
            let id = match domain.key_id(outer, &tss, *direction) {
                Ok(id) => id,
                Err(error) => return Opened::Unfit(error),
            };
            if let Some(key) = self.cache.get(&id)
                && domain.open(key, outer, packet).is_ok()
            {
                return Opened::Authentic;
            }
            for secret in secrets {
                let Ok(key) = id.derive(secret) else { continue };
                match domain.open(&key, outer, packet) {
                    Ok(()) => {
                        self.cache.put(id, key);
                        return Opened::Authentic;
                    }
                    Err(TssError::NotAuthentic) => {}
                    Err(error) => return Opened::Unfit(error),
                }
            }
        }
        Opened::NotAuthentic
    }
}
