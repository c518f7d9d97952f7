//! A packet as a tree: the fields of each layer with values, meanings and places.

use crate::checksum::UdpSum;
use crate::paint::Paint;
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use uet_packet_io::hex::Hex;
use uet_packet_io::json::{CaptureInterface, Decoded, Time};
use uet_wire::PdcId;
use uet_wire::derived::{DERIVED, Derived, derived};
use uet_wire::layout::{Kind, Layout, Place};
use uet_wire::registry::Entry;
use uet_wire::validate::{Finding, Severity};
use uet_wire::with_serde::inner_name;

/// Appends the tree of a packet.
pub fn tree(out: &mut Vec<u8>, decoded: &Decoded<'_>, paint: Paint) -> io::Result<()> {
    let Decoded { record, packet, .. } = decoded;
    write!(out, "{} ", paint.strong(format_args!("Packet {}:", record.number)))?;
    writeln!(out, "{}", paint.strong(packet))?;
    if let Some(time) = record.time {
        line(out, paint, (2, "time"), Said { value: Time(time), range: None, meaning: "" })?;
    }
    if let Some(CaptureInterface { number, name }) = record.interface {
        let value = name.map_or_else(|| number.to_string(), |name| format!("{number} ({name})"));
        line(out, paint, (2, "interface"), Said { value, range: None, meaning: "" })?;
    }
    let mut offset = record.link.len();
    for (layout, header) in decoded.view().headers() {
        // Parts between headers (IP options, extension headers) have no table; the offset comes from the next header.
        offset = decoded.offset_of(header).unwrap_or(offset);
        layer(out, decoded, layout, header, offset, paint)?;
    }
    if !packet.uet.payload.is_empty() {
        bytes(out, paint, "payload", packet.uet.payload, decoded.view().payload_offset())?;
    }
    if !packet.trailer.is_empty() {
        trailer(out, decoded, paint)?;
    }
    if !packet.padding.is_empty() {
        bytes(out, paint, "padding", packet.padding, decoded.view().padding_offset())?;
    }
    let mut about = derived(&packet.uet).peekable();
    if about.peek().is_some() {
        writeln!(out, "  {}", paint.strong("derived"))?;
    }
    for (name, value) in about {
        let meaning = DERIVED.iter().find(|(known, _)| *known == name).map_or("", |(_, meaning)| meaning);
        line(out, paint, (4, name), Said { value: Show(value), range: None, meaning })?;
    }
    if let Some(error) = decoded.error() {
        writeln!(out, "  {} {error}", paint.error("malformed"))?;
    }
    match decoded.protection.as_ref().map(|protection| (protection.authenticated, &protection.reason)) {
        Some((Some(true), _)) => writeln!(out, "  authentic")?,
        Some((Some(false), Some(reason))) => writeln!(out, "  {}: {reason}", paint.error("not authentic"))?,
        Some((None, Some(reason))) => writeln!(out, "  not decrypted: {reason}")?,
        _ => {}
    }
    for found in &decoded.findings {
        writeln!(out, "  {} {}: {}", severity(paint, found), found.requirement.id, found.detail())?;
    }
    writeln!(out)
}

fn trailer(out: &mut Vec<u8>, decoded: &Decoded<'_>, paint: Paint) -> io::Result<()> {
    let (bytes, end) = (decoded.packet.trailer, decoded.view().padding_offset());
    let range = Some(Range((end - bytes.len()) * 8, end * 8));
    let meaning = match decoded.view().crc_check() {
        Some(check) if check.ok() => "right".to_owned(),
        Some(check) if check.value.swap_bytes() == check.expected => {
            format!("in reverse byte order, expected {:#010x}", check.expected)
        }
        Some(check) => format!("wrong, expected {:#010x}", check.expected),
        None => String::new(),
    };
    line(out, paint, (2, decoded.view().trailer_name()), Said { value: Hex(bytes), range, meaning: &meaning })
}

fn severity(paint: Paint, finding: &Finding) -> impl Display {
    let name = finding.severity().name();
    match finding.severity() {
        Severity::Error => paint.error(name),
        Severity::Warning => paint.warning(name),
        Severity::Note => paint.faint(name),
    }
}

fn layer(
    out: &mut Vec<u8>,
    decoded: &Decoded<'_>,
    layout: &'static Layout,
    header: &[u8],
    offset: usize,
    paint: Paint,
) -> io::Result<()> {
    let length = layout.bytes.min(header.len());
    let whole = if length < layout.bytes { ", cut" } else { "" };
    let name = layout.layer.name();
    write!(out, "  {}", paint.strong(name))?;
    fill(out, (COLUMNS[0] + COLUMNS[1]).saturating_sub(2 + name.len()));
    place(out, Some(Range(offset * 8, (offset + length) * 8)))?;
    writeln!(out, "  {}{whole}", layout.title)?;
    let inner = decoded.view().is_inner_vlan(header);
    for (place, value) in layout.present(header) {
        let range = Some(Range(offset * 8 + place.lo(), offset * 8 + place.hi()));
        if place.row.kind == Kind::Reserved {
            if value != 0 {
                let (name, value) = (layout.key(&place).to_string(), format!("{value:#x}"));
                line(out, paint, (4, &name), Said { value, range, meaning: "reserved, not 0" })?;
            }
            continue;
        }
        let name = if inner { inner_name(place.row.name) } else { place.row.name };
        let entry = decoded.view().entry(&place, value);
        let meaning = entry.map_or(place.row.doc, |entry| entry.doc);
        let wrong = if name == "udp.checksum" { wrong_checksum(decoded) } else { None };
        let meaning = wrong.as_deref().unwrap_or(meaning);
        line(out, paint, (4, name), Said { value: Value(place, value, entry), range, meaning })?;
    }
    Ok(())
}

