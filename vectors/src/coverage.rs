//! Coverage of the vectors: the table counts the packets that show each item, and names the items without any.
//!
//! The items come from the tables of the codec. Coverage comes from the packets, not from their names.

mod ways;

use crate::case::{Case, Family};
use crate::families::{IDENTIFYING, TYPES, values};
use crate::usual;
use std::collections::BTreeMap;
use std::fmt;
use uet_packet_io::json::Decoded;
use uet_wire::layout::{Kind, Layer, Layout};
use uet_wire::outer::{Ethernet, Ipv4, Ipv6, Udp, Vlan};
use uet_wire::pds::{Pds, Prologue};
use uet_wire::registry::{self, CtlType, NextHdr};
use uet_wire::{Start, catalogue};

/// An item to cover: topic and name.
type Item = (&'static str, String);

const HEADERS: &str = "headers";
const FIELDS: &str = "values of fields";
const RESERVED: &str = "reserved bits set";
const CODES: &str = "code points";
const PAIRS: &str = "types with next headers";
const CONTROL: &str = "control packets";
const CUTS: &str = "cuts";
const FINDINGS: &str = "requirements broken";
const WAYS: &str = "ways in and ends";
const SEQUENCES: &str = "sequences of the rules";
const DISAGREEMENTS: &str = "disagreements";
const UNDAMAGED: &str = "single packets from uet without error";

/// The topics, in the order of the table.
const TOPICS: [&str; 12] = [
    HEADERS,
    FIELDS,
    RESERVED,
    CODES,
    PAIRS,
    CONTROL,
    CUTS,
    FINDINGS,
    WAYS,
    SEQUENCES,
    DISAGREEMENTS,
    UNDAMAGED,
];

/// Number of packets that show each item.
pub struct Table {
    counts: BTreeMap<Item, usize>,
    packets: usize,
    vectors: usize,
}

impl Table {
    /// Returns the items that no packet shows.
    pub fn missing(&self) -> impl Iterator<Item = &(&'static str, String)> {
        self.counts.iter().filter(|(_, count)| **count == 0).map(|(item, _)| item)
    }

    /// Returns the number of vectors.
    pub fn vectors(&self) -> usize {
        self.vectors
    }

    /// Returns the number of packets that show an item; `None` if it need not be shown.
    pub fn count(&self, topic: &'static str, name: &str) -> Option<usize> {
        self.counts.get(&(topic, name.to_owned())).copied()
    }

    fn show(&mut self, topic: &'static str, name: String) {
        // Only items of the table are counted.
        if let Some(count) = self.counts.get_mut(&(topic, name)) {
            *count += 1;
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} vectors, {} packets\n", self.vectors, self.packets)?;
        writeln!(f, "{:40} {:>6} {:>6} {:>8}", "", "wanted", "shown", "packets")?;
        for topic in TOPICS {
            let of_topic = || self.counts.iter().filter(|((other, _), _)| *other == topic);
            let shown = of_topic().filter(|(_, count)| **count > 0).count();
            let packets: usize = of_topic().map(|(_, count)| count).sum();
            writeln!(f, "{topic:40} {:>6} {shown:>6} {packets:>8}", of_topic().count())?;
        }
        for (topic, name) in self.missing() {
            writeln!(f, "missing: {topic}: {name}")?;
        }
        Ok(())
    }
}

/// Returns the table of these families.
pub fn table(families: &[Family]) -> Table {
    let mut table = Table { counts: BTreeMap::new(), packets: 0, vectors: 0 };
    table.counts.extend(wanted().into_iter().map(|item| (item, 0)));
    for family in families {
        for vector in &family.vectors {
            table.vectors += 1;
            let single = vector.cases().count() == 1;
            for case in vector.cases() {
                table.packets += 1;
                look_at(&mut table, case, single);
            }
            let name = vector.name();
            if let Some(name) = name.strip_prefix("sequences/") {
                table.show(SEQUENCES, name[..2].to_owned());
            }
            if let Some(name) = name.strip_prefix("disagreements/") {
                let row = name.find("-in-1.").map_or(name, |end| &name[..end]);
                table.show(DISAGREEMENTS, row.to_owned());
            }
        }
    }
    table
}

/// Returns the headers that are truncated in vectors.
fn cut_headers() -> impl Iterator<Item = &'static Layout> {
    let outer = [Ethernet::LAYOUT, Vlan::LAYOUT, Ipv4::LAYOUT, Ipv6::LAYOUT, Udp::LAYOUT];
    // One or two bytes identify a reserved type; a longer truncated header does not exist.
    usual::layouts().filter(|layout| *layout != Prologue::LAYOUT).chain(outer)
}

