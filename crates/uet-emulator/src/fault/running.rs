//! The active faults of one NIC.

use super::Fault;
use super::guard::{Guard, Hooks, Shared};
use super::seen::{Exposed, Memo, Seen};
use super::tap::{Beside, Middle, Tap, Wire};
use crate::Config;
use crate::security::Security;
use std::collections::VecDeque;
use uet_control::SecureDomain;
use uet_model::pds::Protect;
use uet_model::ses::{Completion, Receive, Region, RegionId, ResourceIndex};
use uet_model::{Command, Indication, LayerTap, Packet, Time};

/// The faults of one NIC and their state. Without faults, every packet passes unchanged.
#[derive(Debug, Default)]
pub(crate) struct Running {
    faults: Vec<(&'static Fault, Memo)>,
    seen: Seen,
    beside: Beside,
    guarded: Shared,
    /// Packets that leave next.
    leaving: VecDeque<Packet>,
    up: Vec<Indication>,
    down: Vec<Command>,
}

/// Input for the model beyond the packets that arrive.
#[derive(Debug)]
pub(crate) enum Handed {
    Packet(Packet),
    Indication(Indication),
}

impl Running {
    pub(crate) fn new(faults: &[&'static Fault]) -> Self {
        Running {
            faults: faults.iter().map(|fault| (*fault, Memo::default())).collect(),
            ..Running::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    pub(crate) fn faults(&self) -> impl Iterator<Item = &'static Fault> {
        self.faults.iter().map(|(fault, _)| *fault)
    }

    fn taps(&self) -> impl Iterator<Item = &'static Tap> {
        self.faults().flat_map(|fault| fault.taps)
    }

    /// Returns the effective parameters, which can differ from the reported ones.
    pub(crate) fn config(&self, config: &Config) -> Config {
        let mut config = config.clone();
        for tap in self.taps() {
            if let Tap::Config(change) = tap {
                change(&mut config);
            }
        }
        config
    }

    fn hooks(&self) -> impl Iterator<Item = Hooks> + '_ {
        self.taps().filter_map(|tap| match tap {
            Tap::Guard(hooks) => Some(*hooks),
            _ => None,
        })
    }

    /// Returns the domains that are installed instead of these.
    pub(crate) fn domains(&self, domains: &[SecureDomain]) -> Vec<SecureDomain> {
        let mut domains = domains.to_vec();
        for change in self.hooks().filter_map(|hooks| hooks.install) {
            domains.iter_mut().for_each(change);
        }
        domains
    }

    /// Returns the protection for packet delivery; `None` without a domain.
    pub(crate) fn guard(&self, security: &Security) -> Option<Box<dyn Protect>> {
        let right = security.protection()?;
        let hooks: Vec<Hooks> = self.hooks().collect();
        if hooks.is_empty() {
            return Some(right);
        }
        Some(Box::new(Guard::new(security, hooks, &self.guarded)))
    }

    /// Handles an arriving packet and returns the input for the model.
    pub(crate) fn arrive(&mut self, now: Time, packet: Packet) -> Vec<Packet> {
        if self.is_empty() {
            return vec![packet];
        }
        self.seen.note_received(&packet);
        self.through(now, packet, |tap, wire, mut packet| match tap {
            Tap::In(tap) => tap(wire, packet),
            Tap::EditIn(edit) => {
                edit(wire, &mut packet);
                wire.pass(packet);
            }
            _ => wire.pass(packet),
        })
    }

    /// Handles an outgoing packet of the model; [`poll_leaving`](Self::poll_leaving) returns the packets that leave.
    pub(crate) fn leave(&mut self, now: Time, packet: Packet) {
        if self.is_empty() {
            return self.leaving.push_back(packet);
        }
        self.seen.note_sent(&packet);
        let passed = self.through(now, packet, |tap, wire, mut packet| match tap {
            Tap::Out(tap) => tap(wire, packet),
            Tap::EditOut(edit) => {
                edit(wire, &mut packet);
                wire.pass(packet);
            }
            _ => wire.pass(packet),
        });
        self.leaving.extend(passed);
    }

