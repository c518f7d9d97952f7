//! Two endpoints with all layers, on a network that drops, duplicates and reorders packets.

use super::pair::{ADDRESS, JOB, PID, PROCESS, data, index};
use crate::cases::cases;
use bytes::Bytes;
use core::time::Duration;
use proptest::prelude::*;
use std::collections::BTreeMap;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, ReturnCode};

const KEY: Key = Key(0xacce5).idempotent();
/// The number of bytes for writes and reads.
const MEMORY: usize = 400_000;

/// The faults of the network, in percent of packets.
#[derive(Clone, Copy, Debug)]
struct Weather {
    seed: u64,
    lost: u32,
    repeated: u32,
    late: u32,
}

struct Network {
    feps: uet_model::network::Network<Fep>,
    region: [RegionId; 2],
    completions: [Vec<Completion>; 2],
}

impl Network {
    fn new(weather: Weather, ses: SesParams) -> Self {
        let Weather { seed, lost, repeated, late } = weather;
        // The maximum counts mean no limit, so no operation fails because of losses.
        let pds = PdsParams { max_rto_retx_cnt: 15, max_nack_retx_cnt: u8::MAX, ..PdsParams::default() };
        let mut feps = uet_model::network::Network::new(seed);
        let rules =
            [format!("duplicate {repeated}%"), format!("drop {lost}%"), format!("jitter 30us {late}%")];
        rules.iter().for_each(|text| feps.fabric().impair(text.parse().unwrap()));
        let region = ADDRESS.map(|address| {
            let mut fep = Fep::new(pds.clone(), ses.clone(), address.into(), seed).unwrap();
            fep.ses_mut().open(Endpoint { process: PROCESS, start: 0, count: 64 }).unwrap();
            let region = Region { key: KEY, base: 0, access: Access::ALL, data: vec![0; MEMORY] };
            let region = fep.ses_mut().expose(index(10), region).unwrap();
            feps.add(address, fep);
            region
        });
        Network { feps, region, completions: Default::default() }
    }

    fn memory(&self, side: usize) -> &[u8] {
        self.feps[side].ses().memory(self.region[side]).unwrap()
    }

    /// Runs until `done`, or until no event is left.
    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..100_000 {
            self.feps.transmit();
            for side in [0, 1] {
                self.completions[side].extend(core::iter::from_fn(|| self.feps[side].poll_completion()));
            }
            if done(self) {
                return;
            }
            let Some(next) = self.feps.next_at() else { return };
            self.feps.advance(next);
            self.feps.deliver();
            self.feps.expire();
        }
        panic!("no end, at {:?}", self.feps.now());
    }

    /// Runs until this many operations and receives have completed, and 20 ms more, in which duplicates show.
    fn run_to(&mut self, ended: [usize; 2]) {
        self.run_until(|net| (0..2).all(|side| net.completions[side].len() >= ended[side]));
        let quiet = self.feps.now() + Duration::from_millis(20);
        self.run_until(|net| net.feps.now() >= quiet);
    }

    fn outcomes(&self) -> BTreeMap<OperationId, Result<Done, OperationError>> {
        let mut outcomes = BTreeMap::new();
        for completion in &self.completions[0] {
            if let Completion::Operation { id, result } = completion {
                assert!(outcomes.insert(*id, result.clone()).is_none(), "{id} completes once");
            }
        }
        outcomes
    }

    fn received(&self) -> Vec<&Received> {
        let received = self.completions[1].iter().filter_map(|completion| match completion {
            Completion::Received(received) => Some(received),
            _ => None,
        });
        received.collect()
    }
}

fn peer(mode: Mode) -> Peer {
    Peer { index: 10, ..Peer::relative(ADDRESS[1], JOB, PID).by(mode) }
}

fn weather() -> impl Strategy<Value = Weather> {
    (any::<u64>(), 0u32..25, 0u32..25, 0u32..60).prop_map(|(seed, lost, repeated, late)| Weather {
        seed,
        lost,
        repeated,
        late,
    })
}

