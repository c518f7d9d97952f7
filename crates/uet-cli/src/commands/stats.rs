//! `uet stats`

use super::ethernet_capture::check_distinct;
use super::foreign::Foreign;
use super::live::{Live, Watch};
use super::{Deployment, Outcome, about, add_secrets, readable, records};
use crate::simulate::plot::{self, Axis, Plot, PlotLine};
use crate::simulate::quantity::{Bytes, PerSecond, Time};
use crate::stats::{Ends, Flow, Measured, Series, Sums, nack_name};
use crate::text::{counted, lacking};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use uet_conformance::passive::{Origin, Restart};
use uet_packet_io::input::Taker;
use uet_packet_io::json::{self, Record};
use uet_packet_io::{Decoder, file};
use uet_wire::Start;

/// Measure the contexts of a capture, or on an interface
///
/// A row for each direction of a context, and for each pair of addresses: packets, requests, bytes on the wire,
/// goodput, retransmissions, NACKs and response times. The packets are the requests, the replies to them, and the
/// control packets of their sender. A response time lasts from a request to the ACK that acknowledges it.
/// Bytes are those on the wire, also if the capture cut packets off. `dup` counts the retransmissions without `retx`:
/// the capture has the packet twice, or the network duplicated it. CSV and JSON have the NACKs of a context by code.
/// The first 16 directions also have window, credit,
/// bytes in flight and response times over time, in JSON, in the file of --series, and in the plots.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet stats capture.pcapng
  uet stats --format json capture.pcapng | jq .pairs
  uet stats --format csv capture.pcapng > contexts.csv
  uet stats --series series.csv --plots plots capture.pcapng
  uet stats --interface eth0 --seconds 60

Exit codes:
  0  measured
  2  usage, or unreadable input")]
pub(super) struct Stats {
    /// Captures, or `-` for standard input
    #[arg(required_unless_present = "interface", conflicts_with = "interface", value_name = "CAPTURE")]
    inputs: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: StatsFormat,
    /// Write window, credit, bytes in flight and response times over time to this file, as CSV
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Write plots of them into this folder, as SVG
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,
    #[command(flatten)]
    live: Live,
    #[command(flatten)]
    deployment: Deployment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StatsFormat {
    /// Readable text
    Text,
    /// A line for each direction of a context, then for each pair of addresses, whose `context` is empty
    Csv,
    /// One JSON object
    Json,
}

impl Stats {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        if let Some(path) = &self.series {
            check_distinct("--series", path, &self.inputs)?;
        }
        let mut reader = Reader {
            decoder: Some(self.deployment.decoder(false)?),
            number: 0,
            stats: Measured::default(),
            foreign: Foreign::default(),
            is_of_suite: false,
        };
        if let Some(interface) = &self.live.interface {
            self.live.watch(interface, &mut reader)?;
            reader.foreign.input_ended(interface.as_ref(), false);
        }
        let mut damaged = false;
        for input in &self.inputs {
            let read = records(input, Start::Eth, &mut reader);
            let unreadable = !readable(input, read, &mut reader)?;
            let is_skipped = reader.foreign.input_ended(input, unreadable);
            damaged |= unreadable || is_skipped;
            reader.stats.end();
            reader.is_of_suite = false;
        }
        reader.foreign.complain();
        reader.foreign.complain_unread();
        let stats = reader.stats;
        let mut out = BufWriter::new(io::stdout().lock());
        match self.format {
            // After an error, a line of zeros would look like success.
            StatsFormat::Text if damaged && stats.packets == 0 => {}
            StatsFormat::Text => text(&mut out, &stats)?,
            StatsFormat::Csv => csv(&mut out, &stats)?,
            StatsFormat::Json => writeln!(out, "{}", as_json(&stats))?,
        }
        out.flush()?;
        if let Some(path) = &self.series {
            let mut text = Vec::new();
            series(&mut text, &stats)?;
            file::replace(path, &text).map_err(|error| about(path, error))?;
        }
        if let Some(folder) = &self.plots {
            std::fs::create_dir_all(folder).map_err(|error| about(folder, error))?;
            for (name, svg) in plots(&stats)? {
                let path = folder.join(format!("{name}.svg"));
                file::replace(&path, svg).map_err(|error| about(&path, error))?;
            }
        }
        Ok(if damaged { Outcome::UsageError } else { Outcome::Ok })
    }
}

