//! A scenario: two endpoints, what their applications do, and what the network may do.

use core::fmt;
use core::time::Duration;
use uet_model::cc::{CcParams, NetworkParams};
use uet_model::ses::SesParams;
use uet_model::{Mode, PdsParams};

/// A step of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Writes this many bytes to the peer's memory.
    Write(u16),
    /// Writes 8 bytes where the peer permits none. It must fail, and change nothing.
    Trespass(Trespass),
    /// Adds 1 to two numbers in the peer's memory, and fetches the old values: guaranteed delivery.
    Add,
    /// Adds 1 to each number of a full packet in the peer's memory, and fetches the old values: guaranteed delivery.
    AddFull,
    /// Adds 1 to one number in the peer's memory, and fetches the old value: guaranteed delivery.
    Count,
    /// Sets a number in the peer's memory if it is 0, and fetches the old value: guaranteed delivery.
    Claim,
    /// Reads this many bytes of the peer's memory.
    Read(u16),
    /// Sends this many bytes.
    Send(u16),
    /// Sends this many bytes, of which the peer reads the part above the second number.
    Rendezvous(u16, u16),
    /// Sends this many bytes by rendezvous, from memory of their own. It must be the first operation.
    Lend(u16),
    /// Withdraws the memory of [`Action::Lend`], which may then fail.
    Withdraw,
    /// Sends this many bytes, which the peer may defer.
    Deferrable(u16),
    /// Posts a receive.
    Receive,
    /// Sends this many bytes with a tag of its own.
    Tagged(u16),
    /// Posts a receive for the tagged message of the operation with this number, which has this many bytes.
    ReceiveTagged(u8, u16),
    /// Closes the own context, or requests the end of the peer's if there is no own one.
    Close,
    /// Aborts the latest operation.
    Abort,
}

/// A place where a peer may not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trespass {
    /// A region that permits only reads.
    ReadOnly,
    /// The last 4 bytes of a region, and 4 bytes beyond.
    Beyond,
    /// Offset 2^40 of a region.
    Outside,
    /// A region that does not exist.
    Nowhere,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Write(bytes) => write!(f, "writes {bytes} bytes"),
            Action::Trespass(place) => write!(f, "writes to a forbidden place: {place:?}"),
            Action::Add => f.write_str("adds and fetches"),
            Action::AddFull => f.write_str("adds to a full packet of numbers and fetches"),
            Action::Count => f.write_str("counts and fetches"),
            Action::Claim => f.write_str("sets a number that is 0"),
            Action::Read(bytes) => write!(f, "reads {bytes} bytes"),
            Action::Send(bytes) => write!(f, "sends {bytes} bytes"),
            Action::Rendezvous(bytes, eager) => {
                write!(f, "sends {bytes} bytes by rendezvous, {eager} at once")
            }
            Action::Lend(bytes) => write!(f, "sends {bytes} bytes of other memory by rendezvous"),
            Action::Withdraw => f.write_str("withdraws other memory"),
            Action::Deferrable(bytes) => write!(f, "sends {bytes} bytes that may be deferred"),
            Action::Receive => f.write_str("posts a receive"),
            Action::Tagged(bytes) => write!(f, "sends {bytes} bytes with a tag"),
            Action::ReceiveTagged(number, _) => {
                write!(f, "posts a receive for the tag of operation {number}")
            }
            Action::Close => f.write_str("closes the context"),
            Action::Abort => f.write_str("aborts its latest operation"),
        }
    }
}

/// How often the network may do something to a packet, in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Packets to lose.
    pub drop: u8,
    /// Packets to duplicate.
    pub copy: u8,
    /// Packets that overtake others.
    pub reorder: u8,
    /// Packets to mark (ECN-CE).
    pub mark: u8,
    /// Packets to trim.
    pub trim: u8,
    /// Packets of which a third endpoint also sends a copy, and passes the reply on. It copies no packet that could open a
    /// context.
    pub stray: u8,
    /// Times that a timer fires although packets are in flight. A timer is free if none are.
    pub early: u8,
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Budget { drop, copy, reorder, mark, trim, stray, early } = *self;
        let parts = [
            (drop, "drop"),
            (copy, "duplicate"),
            (reorder, "reorder"),
            (mark, "mark"),
            (trim, "trim"),
            (stray, "stray"),
            (early, "early timer"),
        ];
        let parts =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
        f.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}

