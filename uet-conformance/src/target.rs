//! The suite as the target, for scripts in which the device is the initiator.

use crate::axis::MODE;
use crate::packets::nominal;
use crate::{AckBuilder, Outcome, Pdc, Phase, RxPacket, Show, Stop, Test, require};
use core::time::Duration;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use uet_control::{
    AddPeer, ClosePdc, Completion, Fill, Hex64, Mode, Operated, Post, PostKind, Remote, Status,
};
use uet_wire::catalogue::{PDS_RTO_005, Requirement};
use uet_wire::pds::{Control, Nack, Request};
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::{PdcId, Psn, UetBuf, Units24};

/// The states of an operation that has not completed successfully.
pub const NOT_WELL: &[Option<Status>] =
    &[None, Some(Status::Refused), Some(Status::Failed), Some(Status::Cancelled)];

/// The states of an operation that has failed.
pub const FAILED: &[Option<Status>] = &[Some(Status::Refused), Some(Status::Failed), Some(Status::Cancelled)];

/// Maximum time for which a busy host keeps a device from reading, before `--timeout-scale`.
const STARVED: Duration = Duration::from_secs(1);

/// The suite's side of a context that the device has opened. It records the requests. It sends only the
/// answers that the script requests.
///
/// ```
/// use uet_conformance::target::{Target, post};
/// use uet_conformance::{Outcome, Test};
/// use uet_control::{PostKind, Status};
/// use uet_wire::catalogue::PDS_PSN_005;
///
/// fn one_ack_for_all(t: &mut Test<'_>) -> Outcome {
///     let peer = t.peer(0)?;
///     let written = t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
///     let mut target = Target::accept(t)?;
///     target.collect(t, 3)?;
///     target.ack(t, 2)?;
///     t.ends(PDS_PSN_005, written, Status::Ok)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Target {
    /// The suite's side.
    pub pdc: Pdc,
    /// The received requests, retransmissions included.
    pub got: Vec<RxRequest>,
    /// The `mpr` of the ACKs.
    pub mpr: u8,
    /// Time at which the script told the device to send the current operation. Its packets left later.
    pub asked: Duration,
    /// True if the device wants congestion state in ACKs.
    pub states: bool,
    /// The first arrival of each PSN, counted from 0, and the nominal size of its packet.
    pub(crate) arrived: BTreeMap<u32, (Duration, u64)>,
    /// The sum of these sizes.
    bytes: u64,
    /// The number of bytes from which `rcvd_bytes` counts.
    counted_from: u64,
    /// The number of requests that [`serve`](Self::serve) has handled.
    served: usize,
}

/// A request of the device.
#[derive(Clone, Debug)]
pub struct RxRequest {
    /// The packet.
    pub seen: RxPacket,
    /// Its header.
    pub request: Request,
}

impl RxRequest {
    /// Returns the bytes that a retransmission must repeat: everything from SES on.
    pub fn content(&self) -> Vec<u8> {
        let uet = self.seen.uet();
        let [_, _, ses, ext, payload] = uet.parts();
        [ses, ext, payload].concat()
    }
}

/// An operation of the device on arbitrary memory or an arbitrary queue of the suite.
pub fn post(kind: PostKind, peer: u64, length: usize) -> Post {
    Post {
        fill: Some(Fill::Seed(length as u32)),
        remote: Remote { key: Hex64(0x5eed), index: 10, ..Remote::default() },
        ..Post::new(kind, peer, length as u64)
    }
}

impl Target {
    /// Accepts the next request of the device that opens a context.
    pub fn accept(t: &mut Test<'_>) -> Result<Self, Stop> {
        Self::accept_beside(t, &[])
    }

    /// Accepts the next opening request of the device that belongs to none of `others`.
    pub fn accept_beside(t: &mut Test<'_>, others: &[&Target]) -> Result<Self, Stop> {
        let within = t.later();
        let (first, request) = t.need("a request that opens a context", within, |seen| {
            let request = seen.request()?;
            let known = others.iter().any(|other| other.request(seen).is_some());
            (request.syn() && !known).then_some(request)
        })?;
        Self::open(t, first, request)
    }

    /// Returns the context that this request opens.
    pub fn opened_by(t: &mut Test<'_>, first: RxPacket) -> Result<Self, Stop> {
        let request = first.request().ok_or_else(|| Stop::Inconclusive("not a request".into()))?;
        Self::open(t, first, request)
    }

