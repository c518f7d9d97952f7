//! Connection matrices in the format of htsim (`.cm`).

use crate::demand::{Demand, Start, Trigger};
use crate::error::TextError;
use core::str::{FromStr, SplitWhitespace};
use core::time::Duration;
use std::collections::BTreeMap;

/// A connection matrix: flows, and triggers that start flows when others complete.
///
/// ```
/// use uet_simulate::Matrix;
///
/// let text = "Nodes 4\nConnections 2\n0->3 start 0 size 2000000\n1->3 start 5000000 size 2000000\n";
/// let matrix: Matrix = text.parse()?;
/// assert_eq!((matrix.hosts, matrix.demands.len()), (4, 2));
///
/// let error = "Nodes 4\n0->4 start 0 size 1\n".parse::<Matrix>().unwrap_err();
/// assert_eq!(error.to_string(), "line 2: node 4 is beyond the 4 nodes");
/// # Ok::<(), uet_simulate::TextError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// The number of hosts.
    pub hosts: u32,
    /// The flows.
    pub demands: Vec<Demand>,
    /// The triggers. Flows refer to them by index.
    pub triggers: Vec<Trigger>,
}

/// The latest start of a flow in picoseconds: about 11 days.
const LATEST: f64 = 1e18;

/// The parser's state.
#[derive(Default)]
struct Reader {
    matrix: Matrix,
    /// The counts that the header states.
    stated: [Option<usize>; 2],
    /// The index of each trigger, by its number in the file.
    places: BTreeMap<u32, u32>,
    /// The triggers that were described, by index.
    described: BTreeMap<u32, Trigger>,
}

