//! Minimizes a script.

use super::script::{Act, Script};
use uet_conformance::fewer_steps;

/// Removes everything that is not needed to reproduce: packets first, then changes of packets. Calls `reproduce` at
/// most `budget` times.
///
/// ```
/// use uet_harness::fuzz::minimize::minimize;
/// use uet_harness::fuzz::script::{Act, Script};
///
/// let steps = (0..100).map(|us| Act::Wait { us }.into()).collect();
/// let both = |script: &Script| [7, 80].iter().all(|us| script.steps.iter().any(|step| step.act == Act::Wait { us: *us }));
/// let small = minimize(Script { steps, ..Script::default() }, 200, both);
/// assert_eq!(small.steps, [Act::Wait { us: 7 }.into(), Act::Wait { us: 80 }.into()]);
/// ```
pub fn minimize(script: Script, budget: usize, mut reproduces: impl FnMut(&Script) -> bool) -> Script {
    let mut left = budget;
    let mut still = |script: &Script| {
        let asked = left > 0;
        left = left.saturating_sub(1);
        asked && reproduces(script)
    };
    let mut script = fewer_steps(script, |script| &mut script.steps, &mut still);
    for step in 0..script.steps.len() {
        script = fewer_steps(script, |script| &mut script.steps[step].edits, &mut still);
    }
    for step in 0..script.steps.len() {
        // The end of random bytes is rarely needed.
        while let Some(less) = shorter(&script, step).filter(&mut still) {
            script = less;
        }
    }
    forget_contexts(script)
}

/// Returns the script with half of the bytes of this step.
fn shorter(script: &Script, step: usize) -> Option<Script> {
    let mut less = script.clone();
    match &mut less.steps.get_mut(step)?.act {
        Act::Raw { bytes } | Act::Recorded { bytes } if bytes.0.len() > 1 => {
            bytes.0.truncate(bytes.0.len() / 2);
            Some(less)
        }
        _ => None,
    }
}

/// Removes the contexts that no step uses.
fn forget_contexts(mut script: Script) -> Script {
    let mut kept = Vec::new();
    for step in &mut script.steps {
        if let Act::Request { context, .. } | Act::Control { context, .. } = &mut step.act {
            let place = kept.iter().position(|kept| kept == context).unwrap_or_else(|| {
                kept.push(*context);
                kept.len() - 1
            });
            *context = place;
        }
    }
    script.contexts = kept.iter().filter_map(|context| script.contexts.get(*context).copied()).collect();
    script
}
