//! Shrinks a conversation.

use super::step::{Fate, Form, Sequence, Step, Wrong};
use crate::{Edit, fewer_steps};

/// Returns a conversation with fewer and simpler steps that still fails in the same way.
pub(super) fn shrink(
    sequence: Sequence,
    budget: usize,
    mut fails: impl FnMut(&Sequence) -> bool,
) -> Sequence {
    let mut left = budget;
    let mut still = |sequence: &Sequence| {
        let asked = left > 0;
        left = left.saturating_sub(1);
        asked && fails(sequence)
    };
    let mut small = fewer_steps(sequence, |sequence| &mut sequence.steps, &mut still);
    let mut plain = small.clone();
    plain.parameters.clear();
    if plain != small && still(&plain) {
        small = plain;
    }
    for step in 0..small.steps.len() {
        if let Some(Step::Hostile { .. }) = small.steps.get(step) {
            small = fewer_edits(small, step, &mut still);
        }
        for change in SIMPLER {
            let mut simple = small.clone();
            if let Some(step) = simple.steps.get_mut(step) {
                change(step);
            }
            if simple != small && still(&simple) {
                small = simple;
            }
        }
        loop {
            let mut short = small.clone();
            match short.steps.get_mut(step) {
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

/// Removes the changes of a hostile packet that the failure does not need.
fn fewer_edits(whole: Sequence, step: usize, mut still: impl FnMut(&Sequence) -> bool) -> Sequence {
    let Some(Step::Hostile { edits, .. }) = whole.steps.get(step) else { return whole };
    let with = |few: &Vec<Edit>| {
        let mut less = whole.clone();
        if let Some(Step::Hostile { edits, .. }) = less.steps.get_mut(step) {
            edits.clone_from(few);
        }
        less
    };
    let few = fewer_steps(edits.clone(), |edits| edits, |few| still(&with(few)));
    with(&few)
}

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

    #[test]
    fn only_the_steps_that_fail_are_left() {
        let steps = (0..40).map(|us| Step::Pause { us }).collect();
        let whole = Sequence { steps, ..Sequence::default() };
        let fails = |sequence: &Sequence| sequence.steps.contains(&Step::Pause { us: 17 });
        assert_eq!(shrink(whole, 1000, fails).steps, [Step::Pause { us: 17 }]);
    }
}
