//! The golden vectors, with their fields and offsets.

use crate::text::Value as Shown;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;
use uet_packet_io::hex;
use uet_packet_io::json::{Decoded, Record};
use uet_wire::layout::Kind;
use uet_wire::{Options, Spec, Start, TrailerKind};

/// The vectors of a folder, prepared for the page.
#[derive(Debug, Default)]
pub struct Vectors(Vec<Value>);

impl Vectors {
    /// Reads the vectors of a folder: each line of its `.jsonl` files, ordered by file.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let mut vectors = Vectors::default();
        for path in sorted(directory)? {
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                vectors
                    .file(&path)
                    .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
            }
        }
        Ok(vectors)
    }

    fn file(&mut self, path: &Path) -> Result<(), String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        for (index, line) in text.lines().enumerate() {
            self.line(line).map_err(|error| format!("line {}: {error}", index + 1))?;
        }
        Ok(())
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        let vector: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match vector["packets"].as_array() {
            Some(packets) => packets.iter().try_for_each(|one| packet(one).map(|one| self.0.push(one))),
            None => packet(&vector).map(|one| self.0.push(one)),
        }
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn script(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(Value::to_string).collect();
        format!("const VECTORS = [\n{}\n];\n", lines.join(",\n"))
    }
}

fn sorted(directory: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let about = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", directory.display()));
    let mut paths = fs::read_dir(directory)
        .map_err(about)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

/// Returns name, description, bytes and headers of a vector. A header has its name, first byte and fields. A field has
/// its name, first bit in the packet, width and value in words.
fn packet(vector: &Value) -> Result<Value, String> {
    let text = |key: &str| vector[key].as_str().ok_or_else(|| format!("lacks \"{key}\""));
    let bytes = hex::decode(text("hex")?).map_err(|error| format!("hex: {error}"))?;
    let start = match text("from")? {
        "eth" => Start::Eth,
        "ip" => Start::Ip,
        "udp" => Start::Udp,
        "uet" => Start::Uet,
        other => return Err(format!("from: there is no start '{other}'")),
    };
    let options = options(&vector["options"]);
    let wire = vector["sliced"]["wire"].as_u64().map_or(bytes.len(), |wire| wire as usize);
    let record = Record { number: 1, start, bytes: &bytes, wire, ..Record::default() };
    let decoded = Decoded::new(record, &options, false);
    let mut headers = Vec::new();
    for (layout, header) in decoded.view().headers() {
        let Some(at) = decoded.offset_of(header) else { continue };
        let fields: Vec<Value> = layout
            .present(header)
            .filter(|(place, value)| place.row.kind != Kind::Reserved || *value != 0)
            .map(|(place, value)| {
                json!([
                    layout.key(&place).to_string(),
                    at * 8 + place.lo(),
                    place.row.width(),
                    Shown(place, value, decoded.view().entry(&place, value)).to_string()
                ])
            })
            .collect();
        headers.push(json!([layout.title, at, fields]));
    }
    let mut wrong: Vec<String> = decoded.error().map(|error| error.to_string()).into_iter().collect();
    wrong.extend(decoded.findings.iter().map(|finding| format!("{}: {finding}", finding.requirement.id)));
    Ok(json!({
        "name": text("name")?, "about": text("description")?, "hex": text("hex")?,
        "said": decoded.packet.to_string(), "headers": headers, "wrong": wrong,
    }))
}

fn options(of: &Value) -> Options {
    let default = Options::default();
    let number = |key: &str| of[key].as_u64();
    let trailer = match of["trailer"].as_str() {
        Some("crc") => TrailerKind::Crc,
        Some("icv") => TrailerKind::Icv,
        _ => TrailerKind::None,
    };
    let spec = Spec::ALL.iter().copied().find(|spec| Some(spec.name()) == of["spec"].as_str());
    Options::DEFAULT
        .udp_port(number("udp_port").map_or(default.udp_port, |port| port as u16))
        .ip_proto(number("ip_proto").map_or(default.ip_proto, |number| number as u8))
        .trailer(trailer)
        .trimmed_dscp(number("trimmed_dscp").map(|dscp| dscp as u8))
        .trimmed_lasthop_dscp(number("trimmed_lasthop_dscp").map(|dscp| dscp as u8))
        .spec(spec.unwrap_or(default.spec))
}
