//! `uet check`

use super::ethernet_capture::{EthernetCapture, check_distinct};
use super::foreign::Foreign;
use super::live::{Live, Watch};
use super::output::{TablesTo, WhileRead};
use super::{Deployment, Outcome, about, add_secrets, complain, corrections, readable, records};
use crate::near;
use crate::paint::Paint;
use crate::tables::Tables;
use crate::text::{counted, lacking};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use uet_conformance::passive::{CaptureChecker, CaptureFinding, CapturedPacket, Restart};
use uet_control::escape;
use uet_packet_io::Decoder;
use uet_packet_io::input::Taker;
use uet_packet_io::json::{Decoded, Record};
use uet_wire::Start;
use uet_wire::catalogue;
use uet_wire::validate::Severity;

/// Check both ends of a conversation in a capture or on an interface
///
/// Each packet is checked by itself and against earlier packets: numbers, windows, acknowledgments, retransmissions,
/// closing, messages. A capture may start in the middle and have gaps. Packets that it lacks may explain a finding.
/// Such findings are left out if PSNs show the missing packets, or else as long as there is less than one in 32
/// judgments. The summary counts the packets that the capture lacks: those acknowledged but not in it, and those that a
/// pcapng capture states to have dropped. It names the first ACK of such packets: a wrong ACK looks the same. If only
/// packets after the last one of a direction are missing, their ACK is a warning. It also counts replies that belong to
/// no request of the capture. Each capture is judged for itself. The conformance suite breaks requirements on purpose:
/// in its captures, findings about its own packets are notes, which do not change the exit code. The summary counts the
/// errors among them. If no packet is UET, or the capture cuts off the headers of all of them, its last line says that
/// nothing was judged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet check capture.pcapng
  uet check --trailer crc capture.pcap.gz
  uet check --format json capture.pcapng | jq 'select(.severity == \"error\")'
  uet check --ignore WIRE-UDP-001 --severity warning capture.pcapng
  uet check --judged capture.pcapng             also lists the requirements judged
  uet check --annotate out.pcapng capture.pcapng  findings as packet comments
  uet check --format parquet -o tables capture.pcapng
  uet check --interface eth0 --seconds 60       live packets

Exit codes:
  0  nothing worse than a warning; an input without packets, or without UET, is reported, and is no error
  1  a finding of severity error, or a malformed packet
  2  usage, or unreadable input")]
pub(super) struct Check {
    /// Captures, or `-` for standard input
    #[arg(required_unless_present = "interface", conflicts_with = "interface", value_name = "CAPTURE")]
    inputs: Vec<PathBuf>,
    /// Output format of findings
    #[arg(long, value_enum, default_value = "text")]
    format: CheckFormat,
    #[command(flatten)]
    output: TablesTo,
    /// Maximum number of findings to print per requirement and sender; the others are counted [default: 1 as text,
    /// 10 as JSON]
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Leave out findings with these identifiers, or whose identifiers begin so: WIRE-UDP-001,CC-PATH
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Leave out findings below this severity
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "note")]
    severity: Least,
    /// List the requirements that were judged over several packets, and how often each one was
    #[arg(long)]
    judged: bool,
    /// Changes of the catalogue: requirements with a changed level or text, or withdrawn (TOML, docs/testing.md)
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Write the packets as pcapng, with their findings as comments. A finding that later packets confirm is a comment
    /// of the last of them, and begins with its own packet
    #[arg(long, value_name = "FILE")]
    annotate: Option<PathBuf>,
    #[command(flatten)]
    live: Live,
    #[command(flatten)]
    deployment: Deployment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    /// Readable text. In a pipe: one entry per line, with severity and identifier
    Text,
    /// One JSON object per line
    Json,
    /// Tables of packets, contexts, messages and findings in DIRECTORY (docs/analysis.md), and a summary as text
    Parquet,
}

