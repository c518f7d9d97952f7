//! Reports packets of an input that are not UET or cannot be read, and options that would explain them. A capture without
//! UET must not look like a correct one.

use super::trailer_hints::TrailerHints;
use super::trim_hints::TrimHints;
use super::{about, complain};
use crate::text::counted;
use core::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use uet_packet_io::json::Decoded;
use uet_wire::outer::MAX_VLANS;
use uet_wire::pds::Pds;
use uet_wire::{Content, Uet};

/// Maximum number of ports that a sentence names.
const PORTS: usize = 5;

/// Counts packets that are not read.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    packets: u64,
    /// Packets of the inputs that have ended.
    earlier: u64,
    /// True if any packet is UET or was meant to be.
    has_uet: bool,
    /// True if any of them is in the clear and has more than the start of its PDS header.
    is_judged: bool,
    /// UET packets that the capture cuts off within their PDS header or before it.
    headless: u64,
    /// True if the capture cuts any packet off within its IP header or before it.
    cuts_ip: bool,
    /// True if the capture cuts any packet off between its IP header and the end of its UDP header.
    cuts_udp: bool,
    /// Fragments of IP packets.
    fragments: u64,
    /// Packets with more VLAN tags than are read.
    tagged: u64,
    /// True if the last packet is of another protocol.
    is_last_foreign: bool,
    /// Packets of unsupported link types in the current input.
    links: BTreeMap<i32, u64>,
    /// True if any input has packets of unsupported link types.
    has_skipped: bool,
    /// Packets to other ports that would be UET.
    ports: BTreeMap<u16, u64>,
    /// All UDP packets to other ports.
    udp: BTreeMap<u16, u64>,
    /// Encrypted packets that were not opened.
    sealed: u64,
    /// The reason why the first of them was not.
    sealed_why: Option<String>,
    trailers: TrailerHints,
    trims: TrimHints,
}

impl Foreign {
    pub(super) fn packet(&mut self, decoded: &Decoded<'_>) {
        let Decoded { record, packet, .. } = decoded;
        self.packets += 1;
        self.trailers.packet(decoded);
        self.trims.packet(decoded);
        self.is_last_foreign = packet.content == Content::Other;
        let is_uet = packet.content == Content::Uet || packet.error().is_some();
        let is_cut_off = packet.sliced.is_some() && packet.cut.is_some();
        let has_pds = !matches!(packet.uet.pds, None | Some(Pds::Prologue(_)));
        let is_intact = packet.error().is_none() && packet.uet.tss.is_none();
        let is_headless = is_uet && is_cut_off && is_intact && !has_pds;
        self.has_uet |= is_uet;
        let closed = decoded.protection.as_ref().filter(|known| known.authenticated.is_none());
        self.is_judged |= is_uet && !is_headless && closed.is_none();
        self.headless += u64::from(is_headless);
        self.cuts_ip |= is_cut_off && packet.ip.is_none();
        self.cuts_udp |= is_cut_off && packet.ip.is_some() && packet.udp.is_none();
        self.fragments += u64::from(packet.content == Content::Fragment);
        self.tagged += u64::from(packet.has_unread_tag());
        if let Some(link) = record.unread {
            *self.links.entry(link).or_default() += 1;
        } else if let (Some(udp), Content::Other) = (&packet.udp, packet.content) {
            *self.udp.entry(udp.dst_port()).or_default() += 1;
            if Uet::parse(packet.uet.payload).is_ok_and(|uet| !matches!(uet.pds, Some(Pds::Prologue(_)))) {
                *self.ports.entry(udp.dst_port()).or_default() += 1;
            }
        }
        if let Some(closed) = closed {
            self.sealed += 1;
            self.sealed_why = self.sealed_why.take().or_else(|| closed.reason.clone());
        }
    }

    /// Counts a packet that is not read because its number is not selected. It may be UET.
    pub(super) fn unselected(&mut self) {
        self.packets += 1;
        self.has_uet = true;
        self.is_judged = true;
    }

