//! The endpoints that take part in an exploration.

use core::net::IpAddr;
use uet_emulator::Nic;
use uet_model::network::Node;
use uet_model::ses::{Completion, Operation, OperationId, Receive, Region, RegionId, ResourceIndex};
use uet_model::{Event, Fep, PdcHandle, Route, Time};

/// An endpoint as a driver sees it: the reference model, or a NIC of the emulator with a deliberate fault.
pub trait Endpoint: Node {
    /// Returns the next completion.
    fn poll_completion(&mut self) -> Option<Completion>;
    /// Returns the next decision.
    fn poll_event(&mut self) -> Option<Event>;
    /// Posts an operation. Returns `None` if the endpoint does not take it.
    fn post(&mut self, operation: Operation) -> Option<OperationId>;
    /// Aborts an operation.
    fn abort(&mut self, operation: OperationId);
    /// Posts a receive.
    fn receive(&mut self, index: ResourceIndex, receive: Receive);
    /// Exposes memory.
    fn expose(&mut self, index: ResourceIndex, region: Region) -> Option<RegionId>;
    /// Withdraws a region.
    fn withdraw(&mut self, region: RegionId);
    /// Returns the bytes of a region.
    fn memory(&self, region: RegionId) -> Option<&[u8]>;
    /// Closes the context of a route.
    fn close_route(&mut self, now: Time, route: &Route);
    /// Requests the end of a context that the peer opened.
    fn close_context(&mut self, now: Time, context: PdcHandle);
    /// Returns the number of resources held for requests and responses.
    fn held(&self) -> usize;
    /// Returns the number of contexts.
    fn contexts(&self) -> usize;
    /// Returns the bytes in flight to a destination, if congestion control counts them.
    fn in_flight(&self, destination: IpAddr) -> Option<i64>;
}

/// Passes the methods on whose names both endpoints share.
macro_rules! polls {
    () => {
        fn poll_completion(&mut self) -> Option<Completion> {
            self.poll_completion()
        }

        fn poll_event(&mut self) -> Option<Event> {
            self.poll_event()
        }
    };
}

impl Endpoint for Fep {
    polls!();

    fn post(&mut self, operation: Operation) -> Option<OperationId> {
        self.ses_mut().post(operation).ok()
    }

    fn abort(&mut self, operation: OperationId) {
        self.ses_mut().abort(operation);
    }

    fn receive(&mut self, index: ResourceIndex, receive: Receive) {
        // The index is open.
        let _ = self.ses_mut().post_receive(index, receive);
    }

    fn expose(&mut self, index: ResourceIndex, region: Region) -> Option<RegionId> {
        let ResourceIndex { process, index: start } = index;
        // A second region of the index finds it open.
        let _ = self.ses_mut().open(uet_model::ses::Endpoint { process, start, count: 1 });
        self.ses_mut().expose(index, region).ok()
    }

    fn withdraw(&mut self, region: RegionId) {
        self.ses_mut().withdraw(region);
    }

    fn memory(&self, region: RegionId) -> Option<&[u8]> {
        self.ses().memory(region)
    }

    fn close_route(&mut self, now: Time, route: &Route) {
        if let Some(context) = self.pds().context_of(route) {
            self.pds_mut().close(now, context);
        }
    }

    fn close_context(&mut self, now: Time, context: PdcHandle) {
        self.pds_mut().close(now, context);
    }

    fn held(&self) -> usize {
        self.pds().held()
    }

    fn contexts(&self) -> usize {
        self.pds().contexts()
    }

    fn in_flight(&self, destination: IpAddr) -> Option<i64> {
        self.pds().congestion(destination, 0)?.inflight
    }
}

impl Endpoint for Nic {
    polls!();

    fn post(&mut self, operation: Operation) -> Option<OperationId> {
        self.post(operation).ok()
    }

    fn abort(&mut self, operation: OperationId) {
        self.abort(operation);
    }

    fn receive(&mut self, index: ResourceIndex, receive: Receive) {
        // The index is open.
        let _ = self.receive(index, receive);
    }

    fn expose(&mut self, index: ResourceIndex, region: Region) -> Option<RegionId> {
        self.expose(index, region).ok()
    }

    fn withdraw(&mut self, region: RegionId) {
        self.withdraw(region);
    }

    fn memory(&self, region: RegionId) -> Option<&[u8]> {
        self.memory(region)
    }

    fn close_route(&mut self, now: Time, route: &Route) {
        self.close(now, route);
    }

    fn close_context(&mut self, now: Time, context: PdcHandle) {
        self.close_context(now, context);
    }

    fn held(&self) -> usize {
        self.counted().held as usize
    }

    fn contexts(&self) -> usize {
        self.counted().pdcs as usize
    }

    fn in_flight(&self, _: IpAddr) -> Option<i64> {
        None
    }
}
