//! A suite on a busy machine: its late measurements prove nothing about the device.

use crate::around::{Changes, Device, receive_and_read};
use core::time::Duration;
use std::collections::VecDeque;
use uet_conformance::{Dut, DutError, Facts, Options, Verdict, Wire, run};
use uet_emulator::{Config, fault};
use uet_harness::dut::Embedded;
use uet_wire::pds::Pds;
use uet_wire::{Psn, Uet};

/// A suite that sleeps this long at every tenth packet.
struct Busy {
    pause: Duration,
    sent: u32,
    came: VecDeque<Wire>,
}

impl Changes for Busy {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        self.sent += 1;
        if self.sent % 10 == 0 {
            let until = nic.now() + self.pause;
            while let Some(wire) = nic.receive(until)? {
                self.came.push_back(wire);
            }
        }
        nic.send(packet)
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        match self.came.pop_front() {
            Some(wire) => Ok(Some(wire)),
            None => nic.receive(until),
        }
    }
}

/// Runs a rule in real time, as the suite believes.
fn verdict(id: &str, changes: impl Changes) -> (Verdict, String) {
    verdict_of(id, Device::new(changes))
}

fn verdict_of(id: &str, mut device: Device<impl Changes>) -> (Verdict, String) {
    device.facts = Facts { virtual_time: false, ..device.facts };
    let result = run(&mut device, &Options { ids: vec![id.to_owned()], ..Options::default() }, |_| ());
    (result.rules[0].verdict, result.rules[0].reason.clone())
}

fn pausing(pause: Duration) -> Busy {
    Busy { pause, sent: 0, came: VecDeque::new() }
}

#[test]
fn late_suite_makes_rules_inconclusive() {
    let (verdict, reason) = verdict("nscc/marked-below-target", pausing(Duration::from_micros(60)));
    assert_eq!(verdict, Verdict::Inconclusive, "{reason}");
    assert!(reason.contains("late: the machine is too busy for this"), "{reason}");
}

#[test]
fn undisturbed_rules_are_judged() {
    assert_eq!(verdict("nscc/marked-below-target", pausing(Duration::ZERO)).0, Verdict::Pass);
}

/// A link that takes this long for each packet.
struct Slow {
    each: Duration,
    free: Duration,
    came: VecDeque<Wire>,
}

impl Changes for Slow {
    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            let next = if self.came.is_empty() { until } else { self.free.min(until) };
            match nic.receive(next)? {
                Some(wire) => self.came.push_back(wire),
                None if self.free > until => return Ok(None),
                None => {
                    let wire = self.came.pop_front();
                    self.free = nic.now() + wire.as_ref().map_or(Duration::ZERO, |_| self.each);
                    return Ok(wire);
                }
            }
        }
    }
}

/// 128 answers take longer than the limit for immediate reactions.
#[test]
fn slow_packets_are_waited_for() {
    let slow = Slow { each: Duration::from_millis(1), free: Duration::ZERO, came: VecDeque::new() };
    let (verdict, reason) = verdict("ack/monotonic-cack", slow);
    assert_eq!(verdict, Verdict::Pass, "{reason}");
}

/// The suite reads the packet that fills the window after the time in which it waits for one.
#[test]
fn unread_packets_leave_the_full_window_open() {
    let slow = Slow { each: Duration::from_micros(20), free: Duration::ZERO, came: VecDeque::new() };
    let (verdict, reason) = verdict("nscc/full-window-ack-request", slow);
    assert_eq!((verdict, &reason[..]), (Verdict::Inconclusive, "packets still arrive near the timeout"));
}

/// A host that loses both copies of the tenth packet.
#[derive(Default)]
struct Overrun {
    sent: u32,
    victim: Option<Psn>,
    lost: u32,
}

impl Changes for Overrun {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        self.sent += 1;
        let request = Uet::parse_lax(&packet.bytes).0.pds.and_then(|pds| pds.request());
        let psn = request.map(|request| request.psn());
        if self.sent == 10 {
            self.victim = psn;
        }
        if psn.is_some() && psn == self.victim && self.lost < 2 {
            self.lost += 1;
            return Ok(());
        }
        nic.send(packet)
    }
}

#[test]
fn packet_lost_twice_by_the_host_is_sent_again() {
    let (verdict, reason) = verdict("ack/monotonic-cack", Overrun::default());
    assert_eq!(verdict, Verdict::Pass, "{reason}");
}

/// A device that reads bitmaps, and all packets after them, so late that its timers expire before.
struct Starved {
    /// True if its host shows unread packets.
    shows: bool,
    unread: VecDeque<(Duration, Wire)>,
}

/// Longer than RTO_Init_Time in real time.
const STARVED: Duration = Duration::from_millis(30);

fn has_bitmap(packet: &Wire) -> bool {
    let Some(Pds::AckCc(header)) = Uet::parse_lax(&packet.bytes).0.pds else { return false };
    header.copied().sacked().next().is_some()
}

impl Changes for Starved {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        if self.unread.is_empty() && !has_bitmap(packet) {
            return nic.send(packet);
        }
        self.unread.push_back((nic.now() + STARVED, packet.clone()));
        Ok(())
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        receive_and_read(&mut self.unread, nic, until)
    }

    fn reads_nothing(&mut self) -> bool {
        self.shows && !self.unread.is_empty()
    }
}

/// The device retransmits a packet before it reads the bitmap that names it. If the host shows unread
/// packets, the suite lets the device read them first. A device that ignores the bitmap fails all the same.
#[test]
fn device_may_retransmit_before_it_reads_an_ack() {
    let wrong = fault::find("overlooks-bitmaps");
    for (shows, wrong, expected) in
        [(true, None, Verdict::Pass), (false, None, Verdict::Fail), (true, wrong, Verdict::Fail)]
    {
        let faults: Vec<_> = wrong.into_iter().collect();
        let mut device = Device::new(Starved { shows, unread: VecDeque::new() });
        device.nic = Embedded::with_faults(Config::real_time(), &faults).unwrap();
        let (verdict, reason) = verdict_of("retransmit/sacked", device);
        assert_eq!(verdict, expected, "{shows} {expected:?}: {reason}");
    }
}
