//! Selection of the device, shared by the commands that use one.

use super::faults;
use clap::Args;
#[cfg(target_os = "linux")]
use std::fmt;
use std::io;
#[cfg(target_os = "linux")]
use std::net::IpAddr;
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use uet_conformance::{Dut, Options, predicted_skips};
use uet_emulator::Config;
use uet_emulator::capture::Capture;
use uet_emulator::fault::Fault;
use uet_emulator::frame::Outer;
#[cfg(target_os = "linux")]
use uet_emulator::link::neighbor::PeerMac;
#[cfg(target_os = "linux")]
use uet_harness::dut::{At, Blind, Remote, once_it_listens};
use uet_harness::dut::{Embedded, Family};
use uet_model::network::{Impairment, SyntaxError};
use uet_wire::{Spec, Version};

/// Selection of the device. Without --dut and --control, it is the embedded NIC in virtual time.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which device")]
pub(super) struct DeviceArgs {
    /// Device under test: `exec:COMMAND` starts it, with the control channel on its standard input and output.
    /// `udp://HOST:PORT` is the destination of packets, if it differs from the one that the device reports on
    /// --control. `raw:INTERFACE` is the local interface to a device on Ethernet; it needs --control. `embedded` is the
    /// built-in NIC
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "DEVICE")]
    dut: Option<Place>,
    /// The control channel of the device: tcp://HOST:PORT, or HOST:PORT
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "ADDRESS")]
    control: Option<String>,
    /// Test a device without a control channel, by packets alone; needs --dut udp://HOST:PORT. Rules that need an
    /// operation of the device are skipped
    #[cfg(target_os = "linux")]
    #[arg(long, conflicts_with = "control", requires = "dut")]
    no_control: bool,
    /// Addresses of the suite: some rules need two [default: 127.0.0.2,127.0.0.3 if the device is on
    /// loopback]
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    local: Vec<IpAddr>,
    /// Ethernet address of the device on --dut raw:INTERFACE, if it answers neither ARP nor neighbor discovery:
    /// 10.0.0.2=02:00:00:00:00:07
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "ADDRESS=MAC")]
    peer_mac: Vec<PeerMac>,
    /// Impair the network of the built-in NIC: 'drop 5%', 'drop request 3', 'delay 20us', 'mark ack every 4'
    /// (docs/emulator.md lists all effects)
    #[arg(long, value_name = "EFFECT", value_parser = impairment)]
    impair: Vec<Impairment>,
    /// Add a deliberate fault to the built-in NIC (`uet emulate --list-faults`); may be given several times
    #[arg(long, value_name = "NAME", value_parser = faults::named)]
    fault: Vec<&'static Fault>,
    /// Check against this version of the specification. The built-in NIC speaks it too
    #[arg(long, value_name = "VERSION", value_parser = super::spec, default_value_t = Version::default().spec())]
    pub(super) spec: &'static Spec,
    /// IP version of the link to the built-in NIC: 4, 6, or both. With both, the seed selects the version for
    /// each instance [default: both]
    #[arg(long, value_name = "VERSION")]
    family: Option<Family>,
    /// Parameters of the built-in NIC, as TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

fn impairment(text: &str) -> Result<Impairment, SyntaxError> {
    text.parse()
}

impl DeviceArgs {
    /// Connects to the device.
    pub(super) fn open(&self, seed: u64) -> io::Result<Device> {
        #[cfg(target_os = "linux")]
        if self.no_control {
            return match &self.dut {
                Some(Place::At(At::Udp(place))) => {
                    let local = self.local.first().copied();
                    Blind::for_suite(place, local).map(|blind| Device::Blind(Box::new(blind)))
                }
                _ => Err(io::Error::other(
                    "--no-control needs the address of the device: --dut udp://HOST:PORT",
                )),
            };
        }
        #[cfg(target_os = "linux")]
        if let Some(remote) = self.remote()? {
            return Ok(Device::Remote(Box::new(remote)));
        }
        let mut config = Config { seed, ..Config::default() };
        config.version = self.spec.released();
        if let Some(path) = &self.config {
            super::read_config(path, &mut config)?;
        }
        let mut embedded = Embedded::over(self.family.unwrap_or(Family::Both), config, &self.fault)
            .map_err(io::Error::other)?;
        if !self.impair.is_empty() {
            let fabric = embedded.network().fabric();
            self.impair.iter().for_each(|impairment| fabric.impair(impairment.clone()));
        }
        Ok(Device::Embedded(Box::new(embedded)))
    }

