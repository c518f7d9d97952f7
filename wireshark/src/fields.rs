//! Fields registered with Wireshark: one for each name and bit layout.

use uet_wire::layout::{Kind, Place};

/// Registration of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// The canonical name.
    pub(crate) name: &'static str,
    /// Number of bytes that hold it.
    pub(crate) bytes: usize,
    /// Mask of its bits; `None` if it fills all bytes.
    pub(crate) mask: Option<u64>,
    /// Interpretation of its bits.
    pub(crate) kind: Kind,
    /// Its meaning.
    pub(crate) doc: &'static str,
}

/// The whole bytes that contain a row.
pub(crate) struct Container {
    /// The first byte.
    pub(crate) at: usize,
    /// Number of bytes.
    pub(crate) bytes: usize,
    /// Distance of the bits from the low end.
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
        // A field wider than a number is registered as bytes without a mask.
        let mask = (partial && container.bytes <= 8).then(|| ((1u64 << width) - 1) << container.shift);
        let name = if place.row.kind == Kind::Reserved { "reserved" } else { place.row.name };
        Field { name, bytes: container.bytes, mask, kind: place.row.kind, doc: place.row.doc }
    }

    /// Returns the constructor in Wireshark's Lua API.
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

    /// Returns the display base.
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

    /// Returns the display name: the last part of the canonical one.
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
