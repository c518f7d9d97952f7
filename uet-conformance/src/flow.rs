//! A long write of the device, with the answers of a destination and a network. The bytes in flight show the
//! device's window.

use crate::target::{Target, post};
use crate::{Outcome, Pdc, RxPacket, Show, Stop, Test};
use core::time::Duration;
use uet_control::{Mode, Operated, Post, PostKind};
use uet_wire::UetBuf;
use uet_wire::pds::PdsBuf;
use uet_wire::registry::NackCode;

/// The answers to packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    /// The delay from the arrival of a packet to its answer.
    pub delay: Duration,
    /// The least time between two answers, as on a link that is the narrowest of the path.
    pub pace: Duration,
    /// True if the packets count as marked.
    pub marked: bool,
    /// The receiver penalty.
    pub penalty: u8,
    /// The value of `rc`.
    pub restore: bool,
    /// The part of the delay that `service_time` explains.
    pub service: Duration,
    /// True if `service_time` is 0, so that the answers give no sample of the round-trip time.
    pub unmeasured: bool,
    /// The packet that has not arrived, if any. The ACKs of later ones are above a gap.
    pub missing: Option<u32>,
    /// The most packets that an ACK of [`Flow::run`] covers; 0 and 1 for an ACK of each.
    pub coalesced: u32,
}

/// A long write of the device, or the data of its peer's reads. The packets are acknowledged one by one, in
/// order.
#[derive(Debug)]
pub struct Flow {
    /// Its context.
    pub target: Target,
    /// The write, if it is one.
    pub operation: Operated,
    /// The measured round-trip time with an immediate answer, if any.
    pub way: Duration,
    /// The number of acknowledged packets.
    acked: u32,
    /// The time of the newest ACK.
    answered: Duration,
}

impl Test<'_> {
    /// Selects this algorithm of congestion control alone, unless the device runs it already.
    pub fn congestion(&mut self, wanted: &str) -> Outcome {
        self.congestion_of(&[wanted])
    }

    /// Selects this algorithm unless the device runs it already, alone or with another one (`both`).
    pub fn congestion_or_both(&mut self, wanted: &str) -> Outcome {
        self.congestion_of(&[wanted, "both"])
    }

    /// Selects the first of these algorithms, unless the device runs one of them already.
    fn congestion_of(&mut self, wanted: &[&str]) -> Outcome {
        match self.word("congestion") {
            Some(runs) if !wanted.contains(&runs) => self.configure("congestion", wanted[0]),
            _ => Ok(()),
        }
    }

    /// Returns the measured round-trip time. Skips if it exceeds the device's base round trip: then every
    /// packet looks late to the device, whatever the answers are.
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
                "a round trip takes {}, the device's base_rtt is {}",
                way.show(),
                longest.show()
            ))),
            false => Ok(way),
        }
    }

    /// Returns the bandwidth-delay product in bytes, from the device's configured rates and base round trip.
    pub fn bdp(&self) -> Result<u64, Stop> {
        let rate = self.reported("sender_rate").unwrap_or(0).min(self.reported("receiver_rate").unwrap_or(0));
        match rate {
            0 => Err(Stop::Skipped("the device does not say the rates of its network".into())),
            rate => Ok((rate as f64 * self.base_rtt()?.as_secs_f64() / 8.0) as u64),
        }
    }

    /// Returns the longest delay of an answer that causes no retransmission. Fails if round trips are too
    /// long for any.
    pub fn round_trips(&self, count: u32) -> Result<Duration, Stop> {
        let span = self.base_rtt()? * count;
        if span * 2 < self.rto() {
            Ok(span)
        } else {
            Err(Stop::Skipped("the timeout is too close to the round trip".into()))
        }
    }
}

impl Flow {
    /// Starts a write of this number of packets with this mode.
    pub fn start(t: &mut Test<'_>, mode: Mode, packets: usize) -> Result<Self, Stop> {
        let peer = t.peer(0)?;
        Self::to(t, peer, mode, packets)
    }

    /// Starts a write of this number of packets to this peer with this mode.
    pub fn to(t: &mut Test<'_>, peer: u64, mode: Mode, packets: usize) -> Result<Self, Stop> {
        Self::beside(t, peer, mode, packets, &[])
    }

    /// Starts a write of this number of packets to this peer, on a context other than these.
    pub fn beside(
        t: &mut Test<'_>,
        peer: u64,
        mode: Mode,
        packets: usize,
        others: &[&Target],
    ) -> Result<Self, Stop> {
        let operation = t.post(Post { mode, ..post(PostKind::Write, peer, packets * t.mtu()) })?;
        let target = Target::accept_beside(t, others)?;
        Ok(Flow { target, operation, way: Duration::ZERO, acked: 0, answered: Duration::ZERO })
    }

    /// Follows the data that the device sends on the return direction of a context of the suite. No operation
    /// of the device belongs to it.
    pub fn of_return(t: &Test<'_>, pdc: &Pdc) -> Self {
        let (target, operation) = (Target::of_return(t, pdc), Operated { operation: 0 });
        Flow { target, operation, way: Duration::ZERO, acked: 0, answered: Duration::ZERO }
    }

    /// Continues an operation whose first packet has opened a context.
    pub fn of(t: &mut Test<'_>, first: RxPacket, operation: Operated) -> Result<Self, Stop> {
        let target = Target::opened_by(t, first)?;
        Ok(Flow { target, operation, way: Duration::ZERO, acked: 0, answered: Duration::ZERO })
    }

