//! Defaults, and refused parameters.

use core::time::Duration;
use uet_model::cc::{
    Algorithms, CcError, CcParams, Ccc, CreditPacer, NetworkParams, Nscc, NsccParams, PacerParams, PathMode,
    PathParams, PathSelector, Rccc, RcccParams, TfcParams,
};

#[test]
fn nscc_defaults_with_trimming() {
    let params = NsccParams::new(&NetworkParams::default()).unwrap();
    let us = Duration::from_micros;
    assert_eq!(
        params,
        NsccParams {
            config_base_rtt: us(6),
            cached_base_rtt: None,
            sender_rate: 100_000_000_000,
            full_packet: 4208,
            store_and_forward_links: 0,
            max_wnd: 112_500,
            initial_cwnd: 112_500,
            target_qdelay: Duration::from_nanos(4_500),
            alpha: 4.0 * 0.5 * 4096.0 / 12e-6,
            fi: 10_240.0,
            fi_scale: 0.125,
            eta: 307.2,
            gamma: 0.8,
            max_md_jump: 0.5,
            quick_adapt: true,
            qa_gate: 3,
            qa_threshold: None,
            adjust_period_threshold: us(6),
            adjust_bytes_threshold: 32_768,
            delay_weight: 0.0125,
            delay_about_0: us(1),
            ack_gen_trigger: 16_384,
            penalty_reading: Default::default(),
            probe_from: 75_000,
        }
    );
}

#[test]
fn nscc_defaults_without_trimming() {
    let params = NsccParams::new(&NetworkParams { trimming: false, ..NetworkParams::default() }).unwrap();
    assert_eq!(params.target_qdelay, Duration::from_micros(6));
    assert_eq!(params.qa_threshold, Some(Duration::from_micros(24)), "4 base round trips for 5 Plane_BDP");
}

#[test]
fn slower_end_determines_bdp() {
    let network = NetworkParams { receiver_rate: 50_000_000_000, ..NetworkParams::default() };
    assert_eq!(network.bdp(), 37_500.0);
    let network = NetworkParams { sender_rate: 50_000_000_000, ..NetworkParams::default() };
    assert_eq!(network.bdp(), 37_500.0);
}

#[test]
fn alpha_is_independent_of_target() {
    let network = NetworkParams::default();
    let alpha = |target| NsccParams::with_target(&network, Duration::from_micros(target)).alpha;
    assert!((alpha(3) / alpha(9) - 1.0).abs() < 1e-12, "scaling_b / target_qdelay is 1 / 12 us");
}

#[test]
fn rccc_and_pacer_defaults() {
    let network = NetworkParams::default();
    let us = Duration::from_micros;
    assert_eq!(
        RcccParams::new(&network).unwrap(),
        RcccParams {
            initial_credit: 75_000,
            max_wnd: 112_500,
            full_packet: 4208,
            request_interval: us(12),
            idle_reset: us(600),
            start_credit: 0,
        }
    );
    assert_eq!(
        PacerParams::new(&network).unwrap(),
        PacerParams {
            link_rate: 100_000_000_000,
            percent: 99,
            quantum: 64,
            max_wnd: 112_500,
            idle_credit: false,
            forget_after: us(6_000),
            max_sources: 4096,
            catch_up: us(6),
            hold: us(6),
            stagger: true,
        }
    );
}

#[test]
fn configuration_selects_algorithms() {
    let network = NetworkParams::default();
    let table = [
        (CcParams::none(&network), false, false),
        (CcParams::nscc(&network), true, false),
        (CcParams::rccc(&network), true, true),
        (CcParams::both(&network), true, true),
    ];
    for (params, wants_state, grants_credit) in table {
        let params = params.unwrap();
        assert_eq!((params.wants_state(), params.grants_credit()), (wants_state, grants_credit));
        let shown = Ccc::new(&params, 1, 0).unwrap().observe();
        assert_eq!(shown.credit.is_some(), grants_credit);
        assert_eq!(shown.cwnd.is_some(), wants_state && !matches!(params.algorithms, Algorithms::Rccc(_)));
        assert_eq!(params.single_path().paths.mode, PathMode::Single);
    }
    assert_eq!(CcParams::default(), CcParams::nscc(&network).unwrap());
}

#[test]
fn tfc_is_refused_with_the_reason() {
    let params = CcParams { algorithms: Algorithms::Tfc(TfcParams::default()), ..CcParams::default() };
    let refused = Ccc::new(&params, 1, 0).unwrap_err();
    assert_eq!(refused.to_string(), "algorithms: TFC is not implemented: its details are not public");
}

/// Returns the parameter that is refused after `break_it` has run.
fn refused<P>(
    mut params: P,
    check: impl Fn(P) -> Result<(), CcError>,
    break_it: impl Fn(&mut P),
) -> &'static str {
    break_it(&mut params);
    check(params).expect_err("refused").parameter
}

