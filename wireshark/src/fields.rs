//! The fields that Wireshark is told about: one for each name and each way its bits lie.

use uet_wire::layout::{Kind, Layer, Layout, Place};

/// How a field is registered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// The canonical name.
    pub(crate) name: &'static str,
    /// The bytes that hold it.
    pub(crate) bytes: usize,
    /// Which of their bits it is; `None` when it is all of them.
    pub(crate) mask: Option<u64>,
    /// How it is read.
    pub(crate) kind: Kind,
    /// Its meaning.
    pub(crate) doc: &'static str,
}

/// Where a row lies in whole bytes.
pub(crate) struct Container {
    /// The first byte.
    pub(crate) at: usize,
    /// How many bytes.
    pub(crate) bytes: usize,
    /// How far the bits are from the low end.
    pub(crate) shift: usize,
}

impl Container {
    pub(crate) fn of(place: &Place) -> Self {
        let (at, end) = (place.lo() / 8, place.hi().div_ceil(8));
        Container { at, bytes: end - at, shift: end * 8 - place.hi() }
    }
}

impl Field {
    pub(crate) fn of(place: &Place) -> Self {
        let container = Container::of(place);
        let width = place.row.width();
        let partial = width < container.bytes * 8;
        // What is wider than a number goes as bytes, without a mask.
        let mask = (partial && container.bytes <= 8).then(|| ((1u64 << width) - 1) << container.shift);
        let name = if place.row.kind == Kind::Reserved { "reserved" } else { place.row.name };
        Field { name, bytes: container.bytes, mask, kind: place.row.kind, doc: place.row.doc }
    }

    /// The constructor in the Lua interface of Wireshark.
    pub(crate) fn constructor(&self) -> String {
        let bits = self.bytes * 8;
        match (self.kind, self.bytes) {
            (Kind::Bool, _) => "bool".into(),
            (_, 9..) => "bytes".into(),
            (Kind::Int, _) => format!("int{bits}"),
            (_, 1..=4) => format!("uint{bits}"),
            _ => "uint64".into(),
        }
    }

    /// The base in which it is shown.
    pub(crate) fn base(&self) -> String {
        let identifiers = ["pds.spdcid", "pds.dpdcid", "pds.flags", "pds.nack_code", "pds.entropy", "crc"];
        let tokens = self.name.ends_with("_token") || self.name.ends_with("_opaque");
        let code = matches!(self.kind, Kind::Code(registry) if registry.width >= 6);
        match self.kind {
            Kind::Bool => (self.bytes * 8).to_string(),
            _ if self.bytes > 8 => "base.NONE".into(),
            Kind::Int => "base.DEC".into(),
            Kind::Reserved => "base.HEX".into(),
            _ if self.bytes > 4 || code || tokens || identifiers.contains(&self.name) => "base.HEX".into(),
            _ => "base.DEC".into(),
        }
    }

    /// The name for people: the last part of the canonical one.
    pub(crate) fn label(&self) -> String {
        const CAPITALS: &[&str] = &[
            "psn", "cc", "ccc", "ccx", "nccx", "pdc", "spdcid", "dpdcid", "ack", "cack", "sack", "nack",
            "id", "fep", "ri", "pid",
        ];
        if self.kind == Kind::Reserved {
            return "Reserved".into();
        }
        let tail = self.name.rsplit('.').next().unwrap_or(self.name);
        if self.name.starts_with("pds.flags.")
            || ["dc", "ie", "rel", "hd", "eom", "som", "mpr", "rc", "crc", "icv"].contains(&tail)
        {
            return tail.to_uppercase();
        }
        let words = tail.split('_').enumerate().map(|(index, word)| {
            if CAPITALS.contains(&word) {
                word.to_uppercase()
            } else if index == 0 {
                word[..1].to_uppercase() + &word[1..]
            } else {
                word.into()
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// The layers whose fields are ours: those around UET have dissectors of their own.
pub(crate) fn is_ours(layout: &Layout) -> bool {
    matches!(
        layout.layer,
        Layer::Entropy | Layer::Tss | Layer::Pds | Layer::Ses | Layer::Ext | Layer::Trailer
    )
}
