//! Instructions by operation, counted under callgrind. The counts are exact and equal on every run.
//!
//! `cargo bench -p uet-wire --bench instructions` counts, prints the table and compares it with
//! `benches/instructions.txt`. It fails if the codec needs more instructions than that table says, or more than the
//! operation allows relative to the overlay. A small tolerance allows for different compilers. With `-- --accept` it
//! writes the table instead.
//!
//! Valgrind runs this program again, once for each packet, and callgrind records the inclusive cost of every function.
//! Each operation has a function that only calls it (see `cases`). The cost of that function's callees is the cost of
//! the operation. It includes entry and return, but not the loop.

mod cases;

use cases::{Case, PACKETS, WHO};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

/// Returns `allowed` with the tolerance: 3 % and one instruction more.
fn tolerated(allowed: f64) -> f64 {
    allowed * 1.03 + 1.0
}

/// The environment variable that names the packet to the process under valgrind.
const INNER: &str = "UET_COUNTED_PACKET";

fn main() -> ExitCode {
    if let Ok(packet) = env::var(INNER) {
        let packet = PACKETS.into_iter().find(|name| *name == packet);
        for mut case in packet.into_iter().flat_map(cases::of) {
            (0..WHO.len()).for_each(|who| (case.run)(who));
        }
        return ExitCode::SUCCESS;
    }
    if !env::args().any(|argument| argument == "--bench") {
        // Under `cargo test` nothing is optimized, and a count says nothing: check that all operations work.
        PACKETS.into_iter().flat_map(cases::of).for_each(|mut case| (case.run)(0));
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let rows = PACKETS.into_iter().map(count).collect::<Result<Vec<_>, _>>()?;
    let mut rows: Vec<_> = rows.into_iter().flatten().collect();
    // By operation; the packets stay in their order.
    let operations: Vec<_> =
        rows.iter().take_while(|row| row.packet == PACKETS[0]).map(|row| row.operation).collect();
    rows.sort_by_key(|row| operations.iter().position(|operation| *operation == row.operation));
    let table = table(&rows);
    print!("{table}");
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    let named = |error| format!("{}: {error}", committed.display());
    if env::args().any(|argument| argument == "--accept") {
        return fs::write(&committed, table).map_err(named);
    }
    let before = fs::read_to_string(&committed).map_err(named)?;
    let complaints: Vec<_> = rows.iter().flat_map(|row| complaints(row, &before)).collect();
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.join("\n")),
    }
}

/// The counts of a case: the instructions of each of `WHO`.
struct Row {
    operation: &'static str,
    packet: &'static str,
    at_most: f64,
    counts: [u64; 3],
}

fn count(packet: &'static str) -> Result<Vec<Row>, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let file = PathBuf::from(format!("{}.callgrind", program.display()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--demangle=no", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .env(INNER, packet)
        .output()
        .map_err(|error| format!("valgrind counts the instructions, and does not start: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let profile = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let costs = callee_costs(&profile);
    cases::of(packet).iter().map(|case| row(case, &costs)).collect()
}

fn row(case: &Case, costs: &HashMap<&str, u64>) -> Result<Row, String> {
    let mut counts = [0; 3];
    for (count, caller) in counts.iter_mut().zip(case.callers) {
        // A mangled name has the function's own name in it, behind its length.
        let name = format!("{}{caller}", caller.len());
        let found = costs.iter().find(|(function, _)| function.contains(&name));
        *count = *found.ok_or_else(|| format!("callgrind saw no call from {caller}"))?.1;
    }
    Ok(Row { operation: case.operation, packet: case.packet, at_most: case.at_most, counts })
}

/// For each function, what the functions that it called cost. In callgrind's format `fn=` starts a function;
/// `calls=` says that a call follows, and the line after that ends in its whole cost.
fn callee_costs(profile: &str) -> HashMap<&str, u64> {
    let mut costs = HashMap::new();
    let mut function = "";
    let mut lines = profile.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name;
        } else if line.starts_with("calls=") {
            let cost = lines.next().and_then(|cost| cost.split(' ').next_back()?.parse::<u64>().ok());
            *costs.entry(function).or_insert(0) += cost.unwrap_or(0);
        }
    }
    costs
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from("| operation | packet | codec | C overlay | floor | codec / overlay |\n");
    text += "| --- | --- | ---: | ---: | ---: | ---: |\n";
    for row in rows {
        let Row { operation, packet, counts: [codec, overlay, floor], .. } = row;
        let ratio = *codec as f64 / *overlay as f64;
        text += &format!("| {operation} | {packet} | {codec} | {overlay} | {floor} | {ratio:.2} |\n");
    }
    text
}

/// Returns the complaints about a row.
fn complaints(row: &Row, committed: &str) -> Vec<String> {
    let Row { operation, packet, at_most, counts: [codec, overlay, _] } = row;
    let mut wrong = Vec::new();
    let start = format!("| {operation} | {packet} | ");
    let before =
        committed.lines().find_map(|line| line.strip_prefix(&start)?.split(' ').next()?.parse::<u32>().ok());
    match before {
        None => wrong.push(format!("{operation}, {packet}: not in benches/instructions.txt")),
        Some(before) if *codec as f64 > tolerated(before.into()) => {
            wrong.push(format!(
                "{operation}, {packet}: {codec} instructions, {before} in benches/instructions.txt"
            ));
        }
        Some(_) => {}
    }
    if *codec as f64 > tolerated(*overlay as f64 * at_most) {
        wrong.push(format!(
            "{operation}, {packet}: {codec} instructions, {at_most} times the overlay's {overlay} are allowed"
        ));
    }
    wrong
}
