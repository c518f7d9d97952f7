//! Tables in Parquet files.

use crate::common::uet;
use std::path::Path;

const LEARN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/captures/learn");

#[cfg(not(feature = "parquet"))]
#[test]
fn program_without_parquet_names_the_feature() {
    let capture = format!("{LEARN}/write.pcapng");
    for command in ["decode", "check"] {
        let run = uet(&[command, "--format", "parquet", "-o", "tables", &capture]);
        assert_eq!(run.code, 2);
        assert!(run.err.contains("`--features parquet`"), "{}", run.err);
        assert!(!Path::new("tables").exists());
    }
}

#[cfg(feature = "parquet")]
mod written {
    use super::*;
    use crate::common::file;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::fs::{self, File};
    use std::path::PathBuf;
    use uet_cli::tables::{TableColumn, schemas};

    type Row = BTreeMap<String, Value>;

    fn directory(name: &str) -> PathBuf {
        let directory = Path::new(&file("mark", b"")).with_file_name(name);
        let _ = fs::remove_dir_all(&directory);
        directory
    }

    /// Returns the rows of a table. Reads the values as JSON, and times as nanoseconds.
    fn rows(directory: &Path, table: &str) -> Vec<Row> {
        let reader =
            SerializedFileReader::new(File::open(directory.join(format!("{table}.parquet"))).unwrap());
        let reader = reader.unwrap();
        let value = |field: &Field| match field {
            Field::Null => Value::Null,
            Field::Bool(value) => json!(value),
            Field::Int(value) => json!(value),
            Field::Long(value) => json!(value),
            Field::Str(value) => json!(value),
            other => panic!("{other:?}"),
        };
        let row = |row: parquet::record::Row| {
            row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
        };
        reader.get_row_iter(None).unwrap().map(|read| row(read.unwrap())).collect()
    }

    fn check(capture: &str, name: &str) -> PathBuf {
        let directory = directory(name);
        let run = uet(&["check", "--format", "parquet", "-o", directory.to_str().unwrap(), capture]);
        assert_eq!(run.err, "");
        directory
    }

    fn number(row: &Row, column: &str) -> i64 {
        row[column].as_i64().unwrap_or_else(|| panic!("{column}: {row:?}"))
    }

    #[test]
    fn packets_have_the_values_of_their_json() {
        let captures =
            ["loss", "incast", "rendezvous", "secured", "close"].map(|name| format!("{LEARN}/{name}.pcapng"));
        let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/pcap/headers.pcapng").to_owned();
        for capture in captures.into_iter().chain([vectors]) {
            let directory = directory("same");
            let run =
                uet(&["decode", "--format", "parquet", "--output", directory.to_str().unwrap(), &capture]);
            assert_eq!((&*run.out, &*run.err), ("", ""));
            let tables = rows(&directory, "packets");
            let lines = uet(&["decode", "--format", "json", &capture]).out;
            assert_eq!(tables.len(), lines.lines().count());
            for (row, line) in tables.iter().zip(lines.lines()) {
                let packet: Value = serde_json::from_str(line).unwrap();
                for section in ["fields", "derived"] {
                    for (name, value) in packet[section].as_object().unwrap() {
                        if let Some(cell) = row.get(&name.replace('.', "_")) {
                            let cell =
                                cell.as_bool().map_or_else(|| cell.clone(), |flag| json!(i64::from(flag)));
                            assert_eq!(&cell, value, "{name} of {line}");
                        }
                    }
                }
                for (name, value) in packet["names"].as_object().unwrap() {
                    if let Some(cell) = row.get(&format!("{}_name", name.replace('.', "_"))) {
                        assert_eq!(cell, value, "{name} of {line}");
                    }
                }
                // A cell without a field is null.
                let has = |section: &str, column: &str| {
                    let keys = packet[section].as_object().unwrap().keys();
                    keys.into_iter().any(|key| key.replace('.', "_") == column)
                };
                for (column, cell) in
                    row.iter().filter(|(column, _)| column.starts_with("pds_") || column.starts_with("ses_"))
                {
                    let there = match column.strip_suffix("_name") {
                        Some(code) => has("names", code),
                        None => has("fields", column) || has("derived", column),
                    };
                    assert_eq!(there, !cell.is_null(), "{column} of {line}");
                }
                for key in ["number", "src", "dst"] {
                    assert_eq!(row[key], packet[key]);
                }
                assert_eq!(row["trimmed"], json!(!packet["trimmed"].is_null()));
                assert_eq!(row["payload_length"], json!(packet["payload"]["length"].as_i64().unwrap_or(0)));
            }
        }
    }

    #[test]
    fn documentation_lists_the_columns() {
        let page =
            fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/analysis.md")).unwrap();
        for (table, columns) in schemas() {
            let section = page.split(&format!("\n### {table}\n")).nth(1).unwrap_or_default();
            let section = section.split("\n## ").next().unwrap().split("\n### ").next().unwrap();
            let expected: String = columns
                .iter()
                .map(|TableColumn { name, kind, doc }| format!("| `{name}` | {} | {doc} |\n", kind.name()))
                .collect();
            let rows: String = section
                .lines()
                .filter(|line| line.starts_with("| `"))
                .map(|line| format!("{line}\n"))
                .collect();
            assert!(rows == expected, "docs/analysis.md, {table}: replace the rows with\n{expected}");
        }
    }

