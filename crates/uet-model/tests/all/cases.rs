//! The number of cases of a property test.

use proptest::prelude::ProptestConfig;

/// Returns `usual` cases, or as many as `PROPTEST_CASES` says, for a long run.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => ProptestConfig { cases: usual, ..config },
    }
}
