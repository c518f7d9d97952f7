//! Plays two implementations against each other on a bad network, and judges both.
//!
//! Each implementation has a control channel and its packets on UDP. A [relay](uet_emulator::relay::Relay) stands between
//! them, loses, repeats and reorders packets, and records them. Each scenario is judged by the completions and the memory
//! of both ends, and by the packets: a broken requirement names the end that is to blame. Without one, both ends behave
//! and disagree.
//!
//! `scenario` lists the scenarios, and `play` plays one on two `end`s. `posted` holds its operations. `judge` reads its
//! packets, with `acknowledged`, `closes`, `ignored`, `starts`, `unrepeated` and `causes`; `verdict` decides. `causes`
//! finds the reason of a wrong result, with `sent`, `misnamed`, `grants`, `new_starts` and `memory`.

mod acknowledged;
mod causes;
mod closes;
mod end;
mod grants;
mod ignored;
mod judge;
mod memory;
mod misnamed;
mod new_starts;
mod play;
mod posted;
mod scenario;
mod sent;
mod starts;
mod unrepeated;
mod verdict;

pub use scenario::{is_scenario, operations};

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use end::{End, Obstacle};
use play::Play;
use scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use uet_control::{Mode, Reset};
use uet_emulator::capture::Capture;
use uet_emulator::frame::Outer;
use uet_emulator::relay::Relay;
use uet_model::network::Impairment;
use uet_packet_io::file;
use uet_packet_io::keys::KeyRing;
use uet_wire::outer::UDP_PORT;
use verdict::verdict;

/// How to reach an implementation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This shell command starts it; the control channel is on its standard input and output.
    Start(String),
    /// Its control channel listens at this `HOST:PORT`.
    Connect(String),
}

/// An implementation with its name in reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implementation {
    /// The name.
    pub name: String,
    /// How to reach it.
    pub reach: Reach,
}

/// A selection of scenarios and the settings of a run.
#[derive(Clone, Debug)]
pub struct InteropOptions {
    /// The seed of the network.
    pub seed: u64,
    /// All combinations of values, instead of all pairs of values.
    pub full: bool,
    /// Only scenarios whose ids begin so, unless empty.
    pub only: Vec<String>,
    /// Only these pairs of initiator and target, unless empty.
    pub pairs: Vec<(String, String)>,
    /// The address between the ends; on loopback there is a default.
    pub listen: Option<SocketAddr>,
    /// Factor of all patience.
    pub scale: f64,
    /// How long each pair plays its scenarios again and again, with other seeds.
    pub soak: Option<Duration>,
    /// The folder for captures of scenarios that do not pass.
    pub captures: Option<PathBuf>,
    /// The command that plays a scenario again, up to its options.
    pub command: String,
    /// True ends the run.
    pub interrupt: Arc<AtomicBool>,
}

/// The verdict of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairVerdict {
    /// Both ends agree, and no packet breaks a requirement.
    Pass,
    /// An end broke a requirement, refused an operation or died.
    Fail,
    /// Both ends behave, and they do not agree.
    Disagree,
    /// It was not played to its end.
    Inconclusive,
    /// An end cannot play it.
    Skipped,
}

impl PairVerdict {
    /// All verdicts.
    pub const ALL: [PairVerdict; 5] = [
        PairVerdict::Pass,
        PairVerdict::Fail,
        PairVerdict::Disagree,
        PairVerdict::Inconclusive,
        PairVerdict::Skipped,
    ];

    /// Returns `pass`, `fail`, `disagree`, `inconclusive` or `skipped`.
    pub const fn name(self) -> &'static str {
        match self {
            PairVerdict::Pass => "pass",
            PairVerdict::Fail => "fail",
            PairVerdict::Disagree => "disagree",
            PairVerdict::Inconclusive => "inconclusive",
            PairVerdict::Skipped => "skipped",
        }
    }

    /// Returns whether the scenario was due and did not pass.
    pub const fn is_problem(self) -> bool {
        !matches!(self, PairVerdict::Pass | PairVerdict::Skipped)
    }
}

