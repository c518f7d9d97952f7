use core::hash::{BuildHasher, Hash};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use uet_wire::tss::KeyIv;

/// The key and the IV of packets, to find two packets with the same.
///
/// It remembers the last 458,752 packets at least and twice as many at most, in at most 30 MB.
///
/// ```
/// use uet_observe::IvHistory;
/// use uet_wire::tss::{DomainKey, KeyIv};
///
/// let key_iv = KeyIv { key: DomainKey::new(&[7; 32])?.fingerprint(), iv: [0; 12] };
/// let mut history = IvHistory::default();
/// assert_eq!(history.repeats(key_iv, "a packet", 1), None);
/// assert_eq!(history.repeats(key_iv, "a packet", 2), None, "a copy");
/// assert_eq!(history.repeats(key_iv, "another packet", 3), Some(1));
/// # Ok::<(), uet_wire::tss::TssError>(())
/// ```
#[derive(Debug, Default)]
pub struct IvHistory {
    /// Keyed by a hash of key and IV: a digest and the number of the packet.
    recent: HashMap<u64, (u64, u64)>,
    older: HashMap<u64, (u64, u64)>,
    hasher: RandomState,
}

/// Maximum number of packets in each half of an [`IvHistory`]: as many as a table of 2^19 places holds.
const PACKETS: usize = (1 << 19) / 8 * 7;

impl IvHistory {
    /// Records the next packet. Returns the number of an earlier one with the same key and IV. A copy of the earlier packet
    /// is none.
    pub fn repeats(&mut self, key_iv: KeyIv, packet: impl Hash, number: u64) -> Option<u64> {
        let (id, digest) = (self.hasher.hash_one(key_iv), self.hasher.hash_one(packet));
        if let Some((before, with)) = self.recent.get(&id).or_else(|| self.older.get(&id)) {
            return (*before != digest).then_some(*with);
        }
        if self.recent.len() >= PACKETS {
            self.older = core::mem::take(&mut self.recent);
        }
        self.recent.insert(id, (digest, number));
        None
    }
}
