//! `uet site`

use super::{Outcome, about, complain};
use crate::site::{self, Vectors};
use clap::Args;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use uet_control::escape;

/// Write a web page of headers, code points, vectors, requirements and rules
///
/// The files open without a server. Start with DIR/index.html.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet site target/site                          then open target/site/index.html
  uet site target/site --vectors path/to/uet/vectors

tools/site adds the app, a page that decodes captures, checks them, builds packets and plays the model, and a grid of two
implementations.")]
pub(super) struct Site {
    /// Output directory
    directory: PathBuf,
    /// Directory of the golden vectors, from the repository
    #[arg(long, value_name = "DIR", default_value = "vectors")]
    vectors: PathBuf,
    /// Add the app: the program of crates/uet-cli/web/, built for wasm32-wasip1
    #[arg(long, value_name = "FILE")]
    app: Option<PathBuf>,
    /// Add a grid of implementations: the page of `uet interop --html`
    #[arg(long, value_name = "FILE")]
    interop: Option<PathBuf>,
}

impl Site {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let vectors = match Vectors::read(&self.vectors) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                complain(format!(
                    "warning: the site has no vectors: {error}; name their folder with --vectors"
                ));
                Vectors::default()
            }
            other => other?,
        };
        let app = self.app.as_deref().map(|path| {
            let program = fs::read(path).map_err(|error| about(path, error))?;
            site::app(&program)
        });
        let app = app.transpose()?;
        let grid =
            self.interop.as_deref().map(|path| fs::read_to_string(path).map_err(|error| about(path, error)));
        let grid = grid.transpose()?;
        site::write(&self.directory, &vectors, app, grid).map_err(|error| about(&self.directory, error))?;
        let first = self.directory.join("index.html");
        let first = first.display().to_string();
        writeln!(io::stdout(), "{}, with {} packets of vectors", escape(&first), vectors.len())?;
        Ok(Outcome::Ok)
    }
}
