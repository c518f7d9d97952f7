//! Packets survive the round trip to JSON and back, byte for byte.

use proptest::prelude::*;
use serde_json::{Value, json};
use uet_packet_io::json::{Decoded, Record, Settings, encode};
use uet_wire::pds::{AckCc, Control, Nack, PdsBuf, Request};
use uet_wire::registry::{CcType, CtlType, NackCode, NextHdr, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, Std};
use uet_wire::{FrameBuilder, Options, PdcId, Psn, PsnOffset, Start, TrailerKind, Units24};

fn decode(start: Start, bytes: &[u8], wire: usize, options: &Options, raw: bool) -> Value {
    let record = Record { number: 1, start, bytes, wire, ..Record::default() };
    serde_json::to_value(Decoded::new(record, options, raw)).unwrap()
}

fn emit(frame: &FrameBuilder<'_>) -> Vec<u8> {
    let mut buffer = [0; 512];
    let length = frame.emit(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

/// The first packet of the articles' write of 16 KiB, truncated to 64 bytes of payload.
fn write() -> FrameBuilder<'static> {
    let request =
        Request::rud().ar(true).syn(true).clear_psn_offset(-1).psn(Psn(0x12000)).spdcid(PdcId(0x4001));
    let request = request.pdc_info(0).psn_offset(PsnOffset::ZERO).done().unwrap();
    let write = Std::build(Opcode::UET_WRITE)
        .head(|h| h.rel(true).hd(true).som(true))
        .message_id(1)
        .address(|a| a.ri_generation(1).job_id(101).pid_on_fep(2).resource_index(10))
        .memory_key(0xacce5)
        .header_data(11)
        .request_length(16_384)
        .done()
        .unwrap();
    let frame = FrameBuilder::new(request)
        .ses(write)
        .payload(&[0; 64])
        .udp(0xbeef)
        .ipv4([10, 0, 0, 1], [10, 0, 1, 12]);
    frame.dscp(10).ecn(1).ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
}

fn samples() -> Vec<Vec<u8>> {
    let ack: PdsBuf = AckCc::build()
        .ack(|a| a.cack_psn(Psn(334)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001)))
        .cc_type(CcType::CREDIT)
        .sack(|s| s.mpr(8).sack_psn_offset(2).sack_bitmap(0b1011))
        .credit(Units24::from_bytes(16_384))
        .done()
        .unwrap()
        .into();
    let ok =
        Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).message_id(1).done().unwrap();
    let nack = Nack::build(NackCode::TRIMMED).nack_psn(Psn(7)).done().unwrap();
    let probe = Control::build(CtlType::PROBE).probe_opaque(9).done().unwrap();
    let dst = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    vec![
        emit(&write()),
        emit(&write().vlans(&[100, 200]).crc().pad_to(200)),
        emit(&write().ipv4_options(&[1; 8])),
        emit(&FrameBuilder::new(PdsBuf::from(nack)).udp(1).ipv6(dst, dst).ethernet([0; 6], [1; 6])),
        emit(&FrameBuilder::new(ack).ses(ok).native(3).ipv6(dst, dst).crc().ethernet([0; 6], [1; 6])),
        emit(&FrameBuilder::new(probe).udp(1).ipv4([1; 4], [2; 4]).ethernet([0; 6], [1; 6]).pad_to(60)),
    ]
}

#[test]
fn the_json_of_a_write_is_the_documented_one() {
    let bytes = emit(&write());
    let json = decode(Start::Eth, &bytes, bytes.len(), &Options::default(), false);
    assert_eq!(json["stack"], json!(["eth", "ipv4", "udp", "pds", "ses", "payload"]));
    assert_eq!(json["src"], "10.0.0.1");
    assert_eq!(json["time"], Value::Null);
    assert_eq!(json["fields"]["pds.type"], 2);
    assert_eq!(json["fields"]["pds.flags"], 12);
    assert_eq!(json["fields"]["pds.flags.syn"], 1);
    assert_eq!(json["fields"]["pds.clear_psn_offset"], -1);
    assert_eq!(json["fields"]["pds.psn"], 73_728);
    assert_eq!(json["fields"]["ses.buffer_offset"], "0x0000000000000000");
    assert_eq!(json["fields"]["ses.memory_key"], "0x00000000000acce5");
    assert_eq!(json["fields"]["udp.dst_port"], 4793);
    assert_eq!(json["fields"]["ip.dscp"], 10);
    assert_eq!(json["fields"].get("ip.checksum"), None);
    assert_eq!(json["names"]["pds.type"], "RUD_REQ");
    assert_eq!(json["names"]["ses.opcode"], "UET_WRITE");
    assert_eq!(json["derived"], json!({"pds.clear_psn": 73_727, "pds.start_psn": 73_728}));
    assert_eq!(json["payload"], json!({"offset": 98, "length": 64}));
    assert_eq!(json["reserved"], json!({}));
    assert_eq!(json["findings"], json!([]));
    for key in ["trailer", "trimmed", "sliced", "error"] {
        assert_eq!(json[key], Value::Null, "{key}");
    }
}

