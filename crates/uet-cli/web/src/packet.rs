//! Shows one packet: its fields with their bits, and its bytes.

use crate::packets::{TEXT_START, decoder};
use serde_json::{Value, json};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::ControlFlow;
use uet_packet_io::Decoder;
use uet_packet_io::hex::Hex;
use uet_packet_io::input::{self, Taker};
use uet_packet_io::json::{Decoded, Record};
use uet_wire::layout::{Kind, Layout};

pub(crate) fn show(input: impl Read + Send, number: u64, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut finder = Finder { decoder: Some(decoder()), number: 0, wanted: number, found: None };
    let read = input::read_live(input, TEXT_START, &mut finder);
    match finder.found {
        Some(packet) => Ok(writeln!(out, "{packet}")?),
        None => Err(read.err().map_or("no such packet".into(), |error| error.to_string()).into()),
    }
}

struct Finder {
    decoder: Option<Decoder>,
    number: u64,
    wanted: u64,
    found: Option<Value>,
}

impl Taker for Finder {
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>> {
        self.number += 1;
        let Some(mut decoder) = self.decoder.take() else { return Ok(ControlFlow::Break(())) };
        // Earlier packets tell which senders append a CRC.
        let decoded = decoder.decode(Record { number: self.number, ..record });
        let found = self.number == self.wanted;
        if found {
            self.found = Some(tree(&decoded));
        }
        self.decoder = Some(decoder);
        Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn secrets(&mut self, key_file: &[u8]) {
        if let Some(decoder) = &mut self.decoder {
            drop(decoder.add_secrets(key_file));
        }
    }

    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a packet with all its fields.
pub(crate) fn tree(decoded: &Decoded<'_>) -> Value {
    let mut layers: Vec<Value> = Vec::new();
    for (layout, header) in decoded.view().headers() {
        if let Some(offset) = decoded.offset_of(header) {
            layers.push(layer(decoded, layout, header, offset));
        }
    }
    let mut text = Vec::new();
    decoded.write(&mut text);
    json!({
        "text": decoded.packet.to_string(),
        "hex": Hex(decoded.record.bytes).to_string(),
        "layers": layers,
        "json": serde_json::from_slice::<Value>(&text).unwrap_or_default(),
    })
}

fn layer(decoded: &Decoded<'_>, layout: &'static Layout, header: &[u8], offset: usize) -> Value {
    let fields = layout.present(header).filter_map(|(place, value)| {
        let reserved = place.row.kind == Kind::Reserved;
        // Reserved bits are of interest only if they are set.
        if reserved && value == 0 {
            return None;
        }
        let entry = decoded.view().entry(&place, value);
        let (lo, width) = (offset * 8 + place.lo(), place.row.width());
        let shown = match entry {
            Some(entry) => format!("{} ({value:#x})", entry.name),
            None if place.row.kind == Kind::Int => signed(value, width).to_string(),
            None if place.row.kind == Kind::Address && width == 32 => {
                Ipv4Addr::from_bits(value as u32).to_string()
            }
            None if place.row.kind == Kind::Address && width == 128 => Ipv6Addr::from_bits(value).to_string(),
            None if width > 32 => format!("{value:#x}"),
            None => value.to_string(),
        };
        let name = if reserved { layout.key(&place).to_string() } else { place.row.name.to_owned() };
        Some(json!([name, shown, entry.map_or(place.row.doc, |entry| entry.doc), lo, lo + width]))
    });
    json!({
        "layer": layout.layer.name(), "title": layout.title, "offset": offset, "bytes": layout.bytes,
        "fields": fields.collect::<Vec<_>>(),
    })
}

fn signed(value: u128, width: usize) -> i128 {
    let value = i128::try_from(value).unwrap_or_default();
    if value >> (width - 1) & 1 == 1 { value - (1 << width) } else { value }
}