    fn through(
        &mut self,
        now: Time,
        packet: Packet,
        act: impl Fn(&Tap, &mut Wire<'_>, Packet),
    ) -> Vec<Packet> {
        let Running { faults, seen, beside, .. } = self;
        let mut packets = vec![packet];
        for (fault, memo) in faults {
            for tap in fault.taps {
                let mut passed = Vec::new();
                for packet in packets {
                    let (memo, passed) = (&mut *memo, &mut passed);
                    act(tap, &mut Wire { now, seen, memo, passed, beside }, packet);
                }
                packets = passed;
            }
        }
        packets
    }

    /// Returns whether a damaged packet is accepted.
    pub(crate) fn believes(&self, packet: &Packet) -> bool {
        self.taps().any(|tap| matches!(tap, Tap::Damaged(believes) if believes(packet)))
    }

    /// Returns the bit of a packet that changes after its CRC has been computed.
    pub(crate) fn corrupted_bit(&self, packet: &Packet) -> Option<usize> {
        self.taps().find_map(|tap| match tap {
            Tap::Sealed(corrupted_bit) => corrupted_bit(packet),
            _ => None,
        })
    }

    /// Returns the traffic class read from the first four bytes of an IPv6 header, if it is wrong.
    pub(crate) fn read_class(&self, start: u32) -> Option<u8> {
        self.taps().find_map(|tap| match tap {
            Tap::ReadClass(read) => Some(read(start)),
            _ => None,
        })
    }

    /// Returns the first four bytes of an IPv6 header for a traffic class, if they are wrong.
    pub(crate) fn written_class(&self, class: u8) -> Option<u32> {
        self.taps().find_map(|tap| match tap {
            Tap::WriteClass(write) => Some(write(class)),
            _ => None,
        })
    }

    pub(crate) fn poll_leaving(&mut self, now: Time) -> Option<Packet> {
        let due = take_due(&mut self.beside.leave, now);
        self.leaving.extend(due);
        self.leaving.pop_front()
    }

    /// Returns input for the model beyond the packets that arrive.
    pub(crate) fn poll_handed(&mut self, now: Time) -> Vec<Handed> {
        let packets = take_due(&mut self.beside.arrive, now).into_iter().map(Handed::Packet);
        packets.chain(self.beside.up.drain(..).map(Handed::Indication)).collect()
    }

    /// Returns when the next delayed action is due.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.beside.leave.iter().chain(&self.beside.arrive).map(|(at, _)| *at).min()
    }

    pub(crate) fn expose(&self, region: &mut Region) {
        self.taps().for_each(|tap| {
            if let Tap::Expose(tap) = tap {
                tap(region)
            }
        });
    }

    pub(crate) fn exposed(&mut self, id: RegionId, index: ResourceIndex, key: u64, length: usize) {
        if !self.is_empty() {
            self.seen.regions.push(Exposed { id, index, key, length });
        }
    }

    pub(crate) fn withdrawn(&mut self, id: RegionId) {
        self.seen.regions.retain(|region| region.id != id);
    }

    pub(crate) fn generation(&mut self, index: ResourceIndex, generation: u8) {
        if !self.is_empty() {
            self.seen.generations.retain(|(known, _)| *known != index);
            self.seen.generations.push((index, generation));
        }
    }

    pub(crate) fn receive(&self, receive: &mut Receive) {
        self.taps().for_each(|tap| {
            if let Tap::Receive(tap) = tap {
                tap(receive)
            }
        });
    }

    pub(crate) fn completion(&self, completion: Completion) -> Option<Completion> {
        self.taps().try_fold(completion, |completion, tap| match tap {
            Tap::Completion(tap) => tap(completion),
            _ => Some(completion),
        })
    }
}

fn take_due(waiting: &mut Vec<(Time, Packet)>, now: Time) -> Vec<Packet> {
    if waiting.is_empty() {
        return Vec::new();
    }
    let (due, later) = core::mem::take(waiting).into_iter().partition(|(at, _)| *at <= now);
    *waiting = later;
    let mut due: Vec<(Time, Packet)> = due;
    due.sort_by_key(|(at, _)| *at);
    due.into_iter().map(|(_, packet)| packet).collect()
}

impl LayerTap for Running {
    fn on_indication(&mut self, _: Time, indication: Indication) -> impl Iterator<Item = Indication> {
        let Running { faults, seen, beside, up, .. } = self;
        up.push(indication);
        for (fault, memo) in faults {
            for tap in fault.taps {
                let mut passed = Vec::new();
                for mut said in up.drain(..) {
                    let (memo, passed) = (&mut *memo, &mut passed);
                    let mut middle = Middle { seen, memo, passed, beside };
                    match tap {
                        Tap::Up(tap) => tap(&mut middle, said),
                        Tap::EditRequest(edit) => {
                            if let Indication::Request(request) = &mut said {
                                edit(&mut middle, request);
                            }
                            middle.pass(said);
                        }
                        _ => middle.pass(said),
                    }
                }
                *up = passed;
            }
        }
        up.drain(..)
    }

    fn on_command(&mut self, _: Time, command: Command) -> impl Iterator<Item = Command> {
        let Running { faults, seen, beside, down, .. } = self;
        down.push(command);
        for (fault, memo) in faults {
            for tap in fault.taps {
                if let Tap::EditResponse(edit) = tap {
                    for said in down.iter_mut() {
                        if let Command::Respond(_, response) = said {
                            edit(response);
                        }
                    }
                }
                let Tap::Down(tap) = tap else { continue };
                let mut passed = Vec::new();
                for said in down.drain(..) {
                    let (memo, passed) = (&mut *memo, &mut passed);
                    tap(&mut Middle { seen, memo, passed, beside }, said);
                }
                *down = passed;
            }
        }
        down.drain(..)
    }
}