struct Reader {
    /// Absent while it decodes a packet.
    decoder: Option<Decoder>,
    number: u64,
    stats: Measured,
    foreign: Foreign,
    /// True in a section that the suite captured.
    is_of_suite: bool,
}

impl Taker for Reader {
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>> {
        self.number += 1;
        let Some(mut decoder) = self.decoder.take() else { return Ok(ControlFlow::Break(())) };
        let decoded = decoder.decode(Record { number: self.number, ..record });
        self.foreign.packet(&decoded);
        self.stats.packet(&decoded);
        self.decoder = Some(decoder);
        Ok(ControlFlow::Continue(()))
    }

    fn secrets(&mut self, key_file: &[u8]) {
        add_secrets(self.decoder.as_mut(), key_file);
    }

    fn section(&mut self, comment: &str) {
        self.is_of_suite = Origin::parse(comment).is_some();
    }

    fn comment(&mut self, comment: &str) {
        if Restart::read(comment, self.is_of_suite).is_some() {
            self.stats.restart();
        }
    }

    fn dropped(&mut self, packets: u64) {
        self.stats.dropped = self.stats.dropped.saturating_add(packets);
    }

    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Watch for Reader {
    fn packets(&self) -> u64 {
        self.number
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// The columns with numbers.
const COLUMNS: [&str; 10] =
    ["packets", "requests", "bytes", "goodput", "retx", "dup", "NACKs", "p50", "p99", "max"];

fn cells(sums: &Sums) -> [String; COLUMNS.len()] {
    let time = |share: f64| {
        shown(sums.response_at(share).map(|nanos| Time(core::time::Duration::from_nanos(nanos))))
    };
    [
        sums.packets.to_string(),
        sums.requests.to_string(),
        Bytes(sums.bytes as f64).to_string(),
        shown(sums.goodput().filter(|_| sums.payload > 0).map(PerSecond)),
        sums.retransmissions.to_string(),
        sums.duplicates.to_string(),
        sums.nacks.values().sum::<u64>().to_string(),
        time(0.5),
        time(0.99),
        time(1.0),
    ]
}

fn shown(value: Option<impl Display>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

fn mode(flow: &Flow) -> &'static str {
    match flow.rod {
        Some(true) => "ROD",
        Some(false) => "RUD",
        None => "-",
    }
}

/// Writes a table whose first column is left-aligned.
fn table(out: &mut impl Write, head: &str, rows: &[(String, [String; COLUMNS.len()])]) -> io::Result<()> {
    let first = rows.iter().map(|(name, _)| name.len()).chain([head.len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|at| rows.iter().map(|(_, cells)| cells[at].len()).chain([COLUMNS[at].len()]).max().unwrap_or(0))
        .collect();
    write!(out, "{head:<first$}")?;
    COLUMNS.iter().zip(&widths).try_for_each(|(column, width)| write!(out, "  {column:>width$}"))?;
    writeln!(out)?;
    for (name, cells) in rows {
        write!(out, "{name:<first$}")?;
        cells.iter().zip(&widths).try_for_each(|(cell, width)| write!(out, "  {cell:>width$}"))?;
        writeln!(out)?;
    }
    Ok(())
}

fn text(out: &mut impl Write, stats: &Measured) -> io::Result<()> {
    let name = |flow: &Flow| format!("{} {} > {} {}", flow.context, flow.ends.0, flow.ends.1, mode(flow));
    let without = Some(&stats.without).filter(|sums| sums.packets > 0);
    let without = without.map(|sums| ("without a context".to_owned(), cells(sums)));
    let flows: Vec<_> = stats.flows().map(|flow| (name(flow), cells(&flow.sums))).chain(without).collect();
    if !flows.is_empty() {
        table(out, "context", &flows)?;
        writeln!(out)?;
    }
    if stats.total.packets > 0 {
        let pairs = stats.pairs().map(|((from, to), sums)| (format!("{from} > {to}"), cells(sums)));
        let total = ("all".to_owned(), cells(&stats.total));
        table(out, "pair", &pairs.chain([total]).collect::<Vec<_>>())?;
        for (code, count) in &stats.total.nacks {
            writeln!(out, "NACK {}: {count}", nack_name(*code))?;
        }
        if stats.total.trimmed + stats.total.marked > 0 {
            writeln!(out, "{} trimmed, {} with an ECN mark", stats.total.trimmed, stats.total.marked)?;
        }
    }
    if stats.beyond > 0 {
        writeln!(out, "{} packets of further contexts are in the last row only", stats.beyond)?;
    }
    for line in lacking(stats.dropped, stats.unseen(), None, stats.unmatched()) {
        writeln!(out, "{line}")?;
    }
    let [packets, contexts] =
        [(stats.packets, "packet"), (stats.contexts, "context")].map(|(n, of)| counted(n, of));
    writeln!(out, "{packets}, {}, {contexts}", Bytes(stats.bytes as f64))
}

fn csv(out: &mut impl Write, stats: &Measured) -> io::Result<()> {
    writeln!(
        out,
        "context,src,dst,pdcid,mode,requests,bytes,payload_bytes,goodput_bps,retransmissions,acks,nacks,\
         nack_codes,trimmed,marked,response_p50_ns,response_p90_ns,response_p99_ns,response_max_ns,first_ns,last_ns,\
         duplicates,packets"
    )?;
    for flow in stats.flows() {
        let Flow { context, ends: (src, dst), sums, .. } = flow;
        let pdcid = number(flow.pdcid.map(|pdcid| pdcid.0.into()));
        writeln!(out, "{context},{src},{dst},{pdcid},{},{}", mode(flow), csv_cells(sums))?;
    }
    stats.pairs().try_for_each(|((src, dst), sums)| writeln!(out, ",{src},{dst},,,{}", csv_cells(sums)))?;
    match stats.without.packets {
        0 => Ok(()),
        _ => writeln!(out, ",,,,,{}", csv_cells(&stats.without)),
    }
}

fn number(value: Option<u64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Returns the cells of a line from `requests` on.
fn csv_cells(sums: &Sums) -> String {
    let codes: Vec<String> =
        sums.nacks.iter().map(|(code, count)| format!("{}:{count}", nack_name(*code))).collect();
    let goodput = number(sums.goodput().map(|rate| rate as u64));
    let times = [0.5, 0.9, 0.99, 1.0].map(|share| number(sums.response_at(share))).join(",");
    let [first, last] = sums.times.map_or([None; 2], |times| times.map(Some)).map(number);
    format!(
        "{},{},{},{goodput},{},{},{},{},{},{},{times},{first},{last},{},{}",
        sums.requests,
        sums.bytes,
        sums.payload,
        sums.retransmissions,
        sums.acks,
        sums.nacks.values().sum::<u64>(),
        codes.join(" "),
        sums.trimmed,
        sums.marked,
        sums.duplicates,
        sums.packets
    )
}

fn as_json(stats: &Measured) -> Value {
    let flow = |flow: &Flow| {
        let mut object = json!({
            "context": flow.context, "src": flow.ends.0.to_string(), "dst": flow.ends.1.to_string(),
            "pdcid": flow.pdcid.map(|pdcid| pdcid.0), "mode": flow.rod.map(|_| mode(flow)), "sums": sums(&flow.sums),
        });
        if let Some(series) = &flow.series {
            object["series"] =
                series.named().iter().map(|(name, points)| ((*name).to_owned(), json!(points))).collect();
        }
        object
    };
    let pair = |(ends, of): (&Ends, &Sums)| {
        let (src, dst) = ends;
        json!({"src": src.to_string(), "dst": dst.to_string(), "sums": sums(of)})
    };
    json!({
        "packets": stats.packets, "bytes": stats.bytes, "contexts": stats.contexts, "beyond": stats.beyond,
        "dropped": stats.dropped, "unseen": stats.unseen(), "unmatched": stats.unmatched(),
        "total": sums(&stats.total), "without_context": sums(&stats.without),
        "pairs": stats.pairs().map(pair).collect::<Vec<_>>(),
        "flows": stats.flows().map(flow).collect::<Vec<_>>(),
    })
}

fn sums(sums: &Sums) -> Value {
    let nacks: serde_json::Map<String, Value> =
        sums.nacks.iter().map(|(code, count)| (nack_name(*code), json!(count))).collect();
    let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|share| sums.response_at(share));
    let [first_ns, last_ns] = sums.times.map_or([None; 2], |times| times.map(Some));
    // Many readers of JSON round numbers of this size, so the times are there as text too.
    let text = |time: Option<u64>| Timestamp::from_nanosecond(time?.into()).ok().map(json::Time);
    json!({
        "packets": sums.packets, "requests": sums.requests, "bytes": sums.bytes, "payload_bytes": sums.payload,
        "goodput_bps": sums.goodput(),
        "retransmissions": sums.retransmissions, "duplicates": sums.duplicates, "acks": sums.acks,
        "nacks": nacks, "trimmed": sums.trimmed, "marked": sums.marked,
        "response_ns": {"p50": p50, "p90": p90, "p99": p99, "max": max},
        "first_ns": first_ns, "last_ns": last_ns, "first": text(first_ns), "last": text(last_ns),
    })
}

fn recorded(stats: &Measured) -> impl Iterator<Item = (&Flow, &Series)> {
    stats.flows().filter_map(|flow| Some((flow, flow.series.as_deref()?)))
}

fn series(out: &mut impl Write, stats: &Measured) -> io::Result<()> {
    writeln!(out, "time_ns,context,src,dst,series,value")?;
    for (flow, series) in recorded(stats) {
        let Flow { context, ends: (src, dst), .. } = flow;
        for (name, points) in series.named() {
            for (time, value) in points {
                writeln!(out, "{time},{context},{src},{dst},{name},{value}")?;
            }
        }
    }
    Ok(())
}

/// A plot of one series: its file, title, axis and divisor.
type Drawn = (&'static str, &'static str, &'static str, f64);

/// Draws the plots that have data.
fn plots(stats: &Measured) -> io::Result<Vec<(&'static str, String)>> {
    const DRAWN: [Drawn; 4] = [
        ("window", "window", "window, PSNs", 1.0),
        ("credit", "granted credit", "credit counter, KB", 1e3),
        ("in-flight", "bytes in flight", "in flight, KB", 1e3),
        ("response", "response time", "response time, us", 1e3),
    ];
    let start = stats.total.times.map_or(0, |times| times[0]);
    let mut drawn = Vec::new();
    for (at, (name, title, y, divisor)) in DRAWN.into_iter().enumerate() {
        let points = |points: &[(u64, f64)]| -> Vec<(f64, f64)> {
            let points = points.iter().map(|(time, value)| ((time - start) as f64 / 1e3, value / divisor));
            let mut before = None;
            // Response times are single values. The others hold until the next one.
            let held = |(time, value)| {
                let until = before.replace(value).filter(|_| name != "response").map(|before| (time, before));
                until.into_iter().chain([(time, value)])
            };
            points.flat_map(held).collect()
        };
        let line = |(flow, series): (&Flow, &Series)| PlotLine {
            name: format!("{} {} > {}", flow.context, flow.ends.0, flow.ends.1),
            points: points(series.named()[at].1),
        };
        let lines: Vec<PlotLine> = recorded(stats).map(line).filter(|line| !line.points.is_empty()).collect();
        if !lines.is_empty() {
            let plot = Plot { about: title, x: Axis::Time, y: Axis::Of(y), lines, levels: Vec::new() };
            drawn.push((name, plot::draw(&plot, "of the first contexts")?));
        }
    }
    Ok(drawn)
}
