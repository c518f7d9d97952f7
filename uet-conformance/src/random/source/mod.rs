//! The contexts that the suite opens: packets, timers, windows and closes of a right source.

mod answer;
mod clear;
mod context;
mod ordered;
mod packet;
mod timer;

use super::coverage::State;
use super::serve::Incoming;
use super::step::ContextPlan;
use crate::{Pdc, Wire};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uet_wire::registry::CtlType;
use uet_wire::{PdcId, Psn};

pub(super) use super::message::Sending;
use ordered::Ordered;

/// Maximum number of retransmissions of a packet of the suite.
const TRIES: u32 = 9;

/// A context that the suite opens, once or several times.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) plan: ContextPlan,
    pub(super) pdc: Pdc,
    pub(super) state: State,
    /// Number of contexts that have been closed before.
    pub(super) life: u32,
    pub(super) next: u32,
    pub(super) sent: BTreeMap<u32, OwnPacket>,
    queue: VecDeque<(usize, usize)>,
    /// Number of PSNs that the device has acknowledged cumulatively.
    pub(super) covered: u32,
    named: BTreeSet<u32>,
    /// Number of PSNs that CLEAR_PSN covers, and how many the device has been told of.
    cleared: u32,
    told: u32,
    pub(super) window: u32,
    /// The return direction.
    pub(super) incoming: Incoming,
    timer: bool,
    pub(super) wants_close: bool,
    same: bool,
    /// The device has had no room for it.
    pub(super) starved: u32,
    /// The packets that an ordered target accepts.
    ordered: Ordered,
    /// The packet that opened it.
    opening: Option<Wire>,
    /// A target in a secure domain has demanded another Start_PSN.
    renumbered: bool,
}

/// A packet that the suite has sent.
#[derive(Debug)]
pub(super) struct OwnPacket {
    pub(super) what: What,
    tries: u32,
    pub(super) done: bool,
    arrived: bool,
    /// The suite has asked for its answer by ACK_REQUEST.
    asked: bool,
    due: Duration,
    /// Its size, and when it left first, unless the network has disturbed it.
    size: usize,
    undisturbed: Option<Duration>,
    /// Numbers of transmissions that reach the device: with `retx`, without, marked, not marked.
    with: [u32; 4],
    /// Entropy values of its transmissions.
    entropies: BTreeSet<u16>,
}

/// Content of a packet that the suite has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A part of a message.
    Part(usize, usize),
    /// A control packet.
    Control(CtlType),
}

impl OwnPacket {
    /// No transmission has reached the device.
    pub(super) fn never_arrived(&self) -> bool {
        self.with[0] + self.with[1] == 0
    }
}

impl Own {
    /// Returns whether nothing is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.sent.values().all(|packet| packet.done)
    }

    pub(super) fn clear(&self) -> Psn {
        self.pdc.start - 1 + self.cleared
    }
}
/// The number of one life of a context.
pub(super) fn own_key(context: usize, life: u32) -> u64 {
    context as u64 | u64::from(life) << 32
}
