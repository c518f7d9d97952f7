//! A long write of the device, and the answers that a destination and a network would give: what is in flight shows the
//! device's window.

use crate::target::{Target, post};
use crate::{Outcome, RxPacket, Stop, Test};
use core::time::Duration;
use uet_control::{Mode, Operated, Post, PostKind};
use uet_wire::pds::PdsBuf;
use uet_wire::registry::NackCode;
use uet_wire::{UetBuf, Units24};

/// The bytes that congestion control adds to a packet's bytes from PDS on: 8 of UDP, and 40 (section 3.6.12).
const AROUND: u64 = 8 + 40;

/// The nominal size of a packet.
pub fn nominal(bytes: usize) -> u64 {
    bytes as u64 + AROUND
}

/// How packets are answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    /// So long after they have come.
    pub delay: Duration,
    /// As ones that arrived marked.
    pub marked: bool,
    /// With this receiver penalty.
    pub penalty: u8,
    /// With `rc`.
    pub restore: bool,
}

/// A long write of the device. Its packets are acknowledged one by one, in order.
#[derive(Debug)]
pub struct Flow {
    /// Its context.
    pub target: Target,
    /// The write.
    pub operation: Operated,
    /// How long a packet and an answer at once take together, where that has been measured.
    pub way: Duration,
    /// So many packets are acknowledged.
    acked: u32,
}

impl Test<'_> {
    /// Has the device run this algorithm of congestion control and no other, if it does not yet.
    pub fn congestion(&mut self, wanted: &str) -> Outcome {
        self.congestion_of(&[wanted])
    }

    /// Selects this algorithm unless the device runs it already, alone or with another one (`both`).
    pub fn congestion_or_both(&mut self, wanted: &str) -> Outcome {
        self.congestion_of(&[wanted, "both"])
    }

    /// Has the device run the first of these, if it does not run one of them.
    fn congestion_of(&mut self, wanted: &[&str]) -> Outcome {
        match self.word("congestion") {
            Some(runs) if !wanted.contains(&runs) => self.configure("congestion", wanted[0]),
            _ => Ok(()),
        }
    }

    /// The base round trip that the device is configured for.
    pub fn base_rtt(&self) -> Result<Duration, Stop> {
        match self.parameter("base_rtt", 0) {
            0 => Err(Stop::Skipped("the device does not say its base_rtt".into())),
            nanoseconds => Ok(Duration::from_nanos(nanoseconds)),
        }
    }

    /// Returns the measured round-trip time. Skips if it exceeds the device's base round trip: then every packet looks
    /// late to the device, whatever the answers are.
    pub fn keeps_base_rtt(&mut self) -> Result<Duration, Stop> {
        let longest = self.base_rtt()?;
        let (pdc, region) = self.open()?;
        let mut way = Duration::MAX;
        // Others may use the way too: the shortest of some counts.
        for n in 1..=4 {
            let sent = self.now();
            self.request(&pdc, pdc.request(n).write(&region, 0, &[0])?)?;
            let (seen, _) = self.need_ack(&pdc, pdc.psn(n))?;
            way = way.min(seen.at - sent);
        }
        self.forget();
        match way > longest {
            true => Err(Stop::Skipped(format!(
                "a round trip takes {way:?}, the device's base_rtt is {longest:?}"
            ))),
            false => Ok(way),
        }
    }

    /// Returns the bandwidth-delay product in bytes, from the device's configured rates and base round trip.
    pub fn bdp(&self) -> Result<u64, Stop> {
        let rate = self.parameter("sender_rate", 0).min(self.parameter("receiver_rate", 0));
        match rate {
            0 => Err(Stop::Skipped("the device does not say the rates of its network".into())),
            rate => Ok((rate as f64 * self.base_rtt()?.as_secs_f64() / 8.0) as u64),
        }
    }

    /// How long an answer may take so that its packet is not sent again: an error where round trips are too long for that.
    pub fn round_trips(&self, count: u32) -> Result<Duration, Stop> {
        let span = self.base_rtt()? * count;
        match span * 2 < self.rto() {
            true => Ok(span),
            false => Err(Stop::Skipped("the timeout is too close to the round trip".into())),
        }
    }
}

impl Flow {
    /// Starts a write of so many packets by this mode.
    pub fn start(t: &mut Test<'_>, mode: Mode, packets: usize) -> Result<Self, Stop> {
        let peer = t.peer(0)?;
        let operation = t.post(Post { mode, ..post(PostKind::Write, peer, packets * t.mtu()) })?;
        let target = Target::accept(t)?;
        Ok(Flow { target, operation, way: Duration::ZERO, acked: 0 })
    }

