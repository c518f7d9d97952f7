//! The packets between both ends.

use core::net::IpAddr;
use core::time::Duration;
use uet_wire::Uet;

/// A packet between the ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed<'a> {
    pub(super) src: IpAddr,
    pub(super) number: u64,
    /// The time of capture, since 1970.
    pub(super) time: Duration,
    pub(super) uet: &'a Uet<'a>,
}