/// The result of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioResult {
    /// Its id: `write[mode=rud,size=packet,network=loss,congestion=default,course=plain]`.
    pub id: String,
    /// The verdict.
    pub verdict: PairVerdict,
    /// The implementation that is to blame.
    pub blame: Option<String>,
    /// The requirement that it broke.
    pub requirement: Option<String>,
    /// The reason, unless it passed.
    pub reason: String,
    /// True if a signal ended the run before the end of the scenario.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stopped: bool,
    /// The reports of the initiator and the target, if they disagree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<String>,
    /// The file with its packets.
    pub capture: Option<String>,
    /// The command that plays it again.
    pub rerun: String,
    /// How long it took.
    pub duration_ns: u64,
}

/// The scenarios of an initiator and a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The initiator.
    pub initiator: String,
    /// The target.
    pub target: String,
    /// The results.
    pub scenarios: Vec<ScenarioResult>,
}

impl Pair {
    /// Returns the number of scenarios with this verdict.
    pub fn count(&self, verdict: PairVerdict) -> usize {
        self.scenarios.iter().filter(|one| one.verdict == verdict).count()
    }
}

/// An implementation, as its `hello` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Its name in this report.
    pub name: String,
    /// The name that it reports.
    pub product: String,
    /// Its version.
    pub version: String,
}

/// The result of all pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interop {
    /// The implementations.
    pub devices: Vec<Description>,
    /// The seed.
    pub seed: u64,
    /// The pairs in the order in which they were played.
    pub pairs: Vec<Pair>,
    /// True if a signal ended the run before all pairs had played their scenarios.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stopped: bool,
}

impl Interop {
    /// Returns the number of scenarios with this verdict.
    pub fn count(&self, verdict: PairVerdict) -> usize {
        self.pairs.iter().map(|pair| pair.count(verdict)).sum()
    }

    /// Returns the number of scenarios that were not played to their end because of a signal.
    pub fn ended_by_signal(&self) -> usize {
        self.pairs.iter().flat_map(|pair| &pair.scenarios).filter(|one| one.stopped).count()
    }
}

