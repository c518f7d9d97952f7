//! A flow: bytes from one host to another.

use crate::demand::Demand;
use crate::time::Picos;

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) demand: Demand,
    /// The number of its context, which it may share with other flows between its hosts.
    pub(crate) context: u32,
    pub(crate) packets: u32,
    /// The next packet to hand to packet delivery.
    pub(crate) next: u32,
    /// The number of packets that are acknowledged.
    pub(crate) acknowledged: u32,
    /// The number of bytes that have arrived.
    pub(crate) delivered: u64,
    /// The number of bytes that had arrived when the steady state began.
    pub(crate) delivered_before: u64,
    pub(crate) started: Option<Picos>,
    /// The time when all bytes had arrived, and the time when all were acknowledged.
    pub(crate) received: Option<Picos>,
    pub(crate) completed: Option<Picos>,
}

impl Flow {
    pub(crate) fn new(demand: Demand, context: u32, mtu: u16) -> Self {
        Flow {
            packets: demand.size.div_ceil(mtu.into()) as u32,
            demand,
            context,
            next: 0,
            acknowledged: 0,
            delivered: 0,
            delivered_before: 0,
            started: None,
            received: None,
            completed: None,
        }
    }
}