    fn open(t: &mut Test<'_>, first: RxPacket, request: Request) -> Result<Self, Stop> {
        let pdc = t.accept(&first)?;
        let mut target = Self::of_return(t, &pdc);
        target.note(first, request);
        Ok(target)
    }

    /// Has the device open a context with a write of one packet, and completes the write. One PSN is then
    /// used.
    pub fn established(t: &mut Test<'_>, peer: u64, mode: Mode) -> Result<Self, Stop> {
        Self::established_by(t, Post { mode, ..post(PostKind::Write, peer, 64) })
    }

    /// Has the device open a context with this write of one packet, and completes the write.
    pub fn established_by(t: &mut Test<'_>, write: Post) -> Result<Self, Stop> {
        t.during(Phase::Arrange, |t| {
            let posted = t.post(write)?;
            let target = Self::accept(t)?;
            target.ack(t, 0)?;
            let within = t.soon();
            match t.completion(posted, within)? {
                Some(Completion { status: Status::Ok, .. }) => Ok(target),
                other => {
                    Err(Stop::Inconclusive(format!("an acknowledged write ends with: {}", other.show())))
                }
            }
        })
    }

    /// Returns the first peer, and a context that the device has opened to it and that is idle.
    pub fn with_peer(t: &mut Test<'_>, mode: Mode) -> Result<(u64, Self), Stop> {
        let peer = t.peer(0)?;
        Ok((peer, Self::established(t, peer, mode)?))
    }

    /// Returns the return direction of a context that the suite has opened. It begins at Start_PSN too
    /// (`PDS-SYN-008`).
    pub fn of_return(t: &Test<'_>, pdc: &Pdc) -> Self {
        let states = t.claims("nscc") && !matches!(t.word("congestion"), Some("none" | "rccc"));
        Target {
            pdc: pdc.clone(),
            got: Vec::new(),
            mpr: 8,
            asked: t.now(),
            states,
            arrived: BTreeMap::new(),
            bytes: 0,
            counted_from: t.start_of_count(),
            served: 0,
        }
    }

    /// Returns the request of the context.
    fn request(&self, seen: &RxPacket) -> Option<Request> {
        let is_of = |it: &Request| Some(it.spdcid()) == self.pdc.remote && seen.wire.dst == self.pdc.from;
        seen.request().filter(is_of)
    }

    /// Returns the request of the context with the `n`-th PSN.
    fn request_of(&self, seen: &RxPacket, n: u32) -> Option<Request> {
        self.request(seen).filter(|request| self.index(request) == n)
    }

    fn note(&mut self, seen: RxPacket, request: Request) {
        if let Entry::Vacant(first) = self.arrived.entry(self.index(&request)) {
            let size = nominal(seen.wire.bytes.len());
            first.insert((seen.at, size));
            self.bytes += size;
        }
        self.got.push(RxRequest { seen, request });
    }

    /// The `n`-th PSN of the forward direction, from 0.
    pub fn psn(&self, n: u32) -> Psn {
        self.pdc.psn(n)
    }

    /// Counts PSNs from this one on, as if nothing had arrived.
    pub(crate) fn restart_at(&mut self, start: Psn) {
        self.pdc.start = start;
        self.got.clear();
        self.arrived.clear();
        self.bytes = 0;
    }

    /// Returns the index of the request's PSN, counted from 0.
    pub fn index(&self, request: &Request) -> u32 {
        request.psn() - self.pdc.start
    }

    /// Returns the next request of the context within this time.
    pub fn next(&mut self, t: &mut Test<'_>, within: Duration) -> Result<Option<&RxRequest>, Stop> {
        let found = t.wait(within, |seen| self.request(seen))?;
        Ok(found.map(|(seen, request)| {
            self.note(seen, request);
            &self.got[self.got.len() - 1]
        }))
    }

    /// Receives requests until each of the first `count` PSNs has arrived.
    pub fn collect(&mut self, t: &mut Test<'_>, count: u32) -> Outcome {
        self.serve(t, count, |_, _| None)
    }

    /// Receives requests like [`collect`](Self::collect), and sends the ACK that `answer` returns for each
    /// one. Serves earlier unserved requests first.
    pub fn serve(
        &mut self,
        t: &mut Test<'_>,
        count: u32,
        mut answer: impl FnMut(&Target, &RxRequest) -> Option<AckBuilder>,
    ) -> Outcome {
        let mut missing = 0;
        loop {
            while let Some(got) = self.got.get(self.served) {
                let ack = answer(self, got);
                self.served += 1;
                ack.map_or(Ok(()), |ack| self.answer(t, ack))?;
            }
            while missing < count && self.arrived.contains_key(&missing) {
                missing += 1;
            }
            let within = t.later();
            if missing == count {
                t.needed();
                return Ok(());
            }
            if self.next(t, within)?.is_none() {
                t.is_kept(&self.pdc)?;
                return Err(Stop::Inconclusive(format!("did not get to: packet {missing} of the context")));
            }
        }
    }