#[test]
fn a_cut_header_gives_the_fields_before_the_cut() {
    let bytes = &emit(&write())[42..42 + 12 + 5];
    let json = decode(Start::Uet, bytes, bytes.len(), &Options::default(), false);
    assert_eq!(json["fields"]["ses.message_id"], 1);
    assert_eq!(json["fields"].get("ses.job_id"), None);
    assert_eq!(json["error"]["field"], "ses.job_id");
    assert_eq!(json["error"]["layer"], "ses");
    assert_eq!(
        (&json["error"]["offset"], &json["error"]["needed"], &json["error"]["present"]),
        (&json!(17), &json!(8), &json!(5))
    );
    assert_eq!(encode(&json, &Settings { start: Start::Uet, ..Settings::default() }).unwrap(), bytes);
}

#[test]
fn every_field_survives_without_the_raw_bytes() {
    let options = [Options::default(), Options::default().trailer(TrailerKind::Crc)];
    for bytes in samples() {
        for options in options {
            let before = decode(Start::Eth, &bytes, bytes.len(), &options, false);
            let frame = encode(&before, &Settings { start: Start::Eth, options }).unwrap();
            let after = decode(Start::Eth, &frame, frame.len(), &options, false);
            for key in ["src", "dst", "stack", "fields", "names", "derived", "reserved", "trimmed", "error"] {
                assert_eq!(before[key], after[key], "{key}");
            }
            assert_eq!(before["payload"].get("length"), after["payload"].get("length"));
        }
    }
}

#[test]
fn what_is_not_given_is_computed() {
    let json = json!({
        "fields": {"pds.type": 7, "pds.cack_psn": 5, "pds.ack_psn_offset": -2, "ses.opcode": 1, "ses.return_code": 1,
                   "ses.modified_length": 64},
        "src": "10.0.0.1", "dst": "10.0.0.2"
    });
    let options = Options::default().trailer(TrailerKind::Crc);
    let bytes = encode(&json, &Settings { start: Start::Ip, options }).unwrap();
    let json = decode(Start::Ip, &bytes, bytes.len(), &options, false);
    assert_eq!(json["names"]["pds.next_hdr"], NextHdr::UET_HDR_RESPONSE.to_string());
    assert_eq!(json["trailer"]["ok"], true);
    assert_eq!(json["derived"]["pds.ack_psn"], 3);
    assert_eq!(json["fields"]["udp.length"], 8 + 12 + 12 + 4);
}

#[test]
fn errors_name_the_key() {
    for (json, at) in [
        (json!(7), "packet"),
        (json!({"fields": []}), "fields"),
        (json!({"fields": {"pds.type": 32}}), "fields.pds.type"),
        (json!({"fields": {"pds.type": 7, "pds.ack_psn_offset": -32_769}}), "fields.pds.ack_psn_offset"),
        (json!({"fields": {"pds.type": 7, "pds.psn": 1}}), "fields.pds.psn"),
        (json!({"fields": {"pds.type": 7, "pds.cack": 1}}), "fields.pds.cack"),
        (json!({"fields": {"pds.type": 7}, "reserved": {"ack@9": 1}}), "reserved.ack@9"),
        (json!({"fields": {"pds.type": 7}, "reserved": {"ack@10:1": 1}}), "reserved.ack@10:1"),
        (json!({"fields": {"pds.type": 7}, "payload_hex": "0"}), "payload_hex"),
        (json!({"fields": {"pds.type": 7}, "payload": {"length": -1}}), "payload.length"),
        (json!({"fields": {"pds.type": 7}, "src": "nowhere"}), "src"),
        (json!({"raw": {"outer": "xx"}}), "raw.outer"),
        (json!({"stack": "pds"}), "stack"),
    ] {
        let error = encode(&json, &Settings { start: Start::Ip, ..Settings::default() }).unwrap_err();
        assert_eq!(error.at, at, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn with_raw_bytes_the_frame_comes_back_whatever_was_done_to_it(
        sample in proptest::sample::select(samples()),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        keep in any::<proptest::sample::Index>(),
        cut in any::<bool>(),
        start in proptest::sample::select(vec![(Start::Eth, 0), (Start::Ip, 14), (Start::Udp, 34), (Start::Uet, 42)]),
        trailer in proptest::sample::select(vec![TrailerKind::None, TrailerKind::Crc, TrailerKind::Icv]),
        unseen in 0usize..100,
    ) {
        let mut bytes = sample[start.1..].to_vec();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(keep.index(bytes.len() + 1));
        }
        let options = Options::default().trailer(trailer).trimmed_dscp(Some(5));
        let json = decode(start.0, &bytes, bytes.len() + unseen, &options, true);
        let text = json.to_string();
        let back = encode(&serde_json::from_str(&text).unwrap(), &Settings::default());
        prop_assert_eq!(back.as_deref(), Ok(&bytes[..]), "{}", text);
    }
}

#[test]
fn a_cut_inner_tag_keeps_its_name() {
    let bytes = &emit(&write().vlans(&[100, 200]))[..14 + 4 + 2];
    let json = decode(Start::Eth, bytes, bytes.len(), &Options::default(), false);
    assert_eq!(json["fields"]["vlan.id"], 100);
    assert_eq!(json["fields"]["vlan.inner.id"], 200);
}

#[test]
fn a_trailer_that_is_not_all_there_is_not_given() {
    let options = Options::default().trailer(TrailerKind::Crc);
    let whole = emit(&write().crc());
    for (kept, given) in [(0, true), (1, false), (4, false), (5, false)] {
        let bytes = &whole[..whole.len() - kept];
        let json = decode(Start::Eth, bytes, whole.len(), &options, false);
        let stack = json["stack"].as_array().unwrap();
        assert_eq!((stack.contains(&json!("crc")), json["trailer"].is_null()), (given, !given), "{kept}");
    }
}
