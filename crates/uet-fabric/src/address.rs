use crate::name::Name;
use core::net::IpAddr;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The address of a peer that is not in the vector (`FI_ADDR_NOTAVAIL`).
pub const UNKNOWN_ADDRESS: u64 = u64::MAX;

/// The peers of an endpoint, by number.
#[derive(Debug, Default)]
pub struct AddressVector {
    inner: Mutex<NamedPeers>,
}

#[derive(Debug, Default)]
struct NamedPeers {
    names: Vec<Option<Name>>,
    /// The number of the peer whose requests carry this address and initiator.
    numbers: HashMap<(IpAddr, u32), u64>,
}

impl AddressVector {
    fn lock(&self) -> MutexGuard<'_, NamedPeers> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a peer and returns its number. A peer that is there already keeps its number.
    pub fn insert(&self, name: Name) -> u64 {
        let mut peers = self.lock();
        let key = (name.identity(), name.initiator());
        if let Some(number) = peers.numbers.get(&key) {
            return *number;
        }
        let number = peers.names.len() as u64;
        peers.names.push(Some(name));
        peers.numbers.insert(key, number);
        number
    }

    /// Removes a peer; returns whether it was there.
    pub fn remove(&self, number: u64) -> bool {
        let mut peers = self.lock();
        let place = usize::try_from(number).ok().and_then(|place| peers.names.get_mut(place));
        let Some(name) = place.and_then(Option::take) else { return false };
        peers.numbers.remove(&(name.identity(), name.initiator()));
        true
    }

    /// Returns the name of a peer.
    pub fn get(&self, number: u64) -> Option<Name> {
        usize::try_from(number).ok().and_then(|place| self.lock().names.get(place).copied().flatten())
    }

    /// Returns the number of the peer that sent a request, or [`UNKNOWN_ADDRESS`].
    pub(crate) fn find(&self, from: IpAddr, initiator: u32) -> u64 {
        self.lock().numbers.get(&(from, initiator)).copied().unwrap_or(UNKNOWN_ADDRESS)
    }
}
