//! Workloads as TOML: jobs, and flows that wait for each other.

use super::quantity::{Size, Span, text};
use crate::toml_error;
use serde::{Deserialize, Deserializer, de};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use uet_control::escape;
use uet_packet_io::file;
use uet_simulate::{After, Demand, FlowSizes, Graph, Job, Pattern, ScenarioError, Start, Step};

/// A workload that can expand to a graph.
#[derive(Debug, Default)]
pub struct Workload {
    hosts: Option<u32>,
    /// The jobs, with their lines.
    jobs: Vec<(usize, Job)>,
    flows: Vec<(usize, FlowEntry)>,
    path: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadFile {
    hosts: Option<u32>,
    #[serde(default)]
    job: Vec<Spanned<JobEntry>>,
    #[serde(default)]
    flow: Vec<Spanned<FlowEntry>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct JobEntry {
    name: Option<String>,
    pattern: String,
    hosts: Hosts,
    class: u8,
    #[serde(deserialize_with = "text")]
    start: Option<Span>,
    rounds: Option<u32>,
    #[serde(deserialize_with = "text")]
    gap: Option<Span>,
    #[serde(deserialize_with = "text")]
    jitter: Option<Span>,
    straggler: Option<u32>,
    #[serde(deserialize_with = "text")]
    straggler_gap: Option<Span>,
    #[serde(deserialize_with = "text")]
    size: Option<Size>,
    sizes: Option<String>,
    chunks: Option<u32>,
    open: Option<u32>,
    load: Option<f64>,
    #[serde(deserialize_with = "text")]
    span: Option<Span>,
    servers: Hosts,
    reads: Option<f64>,
    copies: Option<u32>,
    operations: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct FlowEntry {
    name: Option<String>,
    job: Option<String>,
    from: u32,
    to: u32,
    #[serde(deserialize_with = "text")]
    size: Option<Size>,
    class: u8,
    after: Vec<String>,
    #[serde(deserialize_with = "text")]
    gap: Option<Span>,
}

/// Hosts: `"0..7, 12"`, or a list of numbers. Ranges rise, and include their end.
#[derive(Debug, Default)]
struct Hosts(Vec<u32>);

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Hosts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("hosts, such as \"0..7, 12\" or [0, 1]; ranges rise")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Hosts, E> {
                hosts(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, list: A) -> Result<Hosts, A::Error> {
                let hosts: Vec<u32> = Vec::deserialize(de::value::SeqAccessDeserializer::new(list))?;
                // An empty list would mean all hosts further on.
                if hosts.is_empty() { Err(de::Error::invalid_length(0, &self)) } else { Ok(Hosts(hosts)) }
            }
        }
        from.deserialize_any(Visitor)
    }
}

fn hosts(text: &str) -> Option<Hosts> {
    let mut hosts = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > u32::from(u16::MAX) || hosts.len() > usize::from(u16::MAX) {
            return None;
        }
        hosts.extend(first..=last);
    }
    Some(Hosts(hosts))
}

impl Workload {
    /// Reads a workload from a file.
    pub fn read(path: &Path) -> io::Result<Self> {
        let said = |line, reason: &dyn fmt::Display| wrong(path, line, reason);
        let text = file::read_text(path, file::MAX_RESULTS).map_err(|error| said(0, &error))?;
        let WorkloadFile { hosts, job, flow } =
            toml::from_str(&text).map_err(|error| said(0, &toml_error::shown(&error)))?;
        if job.is_empty() && flow.is_empty() {
            return Err(said(0, &"expected a [[job]] or a [[flow]]"));
        }
        let mut lines = FlowLines { text: &text, at: 0, line: 1 };
        let folder = path.parent().unwrap_or(Path::new(""));
        let jobs = job.into_iter().map(|entry| {
            let line = lines.line(entry.span().start);
            let job = entry.into_inner().job(folder).map_err(|reason| said(line, &reason))?;
            Ok((line, job))
        });
        let jobs: io::Result<Vec<_>> = jobs.collect();
        let jobs = jobs?;
        let flows = flow.into_iter().map(|entry| (lines.line(entry.span().start), entry.into_inner()));
        Ok(Workload { hosts, jobs, flows: flows.collect(), path: path.into() })
    }

    /// Creates the workload of a single pattern on all hosts, from its names on the command line.
    pub fn single(pattern: &str, size: u64, open: Option<u32>) -> io::Result<Self> {
        let entry = JobEntry { pattern: pattern.into(), size: Some(Size(size)), open, ..JobEntry::default() };
        let job = entry.job(Path::new("")).map_err(io::Error::other)?;
        Ok(Workload { jobs: vec![(0, job)], ..Workload::default() })
    }

