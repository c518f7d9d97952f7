//! A flow: bytes of one host for another.

use crate::time::Picos;
use crate::traffic::Demand;

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) demand: Demand,
    pub(crate) packets: u32,
    /// The packet that is handed to packet delivery next.
    pub(crate) next: u32,
    /// Packets that are acknowledged, and that will never be.
    pub(crate) acknowledged: u32,
    pub(crate) failed: u32,
    /// Bytes that have arrived.
    pub(crate) delivered: u64,
    /// Bytes that had arrived when the steady state began.
    pub(crate) delivered_before: u64,
    pub(crate) started: Option<Picos>,
    /// When all had arrived, and when all was acknowledged.
    pub(crate) received: Option<Picos>,
    pub(crate) completed: Option<Picos>,
}

impl Flow {
    pub(crate) fn new(demand: Demand, mtu: u16) -> Self {
        Flow {
            packets: demand.size.div_ceil(mtu.into()) as u32,
            demand,
            next: 0,
            acknowledged: 0,
            failed: 0,
            delivered: 0,
            delivered_before: 0,
            started: None,
            received: None,
            completed: None,
        }
    }
}
