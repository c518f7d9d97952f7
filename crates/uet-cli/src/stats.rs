//! Measurements of the contexts in a capture: goodput, retransmissions, response times, window and credit.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use uet_observe::{Context, Direction, Event, Facts, Observed, Observer, RudiFacts, Side};
use uet_packet_io::json::Decoded;
use uet_wire::pds::Pds;
use uet_wire::registry::NackCode;
use uet_wire::{PdcId, Units24};

/// Maximum number of directions with a row of their own. The totals count all.
const ROWS: usize = 1 << 14;

/// Maximum number of packets of a direction that wait for their ACK. Beyond it, the oldest is forgotten.
const WAITING: usize = 1 << 12;

/// Number of directions whose window and credit are recorded over time.
const RECORDED: usize = 16;

/// Maximum number of points of a series. Beyond it, every second one is dropped.
const POINTS: usize = 2_000;

/// The sums of a direction, of a pair of addresses, or of a capture.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Number of all packets: requests, replies and control packets.
    pub packets: u64,
    /// Number of requests, with retransmissions.
    pub requests: u64,
    /// Bytes of all packets on the wire, replies included.
    pub bytes: u64,
    /// Bytes of payload without duplicates. A retransmission of a trimmed packet is no duplicate.
    pub payload: u64,
    /// Number of requests with `retx`, or with the PSN of an earlier one.
    pub retransmissions: u64,
    /// Number of requests with the PSN of an earlier one and without `retx`: captured twice, or duplicated by the
    /// network.
    pub duplicates: u64,
    /// Number of ACKs.
    pub acks: u64,
    /// Number of NACKs of each code.
    pub nacks: BTreeMap<u8, u64>,
    /// Number of trimmed packets.
    pub trimmed: u64,
    /// Number of packets with an ECN mark (CE).
    pub marked: u64,
    /// Times from a request to the ACK that acknowledges it.
    pub response: ResponseTimes,
    /// Times of the first and the last packet, in nanoseconds.
    pub times: Option<[u64; 2]>,
    /// These times in the current capture, and the sum of their distances in the earlier ones.
    current: Option<[u64; 2]>,
    spans: u64,
}

impl Sums {
    /// Returns bytes of payload per second, counted from the first packet to the last one of each capture, in bits per
    /// second.
    pub fn goodput(&self) -> Option<f64> {
        let span = self.spans + self.current.map_or(0, |[first, last]| last - first);
        (span > 0).then(|| self.payload as f64 * 8e9 / span as f64)
    }

    /// Returns the response time in nanoseconds that this share of the requests does not exceed. It is rounded up by
    /// less than 1 %; the maximum is exact.
    pub fn response_at(&self, share: f64) -> Option<u64> {
        self.response.at(share)
    }

    /// Ends a capture. The time until the next one does not count.
    fn end(&mut self) {
        self.spans += self.current.take().map_or(0, |[first, last]| last - first);
    }

    /// Adds a packet, whatever it is.
    fn passed(&mut self, one: &One) {
        self.packets += 1;
        self.bytes += one.bytes;
        self.trimmed += u64::from(one.trimmed);
        self.marked += u64::from(one.marked);
        if let Some(now) = one.now {
            for times in [&mut self.times, &mut self.current] {
                let [first, last] = times.unwrap_or([now; 2]);
                *times = Some([first.min(now), last.max(now)]);
            }
        }
    }

    /// Adds a packet of a context.
    fn add(&mut self, one: &One, event: &Event) {
        self.passed(one);
        match event {
            Event::Request { sent, earlier, .. } => {
                self.requests += 1;
                self.retransmissions += u64::from(sent.retx || earlier.is_some());
                self.duplicates += u64::from(!sent.retx && earlier.is_some());
                self.payload += one.payload;
            }
            Event::Ack { .. } => self.acks += 1,
            Event::Nack { code, .. } => *self.nacks.entry(code.code()).or_default() += 1,
            _ => {}
        }
    }

