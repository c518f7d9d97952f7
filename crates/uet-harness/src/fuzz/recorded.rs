//! Reads conversations from captures.

use crate::recording::Recording;
use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::io::Read;
use uet_conformance::random::Sequence;
use uet_conformance::random::step::Step;
use uet_control::Hex;
use uet_packet_io::input::{self, InputError};
use uet_wire::{Content, Options, Packet, Start};

/// Maximum number of steps of a conversation.
const STEPS: usize = 64;

/// Returns one conversation for each address that sends requests: its packets.
///
/// # Errors
///
/// Fails if the capture cannot be read, or if all conversations have more than 65,536 packets or 64 MiB.
pub fn conversations(capture: impl Read + Send, options: &Options) -> Result<Vec<Sequence>, InputError> {
    let mut sent: BTreeMap<_, Sequence> = BTreeMap::new();
    let mut recording = Recording::default();
    input::read(capture, Start::Eth, &mut |record| {
        let packet = Packet::parse_sliced(record.start, record.bytes, record.wire, options).0;
        let source = packet.ip.map(|ip| ip.src());
        if let (Some(source), Content::Uet) = (source, packet.content) {
            let script = sent.entry(source).or_default();
            if script.steps.len() < STEPS {
                let bytes = Hex(packet.uet.parts().concat());
                recording.keep(bytes.0.len())?;
                script.steps.push(Step::Recorded { bytes });
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let opens = |script: &Sequence| {
        script.steps.iter().any(|step| match step {
            Step::Recorded { bytes } => uet_wire::Uet::parse_lax(&bytes.0)
                .0
                .pds
                .and_then(|pds| pds.request())
                .is_some_and(|request| request.syn()),
            _ => false,
        })
    };
    Ok(sent.into_values().filter(opens).collect())
}
