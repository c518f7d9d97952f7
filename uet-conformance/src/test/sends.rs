//! The receives that carry the writes of an instance.

use core::net::IpAddr;
use std::collections::BTreeMap;

/// The first of the indices that receives use. Scripts use small ones.
pub(super) const FIRST_INDEX: u16 = 1000;

/// Regions of these numbers exist in the script only.
const FIRST_REGION: u64 = 1 << 48;

/// The context of the suite that a write uses, and its PSN or message id.
pub(super) type Written = (IpAddr, u16, u64);

/// The sends of an instance that carry writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Sends {
    regions: u64,
    /// Memory keys of the regions.
    keys: Vec<u64>,
    receives: BTreeMap<Written, CarryingReceive>,
    /// The order in which they were sent first.
    order: Vec<Written>,
    /// True if the timeline says that writes travel as sends.
    announced: bool,
}

/// A receive for the data of one write.
#[derive(Clone, Debug)]
pub(super) struct CarryingReceive {
    pub index: u16,
    /// Its number in the control channel; 0 if the write was for no region.
    pub number: u64,
    /// The bytes of its buffer before.
    pub before: Vec<u8>,
    /// Memory key of the region that the write was for, and the offset there.
    pub key: u64,
    pub offset: u64,
}

impl Sends {
    /// Returns true once.
    pub(super) fn announce(&mut self) -> bool {
        !core::mem::replace(&mut self.announced, true)
    }

    /// Returns the number of a new region that exists in the script only.
    pub(super) fn new_region(&mut self, key: u64) -> u64 {
        self.keys.push(key);
        self.regions += 1;
        FIRST_REGION + self.regions
    }

    pub(super) fn has_region(&self, key: u64) -> bool {
        self.keys.contains(&key)
    }

    /// Returns whether the region of this number exists in the script only.
    pub(super) fn is_region(number: u64) -> bool {
        number >= FIRST_REGION
    }

    /// Returns the index of the receive for a write, if there is one.
    pub(super) fn index(&self, of: &Written) -> Option<u16> {
        self.receives.get(of).map(|receive| receive.index)
    }

    /// Returns the index of the next receive; `None` if there is none left.
    pub(super) fn next_index(&self) -> Option<u16> {
        u16::try_from(self.order.len()).ok().and_then(|count| FIRST_INDEX.checked_add(count))
    }

    pub(super) fn add(&mut self, of: Written, receive: CarryingReceive) {
        self.receives.insert(of, receive);
        self.order.push(of);
    }

    /// Sets the offset of a write in its region.
    pub(super) fn starts_at(&mut self, of: &Written, offset: u64) {
        if let Some(receive) = self.receives.get_mut(of) {
            receive.offset = offset;
        }
    }

    /// Returns the receives for writes to a region, in the order in which the writes were sent first.
    pub(super) fn receives_of(&self, key: u64) -> Vec<CarryingReceive> {
        let receives = self.order.iter().filter_map(|of| self.receives.get(of));
        receives.filter(|receive| receive.key == key && receive.number > 0).cloned().collect()
    }
}
