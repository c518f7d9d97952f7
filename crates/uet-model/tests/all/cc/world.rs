//! A source, a destination, and a network between them that follows a list of bytes. The property tests and a fuzz
//! target call [`history`].

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use uet_model::cc::{
    AckCcState, AckReport, Answered, CcParams, Ccc, CccState, CreditPacer, CreditSource, Destination, Grant,
    NackReport, NetworkParams, PathMode, Penalty, RcvdBytes, Sending, Sent, Wanted, rtt_sample,
};
use uet_model::{PdcHandle, Time};
use uet_wire::Units24;
use uet_wire::registry::NackCode;

const PDCS: usize = 3;
const SOURCE: CreditSource =
    CreditSource { address: core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST), ccc_id: 5, class: 0 };

/// One direction of a PDC, both ends.
struct Pdc {
    rcvd: RcvdBytes,
    destination: Destination,
}

impl Pdc {
    fn new(params: &CcParams) -> Self {
        Pdc { rcvd: RcvdBytes::default(), destination: Destination::new(params) }
    }
}

/// A packet in its source's view, and true if it has arrived.
struct Record {
    pdc: usize,
    size: u32,
    at: Time,
    entropy: u16,
    sent: u32,
    state: At,
    arrived: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Queue,
    Flight,
    AgainQueue,
    Done,
}

/// A copy of a packet in flight.
#[derive(Clone, Copy)]
struct Copy {
    id: usize,
    again: bool,
    target: Option<(u8, Units24)>,
}

/// A reply in flight.
#[derive(Clone, Copy)]
enum Answer {
    Ack { id: usize, again: bool, state: AckCcState, marked: bool },
    Nack { id: usize, again: bool, code: NackCode },
    Credit(Units24),
}

struct World {
    params: CcParams,
    ccc: Ccc,
    pacer: Option<CreditPacer>,
    pdcs: Vec<Pdc>,
    records: Vec<Record>,
    queue: VecDeque<usize>,
    again: VecDeque<usize>,
    packets: Vec<Copy>,
    answers: Vec<Answer>,
    requests: Vec<Units24>,
    penalty: Penalty,
    now: Time,
}

/// Follows the bytes, then lets everything arrive, and checks that nothing is left. Returns the states that occurred.
pub(crate) fn history(bytes: &[u8]) -> BTreeSet<CccState> {
    let mut bytes = bytes.iter().copied();
    let mut world = World::new(bytes.next().unwrap_or(0));
    let mut states = BTreeSet::new();
    while let Some(action) = bytes.next() {
        world.act(action, bytes.next().unwrap_or(0));
        world.check();
        states.insert(world.ccc.state());
    }
    world.finish();
    states
}

impl World {
    fn new(kind: u8) -> Self {
        let network = NetworkParams { full_packet: 4096, ..NetworkParams::default() };
        let mut params = match kind % 4 {
            0 => CcParams::none(&network),
            1 => CcParams::nscc(&network),
            2 => CcParams::rccc(&network),
            _ => CcParams::both(&network),
        }
        .unwrap();
        params.paths.mode = match kind / 4 % 4 {
            0 => PathMode::Single,
            1 => PathMode::Oblivious,
            2 => PathMode::Recycling,
            _ => PathMode::Bitmap,
        };
        params.pacer.idle_credit = kind & 0x80 > 0;
        World {
            ccc: Ccc::new(&params, SOURCE.ccc_id, 1).unwrap(),
            pdcs: (0..PDCS).map(|_| Pdc::new(&params)).collect(),
            pacer: params.grants_credit().then(|| CreditPacer::new(params.pacer.clone()).unwrap()),
            records: Vec::new(),
            queue: VecDeque::new(),
            again: VecDeque::new(),
            packets: Vec::new(),
            answers: Vec::new(),
            requests: Vec::new(),
            penalty: Penalty::default(),
            now: Time(1),
            params,
        }
    }

