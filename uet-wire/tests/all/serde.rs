//! Headers as maps: every value survives a round trip, and errors name the fault.

use crate::every_header::every_header;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::fmt::Debug;
use uet_wire::layout::{self, Kind};
use uet_wire::registry::*;
use uet_wire::{PdcId, Psn, PsnOffset, UetBuf, Units24, outer, pds, ses, trailer, tss};

/// Checks the round trip of a value in a human-readable and in a binary format.
fn comes_back<T: serde::Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
    let bytes = postcard::to_allocvec(value).unwrap();
    assert_eq!(&postcard::from_bytes::<T>(&bytes).unwrap(), value, "{text}");
}

macro_rules! header_comes_back {
    ([$bytes:ident] $($module:ident::$Name:ident)*) => {{
        $({
            let (header, _) = $module::$Name::parse($bytes).unwrap();
            comes_back(&header.copied());
            assert_eq!(serde_json::to_value(&header).unwrap(), serde_json::to_value(&header.copied()).unwrap());
            fields_are_as_agreed($module::$Name::LAYOUT, header.bytes(), &serde_json::to_value(&header).unwrap());
        })*
    }};
}

/// Returns the documented keys and values, computed independently of the serializer.
fn fields_are_as_agreed(layout: &'static layout::Layout, header: &[u8], written: &Value) {
    let mut expected = Map::new();
    for (place, value) in layout.present(header) {
        let width = place.row.width();
        let (name, number) = match place.row.kind {
            Kind::Reserved if value == 0 => continue,
            Kind::Reserved => (format!("{}@{}:{width}", layout.name, place.lo()), json!(value as u64)),
            Kind::Int => (place.row.name.to_owned(), json!(value as u16 as i16)),
            Kind::Address => (place.row.name.to_owned(), json!(place.display(value).to_string())),
            _ if width <= 32 => (place.row.name.to_owned(), json!(value as u64)),
            _ => {
                (place.row.name.to_owned(), json!(format!("0x{value:0digits$x}", digits = width.div_ceil(4))))
            }
        };
        expected.insert(name, number);
    }
    assert_eq!(written, &Value::Object(expected));
}

proptest! {
    #[test]
    fn every_header_comes_back(bytes: [u8; 64]) {
        let bytes = &bytes[..];
        every_header!(header_comes_back bytes);
    }

    #[test]
    fn packet_comes_back(packet: UetBuf) {
        let json = serde_json::to_value(&packet).unwrap();
        prop_assert_eq!(&serde_json::from_value::<UetBuf>(json.clone()).unwrap(), &packet, "{}", json);
    }

    #[test]
    fn any_header_of_a_layer_comes_back(pds: pds::PdsBuf, ses: ses::SesBuf, ext: ses::ExtBuf, tss: tss::TssBuf) {
        comes_back(&pds);
        comes_back(&ses);
        comes_back(&ext);
        comes_back(&tss);
    }

    #[test]
    fn numbers_come_back(psn: Psn, pdc: PdcId, units: Units24, offset: PsnOffset) {
        comes_back(&(psn, pdc, units, offset));
        prop_assert_eq!(serde_json::to_value(psn).unwrap(), json!(psn.0));
    }
}

/// Deserializes a header from JSON and returns its bytes.
type Reader = fn(Value) -> Result<Vec<u8>, String>;

/// The deserializer of every header.
fn readers() -> Vec<(&'static layout::Layout, Reader)> {
    macro_rules! readers {
        ([] $($module:ident::$Name:ident)*) => {
            vec![$(($module::$Name::LAYOUT, |json| {
                let header = serde_json::from_value::<$module::$Name>(json);
                header.map(|header| header.bytes().to_vec()).map_err(|error| error.to_string())
            })),*]
        };
    }
    every_header!(readers)
}

