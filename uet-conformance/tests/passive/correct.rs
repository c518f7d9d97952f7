//! What correct devices do, and what captures lack: nothing is found of it.

use crate::frames::*;
use uet_wire::pds::{self, Ack, RequestMut};
use uet_wire::registry::CtlType;
use uet_wire::{PdcId, Psn, PsnOffset};

/// A whole context from its first packet to the ACK of its CLOSE_COMMAND, with these identifiers.
fn life(start: u32, here: PdcId, there: PdcId) -> Vec<Vec<u8>> {
    const LAST: u32 = 5;
    let sends = |psn: u32| {
        let ses = Some(write(psn as u16).into());
        let clear = psn.max(start + 1) - if psn == start { 2 } else { 1 };
        let syn = |r: RequestMut| r.syn(true).psn_offset(PsnOffset::ZERO);
        let open = |r: RequestMut| if psn == start { syn(r) } else { r.dpdcid(there) };
        frame(true, 7, 0, header(psn, |r| open(r.spdcid(here)).clear_psn(Psn(clear))), ses, b"data")
    };
    let told = |psn: u32| {
        let ack = Ack::build().cack_psn(Psn(psn)).spdcid(there).dpdcid(here).done().unwrap();
        frame(false, 7, 0, ack, None, b"")
    };
    let close = pds::Control::build(CtlType::CLOSE_COMMAND).ar(true).psn(Psn(start + LAST));
    let close = frame(true, 7, 0, close.spdcid(here).dpdcid(there).done().unwrap(), None, b"");
    let mut life: Vec<_> = (start..start + LAST).flat_map(|psn| [sends(psn), told(psn)]).collect();
    life.extend([close, told(start + LAST)]);
    life
}

/// Both ends give out an identifier that is free, most often the one that was freed last; the capture may lack the
/// packet that shows it.
#[test]
fn identifiers_are_used_again() {
    let (other, far) = (PdcId(0x4002), 0x4000_0000);
    for (first, second) in [(1000, far), (far, 1000)] {
        for names in [(HERE, THERE), (other, THERE), (HERE, PdcId(0x8002))] {
            let lives = [life(first, HERE, THERE), life(second, names.0, names.1)].concat();
            finds(&lives, &[]);
            for gap in 0..lives.len() {
                finds(&[&lives[..gap], &lives[gap + 1..]].concat(), &[]);
            }
        }
    }
    // Those that are alive together have other PSNs than the one that had the identifier before.
    let open = life(1000, HERE, THERE)[..10].to_vec();
    let second = life(far, other, THERE);
    finds(&[open.clone(), second.clone()].concat(), &[]);
    finds(&[open.clone(), second[1..].to_vec()].concat(), &[]);
    finds(&[open, second[2..].to_vec()].concat(), &[]);
    finds(&[life(1000, HERE, THERE)[..11].to_vec(), life(990, other, THERE)].concat(), &[]);
    // The PSNs tell the two apart where the end of the first one was not captured.
    let lives = |ends: usize| [life(1000, HERE, THERE)[..ends].to_vec(), life(far, HERE, THERE)].concat();
    (1..12).for_each(|ends| finds(&lives(ends), &[]));
    // The end of the first one tells them apart where the PSNs are next to each other.
    let close = [life(1000, HERE, THERE), life(1005, other, THERE)].concat();
    finds(&close, &[]);
    finds(&[&close[..12], &close[13..]].concat(), &[]);
}
