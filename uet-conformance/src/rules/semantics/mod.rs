//! Semantics of operations (section 3.4). `memory` tests writes and reads, `atomics` tests atomic operations,
//! and `messages` tests sends and their receives. `operations` tests responses, errors, completions and
//! resources of all of them.

pub(super) mod atomics;
pub(super) mod memory;
pub(super) mod messages;
pub(super) mod operations;
