//! Semantics of operations (section 3.4): memory, atomics, messages and the way they end.

pub(super) mod atomics;
pub(super) mod memory;
pub(super) mod messages;
pub(super) mod operations;
