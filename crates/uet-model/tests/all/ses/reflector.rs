//! One packet of a stranger, whose source address may be forged, and nothing after it: what goes to that address is bounded.

use bytes::Bytes;
use core::time::Duration;
use uet_model::cc::{CcParams, NetworkParams};
use uet_model::ses::*;
use uet_model::{Fep, Mode, PdsParams, Time};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

const PROCESS: Process = Process::Relative { job: 101, pid: 2 };
const INDEX: ResourceIndex = ResourceIndex { process: PROCESS, index: 0 };
const KEY: Key = Key(7).idempotent();
const LONG: u32 = 1 << 20;

fn fep(address: [u8; 4], pds: PdsParams) -> Fep {
    let mut fep = Fep::new(pds, SesParams::default(), address.into(), 1).unwrap();
    fep.ses_mut().open(Endpoint { process: PROCESS, start: 0, count: 1 }).unwrap();
    fep
}

/// Returns the bytes of the first packet of an operation, and those that go to its sender until nothing more happens.
fn reflected(work: Work, mode: Mode, pds: &PdsParams) -> Option<(usize, usize, usize)> {
    let (mut stranger, mut target) = (fep([10, 0, 0, 1], pds.clone()), fep([10, 0, 0, 2], pds.clone()));
    let region = || Region { key: KEY, base: 0, access: Access::ALL, data: vec![0; LONG as usize] };
    let own = stranger.ses_mut().expose(INDEX, region()).unwrap();
    let work = match work {
        Work::Rendezvous { tag, offset, length, eager, .. } => {
            Work::Rendezvous { tag, source: own, offset, length, eager }
        }
        other => other,
    };
    target.ses_mut().expose(INDEX, region()).unwrap();
    target.ses_mut().post_receive(INDEX, Receive::tagged(LONG, 5)).unwrap();
    let peer = Peer::relative([10, 0, 0, 2], 101, 2).by(mode);
    // Not every operation is possible by every mode.
    stranger.ses_mut().post(Operation::new(peer, work)).ok()?;
    let mut packet = stranger.poll_transmit(Time::ZERO).expect("a packet");
    if pds.congestion.grants_credit() {
        // The end of the header of RUD_CC_REQ and ROD_CC_REQ: the stranger demands 2 GiB.
        packet.head[13..16].copy_from_slice(&[0x7f, 0xff, 0xff]);
    }
    let (came, mut went, mut packets) = (packet.wire_len(), 0, 0);
    target.handle_input(Time::ZERO, packet);
    let mut now = Time::ZERO;
    for _ in 0..100_000 {
        while let Some(packet) = target.poll_transmit(now) {
            went += packet.wire_len();
            packets += 1;
        }
        let Some(next) = target.poll_timeout().filter(|next| *next < Time::ZERO + Duration::from_secs(600))
        else {
            return Some((came, went, packets));
        };
        now = now.max(next);
        target.handle_timeout(now);
    }
    panic!("no end");
}

#[test]
fn little_goes_to_an_address_that_may_be_forged() {
    let sum = |fetch| Work::Atomic {
        on: AtomicOn::Memory { key: KEY, offset: 8 },
        opcode: AtomicOpcode::SUM,
        datatype: AtomicDatatype::UINT64,
        operand: Operand::Elements(Bytes::from_static(&[1; 8])),
        fetch,
    };
    let data = || Bytes::from(vec![1; LONG as usize]);
    let read = |length| Work::Read { key: KEY, offset: 0, length };
    let works = [
        read(LONG),
        read(64),
        Work::Write { key: KEY, offset: 0, data: data() },
        Work::Send { tag: Some(5), data: data() },
        Work::Deferrable { tag: Some(5), data: data() },
        Work::Rendezvous { tag: Some(5), source: RegionId(0), offset: 0, length: LONG, eager: 0 },
        sum(false),
        sum(true),
    ];
    let network = NetworkParams::default();
    let controls = [CcParams::none(&network), CcParams::nscc(&network), CcParams::rccc(&network)];
    for congestion in controls.map(Result::unwrap) {
        let pds = PdsParams { congestion, ..PdsParams::default() };
        // One packet, its retransmissions, an ACK, and what RCCC asks for credit.
        let copies = 1 + pds.max_rto_retx_cnt as usize;
        for work in &works {
            for mode in [Mode::Rud, Mode::Rod, Mode::Rudi] {
                let Some((came, went, packets)) = reflected(work.clone(), mode, &pds) else { continue };
                let told =
                    format!("{work:?} by {mode:?}: {came} bytes came, {went} went in {packets} packets");
                assert!(packets <= copies + 2, "{told}");
                // A read is answered with data, of one packet until the peer confirms the context.
                let data = if let Work::Read { length, .. } = work { length.min(&4096) } else { &0 };
                assert!(went <= 5 * came + copies * *data as usize, "{told}");
            }
        }
    }
}
