//! Operations: messages, reads, atomics, permissions and aborts.

use super::{BLANK, THREE, TWO, budget};
use crate::scenario::Action::{
    Abort, Add, AddFull, Claim, Close, Count, Deferrable, Lend, Read, Receive, ReceiveTagged, Rendezvous,
    Send, Tagged, Trespass, Withdraw, Write,
};
use crate::scenario::Scenario;
use crate::scenario::Trespass::{Beyond, Nowhere, Outside, ReadOnly};
use uet_model::Mode;
use uet_model::ses::FormChoice;

pub(super) static ROWS: &[Scenario] = &[
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
        name: "complete-later",
        first: [&[Write(TWO)], &[]],
        later: [&[Write(8)], &[]],
        delivery_complete: true,
        small: budget(2, 0, 1, 0, 0, 0),
        large: budget(3, 0, 2, 0, 0, 1),
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
    Scenario { name: "full-atomic", first: [&[AddFull, Add], &[]], small: budget(1, 0, 0, 0, 1, 0), ..BLANK },
    Scenario {
        name: "abort-read",
        first: [&[Read(TWO)], &[]],
        later: [&[Abort, Add], &[]],
        small: budget(0, 0, 0, 0, 0, 0),
        large: budget(1, 0, 0, 0, 0, 1),
        ..BLANK
    },
];
