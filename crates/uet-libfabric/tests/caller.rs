//! The calling side on a provider that is not ours: two devices exchange messages and access each other's memory.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};
use uet_fabric::{Code, flags};
use uet_fi::caller::{AddressFormat, Device, Finished, Libfabric, Posting, Wishes, Work};

/// A provider that libfabric builds in.
const PROVIDER: &str = "tcp;ofi_rxm";

/// Polls both devices until the operation of the first one completes.
fn finish(device: &mut Device, other: &mut Device, number: u64, seen: &mut Vec<Finished>) -> Finished {
    let begun = Instant::now();
    loop {
        seen.extend(other.poll().unwrap());
        if let Some(finished) = device.poll().unwrap() {
            assert_eq!((finished.number, &finished.failed), (number, &None));
            return finished;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "operation {number} does not complete");
    }
}

/// Posts an operation on the first device. Connections form only while both devices make progress.
fn post(device: &mut Device, other: &mut Device, posting: &Posting, seen: &mut Vec<Finished>) -> u64 {
    let begun = Instant::now();
    loop {
        match device.post(posting.clone()) {
            Err(error) if error.code == Code::EAGAIN && begun.elapsed() < Duration::from_secs(60) => {
                seen.extend(other.poll().unwrap());
            }
            posted => return posted.unwrap(),
        }
    }
}

#[test]
fn two_devices_of_another_provider_exchange_data() {
    let Ok(library) = Libfabric::load() else {
        eprintln!("skipped: libfabric is not installed");
        return;
    };
    let wishes = |ordered| Wishes { provider: PROVIDER.into(), ordered, ..Wishes::default() };
    let Ok(offer) = library.find(&wishes(false)) else {
        eprintln!("skipped: libfabric has no {PROVIDER}");
        return;
    };
    assert_eq!((offer.address_format(), offer.provider()), (AddressFormat::Socket, PROVIDER.into()));
    let ordered = library.find(&Wishes { domain: Some(offer.domain()), ..wishes(true) }).unwrap();
    assert_ne!(ordered.order() & flags::ORDER_SAS, 0);
    let mut near = Device::open(&offer, Some(&ordered)).unwrap();
    let mut far = Device::open(&offer, None).unwrap();
    assert!(near.has_ordered() && !far.has_ordered());
    let to = near.insert(&far.name().unwrap()).unwrap();
    let mut seen = Vec::new();

    for (ordered, tag) in [(false, None), (true, Some(0x17))] {
        let receive = far.receive(tag.map(|tag| (tag, 0xf)), 8).unwrap();
        assert_eq!(far.buffer(receive, 0..8), Some(vec![0; 8]));
        let work = Work::Send { tag, data: b"hello".to_vec() };
        let send = Posting { to, ordered, work, cq_data: Some(9), delivery_complete: false };
        let send = post(&mut near, &mut far, &send, &mut seen);
        finish(&mut near, &mut far, send, &mut seen);
        let received = seen.pop().unwrap_or_else(|| finish(&mut far, &mut near, receive, &mut Vec::new()));
        assert_eq!((received.number, received.length, received.cq_data), (receive, 5, Some(9)));
        assert_eq!(received.bytes.as_deref(), Some(&b"hello\0\0\0"[..]));
    }

    let access = flags::REMOTE_READ | flags::REMOTE_WRITE;
    let (region, key) = far.register(vec![7; 16], access, 0x5eed, &offer).unwrap();
    let to_far = |work| Posting { to, ordered: false, work, cq_data: None, delivery_complete: true };
    let write = to_far(Work::Write { key, offset: 4, data: vec![1, 2] });
    let write = post(&mut near, &mut far, &write, &mut seen);
    finish(&mut near, &mut far, write, &mut seen);
    assert_eq!(far.memory(region, 3..7), Some(vec![7, 1, 2, 7]));
    let read = Posting { delivery_complete: false, ..to_far(Work::Read { key, offset: 5, length: 3 }) };
    let read = post(&mut near, &mut far, &read, &mut seen);
    assert_eq!(finish(&mut near, &mut far, read, &mut seen).bytes, Some(vec![2, 7, 7]));
    assert_eq!(far.memory(region, 15..17), None);

    if offer.capabilities() & flags::ATOMIC != 0 {
        // FI_SUM and FI_UINT32.
        let sum = Work::Atomic {
            key,
            offset: 8,
            opcode: 2,
            datatype: 5,
            count: 1,
            operand: vec![1, 0, 0, 0],
            compare: None,
            fetch: true,
        };
        let sum = Posting { delivery_complete: false, ..to_far(sum) };
        let sum = post(&mut near, &mut far, &sum, &mut seen);
        assert_eq!(finish(&mut near, &mut far, sum, &mut seen).bytes, Some(vec![7; 4]));
        assert_eq!(far.memory(region, 8..12), Some(vec![8, 7, 7, 7]));
    }
}