/// The congestion control of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// None.
    Off,
    /// NSCC with a window of this many full packets.
    Nscc(u8),
    /// RCCC with an initial credit of this many full packets.
    Rccc(u8),
    /// Both, with a window and an initial credit of one full packet.
    Both,
}

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The delivery mode of the operations.
    pub mode: Mode,
    /// The delivery mode of every second operation, if it differs. Each mode has a context of its own.
    pub second_mode: Option<Mode>,
    /// The steps of both applications before the first packet leaves.
    pub first: [&'static [Action]; 2],
    /// The steps of both applications at any time later, in this order.
    pub later: [&'static [Action]; 2],
    /// The network's budget in the tests.
    pub small: Budget,
    /// The network's budget in long runs.
    pub large: Budget,
    /// The congestion control.
    pub control: Control,
    /// True if a write completes only when all its data is visible to the target's application.
    pub delivery_complete: bool,
    /// Changes to the parameters of the first and the second endpoint.
    pub tune: fn(&mut PdsParams, &mut SesParams, usize),
    /// True if operations may fail. Otherwise only those fail that their application aborts, or whose memory it withdraws.
    pub may_fail: bool,
    /// True if an initiator may vanish, so that its target keeps a context.
    pub may_vanish: bool,
    /// True if a PDCID is used again at once. An operation may find no free one, and fail. The passive judge takes late
    /// replies of the old context for replies of the new one, so it does not judge.
    pub reuses_pdcid: bool,
    /// The Start_PSN below which the second endpoint accepts no context. It answers NEW_START_PSN.
    pub floor: Option<u32>,
}

/// The payload of a full packet.
pub(crate) const MTU: u16 = 1024;
/// The longest time that a packet may be in flight. Closed contexts are remembered for longer.
pub(crate) const LIFETIME: Duration = Duration::from_micros(300);

impl Scenario {
    /// A scenario without actions and without congestion control, for struct updates.
    pub const BLANK: Scenario = Scenario {
        name: "",
        mode: Mode::Rud,
        second_mode: None,
        first: [&[], &[]],
        later: [&[], &[]],
        small: Budget { drop: 1, copy: 0, reorder: 1, mark: 0, trim: 0, stray: 0, early: 1 },
        large: Budget { drop: 1, copy: 1, reorder: 1, mark: 1, trim: 1, stray: 0, early: 1 },
        control: Control::Off,
        delivery_complete: false,
        tune: |_, _, _| {},
        may_fail: false,
        may_vanish: false,
        reuses_pdcid: false,
        floor: None,
    };

    /// Returns the delivery mode of the operation with this number.
    pub(crate) fn mode_of(&self, number: usize) -> Mode {
        self.second_mode.filter(|_| number % 2 == 1).unwrap_or(self.mode)
    }

    /// Returns the header data of the operation with this number, which its target hears. Only long messages have it, and
    /// RUDI keeps no messages.
    pub(crate) fn header_data(&self, number: usize, action: Action) -> Option<u64> {
        let long = matches!(action, Action::Write(length) | Action::Send(length) if length > MTU);
        (long && self.mode != Mode::Rudi).then_some(number as u64 + 1)
    }

    /// Returns the parameters of one endpoint. Times are short, so that a run ends early, and stay in proportion.
    pub(crate) fn params(&self, side: usize) -> (PdsParams, SesParams) {
        let micros = Duration::from_micros;
        let mut pds = PdsParams {
            payload_mtu: MTU,
            rto_init_time: micros(100),
            // No limit: losses alone fail no operation.
            max_rto_retx_cnt: 31,
            max_nack_retx_cnt: 255,
            nack_retx_time: micros(10),
            ack_delay: micros(10),
            clear_request_time: micros(150),
            pds_clear_time: micros(20),
            close_req_time: micros(2_000),
            new_pdc_time: micros(1_000),
            syn_retx_safety_time: micros(5_000),
            idle_time: micros(600),
            start_psn: Some(1000),
            tx_queue: 8,
            event_capacity: 256,
            congestion: self.congestion(),
            ..PdsParams::default()
        };
        let mut ses = SesParams { max_events: 0, ..SesParams::default() };
        (self.tune)(&mut pds, &mut ses, side);
        (pds, ses)
    }

    /// Returns a network whose BDP gives the first window or credit.
    pub(crate) fn network(&self) -> NetworkParams {
        let full_packet = NetworkParams::full_packet(MTU.into());
        let (packets, share) = match self.control {
            Control::Off => (1, 1),
            // The window is 1.5 BDP.
            Control::Nscc(packets) => (packets, 2),
            Control::Rccc(packets) => (packets, 3),
            Control::Both => (1, 3),
        };
        let bytes = u64::from(full_packet) * u64::from(packets) * share / 3 + 1;
        // The bytes of 10 us, in bits per second.
        let rate = bytes.max(u64::from(full_packet)) * 800_000;
        NetworkParams {
            base_rtt: Duration::from_micros(10),
            sender_rate: rate,
            receiver_rate: rate,
            mtu: MTU.into(),
            full_packet,
            ..NetworkParams::default()
        }
    }

    #[expect(clippy::expect_used, reason = "a row with impossible parameters is a bug of this crate")]
    fn congestion(&self) -> CcParams {
        let network = self.network();
        let params = match self.control {
            Control::Off => CcParams::none(&network),
            Control::Nscc(_) => CcParams::nscc(&network),
            Control::Rccc(_) => CcParams::rccc(&network),
            Control::Both => CcParams::both(&network),
        };
        let mut params = params.expect("the network is possible").single_path();
        params.paths.values = 1;
        params
    }
}
