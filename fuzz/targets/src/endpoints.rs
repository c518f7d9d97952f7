//! Two endpoints, and a network between them that does with each packet what a byte says: each operation ends once and
//! well, memory is what it should be, and in the end nothing is left.

use bytes::Bytes;
use core::time::Duration;
use std::collections::BTreeMap;
use uet_model::cc::{CcParams, Network as Fabric};
use uet_model::ses::*;
use uet_model::*;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

const ADDRESS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 12]];
const PROCESS: Process = Process::Relative { job: 101, pid: 2 };
const INDEX: ResourceIndex = ResourceIndex { process: PROCESS, index: 10 };
const KEY: Key = Key(0xacce5).idempotent();

/// Of the region: what is read, what each operation may write, and a counter behind.
const READ: usize = 16_384;
const SLOT: usize = 12_288;
const OPERATIONS: usize = 6;
const COUNTER: usize = READ + SLOT * OPERATIONS;

pub(super) fn run(data: &[u8]) {
    let Some(([kind, first, ..], _)) = data.split_first_chunk::<2>() else { return };
    let count = usize::from(first % OPERATIONS as u8) + 1;
    let Some((asked, weather)) = data[2..].split_at_checked(4 * count) else { return };
    let mut net = Network::new(*kind, first & 0x40 > 0, weather);
    let asked: Vec<Asked> = asked
        .chunks_exact(4)
        .enumerate()
        .map(|(number, bytes)| net.ask(number, [bytes[0], bytes[1], bytes[2], bytes[3]], first & 0x80 > 0))
        .collect();
    if first & 0x80 > 0 {
        net.run_for(Duration::from_micros(30));
        asked.iter().for_each(|asked| asked.receive(&mut net));
    }
    let receives = asked.iter().filter(|asked| asked.is_send()).count();
    net.run_until(|net| net.outcomes.len() == count && net.received.len() == receives);
    // All that can still come twice does, and idle contexts close.
    net.run_until(|net| net.feps.iter().all(|fep| fep.pds().contexts() == 0));
    net.check(&asked);
}

/// An operation of the initiator, and what has to come of it.
struct Asked {
    id: OperationId,
    work: Work,
    tag: u64,
}

impl Asked {
    fn is_send(&self) -> bool {
        matches!(self.work, Work::Send { .. } | Work::Deferrable { .. } | Work::Rendezvous { .. })
    }

    fn receive(&self, net: &mut Network<'_>) {
        if self.is_send() {
            let receive = Receive::tagged(SLOT as u32, self.tag);
            net.feps[1].ses_mut().post_receive(INDEX, receive).expect("there is room");
        }
    }
}

struct Network<'a> {
    feps: [Fep; 2],
    region: [RegionId; 2],
    now: Time,
    /// By arrival, and the order of sending.
    flying: BTreeMap<(Time, u64), (usize, Packet)>,
    sent: u64,
    /// What becomes of the next packets; all is well when there is no more of it.
    weather: core::slice::Iter<'a, u8>,
    /// How many may still be lost or trimmed.
    losses: u8,
    outcomes: BTreeMap<OperationId, Result<Done, OperationError>>,
    received: BTreeMap<u64, Received>,
}

/// Bytes that differ from place to place.
fn pattern(start: usize, length: usize) -> Bytes {
    (start..start + length).map(|place| (place * 31 % 251) as u8).collect()
}

/// How many packets may be lost. A packet that is lost so often waits 6 ms, or 2 s, to be sent again: what is kept for late
/// packets must be kept longer, or a message may arrive twice.
fn losses(patient: bool) -> u8 {
    if patient { 14 } else { 6 }
}

fn parameters(kind: u8, patient: bool) -> (PdsParams, SesParams) {
    let fabric = Fabric::default();
    let congestion = match kind % 4 {
        0 => CcParams::none(&fabric),
        1 => CcParams::nscc(&fabric),
        2 => CcParams::rccc(&fabric),
        _ => CcParams::both(&fabric),
    };
    let on = |bit: u8| kind >> bit & 1 == 1;
    let pds = PdsParams {
        // Without end: nothing is to fail for loss alone.
        max_rto_retx_cnt: 31,
        max_nack_retx_cnt: u8::MAX,
        // So often, that is longer than the packet which the others wait for may be lost.
        nack_retx_time: if patient { Duration::from_millis(10) } else { Duration::from_micros(30) },
        max_clear_requests: u8::MAX,
        idle_time: if patient { Duration::from_secs(5) } else { Duration::from_micros(200) },
        close_req_time: Duration::from_secs(50),
        syn_retx_safety_time: Duration::from_secs(50),
        fast_loss_packets: if on(2) { 3 } else { 0 },
        infer_loss_packets: if on(3) { 3 } else { 0 },
        ask_ack_at_eom: on(4),
        enb_ack_per_pkt: on(5),
        congestion: congestion.expect("the defaults are right"),
        ..PdsParams::default()
    };
    let ses = SesParams {
        form: if on(6) { FormChoice::Shortest } else { FormChoice::Standard },
        max_messages: if on(7) { 1 } else { 64 },
        max_reads: if on(7) { 2 } else { 64 },
        ..SesParams::default()
    };
    (pds, ses)
}

