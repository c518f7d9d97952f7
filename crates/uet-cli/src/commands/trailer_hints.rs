//! Hints about senders whose packets end with a trailer that the settings do not expect, or lack the expected one.

use super::complain;
use std::collections::BTreeMap;
use std::net::IpAddr;
use uet_packet_io::json::{Decoded, Record};
use uet_wire::catalogue::{WIRE_CRC_001, WIRE_LEN_001, WIRE_SES_006, WIRE_SES_007};
use uet_wire::layout::Layer;
use uet_wire::{Content, Options, Start, TrailerKind, crc};

/// Number of packets of a sender that are examined. A sender appends the same trailer to all of them.
const EXAMINED: u8 = 8;

/// Maximum number of senders. Further ones get no hint.
const SENDERS: usize = 1 << 12;

/// Maximum number of hints to print.
const SHOWN: usize = 10;

/// A trailer that the settings do not expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unexpected {
    /// The least significant byte comes first.
    Reversed,
    /// A right CRC, but `--trailer` names no CRC.
    OtherTrailer,
    /// No CRC, although `--trailer` names one.
    NoTrailer,
    /// No ICV, because the packet is in the clear, although `--trailer` names one.
    NoIcv,
    /// A secured packet, but `--trailer` names no ICV.
    Icv,
    /// Four bytes in most packets that the headers do not announce, and no right CRC.
    FourMore,
}

/// The examined packets of a sender.
#[derive(Debug, Default)]
struct Sender {
    examined: u8,
    found: Option<Unexpected>,
    /// Number of packets that are right without a trailer.
    right_without: u8,
    /// True if the lengths in some packet are wrong with a trailer. A CRC with a wrong value changes no length.
    is_short: bool,
    /// Number of packets with four bytes that the headers do not announce.
    four_more: u8,
}

impl Sender {
    fn unexpected(&self) -> Option<Unexpected> {
        let has_none = self.is_short && self.right_without == self.examined;
        // The first packet of a message announces no length.
        let has_four = self.four_more > 1 && self.four_more > self.examined / 2;
        self.found
            .or_else(|| has_none.then_some(Unexpected::NoTrailer))
            .or_else(|| has_four.then_some(Unexpected::FourMore))
    }
}

/// The examined senders.
#[derive(Debug, Default)]
pub(super) struct TrailerHints(BTreeMap<IpAddr, Sender>);

impl TrailerHints {
    pub(super) fn packet(&mut self, decoded: &Decoded<'_>) {
        let packet = &decoded.packet;
        let is_whole = packet.sliced.is_none() && packet.trimmed.is_none() && packet.content == Content::Uet;
        let Some(ip) = packet.ip.filter(|_| is_whole) else { return };
        if self.0.len() >= SENDERS && !self.0.contains_key(&ip.src()) {
            return;
        }
        let sender = self.0.entry(ip.src()).or_default();
        let trailer = decoded.view().trailer;
        if sender.examined < EXAMINED && sender.found.is_none() {
            // The packet that a CRC covered is not the decrypted one.
            if packet.uet.tss.is_some() {
                sender.found = (trailer != TrailerKind::Icv).then_some(Unexpected::Icv);
                return;
            }
            sender.examined += 1;
            let in_the_clear =
                decoded.error().is_none_or(|error| !matches!(error.layer(), Layer::Tss | Layer::Trailer));
            let no_icv = (trailer == TrailerKind::Icv && in_the_clear).then_some(Unexpected::NoIcv);
            sender.found = unexpected(packet.ip_packet, trailer).or(no_icv);
            if trailer == TrailerKind::None {
                sender.four_more += u8::from(has_four_more(decoded));
            }
            if trailer == TrailerKind::Crc {
                let of_crc = |id: &str| id == WIRE_CRC_001.id;
                sender.is_short |= decoded.error().is_some()
                    || decoded.findings.iter().any(|finding| !of_crc(finding.requirement.id));
                sender.right_without += u8::from(is_right_without(packet.ip_packet, decoded));
            }
        }
    }

    /// Prints a line for each sender on standard error.
    pub(super) fn complain(&self) {
        let found = || self.0.iter().filter_map(|(address, sender)| Some((address, sender.unexpected()?)));
        for (sender, found) in found().take(SHOWN) {
            match found {
                Unexpected::Reversed => complain(format_args!(
                    "{sender} appends a CRC-32C in reverse byte order; the most significant byte must come first"
                )),
                Unexpected::OtherTrailer => complain(format_args!(
                    "{sender} appends a right CRC-32C that --trailer does not name: try --trailer crc"
                )),
                Unexpected::NoTrailer => complain(format_args!(
                    "{sender} appends no CRC, but --trailer names one: try --trailer none"
                )),
                Unexpected::NoIcv => complain(format_args!(
                    "{sender} sends packets in the clear, which have no ICV: try --trailer auto"
                )),
                Unexpected::Icv => complain(format_args!(
                    "{sender} sends secured packets, which end with an ICV: try --trailer auto"
                )),
                Unexpected::FourMore => complain(format_args!(
                    "{sender} appends 4 bytes that its headers do not announce; if they are a CRC-32C, all are \
                     wrong: try --trailer crc"
                )),
            }
        }
        match found().count().saturating_sub(SHOWN) {
            0 => {}
            more => complain(format_args!("{more} more senders have another trailer than expected")),
        }
    }
}

/// Returns whether a packet without a trailer has four bytes more than its headers announce.
fn has_four_more(decoded: &Decoded<'_>) -> bool {
    let payload = decoded.packet.uet.payload.len() as u128;
    decoded.findings.iter().any(|finding| {
        let id = finding.requirement.id;
        let announced = if id == WIRE_LEN_001.id {
            0
        } else if id == WIRE_SES_006.id || id == WIRE_SES_007.id {
            finding.value
        } else {
            return false;
        };
        payload == announced + 4
    })
}

/// Returns whether a packet breaks no requirement if it has no trailer.
fn is_right_without(ip_packet: &[u8], decoded: &Decoded<'_>) -> bool {
    let record = Record { start: Start::Ip, bytes: ip_packet, wire: ip_packet.len(), ..Record::default() };
    let options = Options::DEFAULT.trailer(TrailerKind::None).spec(decoded.spec);
    let without = Decoded::new(record, &options, false);
    without.error().is_none() && without.findings.is_empty()
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