/// A step of a run that goes on.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Nobody listens at this address of a control channel yet, and the run waits.
    Waiting(&'a str),
    /// A pair begins, with this many scenarios to play.
    Pair(&'a str, &'a str, usize),
    /// A scenario has ended.
    Scenario(&'a ScenarioResult),
}

/// The time for the operations of a scenario.
const PATIENCE: Duration = Duration::from_secs(10);

/// Plays all scenarios of all pairs.
///
/// # Errors
///
/// Fails if an implementation cannot be reached, or if the network between two cannot be set up.
pub fn run(
    implementations: &[Implementation],
    options: &InteropOptions,
    mut progress: impl FnMut(Progress<'_>),
) -> io::Result<Interop> {
    let mut result = Interop { seed: options.seed, ..Interop::default() };
    for initiator in implementations {
        for target in implementations.iter().filter(|target| target.name != initiator.name) {
            let names = (initiator.name.clone(), target.name.clone());
            if !options.pairs.is_empty() && !options.pairs.contains(&names) {
                continue;
            }
            if options.interrupt.load(Ordering::Relaxed) {
                result.stopped = true;
                return Ok(result);
            }
            let mut open = |implementation: &Implementation| {
                End::open(implementation, &options.interrupt, |control| progress(Progress::Waiting(control)))
            };
            let mut ends = [open(initiator)?, open(target)?];
            ends.iter_mut().for_each(|end| end.session.set_interrupt(Arc::clone(&options.interrupt)));
            for end in &ends {
                if !result.devices.iter().any(|known| known.name == end.name) {
                    let welcome = &end.session.welcome;
                    let (product, version) = (welcome.name.clone(), welcome.version.clone());
                    result.devices.push(Description { name: end.name.clone(), product, version });
                }
            }
            let scenarios = play_pair(&mut ends, options, &mut progress)?;
            result.stopped |= scenarios.iter().any(|one| one.stopped);
            result.pairs.push(Pair { initiator: names.0, target: names.1, scenarios });
        }
    }
    Ok(result)
}

fn play_pair(
    ends: &mut [End; 2],
    options: &InteropOptions,
    progress: &mut dyn FnMut(Progress<'_>),
) -> io::Result<Vec<ScenarioResult>> {
    let relay = relay(ends, options)?;
    let welcome = |end: usize| &ends[end].session.welcome;
    let selected = |id: &str| options.only.is_empty() || options.only.iter().any(|only| id.starts_with(only));
    // A whole id names a scenario of any plan.
    let full = options.full || options.only.iter().any(|only| only.ends_with(']'));
    let plan = scenario::plan([welcome(0), welcome(1)], full);
    let plan: Vec<_> = plan.into_iter().filter(|(one, _)| selected(&one.to_string())).collect();
    progress(Progress::Pair(&ends[0].name, &ends[1].name, plan.len()));
    let usable: Vec<Scenario> = plan.iter().filter(|(_, lack)| lack.is_none()).map(|(one, _)| *one).collect();
    let mut run = PairRun { ends, relay, options, gone: None, restarted: [false; 2], played: 0 };
    let mut results = Vec::new();
    for (one, lack) in plan {
        let result = run.play(one, lack, options.seed)?;
        // Their number is enough.
        if !result.stopped {
            progress(Progress::Scenario(&result));
        }
        results.push(result);
    }
    if let Some(span) = options.soak {
        run.soak(&usable, span, &mut results, progress)?;
    }
    Ok(results)
}

/// The most scenarios of a soak that are reported, as they do not pass.
const REPORTED: usize = 100;

/// A pair that plays scenarios.
struct PairRun<'a> {
    ends: &'a mut [End; 2],
    relay: Relay,
    options: &'a InteropOptions,
    /// The reason why no further scenario can be played.
    gone: Option<String>,
    /// The ends that have been started once more.
    restarted: [bool; 2],
    played: u64,
}

impl PairRun<'_> {
    /// Returns the result of a scenario that can no longer be played.
    fn not_played(&self) -> Option<ScenarioResult> {
        if self.is_interrupted() {
            return Some(signaled());
        }
        let why = self.gone.as_ref()?;
        Some(blank(PairVerdict::Inconclusive, format!("not played: {why}")))
    }

    fn is_interrupted(&self) -> bool {
        self.options.interrupt.load(Ordering::Relaxed)
    }

    /// Plays a scenario on both ends. A dead end starts once more.
    fn play_on_ends(&mut self, one: Scenario, seed: u64) -> io::Result<ScenarioResult> {
        let [initiator, target] = [0, 1].map(|end| &self.ends[end].name);
        let name = |folder: &Path| folder.join(format!("{initiator}-{target}-{}.pcapng", self.played));
        let file = self.options.captures.as_deref().map(name);
        let (result, dead) =
            play_one(self.ends, &mut self.relay, one, (seed, self.options.scale), file.as_deref())?;
        // A signal ends all waits for the ends, which says nothing about them.
        if self.is_interrupted() && result.verdict.is_problem() {
            return Ok(signaled());
        }
        if let Some(end) = dead {
            self.restart(end)?;
        }
        Ok(result)
    }

    /// Plays a scenario, unless an end lacks something for it.
    fn play(&mut self, one: Scenario, lack: Option<String>, seed: u64) -> io::Result<ScenarioResult> {
        let begun = Instant::now();
        self.played += 1;
        let names = [0, 1].map(|end| self.ends[end].name.clone());
        let mut result = match (lack, self.not_played()) {
            (Some(lack), _) => blank(PairVerdict::Skipped, lack),
            (None, Some(not_played)) => not_played,
            (None, None) => self.play_on_ends(one, seed)?,
        };
        result.id = one.to_string();
        let [initiator, target] = names;
        result.rerun =
            format!("{} --pair {initiator}:{target} --id '{one}' --seed {seed}", self.options.command);
        result.duration_ns = begun.elapsed().as_nanos() as u64;
        Ok(result)
    }

    fn restart(&mut self, end: usize) -> io::Result<()> {
        let name = self.ends[end].name.clone();
        if core::mem::replace(&mut self.restarted[end], true) {
            self.gone = Some(format!("{name} has died twice"));
            return Ok(());
        }
        match self.ends[end].restart() {
            // The network between them must know the new address.
            Ok(true) => self.relay = relay(self.ends, self.options)?,
            Ok(false) => self.gone = Some(format!("the control channel of {name} is closed")),
            Err(error) => self.gone = Some(format!("{name} does not start again: {error}")),
        }
        Ok(())
    }

    /// Plays scenarios again and again for this long, each round with another seed. Reports those that do not pass, and
    /// the number of all.
    fn soak(
        &mut self,
        scenarios: &[Scenario],
        span: Duration,
        results: &mut Vec<ScenarioResult>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> io::Result<()> {
        let begun = Instant::now();
        let (mut count, mut bad) = (0, 0);
        for (number, one) in scenarios.iter().cycle().enumerate() {
            if begun.elapsed() >= span || bad == REPORTED || self.not_played().is_some() {
                break;
            }
            let round = 1 + (number / scenarios.len()) as u64;
            let result = self.play(*one, None, self.options.seed.wrapping_add(round))?;
            // A signal is a usual end of a soak.
            if result.stopped {
                break;
            }
            count += 1;
            if result.verdict != PairVerdict::Pass {
                bad += 1;
                progress(Progress::Scenario(&result));
                results.push(result);
            }
        }
        let reason = format!("{count} scenarios, {bad} of them did not pass");
        let duration_ns = begun.elapsed().as_nanos() as u64;
        results.push(ScenarioResult { id: "soak".into(), duration_ns, ..blank(PairVerdict::Pass, reason) });
        Ok(())
    }
}

fn blank(verdict: PairVerdict, reason: String) -> ScenarioResult {
    ScenarioResult {
        id: String::new(),
        verdict,
        blame: None,
        requirement: None,
        reason,
        stopped: false,
        readings: Vec::new(),
        capture: None,
        rerun: String::new(),
        duration_ns: 0,
    }
}

/// Returns the result of a scenario that a signal ended, or that was not begun because of it.
fn signaled() -> ScenarioResult {
    let reason = "not played: a signal ended the run".to_owned();
    ScenarioResult { stopped: true, ..blank(PairVerdict::Inconclusive, reason) }
}

/// The last byte of the relay's own address.
const RELAY: u8 = 99;

/// Returns a loopback address that no other process uses. The relay has the one that ends in 99.
pub fn own_address(last: u8) -> IpAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high, low.max(1), last).into()
}

