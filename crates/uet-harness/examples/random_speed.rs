//! Plays random conversations with the embedded NIC, and prints their number per second of processor time.
//!
//!     cargo run --release -p uet-harness --example random_speed                1000 conversations of seed 1
//!     cargo run --release -p uet-harness --example random_speed -- 300 7       300 conversations of seed 7
//!     cargo run --release -p uet-harness --example random_speed -- 300 7 FAULT... with these faults
//!
//! The digest covers the whole result, so that a change meant to be faster shows that it changes nothing else.

use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use uet_conformance::random::{self, Length};
use uet_conformance::{Options, Verdict};
use uet_emulator::{Config, fault};
use uet_harness::dut::Embedded;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().map_or(Ok(1000), |count| count.parse())?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let faults: Option<Vec<_>> = arguments.map(|name| fault::find(&name)).collect();
    let mut nic = Embedded::with_faults(Config::default(), &faults.ok_or("unknown fault")?)?;
    let options = Options { seed, ..Options::default() };

    let begun = processor_seconds()?;
    let mut result = random::run(&mut nic, &options, Length::Conversations(count), |_| ());
    let processor = processor_seconds()? - begun;

    let figures = result.random.as_mut().ok_or("no figures")?;
    let seconds = core::mem::take(&mut figures.seconds);
    let (played, operations) = (figures.conversations, figures.operations);
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(&result)?.hash(&mut hasher);
    println!("{played} conversations, {} fail, digest {:016x}", result.count(Verdict::Fail), hasher.finish());
    for failure in result.rules.iter().flat_map(|rule| &rule.failing) {
        println!("{}: {}\n{}", failure.instance, failure.reason, failure.ladder);
    }
    let per = |seconds: f64| operations as f64 / seconds;
    println!(
        "{operations} operations, {:.0} per second, {:.0} per processor second",
        per(seconds),
        per(processor)
    );
    Ok(())
}

/// Returns the processor time of all threads of this process.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may contain spaces. User and system time are the 14th and 15th fields, in hundredths.
    let (_, fields) = text.rsplit_once(')').ok_or("no processor time")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(ticks as f64 / 100.0)
}
