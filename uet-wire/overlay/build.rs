//! Compiles the overlay. `-O2` whatever the profile: its counts are a yardstick, and must not move.

fn main() {
    println!("cargo::rerun-if-changed=src/overlay.c");
    println!("cargo::rerun-if-changed=src/overlay.h");
    cc::Build::new()
        .file("src/overlay.c")
        .std("gnu11")
        .opt_level(2)
        .debug(false)
        .warnings(true)
        .extra_warnings(true)
        .compile("uet_overlay");
}