/// Returns what is wrong with a UDP checksum, if the whole datagram was captured. Captures at the sender often have
/// wrong ones, because the NIC completes them later.
fn wrong_checksum(decoded: &Decoded<'_>) -> Option<String> {
    let (packet, frame) = (&decoded.packet, decoded.record.bytes);
    let covered = UdpSum::of(packet).filter(|covered| covered.is_whole() && packet.trimmed.is_none())?;
    let (sent, right) = (packet.udp?.checksum(), covered.right(frame));
    if sent == 0 || sent == right {
        return None;
    }
    let what = if sent == covered.pseudo(frame) { "left to the NIC" } else { "wrong" };
    Some(format!("{what}, {right} would be right"))
}

/// Widths of the columns: name with its indentation, value, place.
const COLUMNS: [usize; 3] = [32, 26, 9];

/// Writes a name, a value, its place and its meaning.
fn line(
    out: &mut Vec<u8>,
    paint: Paint,
    (indent, name): (usize, &str),
    said: Said<'_, impl Display>,
) -> io::Result<()> {
    fill(out, indent);
    write!(out, "{}", paint.name(name))?;
    fill(out, COLUMNS[0].saturating_sub(indent + name.len()).max(1));
    let start = out.len();
    write!(out, "{}", said.value)?;
    if said.range.is_some() || !said.meaning.is_empty() {
        fill(out, COLUMNS[1].saturating_sub(out.len() - start).max(1));
        place(out, said.range)?;
    }
    if !said.meaning.is_empty() {
        write!(out, "  {}", paint.faint(said.meaning))?;
    }
    writeln!(out)
}

/// The parts of a line.
struct Said<'a, V> {
    value: V,
    range: Option<Range>,
    meaning: &'a str,
}

/// Writes a range, right-aligned in its column.
fn place(out: &mut Vec<u8>, range: Option<Range>) -> io::Result<()> {
    let start = out.len();
    if let Some(range) = range {
        write!(out, "{range}")?;
    }
    let missing = COLUMNS[2].saturating_sub(out.len() - start);
    fill(out, missing);
    out[start..].rotate_right(missing);
    Ok(())
}

/// Writes spaces. (Padding by the formatter writes one character at a time.)
fn fill(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b' ');
}

/// Returns a number of things in words: `1 packet`, `2 packets`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Returns a line for each kind of packets that captures lack: dropped according to their statistics, acknowledged but
/// absent, and the requests of replies. `first` is the first ACK of absent packets, if known.
pub(crate) fn lacking(
    dropped: u64,
    unseen: u64,
    first: Option<String>,
    unmatched: u64,
) -> impl Iterator<Item = String> {
    let line = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", counted(count, "packet")));
    let dropped = line(dropped, "dropped while capturing, as the capture states");
    let first = first.map_or(String::new(), |ack| format!("; packet {ack} is the first such ACK"));
    let unseen = line(unseen, &format!("acknowledged, but not in the capture{first}"));
    let unmatched = match unmatched {
        0 => None,
        1 => Some("1 reply belongs to no request of the capture".to_owned()),
        more => Some(format!("{more} replies belong to no request of the capture")),
    };
    dropped.into_iter().chain(unseen).chain(unmatched)
}

/// Writes the number, place and first ones of bytes that are not fields.
fn bytes(out: &mut Vec<u8>, paint: Paint, name: &str, bytes: &[u8], offset: usize) -> io::Result<()> {
    const SHOWN: usize = 16;
    let (first, more) = match bytes.get(..SHOWN) {
        Some(first) if bytes.len() > SHOWN => (first, "..."),
        _ => (bytes, ""),
    };
    let range = Some(Range(offset * 8, (offset + bytes.len()) * 8));
    let value = counted(bytes.len() as u64, "byte");
    line(out, paint, (2, name), Said { value, range, meaning: &format!("{}{more}", Hex(first)) })
}

/// Displays a value. A code point has its name and number; a PDCID appears as in the summary and `--pdc`.
pub(crate) struct Value(pub(crate) Place, pub(crate) u128, pub(crate) Option<&'static Entry>);

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Value(place, value, entry) = *self;
        match entry {
            Some(entry) => write!(f, "{} ({value})", entry.name),
            None if matches!(place.row.name, "pds.spdcid" | "pds.dpdcid") => PdcId(value as u16).fmt(f),
            None => place.display(value).fmt(f),
        }
    }
}

struct Show(Derived);

impl Display for Show {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Derived::Number(number) => number.fmt(f),
            Derived::Ranges(sacked) => {
                let mut separator = "";
                for (first, last) in sacked.clone().ranges() {
                    write!(f, "{separator}{first}")?;
                    if first != last {
                        write!(f, "-{last}")?;
                    }
                    separator = ", ";
                }
                if separator.is_empty() { f.write_str("none") } else { Ok(()) }
            }
        }
    }
}

/// Displays the bytes that hold the bits from the first to before the second.
struct Range(usize, usize);

impl Display for Range {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.0 / 8, self.1.div_ceil(8).saturating_sub(1)) {
            (first, last) if first >= last => write!(f, "{first}"),
            (first, last) => write!(f, "{first}-{last}"),
        }
    }
}