    /// Starts a write of this number of packets on a context without unacknowledged packets.
    pub fn start_on(t: &mut Test<'_>, target: Target, packets: usize) -> Result<Self, Stop> {
        let peer = t.peer(0)?;
        let acked = target.highest() + 1;
        let operation = t.post(post(PostKind::Write, peer, packets * t.mtu()))?;
        Ok(Flow { target, operation, way: Duration::ZERO, acked, answered: Duration::ZERO })
    }

    /// Returns the nominal size of the `n`-th packet, 0 if it has not arrived.
    pub fn bytes_of(&self, n: u32) -> u64 {
        self.target.arrived.get(&n).map_or(0, |(_, size)| *size)
    }

    /// Returns the arrival time of the newest packet.
    pub fn newest(&self) -> Duration {
        self.target.arrived.values().map(|(at, _)| *at).max().unwrap_or_default()
    }

    /// Receives packets until then, without an answer.
    pub fn watch_until(&mut self, t: &mut Test<'_>, until: Duration) -> Outcome {
        while self.next(t, until)?.is_some() {}
        Ok(())
    }

    /// Returns the number of different packets received.
    pub fn count(&self) -> u32 {
        self.target.arrived.len() as u32
    }

    /// Returns the nominal bytes of all packets received, without duplicates.
    pub fn bytes(&self) -> u64 {
        self.target.bytes_before(u32::MAX)
    }

    /// Returns the bytes received and not acknowledged. The device has at least as many bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.bytes() - self.acknowledged()
    }

    /// Returns the nominal bytes of acknowledged packets.
    pub fn acknowledged(&self) -> u64 {
        self.target.bytes_before(self.acked)
    }

    /// Returns the number of acknowledged packets.
    pub fn acked(&self) -> u32 {
        self.acked
    }

    /// Receives the next packet, until then.
    pub fn next(&mut self, t: &mut Test<'_>, until: Duration) -> Result<Option<RxPacket>, Stop> {
        let within = until.saturating_sub(t.now());
        Ok(self.target.next(t, within)?.map(|got| got.seen.clone()))
    }

    /// Receives packets without an answer until no more arrive, well before the first timeout.
    pub fn fill(&mut self, t: &mut Test<'_>) -> Outcome {
        self.is_filled(t).map(drop)
    }

    /// Like [`fill`](Self::fill). Returns false if more packets may arrive, so that the last one may not fill
    /// the window.
    pub fn is_filled(&mut self, t: &mut Test<'_>) -> Result<bool, Stop> {
        let end = t.now() + t.rto() / 2;
        loop {
            let until = t.now() + t.grace();
            if until > end {
                return Ok(false);
            }
            if self.next(t, until)?.is_none() {
                return Ok(true);
            }
        }
    }

    /// Returns the ACK of the packets before the `n`-th, with these [`Answers`].
    pub fn answer(&self, n: u32, answers: &Answers) -> Result<UetBuf, Stop> {
        let mut ack = self.target.acking(n - 1);
        let service =
            if answers.unmeasured { 0 } else { (answers.service.as_nanos() / 128).clamp(1, 0xfffe) as u16 };
        let mut bytes = self.target.bytes_before(n);
        if let Some(missing) = answers.missing.filter(|missing| missing + 1 < n) {
            bytes -= self.bytes_of(missing);
            let first = self.target.psn(missing);
            let above = (n - 1 - missing).min(63);
            ack = ack.cack(first - 1).sack(first, ((1 << above) - 1) << 1);
        }
        ack.nscc = Some((self.target.counted(bytes), service));
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
        self.acknowledge_many(t, 1, answers)
    }

    /// Acknowledges this number of packets by one ACK.
    pub fn acknowledge_many(&mut self, t: &mut Test<'_>, count: u32, answers: &Answers) -> Outcome {
        let packet = self.answer(self.acked + count, answers)?;
        t.send(&self.target.pdc, &packet)?;
        self.acked += count;
        self.answered = t.now();
        Ok(())
    }

    /// Continues for this time with these answers. Returns the maximum bytes in flight in the second half of
    /// it.
    pub fn run(&mut self, t: &mut Test<'_>, span: Duration, answers: &Answers) -> Result<u64, Stop> {
        let (begun, half, end) = (t.now(), t.now() + span / 2, t.now() + span);
        let (mut most, many) = (0, answers.coalesced.max(1));
        while t.now() < end {
            // Without a pace, a late answer must not excuse the next one.
            let paced = if answers.pace.is_zero() { Duration::ZERO } else { self.answered + answers.pace };
            let arrived = |n: u32| self.target.arrived.get(&n).map(|(at, _)| *at);
            let last = (self.acked..self.acked + many).map_while(|n| Some((n, arrived(n)?))).last();
            match last.map(|(n, at)| (n, paced.max(at + answers.delay))) {
                Some((n, due)) if due <= t.now() => {
                    // A packet from before this run may have been due for a later answer.
                    t.was_late(t.now() - due.max(begun));
                    self.acknowledge_many(t, n + 1 - self.acked, answers)?;
                }
                waits => {
                    let until = waits.map_or(end, |(_, due)| due.min(end));
                    self.next(t, until)?;
                }
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
