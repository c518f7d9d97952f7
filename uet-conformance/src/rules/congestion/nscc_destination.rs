//! The feedback of a destination to the window of a source (section 3.6.13): received bytes and receiver
//! penalty.

use super::steps::ALGORITHMS;
use crate::Trimmed;
use crate::packets::nominal;
use crate::prelude::*;

/// A packet without a SES header: true for a request, false for a control packet.
const WITHOUT_SES: Axis<bool> = axis("packet").values(&[("noop", false), ("request", true)]);

/// A resource of the device that a packet lacks.
#[derive(Clone, Copy, Debug)]
enum Shortage {
    /// No room for another message.
    Messages,
    /// No buffer.
    Buffers,
}

const SHORTAGE: Axis<Shortage> =
    axis("lacks").values(&[("message", Shortage::Messages), ("buffer", Shortage::Buffers)]);

/// The switch that trims packets.
pub(super) const PLACE: Axis<Trimmed> =
    axis("trimmed").values(&[("fabric", Trimmed::Fabric), ("last-hop", Trimmed::LastHop)]);

/// A copy of read data that follows it.
#[derive(Clone, Copy, Debug)]
enum DataCopy {
    None,
    Whole,
    Trimmed,
}

const COPY: Axis<DataCopy> = axis("copy").needing(&[
    ("none", DataCopy::None, &[]),
    ("whole", DataCopy::Whole, &[]),
    ("trimmed", DataCopy::Trimmed, &[TRIM]),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc/rcvd-bytes", "rcvd_bytes is the nominal size in units of 256 bytes, rounded up")
        .checks(&[CC_RCVD_001])
        .run(|t| {
            let mut counted = CountedContext::open(t)?;
            let length = t.mtu() / 2;
            counted.check_write(t, CC_RCVD_001, length)
        }),
    rule(
        "nscc/rcvd-bytes-units",
        "A full unit of rcvd_bytes stays one unit, and one more byte begins the next",
    )
    .checks(&[CC_RCVD_001])
    .run(|t| {
        let mut counted = CountedContext::open(t)?;
        for rest in [0, 1, 255, 0, 1] {
            let length = counted.length_with_rest(rest)?;
            counted.check_write(t, CC_RCVD_001, length)?;
        }
        Ok(())
    }),
    rule("nscc/rcvd-bytes-sum", "rcvd_bytes is cumulative and rounds the sum, not each packet")
        .checks(&[CC_RCVD_004])
        .over(&[&ALGORITHMS, &MODE, &CARRIER, &START])
        .run(|t| {
            t.congestion(t.value(&ALGORITHMS))?;
            let mut counted = CountedContext::open(t)?;
            for length in [1, 1, 100, 300, 1, 1000] {
                counted.check_write(t, CC_RCVD_004, length)?;
            }
            Ok(())
        }),
    rule("nscc/rcvd-bytes-long", "rcvd_bytes stays exact over 300 KiB of packets")
        .checks(&[CC_RCVD_004])
        .run(|t| {
            let mut counted = CountedContext::open(t)?;
            let (mtu, packets) = (t.mtu(), 300 * 1024 / t.mtu());
            for _ in 0..packets {
                counted.check_write(t, CC_RCVD_004, mtu)?;
            }
            Ok(())
        }),
    rule("nscc/rcvd-bytes-duplicate", "A duplicate adds nothing to rcvd_bytes")
        .checks(&[CC_RCVD_002, CC_RCVD_001])
        .run(|t| {
            let mut counted = CountedContext::open(t)?;
            let request = counted.write(1000)?;
            counted.send(t, &request)?;
            counted.expect_count(t, CC_RCVD_001, request.psn)?;
            for _ in 0..3 {
                t.request(&counted.pdc, request.clone().retx())?;
                t.need_ack(&counted.pdc, request.psn)?;
            }
            t.forget();
            counted.check_write(t, CC_RCVD_002, 16)
        }),
    rule("nscc/rcvd-bytes-trimmed", "A trimmed packet counts in rcvd_bytes only once it arrives whole")
        .checks(&[CC_RCVD_002])
        .needs(&[RUD, NSCC, TRIM])
        .over(&[&PLACE, &CARRIER, &START])
        .run(|t| {
            let mut counted = CountedContext::open(t)?;
            let request = counted.write(t.mtu())?;
            let trimmed = counted.pdc.trimmed(&request.build()?, t.value(&PLACE), 64);
            for _ in 0..4 {
                t.send_wire(&trimmed)?;
            }
            let psn = request.psn;
            t.need("a NACK of the trimmed packet", t.soon(), |seen| seen.refuses(&counted.pdc, psn))?;
            counted.check_write(t, CC_RCVD_002, 16)?;
            counted.send(t, &request.retx())?;
            counted.expect_count(t, CC_RCVD_002, psn)
        }),
    rule("nscc/rcvd-bytes-without-ses", "rcvd_bytes does not count packets without a SES header")
        .checks(&[CC_RCVD_001])
        .over(&[&WITHOUT_SES, &MODE, &CARRIER, &START])
        .run(|t| {
            let mut counted = CountedContext::open(t)?;
            for _ in 0..8 {
                let n = counted.next;
                if t.value(&WITHOUT_SES) {
                    t.request(&counted.pdc, counted.pdc.request(n))?;
                    if t.wait(t.soon(), |seen| seen.answers(&counted.pdc, counted.pdc.psn(n)))?.is_none() {
                        return skip("the device acknowledges no request without a SES header");
                    }
                } else {
                    t.send(&counted.pdc, &counted.pdc.numbered(CtlType::NOOP, n)?)?;
                    t.need_ack(&counted.pdc, counted.pdc.psn(n))?;
                }
                counted.next += 1;
            }
            t.forget();
            counted.check_write(t, CC_RCVD_001, 16)
        }),
    rule("nscc/rcvd-bytes-out-of-window", "A packet beyond the receive window adds nothing to rcvd_bytes")
        .checks(&[CC_RCVD_001])
        .run(|t| {
            let mut counted = CountedContext::open(t)?;
            let outside = t.beyond(&counted.pdc)? + 100;
            let request = counted.pdc.request(outside).write(&counted.region, 0, &[1; 1000])?;
            t.request(&counted.pdc, request.clone())?;
            t.need("a NACK", t.soon(), |seen| seen.refuses(&counted.pdc, request.psn))?;
            counted.check_write(t, CC_RCVD_001, 16)
        }),
    rule("nscc/rcvd-bytes-refused", "rcvd_bytes counts a refused packet only once it is accepted")
        .checks(&[CC_RCVD_001])
        .needs(&[RUD, NSCC])
        .over(&[&SHORTAGE, &CARRIER, &START])
        .run(|t| {
            // The half of a message takes the last room, and the other half frees it. A device may keep a
            // buffer for the packet at a gap.
            let (name, room, half) = match t.value(&SHORTAGE) {
                Shortage::Messages => ("max_messages", 1, 0),
                Shortage::Buffers => ("rx_packets", 2, 1),
            };
            t.configure(name, room)?;
            let mut counted = CountedContext::open(t)?;
            let (pdc, region, mtu) = (counted.pdc.clone(), counted.region.clone(), t.mtu());
            let other = Region { message_id: region.message_id ^ 1, ..region.clone() };
            let halves = [pdc.request(1).half(&region, mtu, 0)?, pdc.request(2).half(&region, mtu, 1)?];
            let refused = pdc.request(3).half(&other, mtu, 0)?;
            let [first, second] = [&halves[half], &halves[1 - half]];
            counted.send(t, first)?;
            t.request(&pdc, refused.clone())?;
            let refuses = |seen: &RxPacket| seen.refuses(&pdc, refused.psn);
            match t.value(&SHORTAGE) {
                Shortage::Messages => drop(t.need("a NACK of the message too many", t.soon(), refuses)?),
                // A device may have more buffers than the parameter says.
                Shortage::Buffers => {
                    require(t.wait(t.soon(), refuses)?.is_some(), "the device has more buffers")?
                }
            }
            for request in [second, &refused.retx()] {
                counted.send(t, request)?;
                counted.expect_count(t, CC_RCVD_001, request.psn)?;
            }
            Ok(())
        }),
    rule("nscc/rcvd-bytes-above-gap", "rcvd_bytes counts a packet above a gap when it arrives")
        .checks(&[CC_RCVD_001])
        .needs(&[RUD, NSCC])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let mut counted = CountedContext::open(t)?;
            let missing = counted.write(1000)?;
            for _ in 0..3 {
                counted.check_write(t, CC_RCVD_001, 1000)?;
            }
            counted.send(t, &missing)?;
            counted.expect_count(t, CC_RCVD_001, missing.psn)
        }),
    rule("nscc/rcvd-bytes-per-context", "Each context counts its own rcvd_bytes").checks(&[CC_RCVD_001]).run(
        |t| {
            let mut counted = CountedContext::open(t)?;
            counted.check_write(t, CC_RCVD_001, 2000)?;
            let mut pdc = t.initiate();
            let region = counted.region.clone();
            t.establish(&mut pdc, &region)?;
            t.forget();
            let bytes = t.start_of_count()
                + nominal(pdc.request(0).write(&region, region.length - 1, &[0])?.build()?.to_bytes().len());
            let mut other = CountedContext::of(pdc, region, bytes, 1);
            other.check_write(t, CC_RCVD_001, 500)?;
            counted.check_write(t, CC_RCVD_001, 500)
        },
    ),
    rule("nscc/rcvd-bytes-read-data", "rcvd_bytes in the ACKs of read data counts that data alone")
        .checks(&[CC_RCVD_001])
        .needs(&[READ, NSCC])
        .over(&[&COPY, &MODE, &START])
        .run(|t| {
            t.congestion_or_both("nscc")?;
            let (peer, region, mode) = (t.peer(0)?, t.region(4096)?, t.value(&MODE));
            let mut target = Target::established(t, peer, mode)?;
            let bytes = t.start_of_count();
            let mut counted = CountedContext::of(target.pdc.clone(), region, bytes, 0);
            for (n, length) in (1..).zip([t.mtu(), t.mtu() / 2, t.mtu(), 300]) {
                t.post(Post { mode, ..post(PostKind::Read, peer, length) })?;
                target.collect(t, n + 1)?;
                target.ack(t, n)?;
                let data = counted.pdc.request(n - 1);
                let data = data.ses(target.data_header(n, length, length, 0)?, &vec![7; length]);
                t.must_take_data(&target.pdc, data.psn);
                counted.send(t, &data)?;
                counted.expect_count(t, CC_RCVD_001, data.psn)?;
                // The next ACK shows that the copy adds nothing.
                let copy = data.retx();
                match t.value(&COPY) {
                    DataCopy::None => continue,
                    DataCopy::Whole => t.request(&target.pdc, copy)?,
                    DataCopy::Trimmed => {
                        t.send_wire(&target.pdc.trimmed(&copy.build()?, Trimmed::LastHop, 64))?;
                    }
                }
                t.pause(t.soon())?;
                t.forget();
            }
            Ok(())
        }),
    rule("nscc/penalty-without-overload", "A destination that keeps up sends no lasting receiver penalty")
        .checks(&[CC_PENALTY_001])
        .run(|t| {
            // A destination may lack a resource for a while, but not because of twenty small packets.
            let mut counted = CountedContext::open(t)?;
            let mut last = None;
            for _ in 0..20 {
                let request = counted.write(64)?;
                counted.send(t, &request)?;
                let psn = request.psn;
                let (seen, _) = t.need("an ACK with state", t.soon(), |seen| {
                    seen.acknowledges(&counted.pdc, psn).and_then(|_| seen.ack_cc())
                })?;
                last = seen.ack_cc().and_then(|ack| ack.rcv_cwnd_pend());
                t.pause(t.grace())?;
                t.forget();
            }
            t.check(CC_PENALTY_001, "rcv_cwnd_pend", Some(0), last);
            Ok(())
        }),
];

