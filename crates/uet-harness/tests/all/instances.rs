//! Plays instances one by one, each on a new NIC. `tools/mutants suite` judges changes of the model so.

use crate::configurations;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use uet_conformance::{
    Expand, Instance, InstanceResult, PacketFinding, Packets, RULES, Verdict, run_instance,
};
use uet_emulator::Config;
use uet_emulator::config::Congestion;
use uet_harness::dut::Embedded;
use uet_wire::Version;

/// Processor time after which an instance counts as endless. The longest takes less than a tenth.
const LIMIT: Duration = Duration::from_secs(8);

type Device = (&'static str, fn() -> Embedded);

fn devices() -> impl Iterator<Item = Device> {
    let default: fn() -> Embedded = || Embedded::new(Config::default()).unwrap();
    let both = || Embedded::new(Config { congestion: Congestion::Both, ..Config::default() }).unwrap();
    let first: [Device; 2] = [("default", default), ("receiver_credit", both)];
    first.into_iter().chain(configurations::ALL.iter().copied())
}

/// Plays the instances that the file `PLAYS` lists, a device and an instance per line, until one fails.
/// Prints a line per instance that passes: device, instance, digest of the trace.
///
/// Without that file, plays all instances on the first two devices, and the first instance of each rule on the others.
/// Their lines hold the microseconds before the digest.
#[test]
#[ignore = "tools/mutants runs it"]
fn plays() {
    if let Some(list) = std::env::var_os("PLAYS") {
        for line in std::fs::read_to_string(list).unwrap().lines() {
            println!("play {line}");
            let (name, id) = line.split_once(' ').unwrap();
            let (_, device) = devices().find(|(known, _)| *known == name).unwrap();
            let (result, _) = play(device, Instance::parse(RULES, id).unwrap());
            assert!(result.verdict == Verdict::Pass, "{line}: {}", result.reason);
            eprintln!("{line} {:016x}", digest(&result));
        }
        return;
    }
    for (place, (name, device)) in devices().enumerate() {
        for rule in RULES.iter() {
            let instances = rule.instances(Expand::Pairwise, |_| true);
            let count = if place < 2 { instances.len() } else { 1 };
            for instance in instances.into_iter().take(count) {
                let (result, time) = play(device, instance);
                match result.verdict {
                    Verdict::Skipped => continue,
                    Verdict::Pass => {}
                    _ => panic!("{name} {}: {}", result.instance, result.reason),
                }
                eprintln!("{name} {} {} {:016x}", result.instance, time.as_micros(), digest(&result));
            }
        }
    }
}

fn digest(result: &InstanceResult) -> u64 {
    let mut digest = DefaultHasher::new();
    result.ladder.to_string().hash(&mut digest);
    digest.finish()
}

/// Plays an instance in a thread of its own. Returns its result and its processor time.
fn play(device: fn() -> Embedded, instance: Instance) -> (InstanceResult, Duration) {
    let (tell, told) = channel();
    let thread = std::thread::spawn(move || {
        let path =
            Path::new("/proc").join("thread-self").read_link().map(|link| Path::new("/proc").join(link));
        let path = path.unwrap().join("schedstat");
        tell.send(path.clone()).unwrap();
        let spec = Version::default().spec();
        let mut result = run_instance(&mut device(), &instance, spec, 1, 1.0);
        let mut packets = Packets::default();
        packets.judge(&result, spec);
        if let Some(finding) = packets.findings.into_iter().find(PacketFinding::counts) {
            (result.verdict, result.reason) = (Verdict::Fail, finding.message);
        }
        drop(tell);
        (result, processor_time(&path))
    });
    let path = told.recv().unwrap();
    while let Err(RecvTimeoutError::Timeout) = told.recv_timeout(Duration::from_secs(1)) {
        if processor_time(&path) > LIMIT {
            eprintln!("endless");
            std::process::exit(3);
        }
    }
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the processor time of the thread with this `schedstat`, or zero if it has ended.
fn processor_time(schedstat: &Path) -> Duration {
    let text = std::fs::read_to_string(schedstat).unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}
