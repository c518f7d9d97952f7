//! The interfaces to the caller: memory and packet buffers.

use bytes::Bytes;
use std::sync::{Arc, Mutex};
use uet_model::ses::*;
use uet_model::{Fep, Memory, PdsParams, Time};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, List, ReturnCode};

const PROCESS: Process = Process::Relative { job: 101, pid: 2 };
const INDEX: ResourceIndex = ResourceIndex { process: PROCESS, index: 0 };
const KEY: Key = Key(7);

type Shared = Arc<Mutex<Vec<u8>>>;

fn shared(length: usize) -> Shared {
    Arc::new(Mutex::new(vec![0; length]))
}

/// Returns an initiator, and a target with an endpoint.
fn pair() -> [Fep; 2] {
    let fep = |address: [u8; 4]| Fep::new(PdsParams::default(), SesParams::default(), address.into(), 1);
    let mut feps = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|address| fep(address).unwrap());
    feps[1].ses_mut().open(Endpoint { process: PROCESS, start: 0, count: 1 }).unwrap();
    feps
}

fn operation(work: Work) -> Operation {
    Operation::new(Peer::relative([10, 0, 0, 2], 101, 2), work)
}

fn run(feps: &mut [Fep; 2]) {
    let mut quiet = false;
    while !quiet {
        quiet = true;
        for (from, to) in [(0, 1), (1, 0)] {
            while let Some(packet) = feps[from].poll_transmit(Time::ZERO) {
                feps[to].handle_input(Time::ZERO, packet);
                quiet = false;
            }
        }
    }
}

/// Runs one operation of the initiator and returns its result.
fn complete(feps: &mut [Fep; 2], work: Work) -> Result<Done, OperationError> {
    feps[0].ses_mut().post(operation(work)).unwrap();
    run(feps);
    match feps[0].poll_completion() {
        Some(Completion::Operation { result, .. }) => result,
        other => panic!("{other:?}"),
    }
}

fn write(data: &'static [u8]) -> Work {
    Work::Write { key: KEY, offset: 1, data: Bytes::from_static(data) }
}

fn send(data: Bytes) -> Work {
    Work::Send { tag: None, data }
}

fn received(fep: &mut Fep) -> Received {
    match fep.poll_completion() {
        Some(Completion::Received(received)) => received,
        other => panic!("{other:?}"),
    }
}

#[test]
fn shared_memory_is_changed_in_place() {
    let mut feps = pair();
    let memory = shared(16);
    let region = Region { key: KEY, base: 0, access: Access::ALL, data: memory.clone() };
    feps[1].ses_mut().expose(INDEX, region).unwrap();
    complete(&mut feps, write(b"hello")).unwrap();
    assert_eq!(memory.lock().unwrap()[..7], *b"\0hello\0");

    memory.lock().unwrap()[8..].copy_from_slice(&41u64.to_le_bytes());
    let sum = Work::Atomic {
        on: AtomicOn::Memory { key: KEY, offset: 8 },
        opcode: AtomicOpcode::SUM,
        datatype: AtomicDatatype::UINT64,
        operand: Operand::Elements(Bytes::copy_from_slice(&1u64.to_le_bytes())),
        fetch: true,
    };
    assert_eq!(complete(&mut feps, sum).unwrap().data, 41u64.to_le_bytes()[..]);
    let read = complete(&mut feps, Work::Read { key: KEY, offset: 8, length: 8 });
    assert_eq!(read.unwrap().data, 42u64.to_le_bytes()[..]);
}

/// Memory that fails every access.
struct Poisoned;

impl Memory for Poisoned {
    fn len(&self) -> usize {
        16
    }

    fn read(&self, _: usize, _: &mut [u8]) -> Result<(), ReturnCode> {
        Err(ReturnCode::HOST_POISONED)
    }

    fn write(&mut self, _: usize, _: &[u8]) -> Result<(), ReturnCode> {
        Err(ReturnCode::HOST_UNSUCCESS_CMPL)
    }
}

