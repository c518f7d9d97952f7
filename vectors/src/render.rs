//! Writes vectors as lines of JSON, which `grep` finds by their names.

use crate::case::{Case, Step, Vector};
use serde_json::{Map, Value, json};
use uet_packet_io::hex::Hex;
use uet_wire::{Start, TrailerKind};

/// Keys of a vector from a decoded packet, in this order.
const DECODED: [&str; 13] = [
    "stack", "fields", "names", "derived", "reserved", "payload", "padding", "trailer", "trimmed", "sliced",
    "fragment", "error", "findings",
];

/// Returns a vector as a line without its end.
pub fn json(vector: &Vector) -> String {
    match vector {
        Vector::Packet(case) => Value::Object(packet(case)).to_string(),
        Vector::Sequence { name, description, source, steps } => {
            let packets: Vec<_> = steps.iter().map(of_sequence).collect();
            json!({"name": name, "description": description, "source": source, "packets": packets})
                .to_string()
        }
    }
}

fn of_sequence(step: &Step) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("direction".into(), step.direction.name().into());
    map.insert("at".into(), step.at.into());
    map.extend(packet(&step.case));
    map
}

fn packet(case: &Case) -> Map<String, Value> {
    let mut map = Map::new();
    let start = match case.start {
        Start::Eth => "eth",
        Start::Ip => "ip",
        Start::Udp => "udp",
        Start::Uet => "uet",
        other => unreachable!("no vector starts with {other:?}"),
    };
    map.insert("name".into(), case.name.as_str().into());
    map.insert("description".into(), case.description.as_str().into());
    map.insert("source".into(), case.source.as_str().into());
    map.insert("from".into(), start.into());
    map.insert("options".into(), options(case));
    map.insert("hex".into(), Hex(&case.bytes).to_string().into());
    match serde_json::to_value(case.decoded(&mut case.decoder())) {
        Ok(Value::Object(mut decoded)) => {
            let keys = DECODED.iter().filter_map(|key| decoded.remove_entry(*key));
            map.extend(keys);
            // Without keys it only says so.
            if !case.keys.is_empty() {
                map.extend(decoded.remove_entry("protection"));
            }
        }
        other => unreachable!("a packet is an object: {other:?}"),
    }
    map
}

fn options(case: &Case) -> Value {
    let trailer = match case.options.trailer {
        TrailerKind::None => "none",
        TrailerKind::Crc => "crc",
        TrailerKind::Icv => "icv",
        other => unreachable!("no vector ends with {other:?}"),
    };
    let mut options = json!({
        "udp_port": case.options.udp_port,
        "ip_proto": case.options.ip_proto,
        "trailer": trailer,
        "trimmed_dscp": case.options.trimmed_dscp,
        "trimmed_lasthop_dscp": case.options.trimmed_lasthop_dscp,
        "spec": case.options.spec.name(),
    });
    if let Some(wire) = case.wire {
        options["wire"] = wire.into();
    }
    if !case.keys.is_empty() {
        options["keys"] = json!(case.keys);
    }
    options
}
