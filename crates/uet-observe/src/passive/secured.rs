//! Judges counters and epochs of secured packets (section 3.7).
//!
//! A key may return to its slot, or change there, without a trace in the packets. So only packets whose key is known are
//! judged: those that a key has opened.

use super::finding::CaptureFinding;
use crate::IvHistory;
use core::net::IpAddr;
use std::collections::HashMap;
use uet_wire::Packet;
use uet_wire::catalogue::TSS_CTR_001;
use uet_wire::tss::KeyIv;
use uet_wire::validate::Severity;

/// A sender under a key and epoch. Without a source identifier, the address stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stream {
    sdi: u32,
    an: bool,
    key: usize,
    epoch: u16,
    sender: Result<u32, IpAddr>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Where a range of counters begins. Queues of a sender may have ranges of their own.
    ranges: Vec<u64>,
    highest: u64,
}

/// Maximum number of ranges of a sender, of senders and of keys. Beyond it, more or all are forgotten.
const KEPT: usize = 4096;

/// A finding about a packet, without the packet.
struct Judgment {
    /// A requirement or a word of its own.
    id: &'static str,
    severity: Severity,
    /// An earlier packet that it contradicts.
    with: Option<u64>,
    message: String,
}

/// The distance of counters beyond what disorder on the network explains.
const FAR: u64 = 1 << 16;

/// The usual lifetime of epochs in a receiver, `rx_max_epoch_lifetime`.
const LIFETIME: u16 = 16;

/// Judges the protection of packets, one after the other.
#[derive(Debug, Default)]
pub(super) struct ProtectionChecker {
    ivs: IvHistory,
    /// The progress of each address. Both ends of a client-server domain can share a source identifier.
    progress: HashMap<(Stream, IpAddr), Progress>,
    /// The newest epoch of each key, and the number of its packet.
    epochs: HashMap<(u32, bool, usize), (u16, u64)>,
}

impl ProtectionChecker {
    /// Forgets everything but the IVs.
    pub(super) fn restart(&mut self) {
        *self = ProtectionChecker { ivs: core::mem::take(&mut self.ivs), ..ProtectionChecker::default() };
    }

    /// Judges the next packet, which the secret `key` of its association number has opened. `number` is that of the packet.
    pub(super) fn packet(
        &mut self,
        number: u64,
        (key, key_iv): (usize, KeyIv),
        packet: &Packet<'_>,
    ) -> Vec<CaptureFinding> {
        let (Some(tss), Some(ip)) = (packet.uet.tss, packet.ip) else { return Vec::new() };
        let (head, tsc) = (tss.head(), tss.tsc());
        let (sdi, an, epoch) = (head.sdi(), head.an(), tsc.epoch());
        let old = self.epoch((sdi, an, key), epoch, number);
        let content = (packet.uet.parts(), ip.src(), ip.dst(), packet.entropy_value());
        let repeats = self.ivs.repeats(key_iv, content, number);
        let strange = match repeats {
            Some(with) => Some(repeated(tsc.counter(), with)),
            None => {
                let stream = Stream { sdi, an, key, epoch, sender: tss.ssi().ok_or(ip.src()) };
                self.counter((stream, ip.src()), tsc.counter())
            }
        };
        let finding = |Judgment { id, severity, with, message }| {
            let culprit = Some(ip.src());
            CaptureFinding { number, with, id, severity, culprit, message }
        };
        old.into_iter().chain(strange).map(finding).collect()
    }

    fn epoch(&mut self, key: (u32, bool, usize), epoch: u16, number: u64) -> Option<Judgment> {
        if self.epochs.len() >= KEPT && !self.epochs.contains_key(&key) {
            self.epochs.clear();
        }
        let (newest, first) = self.epochs.entry(key).or_insert((epoch, number));
        let age = newest.wrapping_sub(epoch);
        // Serial arithmetic: a difference of half the numbers or more is a newer epoch.
        if age >= 1 << 15 {
            (*newest, *first) = (epoch, number);
            return None;
        }
        (age > LIFETIME).then(|| {
            let message = format!(
                "epoch {epoch} is {age} older than epoch {newest} of its key; by default, receivers drop packets older than {LIFETIME}"
            );
            Judgment { id: "old-epoch", severity: Severity::Warning, with: Some(*first), message }
        })
    }

    fn counter(&mut self, sender: (Stream, IpAddr), counter: u64) -> Option<Judgment> {
        if self.progress.len() >= KEPT && !self.progress.contains_key(&sender) {
            self.progress.clear();
        }
        let Progress { ranges, highest } = self.progress.entry(sender).or_default();
        let is_known = ranges.iter().rev().any(|begin| *begin <= counter && counter - begin < FAR);
        let back = !ranges.is_empty() && !is_known && highest.saturating_sub(counter) >= FAR;
        if !is_known && ranges.len() < KEPT {
            ranges.push(counter & !(FAR - 1));
        }
        let before = core::mem::replace(highest, counter.max(*highest));
        // Ranges of several queues explain it, too.
        back.then(|| {
            let message = format!(
                "the counter goes back from {before:#x} to {counter:#x} under one key and epoch; a sender that lost its counter needs a new epoch"
            );
            Judgment { id: "counter-back", severity: Severity::Note, with: None, message }
        })
    }
}

fn repeated(counter: u64, with: u64) -> Judgment {
    let message = format!("counter {counter:#x} protects another packet of this key too: the IV repeats");
    Judgment { id: TSS_CTR_001.id, severity: Severity::Error, with: Some(with), message }
}
