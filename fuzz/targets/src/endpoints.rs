//! Two endpoints on a network whose treatment of each packet comes from the next choice of the input. Each operation
//! completes once without an error, memory has the right contents, and no state is left at the end.

use bytes::Bytes;
use core::time::Duration;
use std::collections::BTreeMap;
use uet_conformance::draw::{self, Choices, Menu, PostKind, Source};
use uet_conformance::random::Fate;
use uet_model::network::{Network, Treatment};
use uet_model::cc::CcParams;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

const ADDRESS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 12]];
const PROCESS: Process = Process::Relative { job: 101, pid: 2 };
const INDEX: ResourceIndex = ResourceIndex { process: PROCESS, index: 10 };
const KEY: Key = Key(0xacce5).idempotent();

/// The region: bytes to read, a slot for each operation to write, and a counter at the end.
const READ: usize = 16_384;
const SLOT: usize = 12_288;
const OPERATIONS: usize = 6;
const COUNTER: usize = READ + SLOT * OPERATIONS;

/// The operations of the initiator. Additions change one counter, so that their order does not matter.
const MENU: Menu<'_> = Menu {
    kinds: &[
        PostKind::Write,
        PostKind::Read,
        PostKind::Atomic,
        PostKind::FetchAtomic,
        PostKind::Tsend,
        PostKind::DeferrableTsend,
        PostKind::RendezvousTsend,
    ],
    modes: &[draw::Mode::Rud, draw::Mode::Rod, draw::Mode::Rudi],
    mtu: 4096,
    ack_data: 16,
    longest: SLOT as u32,
};

pub(super) fn run(data: &[u8]) {
    let Some(([kind, first], choices)) = data.split_first_chunk() else { return };
    let (mut choices, is_late) = (Choices(choices), first & 0x80 > 0);
    let drawn: Vec<Drawn> =
        (0..=usize::from(first % OPERATIONS as u8)).map(|_| Drawn::new(&mut choices)).collect();
    let count = drawn.len();
    let mut net = Pair::new(*kind, first & 0x40 > 0, choices.0);
    let asked: Vec<Asked> =
        drawn.iter().enumerate().map(|(number, drawn)| net.ask(number, drawn, is_late)).collect();
    if is_late {
        net.run_for(Duration::from_micros(30));
        asked.iter().for_each(|asked| asked.receive(&mut net));
    }
    let receives = asked.iter().filter(|asked| asked.is_send()).count();
    net.run_until(|net| net.outcomes.len() == count && net.received.len() == receives);
    // Late duplicates arrive, and idle contexts close.
    net.run_until(|net| net.feps.nodes().iter().all(|fep| fep.pds().contexts() == 0));
    net.check(&asked);
}

/// An operation to ask for.
struct Drawn {
    operation: draw::Operation,
    /// The offset of a read.
    offset: usize,
    class: u8,
}

impl Drawn {
    fn new(choices: &mut Choices<'_>) -> Self {
        let operation = MENU.operation(choices);
        Drawn { operation, offset: choices.index(256) * 8, class: choices.flip().into() }
    }
}

/// An operation of the initiator.
struct Asked {
    id: OperationId,
    work: Work,
    tag: u64,
}

impl Asked {
    fn is_send(&self) -> bool {
        matches!(self.work, Work::Send { .. } | Work::Deferrable { .. } | Work::Rendezvous { .. })
    }

    fn receive(&self, net: &mut Pair) {
        if self.is_send() {
            let receive = Receive::tagged(SLOT as u32, self.tag);
            net.feps[1].ses_mut().post_receive(INDEX, receive).expect("there is room");
        }
    }
}

struct Pair {
    feps: Network<Fep>,
    region: [RegionId; 2],
    outcomes: BTreeMap<OperationId, Result<Done, OperationError>>,
    received: BTreeMap<u64, Received>,
}

/// Bytes that differ from place to place.
fn pattern(start: usize, length: usize) -> Bytes {
    (start..start + length).map(|place| (place * 31 % 251) as u8).collect()
}

/// Treats each packet as the input chooses, and delivers it after the last choice.
///
/// The number of losses is bounded. A packet with that many losses waits 6 ms, or 2 s if `patient`, for its last
/// retransmission. State for late packets must be kept longer, or a message may arrive twice.
fn weather(bytes: Vec<u8>, patient: bool) -> impl FnMut(Time, &Packet, &mut Treatment) + Send + 'static {
    let mut place = 0;
    let mut losses = if patient { 14 } else { 6 };
    move |_, packet, treatment| {
        let mut choices = Choices(&bytes[place..]);
        let fate = Fate::draw(&mut choices);
        let delay = if fate == Fate::Late { choices.below(16) as u32 } else { 0 };
        let at_last_hop = fate == Fate::Trimmed && choices.flip();
        place = bytes.len() - choices.0.len();
        if matches!(fate, Fate::Lost | Fate::Trimmed) {
            if losses == 0 {
                return;
            }
            losses -= 1;
        }
        let headers = 8 + packet.head.len() as u16;
        match fate {
            Fate::Arrives => {}
            Fate::Lost => treatment.lost = true,
            Fate::Twice => treatment.copies.push(Duration::from_micros(3)),
            Fate::Late => treatment.delay = Duration::from_micros(2) * delay,
            Fate::Marked => treatment.marked = true,
            Fate::Trimmed => {
                let place = if at_last_hop { TrimPoint::LastHop } else { TrimPoint::Fabric };
                treatment.trim = Some((headers, place));
            }
        }
    }
}

