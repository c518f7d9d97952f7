//! Random conversations: `uet run --random` and `--again`.

use super::super::about;
use super::super::device::{Device, quoted};
use super::super::output::Unwritten;
use super::{Run, RunFormat};
use crate::paint::Paint;
use crate::report;
use core::time::Duration;
use serde::Deserialize;
use std::io::{self, Write};
use std::path::Path;
use uet_conformance::random::{self, Sequence};
use uet_conformance::{Options, RuleResult, RunResult};
use uet_control::escape_json;
use uet_packet_io::file;

impl Run {
    /// Plays random conversations, or a saved one. Text output gets each failure as soon as it is found.
    pub(super) fn conversations(
        &self,
        device: &mut Device,
        options: &Options,
        out: &mut impl Write,
        unwritten: &mut Unwritten,
    ) -> io::Result<RunResult> {
        let paint = Paint::stdout();
        let again = self.again.as_deref().map(read_sequence).transpose()?;
        let (mut failed, mut count) = (Ok(()), 0);
        let mut show = |rule: &mut RuleResult| {
            self.keep(rule, unwritten);
            for found in &mut rule.failing {
                let Some(sequence) = &found.sequence else { continue };
                let path = match &self.again {
                    Some(path) => path.clone(),
                    None => self.keep.join(format!("random-{}-{count}.json", options.seed)),
                };
                count += 1;
                if self.again.is_none() {
                    unwritten.note(&path, keep_sequence(&path, sequence));
                }
                let place = quoted(&path.display().to_string()).to_string();
                found.rerun = format!("{} --again {place} --seed {}", options.command, options.seed);
            }
            if self.format == RunFormat::Text && failed.is_ok() {
                failed = (|| {
                    let mut text = Vec::new();
                    report::text::line(&mut text, rule, paint)?;
                    for sequence in rule.failing.iter().filter_map(|found| found.sequence.as_ref()) {
                        for step in &sequence.steps {
                            writeln!(text, "    {}", escape_json(&serde_json::to_string(step)?))?;
                        }
                    }
                    report::text::failure(&mut text, rule, options.spec, paint)?;
                    writeln!(text)?;
                    out.write_all(&text)?;
                    out.flush()
                })();
            }
        };
        let result = match (again, self.random) {
            (Some(sequence), _) => random::again(device.dut(), &sequence, options, &mut show),
            (None, time) => {
                let length = random::Length::Time(time.unwrap_or_default());
                random::run(device.dut(), options, length, &mut show)
            }
        };
        failed?;
        if let (RunFormat::Text, Some(figures), None) = (self.format, &result.random, &self.again) {
            report::text::random(out, figures)?;
        }
        Ok(result)
    }
}

/// Reads a span of time: `10s`, `5m`, `500ms`.
pub(in crate::commands) fn duration(text: &str) -> Result<Duration, String> {
    let unit = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let number: Option<u64> = number.parse().ok();
    let span = match (number, unit) {
        (Some(number), "ms") => Some(Duration::from_millis(number)),
        (Some(number), "s") => Some(Duration::from_secs(number)),
        (Some(number), "m") => number.checked_mul(60).map(Duration::from_secs),
        (Some(number), "h") => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    };
    span.filter(|span| *span <= Duration::from_secs(7 * 24 * 3600))
        .ok_or_else(|| "a time of at most a week, such as 500ms, 10s, 5m or 2h".to_owned())
}

/// Reads a conversation: a file of its own, or an object with the key `sequence`.
fn read_sequence(path: &Path) -> io::Result<Sequence> {
    #[derive(Deserialize)]
    struct Finding {
        sequence: Option<Sequence>,
    }
    let text = file::read_text(path, file::MAX_SCRIPT).map_err(|error| about(path, error))?;
    let unlike = |error: serde_json::Error| about(path, format!("not a conversation: {error}"));
    match serde_json::from_str(&text).map_err(unlike)? {
        Finding { sequence: Some(sequence) } => Ok(sequence),
        _ => serde_json::from_str(&text).map_err(unlike),
    }
}

fn keep_sequence(path: &Path, sequence: &Sequence) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    file::replace(path, serde_json::to_string_pretty(sequence)? + "\n")
}
