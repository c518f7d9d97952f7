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
          trimming = true\nfail = [\"host 1 at 1ms\"]\n",
    );
    let run = uet(&["simulate", &scenario, "--senders", "2"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.starts_with("2 to 1, 50.0 KB each; 3 hosts on a switch; 200 Gb/s, "), "{}", run.out);
    assert!(run.out.contains("NSCC and RCCC"), "{}", run.out);
}

#[test]
fn failures_are_named_also_those_after_the_last_flow() {
    let run = uet(&["simulate", "--size", "20KB", "--fail", "host 1 at 5ms", "--seeds", "1..2"]);
    assert!(run.out.contains("; host 1 fails at 5.00 ms\n"), "{}", run.out);
    assert_eq!(run.err, "uet: host 1 fails at 5.00 ms: no effect, because a run ended earlier\n");
    let slowed = "host 1 slowed to 50% at 0us";
    let run = uet(&["simulate", "--size", "20KB", "--fail", slowed, "--format", "json"]);
    let outcome: Value = serde_json::from_str(&run.out).unwrap();
    let fault = serde_json::json!([{"part": "host 1", "percent": 50, "at": 0, "until": null, "begun": true}]);
    assert_eq!(outcome["faults"], fault, "{}", run.err);
    assert!(outcome["scenario"].as_str().unwrap().contains("; host 1 slowed to 50 % at 0 ns; seed"));
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
    let both = uet(&[&args[..], &["--csv", "-", "--format", "json"]].concat());
    assert!(both.code == 2 && both.err.contains("--format json, --csv -: "), "{}", both.err);
    let to_stdout = uet(&[&args[..], &["--csv", "-"]].concat());
    assert_eq!(to_stdout.out, series);
    let mut lines = series.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("time_us,delivered_bytes,new,again,last_hop_queue_bytes"), "{header}");
    assert_eq!(columns(header), 8 + 3 * 4);
    assert!(lines.clone().count() > 20 && lines.all(|line| columns(line) == columns(header)));
    for name in
        ["window", "in-flight", "credit", "queue", "utilization", "rate", "retransmissions", "completion"]
    {
        let svg = std::fs::read_to_string(format!("{folder}/{name}.svg")).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("<polyline"), "{name}");
    }
    let utilization = std::fs::read_to_string(format!("{folder}/utilization.svg")).unwrap();
    assert!(utilization.contains("mean over all links") && utilization.contains("all 4 last hops"));
    assert!(run.out.lines().any(|line| line.split_whitespace().eq(["marked", "-", "-"])), "{}", run.out);
}

#[test]
fn algorithms_are_compared_side_by_side() {
    let args = ["simulate", "--pattern", "incast", "--senders", "3", "--size", "400KB", "--warm-up", "50us"];
    let with = |options: &[&str]| uet(&[&args[..], options].concat());
    let folder = file("compare.txt", b"").replace("compare.txt", "compare");
    let run = with(&["--congestion", "nscc,rccc,both", "--plots", &folder]);
    assert_eq!(run.code, 0, "{}", run.err);
    let row = |name: &str| {
        let line =
            run.out.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{}", run.out));
        line[18..].split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("                  "), ["NSCC", "RCCC", "both"]);
    assert!(run.out.contains("; NSCC, RCCC, both together, "), "{}", run.out);
    assert_eq!(row("completed flows"), ["3", "3", "3"]);
    assert_eq!(row("completion, median").len(), 6, "a number and a unit for each");
    // Receivers that grant credit control the last hop, and it does not mark.
    assert!(row("marked")[0] != "-" && row("marked")[1..] == ["-", "-"], "{:?}", row("marked"));
    for name in ["queue", "utilization", "rate", "completion"] {
        let svg = std::fs::read_to_string(format!("{folder}/{name}.svg")).unwrap();
        for line in ["NSCC", "RCCC", "both"] {
            assert!(svg.lines().any(|text| text.trim() == line), "{name} {line}");
        }
    }
    // Each run is the one that the algorithm alone gives.
    let json = with(&["--congestion", "nscc,rccc,both", "--format", "json"]).out;
    let alone = |algorithm| with(&["--congestion", algorithm, "--format", "json"]).out;
    assert_eq!(json, ["nscc", "rccc", "both"].map(alone).concat());
    let retransmitted = |line| serde_json::from_str::<Value>(line).unwrap()["counted"]["again"].to_string();
    assert_eq!(row("retransmitted"), json.lines().map(retransmitted).collect::<Vec<_>>());
}

