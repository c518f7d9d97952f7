//! Dictionaries of UET for fuzzers. AFL++ and libFuzzer read lines of the form `name="bytes"`.

use std::collections::BTreeMap;
use std::fmt::Write;
use uet_wire::catalogue::WIRE_NEXT_002;
use uet_wire::layout::{ALL, Kind, Place};
use uet_wire::outer::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_OLD_QINQ, ETHERTYPE_QINQ, ETHERTYPE_VLAN, IP_PROTO, UDP_PORT,
};
use uet_wire::pds::{Pds, Prologue};
use uet_wire::registry::{NextHdr, PdsType};
use uet_wire::{Uet, Version};

/// Returns the dictionary for packets. It contains every code point in the bytes of its field, and every packet type
/// with each allowed next header. It also contains the numbers with which outer layers announce UET.
pub fn packets() -> String {
    let mut words = Words::default();
    words.add("udp.dst_port", &UDP_PORT.to_be_bytes());
    words.add("ip.proto", &[IP_PROTO]);
    for ethertype in [ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, ETHERTYPE_QINQ, ETHERTYPE_OLD_QINQ] {
        words.add("eth.type", &ethertype.to_be_bytes());
    }
    for entry in PdsType::REGISTRY.entries {
        let kind = PdsType::new(entry.code).unwrap_or_default();
        for entry in NextHdr::REGISTRY.entries {
            let next = NextHdr::new(entry.code).unwrap_or_default();
            let prologue = Prologue::zeroed().edit().kind(kind).next_hdr(next).done();
            match prologue {
                Ok(prologue) if may_be(&prologue) => words.add(&format!("{kind}.{next}"), prologue.bytes()),
                _ => {}
            }
        }
    }
    for layout in ALL {
        for place in layout.fields() {
            if let Kind::Code(registry) = place.row.kind {
                for entry in registry.entries {
                    let name = format!("{}.{}", place.row.name, entry.name);
                    words.add(&name, &alone(&place, layout.bytes, entry.code));
                }
            }
        }
    }
    words.text("The words of UET packets")
}

/// Returns the dictionary for packets as JSON: the keys and the names of fields and layers.
pub fn json() -> String {
    let mut words = Words::default();
    for key in [
        "stack",
        "fields",
        "reserved",
        "payload",
        "payload_hex",
        "padding",
        "trailer",
        "trimmed",
        "sliced",
        "error",
        "raw",
    ] {
        words.add(key, format!("\"{key}\":").as_bytes());
    }
    for key in ["outer", "rest", "value", "length", "missing", "captured", "layer", "present", "src", "dst"] {
        words.add(key, format!("\"{key}\":").as_bytes());
    }
    for layout in ALL {
        let layer = layout.layer.name();
        words.add(layer, format!("\"{layer}\"").as_bytes());
        for place in layout.places() {
            let key = layout.key(&place).to_string();
            words.add(&key, format!("\"{key}\":").as_bytes());
        }
    }
    words.text("The words of packets as JSON")
}

/// Returns the bytes that contain a field, with all other bits 0.
fn alone(place: &Place, length: usize, code: u8) -> Vec<u8> {
    let mut header = vec![0; length];
    place.write(&mut header, code.into());
    header[place.lo() / 8..place.hi().div_ceil(8)].to_vec()
}

/// Names by bytes. Equal bytes with several meanings are one entry.
#[derive(Default)]
struct Words(BTreeMap<Vec<u8>, String>);

/// Returns true if a packet may start with this prologue: its type has a next header, and the next header is allowed.
fn may_be(prologue: &Prologue) -> bool {
    let mut packet = [0; 128];
    let written = prologue.emit(&mut packet).is_ok();
    let announces = |packet: &Uet<'_>| !matches!(packet.pds, None | Some(Pds::Control(_) | Pds::Prologue(_)));
    let allowed = |packet: &Uet<'_>| {
        packet.validate(Version::default()).all(|finding| finding.requirement != WIRE_NEXT_002)
    };
    written && Uet::parse(&packet).is_ok_and(|packet| announces(&packet) && allowed(&packet))
}

impl Words {
    fn add(&mut self, name: &str, bytes: &[u8]) {
        if bytes.iter().any(|byte| *byte != 0) {
            let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            self.0.entry(bytes.to_vec()).or_insert(name);
        }
    }

    fn text(&self, title: &str) -> String {
        let mut text = format!("# {title}, by `uet corpus dictionary`.\n");
        for (bytes, name) in &self.0 {
            // Writing to a string does not fail.
            let _ = write!(text, "{name}=\"");
            for byte in bytes {
                let _ = match byte {
                    b'"' | b'\\' => write!(text, "\\{}", char::from(*byte)),
                    b' '..=b'~' => write!(text, "{}", char::from(*byte)),
                    _ => write!(text, "\\x{byte:02x}"),
                };
            }
            text.push_str("\"\n");
        }
        text
    }
}