impl<'a> Network<'a> {
    fn new(kind: u8, patient: bool, weather: &'a [u8]) -> Self {
        let (pds, ses) = parameters(kind, patient);
        let mut feps = ADDRESS.map(|address| {
            Fep::new(pds.clone(), ses.clone(), address.into(), 7).expect("the parameters are right")
        });
        let region = [0, 1].map(|side| {
            let ses = feps[side].ses_mut();
            ses.open(Endpoint { process: PROCESS, start: 0, count: 16 }).expect("it is the first");
            let mut data = pattern(0, READ).to_vec();
            data.resize(COUNTER + 8, 0);
            ses.expose(INDEX, Region { key: KEY, base: 0, access: Access::ALL, data }).expect("it is the first")
        });
        Network {
            feps,
            region,
            now: Time::ZERO,
            flying: BTreeMap::new(),
            sent: 0,
            weather: weather.iter(),
            losses: losses(patient),
            outcomes: BTreeMap::new(),
            received: BTreeMap::new(),
        }
    }

    fn ask(&mut self, number: usize, [what, how, high, low]: [u8; 4], later: bool) -> Asked {
        let length = (usize::from(high) << 8 | usize::from(low)) % (SLOT + 1);
        let tag = number as u64;
        let data = pattern(number, length);
        let (offset, short) = (usize::from(how) * 8, length.min(READ - 255 * 8));
        let atomic = |fetch| Work::Atomic {
            on: AtomicOn::Memory { key: KEY, offset: COUNTER as u64 },
            opcode: AtomicOpcode::SUM,
            datatype: AtomicDatatype::UINT64,
            operand: Operand::Elements(Bytes::from_static(&[1, 0, 0, 0, 0, 0, 0, 0])),
            fetch,
        };
        let work = match what % 8 {
            0 | 1 => Work::Write { key: KEY, offset: (READ + number * SLOT) as u64, data },
            2 => Work::Read { key: KEY, offset: offset as u64, length: short as u32 },
            3 => atomic(false),
            4 => atomic(true),
            5 => Work::Send { tag: Some(tag), data },
            6 => Work::Deferrable { tag: Some(tag), data },
            _ => Work::Rendezvous {
                tag: Some(tag),
                source: self.region[0],
                offset: 0,
                length: length as u32,
                eager: u32::from(how) * 64,
            },
        };
        let repeatable = matches!(work, Work::Write { .. } | Work::Read { .. });
        let mode = match what >> 3 & 3 {
            0 | 1 => Mode::Rud,
            3 if repeatable => Mode::Rudi,
            _ => Mode::Rod,
        };
        let mut peer = Peer { index: INDEX.index, ..Peer::relative(ADDRESS[1], 101, 2).by(mode) };
        peer.route.class = what >> 5 & 1;
        let operation =
            Operation { delivery_complete: what & 0x40 > 0, ..Operation::new(peer, work.clone()) };
        let id = self.feps[0].ses_mut().post(operation).expect("it can be posted");
        let asked = Asked { id, work, tag };
        if !later {
            asked.receive(self);
        }
        asked
    }

    fn send(&mut self, mut packet: Packet) {
        let fate = self.weather.next().copied().unwrap_or(0xff);
        let (mut copies, mut delay) = (1, 1000);
        if matches!(fate % 16, 0 | 1 | 6 | 7) {
            let Some(losses) = self.losses.checked_sub(1) else { return self.deliver(packet, 1, delay) };
            self.losses = losses;
        }
        match fate % 16 {
            0 | 1 => copies = 0,
            2 => copies = 2,
            3 | 4 => delay += u64::from(fate >> 4) * 2000,
            5 => packet.marked = true,
            how @ (6 | 7) => {
                packet.trimmed = Some(if how == 6 { TrimPoint::Fabric } else { TrimPoint::LastHop });
                packet.payload = Bytes::new();
            }
            _ => {}
        }
        self.deliver(packet, copies, delay);
    }