/// Returns the form of a header in which the field exists, as JSON of only the deciding field.
fn form_with(
    layout: &'static layout::Layout,
    place: &layout::Place,
    exists: bool,
) -> Option<Map<String, Value>> {
    let mut form = Map::new();
    if let Some(when) = place.row.when {
        let deciding = layout.field(when.name).unwrap();
        let values = if exists { when.values } else { when.values.not() };
        form.insert(when.name.to_owned(), json!(values.iter(deciding.row.width()).next()?));
    } else if !exists {
        return None;
    }
    Some(form)
}

#[test]
fn what_is_wrong_with_a_field_is_said_with_its_name() {
    for (layout, read) in readers() {
        let error = |form: &Map<String, Value>, key: &str, value: Value| {
            let mut form = form.clone();
            form.insert(key.to_owned(), value);
            let error = read(Value::Object(form)).expect_err(key);
            assert!(error.contains(key), "{key}: {error}");
            error
        };
        assert_eq!(read(json!({})), Ok(vec![0; layout.bytes]), "{}", layout.name);
        let unknown = error(&Map::new(), "pds.no_such_field", json!(0));
        assert!(unknown.contains("no such field") && unknown.contains(layout.title), "{unknown}");
        error(&Map::new(), "-", json!(0));
        let no_map = read(json!(0)).expect_err(layout.name);
        assert!(no_map.contains(&format!("a map of the fields of the {}", layout.title)), "{no_map}");
        error(&Map::new(), &format!("{}@0:1000", layout.name), json!(0));

        for place in layout.places() {
            let key = layout.key(&place).to_string();
            let form = form_with(layout, &place, true).unwrap();
            let width = place.row.width();
            let hex = |value: u128| json!(format!("{value:#x}"));
            let largest =
                if place.row.kind == Kind::Int { (1 << (width - 1)) - 1 } else { u128::MAX >> (128 - width) };

            // The largest value that fits is written at the field's position. The next value is too wide.
            let mut good = form.clone();
            good.insert(key.clone(), hex(largest));
            let header = read(Value::Object(good)).unwrap_or_else(|error| panic!("{}: {error}", layout.name));
            let exists_at = layout.present(&header).find(|(found, _)| layout.key(found).to_string() == key);
            assert_eq!(exists_at.map(|(_, value)| value), Some(largest), "{}: {key}", layout.name);
            if width < 128 {
                let said = error(&form, &key, hex(largest + 1));
                let signed = if place.row.kind == Kind::Int { "signed " } else { "" };
                assert!(said.contains(&format!("does not fit into {width} {signed}bits")), "{said}");
            }
            if width < 64 {
                error(&form, &key, json!(largest as u64 + 1));
                error(
                    &form,
                    &key,
                    json!(if place.row.kind == Kind::Int { -(largest as i64) - 2 } else { -1 }),
                );
            }
            for nonsense in
                [json!("x"), json!("0x"), json!("0x+1"), json!("0xg"), json!(null), json!([1]), json!(0.5)]
            {
                error(&form, &key, nonsense);
            }

            // The field in a form without it. Several places may have the name.
            let Some(form) = form_with(layout, &place, false) else { continue };
            let header = read(Value::Object(form.clone())).unwrap();
            if !layout.present(&header).any(|(found, _)| layout.key(&found).to_string() == key) {
                let said = error(&form, &key, json!(0));
                assert!(
                    said.contains("does not exist when") && said.contains(place.row.when.unwrap().name),
                    "{said}"
                );
            }
        }
    }
}

#[test]
fn a_flag_may_be_a_truth_value_and_a_number_may_not() {
    for on in [false, true] {
        let ack: pds::Ack = serde_json::from_value(json!({ "pds.flags.m": on })).unwrap();
        assert_eq!(ack.m(), on);
        let error = serde_json::from_value::<pds::Ack>(json!({ "pds.cack_psn": on })).unwrap_err();
        assert!(error.to_string().contains("pds.cack_psn: a number of 32 bits"), "{error}");
    }
}