impl FromStr for Matrix {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut reader = Reader::default();
        for (line, number) in text.lines().zip(1..) {
            reader.line(line).map_err(|reason| TextError { line: number, reason })?;
        }
        reader.end().map_err(|reason| TextError { line: 0, reason })
    }
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let Some(first) = words.next().filter(|word| !word.starts_with('#')) else { return Ok(()) };
        match first {
            "Nodes" if !self.matrix.demands.is_empty() => {
                return Err("'Nodes' comes before the flows, which name nodes".into());
            }
            "Nodes" => self.matrix.hosts = number(first, &mut words)?,
            "Connections" => self.stated[0] = Some(number(first, &mut words)?),
            "Triggers" => self.stated[1] = Some(number(first, &mut words)?),
            "Failures" if number::<u32>(first, &mut words)? == 0 => {}
            "Failures" | "failure" => {
                return Err("failures are not read from a matrix: say them beside it".into());
            }
            "trigger" => self.trigger(&mut words)?,
            flow => match flow.split_once("->") {
                Some((from, to)) => self.flow((from, to), &mut words)?,
                None => {
                    return Err(format!(
                        "expected a flow (`0->1 id 1 start 0 size 4096`), a trigger, or a header such as `Nodes 2`, \
                         not '{flow}'"
                    ));
                }
            },
        }
        match words.next() {
            Some(more) => Err(format!("'{more}' is too much")),
            None => Ok(()),
        }
    }

    fn flow(&mut self, (from, to): (&str, &str), words: &mut SplitWhitespace<'_>) -> Result<(), String> {
        if self.matrix.hosts == 0 {
            return Err("'Nodes' comes before the flows, which name nodes".into());
        }
        let node = |word: &str| {
            let node = word.parse::<u32>().map_err(|_| format!("'{word}' is no node"))?;
            match node < self.matrix.hosts {
                true => Ok(node),
                false => Err(format!("node {node} is beyond the {} nodes", self.matrix.hosts)),
            }
        };
        let (from, to) = (node(from)?, node(to)?);
        if from == to {
            return Err(format!("node {from} sends to itself"));
        }
        let (mut start, mut size, mut done) = (None, None, [None; 2]);
        while let Some(word) = words.next() {
            let begin = match word {
                "start" => {
                    Start::At(Duration::from_nanos((picoseconds(number(word, words)?)? / 1000.0) as u64))
                }
                "trigger" => Start::Trigger(self.place(number(word, words)?)),
                "size" => {
                    size = Some(bytes(number(word, words)?)?);
                    continue;
                }
                "send_done_trigger" => {
                    done[0] = Some(self.place(number(word, words)?));
                    continue;
                }
                "recv_done_trigger" => {
                    done[1] = Some(self.place(number(word, words)?));
                    continue;
                }
                // The parser ignores names of flows and messages, and priorities among flows, which UET does not have.
                "id" | "msg" | "prio" => {
                    number::<u32>(word, words)?;
                    continue;
                }
                _ => return Err(format!("'{word}' says nothing about a flow")),
            };
            if start.replace(begin).is_some() {
                return Err("a flow starts once, at a time or at a trigger".into());
            }
        }
        let start = start.ok_or("the flow has neither start nor trigger")?;
        let size = size.ok_or("the flow has no size")?;
        self.matrix.demands.push(Demand { start, done, ..Demand::new(from, to, size) });
        Ok(())
    }

    fn trigger(&mut self, words: &mut SplitWhitespace<'_>) -> Result<(), String> {
        let (mut id, mut kind, mut count) = (None, None, None);
        while let Some(word) = words.next() {
            match word {
                "id" => id = Some(number::<u32>(word, words)?),
                "count" => count = Some(number::<u32>(word, words)?.max(1)),
                "oneshot" | "multishot" | "barrier" => kind = Some(word),
                _ => return Err(format!("'{word}' says nothing about a trigger")),
            }
        }
        let place = self.place(id.ok_or("the trigger has no id")?);
        let trigger = match (kind, count) {
            (Some("oneshot"), _) => Trigger::Once,
            (Some("multishot"), _) => Trigger::Each,
            (Some(_), Some(count)) => Trigger::Barrier(count),
            (Some(_), None) => return Err("a barrier has a count".into()),
            (None, _) => return Err("a trigger is oneshot, multishot or barrier".into()),
        };
        match self.described.insert(place, trigger) {
            Some(_) => Err("this trigger has been described before".into()),
            None => Ok(()),
        }
    }

    fn place(&mut self, id: u32) -> u32 {
        let next = self.places.len() as u32;
        *self.places.entry(id).or_insert(next)
    }

    fn end(mut self) -> Result<Matrix, String> {
        let flows = self.matrix.demands.len();
        if flows == 0 {
            return Err("there is no flow".into());
        }
        if let Some(stated) = self.stated[0].filter(|stated| *stated != flows) {
            return Err(format!("the header says {stated} connections, and there are {flows}"));
        }
        let described = self.described.len();
        if let Some(stated) = self.stated[1].filter(|stated| *stated != described) {
            return Err(format!("the header says {stated} triggers, and there are {described}"));
        }
        for (id, place) in &self.places {
            if !self.described.contains_key(place) {
                return Err(format!("trigger {id} is not described"));
            }
        }
        self.matrix.triggers = self.described.into_values().collect();
        Ok(self.matrix)
    }
}

/// Checks a time in picoseconds.
fn picoseconds(time: f64) -> Result<f64, String> {
    match (0.0..=LATEST).contains(&time) {
        true => Ok(time),
        false => Err(format!("'start' is a time from 0 to {LATEST:e} picoseconds, not {time}")),
    }
}

/// Checks the size of a flow.
fn bytes(size: u64) -> Result<u64, String> {
    match (1..=u32::MAX.into()).contains(&size) {
        true => Ok(size),
        false => Err(format!("'size' is at least 1 byte, and less than 4 GiB, not {size}")),
    }
}

