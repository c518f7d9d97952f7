//! Random networks. Each request is delivered and completed exactly once, in order on an ordered context. Counters that
//! must not move back do not.

use super::common::*;
use crate::cases::cases;
use core::time::Duration;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use uet_model::network::Fabric;
use uet_model::pds::EventKind;
use uet_model::*;
use uet_wire::registry::NackCode;

/// The faults of the network, in percent of packets.
#[derive(Clone, Copy, Debug)]
struct Weather {
    lost: u8,
    twice: u8,
    late: u8,
    trimmed: u8,
    marked: u8,
    seed: u64,
}

fn weather(worst: u8) -> impl Strategy<Value = Weather> {
    let parts = (0..worst, 0..worst, 0..40u8, 0..worst, 0..20u8, any::<u64>());
    parts.prop_map(|(lost, twice, late, trimmed, marked, seed)| Weather {
        lost,
        twice,
        late,
        trimmed,
        marked,
        seed,
    })
}

impl Weather {
    fn impair(self, pair: &mut Pair) {
        let Weather { lost, twice, late, trimmed, marked, seed } = self;
        *pair.ends.fabric() = Fabric::new(seed);
        let (lost, twice) = (format!("drop {lost}%"), format!("duplicate {twice}%"));
        let (trimmed, marked) = (format!("trim 64 {trimmed}%"), format!("mark {marked}%"));
        pair.impair(&[&lost, &twice, &trimmed, &marked, &format!("jitter 60us {late}%")]);
    }
}

/// Returns the random reactions of the layer above the target.
fn above(seed: u64) -> Above {
    let mut rng = fastrand::Rng::with_seed(seed);
    Box::new(move |_, _| match rng.u8(..10) {
        0 => React::Answer(guaranteed(1)),
        1 => React::Answer(ok_response(1)),
        2 => React::Refuse(NackCode::NO_SES_MSG_AVAIL),
        _ => React::Answer(plain_response(1)),
    })
}

/// Returns parameters with enough retries for every request to succeed.
fn patient() -> PdsParams {
    PdsParams {
        max_rto_retx_cnt: 31,
        max_nack_retx_cnt: 200,
        max_clear_requests: 200,
        rto_init_time: Duration::from_micros(50),
        syn_retx_safety_time: Duration::from_secs(20),
        ..plain()
    }
}

/// Returns the counters that moved back, or left the window.
fn breaches(pair: &Pair) -> Vec<String> {
    let mut breaches = Vec::new();
    let outside = |event: &EventKind| {
        matches!(event, EventKind::Nacked(_, NackCode::PSN_OOR_WINDOW | NackCode::INVALID_SYN))
    };
    if pair.events.iter().flatten().any(outside) {
        breaches.push("sent outside the window".to_owned());
    }
    for side in [A, B] {
        let mut last: HashMap<&str, u32> = HashMap::new();
        for event in &pair.events[side] {
            let (name, psn) = match event {
                EventKind::CackMoved(psn) => ("CACK", psn),
                EventKind::ClearMoved(psn) => ("CLEAR", psn),
                EventKind::CackSent(psn) => ("acknowledged", psn),
                _ => continue,
            };
            if let Some(before) = last.insert(name, psn.0)
                && psn.0.wrapping_sub(before) as i32 <= 0
            {
                breaches.push(format!("{name} went from {before} to {psn}"));
            }
        }
    }
    breaches
}

fn run(mode: Mode, params: PdsParams, weather: Weather, count: u64) -> Result<Pair, TestCaseError> {
    let mut pair = Pair::new(params);
    weather.impair(&mut pair);
    pair.above[B] = above(weather.seed ^ 1);
    let mut next = 0;
    let mut patience = 0;
    while next < count {
        match pair.ends[A].request(pair.now, Via::Route(route(B, mode)), request(next)) {
            Ok(()) => next += 1,
            Err(Refused(_)) => {
                patience += 1;
                prop_assert!(patience < 100_000, "it does not take requests:\n{}", pair.ladder);
                pair.run_for(Duration::from_micros(20));
            }
        }
    }
    pair.run();
    Ok(pair)
}

