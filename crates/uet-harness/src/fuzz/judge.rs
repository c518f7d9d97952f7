//! Checks a device after each case.

use super::packets::Memory;
use super::play::{Player, Pulse};
use super::{PassedPacket, Target, Trouble};
use crate::field::spdcid;
use core::time::Duration;
use std::collections::BTreeSet;
use std::time::SystemTime;
use uet_conformance::random::{Abilities, Sequence};
use uet_conformance::{Dut, DutError, DutExt, Region};
use uet_control::{AddPeer, CallError, Counters, Fill, Permission, ReadMemory, Reset};
use uet_wire::{PdcId, Psn};

/// A kind of trouble and its symptom.
pub(super) type Verdict = (Trouble, String);

/// Maximum time for an immediate reaction of a device.
const SOON: Duration = Duration::from_millis(20);

/// Maximum time without an answer on the control channel: every request is immediate.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// Maximum time without an answer in trials that minimize a finding, in times of [`SOON`].
const QUICK: u32 = 50;

/// Maximum time for which a closed context may be remembered.
const REMEMBERED: Duration = Duration::from_secs(2);

/// Number of packets remembered if the device cannot be reset.
const KEPT: usize = 1 << 14;

/// Number of attempts to reach a device that is starting.
const STARTING: usize = 100;

/// A device and its known state.
pub(super) struct Bench<'a> {
    target: &'a mut dyn Target,
    memory: Memory,
    soon: Duration,
    rng: fastrand::Rng,
    peer: Option<u64>,
    /// True if regions are exposed.
    exposed: bool,
    /// Contexts open after a reset; `None` if the device does not count them.
    pdcs: Option<u64>,
    /// Contents of the read-only memory.
    witness: Vec<u8>,
    /// True if all contexts since the last reset are closed.
    closed: bool,
    fresh: bool,
    passed: Vec<PassedPacket>,
    /// Number of steps since the last reset.
    steps: usize,
    /// Packets to the device and from it.
    pub(super) packets: [u64; 2],
}

impl<'a> Bench<'a> {
    pub(super) fn new(target: &'a mut dyn Target, seed: u64, scale: f64) -> Self {
        let mtu =
            target.dut().welcome().parameters.get("payload_mtu").and_then(|mtu| mtu.as_u64()).unwrap_or(4096);
        let memory = Memory::new(seed, mtu.clamp(1, 1 << 16) as usize);
        Bench {
            target,
            memory,
            soon: SOON.mul_f64(scale),
            rng: fastrand::Rng::with_seed(seed),
            peer: None,
            exposed: false,
            pdcs: None,
            witness: Vec::new(),
            closed: true,
            fresh: false,
            passed: Vec::new(),
            steps: 0,
            packets: [0; 2],
        }
    }

    /// Resets a device and checks its health. Fails with the reason why it cannot be fuzzed.
    pub(super) fn begun(target: &'a mut dyn Target, seed: u64, scale: f64) -> Result<Self, String> {
        let mut bench = Bench::new(target, seed, scale);
        bench.begin().map_err(|(trouble, what)| {
            format!("the device is in no state to be tested: {trouble}: {what}")
        })?;
        Ok(bench)
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns what conversations with the device may do.
    pub(super) fn abilities(&self) -> Abilities {
        Abilities::any(self.memory.mtu as u32, self.peer.is_some())
    }

    /// Returns whether nothing has happened since the last reset.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Takes the packets since the last reset, for a script of the last `steps` steps.
    pub(super) fn take_passed(&mut self, steps: usize) -> Vec<PassedPacket> {
        let mut passed = core::mem::take(&mut self.passed);
        for packet in &mut passed {
            packet.step = packet.step.and_then(|step| (step + steps).checked_sub(self.steps));
        }
        passed
    }

    /// Resets the device and checks its health.
    pub(super) fn begin(&mut self) -> Result<(), Verdict> {
        self.reset()?;
        self.check_pulse(true)
    }

    /// Brings the device back by a reset, or else by a restart.
    pub(super) fn revive(&mut self) -> Result<(), Verdict> {
        self.begin().or_else(|verdict| match self.renew() {
            Some(begun) => begun,
            None => Err(verdict),
        })
    }

    /// Restarts the device, if possible.
    fn renew(&mut self) -> Option<Result<(), Verdict>> {
        match self.target.restart() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(Err((Trouble::Crash, error.to_string()))),
        }
        // It may be reachable before it is ready.
        let mut begun = self.begin();
        for _ in 0..STARTING {
            if begun.is_ok() {
                break;
            }
            begun = self.begin();
        }
        Some(begun)
    }

