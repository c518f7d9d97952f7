//! Random flows, and reads and writes of storage.

use super::{Build, Pattern};
use crate::error::{ScenarioError, refuse};
use crate::graph::{After, Graph};
use crate::sizes::FlowSizes;
use core::time::Duration;

/// The size of a request to storage, and of the reply to a write.
const SHORT: u64 = 256;

impl Build<'_> {
    /// Adds flows between random hosts. `rate` is that of each host, in bits per second.
    pub(super) fn random(
        &mut self,
        sizes: &FlowSizes,
        rate: f64,
        span: Duration,
    ) -> Result<(), ScenarioError> {
        let per_second = rate * self.hosts.len() as f64 / (8.0 * sizes.mean().max(1.0));
        if per_second * span.as_secs_f64() > Graph::MAX_STEPS as f64 {
            return refuse("load", "this load and this time make more than 5,000,000 flows");
        }
        let before = self.graph.demands().len();
        let mut at = 0.0;
        loop {
            // 1 - x is never 0.
            at -= (1.0 - self.rng.f64()).ln() / per_second;
            if at >= span.as_secs_f64() || !at.is_finite() {
                break;
            }
            let from = self.rng.usize(..self.hosts.len());
            let to = (from + self.rng.usize(1..self.hosts.len())) % self.hosts.len();
            let size = sizes.draw(&mut self.rng);
            let start = self.spec.start + Duration::from_secs_f64(at);
            self.flow((self.hosts[from], self.hosts[to]), size, start, &[])?;
        }
        match self.graph.demands().len() == before {
            true => refuse("load", "this load and this time make no flow"),
            false => Ok(()),
        }
    }

    /// Adds the operations of all clients.
    pub(super) fn storage(&mut self) -> Result<(), ScenarioError> {
        let spec = self.spec;
        let Pattern::Storage { servers, operations, open, .. } = &spec.pattern else { return Ok(()) };
        let clients: Vec<u32> = self.hosts.iter().copied().filter(|host| !servers.contains(host)).collect();
        for client in clients {
            let open = (*open).min(*operations);
            let mut free = vec![Vec::new(); open as usize];
            for operation in 0..*operations {
                let slot = &mut free[(operation % open) as usize];
                let wait = if slot.is_empty() { spec.start } else { Duration::ZERO };
                let gap = wait + self.computation(client);
                let last = self.operation(client, gap, &core::mem::take(slot))?;
                *slot = vec![After::Received(last)];
            }
        }
        Ok(())
    }

    /// Adds an operation, and returns its last flow.
    fn operation(&mut self, client: u32, gap: Duration, after: &[After]) -> Result<u32, ScenarioError> {
        let spec = self.spec;
        let Pattern::Storage { servers, sizes, reads, copies, .. } = &spec.pattern else { return Ok(0) };
        let first = self.rng.usize(..servers.len());
        let size = sizes.draw(&mut self.rng);
        if self.rng.f64() < *reads {
            let request = self.flow((client, servers[first]), SHORT, gap, after)?;
            return self.flow((servers[first], client), size, Duration::ZERO, &[After::Received(request)]);
        }
        let mut holder = servers[first];
        let mut flow = self.flow((client, holder), size, gap, after)?;
        for copy in 1..*copies as usize {
            let next = servers[(first + copy) % servers.len()];
            flow = self.flow((holder, next), size, Duration::ZERO, &[After::Received(flow)])?;
            holder = next;
        }
        self.flow((holder, client), SHORT, Duration::ZERO, &[After::Received(flow)])
    }
}
