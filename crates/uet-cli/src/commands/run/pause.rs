//! `uet run --pause`

use crate::progress::Rules;
use std::io::{self, IsTerminal, Write};
use uet_conformance::{Before, Instance, RULES};

/// Returns the function that waits for a person before these rules and instances.
pub(super) fn before(ids: &[String], progress: &Rules) -> io::Result<Before> {
    if ids.is_empty() {
        return Ok(Before::default());
    }
    for id in ids {
        match id.contains('[') {
            true => Instance::parse(RULES, id).map(drop).map_err(io::Error::other)?,
            false if RULES.find(id).is_some() => {}
            false => {
                let known: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
                return Err(io::Error::other(crate::near::unknown("rule", id, known.into_iter())));
            }
        }
    }
    if !io::stdin().is_terminal() {
        return Err(io::Error::other("--pause waits for Enter, but standard input is not a terminal"));
    }
    let (ids, bar) = (ids.to_vec(), progress.bar());
    Ok(Before::new(move |instance| {
        let name = instance.to_string();
        let names = |id: &String| *id == name || *id == instance.rule.id;
        if ids.iter().any(names) {
            bar.suspend(|| wait(&name));
        }
    }))
}

/// Waits for a line; the end of the input counts as one.
fn wait(name: &str) {
    // Failures of the terminal leave nothing to wait for.
    let _ = write!(io::stderr(), "before {name}: press Enter to go on ");
    let _ = io::stdin().read_line(&mut String::new());
}