/// Creates the network between two ends.
fn relay(ends: &[End; 2], options: &InteropOptions) -> io::Result<Relay> {
    let places = [ends[0].place, ends[1].place];
    let Some(listen) = options.listen else {
        if !places.iter().all(|place| place.ip().is_loopback() && place.is_ipv4()) {
            return Err(io::Error::other(
                "name an address of this machine that both implementations reach: --listen ADDRESS",
            ));
        }
        // An end that takes no port for its peer uses its own, and that is most often the registered one.
        let at = |port| Relay::new(places, SocketAddr::new(own_address(RELAY), port), options.seed);
        let registered = places.iter().map(SocketAddr::port).find(|port| *port == UDP_PORT);
        return at(registered.unwrap_or(places[0].port())).or_else(|_| at(0));
    };
    Relay::new(places, listen, options.seed)
}

/// A file in memory that outlives its writer.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

/// Maximum size of the capture of a scenario. A correct pair needs a hundredth of it.
const LARGEST: usize = 1 << 28;

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if file.len() > LARGEST {
            return Err(io::Error::other(format!("they have more than {LARGEST} bytes")));
        }
        file.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the keys of a key file.
fn ring(key_file: Option<&str>) -> io::Result<Option<KeyRing>> {
    key_file.map(KeyRing::from_toml).transpose().map_err(io::Error::other)
}