    fn act(&mut self, action: u8, what: u8) {
        let which = usize::from(what);
        match action % 16 {
            0..=2 => self.new_data(which % PDCS, 41 + u32::from(what) * 16),
            3 => self.send_all(),
            4 | 5 => self.arrive(which, false),
            6 => self.arrive(which, what & 1 > 0),
            7 => self.trim(which),
            8 => drop(take(&mut self.packets, which)),
            9 => self.duplicate(which),
            10 => self.answer(which),
            11 => drop(take(&mut self.answers, which)),
            12 => self.time_out(which),
            13 => self.tick(Duration::from_nanos(u64::from(what) * 100)),
            14 => self.request_arrives(which),
            _ if what & 0x80 > 0 => self.penalty.set(what & 0x7f),
            _ => self.close(which % PDCS),
        }
        self.collect();
    }

    fn new_data(&mut self, pdc: usize, size: u32) {
        let record =
            Record { pdc, size, at: self.now, entropy: 0, sent: 0, state: At::Queue, arrived: false };
        self.queue.push_back(self.records.len());
        self.records.push(record);
        self.ccc.new_data(self.now, size);
    }

    fn send_all(&mut self) {
        while self.ccc.may_send() {
            let Some(id) = self.again.pop_front().or_else(|| self.queue.pop_front()) else { break };
            let record = &mut self.records[id];
            let again = record.sent > 0;
            let departure = self.ccc.send(self.now, Sending { size: record.size, is_retransmission: again });
            record.sent += 1;
            record.at = self.now;
            record.state = At::Flight;
            record.entropy = departure.entropy;
            self.packets.push(Copy { id, again, target: departure.credit_target });
        }
    }

    fn arrive(&mut self, which: usize, marked: bool) {
        let Some(copy) = take(&mut self.packets, which) else { return };
        self.demand(copy.target);
        let record = &mut self.records[copy.id];
        let pdc = &mut self.pdcs[record.pdc];
        if !record.arrived {
            record.arrived = true;
            pdc.destination.received(record.size);
        }
        let granted = self.pacer.as_ref().map_or(Units24::default(), |pacer| pacer.granted(&SOURCE));
        let answered = Answered { arrived: Some(self.now), out_of_order: None, granted };
        let state = pdc.destination.state_for_ack(self.now, answered, self.penalty);
        self.answers.push(Answer::Ack { id: copy.id, again: copy.again, state, marked });
    }

    fn trim(&mut self, which: usize) {
        let Some(copy) = take(&mut self.packets, which) else { return };
        self.demand(copy.target);
        let code = if which & 1 == 0 { NackCode::TRIMMED } else { NackCode::TRIMMED_LASTHOP };
        self.answers.push(Answer::Nack { id: copy.id, again: copy.again, code });
    }

    fn duplicate(&mut self, which: usize) {
        if let Some(copy) = (!self.packets.is_empty()).then(|| self.packets[which % self.packets.len()]) {
            self.packets.push(copy);
        }
    }

    fn demand(&mut self, target: Option<(u8, Units24)>) {
        let Some(pacer) = &mut self.pacer else { return };
        let (ccc_id, target) = target.expect("requests carry the demand");
        assert_eq!(ccc_id, SOURCE.ccc_id);
        let via = PdcHandle { pdcid: 1, generation: 0 };
        assert!(pacer.demand(self.now, SOURCE, via, target));
    }

    fn answer(&mut self, which: usize) {
        match take(&mut self.answers, which) {
            None => {}
            Some(Answer::Credit(credit)) => self.ccc.credit(self.now, credit),
            Some(Answer::Ack { id, again, state, marked }) => self.acked(id, again, state, marked),
            Some(Answer::Nack { id, again, code }) => self.nacked(id, again, code),
        }
    }