    /// Adds a packet without a context, or one that fits none. Of RUDI responses, only the bytes count.
    fn add_lone(&mut self, one: &One, pds: &Pds<'_>, facts: &Facts<'_>) {
        self.passed(one);
        match pds {
            Pds::Rudi(_) | Pds::Uud(_) => {}
            other => {
                self.acks += u64::from(other.ack().is_some());
                if let Some(nack) = other.nack() {
                    *self.nacks.entry(nack.nack_code().code()).or_default() += 1;
                }
                return;
            }
        }
        let earlier = match facts {
            Facts::Rudi(RudiFacts::Response { .. }) => return,
            Facts::Rudi(RudiFacts::Request { earlier, .. }) => earlier.is_some(),
            _ => false,
        };
        self.requests += 1;
        self.retransmissions += u64::from(earlier);
        self.payload += if earlier || one.trimmed { 0 } else { one.payload };
    }
}

/// Counts of response times, in buckets that are less than 1 % wide. Only buckets with a time take memory: a
/// capture may have thousands of directions with one time each.
#[derive(Clone, Debug, Default)]
pub struct ResponseTimes {
    /// By the largest time of the bucket, in nanoseconds.
    buckets: BTreeMap<u64, u64>,
    /// The longest time.
    slowest: u64,
}

impl ResponseTimes {
    fn record(&mut self, nanos: u64) {
        self.slowest = self.slowest.max(nanos);
        // A bucket has the eight highest bits in common.
        let low = (u64::BITS - nanos.leading_zeros()).saturating_sub(8);
        *self.buckets.entry(nanos | ((1 << low) - 1)).or_default() += 1;
    }

    /// Returns the time that this share of the times does not exceed; `None` without any.
    fn at(&self, share: f64) -> Option<u64> {
        let rank = (self.buckets.values().sum::<u64>() as f64 * share).ceil() as u64;
        let mut count = 0;
        self.buckets.iter().find_map(|(nanos, times)| {
            count += times;
            (count >= rank).then_some((*nanos).min(self.slowest))
        })
    }
}

/// A packet, as far as the sums need it.
struct One {
    now: Option<u64>,
    bytes: u64,
    payload: u64,
    trimmed: bool,
    marked: bool,
}

/// The window in PSNs, credit, bytes in flight and response times over time. Times are those of the capture, in
/// nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The announced window, in PSNs.
    pub window: Vec<(u64, f64)>,
    /// The granted credit, in bytes: a counter that wraps at 4 GiB.
    pub credit: Vec<(u64, f64)>,
    /// Bytes on the wire that no ACK has acknowledged.
    pub in_flight: Vec<(u64, f64)>,
    /// The response times, in nanoseconds, by the times of the ACKs.
    pub response: Vec<(u64, f64)>,
}

impl Series {
    /// Returns the series by name.
    pub fn named(&self) -> [(&'static str, &[(u64, f64)]); 4] {
        [
            ("window_psns", &self.window),
            ("credit_bytes", &self.credit),
            ("in_flight_bytes", &self.in_flight),
            ("response_ns", &self.response),
        ]
    }
}

fn put(series: &mut Vec<(u64, f64)>, now: u64, value: f64) {
    if series.len() >= POINTS {
        let mut odd = false;
        series.retain(|_| {
            odd = !odd;
            odd
        });
    }
    series.push((now, value));
}

/// One direction of a context: the requests of one side, and the replies to them.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The context, counted from 1 over all captures.
    pub context: u64,
    /// The sender of the requests, and their receiver.
    pub ends: Ends,
    /// The sender's PDCID, if observed.
    pub pdcid: Option<PdcId>,
    /// True if the mode is ROD, if observed.
    pub rod: Option<bool>,
    /// Its sums.
    pub sums: Sums,
    /// Its window and credit over time; for the first directions only.
    pub series: Option<Box<Series>>,
    /// The indices of requests of which only trimmed packets have come.
    trimmed: BTreeSet<i64>,
    /// Times and sizes of the requests that wait for their ACK, by packet number.
    waiting: BTreeMap<u64, (u64, u64)>,
    in_flight: u64,
}

