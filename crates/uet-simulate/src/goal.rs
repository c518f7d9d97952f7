//! Schedules in the text format GOAL of LogGOPSim: ranks that send, receive and compute.

use crate::demand::Demand;
use crate::error::TextError;
use crate::graph::{After, Graph, Step};
use core::time::Duration;
use std::collections::{BTreeMap, HashMap, VecDeque};

impl Graph {
    /// Reads a GOAL schedule. Rank n is host n, and `calc` is in nanoseconds.
    ///
    /// A `send` ends with its last acknowledgment, a `recv` with the arrival of its message. A `recv` takes the
    /// messages of its source with its tag in the order of the `send`s, and has their size. A message of 0 bytes takes
    /// one. An operation waits only for those that it `requires`: numbers of processors and NICs are ignored.
    ///
    /// ```
    /// use uet_simulate::Graph;
    ///
    /// let text = "num_ranks 2\nrank 0 { l1: calc 100\n l2: send 10b to 1 tag 0\n l2 requires l1 }\n\
    ///             rank 1 { recv 10b from 0 tag 0 }";
    /// let graph = Graph::from_goal(text)?;
    /// assert_eq!((graph.hosts(), graph.demands().len()), (2, 1));
    ///
    /// let error = Graph::from_goal("num_ranks 2\nrank 0 {\nl1: send 10b to 2 }").unwrap_err();
    /// assert_eq!(error.to_string(), "line 3: flow: there is no host 2 among 2");
    /// # Ok::<(), uet_simulate::TextError>(())
    /// ```
    pub fn from_goal(text: &str) -> Result<Self, TextError> {
        let mut reader = GoalReader { words: words(text), ..GoalReader::default() };
        match reader.read() {
            Ok(()) => reader.end(),
            Err(reason) => Err(TextError { line: reader.line, reason }),
        }
    }
}

/// Returns the words of a text with their lines. Comments and separators are left out; braces are words of their own.
fn words(text: &str) -> VecDeque<(usize, &str)> {
    let mut words = VecDeque::new();
    let mut comment = false;
    for (line, mut text) in (1..).zip(text.lines()) {
        loop {
            if comment {
                let Some((_, rest)) = text.split_once("*/") else { break };
                (text, comment) = (rest, false);
            }
            let end = ["/*", "//", "#"].iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
            let (code, rest) = text.split_at(end);
            for part in code.split(|c: char| c.is_whitespace() || c == ';') {
                let pieces = part.split_inclusive(['{', '}']).flat_map(|piece| {
                    let (word, brace) =
                        piece.split_at(piece.len() - usize::from(piece.ends_with(['{', '}'])));
                    [word, brace]
                });
                words.extend(pieces.filter(|word| !word.is_empty()).map(|word| (line, word)));
            }
            match rest.strip_prefix("/*") {
                Some(rest) => (text, comment) = (rest, true),
                None => break,
            }
        }
    }
    words
}

/// An operation that others can require.
#[derive(Clone, Copy)]
struct Operation {
    step: Step,
    end: After,
}

/// A message between two ranks: source, destination, tag.
type Channel = (u32, u32, u32);

struct Receive {
    line: usize,
    delay: u32,
    size: u64,
}

#[derive(Default)]
struct GoalReader<'a> {
    words: VecDeque<(usize, &'a str)>,
    /// The line of the last word.
    line: usize,
    graph: Graph,
    /// The labels of the current rank.
    labels: HashMap<&'a str, Operation>,
    /// The flows and the receives of each channel, in order.
    sends: BTreeMap<Channel, Vec<u32>>,
    receives: BTreeMap<Channel, Vec<Receive>>,
    /// The line of each flow and of each delay.
    lines: [Vec<usize>; 2],
}

impl<'a> GoalReader<'a> {
    fn read(&mut self) -> Result<(), String> {
        self.expect("num_ranks")?;
        let ranks = self.number("num_ranks")?;
        if !(2..=65_536).contains(&ranks) {
            return Err(format!("'num_ranks' is from 2 to 65,536, not {ranks}"));
        }
        self.graph = Graph::new(ranks);
        self.graph.add_job("goal").map_err(|error| error.to_string())?;
        while !self.words.is_empty() {
            self.expect("rank")?;
            let rank = self.number("rank")?;
            if rank >= ranks {
                return Err(format!("there is no rank {rank} among {ranks}"));
            }
            self.expect("{")?;
            self.labels.clear();
            loop {
                match self.next().ok_or("the rank has no closing brace")? {
                    "}" => break,
                    word => self.statement(rank, word)?,
                }
            }
        }
        Ok(())
    }

