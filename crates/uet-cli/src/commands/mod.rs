//! The commands of the `uet` program: a file or folder with the name of each. `packaging` has `uet completions` and
//! `uet man`.
//!
//! The other files serve several commands. `device`, `filter`, `statement`, `corrections` and `faults` read options
//! about the device and the rules. `live` and `ethernet_capture` read and write captures. `foreign`, `trailer_hints`,
//! `trim_hints` and `known` explain inputs that do not fit. `output` writes files, and `signal` ends a command.

#[cfg(target_os = "linux")]
mod adapter;
mod anonymize;
mod audit;
mod check;
mod corpus;
pub mod corrections;
mod decode;
mod decrypt;
mod device;
mod doctor;
#[cfg(target_os = "linux")]
mod emulate;
mod encode;
mod ethernet_capture;
mod explain;
mod faults;
mod filter;
mod foreign;
mod fuzz;
mod generate;
#[cfg(target_os = "linux")]
mod interop;
mod known;
mod layout;
#[cfg(target_os = "linux")]
mod libfabric;
mod list;
mod live;
mod output;
mod packaging;
pub mod pics;
#[cfg(target_os = "linux")]
mod proxy;
mod replay;
mod run;
mod scapy;
mod signal;
mod simulate;
mod site;
pub mod statement;
mod stats;
mod switch;
mod trailer_hints;
mod trim_hints;
mod wireshark;

use crate::near;
use crate::progress::Progress;
use crate::toml_error;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use toml::Spanned;
use uet_control::{PARAMETERS, Parameter, escape, escape_lines};
use uet_emulator::Config;
use uet_packet_io::Decoder;
use uet_packet_io::file;
use uet_packet_io::input::{self, InputError, Taker};
use uet_packet_io::keys::{KeyError, KeyRing};
use uet_wire::outer::{IP_PROTO, UDP_PORT};
use uet_wire::{Options, Spec, Start, TrailerKind, Version};
use zeroize::Zeroizing;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Read, check and write packets of Ultra Ethernet Transport.
#[derive(Debug, Parser)]
#[command(name = "uet", version, styles = STYLES, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  uet decode capture.pcapng                     each packet as a tree
  uet decode --format summary capture.pcapng    a line per packet
  uet decode --format json capture.pcapng       one JSON object per line
  uet decode --from uet 380000000001200380014001
  uet check capture.pcapng                      violations, each with its sender
  uet stats capture.pcapng                      goodput, retransmissions and response times
  uet anonymize capture.pcapng shared.pcapng    a capture that may leave the lab
  uet layout ack_cc                             the figure of a header
  uet explain nack 0x0f                         the meaning of a code point
  uet run                                       the conformance suite, on the built-in NIC
  uet list                                      its rules, and the requirements that they check
  uet doctor --control 127.0.0.1:9000           checks if a device can be tested
  uet emulate                                   the built-in NIC, on UDP
  uet interop --device a=embedded --device b=embedded  two implementations, and who is to blame
  uet switch                                    a switch: marks, trims and paths
  uet fuzz udp://127.0.0.1:4793                 tries to break a device
  uet simulate --pattern incast --senders 32    congestion control with many senders

Exit codes: 0 all is well, 1 something is malformed or breaks a rule, 2 usage or unreadable input;
3 (uet run) nothing passed, or a rule is inconclusive.")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Decode(decode::Decode),
    Check(check::Check),
    Stats(stats::Stats),
    Decrypt(decrypt::Decrypt),
    Anonymize(anonymize::Anonymize),
    Encode(encode::Encode),
    Layout(layout::Layout),
    Wireshark(wireshark::Wireshark),
    Scapy(scapy::Scapy),
    Generate(generate::Generate),
    #[cfg(target_os = "linux")]
    Libfabric(libfabric::Libfabric),
    Explain(explain::Explain),
    Corpus(corpus::Corpus),
    Site(site::Site),
    Simulate(Box<simulate::Simulate>),
    Run(Box<run::Run>),
    Fuzz(fuzz::Fuzz),
    Replay(replay::Replay),
    Pics(pics::Pics),
    Audit(audit::Audit),
    List(list::List),
    Doctor(doctor::Doctor),
    #[cfg(target_os = "linux")]
    Adapter(adapter::Adapter),
    #[cfg(target_os = "linux")]
    Emulate(emulate::Emulate),
    #[cfg(target_os = "linux")]
    Proxy(proxy::Proxy),
    #[cfg(target_os = "linux")]
    Interop(interop::Interop),
    Switch(switch::Switch),
    Completions(packaging::Completions),
    Man(packaging::Man),
}