    /// Reports digits of the command line that are not UET.
    pub(super) fn digits_ended(&self, input: &Path) {
        if self.is_last_foreign {
            complain(about(input, "no UET packet; the digits may begin with another layer: try --from uet"));
        }
    }

    /// Ends an input. Reports an undamaged one that contains no packet, and packets that were skipped. Returns whether
    /// all of them were.
    pub(super) fn input_ended(&mut self, input: &Path, damaged: bool) -> bool {
        let packets = self.packets - self.earlier;
        if packets == 0 && !damaged {
            complain(about(input, "the input contains no packet"));
        }
        for (link, count) in &self.links {
            let were = if *count == 1 { "packet was" } else { "packets were" };
            let why = format!(
                "{count} {were} skipped: link type {link} is not supported; supported are Ethernet, IP, \
                 Linux cooked (SLL, SLL2) and BSD loopback"
            );
            complain(about(input, why));
        }
        let skipped = core::mem::take(&mut self.links).into_values().sum::<u64>();
        self.has_skipped |= skipped > 0;
        self.earlier = self.packets;
        skipped > 0 && skipped == packets
    }

    /// Returns a sentence that says that no packet was judged, and why: it names the UDP ports if none is UET. Returns
    /// `None` if any packet is UET in the clear and has a PDS header, or if there is none.
    pub(super) fn unjudged(&self) -> Option<String> {
        if self.packets == 0 || self.is_judged {
            return None;
        }
        if self.sealed > 0 {
            return Some(format!("nothing was judged, because {}", self.unopened()));
        }
        if self.has_uet {
            let why = "the capture cuts off all UET packets before the end of their PDS header";
            return Some(format!("nothing was judged, because {why}"));
        }
        let mut ports: Vec<(u16, u64)> = self.udp.iter().map(|(port, count)| (*port, *count)).collect();
        ports.sort_by_key(|(port, count)| (Reverse(*count), *port));
        let named: Vec<String> =
            ports.iter().take(PORTS).map(|(port, count)| format!("{port} ({count})")).collect();
        let named = named.join(", ");
        let seen = match ports.len() {
            0 if self.has_skipped => "their link type is not supported".to_owned(),
            0 if self.tagged > 0 => format!("packets have more than {MAX_VLANS} VLAN tags"),
            0 if self.cuts_ip => "the capture cuts packets off within their IP header".to_owned(),
            0 if self.cuts_udp => {
                "the capture cuts packets off before the end of their UDP header".to_owned()
            }
            0 => "no packet is UDP".to_owned(),
            1..=PORTS => format!("UDP destination ports: {named}"),
            all => format!("UDP destination ports: {named} and {} more", all - PORTS),
        };
        Some(format!("nothing was judged, because no packet is UET; {seen}"))
    }

    /// Returns the number of encrypted packets that were not opened, in words.
    fn unopened(&self) -> String {
        let are = if self.sealed == 1 { "is" } else { "are" };
        format!("{} {are} encrypted and not read", counted(self.sealed, "packet"))
    }

    /// Reports packets that are not judged on standard error: encrypted ones, those that the capture cuts off,
    /// fragments, and those with too many VLAN tags. Commands that show packets show the reason of each.
    pub(super) fn complain_unread(&self) {
        if self.sealed > 0 {
            let why = self.sealed_why.as_deref().unwrap_or("no key opens it");
            complain(format_args!("{}: {why} (option --keys)", self.unopened()));
        }
        if self.headless > 0 {
            complain(format_args!(
                "{} cut off by the capture before the end of the PDS header: capture 160 bytes of each",
                counted(self.headless, "packet")
            ));
        }
        if self.tagged > 0 {
            complain(format_args!(
                "{} with more than {MAX_VLANS} VLAN tags not read",
                counted(self.tagged, "packet")
            ));
        }
        if self.fragments > 0 && self.has_uet {
            complain(format_args!(
                "{} of IP packets not read: UET packets are never fragmented",
                counted(self.fragments, "fragment")
            ));
        }
    }

    /// Prints the counts on standard error.
    pub(super) fn complain(&self) {
        self.trailers.complain();
        self.trims.complain();
        if self.packets == 0 || self.has_uet || self.has_skipped {
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