    /// Goes on with an operation whose first packet has opened a context.
    pub fn of(t: &mut Test<'_>, first: RxPacket, operation: Operated) -> Result<Self, Stop> {
        let target = Target::opened_by(t, first)?;
        Ok(Flow { target, operation, way: Duration::ZERO, acked: 0 })
    }

    /// Starts a write of so many packets on a context whose packets so far are all acknowledged.
    pub fn start_on(t: &mut Test<'_>, target: Target, packets: usize) -> Result<Self, Stop> {
        let peer = t.peer(0)?;
        let acked = target.highest() + 1;
        let operation = t.post(post(PostKind::Write, peer, packets * t.mtu()))?;
        Ok(Flow { target, operation, way: Duration::ZERO, acked })
    }

    /// Returns the nominal size of the `n`-th packet, 0 if it has not come.
    pub fn bytes_of(&self, n: u32) -> u64 {
        self.target.arrived.get(&n).map_or(0, |(_, size)| *size)
    }

    /// Returns when the newest packet came.
    pub fn newest(&self) -> Duration {
        self.target.arrived.values().map(|(at, _)| *at).max().unwrap_or_default()
    }

    /// Takes in what comes until then, without an answer.
    pub fn watch_until(&mut self, t: &mut Test<'_>, until: Duration) -> Outcome {
        while self.next(t, until)?.is_some() {}
        Ok(())
    }

    /// How many different packets have come.
    pub fn count(&self) -> u32 {
        self.target.arrived.len() as u32
    }

    /// The nominal bytes of all that has come, each packet once.
    pub fn bytes(&self) -> u64 {
        self.target.bytes_before(u32::MAX)
    }

    /// The bytes that have come and are not acknowledged: the device has at least so much in flight.
    pub fn in_flight(&self) -> u64 {
        self.bytes() - self.target.bytes_before(self.acked)
    }

    /// How many packets are acknowledged.
    pub fn acked(&self) -> u32 {
        self.acked
    }

    /// Takes in the next packet, until then.
    pub fn next(&mut self, t: &mut Test<'_>, until: Duration) -> Result<Option<RxPacket>, Stop> {
        let within = until.saturating_sub(t.now());
        Ok(self.target.next(t, within)?.map(|got| got.seen.clone()))
    }

    /// Takes in what comes without an answer, until nothing more does: well before the first timeout.
    pub fn fill(&mut self, t: &mut Test<'_>) -> Outcome {
        let end = t.now() + t.rto() / 2;
        while t.now() < end && self.next(t, (t.now() + t.grace()).min(end))?.is_some() {}
        Ok(())
    }

    /// The ACK of the packets before the `n`-th, as [`Answers`] say.
    pub fn answer(&self, n: u32, answers: &Answers) -> Result<UetBuf, Stop> {
        let mut ack = self.target.acking(n - 1);
        ack.nscc = Some((Units24::from_bytes(self.target.bytes_before(n)), 1));
        ack.marked = answers.marked;
        let mut packet = ack.build()?;
        if let Some(PdsBuf::AckCc(header)) = packet.pds {
            let header = header.edit().rc(answers.restore).rcv_cwnd_pend(answers.penalty).done()?;
            packet.pds = Some(header.into());
        }
        Ok(packet)
    }

    /// Acknowledges the next packet.
    pub fn acknowledge(&mut self, t: &mut Test<'_>, answers: &Answers) -> Outcome {
        let packet = self.answer(self.acked + 1, answers)?;
        t.send(&self.target.pdc, &packet)?;
        self.acked += 1;
        Ok(())
    }

    /// Lets it go on for this time with such answers; the most that was in flight in the second half of it.
    pub fn run(&mut self, t: &mut Test<'_>, span: Duration, answers: &Answers) -> Result<u64, Stop> {
        let (begun, half, end) = (t.now(), t.now() + span / 2, t.now() + span);
        let mut most = 0;
        while t.now() < end {
            let due = self.target.arrived.get(&self.acked).map(|(at, _)| *at + answers.delay);
            match due {
                Some(due) if due <= t.now() => {
                    // A packet from before this run may have been due for a later answer.
                    t.was_late(t.now() - due.max(begun));
                    self.acknowledge(t, answers)?;
                }
                due => drop(self.next(t, due.unwrap_or(end).min(end))?),
            }
            if t.now() >= half {
                most = most.max(self.in_flight());
            }
        }
        Ok(most)
    }

    /// Refuses the `n`-th packet.
    pub fn refuse(&self, t: &mut Test<'_>, code: NackCode, n: u32) -> Outcome {
        self.target.refuse(t, code, n)
    }
}