    fn acked(&mut self, id: usize, again: bool, state: AckCcState, marked: bool) {
        let record = &mut self.records[id];
        let was = core::mem::replace(&mut record.state, At::Done);
        if was == At::AgainQueue {
            self.again.retain(|other| *other != id);
            self.ccc.found(self.now, record.size);
        }
        let first = was != At::Done;
        let bytes = if first { record.size.into() } else { 0 };
        let mut report = AckReport {
            packets: first.into(),
            bytes,
            marked,
            entropy: record.entropy,
            ..AckReport::default()
        };
        match state {
            AckCcState::Nscc { service_time, restore, penalty, rcvd_bytes, .. } => {
                let sent = Sent { at: record.at, retransmissions: record.sent - 1 };
                report.sample = rtt_sample(self.now, sent, again, Some(service_time)).filter(|_| first);
                report.newly = Some(self.pdcs[record.pdc].rcvd.newly(Some(rcvd_bytes), bytes));
                (report.restore, report.penalty) = (restore, penalty);
            }
            AckCcState::Credit { credit, .. } => report.credit = Some(credit),
        }
        self.ccc.ack(self.now, report);
    }

    fn nacked(&mut self, id: usize, again: bool, code: NackCode) {
        let record = &mut self.records[id];
        // A NACK of an earlier transmission does not apply to this one.
        if record.state != At::Flight || again != (record.sent > 1) {
            return;
        }
        record.state = At::AgainQueue;
        self.again.push_back(id);
        let size = record.size;
        self.ccc.nack(
            self.now,
            NackReport { no_pdc: false, code, size, sample: None, marked: false, entropy: record.entropy },
        );
    }

    fn time_out(&mut self, which: usize) {
        let flying: Vec<usize> = self.in_state(At::Flight).collect();
        if let Some(id) = (!flying.is_empty()).then(|| flying[which % flying.len()]) {
            self.lose(id);
        }
    }

    fn lose(&mut self, id: usize) {
        let record = &mut self.records[id];
        record.state = At::AgainQueue;
        self.again.push_back(id);
        self.ccc.lost(self.now, record.size, record.entropy);
    }

    fn tick(&mut self, span: Duration) {
        self.now += span;
        if self.ccc.timeout().is_some_and(|at| at <= self.now) {
            self.ccc.handle_timeout(self.now);
        }
    }

    fn request_arrives(&mut self, which: usize) {
        if let (Some(target), Some(pacer)) = (take(&mut self.requests, which), &mut self.pacer) {
            let via = PdcHandle { pdcid: 1, generation: 0 };
            assert!(pacer.request(self.now, SOURCE, via, target));
        }
    }

    /// Ends a PDC, which another one replaces.
    fn close(&mut self, pdc: usize) {
        let of = |records: &[Record], state| -> Vec<u32> {
            let these = records.iter().filter(|record| record.pdc == pdc && record.state == state);
            these.map(|record| record.size).collect()
        };
        let unsent = of(&self.records, At::Queue).into_iter().map(u64::from).sum();
        let waiting = of(&self.records, At::AgainQueue);
        let flying = of(&self.records, At::Flight);
        self.ccc.gone(self.now, unsent, &waiting, &flying);
        let ours = |id: &usize| self.records[*id].pdc != pdc;
        self.queue.retain(ours);
        self.again.retain(ours);
        self.packets.retain(|copy| self.records[copy.id].pdc != pdc);
        self.answers.retain(|answer| match answer {
            Answer::Ack { id, .. } | Answer::Nack { id, .. } => self.records[*id].pdc != pdc,
            Answer::Credit(_) => true,
        });
        self.records.iter_mut().filter(|record| record.pdc == pdc).for_each(|record| record.state = At::Done);
        self.pdcs[pdc] = Pdc::new(&self.params);
    }

