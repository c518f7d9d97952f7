//! Datagrams that this host has dropped.

/// Returns the number of UDP datagrams that found a full buffer, of the suite or of a device beside it.
pub(super) fn dropped_on_host() -> u64 {
    let v4 = std::fs::read_to_string("/proc/net/snmp").unwrap_or_default();
    let v6 = std::fs::read_to_string("/proc/net/snmp6").unwrap_or_default();
    dropped_in_v4(&v4) + dropped_in_v6(&v6)
}

/// Reads a line of names and one of values that both start with `Udp:`.
fn dropped_in_v4(text: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let counts = names.split_whitespace().zip(values.split_whitespace());
    let lost =
        counts.filter(|(name, _)| DROPS.contains(name)).map(|(_, value)| value.parse().unwrap_or(0u64));
    lost.sum()
}

/// Reads lines of a name and a value.
fn dropped_in_v6(text: &str) -> u64 {
    let pairs = text.lines().filter_map(|line| line.strip_prefix("Udp6")?.split_once(char::is_whitespace));
    let lost = pairs.filter(|(name, _)| DROPS.contains(name));
    lost.map(|(_, value)| value.trim().parse().unwrap_or(0u64)).sum()
}

/// Counters of datagrams that found no room.
const DROPS: [&str; 2] = ["RcvbufErrors", "SndbufErrors"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_full_buffers_are_read() {
        let v4 = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors RcvbufErrors SndbufErrors\n\
                  Udp: 100 2 7 5 1\n";
        assert_eq!((dropped_in_v4(v4), dropped_in_v4("")), (6, 0));
        assert_eq!(dropped_in_v6("Ip6InReceives 3\nUdp6RcvbufErrors    \t4\nUdp6InErrors 9\n"), 4);
    }
}