fn parameters(kind: u8, patient: bool) -> (PdsParams, SesParams) {
    let fabric = uet_model::cc::NetworkParams::default();
    let congestion = match kind % 4 {
        0 => CcParams::none(&fabric),
        1 => CcParams::nscc(&fabric),
        2 => CcParams::rccc(&fabric),
        _ => CcParams::both(&fabric),
    };
    let on = |bit: u8| kind >> bit & 1 == 1;
    let pds = PdsParams {
        // No limit: loss alone fails no operation.
        max_rto_retx_cnt: 31,
        max_nack_retx_cnt: u8::MAX,
        // Retries last longer than the losses of the packet that the others wait for.
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

impl Pair {
    fn new(kind: u8, patient: bool, bytes: &[u8]) -> Self {
        let (pds, ses) = parameters(kind, patient);
        let mut feps = Network::new(0);
        feps.fabric().rule(weather(bytes.to_vec(), patient));
        let region = ADDRESS.map(|address| {
            let mut fep = Fep::new(pds.clone(), ses.clone(), address.into(), 7).expect("valid parameters");
            let ses = fep.ses_mut();
            ses.open(Endpoint { process: PROCESS, start: 0, count: 16 }).expect("the first endpoint");
            let mut data = pattern(0, READ).to_vec();
            data.resize(COUNTER + 8, 0);
            let region = Region { key: KEY, base: 0, access: Access::ALL, data };
            let region = ses.expose(INDEX, region).expect("the first region");
            feps.add(address, fep);
            region
        });
        Pair { feps, region, outcomes: BTreeMap::new(), received: BTreeMap::new() }
    }

    fn ask(&mut self, number: usize, drawn: &Drawn, later: bool) -> Asked {
        let Drawn { operation, offset, class } = *drawn;
        let length = operation.length as usize;
        let tag = number as u64;
        let data = pattern(number, length);
        let atomic = |fetch| Work::Atomic {
            on: AtomicOn::Memory { key: KEY, offset: COUNTER as u64 },
            opcode: AtomicOpcode::SUM,
            datatype: AtomicDatatype::UINT64,
            operand: Operand::Elements(Bytes::from_static(&[1, 0, 0, 0, 0, 0, 0, 0])),
            fetch,
        };
        let work = match operation.kind {
            PostKind::Write => Work::Write { key: KEY, offset: (READ + number * SLOT) as u64, data },
            PostKind::Read => {
                Work::Read { key: KEY, offset: offset as u64, length: operation.length.min((READ - offset) as u32) }
            }
            PostKind::Atomic => atomic(false),
            PostKind::FetchAtomic => atomic(true),
            PostKind::DeferrableTsend => Work::Deferrable { tag: Some(tag), data },
            PostKind::RendezvousTsend => Work::Rendezvous {
                tag: Some(tag),
                source: self.region[0],
                offset: 0,
                length: operation.length,
                eager: operation.eager,
            },
            _ => Work::Send { tag: Some(tag), data },
        };
        let mode = match operation.mode {
            draw::Mode::Rod => Mode::Rod,
            draw::Mode::Rudi => Mode::Rudi,
            _ => Mode::Rud,
        };
        let mut peer = Peer { index: INDEX.index, ..Peer::relative(ADDRESS[1], 101, 2).by(mode) };
        peer.route.class = class;
        let operation = Operation { delivery_complete: operation.complete, ..Operation::new(peer, work.clone()) };
        let id = self.feps[0].ses_mut().post(operation).expect("it can be posted");
        let asked = Asked { id, work, tag };
        if !later {
            asked.receive(self);
        }
        asked
    }

    /// Runs until `done`.
    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..100_000 {
            self.flush();
            if done(self) {
                return;
            }
            let Some(next) = self.feps.next_at() else { panic!("nothing left to happen: {}", self.state()) };
            self.step(next);
        }
        panic!("no end: {}", self.state());
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.feps.now() + span;
        self.flush();
        while let Some(next) = self.feps.next_at().filter(|next| *next <= end) {
            self.step(next);
            self.flush();
        }
        self.feps.advance(end);
    }

    fn flush(&mut self) {
        self.feps.transmit();
        for side in [0, 1] {
            while let Some(completion) = self.feps[side].poll_completion() {
                self.completed(side, completion);
            }
        }
    }

    fn step(&mut self, next: Time) {
        self.feps.advance(next);
        self.feps.deliver();
        self.feps.expire();
    }

    fn state(&self) -> String {
        let held: Vec<_> = self.feps.nodes().iter().map(|fep| (fep.pds().contexts(), fep.pds().held())).collect();
        let (ended, received) = (self.outcomes.len(), self.received.len());
        format!("at {:?}: {ended} completed, {received} received, (contexts, packets held): {held:?}", self.feps.now())
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
                // The target has read everything and closes before the initiator knows it.
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
        for fep in self.feps.nodes() {
            assert_eq!(fep.pds().held(), 0, "something is left");
        }
    }
}
