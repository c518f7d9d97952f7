use crate::error::{Code, Error, Result};
use crate::name::Name;
use crate::peers::{OWN_PORT, SHARED_PORTS};
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;
use core::time::Duration;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use uet_emulator::{Config, fault};
use uet_model::network::Impairment;
use uet_model::secure::StartPsnMethod;

/// The longest time that a closing endpoint waits for acknowledgments, by default.
const SETTLE: Duration = Duration::from_millis(500);

/// The maximum size of a socket's receive buffer from which the window of a fast network fits into it.
const LARGE_BUFFER: u64 = 4 << 20;

/// A variable of the environment: its name after `FI_UET_`, and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name after `FI_UET_`, in lower case as libfabric registers it.
    pub name: &'static str,
    /// The description.
    pub help: &'static str,
}

const fn setting(name: &'static str, help: &'static str) -> Setting {
    Setting { name, help }
}

/// The values of the variables `FI_UET_*`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The interface or address to use; all if absent.
    pub(crate) interface: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) job: u32,
    pub(crate) pid: Option<u16>,
    pub(crate) generation: u8,
    pub(crate) index: u16,
    pub(crate) settle: Duration,
    /// True if the kernel splits and joins packets where it can.
    pub(crate) offload: bool,
    pub(crate) config: Config,
    pub(crate) capture: Option<String>,
    pub(crate) keys: Option<PathBuf>,
    pub(crate) impairments: Vec<Impairment>,
    pub(crate) faults: Vec<&'static fault::Fault>,
}

impl Settings {
    /// All variables.
    pub const ALL: [Setting; 16] = [
        setting(
            "iface",
            "Interface or address to use, for example lo or 10.0.0.5 (default: all that are up)",
        ),
        setting("port", "UDP port: 4793, or 14793 to 15816 (default: the first free one)"),
        setting("algorithm", "Congestion control: none, nscc, rccc or both (default: nscc)"),
        setting("mtu", "Payload bytes per packet: 1024, 2048, 4096 or 8192 (default: 4096)"),
        setting("job", "Job ID, 24 bits (default: 1)"),
        setting("pid", "PIDonFEP, 12 bits (default: from the process ID)"),
        setting("generation", "Generation of the resource indices, 8 bits (default: 0)"),
        setting(
            "index",
            "First resource index of endpoints, and index of registered memory; equal in all processes (default: 0)",
        ),
        setting(
            "settle",
            "Milliseconds that a closing endpoint waits for acknowledgments at most (default: 500)",
        ),
        setting(
            "offload",
            "Splitting and joining of packets by the kernel: on or off (default: on). Captures by other tools show them joined",
        ),
        setting("seed", "Seed of all random numbers (default: from the process ID)"),
        setting("params", "Further parameters of the NIC: NAME=VALUE, separated by semicolons"),
        setting(
            "capture",
            "Capture file (pcapng); %p stands for the process ID, which is appended if %p is missing. Further domains append \
             their number",
        ),
        setting("keys", "Key file of secure domains (TOML)"),
        setting(
            "impair",
            "Impairments of sent packets, separated by semicolons: drop 1%; duplicate 1%; reorder 3 1%",
        ),
        setting("fault", "Deliberate faults of the NIC, separated by commas"),
    ];