    /// Shortens the wait for a silent control channel, from the next restart on: most trials of a hang wait that long.
    pub(super) fn hurry(&mut self, hurries: bool) {
        let short = self.soon.saturating_mul(QUICK).min(SILENCE);
        self.target.set_silence(if hurries { short } else { SILENCE });
    }

    /// Plays a script to a fresh device, checks the device, and returns the trouble and its symptom.
    pub(super) fn tries(&mut self, script: &Sequence) -> Option<Verdict> {
        // The effects of a fault may outlast a reset.
        let begun = self.renew().unwrap_or_else(|| self.begin());
        match begun {
            Ok(()) => self.case(script, true),
            Err(_) => None,
        }
    }

    /// Plays a script and checks the device. Also checks contexts, and the device after a reset, if this is the `last`
    /// case before a reset or the open contexts are unknown.
    pub(super) fn case(&mut self, script: &Sequence, last: bool) -> Option<Verdict> {
        self.fresh = false;
        self.check(script, last).err()
    }

    fn check(&mut self, script: &Sequence, last: bool) -> Result<(), Verdict> {
        let closed = self.play(|player| {
            player.play(script)?;
            player.close()
        });
        self.steps += script.steps.len();
        self.closed &= closed?;
        self.check_memory()?;
        self.check_pulse(self.closed)?;
        self.check_memory()?;
        if !last && self.closed || !self.can_reset() {
            return Ok(());
        }
        self.check_contexts(self.closed, "after all contexts are closed")?;
        let before = self.pdcs;
        self.reset()?;
        self.fresh = true;
        match (before, self.pdcs) {
            (Some(before), Some(now)) if now > before => Err((
                Trouble::Leak,
                format!("after a reset the device has {now} contexts; before, it had {before}"),
            )),
            _ => Ok(()),
        }
    }