    /// Receives packets for this time.
    pub fn watch(&mut self, t: &mut Test<'_>, during: Duration) -> Outcome {
        let until = t.now() + during;
        while self.next(t, until.saturating_sub(t.now()))?.is_some() {}
        Ok(())
    }

    /// Returns the number of arrivals of the `n`-th PSN.
    pub fn times(&self, n: u32) -> usize {
        self.of(n).count()
    }

    /// The packets of the `n`-th PSN.
    pub fn of(&self, n: u32) -> impl Iterator<Item = &RxRequest> {
        let psn = self.psn(n);
        self.got.iter().filter(move |got| got.request.psn() == psn)
    }

    /// The first packet of the `n`-th PSN.
    pub fn packet(&self, n: u32) -> Result<&RxRequest, Stop> {
        self.of(n).next().ok_or_else(|| Stop::Inconclusive(format!("packet {n} has not come")))
    }

    /// The highest PSN received, counted from 0.
    pub fn highest(&self) -> u32 {
        self.got.iter().map(|got| self.index(&got.request)).max().unwrap_or(0)
    }

    /// The nominal bytes received before the `n`-th PSN, without duplicates.
    pub(crate) fn bytes_before(&self, n: u32) -> u64 {
        // Few packets are above the `n`-th where this is asked for each packet.
        self.bytes - self.arrived.range(n..).map(|(_, (_, size))| size).sum::<u64>()
    }

    /// `rcvd_bytes` for these bytes.
    pub(crate) fn counted(&self, bytes: u64) -> Units24 {
        Units24::from_bytes(self.counted_from + bytes)
    }

    /// Has the device close the idle context, and acknowledges the close.
    pub fn end(&self, t: &mut Test<'_>, peer: u64) -> Outcome {
        t.call(ClosePdc { peer, mode: t.value(&MODE), class: 0 })?;
        let closes = |seen: &RxPacket| self.control(seen, CtlType::CLOSE_COMMAND);
        let (_, command) = t.need("CLOSE_COMMAND", t.later(), closes)?;
        self.answer(t, AckBuilder { response: None, ..self.pdc.ack(command.psn()) })?;
        t.settle()
    }

    /// An ACK of all PSNs up to the `n`-th, which it names, with the default response. It has congestion
    /// state if the device wants that.
    pub fn acking(&self, n: u32) -> AckBuilder {
        let nscc = self.states.then(|| (self.counted(self.bytes_before(u32::MAX)), 0));
        AckBuilder { nscc, mpr: self.mpr, ..self.pdc.ack(self.psn(n)) }
    }

    /// An ACK that names the `n`-th PSN. Its cumulative PSN is the one before the `below`-th.
    pub fn naming(&self, n: u32, below: u32) -> AckBuilder {
        self.acking(n).cack(self.psn(below) - 1)
    }

    /// Sends [`acking`](Self::acking).
    pub fn ack(&self, t: &mut Test<'_>, n: u32) -> Outcome {
        self.answer(t, self.acking(n))
    }

    /// Sends [`naming`](Self::naming).
    pub fn name(&self, t: &mut Test<'_>, n: u32, below: u32) -> Outcome {
        self.answer(t, self.naming(n, below))
    }

    /// Sends an ACK.
    pub fn answer(&self, t: &mut Test<'_>, ack: AckBuilder) -> Outcome {
        t.send(&self.pdc, &ack.build()?)
    }

    /// Acknowledges these PSNs by bits of the bitmap alone. The cumulative PSN is the one before the
    /// `below`-th, and the ACK names it.
    pub fn sack(&self, t: &mut Test<'_>, below: u32, arrived: &[u32]) -> Outcome {
        let first = self.psn(below);
        let bits = arrived.iter().fold(0, |bits, n| bits | 1u64 << (n - below));
        let ack = AckBuilder { response: None, ..self.acking(0) };
        let ack = AckBuilder { psn: first - 1, ..ack.cack(first - 1).sack(first, bits) };
        self.answer(t, ack)
    }

