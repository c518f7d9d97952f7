//! The links on which the suite reaches a device, and the addresses at both ends.

use super::channel::addresses;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io;
use uet_control as channel;
use uet_control::Welcome;
use uet_emulator::classes::Classes;
use uet_emulator::frame::Outer;
use uet_emulator::link::Link;
use uet_emulator::link::neighbor::PeerMac;
use uet_emulator::link::udp::UdpLink;

/// Addresses of the suite for a device on loopback. IPv6 loopback has only one address, which the suite shares with the
/// device.
const LOOPBACK: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3))];
const LOOPBACK_6: [IpAddr; 1] = [IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// A connection to a device.
pub(super) struct Reached {
    pub(super) links: Vec<Link>,
    pub(super) local: Vec<IpAddr>,
    pub(super) device: SocketAddr,
}

pub(super) fn udp_place(welcome: &Welcome) -> io::Result<SocketAddr> {
    match &welcome.link {
        channel::Link::Udp { addr, port } => Ok(SocketAddr::new(*addr, *port)),
        channel::Link::Raw { iface, .. } => Err(io::Error::other(format!(
            "the device uses Ethernet on its interface {iface}; name the suite's interface with --dut raw:INTERFACE"
        ))),
        other => {
            let message =
                format!("the device does not use UDP; its link is {}", serde_json::to_string(other)?);
            Err(io::Error::other(message))
        }
    }
}

/// Returns the first address of `HOST:PORT`.
pub(super) fn address(place: &str) -> io::Result<SocketAddr> {
    let found = addresses(place).map_err(|error| about(place, error))?.first().copied();
    found.ok_or_else(|| io::Error::other(format!("{place} has no address")))
}

/// Returns the suite's addresses for a device on UDP: the given ones, or two of loopback.
pub(super) fn addresses_of_suite(device: IpAddr, given: &[IpAddr]) -> io::Result<&[IpAddr]> {
    match given {
        [] if device.is_loopback() && device.is_ipv4() => Ok(&LOOPBACK),
        [] if device.is_loopback() => Ok(&LOOPBACK_6),
        [] => Err(no_address(device)),
        given => match given.iter().find(|own| own.is_ipv4() != device.is_ipv4()) {
            Some(own) => Err(other_version(*own, device)),
            None => Ok(given),
        },
    }
}

/// Returns the error of an address of the suite that cannot reach the device.
fn other_version(own: IpAddr, device: IpAddr) -> io::Error {
    let version = |address: IpAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let (of_own, of_device) = (version(own), version(device));
    io::Error::other(format!(
        "--local {own} is {of_own}, but the device has the {of_device} address {device}"
    ))
}

/// Number of networks of loopback addresses that the suite tries if another program has the port in one of them.
pub(super) const NETWORKS: u8 = 16;

pub(super) fn udp(device: SocketAddr, local: &[IpAddr], classes: &Classes) -> io::Result<Reached> {
    let networks = if local.is_empty() && device.is_ipv4() { NETWORKS } else { 1 };
    let local = addresses_of_suite(device.ip(), local)?;
    let bind = |ip: &IpAddr| {
        // The device already uses this port at this address, so it is told another one.
        let port = if *ip == device.ip() { 0 } else { device.port() };
        let local = SocketAddr::new(*ip, port);
        let mut link = UdpLink::bind(local).map_err(|error| about(local, error))?;
        link.classes = classes.clone();
        Ok(link.into())
    };
    in_free_network(networks, |n| {
        let local: Vec<IpAddr> = local.iter().map(|ip| in_network(*ip, n)).collect();
        let links = local.iter().map(bind).collect::<io::Result<_>>()?;
        Ok(Reached { links, local, device })
    })
}

/// Binds sockets in the first network of loopback addresses in which no other program has the port.
pub(super) fn in_free_network<T>(networks: u8, mut bind: impl FnMut(u8) -> io::Result<T>) -> io::Result<T> {
    for n in 1..networks {
        match bind(n - 1) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
    bind(networks - 1)
}

/// Moves a loopback address of IPv4 into the `n`-th network: 127.0.0.2 becomes 127.0.1.2.
pub(super) fn in_network(address: IpAddr, n: u8) -> IpAddr {
    match address {
        IpAddr::V4(four) if n > 0 => {
            let [a, b, c, d] = four.octets();
            Ipv4Addr::new(a, b, c.wrapping_add(n), d).into()
        }
        other => other,
    }
}

fn no_address(device: IpAddr) -> io::Error {
    io::Error::other(format!(
        "the suite has no address that reaches {device}; name its addresses with --local ADDRESS,..."
    ))
}

pub(super) fn raw(
    interface: &str,
    peers: &[PeerMac],
    welcome: &Welcome,
    local: &[IpAddr],
    classes: Classes,
) -> io::Result<Reached> {
    use uet_emulator::frame::mac_from;
    use uet_emulator::link::raw;
    use uet_wire::outer::UDP_PORT;

    let other = |message: &str| Err(io::Error::other(message));
    let (addr, port, native, mac) = match &welcome.link {
        channel::Link::Raw { addr: Some(addr), port, proto, mac, .. } => {
            (*addr, *port, *proto, mac.as_deref())
        }
        channel::Link::Udp { addr, port } => (*addr, Some(*port), None, None),
        channel::Link::Raw { addr: None, .. } => {
            return other("the device's hello lacks `addr` in `link`");
        }
        channel::Link::Inside { .. } => {
            return other("the device runs inside a process and has no interface");
        }
    };
    let own = match local {
        [] => raw::addresses(interface)?.into_iter().filter(|ip| ip.is_ipv4() == addr.is_ipv4()).collect(),
        given => addresses_of_suite(addr, given)?.to_vec(),
    };
    if own.is_empty() {
        return Err(no_address(addr));
    }
    let crc = welcome.parameters.get("trailer").is_some_and(|trailer| trailer == "crc");
    let port = port.unwrap_or(UDP_PORT);
    let mut link = raw::RawLink::open(interface, &own, Outer { classes, crc, port, native })?;
    if let Some(text) = mac {
        let mac =
            mac_from(text).ok_or_else(|| io::Error::other(format!("'{text}' is not an Ethernet address")))?;
        link.learn(addr, mac);
    }
    peers.iter().for_each(|peer| link.configure(*peer));
    // A device that drops broadcasts must get the first packet too.
    link.resolve(addr)?;
    Ok(Reached { links: vec![link.into()], local: own, device: SocketAddr::new(addr, port) })
}

pub(super) fn about(place: impl fmt::Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{place}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_suite_moves_away_from_a_port_in_use() {
        let other = UdpSocket::bind("127.0.0.3:0").unwrap();
        let device = SocketAddr::from(([127, 0, 0, 1], other.local_addr().unwrap().port()));
        let reached = udp(device, &[], &Classes::default()).unwrap();
        assert_eq!(reached.local, [[127, 0, 1, 2], [127, 0, 1, 3]].map(IpAddr::from));
        let given = udp(device, &[other.local_addr().unwrap().ip()], &Classes::default());
        assert_eq!(given.map(drop).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn address_of_the_other_version_is_refused() {
        let (four, six) = (IpAddr::from([127, 0, 0, 73]), IpAddr::V6(Ipv6Addr::LOCALHOST));
        let error = addresses_of_suite(four, &[four, six]).unwrap_err().to_string();
        assert_eq!(error, "--local ::1 is IPv6, but the device has the IPv4 address 127.0.0.73");
        assert_eq!(addresses_of_suite(six, &[six]).unwrap(), [six]);
    }
}
