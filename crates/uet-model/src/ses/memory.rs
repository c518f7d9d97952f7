//! Memory regions: keys, bounds and permissions (section 3.4.1).

use super::Refusal;
use super::address::ResourceIndex;
use super::event::Why;
use super::params::SesParams;
use crate::Memory;
use bytes::{Bytes, BytesMut};
use core::ops::Range;
use std::collections::BTreeMap;
use uet_wire::registry::ReturnCode;

/// A memory region that the application exposes to peers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Region<M = Vec<u8>> {
    /// The key by which peers name the region; see [`Key`] for its upper bits.
    pub key: Key,
    /// The local start address, which determines the alignment of atomics.
    pub base: u64,
    /// The operations that peers are permitted.
    pub access: Access,
    /// The memory: any [`Memory`], for instance a `Vec<u8>`.
    pub data: M,
}

impl<M: Memory + 'static> Region<M> {
    /// Returns the region with its memory behind a pointer.
    pub(super) fn boxed(self) -> Region<Box<dyn Memory>> {
        let Region { key, base, access, data } = self;
        Region { key, base, access, data: Box::new(data) }
    }
}

/// The permissions of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Access {
    /// Reading, and fetching by atomics.
    pub read: bool,
    /// Writing.
    pub write: bool,
    /// Changing by atomics.
    pub atomic: bool,
}

impl Access {
    /// All permissions.
    pub const ALL: Access = Access { read: true, write: true, atomic: true };
    /// Only reading.
    pub const READ: Access = Access { read: true, write: false, atomic: false };
    /// Only writing.
    pub const WRITE: Access = Access { read: false, write: true, atomic: false };

    /// Returns whether all of these permissions are granted.
    pub fn covers(self, asked: Access) -> bool {
        (self.read || !asked.read) && (self.write || !asked.write) && (self.atomic || !asked.atomic)
    }
}

/// A memory key. Bit 63 permits repeated operations. Bit 62 marks an optimized key, in which only bits 11 to 0 select
/// the region. Bits 55 to 48 are the vendor, 0 for a user's key. Reserved bits are ignored.
///
/// ```
/// use uet_model::ses::Key;
///
/// assert_eq!(Key(0xacce5), Key(0x3f00_0000_000a_cce5), "reserved bits say nothing");
/// assert_eq!(Key(0x7).optimized(), Key(0x4000_0000_0000_0007));
/// assert!(Key(0x7).idempotent().is_idempotent());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Key(pub u64);

impl Key {
    const IDEMPOTENT: u64 = 1 << 63;
    const OPTIMIZED: u64 = 1 << 62;
    const RESERVED: u64 = 0x3f << 56;
    const RESERVED_IF_OPTIMIZED: u64 = (1 << 48) - (1 << 12);

    /// Returns the key marked as idempotent, which permits repeated operations on its region.
    pub const fn idempotent(self) -> Self {
        Key(self.0 | Self::IDEMPOTENT)
    }

    /// Returns the key marked as optimized.
    pub const fn optimized(self) -> Self {
        Key(self.0 | Self::OPTIMIZED)
    }

    /// Returns whether the key permits repeated operations.
    pub const fn is_idempotent(self) -> bool {
        self.0 & Self::IDEMPOTENT != 0
    }

    /// Returns whether the key is optimized.
    pub const fn is_optimized(self) -> bool {
        self.0 & Self::OPTIMIZED != 0
    }

    /// `SES-MEM-002`: returns the significant bits.
    pub(super) const fn significant(self) -> u64 {
        let reserved = if self.is_optimized() { Self::RESERVED_IF_OPTIMIZED } else { 0 };
        self.0 & !(Self::RESERVED | reserved)
    }

    /// Returns the part that fits a SMALL request.
    pub(super) const fn short(self) -> u16 {
        (self.0 & 0xfff) as u16
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.significant() == other.significant()
    }
}

impl Eq for Key {}

#[cfg(feature = "explore")]
impl core::hash::Hash for Key {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// The identifier of an exposed region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);

/// The regions of an endpoint.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Regions {
    by_id: BTreeMap<RegionId, Exposed>,
    next: u32,
}