    fn statement(&mut self, rank: u32, word: &'a str) -> Result<(), String> {
        if let Some(label) = word.strip_suffix(':') {
            let word = self.next().ok_or("expected an operation behind the label")?;
            let operation = self.operation(rank, word)?;
            return match self.labels.insert(label, operation) {
                Some(_) => Err(format!("the label '{label}' is used twice in this rank")),
                None => Ok(()),
            };
        }
        match self.words.front() {
            Some((_, "requires")) => {}
            Some((_, "irequires")) => return Err("'irequires' is not supported, only 'requires'".into()),
            _ => return self.operation(rank, word).map(drop),
        }
        self.next();
        let other = self.next().ok_or("expected a label behind 'requires'")?;
        let find = |label: &str| {
            self.labels.get(label).copied().ok_or_else(|| format!("there is no label '{label}' above"))
        };
        let (step, after) = (find(word)?.step, find(other)?.end);
        self.graph.wait(step, after).map_err(|error| error.to_string())
    }

    fn operation(&mut self, rank: u32, word: &str) -> Result<Operation, String> {
        let line = self.line;
        match word {
            "calc" => {
                let nanos = self.number("calc")?;
                self.options()?;
                self.delay(rank, nanos, line)
            }
            "send" | "recv" => {
                let bytes = self.next().ok_or("expected a size")?;
                let size = bytes.strip_suffix('b').unwrap_or(bytes).parse::<u64>();
                let size = size.map_err(|_| format!("expected a size such as 10b, not '{bytes}'"))?;
                // Every flow has payload.
                let size = size.max(1);
                self.expect(if word == "send" { "to" } else { "from" })?;
                let peer = self.number("rank")?;
                let tag = self.options()?;
                if word == "recv" {
                    let operation = self.delay(rank, 0, line)?;
                    if let Step::Delay(delay) = operation.step {
                        let receive = Receive { line, delay, size };
                        self.receives.entry((peer, rank, tag)).or_default().push(receive);
                    }
                    return Ok(operation);
                }
                let flow = self.graph.add_flow(Demand::new(rank, peer, size));
                let flow = flow.map_err(|error| error.to_string())?;
                self.lines[0].push(line);
                self.sends.entry((rank, peer, tag)).or_default().push(flow);
                Ok(Operation { step: Step::Flow(flow), end: After::Sent(flow) })
            }
            _ => Err(format!("expected send, recv, calc or a label with a colon, not '{word}'")),
        }
    }

    fn delay(&mut self, rank: u32, nanos: u32, line: usize) -> Result<Operation, String> {
        let delay = self.graph.add_delay(rank, Duration::from_nanos(nanos.into()));
        let delay = delay.map_err(|error| error.to_string())?;
        self.lines[1].push(line);
        Ok(Operation { step: Step::Delay(delay), end: After::Delay(delay) })
    }

    /// Reads the options of an operation, and returns the tag.
    fn options(&mut self) -> Result<u32, String> {
        let mut tag = 0;
        while let Some((_, option @ ("tag" | "cpu" | "nic"))) = self.words.front().copied() {
            self.next();
            let number = self.number(option)?;
            if option == "tag" {
                tag = number;
            }
        }
        Ok(tag)
    }