    /// Connects to a device other than the embedded NIC.
    #[cfg(target_os = "linux")]
    fn remote(&self) -> io::Result<Option<Remote>> {
        let refuse = |why: &str| Err(io::Error::other(why));
        let inside = self.control.is_none() && matches!(self.dut, None | Some(Place::Embedded));
        if !self.peer_mac.is_empty() && !matches!(self.dut, Some(Place::At(At::Raw { .. }))) {
            return refuse("--peer-mac needs a device on Ethernet: --dut raw:INTERFACE");
        }
        if inside && !self.local.is_empty() {
            return refuse("--local needs an external device: add --dut or --control");
        }
        let of_the_built_in = !self.impair.is_empty()
            || !self.fault.is_empty()
            || self.family.is_some()
            || self.config.is_some();
        if !inside && of_the_built_in {
            return refuse(
                "--impair, --fault, --family and --config apply only to the built-in NIC; to impair another network, use `uet proxy`",
            );
        }
        match (&self.dut, &self.control) {
            (None | Some(Place::Embedded), None) => Ok(None),
            (None, Some(control)) => self.connected(control, &At::AsItSays).map(Some),
            (Some(Place::At(At::Raw { interface, .. })), Some(control)) => {
                let at = At::Raw { interface: interface.clone(), peers: self.peer_mac.clone() };
                self.connected(control, &at).map(Some)
            }
            (Some(Place::At(at)), Some(control)) => self.connected(control, at).map(Some),
            (Some(Place::Exec(command)), None) => Remote::start(command, &self.local).map(Some),
            (Some(Place::At(_)), None) => refuse(
                "--dut udp://HOST:PORT and raw:INTERFACE need --control tcp://HOST:PORT: the suite directs the device through \
                 its control channel (docs/control-channel.md); with udp://, --no-control runs what packets alone allow",
            ),
            (Some(_), Some(_)) => refuse(
                "--control needs a running device: use --dut udp://HOST:PORT or raw:INTERFACE, or leave --dut out",
            ),
        }
    }

    /// Connects to a running device, or to one that is starting.
    #[cfg(target_os = "linux")]
    fn connected(&self, control: &str, at: &At) -> io::Result<Remote> {
        patiently(control, || Remote::connect(control, at, &self.local))
    }

    /// Returns whether options select a device other than the built-in NIC.
    pub(super) fn is_selected(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.dut.is_some() || self.control.is_some();
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// Returns the selection of this device instead of the selected one.
    pub(super) fn with(&self, named: &Named) -> Self {
        #[cfg(target_os = "linux")]
        {
            let mut other = self.clone();
            match &named.place {
                NamedPlace::Place(place) => other.dut = Some(place.clone()),
                NamedPlace::Control(address) => other.control = Some(address.clone()),
            }
            other
        }
        // Only the built-in NIC has a name there.
        #[cfg(not(target_os = "linux"))]
        {
            let _ = named;
            self.clone()
        }
    }

    /// Returns the command-line options that select the device.
    pub(super) fn words(&self) -> String {
        let mut words = String::new();
        let mut add = |name: &str, value: &dyn std::fmt::Display| {
            words.push_str(&format!(" --{name}"));
            let value = value.to_string();
            if !value.is_empty() {
                words.push_str(&format!(" {}", quoted(&value)));
            }
        };
        #[cfg(target_os = "linux")]
        {
            self.dut.iter().for_each(|place| add("dut", place));
            self.control.iter().for_each(|control| add("control", control));
            if self.no_control {
                add("no-control", &"");
            }
            let local: Vec<String> = self.local.iter().map(ToString::to_string).collect();
            if !local.is_empty() {
                add("local", &local.join(","));
            }
            self.peer_mac.iter().for_each(|peer| add("peer-mac", peer));
        }
        self.impair.iter().for_each(|impairment| add("impair", impairment));
        self.fault.iter().for_each(|fault| add("fault", &fault.name));
        self.family.iter().for_each(|family| add("family", family));
        self.config.iter().for_each(|path| add("config", &path.display()));
        if self.spec != Version::default().spec() {
            add("spec", &self.spec);
        }
        words
    }
}

/// Connects to a device. If it is still starting, waits and says so.
#[cfg(target_os = "linux")]
pub(super) fn patiently<T>(control: &str, connect: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    once_it_listens(|| super::complain(not_yet(control)), connect)
}

/// Returns the message that the wait for a device begins.
#[cfg(target_os = "linux")]
pub(super) fn not_yet(control: &str) -> String {
    format!("nobody listens at {control} yet; trying again")
}

/// One of several devices: `NAME=HOST:PORT` of its control channel, `NAME=exec:COMMAND` or `NAME=embedded`.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    #[cfg(target_os = "linux")]
    place: NamedPlace,
}

