//! For any input, all arithmetic stays finite and in bounds, and nothing panics.

use crate::cases::cases;
use core::time::Duration;
use proptest::collection::vec;
use proptest::prelude::*;
use uet_model::PdcHandle;
use uet_model::Time;
use uet_model::cc::{
    AckReport, Algorithms, CcParams, Ccc, CreditPacer, CreditSource, NackReport, NetworkParams, NsccParams,
    PacerParams, PenaltyReading, Sending,
};
use uet_wire::Units24;
use uet_wire::registry::NackCode;

/// Calls that packet delivery never makes, and values that peers never send.
#[derive(Clone, Debug)]
enum Call {
    NewData(u32),
    Send(u32, bool),
    Ack(AckReport),
    Nack(u8, u32, Option<Duration>, bool),
    Lost(u32),
    Found(u32),
    Gone(u64, Vec<u32>, Vec<u32>),
    Credit(u32),
    ProbeAnswered(Duration),
    Timeout,
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..100_000_u64).prop_map(Duration::from_nanos),
        any::<u64>().prop_map(Duration::from_nanos),
        (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos)),
        Just(Duration::MAX),
    ]
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_000_u64, any::<u64>(), Just(u64::MAX)]
}

fn units() -> impl Strategy<Value = u32> {
    0..1_u32 << 24
}

fn report() -> impl Strategy<Value = AckReport> {
    let counts = (any::<u32>(), bytes(), proptest::option::of(bytes()));
    let signals =
        (proptest::option::of(span()), any::<bool>(), any::<u16>(), proptest::option::of(any::<u32>()));
    let state = (any::<bool>(), any::<u8>(), proptest::option::of(units()));
    (counts, signals, state).prop_map(|(counts, signals, state)| AckReport {
        packets: counts.0,
        bytes: counts.1,
        newly: counts.2,
        sample: signals.0,
        size: signals.3,
        marked: signals.1,
        entropy: signals.2,
        restore: state.0,
        penalty: state.1,
        credit: state.2.and_then(Units24::new),
    })
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        any::<u32>().prop_map(Call::NewData),
        (any::<u32>(), any::<bool>()).prop_map(|(size, again)| Call::Send(size, again)),
        report().prop_map(Call::Ack),
        (any::<u8>(), any::<u32>(), proptest::option::of(span()), any::<bool>())
            .prop_map(|(code, size, sample, marked)| Call::Nack(code, size, sample, marked)),
        any::<u32>().prop_map(Call::Lost),
        any::<u32>().prop_map(Call::Found),
        (any::<u64>(), vec(any::<u32>(), 0..4), vec(any::<u32>(), 0..4))
            .prop_map(|(unsent, waiting, flying)| Call::Gone(unsent, waiting, flying)),
        units().prop_map(Call::Credit),
        span().prop_map(Call::ProbeAnswered),
        Just(Call::Timeout),
    ]
}

fn apply(ccc: &mut Ccc, now: Time, call: Call) {
    match call {
        Call::NewData(size) => ccc.new_data(now, size),
        Call::Send(size, again) => drop(ccc.send(now, Sending { size, is_retransmission: again }).entropy),
        Call::Ack(report) => ccc.ack(now, report),
        Call::Nack(code, size, sample, marked) => {
            let code = NackCode::new(code).unwrap_or(NackCode::TRIMMED);
            ccc.nack(now, NackReport { no_pdc: false, code, size, sample, marked, entropy: 0 });
        }
        Call::Lost(size) => ccc.lost(now, size, 0),
        Call::Found(size) => ccc.found(now, size),
        Call::Gone(unsent, waiting, flying) => ccc.gone(now, unsent, &waiting, &flying),
        Call::Credit(credit) => ccc.credit(now, Units24::new(credit).unwrap()),
        Call::ProbeAnswered(sample) => ccc.probe_answered(sample),
        Call::Timeout => ccc.handle_timeout(now),
    }
}

