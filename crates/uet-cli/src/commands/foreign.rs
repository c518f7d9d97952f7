//! Reports packets of an input that are not UET or cannot be read, and trailers that other settings would explain. A
//! capture without UET must not look like a correct one.

use super::trailer_hints::TrailerHints;
use super::{about, complain};
use std::collections::BTreeMap;
use std::path::Path;
use uet_packet_io::json::Decoded;
use uet_wire::Content;

/// Counts packets that are not read.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    packets: u64,
    /// Packets of the inputs that have ended.
    earlier: u64,
    /// True if any packet is UET or was meant to be.
    has_uet: bool,
    /// True if the last packet is of another protocol.
    is_last_foreign: bool,
    /// Packets of unsupported link types.
    links: BTreeMap<i32, u64>,
    /// Packets to other ports.
    ports: BTreeMap<u16, u64>,
    trailers: TrailerHints,
}

impl Foreign {
    pub(super) fn packet(&mut self, decoded: &Decoded<'_>) {
        let Decoded { record, packet, .. } = decoded;
        self.packets += 1;
        self.trailers.packet(decoded);
        self.is_last_foreign = packet.content == Content::Other;
        self.has_uet |= packet.content == Content::Uet || packet.error().is_some();
        if let Some(link) = record.unread {
            *self.links.entry(link).or_default() += 1;
        } else if let (Some(udp), Content::Other) = (&packet.udp, packet.content) {
            *self.ports.entry(udp.dst_port()).or_default() += 1;
        }
    }

    /// Reports digits of the command line that are not UET.
    pub(super) fn digits_ended(&self, input: &Path) {
        if self.is_last_foreign {
            complain(about(input, "no UET packet; the digits may begin with another layer: try --from uet"));
        }
    }

    /// Ends an input. Reports an undamaged one that contains no packet.
    pub(super) fn input_ended(&mut self, input: &Path, damaged: bool) {
        if self.packets == self.earlier && !damaged {
            complain(about(input, "the input contains no packet"));
        }
        self.earlier = self.packets;
    }

    /// Prints the counts on standard error.
    pub(super) fn complain(&self) {
        self.trailers.complain();
        for (link, count) in &self.links {
            complain(format_args!("{count} packets were skipped: link type {link} is not supported"));
        }
        if self.packets == 0 || self.has_uet || !self.links.is_empty() {
            return;
        }
        match self.ports.iter().max_by_key(|(_, count)| **count) {
            Some((port, count)) => complain(format_args!(
                "no packet is UET; {count} of {} are UDP to port {port}: try --udp-port {port}",
                self.packets
            )),
            None => complain(format_args!("no packet is UET")),
        }
    }
}