/// Output format of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Listing {
    /// Readable text. A listing in a pipe has one entry per line, its identifier first
    Text,
    /// One JSON object per line
    Json,
}

/// The result of a command; it determines the exit code.
enum Outcome {
    /// No problem was found.
    Ok,
    /// A packet is malformed or violates a rule.
    Violation,
    /// Some input could not be read; the command has reported it.
    UsageError,
    /// No violation is known, but too little could be checked.
    Inconclusive,
}

impl Outcome {
    /// Returns the outcome of this exit code of a run.
    fn of(code: u8) -> Self {
        match code {
            0 => Outcome::Ok,
            1 => Outcome::Violation,
            2 => Outcome::UsageError,
            _ => Outcome::Inconclusive,
        }
    }
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse_from(arguments()).unwrap_or_else(|error| usage(&suggested(error)));
    let ended = match cli.command {
        Command::Decode(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Stats(command) => command.run(),
        Command::Decrypt(command) => command.run(),
        Command::Anonymize(command) => command.run(),
        Command::Encode(command) => command.run(),
        Command::Layout(command) => command.run(),
        Command::Wireshark(command) => command.run(),
        Command::Scapy(command) => command.run(),
        Command::Generate(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Libfabric(command) => command.run(),
        Command::Explain(command) => command.run(),
        Command::Corpus(command) => command.run(),
        Command::Site(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Fuzz(command) => command.run(),
        Command::Replay(command) => command.run(),
        Command::Pics(command) => command.run(),
        Command::Audit(command) => command.run(),
        Command::Simulate(command) => command.run(),
        Command::List(command) => command.run(),
        Command::Doctor(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Adapter(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Emulate(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Proxy(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Interop(command) => command.run(),
        Command::Switch(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
    };
    match ended {
        Ok(Outcome::Ok) => ExitCode::SUCCESS,
        Ok(Outcome::Violation) => ExitCode::from(1),
        Ok(Outcome::UsageError) => ExitCode::from(2),
        Ok(Outcome::Inconclusive) => ExitCode::from(3),
        // The reader of the output has left.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("{error}{}", advice(error.kind())));
            ExitCode::from(2)
        }
    }
}

/// Returns the arguments of the process. `uet help COMMAND` is `uet COMMAND --help`.
fn arguments() -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|word| word == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    arguments
}

/// Adds the commands that the user may have meant. clap finds none for two swapped letters of a short word.
fn suggested(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};

    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if error.get(ContextKind::SuggestedSubcommand).is_none() => {
            word.clone()
        }
        _ => return error,
    };
    let cli = <Cli as clap::CommandFactory>::command();
    let meant = near::near(&word, cli.get_subcommands().map(clap::Command::get_name));
    if !meant.is_empty() {
        let meant = meant.into_iter().map(str::to_owned).collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(meant));
    }
    error
}

/// Prints help, the version or a usage error, and ends the program. An argument that could harm a terminal is escaped.
fn usage(error: &clap::Error) -> ! {
    #[cfg(not(target_os = "linux"))]
    if let Some(name) = linux_only(error) {
        complain(format_args!(
            "`{name}` works on Linux only; other systems have the built-in NIC, captures and encoding"
        ));
        std::process::exit(2);
    }
    let hostile =
        |argument: std::ffi::OsString| escape(&argument.to_string_lossy()) != argument.to_string_lossy();
    if error.use_stderr() && std::env::args_os().any(hostile) {
        // A failure of this write cannot be reported.
        let _ = write!(io::stderr(), "{}", escape_lines(&error.render().to_string()));
        std::process::exit(2);
    }
    error.exit()
}

/// Returns the command, option or device of a usage error, if Linux has it.
#[cfg(not(target_os = "linux"))]
fn linux_only(error: &clap::Error) -> Option<&str> {
    use clap::error::{ContextKind, ContextValue};

    const NAMES: [&str; 12] = [
        "adapter",
        "emulate",
        "interop",
        "libfabric",
        "proxy",
        "--control",
        "--dut",
        "--local",
        "--no-control",
        "--peer-mac",
        "--restart",
        "--to",
    ];
    let known = |name: &str| {
        NAMES.contains(&name) || ["exec:", "raw:", "udp://"].iter().any(|kind| name.starts_with(kind))
    };
    [ContextKind::InvalidSubcommand, ContextKind::InvalidArg].into_iter().find_map(|kind| {
        match error.get(kind) {
            Some(ContextValue::String(name)) if known(name) => Some(name.as_str()),
            _ => None,
        }
    })
}

/// Returns advice for a system error whose text has none.
fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrInUse => "; another program listens there: end it, or choose another port",
        io::ErrorKind::AddrNotAvailable => "; choose an address of this machine (`ip address` lists them)",
        io::ErrorKind::ConnectionRefused => {
            "; no program listens there: start the device, or correct the address"
        }
        _ => "",
    }
}

/// Prints an error or a warning. It may quote a device, a file or an argument, so it is escaped.
fn complain(what: impl Display) {
    // A failure of this write cannot be reported.
    let _ = writeln!(io::stderr(), "uet: {}", escape_lines(&what.to_string()));
}

/// Creates an error about an input, with its name.
fn about(path: &Path, error: impl Display) -> io::Error {
    let path = if path == Path::new("-") { Path::new("standard input") } else { path };
    io::Error::other(format!("{}: {error}", path.display()))
}

/// Sets the parameters of the NIC from a file.
fn read_config(path: &Path, config: &mut Config) -> io::Result<()> {
    let text = file::read_text(path, file::MAX_SETTINGS).map_err(|error| about(path, error))?;
    configure(path, &text, config)
}

/// Sets the parameters of the NIC from the text of a file. An error names the path and the line.
pub fn configure(path: &Path, text: &str, config: &mut Config) -> io::Result<()> {
    let table: BTreeMap<Spanned<String>, toml::Value> =
        toml::from_str(text).map_err(|error| about(path, toml_error::shown(&error)))?;
    for (name, value) in table {
        let value = serde_json::to_value(value)?;
        let line = line_at(text, name.span().start);
        let at = |error: &dyn Display| about(path, format_args!("line {line}: {error}"));
        let name = name.get_ref();
        if Parameter::find(name).is_none() {
            let known = PARAMETERS.iter().map(|parameter| parameter.name);
            let unknown = near::unknown("parameter", name, known);
            let hint = if unknown.ends_with('?') { "" } else { "; docs/parameters.md lists them" };
            return Err(at(&format_args!("{unknown}{hint}")));
        }
        config.set(name, &value).map_err(|error| at(&error))?;
    }
    Ok(())
}

/// Returns the line of a byte offset, counted from 1.
fn line_at(text: &str, place: usize) -> usize {
    text.get(..place).unwrap_or_default().matches('\n').count() + 1
}

/// Reads a key file for a sender.
#[cfg(target_os = "linux")]
fn read_keys(path: &Path) -> io::Result<Vec<uet_control::SecureDomain>> {
    uet_packet_io::keys::domains_from_toml(&key_text(path)?).map_err(|error| about_keys(path, &error))
}

fn about_keys(path: &Path, error: &KeyError) -> io::Error {
    about(path, format_args!("{error}; docs/security.md describes key files"))
}

/// Returns the text of a key file.
fn key_text(path: &Path) -> io::Result<Zeroizing<String>> {
    file::read_text(path, file::MAX_SETTINGS).map(Zeroizing::new).map_err(|error| about(path, error))
}

/// Adds the keys that a capture holds.
fn add_secrets(decoder: Option<&mut Decoder>, key_file: &[u8]) {
    if let Some(Err(error)) = decoder.map(|decoder| decoder.add_secrets(key_file)) {
        complain(format_args!("warning: the decryption secrets of the capture are not used: {error}"));
    }
}

/// Passes the packets of a file, or of standard input for `-`, to `taker`. Shows progress on a terminal.
fn records(input: &Path, start: Start, taker: &mut dyn Taker) -> Result<(), InputError> {
    if input == Path::new("-") {
        let (stdin, stopped) = signal::stdin().map_err(InputError::Io)?;
        return match input::read_live(stdin, start, taker) {
            // A signal can end the input in the middle of a packet.
            Err(InputError::Capture { .. } | InputError::Text { .. }) if stopped.load(Ordering::Relaxed) => {
                Ok(())
            }
            read => read,
        };
    }
    let file = File::open(input).map_err(InputError::Io)?;
    let total = file.metadata().map_err(InputError::Io)?.len();
    input::read_live(Progress::new(total).watch(file), start, taker)
}

/// Reports an input that cannot be read, after the packets before the error. Returns whether it was readable.
fn readable(input: &Path, read: Result<(), InputError>, taker: &mut dyn Taker) -> io::Result<bool> {
    match read {
        Ok(()) => Ok(true),
        Err(InputError::Sink(error)) => Err(error),
        Err(error) => {
            taker.pause()?;
            complain(about(input, error));
            Ok(false)
        }
    }
}

/// Deployment settings that no packet contains.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Deployment")]
struct Deployment {
    /// UDP destination port of UET
    #[arg(long, value_name = "PORT", default_value_t = UDP_PORT)]
    udp_port: u16,
    /// IP protocol number of the native encapsulation
    #[arg(long, value_name = "NUMBER", default_value_t = IP_PROTO)]
    ip_proto: u8,
    /// Trailer of packets
    #[arg(long, value_enum, value_name = "KIND", default_value = "auto")]
    trailer: Trailer,
    /// Keys of secured packets, in TOML [default: the decryption secrets of a pcapng capture]
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// DSCP of packets that a switch trimmed [default: only the length of a packet shows trimming]
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(..64))]
    trimmed_dscp: Option<u8>,
    /// DSCP of packets trimmed at the last hop
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(..64))]
    trimmed_lasthop_dscp: Option<u8>,
    /// Version of the specification that packets are judged by
    #[arg(long, value_name = "VERSION", value_parser = spec, default_value_t = Version::default().spec())]
    spec: &'static Spec,
}