    /// Returns the control packets that both ends want to send.
    fn collect(&mut self) {
        while let Some(wanted) = self.ccc.poll_wanted() {
            match wanted {
                Wanted::CreditRequest(ccc_id, target) => {
                    assert_eq!(ccc_id, SOURCE.ccc_id);
                    self.requests.push(target);
                }
                Wanted::Probe => self.ccc.probe_answered(Duration::from_micros(5)),
            }
        }
        let Some(pacer) = &mut self.pacer else { return };
        while let Some(Grant { credit, .. }) = pacer.poll_grant(self.now) {
            self.answers.push(Answer::Credit(credit));
        }
    }

    fn in_state(&self, state: At) -> impl Iterator<Item = usize> + '_ {
        self.records.iter().enumerate().filter(move |(_, record)| record.state == state).map(|(id, _)| id)
    }

    /// Checks what must hold after every event.
    fn check(&self) {
        let sums = self.ccc.sums();
        let bytes = |state| self.in_state(state).map(|id| u64::from(self.records[id].size)).sum::<u64>();
        assert_eq!(sums.backlog, bytes(At::Queue));
        assert_eq!(sums.rtx_backlog, bytes(At::AgainQueue));
        assert_eq!(sums.waiting_rtx as usize, self.again.len());
        assert_eq!(sums.inflight_pkts as usize, self.in_state(At::Flight).count());
        let something = !(self.queue.is_empty() && self.again.is_empty());
        let state = match (something, self.ccc.may_send(), sums.inflight_pkts) {
            (true, true, _) => CccState::Ready,
            (true, false, _) => CccState::Active,
            (false, _, 0) => CccState::Idle,
            (false, _, _) => CccState::Pending,
        };
        assert_eq!(self.ccc.state(), state);
        let shown = self.ccc.observe();
        if let (Some(cwnd), Some(inflight)) = (shown.cwnd, shown.inflight) {
            assert!((4096..=112_500).contains(&cwnd), "{cwnd}");
            if sums.inflight_pkts == 0 {
                assert_eq!(inflight, 0);
            }
        }
        if self.ccc.may_send() && something {
            return;
        }
        // Only a reply in flight or a request for credit may block sending, because both end without further action.
        let waits = sums.inflight_pkts > 0 || self.ccc.timeout().is_some();
        assert!(!something || waits, "nothing will ever happen: {:?}", self.ccc);
    }

    /// Finishes the history: from here on, only packets in flight are lost.
    fn finish(&mut self) {
        self.packets.clear();
        self.answers.clear();
        self.requests.clear();
        for _ in 0..2_000 {
            self.send_all();
            self.collect();
            while !self.packets.is_empty() {
                self.arrive(0, false);
            }
            while !self.requests.is_empty() {
                self.request_arrives(0);
            }
            self.collect();
            while !self.answers.is_empty() {
                self.answer(0);
            }
            self.check();
            if self.ccc.state() == CccState::Idle {
                assert_eq!(self.ccc.observe().inflight.unwrap_or(0), 0);
                assert_eq!(self.ccc.timeout(), None, "nothing is left to do");
                return;
            }
            self.pass_time();
        }
        panic!("no end: {:?}", self.ccc);
    }

    /// Advances to the next timeout of either end. If neither has one, times out all packets in flight.
    fn pass_time(&mut self) {
        let pacer = self.pacer.as_ref().and_then(CreditPacer::timeout);
        let next = [self.ccc.timeout(), pacer].into_iter().flatten().min();
        match next {
            Some(next) if !self.ccc.may_send() => {
                self.now = self.now.max(next);
                self.tick(Duration::ZERO);
            }
            _ => self.tick(Duration::from_micros(100)),
        }
        let flying: Vec<usize> = self.in_state(At::Flight).collect();
        flying.into_iter().for_each(|id| self.lose(id));
    }
}

/// Takes one element out, if there is any.
fn take<T>(from: &mut Vec<T>, which: usize) -> Option<T> {
    (!from.is_empty()).then(|| from.remove(which % from.len()))
}
