//! Every example of every help text works when pasted.
#![cfg(target_os = "linux")]

use crate::common;

use common::nic::Nic;
use common::{capture, uet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// An example that still runs after this time counts as working: it has read its arguments and files long ago.
const WELL_UNDER_WAY: Duration = Duration::from_secs(1);

/// Examples that need other programs, other machines or an earlier finding.
const ELSEWHERE: [&str; 7] =
    ["tcpdump", "afl-fuzz", "10.0.0.", "--again", "--interface", "raw:", "--network raw"];

fn commands() -> Vec<String> {
    let help = uet(&["--help"]).out;
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // Continued descriptions have more indentation.
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

/// Returns the examples of a help text without their descriptions.
fn examples(help: &str) -> Vec<String> {
    let Some(examples) = help.split("Examples:\n").nth(1) else { return Vec::new() };
    let examples = examples.lines().take_while(|line| !line.is_empty());
    examples
        .map(|line| {
            let line = line.strip_prefix("  ").expect("examples are indented");
            let command = line.split("  ").next().unwrap().trim();
            assert!(command.contains("uet"), "an example that the width of the help has broken: {line}");
            command.to_owned()
        })
        .collect()
}

/// Creates a folder with all files that the examples name.
fn prepared() -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples");
    let _ = fs::remove_dir_all(&root);
    for folder in ["bin", "findings", "home/.zfunc", "home/.config/fish/completions", "path/to/uet"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::create_dir_all(root.join("home/.local/share/bash-completion/completions")).unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["capture.pcapng", "a.pcapng", "secured.pcapng"] {
        fs::copy(repository.join("vectors/pcap/sequences.pcapng"), root.join(name)).unwrap();
    }
    let zipped = capture::gzip(&capture::simple(&[common::write(), common::ack()]));
    fs::write(root.join("capture.pcap.gz"), zipped).unwrap();
    let device = repository.join("crates/uet-control/python/example_device/device.py");
    let device =
        format!("import os, sys\nos.execv(sys.executable, [sys.executable, {device:?}] + sys.argv[1:])\n");
    fs::write(root.join("nic.py"), device).unwrap();
    let keys = format!("[[domain]]\nsdi = 7\nmode = \"direct\"\nkeys = {{ 0 = \"{}\" }}\n", "5a".repeat(32));
    fs::write(root.join("keys.toml"), keys).unwrap();
    fs::write(root.join("parameters.toml"), "default_mpr = 4\n").unwrap();
    fs::write(root.join("scenario.toml"), "pattern = 'incast'\nsenders = 2\n").unwrap();
    let training = "hosts = 4\n[[job]]\npattern = 'all-gather'\nsize = 4000\n";
    fs::write(root.join("training.toml"), training).unwrap();
    fs::write(root.join("sweep.toml"), "[sweep]\nhosts = [4, 5, 6]\n").unwrap();
    fs::write(root.join("incast_128.cm"), "Nodes 16\n1->0 start 0 size 10000\n").unwrap();
    let result = uet(&["run", "--group", "ack", "--format", "json"]).out;
    ["before.json", "result.json"].iter().for_each(|name| fs::write(root.join(name), &result).unwrap());
    std::os::unix::fs::symlink(repository.join("vectors"), root.join("path/to/uet/vectors")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_uet"), root.join("bin/uet")).unwrap();
    // These programs may be missing.
    for other in ["jq", "man"] {
        let path = root.join("bin").join(other);
        fs::write(&path, "#!/bin/sh\n[ -t 0 ] || cat > /dev/null\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    root
}

/// Runs a line in a shell; returns its output and exit code, or `None` if it still runs.
fn paste(root: &Path, line: &str) -> Option<(i32, String)> {
    let path = format!("{}:{}", root.join("bin").display(), std::env::var("PATH").unwrap());
    let mut child = Command::new("bash")
        .args(["-o", "pipefail", "-c", line])
        .current_dir(root)
        .env("PATH", path)
        .env("HOME", root.join("home"))
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while begun.elapsed() < WELL_UNDER_WAY {
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            return Some((status.code().unwrap_or(-1), said));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // Signals the shell and its children.
    let group = format!("-{}", child.id());
    Command::new("kill").args(["-KILL", "--", &group]).status().unwrap();
    child.wait().unwrap();
    None
}

/// Returns the failed examples of a command with their output, and the number of examples run.
fn wrong(root: &Path, command: &[&str]) -> (usize, Vec<String>) {
    let nic = Nic::start("127.0.0.41", &[]);
    let at = format!("127.0.0.41:{}", nic.port());
    let control = format!("127.0.0.1:{}", nic.ready["control"]["port"]);
    let examples = examples(&uet(&[command, &["--help"]].concat()).out);
    assert!(!examples.is_empty(), "{command:?} has no examples");
    let here = |line: &&String| !ELSEWHERE.iter().any(|other| line.contains(other));
    let here: Vec<_> = examples.iter().filter(here).collect();
    let wrong = here.iter().filter_map(|line| {
        // Replace the ports of the examples, which may be in use.
        let told = line.replace("[::1]:4793 --control 127.0.0.1:9000", "127.0.0.1:0");
        let told = match told.strip_prefix("uet emulate") {
            Some(rest) if !rest.contains("--listen") => format!("uet emulate --listen 127.0.0.1:0{rest}"),
            _ => told,
        };
        let told = told.replace("127.0.0.1:4793", &at).replace("127.0.0.1:9000", &control);
        match paste(root, &told.replace("--seconds 600", "--seconds 1")) {
            None => None,
            // 1 and 3 are verdicts.
            Some((0 | 1 | 3, said)) if !said.contains("error:") => None,
            Some((code, said)) => Some(format!("{told}\nexit code {code}: {said}")),
        }
    });
    (here.len(), wrong.collect())
}

#[test]
fn every_example_of_every_help_text_works_when_it_is_pasted() {
    let root = &prepared();
    let names = commands();
    assert!(names.len() >= 18, "{names:?}");
    let tried: Vec<_> = std::thread::scope(|scope| {
        let of = |name| scope.spawn(move || wrong(root, name));
        let whole = of(&[] as &[&str]);
        let commands: Vec<_> = names.iter().map(|name| scope.spawn(move || wrong(root, &[name]))).collect();
        commands.into_iter().chain([whole]).map(|tried| tried.join().unwrap()).collect()
    });
    let wrong: Vec<_> = tried.iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let pasted: usize = tried.iter().map(|(count, _)| count).sum();
    assert!(pasted > 50, "{pasted} pasted");
}
