//! The memory of an observer follows the open contexts.

use cap::Cap;
use core::net::{IpAddr, Ipv4Addr};
use std::alloc::System;
use uet_observe::{Observed, Observer};
use uet_wire::pds::{Ack, Request};
use uet_wire::{PdcId, Psn, PsnOffset, UetBuf};

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 12));
const CONTEXTS: u16 = 50;

/// Sends a request in each context, and its ACK. Each request clears the one before it.
fn round(observer: &mut Observer, psn: u32) {
    for context in 1..=CONTEXTS {
        let (here, there) = (PdcId(context), PdcId(0x8000 | context));
        let request = Request::rud().syn(psn == 0).psn(Psn(psn)).clear_psn_offset(-1).spdcid(here);
        let request = match psn {
            0 => request.psn_offset(PsnOffset::ZERO),
            _ => request.dpdcid(there),
        };
        let ack = Ack::build().cack_psn(Psn(psn)).spdcid(there).dpdcid(here);
        let number = u64::from(psn);
        let request = UetBuf::new(request.done().unwrap()).to_bytes();
        observer.observe(&Observed::new(number, A, B, &request));
        observer.observe(&Observed::new(number, B, A, &UetBuf::new(ack.done().unwrap()).to_bytes()));
    }
}

#[test]
fn memory_follows_contexts() {
    let mut observer = Observer::default();
    let before = MEMORY.allocated();
    (0..1_000).for_each(|psn| round(&mut observer, psn));
    let of_each = (MEMORY.allocated() - before) / usize::from(CONTEXTS);
    assert_eq!(observer.contexts().count(), usize::from(CONTEXTS));
    assert!(of_each < 5_000, "{of_each} bytes for each context");
}
