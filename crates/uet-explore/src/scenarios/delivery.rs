//! Contexts: loss, order, guaranteed delivery, limits and closing.

use super::{BLANK, COPIES, TWO, budget};
use crate::scenario::Action::{Add, Close, Read, Receive, Send, Trespass, Write};
use crate::scenario::Trespass::ReadOnly;
use crate::scenario::{Budget, Scenario};
use core::time::Duration;
use uet_model::Mode;

pub(super) static ROWS: &[Scenario] = &[
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
];
