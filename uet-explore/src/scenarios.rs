//! The scenarios, one row each.

use crate::scenario::Action::{
    Abort, Add, AddFull, Claim, Close, Count, Deferrable, Lend, Read, Receive, ReceiveTagged, Rendezvous,
    Send, Tagged, Trespass, Withdraw, Write,
};
use crate::scenario::Trespass::{Beyond, Nowhere, Outside, ReadOnly};
use crate::scenario::{Budget, Control, Scenario};
use crate::world::ADDRESSES;
use core::time::Duration;
use uet_emulator::config::Congestion;
use uet_emulator::fault::Fault;
use uet_emulator::{Config, Nic};
use uet_model::cc::{Algorithms, PathMode};
use uet_model::pds::Unprotected;
use uet_model::ses::{Abort as Cancel, FormChoice};
use uet_model::{Fep, Mode};
use uet_wire::Psn;

const BLANK: Scenario = Scenario::BLANK;
/// A message of two packets.
const TWO: u16 = 1040;
/// A message of three packets.
const THREE: u16 = 2064;

const fn budget(drop: u8, copy: u8, reorder: u8, mark: u8, trim: u8, early: u8) -> Budget {
    Budget { drop, copy, reorder, mark, trim, stray: 0, early }
}

/// Duplicates that arrive late.
const COPIES: Budget = budget(0, 1, 1, 0, 0, 1);