#[test]
fn fields_that_share_bits_must_agree() {
    let read = serde_json::from_value::<pds::Ack>;
    let both = read(json!({"pds.flags.retx": 1, "pds.flags": 0x11, "ack@15:1": 1})).unwrap();
    assert_eq!((both.retx(), both.prologue().flags()), (true, 0x11));
    let error = read(json!({"pds.flags": 0, "pds.flags.retx": 1})).unwrap_err().to_string();
    assert!(error.starts_with("pds.flags: differs"), "{error}");
    let error =
        serde_json::from_str::<pds::Ack>(r#"{"pds.cack_psn":1,"pds.cack_psn":1}"#).unwrap_err().to_string();
    assert!(error.starts_with("pds.cack_psn: given twice"), "{error}");
}

#[test]
fn a_field_may_come_before_the_one_that_decides() {
    let std: ses::Std = serde_json::from_str(
        r#"{"ses.target_restart_token":7,"ses.message_offset":9,"ses.opcode":"UET_DEFERRABLE_RTR"}"#,
    )
    .unwrap();
    assert_eq!(
        (std.ready_target_token(), std.send_target_token(), std.message_offset()),
        (Some(7), None, Some(9))
    );
}

#[test]
fn addresses_are_text_or_numbers() {
    let mac: outer::Ethernet = serde_json::from_value(json!({"eth.src": "02:00:00:00:00:fe"})).unwrap();
    assert_eq!(mac.src(), [2, 0, 0, 0, 0, 0xfe]);
    for wrong in ["02:00:00:00:00", "02:00:00:00:00:00:00", "02:00:00:00:00:100", "", "::"] {
        let error =
            serde_json::from_value::<outer::Ethernet>(json!({"eth.src": wrong})).unwrap_err().to_string();
        assert!(error.contains("eth.src: an address of 48 bits"), "{error}");
    }
    let ip: outer::Ipv4 =
        serde_json::from_value(json!({"ip.src": "10.0.0.1", "ip.dst": 0x0a000002})).unwrap();
    assert_eq!((ip.src().octets(), ip.dst().octets()), ([10, 0, 0, 1], [10, 0, 0, 2]));
    let ip: outer::Ipv6 = serde_json::from_value(json!({"ip.src": "::1", "ip.dst": "0x2"})).unwrap();
    assert_eq!((ip.src().to_bits(), ip.dst().to_bits()), (1, 2));
}

#[test]
fn code_points_are_numbers_and_may_be_written_as_names() {
    macro_rules! all {
        ($($Name:ident)*) => {
            let registries = [$($Name::REGISTRY),*];
            assert!(registries.iter().eq(ALL), "a registry is missing here");
            $(for code in 0..=255 {
                match $Name::new(code) {
                    Some(point) => {
                        comes_back(&point);
                        assert_eq!(serde_json::to_value(point).unwrap(), json!(code));
                        if let Some(name) = point.name() {
                            assert_eq!(serde_json::from_value::<$Name>(json!(name)).unwrap(), point);
                        }
                    }
                    None => {
                        let error = serde_json::from_value::<$Name>(json!(code)).unwrap_err().to_string();
                        assert!(error.starts_with(stringify!($Name)), "{error}");
                    }
                }
            }
            let error = serde_json::from_value::<$Name>(json!("NO_SUCH_NAME")).unwrap_err().to_string();
            assert!(error.contains(stringify!($Name)), "{error}");)*
        };
    }
    all! {
        PdsType NextHdr CtlType AckRequest CcType CcxType NackCode
        Opcode AtomicOpcode AtomicDatatype ResponseOpcode List ReturnCode
    }
}

#[test]
fn numbers_keep_their_bounds() {
    assert!(serde_json::from_value::<Units24>(json!(1 << 24)).unwrap_err().to_string().contains("Units24"));
    assert!(serde_json::from_value::<PsnOffset>(json!(4096)).is_err());
    assert!(serde_json::from_value::<PdcId>(json!(65_536)).is_err());
    assert_eq!(serde_json::from_value::<PsnOffset>(json!(4095)).unwrap(), PsnOffset::MAX);
}

#[test]
fn a_header_under_a_wrong_name_is_refused() {
    let error = serde_json::from_value::<pds::PdsBuf>(json!({"acknowledgment": {}})).unwrap_err().to_string();
    assert!(error.contains("acknowledgment") && error.contains("ack_cc"), "{error}");
    assert!(serde_json::from_value::<pds::PdsBuf>(json!({"ack": {"ses.opcode": 1}})).is_err());
}

/// Some formats have keys that are not text.
#[test]
fn what_a_key_should_have_been_is_said() {
    use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer};
    let map = || MapDeserializer::<_, Error>::new([(true, 1u32)].into_iter());
    let said = |error: Error| error.to_string();
    let field = said(<pds::Ack as serde::Deserialize>::deserialize(map()).unwrap_err());
    assert!(field.ends_with("expected the name of a field of the acknowledgment"), "{field}");
    let enumeration = MapAccessDeserializer::new(map());
    let header = said(<pds::PdsBuf as serde::Deserialize>::deserialize(enumeration).unwrap_err());
    assert!(header.ends_with("expected the name of a header"), "{header}");
}

