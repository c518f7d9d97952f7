//! The action for GitHub, in action.yml.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn action() -> String {
    fs::read_to_string(Path::new(ROOT).join("action.yml")).unwrap()
}

/// Returns the script of a step.
fn script(step: &str) -> String {
    let action = action();
    let (_, step) = action.split_once(&format!("- name: {step}\n")).unwrap();
    let (_, script) = step.split_once("run: |\n").unwrap();
    let lines = script.lines().take_while(|line| line.starts_with("        ") || line.is_empty());
    lines.map(|line| format!("{}\n", line.trim_start())).collect()
}

#[test]
fn its_paths_exist() {
    let action = action();
    let paths: Vec<&str> =
        action.split("$SOURCES/").skip(1).filter_map(|rest| rest.split(['"', ' ', '\n']).next()).collect();
    assert!(!paths.is_empty());
    for path in paths {
        assert!(Path::new(ROOT).join(path).join("Cargo.toml").exists(), "{path}");
    }
}

#[test]
fn arguments_may_have_lines_and_the_device_gives_no_commands() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("action");
    let bin = folder.join("uet/bin");
    fs::create_dir_all(&bin).unwrap();
    let fake = bin.join("uet");
    fs::write(&fake, "#!/bin/sh\nfor word; do echo \"<$word>\"; done\necho '##[add-mask]x'\nexit 3\n")
        .unwrap();
    fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let summary = folder.join("summary.md");
    let _ = fs::remove_file(&summary);
    for step in ["Check the setup", "Run the suite"] {
        let run = Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script(step)])
            .env("RUNNER_TEMP", &folder)
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("DEVICE", "A=1 nic")
            .env("ARGUMENTS", "\n--group ack\n--level must  --seed 7\n")
            .output()
            .unwrap();
        let out = String::from_utf8(run.stdout).unwrap();
        assert_eq!(run.status.code(), Some(3), "{step}: {out}{}", String::from_utf8_lossy(&run.stderr));
        let (token, rest) = out.strip_prefix("::stop-commands::").unwrap().split_once('\n').unwrap();
        let (device, after) = rest.split_once(&format!("::{token}::\n")).unwrap();
        assert!(token.len() == 32 && device.contains("##[add-mask]x") && after.is_empty(), "{step}: {out}");
        assert!(device.contains("<exec:A=1 nic>"), "{device}");
        if step == "Run the suite" {
            assert!(device.contains("<--group>\n<ack>\n<--level>\n<must>\n<--seed>\n<7>\n##"), "{device}");
        }
    }
    let summary = fs::read_to_string(summary).unwrap();
    assert!(summary.starts_with("### UET conformance\n\n    <run>\n"), "{summary}");
    assert!(summary.ends_with("\n    ##[add-mask]x\n"), "{summary}");
}
