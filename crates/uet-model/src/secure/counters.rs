use super::SettingsError;
use core::fmt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uet_wire::tss::{DomainKey, KeyFingerprint};

/// Maximum number of keys and epochs, of about 100 bytes each. Only management installs keys, so no peer adds any.
const KEYS: usize = 1 << 20;

/// The number of bits of a first counter. Each half of the counters then holds at least 2^46 packets.
const FIRST_BITS: u32 = 46;

/// The packet counters of all keys that an endpoint has had, or all endpoints of a process.
///
/// The derived key and the IV of a packet follow from the secret, the domain's settings, the addresses, the epoch and the
/// counter. Within one of these objects no secret has a counter twice in an epoch, so no key and IV repeat. It does not
/// matter if the secret is removed and installed again, under which association number or in which domains. Client and
/// server of a domain derive one key from two secrets, and keep to one half of the counters each.
///
/// Clones share the counters.
#[derive(Clone, Default)]
pub struct Counters(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// Added to the first counter of each key.
    first: u64,
    keys: HashMap<(KeyFingerprint, u16, u64), Counter>,
}

impl Counters {
    /// Returns counters that start at the lowest 46 bits of a number, in the half of each domain. A process that cannot
    /// know what others have sent under its keys takes a random number.
    pub fn starting_at(first: u64) -> Self {
        let first = first & ((1 << FIRST_BITS) - 1);
        Counters(Arc::new(Mutex::new(Table { first, keys: HashMap::new() })))
    }

    /// Returns the counter of a key in an epoch, in the half of the counters that starts at `base`.
    pub(super) fn of(&self, key: &DomainKey, epoch: u16, base: u64) -> Result<Counter, SettingsError> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (key.fingerprint(), epoch, base);
        if let Some(counter) = table.keys.get(&id) {
            return Ok(counter.clone());
        }
        if table.keys.len() >= KEYS {
            return Err(SettingsError::TooManyKeys);
        }
        let counter = Counter(Arc::new(Mutex::new(Next { next: base + table.first, is_used: false })));
        table.keys.insert(id, counter.clone());
        Ok(counter)
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counters")
    }
}

/// The counter of a key. All domains with the key share it.
#[derive(Clone, Debug)]
pub(super) struct Counter(Arc<Mutex<Next>>);

#[derive(Debug)]
struct Next {
    next: u64,
    is_used: bool,
}

impl Counter {
    fn lock(&self) -> MutexGuard<'_, Next> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn next(&self) -> u64 {
        self.lock().next
    }

    /// Takes the next counter below the limit.
    pub(super) fn take(&self, limit: u64) -> Option<u64> {
        let mut state = self.lock();
        let counter = state.next;
        let next = counter.checked_add(1).filter(|_| counter < limit)?;
        *state = Next { next, is_used: true };
        Some(counter)
    }

    /// Continues at this counter, unless the key has passed it.
    pub(super) fn skip_to(&self, next: u64) {
        let mut state = self.lock();
        state.next = if state.is_used { next.max(state.next) } else { next };
    }

    /// Continues at this counter, even if the key has passed it.
    pub(super) fn set(&self, next: u64) {
        *self.lock() = Next { next, is_used: true };
    }
}
