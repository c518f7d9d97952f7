//! Decides if a target may be fuzzed, because a fuzzer can break its target.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
#[cfg(target_os = "linux")]
use std::io;

/// Returns the reason to refuse this target without `--i-own-this-target`. `interface` is the interface for frames that
/// bypass the system's routes.
pub fn refusal(target: IpAddr, interface: Option<&str>) -> Option<String> {
    let stays = match interface {
        None | Some("lo") => target.is_loopback(),
        // Frames leave by the interface, whatever address they carry.
        Some(_) => false,
    };
    let allowed = stays || is_local(target) && is_private(&Surroundings::here());
    (!allowed).then(|| {
        format!(
            "{target} is neither on loopback nor in a private network namespace: a fuzzer breaks what it finds. If you own the \
             target, say --i-own-this-target"
        )
    })
}

/// Returns an error if the target is refused and the caller does not own it.
#[cfg(target_os = "linux")]
pub(crate) fn check(target: IpAddr, interface: Option<&str>, owned: bool) -> io::Result<()> {
    match refusal(target, interface) {
        Some(refusal) if !owned => Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal)),
        _ => Ok(()),
    }
}

/// The network of this process.
#[derive(Debug, Default)]
struct Surroundings {
    /// The network namespace of this process, and that of the first process of the machine.
    spaces: [Option<String>; 2],
    /// The routing tables of IPv4 and IPv6, as in `/proc/net`.
    routes: [Option<String>; 2],
}

impl Surroundings {
    fn here() -> Self {
        let space = |process: &str| {
            let link = std::fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
            Some(link.to_string_lossy().into_owned())
        };
        let routes = |table: &str| std::fs::read_to_string(format!("/proc/net/{table}")).ok();
        Surroundings { spaces: [space("self"), space("1")], routes: [routes("route"), routes("ipv6_route")] }
    }
}

/// Returns whether the network is separate from the machine's, and every route stays on its links and among local
/// addresses. A default route leads out, but so do 0.0.0.0/1 and 128.0.0.0/1, which VPNs use, and any gateway.
fn is_private(surroundings: &Surroundings) -> bool {
    let [Some(own), Some(first)] = &surroundings.spaces else { return false };
    let [Some(v4), v6] = &surroundings.routes else { return false };
    own != first
        && v4.lines().skip(1).all(stays_v4)
        && v6.iter().flat_map(|table| table.lines()).all(stays_v6)
}

/// Returns whether an address belongs to no public network.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_local_v4(v4, 32),
        IpAddr::V6(v6) => is_local_v6(v6, 128),
    }
}

/// Networks that are not routed in public: RFC 1122, 1918, 3927, 5737, 6598.
fn is_local_v4(network: Ipv4Addr, length: u32) -> bool {
    let local = [
        ([127, 0, 0, 0], 8),
        ([10, 0, 0, 0], 8),
        ([172, 16, 0, 0], 12),
        ([192, 168, 0, 0], 16),
        ([169, 254, 0, 0], 16),
        ([192, 0, 2, 0], 24),
        ([198, 51, 100, 0], 24),
        ([203, 0, 113, 0], 24),
        ([100, 64, 0, 0], 10),
        ([224, 0, 0, 0], 4),
    ];
    let within = |(prefix, wide): &([u8; 4], u32)| {
        length >= *wide && (u32::from(network) ^ u32::from_be_bytes(*prefix)) >> (32 - wide) == 0
    };
    local.iter().any(within)
}

/// Loopback, unique local, link local, documentation and multicast: RFC 4291, 4193, 3849.
fn is_local_v6(network: Ipv6Addr, length: u32) -> bool {
    let local =
        [(1, 128), (0xfc00 << 112, 7), (0xfe80 << 112, 10), (0x2001_0db8 << 96, 32), (0xff00 << 112, 8)];
    let within =
        |(prefix, wide): &(u128, u32)| length >= *wide && (u128::from(network) ^ prefix) >> (128 - wide) == 0;
    local.iter().any(within)
}