    #[test]
    fn context_is_written_with_all_its_packets() {
        let tables = check(&format!("{LEARN}/close.pcapng"), "close");
        let contexts = rows(&tables, "contexts");
        assert_eq!(contexts.len(), 2);
        let first = &contexts[0];
        let counts =
            ["context", "first_number", "last_number", "closed_number", "requests", "acks", "controls"];
        assert_eq!(counts.map(|column| number(first, column)), [1, 1, 6, 6, 1, 3, 2]);
        assert_eq!((&first["initiator"], &first["mode"]), (&json!("10.5.0.1"), &json!("RUD")));
        let of: Vec<i64> = rows(&tables, "packets").iter().map(|row| number(row, "context")).collect();
        assert_eq!(of, [1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn open_context_is_written_at_the_end() {
        let tables = check(&format!("{LEARN}/loss.pcapng"), "loss");
        let contexts = rows(&tables, "contexts");
        assert_eq!(contexts.len(), 1);
        assert_eq!(contexts[0]["closed_number"], Value::Null);
        assert_eq!(number(&contexts[0], "last_number"), 26);
        let packets = rows(&tables, "packets");
        let retransmissions =
            packets.iter().filter(|row| row["pds_flags_retx"] == json!(true) && !row["pds_psn"].is_null());
        assert_eq!(number(&contexts[0], "retransmissions"), retransmissions.count() as i64);
    }

    #[test]
    fn message_lasts_until_its_last_packet_is_acknowledged() {
        let tables = check(&format!("{LEARN}/write.pcapng"), "write");
        let messages = rows(&tables, "messages");
        assert_eq!(messages.len(), 1);
        let message = &messages[0];
        let numbers =
            ["first_number", "last_number", "end_number", "packets", "ses_request_length", "duration_ns"];
        assert_eq!(numbers.map(|column| number(message, column)), [1, 4, 8, 4, 16384, 5193 - 337]);
        assert_eq!((&message["complete"], &message["ses_opcode_name"]), (&json!(true), &json!("UET_WRITE")));
        assert_eq!(message["ses_return_code_name"], json!("OK"));
    }

    #[test]
    fn findings_are_those_of_the_json() {
        let frames = [
            crate::common::write(),
            crate::common::forbidden(),
            crate::common::odd(),
            crate::common::malformed(),
        ];
        let capture = file("bad.pcap", &crate::common::capture::simple(&frames));
        let directory = directory("bad");
        let run = uet(&["check", "--format", "parquet", "-o", directory.to_str().unwrap(), &capture]);
        assert_eq!(run.code, 1);
        let lines = uet(&["check", "--format", "json", &capture]).out;
        let expected: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let found = rows(&directory, "findings");
        assert_eq!(found.len(), expected.len() - 1, "the last line is the summary");
        assert!(!found.is_empty());
        for (row, expected) in found.iter().zip(&expected) {
            for key in ["number", "id", "severity", "culprit", "message"] {
                assert_eq!(row[key], expected[key]);
            }
            assert_eq!(row["with_number"], expected["with"]);
        }
    }

    #[test]
    fn packets_before_an_error_are_kept() {
        let whole = fs::read(format!("{LEARN}/write.pcapng")).unwrap();
        let capture = file("cut.pcapng", &whole[..whole.len() - 40]);
        let directory = directory("cut");
        let run = uet(&["decode", "--format", "parquet", "-o", directory.to_str().unwrap(), &capture]);
        assert_eq!(run.code, 2);
        assert!(run.err.contains("cut.pcapng"), "{}", run.err);
        let lines = uet(&["decode", "--format", "json", &capture]).out.lines().count();
        assert!(lines > 0);
        assert_eq!(rows(&directory, "packets").len(), lines);
    }

    #[test]
    fn option_without_the_format_is_an_error() {
        let capture = format!("{LEARN}/write.pcapng");
        for (args, message) in [
            (vec!["decode", "-o", "tables", &capture], "--output is for"),
            (vec!["check", "--format", "parquet", &capture], "--output DIRECTORY"),
        ] {
            let run = uet(&args);
            assert_eq!(run.code, 2);
            assert!(run.err.contains(message), "{}", run.err);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn killed_program_leaves_no_table() {
        use std::process::{Command, Stdio};
        let directory = directory("killed");
        let mut child = Command::new(env!("CARGO_BIN_EXE_uet"))
            .args(["decode", "--format", "parquet", "-o", directory.to_str().unwrap(), "-"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let is_begun = || fs::read_dir(&directory).is_ok_and(|mut files| files.next().is_some());
        let begun = std::time::Instant::now();
        while !is_begun() {
            assert!(begun.elapsed() < crate::common::ENDLESS, "no table is begun");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!directory.join("packets.parquet").exists());
    }
}
