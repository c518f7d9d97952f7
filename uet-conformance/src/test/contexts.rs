//! Addresses of the suite, and the contexts that it opens and accepts.

use super::Test;
use super::watch::Watch;
use crate::axis::{MODE, START};
use crate::{Pdc, RxPacket, Stop};
use core::net::IpAddr;
use uet_control::Mode;
use uet_observe::{Context, Side};
use uet_wire::PdcId;

impl Test<'_> {
    /// Returns an address of the suite, of the IP version that the script runs over.
    pub fn address(&self, index: usize) -> Result<IpAddr, Stop> {
        let address = self.session.addresses().nth(index);
        address.ok_or_else(|| Stop::Skipped("the suite has too few addresses".into()))
    }

    /// Returns the number of the suite's addresses of the IP version that the script runs over.
    pub fn addresses(&self) -> usize {
        self.session.addresses().count()
    }

    /// Returns a context for the suite to open, with random numbers.
    pub fn initiate(&mut self) -> Pdc {
        let (start, rod) = (self.value(&START), self.value(&MODE) == Mode::Rod);
        self.suite.initiate(self.session.ends(), start, rod)
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
        let (from, to) = self.session.ends_over_other_ip(address)?;
        Some(Pdc { from, to, ..self.initiate() })
    }

    /// Returns the suite's side of the context that a request of the device opens.
    pub fn accept(&mut self, first: &RxPacket) -> Result<Pdc, Stop> {
        self.suite.accept(first)
    }

    /// Returns what follows the contexts between suite and device.
    pub(crate) fn watch(&mut self) -> &mut Watch {
        self.suite.watch_mut()
    }

    /// Returns the contexts of this end of the suite, and its side of each.
    pub(crate) fn contexts(&self, from: IpAddr, local: PdcId) -> impl Iterator<Item = (&Context, Side)> {
        self.suite.watch().contexts(from, local)
    }
}