/// A line of `/proc/net/route`: interface, destination, gateway, flags, ...; the eighth word is the mask. Addresses are in
/// the byte order of the machine.
fn stays_v4(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| u32::from_str_radix(word, 16).ok());
    match (number(1), number(2), number(7)) {
        (Some(to), Some(gateway), Some(mask)) => {
            let network = Ipv4Addr::from(to.to_ne_bytes());
            gateway == 0 && is_local_v4(network, mask.count_ones())
        }
        _ => false,
    }
}

/// A line of `/proc/net/ipv6_route`: destination, its length, source, its length, gateway, ..., interface. Loopback has a
/// route for unreachable addresses.
fn stays_v6(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let address = |at: usize| words.get(at).and_then(|word| u128::from_str_radix(word, 16).ok());
    let length = words.get(1).and_then(|word| u32::from_str_radix(word, 16).ok());
    match (address(0), length, address(4), words.last()) {
        (.., Some(&"lo")) => true,
        (Some(to), Some(length), Some(gateway), Some(_)) => gateway == 0 && is_local_v6(to.into(), length),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\nveth0 0000000A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
    const OUT: &str = "eth0 00000000 010011AC 0003 0 0 0 00000000 0 0 0\n";
    const LOOP6: &str = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n";
    const OUT6: &str = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n";

    fn surroundings(own: &str, first: Option<&str>, v4: &str, v6: &str) -> Surroundings {
        let text = |text: &str| Some(text.to_owned());
        Surroundings { spaces: [text(own), first.and_then(text)], routes: [text(v4), text(v6)] }
    }

    #[test]
    fn private_namespace_needs_local_routes() {
        let half = |to: &str| format!("tun0 {to} 00000000 0001 0 0 0 00000080 0 0 0\n");
        let gateway = "eth0 0000000A 010011AC 0003 0 0 0 000000FF 0 0 0\n";
        let half6 = "20000000000000000000000000000000 03 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 00000003 tun0\n";
        let on_link6 = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 00000001 veth0\n";
        let v6 = LOOP6.to_owned() + on_link6;
        assert!(is_private(&surroundings("net:[2]", Some("net:[1]"), LOCAL, &v6)));
        for (own, first, v4, v6) in [
            ("net:[1]", Some("net:[1]"), LOCAL, LOOP6),
            ("net:[2]", None, LOCAL, LOOP6),
            ("net:[2]", Some("net:[1]"), &(LOCAL.to_owned() + OUT), LOOP6),
            ("net:[2]", Some("net:[1]"), &(LOCAL.to_owned() + &half("00000000")), LOOP6),
            ("net:[2]", Some("net:[1]"), &(LOCAL.to_owned() + &half("00000080")), LOOP6),
            ("net:[2]", Some("net:[1]"), &(LOCAL.to_owned() + gateway), LOOP6),
            ("net:[2]", Some("net:[1]"), LOCAL, &(LOOP6.to_owned() + OUT6)),
            ("net:[2]", Some("net:[1]"), LOCAL, &(LOOP6.to_owned() + half6)),
        ] {
            assert!(!is_private(&surroundings(own, first, v4, v6)), "{own} {first:?} {v4} {v6}");
        }
    }

    #[test]
    fn loopback_is_allowed_unless_frames_leave_an_interface() {
        assert_eq!(refusal([127, 0, 0, 9].into(), None), None);
        assert_eq!(refusal("::1".parse().unwrap(), None), None);
        assert_eq!(refusal([127, 0, 0, 9].into(), Some("lo")), None);
        assert!(refusal([8, 8, 8, 8].into(), None).is_some());
        if !is_private(&Surroundings::here()) {
            assert!(refusal([127, 0, 0, 9].into(), Some("eth0")).is_some());
        }
    }

    #[test]
    fn local_networks_are_not_routed() {
        for local in
            ["10.1.2.3", "172.31.0.1", "192.168.0.1", "169.254.9.9", "127.0.0.1", "fd00::1", "fe80::1", "::1"]
        {
            assert!(is_local(local.parse().unwrap()), "{local}");
        }
        for public in ["8.8.8.8", "172.32.0.1", "192.169.0.1", "11.0.0.1", "2001:4860::1", "::2"] {
            assert!(!is_local(public.parse().unwrap()), "{public}");
        }
        assert!(!is_local_v4([10, 0, 0, 0].into(), 7), "wider than the private network");
    }
}
