//! Joins conversations, and names what they do.

use uet_conformance::Edit;
use uet_conformance::random::Sequence;
use uet_conformance::random::step::Step;

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

/// Returns a summary of steps and changed fields. Findings with equal summaries count as one.
pub(super) fn outline(script: &Sequence) -> String {
    let of_step = |step: &Step| {
        let plain = serde_json::to_value(step.plain()).unwrap_or_default();
        let word = |key: &str| plain.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        let edits = step.edits().iter().map(|edit| match edit {
            Edit::Set { header, field, .. } | Edit::Add { header, field, .. } => format!("{header}:{field}"),
            Edit::Flip { .. } => "flip".into(),
            Edit::Cut { .. } => "cut".into(),
            Edit::Grow { .. } => "grow".into(),
            Edit::Twice => "twice".into(),
            Edit::Mark => "mark".into(),
        });
        let words = [word("step"), word("kind"), word("packet")].into_iter().chain(edits);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    script.steps.iter().map(of_step).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::outline;

    #[test]
    fn outline_names_steps_and_their_changes() {
        let script = serde_json::json!({"regions": [], "contexts": [], "steps": [
            {"step": "changed", "of": {"step": "close", "context": 0}, "edits": [{"edit": "twice"}]},
            {"step": "pause", "us": 7},
        ]});
        assert_eq!(outline(&serde_json::from_value(script).unwrap()), "close twice, pause");
    }
}
