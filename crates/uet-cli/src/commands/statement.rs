//! Device statements and profiles: files in TOML.

use super::{about, complain, device, known};
use crate::near;
use crate::toml_error;
use clap::Args;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use uet_conformance::Statement;
use uet_control::escape_value;
use uet_packet_io::file;

/// Built-in profiles, by name. All but the last rest on public statements.
pub(super) const PROFILES: &[(&str, &str)] = &[
    ("ai-base", include_str!("profiles/ai-base.toml")),
    ("ai-full", include_str!("profiles/ai-full.toml")),
    ("hpc", include_str!("profiles/hpc.toml")),
    ("reference-provider", include_str!("profiles/reference-provider.toml")),
    ("writes", include_str!("profiles/writes.toml")),
];

/// Statement and profile of the device, beside its own claims.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which device")]
pub(super) struct StatementArgs {
    /// Description of the device beyond its answer to `hello`: claims, parameters, waivers (TOML, docs/adapter.md)
    #[arg(long, value_name = "FILE")]
    statement: Option<PathBuf>,
    /// Profile of the device, which selects what is tested: ai-base, ai-full, hpc, reference-provider, writes
    /// (`uet list --profiles` explains them), or a file like a statement
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
}

impl StatementArgs {
    /// Returns the profile and the statement as one. Warns about lines that the suite ignores.
    pub(super) fn read(&self) -> io::Result<Statement> {
        let mut statement = Statement::default();
        if let Some(name) = &self.profile {
            statement.merge(profile(name)?);
        }
        if let Some(path) = &self.statement {
            statement.merge(read(path)?);
        }
        known::waivers(&statement.waivers)?;
        let claims = statement.claims.iter().chain(&statement.disclaims);
        let strange = known::strange_capabilities(claims)
            .chain(known::strange_parameters(&statement.parameters))
            .chain(known::strange_parameters(&statement.defaults));
        strange.for_each(|strange| {
            complain(format_args!("warning: the suite ignores a line of the statement: {strange}"))
        });
        let known = known::known_capabilities();
        statement.claims.retain(|claim| known.contains(&claim.as_str()));
        Ok(statement)
    }

    /// Returns whether anything is stated.
    pub(super) fn is_given(&self) -> bool {
        self.statement.is_some() || self.profile.is_some()
    }

    /// Returns the command-line options.
    pub(super) fn words(&self) -> String {
        let statement = self.statement.as_ref().map(|path| path.display().to_string());
        let words = [("profile", self.profile.clone()), ("statement", statement)];
        let given = words.into_iter().filter_map(|(option, value)| Some((option, device::quoted(&value?))));
        given.map(|(option, value)| format!(" --{option} {value}")).collect()
    }
}

/// Reads a device statement from a file.
pub(super) fn read(path: &Path) -> io::Result<Statement> {
    parse(path, &file::read_text(path, file::MAX_SETTINGS).map_err(|error| about(path, error))?)
}

/// Parses the text of a device statement. An error names the path.
pub fn parse(path: &Path, text: &str) -> io::Result<Statement> {
    // The first parse names the place of an error; the second escapes its strings.
    let advice = |error: toml::de::Error| {
        let remedy = remedy(error.message());
        let error = toml_error::shown(&error);
        about(path, format_args!("not a statement in TOML (docs/adapter.md): {}{remedy}", error.trim_end()))
    };
    toml::from_str::<Statement>(text).map_err(advice)?;
    escaped(path, text)
}

/// Parses TOML and escapes its strings. An error names the path, but no place in the file.
pub(super) fn escaped<T: DeserializeOwned>(path: &Path, text: &str) -> io::Result<T> {
    let mut value = toml::from_str(text).map_err(|error| about(path, toml_error::shown(&error)))?;
    escape_value(&mut value);
    serde_json::from_value(value).map_err(|error| about(path, error))
}

/// Returns advice about a wrong statement, if its error allows any: `; did you mean claims?`.
fn remedy(message: &str) -> String {
    if message.starts_with("unknown field") {
        // The unknown word and the known ones stand between backticks.
        let mut words = message.split('`').skip(1).step_by(2);
        let meant = words.next().map(|word| near::near(word, words)).unwrap_or_default();
        return match meant[..] {
            [] => String::new(),
            _ => format!("; did you mean {}?", meant.join(" or ")),
        };
    }
    match message {
        "invalid type: map, expected a sequence" => {
            "; entries of a list have double brackets, such as [[waivers]] or [[regions]]".into()
        }
        _ => String::new(),
    }
}

/// Returns the profile of this name or in this file.
pub(super) fn profile(name: &str) -> io::Result<Statement> {
    let mut profile = profile_alone(name)?;
    if !profile.extends.is_empty() {
        built_in(&profile.extends)?;
        let mut rows = self::profile(&profile.extends)?.rows;
        rows.retain(|row| row.id.is_empty() || profile.rows.iter().all(|own| own.id != row.id));
        rows.append(&mut profile.rows);
        profile.rows = rows;
    }
    Ok(profile)
}

/// Returns the text of a built-in profile.
fn built_in(name: &str) -> io::Result<&'static str> {
    let known = PROFILES.iter().find(|(known, _)| *known == name);
    let unknown = || io::Error::other(near::unknown("profile", name, PROFILES.iter().map(|(name, _)| *name)));
    known.map(|(_, text)| *text).ok_or_else(unknown)
}

/// Returns a profile without the rows of the one that it extends.
fn profile_alone(name: &str) -> io::Result<Statement> {
    match built_in(name) {
        Ok(text) => toml::from_str(text).map_err(|error| io::Error::other(format!("{name}: {error}"))),
        Err(_) if name.contains(['.', '/']) => read(Path::new(name)),
        Err(unknown) => Err(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uet_conformance::Obligation;

    #[test]
    fn profiles_are_provisional_and_claim_known_capabilities() {
        for (name, _) in PROFILES {
            let profile = profile(name).unwrap();
            assert!(profile.provisional, "{name}");
            assert!(!profile.summary.is_empty(), "{name}");
            assert!(profile.waivers.is_empty() && profile.parameters.is_empty());
            // A profile of the matrix claims nothing for a device.
            assert_eq!(profile.rows.is_empty(), profile.only);
            assert_eq!(profile.rows.is_empty(), profile.claims.contains(&"rud".to_owned()));
            for row in &profile.rows {
                let known = |id: &String| uet_wire::catalogue::find(id).is_some();
                assert!(row.requirements.iter().all(known), "{name}: {}", row.feature);
                let known = |id: &String| uet_conformance::RULES.find(id).is_some();
                assert!(row.rules.iter().all(known), "{name}: {}", row.feature);
                assert_eq!(super::super::known::strange_capabilities(row.claims.iter()).count(), 0);
            }
        }
        let rows = |name: &str| profile(name).unwrap().rows;
        let ids = |name: &str| {
            rows(name).iter().filter(|row| row.id == "PDS-3").map(|row| row.obligation).collect::<Vec<_>>()
        };
        assert_eq!(ids("ai-full"), [Obligation::Optional]);
        assert_eq!(ids("hpc"), [Obligation::Mandatory], "its row replaces that of the profile it extends");
        assert_eq!(rows("ai-full").len(), rows("ai-base").len() + 3);
        assert!(profile("ai-bas").unwrap_err().to_string().contains("did you mean ai-base?"));
    }
}
