//! What may be fuzzed without asking: what is nobody else's.

use core::net::IpAddr;

/// Why this target is refused, unless whoever asks says that it is theirs.
pub fn refusal(target: IpAddr) -> Option<String> {
    let own = target.is_loopback() || (is_private(&Surroundings::here()));
    (!own).then(|| {
        format!(
            "{target} is neither on loopback nor in a private network name space: a fuzzer breaks what it finds. If it is \
             yours to break, say --i-own-this-target"
        )
    })
}

/// What the system says of the network that this process is in.
#[derive(Debug, Default)]
struct Surroundings {
    /// The name space of this process, and that of the first process of the machine.
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

/// Whether the network is another than the machine's, and nothing leads out of it.
fn is_private(surroundings: &Surroundings) -> bool {
    let [Some(own), Some(first)] = &surroundings.spaces else { return false };
    let [v4, v6] = &surroundings.routes;
    let Some(v4) = v4 else { return false };
    own != first
        && !v4.lines().any(is_default_v4)
        && !v6.iter().flat_map(|table| table.lines()).any(is_default_v6)
}

/// A line of `/proc/net/route`: interface, destination, gateway, flags, ..., the eighth is the mask.
fn is_default_v4(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words[..], [_, "00000000", _, _, _, _, _, "00000000", ..])
}

/// A line of `/proc/net/ipv6_route`: destination, its length, ..., the last is the interface. Loopback has a route for what
/// leads nowhere.
fn is_default_v6(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.get(1) == Some(&"00")
        && words.first().is_some_and(|to| to.bytes().all(|c| c == b'0'))
        && words.last() != Some(&"lo")
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
    fn private_is_another_name_space_without_a_way_out() {
        assert!(is_private(&surroundings("net:[2]", Some("net:[1]"), LOCAL, LOOP6)));
        for (own, first, v4, v6) in [
            ("net:[1]", Some("net:[1]"), LOCAL, LOOP6),
            ("net:[2]", None, LOCAL, LOOP6),
            ("net:[2]", Some("net:[1]"), &(LOCAL.to_owned() + OUT), LOOP6),
            ("net:[2]", Some("net:[1]"), LOCAL, &(LOOP6.to_owned() + OUT6)),
        ] {
            assert!(!is_private(&surroundings(own, first, v4, v6)), "{own} {first:?} {v4} {v6}");
        }
    }

    #[test]
    fn loopback_needs_no_word() {
        assert_eq!(refusal([127, 0, 0, 9].into()), None);
        assert_eq!(refusal("::1".parse().unwrap()), None);
    }
}