fn check(mode: Mode, params: PdsParams, weather: Weather) -> Result<(), TestCaseError> {
    let count = 150;
    let mut pair = run(mode, params, weather, count)?;
    let answered = pair.responses(A);
    let unique: HashSet<u64> = answered.iter().copied().collect();
    prop_assert_eq!(unique.len(), answered.len(), "answered once");
    prop_assert_eq!(pair.failures(A), vec![], "{}", pair.ladder);
    prop_assert_eq!(answered.len() as u64, count);
    let once: HashSet<u8> = delivered(&pair).into_iter().collect();
    prop_assert_eq!((once.len(), pair.kept[B].len()), (count as usize, count as usize), "delivered once");
    prop_assert_eq!(breaches(&pair), Vec::<String>::new());
    let context = pair.context();
    pair.ends[A].close(pair.now, context);
    pair.run();
    for side in [A, B] {
        prop_assert_eq!(
            (side, pair.ends[side].contexts(), pair.ends[side].held()),
            (side, 0, 0),
            "{}",
            pair.ladder
        );
    }
    Ok(())
}

/// Returns the requests that were delivered and not refused, in order.
fn delivered(pair: &Pair) -> Vec<u8> {
    pair.kept[B].iter().map(|given| given.payload[0]).collect()
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn every_request_is_answered_once(weather in weather(25)) {
        check(Mode::Rud, patient(), weather)?;
        check(Mode::Rud, PdsParams { ack_unmarked_duplicates: false, ask_ack_at_eom: true, ..patient() }, weather)?;
    }

    /// With few retries on a bad network, some requests fail. Each ends once, and nothing is left.
    #[test]
    fn every_request_ends_once(weather in weather(60)) {
        let mut pair = run(Mode::Rud, PdsParams { max_rto_retx_cnt: 2, max_nack_retx_cnt: 2, ..plain() }, weather, 60)?;
        let mut ended = pair.responses(A);
        ended.extend(pair.failures(A).iter().map(|failure| failure.0));
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..60).collect::<Vec<_>>());
        pair.run_for(Duration::from_secs(1));
        prop_assert!(pair.ends[A].contexts() <= 1);
        if pair.ends[A].contexts() == 0 {
            prop_assert_eq!(pair.ends[A].held(), 0);
        }
    }

    /// Return data arrives despite losses, and each packet once.
    #[test]
    fn return_data_arrives_once(weather in weather(20)) {
        let mut pair = Pair::new(patient());
        weather.impair(&mut pair);
        let mut message = 0;
        pair.above[B] = Box::new(move |_, _| {
            message += 1;
            React::Return(ok_response(1), vec![data(message, 9, 1, true, false, 1000), data(message, 9, 1, false, true, 10)])
        });
        for request in 0..40 {
            pair.request(Via::Route(route(B, Mode::Rud)), A, read(request, true, true));
            pair.run_for(Duration::from_micros(2));
        }
        pair.run();
        prop_assert_eq!((pair.given[B].len(), pair.given[A].len()), (40, 80));
        prop_assert_eq!((pair.responses(A).len(), pair.responses(B).len()), (40, 80));
        prop_assert_eq!(breaches(&pair), Vec::<String>::new());
        let context = pair.context();
        pair.ends[A].close(pair.now, context);
        pair.run();
        prop_assert_eq!([pair.ends[A].held(), pair.ends[B].held()], [0, 0]);
    }

    #[test]
    fn ordered_context_delivers_in_order(weather in weather(25)) {
        check_ordered(weather)?;
    }
}

fn check_ordered(weather: Weather) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(patient());
    weather.impair(&mut pair);
    pair.above[B] = above(weather.seed ^ 1);
    let route = route(B, Mode::Rod);
    for message in 0..60 {
        pair.ends[A].request(pair.now, Via::Route(route), request(message)).unwrap();
        pair.run_for(Duration::from_micros(3));
    }
    pair.run();
    prop_assert_eq!(delivered(&pair), (0..60).collect::<Vec<u8>>(), "{}", pair.ladder);
    // The ACKs leave in order, and may overtake each other.
    let mut responses = pair.responses(A);
    responses.sort_unstable();
    prop_assert_eq!(responses, (0..60).collect::<Vec<u64>>());
    Ok(())
}
