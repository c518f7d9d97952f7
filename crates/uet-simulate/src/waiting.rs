//! The state of a graph while it runs: how many events each step still waits for.

use crate::demand::Start;
use crate::graph::{After, Graph, Step};
use crate::time::{Picos, picos};

impl Graph {
    /// Returns a step that can never start, because it waits for itself in a circle.
    pub fn stuck(&self) -> Option<Step> {
        Waiting::new(Some(self)).stuck()
    }
}

/// The steps that wait for each event, and their counts. Steps are numbered: first the flows, then the delays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    flows: usize,
    /// The place of each event's first step in `steps`, and the end. The events are two for each flow, and the delays.
    places: Vec<u32>,
    steps: Vec<u32>,
    /// The number of events that each step waits for.
    missing: Vec<u32>,
    /// The time from the last event to the start of a flow, or to the end of a delay.
    gaps: Vec<Picos>,
}

impl Waiting {
    pub(crate) fn new(graph: Option<&Graph>) -> Self {
        let Some(graph) = graph else { return Waiting::default() };
        let flows = graph.demands().len();
        let gaps = graph.demands().iter().map(|demand| match demand.start {
            Start::After(gap) => picos(gap),
            Start::At(_) | Start::Trigger(_) => 0,
        });
        let gaps: Vec<Picos> = gaps.chain(graph.delays().iter().map(|(_, delay)| picos(*delay))).collect();
        let mut waiting = Waiting {
            flows,
            places: vec![0; flows + gaps.len() + 1],
            steps: vec![0; graph.waits().len()],
            missing: vec![0; gaps.len()],
            gaps,
        };
        for (after, step) in graph.waits() {
            let (event, step) = (waiting.event(*after), waiting.number(*step));
            waiting.places[event] += 1;
            waiting.missing[step] += 1;
        }
        // Each place becomes the end of its steps. Filling in moves it to their begin.
        let mut end = 0;
        for place in &mut waiting.places {
            end += *place;
            *place = end;
        }
        for (after, step) in graph.waits().iter().rev() {
            let (event, step) = (waiting.event(*after), waiting.number(*step));
            waiting.places[event] -= 1;
            waiting.steps[waiting.places[event] as usize] = step as u32;
        }
        waiting
    }

    fn event(&self, after: After) -> usize {
        match after {
            After::Received(flow) => 2 * flow as usize,
            After::Sent(flow) => 2 * flow as usize + 1,
            After::Delay(delay) => 2 * self.flows + delay as usize,
        }
    }

    /// Returns the number of a step.
    pub(crate) fn number(&self, step: Step) -> usize {
        match step {
            Step::Flow(flow) => flow as usize,
            Step::Delay(delay) => self.flows + delay as usize,
        }
    }

    fn step(&self, number: usize) -> Step {
        match number.checked_sub(self.flows) {
            None => Step::Flow(number as u32),
            Some(delay) => Step::Delay(delay as u32),
        }
    }

    /// Returns the steps that wait for nothing, with their gaps.
    pub(crate) fn ready(&self) -> impl Iterator<Item = (Picos, Step)> + '_ {
        let ready = self.missing.iter().enumerate().filter(|(_, missing)| **missing == 0);
        ready.map(|(number, _)| (self.gaps[number], self.step(number)))
    }

    /// Returns the numbers of the steps that wait for an event.
    pub(crate) fn steps_after(&self, after: After) -> &[u32] {
        let event = self.event(after);
        let Some(&[from, to]) = self.places.get(event..event + 2) else { return &[] };
        &self.steps[from as usize..to as usize]
    }

    /// Handles an event. Calls `start` with the gap of each step that waited for this event alone.
    pub(crate) fn over(&mut self, after: After, mut start: impl FnMut(Picos, Step)) {
        let event = self.event(after);
        let Some(&[from, to]) = self.places.get(event..event + 2) else { return };
        for place in from..to {
            let number = self.steps[place as usize] as usize;
            self.missing[number] -= 1;
            if self.missing[number] == 0 {
                start(self.gaps[number], self.step(number));
            }
        }
    }

    /// Visits the steps in an order in which each comes after all that it waits for. Returns a step that it cannot
    /// reach, if there is one.
    pub(crate) fn visit(mut self, mut visit: impl FnMut(&Self, Step, Picos)) -> Option<Step> {
        let mut ready: Vec<(Picos, Step)> = self.ready().collect();
        while let Some((gap, step)) = ready.pop() {
            visit(&self, step, gap);
            let events = match step {
                Step::Flow(flow) => [Some(After::Received(flow)), Some(After::Sent(flow))],
                Step::Delay(delay) => [Some(After::Delay(delay)), None],
            };
            for after in events.into_iter().flatten() {
                self.over(after, |gap, step| ready.push((gap, step)));
            }
        }
        let stuck = self.missing.iter().position(|missing| *missing > 0);
        stuck.map(|number| self.step(number))
    }

    /// Returns a step that waits for itself.
    pub(crate) fn stuck(self) -> Option<Step> {
        self.visit(|_, _, _| {})
    }
}