fn network() -> impl Strategy<Value = NetworkParams> {
    (1_000_000_000..2_000_000_000_000_u64, 1_000..1_000_000_u64, 10..14_u32, any::<bool>()).prop_map(
        |(rate, rtt, mtu, trimming)| NetworkParams {
            sender_rate: rate,
            receiver_rate: rate,
            base_rtt: Duration::from_nanos(rtt),
            mtu: 1 << mtu,
            full_packet: NetworkParams::full_packet(1 << mtu),
            trimming,
            ..NetworkParams::default()
        },
    )
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn of_a_context_stays_in_bounds(
        network in network(),
        kind in 0..3,
        literal: bool,
        calls in vec((call(), 0..100_000_u64, any::<bool>()), 0..100),
    ) {
        let made = match kind {
            0 => CcParams::nscc(&network),
            1 => CcParams::rccc(&network),
            _ => CcParams::both(&network),
        };
        // A network that holds less than a packet is refused.
        let Ok(mut params) = made else { return Ok(()) };
        if let (Algorithms::Nscc(nscc), true) = (&mut params.algorithms, literal) {
            nscc.penalty_reading = PenaltyReading::Literal;
        }
        let mut ccc = Ccc::new(&params, 1, 0).unwrap();
        let mut now = Time(0);
        for (call, later, jump) in calls {
            now = if jump { Time(later.wrapping_mul(1 << 40)) } else { now + Duration::from_nanos(later) };
            apply(&mut ccc, now, call);
            let shown = ccc.observe();
            if let Some(cwnd) = shown.cwnd {
                let full = u64::from(network.full_packet);
                let most = 1.5 * network.bdp();
                prop_assert!(cwnd >= full && cwnd as f64 <= most, "{cwnd} of {most}");
                prop_assert!(shown.base_rtt.unwrap() <= network.base_rtt);
            }
            if shown.inflight == Some(0) && shown.credit.is_none() {
                prop_assert!(ccc.may_send(), "an empty window takes a packet");
            }
            prop_assert!((0..3).all(|_| ccc.poll_wanted().is_some()) || ccc.poll_wanted().is_none());
            let (_, demand) = ccc.send(now, Sending { size: 1, is_retransmission: true }).credit_target.unwrap_or_default();
            prop_assert!(demand.get() < 1 << 24);
        }
    }

    #[test]
    fn of_valid_parameters_stays_in_bounds(
        (alpha, fi, eta, fi_scale) in (0.0..1e15, 0.0..1e15, 0.0..1e15, 0.0..1e15),
        (gamma, jump, weight) in (0.0..=1.0, 0.0..=1.0, 1e-9..=1.0),
        max_wnd in 4208..1_u64 << 40,
        reports in vec((report(), 0..20_000_u64), 0..60),
    ) {
        let mut params = NsccParams::new(&NetworkParams::default()).unwrap();
        (params.alpha, params.fi, params.eta, params.fi_scale) = (alpha, fi, eta, fi_scale);
        (params.gamma, params.max_md_jump, params.delay_weight) = (gamma, jump, weight);
        (params.max_wnd, params.initial_cwnd) = (max_wnd, 4208);
        let params = CcParams { algorithms: Algorithms::Nscc(params), ..CcParams::default() };
        let mut ccc = Ccc::new(&params, 1, 0).unwrap();
        let mut now = Time(0);
        for (report, later) in reports {
            now += Duration::from_nanos(later);
            ccc.ack(now, report);
            let cwnd = ccc.observe().cwnd.unwrap();
            prop_assert!((4208..=max_wnd.max(112_500)).contains(&cwnd), "{cwnd}");
        }
    }

    #[test]
    fn of_a_pacer_stays_in_bounds(
        percent in 1..=100_u8,
        idle_credit: bool,
        steps in vec((0..6_u8, any::<u8>(), units(), 0..1_000_000_u64), 0..200),
    ) {
        let params = PacerParams { percent, idle_credit, max_sources: 4, ..PacerParams::new(&NetworkParams::default()).unwrap() };
        let most = 64 * (params.catch_up.as_nanos() as u32 / 1_323 + 2);
        let mut pacer = CreditPacer::new(params).unwrap();
        let mut now = Time(0);
        for (action, from, target, later) in steps {
            let source = CreditSource { address: [10, 0, 0, from % 6].into(), ccc_id: 1, class: 0 };
            let via = PdcHandle { pdcid: 1, generation: 0 };
            let target = Units24::new(target).unwrap();
            match action {
                0 | 1 => drop(pacer.demand(now, source, via, target)),
                2 => drop(pacer.request(now, source, via, target)),
                3 => now += Duration::from_nanos(later),
                _ => {
                    let at = |n| CreditSource { address: [10, 0, 0, n].into(), ..source };
                    let mut before: Vec<_> = (0..6).map(|n| (at(n), pacer.granted(&at(n)))).collect();
                    let (mut grants, mut granted) = (0, 0);
                    while let Some(grant) = pacer.poll_grant(now) {
                        grants += 1;
                        prop_assert!(grants < 200, "it ends");
                        let (_, had) = before.iter_mut().find(|(source, _)| *source == grant.source).unwrap();
                        granted += grant.credit.since(*had).expect("never less");
                        *had = grant.credit;
                    }
                    prop_assert!(granted <= most, "{granted} at once");
                }
            }
            prop_assert!(pacer.sources() <= 4);
        }
    }
}
