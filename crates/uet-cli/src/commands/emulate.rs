//! `uet emulate`

use super::output::CaptureFile;
use super::{Listing, Outcome, about, faults, key_text, read_config, read_keys};
use clap::{Args, ValueEnum};
use serde_json::json;
use signal_hook::low_level::pipe;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use uet_emulator::capture::Capture;
use uet_emulator::classes::Classes;
use uet_emulator::fault::Fault;
use uet_emulator::frame::Outer;
use uet_emulator::link::Link;
use uet_emulator::link::neighbor::PeerMac;
use uet_emulator::link::server::{Channel, Server};
use uet_emulator::link::udp::UdpLink;
use uet_emulator::{Config, Nic};
use uet_model::secure::StartPsnMethod;
use uet_wire::outer::{IP_PROTO, UDP_PORT};
use uet_wire::{Spec, Version};

/// Run a NIC made of the reference model, on UDP or on an Ethernet interface
///
/// The NIC answers peers on its UDP port or interface, and runs operations from the control channel
/// (docs/control-channel.md). Its timeouts suit round trips of milliseconds; --config changes them.
///
/// When it is ready, it prints one line with its ports: {"link":...,"control":...}. With `--control stdio` it prints
/// none, since the channel uses standard output. It runs until SIGINT, SIGTERM or SIGHUP. With `--control stdio` it
/// also ends with its input, or if nobody reads a line of its output for 2 seconds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet emulate                                        on 127.0.0.1:4793, control on a free port
  uet emulate --listen 127.0.0.1:0 --capture nic.pcapng
  uet emulate --fault forgets-ecn-echo               with a deliberate fault (see --list-faults)
  uet emulate --interface veth1 --address 10.0.0.2 --encapsulation native --crc
  uet emulate --virtual-time --control stdio         like a simulated device: see docs/rtl.md
  uet emulate --listen [::1]:4793 --control 127.0.0.1:9000 --config parameters.toml

A file for --config names parameters as the control channel's hello does, with times in nanoseconds:
  rto_init_time = 50000000
  congestion = \"none\"")]
pub(super) struct Emulate {
    /// Address and port of the NIC. The port is 4793 if omitted; 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", conflicts_with = "interface")]
    listen: Listen,
    /// Address and port of the control channel, or `stdio`
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    control: ControlPlace,
    /// Parameters, as TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Secure domains with their keys, in TOML: the NIC protects its packets
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Version of the specification that the NIC speaks
    #[arg(long, value_name = "VERSION", value_parser = super::spec, default_value_t = Version::default().spec())]
    spec: &'static Spec,
    /// Seed of all random numbers
    #[arg(long)]
    seed: Option<u64>,
    /// Four DSCPs for each traffic class, `REQUESTS,TRIMMED,TRIMMED-AT-THE-LAST-HOP,ACKS`. Two classes:
    /// `10,11,12,46;14,15,16,46` (docs/emulator.md)
    #[arg(long, value_name = "DSCPS")]
    dscps: Option<Classes>,
    /// Let the system split and join packets (GSO, GRO). This is faster, but other programs' captures show them joined
    #[arg(long, conflicts_with = "interface")]
    offload: bool,
    /// Advance time only by the control operation `advance` (docs/rtl.md). The timeouts then suit a network of
    /// microseconds
    #[arg(long)]
    virtual_time: bool,
    /// Write all packets as pcapng. The file always shows UDP port 4793, so that analyzers recognize UET
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Put the key file into the capture. The capture then lets others decrypt and forge packets
    #[arg(long, requires_all = ["keys", "capture"])]
    embed_keys: bool,
    /// Add a deliberate fault; may be given several times
    #[arg(long, value_name = "NAME", value_parser = faults::named)]
    fault: Vec<&'static Fault>,
    /// List the deliberate faults and exit
    #[arg(long)]
    list_faults: bool,
    /// Output format of --list-faults
    #[arg(long, value_enum, default_value = "text", requires = "list_faults")]
    format: Listing,
    #[command(flatten)]
    ethernet: Ethernet,
}

