//! How much passes, and how long it takes: in one process, and between two on UDP over loopback; beside plain UDP sockets that
//! carry the same payload on the same machine in the same run.
//!
//! `cargo bench -p uet-emulator --bench load` prints the table of docs/emulator.md; with `-- soak 600` it has two NICs write
//! over a bad network for ten minutes.

#[cfg(target_os = "linux")]
#[path = "load/linux.rs"]
mod linux;
#[cfg(target_os = "linux")]
#[path = "load/soak.rs"]
mod soak;

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