/// A region and its index.
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Exposed {
    pub(super) region: Region<Box<dyn Memory>>,
    pub(super) index: ResourceIndex,
    /// The code that every access returns, to imitate failed memory.
    pub(super) fault: Option<ReturnCode>,
}

impl Regions {
    pub(super) fn add(&mut self, region: Region<Box<dyn Memory>>, index: ResourceIndex) -> RegionId {
        let id = RegionId(self.next);
        self.next += 1;
        self.by_id.insert(id, Exposed { region, index, fault: None });
        id
    }

    pub(super) fn get(&self, id: RegionId) -> Option<&Exposed> {
        self.by_id.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: RegionId) -> Option<&mut Exposed> {
        self.by_id.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: RegionId) -> Option<Exposed> {
        self.by_id.remove(&id)
    }

    /// Checks that an access is permitted and within bounds, and returns its bytes. Otherwise touches nothing.
    pub(super) fn access(
        &mut self,
        id: RegionId,
        asked: Access,
        offset: u64,
        length: u64,
        params: &SesParams,
    ) -> Result<Span<'_>, Refusal> {
        let Some(exposed) = self.by_id.get_mut(&id) else {
            return Err(Refusal::new(ReturnCode::BAD_MKEY, Why::RegionGone));
        };
        permitted(exposed.region.access, asked, params)?;
        let range = bounds(&exposed.region, offset, length, params)?;
        if let Some(code) = exposed.fault {
            return Err(host(code));
        }
        let address = exposed.region.base.wrapping_add(offset);
        Ok(Span { memory: &mut *exposed.region.data, range, address })
    }
}

/// The bytes of a permitted access.
pub(super) struct Span<'a> {
    memory: &'a mut dyn Memory,
    range: Range<usize>,
    /// The address of the first byte.
    pub(super) address: u64,
}

impl Span<'_> {
    /// Copies the bytes out.
    pub(super) fn read(&self) -> Result<Bytes, Refusal> {
        let mut bytes = BytesMut::zeroed(self.range.len());
        self.memory.read(self.range.start, &mut bytes).map_err(host)?;
        Ok(bytes.freeze())
    }

    /// Replaces the bytes by `data` of equal length.
    pub(super) fn write(self, data: &[u8]) -> Result<(), Refusal> {
        self.memory.write(self.range.start, data).map_err(host)
    }

    /// Changes the bytes in place.
    pub(super) fn update<R>(
        self,
        change: impl FnOnce(&mut [u8]) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        update(self.memory, self.range, change)
    }
}

/// Changes some bytes of `memory` in place.
pub(super) fn update<R>(
    memory: &mut dyn Memory,
    range: Range<usize>,
    change: impl FnOnce(&mut [u8]) -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    let (mut change, mut result) = (Some(change), Err(host(ReturnCode::HOST_UNSUCCESS_CMPL)));
    let updated = memory.update(range.start, range.len(), &mut |bytes| {
        if let Some(change) = change.take() {
            result = change(bytes);
        }
    });
    updated.map_err(host)?;
    result
}

/// Returns the refusal for an error of the memory itself.
pub(super) fn host(code: ReturnCode) -> Refusal {
    Refusal::new(code, Why::Host)
}

/// `SES-MEM-003`, `SES-MEM-005`: refuses an access without permission.
fn permitted(has: Access, asked: Access, params: &SesParams) -> Result<(), Refusal> {
    if has.covers(asked) { Ok(()) } else { Err(Refusal::new(params.denied, Why::NotPermitted)) }
}

/// `SES-MEM-004`: an access lies within its region, or touches nothing.
fn bounds(
    region: &Region<Box<dyn Memory>>,
    offset: u64,
    length: u64,
    params: &SesParams,
) -> Result<Range<usize>, Refusal> {
    let size = region.data.len() as u64;
    let Some(end) = offset.checked_add(length).filter(|end| region.base.checked_add(*end).is_some()) else {
        return Err(Refusal::new(ReturnCode::BAD_ADDR, Why::AddressWraps));
    };
    if end > size {
        return Err(Refusal::new(params.out_of_range, Why::OutOfRange { offset, length, size }));
    }
    Ok(offset as usize..end as usize)
}
