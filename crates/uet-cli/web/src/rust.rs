//! Writes a packet as Rust that builds it with uet-wire.

use std::collections::BTreeSet;
use std::fmt::Write;
use uet_packet_io::json::Decoded;
use uet_wire::layout::{Kind, Layout, Place};
use uet_wire::pds::Pds;
use uet_wire::ses::{Ext, Ses};

/// The plain struct of a header, as `Debug` prints it. Leaves the function if the struct lacks bits of the header:
/// reserved bits have no field.
macro_rules! plain {
    ($header:expr, $Family:ident: $($Name:ident)*) => {
        match $header {
            $($Family::$Name(header) => {
                let plain = header.to_repr();
                (plain.header().ok()?.bytes() == header.bytes()).then(|| format!("{plain:?}"))?
            })*
            _ => return None,
        }
    };
}

/// Returns a function that builds the packet. Returns `None` for packets that are secured or malformed, or that set
/// reserved bits.
pub(crate) fn rust(decoded: &Decoded<'_>) -> Option<String> {
    let uet = decoded.packet.uet;
    if decoded.error().is_some() || uet.tss.is_some() {
        return None;
    }
    let pds = uet.pds?;
    let mut source = Source::default();
    source.names[ROOT].extend(["FrameBuilder", "WriteError"].map(str::to_owned));
    let plain = plain!(pds, Pds: Request RequestCc Rudi Uud Ack AckCc AckCcx Nack NackCcx Control Prologue);
    source.header("pds", PDS, pds.layout(), &plain);
    let mut chain = "FrameBuilder::new(pds.header()?)".to_owned();
    if let Some(ses) = uet.ses {
        let plain = plain!(ses, Ses: Small Medium Std Response ResponseData ResponseDataSmall);
        source.header("ses", SES, ses.layout(), &plain);
        chain += ".ses(ses.header()?)";
    }
    if let Some(ext) = uet.ext {
        source.header("ext", SES, ext.layout(), &plain!(ext, Ext: Rendezvous Atomic CompareSwap));
        chain += ".ext(ext.header()?)";
    }
    if !uet.payload.is_empty() {
        let _ = write!(chain, ".payload(&{:?})", uet.payload);
    }
    Some(format!(
        "{}\n/// Writes the packet to the start of `buffer`, and returns its length.\n\
         pub fn packet(buffer: &mut [u8]) -> Result<usize, WriteError> {{\n{}    \
         {chain}.as_given().emit(buffer)\n}}\n",
        source.imports(),
        source.body
    ))
}

const PDS: usize = 0;
const REGISTRY: usize = 1;
const SES: usize = 2;
const ROOT: usize = 3;

/// The modules of uet-wire, by the constants above.
const MODULES: [&str; 4] = ["uet_wire::pds", "uet_wire::registry", "uet_wire::ses", "uet_wire"];

/// The lines of the function, and the names that they need of each module.
#[derive(Default)]
struct Source {
    body: String,
    names: [BTreeSet<String>; MODULES.len()],
}

impl Source {
    fn imports(&self) -> String {
        let used = MODULES.iter().zip(&self.names).filter(|(_, names)| !names.is_empty());
        let line = |(module, names): (_, &BTreeSet<String>)| {
            format!(
                "use {module}::{{{}}};\n",
                names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            )
        };
        used.map(line).collect()
    }

    /// Adds a header, from its plain struct. `Debug` prints structs, numbers and flags as Rust writes them, and the
    /// fields in the order of the layout.
    fn header(&mut self, variable: &str, module: usize, layout: &'static Layout, plain: &str) {
        let mut places = layout.fields().filter(|place| !is_group(layout, place));
        let lines = plain.replace("{ ", "{\n").replace(", ", ",\n").replace(" }", ",\n}");
        let mut depth = 1;
        for line in lines.lines() {
            let line = match line.strip_suffix(" {") {
                Some(start) => {
                    let name = start.rsplit(' ').next().unwrap_or_default();
                    self.names[module].insert(name.to_owned());
                    line.to_owned()
                }
                None => match (line.trim_end_matches(',').split_once(": "), line.starts_with('}')) {
                    (Some((name, value)), false) => {
                        let value = places.next().map_or(value.to_owned(), |place| self.value(value, &place));
                        format!("{name}: {value},")
                    }
                    _ => line.to_owned(),
                },
            };
            depth -= usize::from(line.starts_with('}'));
            let start =
                if depth == 1 && line.ends_with('{') { format!("let {variable} = ") } else { String::new() };
            let end = if depth == 1 && line.starts_with('}') { ";" } else { "" };
            let _ = writeln!(self.body, "{:1$}{start}{line}{end}", "", depth * 4);
            depth += usize::from(line.ends_with('{'));
        }
    }

    /// Returns the expression of a value that `Debug` printed.
    fn value(&mut self, value: &str, place: &Place) -> String {
        if let (Some(_), Some(inner)) = (place.row.when, value.strip_prefix("Some(")) {
            let inner = inner.strip_suffix(')').unwrap_or(inner);
            return format!("Some({})", self.present(inner, place));
        }
        if place.row.when.is_some() { value.to_owned() } else { self.present(value, place) }
    }

    fn present(&mut self, value: &str, place: &Place) -> String {
        if let Kind::Code(registry) = place.row.kind {
            self.names[REGISTRY].insert(registry.name.to_owned());
            let unknown = value.starts_with("0x");
            return if unknown {
                format!("{}::new({value}).unwrap()", registry.name)
            } else {
                format!("{}::{value}", registry.name)
            };
        }
        let Some((name, number)) = value.split_once('(') else { return value.to_owned() };
        self.names[ROOT].insert(name.to_owned());
        match name {
            "Units24" | "PsnOffset" => format!("{name}::new({number}.unwrap()"),
            _ => value.to_owned(),
        }
    }
}

/// Returns whether a field repeats the bits of its parts, as a group of flags does.
pub(crate) fn is_group(layout: &'static Layout, place: &Place) -> bool {
    let part = format!("{}.", place.row.name);
    layout.fields().any(|other| other.row.name.starts_with(&part))
}
