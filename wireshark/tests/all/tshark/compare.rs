//! Compares tshark's output with the JSON of `uet decode`, which is also the format of the vectors.

use super::{Dissected, number};
use serde_json::Value;
use std::collections::BTreeSet;
use uet_wire::layout::{self, Kind, Layer};

/// Returns whether a name is a header field in the JSON.
fn ours(name: &str) -> bool {
    ["pds.", "ses.", "tss."].iter().any(|layer| name.starts_with(layer))
}

fn expected_number(value: &Value) -> u128 {
    match value {
        Value::String(text) => number(text),
        Value::Number(number) if number.is_i64() && number.as_i64() < Some(0) => {
            number.as_i64().unwrap() as i128 as u128
        }
        Value::Number(number) => number.as_u64().unwrap().into(),
        other => panic!("{other} is no number"),
    }
}

/// Returns all differences between the two.
pub(crate) fn differences(expected: &Value, seen: &Dissected) -> Vec<String> {
    let mut all = Vec::new();
    let mut differ = |what: &str, expected: String, seen: String| {
        if expected != seen {
            all.push(format!("{what}: expected {expected}, tshark has {seen}"));
        }
    };
    let entries = |key: &str| expected[key].as_object().cloned().unwrap_or_default();

    let fields = entries("fields");
    for (name, value) in fields.iter().filter(|(name, _)| ours(name)) {
        let values: Vec<u128> = seen.values(name).iter().map(|text| number(text)).collect();
        differ(name, format!("{:?}", [expected_number(value)]), format!("{values:?}"));
    }
    let known: BTreeSet<&str> = layout::ALL
        .iter()
        .filter(|layout| !matches!(layout.layer, Layer::Trailer))
        .flat_map(|layout| layout.fields())
        .filter(|place| place.row.kind != Kind::Reserved && ours(place.row.name))
        .map(|place| place.row.name)
        .collect();
    for name in known.into_iter().filter(|name| !fields.contains_key(*name)) {
        differ(name, "[]".into(), format!("{:?}", seen.values(name)));
    }

    for (name, value) in entries("derived") {
        if name == "pds.sacked" {
            let ends = |index: usize| {
                value.as_array().unwrap().iter().map(|run| expected_number(&run[index])).collect::<Vec<_>>()
            };
            let have = |name: &str| seen.values(name).iter().map(|text| number(text)).collect::<Vec<_>>();
            differ("pds.sacked", format!("{:?}", ends(0)), format!("{:?}", have("pds.sacked.first")));
            differ("pds.sacked", format!("{:?}", ends(1)), format!("{:?}", have("pds.sacked.last")));
        } else {
            differ(
                &name,
                format!("{:?}", Some(expected_number(&value))),
                format!("{:?}", seen.number(&name)),
            );
        }
    }
    let reserved: Vec<u128> = entries("reserved").values().map(expected_number).collect();
    let have: Vec<u128> =
        seen.values("reserved").iter().map(|text| number(text)).filter(|bits| *bits != 0).collect();
    differ("reserved", format!("{reserved:?}"), format!("{have:?}"));

    let payload = expected["payload"]["length"].as_u64().map(u128::from);
    differ("payload", format!("{payload:?}"), format!("{:?}", seen.number("payload.length")));

    let trailer = &expected["trailer"];
    if trailer["kind"] == "crc" && trailer["ok"].is_boolean() {
        differ(
            "crc",
            trailer["value"].as_str().unwrap().into(),
            format!("{:#010x}", seen.number("crc").unwrap_or(0)),
        );
        differ(
            "crc",
            trailer["expected"].as_str().unwrap().into(),
            format!("{:#010x}", seen.number("crc.expected").unwrap_or(0)),
        );
        differ("crc", trailer["ok"].to_string(), (seen.number("crc.ok") == Some(1)).to_string());
    }
    if trailer["kind"] == "icv" && trailer["value"].as_str().is_some_and(|text| text.len() == 34) {
        differ(
            "icv",
            format!("{:?}", Some(number(trailer["value"].as_str().unwrap()))),
            format!("{:?}", seen.number("icv")),
        );
    }

    let trimmed = &expected["trimmed"];
    differ("trimmed", trimmed.is_object().to_string(), (seen.number("trimmed") == Some(1)).to_string());
    if trimmed.is_object() {
        differ(
            "trimmed",
            format!("{:?}", trimmed["layer"].as_str()),
            format!("{:?}", seen.values("trimmed.layer").first().map(|text| &**text)),
        );
        differ(
            "trimmed",
            format!("{:?}", trimmed["missing"].as_u64().map(u128::from)),
            format!("{:?}", seen.number("trimmed.missing")),
        );
        differ(
            "trimmed",
            trimmed["last_hop"].to_string(),
            (seen.number("trimmed.last_hop") == Some(1)).to_string(),
        );
    }
    differ(
        "sliced",
        expected["sliced"].is_object().to_string(),
        (seen.number("sliced") == Some(1)).to_string(),
    );

    let error = &expected["error"];
    differ("error", error.is_object().to_string(), (seen.fields.contains_key("malformed")).to_string());
    let text = |name: &str| seen.values(name).first().cloned().unwrap_or_default();
    if let Some(layer) = error["layer"].as_str().filter(|layer| !["ipv4", "ipv6", "udp"].contains(layer)) {
        differ("error", layer.into(), text("error.layer"));
        differ("error", error["field"].as_str().unwrap().into(), text("error.field"));
    }

    let mut ids: Vec<&str> = expected["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    let mut have: Vec<&str> = seen.values("finding").iter().map(|text| &**text).collect();
    have.sort_unstable();
    differ("findings", format!("{ids:?}"), format!("{have:?}"));
    all
}
