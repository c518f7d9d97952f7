//! The rules, in folders that follow the specification. `delivery` tests packet delivery, `semantics` the
//! effect of messages, `congestion` NSCC and RCCC, `security` protected packets, and `robustness` packets
//! that no correct peer sends. `steps` holds the steps that several folders share.

mod congestion;
mod delivery;
mod robustness;
mod security;
mod semantics;
mod steps;

use crate::{Registry, Rule};

/// All rules of the suite.
// Not a constant: every crate that named it would compile the code of all rules again.
pub static RULES: Registry = Registry::new(&FOLDERS);

// It has a name, because the linker sometimes misses a nameless one that Options::default() refers to
// (rustc 1.95, optimized a little).
static FOLDERS: [&[&[Rule]]; 9] = [
    delivery::target::RULES,
    delivery::source::RULES,
    semantics::memory::RULES,
    semantics::atomics::RULES,
    semantics::messages::RULES,
    semantics::operations::RULES,
    congestion::RULES,
    security::RULES,
    robustness::RULES,
];