/// A NIC on an Ethernet interface instead of sockets.
#[derive(Debug, Args)]
#[command(next_help_heading = "On Ethernet")]
struct Ethernet {
    /// Send and receive Ethernet frames on this interface; needs the capability CAP_NET_RAW
    #[arg(long, value_name = "INTERFACE")]
    interface: Option<String>,
    /// IP address of the NIC, with or without a port; by default the first address of the interface
    #[arg(long, value_name = "ADDRESS", requires = "interface")]
    address: Option<Listen>,
    /// Encapsulation between IP and UET
    #[arg(long, value_enum, default_value = "udp", requires = "interface")]
    encapsulation: Encapsulation,
    /// IP protocol number of the native encapsulation
    #[arg(long, value_name = "NUMBER", default_value_t = IP_PROTO, requires = "interface")]
    ip_proto: u8,
    /// Ethernet address of a peer; the NIC asks for others with ARP and neighbor discovery. May be given several times
    #[arg(long, value_name = "ADDRESS=MAC", requires = "interface")]
    peer_mac: Vec<PeerMac>,
    /// End packets with a CRC, and drop received packets with a wrong CRC
    #[arg(long, requires = "interface")]
    crc: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Encapsulation {
    /// UDP
    Udp,
    /// UET directly over IP, behind an entropy header
    Native,
}

/// An address with a port, or the registered one.
#[derive(Clone, Copy, Debug)]
struct Listen(SocketAddr);

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let alone = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, UDP_PORT));
        let address = text.parse().or_else(|_| alone());
        address.map(Listen).map_err(|_| {
            "expected an IP address with an optional port from 0 to 65535, such as 127.0.0.1:4793 or [::1]:0".into()
        })
    }
}

/// Endpoint of the control channel.
#[derive(Clone, Copy, Debug)]
pub(super) enum ControlPlace {
    Tcp(SocketAddr),
    Stdio,
}

impl FromStr for ControlPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "stdio" => Ok(ControlPlace::Stdio),
            _ => text
                .parse()
                .map(ControlPlace::Tcp)
                .map_err(|_| "expected an IP address and a port, such as 127.0.0.1:9000, or 'stdio'".into()),
        }
    }
}

