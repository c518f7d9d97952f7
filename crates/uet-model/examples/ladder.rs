//! The articles' write of 16 KiB, between two endpoints in one program: `cargo run -p uet-model --example ladder`.
//!
//! It prints what both say to each other, and why. `cargo run -p uet-model --example ladder -- 2` loses the second
//! packet.

use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use uet_model::ladder::{Fate, Ladder};
use uet_model::ses::{
    Access, Completion, Endpoint, Key, Operation, Peer, Process, Region, ResourceIndex, SesParams, Work,
};
use uet_model::{Fep, Packet, PdsParams, Time};

const INITIATOR: [u8; 4] = [10, 0, 0, 1];
const TARGET: [u8; 4] = [10, 0, 1, 12];
/// The delay of a packet.
const DELAY: Duration = Duration::from_micros(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lost: Option<usize> = std::env::args().nth(1).map(|number| number.parse()).transpose()?;

    // The numbers of the example, instead of random ones.
    let numbers = PdsParams { start_psn: Some(0x12000), event_capacity: 1000, ..PdsParams::default() };
    let at = |first_pdcid, address: [u8; 4]| {
        let params = PdsParams { first_pdcid, ..numbers.clone() };
        Fep::new(params, SesParams::default(), address.into(), 1)
    };
    let mut feps = [at(0x4001, INITIATOR)?, at(0x8001, TARGET)?];

    // The target: process 2 of job 101 exposes a region in the table of its index 0x00a.
    let process = Process::Relative { job: 101, pid: 2 };
    let index = ResourceIndex { process, index: 0x00a };
    let target = feps[1].ses_mut();
    target.open(Endpoint { process, start: 0, count: 64 })?;
    target.set_generation(index, 1)?;
    let region =
        Region { key: Key(0xacce5), base: 0xba5e_add1, access: Access::WRITE, data: vec![0; 16_384] };
    let region = target.expose(index, region)?;

    // The initiator: one write, larger than a packet.
    let peer = Peer { index: 0x00a, generation: 1, ..Peer::relative(TARGET, 101, 2) };
    let data: Bytes = (0..16_384).map(|i| (i % 251) as u8).collect();
    let write = Work::Write { key: Key(0xacce5), offset: 0, data: data.clone() };
    feps[0].ses_mut().post(Operation { header_data: Some(11), ..Operation::new(peer, write) })?;

    let mut ladder = Ladder::new(("initiator", INITIATOR.into()), ("target", TARGET.into()));
    let (mut now, mut flying, mut sent) = (Time::ZERO, Vec::<(Time, Packet)>::new(), 0);
    let done = loop {
        for fep in &mut feps {
            while let Some(packet) = fep.poll_transmit(now) {
                note(&mut ladder, fep);
                sent += 1;
                let fate = if Some(sent) == lost { Fate::Lost } else { Fate::Arrives };
                ladder.packet(now, &packet, fate);
                if fate == Fate::Arrives {
                    flying.push((now + DELAY, packet));
                }
            }
            note(&mut ladder, fep);
        }
        if let Some(Completion::Operation { result, .. }) = feps[0].poll_completion() {
            break result;
        }
        // The next thing that happens: a packet arrives, or a time has come.
        let timeouts = feps.iter().filter_map(Fep::poll_timeout);
        now = timeouts.chain(flying.iter().map(|(at, _)| *at)).min().ok_or("nothing will ever happen")?;
        let (arriving, still): (Vec<_>, Vec<_>) = flying.into_iter().partition(|(at, _)| *at <= now);
        flying = still;
        for (_, packet) in arriving {
            let side = usize::from(packet.dst == IpAddr::from(TARGET));
            feps[side].handle_input(now, packet);
        }
        for fep in &mut feps {
            fep.handle_timeout(now);
        }
    };
    println!("{ladder}");
    match done {
        Ok(done) => println!("The write has completed: {} bytes.", done.length),
        Err(fault) => println!("The write has failed: {}.", fault.code),
    }
    assert_eq!(feps[1].ses().memory(region), Some(&data[..]));
    Ok(())
}

/// The ladder shows each decision on the side that made it.
fn note(ladder: &mut Ladder, fep: &mut Fep) {
    let address = fep.pds().address();
    while let Some(event) = fep.poll_event() {
        ladder.note(event.at(), address, event);
    }
}
