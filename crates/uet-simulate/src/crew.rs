//! Threads that run sections.

use crate::section::Section;
use crate::time::Picos;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

/// A section that is busy in fewer places than this is not worth the way to another thread and back.
const WORTHWHILE: usize = 4;

/// A thread for each section but the first.
pub(crate) struct Crew(Vec<Worker>);

struct Worker {
    jobs: Sender<(Section, Picos, Picos)>,
    done: Receiver<Section>,
}

impl Crew {
    pub(crate) fn new<'scope>(scope: &'scope Scope<'scope, '_>, sections: usize) -> Self {
        let worker = |_| {
            let (jobs, next) = channel::<(Section, Picos, Picos)>();
            let (finish, done) = channel();
            scope.spawn(move || {
                for (mut section, start, end) in next {
                    section.run(start, end);
                    if finish.send(section).is_err() {
                        break;
                    }
                }
            });
            Worker { jobs, done }
        };
        Crew((1..sections).map(worker).collect())
    }

    /// Lets all sections run through a span, each in its thread.
    pub(crate) fn run(&self, sections: &mut Vec<Section>, start: Picos, end: Picos) {
        let mut all = sections.drain(..);
        let first = all.next();
        let mut others: Vec<Option<Section>> = all.map(Some).collect();
        for (worker, other) in self.0.iter().zip(&mut others) {
            if let Some(section) = other.take_if(|section| section.fabric.busy(end) >= WORTHWHILE) {
                worker.jobs.send((section, start, end)).expect("the thread of a section runs");
            }
        }
        sections.extend(first);
        for section in sections.iter_mut().chain(others.iter_mut().flatten()) {
            section.run(start, end);
        }
        for (worker, other) in self.0.iter().zip(others) {
            sections.push(other.unwrap_or_else(|| worker.done.recv().expect("the thread of a section runs")));
        }
    }
}