#[cfg(target_os = "linux")]
#[derive(Clone, Debug)]
enum NamedPlace {
    Place(Place),
    Control(String),
}

#[cfg(target_os = "linux")]
impl Named {
    /// Returns the command that starts the device.
    pub(super) fn command(&self) -> Option<&str> {
        match &self.place {
            NamedPlace::Place(Place::Exec(command)) => Some(command),
            _ => None,
        }
    }

    /// Returns the address of the control channel.
    pub(super) fn control(&self) -> Option<&str> {
        match &self.place {
            NamedPlace::Control(address) => Some(address),
            NamedPlace::Place(_) => None,
        }
    }
}

#[cfg(target_os = "linux")]
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            NamedPlace::Place(place) => write!(f, "{}={place}", self.name),
            NamedPlace::Control(address) => write!(f, "{}={address}", self.name),
        }
    }
}

impl std::str::FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "expected NAME=HOST:PORT, NAME=exec:COMMAND or NAME=embedded";
        let unnamed = || {
            let option = if text.starts_with("exec:") { "--dut" } else { "--control" };
            format!("NAME= is missing: {wanted}. For this device alone: {option} '{text}'")
        };
        let (name, place) = text.split_once('=').ok_or_else(unnamed)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
            return Err("a name has letters, digits, '-', '_' and '.', and does not begin with '.'".into());
        }
        #[cfg(not(target_os = "linux"))]
        return match place {
            "embedded" => Ok(Named { name: name.into() }),
            _ => Err(wanted.into()),
        };
        #[cfg(target_os = "linux")]
        {
            let address = place.strip_prefix("tcp://").unwrap_or(place);
            let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
            let place = match place.parse() {
                Ok(place @ (Place::Exec(_) | Place::Embedded)) => NamedPlace::Place(place),
                _ if port.is_some() => NamedPlace::Control(place.into()),
                _ => return Err(wanted.into()),
            };
            Ok(Named { name: name.into(), place })
        }
    }
}

/// Location of a device.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In this process.
    Embedded,
    /// In a process that this shell command starts.
    Exec(String),
    /// At this address, regardless of the one that it reports.
    At(At),
}

#[cfg(target_os = "linux")]
impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "embedded" => Ok(Place::Embedded),
            Some(("exec", command)) if !command.trim().is_empty() => Ok(Place::Exec(command.into())),
            Some(("udp", place)) if place.starts_with("//") => {
                let place = place.trim_start_matches("//");
                let port = place.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
                port.map(|_| Place::At(At::Udp(place.into())))
                    .ok_or_else(|| "expected udp://HOST:PORT".into())
            }
            Some(("raw", interface)) if !interface.is_empty() => {
                Ok(Place::At(At::Raw { interface: interface.into(), peers: Vec::new() }))
            }
            Some(("tcp", _)) => {
                Err("a control channel is no place for packets: write --control HOST:PORT".into())
            }
            _ => Err("expected exec:COMMAND, udp://HOST:PORT, raw:INTERFACE or embedded".into()),
        }
    }
}

#[cfg(target_os = "linux")]
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Embedded => f.write_str("embedded"),
            Place::Exec(command) => write!(f, "exec:{}", without_values(command)),
            Place::At(At::AsItSays) => Ok(()),
            Place::At(At::Udp(place)) => write!(f, "udp://{place}"),
            Place::At(At::Raw { interface, .. }) => write!(f, "raw:{interface}"),
        }
    }
}

/// Returns a shell command with the values of variables hidden: those of `NAME=VALUE` before a program, and behind
/// `env` and `export`. They may be secrets, and reports are passed on.
#[cfg(target_os = "linux")]
fn without_values(command: &str) -> String {
    let (mut shown, mut rest, mut is_before_program) = (String::new(), command, true);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            ';' | '&' | '|' | '(' | '{' | '\n' => {
                is_before_program = true;
                first.len_utf8()
            }
            _ if first.is_whitespace() => first.len_utf8(),
            _ => word_length(rest),
        };
        let (word, after) = rest.split_at(length);
        rest = after;
        match word.split_once('=') {
            Some((name, _)) if is_before_program && is_variable(name) => {
                shown += name;
                shown += "=...";
                continue;
            }
            _ => shown += word,
        }
        let is_word = !word.starts_with([';', '&', '|', '(', '{', '\n']) && !word.trim().is_empty();
        is_before_program &= !is_word || matches!(word, "env" | "export");
    }
    shown
}

