//! Replays one side of a recorded conversation to a device and compares its answers with the recorded ones.

use crate::field::{has, set, spdcid};
use crate::recording::Recording;
use core::net::IpAddr;
use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::Read;
use uet_conformance::{Dut, DutError, DutExt, Wire};
use uet_control::{ExposeRegion, Hex64, Permission};
use uet_packet_io::input::{self, InputError};
use uet_wire::ses::Ses;
use uet_wire::{Content, Options, Packet, PdcId, Start, Uet};

/// A recorded conversation of one address with all its peers.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// The packets: true if the address sent it, and the bytes from the first of UET.
    packets: Vec<(bool, Vec<u8>)>,
}

/// Differences between the device's answers and the recorded ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Number of packets sent.
    pub sent: usize,
    /// Number of packets received.
    pub received: usize,
    /// Recorded answers that the device did not send.
    pub missing: Vec<String>,
    /// Answers of the device that were not recorded.
    pub extra: Vec<String>,
}

/// Reads the conversation of this address. Without one, uses the source of the first request that opens a context.
///
/// # Errors
///
/// Fails if the capture cannot be read, or if the conversation has more than 65,536 packets or 64 MiB.
pub fn read(
    capture: impl Read + Send,
    side: Option<IpAddr>,
    options: &Options,
) -> Result<Conversation, InputError> {
    let (mut side, mut all, mut recording) = (side, Vec::new(), Recording::default());
    input::read(capture, Start::Eth, &mut |record| {
        let packet = Packet::parse_sliced(record.start, record.bytes, record.wire, options).0;
        if let (Some(ip), Content::Uet) = (packet.ip, packet.content) {
            let opens = packet.uet.pds.and_then(|pds| pds.request()).is_some_and(|request| request.syn());
            if opens && side.is_none() {
                side = Some(ip.src());
            }
            if side.is_none_or(|side| side == ip.src() || side == ip.dst()) {
                let bytes = packet.uet.parts().concat();
                recording.keep(bytes.len())?;
                all.push((ip.src(), ip.dst(), bytes));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let of_side = all.into_iter().filter(|(src, dst, _)| side == Some(*src) || side == Some(*dst));
    Ok(Conversation { packets: of_side.map(|(src, _, bytes)| (side == Some(src), bytes)).collect() })
}

impl Conversation {
    /// Returns the number of packets to send.
    pub fn len(&self) -> usize {
        self.packets.iter().filter(|(own, _)| *own).count()
    }

    /// Returns whether there is no packet to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exposes the memory that the requests name, if the device supports it.
    pub fn prepare(&self, dut: &mut dyn Dut) {
        let mut regions = BTreeMap::new();
        for (_, bytes) in self.packets.iter().filter(|(own, _)| *own) {
            let Some(Ses::Std(std)) = Uet::parse_lax(bytes).0.ses else { continue };
            let (Some(key), address) = (std.memory_key(), std.address()) else { continue };
            let job = std.head().rel().then(|| address.job_id());
            let name = (job, address.pid_on_fep(), address.resource_index(), address.ri_generation(), key);
            let end = std.buffer_offset().unwrap_or(0).saturating_add(std.request_length().into());
            let length: &mut u64 = regions.entry(name).or_default();
            *length = end.max(*length);
        }
        for ((job, process, index, generation, key), length) in regions {
            let permissions = vec![Permission::Read, Permission::Write, Permission::Atomic];
            let key = Hex64(key);
            // A refused exposure shows in the answers.
            let _ = dut.call(ExposeRegion {
                length,
                key,
                job,
                process,
                index,
                generation,
                permissions,
                fill: None,
            });
        }
    }

    /// Replays the conversation. Waits at most `soon` for each recorded answer.
    pub fn play(&self, dut: &mut dyn Dut, soon: Duration) -> Result<Replayed, DutError> {
        let mut ways = Ways { dut, remotes: BTreeMap::new(), came: Vec::new() };
        let (mut then, mut sent) = (Vec::new(), 0);
        for (own, bytes) in &self.packets {
            if *own {
                ways.send(bytes, soon)?;
                sent += 1;
            } else {
                then.push(text(bytes));
                ways.listen(soon, |ways| ways.came.len() >= then.len())?;
            }
        }
        ways.listen(soon, |_| false)?;
        let received = ways.came.len();
        let mut extra = ways.came;
        let missing = then.into_iter().filter(|then| match extra.iter().position(|now| now == then) {
            Some(place) => {
                extra.remove(place);
                false
            }
            None => true,
        });
        Ok(Replayed { sent, received, missing: missing.collect(), extra })
    }
}

struct Ways<'a> {
    dut: &'a mut dyn Dut,
    /// Current PDCIDs of the device by the recorded ones.
    remotes: BTreeMap<PdcId, PdcId>,
    came: Vec<String>,
}

impl Ways<'_> {
    fn send(&mut self, bytes: &[u8], soon: Duration) -> Result<(), DutError> {
        let mut bytes = bytes.to_vec();
        if let Some(local) = spdcid(&bytes).filter(|_| has(&bytes, "pds.dpdcid")) {
            self.listen(soon, |ways| ways.remotes.contains_key(&local))?;
            if let Some(remote) = self.remotes.get(&local) {
                set(&mut bytes, "pds.dpdcid", remote.0.into());
            }
        }
        let facts = self.dut.facts();
        let (src, dst) = (facts.local.first().copied().unwrap_or(facts.device), facts.device);
        let wire = Wire::new(src, dst, 0xc000, bytes);
        self.dut.send(&wire)
    }

    fn listen(&mut self, within: Duration, enough: impl Fn(&Self) -> bool) -> Result<(), DutError> {
        let until = self.dut.now() + within;
        while !enough(self) {
            let Some(wire) = self.dut.receive(until)? else { return Ok(()) };
            if let Some(ack) = Uet::parse_lax(&wire.bytes).0.pds.and_then(|pds| pds.ack()) {
                self.remotes.insert(ack.dpdcid(), ack.spdcid());
            }
            self.came.push(text(&wire.bytes));
        }
        Ok(())
    }
}

/// Describes an answer in words, without the device's PDCID.
fn text(bytes: &[u8]) -> String {
    let mut bytes = bytes.to_vec();
    set(&mut bytes, "pds.spdcid", 0);
    Uet::parse_lax(&bytes).0.to_string()
}