/// All scenarios.
pub static ALL: &[Scenario] = &[
    Scenario { name: "rud-write", first: [&[Write(TWO), Write(8)], &[]], ..BLANK },
    Scenario {
        name: "rud-both-ways",
        first: [&[Write(8)], &[Write(8)]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "rud-mark-trim",
        first: [&[Write(100), Write(100)], &[]],
        small: budget(1, 0, 1, 1, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "rod-send",
        mode: Mode::Rod,
        first: [&[Send(TWO), Send(8)], &[Receive, Receive]],
        ..BLANK
    },
    Scenario {
        name: "rod-write",
        mode: Mode::Rod,
        first: [&[Write(8), Write(9), Write(10)], &[]],
        small: COPIES,
        ..BLANK
    },
    Scenario { name: "guaranteed", first: [&[Add, Add], &[]], ..BLANK },
    Scenario { name: "guaranteed-rod", mode: Mode::Rod, first: [&[Add, Add], &[]], ..BLANK },
    Scenario {
        name: "guaranteed-one-slot",
        first: [&[Add, Add], &[]],
        tune: |pds, _, _| pds.stored_responses = 1,
        ..BLANK
    },
    Scenario { name: "guaranteed-later", first: [&[Add], &[]], later: [&[Add], &[]], small: COPIES, ..BLANK },
    Scenario {
        name: "close-by-initiator",
        first: [&[Write(8)], &[]],
        later: [&[Close, Write(8)], &[]],
        small: budget(0, 1, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "close-by-target",
        first: [&[Add], &[]],
        later: [&[Write(8)], &[Close]],
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario { name: "close-by-both", first: [&[Add], &[]], later: [&[Close], &[Close]], ..BLANK },
    Scenario {
        name: "close-late-copy",
        first: [&[Add], &[]],
        later: [&[Close], &[]],
        small: COPIES,
        large: budget(0, 2, 2, 0, 0, 2),
        ..BLANK
    },
    Scenario {
        name: "close-during-message",
        first: [&[Write(TWO)], &[]],
        later: [&[Close, Add], &[Close]],
        small: budget(0, 0, 1, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "pdcid-reuse",
        first: [&[Write(8)], &[]],
        later: [&[Close, Add], &[]],
        tune: |pds, _, _| pds.general_pdcs = 1,
        reuses_pdcid: true,
        small: COPIES,
        ..BLANK
    },
    Scenario {
        name: "no-pdcid",
        first: [&[Add], &[Write(8)]],
        tune: |pds, _, side| pds.general_pdcs = 2 - side as u16,
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "new-start-psn",
        first: [&[Write(TWO), Add], &[]],
        floor: Some(5000),
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "rendezvous",
        first: [&[Rendezvous(1032, 8)], &[Receive]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "rendezvous-unexpected",
        first: [&[Rendezvous(16, 8)], &[]],
        later: [&[], &[Receive]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "deferrable",
        first: [&[Deferrable(TWO)], &[]],
        later: [&[], &[Receive]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario { name: "send-unexpected", first: [&[Send(TWO)], &[]], later: [&[], &[Receive]], ..BLANK },
    Scenario { name: "read-in-ack", first: [&[Read(8), Read(16)], &[]], ..BLANK },
    Scenario {
        name: "read-return",
        first: [&[Read(TWO)], &[]],
        later: [&[], &[Close]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "rod-read",
        mode: Mode::Rod,
        first: [&[Read(TWO), Write(8)], &[]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "delivery-complete",
        first: [&[Write(TWO), Write(8)], &[]],
        delivery_complete: true,
        ..BLANK
    },
    Scenario {
        name: "empty",
        first: [&[Write(0), Send(0), Add], &[Receive]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "nscc-window-1",
        first: [&[Write(TWO), Write(1024)], &[]],
        control: Control::Nscc(1),
        small: budget(1, 0, 0, 1, 1, 0),
        ..BLANK
    },
    Scenario {
        name: "nscc-window-2",
        first: [&[Write(TWO), Write(1024)], &[]],
        control: Control::Nscc(2),
        tune: |pds, _, _| pds.start_rcvd_bytes = (1 << 32) - 1500,
        ..BLANK
    },
    Scenario {
        name: "rccc-credit-1",
        first: [&[Write(TWO), Write(1024)], &[]],
        control: Control::Rccc(1),
        small: budget(1, 1, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "rccc-trim",
        first: [&[Write(1024), Write(1024)], &[]],
        control: Control::Rccc(1),
        small: budget(0, 0, 1, 1, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "rccc-wrap",
        first: [&[Write(TWO), Write(1024)], &[]],
        control: Control::Rccc(1),
        tune: |pds, _, _| {
            if let Algorithms::Rccc(rccc) = &mut pds.congestion.algorithms {
                rccc.start_credit = (1 << 24) - 3;
            }
        },
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "rod-nscc",
        mode: Mode::Rod,
        first: [&[Write(1024), Write(1024), Write(8)], &[]],
        control: Control::Nscc(2),
        small: budget(1, 0, 0, 0, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "rod-rccc",
        mode: Mode::Rod,
        first: [&[Write(1024), Write(1024)], &[]],
        control: Control::Rccc(1),
        small: budget(1, 0, 0, 0, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "both-controls",
        first: [&[Write(TWO)], &[]],
        control: Control::Both,
        small: budget(1, 0, 0, 0, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "nscc-refused",
        first: [&[Write(1024), Write(1024)], &[]],
        control: Control::Nscc(2),
        tune: |pds, _, _| pds.rx_packets = 1,
        small: budget(1, 0, 0, 0, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "psn-wrap",
        first: [&[Write(TWO), Add], &[]],
        tune: |pds, _, _| pds.start_psn = Some(u32::MAX),
        ..BLANK
    },
    Scenario {
        name: "psn-wrap-rod",
        mode: Mode::Rod,
        first: [&[Write(8), Add, Write(9)], &[]],
        tune: |pds, _, _| pds.start_psn = Some(u32::MAX - 1),
        ..BLANK
    },
    Scenario {
        name: "one-buffer",
        first: [&[Write(TWO), Add], &[]],
        tune: |pds, _, _| (pds.rx_packets, pds.receive_slots) = (1, 2),
        ..BLANK
    },
    Scenario {
        name: "one-buffer-complete",
        first: [&[Write(TWO)], &[]],
        delivery_complete: true,
        tune: |pds, _, _| pds.rx_packets = 1,
        small: budget(1, 0, 0, 0, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "one-message",
        first: [&[Write(TWO), Write(TWO)], &[]],
        tune: |_, ses, _| ses.max_messages = 1,
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "reads-in-turn",
        first: [&[Read(1024), Read(1024)], &[]],
        tune: |_, ses, _| ses.max_awaited = 1024,
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "psn-range",
        first: [&[Write(8), Write(8), Write(8)], &[]],
        tune: |pds, _, _| (pds.psn_range, pds.tx_queue) = (2, 1),
        small: budget(1, 0, 1, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "fast-loss",
        first: [&[Write(8), Write(8), Write(8)], &[]],
        tune: |pds, _, _| (pds.fast_loss_packets, pds.infer_loss_packets) = (1, 2),
        ..BLANK
    },
    Scenario {
        name: "trespass",
        first: [&[Trespass(ReadOnly), Trespass(Beyond)], &[]],
        small: budget(1, 1, 1, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "trespass-rod",
        mode: Mode::Rod,
        first: [&[Trespass(Outside), Trespass(Nowhere), Write(8)], &[]],
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario { name: "claim", first: [&[Claim, Claim], &[]], ..BLANK },
    Scenario {
        name: "tagged",
        first: [&[Tagged(16), Tagged(8)], &[ReceiveTagged(1, 8), ReceiveTagged(0, 16)]],
        ..BLANK
    },
    Scenario {
        name: "short-forms",
        first: [&[Write(8), Add, Read(8)], &[]],
        tune: |_, ses, _| ses.form = FormChoice::Shortest,
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "rudi",
        mode: Mode::Rudi,
        first: [&[Write(TWO), Read(8)], &[]],
        small: budget(1, 0, 1, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "rudi-one-place",
        mode: Mode::Rudi,
        first: [&[Write(TWO), Trespass(ReadOnly)], &[]],
        tune: |pds, _, _| pds.rudi_requests = 1,
        small: budget(1, 0, 0, 0, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "rudi-give-up",
        mode: Mode::Rudi,
        first: [&[Write(8), Read(8)], &[]],
        tune: |pds, _, _| pds.max_rto_retx_cnt = 1,
        small: budget(2, 0, 0, 0, 0, 1),
        may_fail: true,
        ..BLANK
    },
    Scenario {
        name: "stranger",
        first: [&[Write(8), Add], &[Write(8)]],
        later: [&[Close], &[]],
        small: Budget { stray: 1, ..budget(1, 0, 0, 0, 0, 1) },
        large: Budget { stray: 3, ..budget(1, 0, 1, 0, 0, 1) },
        ..BLANK
    },
    Scenario {
        name: "stranger-guaranteed",
        first: [&[Add, Add, Add], &[]],
        small: Budget { stray: 1, ..budget(1, 0, 0, 0, 0, 0) },
        large: Budget { stray: 8, ..budget(3, 0, 0, 0, 0, 0) },
        ..BLANK
    },
    Scenario { name: "count", first: [&[Count, Count], &[]], small: budget(1, 1, 0, 0, 0, 1), ..BLANK },
    Scenario {
        name: "three-packets",
        first: [&[Write(THREE)], &[]],
        small: budget(1, 0, 1, 0, 0, 0),
        large: budget(1, 1, 2, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "lengths",
        first: [&[Write(170), Write(190)], &[]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "short-reads",
        first: [&[Read(24), Read(100)], &[]],
        tune: |_, ses, _| ses.form = FormChoice::Shortest,
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "close-after-read",
        first: [&[Read(100)], &[]],
        later: [&[Close], &[]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "close-unanswered",
        first: [&[Add], &[]],
        later: [&[Add], &[Close]],
        tune: |pds, _, _| pds.close_req_time = Duration::from_micros(50),
        may_fail: true,
        small: budget(1, 0, 0, 0, 0, 0),
        large: budget(2, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "complete-later",
        first: [&[Write(TWO)], &[]],
        later: [&[Write(8)], &[]],
        delivery_complete: true,
        small: budget(2, 0, 1, 0, 0, 0),
        large: budget(3, 0, 2, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "nscc-copies",
        first: [&[Write(1024); 5], &[]],
        control: Control::Nscc(1),
        small: budget(0, 1, 1, 0, 0, 0),
        large: budget(0, 2, 2, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "rccc-copies",
        first: [&[Write(1024); 7], &[]],
        control: Control::Rccc(1),
        small: budget(0, 1, 1, 0, 0, 0),
        large: budget(0, 2, 2, 0, 0, 2),
        ..BLANK
    },
    Scenario {
        name: "abort-one-message",
        first: [&[Write(1024), Write(THREE)], &[]],
        later: [&[Abort, Write(TWO)], &[]],
        control: Control::Nscc(1),
        tune: |pds, ses, _| (pds.tx_queue, ses.max_messages) = (1, 1),
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "abort-by-flag",
        first: [&[Write(1024), Write(THREE)], &[]],
        later: [&[Abort, Write(TWO)], &[]],
        control: Control::Nscc(1),
        tune: |pds, ses, _| {
            (pds.tx_queue, ses.max_messages, ses.abort) = (1, 1, Cancel::InitiatorError);
        },
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "abort",
        first: [&[Send(TWO)], &[Receive]],
        later: [&[Abort, Add], &[]],
        tune: |pds, _, _| pds.tx_queue = 1,
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "give-up",
        first: [&[Write(8), Add], &[]],
        tune: |pds, _, _| pds.max_rto_retx_cnt = 1,
        small: budget(2, 0, 0, 0, 0, 2),
        may_fail: true,
        may_vanish: true,
        ..BLANK
    },
    Scenario {
        name: "give-up-one",
        first: [&[Add], &[]],
        tune: |pds, _, _| pds.max_rto_retx_cnt = 1,
        small: budget(2, 1, 0, 0, 0, 2),
        may_fail: true,
        may_vanish: true,
        ..BLANK
    },
    Scenario {
        name: "two-modes",
        second_mode: Some(Mode::Rod),
        first: [&[Add, Add, Write(8)], &[]],
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "two-modes-nscc",
        second_mode: Some(Mode::Rod),
        first: [&[Write(1024), Write(1024), Write(8)], &[]],
        control: Control::Nscc(1),
        small: budget(1, 0, 0, 0, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "two-modes-rccc",
        second_mode: Some(Mode::Rod),
        first: [&[Write(1024), Write(1024)], &[]],
        control: Control::Rccc(1),
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "read-rccc",
        first: [&[Read(THREE)], &[]],
        later: [&[Close], &[]],
        control: Control::Rccc(1),
        small: budget(1, 0, 0, 0, 1, 0),
        ..BLANK
    },
    Scenario {
        name: "guaranteed-rccc",
        first: [&[Add, Read(8), Add], &[]],
        control: Control::Rccc(1),
        small: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
    Scenario {
        name: "rod-close",
        mode: Mode::Rod,
        first: [&[Add, Write(8)], &[]],
        later: [&[Close, Add], &[Close]],
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "rod-trim",
        mode: Mode::Rod,
        first: [&[Write(100), Add, Write(100)], &[]],
        small: budget(1, 0, 0, 0, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "open-while-closing",
        first: [&[Write(8)], &[Write(8)]],
        later: [&[Close, Add], &[Close, Add]],
        small: budget(0, 0, 0, 0, 0, 0),
        large: budget(1, 1, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "abort-rendezvous",
        first: [&[Rendezvous(1032, 8)], &[Receive]],
        later: [&[Abort, Add], &[]],
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "abort-deferrable",
        first: [&[Deferrable(TWO)], &[]],
        later: [&[Abort, Add], &[Receive]],
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "one-read",
        first: [&[Read(TWO), Read(TWO)], &[]],
        tune: |_, ses, _| (ses.max_reads, ses.read_in_ack) = (2, false),
        small: budget(1, 0, 0, 0, 1, 0),
        ..BLANK
    },
    Scenario {
        name: "rudi-reads",
        mode: Mode::Rudi,
        first: [&[Read(TWO), Read(100)], &[]],
        small: budget(1, 1, 0, 0, 1, 1),
        ..BLANK
    },
    Scenario {
        name: "withdraw",
        first: [&[Lend(16), Rendezvous(16, 8)], &[Receive]],
        later: [&[Withdraw], &[Receive]],
        small: budget(0, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "both-controls-grants",
        first: [&[Write(1024); 5], &[]],
        control: Control::Both,
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "rccc-returning",
        first: [&[Write(1024), Write(1024)], &[]],
        control: Control::Rccc(1),
        tune: |pds, _, _| {
            if let Algorithms::Rccc(rccc) = &mut pds.congestion.algorithms {
                rccc.start_credit = 1 << 20;
            }
        },
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario { name: "full-atomic", first: [&[AddFull, Add], &[]], small: budget(1, 0, 0, 0, 1, 0), ..BLANK },
    Scenario {
        name: "read-nscc",
        first: [&[Read(THREE)], &[]],
        control: Control::Nscc(1),
        small: budget(1, 0, 0, 0, 1, 0),
        ..BLANK
    },
    Scenario {
        name: "abort-read",
        first: [&[Read(TWO)], &[]],
        later: [&[Abort, Add], &[]],
        small: budget(0, 0, 0, 0, 0, 0),
        large: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
];

/// Returns the scenario of this name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}

/// Returns both endpoints of a scenario, made of the reference model.
pub fn endpoints(scenario: &'static Scenario) -> [Fep; 2] {
    [0, 1].map(|side| {
        let (pds, ses) = scenario.params(side);
        #[expect(clippy::expect_used, reason = "a row with impossible parameters is a bug of this crate")]
        let fep = Fep::new(pds, ses, ADDRESSES[side], 1 + side as u64).expect("the parameters fit");
        match floor(scenario, side) {
            Some(floor) => fep.with_protection(floor),
            None => fep,
        }
    })
}

/// Returns both endpoints as NICs of the emulator, with these faults.
pub fn nics(scenario: &'static Scenario, faults: [&[&'static Fault]; 2]) -> [Nic; 2] {
    [0, 1].map(|side| {
        let (pds, ses) = scenario.params(side);
        let congestion = match scenario.control {
            Control::Off => Congestion::None,
            Control::Nscc(_) => Congestion::Nscc,
            Control::Rccc(_) => Congestion::Rccc,
            Control::Both => Congestion::Both,
        };
        let (network, paths, seed) = (scenario.network(), PathMode::Single, 1 + side as u64);
        let config = Config { pds, ses, congestion, network, paths, seed, ..Config::default() };
        let nic = Nic::new(ADDRESSES[side], config).and_then(|nic| nic.with_faults(faults[side]));
        #[expect(clippy::expect_used, reason = "a row with impossible parameters is a bug of this crate")]
        let nic = nic.expect("the parameters fit");
        match floor(scenario, side) {
            Some(floor) => nic.with_protection(floor),
            None => nic,
        }
    })
}

/// Returns the protection by which the second endpoint accepts no context below a Start_PSN.
fn floor(scenario: &Scenario, side: usize) -> Option<Unprotected> {
    let lowest_start = scenario.floor.filter(|_| side == 1).map(Psn);
    lowest_start.map(|lowest| Unprotected { lowest_start: Some(lowest) })
}
