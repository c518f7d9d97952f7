//! Every operation under an allocator that counts.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    // A thread of its own for each test: others do not disturb.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Counts the allocations of `run`.
fn allocations(run: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

#[test]
fn an_allocation_is_counted() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1]))), 1);
    assert_eq!(allocations(|| ()), 0);
}

/// Bytes of many shapes: each kind of packet of each layer, whole, cut, and noise.
fn received() -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for first in (0..=255).step_by(3) {
        // The first byte has the type, the opcode, the IP version.
        let counted: Vec<u8> = (0..400).map(|index| (index as u8).wrapping_mul(7) ^ first).collect();
        let quiet: Vec<u8> = (0..120).map(|index| if index == 0 { first } else { 0 }).collect();
        all.extend([counted[..13].to_vec(), counted[..60].to_vec(), counted, quiet]);
    }
    for next in 0..16u8 {
        for (kind, length) in [(2u8, 12), (7, 12), (8, 32), (9, 40), (13, 16), (4, 8), (6, 4)] {
            // Each form of a request, each extension, and some that nobody knows.
            for opcode in [0, 1, 3, 4, 6, 8, 0x0a, 0x0b, 0x0c, 0x0d, 0x0f, 0x3f] {
                let mut uet = vec![0; 200];
                uet[..2].copy_from_slice(&[kind << 3 | next >> 1, next << 7]);
                uet[length] = opcode;
                uet[length + 12] = 0x0d;
                all.push(around(&uet));
                all.push(uet);
            }
        }
    }
    all
}

/// Ethernet, IPv4 and UDP around a packet.
fn around(uet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((uet.len() as u16 + 28).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xbe, 0xef, 0x12, 0xb9]);
    frame.extend((uet.len() as u16 + 8).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(uet);
    frame
}

#[test]
fn nothing_allocates() {
    let mut buffer = vec![0; 1024];
    for received in received() {
        buffer[..received.len()].copy_from_slice(&received);
        for (name, run) in uet_proofs::all() {
            assert_eq!(allocations(|| run(&received, &mut buffer)), 0, "{name} of {received:02x?}");
        }
    }
}