#[test]
fn several_algorithms_need_an_output_that_shows_several_runs() {
    let csv = file("several.csv", b"");
    for (options, error) in [
        (["--congestion", "nscc,rccc", "--csv", &csv], "congestion: only one run is possible here"),
        (["--congestion", "nscc,nscc", "--size", "4KB"], "nscc is there twice"),
        (["--congestion", "nscc,reno", "--size", "4KB"], "none, nscc, rccc or both"),
    ] {
        let run = uet(&[&["simulate"], &options[..]].concat());
        assert!(run.code == 2 && run.err.contains(error), "{options:?}: {}", run.err);
    }
}

#[test]
fn flows_that_do_not_overlap_have_no_steady_state() {
    let args = ["simulate", "--pattern", "ring-all-reduce", "--hosts", "8", "--size", "4MB"];
    let run = uet(&[&args[..], &["--format", "json"]].concat());
    let outcome: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(outcome["steady"], Value::Null);
    let run = uet(&args);
    assert!(run.out.lines().any(|line| line.split_whitespace().eq(["utilization", "-", "-"])), "{}", run.out);
    // A comparison shows the operation, which takes longer than its flows.
    let columns = |out: &str| -> Vec<String> {
        let line =
            out.lines().find(|line| line.starts_with("ring-all-reduce ")).unwrap_or_else(|| panic!("{out}"));
        line.split_whitespace().map(ToOwned::to_owned).collect()
    };
    let compared = uet(&[&args[..], &["--congestion", "nscc,rccc"]].concat()).out;
    assert_eq!(columns(&compared)[..3], columns(&run.out)[..3], "{compared}");
}

#[test]
fn incomplete_flows_are_reported() {
    let run = uet(&["simulate", "--size", "2MB", "--until", "20us"]);
    assert_eq!(run.code, 3);
    assert!(run.out.contains("0 of 1 flow\n"), "{}", run.out);
}

#[test]
fn an_estimate_without_a_bound_is_none() {
    let args =
        ["simulate", "--pattern", "incast", "--senders", "1000", "--until", "10us", "--warm-up", "5us"];
    let run = uet(&args);
    assert!(run.out.ends_with("\n estimate                    -        none\n"), "{}{}", run.out, run.err);
    let outcome: Value =
        serde_json::from_str(&uet(&[&args[..], &["--format", "json"]].concat()).out).unwrap();
    assert_eq!(outcome["retransmission_estimate"], Value::Null);
}

