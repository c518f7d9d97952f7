//! Random histories. After everything is acknowledged, nothing is in flight and the context is idle. While grants can
//! arrive, every packet leaves.

use super::world::history;
use crate::cases::cases;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use uet_model::cc::CccState;

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn terminate(kind: u8, actions in vec(any::<u8>(), 0..400)) {
        history(&[vec![kind], actions].concat());
    }

    #[test]
    fn with_all_kinds_of_loss_terminate(kind: u8, actions in vec(lossy(), 0..200)) {
        history(&[vec![kind], actions.concat()].concat());
    }
}

/// Draws data, sending and loss more often than arrivals.
fn lossy() -> impl Strategy<Value = Vec<u8>> {
    (
        prop_oneof![Just(0u8), Just(3), Just(8), Just(11), Just(12), Just(13), Just(14), any::<u8>()],
        any::<u8>(),
    )
        .prop_map(|(action, what)| vec![action, what])
}

#[test]
fn every_algorithm_reaches_every_state() {
    for kind in 0..4 {
        let mut rng = fastrand::Rng::with_seed(kind);
        let mut seen = BTreeSet::new();
        for _ in 0..50 {
            let bytes: Vec<u8> = core::iter::once(kind as u8).chain((0..200).map(|_| rng.u8(..))).collect();
            seen.extend(history(&bytes));
        }
        let none = kind == 0;
        for state in [CccState::Ready, CccState::Active, CccState::Pending, CccState::Idle] {
            let possible = !(none && state == CccState::Active);
            assert_eq!(seen.contains(&state), possible, "{state:?} with {kind}: {seen:?}");
        }
    }
}