    /// Plays a conversation and keeps its packets.
    fn play<T>(&mut self, what: impl FnOnce(&mut Player<'_>) -> Result<T, DutError>) -> Result<T, Verdict> {
        let mut player = Player::new(self.target.dut(), &self.memory, self.peer, self.soon);
        let done = what(&mut player);
        let mut passed = player.passed;
        let device = self.target.dut().facts().device;
        // The clock of a link begins anywhere.
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        let begin = since_1970.and_then(|now| now.checked_sub(self.target.dut().now()));
        let begin = begin.filter(|_| self.target.is_real_time()).unwrap_or_default();
        for packet in &mut passed {
            packet.at += begin;
            packet.step = packet.step.map(|step| step + self.steps);
            self.packets[usize::from(packet.wire.src == device)] += 1;
        }
        self.passed.extend(passed);
        self.passed.drain(..self.passed.len().saturating_sub(KEPT));
        done.map_err(|error| (Trouble::Crash, self.target.ended().unwrap_or(error.0)))
    }

    fn can_reset(&self) -> bool {
        self.pdcs.is_some() || self.exposed
    }

    /// Resets the device and prepares memory. Keeps the packets if that fails: they belong to the finding.
    fn reset(&mut self) -> Result<(), Verdict> {
        self.prepare()?;
        self.passed.clear();
        self.steps = 0;
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Verdict> {
        self.closed = true;
        match self.target.dut().call(Reset {}) {
            Ok(_) => {}
            Err(error) => return self.without::<()>(error).map(drop),
        }
        self.peer = match self.target.dut().facts().local.first().copied() {
            Some(address) => {
                let peer = AddPeer { address, port: None, job: 101, process: 1, initiator: 0 };
                self.ask(|dut| dut.call(peer))?.map(|answer| answer.peer)
            }
            None => None,
        };
        self.exposed = self.expose()?;
        self.pdcs = self.count()?;
        Ok(())
    }

    fn expose(&mut self) -> Result<bool, Verdict> {
        use Permission::{Atomic, Read, Write};
        let Memory { home, witness, pulse, .. } = self.memory.clone();
        let all = [Read, Write, Atomic];
        for (mut region, permissions) in [(home, &all[..]), (witness, &[Read]), (pulse, &all)] {
            let exposed = region.exposure(permissions, Some(Fill::Seed(u32::from(region.index))));
            let Some(answer) = self.ask(|dut| dut.call(exposed))? else { return Ok(false) };
            region.number = answer.region;
            region.key = answer.key.map_or(region.key, |key| key.0);
            match region.index {
                10 => self.memory.home = region,
                11 => self.memory.witness = region,
                _ => self.memory.pulse = region,
            }
        }
        let length = self.memory.witness.length as usize;
        self.witness = uet_control::pattern(u32::from(self.memory.witness.index)).take(length).collect();
        Ok(true)
    }

    /// Returns the number of contexts of the device.
    fn count(&mut self) -> Result<Option<u64>, Verdict> {
        Ok(self.ask(|dut| dut.call(Counters {}))?.map(|counted| counted.pdcs))
    }

    /// Returns an answer of the control channel; `None` if the device lacks the operation.
    fn ask<T>(
        &mut self,
        op: impl FnOnce(&mut dyn Dut) -> Result<T, CallError>,
    ) -> Result<Option<T>, Verdict> {
        match op(self.target.dut()) {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => self.without(error),
        }
    }

    /// Handles a failed operation.
    fn without<T>(&mut self, error: CallError) -> Result<Option<T>, Verdict> {
        match error {
            CallError::Refused { .. } => Ok(None),
            CallError::Channel { error: cause, .. } => {
                let silent =
                    matches!(cause.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock);
                match self.target.ended() {
                    Some(status) => Err((Trouble::Crash, status)),
                    None if silent => Err((Trouble::Hang, "the control channel does not answer".into())),
                    None => Err((Trouble::Crash, format!("the control channel: {cause}"))),
                }
            }
        }
    }

    /// Checks that a plain write is answered and takes effect. A refusal is wrong unless other contexts are open.
    fn check_pulse(&mut self, closed: bool) -> Result<(), Verdict> {
        let (local, start) = (self.unused(), Psn(self.rng.u32(..)));
        let beat = self.rng.u64(..).to_le_bytes();
        let Some((pulse, over)) = self.play(|player| player.pulse(local, start, beat))? else {
            return Err(self.silent());
        };
        self.closed &= over;
        match pulse {
            Pulse::Done if self.exposed => {
                let pulse = self.memory.pulse.clone();
                match self.read(&pulse)? {
                    Some(held) if held != beat => Err((
                        Trouble::Corruption,
                        "a plain write is acknowledged, and memory has something else".into(),
                    )),
                    _ => Ok(()),
                }
            }
            Pulse::Refused if self.exposed && closed => {
                Err((Trouble::Corruption, "a plain write is refused, though nothing else is open".into()))
            }
            _ => Ok(()),
        }
    }

    /// Returns a PDCID that no recent context had. A device may remember a recent context and send packets about it.
    fn unused(&mut self) -> PdcId {
        let used: BTreeSet<PdcId> =
            self.passed.iter().filter_map(|packet| spdcid(&packet.wire.bytes)).collect();
        loop {
            // At most KEPT values are in use.
            let local = PdcId(self.rng.u16(1..));
            if !used.contains(&local) {
                return local;
            }
        }
    }

    /// Returns the reason why a device answers no packets.
    fn silent(&mut self) -> Verdict {
        if let Some(status) = self.target.ended() {
            return (Trouble::Crash, status);
        }
        match self.ask(|dut| dut.call(Counters {})) {
            Err(verdict) => verdict,
            Ok(Some(_)) => {
                (Trouble::Hang, "a plain request gets no answer, although the control channel answers".into())
            }
            Ok(None) => (Trouble::Hang, "a plain request gets no answer".into()),
        }
    }

    /// Checks that read-only memory is unchanged.
    fn check_memory(&mut self) -> Result<(), Verdict> {
        if !self.exposed {
            return Ok(());
        }
        let region = self.memory.witness.clone();
        let held = self.read(&region)?;
        let wrong = held.and_then(|held| held.iter().zip(&self.witness).position(|(held, was)| held != was));
        match wrong {
            None => Ok(()),
            Some(at) => {
                Err((Trouble::Corruption, format!("byte {at} of memory that may only be read has changed")))
            }
        }
    }

    fn read(&mut self, region: &Region) -> Result<Option<Vec<u8>>, Verdict> {
        let piece = ReadMemory { region: region.number, offset: 0, length: region.length };
        Ok(self.ask(|dut| dut.call(piece))?.map(|memory| memory.data.0))
    }

    /// Checks that closed contexts are forgotten after a time.
    fn check_contexts(&mut self, closed: bool, why: &str) -> Result<(), Verdict> {
        let Some(before) = self.pdcs.filter(|_| closed) else { return Ok(()) };
        let until = self.target.dut().now() + REMEMBERED;
        loop {
            let Some(now) = self.count()? else { return Ok(()) };
            if now <= before {
                return Ok(());
            }
            if self.target.dut().now() >= until {
                return Err((
                    Trouble::Leak,
                    format!("{why}, the device has {now} contexts; before the case, it had {before}"),
                ));
            }
            let soon = self.soon;
            self.play(|player| player.idle(soon))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Inside;
    use core::net::{IpAddr, Ipv4Addr};
    use uet_conformance::{Pdc, Wire};
    use uet_emulator::Config;

    /// Records how long its control channel may be silent.
    struct Recorder(Inside, Vec<Duration>);

    impl Target for Recorder {
        fn dut(&mut self) -> &mut dyn Dut {
            self.0.dut()
        }

        fn restart(&mut self) -> std::io::Result<bool> {
            Ok(false)
        }

        fn set_silence(&mut self, silence: Duration) {
            self.1.push(silence);
        }
    }

    #[test]
    fn trials_wait_a_shorter_time_for_a_silent_control_channel() {
        for (scale, short) in [(1.0, 1), (3.0, 3), (100.0, 5)] {
            let mut target = Recorder(Inside::new(Config::default()).unwrap(), Vec::new());
            let mut bench = Bench::new(&mut target, 1, scale);
            bench.hurry(true);
            bench.hurry(false);
            assert_eq!(target.1, [short, 5].map(Duration::from_secs));
        }
    }

    #[test]
    fn packets_have_the_steps_of_the_last_cases() {
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let passed = |step| {
            let wire = Wire::new(any, any, 0, Vec::new());
            PassedPacket { at: Duration::ZERO, wire, change: String::new(), step, from_device: false }
        };
        let mut target = Inside::new(Config::default()).unwrap();
        let mut bench = Bench::new(&mut target, 1, 1.0);
        // Three steps of an earlier case, and two of the last one.
        (bench.steps, bench.passed) = (5, [Some(2), Some(3), None, Some(4)].map(passed).to_vec());
        let steps: Vec<_> = bench.take_passed(2).into_iter().map(|packet| packet.step).collect();
        assert_eq!(steps, [None, Some(0), None, Some(1)]);
    }

    #[test]
    fn a_pulse_has_a_pdcid_that_nothing_else_had() {
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let request = |local: u16| {
            let local = PdcId(local);
            let pdc = Pdc { from: any, to: any, local, remote: None, start: Psn(7), rod: false, entropy: 0 };
            pdc.raw(&pdc.request(0).build().unwrap().to_bytes())
        };
        let mut target = Inside::new(Config::default()).unwrap();
        let mut bench = Bench::new(&mut target, 1, 1.0);
        let (at, step, from_device) = (Duration::ZERO, None, false);
        let passed = |id| PassedPacket { at, wire: request(id), change: String::new(), step, from_device };
        bench.passed = (1..=u16::MAX).filter(|id| *id != 0x54bc).map(passed).collect();
        assert_eq!(bench.unused(), PdcId(0x54bc));
    }
}
