//! `uet run --device`: several devices in one run.

use super::super::output::{Unwritten, WhileRead};
use super::super::signal::RunSignals;
use super::super::{Outcome, complain};
use super::{Run, RunFormat, is_file};
use crate::paint::Paint;
use crate::report::matrix::{self, Column};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use uet_control::escape_json;
use uet_packet_io::file;

impl Run {
    /// Runs on one device after the other and compares their verdicts. A device that cannot be reached does not keep the
    /// others from running.
    pub(super) fn on_each_device(&self) -> io::Result<Outcome> {
        let mut names: Vec<&str> = self.devices.iter().map(|device| device.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(io::Error::other(format!("--device names two devices '{}'", twice[0])));
        }
        if self.device.is_selected() {
            return Err(io::Error::other(
                "--device cannot be combined with --dut, --control or --no-control",
            ));
        }
        if self.capture.as_deref().is_some_and(is_file) {
            return Err(io::Error::other(
                "with --device, --capture needs a directory; it gets one directory per device",
            ));
        }
        let paint = Paint::stdout();
        let mut out = WhileRead::new(io::stdout().lock());
        let mut columns: Vec<Column> = Vec::new();
        let signals = RunSignals::listen()?;
        let mut unwritten = Unwritten::default();
        for named in &self.devices {
            let of_device = |path: &PathBuf| path.join(&named.name);
            let one = Run {
                device: self.device.with(named),
                capture: self.capture.as_ref().map(of_device),
                traces: self.traces.as_ref().map(of_device),
                // The reports are about all devices.
                json: None,
                html: None,
                ..self.clone()
            };
            let Some(options) = one.options()? else { return Ok(Outcome::Ok) };
            let result = match self.format {
                RunFormat::Text => {
                    writeln!(out, "{}", paint.strong(format_args!("device {}", named.name)))?;
                    let result =
                        one.on_device(options, None, Some(signals.clone()), &mut out, &mut unwritten);
                    writeln!(out)?;
                    result
                }
                RunFormat::Json => {
                    one.on_device(options, None, Some(signals.clone()), &mut io::sink(), &mut unwritten)
                }
            };
            let result = result.map_err(|error| {
                complain(format_args!("{}: {error}", named.name));
                error.to_string()
            });
            columns.push(Column { name: named.name.clone(), result });
            if signals.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        match self.format {
            RunFormat::Text => matrix::text(&mut out, &columns, paint)?,
            RunFormat::Json => {
                writeln!(out, "{}", escape_json(&serde_json::to_string(&matrix::json(&columns)?)?))?
            }
        }
        if let Some(path) = &self.json {
            let text = matrix::json(&columns).and_then(|value| super::report::json::lines(&value))?;
            unwritten.note(path, file::replace(path, text));
        }
        if let Some(path) = &self.html {
            unwritten.note(path, file::replace(path, matrix::page(&columns)));
        }
        out.end()?;
        Ok(unwritten.or(Outcome::of(matrix::exit_code(&columns))))
    }
}