/// The least severity of the findings that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Least {
    /// All findings
    Note,
    /// Errors and warnings
    Warning,
    /// Errors alone
    Error,
}

impl Least {
    fn admits(self, severity: Severity) -> bool {
        self <= match severity {
            Severity::Error => Least::Error,
            Severity::Warning => Least::Warning,
            Severity::Note => Least::Note,
        }
    }
}

impl Check {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let annotated = self.annotate.as_deref().map(|path| {
            check_distinct("--annotate", path, &self.inputs)?;
            let comment = "annotated by uet check; by public evidence";
            EthernetCapture::create(Some(path), comment).map_err(|error| about(path, error))
        });
        let stdout = io::stdout().lock();
        let mut report = Report {
            format: self.format,
            limit: self.limit.unwrap_or(if self.format == CheckFormat::Json { 10 } else { 1 }),
            ignore: self.ignored()?,
            severity: self.severity,
            tables: self.output.open(self.format == CheckFormat::Parquet, Tables::of_contexts)?,
            decoder: Some(self.deployment.decoder(false)?),
            paint: Paint::stdout(),
            live: stdout.is_terminal() || self.live.interface.is_some(),
            out: BufWriter::new(WhileRead::new(stdout)),
            checker: CaptureChecker::new(
                self.catalogue.as_deref().map(corrections::read).transpose()?.unwrap_or_default(),
            ),
            packets: 0,
            dropped: 0,
            inputs: Vec::new(),
            headed: None,
            bad: 0,
            left_out: 0,
            found: BTreeMap::new(),
            repeated: BTreeMap::new(),
            foreign: Foreign::default(),
            annotated: annotated.transpose()?,
            comments: Vec::new(),
        };
        if let Some(interface) = &self.live.interface {
            report.inputs.push((0, interface.clone()));
            self.live.watch(interface, &mut report)?;
            report.foreign.input_ended(interface.as_ref(), false);
        }
        let mut damaged = false;
        for input in &self.inputs {
            report.inputs.push((report.packets, input.display().to_string()));
            let read = records(input, Start::Eth, &mut report);
            let unreadable = !readable(input, read, &mut report)?;
            let is_skipped = report.foreign.input_ended(input, unreadable);
            damaged |= unreadable || is_skipped;
            report.checker.end();
            report.released()?;
        }
        // After an error, a line of zeros would look like success.
        if report.packets > 0 || !damaged || self.format == CheckFormat::Json {
            report.summary(self.judged)?;
        }
        report.out.flush()?;
        report.tables.take().map_or(Ok(()), Tables::finish)?;
        report.foreign.complain();
        report.foreign.complain_unread();
        if let (Some(path), Some(annotated)) = (&self.annotate, report.annotated.take()) {
            annotated.finish().map_err(|error| about(path, error))?;
        }
        report.out.into_inner()?.end()?;
        Ok(match (damaged, report.bad) {
            (true, _) => Outcome::UsageError,
            (false, 0) => Outcome::Ok,
            (false, _) => Outcome::Violation,
        })
    }
}

impl Check {
    /// Returns the identifiers to leave out.
    fn ignored(&self) -> io::Result<Vec<String>> {
        const WORDS: [&str; 4] = ["malformed", "not-authentic", "old-epoch", "counter-back"];
        let ids = || catalogue::ALL.iter().map(|known| known.id).chain(WORDS);
        for ignored in &self.ignore {
            if ignored.is_empty() {
                return Err(io::Error::other("--ignore: an empty identifier would leave out every finding"));
            }
            if !ids().any(|id| id.starts_with(ignored.as_str())) {
                return Err(io::Error::other(format!(
                    "--ignore: {}",
                    near::unknown("requirement", ignored, ids())
                )));
            }
        }
        Ok(self.ignore.clone())
    }
}