    fn next(&mut self) -> Option<&'a str> {
        let (line, word) = self.words.pop_front()?;
        self.line = line;
        Some(word)
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.next() {
            Some(found) if found == word => Ok(()),
            Some(found) => Err(format!("expected '{word}', not '{found}'")),
            None => Err(format!("expected '{word}', not the end")),
        }
    }

    fn number(&mut self, what: &str) -> Result<u32, String> {
        let word = self.next().ok_or_else(|| format!("'{what}' is followed by a number"))?;
        word.parse()
            .map_err(|_| format!("'{what}' is followed by a number up to 4294967295, not by '{word}'"))
    }

    /// Connects sends and receives.
    fn end(mut self) -> Result<Graph, TextError> {
        let error = |line, reason: String| TextError { line, reason };
        for (channel, receives) in &self.receives {
            let (from, to, tag) = channel;
            let mut sends = self.sends.get(channel).into_iter().flatten();
            for Receive { line, delay, size } in receives {
                let Some(flow) = sends.next() else {
                    return Err(error(
                        *line,
                        format!("rank {from} sends no message with tag {tag} to rank {to} for this"),
                    ));
                };
                let sent = self.graph.demands()[*flow as usize].size;
                if sent != *size {
                    let place = self.lines[0][*flow as usize];
                    let reason =
                        format!("this receives {size} bytes, and its send in line {place} has {sent}");
                    return Err(error(*line, reason));
                }
                let waits = self.graph.wait(Step::Delay(*delay), After::Received(*flow));
                waits.map_err(|reason| error(*line, reason.to_string()))?;
            }
        }
        for (channel, sends) in &self.sends {
            let (from, to, tag) = channel;
            if let Some(flow) = sends.get(self.receives.get(channel).map_or(0, Vec::len)) {
                let reason =
                    format!("rank {to} receives no message with tag {tag} from rank {from} for this");
                return Err(error(self.lines[0][*flow as usize], reason));
            }
        }
        if self.graph.demands().is_empty() {
            return Err(error(0, "there is no send".into()));
        }
        let line = match self.graph.stuck() {
            None => return Ok(self.graph),
            Some(Step::Flow(flow)) => self.lines[0][flow as usize],
            Some(Step::Delay(delay)) => self.lines[1][delay as usize],
        };
        Err(error(line, "this operation waits for itself".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_wait_for_what_they_require() {
        let text = "/* two\nranks */ num_ranks 2 // here\n\
                    rank 0{\nl1: calc 100 cpu 0; l2: send 10b to 1 tag 3 cpu 1 nic 0\nl2 requires l1\n\
                    recv 5b from 1}\n\
                    rank 1 {\n l1: recv 10b from 0 tag 3\nl2: send 5b to 0\nl2 requires l1\n}";
        let graph = Graph::from_goal(text).unwrap();
        assert_eq!(
            graph.delays(),
            [(0, Duration::from_nanos(100)), (0, Duration::ZERO), (1, Duration::ZERO)]
        );
        let waits = [
            (After::Delay(0), Step::Flow(0)),
            (After::Delay(2), Step::Flow(1)),
            (After::Received(0), Step::Delay(2)),
            (After::Received(1), Step::Delay(1)),
        ];
        assert_eq!(graph.waits(), waits);
    }

    #[test]
    fn wrong_schedules_are_refused_by_line() {
        for (text, error) in [
            ("", "expected 'num_ranks', not the end"),
            ("num_ranks 1", "line 1: 'num_ranks' is from 2 to 65,536, not 1"),
            ("num_ranks 2\nrank 2 {", "line 2: there is no rank 2 among 2"),
            ("num_ranks 2\nrank 0 {\n", "line 2: the rank has no closing brace"),
            (
                "num_ranks 2\nrank 0 {\nl1: jump 3 }",
                "line 3: expected send, recv, calc or a label with a colon, not 'jump'",
            ),
            ("num_ranks 2\nrank 0 { send 1b to 0 }", "line 2: flow: host 0 sends to itself"),
            ("num_ranks 2\nrank 0 { l1: calc 1\nl1 requires l2 }", "line 3: there is no label 'l2' above"),
            (
                "num_ranks 2\nrank 0 { l1: calc 1\nl1: calc 1 }",
                "line 3: the label 'l1' is used twice in this rank",
            ),
            (
                "num_ranks 2\nrank 0 { l1: calc 1\nl1 irequires l1 }",
                "line 3: 'irequires' is not supported, only 'requires'",
            ),
            (
                "num_ranks 2\nrank 0 {\nrecv 1b from 1 tag 9 }",
                "line 3: rank 1 sends no message with tag 9 to rank 0 for this",
            ),
            (
                "num_ranks 2\nrank 0 {\nsend 1b to 1\nsend 1b to 1 }\nrank 1 { recv 1b from 0 }",
                "line 4: rank 1 receives no message with tag 0 from rank 0 for this",
            ),
            (
                "num_ranks 2\nrank 0 {\nsend 100b to 1 }\nrank 1 { recv 200b from 0 }",
                "line 4: this receives 200 bytes, and its send in line 3 has 100",
            ),
            (
                "num_ranks 2\nrank 0 {\nl1: send 1b to 1\nl1 requires l1 }\nrank 1 { recv 1b from 0 }",
                "line 3: this operation waits for itself",
            ),
            (
                "num_ranks 2\nrank 0 { calc 99999999999 }",
                "line 2: 'calc' is followed by a number up to 4294967295, not by '99999999999'",
            ),
        ] {
            assert_eq!(Graph::from_goal(text).unwrap_err().to_string(), error, "{text}");
        }
    }
}
