//! Addresses of the suite, and the contexts that it opens and accepts.

use super::Test;
use crate::axis::{MODE, START, Start};
use crate::{Pdc, RxPacket, Stop};
use core::net::IpAddr;
use uet_control::Mode;
use uet_wire::registry::PdsType;
use uet_wire::{PdcId, Psn};

impl Test<'_> {
    /// Returns an address of the suite, of the IP version that the script runs over.
    pub fn address(&self, index: usize) -> Result<IpAddr, Stop> {
        let address = self.dut.facts().local_of(self.ipv4).nth(index);
        address.ok_or_else(|| Stop::Skipped("the suite has too few addresses".into()))
    }

    /// Returns the number of the suite's addresses of the IP version that the script runs over.
    pub fn addresses(&self) -> usize {
        self.dut.facts().local_of(self.ipv4).count()
    }

    /// Returns a context for the suite to open, with random numbers.
    pub fn initiate(&mut self) -> Pdc {
        let facts = self.dut.facts();
        let to = facts.device_of(self.ipv4).unwrap_or(facts.device);
        let from = facts.local_of(self.ipv4).next().unwrap_or(to);
        Pdc {
            from,
            to,
            local: self.pdcid(),
            remote: None,
            start: self.start(),
            rod: self.value(&MODE) == Mode::Rod,
            entropy: self.rng.u16(0xc000..),
        }
    }

    /// Returns a context from another address of the suite. Its rule declares
    /// [`Need::Addresses`](crate::Need).
    pub fn initiate_from(&mut self, address: usize) -> Result<Pdc, Stop> {
        let from = self.address(address)?;
        Ok(Pdc { from, ..self.initiate() })
    }

    /// Returns an unopened context with random numbers from an address of the other IP version; `None` if the
    /// link carries only one, or if the suite has no such address.
    pub fn initiate_over_other_ip(&mut self, address: usize) -> Option<Pdc> {
        let facts = self.dut.facts();
        let (from, to) = (facts.local_of(!self.ipv4).nth(address)?, facts.device_of(!self.ipv4)?);
        Some(Pdc { from, to, ..self.initiate() })
    }

    fn start(&mut self) -> Psn {
        self.start_at(self.value(&START))
    }

    pub(super) fn start_at(&mut self, start: Start) -> Psn {
        match start {
            // `PDS-SYN-007`: in a secure domain, the floor of a new key is 0.
            Start::Any if self.shield.is_some() => Psn(self.rng.u32(1 << 16..1 << 31)),
            Start::Any => Psn(self.rng.u32(..)),
            Start::Wrap => Psn(u32::MAX - 1),
            Start::Half => Psn((1 << 31) - 2),
        }
    }

    fn pdcid(&mut self) -> PdcId {
        let id = self.next_pdcid;
        self.next_pdcid = id.checked_add(1).unwrap_or(1);
        PdcId(id)
    }

    /// Returns the suite's side of the context that a request of the device opens.
    pub fn accept(&mut self, first: &RxPacket) -> Result<Pdc, Stop> {
        let request = first.request().ok_or_else(|| Stop::Inconclusive("not a request".into()))?;
        let start =
            request.start_psn().ok_or_else(|| Stop::Inconclusive("a request that opens nothing".into()))?;
        Ok(Pdc {
            from: first.wire.dst,
            to: first.wire.src,
            local: self.pdcid(),
            remote: Some(request.spdcid()),
            start,
            rod: matches!(request.prologue().kind(), PdsType::ROD_REQ | PdsType::ROD_CC_REQ),
            entropy: first.wire.entropy,
        })
    }
}