#[test]
fn initiator_gets_the_error_of_the_memory() {
    let mut feps = pair();
    let region = Region { key: KEY, base: 0, access: Access::ALL, data: Poisoned };
    feps[1].ses_mut().expose(INDEX, region).unwrap();
    assert_eq!(complete(&mut feps, write(b"x")).unwrap_err().code, ReturnCode::HOST_UNSUCCESS_CMPL);
    let read = complete(&mut feps, Work::Read { key: KEY, offset: 0, length: 8 });
    assert_eq!(read.unwrap_err().code, ReturnCode::HOST_POISONED);
}

#[test]
fn read_only_bytes_refuse_writes() {
    let mut feps = pair();
    let data = Bytes::from_static(b"constant");
    feps[1].ses_mut().expose(INDEX, Region { key: KEY, base: 0, access: Access::ALL, data }).unwrap();
    let read = complete(&mut feps, Work::Read { key: KEY, offset: 0, length: 8 });
    assert_eq!(read.unwrap().data, "constant");
    assert_eq!(complete(&mut feps, write(b"x")).unwrap_err().code, ReturnCode::OP_VIOLATION);
}

#[test]
fn receive_fills_the_callers_memory() {
    let data: Bytes = (0..10_000u32).map(|byte| byte as u8).collect();
    for posted_first in [true, false] {
        let mut feps = pair();
        let memory = shared(16_384);
        let post = |fep: &mut Fep| {
            fep.ses_mut().post_receive_into(INDEX, Receive::new(12_000), memory.clone()).unwrap();
        };
        if posted_first {
            post(&mut feps[1]);
        }
        complete(&mut feps, send(data.clone())).unwrap();
        if !posted_first {
            post(&mut feps[1]);
        }
        let received = received(&mut feps[1]);
        assert_eq!((received.code, received.length, received.total), (ReturnCode::OK, 10_000, 10_000));
        assert_eq!(received.list == List::UET_EXPECTED, posted_first);
        assert!(received.data.is_empty(), "the data is in the memory alone");
        let memory = memory.lock().unwrap();
        assert_eq!((&memory[..10_000], memory[10_000]), (&data[..], 0));
    }
}

#[test]
fn long_send_is_cut_to_receive_capacity() {
    let mut feps = pair();
    let memory = shared(100);
    let receive = Receive::new(4096);
    feps[1].ses_mut().post_receive_into(INDEX, receive, memory.clone()).unwrap();
    let done = complete(&mut feps, send(Bytes::from(vec![7; 5000]))).unwrap();
    let received = received(&mut feps[1]);
    assert_eq!((done.length, received.length, received.total), (100, 100, 5000));
    assert_eq!(*memory.lock().unwrap(), [7; 100]);
}

#[test]
fn packets_fill_the_callers_buffers() {
    let [mut a, mut b] = pair();
    a.ses_mut().post(operation(send(Bytes::from(vec![1; 3 * 4096])))).unwrap();
    let mut buffers = vec![vec![0; 4300]; 2];
    let mut sent = Vec::new();
    let count = a.transmit_batch(Time::ZERO, buffers.iter_mut().map(|buffer| &mut buffer[..]), &mut sent);
    assert_eq!((count, sent.len()), (Ok(2), 2), "one for each buffer");

    // The third packet does not fit, and stays queued.
    let small = a.poll_transmit_into(Time::ZERO, &mut [0; 64]).unwrap_err();
    assert_eq!((small.needed, small.present), (sent[0].length, 64));
    let none = a.transmit_batch(Time::ZERO, [&mut [0; 64][..]], &mut sent);
    assert_eq!((none, sent.len()), (Err(small), 2));
    let mut last = vec![0; 4300];
    sent.push(a.poll_transmit_into(Time::ZERO, &mut last).unwrap().unwrap());
    buffers.push(last);
    assert_eq!(a.poll_transmit_into(Time::ZERO, &mut [0; 64]), Ok(None));

    b.ses_mut().post_receive(INDEX, Receive::new(3 * 4096)).unwrap();
    let packets = buffers.into_iter().zip(&sent).map(|(buffer, sent)| {
        let bytes = Bytes::from(buffer).slice(..sent.length);
        uet_model::Packet::from_wire(sent.src, sent.dst, bytes).unwrap()
    });
    b.handle_batch(Time::ZERO, packets);
    assert_eq!(received(&mut b).data, vec![1; 3 * 4096]);
}
