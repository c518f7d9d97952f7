//! The end of a run: every operation ends, all endpoints reach each other, and the network comes to rest.

use super::Run;
use super::shadow::End;
use super::traffic::Task;
use core::time::Duration;
use uet_conformance::draw::PostKind;
use uet_model::ses::{OperationError, Peer};
use uet_model::{Failure, Mode, Route};
use uet_wire::registry::NackCode;

/// The longest time from the end of all faults to rest. A packet that was lost ten times waits for 0.4 s.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of times that an application tries to reach a peer after a crash. Each endpoint may have left this many
/// contexts behind.
pub(super) const TRIES: usize = 64;

impl Run {
    /// Runs until every operation has ended.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        let (until, give_up) = (self.net.now() + PATIENCE, self.net.now() + PATIENCE / 10);
        while self.shadow.active().next().is_some() {
            if self.net.now() >= until {
                let stuck = self.shadow.active().next().unwrap_or_default();
                let all = self.shadow.active().count();
                let task = &self.traffic.tasks[stuck];
                return Err(format!("{all} operations never end, such as {stuck}: {task:?}"));
            }
            self.advance(self.net.now() + Duration::from_millis(20))?;
            // A crash or an abort may have used up receives.
            if self.plan.crashes || self.plan.lenient {
                self.receive_again(|_| true);
            }
            // Nothing tells an initiator that its target has crashed or given up after the response. The application gives up.
            if self.net.now() >= give_up && (self.plan.crashes || self.plan.lenient) {
                let waits = |number: &usize| {
                    let task = &self.traffic.tasks[*number];
                    let reads = matches!(task.kind, PostKind::Read | PostKind::FetchAtomic);
                    reads || task.is_rendezvous() || task.is_deferrable()
                };
                let orphans: Vec<usize> = self.shadow.active().filter(waits).collect();
                orphans.into_iter().for_each(|number| self.abort(number));
            }
        }
        Ok(())
    }

    /// Each endpoint writes to each peer of its group. It may try again if one of them has crashed.
    pub(super) fn reach_all(&mut self) -> Result<(), String> {
        let pairs: Vec<(usize, usize)> = self
            .plan
            .groups
            .iter()
            .flat_map(|group| {
                let members = &group.members;
                members.iter().flat_map(move |from| members.iter().map(move |to| (*from, *to)))
            })
            .filter(|(from, to)| from != to)
            .collect();
        for (from, to) in pairs {
            let mode = if (from + to) % 2 == 0 { Mode::Rud } else { Mode::Rod };
            let mut tries = 0;
            loop {
                let offset = self.traffic.place(to, 0, 8);
                let number = self.traffic.tasks.len();
                self.traffic.tasks.push(Task {
                    from,
                    to,
                    kind: PostKind::Write,
                    mode,
                    class: 0,
                    context: 0,
                    length: 8,
                    offset,
                    eager: 0,
                    named: false,
                    delivery_complete: false,
                });
                self.shadow.add();
                self.post(number)?;
                self.finish()?;
                match self.shadow.end(number) {
                    End::Done => break,
                    // Contexts that nobody closed fill small tables.
                    End::Failed(error) if self.plan.lenient && lacks_room(error) => break,
                    // The peer keeps the context of an earlier life, and there is no other PDCID.
                    End::Failed(error) if self.plan.is_small(from, from) && is_taken(error) => break,
                    _ if tries == TRIES - 1 => {
                        return Err(format!("{from} cannot reach {to}: {:?}", self.shadow.end(number)));
                    }
                    _ => tries += 1,
                }
            }
        }
        Ok(())
    }

    /// Checks that each successful message was received.
    pub(super) fn check_received(&mut self) -> Result<(), String> {
        let missing = self.shadow.unreceived(&self.traffic.tasks);
        // A message that failed or was received twice, by two lives of its target, may have taken the receive of another.
        if self.plan.crashes || self.plan.lenient {
            missing.iter().for_each(|number| self.receive(*number));
            self.advance(self.net.now() + PATIENCE)?;
        }
        match self.shadow.unreceived(&self.traffic.tasks).first() {
            Some(number) => {
                let task = &self.traffic.tasks[*number];
                Err(format!("message {number} succeeded, but nobody received it: {task:?}"))
            }
            None => Ok(()),
        }
    }

    /// Closes all contexts and waits until nothing is left to do.
    pub(super) fn rest(&mut self) -> Result<(), String> {
        let now = self.net.now();
        let members = &self.plan.members;
        for from in 0..members.len() {
            for to in members.iter().filter(|to| to.group == members[from].group) {
                for mode in [Mode::Rud, Mode::Rod] {
                    for (class, context) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                        let route =
                            Route { class, context, ..Peer::relative(to.address, 101, 2).by(mode).route };
                        self.net[from].close(now, &route);
                    }
                }
            }
        }
        self.advance(now + PATIENCE)?;
        if let Some(at) = self.net.next_at() {
            return Err(format!("the network never rests, the next timer is at {}", at.0));
        }
        for group in &self.plan.groups {
            // A target whose initiator vanished keeps its context.
            if self.plan.lenient || group.members.iter().any(|member| self.shadow.has_crashed(*member)) {
                continue;
            }
            for member in &group.members {
                let counted = self.net[*member].counted();
                if (counted.pdcs, counted.held) != (0, 0) {
                    let (pdcs, held) = (counted.pdcs, counted.held);
                    return Err(format!("endpoint {member} rests with {pdcs} contexts and {held} resources"));
                }
            }
        }
        Ok(())
    }
}

/// Returns whether an operation failed because an endpoint had no room for another context, packet or stored response. Contexts of
/// initiators that gave up fill the tables, and a target without room ends a context that its initiator cannot close.
fn lacks_room(error: &OperationError) -> bool {
    use NackCode as Code;
    let codes = [Code::NO_PDC_AVAIL, Code::NO_BITMAP, Code::NO_PKT_BUFFER, Code::NO_GTD_DEL_AVAIL];
    let refused = codes.map(|code| Failure::Refused(code.code()));
    let closed = Failure::Ended(Code::CLOSING_IN_ERR.code());
    error.why.is_some_and(|why| why == Failure::NoContext || why == closed || refused.contains(&why))
}

/// Returns whether an operation failed because its context has the PDCID of another one.
fn is_taken(error: &OperationError) -> bool {
    let codes = [NackCode::INVALID_SYN, NackCode::PDC_MODE_MISMATCH];
    codes.iter().any(|code| error.why == Some(Failure::Ended(code.code())))
}
