//! Throughput, latency and processor cost: in one process and between two processes over UDP on loopback. The baseline
//! is plain UDP sockets with the same payload on the same machine in the same run.
//!
//! `cargo bench -p uet-emulator --bench load` prints the table of docs/emulator.md. With `-- soak 600`, two NICs write
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
