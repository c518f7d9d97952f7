//! `uet simulate`: its input and output.

use crate::common;

use common::{file, uet};
use serde_json::Value;

#[test]
fn the_table() {
    let run =
        uet(&["simulate", "--pattern", "incast", "--senders", "4", "--size", "400KB", "--warm-up", "50us"]);
    assert_eq!(run.code, 0, "{}", run.err);
    insta::assert_snapshot!(run.out);
}

#[test]
fn outcome_as_json() {
    let json = |seed: &str| {
        let args =
            ["simulate", "--pattern", "permutation", "--hosts", "8", "--leaves", "2", "--size", "100KB"];
        let run = uet(&[&args[..], &["--format", "json", "--seed", seed]].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        serde_json::from_str::<Value>(&run.out).unwrap()
    };
    let outcome = json("3");
    assert_eq!(outcome, json("3"));
    assert_ne!(outcome, json("4"));
    assert_eq!(outcome["counted"]["delivered"], 800_000);
    assert_eq!(outcome["flows"].as_array().unwrap().len(), 8);
    assert!(outcome["completion"]["max"].as_u64() >= outcome["completion"]["median"].as_u64());
}

#[test]
fn file_equals_flags_and_flags_override_it() {
    let scenario = file(
        "incast.toml",
        b"pattern = \"incast\"\nsenders = 3\nsize = 50_000\nrate = \"200Gb/s\"\ncongestion = \"both\"\necn = \"off\"\n\
          trimming = true\nfail = [\"spine 0 at 1ms\"]\n",
    );
    let run = uet(&["simulate", &scenario, "--senders", "2"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.starts_with("2 to 1, 50.0 KB each; 3 hosts on a switch; 200 Gb/s, "), "{}", run.out);
    assert!(run.out.contains("NSCC and RCCC"), "{}", run.out);
}

#[test]
fn a_connection_matrix_is_read_beside_the_file_that_names_it() {
    file(
        "two.cm",
        b"Nodes 3\nConnections 2\n0->2 id 1 start 0 size 20000\n1->2 id 2 start 1000000 size 20000\n",
    );
    let scenario = file("matrix.toml", b"matrix = \"two.cm\"\n");
    let run = uet(&["simulate", &scenario]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.starts_with("2 flows of a connection matrix; 3 hosts on a switch"), "{}", run.out);
}

#[test]
fn series_and_plots() {
    let folder = file("plots.txt", b"").replace("plots.txt", "plots");
    let csv = file("series.csv", b"");
    let args =
        ["simulate", "--pattern", "incast", "--senders", "3", "--size", "200KB", "--congestion", "both"];
    let run = uet(&[&args[..], &["--csv", &csv, "--plots", &folder]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let series = std::fs::read_to_string(csv).unwrap();
    let columns = |line: &str| line.split(',').count();
    let mut lines = series.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("time_us,delivered_bytes,new,again,last_hop_queue_bytes"), "{header}");
    assert_eq!(columns(header), 6 + 3 * 4);
    assert!(lines.clone().count() > 20 && lines.all(|line| columns(line) == columns(header)));
    for name in ["window", "in-flight", "credit", "queue", "rate", "retransmissions", "completion"] {
        let svg = std::fs::read_to_string(format!("{folder}/{name}.svg")).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("<polyline"), "{name}");
    }
}

#[test]
fn incomplete_flows_are_reported() {
    let run = uet(&["simulate", "--size", "2MB", "--until", "20us"]);
    assert_eq!(run.code, 3);
    assert!(run.out.contains("0 of 1 flows"), "{}", run.out);
}

#[test]
fn invalid_settings_are_refused_by_name() {
    for (content, error) in [
        ("senders = 3\n", "senders: only the pattern incast has this setting"),
        (
            "pattern = \"incast\"\nhosts = 4\nsenders = 4\n",
            "senders: 1 to 3, since one of the 4 hosts receives",
        ),
        ("topology = \"leaf-spine\"\nhosts = 10\n", "leaves: 10 hosts do not divide evenly among 4 leaves"),
        (
            "topology = \"single\"\nspines = 4\n",
            "leaves, spines: the selected topology does not have this setting",
        ),
        ("mtu = 1500\n", "mtu: must be 1024, 2048, 4096 or 8192"),
        ("color = 3\n", "unknown field `color`"),
        ("size = \"2 parsecs\"\n", "'2 parsecs' is not a size, such as 2MB, 64KiB or 1500"),
        ("rate = true\n", "expected a string or a number"),
        ("pattern = \"incst\"\n", "unknown variant `incst`"),
        ("fail = [\"spine 0\"]\n", "expected 'at 100us' or 'at 100us until 1ms' after 'spine 0'"),
        ("fail = [\"spine 9 at 1us\"]\n", "fail: there is no spine 9"),
        (
            "ecn = \"0.8..0.2\"\n",
            "ecn: must be a depth from 0.01 to 1,000 Plane_BDP, or two, the lower one first",
        ),
        ("matrix = \"nowhere.cm\"\n", "nowhere.cm: No such file"),
        ("seed = \n", "line 1"),
    ] {
        let run = uet(&["simulate", &file("wrong.toml", content.as_bytes())]);
        assert_eq!(run.code, 2, "{content}: {}", run.out);
        assert!(run.err.contains(error), "{content}: {}", run.err);
    }
    let matrix = file("wrong.cm", b"Nodes 2\n0->3 start 0 size 1\n");
    let run = uet(&["simulate", "--matrix", &matrix]);
    assert!(run.err.ends_with("wrong.cm: line 2: node 3 is beyond the 2 nodes\n"), "{}", run.err);
}