    /// Refuses the `n`-th PSN.
    pub fn refuse(&self, t: &mut Test<'_>, code: NackCode, n: u32) -> Outcome {
        t.send(&self.pdc, &self.pdc.nack(code, self.psn(n))?)
    }

    /// Refuses the `n`-th PSN for lack of a context: `spdcid` is 0.
    pub fn refuse_without_context(&self, t: &mut Test<'_>, code: NackCode, n: u32) -> Outcome {
        let remote = self.pdc.remote.unwrap_or(PdcId::NONE);
        let nack = Nack::build(code).nack_psn(self.psn(n)).dpdcid(remote).done()?;
        t.send(&self.pdc, &UetBuf::new(nack))
    }

    /// Expects one more arrival of the `n`-th PSN, as a retransmission.
    pub fn expect_again(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        n: u32,
        within: Duration,
    ) -> Result<RxRequest, Stop> {
        let again = |seen: &RxPacket| self.request_of(seen, n).filter(Request::retx);
        let unmarked = |seen: &RxPacket| self.request_of(seen, n).filter(|request| !request.retx());
        let expected = format!("PSN {} again, with retx", self.psn(n));
        let waited = t.patience(within);
        let came = t.hear(waited, |seen| again(seen).is_some())?;
        // It came again, and only the flag is wrong.
        if !came && self.times(n) > 0 {
            if let Some((seen, _)) = t.wait(Duration::ZERO, unmarked)? {
                t.holds(PDS_RTO_005, "a retransmission has retx", false, seen.uet());
                return Err(Stop::Failed);
            }
        }
        let (seen, request) = t.expect(requirement, &expected, Duration::ZERO, again)?;
        self.note(seen.clone(), request);
        Ok(RxRequest { seen, request })
    }

    /// Expects a retransmission of any PSN, while one of the `n`-th is due.
    pub fn expect_any_again(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        n: u32,
    ) -> Result<Request, Stop> {
        let expected = format!("PSN {} again, with retx", self.psn(n));
        let again = |seen: &RxPacket| self.request(seen).filter(Request::retx);
        let (seen, request) = t.expect(requirement, &expected, t.later(), again)?;
        self.note(seen, request);
        Ok(request)
    }

    /// Expects the `n`-th PSN for the first time.
    pub fn expect_new(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        n: u32,
    ) -> Result<RxRequest, Stop> {
        if let Some(got) = self.of(n).next() {
            return Ok(got.clone());
        }
        let new = |seen: &RxPacket| self.request_of(seen, n);
        if !t.hear(t.patience(t.later()), |seen| new(seen).is_some())? {
            t.is_kept(&self.pdc)?;
        }
        let expected = format!("a request with PSN {}", self.psn(n));
        let (seen, request) = t.expect(requirement, &expected, Duration::ZERO, new)?;
        self.note(seen.clone(), request);
        Ok(RxRequest { seen, request })
    }

    /// Expects that none of these PSNs arrives in this time.
    pub fn expect_none(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        expected: &str,
        during: Duration,
        unwanted: impl Fn(u32) -> bool,
    ) -> Outcome {
        t.expect_none(requirement, expected, during, |seen| {
            unwanted(self.index(&self.request(seen)?)).then_some(())
        })
    }

    /// Expects a control packet of this type for the suite's side.
    pub fn expect_control(
        &self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        kind: CtlType,
        within: Duration,
    ) -> Result<(RxPacket, Control), Stop> {
        t.expect(requirement, &kind.to_string(), within, |seen| self.control(seen, kind))
    }

    /// Returns the control packet if it has this type and is for the suite's side.
    pub fn control(&self, seen: &RxPacket, kind: CtlType) -> Option<Control> {
        let of_us = |control: &Control| Some(control.spdcid()) == self.pdc.remote;
        seen.control(kind).filter(|control| of_us(control) && seen.wire.dst == self.pdc.from)
    }

    /// Returns the indices of the first `count` PSNs in order of arrival, without duplicates.
    pub fn order(&self) -> Vec<u32> {
        let mut order = Vec::new();
        for n in self.got.iter().map(|got| self.index(&got.request)) {
            if !order.contains(&n) {
                order.push(n);
            }
        }
        order
    }
}