/// Parses the number that follows a word.
fn number<T: FromStr>(word: &str, words: &mut SplitWhitespace<'_>) -> Result<T, String> {
    let text = words.next().ok_or_else(|| format!("'{word}' is followed by a number"))?;
    text.parse().map_err(|_| format!("'{word}' is followed by a number, not by '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Matrix, String> {
        text.parse().map_err(|error: TextError| error.to_string())
    }

    #[test]
    fn triggers_are_found_by_their_numbers() {
        let text = "# a comment\nNodes 3\nConnections 3\nTriggers 2\n0->1 id 1 start 0 size 9 send_done_trigger 7\n\
                    1->2 id 2 trigger 7 size 8 recv_done_trigger 5\n2->0 trigger 5 size 7 prio 3\n\
                    trigger id 5 barrier count 1\ntrigger id 7 multishot\n";
        let matrix = read(text).unwrap();
        assert_eq!(matrix.triggers, [Trigger::Each, Trigger::Barrier(1)]);
        assert_eq!(matrix.demands[0].done, [Some(0), None]);
        assert_eq!(matrix.demands[1].start, Start::Trigger(0));
        assert_eq!(matrix.demands[1].done, [None, Some(1)]);
        assert_eq!(matrix.demands[2].start, Start::Trigger(1));
    }

    #[test]
    fn starts_are_picoseconds() {
        let matrix = read("Nodes 2\n0->1 start 2500000.5 size 1").unwrap();
        assert_eq!(matrix.demands[0].start, Start::At(Duration::from_nanos(2500)));
    }

    #[test]
    fn an_error_names_the_line() {
        for (text, error) in [
            ("", "there is no flow"),
            ("Nodes", "line 1: 'Nodes' is followed by a number"),
            ("Nodes x", "line 1: 'Nodes' is followed by a number, not by 'x'"),
            (
                "Nodes 2\nhello",
                "line 2: expected a flow (`0->1 id 1 start 0 size 4096`), a trigger, or a header such as `Nodes 2`, \
                 not 'hello'",
            ),
            ("Nodes 2\n0->x start 0 size 1", "line 2: 'x' is no node"),
            ("Nodes 2\n1->1 start 0 size 1", "line 2: node 1 sends to itself"),
            ("Nodes 2\n0->1 size 1", "line 2: the flow has neither start nor trigger"),
            ("0->1 start 0 size 1", "line 1: 'Nodes' comes before the flows, which name nodes"),
            ("Nodes 2\n0->1 start 0", "line 2: the flow has no size"),
            ("Nodes 2\n0->1 start 0 size 0", "line 2: 'size' is at least 1 byte, and less than 4 GiB, not 0"),
            (
                "Nodes 2\n0->1 start 0 trigger 1 size 1",
                "line 2: a flow starts once, at a time or at a trigger",
            ),
            ("Nodes 2\n0->1 start 0 size 1 color 3", "line 2: 'color' says nothing about a flow"),
            ("Nodes 2\n0->1 trigger 9 size 1", "trigger 9 is not described"),
            ("Nodes 2\ntrigger id 1 barrier", "line 2: a barrier has a count"),
            (
                "Nodes 2\ntrigger id 1 oneshot\ntrigger id 1 oneshot",
                "line 3: this trigger has been described before",
            ),
            ("Nodes 2\nConnections 2\n0->1 start 0 size 1", "the header says 2 connections, and there are 1"),
            ("Nodes 2\nTriggers 1\n0->1 start 0 size 1", "the header says 1 triggers, and there are 0"),
            ("Nodes 2\nFailures 1", "line 2: failures are not read from a matrix: say them beside it"),
            ("Nodes 2 3", "line 1: '3' is too much"),
            (
                "Nodes 4\n0->3 start 0 size 1\nNodes 2",
                "line 3: 'Nodes' comes before the flows, which name nodes",
            ),
            (
                "Nodes 2\n0->1 start NaN size 1",
                "line 2: 'start' is a time from 0 to 1e18 picoseconds, not NaN",
            ),
            ("Nodes 2\n0->1 start -1 size 1", "line 2: 'start' is a time from 0 to 1e18 picoseconds, not -1"),
        ] {
            assert_eq!(read(text).unwrap_err(), error, "{text}");
        }
    }
}
