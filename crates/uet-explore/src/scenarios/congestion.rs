//! Congestion control: NSCC, RCCC and both.

use super::{BLANK, THREE, TWO, budget};
use crate::scenario::Action::{Abort, Add, Close, Read, Write};
use crate::scenario::{Control, Scenario};
use uet_model::Mode;
use uet_model::cc::Algorithms;
use uet_model::ses::Abort as Cancel;

pub(super) static ROWS: &[Scenario] = &[
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
                rccc.start_credit = 3 << 22;
            }
        },
        small: budget(1, 0, 0, 0, 0, 0),
        ..BLANK
    },
    Scenario {
        name: "read-nscc",
        first: [&[Read(THREE)], &[]],
        control: Control::Nscc(1),
        small: budget(1, 0, 0, 0, 1, 0),
        ..BLANK
    },
];
