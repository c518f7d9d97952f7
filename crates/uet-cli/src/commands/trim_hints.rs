//! Hints about packets that look trimmed by a switch, with a traffic class that no option names.

use super::complain;
use crate::text::counted;
use uet_packet_io::json::Decoded;
use uet_wire::outer::UDP_PORT;
use uet_wire::{Content, Options};

/// Packets by traffic class.
#[derive(Debug)]
pub(super) struct TrimHints {
    /// Packets that are right only if they are trimmed.
    cut: [u64; 64],
    /// True if a packet is right as it is. The class of trims is none of these.
    whole: [bool; 64],
}

impl Default for TrimHints {
    fn default() -> Self {
        TrimHints { cut: [0; 64], whole: [false; 64] }
    }
}

impl TrimHints {
    pub(super) fn packet(&mut self, decoded: &Decoded<'_>) {
        let packet = &decoded.packet;
        let Some(dscp) = packet.ip.map(|ip| ip.dscp()) else { return };
        if packet.trimmed.is_some() || packet.sliced.is_some() {
            return;
        }
        if !decoded.is_bad() {
            self.whole[usize::from(dscp)] |= packet.content == Content::Uet;
        } else if is_right_if_trimmed(decoded, dscp) {
            self.cut[usize::from(dscp)] += 1;
        }
    }

    /// Prints a line for each such class on standard error.
    pub(super) fn complain(&self) {
        for (dscp, (&cut, &whole)) in self.cut.iter().zip(&self.whole).enumerate() {
            if cut > 0 && !whole {
                complain(format_args!(
                    "{} with DSCP {dscp} {} trimmed by a switch: try --trimmed-dscp {dscp}",
                    counted(cut, "packet"),
                    if cut == 1 { "looks" } else { "look" }
                ));
            }
        }
    }
}

/// Returns whether a packet breaks no requirement if its class is that of trimmed packets.
fn is_right_if_trimmed(decoded: &Decoded<'_>, dscp: u8) -> bool {
    let port = decoded.packet.udp.map_or(UDP_PORT, |udp| udp.dst_port());
    let options = Options::DEFAULT.udp_port(port).trimmed_dscp(Some(dscp)).spec(decoded.spec);
    let again = Decoded::new(decoded.record, &options, false);
    // Anything that is cut short could be a trim. The length of the IP header must say so.
    again.packet.trimmed.is_some_and(|trimmed| trimmed.missing.is_some()) && !again.is_bad()
}
