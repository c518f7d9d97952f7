//! Flows, and the conditions under which they start.

use core::time::Duration;

/// A flow of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The sending host.
    pub from: u32,
    /// The receiving host.
    pub to: u32,
    /// The size in bytes of payload.
    pub size: u64,
    /// The start condition.
    pub start: Start,
    /// The triggers that it pulls: when the sender completes, and when the receiver does.
    pub done: [Option<u32>; 2],
    /// The job that it belongs to, by its index.
    pub job: u16,
    /// The traffic class. Each class has congestion control contexts of its own; classes share the queues.
    pub class: u8,
}

/// The start condition of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Starts at a time.
    At(Duration),
    /// Starts on a trigger, by its index.
    Trigger(u32),
    /// Starts this long after everything that it waits for in its [`Graph`](crate::Graph).
    After(Duration),
}

/// A trigger: starts flows when others complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Starts all its flows on the first pull.
    Once,
    /// Starts the next of its flows on each pull.
    Each,
    /// Starts all its flows after this many pulls.
    Barrier(u32),
}

impl Demand {
    /// Returns a flow that starts at once.
    pub fn new(from: u32, to: u32, size: u64) -> Self {
        Demand { from, to, size, start: Start::At(Duration::ZERO), done: [None; 2], job: 0, class: 0 }
    }
}