    fn deliver(&mut self, packet: Packet, copies: u64, delay: u64) {
        let to = usize::from(packet.dst == core::net::IpAddr::from(ADDRESS[1]));
        for copy in 0..copies {
            self.sent += 1;
            let at = self.now + Duration::from_nanos(delay + copy * 3000);
            self.flying.insert((at, self.sent), (to, packet.clone()));
        }
    }

    /// Runs until this has happened.
    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..100_000 {
            self.flush();
            if done(self) {
                return;
            }
            let Some(next) = self.next() else { panic!("nothing will ever happen: {}", self.state()) };
            self.step(next);
        }
        panic!("it does not come to an end: {}", self.state());
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.flush();
        while let Some(next) = self.next().filter(|next| *next <= end) {
            self.step(next);
            self.flush();
        }
        self.now = end;
    }

    /// What is ready leaves.
    fn flush(&mut self) {
        for side in [0, 1] {
            while let Some(packet) = self.feps[side].poll_transmit(self.now) {
                self.send(packet);
            }
            while let Some(completion) = self.feps[side].poll_completion() {
                self.completed(side, completion);
            }
        }
    }

    /// When something happens next.
    fn next(&mut self) -> Option<Time> {
        let timeouts = self.feps.iter().filter_map(Fep::poll_timeout).min();
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        timeouts.into_iter().chain(arrival).min()
    }

    fn step(&mut self, next: Time) {
        self.now = self.now.max(next);
        if let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, packet) = entry.remove();
            self.feps[to].handle_input(self.now, packet);
        }
        for fep in &mut self.feps {
            fep.handle_timeout(self.now);
        }
    }

    fn state(&self) -> String {
        let held = self.feps.each_ref().map(|fep| (fep.pds().contexts(), fep.pds().held()));
        let (ended, received) = (self.outcomes.len(), self.received.len());
        format!("at {:?} {ended} have ended, {received} are received, contexts and what is held: {held:?}", self.now)
    }

    fn completed(&mut self, side: usize, completion: Completion) {
        match completion {
            Completion::Operation { id, result } if side == 0 => {
                assert!(self.outcomes.insert(id, result).is_none(), "{id} ends twice");
            }
            Completion::Received(received) if side == 1 => {
                let tag = received.sender.tag.expect("all sends are tagged");
                assert!(self.received.insert(tag, received).is_none(), "{tag} is received twice");
            }
            other => panic!("nobody asked for {other:?}"),
        }
    }

    fn check(&self, asked: &[Asked]) {
        let mut expected = pattern(0, READ).to_vec();
        expected.resize(COUNTER + 8, 0);
        let (mut adds, mut fetched) = (0u64, Vec::new());
        for Asked { id, work, tag } in asked {
            let done = match &self.outcomes[id] {
                Ok(done) => done,
                // The target has read all and closes, before we know that it has.
                Err(fault) if matches!(work, Work::Rendezvous { .. }) && fault.why == Some(Failure::Closed) => continue,
                Err(fault) => panic!("{id} fails: {fault:?}, {work:?}"),
            };
            match work {
                Work::Write { offset, data, .. } => {
                    expected[*offset as usize..][..data.len()].copy_from_slice(data);
                }
                Work::Read { offset, length, .. } => {
                    assert_eq!(done.data, pattern(*offset as usize, *length as usize), "what {id} reads");
                }
                Work::Atomic { fetch, .. } => {
                    adds += 1;
                    fetched.extend(fetch.then(|| done.data.to_vec()));
                }
                Work::Send { data, .. } | Work::Deferrable { data, .. } => {
                    assert_eq!(self.received[tag].data, data, "what {id} sends");
                }
                Work::Rendezvous { length, .. } => {
                    assert_eq!(self.received[tag].data, pattern(0, *length as usize), "what {id} offers");
                }
                other => panic!("nobody asks for {other:?}"),
            }
        }
        expected[COUNTER..].copy_from_slice(&adds.to_le_bytes());
        let memory = self.feps[1].ses().memory(self.region[1]).expect("it is exposed");
        assert!(memory == expected, "memory is not what was written");
        fetched.sort_unstable();
        fetched.dedup();
        let fetches = asked.iter().filter(|asked| matches!(asked.work, Work::Atomic { fetch: true, .. }));
        assert_eq!(fetched.len(), fetches.count(), "a value was fetched twice");
        for fep in &self.feps {
            assert_eq!(fep.pds().held(), 0, "something is left");
        }
    }
}
