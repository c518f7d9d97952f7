//! `uet wireshark --install`, also with a real tshark. `wireshark/test` runs that.

use std::path::Path;
use std::process::Command;

/// Runs the program that `TSHARK` names with its own home directory, and returns its output.
fn tshark(home: &Path, arguments: &[&str]) -> Result<String, String> {
    let program = std::env::var("TSHARK").unwrap_or_else(|_| "tshark".into());
    let mut words: Vec<_> = program.split_whitespace().map(str::to_owned).collect();
    let last = words.pop().unwrap();
    // Another user may have another home; the last word is the program.
    let home = format!("HOME={}", home.display());
    words.retain(|word| word != "HOME=/tmp" && word != "env");
    words.extend(["env".into(), "-u".into(), "XDG_CONFIG_HOME".into(), home, last]);
    let output = Command::new(&words[0]).args(&words[1..]).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn installed_dissector_is_found() {
    let home = std::env::temp_dir().join(format!("uet-home-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let packet = home.join("packet.pcap");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/pcap/rules.pcapng"), &packet).unwrap();

    let filter = ["-r", packet.to_str().unwrap(), "-T", "fields", "-e", "uet.pds.type"];
    let error = tshark(&home, &filter).unwrap_err();
    assert!(error.contains("uet.pds.type"), "{error}");

    let output = Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["wireshark", "--install"])
        .env("HOME", &home)
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    assert!(Path::new(&file).starts_with(&home) && file.ends_with("/uet.lua"), "{file}");

    assert!(tshark(&home, &["-G", "plugins"]).unwrap().contains("uet.lua"));
    let seen = tshark(&home, &filter).unwrap();
    assert!(seen.lines().filter(|line| !line.is_empty()).count() > 10, "{seen}");
    std::fs::remove_dir_all(&home).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn without_wireshark_the_default_folder_is_used() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-wireshark");
    let output = Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["wireshark", "--install"])
        .env("HOME", &home)
        .env("PATH", &home)
        .output()
        .unwrap();
    let file = home.join(".local/lib/wireshark/plugins/uet.lua");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), file.to_str().unwrap());
    assert!(String::from_utf8_lossy(&output.stderr).contains("the default of Wireshark"));
    assert!(std::fs::read_to_string(&file).unwrap().contains("Proto("));
}
