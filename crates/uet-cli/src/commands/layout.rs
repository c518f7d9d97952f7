//! `uet layout`

use super::{Listing, Outcome};
use crate::explain::kind;
use crate::near;
use crate::paint::Paint;
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use uet_wire::draw;
use uet_wire::layout::{self, Kind, Layout as Table, Place};

/// Draw a header, or list all headers
///
/// On a terminal, draws HEADER as a figure with a legend; piped, lists one field per line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet layout                       the headers, one per line
  uet layout ack_cc                the figure of one, with its fields
  uet layout ack_cc | cat          its fields: name, first bit, width, kind, meaning
  uet layout --format json         the tables of all headers, one per line")]
pub(super) struct Layout {
    /// The header
    header: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Listing,
    /// Draw the figure even if the output is not a terminal
    #[arg(long, requires = "header", conflicts_with = "format")]
    draw: bool,
}

impl Layout {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let stdout = io::stdout().lock();
        let terminal = stdout.is_terminal();
        let mut out = io::BufWriter::new(stdout);
        let header = self.header.as_deref().map(find).transpose()?;
        match (self.format, header) {
            (Listing::Json, Some(layout)) => writeln!(out, "{}", table(layout))?,
            (Listing::Json, None) => {
                layout::ALL.iter().try_for_each(|layout| writeln!(out, "{}", table(layout)))?;
            }
            (Listing::Text, None) => list(&mut out)?,
            (Listing::Text, Some(layout)) if terminal || self.draw => {
                let title = format!("{}, {} bytes", layout.title, layout.bytes);
                write!(out, "{}\n\n{}", Paint::stdout().strong(title), draw(layout))?;
            }
            (Listing::Text, Some(layout)) => fields(&mut out, layout)?,
        }
        out.flush()?;
        Ok(Outcome::Ok)
    }
}

/// Headers by the names of their packet types.
const TYPES: [(&str, &str); 8] = [
    ("rud_req", "request"),
    ("rod_req", "request"),
    ("rud_cc_req", "request_cc"),
    ("rod_cc_req", "request_cc"),
    ("rudi_req", "rudi"),
    ("rudi_resp", "rudi"),
    ("uud_req", "uud"),
    ("cp", "control"),
];

fn find(name: &str) -> io::Result<&'static Table> {
    let name =
        TYPES.iter().find(|(kind, _)| kind.eq_ignore_ascii_case(name)).map_or(name, |(_, header)| header);
    let found = layout::ALL.iter().copied().find(|layout| layout.name.eq_ignore_ascii_case(name));
    let names = layout::ALL.iter().map(|layout| layout.name);
    found.ok_or_else(|| {
        let message = near::unknown("header", name, names);
        io::Error::other(format!("{message} (`uet layout` names them all)"))
    })
}

fn list(out: &mut impl Write) -> io::Result<()> {
    let paint = Paint::stdout();
    for Table { name, layer, bytes, title, .. } in layout::ALL {
        writeln!(out, "{:<20} {:8} {bytes:3} bytes  {title}", paint.name(name), layer.name())?;
    }
    Ok(())
}

fn fields(out: &mut impl Write, layout: &'static Table) -> io::Result<()> {
    for place in layout.places() {
        let Place { row, .. } = place;
        let (key, lo, width, kind) =
            (layout.key(&place).to_string(), place.lo(), row.width(), kind(row.kind));
        let doc = if row.doc.is_empty() { "-" } else { row.doc };
        write!(out, "{key:<30} {lo:>3} {width:>3} {kind:<9} {doc}")?;
        match &row.when {
            Some(when) => writeln!(out, " (when {})", layout.condition(when))?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// Returns a header as JSON.
fn table(layout: &'static Table) -> Value {
    let fields: Vec<Value> = layout.places().map(|place| field(layout, place)).collect();
    json!({
        "name": layout.name, "title": layout.title, "layer": layout.layer.name(), "bytes": layout.bytes, "fields": fields,
    })
}

fn field(layout: &'static Table, place: Place) -> Value {
    let row = place.row;
    let when = row.when.map(|when| {
        let width = layout.field(when.name).map_or(0, |deciding| deciding.row.width());
        json!({"field": when.name, "values": when.values.iter(width).collect::<Vec<_>>()})
    });
    let registry = match row.kind {
        Kind::Code(registry) => Some(registry.name),
        _ => None,
    };
    json!({
        "name": layout.key(&place).to_string(), "bit": place.lo(), "width": row.width(), "kind": kind(row.kind),
        "when": when, "registry": registry, "doc": row.doc,
    })
}
