//! The operations of a scenario, as the runner knows them.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use uet_control::PostKind;

/// The operations of the initiator.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) kind: PostKind,
    pub(super) initiator: IpAddr,
    /// The smaller payload MTU of both ends, in bytes.
    pub(super) mtu: u64,
    /// The bytes of each message or read.
    pub(super) data: Vec<Vec<u8>>,
    /// The place of each in the memory of the target.
    pub(super) places: Vec<Place>,
    /// The source identifiers of the ends, if their domain uses them.
    pub(super) ssis: BTreeMap<IpAddr, u32>,
    /// The times at which the first of them was posted and the last one ended, since 1970, by the clock of the relay.
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    /// The time at which an end was told to restart.
    pub(super) restarted: Option<Duration>,
}

/// A place in the memory of the target.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) job: u32,
    pub(super) process: u16,
    pub(super) index: u16,
    pub(super) key: u64,
    pub(super) offset: u64,
    /// The bytes that it held in the beginning.
    pub(super) before: Vec<u8>,
}