impl Flow {
    /// Records a request, or the ACK of some. Returns the response times of these.
    fn follow(&mut self, number: u64, one: &One, event: &Event, direction: &Direction) -> Vec<u64> {
        self.pdcid = direction.pdcid.or(self.pdcid);
        self.rod = direction.rod.or(self.rod);
        let Some(now) = one.now else { return Vec::new() };
        let mut times = Vec::new();
        match event {
            // An ACK names the first transmission, and its response time counts from it.
            Event::Request { earlier: Some(first), .. } => {
                if let Some((_, bytes)) = self.waiting.get_mut(&first.number) {
                    self.in_flight = self.in_flight - *bytes + one.bytes;
                    *bytes = one.bytes;
                }
            }
            Event::Request { index, .. } if direction.is_unacknowledged(*index) => {
                self.waiting.insert(number, (now, one.bytes));
                self.in_flight += one.bytes;
                if self.waiting.len() > WAITING {
                    self.acknowledged(None);
                }
            }
            Event::Request { .. } => {}
            Event::Ack { acknowledged, .. } => {
                let sent: Vec<u64> =
                    acknowledged.iter().filter_map(|number| self.acknowledged(Some(*number))).collect();
                times.extend(sent.into_iter().filter_map(|sent| now.checked_sub(sent)));
            }
            _ => return times,
        }
        if let Some(series) = &mut self.series {
            if let (Event::Ack { .. }, Some(window)) = (event, direction.window) {
                put(&mut series.window, now, window as f64);
            }
            if let (Event::Ack { .. }, Some(credit)) = (event, direction.credit) {
                put(&mut series.credit, now, (u64::from(credit.get()) * Units24::UNIT) as f64);
            }
            put(&mut series.in_flight, now, self.in_flight as f64);
            times.iter().for_each(|after| put(&mut series.response, now, *after as f64));
        }
        times
    }

    /// Returns whether the payload of a request comes for the first time.
    fn is_fresh(&mut self, event: &Event, trimmed: bool) -> bool {
        let Event::Request { index, earlier, .. } = event else { return false };
        let was_trimmed = self.trimmed.remove(index);
        if trimmed {
            self.trimmed.insert(*index);
            if self.trimmed.len() > WAITING {
                self.trimmed.pop_first();
            }
        }
        !trimmed && (was_trimmed || earlier.is_none())
    }

    /// Forgets a request, or the oldest one. Returns when it was sent.
    fn acknowledged(&mut self, number: Option<u64>) -> Option<u64> {
        let (sent, bytes) = match number {
            Some(number) => self.waiting.remove(&number)?,
            None => self.waiting.pop_first()?.1,
        };
        self.in_flight -= bytes;
        Some(sent)
    }
}

/// The sender of requests, and their receiver.
pub type Ends = (IpAddr, IpAddr);

/// Measures captures.
#[derive(Debug, Default)]
pub struct Measured {
    /// Number of packets, UET or not.
    pub packets: u64,
    /// Bytes of all packets on the wire.
    pub bytes: u64,
    /// Number of contexts.
    pub contexts: u64,
    /// Number of packets whose direction has no row.
    pub beyond: u64,
    /// Number of packets that captures lack by their own statistics.
    pub dropped: u64,
    /// The sums of all contexts.
    pub total: Sums,
    /// The sums of the packets without a context, or that fit none. RUDI requests and datagrams are requests.
    pub without: Sums,
    observer: Observer,
    /// Number of contexts in earlier captures.
    earlier: u64,
    /// Number of packets acknowledged in them that they lack.
    earlier_unseen: u64,
    /// Number of replies in them that belong to no request.
    earlier_unmatched: u64,
    flows: BTreeMap<(u64, u8), Flow>,
    pairs: BTreeMap<Ends, Sums>,
}

