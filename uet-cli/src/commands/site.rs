//! `uet site`

use super::{Outcome, about, complain};
use crate::site::{self, Vectors};
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;

/// Write a web page of headers, code points, vectors, requirements and rules
///
/// The files open without a server. Start with DIR/index.html.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet site target/site                          then open target/site/index.html
  uet site target/site --vectors path/to/uet/vectors")]
pub(super) struct Site {
    /// Output directory
    directory: PathBuf,
    /// Directory of the golden vectors, from the repository
    #[arg(long, value_name = "DIR", default_value = "vectors")]
    vectors: PathBuf,
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
        site::write(&self.directory, &vectors).map_err(|error| about(&self.directory, error))?;
        let first = self.directory.join("index.html");
        writeln!(io::stdout(), "{}, with {} packets of vectors", first.display(), vectors.len())?;
        Ok(Outcome::Ok)
    }
}
