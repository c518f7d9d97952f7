//! Joins conversations, and names what they do.

use serde_json::Value;
use uet_conformance::Edit;
use uet_conformance::random::Sequence;
use uet_conformance::random::step::Step;
use uet_wire::layout::{self, Kind};

/// The keys of a step that decide what its packets mean.
const KEYS: [&str; 6] = ["step", "kind", "packet", "wrong", "code", "atomic"];

/// Returns the conversations one after the other. They share their regions.
pub(super) fn joined<'a>(scripts: impl IntoIterator<Item = &'a Sequence>) -> Sequence {
    let mut all = Sequence::default();
    for script in scripts {
        let first = all.contexts.len();
        all.regions.clone_from(&script.regions);
        all.contexts.extend(&script.contexts);
        all.steps.extend(script.steps.iter().cloned().map(|mut step| {
            step.context_mut().into_iter().for_each(|context| *context += first);
            step
        }));
    }
    all
}

/// Returns a summary of steps and changed fields, with the values of code points. Findings with equal summaries count
/// as one.
pub(super) fn outline(script: &Sequence) -> String {
    let of_step = |step: &Step| {
        let plain = serde_json::to_value(step.plain()).unwrap_or_default();
        let words = KEYS.iter().filter_map(|key| match plain.get(*key)? {
            Value::String(word) => Some(word.clone()),
            value => Some(value.to_string()),
        });
        let edits = step.edits().iter().map(|edit| match edit {
            Edit::Set { header, field, value } if is_code(header, field) => {
                format!("{header}:{field}={value}")
            }
            Edit::Add { header, field, by } if is_code(header, field) => format!("{header}:{field}{by:+}"),
            Edit::Set { header, field, .. } | Edit::Add { header, field, .. } => format!("{header}:{field}"),
            Edit::Flip { .. } => "flip".into(),
            Edit::Cut { .. } => "cut".into(),
            Edit::Grow { .. } => "grow".into(),
            Edit::Twice => "twice".into(),
            Edit::Mark => "mark".into(),
        });
        words.chain(edits).collect::<Vec<_>>().join(" ")
    };
    script.steps.iter().map(of_step).collect::<Vec<_>>().join(", ")
}

/// Returns whether a field has the code points of a registry.
fn is_code(header: &str, field: &str) -> bool {
    let layout = layout::ALL.iter().find(|layout| layout.name == header);
    let place = layout.and_then(|layout| layout.place(field));
    place.is_some_and(|place| matches!(place.row.kind, Kind::Code(_)))
}

#[cfg(test)]
mod tests {
    use super::outline;
    use serde_json::{Value, json};

    #[test]
    fn outline_names_steps_and_their_changes() {
        let script = json!({"regions": [], "contexts": [], "steps": [
            {"step": "changed", "of": {"step": "close", "context": 0}, "edits": [{"edit": "twice"}]},
            {"step": "pause", "us": 7},
        ]});
        assert_eq!(outline(&serde_json::from_value(script).unwrap()), "close twice, pause");
    }

    #[test]
    fn code_points_have_their_values() {
        let outline_of = |step: Value| {
            let script = json!({"regions": [], "contexts": [], "steps": [step]});
            outline(&serde_json::from_value(script).unwrap())
        };
        let with = |field: &str| {
            let write =
                json!({"step": "message", "context": 0, "kind": "write", "length": 8, "wrong": "key"});
            let edit = json!({"edit": "set", "header": "std", "field": field, "value": "0x3e"});
            outline_of(json!({"step": "changed", "of": write, "edits": [edit]}))
        };
        assert_eq!(with("ses.opcode"), "message write key std:ses.opcode=0x3e");
        assert_eq!(with("ses.job_id"), "message write key std:ses.job_id");
        assert_eq!(outline_of(json!({"step": "abort", "target": 0, "code": 9})), "abort 9");
    }
}