/// Some formats have signed and unsigned numbers of 128 bits.
#[test]
fn the_longest_numbers_are_numbers_too() {
    use serde::de::value::{Error, MapDeserializer};
    let with = |value: i128| {
        let map = MapDeserializer::<_, Error>::new([("pds.ack_psn_offset", value)].into_iter());
        <pds::Ack as serde::Deserialize>::deserialize(map).map(|ack| ack.ack_psn_offset())
    };
    assert_eq!(with(-3), Ok(Some(-3)));
    assert!(with(-40_000).unwrap_err().to_string().contains("does not fit into 16 signed bits"));
}

#[test]
fn packet_is_read_from_few_fields() {
    let read = |json: Value| serde_json::from_value::<UetBuf>(json).map_err(|error| error.to_string());
    let packet = read(json!({
        "fields": {"pds.type": "RUD_REQ", "pds.psn": 7, "ses.opcode": "UET_WRITE", "ses.request_length": "0x3"},
        "payload_hex": "a0b1c2", "findings": [], "src": "10.0.0.1",
    }));
    let packet = packet.unwrap();
    let uet = packet.view();
    assert_eq!(uet.pds.unwrap().request().unwrap().psn(), Psn(7));
    assert_eq!((uet.ses.unwrap().layout().name, uet.payload), ("small", &[0xa0, 0xb1, 0xc2][..]));
    assert_eq!(read(json!({"payload": {"offset": 0, "length": 2}})).unwrap().payload, [0, 0]);

    for (wrong, why) in [
        (
            json!({"fields": {"pds.type": 7, "pds.psnn": 1}}),
            "fields.pds.psnn: there is no field of this name",
        ),
        (json!({"fields": {"pds.type": 7, "pds.psn": 1}}), "fields.pds.psn: this packet has no such field"),
        (json!({"fields": {"pds.type": 32}}), "fields.pds.type: 32 does not fit into 5 bits"),
        (json!({"fields": {"pds.type": [7]}}), "invalid type: sequence"),
        (json!({"fields": {"pds.type": 7}, "reserved": {"ack@90:9": 1}}), "there are no such reserved bits"),
        (json!({"error": {"layer": "pds"}}), "error: the packet is not whole"),
        (
            json!({"payload": {"length": 65_536}}),
            "payload.length: is above 65,535, the limit of an IP packet",
        ),
        (json!({"payload_hex": "abc"}), "payload_hex: is not pairs of hexadecimal digits"),
        (json!({"feilds": {}}), "unknown field `feilds`"),
    ] {
        let error = read(wrong).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
