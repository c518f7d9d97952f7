//! The Rust that the app copies: each file of `tests/copied/` is such a text, and builds the packet of its form. To write
//! the files anew: `UPDATE=1 cargo test -p uet-web --test copied`.

#[allow(unreachable_pub)]
mod rendezvous {
    include!("copied/rendezvous.rs");
}
#[allow(unreachable_pub)]
mod swap {
    include!("copied/swap.rs");
}
#[allow(unreachable_pub)]
mod ack {
    include!("copied/ack.rs");
}

use serde_json::{Value, json};
use uet_wire::pds::Pds;
use uet_wire::ses::Ses;

/// Builds the packet of a form, as the app does.
fn built(form: &Value) -> Value {
    let mut out = Vec::new();
    let command = ["build".to_owned(), "uet".to_owned()];
    uet_web::run(&command, form.to_string().as_bytes(), &mut out)
        .unwrap_or_else(|error| panic!("{form}: {error}"));
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn copied_rust_builds_the_packet() {
    let rendezvous = json!({
        "fields": {
            "pds.type": "ROD_CC_REQ", "pds.flags.syn": true, "pds.psn": 73729, "pds.clear_psn_offset": -1,
            "pds.spdcid": 0x4001, "pds.psn_offset": 1, "pds.ccc_id": 7, "pds.credit_target": 512,
            "pds.next_hdr": "UET_HDR_REQUEST_STD", "ses.opcode": "UET_RENDEZVOUS_SEND", "ses.som": true,
            "ses.message_id": 1, "ses.job_id": 101, "ses.match_bits": "0xfedcba9876543210", "ses.header_data": 11,
            "ses.request_length": 16384, "ses.eager_length": 4, "ses.read_memory_key": 0xacce5,
        },
        "payload_hex": "01020304",
    });
    let swap = json!({ "fields": {
        "pds.type": "RUD_REQ", "pds.psn": 7, "pds.spdcid": 1, "pds.dpdcid": 2, "pds.next_hdr": "UET_HDR_REQUEST_SMALL",
        "ses.opcode": "UET_ATOMIC", "ses.request_length": 16, "ses.atomic_opcode": "CSWAP",
        "ses.atomic_datatype": 0xee, "ses.compare_value": "0xffeeddccbbaa99887766554433221100", "ses.swap_value": 1,
    }});
    let ack = json!({ "fields": {
        "pds.type": "ACK_CC", "pds.flags.m": true, "pds.ack_psn_offset": -2, "pds.cack_psn": 1, "pds.spdcid": 0x8001,
        "pds.dpdcid": 0x4001, "pds.cc_type": "CREDIT", "pds.credit": 4096, "pds.sack_bitmap": 5,
        "pds.next_hdr": "UET_HDR_RESPONSE", "ses.opcode": 1, "ses.return_code": "OK", "ses.message_id": 1,
    }});
    type Packet = fn(&mut [u8]) -> Result<usize, uet_wire::WriteError>;
    let all: [(_, _, _, Packet); 3] = [
        ("rendezvous", rendezvous, include_str!("copied/rendezvous.rs"), rendezvous::packet),
        ("swap", swap, include_str!("copied/swap.rs"), swap::packet),
        ("ack", ack, include_str!("copied/ack.rs"), ack::packet),
    ];
    for (name, form, text, packet) in all {
        let built = built(&form);
        if std::env::var_os("UPDATE").is_some() {
            let file = format!("{}/tests/copied/{name}.rs", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(file, built["rust"].as_str().unwrap()).unwrap();
            continue;
        }
        assert_eq!(built["rust"], text, "{name}");
        let mut buffer = [0; 256];
        let length = packet(&mut buffer).unwrap();
        let hex: String = buffer[..length].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(built["hex"], hex, "{name}");
    }
}

#[test]
fn every_form_gives_rust() {
    for (kinds, layout) in Pds::TABLE.iter().filter(|(_, layout)| layout.name != "prologue") {
        let rust =
            built(&json!({ "fields": { "pds.type": kinds[0].code() }, "stack": ["pds"] }))["rust"].clone();
        assert!(rust.as_str().is_some_and(|rust| rust.contains("Repr {")), "{layout:?}: {rust}");
    }
    for (nexts, layout) in Ses::TABLE {
        let fields = json!({ "pds.type": 2, "pds.next_hdr": nexts[0].code(), "ses.opcode": 1 });
        let rust = built(&json!({ "fields": fields }))["rust"].clone();
        assert!(rust.as_str().is_some_and(|rust| rust.contains(".ses(ses.header()?)")), "{layout:?}: {rust}");
    }
}
