//! Instructions by operation, counted under callgrind: exact, the same on every run, and so compared.
//!
//! `cargo bench -p uet-wire --bench instructions` counts, prints the table and compares it with
//! `benches/instructions.txt`; it fails when the codec needs more than that table says, by more than a small
//! tolerance (compilers differ), or more than the overlay. With `-- --accept` it writes the table instead.
//!
//! How: valgrind runs this program again, once for each packet, and callgrind writes down what every function
//! cost together with all that it called. Each operation stands in a function that does nothing but call it
//! (see `cases`), so its cost is what that function's callees cost. Entry and return are in it, the loop around is not.

mod cases;

use cases::{Case, PACKETS, WHO};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

/// How far above the committed table a count may be: 3 %, and one instruction.
const TOLERANCE: (u64, u64) = (3, 1);
/// Which packet to run, in the process under valgrind.
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
        // Under `cargo test` nothing is optimised, and a count says nothing: check that all operations work.
        PACKETS.into_iter().flat_map(cases::of).for_each(|mut case| (case.run)(0));
        return ExitCode::SUCCESS;
    }
    let counted = match PACKETS.into_iter().map(count).collect::<Result<Vec<_>, _>>() {
        Ok(counted) => table(&counted.concat()),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    print!("{counted}");
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    if env::args().any(|argument| argument == "--accept") {
        return match fs::write(&committed, counted) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&format!("{}: {error}", committed.display())),
        };
    }
    match fs::read_to_string(&committed) {
        Ok(before) => compare(&before, &counted),
        Err(error) => complain(&format!("{}: {error}", committed.display())),
    }
}

fn complain(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::FAILURE
}

/// Operation, packet, and the instructions of each of `WHO`.
type Row = (&'static str, &'static str, [u64; 3]);

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
    Ok((case.operation, case.packet, counts))
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
    let mut operations: Vec<_> = rows.iter().map(|(operation, ..)| operation).collect();
    operations.dedup();
    operations.truncate(rows.len() / PACKETS.len());
    for operation in operations {
        for (_, packet, [codec, overlay, floor]) in rows.iter().filter(|row| row.0 == *operation) {
            let ratio = *codec as f64 / *overlay as f64;
            text += &format!("| {operation} | {packet} | {codec} | {overlay} | {floor} | {ratio:.2} |\n");
        }
    }
    text
}

/// The rows of a table: what is measured, and the counts.
fn parse(table: &str) -> impl Iterator<Item = (String, [u64; 2])> + '_ {
    table.lines().filter_map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, operation, packet, codec, overlay, ..] = cells[..] else { return None };
        Some((format!("{operation}: {packet}"), [codec.parse().ok()?, overlay.parse().ok()?]))
    })
}

fn compare(before: &str, now: &str) -> ExitCode {
    let before: HashMap<_, _> = parse(before).collect();
    let mut fine = true;
    for (what, [codec, overlay]) in parse(now) {
        match before.get(&what) {
            None => {
                fine = false;
                eprintln!("{what}: not in the committed table");
            }
            Some([allowed, _]) if codec > allowed + allowed * TOLERANCE.0 / 100 + TOLERANCE.1 => {
                fine = false;
                eprintln!("{what}: {codec} instructions, {allowed} in the committed table");
            }
            _ => {}
        }
        if codec > overlay {
            fine = false;
            eprintln!("{what}: {codec} instructions, {overlay} by the C overlay");
        }
    }
    if fine {
        ExitCode::SUCCESS
    } else {
        complain("cargo bench -p uet-wire --bench instructions -- --accept  writes the table anew")
    }
}
