//! The cost of a packet and a context, with one context and with 65,535.
//!
//! `cargo bench -p uet-model --bench scale` prints packets per CPU second and bytes per context, which depend on the
//! machine. It also counts instructions per packet under callgrind and fails if one exceeds `benches/instructions.txt`. With
//! `-- --accept` it writes that file instead.
//!
//! A round is a write of 4 KiB and its response: two packets through two endpoints. The payload is shared and not copied.

use bytes::Bytes;
use cap::Cap;
use core::time::Duration;
use std::alloc::System;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};
use uet_model::cc::{CcParams, NetworkParams};
use uet_model::pds::Pds;
use uet_model::*;
use uet_wire::registry::NextHdr;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 12]];
const MANY: u32 = 65_535;

/// Contexts, the order of their turns, and whether congestion control (NSCC) runs.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    contexts: u32,
    random: bool,
    controlled: bool,
}

const CASES: [Case; 5] = [
    Case { name: "1 context", contexts: 1, random: false, controlled: false },
    Case { name: "1 context, NSCC", contexts: 1, random: false, controlled: true },
    Case { name: "65,535 contexts in turn", contexts: MANY, random: false, controlled: false },
    Case { name: "65,535 contexts at random", contexts: MANY, random: true, controlled: false },
    Case { name: "65,535 contexts at random, NSCC", contexts: MANY, random: true, controlled: true },
];

struct Pair {
    ends: [Pds; 2],
    now: Time,
    payload: Bytes,
}

impl Pair {
    fn new(case: Case) -> Self {
        let network = NetworkParams::default();
        let congestion = if case.controlled { CcParams::nscc(&network) } else { CcParams::none(&network) };
        let params = PdsParams {
            general_pdcs: u16::MAX,
            congestion: congestion.expect("the defaults are right"),
            ..PdsParams::default()
        };
        let ends =
            ADDRESSES.map(|ip| Pds::new(params.clone(), ip.into(), 7).expect("the parameters are right"));
        Pair { ends, now: Time::ZERO, payload: Bytes::from(vec![7; 4096]) }
    }

    fn ask(&mut self, context: u32) {
        let route = Route {
            job: 101,
            destination: ADDRESSES[1].into(),
            class: 0,
            mode: Mode::Rud,
            pool: Pool::General,
            context,
        };
        let request = TxRequest {
            message: MessageKey(context.into()),
            som: true,
            eom: true,
            next_hdr: NextHdr::UET_HDR_REQUEST_STD,
            head: [0; 44].into_iter().collect(),
            payload: self.payload.clone(),
        };
        self.ends[0].request(self.now, Via::Route(route), request).expect("there is room");
    }

    fn round(&mut self, context: u32) {
        self.now += Duration::from_micros(1);
        let now = self.now;
        self.ask(context);
        let [a, b] = &mut self.ends;
        while let Some(packet) = a.poll_transmit(now) {
            b.handle_input(now, packet);
        }
        while let Some(indication) = b.poll_indication() {
            if let Indication::Request(request) = indication {
                let head = [0; 12].into_iter().collect();
                let next_hdr = NextHdr::UET_HDR_RESPONSE;
                let response =
                    TxResponse { delivery: Delivery::Default, next_hdr, head, payload: Bytes::new() };
                b.respond(now, request.ticket, response);
            }
        }
        while let Some(packet) = b.poll_transmit(now) {
            a.handle_input(now, packet);
        }
        let answered = |indication| matches!(indication, Indication::Response { .. });
        assert!(core::iter::from_fn(|| a.poll_indication()).any(answered), "it is answered at once");
    }

    /// Each context once, so that all are there.
    fn open(case: Case) -> Self {
        let mut pair = Pair::new(case);
        (0..case.contexts).for_each(|context| pair.round(context));
        assert_eq!(pair.ends[0].contexts() as u32, case.contexts);
        pair
    }

    fn rounds(&mut self, case: Case, count: u32) {
        let mut rng = fastrand::Rng::with_seed(7);
        for index in 0..count {
            self.round(if case.random { rng.u32(..case.contexts) } else { index % case.contexts });
        }
    }
}

/// The work of the process under valgrind: the number of a case, and of rounds.
const INNER: &str = "UET_COUNTED_ROUNDS";

fn main() -> ExitCode {
    if let Some((case, rounds)) = env::var(INNER).ok().as_deref().and_then(|text| text.split_once(' ')) {
        let case = CASES[case.parse::<usize>().unwrap_or_default()];
        Pair::open(case).rounds(case, rounds.parse().unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    if !env::args().any(|argument| argument == "--bench") {
        // Under `cargo test` nothing is optimized: only that it works is seen.
        Pair::open(CASES[1]).rounds(CASES[1], 10);
        return ExitCode::SUCCESS;
    }
    speed();
    size();
    match count() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn speed() {
    println!("| contexts | packets per processor second |\n| --- | ---: |");
    for case in CASES {
        let mut pair = Pair::open(case);
        // The fastest of several: others use the machine too.
        let runs = (0..5).map(|_| {
            let start = spent();
            pair.rounds(case, 200_000);
            spent() - start
        });
        let seconds = runs.min().unwrap_or_default() as f64 / 1e9;
        println!("| {} | {:.1} M |", case.name, 2.0 * 200_000.0 / seconds / 1e6);
    }
}

/// The nanoseconds that the processor has spent on this thread, as Linux tells them.
fn spent() -> u64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or_default()
}

/// Bytes for each context, at each end: of an idle one, and with a request in flight, its payload not counted.
fn size() {
    let case = CASES[2];
    let before = MEMORY.allocated();
    let mut pair = Pair::open(case);
    let idle = MEMORY.allocated() - before;
    for context in 0..case.contexts {
        pair.ask(context);
        while pair.ends[0].poll_transmit(pair.now).is_some() {}
    }
    let active = MEMORY.allocated() - before - idle;
    let per = |bytes: usize| bytes / case.contexts as usize;
    println!(
        "\nbytes: {} for an idle context at each end, {} more with a request in flight",
        per(idle) / 2,
        per(active)
    );
}

fn count() -> Result<(), String> {
    let mut table = String::from("| contexts | instructions per packet |\n| --- | ---: |\n");
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    let named = |error| format!("{}: {error}", committed.display());
    let accept = env::args().any(|argument| argument == "--accept");
    let before = if accept { String::new() } else { fs::read_to_string(&committed).map_err(named)? };
    let mut wrong = Vec::new();
    for (index, case) in CASES.iter().enumerate() {
        // Both runs pay for the start.
        let counted = (instructions(index, 3000)? - instructions(index, 1000)?) / (2 * 2000);
        let start = format!("| {} | ", case.name);
        table += &format!("{start}{counted} |\n");
        let allowed =
            before.lines().find_map(|line| line.strip_prefix(&start)?.split(' ').next()?.parse::<u64>().ok());
        if !accept && allowed.is_none_or(|allowed| counted > allowed + allowed / 20) {
            wrong.push(format!(
                "{}: {counted} instructions per packet, {allowed:?} in benches/instructions.txt",
                case.name
            ));
        }
    }
    print!("\n{table}");
    if accept {
        return fs::write(&committed, table).map_err(named);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The instructions of a whole run, as callgrind counts them.
fn instructions(case: usize, rounds: u32) -> Result<u64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let file = PathBuf::from(format!("{}.callgrind", program.display()));
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .env(INNER, format!("{case} {rounds}"))
        .output()
        .map_err(|error| format!("valgrind counts the instructions, and does not start: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let profile = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let total = profile.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    total.ok_or_else(|| format!("{} has no totals", file.display()))
}