struct Report<W: Write> {
    format: CheckFormat,
    limit: u64,
    ignore: Vec<String>,
    severity: Least,
    tables: Option<Tables>,
    /// Absent while it decodes a packet.
    decoder: Option<Decoder>,
    paint: Paint,
    live: bool,
    out: BufWriter<WhileRead<W>>,
    checker: CaptureChecker,
    packets: u64,
    /// Packets that captures lack by their own statistics.
    dropped: u64,
    /// The inputs so far, each with the number of packets before it.
    inputs: Vec<(u64, String)>,
    /// The input of the last finding that was printed, as its place among them.
    headed: Option<usize>,
    /// Malformed packets and findings of severity error.
    bad: u64,
    /// Number of findings that do not count.
    left_out: u64,
    /// Number of violations of each requirement.
    found: BTreeMap<&'static str, u64>,
    /// The findings of each severity, requirement and sender, for at most [`SENDERS`] of them.
    repeated: BTreeMap<(&'static str, &'static str, Option<IpAddr>), Repeated>,
    foreign: Foreign,
    annotated: Option<EthernetCapture>,
    /// Findings of the current packet.
    comments: Vec<String>,
}

/// Maximum number of groups of equal findings. All further senders count as one.
const SENDERS: usize = 1 << 16;

/// Findings that differ by their packet alone.
#[derive(Clone, Copy, Debug, Default)]
struct Repeated {
    times: u64,
    /// The last packet.
    last: u64,
}

impl<W: Write> Taker for Report<W> {
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>> {
        self.packets += 1;
        let record = Record { number: self.packets, ..record };
        let Some(mut decoder) = self.decoder.take() else { return Ok(ControlFlow::Break(())) };
        let judged = self.judge(&decoder.decode(record));
        self.decoder = Some(decoder);
        judged?;
        Ok(ControlFlow::Continue(()))
    }

    fn section(&mut self, comment: &str) {
        self.checker.section(comment);
        if self.checker.is_selection() {
            complain(
                "warning: `uet decode` left packets out of this capture, so each one is judged by itself",
            );
        }
    }

    fn secrets(&mut self, key_file: &[u8]) {
        add_secrets(self.decoder.as_mut(), key_file);
    }

    fn dropped(&mut self, packets: u64) {
        self.dropped = self.dropped.saturating_add(packets);
    }

