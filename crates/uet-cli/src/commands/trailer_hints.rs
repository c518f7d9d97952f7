//! Hints about senders whose last four bytes are a CRC that the settings do not expect.

use super::complain;
use std::collections::BTreeMap;
use std::net::IpAddr;
use uet_packet_io::json::Decoded;
use uet_wire::{Content, TrailerKind, crc};

/// Number of packets of a sender that are examined. A sender appends the same trailer to all of them.
const EXAMINED: u8 = 8;

/// Maximum number of senders. Further ones get no hint.
const SENDERS: usize = 1 << 12;

/// Maximum number of hints to print.
const SHOWN: usize = 10;

/// A CRC at the end of a packet that the settings do not expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unexpected {
    /// The least significant byte comes first.
    Reversed,
    /// A right CRC, but `--trailer` names no CRC.
    OtherTrailer,
}

/// The examined senders.
#[derive(Debug, Default)]
pub(super) struct TrailerHints(BTreeMap<IpAddr, (u8, Option<Unexpected>)>);

impl TrailerHints {
    pub(super) fn packet(&mut self, decoded: &Decoded<'_>) {
        let packet = &decoded.packet;
        let is_whole = packet.sliced.is_none() && packet.trimmed.is_none() && packet.content == Content::Uet;
        // A decrypted packet differs from the one that the CRC covered.
        let Some(ip) = packet.ip.filter(|_| is_whole && packet.uet.tss.is_none()) else { return };
        if self.0.len() >= SENDERS && !self.0.contains_key(&ip.src()) {
            return;
        }
        let (examined, found) = self.0.entry(ip.src()).or_default();
        if *examined < EXAMINED && found.is_none() {
            *examined += 1;
            *found = unexpected(packet.ip_packet, decoded.view().trailer);
        }
    }

    /// Prints a line for each sender on standard error.
    pub(super) fn complain(&self) {
        let found = || self.0.iter().filter_map(|(sender, (_, found))| Some((sender, (*found)?)));
        for (sender, found) in found().take(SHOWN) {
            match found {
                Unexpected::Reversed => complain(format_args!(
                    "{sender} appends a CRC-32C in reverse byte order; the most significant byte must come first"
                )),
                Unexpected::OtherTrailer => complain(format_args!(
                    "{sender} appends a right CRC-32C that --trailer does not name: try --trailer crc"
                )),
            }
        }
        match found().count().saturating_sub(SHOWN) {
            0 => {}
            more => complain(format_args!("{more} more senders append a CRC that was not expected")),
        }
    }
}

fn unexpected(ip_packet: &[u8], trailer: TrailerKind) -> Option<Unexpected> {
    let (covered, last) = ip_packet.split_last_chunk()?;
    let crc = crc::over_ip_packet(covered)?;
    if u32::from_le_bytes(*last) == crc {
        Some(Unexpected::Reversed)
    } else if u32::from_be_bytes(*last) == crc && trailer != TrailerKind::Crc {
        Some(Unexpected::OtherTrailer)
    } else {
        None
    }
}
