//! Timelines that fit a page: rows of a trace, folded.

use uet_conformance::Moment;

/// Formats a time in milliseconds, exact to a microsecond.
pub fn milliseconds(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1_000_000, nanoseconds / 1_000 % 1_000)
}

/// A row of a folded timeline.
#[derive(Debug)]
pub enum Row<'a> {
    /// A step.
    Step(&'a Moment),
    /// This many steps that are left out.
    Folded(usize),
}

/// Folds a timeline to at most about this many rows. Long phases lose their middle first, then the timeline does.
pub fn fold(timeline: &[Moment], rows: usize) -> Vec<Row<'_>> {
    if timeline.len() <= rows {
        return timeline.iter().map(Row::Step).collect();
    }
    let mut folded = Vec::new();
    let keep = (rows / 8).max(2);
    for phase in timeline.chunk_by(|one, next| one.phase == next.phase) {
        folded.extend(without_middle(phase.iter().map(Row::Step).collect(), keep, keep));
    }
    without_middle(folded, rows / 2, rows / 2)
}

/// Keeps about this many rows around a step of a timeline, and a few of its first ones.
pub fn around(timeline: &[Moment], focus: usize, rows: usize) -> Vec<Row<'_>> {
    let (first, after) = (rows / 8, rows / 8);
    let end = (focus + 1 + after).min(timeline.len());
    let mut before = without_middle(timeline[..end].iter().map(Row::Step).collect(), first, rows - first);
    match timeline.len() - end {
        0 => {}
        gone => before.push(Row::Folded(gone)),
    }
    before
}

/// Keeps the first and last rows, and folds those between if there are at least two.
fn without_middle(mut rows: Vec<Row<'_>>, first: usize, last: usize) -> Vec<Row<'_>> {
    if rows.len() < first + last + 2 {
        return rows;
    }
    let tail = rows.split_off(rows.len() - last);
    let count = |row: Row<'_>| match row {
        Row::Step(_) => 1,
        Row::Folded(count) => count,
    };
    let gone = rows.drain(first..).map(count).sum();
    rows.into_iter().chain([Row::Folded(gone)]).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uet_conformance::{Phase, TimelineEvent};

    fn note(time_ns: u64) -> Moment {
        Moment { time_ns, phase: Phase::Stimulus, event: TimelineEvent::Note { text: String::new() } }
    }

    #[test]
    fn fold_keeps_ends_and_counts_the_rest() {
        let timeline: Vec<Moment> = (0..100).map(note).collect();
        let rows = fold(&timeline, 16);
        assert!(rows.len() <= 16);
        let mut sum = 0;
        for row in &rows {
            sum += match row {
                Row::Step(_) => 1,
                Row::Folded(count) => *count,
            };
        }
        assert_eq!(sum, 100);
        assert!(matches!(rows.last(), Some(Row::Step(last)) if last.time_ns == 99));
    }

    #[test]
    fn rows_around_a_step_contain_it() {
        let timeline: Vec<Moment> = (0..100).map(note).collect();
        let times = |focus| -> Vec<Option<u64>> {
            let row = |row: &Row<'_>| match row {
                Row::Step(moment) => Some(moment.time_ns),
                Row::Folded(_) => None,
            };
            around(&timeline, focus, 16).iter().map(row).collect()
        };
        assert_eq!(times(50)[..4], [Some(0), Some(1), None, Some(39)]);
        assert_eq!(times(50).last(), Some(&None));
        assert!(times(50).contains(&Some(50)) && times(99).last() == Some(&Some(99)));
        assert_eq!(times(3), [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), None]);
    }

    #[test]
    fn time_is_exact_to_a_microsecond() {
        assert_eq!(milliseconds(12_345_678), "12.345");
    }
}
