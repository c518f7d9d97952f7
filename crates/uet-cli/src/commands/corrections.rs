//! Corrections of the catalogue: a TOML file.

use super::{about, line_at};
use crate::near;
use crate::toml_error;
use serde::Deserialize;
use std::io;
use std::path::Path;
use toml::Spanned;
use uet_conformance::{Correction, Corrections};
use uet_control::escape;
use uet_packet_io::file;
use uet_wire::catalogue::{self, Level};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorrectionFile {
    requirements: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: Spanned<String>,
    level: Option<Spanned<String>>,
    sentence: Option<String>,
    #[serde(default)]
    withdrawn: bool,
    reason: String,
}

/// Reads corrections from a file.
pub(super) fn read(path: &Path) -> io::Result<Corrections> {
    parse(path, &file::read_text(path, file::MAX_SETTINGS).map_err(|error| about(path, error))?)
}

/// Parses the text of corrections. An error names the path and the line.
pub fn parse(path: &Path, text: &str) -> io::Result<Corrections> {
    let lines: CorrectionFile =
        toml::from_str(text).map_err(|error| about(path, toml_error::shown(&error)))?;
    let mut corrections: Vec<Correction> = Vec::new();
    for line in lines.requirements {
        let at = |place: usize, why: String| about(path, format!("line {}: {why}", line_at(text, place)));
        let place = line.id.span().start;
        let id = line.id.get_ref().to_ascii_uppercase();
        let Some(requirement) = catalogue::find(&id) else {
            let known = catalogue::ALL.iter().map(|requirement| requirement.id);
            return Err(at(place, near::unknown("requirement", &id, known)));
        };
        if corrections.iter().any(|known| known.requirement == requirement) {
            return Err(at(place, format!("{id} is corrected twice")));
        }
        let level = match &line.level {
            None => None,
            Some(word) => {
                let known = [Level::May, Level::Should, Level::Must];
                let level = known.into_iter().find(|level| level.name() == word.get_ref());
                let wrong = || at(word.span().start, "a level is must, should or may".into());
                Some(level.ok_or_else(wrong)?)
            }
        };
        match (line.withdrawn, level.is_some() || line.sentence.is_some()) {
            (true, true) => {
                return Err(at(place, format!("{id} is withdrawn, and so has no level or sentence")));
            }
            (false, false) => {
                return Err(at(place, format!("{id} needs `level`, `sentence` or `withdrawn = true`")));
            }
            _ => {}
        }
        corrections.push(Correction {
            requirement,
            level,
            sentence: line.sentence.map(|sentence| escape(&sentence).to_string()),
            withdrawn: line.withdrawn,
            reason: escape(&line.reason).to_string(),
        });
    }
    Ok(Corrections(corrections))
}
