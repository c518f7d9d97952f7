//! Sweeps: all combinations of values of some settings, one JSON line per run.

use super::json;
use super::settings::{Settings, refused};
use crate::text::counted;
use crate::toml_error;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::{Spanned, Table};
use uet_control::escape_json;
use uet_packet_io::file;
use uet_simulate::Simulation;

/// A part of a sweep: the runs whose number leaves this remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shard = text.split_once('/').and_then(|(number, count)| {
            let (number, count): (u64, u64) = (number.parse().ok()?, count.parse().ok()?);
            (1..=count).contains(&number).then(|| Shard { index: number - 1, count })
        });
        shard.ok_or("expected the number of a shard and the number of all shards, from 1/64 to 64/64".into())
    }
}

/// A sweep over settings.
#[derive(Debug)]
pub struct Sweep {
    path: PathBuf,
    /// The settings that all runs share.
    base: Settings,
    /// The values of each other setting.
    values: BTreeMap<String, Vec<toml::Value>>,
    /// The hash of the file, by which lines of another sweep are recognized.
    hash: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    scenario: Settings,
    sweep: BTreeMap<String, Vec<Spanned<toml::Value>>>,
}

impl Sweep {
    /// The maximum number of runs.
    const MAX_RUNS: u64 = 1_000_000;

    /// The size limit of a line of results in bytes.
    const MAX_LINE: u64 = 16 << 20;

    /// Reads a sweep from a file, and checks each value.
    pub fn read(path: &Path) -> io::Result<Self> {
        let about = |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
        let text = file::read_text(path, file::MAX_SETTINGS).map_err(|error| about(&error))?;
        let Document { mut scenario, sweep } =
            toml::from_str(&text).map_err(|error| about(&toml_error::shown(&error)))?;
        scenario.relative_to(path.parent().unwrap_or(Path::new("")));
        let tables: Table = toml::from_str(&text).map_err(|error| about(&toml_error::shown(&error)))?;
        for (name, values) in &sweep {
            let Some(first) = values.first() else {
                return Err(about(&format!("'{name}' has no values")));
            };
            let wrong = |value: &Spanned<toml::Value>, reason: &str| {
                let line = text[..value.span().start].matches('\n').count() + 1;
                about(&format!("line {line}: {name}: {reason}"))
            };
            let mut seen = BTreeSet::new();
            for value in values {
                let options = Table::from_iter([(name.clone(), value.get_ref().clone())]);
                if let Err(error) = options.try_into::<Settings>() {
                    return Err(wrong(value, error.to_string().trim_end()));
                }
                if !seen.insert(value.get_ref().to_string()) {
                    return Err(wrong(value, "this value is there twice"));
                }
            }
            // Failures of both tables add up.
            if name != "fail" && tables.get("scenario").is_some_and(|shared| shared.get(name).is_some()) {
                return Err(wrong(first, "give it in [scenario] or in [sweep], not in both"));
            }
        }
        let values = sweep.into_iter().map(|(name, values)| {
            (name, values.into_iter().map(Spanned::into_inner).collect::<Vec<toml::Value>>())
        });
        let hash = format!("{:016x}", fnv(text.as_bytes()));
        let sweep = Sweep { path: path.into(), base: scenario, values: values.collect(), hash };
        match sweep.runs() {
            Some(1..=Self::MAX_RUNS) => Ok(sweep),
            _ => Err(about(&"these values make more than 1,000,000 runs")),
        }
    }

    /// Returns the number of runs; `None` if it is beyond 64 bits.
    fn runs(&self) -> Option<u64> {
        self.values.values().try_fold(1_u64, |runs, values| runs.checked_mul(values.len() as u64))
    }

    /// Returns the settings of a run. Names are in alphabetical order, and the last one varies fastest.
    fn options(&self, run: u64) -> Table {
        let mut rest = run;
        let mut options = Table::new();
        for (name, values) in self.values.iter().rev() {
            options.insert(name.clone(), values[(rest % values.len() as u64) as usize].clone());
            rest /= values.len() as u64;
        }
        options
    }

    /// Simulates the runs of a shard, and appends a line for each to the output. Skips runs that the output has
    /// already, and counts them like the others.
    pub fn run(&self, shard: Shard, mut output: Output<'_>) -> io::Result<Tally> {
        let done = output.done(self)?;
        let mut tally = Tally::default();
        for run in (shard.index..self.runs().unwrap_or(0)).step_by(shard.count as usize) {
            if let Some(ending) = done.get(run as usize).copied().flatten() {
                tally.earlier += 1;
                tally.add(ending);
                continue;
            }
            let line = self.line(run)?;
            tally.add(Ending::of(&line));
            output.write(&format!("{}\n", escape_json(&line.to_string())))?;
        }
        Ok(tally)
    }