impl Emulate {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        if self.list_faults {
            return faults::list(self.format);
        }
        let config = self.config()?;
        let Placed { link, address, outer } = match &self.ethernet.interface {
            Some(interface) => self.ethernet.open(interface, self.classes())?,
            None => self.bind()?,
        };
        let nic = Nic::new(address, config).and_then(|nic| nic.with_faults(&self.fault));
        let nic = nic.map_err(io::Error::other)?.with_process_security()?;
        let (channel, control) = match self.control {
            ControlPlace::Stdio => (Channel::Stdio, None),
            ControlPlace::Tcp(address) => {
                let listener = TcpListener::bind(address).map_err(|error| at(address, error))?;
                let local = listener.local_addr()?;
                if !local.ip().is_loopback() {
                    super::complain(format_args!(
                        "warning: anyone who can reach {local} can control this NIC; to prevent it, use --control 127.0.0.1:PORT"
                    ));
                }
                (Channel::Tcp(listener), Some(local))
            }
        };
        let (stop, stopped) = UnixStream::pair()?;
        let place = link.place();
        let mut server = Server::new(nic, link, channel, stopped.into());
        if self.virtual_time {
            server = server.with_virtual_time();
        }
        if let Some(path) = &self.keys {
            server = server.with_keys(&read_keys(path)?).map_err(|error| about(path, error))?;
        }
        if let Some(path) = &self.capture {
            let file = CaptureFile::create(path)?;
            if self.embed_keys {
                file.keep_private()?;
            }
            let capture = Capture::new(file.buffered(), outer);
            let mut capture = capture.map_err(|error| about(path, error))?;
            if let Some(keys) = self.keys.as_deref().filter(|_| self.embed_keys) {
                let keys = key_text(keys)?;
                capture.write_secrets(keys.as_bytes()).map_err(|error| about(path, error))?;
            }
            server.capture(capture);
        }
        // A signal writes into the pipe and stops the NIC. Before, it ends the process: a capture file that is a pipe may
        // never open.
        for signal in super::signal::ending() {
            pipe::register(signal, stop.try_clone()?)?;
        }
        if let Some(control) = control {
            let control = json!({"kind": "tcp", "addr": control.ip(), "port": control.port()});
            let mut out = io::stdout().lock();
            writeln!(out, "{}", json!({"link": place, "control": control}))?;
            out.flush()?;
        }
        server.run()?;
        Ok(Outcome::Ok)
    }

    /// Binds the NIC to UDP.
    fn bind(&self) -> io::Result<Placed> {
        let mut link = UdpLink::bind(self.listen.0).map_err(|error| at(self.listen.0, error))?;
        if self.offload && !link.offload() {
            return Err(io::Error::other("--offload: the system does not support UDP segmentation offload"));
        }
        let local = link.local();
        link.classes = self.classes();
        // A capture uses the registered port, as captures of the suite do. Readers then recognize UET regardless of the
        // NIC's port.
        let outer = Outer { classes: self.classes(), ..Outer::default() };
        Ok(Placed { link: link.into(), address: local.ip(), outer })
    }

    fn classes(&self) -> Classes {
        self.dscps.clone().unwrap_or_default()
    }

    fn config(&self) -> io::Result<Config> {
        let mut config = if self.virtual_time { Config::default() } else { Config::real_time() };
        config.version = self.spec.released();
        // The floor of `expected` is lost with the process, and its next run would execute recorded requests.
        config.secure.start_psn_method = StartPsnMethod::Random;
        if let Some(path) = &self.config {
            read_config(path, &mut config)?;
        }
        if let Some(seed) = self.seed {
            config.seed = seed;
        }
        Ok(config)
    }
}

impl Ethernet {
    fn open(&self, interface: &str, classes: Classes) -> io::Result<Placed> {
        use uet_emulator::link::raw;

        let address = match self.address {
            Some(Listen(address)) => address,
            None => {
                let first = raw::addresses(interface)?.first().copied();
                let missing =
                    || io::Error::other(format!("{interface} has no IP address; name one with --address"));
                SocketAddr::new(first.ok_or_else(missing)?, UDP_PORT)
            }
        };
        let native = (self.encapsulation == Encapsulation::Native).then_some(self.ip_proto);
        let outer = Outer { classes, crc: self.crc, port: address.port(), native };
        let mut link = raw::RawLink::open(interface, &[address.ip()], outer.clone())?;
        self.peer_mac.iter().for_each(|peer| link.configure(*peer));
        Ok(Placed { link: link.into(), address: address.ip(), outer })
    }
}

/// A bound NIC and the encapsulation of its packets.
struct Placed {
    link: Link,
    address: IpAddr,
    outer: Outer,
}

fn at(address: SocketAddr, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_the_registered_one() {
        assert_eq!("127.0.0.1".parse::<Listen>().unwrap().0.to_string(), "127.0.0.1:4793");
        assert_eq!("127.0.0.1:0".parse::<Listen>().unwrap().0.port(), 0);
        assert_eq!("::1".parse::<Listen>().unwrap().0.to_string(), "[::1]:4793");
        assert_eq!("[::1]:7".parse::<Listen>().unwrap().0.to_string(), "[::1]:7");
        assert!("localhost".parse::<Listen>().is_err());
        assert!(matches!("stdio".parse(), Ok(ControlPlace::Stdio)));
        assert!("127.0.0.1".parse::<ControlPlace>().is_err());
    }
}