/// Returns rcvd_bytes in a packet for this context.
fn rcvd_bytes(seen: &RxPacket, pdc: &Pdc) -> Option<u32> {
    let ack = seen.ack_cc().filter(|_| seen.is_for(pdc))?;
    ack.rcvd_bytes().map(|units| units.get())
}

/// Returns the number of units of 256 bytes, rounded up.
fn units(bytes: u64) -> u32 {
    (bytes.div_ceil(256) % (1 << 24)) as u32
}

/// A context, and the bytes that the device has received on it.
pub(super) struct CountedContext {
    pub(super) pdc: Pdc,
    pub(super) region: Region,
    bytes: u64,
    /// The number of packets that count.
    packets: u64,
    /// The bytes of a trailer that the device counts in each packet, once an ACK has shown it.
    trailer: Option<u64>,
    /// The number of the next packet.
    pub(super) next: u32,
}

impl CountedContext {
    /// Opens a context with a write of one byte.
    pub(super) fn open(t: &mut Test<'_>) -> Result<Self, Stop> {
        t.congestion_or_both("nscc")?;
        let (region, pdc) = (t.region(1 << 16)?, t.initiate());
        Self::open_on(t, pdc, region)
    }

    /// Opens this context with a write of one byte.
    pub(super) fn open_on(t: &mut Test<'_>, mut pdc: Pdc, region: Region) -> Result<Self, Stop> {
        t.establish(&mut pdc, &region)?;
        let first = pdc.request(0).write(&region, region.length - 1, &[0])?.build()?;
        let bytes = t.start_of_count() + nominal(first.to_bytes().len());
        t.forget();
        Ok(Self::of(pdc, region, bytes, 1))
    }