impl Deployment {
    /// Returns the decoder for an input. Fails if the key file cannot be used.
    fn decoder(&self, raw: bool) -> io::Result<Decoder> {
        let mut decoder = Decoder::new(self.options(), raw);
        if let Trailer::Auto = self.trailer {
            decoder = decoder.recognizing_trailers();
        }
        if let Some(keys) = self.key_ring()? {
            decoder = decoder.with_keys(keys);
        }
        Ok(decoder)
    }

    /// Reads the keys, if any are named.
    fn key_ring(&self) -> io::Result<Option<KeyRing>> {
        let Some(path) = &self.keys else { return Ok(None) };
        KeyRing::from_toml(&key_text(path)?).map(Some).map_err(|error| about_keys(path, &error))
    }

    fn options(&self) -> Options {
        let trailer = match self.trailer {
            Trailer::Auto | Trailer::None => TrailerKind::None,
            Trailer::Crc => TrailerKind::Crc,
            Trailer::Icv => TrailerKind::Icv,
        };
        Options::DEFAULT
            .udp_port(self.udp_port)
            .ip_proto(self.ip_proto)
            .trailer(trailer)
            .trimmed_dscp(self.trimmed_dscp)
            .trimmed_lasthop_dscp(self.trimmed_lasthop_dscp)
            .spec(self.spec)
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Trailer {
    /// Secured packets (TSS) end with an ICV. Other packets may end with a CRC. If two packets of a sender end with a valid CRC, its later packets must end with one too
    Auto,
    /// Nothing
    None,
    /// A CRC-32C of 4 bytes
    Crc,
    /// The integrity check value of TSS, 16 bytes
    Icv,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    Eth,
    Ip,
    Udp,
    Uet,
}

impl From {
    fn start(self) -> Start {
        match self {
            From::Eth => Start::Eth,
            From::Ip => Start::Ip,
            From::Udp => Start::Udp,
            From::Uet => Start::Uet,
        }
    }
}

/// Parses the argument of `--spec`.
fn spec(text: &str) -> Result<&'static Spec, String> {
    let known = || Spec::ALL.iter().map(|spec| spec.name()).collect::<Vec<_>>().join(", ");
    let found = Spec::ALL.iter().find(|spec| spec.name() == text);
    found.copied().ok_or_else(|| format!("the known versions are {}", known()))
}
