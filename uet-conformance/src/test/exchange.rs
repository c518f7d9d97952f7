//! Packets from and to the device.

use super::Test;
use crate::passive::Finding;
use crate::{Entry, Outcome, Pdc, RxPacket, Stop, Wire};
use core::time::Duration;
use uet_observe::{Observed, Observer};
use uet_wire::pds::Pds;
use uet_wire::registry::CtlType;
use uet_wire::{PdcId, UetBuf};

/// Maximum number of packets sent in a row. A real link loses packets that arrive faster than either end
/// reads them.
const BURST: usize = 32;

impl Test<'_> {
    /// Sends a packet of a context.
    pub fn send(&mut self, pdc: &Pdc, packet: &UetBuf) -> Outcome {
        self.send_marked(pdc, packet, false)
    }

    /// Sends a packet of a context, with a congestion mark of the network if `marked`.
    pub fn send_marked(&mut self, pdc: &Pdc, packet: &UetBuf, marked: bool) -> Outcome {
        let packet = self.carry(pdc, packet)?;
        self.send_wire(&Wire { marked, ..pdc.wire(&packet) })
    }

    /// Sends a packet unchanged.
    pub fn send_wire(&mut self, packet: &Wire) -> Outcome {
        // The device ignores most packets that a script has protected by itself.
        let observed = self.shield.as_deref().is_none_or(|shield| shield.active);
        self.send_as(packet, observed)
    }

    /// Sends a packet that no peer sends.
    pub(crate) fn send_unobserved(&mut self, packet: &Wire) -> Outcome {
        self.send_as(packet, false)
    }

    fn send_as(&mut self, packet: &Wire, observed: bool) -> Outcome {
        self.packets += 1;
        self.is_stated(packet)?;
        self.step(self.dut.now(), Entry::Sent(packet.clone()));
        if observed {
            self.observe(packet);
        }
        if let Some(bit) = packet.flipped {
            self.note(format!("bit {bit} of it changes on its way"));
        }
        if packet.ttl != Wire::TTL {
            self.note(format!("its TTL is {} on arrival", packet.ttl));
        }
        if packet.udp_checksum != 0 {
            self.note(format!("its UDP checksum is {:#06x} on arrival", packet.udp_checksum));
        }
        let carried = self.shielded(packet)?;
        self.dut.send(&carried)?;
        self.note_lost(Some(&carried));
        self.unread += 1;
        match self.unread {
            BURST.. if !self.facts().virtual_time => self.pause(self.soon() / 20),
            _ => Ok(()),
        }
    }

    /// Adds the packets that the network has lost to the ladder: those of the device as entries, and those of
    /// the suite as marks. `carried` is the last packet that the suite has sent, as it went on the link.
    fn note_lost(&mut self, carried: Option<&Wire>) {
        for (at, wire) in self.dut.lost() {
            if self.dut.facts().is_device(wire.src) {
                self.step(at, Entry::Lost(Wire { lost: true, ..wire }));
            } else {
                let is_last =
                    carried.is_some_and(|carried| carried.src == wire.src && carried.bytes == wire.bytes);
                self.ladder.mark_lost(&wire, is_last);
            }
        }
    }

    fn observe(&mut self, wire: &Wire) {
        let packet = Observed::new(self.packets as u64, wire.src, wire.dst, &wire.bytes);
        if self.is_for_strangers(&packet) {
            return;
        }
        let whole = packet.whole && wire.trimmed.is_none() && wire.flipped.is_none();
        let packet = Observed { whole, marked: wire.marked, ..packet };
        match &mut self.checker {
            Some(checker) => self.passive_findings.extend(checker.observed(&packet, |_| ())),
            None => _ = self.observer.observe(&packet),
        }
    }

    /// Returns whether a packet answers one that no peer sends.
    fn is_for_strangers(&self, packet: &Observed<'_>) -> bool {
        match packet.uet.pds {
            Some(Pds::Rudi(rudi)) => self.strange_packets.contains(&rudi.pkt_id()),
            Some(pds) if !self.strange_ends.is_empty() => {
                let place = pds.layout().field("pds.dpdcid");
                let to = place.and_then(|place| place.read(pds.bytes())).map(|id| PdcId(id as u16));
                to.is_some_and(|to| self.strange_ends.contains(&(packet.dst, to)))
            }
            _ => false,
        }
    }

    /// Judges all packets from now on by the rules for captures.
    pub(crate) fn watch_passively(&mut self) {
        self.checker = Some(Box::default());
    }

    /// Returns the contexts between suite and device.
    pub(crate) fn observer(&self) -> &Observer {
        self.checker.as_ref().map_or(&self.observer, |checker| checker.observer())
    }

    /// Returns the oldest finding of those rules.
    pub(crate) fn take_passive_finding(&mut self) -> Option<Finding> {
        self.passive_findings.pop_front()
    }

    /// Waits for the next packet until this time.
    fn receive(&mut self, until: Duration) -> Result<Option<RxPacket>, Stop> {
        let received = self.dut.receive(until)?;
        self.note_lost(None);
        let Some(wire) = received else { return Ok(None) };
        self.packets += 1;
        let wire = self.unshielded(wire);
        self.heard = true;
        let at = self.dut.now();
        self.step(at, Entry::Received(wire.clone()));
        let seen = RxPacket { at, number: self.packets, wire };
        self.observe(&seen.wire);
        if self.refused_data.is_none() && self.refuses_data(&seen) {
            self.refused_data = Some(seen.clone());
        }
        self.automatically(|test| test.keep_up(&seen))?;
        Ok(Some(seen))
    }

    /// Returns the first packet that `wanted` accepts, from those not yet taken and those that arrive within
    /// this time. The others stay for later expectations.
    pub fn wait<T>(
        &mut self,
        within: Duration,
        mut wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Result<Option<(RxPacket, T)>, Stop> {
        let mut found = None;
        let seen = self.wait_for(within, &mut |seen| {
            found = wanted(seen);
            found.is_some()
        })?;
        Ok(seen.zip(found))
    }

    /// The part of [`Self::wait`] that the compiler need not repeat for each of its many callers.
    fn wait_for(
        &mut self,
        within: Duration,
        wanted: &mut dyn FnMut(&RxPacket) -> bool,
    ) -> Result<Option<RxPacket>, Stop> {
        self.unread = 0;
        if let Some(kept) = self.inbox.iter().position(&mut *wanted) {
            return Ok(self.inbox.remove(kept));
        }
        let until = self.dut.now() + within;
        while let Some(seen) = self.receive(until)? {
            if wanted(&seen) {
                return Ok(Some(seen));
            }
            self.inbox.push_back(seen);
        }
        Ok(None)
    }

    /// Waits at most this long until the received packets suffice; returns whether they do. They stay for
    /// later expectations.
    pub fn hear(
        &mut self,
        within: Duration,
        mut enough: impl FnMut(&RxPacket) -> bool,
    ) -> Result<bool, Stop> {
        let found = self.wait(within, |seen| enough(seen).then_some(()))?;
        let heard = found.is_some();
        self.inbox.extend(found.map(|(seen, ())| seen));
        Ok(heard)
    }

    /// Takes all packets not yet taken and those that arrive within this time. On a real link, immediate
    /// reactions may be late, so the wait continues while packets arrive.
    pub fn gather(&mut self, within: Duration) -> Result<Vec<RxPacket>, Stop> {
        let last = self.dut.now() + self.patience(within);
        loop {
            let before = self.inbox.len();
            self.wait(within, |_| None::<()>)?;
            if self.inbox.len() == before || self.dut.now() >= last {
                return Ok(self.inbox.drain(..).collect());
            }
        }
    }

    /// Discards all packets received so far.
    pub fn forget(&mut self) {
        self.phases.needed();
        self.inbox.clear();
    }

    /// Makes the rule inconclusive if the device has reported a lack of resources after packet `since`,
    /// unless the rule has set the limit.
    pub(crate) fn had_room(&self, since: usize) -> Outcome {
        match self.inbox.iter().find(|seen| seen.number > since && seen.lacks_room()) {
            Some(full) if self.set.is_empty() => {
                Err(Stop::Inconclusive(format!("the device has no room: {}", full.uet())))
            }
            _ => Ok(()),
        }
    }

    /// Returns the packets that arrived and that no expectation has taken.
    pub(crate) fn untaken(&self) -> impl DoubleEndedIterator<Item = &RxPacket> {
        self.inbox.iter()
    }

    /// Returns the last control packet of a type that a device need not support, and its number.
    pub(crate) fn optional_control(&self) -> Option<(CtlType, usize)> {
        self.optional_control
    }

    pub(crate) fn note_optional_control(&mut self, kind: CtlType) {
        self.optional_control = Some((kind, self.packets));
    }
}