#[cfg(target_os = "linux")]
fn is_variable(name: &str) -> bool {
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the length of the shell word at the begin of a text. A word with a substitution, whose end is hard to find,
/// ends with the text.
#[cfg(target_os = "linux")]
fn word_length(text: &str) -> usize {
    let (mut quote, mut letters) = (None, text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '`') => return text.len(),
            (_, '$') if text[at..].starts_with("$(") => return text.len(),
            (_, '\\') => {
                letters.next();
            }
            (None, '\'' | '"') => quote = Some(letter),
            (None, ';' | '&' | '|' | ')') => return at.max(1),
            (None, letter) if letter.is_whitespace() => return at,
            _ => {}
        }
    }
    text.len()
}

/// Quotes a word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=@%+[]".contains(&byte);
    match word.bytes().all(plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The device under test.
pub(super) enum Device {
    Embedded(Box<Embedded>),
    #[cfg(target_os = "linux")]
    Remote(Box<Remote>),
    /// Without a control channel.
    #[cfg(target_os = "linux")]
    Blind(Box<Blind>),
}

impl Device {
    pub(super) fn dut(&mut self) -> &mut dyn Dut {
        match self {
            Device::Embedded(device) => &mut **device,
            #[cfg(target_os = "linux")]
            Device::Remote(device) => &mut **device,
            #[cfg(target_os = "linux")]
            Device::Blind(device) => &mut **device,
        }
    }

    /// Returns the rules that a run skips, with the reasons. The built-in NIC stands in for the device.
    pub(super) fn predicted_skips(&mut self, options: &Options) -> io::Result<Vec<(&'static str, String)>> {
        let config = Config { version: options.spec.released(), ..Config::default() };
        let mut stand_in = Embedded::over(Family::V4, config, &[]).map_err(io::Error::other)?;
        Ok(predicted_skips(self.dut(), &mut stand_in, options))
    }

    /// Returns the encapsulation of its packets in captures.
    pub(super) fn outer(&self) -> Outer {
        match self {
            Device::Embedded(_) => Outer::default(),
            #[cfg(target_os = "linux")]
            Device::Blind(_) => Outer::default(),
            #[cfg(target_os = "linux")]
            Device::Remote(device) => device.outer(),
        }
    }

    /// Captures all packets.
    pub(super) fn capture(&mut self, capture: Capture) {
        match self {
            Device::Embedded(device) => device.network().capture(capture),
            #[cfg(target_os = "linux")]
            Device::Remote(device) => device.capture(capture),
            #[cfg(target_os = "linux")]
            Device::Blind(device) => device.capture(capture),
        }
    }

    /// Ends all waits for the device once this flag is true. The built-in NIC needs no time.
    pub(super) fn set_interrupt(&mut self, interrupt: Arc<AtomicBool>) {
        match self {
            Device::Embedded(_) => drop(interrupt),
            #[cfg(target_os = "linux")]
            Device::Remote(device) => device.set_interrupt(interrupt),
            #[cfg(target_os = "linux")]
            Device::Blind(device) => device.set_interrupt(interrupt),
        }
    }

    pub(super) fn end_capture(&mut self) -> Option<Capture> {
        match self {
            Device::Embedded(device) => device.network().end_capture(),
            #[cfg(target_os = "linux")]
            Device::Remote(device) => device.end_capture(),
            #[cfg(target_os = "linux")]
            Device::Blind(device) => device.end_capture(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn command_in_reports_hides_values_of_variables() {
        for (command, shown) in [
            ("python3 nic.py --seed=3 size=4", "python3 nic.py --seed=3 size=4"),
            ("TOKEN=s3cret python3 nic.py size=4", "TOKEN=... python3 nic.py size=4"),
            ("A='s3 cret' B=\"s3\\\" cret\" C=s3\\ cret nic", "A=... B=... C=... nic"),
            ("A=s3cret; B=s3cret nic|X=s3cret tee", "A=...; B=... nic|X=... tee"),
            ("env A=s3cret nic", "env A=... nic"),
            ("export A=s3cret && nic", "export A=... && nic"),
            ("cd x && (A=s3cret nic)", "cd x && (A=... nic)"),
            ("A=$(pass s3cret) nic", "A=..."),
            ("A=`pass s3cret` nic", "A=..."),
            ("A='s3cret", "A=..."),
            ("A+=s3cret nic", "A+=... nic"),
            ("=s3 1A=x é=y", "=s3 1A=x é=y"),
        ] {
            assert_eq!(Place::Exec(command.into()).to_string(), format!("exec:{shown}"));
        }
    }

    #[test]
    fn shell_restores_quoted_words() {
        for (word, expected) in [
            ("udp://10.0.0.1:4793", "udp://10.0.0.1:4793"),
            ("exec:python3 device.py", "'exec:python3 device.py'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