    /// Returns the number of hosts that the workload states or names, if any.
    pub fn hosts(&self) -> Option<u32> {
        let named = self.flows.iter().map(|(_, flow)| flow.from.max(flow.to));
        let jobs = self.jobs.iter().flat_map(|(_, job)| job.hosts.iter().copied());
        self.hosts.or_else(|| named.chain(jobs).max().map(|most| most.saturating_add(1)))
    }

    /// Expands the workload. `payload_rate` is the maximum payload rate of a link in bits per second.
    pub fn expand(&self, hosts: u32, payload_rate: f64, seed: u64) -> io::Result<Graph> {
        let mut graph = Graph::new(hosts);
        let mut jobs: HashMap<&str, u16> = HashMap::new();
        for (line, job) in &self.jobs {
            let number = job.add_to(&mut graph, payload_rate, seed);
            let number = number.map_err(|error| wrong(&self.path, *line, &error))?;
            jobs.insert(&job.name, number);
        }
        let mut names: HashMap<&str, (u32, u32)> = HashMap::new();
        for (line, flow) in &self.flows {
            let job = flow.job.as_deref().unwrap_or("flows");
            check_name(job).map_err(|reason| wrong(&self.path, *line, &reason))?;
            let number = match jobs.get(job) {
                Some(number) => Ok(*number),
                None => graph.add_job(job),
            };
            let added = number.map_err(|error| error.to_string()).and_then(|number| {
                jobs.insert(job, number);
                flow.add(&mut graph, number, &names)
            });
            let added = added.map_err(|reason| wrong(&self.path, *line, &reason))?;
            let Some(name) = &flow.name else { continue };
            if names.insert(name, (added, flow.to)).is_some() {
                return Err(wrong(&self.path, *line, &format!("a flow above has the name '{name}' too")));
            }
        }
        Ok(graph)
    }
}

/// Counts the lines of a text up to places in any order. Rising places take one pass.
struct FlowLines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl FlowLines<'_> {
    fn line(&mut self, place: usize) -> usize {
        if place < self.at {
            (self.at, self.line) = (0, 1);
        }
        self.line += self.text[self.at..place].matches('\n').count();
        self.at = place;
        self.line
    }
}

/// Reads a GOAL schedule.
pub fn goal(path: &Path) -> io::Result<Graph> {
    let text = file::read_text(path, file::MAX_RESULTS).map_err(|error| wrong(path, 0, &error))?;
    Graph::from_goal(&text).map_err(|error| wrong(path, 0, &error))
}

/// Returns an error with file and line. Line 0 stands for the whole file.
fn wrong(path: &Path, line: usize, reason: &dyn fmt::Display) -> io::Error {
    let path = path.display();
    match line {
        _ if path.to_string().is_empty() => io::Error::other(reason.to_string()),
        0 => io::Error::other(format!("{path}: {reason}")),
        line => io::Error::other(format!("{path}: line {line}: {reason}")),
    }
}

impl FlowEntry {
    /// Adds the flow, which waits for flows above by their names. A flow to its own source counts when it has arrived,
    /// any other one when it is acknowledged.
    fn add(&self, graph: &mut Graph, job: u16, names: &HashMap<&str, (u32, u32)>) -> Result<u32, String> {
        let said = |error: ScenarioError| error.to_string();
        let Some(Size(size)) = self.size else { return Err("the flow has no size".into()) };
        let start = Start::After(self.gap.map_or(Duration::ZERO, |Span(gap)| gap));
        let demand = Demand { start, job, class: self.class, ..Demand::new(self.from, self.to, size) };
        let number = graph.add_flow(demand).map_err(said)?;
        for name in &self.after {
            let Some((flow, to)) = names.get(&name[..]) else {
                return Err(format!("no flow above has the name '{name}'"));
            };
            let after = if *to == self.from { After::Received(*flow) } else { After::Sent(*flow) };
            graph.wait(Step::Flow(number), after).map_err(said)?;
        }
        Ok(number)
    }
}