impl Test<'_> {
    /// Adds the suite's first address as a peer in this job, which has a context of its own.
    pub fn peer_of_job(&mut self, job: u32) -> Result<u64, Stop> {
        let address = self.address(0)?;
        Ok(self.call(AddPeer { address, port: None, job, process: 1, initiator: 0 })?.peer)
    }

    /// RTO_Init_Time of the device.
    pub fn rto(&self) -> Duration {
        Duration::from_nanos(self.parameter("rto_init_time"))
    }

    /// The time before which the device retransmits no packet without a reason: Tail_Loss_Time if it reports
    /// one, or RTO_Init_Time.
    pub fn earliest_retransmission(&self) -> Duration {
        let tail = self.reported("tail_loss_time").map(Duration::from_nanos);
        tail.map_or(self.rto(), |tail| tail.min(self.rto()))
    }

    /// Skips the rule if the device reports a Tail_Loss_Time: sources leave open how it changes the schedule
    /// of timeouts.
    pub fn require_plain_timeouts(&self) -> Outcome {
        require(self.reported("tail_loss_time").is_none(), "the device has a timer for tail losses")
    }

    /// NACK_Retx_Time of the device.
    pub fn nack_wait(&self) -> Duration {
        Duration::from_nanos(self.parameter("nack_retx_time"))
    }

    /// The time before which a retransmission cannot come from a timeout. It is below RTO_Init_Time, since
    /// the suite may have seen the packet late.
    pub fn early(&self) -> Duration {
        self.rto().mul_f64(0.7)
    }

    /// The maximum time for an action of the device at its first timeout.
    pub fn later(&self) -> Duration {
        self.soon() + self.scaled(4 * self.rto())
    }

    /// The time in which a device takes in the packets sent to it, well below the timeout.
    pub fn grace(&self) -> Duration {
        self.soon().min(self.rto()) / 4
    }

    /// Gives the device time to take in the packets sent to it. Discards packets that arrive meanwhile: they
    /// may have left before.
    ///
    /// On a busy host, a timer of the device may expire before the device reads an ACK, and the device then
    /// rightly retransmits the packet. So this waits until the device has read everything, as far as the host
    /// shows it.
    pub fn settle(&mut self) -> Outcome {
        self.discard(self.grace())?;
        if self.facts().virtual_time {
            return Ok(());
        }
        let last = self.now() + self.scaled(STARVED);
        while self.has_unread() && self.now() < last {
            self.discard(self.grace() / 5)?;
        }
        // Packets that left before the last read have arrived.
        self.discard(Duration::ZERO)
    }

    /// Like [`settle`](Self::settle) on a busy host. Elsewhere this does nothing, so that the rule sees each
    /// packet.
    pub(crate) fn settle_if_busy(&mut self) -> Outcome {
        if self.is_host_busy() { self.settle() } else { Ok(()) }
    }

    /// Discards the packets not yet taken and those that arrive in this time.
    fn discard(&mut self, during: Duration) -> Outcome {
        let until = self.now() + during;
        while self.wait(until.saturating_sub(self.now()), |_| Some(()))?.is_some() {}
        Ok(())
    }

    /// Expects that an operation ends with this status.
    pub fn ends(&mut self, requirement: &Requirement, operation: Operated, status: Status) -> Outcome {
        let within = self.soon();
        let ended = self.completion(operation, within)?.map(|completion| completion.status);
        self.check(requirement, "the completion", Some(status), ended);
        Ok(())
    }

    /// Expects that an operation has not ended.
    pub fn is_open(&mut self, requirement: &Requirement, operation: Operated) -> Outcome {
        let ended = self.completion(operation, Duration::ZERO)?.map(|completion| completion.status);
        self.holds(requirement, "no completion yet", ended.is_none(), ended.show());
        Ok(())
    }

    /// Expects that an operation fails after all attempts.
    pub fn fails(&mut self, requirement: &Requirement, operation: Operated, within: Duration) -> Outcome {
        let ended = self.completion(operation, within)?.map(|completion| completion.status);
        self.one_of(requirement, "the completion", FAILED, ended);
        Ok(())
    }

    /// The device does something that it is told: what it did not do before, it did not want to.
    pub fn expect_action(&mut self, peer: u64) -> Outcome {
        let (since, within) = (self.now(), self.later());
        self.post(post(PostKind::Write, peer, 8))?;
        let new = |seen: &RxPacket| seen.request().filter(|request| !request.retx() && seen.at > since);
        self.need("a sign of life", within, new)?;
        Ok(())
    }

    /// The whole time until a device gives a packet up.
    pub fn until_given_up(&self) -> Duration {
        let retransmissions = self.parameter("max_rto_retx_cnt").min(10) as u32;
        self.soon() + self.scaled(self.rto() * (2 << retransmissions))
    }
}
