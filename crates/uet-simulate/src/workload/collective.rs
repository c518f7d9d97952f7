//! Collective operations. Each rank starts a step when it has what it sends.

use super::{Build, Pattern};
use crate::error::ScenarioError;
use crate::graph::After;
use core::time::Duration;

impl Build<'_> {
    /// Adds all rounds of a collective operation.
    pub(super) fn rounds(&mut self) -> Result<(), ScenarioError> {
        let spec = self.spec;
        for round in 0..spec.rounds {
            self.compute(if round == 0 { spec.start } else { Duration::ZERO })?;
            let last = round + 1 == spec.rounds;
            let steps = self.hosts.len() as u32 - 1;
            match spec.pattern {
                Pattern::RingAllReduce { size } => self.ring(size, 2 * steps)?,
                Pattern::AllGather { size } | Pattern::ReduceScatter { size } => self.ring(size, steps)?,
                Pattern::TreeAllReduce { size, chunks } => self.tree(size, chunks)?,
                Pattern::AllToAll { size, open } => self.all_to_all(size, open as usize, last)?,
                Pattern::Random { .. } | Pattern::Storage { .. } => {}
            }
        }
        Ok(())
    }

    /// Adds the computation of each rank before a round.
    fn compute(&mut self, start: Duration) -> Result<(), ScenarioError> {
        for rank in 0..self.hosts.len() {
            let host = self.hosts[rank];
            let delay = start + self.computation(host);
            let ready = core::mem::take(&mut self.ready[rank]);
            self.ready[rank] = vec![self.delay(host, delay, &ready)?];
        }
        Ok(())
    }

    /// Each rank sends a part to the next one, then the part that it received.
    fn ring(&mut self, size: u64, steps: u32) -> Result<(), ScenarioError> {
        let ranks = self.hosts.len();
        let part = size.div_ceil(ranks as u64);
        for _ in 0..steps {
            let mut next = vec![Vec::new(); ranks];
            for rank in 0..ranks {
                let to = (rank + 1) % ranks;
                let ready = core::mem::take(&mut self.ready[rank]);
                let flow = self.flow((self.hosts[rank], self.hosts[to]), part, Duration::ZERO, &ready)?;
                next[to] = vec![After::Received(flow)];
            }
            self.ready = next;
        }
        Ok(())
    }

    /// Each part goes up a binary tree, in which a rank adds the parts of its children, and down again. A rank sends at
    /// most two parts to the same rank at a time, so that parts do not all arrive at the end.
    fn tree(&mut self, size: u64, chunks: u32) -> Result<(), ScenarioError> {
        let ranks = self.hosts.len();
        let part = size.div_ceil(chunks.into());
        let begin = core::mem::replace(&mut self.ready, vec![Vec::new(); ranks]);
        let parent = |rank: usize| (rank - 1) / 2;
        // The last two flows between each rank and its parent, up and down.
        let mut sent = vec![[[None; 2]; 2]; ranks];
        for chunk in 0..chunks as usize {
            let mut has = begin.clone();
            let mut edge = |build: &mut Self, up: bool, rank: usize, after: &[After]| {
                let [lower, upper] = [rank, parent(rank)].map(|rank| build.hosts[rank]);
                let ends = if up { (lower, upper) } else { (upper, lower) };
                let earlier = &mut sent[rank][usize::from(up)][chunk % 2];
                let after: Vec<After> = after.iter().copied().chain(earlier.map(After::Sent)).collect();
                let flow = build.flow(ends, part, Duration::ZERO, &after)?;
                *earlier = Some(flow);
                Ok::<After, ScenarioError>(After::Received(flow))
            };
            for rank in (1..ranks).rev() {
                let received = edge(self, true, rank, &has[rank])?;
                has[parent(rank)].push(received);
            }
            self.ready[0].extend(&has[0]);
            for rank in 1..ranks {
                let received = edge(self, false, rank, &has[parent(rank)])?;
                has[rank] = vec![received];
                self.ready[rank].push(received);
            }
        }
        Ok(())
    }

    /// Each rank sends to the ranks after it, in order. A flow starts when an earlier one is acknowledged.
    fn all_to_all(&mut self, size: u64, open: usize, last_round: bool) -> Result<(), ScenarioError> {
        let ranks = self.hosts.len();
        let begin = core::mem::replace(&mut self.ready, vec![Vec::new(); ranks]);
        // Flow `shift` of a rank has this place behind the first one.
        let first = self.graph.demands().len() as u32;
        for shift in 1..ranks {
            for (rank, begin) in begin.iter().enumerate() {
                let to = (rank + shift) % ranks;
                let earlier = shift.checked_sub(open + 1).map(|index| {
                    let index = index * ranks + rank;
                    [After::Sent(first + index as u32)]
                });
                let after = earlier.as_ref().map_or(&begin[..], |sent| sent);
                let flow = self.flow((self.hosts[rank], self.hosts[to]), size, Duration::ZERO, after)?;
                if !last_round {
                    self.ready[to].push(After::Received(flow));
                    // The limit of open flows holds across rounds.
                    if shift + open >= ranks {
                        self.ready[rank].push(After::Sent(flow));
                    }
                }
            }
        }
        Ok(())
    }
}
