//! Shrinks a conversation.

use super::step::{Fate, Form, Sequence, Step, Wrong};
use crate::{Edit, fewer_steps};
use std::collections::BTreeSet;
use uet_control::Hex;

/// Returns a conversation with fewer and simpler steps that still fails in the same way. Calls `fails` at
/// most `budget` times.
pub fn shrink(sequence: Sequence, budget: usize, mut fails: impl FnMut(&Sequence) -> bool) -> Sequence {
    let mut left = budget;
    let mut still = |sequence: &Sequence| {
        let asked = left > 0;
        left = left.saturating_sub(1);
        asked && fails(sequence)
    };
    let mut small = fewer_steps(sequence, |sequence| &mut sequence.steps, &mut still);
    let named = without_unnamed(&small);
    if named != small && still(&named) {
        small = named;
    }
    for change in SETTINGS {
        let mut plain = small.clone();
        change(&mut plain);
        if plain != small && still(&plain) {
            small = plain;
        }
    }
    for step in 0..small.steps.len() {
        small = fewer_edits(small, step, &mut still);
        while let Some(less) = fewer_bytes(&small, step).filter(&mut still) {
            small = less;
        }
        for change in SIMPLER {
            let mut simple = small.clone();
            if let Some(step) = simple.steps.get_mut(step) {
                change(step.plain_mut());
            }
            if simple != small && still(&simple) {
                small = simple;
            }
        }
        loop {
            let mut short = small.clone();
            match short.steps.get_mut(step).map(Step::plain_mut) {
                Some(Step::Message(message)) => message.length /= 2,
                Some(Step::Post(posting)) => posting.length /= 2,
                _ => break,
            }
            if short == small || !still(&short) {
                break;
            }
            small = short;
        }
    }
    forget(small, still)
}

/// Removes the changes of a packet that the failure does not need.
fn fewer_edits(whole: Sequence, step: usize, mut still: impl FnMut(&Sequence) -> bool) -> Sequence {
    let edits = whole.steps.get(step).map(Step::edits).unwrap_or_default().to_vec();
    let with = |few: &[Edit]| {
        let mut less = whole.clone();
        match less.steps.get_mut(step) {
            Some(changed @ Step::Changed { .. }) if few.is_empty() => *changed = changed.plain().clone(),
            Some(step) => {
                if let Some(edits) = step.edits_mut() {
                    *edits = few.to_vec();
                }
            }
            None => {}
        }
        less
    };
    let few = fewer_steps(edits, |edits| edits, |few| still(&with(few)));
    with(&few)
}

/// Returns the conversation with half of the bytes that a step adds.
fn fewer_bytes(whole: &Sequence, step: usize) -> Option<Sequence> {
    let mut less = whole.clone();
    let halve = |bytes: &mut Hex| match bytes.0.len() {
        0..=1 => None,
        length => {
            bytes.0.truncate(length / 2);
            Some(())
        }
    };
    match less.steps.get_mut(step)? {
        Step::Recorded { bytes } => halve(bytes)?,
        step => step.edits_mut()?.iter_mut().find_map(|edit| match edit {
            Edit::Grow { bytes } => halve(bytes),
            _ => None,
        })?,
    }
    Some(less)
}

/// Changes of a setting that make it simpler.
const SETTINGS: &[fn(&mut Sequence)] = &[
    |sequence| sequence.secured = None,
    |sequence| sequence.other_ip = false,
    |sequence| sequence.parameters.clear(),
];