fn reliable() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Rud), Just(Mode::Rod)]
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn memory_is_what_was_written(
        weather in weather(),
        mode in prop_oneof![reliable(), Just(Mode::Rudi)],
        lengths in prop::collection::vec(0usize..40_000, 1..8),
        delivery_complete: bool,
        few: bool,
    ) {
        // With room for few messages, NACK NO_SES_MSG_AVAIL refuses some, and they are retransmitted.
        let ses = SesParams { max_messages: if few { 1 } else { 64 }, ..SesParams::default() };
        let mut net = Network::new(weather, ses);
        let bytes = data(lengths.iter().sum());
        let mut offset = 0;
        for (class, length) in lengths.iter().enumerate() {
            let mut peer = peer(mode);
            peer.route.class = class as u8 % 3;
            let work = Work::Write { key: KEY, offset: offset as u64, data: bytes.slice(offset..offset + length) };
            let write = Operation { delivery_complete, header_data: Some(7), ..Operation::new(peer, work) };
            net.feps[0].ses_mut().post(write).unwrap();
            offset += length;
        }
        // With RUDI the target may complete a message several times or never, because it cannot tell when a message is
        // complete.
        let told = if mode == Mode::Rudi { 0 } else { lengths.len() };
        net.run_to([lengths.len(), told]);
        prop_assert_eq!(&net.memory(1)[..offset], &bytes[..]);
        prop_assert!(net.memory(1)[offset..].iter().all(|byte| *byte == 0));
        prop_assert!(net.outcomes().values().all(Result::is_ok), "{:?}", net.outcomes());
        if mode != Mode::Rudi {
            prop_assert_eq!(net.completions[1].len(), lengths.len(), "each is told once");
        }
    }

    #[test]
    fn reads_return_memory(
        weather in weather(),
        mode in prop_oneof![reliable(), Just(Mode::Rudi)],
        reads in prop::collection::vec((0usize..50_000, 0usize..20_000), 1..8),
        shortest: bool,
        few: bool,
    ) {
        let form = if shortest { FormChoice::Shortest } else { FormChoice::Standard };
        let max_reads = if few { 2 } else { 64 };
        let mut net = Network::new(weather, SesParams { form, max_reads, ..SesParams::default() });
        let bytes = data(MEMORY);
        let region = net.region[1];
        net.feps[1].ses_mut().memory_mut(region).unwrap().copy_from_slice(&bytes);
        let mut ids = Vec::new();
        for (offset, length) in &reads {
            // Some are small enough for an ACK.
            let length = if length % 3 == 0 { length % 17 } else { *length };
            let work = Work::Read { key: KEY, offset: *offset as u64, length: length as u32 };
            ids.push((net.feps[0].ses_mut().post(Operation::new(peer(mode), work)).unwrap(), *offset, length));
        }
        net.run_to([reads.len(), 0]);
        let outcomes = net.outcomes();
        for (id, offset, length) in ids {
            prop_assert_eq!(&outcomes[&id].as_ref().unwrap().data, &bytes.slice(offset..offset + length));
        }
    }

    /// Each atomic adds one to a counter and fetches it. All values occur, each once.
    #[test]
    fn atomics_act_once(weather in weather(), mode in reliable(), count in 1u64..40, fetch: bool, wide: bool) {
        let mut net = Network::new(weather, SesParams::default());
        // Beyond Max_ACK_Data_Size, the old value uses the return direction.
        let elements = if wide { 3 } else { 1 };
        let ones: Bytes = (0..elements).flat_map(|_| 1u64.to_le_bytes()).collect();
        for _ in 0..count {
            let work = Work::Atomic {
                on: AtomicOn::Memory { key: KEY, offset: 0 },
                opcode: AtomicOpcode::SUM,
                datatype: AtomicDatatype::UINT64,
                operand: Operand::Elements(ones.clone()),
                fetch,
            };
            net.feps[0].ses_mut().post(Operation::new(peer(mode), work)).unwrap();
        }
        net.run_to([count as usize, 0]);
        for element in 0..elements {
            prop_assert_eq!(&net.memory(1)[8 * element..][..8], count.to_le_bytes());
        }
        let outcomes = net.outcomes();
        prop_assert!(outcomes.values().all(Result::is_ok));
        if fetch {
            let mut seen: Vec<u64> = outcomes
                .values()
                .map(|done| u64::from_le_bytes(done.as_ref().unwrap().data[..8].try_into().unwrap()))
                .collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_send_is_received_once(
        weather in weather(),
        mode in reliable(),
        sends in prop::collection::vec((0usize..20_000, 0u8..3), 1..8),
        early: bool,
    ) {
        let mut net = Network::new(weather, SesParams::default());
        let region = net.region[0];
        net.feps[0].ses_mut().memory_mut(region).unwrap().copy_from_slice(&data(MEMORY));
        let post = |net: &mut Network| for tag in 0..sends.len() as u64 {
            net.feps[1].ses_mut().post_receive(index(10), Receive::tagged(20_000, tag)).unwrap();
        };
        if early {
            post(&mut net);
        }
        for (tag, (length, kind)) in sends.iter().enumerate() {
            let (tag, bytes) = (Some(tag as u64), data(*length));
            let work = match kind {
                0 => Work::Send { tag, data: bytes },
                1 => Work::Deferrable { tag, data: bytes },
                _ => Work::Rendezvous { tag, source: region, offset: 0, length: *length as u32, eager: 1000 },
            };
            net.feps[0].ses_mut().post(Operation::new(peer(mode), work)).unwrap();
        }
        if !early {
            let later = net.feps.now() + Duration::from_micros(50);
            net.run_until(|net| net.feps.now() >= later);
            post(&mut net);
        }
        net.run_to([sends.len(), sends.len()]);
        prop_assert!(net.outcomes().values().all(Result::is_ok), "{:?}", net.outcomes());
        prop_assert_eq!(net.outcomes().len(), sends.len());
        let mut received = net.received();
        received.sort_by_key(|received| received.sender.tag);
        prop_assert_eq!(received.len(), sends.len());
        for (received, (length, _)) in received.iter().zip(&sends) {
            prop_assert_eq!(received.code, ReturnCode::OK);
            prop_assert_eq!(&received.data, &data(*length));
        }
    }

    /// An error reaches the initiator despite losses, and the endpoint continues.
    #[test]
    fn errors_reach_the_initiator(weather in weather(), mode in reliable(), length in 1usize..60_000) {
        let mut net = Network::new(weather, SesParams::default());
        let write = |offset| Work::Write { key: KEY, offset, data: data(length) };
        let bad = net.feps[0].ses_mut().post(Operation::new(peer(mode), write(MEMORY as u64 - 1))).unwrap();
        let good = net.feps[0].ses_mut().post(Operation::new(peer(mode), write(0))).unwrap();
        net.run_to([2, 0]);
        let outcomes = net.outcomes();
        if length > 1 {
            prop_assert_eq!(outcomes[&bad].as_ref().unwrap_err().code, ReturnCode::BAD_ADDR);
        }
        prop_assert!(outcomes[&good].is_ok());
        prop_assert_eq!(&net.memory(1)[..length], &data(length)[..]);
    }
}

/// A message too large to be cut at once succeeds, a few packets at a time.
#[test]
fn large_write_is_cut_lazily() {
    let mut net = Network::new(Weather { seed: 1, lost: 0, repeated: 0, late: 0 }, SesParams::default());
    let work = Work::Write { key: KEY, offset: 0, data: data(MEMORY) };
    net.feps[0].ses_mut().post(Operation::new(peer(Mode::Rud), work)).unwrap();
    net.run_to([1, 0]);
    assert!(net.outcomes().values().all(Result::is_ok));
    assert_eq!(net.memory(1), data(MEMORY));
}

/// The target can hold a quarter of a read, and the initiator requests no more at a time.
#[test]
fn reads_respect_target_capacity() {
    let length = 4096 * 80;
    for (max_awaited, goes_through) in [(4096 * 20, true), (1 << 20, false)] {
        let ses = SesParams { max_reads: 20, max_awaited, ..SesParams::default() };
        let mut net = Network::new(Weather { seed: 1, lost: 0, repeated: 0, late: 0 }, ses);
        let pds = PdsParams { max_nack_retx_cnt: 1, ..PdsParams::default() };
        net.feps[0] = Fep::new(pds, net.feps[0].ses().params().clone(), ADDRESS[0].into(), 1).unwrap();
        for offset in [0, 4096] {
            let work = Work::Read { key: KEY, offset, length: if offset == 0 { length } else { 4096 } };
            net.feps[0].ses_mut().post(Operation::new(peer(Mode::Rud), work)).unwrap();
        }
        net.run_until(|net| net.completions[0].len() == 2);
        assert_eq!(net.outcomes().values().all(Result::is_ok), goes_through, "{:?}", net.outcomes());
    }
}

#[test]
fn silent_peer_fails_operations() {
    let mut net = Network::new(Weather { seed: 1, lost: 100, repeated: 0, late: 0 }, SesParams::default());
    let pds = PdsParams { max_rto_retx_cnt: 3, ..PdsParams::default() };
    net.feps[0] = Fep::new(pds, SesParams::default(), ADDRESS[0].into(), 1).unwrap();
    let work = Work::Write { key: KEY, offset: 0, data: data(1 << 20) };
    net.feps[0].ses_mut().post(Operation::new(peer(Mode::Rud), work)).unwrap();
    let work = Work::Read { key: KEY, offset: 0, length: 100_000 };
    net.feps[0].ses_mut().post(Operation::new(peer(Mode::Rud), work)).unwrap();
    net.run_until(|net| net.completions[0].len() == 2);
    for outcome in net.outcomes().values() {
        let fault = outcome.as_ref().unwrap_err();
        assert_eq!(fault.code, ReturnCode::UNDELIVERABLE);
    }
}

#[test]
fn large_read_works_with_defaults() {
    let length = 16 << 20;
    let weather = Weather { seed: 1, lost: 0, repeated: 0, late: 0 };
    let mut net = Network::new(weather, SesParams::default());
    let pds = PdsParams::default();
    for (side, ip) in ADDRESS.into_iter().enumerate() {
        net.feps[side] = Fep::new(pds.clone(), SesParams::default(), ip.into(), 1).unwrap();
    }
    let ses = net.feps[1].ses_mut();
    ses.open(Endpoint { process: PROCESS, start: 0, count: 64 }).unwrap();
    let region = Region { key: KEY, base: 0, access: Access::READ, data: data(length).to_vec() };
    ses.expose(index(10), region).unwrap();
    let work = Work::Read { key: KEY, offset: 0, length: length as u32 };
    net.feps[0].ses_mut().post(Operation::new(peer(Mode::Rud), work)).unwrap();
    net.run_until(|net| net.completions[0].len() == 1);
    let outcomes = net.outcomes();
    assert!(outcomes.values().all(|outcome| outcome.as_ref().unwrap().data == data(length)));
}

/// The target forgets everything in the middle. Repeatable operations repeat on a new context, and the rest fail.
#[test]
fn repeatable_operations_retry_on_new_context() {
    let work: [(Work, bool); 4] = [
        (Work::Write { key: KEY, offset: 0, data: data(60_000) }, true),
        (Work::Read { key: KEY, offset: 0, length: 60_000 }, true),
        (Work::NoOp, true),
        (Work::Send { tag: Some(7), data: data(60_000) }, false),
    ];
    let mut gone_through = 0;
    for (work, repeatable) in work {
        // Either all packets are in flight, or some have arrived and the lost ones are retransmitted to the new target.
        for (after, lost) in [(500, 0), (3000, 30)] {
            let weather = Weather { seed: 1, lost, repeated: 0, late: 0 };
            let mut net = Network::new(weather, SesParams::default());
            let fill = |net: &mut Network| {
                let region = net.region[1];
                if matches!(work, Work::Read { .. }) {
                    net.feps[1].ses_mut().memory_mut(region).unwrap()[..60_000]
                        .copy_from_slice(&data(60_000));
                }
            };
            fill(&mut net);
            // Both ends know a context.
            net.feps[0].ses_mut().post(Operation::new(peer(Mode::Rud), Work::NoOp)).unwrap();
            net.run_to([1, 0]);
            let id = net.feps[0].ses_mut().post(Operation::new(peer(Mode::Rud), work.clone())).unwrap();
            let later = net.feps.now() + Duration::from_nanos(after);
            net.run_until(|net| net.feps.now() >= later || net.completions[0].len() == 2);
            if net.completions[0].len() == 2 {
                continue;
            }
            let mut fresh = Network::new(weather, SesParams::default());
            core::mem::swap(&mut net.feps[1], &mut fresh.feps[1]);
            fill(&mut net);
            net.run_until(|net| net.completions[0].len() == 2);
            gone_through += 1;
            let outcomes = net.outcomes();
            match (&outcomes[&id], repeatable) {
                (Ok(done), true) => {
                    assert!(done.data.is_empty() || done.data == data(60_000));
                    assert!(matches!(work, Work::NoOp) || net.memory(1)[..60_000] == data(60_000)[..]);
                }
                (Err(fault), false) => {
                    assert!(
                        matches!(fault.why, Some(Failure::Ended(_) | Failure::TimedOut | Failure::Closed)),
                        "{fault}"
                    );
                }
                (outcome, _) => panic!("{work:?}: {outcome:?}"),
            }
        }
    }
    assert!(gone_through >= 6, "the target was still needed {gone_through} times");
}