    /// Simulates a run. A combination of values that cannot be simulated gives a line with the error.
    fn line(&self, run: u64) -> io::Result<Value> {
        let options = self.options(run);
        let outcome = self.outcome(options.clone());
        let mut line = self.head(run, options)?;
        match outcome {
            Ok(outcome) => line["outcome"] = outcome,
            Err(error) => line["error"] = error.to_string().into(),
        }
        Ok(line)
    }

    /// Returns the members of a line that identify its run.
    fn head(&self, run: u64, options: Table) -> io::Result<Value> {
        Ok(json!({"run": run, "sweep": self.hash, "options": serde_json::to_value(options)?}))
    }

    fn outcome(&self, options: Table) -> io::Result<Value> {
        let mut settings: Settings = options.try_into().map_err(io::Error::other)?;
        settings.relative_to(self.path.parent().unwrap_or(Path::new("")));
        let scenario = settings.over(self.base.clone()).scenario()?;
        let outcome = Simulation::new(&scenario).map_err(refused)?.run();
        Ok(json::summary(&scenario, &outcome))
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Completed,
    Incomplete,
    Impossible,
}

impl Ending {
    fn of(line: &Value) -> Self {
        match &line["outcome"]["incomplete"] {
            Value::Null => Ending::Impossible,
            incomplete if *incomplete == 0 => Ending::Completed,
            _ => Ending::Incomplete,
        }
    }
}

/// The numbers of runs of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    runs: u64,
    earlier: u64,
    incomplete: u64,
    impossible: u64,
}

impl Tally {
    /// Returns whether all flows of all runs completed.
    pub fn all_completed(&self) -> bool {
        self.incomplete + self.impossible == 0
    }

    fn add(&mut self, ending: Ending) {
        self.runs += 1;
        self.incomplete += u64::from(ending == Ending::Incomplete);
        self.impossible += u64::from(ending == Ending::Impossible);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.runs, "run"))?;
        let parts = [
            (self.earlier, "in the output already"),
            (self.incomplete, "with flows that did not complete in time"),
            (self.impossible, "with an error instead of an outcome"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {what}")?;
        }
        Ok(())
    }
}

/// The destination of the lines.
pub enum Output<'a> {
    /// Only writes.
    Stream(&'a mut dyn io::Write),
    /// Also reads the lines that the file has.
    File(File, PathBuf),
}

impl Output<'_> {
    /// Opens a file, and creates it if it does not exist.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        Ok(Output::File(file, path.into()))
    }

    /// Returns how the runs that the output has ended. Drops a last line without a line end, which an interrupted run
    /// left.
    fn done(&mut self, sweep: &Sweep) -> io::Result<Vec<Option<Ending>>> {
        let Output::File(file, path) = self else { return Ok(Vec::new()) };
        let about = |number: usize, reason: &dyn std::fmt::Display| {
            io::Error::other(format!("{}: line {number}: {reason}", path.display()))
        };
        let mut done = vec![None; sweep.runs().unwrap_or(0) as usize];
        let (mut end, mut line) = (0, Vec::new());
        let mut input = BufReader::new(&*file);
        for number in 1.. {
            line.clear();
            (&mut input).take(Sweep::MAX_LINE).read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                if line.len() as u64 == Sweep::MAX_LINE {
                    return Err(about(number, &"longer than 16 MiB"));
                }
                break;
            }
            let value: Value = serde_json::from_slice(&line).map_err(|error| about(number, &error))?;
            let run = value["run"].as_u64().filter(|run| (*run as usize) < done.len());
            let same = |run: &u64| {
                let head = sweep.head(*run, sweep.options(*run)).ok()?;
                ["sweep", "options"].iter().all(|key| value[*key] == head[*key]).then_some(())
            };
            let Some(run) = run.filter(|run| same(run).is_some()) else {
                return Err(about(number, &"this is no run of this sweep; choose another output"));
            };
            done[run as usize] = Some(Ending::of(&value));
            end += line.len() as u64;
        }
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        Ok(done)
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let out: &mut dyn io::Write = match self {
            Output::Stream(out) => out,
            Output::File(file, _) => file,
        };
        out.write_all(line.as_bytes())?;
        out.flush()
    }
}

/// Returns the FNV-1a hash.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Default for Shard {
    /// Returns all runs.
    fn default() -> Self {
        Shard { index: 0, count: 1 }
    }
}
