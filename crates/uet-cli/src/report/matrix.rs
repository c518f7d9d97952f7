//! Verdicts of several devices side by side.

use super::text;
use crate::paint::Paint;
use crate::site::html::{Escaped, policy};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use uet_conformance::{RuleResult, RunResult, Verdict};

/// The result of a device in a run with several.
pub struct Column {
    /// Name of the device in this run.
    pub name: String,
    /// The result, or the reason why there is none.
    pub result: Result<RunResult, String>,
}

impl Column {
    fn rule(&self, id: &str) -> Option<&RuleResult> {
        self.result.as_ref().ok()?.rules.iter().find(|rule| rule.id == id)
    }

    fn verdict(&self, id: &str) -> Option<Verdict> {
        self.rule(id).map(|rule| rule.verdict)
    }
}

/// Returns the ids of all rules that ran on a device, in the order in which they ran.
fn ids(columns: &[Column]) -> Vec<&str> {
    let longest = columns.iter().filter_map(|column| column.result.as_ref().ok());
    let longest = longest.max_by_key(|result| result.rules.len());
    longest.map(|result| result.rules.iter().map(|rule| rule.id.as_str()).collect()).unwrap_or_default()
}

/// Returns the rules that some device does not pass, unless all devices skip them.
fn notable(columns: &[Column]) -> impl Iterator<Item = &str> {
    let of_interest = |id: &&str| {
        let mut verdicts = columns.iter().filter_map(|column| column.verdict(id));
        let first = verdicts.next();
        match first {
            Some(first @ (Verdict::Pass | Verdict::Skipped)) => verdicts.any(|verdict| verdict != first),
            first => first.is_some(),
        }
    };
    ids(columns).into_iter().filter(of_interest)
}

/// Returns the exit code of the whole run: that of the gravest result.
pub fn exit_code(columns: &[Column]) -> u8 {
    let code = |column: &Column| column.result.as_ref().map_or(2, RunResult::exit_code);
    let codes: Vec<u8> = columns.iter().map(code).collect();
    [2, 1, 3].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
}

/// Writes a line for each rule whose verdicts differ or are not passes, and the counts of each device.
pub fn text(out: &mut impl Write, columns: &[Column], paint: Paint) -> io::Result<()> {
    let widths: Vec<usize> = columns.iter().map(|column| column.name.len().max(12) + 2).collect();
    write!(out, "{}", paint.faint(format!("{:<40}", "rule")))?;
    for (column, width) in columns.iter().zip(&widths) {
        write!(out, " {:<width$}", column.name)?;
    }
    writeln!(out)?;
    for id in notable(columns) {
        write!(out, "{id:<40}")?;
        for (column, width) in columns.iter().zip(&widths) {
            let verdict = column.verdict(id).map_or("-", Verdict::name);
            let cell = format!("{verdict:<width$}");
            match column.verdict(id) {
                Some(Verdict::Fail | Verdict::Flaky) => write!(out, " {}", paint.error(cell))?,
                Some(Verdict::Inconclusive) => write!(out, " {}", paint.warning(cell))?,
                _ => write!(out, " {cell}")?,
            }
        }
        writeln!(out)?;
    }
    let same = ids(columns).len() - notable(columns).count();
    writeln!(out, "{same} other rules pass on every device, or are skipped on every device")?;
    for column in columns {
        match &column.result {
            Ok(result) => writeln!(out, "{}: {}", column.name, text::counts(result))?,
            Err(why) => writeln!(out, "{}: no result: {}", column.name, crate::paint::Plain(why))?,
        }
    }
    Ok(())
}

/// Returns the results of all devices, and the verdicts of each rule by device.
pub fn json(columns: &[Column]) -> io::Result<Value> {
    let device = |column: &Column| -> io::Result<Value> {
        Ok(match &column.result {
            Ok(result) => json!({"name": column.name, "result": serde_json::to_value(result)?}),
            Err(error) => json!({"name": column.name, "error": error}),
        })
    };
    let row = |id: &str| {
        let verdict = |column: &Column| {
            (column.name.clone(), column.verdict(id).map_or(Value::Null, |verdict| verdict.name().into()))
        };
        json!({"id": id, "verdicts": columns.iter().map(verdict).collect::<Map<_, _>>()})
    };
    let devices = columns.iter().map(device).collect::<io::Result<Vec<_>>>()?;
    let matrix: Vec<Value> = ids(columns).into_iter().map(row).collect();
    Ok(json!({"devices": devices, "matrix": matrix}))
}

/// Returns a web page with a table of all rules; those without a difference are folded.
pub fn page(columns: &[Column]) -> String {
    let head = || {
        let names = columns.iter().map(|column| format!("<th>{}", Escaped(&column.name)));
        format!("<tr><th>rule{}</tr>\n", names.collect::<String>())
    };
    let row = |id: &str| {
        let cell = |column: &Column| match column.rule(id) {
            None => "<td>-".to_owned(),
            Some(rule) => {
                let (name, reason) = (rule.verdict.name(), Escaped(&rule.reason));
                format!("<td class={name} title=\"{reason}\">{name}")
            }
        };
        format!("<tr><td><code>{id}</code>{}</tr>\n", columns.iter().map(cell).collect::<String>())
    };
    let notable: Vec<&str> = notable(columns).collect();
    let rows: String = notable.iter().map(|id| row(id)).collect();
    let others: String = ids(columns).into_iter().filter(|id| !notable.contains(id)).map(row).collect();
    let mut devices = String::new();
    for Column { name, result } in columns {
        let told = match result {
            Ok(result) => {
                format!("{}: {} (catalogue {})", result.device, text::counts(result), result.catalogue)
            }
            Err(why) => format!("no result: {why}"),
        };
        devices += &format!("<tr><th>{}<td>{}</tr>\n", Escaped(name), Escaped(&told));
    }
    let title = format!("Conformance of {} devices", columns.len());
    let head = head();
    format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content=\"width=device-width\">\n\
         {policy}<title>{title}</title>\n<style>\n{}{}</style>\n<main>\n<h1>{title}</h1>\n\
         <p>By public evidence: we have had no access to the specification.</p>\n<table>\n{devices}</table>\n\
         <h2>Verdicts that differ or are not passes</h2>\n<table id=matrix>\n{head}{rows}</table>\n\
         <details><summary>All other rules</summary>\n<table>\n{head}{others}</table>\n</details>\n</main>\n</html>\n",
        include_str!("../site/page.css"),
        include_str!("html/report.css"),
        // The page has no script.
        policy = policy("", "", ""),
    )
}
