//! Draws the endpoints of a run: their groups, their configurations, and the domains that protect their packets.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use fastrand::Rng;
use uet_conformance::draw::Source;
use uet_emulator::Config;
use uet_emulator::config::Congestion;
use uet_model::PdsParams;
use uet_model::cc::{NetworkParams, PathMode};
use uet_model::secure::{SecureParams, StartPsnFloor, StartPsnMethod};
use uet_model::ses::{Abort, FormChoice, Restart, SesParams};

/// The usual number of PDCIDs: more than an endpoint uses while packets of old contexts may arrive.
pub(crate) const PDCIDS: u16 = 12_000;

/// The endpoints of a run, and the class of the run.
pub(crate) struct Plan {
    pub(crate) members: Vec<Member>,
    pub(crate) groups: Vec<Group>,
    /// The time from the first operation to the end of all faults.
    pub(crate) span: Duration,
    /// True if endpoints crash and restart.
    pub(crate) crashes: bool,
    /// True if correct endpoints may give up: limits are low, or the number of retransmissions is.
    pub(crate) lenient: bool,
}

/// An endpoint.
pub(crate) struct Member {
    pub(crate) address: IpAddr,
    pub(crate) group: usize,
    pub(crate) config: Config,
}

/// Endpoints that talk to each other. Their settings agree where the specification requires it.
pub(crate) struct Group {
    pub(crate) members: Vec<usize>,
    /// The number of the secure domain, and the way to its keys.
    pub(crate) domain: Option<(u32, &'static str)>,
    congestion: Congestion,
    network: NetworkParams,
    mtu: u16,
    default_mpr: u8,
    start_rcvd_bytes: u64,
    ses: SesParams,
}

/// Limits and classes that all endpoints of a run share.
struct Temper {
    crashes: bool,
    /// True if the number of retransmissions is limited.
    hasty: bool,
    /// True if tables and queues are small.
    tight: bool,
    /// True if PSNs start near the wrap.
    wraps: bool,
}

pub(crate) fn micros(rng: &mut Rng, range: core::ops::RangeInclusive<u64>) -> Duration {
    Duration::from_micros(rng.u64(range))
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let count = rng.usize(3..=16);
        let temper = Temper {
            crashes: rng.one_in(3),
            hasty: rng.one_in(4),
            tight: rng.one_in(4),
            wraps: rng.one_in(4),
        };
        let ipv6 = rng.one_in(4);
        let mut groups: Vec<Group> =
            (0..rng.usize(1..=(count / 2).min(4))).map(|number| Group::draw(rng, number, ipv6)).collect();
        let mut members = Vec::new();
        for number in 0..count {
            let group = number % groups.len();
            groups[group].members.push(number);
            let host = number as u8 + 1;
            let address = match ipv6 {
                true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host.into())),
                false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)),
            };
            let seed = rng.u64(..);
            members.push(Member { address, group, config: config(rng, &groups[group], &temper, seed) });
        }
        let Temper { crashes, hasty, tight, .. } = temper;
        Plan { members, groups, span: micros(rng, 1_000..=20_000), crashes, lenient: hasty || tight }
    }

    /// Returns whether one of these endpoints has few PDCIDs.
    pub(crate) fn is_small(&self, one: usize, other: usize) -> bool {
        [one, other].iter().any(|member| self.members[*member].config.pds.general_pdcs < PDCIDS)
    }
}

impl Group {
    fn draw(rng: &mut Rng, number: usize, ipv6: bool) -> Self {
        let rate = rng.pick(&[10, 25, 100, 400]) * 1_000_000_000;
        let restart = rng.pick(&[Restart::Start, Restart::Offset]);
        Group {
            members: Vec::new(),
            // Over IPv6, a direct domain needs source identifiers.
            domain: rng.one_in(4).then(|| {
                let mode = rng.pick(&["direct", "cluster"]);
                (number as u32 + 7, if ipv6 { "cluster" } else { mode })
            }),
            congestion: rng.pick(&[
                Congestion::None,
                Congestion::Nscc,
                Congestion::Nscc,
                Congestion::Rccc,
                Congestion::Both,
            ]),
            network: NetworkParams {
                sender_rate: rate,
                receiver_rate: rate,
                base_rtt: micros(rng, 5..=20),
                trimming: rng.bool(),
                ..NetworkParams::default()
            },
            mtu: rng.pick(&[1024, 1024, 2048, 4096, 8192]),
            default_mpr: rng.pick(&[1, 2, 8]),
            start_rcvd_bytes: match rng.one_in(4) {
                true => (1 << 32) - rng.u64(1..200_000),
                false => 0,
            },
            ses: SesParams { restart, ..SesParams::default() },
        }
    }
}

