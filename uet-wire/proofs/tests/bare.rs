//! Builds the program without a runtime: that it links is the proof, that a planted panic does not is the
//! control. Each build is a cargo of its own, in a directory of its own.

use std::process::Command;

/// Builds, or only checks, `bare`; what the compiler said when it failed.
fn cargo(task: &str, features: &str, cfgs: &str, only: Option<&str>) -> Result<(), String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([task, "--package", "uet-proofs", "--bin", "bare", "--profile", "proof"])
        .args(["--no-default-features", "--features", features])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .env("CARGO_TARGET_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/bare"))
        .env("RUSTFLAGS", format!("--cfg bare {cfgs}"))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("UET_PROOF_ONLY");
    if let Some(only) = only {
        cargo.env("UET_PROOF_ONLY", only);
    }
    let output = cargo.output().expect("cargo runs");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

const SYMBOL: &str = "a_panic_branch_is_left";

/// The features of the proof about panics. Transport security needs a processor with known instructions, so that the
/// compiler sees which implementation of AES runs.
const FEATURES: &str = if cfg!(target_arch = "x86_64") { "crc,nom,tss" } else { "crc,nom" };
const INSTRUCTIONS: &str = if cfg!(target_arch = "x86_64") {
    "-C target-feature=+aes,+pclmulqdq,+ssse3,+sse4.1,+avx,+avx2,+vaes,+avx512f"
} else {
    ""
};

/// Links `bare` with these operations.
fn link(cfgs: &str, only: Option<&str>) -> Result<(), String> {
    cargo("build", FEATURES, &format!("{INSTRUCTIONS} {cfgs}"), only)
}

#[test]
fn nothing_can_panic() {
    let Err(error) = link("", None) else { return };
    assert!(error.contains(SYMBOL), "{error}");
    let names = uet_proofs::all().map(|(name, _)| *name);
    let panicking: Vec<_> = names.filter(|name| link("", Some(name)).is_err()).collect();
    panic!("these operations can panic: {panicking:?}");
}

#[test]
#[ignore = "builds the codec twice more: ./test proofs"]
fn a_panic_would_be_found() {
    let error = link("--cfg planted", None).unwrap_err();
    assert!(error.contains(SYMBOL), "{error}");
    let error = link("--cfg planted", Some("planted")).unwrap_err();
    assert!(error.contains(SYMBOL), "{error}");
}

#[test]
#[ignore = "checks the codec eight times: ./test proofs"]
fn no_std_means_no_std() {
    for features in ["", "crc", "nom", "serde", "alloc", "bytes", "tss", "crc,nom,serde,alloc,bytes,tss"] {
        if let Err(error) = cargo("check", features, "", None) {
            panic!("{features}: {error}");
        }
    }
}

/// The plain case, on machines that have the target: `rustup target add thumbv7em-none-eabi`.
#[test]
fn a_microcontroller_compiles_it_too() {
    let target = "thumbv7em-none-eabi";
    let rustc = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let library = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if !library.is_ok_and(|library| std::path::Path::new(&library).is_dir()) {
        eprintln!("skipped: {target} is not installed; no_std_means_no_std stands without it");
        return;
    }
    let compiles = |features| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["check", "--package", "uet-wire", "--target", target, "--features", features])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .env("CARGO_TARGET_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/microcontroller"))
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo.output().expect("cargo runs").status.success()
    };
    assert!(compiles("crc,nom,serde,alloc,bytes,tss"));
    assert!(!compiles("std"), "the control");
}

#[test]
fn a_hidden_std_would_be_found() {
    let error = cargo("check", "std", "", None).unwrap_err();
    assert!(error.contains("panic_impl"), "{error}");
}
