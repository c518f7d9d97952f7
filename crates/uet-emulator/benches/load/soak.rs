//! Runs two NICs over a bad network for a long time. No byte may be wrong, nothing may be left over, and memory may not
//! grow.

use bytes::Bytes;
use std::time::{Duration, Instant};
use uet_emulator::{Config, Network, Nic};
use uet_model::Mode;
use uet_model::ses::{Access, AtomicOn, Key, Operand, Operation, Peer, Process, Region, ResourceIndex, Work};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

const INDEX: ResourceIndex = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
const KEY: Key = Key(7);

/// Number of separate places that writes go to. A counter behind them takes atomic adds.
const PLACES: usize = 8;
const PLACE: usize = 64 << 10;
const SUM: usize = PLACES * PLACE;

/// Number of rounds after which the NICs become idle and are checked.
const REST: u64 = 50;

/// Results of a soak.
#[derive(Debug, Default)]
pub(crate) struct Soaked {
    pub(crate) rounds: u64,
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) lost: u64,
    /// Bytes of memory of this process after a tenth of the run and at the end.
    pub(crate) memory: [u64; 2],
}

/// Writes, reads and adds until all is done. `done` returns the part that is, for a number of rounds and the
/// wall-clock time that they took. The error says what went wrong and when.
pub(crate) fn soak(done: impl Fn(u64, Duration) -> f64, seed: u64) -> Result<Soaked, String> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut net = Network::new(seed);
    for impairment in ["drop 5%", "duplicate 5%", "reorder 4 10%", "jitter 5us"] {
        net.fabric().impair(impairment.parse().map_err(|error| format!("{error}"))?);
    }
    let nic =
        |address| Nic::new(address, Config { seed, ..Config::default() }).map_err(|error| error.to_string());
    let (a, b) = (net.add(nic([10, 0, 0, 1])?), net.add(nic([10, 0, 0, 2])?));
    let mut expected = vec![0; SUM + 8];
    let region = Region { key: KEY, base: 0, access: Access::ALL, data: expected.clone() };
    let region = net[b].expose(INDEX, region).map_err(|error| error.to_string())?;

    let (begun, mut soaked) = (Instant::now(), Soaked::default());
    while done(soaked.rounds, begun.elapsed()) < 1.0 {
        let round = soaked.rounds;
        let wrong = |what: &str| format!("round {round} of seed {seed}: {what}");
        let peer = Peer::relative([10, 0, 0, 2], 101, 2).by([Mode::Rud, Mode::Rod][usize::from(rng.bool())]);
        let mut operations = Vec::new();
        for place in 0..PLACES {
            let most = PLACE >> rng.u8(..12);
            let length = rng.usize(1..most);
            let offset = place * PLACE + rng.usize(..PLACE - length);
            let data: Bytes = uet_control::pattern(rng.u32(..)).take(length).collect();
            expected[offset..offset + length].copy_from_slice(&data);
            soaked.bytes += length as u64;
            operations.push(Work::Write { key: KEY, offset: offset as u64, data });
        }
        let add = u64::from(rng.u32(..));
        operations.push(Work::Atomic {
            on: AtomicOn::Memory { key: KEY, offset: SUM as u64 },
            opcode: AtomicOpcode::SUM,
            datatype: AtomicDatatype::UINT64,
            operand: Operand::Elements(Bytes::copy_from_slice(&add.to_le_bytes())),
            fetch: rng.bool(),
        });
        let sum = u64::from_le_bytes(expected[SUM..].try_into().unwrap_or_default()).wrapping_add(add);
        expected[SUM..].copy_from_slice(&sum.to_le_bytes());
        let mut ids = Vec::new();
        for work in operations {
            ids.push(net[a].post(Operation::new(peer, work)).map_err(|error| wrong(&format!("{error:?}")))?);
        }
        for id in ids {
            let ended = net.operation(a, id).ok_or_else(|| wrong("an operation does not end"))?;
            ended.map_err(|fault| wrong(&format!("an operation fails: {fault:?}")))?;
        }
        if net[b].memory(region) != Some(&expected[..]) {
            return Err(wrong("memory differs"));
        }
        let length = rng.usize(1..PLACE);
        let offset = rng.usize(..SUM - length);
        let read = Work::Read { key: KEY, offset: offset as u64, length: length as u32 };
        let read = net[a].post(Operation::new(peer, read)).map_err(|error| wrong(&format!("{error:?}")))?;
        let read = net.operation(a, read).ok_or_else(|| wrong("a read does not end"))?;
        let read = read.map_err(|fault| wrong(&format!("a read fails: {fault:?}")))?;
        if read.data != expected[offset..offset + length] {
            return Err(wrong("what is read differs"));
        }
        soaked.rounds += 1;
        soaked.bytes += length as u64;
        if soaked.rounds % REST == 0 {
            net.run(Duration::from_millis(100));
            for nic in [a, b] {
                let counted = net[nic].counted();
                if counted.held > 0 || counted.pdcs > 2 {
                    return Err(wrong(&format!("at rest, {counted:?}")));
                }
            }
        }
        if soaked.memory[0] == 0 && done(soaked.rounds, begun.elapsed()) > 0.1 {
            soaked.memory[0] = memory();
        }
    }
    soaked.memory[1] = memory();
    let counters = net.fabric().counters();
    (soaked.packets, soaked.lost) = (counters.sent, counters.lost);
    let [early, late] = soaked.memory;
    // An allocator keeps some memory for later.
    if late > early + early / 10 + (8 << 20) {
        return Err(format!(
            "after {} rounds {late} bytes of memory, {early} after a tenth of the run",
            soaked.rounds
        ));
    }
    Ok(soaked)
}

/// Returns the memory of this process in bytes; 0 if the system does not report it.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kibibytes.unwrap_or(0) << 10
}
