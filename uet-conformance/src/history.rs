//! Remarks about the packets of a trace: losses, marks, trims and repetitions.

use crate::{Trimmed, Wire};
use core::net::IpAddr;
use core::time::Duration;
use foldhash::fast::RandomState;
use serde::Serialize;
use std::collections::HashMap;
use uet_wire::Uet;
use uet_wire::pds::Pds;
use uet_wire::registry::PdsType;

/// A trace has many packets, and a random key of the hash is enough against chosen ones.
type Map<K, V> = HashMap<K, V, RandomState>;

/// A property of a packet that explains reactions to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The network lost it.
    Lost,
    /// A congestion mark of the network.
    Congestion,
    /// A switch dropped its payload.
    Trimmed,
    /// A bit of it flips on its way, so the receiver must drop it.
    Damaged,
    /// A retransmission, by its retx flag.
    Retransmission,
    /// A request whose PSN was sent before, without the retx flag.
    Duplicate,
    /// A NACK.
    Refusal,
}

impl Mark {
    /// Returns the mark in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Mark::Lost => "lost",
            Mark::Congestion => "congestion mark",
            Mark::Trimmed => "payload dropped",
            Mark::Damaged => "damaged",
            Mark::Retransmission => "retransmission",
            Mark::Duplicate => "duplicate",
            Mark::Refusal => "refusal",
        }
    }
}

/// The earlier packets of a trace, as far as remarks about later ones need them. Numbers are `None` for
/// packets that the network lost on their way to the suite.
pub(crate) struct History<'a> {
    /// Both addresses of the first packet.
    usual: Option<[IpAddr; 2]>,
    /// Entropy value and class of the last packet by source and type.
    last: Map<(IpAddr, Option<PdsType>), (u16, Option<bool>)>,
    /// Number of the first packet with these bytes.
    bytes: Map<(IpAddr, &'a [u8]), Option<usize>>,
    /// Number of the first request of a context with this PSN.
    requests: Map<(IpAddr, u16, u32), Option<usize>>,
}

/// Properties of a packet, for text and for drawings.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    pub(crate) marks: Vec<Mark>,
    words: Vec<String>,
}

impl Remarks {
    /// Returns the remarks in braces, with a space before; empty without remarks.
    pub(crate) fn text(&self) -> String {
        if self.words.is_empty() { String::new() } else { format!(" {{{}}}", self.words.join(", ")) }
    }

    fn add(&mut self, mark: Mark, word: impl Into<String>) {
        self.marks.push(mark);
        self.words.push(word.into());
    }
}

impl<'a> History<'a> {
    /// Begins with the first packet of the trace.
    pub(crate) fn new(first: Option<(Duration, &Wire)>) -> Self {
        let usual = first.map(|(_, wire)| [wire.src, wire.dst]);
        let (last, bytes, requests) = Default::default();
        History { usual, last, bytes, requests }
    }

    /// Describes a packet beyond its headers: a loss, a mark, a trim, or an earlier packet that it repeats.
    /// Also names a new entropy value or class for its type, and addresses other than those of the first
    /// packet.
    pub(crate) fn remarks(&mut self, number: Option<usize>, wire: &'a Wire) -> Remarks {
        let mut remarks = Remarks::default();
        if wire.lost {
            remarks.add(Mark::Lost, "lost");
        }
        if wire.marked {
            remarks.add(Mark::Congestion, "CE");
        }
        let left = match wire.taken.len() {
            0 => format!("to {} B", wire.bytes.len()),
            taken => format!("to {} of {} B", wire.bytes.len(), wire.bytes.len() + taken),
        };
        match wire.trimmed {
            Some(Trimmed::Fabric) => remarks.add(Mark::Trimmed, format!("trimmed {left}")),
            Some(Trimmed::LastHop) => remarks.add(Mark::Trimmed, format!("trimmed {left} at the last hop")),
            None => {}
        }
        // A remark of its own tells which bit flips.
        remarks.marks.extend(wire.flipped.map(|_| Mark::Damaged));
        let pds = Uet::parse_lax(&wire.bytes).0.pds;
        self.repetition(number, wire, pds, &mut remarks);
        if matches!(pds, Some(Pds::Nack(_))) {
            remarks.marks.push(Mark::Refusal);
        }
        let kind = (wire.src, pds.map(|pds| pds.kind()));
        let before = self.last.insert(kind, (wire.entropy, wire.high));
        if before.is_none_or(|(entropy, _)| entropy != wire.entropy) {
            remarks.words.push(format!("entropy {:#x}", wire.entropy));
        }
        if let Some(high) = wire.high.filter(|_| before.is_none_or(|(_, high)| high != wire.high)) {
            remarks.words.push(format!("DSCP class {}", if high { "high" } else { "low" }));
        }
        if self.usual.is_some_and(|usual| !usual.contains(&wire.src) || !usual.contains(&wire.dst)) {
            remarks.words.push(format!("{} > {}", wire.src, wire.dst));
        }
        remarks
    }

    /// Finds the earlier packet that this one repeats.
    fn repetition(
        &mut self,
        number: Option<usize>,
        wire: &'a Wire,
        pds: Option<Pds<'_>>,
        remarks: &mut Remarks,
    ) {
        let named =
            |number: Option<usize>| number.map_or("a lost packet".into(), |number| number.to_string());
        let same = self.bytes.get(&(wire.src, &wire.bytes[..])).copied();
        self.bytes.entry((wire.src, &wire.bytes)).or_insert(number);
        let request = pds.and_then(|pds| pds.request());
        let key = request.map(|request| (wire.src, request.spdcid().0, request.psn().0));
        let first = key.and_then(|key| self.requests.get(&key).copied());
        if let Some(key) = key {
            self.requests.entry(key).or_insert(number);
        }
        match (same, first) {
            (Some(same), _) => remarks.words.push(format!("duplicate of {}", named(same))),
            (None, Some(first)) => remarks.words.push(format!("repeats the PSN of {}", named(first))),
            (None, None) => {}
        }
        if request.is_some_and(|request| request.retx()) {
            remarks.marks.push(Mark::Retransmission);
        } else if first.is_some() {
            remarks.marks.push(Mark::Duplicate);
        }
    }
}