/// Plays a scenario. Returns its result, and the end whose control channel broke.
fn play_one(
    ends: &mut [End; 2],
    relay: &mut Relay,
    scenario: Scenario,
    (seed, scale): (u64, f64),
    file: Option<&Path>,
) -> io::Result<(ScenarioResult, Option<usize>)> {
    // Both ends forget the contexts of the last scenario before its last packets do harm.
    for end in [0, 1] {
        if let Err(obstacle) = ends[end].call(end, Reset {}) {
            let dead = matches!(obstacle, Obstacle::Dead(..)).then_some(end);
            return Ok((
                verdict(ends, Err(obstacle), judge::Evidence::default(), Default::default(), false),
                dead,
            ));
        }
    }
    relay.renew(seed)?;
    let key_file = scenario.key_file(seed);
    relay.keys = ring(key_file.as_deref())?;
    let packets = Shared::default();
    let network = relay.network();
    let mut capture = Capture::new(Box::new(packets.clone()), Outer::default())?;
    if let Some(key_file) = &key_file {
        capture.write_secrets(key_file.as_bytes())?;
    }
    network.capture(capture);
    for effect in scenario.effects() {
        let effect: Impairment =
            effect.parse().map_err(|error| io::Error::other(format!("{effect}: {error}")))?;
        network.fabric().impair(effect);
    }
    let (address, clock) = (relay.local(), relay.clock());
    let patience = PATIENCE.mul_f64(scale);
    let stopped = AtomicBool::new(false);
    let (ended, readings, posted) = std::thread::scope(|scope| {
        let served = scope.spawn(|| relay.serve(&stopped));
        let mut play = Play::new(ends, (address, clock), scenario, key_file.as_deref(), patience);
        let ended = play.run();
        let (readings, posted) = (play.readings, play.posted);
        stopped.store(true, Ordering::Relaxed);
        let served = served.join().map_err(|_| io::Error::other("the network between the ends failed"))?;
        served.map(|()| (ended, readings, posted))
    })?;
    if let Some(Err(error)) = relay.network().end_capture().map(Capture::finish) {
        return Ok((blank(PairVerdict::Inconclusive, format!("the packets were not kept: {error}")), None));
    }
    let packets = packets.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut evidence = judge::read(&packets, &posted, ring(key_file.as_deref())?)?;
    evidence.read_at = clock.now();
    if scenario.effects().is_empty() && posted.restarted.is_none() {
        evidence.errors.extend(evidence.ignored.take());
    }
    // An end may state a fixed Start_PSN, for tests.
    if ends.iter().all(|end| end.number("start_psn").is_none()) {
        evidence.errors.extend(evidence.equal_starts.take());
    }
    // Other flow control by credit may count otherwise.
    if scenario.congestion() == Some("rccc") {
        evidence.causes.extend(evidence.credit_back.take());
    }
    let dead = match &ended {
        Err(Obstacle::Dead(end, _)) => Some(*end),
        _ => None,
    };
    let mut result = verdict(ends, ended, evidence, readings, scenario.mode == Mode::Uud);
    if let Some(path) = file.filter(|_| result.verdict.is_problem()) {
        file::replace(path, &packets)?;
        result.capture = Some(path.display().to_string());
    }
    Ok((result, dead))
}