/// Returns the number of bytes that identify the truncated header.
fn known_from(layout: &Layout) -> usize {
    match (layout.layer, layout.name) {
        // A shorter packet is a truncated prologue.
        (Layer::Pds, _) => 2,
        // A shorter packet is a truncated start of the header.
        (Layer::Tss, _) => 4,
        // The first byte identifies it.
        (_, "ipv6" | "compare_swap") => 1,
        _ => 0,
    }
}

/// The rows of the table of disagreements.
const ROWS: [&str; 17] = [
    "pdc-info",
    "rendezvous-extension",
    "ack-ccx-length",
    "semantic-control",
    "medium-request",
    "response-data-small",
    "rudi-header",
    "nack-code-3",
    "ack-flags-bit-6",
    "ses-opcodes",
    "response-payload-length",
    "ack-cc-credit",
    "negotiation",
    "next-hdr-9",
    "deferrable-tokens",
    "outside-region",
    "mswap-operands",
];

fn wanted() -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for layout in usual::layouts() {
        items.push((HEADERS, layout.name.to_owned()));
        for place in layout.places() {
            if place.row.kind == Kind::Reserved {
                items.push((RESERVED, layout.key(&place).to_string()));
                continue;
            }
            for (word, _) in values(&place) {
                let one_value = IDENTIFYING.contains(&place.row.name);
                if !one_value {
                    items.push((FIELDS, value_name(layout, &place, word)));
                }
            }
        }
    }
    for registry in registry::ALL {
        let entries = registry.entries.iter().map(|entry| entry.code);
        let vendors = registry.vendor.iter().flat_map(|(first, last)| [*first, *last]);
        items.extend(entries.chain(vendors).map(|code| (CODES, format!("{} {code:#x}", registry.name))));
    }
    for kind in TYPES {
        items.extend((0..16).filter_map(NextHdr::new).map(|next| (PAIRS, format!("{kind} {next}"))));
    }
    items.extend((0..16).filter_map(CtlType::new).map(|kind| (CONTROL, kind.to_string())));
    for layout in cut_headers() {
        let cuts = known_from(layout)..layout.bytes;
        items.extend(cuts.map(|present| (CUTS, format!("{} {present}", layout.name))));
    }
    let in_packets = catalogue::ALL.iter().filter(|requirement| requirement.id.starts_with("WIRE-"));
    items.extend(in_packets.map(|requirement| (FINDINGS, requirement.id.to_owned())));
    items.extend(ways::WAYS.iter().map(|(name, _)| (WAYS, (*name).to_owned())));
    items.extend((1..=16).map(|number| (SEQUENCES, format!("{number:02}"))));
    items.extend(ROWS.map(|row| (DISAGREEMENTS, row.to_owned())));
    items.push((UNDAMAGED, "any".to_owned()));
    items
}

fn value_name(layout: &Layout, place: &uet_wire::layout::Place, word: &str) -> String {
    format!("{} {} at {} {word}", layout.name, place.row.name, place.lo())
}

fn look_at(table: &mut Table, case: &Case, single: bool) {
    let mut decoder = case.decoder();
    let decoded = case.decoded(&mut decoder);
    let packet = &decoded.packet;
    for (layout, bytes) in packet.headers() {
        table.show(HEADERS, layout.name.to_owned());
        for (place, value) in layout.present(bytes) {
            match place.row.kind {
                Kind::Reserved if value != 0 => table.show(RESERVED, layout.key(&place).to_string()),
                Kind::Code(registry) => table.show(CODES, format!("{} {value:#x}", registry.name)),
                _ => {}
            }
            for (word, _) in values(&place).iter().filter(|(_, wanted)| *wanted == value) {
                table.show(FIELDS, value_name(layout, &place, word));
            }
        }
    }
    match packet.uet.pds {
        Some(Pds::Control(header)) => table.show(CONTROL, header.ctl_type().to_string()),
        Some(pds) => table.show(PAIRS, format!("{} {}", pds.kind(), pds.next_hdr())),
        None => {}
    }
    if let (Some(_), Some(cut)) = (packet.error(), packet.cut) {
        table.show(CUTS, format!("{} {}", cut.header().name, cut.present()));
    }
    for finding in &decoded.findings {
        table.show(FINDINGS, finding.requirement.id.to_owned());
    }
    for (name, shows) in ways::WAYS {
        if shows(case, &decoded) {
            table.show(WAYS, (*name).to_owned());
        }
    }
    if single && case.start == Start::Uet && !is_damaged(&decoded) {
        table.show(UNDAMAGED, "any".to_owned());
    }
}

fn is_damaged(decoded: &Decoded<'_>) -> bool {
    decoded.error().is_some()
}
