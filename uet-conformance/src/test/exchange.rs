//! Packets from and to the device.

use super::Test;
use crate::{Entry, Outcome, Pdc, Request, RxPacket, Stop, Wire, skip};
use core::time::Duration;
use uet_wire::catalogue::Level;
use uet_wire::ses::SesBuf;
use uet_wire::{Uet, UetBuf};

impl Test<'_> {
    /// Sends a packet of a context.
    pub fn send(&mut self, pdc: &Pdc, packet: &UetBuf) -> Outcome {
        self.send_marked(pdc, packet, false)
    }

    /// Sends a packet of a context, with a congestion mark of the network if `marked`.
    pub fn send_marked(&mut self, pdc: &Pdc, packet: &UetBuf, marked: bool) -> Outcome {
        let packet = self.carry(pdc, packet)?;
        let packet = self.without_dc(packet)?;
        self.send_wire(&Wire { marked, ..pdc.wire(&packet) })
    }

    /// Sends a request of a context.
    pub fn request(&mut self, pdc: &Pdc, request: Request) -> Outcome {
        // These scripts use `dc` to have the device wait for the rest of a message before it answers.
        if request
            .ses
            .as_ref()
            .and_then(|ses| ses.view().request_head())
            .is_some_and(|head| head.dc() && !(head.som() && head.eom()))
        {
            self.completes()?;
        }
        self.send(pdc, &request.build()?)
    }

    /// Skips the rule if the device states that it refuses delivery complete.
    pub(crate) fn completes(&self) -> Outcome {
        if self.refuses_dc() {
            return self.declines("the device states that it does not support delivery complete");
        }
        Ok(())
    }

    /// Returns whether the device states that it refuses delivery complete.
    pub(crate) fn refuses_dc(&self) -> bool {
        self.session.told("delivery_complete") == Some(&false.into())
    }

    /// Skips the rule, because the device refuses a feature that only a profile requires.
    pub(crate) fn declines(&self, reason: &str) -> Outcome {
        self.notes_declined();
        skip(reason)
    }

    /// Notes that the device refuses a feature that only a profile requires.
    pub(crate) fn notes_declined(&self) {
        self.session.declines();
    }

    /// Removes `dc` from a request if the device states that it refuses delivery complete.
    pub(crate) fn without_dc(&self, packet: UetBuf) -> Result<UetBuf, Stop> {
        let has_dc =
            packet.ses.as_ref().and_then(|ses| ses.view().request_head()).is_some_and(|head| head.dc());
        if !has_dc || !self.refuses_dc() {
            return Ok(packet);
        }
        let ses = match packet.ses {
            Some(SesBuf::Std(header)) => Some(header.edit().head(|head| head.dc(false)).done()?.into()),
            Some(SesBuf::Medium(header)) => Some(header.edit().head(|head| head.dc(false)).done()?.into()),
            Some(SesBuf::Small(header)) => Some(header.edit().head(|head| head.dc(false)).done()?.into()),
            other => other,
        };
        Ok(UetBuf { ses, ..packet })
    }

    /// Sends a packet unchanged.
    pub fn send_wire(&mut self, packet: &Wire) -> Outcome {
        // The device ignores most packets that a script has protected by itself.
        let observed = self.suite.shield().is_none_or(|shield| shield.active);
        self.send_as(packet, observed)
    }

    /// Sends a packet that no peer sends.
    pub(crate) fn send_unobserved(&mut self, packet: &Wire) -> Outcome {
        self.send_as(packet, false)
    }

    fn send_as(&mut self, packet: &Wire, observed: bool) -> Outcome {
        let number = self.judge.count_packet();
        self.is_stated(packet)?;
        self.step(Entry::Sent(packet.clone()));
        if !observed || !self.is_regular(packet) {
            self.watch().deviate();
        }
        if observed {
            self.watch().packet(number, packet);
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
        let needs_pause = self.session.send(&carried)?;
        self.note_lost(Some(&carried));
        if needs_pause { self.pause(self.soon() / 20) } else { Ok(()) }
    }

    /// Returns whether a packet of the suite is one that a peer sends, as far as the packet itself shows. A
    /// device that believes a damaged one goes wrong in many ways; they have one cause.
    fn is_regular(&self, packet: &Wire) -> bool {
        if packet.flipped.is_some() {
            return false;
        }
        let (uet, error) = Uet::parse_lax(&packet.bytes);
        let is_wrong = |finding: uet_wire::validate::Finding| finding.requirement.level > Level::May;
        packet.trimmed.is_some() || error.is_none() && !uet.validate(self.spec()).any(is_wrong)
    }

    /// Adds the packets that the network has lost to the ladder: those of the device as entries, and those of
    /// the suite as marks. `carried` is the last packet that the suite has sent, as it went on the link.
    fn note_lost(&mut self, carried: Option<&Wire>) {
        for (at, wire) in self.session.lost() {
            if self.facts().is_device(wire.src) {
                self.judge.step(at, Entry::Lost(Wire { lost: true, ..wire }));
            } else {
                let is_last =
                    carried.is_some_and(|carried| carried.src == wire.src && carried.bytes == wire.bytes);
                self.judge.mark_lost(&wire, is_last);
            }
        }
    }

    /// Waits for the next packet until this time.
    fn receive(&mut self, until: Duration) -> Result<Option<RxPacket>, Stop> {
        let received = self.session.receive(until)?;
        self.note_lost(None);
        let Some(wire) = received else { return Ok(None) };
        let number = self.judge.count_packet();
        let wire = self.unshielded(wire);
        self.inbox.hear();
        let at = self.now();
        self.step(Entry::Received(wire.clone()));
        let seen = RxPacket { at, number, wire };
        self.watch().packet(number, &seen.wire);
        self.judge.look_for_refused_data(&seen);
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
        self.session.rest();
        if let Some(kept) = self.inbox.take(wanted) {
            return Ok(Some(kept));
        }
        let until = self.now() + within;
        while let Some(seen) = self.receive(until)? {
            if wanted(&seen) {
                return Ok(Some(seen));
            }
            self.inbox.keep(seen);
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
        found.into_iter().for_each(|(seen, ())| self.inbox.keep(seen));
        Ok(heard)
    }

    /// Takes all packets not yet taken and those that arrive within this time. On a real link, immediate
    /// reactions may be late, so the wait continues while packets arrive.
    pub fn gather(&mut self, within: Duration) -> Result<Vec<RxPacket>, Stop> {
        let last = self.now() + self.patience(within);
        loop {
            let before = self.inbox.count();
            self.pause(within)?;
            if self.inbox.count() == before || self.now() >= last {
                return Ok(self.inbox.take_all());
            }
        }
    }

    /// Discards all packets received so far.
    pub fn forget(&mut self) {
        self.judge.needed();
        self.inbox.forget();
    }

    /// Makes the rule inconclusive if the device has reported a lack of resources after packet `since`,
    /// unless the rule has set the limit.
    pub(crate) fn had_room(&self, since: usize) -> Outcome {
        match self.inbox.lack_of_room(since) {
            Some(full) if !self.session.has_set_any() => {
                Err(Stop::Inconclusive(format!("the device has no room: {}", full.uet())))
            }
            _ => Ok(()),
        }
    }

    /// Waits. Packets that arrive stay for later expectations.
    pub fn pause(&mut self, span: Duration) -> Outcome {
        self.wait(span, |_| None::<()>).map(drop)
    }

    /// Returns whether packets to the device lie unread on this host, as far as that is known. In virtual
    /// time, none do.
    pub(crate) fn has_unread(&mut self) -> bool {
        self.session.has_unread()
    }

    /// Returns whether programs on the host of the suite and a real-time device wait for a processor.
    pub(crate) fn is_host_busy(&mut self) -> bool {
        self.session.is_host_busy()
    }

    /// Returns whether the device has sent any packet.
    pub fn heard(&self) -> bool {
        self.inbox.heard()
    }
}
