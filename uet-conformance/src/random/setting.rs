//! Draws the setting of a conversation: parameters of the device, the IP version, and its secure domain.

use super::abilities::Abilities;
use super::step::{Secured, Sequence};
use crate::draw::{Source, first_psn};
use serde_json::Value;
use uet_control::KeyMode;

/// The payload MTUs.
pub(super) const MTUS: [u32; 4] = [1024, 2048, 4096, 8192];

impl Sequence {
    /// Draws a setting.
    pub(super) fn set(&mut self, source: &mut impl Source, can: &Abilities) {
        let parameters = &mut self.parameters;
        if source.one_in(4) && !can.congestion.is_empty() {
            parameters.insert("congestion".to_owned(), source.pick(&can.congestion).into());
        }
        if can.parameters && source.flip() {
            let count = source.within(1..=2);
            parameters.extend((0..count).flat_map(|_| parameter(source, can)).collect::<Vec<_>>());
        }
        self.other_ip = can.both_ips && source.flip();
        self.secured = (can.secures && source.one_in(5)).then(|| domain(source));
    }

    /// The payload MTU in this setting.
    pub(super) fn mtu(&self, default: u32) -> u32 {
        let set = self.parameters.get("payload_mtu").and_then(Value::as_u64);
        set.map_or(default, |mtu| mtu as u32)
    }
}

/// Draws parameters that change what a device does, and nothing that the judge takes for granted.
fn parameter(source: &mut impl Source, can: &Abilities) -> Vec<(String, Value)> {
    let rate = source.pick(&[10_000_000_000_u64, 25_000_000_000]);
    let (name, value): (&str, Value) = match source.below(8) {
        0 => ("payload_mtu", source.pick(&can.mtus).into()),
        1 => ("start_psn", first_psn(source).into()),
        // Some contexts wrap the 24 bits of the count, others its upper half.
        2 => ("start_rcvd_bytes", ((1_u64 << 32) - source.within(1..=100_000)).into()),
        3 => ("start_rcvd_bytes", ((1_u64 << 31) - source.within(1..=100_000)).into()),
        4 => ("start_message_id", source.within(65_520..=65_535).into()),
        5 => ("form", "shortest".into()),
        6 => ("enb_ack_per_pkt", true.into()),
        // A small window shows what the device takes for bytes in flight.
        _ => {
            let of_rate = |name: &str| (name.to_owned(), Value::from(rate));
            return vec![of_rate("sender_rate"), of_rate("receiver_rate")];
        }
    };
    vec![(name.to_owned(), value)]
}

/// Draws a secure domain.
fn domain(source: &mut impl Source) -> Secured {
    let modes = [KeyMode::Cluster, KeyMode::Cluster, KeyMode::Direct, KeyMode::Server, KeyMode::Client];
    let mode = source.pick(&modes);
    Secured {
        mode,
        ssi: source.flip(),
        epoch: source.pick(&[0, 1, 300, 0xffff]),
        readable: source.flip(),
        rekeys: mode == KeyMode::Cluster && source.flip(),
    }
}

impl Secured {
    /// Returns whether both ends of a domain belong together, so that it has one peer.
    pub(super) fn is_pair(self) -> bool {
        matches!(self.mode, KeyMode::Server | KeyMode::Client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_their_file() {
        let mut can = Abilities::any(4096, true);
        (can.parameters, can.both_ips, can.secures) = (true, true, true);
        can.mtus = MTUS.to_vec();
        let mut rng = fastrand::Rng::with_seed(1);
        let (mut parameters, mut domains) = (0, 0);
        for _ in 0..200 {
            let mut sequence = Sequence::default();
            sequence.set(&mut rng, &can);
            let text = serde_json::to_string(&sequence).unwrap();
            assert_eq!(serde_json::from_str::<Sequence>(&text).unwrap(), sequence);
            parameters += sequence.parameters.len();
            domains += usize::from(sequence.secured.is_some());
        }
        assert!(parameters > 50 && domains > 10, "{parameters} parameters, {domains} domains");
    }
}