fn config(rng: &mut Rng, group: &Group, temper: &Temper, seed: u64) -> Config {
    let paths = [PathMode::Single, PathMode::Oblivious, PathMode::Recycling, PathMode::Bitmap];
    Config {
        pds: pds(rng, group, temper),
        ses: ses(rng, group, temper),
        secure: SecureParams {
            start_psn_method: rng.pick(&[StartPsnMethod::Expected, StartPsnMethod::Random]),
            // The other floor is unsafe where PDCIDs are reused: docs/behaviour.md, ambiguous rules.
            start_psn_floor: StartPsnFloor::Highest,
            expected_psn_in_close_ack: rng.bool(),
            ..SecureParams::default()
        },
        congestion: group.congestion,
        paths: rng.pick(&paths),
        network: group.network.clone(),
        seed,
        ..Config::default()
    }
}

fn pds(rng: &mut Rng, group: &Group, temper: &Temper) -> PdsParams {
    let mut pds = PdsParams {
        payload_mtu: group.mtu,
        default_mpr: group.default_mpr,
        announced_mpr: rng.pick(&[1, 2, 8, 64]),
        start_rcvd_bytes: group.start_rcvd_bytes,
        ack_gen_trigger: rng.pick(&[1024, 4096, 16_384, 65_536]),
        ack_on_ecn: rng.bool(),
        enb_ack_per_pkt: rng.one_in(4),
        ack_delay: micros(rng, 1..=20),
        max_ack_data_size: rng.pick(&[0, 16, 256, 1024]),
        rto_init_time: micros(rng, 60..=400),
        // No limit: losses alone fail no operation.
        max_rto_retx_cnt: if temper.hasty { rng.u8(3..=8) } else { 31 },
        nack_retx_time: micros(rng, 5..=50),
        max_nack_retx_cnt: 255,
        clear_request_time: micros(rng, 50..=300),
        pds_clear_time: micros(rng, 5..=50),
        close_req_time: Duration::from_millis(200),
        // More than the life of a packet in the network, and than the time between two retransmissions of it.
        syn_retx_safety_time: Duration::from_millis(200),
        general_pdcs: PDCIDS,
        start_psn: (temper.wraps && !temper.crashes && !temper.tight).then(|| u32::MAX - rng.u32(..300)),
        idle_time: if rng.bool() { Duration::ZERO } else { micros(rng, 200..=2_000) },
        tx_queue: rng.pick(&[1, 8, 64]),
        ask_ack_at_eom: rng.bool(),
        rod_opens_early: rng.bool(),
        nack_ses_processing: rng.bool(),
        nack_trimmed_syn: rng.bool(),
        nack_unknown_control: rng.bool(),
        negotiation: rng.bool(),
        ack_unmarked_duplicates: rng.bool(),
        reclaim_unconfirmed: rng.bool(),
        fast_loss_packets: rng.pick(&[0, 0, 3, 16]),
        infer_loss_packets: rng.pick(&[0, 0, 3, 16]),
        ..PdsParams::default()
    };
    if temper.tight {
        pds.general_pdcs = rng.pick(&[4, 16, PDCIDS]);
        pds.rx_packets = rng.pick(&[2, 16, 1 << 16]);
        pds.stored_responses = rng.pick(&[1, 4, 1 << 16]);
        pds.receive_slots = rng.pick(&[32, 1 << 20]);
        pds.rudi_requests = rng.pick(&[2, 1024]);
        pds.answer_queue = rng.pick(&[64, 4096]);
        pds.psn_range = rng.pick(&[1 << 14, 1 << 31]);
    }
    pds
}

fn ses(rng: &mut Rng, group: &Group, temper: &Temper) -> SesParams {
    let mut ses = SesParams {
        form: rng.pick(&[FormChoice::Standard, FormChoice::Shortest]),
        read_in_ack: rng.bool(),
        abort: rng.pick(&[Abort::MessageError, Abort::InitiatorError]),
        explicit_completion: rng.bool(),
        explicit_read: rng.bool(),
        max_unexpected: u16::MAX,
        max_unexpected_bytes: 1 << 30,
        max_unexpected_of_peer: u16::MAX,
        max_unexpected_bytes_of_peer: 1 << 30,
        max_deferred: u16::MAX,
        max_events: 0,
        ..group.ses.clone()
    };
    if temper.tight {
        ses.max_messages = rng.pick(&[2, 1024]);
        ses.max_reads = rng.pick(&[2, 1024]);
        ses.max_awaited = rng.pick(&[1 << 15, 1 << 20]);
        ses.max_operations = rng.pick(&[64, 4096]);
    }
    ses
}