macro_rules! refuses {
    ($params:expr, $check:expr; $($field:ident = $value:expr),* $(,)?) => {
        $(assert_eq!(refused($params, $check, |params| params.$field = $value), stringify!($field));)*
    };
}

#[test]
fn impossible_networks_are_refused() {
    let zero = Duration::ZERO;
    refuses! { NetworkParams::default(), |network| network.check();
        sender_rate = 0, sender_rate = u64::MAX, receiver_rate = 0, base_rtt = zero,
        base_rtt = Duration::from_secs(11), mtu = 0, mtu = 4209, full_packet = 0, full_packet = u32::MAX,
        drop_threshold = 0.9, drop_threshold = f64::NAN, drop_threshold = f64::INFINITY,
    }
    for network in [
        NetworkParams { base_rtt: Duration::from_nanos(200), ..NetworkParams::default() },
        NetworkParams { sender_rate: 1_000_000, ..NetworkParams::default() },
    ] {
        assert_eq!(
            NsccParams::new(&network).unwrap_err().parameter,
            "max_wnd",
            "it holds less than a packet"
        );
        assert_eq!(CcParams::nscc(&network).unwrap_err().parameter, "max_wnd");
    }
    let network = NetworkParams { sender_rate: 0, ..NetworkParams::default() };
    assert!(NsccParams::new(&network).is_err() && RcccParams::new(&network).is_err());
    assert!(PacerParams::new(&network).is_err() && CcParams::none(&network).is_err());
}

#[test]
fn impossible_nscc_parameters_are_refused() {
    refuses! { NsccParams::new(&NetworkParams::default()).unwrap(), |params| Nscc::new(params).map(drop);
        config_base_rtt = Duration::ZERO, cached_base_rtt = Some(Duration::ZERO), sender_rate = 0,
        full_packet = 0, max_wnd = 4207, max_wnd = u64::MAX, initial_cwnd = 4207, initial_cwnd = 112_501,
        target_qdelay = Duration::ZERO, alpha = -1.0, alpha = f64::NAN, fi = f64::INFINITY, fi_scale = -0.1,
        eta = f64::NAN, gamma = 1.1, gamma = f64::NAN, max_md_jump = -0.1, qa_gate = 64, delay_weight = 0.0,
        delay_weight = 1.1, store_and_forward_links = 65,
    }
    let smallest = NsccParams { initial_cwnd: 4208, ..NsccParams::new(&NetworkParams::default()).unwrap() };
    assert!(smallest.check().is_ok());
}

#[test]
fn impossible_rccc_parameters_are_refused() {
    refuses! { RcccParams::new(&NetworkParams::default()).unwrap(), |params| Rccc::new(params, 1).map(drop);
        initial_credit = 0, initial_credit = u64::MAX, max_wnd = 4207, max_wnd = 1 << 30, full_packet = 0,
        request_interval = Duration::ZERO, idle_reset = Duration::ZERO,
    }
    refuses! { PacerParams::new(&NetworkParams::default()).unwrap(), |params| CreditPacer::new(params).map(drop);
        link_rate = 0, percent = 0, percent = 101, quantum = 0, max_wnd = 0, max_wnd = 1 << 30, max_sources = 0,
        forget_after = Duration::ZERO,
    }
}

#[test]
fn impossible_path_parameters_are_refused() {
    refuses! { PathParams::new(&NetworkParams::default()), |params| PathSelector::new(params, 0).map(drop);
        values = 0, values = 4097, first = 0xff01, ring = 0, ring = 4097,
    }
    let highest = PathParams { first: 0xff00, ..PathParams::new(&NetworkParams::default()) };
    assert!(highest.check().is_ok());
}

#[test]
fn check_covers_every_parameter_set() {
    let network = NetworkParams::default();
    let part = |break_it: fn(&mut CcParams)| {
        refused(CcParams::both(&network).unwrap(), |params| params.check(), break_it)
    };
    let rccc = |params: &mut CcParams| {
        let mut rccc = RcccParams::new(&NetworkParams::default()).unwrap();
        rccc.initial_credit = 0;
        params.algorithms = Algorithms::Rccc(rccc);
    };
    assert_eq!(part(rccc), "initial_credit");
    assert_eq!(part(|params| params.paths.values = 0), "values");
    assert_eq!(part(|params| params.pacer.quantum = 0), "quantum");
    let nscc = |params: &mut CcParams| {
        let mut nscc = NsccParams::new(&NetworkParams::default()).unwrap();
        nscc.gamma = 2.0;
        let rccc = RcccParams::new(&NetworkParams::default()).unwrap();
        params.algorithms = Algorithms::Both(nscc, rccc);
    };
    assert_eq!(part(nscc), "gamma");
}