impl Measured {
    /// Measures a packet.
    pub fn packet(&mut self, decoded: &Decoded<'_>) {
        let (record, packet) = (&decoded.record, &decoded.packet);
        self.packets += 1;
        self.bytes += record.wire as u64;
        let Some(observed) = Observed::of(record.number, packet) else { return };
        // A capture cuts off payload: headers come first.
        let cut = record.wire.saturating_sub(record.bytes.len());
        let payload = (packet.uet.payload.len() + cut) as u64;
        let mut one = One {
            now: decoded.since_1970().map(|time| time.as_nanos() as u64),
            bytes: record.wire as u64,
            payload,
            trimmed: packet.trimmed.is_some(),
            marked: observed.marked,
        };
        let (context, sender, event) = match self.observer.observe(&observed) {
            Facts::Context { context, sender, event, .. } => (context, sender, event),
            facts => {
                if let Some(pds) = &packet.uet.pds {
                    self.without.add_lone(&one, pds, &facts);
                }
                return;
            }
        };
        self.contexts = self.contexts.max(self.earlier + context.id.0 + 1);
        let side =
            if matches!(event, Event::Ack { .. } | Event::Nack { .. }) { sender.other() } else { sender };
        let number = self.earlier + context.id.0 + 1;
        let ends = ends(context, side);
        let (key, known) = ((number, side as u8), self.flows.len());
        if known >= ROWS && !self.flows.contains_key(&key) {
            self.beyond += 1;
            one.payload = 0;
            return self.total.add(&one, &event);
        }
        let flow = self.flows.entry(key).or_insert_with(|| Flow {
            context: number,
            ends,
            pdcid: None,
            rod: None,
            sums: Sums::default(),
            series: (known < RECORDED).then(Box::default),
            trimmed: BTreeSet::new(),
            waiting: BTreeMap::new(),
            in_flight: 0,
        });
        if !flow.is_fresh(&event, one.trimmed) {
            one.payload = 0;
        }
        self.total.add(&one, &event);
        flow.sums.add(&one, &event);
        let times = flow.follow(record.number, &one, &event, context.direction(side));
        times.iter().for_each(|after| flow.sums.response.record(*after));
        // There are no more pairs than directions.
        let pair = self.pairs.entry(ends).or_default();
        pair.add(&one, &event);
        times.iter().for_each(|after| pair.response.record(*after));
        times.iter().for_each(|after| self.total.response.record(*after));
    }

    /// Ends a capture. The next packet belongs to another one.
    pub fn end(&mut self) {
        let sums = self.pairs.values_mut().chain([&mut self.total, &mut self.without]);
        sums.for_each(Sums::end);
        self.restart();
    }

    /// Forgets all contexts, because both ends have forgotten theirs. The next packets belong to others.
    pub fn restart(&mut self) {
        let observer = core::mem::take(&mut self.observer);
        self.earlier_unseen += observer.unseen();
        self.earlier_unmatched += observer.unmatched();
        self.earlier = self.contexts;
    }

    /// Returns the number of packets that ACKs acknowledge and that the captures lack.
    pub fn unseen(&self) -> u64 {
        self.earlier_unseen + self.observer.unseen()
    }

    /// Returns the number of replies that belong to no request of the captures.
    pub fn unmatched(&self) -> u64 {
        self.earlier_unmatched + self.observer.unmatched()
    }

    /// Returns the directions with packets, in order of their contexts.
    pub fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.values()
    }

    /// Returns the sums by sender and receiver of requests.
    pub fn pairs(&self) -> impl Iterator<Item = (&Ends, &Sums)> {
        self.pairs.iter()
    }
}

fn ends(context: &Context, side: Side) -> Ends {
    (context.addresses[side as usize], context.addresses[side.other() as usize])
}

/// Returns the name of a NACK code.
pub fn nack_name(code: u8) -> String {
    NackCode::new(code).map_or_else(|| format!("{code:#x}"), |code| code.to_string())
}
