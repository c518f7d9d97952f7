//! Builds packets from forms.

use crate::packet::tree;
use crate::rust::{is_group, rust};
use serde_json::{Value, json};
use std::error::Error;
use std::io::{Read, Write};
use uet_packet_io::json::{Decoded, Record, Settings, encode};
use uet_wire::layout::{self, Kind, Layer, Layout, Place};
use uet_wire::pds::Pds;
use uet_wire::registry::PdsType;
use uet_wire::ses::Ses;
use uet_wire::{Options, Start};

/// Writes the headers that a packet can have, and the code points that announce them.
pub(crate) fn forms(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let announced = |kinds: &[PdsType]| kinds.iter().map(|kind| kind.code()).collect::<Vec<_>>();
    let pds: Vec<Value> =
        Pds::TABLE.iter().map(|(kinds, layout)| json!([announced(kinds), form(layout)])).collect();
    let ses: Vec<Value> = Ses::TABLE
        .iter()
        .map(|(nexts, layout)| {
            json!([nexts.iter().map(|next| next.code()).collect::<Vec<_>>(), form(layout)])
        })
        .collect();
    let extensions: Vec<Value> =
        layout::ALL.iter().filter(|layout| layout.layer == Layer::Ext).map(|layout| form(layout)).collect();
    writeln!(out, "{}", json!({ "pds": pds, "ses": ses, "ext": extensions }))?;
    Ok(())
}

fn form(layout: &'static Layout) -> Value {
    let fields = layout.fields().filter(|place| !is_group(layout, place));
    let fields: Vec<Value> = fields.map(|place| field(layout, &place)).collect();
    json!({ "name": layout.name, "title": layout.title, "bytes": layout.bytes, "fields": fields })
}

fn field(layout: &'static Layout, place: &Place) -> Value {
    let row = place.row;
    let choices = match row.kind {
        Kind::Code(registry) => {
            registry.entries.iter().map(|entry| json!([entry.code, entry.name])).collect()
        }
        Kind::Bool => vec![json!([0, "no"]), json!([1, "yes"])],
        _ => Vec::new(),
    };
    let when = row.when.map(|when| {
        let width = layout.field(when.name).map_or(0, |deciding| deciding.row.width());
        json!([when.name, when.values.iter(width).collect::<Vec<_>>()])
    });
    json!({ "name": row.name, "width": row.width(), "doc": row.doc, "choices": choices, "when": when })
}

/// Writes the packet that a JSON object describes, as its bytes, its fields and as Rust.
pub(crate) fn build(input: impl Read, from: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let start = match from {
        "eth" => Start::Eth,
        "ip" => Start::Ip,
        "udp" => Start::Udp,
        "uet" => Start::Uet,
        _ => return Err(format!("no layer {from}").into()),
    };
    let options = Options::default();
    let bytes = encode(&crate::json(input)?, &Settings { start, options })?;
    let record = Record { number: 1, start, bytes: &bytes, wire: bytes.len(), ..Record::default() };
    let decoded = Decoded::new(record, &options, false);
    let mut packet = tree(&decoded);
    let found: Vec<Value> = decoded
        .findings
        .iter()
        .map(|finding| json!([finding.requirement.id, finding.severity().name(), finding.to_string()]))
        .collect();
    packet["findings"] = found.into();
    packet["rust"] = rust(&decoded).into();
    writeln!(out, "{packet}")?;
    Ok(())
}