    fn comment(&mut self, comment: &str) {
        let told = match self.checker.comment(comment) {
            Some(Restart::OfNic) => Restart::OF_NIC.to_owned(),
            Some(Restart::OfSuite(instance)) => format!("the suite begins {instance}"),
            None => return,
        };
        if self.annotated.is_some() {
            self.comments.push(told);
        }
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Watch for Report<W> {
    fn packets(&self) -> u64 {
        self.packets
    }

    fn is_over(&self) -> bool {
        self.out.get_ref().is_over()
    }
}

impl<W: Write> Report<W> {
    fn judge(&mut self, decoded: &Decoded<'_>) -> io::Result<()> {
        self.foreign.packet(decoded);
        let protection = decoded.protection.as_ref();
        let captured = CapturedPacket {
            number: self.packets,
            time: decoded.since_1970(),
            packet: &decoded.packet,
            findings: &decoded.findings,
            error: decoded.error(),
            authenticated: protection.and_then(|protection| protection.authenticated),
            key: protection.and_then(|protection| protection.key),
        };
        let earlier = self.checker.earlier_contexts();
        let tables = self.tables.as_mut();
        let mut findings = self.checker.packet_with(captured, |facts| {
            if let Some(tables) = tables {
                tables.facts(decoded, earlier, facts);
            }
        });
        findings = self.counting(findings);
        self.released()?;
        for finding in &findings {
            self.found(finding)?;
        }
        if let Some(tables) = &mut self.tables {
            tables.packet(decoded, &findings)?;
        }
        if let Some(annotated) = &mut self.annotated {
            annotated.write(&decoded.record, &core::mem::take(&mut self.comments).join("\n"))?;
        }
        Ok(())
    }

    /// Reports findings that had to wait for later packets.
    fn released(&mut self) -> io::Result<()> {
        let findings = self.checker.released();
        let findings = self.counting(findings);
        if let Some(tables) = &mut self.tables {
            tables.findings(&findings, None)?;
        }
        findings.iter().try_for_each(|finding| self.found(finding))
    }

    /// Returns the findings that count, by `--ignore` and `--severity`.
    fn counting(&mut self, mut findings: Vec<CaptureFinding>) -> Vec<CaptureFinding> {
        let all = findings.len();
        findings.retain(|finding| {
            let ignored = self.ignore.iter().any(|begin| finding.id.starts_with(begin.as_str()));
            !ignored && self.severity.admits(finding.severity)
        });
        self.left_out += (all - findings.len()) as u64;
        findings
    }

    /// Reports a finding.
    fn found(&mut self, finding: &CaptureFinding) -> io::Result<()> {
        let CaptureFinding { number, with, id, severity, message, .. } = finding;
        self.bad += u64::from(*severity == Severity::Error);
        *self.found.entry(id).or_default() += 1;
        let severity = severity.name();
        let sender = finding.culprit.filter(|_| self.repeated.len() < SENDERS);
        let repeated = self.repeated.entry((severity, *id, sender)).or_default();
        let times = repeated.times + 1;
        *repeated = Repeated { times, last: *number };
        if self.annotated.is_some() {
            let other = with.map(|with| format!(" (packet {with})")).unwrap_or_default();
            let earlier = match *number == self.packets {
                true => String::new(),
                false => format!("packet {number}: "),
            };
            self.comments.push(format!("{severity} {id}: {earlier}{message}{other}"));
        }
        if times > self.limit || self.format == CheckFormat::Parquet {
            return Ok(());
        }
        let culprit = finding.culprit.map(|culprit| culprit.to_string());
        let (input, number) = self.place(*number);
        let with = with.map(|with| self.place(with));
        let name = |input: usize| self.inputs.get(input).map(|(_, name)| name);
        match self.format {
            CheckFormat::Json => {
                let line = json!({
                    "file": name(input), "number": number, "with": with.map(|(_, with)| with),
                    "with_file": with.filter(|(other, _)| *other != input).and_then(|(other, _)| name(other)),
                    "id": id, "severity": severity, "culprit": culprit, "message": message,
                });
                writeln!(self.out, "{line}")?;
            }
            CheckFormat::Text | CheckFormat::Parquet => {
                if self.inputs.len() > 1 && self.headed != Some(input) {
                    writeln!(self.out, "{}:", escape(&self.inputs[input].1))?;
                    self.headed = Some(input);
                }
                let culprit = culprit.as_deref().unwrap_or("-");
                write!(self.out, "{number:>6} ")?;
                match severity {
                    "error" => write!(self.out, "{}", self.paint.error(severity))?,
                    _ => write!(self.out, "{}", self.paint.warning(severity))?,
                }
                write!(self.out, " {} {culprit}: {message}", self.paint.name(id))?;
                match with {
                    Some((other, with)) if other != input => {
                        writeln!(self.out, " (packet {with} of {})", escape(&self.inputs[other].1))?;
                    }
                    Some((_, with)) => writeln!(self.out, " (packet {with})")?,
                    None => writeln!(self.out)?,
                }
            }
        }
        if self.live { self.out.flush() } else { Ok(()) }
    }

    /// Returns the input of a packet, as its place among the inputs, and the packet's number in it.
    fn place(&self, number: u64) -> (usize, u64) {
        let input = self.inputs.partition_point(|(before, _)| *before < number).saturating_sub(1);
        (input, number - self.inputs.get(input).map_or(0, |(before, _)| *before))
    }

    fn summary(&mut self, judged: bool) -> io::Result<()> {
        let (contexts, counts) = (self.checker.contexts(), self.checker.judged());
        let across = counts.len();
        if self.format != CheckFormat::Json {
            for correction in &self.checker.corrections().0 {
                writeln!(self.out, "corrected in the catalogue: {correction}")?;
            }
        }
        if self.format == CheckFormat::Json {
            let summary = json!({
                "packets": self.packets, "contexts": contexts, "findings": self.found, "judged": counts,
                "corrections": self.checker.corrections(), "dropped": self.dropped,
                "unseen": self.checker.unseen(), "unmatched": self.checker.unmatched(),
                "unjudged": self.foreign.unjudged(), "excused": self.checker.excused(),
            });
            return writeln!(self.out, "{summary}");
        }
        if judged {
            for requirement in
                catalogue::ALL.iter().filter(|requirement| !requirement.id.starts_with("WIRE-"))
            {
                if let Some(times) = counts.get(requirement.id) {
                    writeln!(self.out, "{} {times} {}", requirement.id, requirement.sentence)?;
                }
            }
        }
        let hidden = |times: u64| self.format == CheckFormat::Text && times > self.limit;
        for ((severity, id, sender), repeated) in
            self.repeated.iter().filter(|(_, repeated)| hidden(repeated.times))
        {
            let sender = sender.map_or("-".to_owned(), |sender| sender.to_string());
            let more = repeated.times - self.limit;
            let (input, last) = self.place(repeated.last);
            let of = match &self.inputs[..] {
                [] | [_] => String::new(),
                inputs => format!(" of {}", escape(&inputs[input].1)),
            };
            writeln!(self.out, "{severity} {id} {sender}: {more} more, the last in packet {last}{of}")?;
        }
        match self.checker.excused() {
            0 => {}
            1 => writeln!(
                self.out,
                "captured by the suite: 1 error is a note, because the suite may have caused it"
            )?,
            count => writeln!(
                self.out,
                "captured by the suite: {count} errors are notes, because the suite may have caused them"
            )?,
        }
        let first = self.checker.first_unseen().map(|number| {
            let (input, number) = self.place(number);
            match &self.inputs[..] {
                [] | [_] => number.to_string(),
                inputs => format!("{number} of {}", escape(&inputs[input].1)),
            }
        });
        // In a capture of the suite, forged packets acknowledge and answer what nobody sent.
        let (unseen, unmatched) = match self.checker.excused() {
            0 => (self.checker.unseen(), self.checker.unmatched()),
            _ => (0, 0),
        };
        for line in lacking(self.dropped, unseen, first, unmatched) {
            writeln!(self.out, "{line}")?;
        }
        if self.left_out > 0 {
            let left_out = counted(self.left_out, "finding");
            writeln!(self.out, "{left_out} left out by --ignore or --severity")?;
        }
        writeln!(
            self.out,
            "{}, {}, {}; {} judged over several packets",
            counted(self.packets, "packet"),
            counted(contexts as u64, "context"),
            self.findings(),
            counted(across as u64, "requirement")
        )?;
        self.foreign.unjudged().map_or(Ok(()), |unjudged| writeln!(self.out, "{unjudged}"))
    }

    /// Returns the number of findings in words, and the kinds that decide about the exit code.
    fn findings(&self) -> String {
        let of = |kind| -> u64 {
            let those = self.repeated.iter().filter(|((severity, ..), _)| *severity == kind);
            those.map(|(_, repeated)| repeated.times).sum()
        };
        let found = counted(self.found.values().sum(), "finding");
        let kinds = [Severity::Error, Severity::Warning, Severity::Note].map(Severity::name);
        let kinds = kinds.into_iter().map(|kind| (of(kind), kind)).filter(|(count, _)| *count > 0);
        let kinds: Vec<String> = kinds.map(|(count, kind)| counted(count, kind)).collect();
        if kinds.is_empty() { found } else { format!("{found} ({})", kinds.join(", ")) }
    }
}