    /// Returns a context with this count, in which these PSNs are used.
    fn of(pdc: Pdc, region: Region, bytes: u64, used: u32) -> Self {
        CountedContext { pdc, region, bytes, packets: used.into(), trailer: None, next: used }
    }

    /// Builds the next write, with a payload of this length.
    pub(super) fn write(&mut self, length: usize) -> Result<Request, Stop> {
        let request = self.pdc.request(self.next).write(&self.region, 0, &vec![7; length])?;
        self.next += 1;
        Ok(request)
    }

    /// Returns the length of a next write after which the last unit has this number of bytes.
    fn length_with_rest(&mut self, rest: u64) -> Result<usize, Stop> {
        for length in 300..600 {
            let packet = self.write(length)?.build()?;
            self.next -= 1;
            if (self.bytes + nominal(packet.to_bytes().len())) % 256 == rest {
                return Ok(length);
            }
        }
        Err(Stop::Inconclusive("no packet has the wanted size".into()))
    }

    /// Sends a packet that counts.
    pub(super) fn send(&mut self, t: &mut Test<'_>, request: &Request) -> Outcome {
        self.send_marked(t, request, false)
    }

    /// Sends a packet that counts, with a congestion mark of the network if `marked`.
    pub(super) fn send_marked(&mut self, t: &mut Test<'_>, request: &Request, marked: bool) -> Outcome {
        let packet = request.build()?;
        self.bytes += nominal(packet.to_bytes().len());
        self.packets += 1;
        t.send_marked(&self.pdc, &packet, marked)
    }

