//! Recognizes a busy host: its programs wait for a processor.

use core::time::Duration;
use std::{fs, thread};

/// The share of the last ten seconds, in percent, from which on a program that waits shows a busy host.
const WAITED: f64 = 5.0;

/// Returns whether programs of this host had to wait for a processor in the last seconds. Returns false if that is
/// unknown.
pub(super) fn is_host_busy() -> bool {
    let text = |file| fs::read_to_string(file).unwrap_or_default();
    match waited(&text("/proc/pressure/cpu")) {
        Some(share) => share >= WAITED,
        // Kernels without this file still count the programs that want to run.
        None => is_overloaded(&text("/proc/loadavg"), thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// Returns how long to wait for what takes at most this long on an idle host: a program of a busy one may start late.
pub(super) fn patience(idle: Duration) -> Duration {
    const SLOWER: u32 = 6;
    if is_host_busy() { idle * SLOWER } else { idle }
}

/// Reads the share of the last ten seconds in which some program waited: `some avg10=61.15 avg60=...`.
fn waited(pressure: &str) -> Option<f64> {
    pressure.strip_prefix("some avg10=")?.split_whitespace().next()?.parse().ok()
}

/// Returns whether more programs than processors wanted to run in the last minute.
fn is_overloaded(load: &str, processors: usize) -> bool {
    load.split_whitespace()
        .next()
        .and_then(|load| load.parse::<f64>().ok())
        .is_some_and(|load| load > processors as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        assert_eq!(
            waited("some avg10=61.15 avg60=68.69 avg300=81.76 total=11490884949\nfull avg10=0.00"),
            Some(61.15)
        );
        for text in ["", "full avg10=1.0", "some avg10="] {
            assert_eq!(waited(text), None, "{text}");
        }
        assert!(
            is_overloaded("5.28 2.68 2.28 9/163 25164", 2) && !is_overloaded("5.28 2.68 2.28 9/163 25164", 8)
        );
        assert!(!is_overloaded("", 1));
    }
}
