//! Seeds of the targets that read the control channel and captures.

use crate::Result;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use uet_fuzz::Input;
use uet_packet_io::input;
use uet_wire::{Options, Start};

/// The longest packet of a sequence, and the longest sequence. The rest of a packet counts as not captured.
const PACKET: usize = 200;
const SEQUENCE: usize = 3000;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns conversations of the control channel. `lead` is the number of bytes before them.
pub(crate) fn control(lead: &[u8]) -> Vec<Vec<u8>> {
    let requests = [
        r#"{"id":1,"op":"hello","protocol":1}"#,
        r#"{"id":2,"op":"add_peer","address":"10.0.0.2","port":4793,"job":101,"process":2,"initiator":1}"#,
        r#"{"id":3,"op":"expose_region","length":64,"key":"0x7","job":101,"process":2,"permissions":["read","write"],"fill":{"seed":3}}"#,
        r#"{"id":4,"op":"post","kind":"write","peer":1,"length":16,"fill":{"seed":3},"remote":{"key":"0x7"}}"#,
        r#"{"id":5,"op":"post","kind":"fetch_atomic","mode":"rod","peer":1,"length":8,"fill":{"hex":"01"},"remote":{"key":"0x7"},"atomic_opcode":"SUM","atomic_datatype":"UINT64","want_data":true}"#,
        r#"{"id":6,"op":"post_receive","length":64,"job":101,"process":2,"tag":"0x1","ignore":"0x0"}"#,
        r#"{"id":7,"op":"wait_completion","operation":3,"timeout_ns":1000000}"#,
        r#"{"id":8,"op":"read_memory","region":2,"offset":0,"length":64}"#,
        r#"{"id":9,"op":"configure","parameters":{"rto_init_time":1000000,"payload_mtu":1500,"color":1}}"#,
        r#"{"id":10,"op":"set_indices","job":101,"process":2,"index":0,"count":3,"disabled":true}"#,
        r#"{"id":11,"op":"counters"}"#,
        r#"{"id":12,"op":"close_pdc","peer":1,"mode":"rud"}"#,
        r#"{"id":13,"op":"advance","by_ns":5}"#,
        r#"{"id":14,"op":"reset"}"#,
        r#"{"id":15,"op":"dance"}"#,
        r#"{"id":"x","op":1}"#,
        r#"{"id":17,"op":"install_keys","domains":[]}"#,
        r#"{"id":18,"op":"bye"}"#,
    ];
    let mut seeds: Vec<String> = requests.iter().map(|request| format!("{request}\n")).collect();
    seeds.push(requests.join("\n") + "\n");
    let answers = [
        r#"{"id":1,"ok":true}"#,
        r#"{"id":1,"ok":true,"operation":1}"#,
        r#"{"id":1,"ok":true,"region":1}"#,
        r#"{"id":1,"ok":true,"peer":18446744073709551615}"#,
        r#"{"id":1,"ok":true,"operation":1,"status":"refused","length":4096,"return_code":"BAD_MKEY","data":"00ff"}"#,
        r#"{"id":1,"ok":true,"received":1,"sent":2,"dropped":{"crc":1},"pdcs":0}"#,
        r#"{"id":1,"error":{"code":"timeout","message":"not yet"}}"#,
        r#"{"id":1,"error":{"code":"unsupported","message":"no"}}"#,
        r#"{"id":1,"error":{"code":"strange"}}"#,
        r#"{"id":2,"ok":true}"#,
        r#"{"event":"completion","operation":1,"status":"ok"}"#,
        "[]",
        "",
    ];
    for first in answers {
        // The embedded NIC answers the requests in between.
        seeds.extend([0, 1, 2, 4].map(|honest| format!("{}{first}\n", "\n".repeat(honest))));
    }
    seeds.push(answers.join("\n"));
    seeds.push(answers.join("\t"));
    let seeds = seeds.iter().zip(0u8..);
    // The lead selects a case of the suite, or the length of the pieces.
    seeds
        .map(|(text, number)| {
            [&lead.iter().map(|step: &u8| step.wrapping_mul(number)).collect::<Vec<_>>(), text.as_bytes()]
                .concat()
        })
        .collect()
}

/// Returns parts of the captures of this repository.
pub(crate) fn sequences() -> Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for folder in ["corpora/captures/reference-provider", "vectors/pcap"] {
        let entries = fs::read_dir(repository().join(folder))?;
        files.extend(
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>()?,
        );
    }
    files.sort();
    let mut seeds = Vec::new();
    for file in files {
        let mut seed = Vec::new();
        let read = input::read(fs::File::open(&file)?, Start::Eth, &mut |record| {
            let bytes = &record.bytes[..record.bytes.len().min(PACKET)];
            let wire = record.wire.min(bytes.len() + 255);
            let packet = Input { start: record.start, options: Options::DEFAULT, wire, bytes }.join();
            if seed.len() + packet.len() > SEQUENCE {
                seeds.push(core::mem::take(&mut seed));
            }
            seed.extend((packet.len() as u16).to_le_bytes());
            seed.extend(packet);
            Ok(ControlFlow::Continue(()))
        });
        read?;
        seeds.push(seed);
    }
    Ok(seeds)
}