    /// Returns the count so far, in units of 256 bytes.
    fn expected(&self) -> u32 {
        units(self.bytes + self.trailer.unwrap_or(0) * self.packets)
    }

    /// Expects an ACK of this PSN with the bytes so far.
    pub(super) fn expect_count(&mut self, t: &mut Test<'_>, requirement: &Requirement, psn: Psn) -> Outcome {
        let (seen, _) = t.expect(requirement, "an ACK with rcvd_bytes", t.soon(), |seen| {
            seen.acknowledges(&self.pdc, psn).and_then(|_| rcvd_bytes(seen, &self.pdc))
        })?;
        // The transport's size includes the CRC trailer. A device that leaves it out is accepted, if it does so in
        // all packets.
        let read = rcvd_bytes(&seen, &self.pdc);
        let counts = [0, 4].map(|trailer| (trailer, units(self.bytes + trailer * self.packets)));
        let told = counts.iter().find(|(_, units)| Some(*units) == read).map(|(trailer, _)| *trailer);
        if t.facts().crc && counts[0].1 != counts[1].1 && self.trailer.is_none() {
            self.trailer = told;
        }
        t.check(requirement, "rcvd_bytes", Some(self.expected()), read);
        t.forget();
        Ok(())
    }

    /// Sends a write with a payload of this length, and checks the count after it.
    pub(super) fn check_write(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        length: usize,
    ) -> Outcome {
        let request = self.write(length)?;
        self.send(t, &request)?;
        self.expect_count(t, requirement, request.psn)
    }

    /// Checks the count in the next ACK. Skips the rule if that has none.
    pub(super) fn check_next_ack(&self, t: &mut Test<'_>, requirement: &Requirement) -> Outcome {
        let Some((_, read)) = t.wait(t.soon(), |seen| rcvd_bytes(seen, &self.pdc))? else {
            return skip("the device states no rcvd_bytes in the ACK of such a packet");
        };
        t.check(requirement, "rcvd_bytes", self.expected(), read);
        Ok(())
    }
}