    /// Reads the variables with `get`, which gets a name such as `iface`. Fails with EINVAL at an invalid value.
    ///
    /// ```
    /// use uet_fabric::{Code, Settings};
    ///
    /// let error = Settings::read(|name| (name == "mtu").then(|| "1500".into())).unwrap_err();
    /// assert_eq!(error.code, Code::EINVAL);
    /// assert_eq!(error.to_string(), "FI_UET_MTU=1500: must be 1024, 2048, 4096 or 8192");
    /// assert!(Settings::read(|_| None).is_ok());
    /// ```
    pub fn read(get: impl Fn(&'static str) -> Option<String>) -> Result<Self> {
        let mut settings =
            Settings { config: config(), job: 1, settle: SETTLE, offload: true, ..Settings::default() };
        for Setting { name, .. } in Settings::ALL {
            let Some(value) = get(name).filter(|value| !value.is_empty()) else { continue };
            settings.set(name, &value).map_err(|reason| {
                Error::new(Code::EINVAL, format!("FI_UET_{}={value}: {reason}", name.to_uppercase()))
            })?;
        }
        Ok(settings)
    }

    /// Returns the number of payload bytes of a packet.
    pub fn mtu(&self) -> usize {
        self.config.pds.payload_mtu.into()
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "iface" => self.interface = Some(value.into()),
            "port" => {
                let port = number(value, u16::MAX.into())? as u16;
                if port != OWN_PORT && !SHARED_PORTS.contains(&port) {
                    return Err("must be 4793, or from 14793 to 15816".into());
                }
                self.port = Some(port);
            }
            "algorithm" => self.parameter("congestion", json!(value))?,
            "mtu" => self.parameter("payload_mtu", json!(number(value, u64::MAX)?))?,
            "job" => self.job = number(value, (1 << 24) - 1)? as u32,
            "pid" => self.pid = Some(number(value, (1 << 12) - 1)? as u16),
            "generation" => self.generation = number(value, 255)? as u8,
            "index" => self.index = number(value, (1 << 12) - 1)? as u16,
            "settle" => self.settle = Duration::from_millis(number(value, u32::MAX.into())?),
            "offload" => {
                self.offload = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err("must be on or off".into()),
                }
            }
            "seed" => self.config.seed = number(value, u64::MAX)?,
            "params" => {
                for parameter in parts(value, ';') {
                    let (name, value) = parameter.split_once('=').ok_or("must be NAME=VALUE")?;
                    let value = Value::from_str(value.trim()).unwrap_or_else(|_| json!(value.trim()));
                    self.parameter(name.trim(), value).map_err(|reason| format!("{name}: {reason}"))?;
                }
            }
            "capture" => self.capture = Some(value.into()),
            "keys" => self.keys = Some(value.into()),
            "impair" => {
                let rules = parts(value, ';')
                    .map(|rule| rule.parse::<Impairment>().map_err(|error| format!("'{rule}': {error}")));
                self.impairments = rules.collect::<Result<_, _>>()?;
            }
            "fault" => {
                let found = parts(value, ',').map(|name| {
                    fault::find(name)
                        .ok_or_else(|| format!("no fault is named '{name}'; see uet emulate --list-faults"))
                });
                self.faults = found.collect::<Result<_, _>>()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn parameter(&mut self, name: &str, value: Value) -> Result<(), String> {
        self.config.set(name, &value).map_err(|error| error.reason)
    }

    /// Returns the parameters of the NIC, by the names that the control channel uses.
    pub fn parameters(&self) -> BTreeMap<String, Value> {
        self.config.get()
    }

    /// Returns the name of an endpoint that only a host and a service describe: the first one of process 0, with our job.
    /// The service is the UDP port if it is one of UET.
    pub fn name_at(&self, host: IpAddr, service: Option<&str>) -> Name {
        let is_ours = |port: &u16| *port == OWN_PORT || SHARED_PORTS.contains(port);
        let port = service.and_then(|service| service.parse().ok()).filter(is_ours).unwrap_or(OWN_PORT);
        let Settings { job, index, generation, .. } = *self;
        Name { address: SocketAddr::new(host, port), job, pid: 0, index, generation }
    }

    /// Returns the path of the capture file of a domain. The path of the second domain of a process, number 1, ends with 2.
    pub(crate) fn capture_path(&self, process: u32, domain: u32) -> Option<String> {
        let path = self.capture.as_ref()?;
        let (stem, extension) = match path.strip_suffix(".pcapng") {
            Some(stem) => (stem, ".pcapng"),
            None => (path.as_str(), ""),
        };
        let process = process.to_string();
        let mut stem = match stem.contains("%p") {
            true => stem.replace("%p", &process),
            false => format!("{stem}-{process}"),
        };
        if domain > 0 {
            stem += &format!("-{}", domain.saturating_add(1));
        }
        Some(stem + extension)
    }
}

/// Returns the rate of the network in bit/s, and its base round trip. Their product is the first window: about a megabyte. Each
/// window of a large message costs a turn of both processes. The window then follows the shortest round trip of the path.
/// Small buffers of sockets lose packets of a fast sender, so that a part of each message waits for its timeout.
fn network() -> (u64, Duration) {
    let buffer = std::fs::read_to_string("/proc/sys/net/core/rmem_max");
    let buffer = buffer.ok().and_then(|size| size.trim().parse::<u64>().ok());
    match buffer {
        Some(LARGE_BUFFER..) => (100_000_000_000, Duration::from_micros(100)),
        _ => (8_000_000_000, Duration::from_millis(1)),
    }
}

/// Returns parameters for applications: a large window, large queues, and retransmissions for as long as a busy peer may be away.
fn config() -> Config {
    let mut config = Config::real_time();
    let (rate, base_rtt) = network();
    (config.network.sender_rate, config.network.receiver_rate, config.network.base_rtt) =
        (rate, rate, base_rtt);
    // A message is complete when its last ACK is there. Packets on several paths overtake each other, so that ACK is often
    // a delayed one.
    config.pds.ack_delay = Duration::from_micros(20);
    config.pds.max_rto_retx_cnt = 9;
    config.pds.max_nack_retx_cnt = 30;
    config.pds.new_pdc_time = Duration::from_secs(1);
    config.pds.idle_time = Duration::ZERO;
    // The floor of `expected` is lost with the process, and its next run would execute recorded requests.
    config.secure.start_psn_method = StartPsnMethod::Random;
    // The generation of a name is that of its endpoint, and all endpoints share the index of memory.
    config.ses.region_generation = false;
    config.ses.max_operations = u16::MAX;
    config.ses.max_messages = u16::MAX;
    config.ses.max_unexpected = u16::MAX;
    config.ses.max_unexpected_bytes = 1 << 30;
    // A quarter for each peer, so that no peer can keep the others out.
    config.ses.max_unexpected_of_peer = u16::MAX / 4;
    config.ses.max_unexpected_bytes_of_peer = 1 << 28;
    config.ses.max_written = u16::MAX;
    config.ses.max_events = 0;
    config
}

fn parts(list: &str, separator: char) -> impl Iterator<Item = &str> {
    list.split(separator).map(str::trim).filter(|part| !part.is_empty())
}

fn number(text: &str, most: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| *number <= most)
        .ok_or_else(|| format!("must be a number from 0 to {most}"))
}