#[test]
fn invalid_settings_are_refused_by_name() {
    for (content, error) in [
        ("senders = 3\n", "senders: only the pattern incast has this setting"),
        (
            "pattern = \"incast\"\nhosts = 4\nsenders = 4\n",
            "senders: must be at least 1 and at most 3: one of the 4 hosts receives",
        ),
        ("pattern = \"incast\"\nsenders = 0\n", "senders: must be from 1 to 65,535"),
        ("pattern = \"incast\"\nsenders = 65_536\n", "senders: must be from 1 to 65,535"),
        ("topology = \"leaf-spine\"\nhosts = 10\n", "leaves: 10 hosts do not divide evenly among 4 leaves"),
        (
            "topology = \"single\"\nspines = 4\n",
            "leaves, spines: the selected topology does not have this setting",
        ),
        ("mtu = 1500\n", "mtu: must be 1024, 2048, 4096 or 8192"),
        ("mtu = 70_000\n", "mtu: must be 1024, 2048, 4096 or 8192"),
        ("rate = \"1kb/s\"\n", "rate: must be from 1 Gb/s to 10 Tb/s"),
        ("rate = \"1b/s\"\n", "rate: must be from 1 Gb/s to 10 Tb/s"),
        ("color = 3\n", "unknown field `color`"),
        ("size = \"2 parsecs\"\n", "'2 parsecs' is not a size in whole bytes, such as 2MB, 64KiB or 1500"),
        ("size = 1.5\n", "'1.5' is not a size in whole bytes"),
        ("latency = \"0.5ns\"\n", "'0.5ns' is not a time in whole nanoseconds, such as 14us or 1.5ms"),
        ("rate = true\n", "expected a string or a number"),
        ("pattern = \"incst\"\n", "unknown variant `incst`"),
        ("fail = [\"spine 0\"]\n", "expected 'at 100us' or 'at 100us until 1ms' after 'spine 0'"),
        ("fail = [\"spine 0 at 2us until 1us\"]\n", "the failure of 'spine 0' must end after it begins"),
        ("leaves = 4\nfail = [\"spine 9 at 1us\"]\n", "fail: there is no spine 9\n"),
        ("fail = [\"spine 0 at 1us\"]\n", "fail: there is no spine 0: the fabric is a single switch"),
        ("fail = [\"host 16 slowed to 5% at 1us\"]\n", "fail: there is no host 16"),
        (
            "fail = [\"host 1 at 1us\", \"host 1 slowed to 5% at 2us until 3us\"]\n",
            "fail: host 1 has two failures at the same time",
        ),
        ("fail = [\"host 1 slowed to 100% at 1us\"]\n", "expected a percentage from 1% to 99%"),
        ("ecn = \"0.8..0.2\"\n", "ecn: must be a depth from 0.01 to 1,000 BDP, or two, the lower one first"),
        ("path-values = 0\n", "path-values: must be from 1 to 4,096"),
        ("path-values = 70_000\n", "path-values: must be from 1 to 4,096"),
        (
            "base-rtt = \"1ns\"\n",
            "base-rtt: at this rate, the window of 1.5 BDP must be from a full packet to 2^40 bytes",
        ),
        (
            "base-rtt = \"1s\"\ncongestion = \"rccc\"\n",
            "base-rtt: at this rate, the window of 1.5 BDP must be from 1 byte to 512 MiB",
        ),
        ("until = \"0us\"\n", "until: must be above 0, and at most 1 h"),
        ("rto = \"1ns\"\n", "rto: must be at least 4687 ns, a round trip without queues"),
        ("timeout-rest = 5\n", "timeout-rest: only the path selection bitmap has this setting"),
        (
            "paths = \"single\"\npath-values = 5\n",
            "path-values: the path selection single does not have this setting",
        ),
        ("warm-up = \"2s\"\n", "warm-up: must be less than until"),
        ("trimming = false\ntrim-at = 2\n", "trim-at: only switches with trimming have this setting"),
        ("trimming = false\nweighted = true\n", "weighted: only switches with trimming have this setting"),
        ("trim-at = 2\ndrop-at = 1\n", "drop-at: only switches without trimming have this setting"),
        ("trimming = false\ndrop-at = 0.1\n", "drop-at: must be from 1 to 1,000 BDP"),
        ("trim-again-at = 0.0\n", "trim-again-at: must be from 0.01 to 1,000 BDP"),
        ("trim-size = 10\n", "trim-size: must be from 24 to 256 bytes behind the IP header"),
        ("trim-size = 70_000\n", "trim-size: must be from 24 to 256 bytes behind the IP header"),
        ("size = \"4GiB\"\n", "size: must be at least 1 byte, and less than 4 GiB"),
        ("size = \"1TB\"\n", "size: must be at least 1 byte, and less than 4 GiB"),
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

#[test]
fn a_workload_has_jobs_and_flows_that_wait_for_each_other() {
    file("sizes.cdf", b"100 0\n200000 100\n");
    file(
        "workload.toml",
        b"[[job]]\nname = \"train\"\npattern = \"ring-all-reduce\"\nhosts = \"0..3\"\nsize = \"400KB\"\nrounds = 2\ngap = \"5us\"\n\
          [[job]]\npattern = \"random\"\nsizes = \"sizes.cdf\"\nload = 0.2\nspan = \"100us\"\nclass = 1\n\
          [[job]]\npattern = \"storage\"\nservers = [6, 7]\nhosts = \"4..7\"\nsize = 65536\noperations = 3\n\
          [[flow]]\nname = \"a\"\nfrom = 0\nto = 7\nsize = 4096\n\
          [[flow]]\nfrom = 7\nto = 0\nsize = 4096\nafter = [\"a\"]\ngap = \"10us\"\n",
    );
    let scenario = file("uses_workload.toml", b"workload = \"workload.toml\"\nleaves = 2\n");
    let run = uet(&["simulate", &scenario, "--format", "json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let outcome: Value = serde_json::from_str(&run.out).unwrap();
    let names: Vec<&str> =
        outcome["jobs"].as_array().unwrap().iter().filter_map(|job| job["name"].as_str()).collect();
    assert_eq!(names, ["train", "random", "storage", "flows"]);
    assert_eq!(outcome["jobs"][0]["flows"], 2 * 4 * 6);
    assert!(outcome["jobs"][0]["slowdown"].as_f64() >= Some(1.0), "{}", outcome["jobs"][0]);
    let flows = outcome["flows"].as_array().unwrap();
    let [first, second] = &flows[flows.len() - 2..] else { panic!() };
    let arrived = first["started"].as_u64().unwrap() + first["received"].as_u64().unwrap();
    let wait = second["started"].as_u64().unwrap() - arrived;
    assert!((10_000..=10_002).contains(&wait), "{wait}");
    assert!(outcome["sizes"].as_array().unwrap().len() > 1, "{}", outcome["sizes"]);

    let run = uet(&["simulate", &scenario]);
    assert!(run.out.starts_with("train, random, storage, flows: "), "{}", run.out);
    assert!(run.out.contains("times ideal") && run.out.contains("below 10.0 KB"), "{}", run.out);
}

#[test]
fn patterns_of_collectives_and_goal_schedules_need_no_workload() {
    let run = uet(&["simulate", "--pattern", "all-to-all", "--hosts", "6", "--open", "2", "--size", "20KB"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.starts_with("all-to-all: 30 flows; 6 hosts on a switch"), "{}", run.out);
    let run = uet(&["simulate", "--pattern", "tree-all-reduce", "--hosts", "4", "--size", "40KB"]);
    assert!(run.out.starts_with("tree-all-reduce: 6 flows"), "{}{}", run.out, run.err);
    let goal =
        file("two.goal", b"num_ranks 2\nrank 0 {\nl1: send 10b to 1\n}\nrank 1 {\nl1: recv 10b from 0\n}\n");
    let run = uet(&["simulate", "--goal", &goal]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.starts_with("goal: 1 flow; 2 hosts"), "{}", run.out);
}

#[test]
fn invalid_workloads_are_refused_by_file_and_line() {
    let job = "[[job]]\npattern = ";
    let storage = format!("{job}\"storage\"\nservers = [0]\nsize = 1\n");
    for (content, error) in [
        ("", "wrong_workload.toml: expected a [[job]] or a [[flow]]"),
        ("[[job]]\n\n", "wrong_workload.toml: line 1: '' is no pattern of a job"),
        (&format!("hosts = 4\n\n{job}\"all-gather\"\n"), "line 3: the pattern all-gather needs a size"),
        (
            &format!("{job}\"all-gather\"\nsize = 1\nload = 0.5\n"),
            "line 1: the pattern all-gather has no setting load",
        ),
        (&format!("{job}\"random\"\nsize = 1\nload = 0\n"), "line 1: load: must be above 0, and at most 1"),
        (
            &format!("{job}\"random\"\n"),
            "line 1: the pattern random needs either a size, or a distribution named by sizes",
        ),
        (&format!("{job}\"random\"\nsizes = \"nowhere\"\n"), "nowhere: No such file"),
        (
            &format!("{job}\"random\"\nsize = 1\ngap = \"1us\"\n"),
            "line 1: the pattern random has no setting gap",
        ),
        (
            &format!("hosts = 4\n{job}\"random\"\nsize = \"1MB\"\nspan = \"1us\"\nload = 0.01\n"),
            "line 2: load: this load and this time make no flow",
        ),
        (&format!("{storage}rounds = 2\n"), "line 1: the pattern storage has no setting rounds"),
        (
            &format!("hosts = 4\n{storage}straggler = 0\nstraggler-gap = \"1us\"\n"),
            "line 2: straggler: must be a client: servers do not compute",
        ),
        (
            &format!("{storage}reads = 1.0\ncopies = 1\n"),
            "line 1: copies: no effect without writes, because reads is 1",
        ),
        (&format!("{job}\"all-gather\"\nsize = 1\nhosts = \"7..\"\n"), "expected hosts, such as"),
        (&format!("{job}\"all-gather\"\nsize = 1\nhosts = \"7..0\"\n"), "ranges rise"),
        (&format!("{job}\"all-gather\"\nsize = 1\nhosts = []\n"), "invalid length 0, expected hosts"),
        (
            &format!("hosts = 8\n{job}\"all-gather\"\nsize = 1\nhosts = \"0..3, 9\"\n"),
            "line 2: hosts: there is no host 9: the network has 8 hosts",
        ),
        (
            &format!("{job}\"all-gather\"\nsize = 1\nstraggler = 1\n"),
            "line 1: straggler, straggler-gap: one has no effect without the other",
        ),
        (
            &format!("{job}\"all-gather\"\nsize = 1\nhosts = \"1..1\"\n"),
            "line 1: hosts: a job needs at least 2 of the 2 hosts",
        ),
        (&format!("{job}\"all-gather\"\nsize = 1\ncolor = 1\n"), "unknown field `color`"),
        ("\n[[flow]]\nto = 1\n", "line 2: the flow has no size"),
        ("[[flow]]\nto = 1\nsize = 1\nafter = [\"b\"]\n", "line 1: no flow above has the name 'b'"),
        ("[[flow]]\nsize = 1\n", "line 1: flow: host 0 sends to itself"),
        (
            "[[flow]]\nto = 1\nsize = 1\nname = \"a\"\n[[flow]]\nto = 1\nsize = 1\nname = \"a\"\n",
            "line 5: a flow above has the name 'a' too",
        ),
    ] {
        let run = uet(&["simulate", "--workload", &file("wrong_workload.toml", content.as_bytes())]);
        assert_eq!(run.code, 2, "{content}: {}", run.out);
        assert!(run.err.contains(error), "{content}: {}", run.err);
    }
    let both = file("both.toml", b"pattern = \"one\"\ngoal = \"two.goal\"\n");
    assert!(uet(&["simulate", &both]).err.contains("pattern, goal: give only one of them"));
    let open = uet(&["simulate", "--pattern", "one", "--open", "2"]);
    assert!(open.err.contains("open: only the pattern all-to-all has this setting"), "{}", open.err);
}

#[test]
fn seeds_give_medians_with_intervals() {
    let args = [
        "simulate",
        "--pattern",
        "permutation",
        "--hosts",
        "8",
        "--leaves",
        "2",
        "--size",
        "50KB",
        "--seeds",
    ];
    let json = |seeds: &str| {
        let run = uet(&[&args[..], &[seeds, "--format", "json"]].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        serde_json::from_str::<Value>(&run.out).unwrap()
    };
    let outcome = json("3..9");
    let measure = &outcome["measures"]["completion_max"];
    assert_eq!(measure["runs"], 7);
    let value = |name: &str| measure[name].as_f64().unwrap();
    assert!(value("low") < value("median") && value("median") < value("high"), "{measure}");
    // Seven values: from the smallest to the largest.
    let single = |seed: &str| {
        let run = uet(&[&args[..7], &["--size", "50KB", "--seed", seed, "--format", "json"]].concat());
        serde_json::from_str::<Value>(&run.out).unwrap()["completion"]["max"].as_f64().unwrap()
    };
    let singles: Vec<f64> = (3..=9).map(|seed| single(&seed.to_string())).collect();
    assert_eq!(value("high"), singles.iter().copied().fold(0.0, f64::max));
    assert_eq!(json("1..2")["measures"]["completion_max"]["low"], Value::Null);
    let run = uet(&[&args[..], &["1..6"]].concat());
    assert!(
        run.out.contains("seeds 1 to 6; the median lies between low and high with 95 % confidence"),
        "{}",
        run.out
    );
    assert!(run.out.contains("\nretransmit ratio "), "{}", run.out);
    let trimmed = run.out.lines().find(|line| line.starts_with("trimmed ")).unwrap();
    assert!(!trimmed.contains(".0"), "{trimmed}");
    let run = uet(&[&args[..], &["1..2", "--congestion", "nscc,rccc"]].concat());
    let lines = |text: &str| run.out.lines().filter(|line| line.contains(text)).count();
    assert_eq!((run.code, lines("; NSCC, "), lines("; RCCC, ")), (0, 1, 1), "{}{}", run.out, run.err);
    // The number of random flows depends on the seed.
    let jobs = file("seeds.toml", b"[[job]]\npattern = \"random\"\nsize = 4096\nspan = \"20us\"\n");
    let run = uet(&["simulate", "--workload", &jobs, "--hosts", "8", "--seeds", "1..2"]);
    assert!(run.out.starts_with("random; 8 hosts on a switch; "), "{}{}", run.out, run.err);
    for wrong in ["5", "5..3", "1..2000"] {
        let run = uet(&[&args[..], &[wrong]].concat());
        assert_eq!(run.code, 2, "{wrong}");
        assert!(run.err.contains("expected a rising range of at most 1,000 seeds"), "{wrong}: {}", run.err);
    }
}

const SWEEP: &[u8] = b"[scenario]\npattern = \"permutation\"\nsize = \"20KB\"\nleaves = 2\n\
      [sweep]\nseed = [1, 2]\nhosts = [4, 5, 6]\n";

#[test]
fn a_sweep_runs_all_combinations_in_shards() {
    let sweep = file("sweep.toml", SWEEP);
    let lines = |more: &[&str]| {
        let run = uet(&[&["simulate", "--sweep", &sweep], more].concat());
        assert_eq!(run.code, 3, "5 hosts do not divide among 2 leaves: {}", run.err);
        run.out.lines().map(String::from).collect::<Vec<_>>()
    };
    let all = lines(&[]);
    let value: Vec<Value> = all.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(value.len(), 6);
    assert_eq!(value[1]["options"], serde_json::json!({"hosts": 4, "seed": 2}));
    assert_eq!(value[5]["run"], 5);
    assert_eq!(value[5]["outcome"]["counted"]["delivered"], 6 * 20_000);
    assert_eq!(value[2]["error"], "leaves: 5 hosts do not divide evenly among 2 leaves");
    let mut shards: Vec<String> = ["1/4", "2/4", "3/4", "4/4"]
        .iter()
        .flat_map(|shard| {
            let run = uet(&["simulate", "--sweep", &sweep, "--shard", shard]);
            run.out.lines().map(String::from).collect::<Vec<_>>()
        })
        .collect();
    shards.sort();
    let mut sorted = all;
    sorted.sort();
    assert_eq!(shards, sorted);
}

#[test]
fn a_setting_of_a_sweep_may_have_no_effect_in_some_runs() {
    let sweep = b"[scenario]\nsize = \"20KB\"\ndrop-at = 1.0\n[sweep]\ntrimming = [true, false]\n";
    let run = uet(&["simulate", "--sweep", &file("some_effect.toml", sweep)]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
}

#[test]
fn a_sweep_resumes_where_it_was_interrupted() {
    let sweep = file("resumed.toml", SWEEP);
    let output = file("resumed.jsonl", b"");
    let run = || uet(&["simulate", "--sweep", &sweep, "--output", &output]);
    assert_eq!(run().code, 3);
    let whole = std::fs::read_to_string(&output).unwrap();
    assert_eq!(whole.lines().count(), 6);
    // The third line is torn, and a mark shows that the first one is not written anew.
    let marked = whole.replacen("{", "{\"mark\":1,", 1);
    let torn: usize = marked.split_inclusive('\n').take(3).map(str::len).sum();
    std::fs::write(&output, &marked[..torn - 20]).unwrap();
    assert_eq!(run().code, 3);
    assert_eq!(std::fs::read_to_string(&output).unwrap(), marked);
    let again = run();
    assert_eq!(again.code, 3, "nothing is left to run, and the errors remain");
    let tally = "uet: 6 runs, 6 in the output already, 2 with an error instead of an outcome\n";
    assert_eq!((&*again.out, &*again.err), ("", tally));

    let other = file("other.toml", &[SWEEP, b"# changed\n"].concat());
    let run = uet(&["simulate", "--sweep", &other, "--output", &output]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("resumed.jsonl: line 1: this is no run of this sweep"), "{}", run.err);
    assert_eq!(std::fs::read_to_string(&output).unwrap(), marked, "it stays as it was");
}

#[test]
fn invalid_sweeps_are_refused_by_file_and_line() {
    let many = format!(
        "[sweep]\nseed = {list}\nhosts = {list}\nmtu = [1024, 4096]\n",
        list = serde_json::json!((1..=1000).collect::<Vec<_>>())
    );
    for (content, error) in [
        ("[sweep]\nseed = []\n", "wrong_sweep.toml: 'seed' has no values"),
        ("[sweep]\nseed = [1,\n\"x\"]\n", "wrong_sweep.toml: line 3: seed: "),
        ("[sweep]\nsenders = [3,\n4, 3]\n", "wrong_sweep.toml: line 3: senders: this value is there twice"),
        (
            "[scenario]\nseed = 1\n[sweep]\nseed = [2]\n",
            "wrong_sweep.toml: line 4: seed: give it in [scenario] or in [sweep], not in both",
        ),
        ("[sweep]\ncolor = [1]\n", "line 2: color: unknown field `color`"),
        ("[scenario]\nmtu = \"x\"\n[sweep]\n", "line 2"),
        ("[scenario]\n", "missing field `sweep`"),
        (&many, "these values make more than 1,000,000 runs"),
    ] {
        let run = uet(&["simulate", "--sweep", &file("wrong_sweep.toml", content.as_bytes())]);
        assert_eq!(run.code, 2, "{content}: {}", run.out);
        assert!(run.err.contains(error), "{content}: {}", run.err);
    }
    let sweep = file("ranges.toml", SWEEP);
    for shard in ["0/4", "5/4", "1", "1/0"] {
        assert_eq!(uet(&["simulate", "--sweep", &sweep, "--shard", shard]).code, 2, "{shard}");
    }
    assert_eq!(uet(&["simulate", "--sweep", &sweep, "--hosts", "4"]).code, 2, "settings stand in the file");
    assert_eq!(uet(&["simulate", "--shard", "1/2"]).code, 2, "a shard of nothing");
}
