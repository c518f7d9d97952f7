//! Runs the suite against each deliberate fault of the built-in NIC. `docs/faults.md` lists the results;
//! `UPDATE=1 cargo test --release -p uet-harness --test faults` writes the page.
//!
//! Without `--release`, only the rules that the page lists for a fault run against it. This takes seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use uet_conformance::{Options, RULES, RunResult, Verdict, run};
use uet_emulator::Config;
use uet_emulator::fault::{self, Area, Fault};
use uet_harness::dut::{Embedded, Family};

/// Faults that no rule catches. The list is exact: remove a fault once a rule catches it.
const NOT_CAUGHT: &[&str] = &[];

/// Maximum number of rules, and of requirements, in a row of the page.
const NAMED: usize = 5;

/// Instances that run against each fault: one of each rule. All of them take seconds.
const INSTANCES: usize = 1;

/// Runs the suite against a NIC with these faults, over IPv6 if they need that.
fn suite(faults: &[&'static Fault], options: &Options) -> RunResult {
    let ipv6 = faults.iter().any(|fault| fault.area() == Area::Ipv6);
    let family = if ipv6 { Family::V6 } else { Family::V4 };
    let mut device = Embedded::over(family, Config::default(), faults).unwrap();
    run(&mut device, options, |_| ())
}

/// The rules that fail for a fault, and how many of them name each requirement.
#[derive(Debug, Default)]
struct Row {
    rules: BTreeSet<String>,
    /// The rules that name the requirement that the fault breaks.
    naming: BTreeSet<String>,
    requirements: BTreeMap<String, usize>,
}

/// Runs these rules, or all, against a fault.
fn row(fault: &'static Fault, ids: &[String]) -> Row {
    let mut options = Options { ids: ids.to_vec(), max_instances: Some(INSTANCES), ..Options::default() };
    let mut row = failing(fault, suite(&[fault], &options));
    if row.naming.is_empty() {
        // Few instances show what it breaks, such as those beyond 64 KiB.
        options.max_instances = None;
        row = failing(fault, suite(&[fault], &options));
    }
    row
}

fn failing(fault: &'static Fault, result: RunResult) -> Row {
    let mut row = Row::default();
    for rule in result.rules {
        if matches!(rule.verdict, Verdict::Fail | Verdict::Flaky) {
            if rule.requirements.iter().any(|id| *id == fault.breaks.id) {
                row.naming.insert(rule.id.clone());
            }
            row.rules.insert(rule.id);
            for requirement in rule.requirements {
                *row.requirements.entry(requirement).or_default() += 1;
            }
        }
    }
    row
}

/// Computes the rows of these faults, with one thread per processor.
fn rows(faults: &[(&'static Fault, Vec<String>)]) -> Vec<(&'static Fault, Row)> {
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, |count| count.get()) {
            scope.spawn(|| {
                while let Some((fault, ids)) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = row(fault, ids);
                    rows.lock().unwrap().insert(fault.name, row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    faults.iter().map(|(fault, _)| (*fault, rows.remove(fault.name).unwrap_or_default())).collect()
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/faults.md")
}

/// Fails if a fault breaks a requirement that no failing rule names: a rule must name more than a consequence.
fn each_is_named(rows: &[(&'static Fault, Row)]) {
    let unnamed = rows.iter().filter(|(_, row)| row.naming.is_empty());
    let unnamed: Vec<_> = unnamed.map(|(fault, row)| (fault.name, fault.breaks.id, row)).collect();
    assert!(unnamed.is_empty(), "no rule that fails names what these break: {unnamed:#?}");
}

#[test]
fn the_listed_rules_catch_each_fault() {
    if std::env::var_os("UPDATE").is_some() {
        return; // The other test is writing the page.
    }
    let page = std::fs::read_to_string(path()).unwrap();
    let mut listed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        if let (Some(name), Some(rules)) = (line.strip_prefix("| `"), cells.get(4)) {
            let (name, _) = name.split_once('`').unwrap();
            let rules = rules.split('`').skip(1).step_by(2).map(String::from).collect();
            listed.insert(name, rules);
        }
    }
    let unknown: Vec<&String> = listed.values().flatten().filter(|id| RULES.find(id).is_none()).collect();
    assert!(unknown.is_empty(), "docs/faults.md lists rules that the suite lacks: {unknown:?}");
    let faults: Vec<_> = fault::all()
        .filter(|fault| !NOT_CAUGHT.contains(&fault.name))
        .map(|fault| (fault, listed.get(fault.name).cloned().unwrap_or_default()))
        .collect();
    let unlisted: Vec<_> =
        faults.iter().filter(|(_, rules)| rules.is_empty()).map(|(fault, _)| fault.name).collect();
    assert!(unlisted.is_empty(), "docs/faults.md lacks {unlisted:?}: see the first lines of this file");
    each_is_named(&rows(&faults));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn every_fault_is_caught_and_told_from_others() {
    let all: Vec<_> = fault::all().map(|fault| (fault, Vec::new())).collect();
    let rows = rows(&all);

    let missed: Vec<&str> =
        rows.iter().filter(|(_, row)| row.rules.is_empty()).map(|(fault, _)| fault.name).collect();
    assert_eq!(missed, NOT_CAUGHT, "the list NOT_CAUGHT is outdated");

    each_is_named(&rows);

    let mut by_rule: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().flat_map(|(_, row)| &row.rules).for_each(|rule| *by_rule.entry(rule).or_default() += 1);
    let greedy: Vec<_> = by_rule.iter().filter(|(_, count)| **count * 2 > rows.len()).collect();
    assert!(greedy.is_empty(), "rules that fail for more than half of the faults: {greedy:?}");

    let mut by_row: BTreeMap<&BTreeSet<String>, usize> = BTreeMap::new();
    rows.iter().for_each(|(_, row)| *by_row.entry(&row.rules).or_default() += 1);
    let own = rows.iter().filter(|(_, row)| by_row[&row.rules] == 1).count();
    assert!(own * 8 >= rows.len() * 7, "{own} of {} faults have a row of their own", rows.len());

    let path = path();
    let page = page(&rows, own, by_rule.len());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let stale = written.lines().zip(page.lines()).find(|(written, page)| written != page);
    assert!(
        written == page,
        "docs/faults.md is out of date: UPDATE=1 cargo test --release -p uet-harness --test faults; first: {stale:?}"
    );
}

fn page(rows: &[(&'static Fault, Row)], own: usize, catching: usize) -> String {
    let caught = rows.iter().filter(|(_, row)| !row.rules.is_empty()).count();
    let mut page = format!(
        "# What the suite catches\n\n\
         Each deliberate fault of the built-in NIC ([emulator.md](emulator.md)), against every rule of the suite\n\
         (`uet run --fault NAME`; for the area `ipv6` with `--family 6`). The suite detects {caught} of {} faults, {own} of them\n\
         with a unique set of rules; {catching} rules detect at least one.\n\
         `UPDATE=1 cargo test --release -p uet-harness --test faults` writes this page. It also fails if the suite misses\n\
         a fault, or if no failing rule names the requirement that the fault breaks.\n",
        rows.len()
    );
    let mut area = None;
    for (fault, Row { rules, naming, requirements }) in rows {
        if area.replace(fault.area()) != Some(fault.area()) {
            let name = fault.area().name();
            let columns = "fault | what is wrong | breaks | what fails with it | rules that fail";
            write!(page, "\n## {name}\n\n| {columns} |\n| --- | --- | --- | --- | --- |\n").unwrap();
        }
        let beside = requirements.iter().filter(|(id, _)| *id != fault.breaks.id);
        let mut named: Vec<_> = beside.collect();
        named.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let requirements = first(named.iter().map(|(id, _)| id.to_string()));
        // The rules that name the requirement come first.
        let mut rules: Vec<_> = rules.iter().collect();
        rules.sort_by_key(|rule| !naming.contains(*rule));
        let rules = first(rules.iter().map(|rule| format!("`{rule}`")));
        let (name, sentence, breaks) = (fault.name, fault.sentence, fault.breaks.id);
        writeln!(page, "| `{name}` | {sentence} | {breaks} | {requirements} | {rules} |").unwrap();
    }
    page
}

/// Joins the first names of a list and counts the rest.
fn first(mut names: impl ExactSizeIterator<Item = String>) -> String {
    let text = names.by_ref().take(NAMED).collect::<Vec<_>>().join(", ");
    if names.len() > 0 { format!("{text} and {} more", names.len()) } else { text }
}

#[test]
fn without_a_fault_everything_passes() {
    let result = suite(&[], &Options { max_instances: Some(INSTANCES), ..Options::default() });
    let others: Vec<_> = result.rules.iter().filter(|rule| rule.verdict != Verdict::Pass).collect();
    let others: Vec<_> = others.iter().map(|rule| (&rule.id, rule.verdict, &rule.reason)).collect();
    assert!(others.is_empty(), "{others:?}");
}
