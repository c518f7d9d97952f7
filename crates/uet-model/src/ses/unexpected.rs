//! The room for messages that no receive has taken: their bytes, and the share of each peer.

use super::params::SesParams;
use core::net::IpAddr;
use std::collections::BTreeMap;

/// The maximum number of parts of a message: the gaps of a window of 1,024 packets, and more.
const MOST: usize = 1024;

/// The bytes of a message that has no buffer, in parts that start where the part before does not end.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Parts {
    parts: BTreeMap<u32, Vec<u8>>,
    length: usize,
}

impl Parts {
    /// Adds bytes; `false` if they would be one part too many.
    #[must_use]
    pub(super) fn add(&mut self, offset: u32, payload: &[u8]) -> bool {
        let room = self.parts.len() < MOST;
        match self.parts.range_mut(..=offset).next_back() {
            Some((start, part)) if *start as usize + part.len() == offset as usize => {
                part.extend_from_slice(payload);
            }
            _ if !room => return false,
            _ => drop(self.parts.insert(offset, payload.to_vec())),
        }
        self.length += payload.len();
        true
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Returns the parts with their offsets.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.parts.iter().map(|(offset, part)| (*offset, &part[..]))
    }
}

/// The payer for room: an address, or `None` for all peers together that have not confirmed a context. Their addresses
/// may be forged, so one sender could otherwise use many shares.
pub(super) type Payer = Option<IpAddr>;

/// The messages of a payer and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
struct Usage {
    messages: u32,
    bytes: u64,
}

/// The room of an index, and who uses it.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Room {
    all: Usage,
    by_payer: BTreeMap<Payer, Usage>,
}

impl Room {
    /// Returns whether there is room for `messages` more messages and `bytes` more bytes of this payer.
    pub(super) fn has(&self, payer: Payer, messages: u32, bytes: usize, params: &SesParams) -> bool {
        let own = self.by_payer.get(&payer).copied().unwrap_or_default();
        let fits = |usage: Usage, most: u16, most_bytes: u32| {
            usage.messages + messages <= most.into() && usage.bytes + bytes as u64 <= most_bytes.into()
        };
        fits(self.all, params.max_unexpected, params.max_unexpected_bytes)
            && fits(own, params.max_unexpected_of_peer, params.max_unexpected_bytes_of_peer)
    }

    /// Returns whether a message of this length can ever fit.
    pub(super) fn fits(length: u32, params: &SesParams) -> bool {
        length <= params.max_unexpected_bytes.min(params.max_unexpected_bytes_of_peer)
    }

    pub(super) fn take(&mut self, payer: Payer, messages: u32, bytes: usize) {
        for usage in [&mut self.all, self.by_payer.entry(payer).or_default()] {
            usage.messages += messages;
            usage.bytes += bytes as u64;
        }
    }

    pub(super) fn free(&mut self, payer: Payer, bytes: usize) {
        let Some(own) = self.by_payer.get_mut(&payer) else { return };
        for usage in [&mut self.all, &mut *own] {
            usage.messages = usage.messages.saturating_sub(1);
            usage.bytes = usage.bytes.saturating_sub(bytes as u64);
        }
        if *own == Usage::default() {
            self.by_payer.remove(&payer);
        }
    }
}