/// Changes of a step that make it simpler.
const SIMPLER: &[fn(&mut Step)] = &[
    |step| match step {
        Step::Message(message) => message.fates.clear(),
        Step::Post(posting) => posting.replies.clear(),
        Step::Control { fate, .. } => *fate = Fate::Arrives,
        _ => {}
    },
    |step| {
        if let Step::Message(message) = step {
            message.answers.clear();
        }
    },
    |step| match step {
        Step::Message(message) => trim(&mut message.fates),
        Step::Post(posting) => trim(&mut posting.replies),
        _ => {}
    },
    |step| {
        if let Step::Message(message) = step {
            (message.quiet, message.complete, message.header_data) = (false, false, false);
            message.reserved = false;
        }
    },
    |step| {
        if let Step::Message(message) = step {
            message.form = Form::Std;
        }
    },
    |step| {
        if let Step::Message(message) = step {
            message.wrong = Wrong::Nothing;
        }
    },
    |step| match step {
        Step::Message(message) => message.offset = 0,
        Step::Post(posting) => {
            (posting.offset, posting.header_data, posting.form) = (0, false, None);
        }
        _ => {}
    },
    |step| {
        if let Step::Message(message) = step {
            first_alone(&mut message.fates);
        }
    },
    |step| {
        if let Step::Post(posting) = step {
            first_alone(&mut posting.replies);
        }
    },
];

/// Removes the defaults at the end.
fn trim<T: Default + PartialEq>(list: &mut Vec<T>) {
    while list.last().is_some_and(|last| *last == T::default()) {
        list.pop();
    }
}

/// Keeps the first that is special.
fn first_alone<T: Default + PartialEq>(list: &mut Vec<T>) {
    if let Some(first) = list.iter().position(|it| *it != T::default()) {
        list.truncate(first + 1);
    }
}

/// Returns the conversation without the contexts that no step names. Renumbers the others.
fn without_unnamed(whole: &Sequence) -> Sequence {
    let mut less = whole.clone();
    let contexts = less.steps.iter_mut().filter_map(|step| step.context_mut().copied());
    let named: BTreeSet<usize> = contexts.collect();
    let mut numbers = 0..;
    less.contexts.retain(|_| numbers.next().is_some_and(|number| named.contains(&number)));
    for context in less.steps.iter_mut().filter_map(Step::context_mut) {
        *context = named.range(..*context).count();
    }
    less
}

/// Removes the contexts and regions that nobody uses, from the last on.
fn forget(mut small: Sequence, mut still: impl FnMut(&Sequence) -> bool) -> Sequence {
    loop {
        let mut less = small.clone();
        let (regions, contexts) = (less.regions.pop(), less.contexts.pop());
        if regions.is_none() && contexts.is_none() {
            return small;
        }
        let mut one = small.clone();
        one.regions.pop();
        let mut other = small.clone();
        other.contexts.pop();
        let next = [less, one, other].into_iter().find(|less| *less != small && still(less));
        match next {
            Some(less) => small = less,
            None => return small,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::step::ContextPlan;

    #[test]
    fn contexts_that_no_step_names_are_dropped() {
        let context = |pdcid| ContextPlan { peer: 0, job: 0, rod: false, pdcid, start: 1 };
        let close = |context| Step::Close { context, same: false };
        let whole = Sequence {
            contexts: [11, 12, 13, 14].map(context).to_vec(),
            steps: [0, 1, 3].map(close).to_vec(),
            ..Sequence::default()
        };
        let fails = |sequence: &Sequence| {
            let closes = |pdcid: u16| {
                sequence.steps.iter().any(|step| match step {
                    Step::Close { context, .. } => {
                        sequence.contexts.get(*context).is_some_and(|plan| plan.pdcid == pdcid)
                    }
                    _ => false,
                })
            };
            closes(12) && closes(14)
        };
        let small = shrink(whole, 1000, fails);
        assert_eq!(small.contexts, [12, 14].map(context));
        assert_eq!(small.steps, [0, 1].map(close));
    }

    #[test]
    fn only_the_steps_that_fail_are_left() {
        let steps = (0..40).map(|us| Step::Pause { us }).collect();
        let whole = Sequence { steps, ..Sequence::default() };
        let fails = |sequence: &Sequence| sequence.steps.contains(&Step::Pause { us: 17 });
        assert_eq!(shrink(whole, 1000, fails).steps, [Step::Pause { us: 17 }]);
    }
}
