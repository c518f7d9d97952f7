//! Headers of UET for other languages, from the tables of uet-wire: `uet generate`.

mod c;

use uet_wire::Spec;
use uet_wire::layout::{self, Layout, Place};
use uet_wire::registry::Registry;

/// A language that `uet generate` writes.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Language {
    /// A header file in C99, for C++, kernels and eBPF as well
    C,
}

impl Language {
    /// Returns the file for this version of the specification.
    pub(crate) fn file(self, spec: &'static Spec) -> String {
        match self {
            Language::C => c::header(spec),
        }
    }
}

/// Returns the headers of UET, and the parts that several of them share.
fn layouts(spec: &'static Spec) -> impl Iterator<Item = &'static Layout> {
    let ours = layout::ALL.iter().copied().filter(|layout| layout.layer.is_uet());
    ours.map(|layout| spec.layout(layout))
}

/// Returns the fields of a header: the short name of each, and its places, which exclude each other.
fn fields(layout: &'static Layout) -> Vec<(String, Vec<Place>)> {
    let mut fields: Vec<(&str, Vec<Place>)> = Vec::new();
    for place in layout.fields() {
        match fields.iter_mut().find(|(name, _)| *name == place.row.name) {
            Some((_, places)) => places.push(place),
            None => fields.push((place.row.name, vec![place])),
        }
    }
    let last = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
    let names: Vec<&str> = fields.iter().map(|(name, _)| last(name)).collect();
    let is_unique = |name: &str| names.iter().filter(|other| **other == name).count() == 1;
    let short = |name: &'static str| match last(name) {
        tail if is_unique(tail) => tail.to_owned(),
        _ => name.split_once('.').map_or(name, |(_, rest)| rest).replace('.', "_"),
    };
    fields.into_iter().map(|(name, places)| (short(name), places)).collect()
}

/// Returns the name of a registry in lower case: `PdsType` as `pds_type`.
fn snake(registry: &Registry) -> String {
    registry.words().map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
}