impl JobEntry {
    fn job(self, folder: &Path) -> Result<Job, String> {
        let name = &self.pattern[..];
        check_name(self.name.as_deref().unwrap_or_default())?;
        let span = |span: Option<Span>| span.map_or(Duration::ZERO, |Span(span)| span);
        let size = || self.size.map(|Size(size)| size).ok_or(format!("the pattern {name} needs a size"));
        let sizes = || match (self.size, &self.sizes) {
            (Some(Size(size)), None) => Ok(FlowSizes::constant(size)),
            (None, Some(sizes)) => distribution(sizes, folder),
            _ => Err(format!("the pattern {name} needs either a size, or a distribution named by sizes")),
        };
        let (pattern, allowed): (Pattern, &[&str]) = match name {
            "ring-all-reduce" => (Pattern::RingAllReduce { size: size()? }, &["size"]),
            "tree-all-reduce" => {
                let chunks = self.chunks.unwrap_or(1);
                (Pattern::TreeAllReduce { size: size()?, chunks }, &["size", "chunks"])
            }
            "all-gather" => (Pattern::AllGather { size: size()? }, &["size"]),
            "reduce-scatter" => (Pattern::ReduceScatter { size: size()? }, &["size"]),
            "all-to-all" => {
                let open = self.open.unwrap_or(8);
                (Pattern::AllToAll { size: size()?, open }, &["size", "open"])
            }
            "random" => {
                let span = self.span.map_or(Duration::from_millis(1), |Span(span)| span);
                let load = self.load.unwrap_or(0.3);
                (Pattern::Random { sizes: sizes()?, load, span }, &["size", "sizes", "load", "span"])
            }
            "storage" => (
                Pattern::Storage {
                    servers: self.servers.0.clone(),
                    sizes: sizes()?,
                    reads: self.reads.unwrap_or(0.7),
                    copies: self.copies.unwrap_or(1),
                    operations: self.operations.unwrap_or(100),
                    open: self.open.unwrap_or(4),
                },
                &["size", "sizes", "servers", "reads", "copies", "operations", "open"],
            ),
            _ => {
                return Err(format!(
                    "'{name}' is no pattern of a job: use ring-all-reduce, tree-all-reduce, all-gather, \
                     reduce-scatter, all-to-all, random or storage"
                ));
            }
        };
        let computing: &[&str] = match name {
            "random" => &[],
            "storage" => &["gap", "jitter", "straggler", "straggler-gap"],
            _ => &["rounds", "gap", "jitter", "straggler", "straggler-gap"],
        };
        if let Some(stray) = self.given().find(|given| !allowed.contains(given) && !computing.contains(given))
        {
            return Err(format!("the pattern {name} has no setting {stray}"));
        }
        if self.copies.is_some() && self.reads == Some(1.0) {
            return Err("copies: no effect without writes, because reads is 1".into());
        }
        if self.straggler.is_some() != self.straggler_gap.is_some() {
            return Err("straggler, straggler-gap: one has no effect without the other".into());
        }
        Ok(Job {
            name: self.name.clone().unwrap_or_else(|| name.into()),
            pattern,
            hosts: self.hosts.0.clone(),
            class: self.class,
            start: span(self.start),
            rounds: self.rounds.unwrap_or(1),
            gap: span(self.gap),
            jitter: span(self.jitter),
            straggler: self.straggler.map(|host| (host, span(self.straggler_gap))),
        })
    }

    /// Returns the names of the given settings that only some patterns have.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("rounds", self.rounds.is_some()),
            ("gap", self.gap.is_some()),
            ("jitter", self.jitter.is_some()),
            ("straggler", self.straggler.is_some()),
            ("straggler-gap", self.straggler_gap.is_some()),
            ("size", self.size.is_some()),
            ("sizes", self.sizes.is_some()),
            ("chunks", self.chunks.is_some()),
            ("open", self.open.is_some()),
            ("load", self.load.is_some()),
            ("span", self.span.is_some()),
            ("servers", !self.servers.0.is_empty()),
            ("reads", self.reads.is_some()),
            ("copies", self.copies.is_some()),
            ("operations", self.operations.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name)
    }
}

/// Checks the name of a job, which is printed.
fn check_name(name: &str) -> Result<(), String> {
    match escape(name) == name && name.len() <= 100 {
        true => Ok(()),
        false => Err("the name of a job has at most 100 bytes, and no control characters".into()),
    }
}

/// Returns a distribution: a built-in one by its name, or that of a file.
fn distribution(name: &str, folder: &Path) -> Result<FlowSizes, String> {
    if let Some(sizes) = FlowSizes::built_in(name) {
        return Ok(sizes);
    }
    let path = folder.join(name);
    let about = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let text = file::read_text(&path, file::MAX_SETTINGS).map_err(|error| about(&error))?;
    text.parse().map_err(|error: uet_simulate::TextError| about(&error))
}
