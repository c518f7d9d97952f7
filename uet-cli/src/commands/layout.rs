//! `uet layout`

use super::Ending;
use clap::Args;
use std::io::{self, Write};
use uet_wire::{draw, layout};

/// Draw a header, or name all headers
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet layout              the headers, one per line
  uet layout ack_cc       the figure of one, with its fields")]
pub(super) struct Layout {
    /// The header
    header: Option<String>,
}

impl Layout {
    pub(super) fn run(&self) -> io::Result<Ending> {
        let mut out = io::stdout().lock();
        match &self.header {
            None => {
                for layout in layout::ALL {
                    writeln!(
                        out,
                        "{:20} {:8} {:3} bytes  {}",
                        layout.name, layout.layer, layout.bytes, layout.title
                    )?;
                }
            }
            Some(name) => match layout::ALL.iter().find(|layout| layout.name == name) {
                Some(layout) => write!(out, "{}, {} bytes\n\n{}", layout.title, layout.bytes, draw(layout))?,
                None => {
                    let message = format!("there is no header '{name}'; `uet layout` names them all");
                    return Err(io::Error::other(message));
                }
            },
        }
        Ok(Ending::Well)
    }
}
